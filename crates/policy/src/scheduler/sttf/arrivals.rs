//! When the segments queued on one subflow arrive, if windows and the round-trip time go on as they are.

use crate::SubflowView;
use crate::scheduler::quotient;
use anabranch_units::{Bytes, Duration};

/// The predicted arrivals of a subflow's queue: `free` segments after half an RTT, then one window per RTT.
///
/// The windows of the rounds behind the first form two series, so that neither question below walks them:
/// `first, 2·first, 4·first, …` for `doublings` rounds, then `entry, entry + step, entry + 2·step, …`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals {
    /// [ns], at least 1.
    rtt: u64,
    /// Free part of the window [segments].
    free: u64,
    first: u64,
    doublings: u32,
    entry: u64,
    step: u64,
}

/// Growth of the window, on which paper and code differ (A-STTF).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Growth {
    /// The last doubling ends at the threshold, where congestion avoidance begins.
    Capped,
    /// A window up to the threshold doubles, past it if need be; then comes the threshold plus one.
    Overshoot,
}

impl Arrivals {
    /// Predicts the arrivals of this subflow, with `rtt` for its round-trip time. Under a model-based congestion
    /// control every round carries the bandwidth-delay product.
    pub(super) fn of(subflow: &SubflowView, rtt: Duration, growth: Growth) -> Self {
        let free = quotient(subflow.room().get(), subflow.mss.get().max(1));
        match subflow.bdp {
            Some(bdp) => Arrivals::steady(rtt, free, whole(bdp, subflow.mss)),
            None => Arrivals::new(rtt, free, subflow.cwnd_segments(), subflow.ssthresh_segments(), growth),
        }
    }

    /// Creates it with these windows [segments].
    pub(super) fn new(rtt: Duration, free: u64, cwnd: u32, ssthresh: Option<u32>, growth: Growth) -> Self {
        let (rtt, cwnd) = (rtt.as_nanos().max(1), u64::from(cwnd));
        let Some(ssthresh) = ssthresh.map(u64::from) else {
            return Arrivals { rtt, free, first: 2 * cwnd, doublings: u32::MAX, entry: 0, step: 1 };
        };
        let (first, doublings, entry) = match growth {
            Growth::Capped if cwnd < ssthresh => {
                let first = (2 * cwnd).min(ssthresh);
                (first, doublings_to(quotient(ssthresh + first - 1, first)), ssthresh)
            }
            // A round doubles while the one before it is up to the threshold, and the first of them follows `cwnd`.
            Growth::Overshoot if cwnd <= ssthresh => (2 * cwnd, quotient(ssthresh, cwnd).ilog2() + 1, ssthresh + 1),
            _ => (cwnd + 1, 0, cwnd + 1),
        };
        Arrivals { rtt, free, first, doublings, entry, step: 1 }
    }

    fn steady(rtt: Duration, free: u64, window: u64) -> Self {
        Arrivals { rtt: rtt.as_nanos().max(1), free, first: window, doublings: 0, entry: window, step: 0 }
    }

    /// Returns the arrival time of the `n`th segment, counted from 1, and the last one that arrives with it.
    pub(super) fn nth(&self, n: u64) -> (Duration, u64) {
        let round = if n <= self.free { 0 } else { self.round_of(n - self.free) };
        let arrival = Duration::from_nanos(self.rtt / 2) + Duration::from_nanos(self.rtt) * round;
        (arrival, self.free.saturating_add(self.carried(round)).max(n))
    }

    /// Number of segments that have arrived by `time`.
    pub(super) fn by(&self, time: Duration) -> u64 {
        match time.as_nanos().checked_sub(self.rtt / 2) {
            None => 0,
            Some(left) if left < self.rtt => self.free,
            Some(left) => self.free.saturating_add(self.carried(quotient(left, self.rtt))),
        }
    }

    /// Number of segments that arrive before `time`, or by then if `ties` are won.
    pub(super) fn before(&self, time: Duration, ties: bool) -> u64 {
        match (ties, time.is_zero()) {
            (true, _) => self.by(time),
            (false, true) => 0,
            (false, false) => self.by(time - Duration::from_nanos(1)),
        }
    }

