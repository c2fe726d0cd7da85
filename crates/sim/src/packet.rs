//! Packets under way.

use crate::codec::Frame;
use anabranch_wire::{Echo, Segment};

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each link's line holds one for every packet queued or in flight.
    #[test]
    fn a_packet_is_a_pointer_and_its_kind() {
        assert_eq!(size_of::<Packet>(), 16);
    }
}
