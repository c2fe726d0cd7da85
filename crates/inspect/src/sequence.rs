//! One direction of one subflow at the TCP level: what was sent, sent again, acknowledged, and how long that took.

use crate::coverage::{Coverage, Inserted, length};
use crate::samples::Samples;
use anabranch_units::{Duration, Instant, SubflowSeq};
use std::collections::VecDeque;
use std::ops::Range;

/// Positions are counted from an arbitrary sequence number and never wrap.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    /// The sequence number at position 0.
    base: Option<SubflowSeq>,
    /// A position near which the next one will lie.
    near: i64,
    /// Position of the initial sequence number, if it is known.
    pub isn: Option<i64>,
    /// Positions that have passed.
    pub coverage: Coverage,
    /// Position of the FIN.
    pub fin: Option<i64>,
    /// All below is acknowledged.
    pub acked: Option<i64>,
    /// Sent once and not acknowledged: end and time.
    outstanding: VecDeque<(i64, Instant)>,
    /// Time from data to its acknowledgment, at the place of the capture.
    pub rtt: Samples,
    /// The same up to the last copy of the acknowledgment, where packets were captured twice.
    pub rtt_far: Samples,
    /// Bytes seen before.
    pub retransmitted: Count,
    /// Late into a hole: sent again after the first was lost before it came here.
    pub filled: Count,
    /// Into a hole so soon that it cannot have been sent again.
    pub reordered: Count,
    /// Probes of one byte or none that a peer must answer.
    pub keep_alives: u64,
    /// Data packets and their bytes, repeats included.
    pub sent: Count,
    /// Sequence or acknowledgment numbers far from all others.
    pub strange: u64,
    /// The newest timestamp.
    newest: Option<u32>,
    /// Far from all others, one after the other.
    strange_run: u32,
}

/// Packets and bytes in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Count {
    pub segments: u64,
    pub bytes: u64,
}

impl Count {
    /// One more packet.
    pub fn add(&mut self, bytes: u64) {
        self.segments += 1;
        self.bytes += bytes;
    }
}

/// A data packet as it is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    /// Position of its first byte.
    pub start: i64,
    /// Bytes, as the IP header says.
    pub length: u64,
    /// The sender's clock.
    pub timestamp: Option<u32>,
}

/// Kind of a data packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Sent {
    /// Data, some of it new.
    Data(Inserted),
    /// Data that had passed before.
    Again,
    /// The same packet, captured elsewhere too: older than what has passed already.
    Copy,
}

impl Sequence {
    /// Creates an empty sequence.
    pub fn new() -> Self {
        Sequence {
            base: None,
            near: 0,
            isn: None,
            coverage: Coverage::new(MOST_HOLES),
            fin: None,
            acked: None,
            outstanding: VecDeque::new(),
            rtt: Samples::default(),
            rtt_far: Samples::default(),
            retransmitted: Count::default(),
            filled: Count::default(),
            reordered: Count::default(),
            keep_alives: 0,
            sent: Count::default(),
            strange: 0,
            newest: None,
            strange_run: 0,
        }
    }

    /// The position of a sequence number; `None` if it lies too far from all others to mean anything.
    pub fn position(&mut self, seq: SubflowSeq) -> Option<i64> {
        let Some(base) = self.base else {
            self.base = Some(seq);
            return Some(0);
        };
        let distance = seq.distance(base + self.near.cast_unsigned());
        if distance.unsigned_abs() < FAR {
            self.strange_run = 0;
            return Some(self.near + i64::from(distance));
        }
        self.strange += 1;
        self.strange_run += 1;
        // This number cannot all be forged: the capture has missed more than a window.
        if self.strange_run > MOST_STRANGE {
            self.strange_run = 0;
            self.near += i64::from(distance);
            return Some(self.near);
        }
        None
    }

    /// The initial sequence number is `isn`: the first byte has the next one.
    pub fn begin(&mut self, isn: SubflowSeq) {
        if self.isn.is_none()
            && let Some(position) = self.position(isn)
        {
            self.isn = Some(position);
            self.coverage.begin_at(position + 1);
        }
    }

