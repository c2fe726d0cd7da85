//! Round-trip time and retransmission timeout of one subflow.
//!
//! RFC 6298 §2, in integer nanoseconds with its gains of 1/8 and 1/4. Two rules turn the estimate into a timeout and
//! differ in what they put a floor under: the RFC under the whole timeout, Linux under its variance term alone, so that
//! a Linux timeout is never less than 200 ms above SRTT.
//! Where we differ: Linux tracks the largest deviation of each round trip (`mdev_max`) and lets it decay once per round
//! trip; we use the RFC's RTTVAR under Linux's floor. On paths whose RTT jumps, Linux's timeout is a little longer.

use anabranch_units::{Duration, Instant};

/// Rule by which SRTT and RTTVAR give a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtoRule {
    /// `max(min, SRTT + max(G, 4·RTTVAR))`, at most 60 s (RFC 6298 §2).
    Rfc6298 {
        /// Floor under the timeout: 1 s in the RFC, less in most stacks.
        min: Duration,
        /// Clock granularity `G`.
        granularity: Duration,
    },
    /// Gains of 1/10, RTTVAR beginning with the first sample; `max(min, 2·SRTT)` while RTTVAR is less than a quarter of
    /// SRTT, otherwise `max(min, SRTT + 4·RTTVAR)` (`RttMeanDeviation`, rtt-estimator.cc of mptcp-ns3).
    MptcpNs3 {
        /// Floor under the timeout: 200 ms.
        min: Duration,
    },
    /// `SRTT + max(4·RTTVAR, min_var)`, at most 120 s (Linux `tcp_rto_min`, `TCP_RTO_MAX`).
    Linux {
        /// Floor under the variance term: 200 ms.
        min_var: Duration,
    },
}

impl RtoRule {
    fn is_ns3(self) -> bool {
        matches!(self, RtoRule::MptcpNs3 { .. })
    }

    /// The timeout of an estimate.
    fn timeout(self, e: &Estimate) -> Duration {
        match self {
            RtoRule::Rfc6298 { min, granularity } => {
                (e.srtt + (e.rttvar * 4).max(granularity)).max(min).min(RFC_MAX_RTO)
            }
            RtoRule::MptcpNs3 { min } if e.rttvar < e.srtt / 4 => (e.srtt * 2).max(min),
            RtoRule::MptcpNs3 { min } => (e.srtt + e.rttvar * 4).max(min),
            RtoRule::Linux { min_var } => (e.srtt + (e.rttvar * 4).max(min_var)).min(LINUX_MAX_RTO),
        }
    }
}

/// The estimator: feed it samples, ask it for the timeout.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    rule: RtoRule,
    estimate: Option<Estimate>,
    /// Follows from both; asked for many times between two samples.
    rto: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    srtt: Duration,
    rttvar: Duration,
    min: Duration,
    max: Duration,
    first: Duration,
    last: Duration,
    last_at: Instant,
}

impl RttEstimator {
    /// An estimator without a sample.
    pub fn new(rule: RtoRule) -> Self {
        RttEstimator { rule, estimate: None, rto: INITIAL_RTO }
    }

    /// Takes one measurement (RFC 6298 §2.2 and §2.3). A sample of zero counts as one nanosecond.
    pub fn sample(&mut self, now: Instant, rtt: Duration) {
        let rtt = rtt.max(Duration::from_nanos(1));
        let Some(e) = &mut self.estimate else {
            let (srtt, rttvar) = (rtt, if self.rule.is_ns3() { rtt } else { rtt / 2 });
            let first = Estimate { srtt, rttvar, min: rtt, max: rtt, first: rtt, last: rtt, last_at: now };
            self.rto = self.rule.timeout(&first);
            self.estimate = Some(first);
            return;
        };
        // The variance first: its deviation is taken from the SRTT before this sample.
        let (deviation, (of_variance, of_mean)) =
            (e.srtt.abs_diff(rtt), if self.rule.is_ns3() { (10, 10) } else { (4, 8) });
        e.rttvar = blend(e.rttvar, deviation, of_variance);
        e.srtt = blend(e.srtt, rtt, of_mean);
        e.min = e.min.min(rtt);
        e.max = e.max.max(rtt);
        e.last = rtt;
        e.last_at = now;
        self.rto = self.rule.timeout(e);
    }

    /// The timeout before any backoff.
    #[inline]
    pub fn rto(&self) -> Duration {
        self.rto
    }

    /// The smoothed round-trip time.
    pub fn srtt(&self) -> Option<Duration> {
        self.estimate.map(|e| e.srtt)
    }

