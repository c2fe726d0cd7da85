//! Counters of a link, and the balance that they must keep.

use anabranch_units::statistic::{Access, Kind, Source, Statistic, Unit, Value};
use anabranch_units::{Bytes, Duration, count, span, state};
use std::borrow::Cow;

/// Traffic of a link, counted since it was made.
///
/// At any time `offered + duplicated = delivered + dropped + queued + in flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
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

type Link = Statistic<LinkStats>;

/// The statistics of a link.
pub const LINK: &[Link] = &[
    Link::new("offered", Kind::Counter, Unit::Packets, "packets offered, admitted or not", count!(offered)),
    Link::new("offered-bytes", Kind::Counter, Unit::Bytes, "bytes offered", state!(offered_bytes, bytes)),
    Link::new(
        "delivered",
        Kind::Counter,
        Unit::Packets,
        "packets delivered, copies and damaged ones included",
        count!(delivered),
    ),
    Link::new("delivered-bytes", Kind::Counter, Unit::Bytes, "bytes delivered", state!(delivered_bytes, bytes)),
    Link::new("dropped", Kind::Counter, Unit::Packets, "packets dropped, by cause", DROPPED),
    Link::new("duplicated", Kind::Counter, Unit::Packets, "copies made", count!(duplicated)),
    Link::new("corrupted", Kind::Counter, Unit::Packets, "packets damaged", count!(corrupted)),
    Link::new(
        "max-queued",
        Kind::Peak,
        Unit::Packets,
        "most packets in the queue at once",
        state!(max_queued, packets),
    ),
    Link::new(
        "max-queued-bytes",
        Kind::Peak,
        Unit::Bytes,
        "most bytes in the queue at once",
        state!(max_queued_bytes, bytes),
    ),
    Link::new("queued", Kind::Gauge, Unit::Packets, "packets in the queue now", state!(queued, packets)),
    Link::new("queued-bytes", Kind::Gauge, Unit::Bytes, "bytes in the queue now", state!(queued_bytes, bytes)),
    Link::new(
        "in-flight",
        Kind::Gauge,
        Unit::Packets,
        "packets that left the queue and have not arrived",
        count!(in_flight),
    ),
    Link::new("departed", Kind::Counter, Unit::Packets, "packets that left the queue", count!(departed)),
    Link::new(
        "queue-delay",
        Kind::Counter,
        Unit::Seconds,
        "time from offer to last bit, added up over packets that left",
        span!(queue_delay),
    ),
];

const DROPPED: Source<LinkStats> = Source {
    field: "dropped",
    access: Access::Counts {
        each: "dropped",
        label: "cause",
        get: |stats| {
            let Dropped { queue, loss, down, blackhole } = stats.dropped;
            let causes = [("queue", queue), ("loss", loss), ("down", down), ("blackhole", blackhole)];
            causes.map(|(cause, count)| (Cow::Borrowed(cause), count)).into()
        },
        change: |sum, other, change| {
            change(&mut sum.dropped.queue, other.dropped.queue);
            change(&mut sum.dropped.loss, other.dropped.loss);
            change(&mut sum.dropped.down, other.dropped.down);
            change(&mut sum.dropped.blackhole, other.dropped.blackhole);
        },
    },
};

fn bytes(bytes: &Bytes) -> Value {
    Value::Count(bytes.get())
}

fn packets(count: &u32) -> Value {
    Value::Count(u64::from(*count))
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
        self.queue + self.loss + self.down + self.blackhole
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_link_has_a_description() {
        let shown = format!("{:#?}", LinkStats::default());
        let fields = shown.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(':'));
        for (field, _) in fields.filter(|(field, _)| !field.starts_with(' ')) {
            assert!(LINK.iter().any(|it| it.field() == field), "`LinkStats::{field}` needs a line in `LINK`");
        }
    }
}
