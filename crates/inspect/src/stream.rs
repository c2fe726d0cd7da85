//! One direction of one connection at the data level: which bytes came on which subflow, in which order, how long bytes
//! that had come waited behind missing ones, and what was sent again elsewhere.

use crate::coverage::{Closed, Coverage, length, overlapping};
use anabranch_units::{Dsn, Duration, Instant};
use anabranch_wire::DataSeq;
use std::collections::BTreeMap;
use std::ops::Range;

/// Positions are data sequence numbers relative to the IDSN if that is known (the first byte is 1, as Wireshark
/// counts), else to the first number seen.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    base: Option<Base>,
    /// True if position 0 is the IDSN.
    pub from_idsn: bool,
    pub coverage: Coverage,
    near: i64,
    /// All below is acknowledged at the data level.
    pub acked: Option<i64>,
    /// The first DATA_ACK.
    pub first_ack: Option<i64>,
    /// Position of the DATA_FIN.
    pub fin: Option<i64>,
    /// Time at which the DATA_FIN was first seen.
    pub fin_at: Option<Instant>,
    /// First carrier of data, by start position.
    origins: BTreeMap<i64, Origin>,
    /// Carried data by subflow.
    pub carried: BTreeMap<u32, Carried>,
    /// Repeated data by the subflow that carried it first (`None` if forgotten) and the one that carried it again.
    pub repeats: BTreeMap<(Option<u32>, u32), Repeat>,
    pub order: Order,
    pub gaps: Gaps,
    pub first_at: Option<Instant>,
    pub last_at: Option<Instant>,
    /// Data sequence numbers or DATA_ACKs far from all others.
    pub strange: u64,
    /// DATA_ACKs.
    pub acks: u64,
}

#[derive(Clone, Copy, Debug)]
struct Base {
    /// The number at position 0.
    dsn: Dsn,
    /// False while only 32-bit numbers have been seen: the upper half is then not known, and taken for 0.
    upper: bool,
}

#[derive(Clone, Copy, Debug)]
struct Origin {
    end: i64,
    subflow: u32,
    at: Instant,
}

/// Segments that a subflow carried for a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Carried {
    /// Bytes that came here first.
    pub first: u64,
    /// Bytes that had come before, on any subflow, with another subflow sequence number.
    pub again: u64,
}

/// Bytes that were carried twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Repeat {
    pub segments: u64,
    pub bytes: u64,
    /// Bytes of these that were acknowledged at the data level when they were repeated.
    pub acknowledged: u64,
    /// Sum over segments of the time since they came first.
    pub delay: Duration,
}

/// Arrivals above the first missing byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Order {
    pub segments: u64,
    pub bytes: u64,
    /// Largest distance from the first missing byte to a segment's end.
    pub depth_max: u64,
    pub depth_sum: u64,
    /// Most bytes that waited at one time.
    pub held_max: u64,
    /// All segments with new bytes.
    pub of: u64,
}

/// Times in which bytes that had come waited behind missing ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps {
    /// The longest, longest first.
    pub longest: Vec<Gap>,
    pub count: u64,
    /// Time in which any was open.
    pub blocked: Duration,
    since: Option<Instant>,
}

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Gap {
    /// Range that was missing.
    pub range: Range<i64>,
    pub opened: Instant,
    pub closed: Instant,
    pub end: GapEnd,
}

/// End of a gap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum GapEnd {
    /// Its last bytes came on this subflow.
    Filled(u32),
    /// The peer acknowledged what never passed here.
    Acknowledged,
    /// Still open at the end of the capture.
    Open,
}

impl Stream {
    /// Creates an empty stream.
    pub fn new() -> Self {
        Stream {
            base: None,
            from_idsn: false,
            coverage: Coverage::new(MOST_HOLES),
            near: 0,
            acked: None,
            first_ack: None,
            fin: None,
            fin_at: None,
            origins: BTreeMap::new(),
            carried: BTreeMap::new(),
            repeats: BTreeMap::new(),
            order: Order::default(),
            gaps: Gaps::default(),
            first_at: None,
            last_at: None,
            strange: 0,
            acks: 0,
        }
    }

    /// The key is known, and with it where the stream begins.
    pub fn begin(&mut self, idsn: Dsn) {
        if self.base.is_none() {
            self.base = Some(Base { dsn: idsn, upper: true });
            self.from_idsn = true;
            self.coverage.begin_at(1);
        }
    }

