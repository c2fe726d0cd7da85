//! A limit of bursts, for congestion controls that do not pace (`max-burst`).
//!
//! A subflow may be ahead of a rate by so many segments; what is behind them leaves at the rate. Who stays below it, as
//! whoever sends on acknowledgments does, never meets the limit.

use anabranch_units::{Bytes, Duration, Instant, Rate};

/// Time by which a subflow is ahead of its rate, and may be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BurstLimit {
    /// Time at which all that has left would have left at the rate.
    due: Instant,
    /// Time by which that may be later than now.
    ahead: Duration,
}

/// Longest wait: a rate of next to nothing would otherwise stop the subflow for good.
const LONGEST: Duration = Duration::from_secs(10);

impl BurstLimit {
    /// Tells whether the next segment has to wait, until [`Self::opens`].
    #[inline]
    pub(crate) fn is_spent(&self, now: Instant) -> bool {
        self.due > now + self.ahead
    }

    /// The time from which on a segment may leave.
    pub(crate) fn opens(&self) -> Instant {
        self.due - self.ahead
    }

    /// A segment with so much payload leaves, where `burst` may be ahead of `rate`.
    pub(crate) fn on_sent(&mut self, now: Instant, payload: Bytes, rate: Rate, burst: Bytes) {
        let span = rate.time_for(payload).min(LONGEST);
        self.due = self.due.max(now) + span;
        self.ahead = rate.time_for(burst).min(LONGEST).saturating_sub(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: Bytes = Bytes::new(1250);
    const BURST: Bytes = SEGMENT.times(4);

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    /// Sends whatever may leave at each time; how many.
    fn sends(limit: &mut BurstLimit, micros: impl IntoIterator<Item = u64>) -> Vec<usize> {
        let send = |us| {
            let mut sent = 0;
            while !limit.is_spent(at(us)) {
                limit.on_sent(at(us), SEGMENT, Rate::from_mbps(10), BURST);
                sent += 1;
            }
            sent
        };
        micros.into_iter().map(send).collect()
    }

    /// 1250 bytes take 1 ms at 10 Mbit/s.
    #[test]
    fn what_is_behind_a_burst_follows_at_the_rate() {
        let mut limit = BurstLimit::default();
        assert_eq!(sends(&mut limit, [10_000, 10_900, 11_000, 12_000, 13_500]), [4, 0, 1, 1, 1]);
        assert_eq!(limit.opens(), at(14_000));
        assert_eq!(sends(&mut limit, [20_000]), [4]);
    }

    /// The burst may take its time: one segment each 100 µs, and the fifth waits for half a millisecond.
    #[test]
    fn a_burst_need_not_leave_at_one_moment() {
        let (mut limit, mut sent) = (BurstLimit::default(), Vec::new());
        for us in (10_000..12_000).step_by(100) {
            if !limit.is_spent(at(us)) {
                limit.on_sent(at(us), SEGMENT, Rate::from_mbps(10), BURST);
                sent.push(us);
            }
        }
        assert_eq!(sent, [10_000, 10_100, 10_200, 10_300, 11_000]);
    }

    #[test]
    fn whoever_stays_below_the_rate_never_waits() {
        let mut limit = BurstLimit::default();
        for n in 0..1000 {
            assert!(!limit.is_spent(at(1000 * n)), "{n}");
            limit.on_sent(at(1000 * n), SEGMENT, Rate::from_mbps(10), BURST);
        }
    }
}
