//! Counters of a link, and the balance that they must keep.

use anabranch_units::statistic::{Access, Statistic};
use anabranch_units::{Bytes, Duration, statistics};
use std::borrow::Cow;

statistics! {
    /// Traffic of a link, counted since it was made.
    ///
    /// At any time `offered + duplicated = delivered + dropped + queued + in flight`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct LinkStats as |it: LinkStats| it => {
        /// Packets offered, admitted or not.
        #[statistic("offered", Counter, Packets, "packets offered, admitted or not")]
        pub offered: u64,
        /// Bytes offered.
        #[statistic("offered-bytes", Counter, Bytes, "bytes offered")]
        pub offered_bytes: Bytes,
        /// Packets delivered to the next hop or the host, copies and damaged ones included.
        #[statistic("delivered", Counter, Packets, "packets delivered, copies and damaged ones included")]
        pub delivered: u64,
        /// Bytes delivered.
        #[statistic("delivered-bytes", Counter, Bytes, "bytes delivered")]
        pub delivered_bytes: Bytes,
        /// Packets dropped, by cause.
        #[statistic("dropped", Counter, Packets, "packets dropped, by cause", from DROPPED)]
        pub dropped: Dropped,
        /// Packets marked (ECN).
        #[statistic("marked", Counter, Packets, "packets marked by the queue discipline (ECN)")]
        pub marked: u64,
        /// Copies made.
        #[statistic("duplicated", Counter, Packets, "copies made")]
        pub duplicated: u64,
        /// Packets damaged by this link; they count as delivered when they arrive.
        #[statistic("corrupted", Counter, Packets, "packets damaged")]
        pub corrupted: u64,
        /// The most packets that were ever queued.
        #[statistic("max-queued", Peak, Packets, "most packets in the queue at once")]
        pub max_queued: u32,
        /// The most bytes that were ever queued.
        #[statistic("max-queued-bytes", Peak, Bytes, "most bytes in the queue at once")]
        pub max_queued_bytes: Bytes,
        /// Packets in the queue now, with the one being serialised.
        #[statistic("queued", Gauge, Packets, "packets in the queue now")]
        pub queued: u32,
        /// Bytes in the queue now; a packet leaves when its last bit does.
        #[statistic("queued-bytes", Gauge, Bytes, "bytes in the queue now")]
        pub queued_bytes: Bytes,
        /// Packets that left the queue and have not arrived, copies included.
        #[statistic("in-flight", Gauge, Packets, "packets that left the queue and have not arrived")]
        pub in_flight: u64,
        /// Packets that left the queue by being serialised.
        #[statistic("departed", Counter, Packets, "packets that left the queue")]
        pub departed: u64,
        /// Time from offer to last bit, summed over the packets in `departed`: waiting and serialisation.
        #[statistic("queue-delay", Counter, Seconds, "time from offer to last bit, added up over packets that left")]
        pub queue_delay: Duration,
    }
}

/// The statistics of a link.
pub const LINK: &[Statistic<LinkStats>] = LinkStats::STATISTICS;

const DROPPED: Access<LinkStats> = Access::Counts {
    each: "dropped",
    label: "cause",
    get: |stats| {
        let Dropped { queue, early, loss, down, blackhole } = stats.dropped;
        let causes = [("queue", queue), ("early", early), ("loss", loss), ("down", down), ("blackhole", blackhole)];
        causes.map(|(cause, count)| (Cow::Borrowed(cause), count)).into()
    },
    change: |sum, other, change| {
        change(&mut sum.dropped.queue, other.dropped.queue);
        change(&mut sum.dropped.early, other.dropped.early);
        change(&mut sum.dropped.loss, other.dropped.loss);
        change(&mut sum.dropped.down, other.dropped.down);
        change(&mut sum.dropped.blackhole, other.dropped.blackhole);
    },
};

/// Packets dropped, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The queue was full.
    pub queue: u64,
    /// The queue discipline wanted fewer packets.
    pub early: u64,
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
    /// Name of the link.
    pub link: String,
    /// Queued packets, counted one by one.
    pub held_queued: u64,
    /// Packets in flight, counted one by one.
    pub held_in_flight: u64,
    /// Counters of the link.
    pub stats: Box<LinkStats>,
}

impl Dropped {
    /// All causes together.
    pub fn total(&self) -> u64 {
        self.queue + self.early + self.loss + self.down + self.blackhole
    }
}

impl LinkStats {
    /// Returns true if the packets that came in equal those that went out and those still inside.
    pub fn is_balanced(&self) -> bool {
        self.offered + self.duplicated
            == self.delivered + self.dropped.total() + u64::from(self.queued) + self.in_flight
    }

    /// Mean time from offer to last bit; `None` before the first packet has left the queue.
    pub fn mean_queue_delay(&self) -> Option<Duration> {
        (self.departed > 0).then(|| self.queue_delay / self.departed)
    }
}
