//! The receiving half of a subflow.

use super::{Detour, shift_for};
use crate::ahead::Ahead;
use crate::arrival_rate::ArrivalRate;
use crate::mapping::{Contradiction, Held, Mapping, MappingTable};
use crate::reassembly::{Limits, Reassembly};
use crate::unplaced::Unplaced;
use crate::{AckReason, Profile};
use anabranch_units::{Bytes, Duration, Instant, SubflowSeq};
use anabranch_wire::{Payload, SackBlock, SackBlocks, Segment};

/// Receiving half of a subflow.
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Rx {
    pub(crate) irs: SubflowSeq,
    pub(crate) rcv_nxt: u64,
    pub(crate) rcv_scale: u8,
    /// Our MSS option: no packet of the peer's holds more.
    pub(crate) mss: u16,
    pub(crate) ofo: Reassembly,
    pub(crate) maps: MappingTable,
    /// Bytes in order here, not yet handed to the data level.
    pub(crate) unplaced: Unplaced,
    /// Data in order here and ahead of the stream; only where such data is not acknowledged.
    pub(crate) ahead: Ahead,
    /// Deadline for the mapping of bytes that have none.
    pub(crate) unmapped_until: Option<Instant>,
    pub(crate) ts_recent: u32,
    /// Time at which `ts_recent` was taken.
    pub(crate) ts_recent_at: Instant,
    /// RTT as a receiver of data sees it: the age of the echoed timestamp, smoothed.
    pub(crate) echo_rtt: Option<Duration>,
    pub(crate) last_echo: u32,
    pub(crate) ack: Acknowledging,
    pub(crate) detour: Detour,
    /// Offset of the peer's FIN.
    pub(crate) peer_fin: Option<u64>,
    pub(crate) bytes_received: u64,
    /// Rate at which trains arrive.
    pub(crate) arrival_rate: ArrivalRate,
}

/// Received and not yet acknowledged (RFC 5681 §4.2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acknowledging {
    /// Full segments since the last ACK.
    pub(crate) segments: u32,
    pub(crate) deadline: Option<Instant>,
    pub(crate) now: bool,
    /// Something arrived out of order or twice, and the peer has not been told: data says it only with SACK blocks, of
    /// which most have no room for any, and is no duplicate ACK (RFC 5681 §2, RFC 2018 §4).
    pub(crate) unreported: bool,
    /// Segments still to be acknowledged at once.
    pub(crate) quick: u32,
    pub(crate) last_data: Option<Instant>,
    /// The latest bytes received twice, to be reported as DSACK (RFC 2883).
    pub(crate) duplicate: Option<(u64, u64)>,
}

/// Time without a segment after which the peer's timestamp clock may have wrapped (RFC 7323 §5.5: 24 days).
const PAWS_EXPIRY: Duration = Duration::from_secs(24 * 24 * 3600);

impl Rx {
    pub(super) fn new(profile: &Profile, receive_buffer: Bytes) -> Self {
        let limits = Limits::of_buffer(receive_buffer.get());
        Rx {
            irs: SubflowSeq::new(0),
            rcv_nxt: 1,
            rcv_scale: if profile.window_scaling { shift_for(receive_buffer) } else { 0 },
            mss: profile.mss,
            ofo: Reassembly::reporting(limits),
            maps: MappingTable::new(limits.fragments),
            unplaced: Unplaced::default(),
            ahead: Ahead::default(),
            unmapped_until: None,
            ts_recent: 0,
            ts_recent_at: Instant::ZERO,
            echo_rtt: None,
            last_echo: 0,
            ack: Acknowledging { quick: profile.quick_acks, ..Acknowledging::default() },
            detour: Detour::default(),
            peer_fin: None,
            bytes_received: 0,
            arrival_rate: ArrivalRate::default(),
        }
    }

    /// The offset at which a segment begins; `None` if before the first.
    pub(crate) fn offset(&self, segment: &Segment) -> Option<u64> {
        segment.seq.offset_near(self.irs, self.rcv_nxt)
    }