    /// Number of segments in the first rounds behind the free part of the window.
    fn carried(&self, rounds: u64) -> u64 {
        let doubling = rounds.min(u64::from(self.doublings));
        let doubled = if doubling > MANY { u64::MAX } else { self.first.saturating_mul((1 << doubling) - 1) };
        let rest = (rounds - doubling).min(1 << MANY);
        let growth = self.step.saturating_mul(rest).saturating_mul(rest.saturating_sub(1)) / 2;
        doubled.saturating_add(rest.saturating_mul(self.entry)).saturating_add(growth)
    }

    /// The first round by which `segments`, at least one, are carried.
    fn round_of(&self, segments: u64) -> u64 {
        let doubling = u64::from(doublings_to(quotient(segments.saturating_add(self.first - 1), self.first) + 1));
        if doubling <= u64::from(self.doublings) {
            return doubling;
        }
        let before = u64::from(self.doublings);
        let rest = segments - self.carried(before);
        if self.step == 0 {
            return before + rest.div_ceil(self.entry);
        }
        // The root of r·entry + r(r-1)/2 = rest, put right where it lies between two floating-point numbers.
        let b = 2.0 * self.entry as f64 - 1.0;
        let root = ((b * b + 8.0 * rest as f64).sqrt() - b) / 2.0;
        let mut round = (root as u64).max(1);
        while self.carried(before + round) < segments && round < 1 << MANY {
            round += 1;
        }
        while round > 1 && self.carried(before + round - 1) >= segments {
            round -= 1;
        }
        before + round
    }
}

/// The smallest k with 2ᵏ ≥ `ratio`.
fn doublings_to(ratio: u64) -> u32 {
    ratio.checked_next_power_of_two().map_or(u64::BITS, u64::trailing_zeros)
}

fn whole(amount: Bytes, mss: Bytes) -> u64 {
    quotient(amount.get(), mss.get().max(1)).max(1)
}