    /// Returns the position of a number; `None` if it is too far from all others to be valid.
    pub fn position(&mut self, seq: DataSeq) -> Option<i64> {
        let Some(base) = &mut self.base else {
            let (dsn, upper) = match seq {
                DataSeq::Long(dsn) => (dsn, true),
                DataSeq::Short(low) => (Dsn::new(u64::from(low)), false),
            };
            self.base = Some(Base { dsn, upper });
            return Some(0);
        };
        let near = base.dsn + self.near.cast_unsigned();
        let position = match seq {
            DataSeq::Short(low) => self.near + Dsn::from_low(low, near).distance(near),
            DataSeq::Long(dsn) if !base.upper => {
                let position = self.near + Dsn::from_low(dsn.low(), near).distance(near);
                *base = Base { dsn: dsn + position.wrapping_neg().cast_unsigned(), upper: true };
                position
            }
            DataSeq::Long(dsn) => {
                let distance = dsn.distance(near);
                if distance.unsigned_abs() > FAR {
                    self.strange += 1;
                    return None;
                }
                self.near + distance
            }
        };
        Some(position)
    }

    /// The number at a position, and whether its upper half is known.
    pub fn dsn(&self, position: i64) -> Option<(Dsn, bool)> {
        self.base.map(|base| (base.dsn + position.cast_unsigned(), base.upper))
    }

    /// Returns the distance of `seq` from the data that this stream has carried; `None` if it is unknown.
    pub fn distance(&self, seq: DataSeq) -> Option<u64> {
        let base = self.base?;
        let near = base.dsn + self.near.cast_unsigned();
        match seq {
            DataSeq::Long(dsn) if base.upper => Some(dsn.distance(near).unsigned_abs()),
            DataSeq::Long(dsn) => Some(Dsn::from_low(dsn.low(), near).distance(near).unsigned_abs()),
            DataSeq::Short(low) => Some(Dsn::from_low(low, near).distance(near).unsigned_abs()),
        }
    }

    /// Returns true if all 64 bits of `seq` and of this stream's numbers are known.
    pub fn knows_whole(&self, seq: DataSeq) -> bool {
        matches!(seq, DataSeq::Long(_)) && self.base.is_some_and(|base| base.upper)
    }

    /// True once a whole data sequence number is known, or bytes have passed: what is known so far could not be moved
    /// into another stream any more.
    pub fn is_settled(&self) -> bool {
        self.first_at.is_some() || self.base.is_some_and(|base| base.upper)
    }

    /// Bytes pass on a subflow that have not passed there with the same subflow sequence number. Remembers at most
    /// `history` pieces.
    pub fn carry(&mut self, range: Range<i64>, subflow: u32, now: Instant, history: usize) {
        if range.is_empty() {
            return;
        }
        self.near = self.near.max(range.end);
        self.first_at.get_or_insert(now);
        self.last_at = Some(self.last_at.map_or(now, |last| last.max(now)));
        let edge = self.coverage.edge().unwrap_or(range.start);
        let inserted = self.coverage.insert(range.clone(), now);
        let fresh = inserted.bytes();
        let again = length(&range) - fresh;
        let carried = self.carried.entry(subflow).or_default();
        carried.first += fresh;
        carried.again += again;
        if again > 0 {
            self.repeat(&range, subflow, now, &inserted.fresh);
        }
        for piece in inserted.fresh {
            self.remember(piece, subflow, now, history);
        }
        if fresh > 0 {
            self.order.of += 1;
            if range.start > edge {
                let depth = length(&(edge..range.end));
                self.order.segments += 1;
                self.order.bytes += fresh;
                self.order.depth_max = self.order.depth_max.max(depth);
                self.order.depth_sum = self.order.depth_sum.saturating_add(depth);
            }
            self.order.held_max = self.order.held_max.max(self.coverage.held());
        }
        for closed in inserted.closed {
            self.gaps.close(closed, now, GapEnd::Filled(subflow));
        }
        self.gaps.watch(self.coverage.has_holes(), now);
    }

    /// Counts what of `range` is not in `fresh` as repeated.
    fn repeat(&mut self, range: &Range<i64>, subflow: u32, now: Instant, fresh: &[Range<i64>]) {
        let mut known = 0;
        let mut parts: BTreeMap<Option<u32>, (u64, u64, Duration)> = BTreeMap::new();
        let acked = self.acked.unwrap_or(i64::MIN);
        for (start, origin) in overlapping(&self.origins, range, |origin| origin.end) {
            let part = start.max(range.start)..origin.end.min(range.end);
            let entry = parts.entry(Some(origin.subflow)).or_default();
            entry.0 += length(&part);
            entry.1 += length(&(part.start..part.end.min(acked)));
            entry.2 = now.since(origin.at);
            known += length(&part);
        }
        let again = length(range) - fresh.iter().map(length).sum::<u64>();
        if again > known {
            parts.insert(None, (again - known, 0, Duration::ZERO));
        }
        for (from, (bytes, acknowledged, delay)) in parts {
            if self.repeats.len() < MOST_PAIRS || self.repeats.contains_key(&(from, subflow)) {
                let repeat = self.repeats.entry((from, subflow)).or_default();
                repeat.segments += 1;
                repeat.bytes += bytes;
                repeat.acknowledged += acknowledged;
                repeat.delay += delay;
            }
        }
    }