    /// True if the initial sequence number is known, and is not this.
    pub fn is_other_isn(&self, seq: SubflowSeq) -> bool {
        let known = self.base.zip(self.isn).map(|(base, isn)| base + isn.cast_unsigned());
        known.map_or(self.base.is_some(), |isn| isn != seq)
    }

    /// A data packet passes. Holes younger than `reordering` are filled by packets that overtook each other.
    pub fn send(&mut self, data: Data, now: Instant, reordering: Duration) -> Sent {
        let Data { start, length: bytes, timestamp } = data;
        let range = start..start.saturating_add_unsigned(bytes);
        let high = self.coverage.high();
        if bytes <= 1 && Some(range.start) == high.map(|high| high - 1) && self.acked >= high {
            self.keep_alives += 1;
            return Sent::Again;
        }
        self.near = self.near.max(range.end);
        let inserted = self.coverage.insert(range.clone(), now);
        let fresh = inserted.bytes();
        let older = matches!((timestamp, self.newest), (Some(t), Some(newest)) if before(t, newest));
        if fresh == 0 && older {
            return Sent::Copy;
        }
        if timestamp.is_some() && !older {
            self.newest = timestamp;
        }
        self.sent.add(bytes);
        if fresh < bytes {
            self.retransmitted.add(bytes - fresh);
            // Whatever is acknowledged now may answer either (Karn).
            self.outstanding.clear();
        } else if high.is_some_and(|high| range.start < high) {
            let opened = inserted.closed.first().map(|hole| hole.opened).or_else(|| self.hole_at(&range));
            match opened {
                Some(opened) if now.since(opened) > reordering => {
                    self.filled.add(bytes);
                    self.outstanding.clear();
                }
                _ => self.reordered.add(bytes),
            }
        } else if self.outstanding.len() < MOST_OUTSTANDING {
            self.outstanding.push_back((range.end, now));
        }
        if fresh == 0 { Sent::Again } else { Sent::Data(inserted) }
    }

    /// Returns the time at which the hole beside `range` opened, which took a part of it away.
    fn hole_at(&self, range: &Range<i64>) -> Option<Instant> {
        let beside = |(start, hole): &(i64, crate::coverage::Hole)| hole.end == range.start || *start == range.end;
        self.coverage.holes().find(beside).map(|(_, hole)| hole.opened)
    }

    /// The peer acknowledges up to `ack`. Answers when the data was sent that this acknowledges, if that can be told.
    pub fn acknowledge(&mut self, ack: SubflowSeq, with_sack: bool, now: Instant) -> Option<Instant> {
        let mut position = self.position(ack)?;
        if let Some(fin) = self.fin {
            position = position.min(fin);
        }
        self.near = self.near.max(position);
        self.acked = Some(self.acked.map_or(position, |acked| acked.max(position)));
        // One beyond the last byte may be a FIN that the capture misses.
        if self.coverage.high().is_some_and(|high| position != high + 1) {
            self.coverage.acknowledge(position);
        }
        let mut sent = None;
        while let Some((end, at)) = self.outstanding.front().copied()
            && end <= position
        {
            self.outstanding.pop_front();
            sent = Some(at);
        }
        if with_sack {
            // Data behind a loss is acknowledged late.
            self.outstanding.clear();
            return None;
        }
        self.rtt.push(now.since(sent?));
        sent
    }

    /// True if bytes were acknowledged that did not pass here.
    pub fn missing(&self) -> u64 {
        self.coverage.missing
    }

    /// Bytes that have passed, each once.
    pub fn unique(&self) -> u64 {
        self.coverage.unique
    }

    /// `range` relative to the initial sequence number, as mappings count it.
    pub fn relative(&self, range: &Range<i64>) -> Option<Range<i64>> {
        let isn = self.isn?;
        debug_assert!(length(range) > 0, "only bytes are mapped");
        Some(range.start - isn..range.end - isn)
    }
}

/// Compares on the shorter way round the circle of numbers.
fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

