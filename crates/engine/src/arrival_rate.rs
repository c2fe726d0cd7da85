//! The rate of a path from the peer, as arrivals show it.
//!
//! Segments that left together are spread by the slowest link on their way: what arrives behind the first of them, over
//! the time in which it arrives, is that link's rate (packet dispersion; C. Dovrolis, P. Ramanathan, D. Moore, *What Do
//! Packet Dispersion Techniques Measure?*, IEEE INFOCOM 2001). That they left together their timestamps say
//! (RFC 7323 §3): no two of them are more than a tick apart. The bytes of a whole transfer over its time would tell of
//! little more than its size.

use anabranch_units::{Bytes, Duration, Instant, Rate};

/// The rate of one subflow's path, from the peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ArrivalRate {
    rate: Option<Rate>,
    train: Option<Train>,
}

/// Segments that left together.
#[derive(Clone, Copy, Debug)]
struct Train {
    /// Timestamp of the first, and its arrival.
    left: u32,
    arrived: Instant,
    /// Bytes behind it, and the arrival of the last.
    behind: u64,
    latest: Instant,
}

/// A train with fewer bytes behind the first says little: three full segments.
const SHORTEST: u64 = 3 * 1300;

/// A train lasts no longer, lest a peer whose clock stands still make one of all it sends.
const LONGEST: Duration = Duration::from_millis(500);

impl ArrivalRate {
    /// The mean of trains, of which each counts a quarter; `None` while there was none.
    pub(crate) fn get(&self) -> Option<Rate> {
        let latest = self.train.and_then(Train::rate);
        let mixed = |before: Rate, latest: Rate| Rate::from_bps((3 * (before.as_bps() / 4)) + latest.as_bps() / 4);
        match (self.rate, latest) {
            (Some(before), Some(latest)) => Some(mixed(before, latest)),
            (before, latest) => before.or(latest),
        }
    }

    /// `length` bytes arrive that left at the peer's time `left`; none in an ACK, which is as good a mark.
    pub(crate) fn arrived(&mut self, now: Instant, left: u32, length: u64) {
        match &mut self.train {
            Some(train) if left.wrapping_sub(train.left) <= 1 && now.since(train.arrived) < LONGEST => {
                train.behind += length;
                train.latest = now;
            }
            _ => {
                self.rate = self.get();
                self.train = Some(Train { left, arrived: now, behind: 0, latest: now });
            }
        }
    }
}

impl Train {
    fn rate(self) -> Option<Rate> {
        let long = self.behind >= SHORTEST;
        long.then(|| Rate::of(Bytes::new(self.behind), self.latest.since(self.arrived))).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `segments` of 1,400 bytes that left at `left`, the first there at `start` ms, one each `gap` microseconds.
    fn train(rate: &mut ArrivalRate, left: u32, segments: u64, start: u64, gap: u64) {
        for n in 0..segments {
            rate.arrived(Instant::ZERO + Duration::from_micros(1000 * start + gap * n), left + (n % 2) as u32, 1400);
        }
    }

    fn mbps(rate: &ArrivalRate) -> Option<f64> {
        rate.get().map(Rate::as_mbps)
    }

    /// 1,400 bytes each 5.6 ms are 2 Mbit/s.
    #[test]
    fn what_left_together_arrives_at_the_rate_of_the_link() {
        let mut rate = ArrivalRate::default();
        train(&mut rate, 7, 3, 20, 5600);
        assert_eq!(mbps(&rate), None, "two segments behind the first");
        train(&mut rate, 50, 10, 100, 5600);
        assert_eq!(mbps(&rate), Some(2.0));
        // A train of 4 Mbit/s counts a quarter.
        train(&mut rate, 900, 10, 1000, 2800);
        assert_eq!(mbps(&rate), Some(2.5));
    }

    #[test]
    fn what_left_one_after_the_other_says_nothing() {
        let mut rate = ArrivalRate::default();
        for n in 0..50 {
            rate.arrived(Instant::ZERO + Duration::from_millis(2 * n), 2 * n as u32, 1400);
        }
        assert_eq!(mbps(&rate), None);
    }
}