/// More rounds of doubling than any list of segments needs, and two to this power of growth: what is beyond is not told
/// apart.
const MANY: u64 = 24;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RTT: Duration = Duration::from_millis(10);

    fn arrival(n: u64, free: u64, cwnd: u32, ssthresh: Option<u32>, growth: Growth) -> u64 {
        Arrivals::new(RTT, free, cwnd, ssthresh, growth).nth(n).0.as_millis()
    }

    /// Vectors of an independent script: n, free, cwnd, ssthresh, transfer time [ms] at an RTT of 10 ms.
    #[test]
    fn vectors_of_a_script() {
        for (n, free, cwnd, ssthresh, expected) in [
            (1, 10, 10, None, 5),
            (10, 10, 10, None, 5),
            (11, 10, 10, None, 15),
            (30, 10, 10, None, 15),
            (31, 10, 10, None, 25),
            (15, 0, 10, None, 15),
            (40, 10, 10, Some(16), 25),
            (100, 10, 10, Some(16), 55),
            (5, 2, 10, Some(5), 15),
        ] {
            assert_eq!(arrival(n, free, cwnd, ssthresh, Growth::Capped), expected, "{n} {free} {cwnd} {ssthresh:?}");
        }
    }

    /// Drawn from a grid of 504, computed round by round by a throw-away Python script; the last column with overshoot.
    #[test]
    fn vectors_of_our_own() {
        for (n, free, cwnd, ssthresh, capped, overshoot) in [
            (400, 1, 1, Some(1), 275, 285),
            (400, 1, 2, Some(33), 145, 135),
            (1000, 1, 1, Some(8), 405, 415),
            (400, 1, 1, Some(33), 155, 145),
            (1000, 10, 10, Some(100), 125, 115),
            (400, 0, 2, Some(8), 235, 245),
            (400, 0, 10, Some(33), 125, 115),
            (150, 1, 1, Some(1), 165, 175),
            (150, 0, 1, Some(33), 85, 75),
            (1000, 0, 2, Some(8), 395, 405),
            (400, 1, 1, Some(1), 275, 285),
            (400, 1, 10, Some(100), 65, 55),
            (400, 1, 10, Some(33), 125, 115),
            (1000, 1, 1, Some(8), 405, 415),
            (7, 1, 2, None, 25, 25),
            (150, 2, 2, None, 65, 65),
            (64, 1, 1, Some(33), 65, 65),
            (7, 0, 37, None, 15, 15),
            (7, 0, 2, Some(33), 25, 25),
            (400, 1, 1, Some(100), 95, 95),
            (1000, 1, 10, Some(1), 365, 365),
            (1000, 0, 1, Some(33), 275, 275),
            (1, 0, 37, Some(16), 15, 15),
            (400, 10, 10, Some(16), 175, 175),
            (64, 1, 37, Some(1), 25, 25),
            (150, 2, 2, Some(100), 65, 65),
            (1000, 0, 2, None, 85, 85),
            (1000, 37, 37, Some(8), 215, 215),
            (400, 1, 37, Some(33), 105, 105),
            (1000, 1, 1, Some(33), 275, 275),
            (7, 1, 37, Some(8), 15, 15),
            (400, 37, 37, Some(16), 95, 95),
            (1, 0, 2, Some(1), 15, 15),
            (400, 0, 1, Some(16), 205, 205),
            (7, 1, 1, Some(8), 25, 25),
            (7, 1, 1, None, 25, 25),
        ] {
            let both = [Growth::Capped, Growth::Overshoot].map(|growth| arrival(n, free, cwnd, ssthresh, growth));
            assert_eq!(both, [capped, overshoot], "{n} {free} {cwnd} {ssthresh:?}");
        }
    }

    /// The rounds one after the other; with overshoot the windows written out.
    fn naive(n: u64, free: u64, cwnd: u64, ssthresh: Option<u64>, growth: Growth) -> u64 {
        if n <= free {
            return 5;
        }
        let slow = |window: u64| ssthresh.is_none_or(|s| window < s || window == s && growth == Growth::Overshoot);
        let (mut left, mut time, mut window, mut doubling) = (n - free, 10, cwnd, slow(cwnd));
        loop {
            window = match (doubling, ssthresh) {
                (true, Some(s)) if growth == Growth::Capped => s.min(2 * window),
                (true, _) => 2 * window,
                (false, _) => window + 1,
            };
            if left <= window {
                return time + 5;
            }
            left -= window;
            time += 10;
            if doubling && !slow(window) {
                doubling = false;
                // One less, since the next round adds one.
                window = ssthresh.filter(|_| growth == Growth::Overshoot).unwrap_or(window);
            }
        }
    }

    fn any_growth() -> impl Strategy<Value = Growth> {
        prop_oneof![Just(Growth::Capped), Just(Growth::Overshoot)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn the_closed_form_is_the_loop(n in 1u64..3000, cwnd in 1u32..120, used in 0u32..120,
                                       ssthresh in prop::option::of(1u32..300), growth in any_growth()) {
            let free = u64::from(cwnd.saturating_sub(used));
            let expected = naive(n, free, u64::from(cwnd), ssthresh.map(u64::from), growth);
            prop_assert_eq!(arrival(n, free, cwnd, ssthresh, growth), expected);
        }

        #[test]
        fn counts_and_times_are_inverses(n in 1u64..3000, free in 0u64..40, cwnd in 1u32..120,
                                         ssthresh in prop::option::of(1u32..300), growth in any_growth()) {
            let arrivals = Arrivals::new(RTT, free, cwnd, ssthresh, growth);
            let (time, last) = arrivals.nth(n);
            prop_assert!(last >= n);
            prop_assert_eq!(arrivals.by(time), last);
            prop_assert_eq!(arrivals.nth(last), (time, last));
            prop_assert!(arrivals.nth(last + 1).0 > time);
            prop_assert!(arrivals.by(time.saturating_sub(Duration::from_nanos(1))) < n);
        }
    }

    #[test]
    fn a_model_based_congestion_control_carries_its_product_every_round() {
        let arrivals = Arrivals::steady(RTT, 3, 7);
        let times = [1, 3, 4, 10, 11, 17, 18].map(|n| arrivals.nth(n).0.as_millis());
        assert_eq!(times, [5, 5, 15, 15, 25, 25, 35]);
    }

    #[test]
    fn endless_lists_do_not_overflow() {
        for ssthresh in [None, Some(1), Some(u32::MAX)] {
            for growth in [Growth::Capped, Growth::Overshoot] {
                let arrivals = Arrivals::new(Duration::ZERO, u64::MAX / 2, u32::MAX, ssthresh, growth);
                assert!(arrivals.by(Duration::MAX) > 1 << 40);
                arrivals.nth(u64::MAX);
            }
        }
    }
}