/// No window is larger (RFC 7323 §2.3).
const FAR: u32 = 1 << 30;
const MOST_STRANGE: u32 = 16;
const MOST_HOLES: usize = 1024;
const MOST_OUTSTANDING: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: Duration = Duration::from_millis(3);

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    fn send(sequence: &mut Sequence, seq: u32, length: u64, now: Instant) -> Sent {
        let start = sequence.position(SubflowSeq::new(seq)).expect("not far");
        sequence.send(Data { start, length, timestamp: None }, now, LATE)
    }

    #[test]
    fn repeats_fills_and_reordering_are_told_apart_across_the_wrap() {
        let mut sequence = Sequence::new();
        sequence.begin(SubflowSeq::new(u32::MAX - 150));
        let first = u32::MAX - 149;
        let seq = |offset: u32| first.wrapping_add(offset);
        send(&mut sequence, seq(0), 100, ms(0));
        send(&mut sequence, seq(0), 100, ms(1));
        assert_eq!(sequence.retransmitted, Count { segments: 1, bytes: 100 });
        send(&mut sequence, seq(200), 100, ms(2));
        send(&mut sequence, seq(100), 100, ms(4));
        assert_eq!(sequence.reordered, Count { segments: 1, bytes: 100 });
        send(&mut sequence, seq(400), 100, ms(5));
        send(&mut sequence, seq(300), 100, ms(100));
        assert_eq!(sequence.filled, Count { segments: 1, bytes: 100 });
        assert_eq!((sequence.unique(), sequence.missing(), sequence.sent.segments), (500, 0, 6));
        // 700 bytes were acknowledged, 200 of which were never here.
        sequence.acknowledge(SubflowSeq::new(seq(700)), false, ms(101));
        assert_eq!(sequence.missing(), 200);
        assert_eq!(sequence.relative(&(1..2)), Some(1..2));
    }

    #[test]
    fn round_trips_are_those_of_data_sent_once() {
        let mut sequence = Sequence::new();
        send(&mut sequence, 1, 100, ms(0));
        send(&mut sequence, 101, 100, ms(2));
        sequence.acknowledge(SubflowSeq::new(201), false, ms(12));
        assert_eq!((sequence.rtt.count(), sequence.rtt.min()), (1, Some(Duration::from_millis(10))));
        send(&mut sequence, 201, 100, ms(20));
        send(&mut sequence, 201, 100, ms(220));
        sequence.acknowledge(SubflowSeq::new(301), false, ms(230));
        assert_eq!(sequence.rtt.count(), 1, "an ambiguous acknowledgment is no sample");
        send(&mut sequence, 301, 100, ms(300));
        assert_eq!(sequence.acknowledge(SubflowSeq::new(401), true, ms(330)), None);
        assert_eq!(sequence.rtt.count(), 1);
    }

    #[test]
    fn old_timestamps_give_copies_away_and_probes_are_no_data() {
        let mut sequence = Sequence::new();
        let data = |start, timestamp| Data { start, length: 100, timestamp: Some(timestamp) };
        sequence.position(SubflowSeq::new(0));
        sequence.send(data(0, 5), ms(0), LATE);
        sequence.send(data(100, 6), ms(1), LATE);
        assert_eq!(sequence.send(data(0, 5), ms(2), LATE), Sent::Copy);
        assert_eq!(sequence.send(data(0, 7), ms(3), LATE), Sent::Again);
        assert_eq!(sequence.retransmitted.segments, 1);
        sequence.acknowledge(SubflowSeq::new(200), false, ms(4));
        let probe = Data { start: 199, length: 1, timestamp: Some(9) };
        assert_eq!(sequence.send(probe, ms(500), LATE), Sent::Again);
        assert_eq!((sequence.keep_alives, sequence.retransmitted.segments), (1, 1));
    }

    #[test]
    fn one_forged_number_changes_nothing_and_many_in_a_row_are_believed() {
        let mut sequence = Sequence::new();
        sequence.position(SubflowSeq::new(0));
        assert_eq!(sequence.position(SubflowSeq::new(1 << 31)), None);
        assert_eq!(sequence.position(SubflowSeq::new(100)), Some(100));
        let positions = (0..17).map(|n| sequence.position(SubflowSeq::new((1 << 31) + n)));
        assert_eq!(positions.filter(Option::is_some).count(), 1);
    }
}