    /// The smoothed mean deviation, without any floor.
    pub fn rttvar(&self) -> Option<Duration> {
        self.estimate.map(|e| e.rttvar)
    }

    /// The smallest sample so far.
    pub fn min(&self) -> Option<Duration> {
        self.estimate.map(|e| e.min)
    }

    /// The largest sample so far.
    pub fn max(&self) -> Option<Duration> {
        self.estimate.map(|e| e.max)
    }

    /// The first sample.
    pub fn first(&self) -> Option<Duration> {
        self.estimate.map(|e| e.first)
    }

    /// The latest sample.
    pub fn last(&self) -> Option<Duration> {
        self.estimate.map(|e| e.last)
    }

    /// Returns the time of the latest sample.
    #[cfg(test)]
    pub fn last_at(&self) -> Option<Instant> {
        self.estimate.map(|e| e.last_at)
    }
}

/// `(1 - 1/n)·old + new/n`, without underflow and without drifting to zero by truncation.
fn blend(old: Duration, new: Duration, n: u64) -> Duration {
    if new >= old { old + (new - old) / n } else { old - (old - new) / n }
}

/// RFC 6298 §2.1.
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// RFC 6298 §2.5: an upper bound, if any, is at least 60 s.
const RFC_MAX_RTO: Duration = Duration::from_secs(60);
/// Linux `TCP_RTO_MAX`.
const LINUX_MAX_RTO: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    /// `RttMeanDeviation` by hand: 100 ms, then 200 ms: SRTT 110, RTTVAR 100 + (100 - 100) / 10; five at 110 ms bring
    /// RTTVAR to 100 · 0.9^5 = 59.05 ms, and twenty more to 7.18 ms, less than a quarter of 110.
    #[test]
    fn mptcp_ns3_doubles_a_steady_round_trip() {
        let mut rtt = RttEstimator::new(RtoRule::MptcpNs3 { min: Duration::from_millis(200) });
        let rto_after = |rtt: &mut RttEstimator, samples: u64, ms: u64| {
            (0..samples).for_each(|_| rtt.sample(Instant::ZERO, Duration::from_millis(ms)));
            rtt.rto().as_millis_f64()
        };
        for (samples, ms, rto) in [(1, 100, 500.0), (1, 200, 510.0), (5, 110, 346.2), (20, 110, 220.0)] {
            let is = rto_after(&mut rtt, samples, ms);
            assert!((is - rto).abs() < 0.01, "{is} ms, not {rto}");
        }
        assert_eq!(rto_after(&mut rtt, 200, 1), 200.0);
    }

    const RFC: RtoRule = RtoRule::Rfc6298 { min: Duration::from_millis(200), granularity: Duration::from_millis(1) };
    const LINUX: RtoRule = RtoRule::Linux { min_var: Duration::from_millis(200) };

    fn after(rule: RtoRule, samples_ms: &[u64]) -> RttEstimator {
        let mut e = RttEstimator::new(rule);
        for (i, &ms) in samples_ms.iter().enumerate() {
            e.sample(Instant::from_nanos(i as u64), Duration::from_millis(ms));
        }
        e
    }

    #[test]
    fn waits_a_second_before_the_first_sample() {
        assert_eq!(RttEstimator::new(RFC).rto(), Duration::from_secs(1));
        assert_eq!(RttEstimator::new(LINUX).srtt(), None);
    }

    #[test]
    fn follows_rfc_6298_by_hand() {
        // 80: SRTT 80, VAR 40. 160: VAR 3/4·40 + 1/4·80 = 50, SRTT 7/8·80 + 1/8·160 = 90.
        let e = after(RFC, &[80, 160]);
        assert_eq!(e.srtt(), Some(Duration::from_millis(90)));
        assert_eq!(e.rttvar(), Some(Duration::from_millis(50)));
        assert_eq!(e.rto(), Duration::from_millis(290));
        assert_eq!((e.min(), e.max()), (Some(Duration::from_millis(80)), Some(Duration::from_millis(160))));
        assert_eq!((e.first(), e.last()), (e.min(), e.max()));
        assert_eq!(e.last_at(), Some(Instant::from_nanos(1)));
    }

    #[test]
    fn the_rules_put_their_floors_in_different_places() {
        let steady = [50; 100];
        assert_eq!(after(RFC, &steady).rto(), Duration::from_millis(200));
        assert_eq!(after(LINUX, &steady).rto(), Duration::from_millis(250));
    }

    #[test]
    fn the_rules_have_different_ceilings() {
        assert_eq!(after(RFC, &[100_000]).rto(), Duration::from_secs(60));
        assert_eq!(after(LINUX, &[100_000]).rto(), Duration::from_secs(120));
    }
}