    fn remember(&mut self, piece: Range<i64>, subflow: u32, at: Instant, history: usize) {
        if let Some((_, last)) = self.origins.range_mut(..piece.start).next_back()
            && last.end == piece.start
            && last.subflow == subflow
            && at.since(last.at) < SAME_TIME
        {
            last.end = piece.end;
            return;
        }
        self.origins.insert(piece.start, Origin { end: piece.end, subflow, at });
        while self.origins.len() > history.max(1) {
            self.origins.pop_first();
        }
    }

    /// The peer acknowledges at the data level.
    pub fn data_ack(&mut self, seq: DataSeq, now: Instant) {
        self.acks += 1;
        let Some(mut position) = self.position(seq) else { return };
        if let Some(fin) = self.fin {
            position = position.min(fin + 1);
        }
        self.first_ack.get_or_insert(position);
        if self.acked.is_some_and(|acked| acked >= position) {
            return;
        }
        self.acked = Some(position);
        // A DATA_FIN takes a number and has no byte; one that the capture misses looks the same.
        let bytes = match self.fin {
            Some(fin) => position.min(fin),
            None if self.coverage.high() == Some(position - 1) => position - 1,
            None => position,
        };
        for closed in self.coverage.acknowledge(bytes) {
            self.gaps.close(closed, now, GapEnd::Acknowledged);
        }
        self.near = self.near.max(position);
        self.gaps.watch(self.coverage.has_holes(), now);
    }

    /// A DATA_FIN takes this position.
    pub fn data_fin(&mut self, position: i64, now: Instant) {
        self.fin.get_or_insert(position);
        self.fin_at.get_or_insert(now);
    }

    /// True if the DATA_FIN was acknowledged.
    pub fn fin_acked(&self) -> bool {
        matches!((self.fin, self.acked), (Some(fin), Some(acked)) if acked > fin)
    }

    /// The capture ends.
    pub fn finish(&mut self, now: Instant) {
        let open: Vec<Closed> = (self.coverage.holes())
            .map(|(start, hole)| Closed { range: start..hole.end, opened: hole.opened })
            .collect();
        for hole in open {
            self.gaps.close(hole, now, GapEnd::Open);
        }
        self.gaps.watch(false, now);
    }
}

impl Gaps {
    fn close(&mut self, hole: Closed, now: Instant, end: GapEnd) {
        self.count += 1;
        let gap = Gap { range: hole.range, opened: hole.opened, closed: now, end };
        let lasted = |gap: &Gap| gap.closed.since(gap.opened);
        let place = self.longest.partition_point(|other| lasted(other) >= lasted(&gap));
        if place < LONGEST {
            self.longest.insert(place, gap);
            self.longest.truncate(LONGEST);
        }
    }

    fn watch(&mut self, open: bool, now: Instant) {
        match (open, self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(since)) => {
                self.blocked += now.since(since);
                self.since = None;
            }
            _ => {}
        }
    }
}

