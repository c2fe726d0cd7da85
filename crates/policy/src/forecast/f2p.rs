//! F2P-DPS, fine-grained forward prediction: every number of losses in a round, with its consequences.
//!
//! D. Ni, K. Xue, P. Hong, S. Shen. *Fine-grained Forward Prediction based Dynamic Packet Scheduling Mechanism for
//! Multipath TCP in Lossy Networks.* IEEE ICCCN 2014.
//!
//! Of `w` segments, each lost with probability `p`, `x` are lost with the binomial probability `P(x)`. Before the first
//! hole `b = (w-x)/(x+1)` segments arrive on average, whose ACKs release as many new ones:
//! ```text
//! x = 0      w arrive; next round after RTT with grow(w)
//! w-x ≥ 3    fast retransmit: w + b arrive; next round after 2 RTT with max(2, w/2)
//! else       timeout: w + b arrive; next round after RTT + E[TO] with 1, ssthresh max(2, w/2)
//! E[TO] = TO · (1 + p + 2p² + 4p³ + 8p⁴ + 16p⁵ + 32p⁶)/(1-p)                     (1)
//! ```
//! Losses that cannot be repaired before the horizon do not arrive. The horizon itself, the time in which a window of
//! `w` segments is delivered on the slow subflow, is [`delivery_time`]:
//! ```text
//! T = RTT/2 · q1 + 3/2 RTT · q3 + (E[TO] + RTT/2) · q2                           (2)
//! q1 = (1-p)^w      q2 = P(fewer than three of w get through)      q3 = 1 - q1 - q2
//! ```
//!
//! Where we differ, since the printed equations do not add up ([`F2pPrinted`](super::F2pPrinted) evaluates them): Eq. 1
//! has p² in place of p; Eq. 2 weights timeout and fast retransmit with each other's probability and forgets half a
//! round trip, and its p̂2 counts events once per lost segment and can exceed one; the probabilities of Eq. 19 sum to
//! far more than one, and Eqs. 18 to 22 omit the segments sent after the last loss. Here no loss position is
//! enumerated: a round is described by the number of losses alone. A window is halved once per recovery, as NewReno and
//! SACK do (`multi`: once per lost segment, as the paper's Reno does; A-F2P-HALF).

use super::number::powi;
use super::{Conditions, DUPLICATE_ACKS, KEPT_WINDOWS, Model, Outcome, Window};
use anabranch_units::Duration;
use std::ops::Range;

/// F2P-DPS's model of a round.
#[derive(Clone, Debug)]
pub struct F2p {
    switches: F2pSwitches,
    loss: f64,
    /// Time from sending a window until its fast retransmits have arrived.
    repair: Duration,
    /// The same for its timeout.
    rto_repair: Duration,
    timeout: Duration,
    /// Outcomes by window, for the windows that occur often: the place of the branches in `fast`, and the rest.
    /// Computed when first needed at the present loss rate.
    odds: Vec<Option<Odds>>,
    fast: Vec<Branch>,
    /// Branches of a window too large to keep.
    large: Vec<Branch>,
}

/// Readings of the paper that change numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct F2pSwitches {
    /// A fast retransmit halves the window once per lost segment, rather than once.
    pub multi: bool,
    /// The last doubling of slow start may exceed the threshold.
    pub overshoot: bool,
}

/// Fast retransmits that leave the same window.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Branch {
    /// Times the window is halved.
    halvings: u32,
    probability: f64,
    /// Expected number of new segments that the ACKs before the first hole release, given this.
    released: f64,
}

/// Probabilities of the outcomes of one window, with the numbers of losses that lead to a fast retransmit.
#[derive(Clone, Debug)]
struct Odds {
    no_loss: f64,
    fast: Range<usize>,
    timeout: f64,
    /// Expected number of segments that get through, given a timeout.
    through: f64,
    /// Expected number of new segments released, given a timeout.
    released: f64,
}

/// Expected losses in a window above which the cases with few losses are not worth counting.
const MANY_LOSSES: f64 = 500.0;
/// Terms less likely than this are below the rounding of the rest.
const NEGLIGIBLE: f64 = 1e-20;

