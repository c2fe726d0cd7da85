//! What a link counts, and the balance that it must keep.

use anabranch_units::{Bytes, Duration};

/// What passed over a link, counted since it was made.
///
/// At any time `offered + duplicated = delivered + dropped + queued + in flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets offered, admitted or not.
    pub offered: u64,
    /// Bytes offered.
    pub offered_bytes: Bytes,
    /// Packets delivered to the next hop or the host, copies and damaged ones included.
    pub delivered: u64,
    /// Bytes delivered.
    pub delivered_bytes: Bytes,
    /// Packets dropped, by cause.
    pub dropped: Dropped,
    /// Copies made.
    pub duplicated: u64,
    /// Packets damaged by this link; they count as delivered when they arrive.
    pub corrupted: u64,
    /// Packets in the queue now, with the one being serialised.
    pub queued: u32,
    /// Bytes in the queue now; a packet leaves when its last bit does.
    pub queued_bytes: Bytes,
    /// Packets that left the queue and have not arrived, copies included.
    pub in_flight: u64,
    /// The most packets that were ever queued.
    pub max_queued: u32,
    /// The most bytes that were ever queued.
    pub max_queued_bytes: Bytes,
    /// Packets that left the queue by being serialised.
    pub departed: u64,
    /// Time from offer to last bit, summed over the packets in `departed`: waiting and serialisation.
    pub queue_delay: Duration,
}

/// Packets dropped, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The queue was full.
    pub queue: u64,
    /// The loss model struck.
    pub loss: u64,
    /// The link was or went down.
    pub down: u64,
    /// The link was a black hole.
    pub blackhole: u64,
}

/// Packets appeared or vanished: a bug in this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("link {link} does not balance, holding {held_queued} queued and {held_in_flight} in flight: {stats:?}")]
pub struct Imbalance {
    /// Which link.
    pub link: String,
    /// Queued packets, counted one by one.
    pub held_queued: u64,
    /// Packets in flight, counted one by one.
    pub held_in_flight: u64,
    /// What the link believes.
    pub stats: Box<LinkStats>,
}

impl Dropped {
    /// All causes together.
    pub fn total(&self) -> u64 {
        self.queue + self.loss + self.down + self.blackhole
    }
}

impl LinkStats {
    /// Whether what came in equals what went out and what is still inside.
    pub fn is_balanced(&self) -> bool {
        self.offered + self.duplicated
            == self.delivered + self.dropped.total() + u64::from(self.queued) + self.in_flight
    }

    /// Mean time from offer to last bit; `None` before the first packet has left the queue.
    pub fn mean_queue_delay(&self) -> Option<Duration> {
        (self.departed > 0).then(|| self.queue_delay / self.departed)
    }
}
