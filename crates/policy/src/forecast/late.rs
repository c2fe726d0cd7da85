//! LATE, loss-aware throughput estimation: a round succeeds, or a fast retransmit repairs it, or a timeout does.
//!
//! The model of *Loss-Aware Throughput Estimation Scheduler for Multi-Path TCP in Heterogeneous Wireless Networks*. Of
//! `w` segments, each lost with probability `l`, `m` are lost with the binomial probability `P(m)`:
//! ```text
//! no loss          P(0)                       w arrive; next round after RTT with grow(w)
//! fast retransmit  P(1) + ... + P(w-3)        w arrive; next round after 2 RTT with w/2
//! timeout          P(w-2) + P(w-1) + P(w)     w arrive; next round after RTO + RTT/2 with 1, ssthresh w/2
//! ```
//! Losses that cannot be repaired before the horizon do not arrive.
//!
//! Where we differ: Eqs. 9, 14 and 22 add the later rounds without the probability of the branch that leads to them,
//! which counts more than the loss-free maximum; here each branch goes on with its own probability and all three
//! outcomes ([`Later`] has the literal readings). The sum of Eq. 15 starts at one lost segment, or windows of one and
//! two have probabilities above one ([`Switches::from_zero`]). Slow start stops at the threshold (Eq. 7 may pass it:
//! [`Switches::overshoot`]), and the threshold is at least two.

use super::number::powi;
use super::{Conditions, DUPLICATE_ACKS, KEPT_WINDOWS, MAX_ROUNDS, Model, Outcome, Window};
use anabranch_units::Duration;

/// LATE's model of a round.
#[derive(Clone, Debug)]
pub struct Late {
    switches: Switches,
    loss: f64,
    /// Time from sending a window until its fast retransmits have arrived.
    repair: Duration,
    /// Time from sending a window until the retransmissions of its timeout have arrived.
    rto_repair: Duration,
    /// Time from sending a window until the round after its timeout.
    timeout: Duration,
    /// Probabilities by window, for the windows that occur often; computed when first needed at the present loss rate.
    odds: Vec<Option<Odds>>,
}

/// Readings of the paper that change numbers. The default is the paper's, or its repair where it errs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Switches {
    /// The last doubling of slow start may exceed the threshold (Eq. 7 as printed).
    pub overshoot: bool,
    /// The round after a timeout waits for the ACK of the retransmission (RTO + RTT), as it does after a fast
    /// retransmit, instead of beginning when the retransmission arrives (RTO + RTT/2, Eq. 19).
    pub rto_round_end: bool,
    /// The sender probes for tail loss (RFC 8985 §7): only the loss of a whole window needs a timeout, everything else
    /// takes as long as a fast retransmit.
    pub tlp: bool,
    /// Treatment of the later rounds in Eqs. 9, 14 and 22 (A-LATE-1).
    pub later: Later,
    /// The sum of Eq. 15 begins at `w - 2` lost segments even if that is none, so that windows of one and two count
    /// their undisturbed round twice (A-LATE-3, as printed).
    pub from_zero: bool,
}

/// Continuation of the estimate after a round (A-LATE-1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Later {
    /// Each outcome's probability times all outcomes of the rounds after it, as the paper's text asks for.
    #[default]
    Weighted,
    /// All outcomes of the rounds after it, without the probability: Eqs. 9, 14 and 22 as printed, their later term
    /// read as the whole estimate.
    Unweighted,
    /// The same, their later term read as the same branch's estimate alone: three chains that never meet.
    OwnBranch,
}

/// One of the paper's three categories, for [`Later::OwnBranch`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    NoLoss,
    FastRetransmit,
    Timeout,
}

/// Probabilities of the outcomes of one window.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Odds {
    no_loss: f64,
    fast_retransmit: f64,
    timeout: f64,
    /// Expected number of segments that arrive before the timeout, if it comes to that.
    before_timeout: f64,
}

impl Late {
    /// The model with these switches.
    pub fn new(switches: Switches) -> Self {
        let zero = Duration::ZERO;
        Late { switches, loss: 0.0, repair: zero, rto_repair: zero, timeout: zero, odds: Vec::new() }
    }