/// `E[TO]`, the mean time until a timeout's retransmission gets through, of Padhye et al.'s Eq. (1).
pub fn mean_timeout(rto: Duration, loss: f64) -> Duration {
    let p = loss;
    let tries = 1.0 + p * (1.0 + p * (2.0 + p * (4.0 + p * (8.0 + p * (16.0 + p * 32.0)))));
    rto.mul_f64(tries / (1.0 - p))
}

/// The expected time in which a full window is delivered on a subflow in these conditions, Eq. (2).
pub fn delivery_time(conditions: &Conditions) -> Duration {
    let Conditions { rtt, rto, cwnd, loss, .. } = conditions.normalised();
    let no_loss = powi(1.0 - loss, cwnd);
    let timeout = few_through(cwnd, loss).iter().sum::<f64>();
    let fast_retransmit = if cwnd <= DUPLICATE_ACKS { 0.0 } else { (1.0 - no_loss - timeout).max(0.0) };
    let half = rtt / 2;
    let after_timeout = if timeout > 0.0 { (mean_timeout(rto, loss) + half).mul_f64(timeout) } else { Duration::ZERO };
    half.mul_f64(no_loss) + (rtt + half).mul_f64(fast_retransmit) + after_timeout
}

/// The probabilities that none, one or two of `cwnd` segments get through and at least one is lost.
fn few_through(cwnd: u32, loss: f64) -> [f64; 3] {
    let (w, kept) = (f64::from(cwnd), 1.0 - loss);
    let few = powi(loss, cwnd.saturating_sub(2));
    [
        if cwnd >= 2 { few * loss * loss } else { loss },
        if cwnd >= 2 { w * few * loss * kept } else { 0.0 },
        if cwnd >= 3 { w * (w - 1.0) / 2.0 * few * kept * kept } else { 0.0 },
    ]
}

impl F2p {
    /// The model with these switches.
    pub fn new(switches: F2pSwitches) -> Self {
        let zero = Duration::ZERO;
        F2p {
            switches,
            loss: 0.0,
            repair: zero,
            rto_repair: zero,
            timeout: zero,
            odds: Vec::new(),
            fast: Vec::new(),
            large: Vec::new(),
        }
    }

    /// The odds of a window, and its branches in `fast`, or in `large` if it is larger than those that are kept.
    fn odds(&mut self, cwnd: u32) -> Odds {
        let (at, loss, multi) = (cwnd as usize, self.loss, self.switches.multi);
        if at >= KEPT_WINDOWS {
            self.large.clear();
            return Odds::of(cwnd, loss, multi, &mut self.large);
        }
        if at >= self.odds.len() {
            self.odds.resize(at + 1, None);
        }
        self.odds[at].get_or_insert_with(|| Odds::of(cwnd, loss, multi, &mut self.fast)).clone()
    }
}

impl Default for F2p {
    fn default() -> Self {
        F2p::new(F2pSwitches::default())
    }
}

