//! BLEST, blocking estimation, as printed: skip a slow subflow if using it would let the send window block the fast
//! one.
//!
//! S. Ferlin, Ö. Alay, O. Mehani, R. Boreli. *BLEST: Blocking Estimation-based MPTCP Scheduler for Heterogeneous
//! Networks.* IFIP Networking 2016; Algorithm 1 of *Low-Latency Scheduling in MPTCP*.
//!
//! While a segment on the slow subflow `s` is under way, for `r = RTT_s / RTT_f` round trips, the fast subflow `f`
//! sends
//! ```text
//! X = mss_f · (cwnd_f + (r - 1) / 2) · r                                           (1)
//! ```
//! `s` may send only if that fits the connection's window beside what `s` then has in flight:
//! ```text
//! X · λ ≤ window - mss_s · (in_flight_s + 1)                                       (2)
//! ```
//! λ starts at 1 and corrects the estimate once per RTT of `f`: up by δ_λ if `f` had room and the window forbade to use
//! it, else down.
//!
//! Where we differ: the paper gives no δ_λ, we take 0.05; nor a lower bound for λ, ours is 0. λ moves at decisions, at
//! most one step each, so that an idle connection keeps what it learnt. With more than two subflows `f` is the fastest
//! and `s` the fastest with room. When nothing is in flight on `f`, nothing would end the wait, so `s` sends.
//! [`BlestKernel`](super::BlestKernel) is the published code, which differs in nearly every constant (A-BLEST).

use super::{Entry, Scheduler, ack_due};
use crate::registry::{Number, Params, number};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::{Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "blest",
    "skips a slow subflow that would let the send window block the fast one; as printed",
    include_str!("blest.rs"),
    |p| Box::new(Blest::new(p)),
)
.paper("Ferlin et al. 2016")
.parameters(&[LAMBDA.parameter(), DELTA_LAMBDA.parameter()]);

/// Blocking estimation after the paper.
pub struct Blest {
    lambda: f64,
    delta_lambda: f64,
    /// The fastest subflow at the last decision.
    fast: Option<SubflowId>,
    /// The window blocked it since `since`.
    blocked: bool,
    /// Time at which λ was last corrected, or the first decision.
    since: Option<Instant>,
}

impl Blest {
    /// Reads the first λ and its step from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        Blest {
            lambda: LAMBDA.of(parameters),
            delta_lambda: DELTA_LAMBDA.of(parameters),
            fast: None,
            blocked: false,
            since: None,
        }
    }

    /// Corrects λ once per RTT of the fast subflow.
    fn correct(&mut self, now: Instant, fast: &SubflowView) {
        self.fast = Some(fast.id);
        if now.since(*self.since.get_or_insert(now)) < fast.srtt {
            return;
        }
        let step = if self.blocked { self.delta_lambda } else { -self.delta_lambda };
        self.lambda = (self.lambda + step).max(0.0);
        self.blocked = false;
        self.since = Some(now);
    }
}

impl Scheduler for Blest {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        let (Some(fast), Some(slow)) = (view.fastest(), view.fastest_with_room()) else {
            return Decision::WAIT; // Every window is full.
        };
        self.correct(now, fast);
        if fast.id == slow.id || !ack_due(fast) {
            return Decision::send(slow.id);
        }
        let left = view.window.as_f64() - (slow.in_flight + slow.mss).as_f64();
        let fits = sent_meanwhile(fast, slow) * self.lambda <= left; // Eq. (2)
        if fits { Decision::send(slow.id) } else { Decision::WAIT }
    }

    fn observe(&mut self, _now: Instant, event: &Event) {
        if let Event::WindowBlocked { on } = event {
            self.blocked |= self.fast == Some(*on);
        }
    }
}

/// Bytes that `fast` sends during one RTT of `slow`, Eq. (1).
fn sent_meanwhile(fast: &SubflowView, slow: &SubflowView) -> f64 {
    let rounds = slow.srtt.per(fast.srtt);
    (fast.cwnd.as_f64() + fast.mss.as_f64() * (rounds - 1.0) / 2.0) * rounds
}

const LAMBDA: Number = number(
    "lambda",
    "λ at the beginning: the factor on the expected transmission of the fast subflow",
    1.0,
    0.0..=100.0,
);
const DELTA_LAMBDA: Number =
    number("delta_lambda", "δ_λ: the step by which λ is corrected once per fast RTT", 0.05, 0.0..=10.0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;
    use anabranch_units::Bytes;

    fn blest() -> Blest {
        Blest { lambda: 1.0, delta_lambda: 0.05, fast: None, blocked: false, since: None }
    }

    /// Fast: 50 ms, window 5 and full. Slow: twice as slow, two segments in flight.
    fn pair() -> [SubflowView; 2] {
        [subflow(FAST, 50, 5, 5), subflow(SLOW, 100, 10, 2)]
    }

    fn decide(blest: &mut Blest, ms: u64, window: Bytes) -> Decision {
        blest.decide(at(ms), &View { window, ..view(&pair(), 50) })
    }

    /// X = (5 + 0.5) · 2 = 11 segments; with 2 + 1 on the slow subflow the window must hold 14.
    #[test]
    fn worked_example() {
        let [fast, slow] = pair();
        assert_eq!(sent_meanwhile(&fast, &slow), 11_000.0);
        assert_eq!(decide(&mut blest(), 0, segments(14)), Decision::send(SLOW));
        assert_eq!(decide(&mut blest(), 0, segments(14) - Bytes::new(1)), Decision::WAIT);
    }

    #[test]
    fn lambda_follows_what_happened_in_each_round_trip() {
        let mut blest = blest();
        decide(&mut blest, 0, segments(14));
        blest.observe(at(10), &Event::WindowBlocked { on: FAST });
        decide(&mut blest, 49, segments(14));
        assert_eq!(blest.lambda, 1.0);
        // 11 · 1.05 = 11.55 no longer fits beside three segments.
        assert_eq!(decide(&mut blest, 50, segments(14)), Decision::WAIT);
        assert_eq!(blest.lambda, 1.05);
        decide(&mut blest, 100, segments(14));
        assert_eq!(blest.lambda, 1.0);
        // A blocked slow subflow is none of its business, and λ is never negative.
        blest.observe(at(110), &Event::WindowBlocked { on: SLOW });
        for round in 3..100 {
            decide(&mut blest, 50 * round, segments(14));
        }
        assert_eq!(blest.lambda, 0.0);
    }

    #[test]
    fn a_full_window_of_nothing_is_not_waited_for() {
        let mut subflows = pair();
        (subflows[0].in_flight, subflows[0].throttled) = (Bytes::ZERO, true);
        let small = View { window: segments(4), ..view(&subflows, 50) };
        assert_eq!(blest().decide(at(0), &small), Decision::send(SLOW));
    }
}