    /// Tells whether a segment of `length` from offset `start` on lies in a `window` (RFC 9293 §3.10.7.4). A RST may be
    /// the last thing received.
    pub(crate) fn admits(&self, start: u64, length: u64, rst: bool, window: u64) -> bool {
        let end = start + length;
        start <= self.rcv_nxt + window && (end > self.rcv_nxt || (end == self.rcv_nxt && (length == 0 || rst)))
    }

    /// The peer's FIN has come through.
    pub(crate) fn has_ended(&self) -> bool {
        self.peer_fin.is_some_and(|fin| self.rcv_nxt > fin)
    }

    /// Takes the peer's FIN if that is next.
    pub(crate) fn take_fin(&mut self) -> bool {
        let next = self.peer_fin == Some(self.rcv_nxt);
        if next {
            self.rcv_nxt += 1;
            self.ack.now = true;
        }
        next
    }

    /// Returns true if this timestamp lies before the latest (RFC 7323 §5.3), and the peer's clock cannot have wrapped
    /// meanwhile.
    pub(crate) fn is_old(&self, timestamp: u32, now: Instant) -> bool {
        (timestamp.wrapping_sub(self.ts_recent) as i32) < 0 && now.since(self.ts_recent_at) <= PAWS_EXPIRY
    }

    /// Takes an RTT sample where a full segment echoed a timestamp of ours, at `clock` by that clock. A full one left
    /// on arrival of the ACK that bore the timestamp, if the sender had more to send (Linux `tcp_rcv_rtt_measure_ts`).
    pub(crate) fn on_echo(&mut self, clock: u32, echo: u32) {
        if echo == self.last_echo {
            return;
        }
        self.last_echo = echo;
        // A clock of milliseconds; an echo from the future is no honest peer's.
        let age = clock.wrapping_sub(echo);
        if i32::try_from(age).is_ok() {
            let sample = Duration::from_millis(u64::from(age.max(1)));
            self.echo_rtt = Some(self.echo_rtt.map_or(sample, |rtt| (rtt * 7 + sample) / 8));
        }
    }

    /// Offset of the first byte that the data level has not had.
    pub(crate) fn placed(&self) -> u64 {
        if self.unplaced.is_empty() { self.rcv_nxt } else { self.unplaced.start() }
    }

    /// Tells whether a segment whose bytes end at offset `end`, with a `fin` or without, agrees with what is known of
    /// the peer's end, which it may tell.
    pub(crate) fn agrees_on_end(&mut self, end: u64, fin: bool) -> bool {
        if fin {
            if self.peer_fin.is_some_and(|known| known != end) {
                return false;
            }
            self.peer_fin = Some(end);
            self.ack.now = true;
        }
        self.peer_fin.is_none_or(|known| end <= known)
    }

    /// The data offset of what has just arrived at offset `start`, as far as its mapping is known: the order of the
    /// subflow if that is `plain` TCP, else by `own_map`, which it carries, or by the table.
    pub(crate) fn data_offset(&self, start: u64, own_map: Option<u64>, plain: bool) -> Option<u64> {
        let start = start.max(self.rcv_nxt);
        if plain {
            return Some(start - 1);
        }
        own_map.or_else(|| self.maps.covering(start).map(|map| map.data + (start - map.subflow)))
    }

    /// Keeps `length` bytes that begin behind a hole, at offset `start`; none if their `payload` is refused. Returns
    /// how many of them are new. With `coupled` acknowledgments, what is stored already is not answered.
    pub(crate) fn hold(&mut self, start: u64, length: u64, payload: Option<Payload>, coupled: bool) -> Option<u64> {
        let stored = payload.and_then(|payload| self.ofo.insert(start, payload));
        if stored.is_some_and(|stored| stored < length) {
            self.ack.duplicate = Some((start, start + length));
        }
        self.ack.unreported = true;
        if coupled && stored == Some(0) {
            (self.ack.now, self.ack.unreported) = (false, false);
        }
        stored
    }

