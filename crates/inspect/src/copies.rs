//! The same packet captured twice: on two interfaces (`-i any`), at both ends, on both sides of a bridge.
//!
//! A packet sent again differs from the first in its IP identification or its timestamp. Where it has neither, a
//! sighting on another interface or with another time to live marks a copy; other cases are undecided here and settled
//! over the whole subflow.

use anabranch_units::{Duration, Instant};
use anabranch_wire::Captured;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Packets seen lately, by what does not change on the way.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    seen: HashMap<u64, Seen>,
    order: VecDeque<(u64, Instant)>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Instant,
    interface: u32,
    ttl: u8,
    /// Time at which the data was sent that this packet acknowledges.
    acknowledges: Option<Instant>,
}

/// Verdict on a packet: new or captured twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The packet has not been seen lately.
    New,
    /// The same packet again. If it acknowledges data: when that was sent.
    Copy { acknowledges: Option<Instant> },
    /// The same in all that can be seen, but it may have been sent twice.
    Undecided,
}

impl Copies {
    /// Looks a packet up and remembers it under the number answered.
    pub fn check(&mut self, captured: &Captured, interface: u32, now: Instant) -> (u64, Verdict) {
        let print = fingerprint(captured);
        while let Some((old, at)) = self.order.front().copied()
            && (self.order.len() >= MOST || now.since(at) > WINDOW)
        {
            self.order.pop_front();
            if self.seen.get(&old).is_some_and(|seen| seen.at == at) {
                self.seen.remove(&old);
            }
        }
        let (segment, ttl) = (&captured.segment, captured.segment.ip.ttl);
        let v4_id = segment.flow.src.is_ipv4() && segment.ip.id != 0;
        let seen = Seen { at: now, interface, ttl, acknowledges: None };
        let verdict = match self.seen.entry(print) {
            Entry::Vacant(place) => {
                place.insert(seen);
                Verdict::New
            }
            Entry::Occupied(mut place) => {
                let first = *place.get();
                if v4_id || segment.options.timestamps().is_some() || first.interface != interface || first.ttl != ttl {
                    return (print, Verdict::Copy { acknowledges: first.acknowledges });
                }
                place.insert(Seen { acknowledges: first.acknowledges, ..seen });
                Verdict::Undecided
            }
        };
        self.order.push_back((print, now));
        (print, verdict)
    }

    /// The packet under this number acknowledges data sent then.
    pub fn acknowledges(&mut self, print: u64, sent: Instant) {
        if let Some(seen) = self.seen.get_mut(&print) {
            seen.acknowledges = Some(sent);
        }
    }
}

/// A number over everything that stays as it is on the way.
pub(crate) fn fingerprint(captured: &Captured) -> u64 {
    let segment = &captured.segment;
    let mut hasher = DefaultHasher::new();
    segment.flow.hash(&mut hasher);
    (segment.seq, segment.ack, segment.flags, segment.window, captured.payload_length).hash(&mut hasher);
    if segment.flow.src.is_ipv4() {
        segment.ip.id.hash(&mut hasher);
    }
    if let Some(timestamps) = &segment.options.timestamps() {
        (timestamps.value, timestamps.echo).hash(&mut hasher);
    }
    for block in segment.options.sack().as_slice() {
        (block.start, block.end).hash(&mut hasher);
    }
    if let Some(dss) = &segment.options.dss() {
        let seq = |seq: anabranch_wire::DataSeq| match seq {
            anabranch_wire::DataSeq::Short(low) => u64::from(low),
            anabranch_wire::DataSeq::Long(dsn) => dsn.get(),
        };
        (dss.data_ack.map(seq), dss.data_fin).hash(&mut hasher);
        dss.map.map(|map| (seq(map.dsn), map.subflow_seq, map.length)).hash(&mut hasher);
    }
    for option in segment.options.mptcp() {
        option.wire_length().hash(&mut hasher);
    }
    hasher.finish()
}

/// A packet is on its way no longer than this.
const WINDOW: Duration = Duration::from_secs(3);
const MOST: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::SubflowSeq;
    use anabranch_wire::{ChecksumStatus, Flags, FlowKey, Segment, Timestamps};

    fn packet(id: u32, timestamp: Option<u32>, ttl: u8) -> Captured {
        let address = |n: u8| std::net::SocketAddr::from(([10, 0, 0, n], 1000));
        let flow = FlowKey::new(address(1), address(2));
        let mut segment = Segment::new(flow, Flags::ACK, SubflowSeq::new(1), SubflowSeq::new(1));
        (segment.ip.id, segment.ip.ttl) = (id, ttl);
        segment.options.set_timestamps(timestamp.map(|value| Timestamps { value, echo: 0 }));
        Captured { segment, payload_length: 100, checksum: ChecksumStatus::Good, options_cut: false }
    }

    #[test]
    fn copies_and_repeats() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let check = |first: (Captured, u32), second: (Captured, u32), later: u64| {
            let mut copies = Copies::default();
            assert_eq!(copies.check(&first.0, first.1, at(0)).1, Verdict::New);
            copies.check(&second.0, second.1, at(later)).1
        };
        let copy = Verdict::Copy { acknowledges: None };
        assert_eq!(check((packet(7, None, 64), 0), (packet(7, None, 64), 0), 9), copy, "same identification");
        assert_eq!(check((packet(7, None, 64), 0), (packet(8, None, 64), 0), 9), Verdict::New, "sent again");
        assert_eq!(check((packet(0, Some(5), 64), 0), (packet(0, Some(5), 64), 0), 9), copy, "same timestamp");
        assert_eq!(check((packet(0, Some(5), 64), 0), (packet(0, Some(6), 64), 0), 9), Verdict::New);
        assert_eq!(check((packet(0, None, 64), 0), (packet(0, None, 64), 0), 9), Verdict::Undecided);
        assert_eq!(check((packet(0, None, 64), 0), (packet(0, None, 64), 1), 9), copy, "another interface");
        assert_eq!(check((packet(0, None, 64), 0), (packet(0, None, 63), 0), 9), copy, "a router between");
        assert_eq!(check((packet(7, None, 64), 0), (packet(7, None, 64), 0), 3001), Verdict::New, "too late");
    }
}
