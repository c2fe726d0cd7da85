//! Network address and port translation (RFC 3022) with mappings that can be lost.

use super::declaration::{Choice, Typed, choice, time_or_never};
use super::{Element, MiddleboxInfo, Out, Settings};
use crate::Direction;
use anabranch_units::{Duration, Instant, Stream, SubflowSeq};
use anabranch_wire::{Flags, Segment};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Gives the client's side another address and other ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nat {
    /// Time at which all mappings are lost: later packets of a flow come from another port.
    pub rebind: Option<Duration>,
    /// Treatment of packets to a port without a mapping.
    pub unmapped: Unmapped,
}

/// Treatment of packets to a port for which a NAT has no mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unmapped {
    /// Dropped in silence.
    Dropped,
    /// Answered with a RST.
    Reset,
}

impl Nat {
    /// The kind as [`MIDDLEBOXES`](super::MIDDLEBOXES) lists it.
    pub const ENTRY: MiddleboxInfo = MiddleboxInfo {
        name: "nat",
        about: "rewrites the client's address and ports; mappings may be lost",
        meaning: "Rewrites the client's address and ports.",
        source: "RFC 3022; RFC 8684 §6; Honda 2011",
        keys: &[REBIND.key(), UNMAPPED.key()],
        read: |given| Ok(Nat { rebind: REBIND.of(given), unmapped: UNMAPPED.of(given) }.into()),
    };
}

const REBIND: Typed<Option<Duration>> =
    time_or_never("rebind", "Time at which all mappings are lost; never unless given.");
const UNMAPPED: Choice<Unmapped> = choice(
    "unmapped",
    "Treatment of packets to a port without a mapping; dropped unless given.",
    &[("dropped", "Dropped silently."), ("reset", "Answered with a RST.")],
    &[Unmapped::Dropped, Unmapped::Reset],
    0,
);

impl Settings for Nat {
    fn build(&self, stream: Stream) -> Box<dyn Element> {
        Box::new(Translator::new(self.rebind, self.unmapped, stream))
    }

    fn shift(&mut self, late: Duration) {
        self.rebind = self.rebind.map(|at| at + late);
    }
}

/// The client's side is inside. Outside it is known under another address and, for each flow, a port that was drawn.
struct Translator {
    rebind: Option<Instant>,
    unmapped: Unmapped,
    chance: Stream,
    outside: BTreeMap<SocketAddr, SocketAddr>,
    inside: BTreeMap<SocketAddr, SocketAddr>,
    /// Inside addresses of lost mappings: no packet uses them, but the run's record does.
    lost: BTreeMap<SocketAddr, SocketAddr>,
}

impl Translator {
    fn new(rebind: Option<Duration>, unmapped: Unmapped, chance: Stream) -> Self {
        Translator {
            rebind: rebind.map(|span| Instant::ZERO + span),
            unmapped,
            chance,
            outside: BTreeMap::new(),
            inside: BTreeMap::new(),
            lost: BTreeMap::new(),
        }
    }

    fn lose_mappings(&mut self, now: Instant) {
        if self.rebind.is_some_and(|at| at <= now) {
            self.rebind = None;
            self.outside.clear();
            self.lost.append(&mut self.inside);
        }
    }

    /// The outside of `inside`, mapped now if it is not yet.
    fn map(&mut self, inside: SocketAddr) -> SocketAddr {
        if let Some(outside) = self.outside.get(&inside) {
            return *outside;
        }
        let free = |nat: &Self, it: &SocketAddr| !nat.inside.contains_key(it) && !nat.lost.contains_key(it);
        let outside = loop {
            let port = self.chance.between(FIRST_PORT, u64::from(u16::MAX)) as u16;
            let candidate = SocketAddr::new(public(inside.ip()), port);
            if free(self, &candidate) {
                break candidate;
            }
        };
        self.outside.insert(inside, outside);
        self.inside.insert(outside, inside);
        outside
    }
}

impl Element for Translator {
    fn pass(&mut self, now: Instant, direction: Direction, mut segment: Segment, out: &mut Out<'_>) {
        self.lose_mappings(now);
        match direction {
            Direction::Up => {
                let outside = self.map(segment.flow.source());
                (segment.flow.src, segment.flow.src_port) = (outside.ip(), outside.port());
                out.forward_altered(direction, segment);
            }
            Direction::Down => match self.inside.get(&segment.flow.destination()) {
                Some(inside) => {
                    (segment.flow.dst, segment.flow.dst_port) = (inside.ip(), inside.port());
                    out.forward_altered(direction, segment);
                }
                None => {
                    out.drop();
                    if self.unmapped == Unmapped::Reset && !segment.flags.has(Flags::RST) {
                        out.make(Direction::Up, reset(&segment));
                    }
                }
            },
        }
    }

    fn inside(&self, outside: SocketAddr) -> SocketAddr {
        let known = self.inside.get(&outside).or_else(|| self.lost.get(&outside));
        known.copied().unwrap_or(outside)
    }
}

/// Answers a segment that belongs to no connection as a host does (RFC 9293 §3.10.7.1).
fn reset(segment: &Segment) -> Segment {
    let flow = segment.flow.reversed();
    if segment.flags.has(Flags::ACK) {
        return Segment::new(flow, Flags::RST, segment.ack, SubflowSeq::new(0));
    }
    let ack = segment.seq + segment.sequence_length();
    Segment::new(flow, Flags::RST.with(Flags::ACK), SubflowSeq::new(0), ack)
}

/// The address outside. In the simulator the first three octets, and the last modulo 100, say which host and path it is
/// (`sim/src/address.rs`).
fn public(inside: IpAddr) -> IpAddr {
    match inside {
        IpAddr::V4(v4) => {
            let [first, host, path, last] = v4.octets();
            // A third NAT on a path has no other address to give, and changes ports alone.
            IpAddr::V4(Ipv4Addr::new(first, host, path, if last < 156 { last + 100 } else { last }))
        }
        IpAddr::V6(_) => inside,
    }
}

/// Ports below are not given to flows (RFC 6056 §3.2).
const FIRST_PORT: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::super::through;
    use super::*;
    use anabranch_units::Seed;
    use anabranch_wire::FlowKey;

    #[test]
    fn mappings_are_kept_until_they_are_lost() {
        let mut nat = Translator::new(Some(Duration::from_secs(1)), Unmapped::Reset, Seed(1).stream("nat"));
        let (client, server): (SocketAddr, SocketAddr) = (([10, 0, 3, 1], 5).into(), ([10, 1, 0, 1], 80).into());
        let mut pass = |at_ms, direction, from, to| {
            let seq = SubflowSeq::new(7);
            let segment = Segment::new(FlowKey::new(from, to), Flags::ACK, seq, seq);
            let at = Instant::ZERO + Duration::from_millis(at_ms);
            through(&mut nat, at, direction, segment).pop().expect("forwarded, or answered")
        };
        let first = pass(0, Direction::Up, client, server).segment.flow.source();
        assert_eq!(first.ip(), IpAddr::from([10, 0, 3, 101]));
        assert_eq!(pass(999, Direction::Up, client, server).segment.flow.source(), first);
        assert_eq!(pass(999, Direction::Down, server, first).segment.flow.destination(), client);
        let second = pass(1000, Direction::Up, client, server).segment.flow.source();
        assert_ne!(second, first);
        let answer = pass(1001, Direction::Down, server, first);
        assert_eq!(
            (answer.direction, answer.segment.flags, answer.segment.flow.source()),
            (Direction::Up, Flags::RST, first)
        );
        assert_eq!((nat.inside(first), nat.inside(second)), (client, client));
    }
}