impl Model for F2p {
    fn begin(&mut self, conditions: &Conditions) {
        self.repair = conditions.rtt + conditions.rtt / 2;
        self.timeout = mean_timeout(conditions.rto, conditions.loss);
        self.rto_repair = self.repair + self.timeout;
        if conditions.loss != self.loss {
            self.loss = conditions.loss;
            self.odds.clear();
            self.fast.clear();
        }
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn round(&mut self, window: Window, left: Duration, mut outcome: impl FnMut(Outcome)) {
        let all = window.as_f64();
        let grown = window.grown(self.switches.overshoot);
        if left < self.repair {
            // A loss now cannot be repaired in time, and segments sent later do not arrive.
            return outcome(Outcome::new(1.0, all * (1.0 - self.loss), 1, false, grown));
        }
        let odds = self.odds(window.cwnd());
        outcome(Outcome::new(odds.no_loss, all, 1, false, grown));
        let branches = if window.cwnd() as usize >= KEPT_WINDOWS { &self.large } else { &self.fast };
        for branch in &branches[odds.fast] {
            let next = (1..branch.halvings).fold(window.halved(), |window, _| window.halved());
            outcome(Outcome::new(branch.probability, all + branch.released, 2, false, next));
        }
        if odds.timeout > 0.0 {
            let repaired = if left >= self.rto_repair { all } else { odds.through };
            outcome(Outcome::new(odds.timeout, repaired + odds.released, 1, true, window.restarted()));
        }
    }
}

impl Odds {
    /// For `cwnd` segments, each lost with probability `loss`; the ways to a fast retransmit are appended to
    /// `branches`.
    fn of(cwnd: u32, loss: f64, multi: bool, branches: &mut Vec<Branch>) -> Self {
        let w = f64::from(cwnd);
        let no_loss = powi(1.0 - loss, cwnd);
        let few = few_through(cwnd, loss);
        let timeout: f64 = few.iter().sum();
        let through = few[1] + 2.0 * few[2];
        // k of w get through: w - k are lost, and the k stand in w - k + 1 gaps.
        let released = few[1] / w + if cwnd >= 3 { 2.0 * few[2] / (w - 1.0) } else { 0.0 };
        let given_timeout = |sum: f64| if timeout > 0.0 { sum / timeout } else { 0.0 };

        let first = branches.len();
        if cwnd > DUPLICATE_ACKS && loss > 0.0 {
            let all = (1.0 - no_loss - timeout).max(0.0);
            fast_retransmits(cwnd, loss, multi, all, no_loss, branches);
        }
        Odds {
            no_loss,
            fast: first..branches.len(),
            timeout,
            through: given_timeout(through),
            released: given_timeout(released),
        }
    }
}

/// Appends the ways in which a window of more than three may come to a fast retransmit; in all they have probability
/// `all`.
fn fast_retransmits(cwnd: u32, loss: f64, multi: bool, all: f64, no_loss: f64, branches: &mut Vec<Branch>) {
    let w = f64::from(cwnd);
    // More halvings than this leave two segments as well: 3 · 2^most is above the window.
    let most = if multi { (cwnd / 3).ilog2() + 1 } else { 1 };
    let mut rest = all;
    let mut released = 0.0;
    let mut push = |halvings, probability: f64, released: f64| {
        if probability > 0.0 {
            branches.push(Branch { halvings, probability, released: released / probability });
        }
    };
    if w * loss > MANY_LOSSES {
        // The number of losses is close to its mean.
        return push(most, all, all * (1.0 / loss - 1.0));
    }
    let odds = loss / (1.0 - loss);
    let (mut probability, mut last) = (no_loss, 0.0);
    for lost in 1..=cwnd - DUPLICATE_ACKS {
        let x = f64::from(lost);
        probability *= odds * (w - x + 1.0) / x;
        let here = probability * (w - x) / (x + 1.0);
        if lost < most {
            rest -= probability;
            push(lost, probability, here);
        } else {
            last += probability;
            released += here;
            if probability < NEGLIGIBLE && x > w * loss {
                break;
            }
        }
    }
    // By difference, so that all probabilities sum to one; `released` belongs to what was summed up.
    let rest = rest.max(0.0);
    push(most, rest, if last > 0.0 { released / last * rest } else { 0.0 });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::{Forecast, Forecaster};

    fn conditions(rtt: u64, rto: u64, cwnd: u32, ssthresh: Option<u32>, loss: f64) -> Conditions {
        let (rtt, rto) = (Duration::from_millis(rtt), Duration::from_millis(rto));
        Conditions { rtt, rto, cwnd, ssthresh, loss, max_cwnd: None }
    }

    fn expected(multi: bool, horizon: Duration, conditions: &Conditions) -> f64 {
        Forecaster::new(F2p::new(F2pSwitches { multi, ..F2pSwitches::default() })).expected(horizon, conditions)
    }

    /// The paper's paths: 100 ms with losses before 500 ms with 0.1 %, RTO = RTT + 200 ms, windows of 10.
    #[test]
    fn worked_example() {
        let horizon = delivery_time(&conditions(500, 700, 10, Some(16), 0.001));
        assert!((horizon.as_millis_f64() - 254.978).abs() < 0.0005, "{horizon:?}");
        for (loss, multi, once) in
            [(0.001, 42.5995, 42.5997), (0.01, 39.2918, 39.3045), (0.03, 33.5070, 33.6074), (0.05, 29.2856, 29.5311)]
        {
            let fast = conditions(100, 300, 10, Some(16), loss);
            assert!((expected(true, horizon, &fast) - multi).abs() <= 0.00005, "{loss} multi");
            assert!((expected(false, horizon, &fast) - once).abs() <= 0.00005, "{loss}");
        }
        assert_eq!(expected(false, horizon, &conditions(100, 300, 10, Some(16), 0.0)), 43.0); // FPS
    }

    /// Computed with a plain recursion in Python, apart from this code.
    #[test]
    fn more_examples() {
        for (multi, horizon, conditions, segments) in [
            (false, 300, conditions(10, 210, 2, Some(2), 0.03), 140.507392),
            (false, 500, conditions(10, 60, 20, Some(8), 0.05), 257.514944),
            (true, 500, conditions(10, 60, 20, Some(8), 0.05), 238.405686),
            (false, 125, conditions(50, 250, 10, Some(20), 0.01), 45.871156),
            (false, 60, conditions(10, 30, 6, Some(100), 0.2), 19.847012),
            (false, 12, conditions(20, 220, 10, Some(10), 0.01), 9.9),
            (false, 9, conditions(20, 220, 10, Some(10), 0.01), 0.0),
        ] {
            let got = expected(multi, Duration::from_millis(horizon), &conditions);
            assert!((got - segments).abs() < 5e-7, "{horizon} ms {conditions:?}: {got}, not {segments}");
        }
    }

    /// q1, q2, q3 = 0.6561, 0.0523, 0.2916 for w = 4, p = 0.1; any loss of two is a timeout.
    #[test]
    fn delivery_takes_longer_the_more_may_be_lost() {
        assert_eq!(mean_timeout(Duration::from_millis(700), 0.001).as_nanos(), 701_402_806); // · 1.001002.../0.999
        assert_eq!(mean_timeout(Duration::from_millis(300), 0.2).as_nanos(), 499_488_000);
        for (cwnd, millis) in [(4, 98.772361), (2, 121.249493), (1, 87.499733)] {
            let time = delivery_time(&conditions(100, 300, cwnd, None, 0.1)).as_millis_f64();
            assert!((time - millis).abs() < 2e-6, "{cwnd}: {time}");
        }
        assert_eq!(delivery_time(&conditions(100, 300, 10, None, 0.0)), Duration::from_millis(50));
        assert!(delivery_time(&conditions(100, 300, 10, None, 1.0)) > Duration::from_secs(1_000_000));
    }

    #[test]
    fn probabilities_sum_to_one() {
        for multi in [false, true] {
            for cwnd in (1..=200).chain([255, 256, 1000, 100_000, Window::MAX]) {
                for percent in 0..=90 {
                    let mut branches = Vec::new();
                    let odds = Odds::of(cwnd, f64::from(percent) / 100.0, multi, &mut branches);
                    let fast: f64 = branches.iter().map(|branch| branch.probability).sum();
                    let sum = odds.no_loss + odds.timeout + fast;
                    assert!((sum - 1.0).abs() < 1e-12, "w {cwnd}, {percent} %: {sum}");
                    assert!(odds.fast == (0..branches.len()) && odds.through <= 2.0);
                    assert!(branches.iter().all(|branch| branch.released <= f64::from(cwnd)), "w {cwnd} {branches:?}");
                }
            }
        }
    }

    /// w = 10 comes down to 5 and then to 2; w = 12 to 6, 3 and 2.
    #[test]
    fn multi_halves_once_per_loss() {
        let halvings = |cwnd, multi| {
            let mut branches = Vec::new();
            Odds::of(cwnd, 0.1, multi, &mut branches);
            branches.iter().map(|branch| branch.halvings).collect::<Vec<_>>()
        };
        assert_eq!(halvings(10, false), [1]);
        assert_eq!(halvings(4, true), [1]);
        assert_eq!(halvings(10, true), [1, 2]);
        assert_eq!(halvings(12, true), [1, 2, 3]);
    }
}