/// Further than any transfer that a capture could have missed a part of; a random 64-bit number is further away.
const FAR: u64 = 1 << 40;
const MOST_HOLES: usize = 4096;
const MOST_PAIRS: usize = 256;
/// The gaps that are reported one by one.
const LONGEST: usize = 10;
/// Bytes carried within this time are remembered with one time.
const SAME_TIME: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    fn stream() -> Stream {
        let mut stream = Stream::new();
        stream.begin(Dsn::new(1000));
        stream
    }

    /// Subflow 0 carries 1..101 and 301..401, subflow 1 carries 201..301 at 10 ms and 101..201 at 40 ms.
    #[test]
    fn order_depth_and_gaps_by_hand() {
        let mut stream = stream();
        for (start, subflow, at) in [(1, 0, 0), (301, 0, 5), (201, 1, 10), (101, 1, 40)] {
            stream.carry(start..start + 100, subflow, ms(at), 100);
        }
        let order = stream.order;
        assert_eq!((order.segments, order.bytes, order.of), (2, 200, 4));
        // 101 is the first missing byte: 401 - 101 and 301 - 101.
        assert_eq!((order.depth_max, order.depth_sum, order.held_max), (300, 500, 200));
        let gaps: Vec<_> = stream.gaps.longest.iter().map(|gap| (gap.range.clone(), gap.closed, gap.end)).collect();
        assert_eq!(gaps, [(101..201, ms(40), GapEnd::Filled(1))], "what 10 ms filled made the hole smaller");
        assert_eq!((stream.gaps.count, stream.gaps.blocked), (1, Duration::from_millis(35)));
        assert_eq!(stream.carried[&0], Carried { first: 200, again: 0 });
        assert_eq!(stream.carried[&1], Carried { first: 200, again: 0 });
    }

    #[test]
    fn repeats_say_who_was_first_and_how_late_the_second_was() {
        let mut stream = stream();
        stream.carry(1..101, 0, ms(0), 100);
        stream.carry(101..201, 0, ms(10), 100);
        stream.data_ack(DataSeq::Long(Dsn::new(1051)), ms(12));
        stream.carry(1..201, 1, ms(30), 100);
        // One segment, 200 bytes, of which DSN 1 to 50 had been acknowledged; 20 ms after its last part.
        let expected = Repeat { segments: 1, bytes: 200, acknowledged: 50, delay: Duration::from_millis(20) };
        assert_eq!(stream.repeats, BTreeMap::from([((Some(0), 1), expected)]));
        assert_eq!(stream.carried[&1], Carried { first: 0, again: 200 });
        assert_eq!(stream.coverage.unique, 200);
        // Half of it new, on the same subflow as before.
        stream.carry(151..251, 0, ms(31), 100);
        assert_eq!(stream.repeats[&(Some(0), 0)].bytes, 50);
        assert_eq!(stream.carried[&0], Carried { first: 250, again: 50 });
    }

    #[test]
    fn what_is_forgotten_is_still_counted() {
        let mut stream = stream();
        for n in 0..10 {
            stream.carry(1 + n * 100..101 + n * 100, n as u32 % 2, ms(n as u64), 3);
        }
        stream.carry(1..101, 1, ms(20), 3);
        assert_eq!(stream.repeats[&(None, 1)].bytes, 100);
    }

    #[test]
    fn short_numbers_find_their_place_and_later_their_upper_half() {
        let mut stream = Stream::new();
        let position = stream.position(DataSeq::Short(0xffff_fff0)).expect("the first has a place");
        stream.carry(position..position + 0x20, 0, ms(0), 100);
        assert_eq!(stream.position(DataSeq::Short(0x10)), Some(0x20), "across the wrap of the lower half");
        assert_eq!(stream.dsn(0x20).map(|(_, upper)| upper), Some(false));
        assert_eq!(stream.position(DataSeq::Long(Dsn::new(0x77_0000_0010))), Some(0x20));
        assert_eq!(stream.dsn(0), Some((Dsn::new(0x76_ffff_fff0), true)));
        assert_eq!(stream.position(DataSeq::Long(Dsn::new(0))), Some(-0x76_ffff_fff0));
        assert_eq!(stream.position(DataSeq::Long(Dsn::new(1 << 60))), None);
        assert_eq!(stream.strange, 1);
    }

    #[test]
    fn a_data_fin_takes_a_number_and_no_byte() {
        let mut stream = stream();
        stream.carry(1..101, 0, ms(0), 100);
        stream.data_fin(101, ms(0));
        stream.data_ack(DataSeq::Long(Dsn::new(1102)), ms(1));
        assert_eq!((stream.coverage.missing, stream.fin_acked()), (0, true));
        // The capture misses 100 bytes and the end.
        let mut stream = super::Stream::new();
        stream.begin(Dsn::new(1000));
        stream.carry(1..101, 0, ms(0), 100);
        stream.data_ack(DataSeq::Long(Dsn::new(1201)), ms(1));
        assert_eq!(stream.coverage.missing, 100);
    }

    #[test]
    fn a_gap_that_the_peer_acknowledges_was_only_missed_by_the_capture() {
        let mut stream = stream();
        stream.carry(1..101, 0, ms(0), 100);
        stream.carry(201..301, 0, ms(1), 100);
        stream.data_ack(DataSeq::Short(1301), ms(9));
        assert_eq!(stream.gaps.longest[0].end, GapEnd::Acknowledged);
        stream.carry(401..501, 0, ms(10), 100);
        stream.finish(ms(60));
        assert_eq!(stream.gaps.longest[0].end, GapEnd::Open);
        assert_eq!(stream.gaps.blocked, Duration::from_millis(8 + 50));
    }
}
