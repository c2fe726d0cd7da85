//! Observation of packets while an emulator runs, without a capture file.

use anabranch_paths::{End, PacketId};
use anabranch_units::Instant;
use std::fmt::Debug;

/// Observer of packets. Called on the emulator's thread, so that what takes long makes packets late.
pub trait Witness: Send + Debug {
    /// The scenario's time begins at `at`, of the emulator's clock ([`Handle::begin`](super::Handle::begin)).
    fn on_begin(&mut self, at: Instant);
    /// A host has sent a packet.
    fn on_sent(&mut self, glimpse: Glimpse<'_>);
    /// A host has received a packet as it was sent, or as a middlebox left it.
    fn on_received(&mut self, glimpse: Glimpse<'_>);
    /// A link has dropped a packet.
    fn on_lost(&mut self, id: PacketId);
    /// A packet has ended without being delivered or dropped by a link: damaged, kept by a middlebox, or refused by an
    /// interface.
    fn on_ended(&mut self, id: PacketId);
}

/// Packet at a host.
#[derive(Clone, Copy, Debug)]
pub struct Glimpse<'a> {
    /// Number that it has from its sender to its receiver; 0 for one that no host sent.
    pub id: PacketId,
    /// Index of the path.
    pub path: usize,
    /// The host.
    pub end: End,
    /// Time by the emulator's clock.
    pub at: Instant,
    /// The IP packet.
    pub bytes: &'a [u8],
}