    /// The mapping that bytes wait in, which are not handed on yet.
    pub(crate) fn waiting_map(&self) -> Option<Mapping> {
        if self.unplaced.is_empty() { None } else { self.maps.covering(self.unplaced.start()) }
    }

    /// Puts a mapping into the table; true if it is held now. What a full table forgets comes again together with its
    /// bytes, which are therefore not kept either: bytes in order without a mapping are a sign that options are lost.
    pub(crate) fn hold_map(&mut self, mapping: Mapping) -> Result<bool, Contradiction> {
        let held = self.maps.insert(mapping)?;
        if let Held::InsteadOf(edge) = held {
            self.ofo.drop_beyond(edge);
        }
        Ok(held != Held::No)
    }

    /// Returns up to `room` SACK blocks for the next segment (RFC 2018); a D-SACK comes first, once (RFC 2883).
    pub(crate) fn sack_blocks(&mut self, room: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let wire = |start: u64, end: u64| SackBlock { start: self.irs + start, end: self.irs + end };
        let duplicate = self.ack.duplicate.filter(|_| room > 0);
        if let Some((start, end)) = duplicate {
            blocks.push(wire(start, end));
        }
        let mut runs = [(0, 0); 4];
        let most = room - usize::from(duplicate.is_some());
        let count = self.ofo.sack_blocks(most, &mut runs);
        for (start, end) in &runs[..count] {
            blocks.push(wire(*start, *end));
        }
        if duplicate.is_some() {
            self.ack.duplicate = None;
        }
        blocks
    }

    /// Returns how many SACK blocks there are, up to `most`.
    pub(crate) fn sack_count(&self, most: usize) -> usize {
        let duplicate = usize::from(self.ack.duplicate.is_some());
        (duplicate + self.ofo.sack_blocks(most, &mut [(0, 0); SackBlocks::MAX])).min(most)
    }

    /// An ACK is due, now or later.
    pub(crate) fn owes_ack(&self) -> bool {
        self.ack.now || self.ack.deadline.is_some()
    }

    /// Returns the reason for which an ACK by itself would leave now.
    pub(crate) fn ack_reason(&self, now: Instant) -> AckReason {
        match (self.ack.duplicate, self.ofo.is_empty(), self.ack.segments) {
            (Some(_), ..) => AckReason::Duplicate,
            (_, false, _) => AckReason::OutOfOrder,
            (_, _, 0) => AckReason::Update,
            (_, _, 1) if self.ack.last_data != Some(now) => AckReason::Delayed,
            (_, _, 1) => AckReason::AtOnce,
            _ => AckReason::Second,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rx() -> Rx {
        Rx::new(&Profile::tcp(), Bytes::new(1 << 20))
    }

    #[test]
    fn the_peers_end_is_where_it_first_was() {
        let mut rx = rx();
        assert!(rx.agrees_on_end(500, false) && !rx.ack.now);
        assert!(rx.agrees_on_end(400, true) && rx.ack.now);
        let later = [(400, true), (400, false), (401, false), (399, true)].map(|(end, fin)| rx.agrees_on_end(end, fin));
        assert_eq!(later, [true, true, false, false]);
    }

    /// RFC 2883 §4: a duplicate stands in front, and is reported once.
    #[test]
    fn a_duplicate_is_reported_once_in_front() {
        let mut rx = rx();
        assert_eq!(rx.hold(101, 50, Some(Payload::from(vec![1; 50])), false), Some(50));
        assert_eq!(rx.hold(101, 50, Some(Payload::from(vec![1; 50])), false), Some(0));
        let wire = |start: u64, end: u64| SackBlock { start: rx.irs + start, end: rx.irs + end };
        let (told, held) = (wire(101, 151), wire(101, 151));
        assert_eq!(rx.sack_blocks(3).as_slice(), [told, held]);
        assert_eq!(rx.sack_blocks(3).as_slice(), [held]);
    }
}