    fn odds(&mut self, cwnd: u32) -> Odds {
        let at = cwnd as usize;
        if at >= KEPT_WINDOWS {
            return Odds::of(cwnd, self.loss, self.switches);
        }
        if at >= self.odds.len() {
            self.odds.resize(at + 1, None);
        }
        *self.odds[at].get_or_insert_with(|| Odds::of(cwnd, self.loss, self.switches))
    }
}

impl Default for Late {
    fn default() -> Self {
        Late::new(Switches::default())
    }
}

impl Model for Late {
    fn begin(&mut self, conditions: &Conditions) {
        let half = conditions.rtt / 2;
        self.repair = conditions.rtt + half;
        self.rto_repair = conditions.rto + half;
        self.timeout = if self.switches.rto_round_end { conditions.rto + conditions.rtt } else { self.rto_repair };
        if conditions.loss != self.loss {
            self.loss = conditions.loss;
            self.odds.clear();
        }
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn round(&mut self, window: Window, left: Duration, mut outcome: impl FnMut(Outcome)) {
        let all = window.as_f64();
        let grown = window.grown(self.switches.overshoot);
        if left < self.repair {
            // A loss now cannot be repaired in time, and no later round arrives.
            let delivered = all * (1.0 - self.loss);
            return outcome(Outcome::new(1.0, delivered, 1, false, grown));
        }
        let odds = self.odds(window.cwnd());
        let unweighted = self.switches.later != Later::Weighted;
        let mut tell = |probability, delivered, rounds, timeout, next| {
            let told = Outcome::new(probability, delivered, rounds, timeout, next);
            if unweighted {
                outcome(Outcome { weight: 1.0, ..told });
            } else if probability > 0.0 {
                outcome(told);
            }
        };
        tell(odds.no_loss, all, 1, false, grown);
        if window.cwnd() > DUPLICATE_ACKS || odds.fast_retransmit > 0.0 {
            tell(odds.fast_retransmit, all, 2, false, window.halved());
        }
        let delivered = if left >= self.rto_repair { all } else { odds.before_timeout };
        tell(odds.timeout, delivered, 0, true, window.restarted());
    }

    fn beside_histories(&mut self, horizon: Duration, conditions: &Conditions) -> Option<f64> {
        (self.switches.later == Later::OwnBranch).then(|| self.own_branches(horizon, conditions))
    }
}

impl Late {
    /// Eqs. 9, 14 and 22 with their later term read as the same branch's estimate alone: the sum of three chains.
    /// Beyond [`MAX_ROUNDS`] they are cut off.
    fn own_branches(&mut self, horizon: Duration, conditions: &Conditions) -> f64 {
        let window = Window::new(conditions.cwnd, conditions.ssthresh);
        if horizon < self.repair {
            return self.chain(Chain::NoLoss, horizon, window, conditions);
        }
        [Chain::NoLoss, Chain::FastRetransmit, Chain::Timeout]
            .map(|chain| self.chain(chain, horizon, window, conditions))
            .iter()
            .sum()
    }

