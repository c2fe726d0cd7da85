//! Limits of queues.
//!
//! The packet being serialised counts as queued: what Linux splits between qdisc and driver ring is one queue here. A
//! packet that finds the link idle goes straight into service at any limit, so no limit can close a link.

use crate::ConfigError;
use anabranch_policy::queue::Limit;
use anabranch_units::{Bytes, Duration, Rate};

/// Capacity of a queue, beyond which arriving packets are dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueLimit {
    /// Number of packets of any size.
    Packets(u32),
    /// Number of bytes.
    Bytes(Bytes),
    /// Multiple of the bandwidth-delay product, in bytes, and at least two full packets. Resolved once from the mean
    /// rate with which the link is made: memory does not grow when the rate does.
    Bdp {
        /// Number of bandwidth-delay products.
        factor: f64,
        /// The delay in the product: the round trip of the path that the link belongs to.
        round_trip: Duration,
    },
    /// Time that a packet waits at most at the present rate, and at least two full packets. A drop-tail link drops what
    /// would wait longer, which it knows to the nanosecond, by a trace as well; a link with a discipline holds as many
    /// bytes as it sends in this time at its mean rate. Memory grows and shrinks with the rate, unlike that of a `Bdp`.
    Time(Duration),
}

impl QueueLimit {
    pub(crate) fn check(self) -> Result<(), ConfigError> {
        match self {
            QueueLimit::Bdp { factor, .. } if !(factor >= 0.0 && factor.is_finite()) => {
                Err(ConfigError::QueueFactor { value: factor })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn resolve(self, rate: Rate) -> Limit {
        match self {
            QueueLimit::Packets(packets) => Limit { packets, bytes: u64::MAX },
            QueueLimit::Bytes(bytes) => Limit { packets: u32::MAX, bytes: bytes.get() },
            QueueLimit::Bdp { factor, round_trip } => {
                let bytes = (factor * rate.bytes_in(round_trip).as_f64()) as u64;
                Limit { packets: u32::MAX, bytes: bytes.max(2 * FULL_PACKET) }
            }
            QueueLimit::Time(time) => {
                Limit { packets: u32::MAX, bytes: rate.bytes_in(time).get().max(2 * FULL_PACKET) }
            }
        }
    }
}

/// An Ethernet frame's payload (RFC 894), the size that mahimahi's traces count in too.
pub(crate) const FULL_PACKET: u64 = 1500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_admits_what_it_says() {
        let rate = Rate::from_mbps(12); // 1500 bytes per ms.
        let bdp = |factor, ms| QueueLimit::Bdp { factor, round_trip: Duration::from_millis(ms) };
        for (limit, full_packets) in [
            (QueueLimit::Packets(0), 1), // The transmitter itself.
            (QueueLimit::Packets(7), 7),
            (QueueLimit::Bytes(Bytes::new(4499)), 2),
            (QueueLimit::Bytes(Bytes::new(4500)), 3),
            (bdp(1.0, 40), 40),
            (bdp(0.5, 40), 20),
            (bdp(0.0, 40), 2),
            (bdp(1e30, 40), 1000),
            (QueueLimit::Time(Duration::from_millis(30)), 30),
            (QueueLimit::Time(Duration::ZERO), 2),
        ] {
            let limit = limit.resolve(rate);
            let held = (0..1000u32).take_while(|&n| limit.admits(1500, n, u64::from(n) * 1500)).count();
            assert_eq!(held, full_packets, "{limit:?}");
        }
    }
}
