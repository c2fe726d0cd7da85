//! Packets under way.

use crate::codec::Frame;
use anabranch_net::Carried;
use anabranch_units::Ecn;
use anabranch_wire::{Echo, Segment, carriage};

/// A packet in the network. Segments, frames and echoes lie behind a pointer, so that queues move little. The memory of
/// a segment goes back to an endpoint (`Endpoint::reuse`), so that in the steady state nothing is allocated.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    /// A TCP segment.
    Segment(Box<Segment>),
    /// A TCP segment as bytes.
    Frame(Box<Frame>),
    /// A probe of a path, or its answer.
    Echo(Box<Echo>),
    /// A datagram of this UDP workload, numbered among those.
    Datagram(u32),
}

impl Carried for Packet {
    fn flow(&self) -> u64 {
        match self {
            Packet::Segment(segment) => segment.flow.digest(),
            Packet::Frame(frame) => carriage::flow_of(frame.headers()),
            Packet::Echo(_) => 0,
            Packet::Datagram(workload) => 1 + u64::from(*workload),
        }
    }

    fn hosts(&self) -> [u64; 2] {
        match self {
            Packet::Segment(segment) => segment.flow.hosts(),
            Packet::Frame(frame) => carriage::hosts_of(frame.headers()),
            Packet::Echo(_) | Packet::Datagram(_) => [0, 0],
        }
    }

    fn ecn(&self) -> Ecn {
        match self {
            Packet::Segment(segment) => segment.ip.ecn,
            Packet::Frame(frame) => carriage::ecn_of(frame.headers()),
            Packet::Echo(_) | Packet::Datagram(_) => Ecn::NotEct,
        }
    }

    fn mark(&mut self) {
        match self {
            Packet::Segment(segment) => segment.ip.ecn = Ecn::Ce,
            Packet::Frame(frame) => carriage::mark(frame.headers_mut()),
            Packet::Echo(_) | Packet::Datagram(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each link's line holds one for every packet queued or in flight.
    #[test]
    fn a_packet_is_a_pointer_and_its_kind() {
        assert_eq!(size_of::<Packet>(), 16);
    }
}