    /// One chain, over all the rounds that it has.
    fn chain(&mut self, chain: Chain, mut left: Duration, mut window: Window, conditions: &Conditions) -> f64 {
        let Conditions { rtt, max_cwnd, .. } = *conditions;
        let mut sum = 0.0;
        for _ in 0..MAX_ROUNDS {
            let all = window.as_f64();
            if left < rtt / 2 {
                break;
            }
            if left < self.repair {
                return sum + all * (1.0 - self.loss);
            }
            let odds = self.odds(window.cwnd());
            let takes;
            (sum, takes, window) = match chain {
                Chain::NoLoss => (sum + odds.no_loss * all, rtt, window.grown(self.switches.overshoot)),
                Chain::FastRetransmit if window.cwnd() <= DUPLICATE_ACKS => break,
                Chain::FastRetransmit => (sum + odds.fast_retransmit * all, rtt * 2, window.halved()),
                Chain::Timeout if left < self.rto_repair => return sum + odds.timeout * odds.before_timeout,
                Chain::Timeout => (sum + odds.timeout * all, self.timeout, window.restarted()),
            };
            left = left.saturating_sub(takes);
            window = window.capped(max_cwnd.unwrap_or(Window::MAX));
        }
        sum
    }
}

impl Odds {
    /// For `cwnd` segments, each lost with probability `loss`.
    fn of(cwnd: u32, loss: f64, switches: Switches) -> Self {
        let Switches { tlp, from_zero, .. } = switches;
        let (w, kept) = (f64::from(cwnd), 1.0 - loss);
        let no_loss = powi(kept, cwnd);
        // P(w), P(w-1), P(w-2): none, one or two segments get through. None of them is the case without loss.
        let few = powi(loss, cwnd.saturating_sub(2));
        let none_through = if cwnd >= 2 { few * loss * loss } else { loss };
        let one_through = if cwnd >= 2 { w * few * loss * kept } else { 0.0 };
        let two_through = if cwnd >= 3 { w * (w - 1.0) / 2.0 * few * kept * kept } else { 0.0 };

        let (timeout, arrive) = if tlp {
            (none_through, 0.0)
        } else {
            (none_through + one_through + two_through, one_through + 2.0 * two_through)
        };
        let (timeout, arrive) = match from_zero && cwnd <= 2 {
            true => (timeout + no_loss, arrive + w * no_loss),
            false => (timeout, arrive),
        };
        let always_timeout = if tlp { cwnd == 1 } else { cwnd <= DUPLICATE_ACKS };
        Odds {
            no_loss,
            // By difference; what rounding leaves where it cannot happen, or below zero, is cut off.
            fast_retransmit: if always_timeout { 0.0 } else { (1.0 - no_loss - timeout).max(0.0) },
            timeout,
            before_timeout: if timeout > 0.0 { arrive / timeout } else { 0.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::{Forecast, Forecaster};

    fn expected(switches: Switches, [horizon, rtt, rto]: [u64; 3], loss: f64, cwnd: u32, ssthresh: u32) -> f64 {
        let conditions = Conditions {
            rtt: Duration::from_millis(rtt),
            rto: Duration::from_millis(rto),
            cwnd,
            ssthresh: Some(ssthresh),
            loss,
            max_cwnd: None,
        };
        Forecaster::new(Late::new(switches)).expected(Duration::from_millis(horizon), &conditions)
    }

    /// Vectors of an independent script: T, RTT, RTO in ms, loss, cwnd, ssthresh. Without loss the first is 10 + ... +
    /// 14.
    #[test]
    fn worked_examples() {
        for (times, loss, cwnd, ssthresh, segments) in [
            ([50, 10, 210], 0.0, 10, 10, 60.0),
            ([50, 10, 210], 0.01, 10, 10, 50.9054),
            ([50, 10, 210], 0.05, 10, 10, 33.1996),
            ([50, 10, 210], 0.01, 10, 1000, 142.0839),
            ([125, 50, 250], 0.01, 10, 20, 43.9393),
            ([500, 10, 210], 0.01, 10, 10, 547.2260),
            ([500, 10, 210], 0.05, 10, 10, 178.3984),
            ([300, 10, 210], 0.03, 2, 2, 131.4641),
            ([10, 20, 220], 0.01, 10, 10, 9.9),
            ([9, 20, 220], 0.01, 10, 10, 0.0),
        ] {
            let got = expected(Switches::default(), times, loss, cwnd, ssthresh);
            assert!((got - segments).abs() <= 0.00005, "{times:?} ms, loss {loss}: {got}, not {segments}");
        }
    }

    #[test]
    fn a_larger_window_is_not_always_better() {
        let with = |cwnd| expected(Switches::default(), [250, 10, 210], 0.03, cwnd, 8);
        assert!((with(2) - 130.16).abs() < 0.005 && (with(3) - 129.01).abs() < 0.005);
    }

    #[test]
    fn switches_move_the_forecast_the_way_they_say() {
        let of = |switches| expected(switches, [300, 10, 210], 0.03, 3, 5);
        let plain = of(Switches::default());
        assert!(of(Switches { overshoot: true, ..Switches::default() }) > plain);
        assert!(of(Switches { rto_round_end: true, ..Switches::default() }) < plain);
        assert!(of(Switches { tlp: true, ..Switches::default() }) > plain);
    }

    /// Values of the equations taken at their word (A-LATE-1), from plain recursions in Python, apart from this code.
    /// At no loss both count more than all that can be sent.
    #[test]
    fn literal_readings() {
        for (later, times, loss, cwnd, ssthresh, segments) in [
            (Later::Unweighted, [50, 10, 210], 0.0, 10, 10, 97.0),
            (Later::Unweighted, [50, 10, 210], 0.01, 10, 10, 96.6499),
            (Later::Unweighted, [50, 10, 210], 0.05, 10, 10, 95.2426),
            (Later::Unweighted, [120, 10, 30], 0.03, 6, 5, 1657.4851),
            (Later::Unweighted, [300, 10, 40], 0.03, 6, 5, 3033609.7928),
            (Later::OwnBranch, [50, 10, 210], 0.0, 10, 10, 62.0),
            (Later::OwnBranch, [50, 10, 210], 0.01, 10, 10, 57.9781),
            (Later::OwnBranch, [50, 10, 210], 0.05, 10, 10, 45.7399),
            (Later::OwnBranch, [120, 10, 30], 0.03, 6, 5, 102.1025),
            (Later::OwnBranch, [300, 10, 210], 0.03, 6, 5, 326.4120),
            (Later::OwnBranch, [10, 20, 220], 0.01, 10, 10, 9.9),
            (Later::OwnBranch, [9, 20, 220], 0.01, 10, 10, 0.0),
        ] {
            let got = expected(Switches { later, ..Switches::default() }, times, loss, cwnd, ssthresh);
            assert!((got - segments).abs() <= 0.00005, "{later:?} {times:?} ms, loss {loss}: {got}, not {segments}");
        }
    }

    /// A-LATE-3: at 10 % windows of one and two have probabilities that sum to 1.9 and 1.81. The numbers are from
    /// Python.
    #[test]
    fn the_sum_of_eq_15_as_printed() {
        let switches = Switches { from_zero: true, ..Switches::default() };
        for (cwnd, sum) in [(1, 1.9), (2, 1.81), (3, 1.0)] {
            let odds = Odds::of(cwnd, 0.1, switches);
            assert!((odds.no_loss + odds.fast_retransmit + odds.timeout - sum).abs() < 1e-12, "{cwnd}");
        }
        for (times, cwnd, segments) in [([50, 10, 210], 1, 10.4835), ([50, 10, 20], 2, 19.6090)] {
            let got = expected(switches, times, 0.1, cwnd, cwnd);
            assert!((got - segments).abs() <= 0.00005, "{times:?} {cwnd}: {got}, not {segments}");
        }
    }

    #[test]
    fn probabilities_sum_to_one() {
        for switches in [Switches::default(), Switches { tlp: true, ..Switches::default() }] {
            for cwnd in 1..=200 {
                for percent in 0..=90 {
                    let odds = Odds::of(cwnd, f64::from(percent) / 100.0, switches);
                    let sum = odds.no_loss + odds.fast_retransmit + odds.timeout;
                    assert!((sum - 1.0).abs() < 1e-12, "w {cwnd}, {percent} %: {sum}");
                    assert!(odds.fast_retransmit >= 0.0 && odds.before_timeout <= 2.0);
                }
            }
        }
    }

    /// w = 4, l = 0.1: P(0) = 0.6561, P(1) = 4 · 0.1 · 0.729 = 0.2916, the rest times out.
    #[test]
    fn small_windows_by_hand() {
        let odds = Odds::of(4, 0.1, Switches::default());
        assert!((odds.no_loss - 0.6561).abs() < 1e-12 && (odds.fast_retransmit - 0.2916).abs() < 1e-12);
        assert!((odds.timeout - 0.0523).abs() < 1e-12);
        // P(2) = 6 · 0.01 · 0.81 = 0.0486 leaves two, P(3) = 4 · 0.001 · 0.9 = 0.0036 leaves one.
        assert!((odds.before_timeout - (2.0 * 0.0486 + 0.0036) / 0.0523).abs() < 1e-12);
        // With a tail-loss probe only the loss of all four times out.
        assert!((Odds::of(4, 0.1, Switches { tlp: true, ..Switches::default() }).timeout - 0.0001).abs() < 1e-15);
    }
}
