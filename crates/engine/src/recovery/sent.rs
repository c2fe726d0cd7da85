//! A segment that was sent and not cumulatively acknowledged, as callers see it.

use super::rate::Departure;
use anabranch_units::Instant;

/// Flag of a segment that ends the stream: it takes one sequence number after its payload (RFC 9293 §3.4).
pub const FIN: u8 = 1;

/// One segment in the retransmission queue.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Subflow offset of the first byte.
    pub start: u64,
    /// Payload bytes.
    pub len: u32,
    /// Connection-level offset of the first byte.
    pub data: u64,
    /// [`FIN`], and other flags that the caller needs in order to send the segment again.
    pub flags: u8,
    pub(super) state: u8,
    pub(super) sent_at: Instant,
    pub(super) departure: Departure,
    pub(super) order: u64,
}

impl Sent {
    /// The offset after the segment, FIN included.
    pub fn end(&self) -> u64 {
        self.start + self.weight()
    }

    /// Returns the time at which it was last sent.
    pub fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// Returns true if the peer reported this segment as received (RFC 2018).
    pub fn is_sacked(&self) -> bool {
        self.state & SACKED != 0
    }

    /// Returns true if this segment's first transmission counts as lost.
    pub fn is_lost(&self) -> bool {
        self.state & LOST != 0
    }

    /// Returns true if it was sent, or reported and thrown away, more than once, so that its acknowledgement is
    /// ambiguous (Karn).
    pub fn was_retransmitted(&self) -> bool {
        self.state & REPEATED != 0
    }

    /// Counts transmissions, so that segments sent at one instant still have an order.
    pub(super) fn order(&self) -> u64 {
        self.order
    }

    /// Returns the record of its last departure, and whether the sender was application-limited then.
    pub(super) fn departure(&self) -> (Departure, bool) {
        (self.departure, self.state & LIMITED != 0)
    }

    /// Sequence numbers that it takes.
    pub(super) fn weight(&self) -> u64 {
        u64::from(self.len) + u64::from(self.flags & FIN)
    }
}

/// Reported as received.
pub(super) const SACKED: u8 = 1;
/// The first transmission is lost.
pub(super) const LOST: u8 = 2;
/// A retransmitted copy is in the network.
pub(super) const IN_REPAIR: u8 = 4;
/// Sent more than once; stays.
pub(super) const REPEATED: u8 = 8;
/// Sent, or sent again, by a sender that had too little to send.
pub(super) const LIMITED: u8 = 16;
