//! Names of packets.

/// Names a packet of a run: numbered from 1 in the order in which hosts sent them, 0 for one that no host sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PacketId(pub u32);
