//! Configuration of a link, and its errors.

use crate::{Discipline, LossModel, QueueLimit, Service};
use anabranch_units::Duration;

/// One direction of a link. Packets pass, in this order: queue, serialisation, loss, corruption, duplication,
/// propagation with jitter and reordering. A lost packet has therefore consumed capacity.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Rate at which the queue drains.
    pub service: Service,
    /// Propagation delay.
    pub delay: Duration,
    /// Each packet is delayed further by a uniform share of this.
    pub jitter: Duration,
    /// Jitter may reorder packets. If false, a packet that would overtake arrives together with the one before.
    pub jitter_reorders: bool,
    /// Limit of the queue.
    pub queue: QueueLimit,
    /// Discipline of the queue; drop-tail if none is given. Reads [`Carried`](crate::Carried), and counts what waits
    /// and what is sent against `queue`.
    pub discipline: Option<Discipline>,
    /// Packets that propagate count against `queue`, which then is in packets. Linux' netem does the same: its `limit`
    /// is for all it holds, and the delay is a time for which it holds a packet (`netem_enqueue`,
    /// net/sched/sch_netem.c).
    pub queue_counts_delay: bool,
    /// Model of packet loss.
    pub loss: LossModel,
    /// Packets that fall behind, if any.
    pub reordering: Option<Reordering>,
    /// Probability that a packet arrives twice; the copy arrives right behind it and does not consume capacity.
    pub duplication: f64,
    /// Probability that a packet arrives damaged: delivered, but flagged for the receiver's checksum to discard.
    pub corruption: f64,
    /// The network reports when a packet has left the queue or was dropped before, as TCP Small Queues need of the
    /// first hop. Costs nothing if false.
    pub notify_departure: bool,
}

/// Packets that fall behind, as on a path with parallel lanes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// Probability that a packet falls behind.
    pub probability: f64,
    /// Additional delay.
    pub extra: Duration,
}

/// A link or route that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A value is not a probability.
    #[error("{field} is {value}; a probability lies between 0 and 1")]
    Probability {
        /// Name of the field.
        field: &'static str,
        /// Value that was refused.
        value: f64,
    },
    /// A value is not a queue length.
    #[error("queue is {value} bdp; accepted is any number from 0")]
    QueueFactor {
        /// Value that was refused.
        value: f64,
    },
    /// A queue that counts what propagates is not in packets.
    #[error("a queue that counts what is under delay holds packets, not bytes, bandwidth-delay products or a time")]
    QueueCountsDelay,
    /// A queue with a discipline of its own that counts what propagates.
    #[error("a queue that counts what is under delay is drop-tail")]
    DisciplineCountsDelay,
    /// A route over nothing.
    #[error("a route needs at least one link")]
    EmptyRoute,
}

impl LinkConfig {
    /// A link that serves at a rate or by a trace, delays, and otherwise does no harm: a queue of 100 packets, no loss.
    pub fn new(service: impl Into<Service>, delay: Duration) -> Self {
        LinkConfig {
            service: service.into(),
            delay,
            jitter: Duration::ZERO,
            jitter_reorders: false,
            queue: QueueLimit::Packets(100),
            discipline: None,
            queue_counts_delay: false,
            loss: LossModel::None,
            reordering: None,
            duplication: 0.0,
            corruption: 0.0,
            notify_departure: false,
        }
    }

    /// Refuses numbers that mean nothing.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.queue.check()?;
        if self.queue_counts_delay && !matches!(self.queue, QueueLimit::Packets(_)) {
            return Err(ConfigError::QueueCountsDelay);
        }
        if self.queue_counts_delay && self.discipline.is_some() {
            return Err(ConfigError::DisciplineCountsDelay);
        }
        self.loss.check()?;
        probability("duplication", self.duplication)?;
        probability("corruption", self.corruption)?;
        self.reordering.map_or(Ok(()), |r| probability("reordering", r.probability))
    }

    /// Returns true if packets always arrive in the order in which they were offered.
    pub(crate) fn keeps_order(&self) -> bool {
        !self.jitter_reorders && self.reordering.is_none()
    }
}

pub(crate) fn probability(field: &'static str, value: f64) -> Result<(), ConfigError> {
    match (0.0..=1.0).contains(&value) {
        true => Ok(()),
        false => Err(ConfigError::Probability { field, value }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anabranch_units::Rate;

    #[test]
    fn numbers_that_mean_nothing_are_refused_by_name() {
        let good = LinkConfig::new(Rate::from_mbps(1), Duration::ZERO);
        assert_eq!(good.check(), Ok(()));
        let bad = LinkConfig { duplication: 1.5, ..good.clone() };
        assert_eq!(bad.check().unwrap_err().to_string(), "duplication is 1.5; a probability lies between 0 and 1");
        let bad = LinkConfig { corruption: f64::NAN, ..good.clone() };
        assert!(matches!(bad.check(), Err(ConfigError::Probability { field: "corruption", .. })));
        let bad =
            LinkConfig { reordering: Some(Reordering { probability: -0.1, extra: Duration::ZERO }), ..good.clone() };
        assert!(matches!(bad.check(), Err(ConfigError::Probability { field: "reordering", .. })));
        let bad = LinkConfig { loss: LossModel::Bernoulli { p: 2.0 }, ..good.clone() };
        assert!(matches!(bad.check(), Err(ConfigError::Probability { field: "loss", .. })));
        let bytes = QueueLimit::Bytes(anabranch_units::Bytes::new(9000));
        let bad = LinkConfig { queue: bytes, queue_counts_delay: true, ..good.clone() };
        assert_eq!(bad.check(), Err(ConfigError::QueueCountsDelay));
        let bad = LinkConfig { queue: QueueLimit::Bdp { factor: -1.0, round_trip: Duration::ZERO }, ..good };
        assert_eq!(bad.check(), Err(ConfigError::QueueFactor { value: -1.0 }));
    }
}
