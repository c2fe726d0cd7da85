//! ECF, earliest completion first: leave a slow subflow idle while the fast one would complete the data earlier.
//!
//! Y.-S. Lim, E. M. Nahum, D. Towsley, R. J. Gibbens. *ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths.* ACM
//! CoNEXT 2017.
//!
//! With `k` unsent, `f` the fastest subflow (its window is full) and `s` the fastest with room, wait for `f` if both
//! ```text
//! (1 + k / cwnd_f) · RTT_f < (1 + w·β) · (RTT_s + δ)       δ = max(σ_f, σ_s)       (1)
//! k / cwnd_s · RTT_s ≥ 2 · RTT_f + δ                                               (2)
//! ```
//! `w` is 1 if it was already waiting: β keeps it from changing its mind at every ACK. If (1) holds and (2) does not,
//! `w` stays as it was.
//!
//! Where we differ: we count bytes where the paper counts segments. Its σ is our RTTVAR (RFC 6298); Linux takes half of
//! its own scaled variance, which never falls below 100 ms (A-ECF-DELTA). `f` is a usable subflow; the search in Linux
//! includes backup and failed ones. When nothing is in flight on `f`, nothing would end the wait, so `s` sends.

use super::{Entry, Scheduler, ack_due};
use crate::registry::{Number, Params, number};
use crate::{Decision, View};
use anabranch_units::Instant;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "ecf",
    "waits for the fastest subflow while that completes the data earlier",
    include_str!("ecf.rs"),
    |p| Box::new(Ecf::new(p)),
)
.paper("Lim et al. 2017")
.parameters(&[BETA.parameter()]);

/// Earliest completion first.
pub struct Ecf {
    /// Hysteresis β.
    beta: f64,
    /// `w` in Eq. (1).
    waiting: bool,
}

impl Ecf {
    /// Reads `beta` from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        Ecf { beta: BETA.of(parameters), waiting: false }
    }
}

impl Scheduler for Ecf {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        let (Some(fast), Some(slow)) = (view.fastest(), view.fastest_with_room()) else {
            return Decision::WAIT; // Every window is full.
        };
        if fast.id == slow.id || !ack_due(fast) {
            return Decision::send(slow.id);
        }

        let via_fast = fast.srtt.mul_f64(1.0 + view.unsent.per(fast.cwnd));
        let via_slow = slow.srtt.mul_f64(view.unsent.per(slow.cwnd));
        let margin = fast.rttvar.max(slow.rttvar);
        let patience = if self.waiting { 1.0 + self.beta } else { 1.0 };
        if via_fast >= (slow.srtt + margin).mul_f64(patience) {
            self.waiting = false; // Against Eq. (1).
            return Decision::send(slow.id);
        }
        if via_slow < fast.srtt * 2 + margin {
            return Decision::send(slow.id); // Against Eq. (2).
        }
        self.waiting = true;
        Decision::WAIT
    }
}

const BETA: Number = number("beta", "hysteresis β of Eq. (1)", 0.25, 0.0..=10.0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SubflowView;
    use crate::scheduler::testing::*;
    use anabranch_units::Duration;

    /// Windows of 10, the fast one full; RTTs and δ in ms.
    fn ecf(waiting: bool, [rtt_fast, rtt_slow, margin]: [u64; 3], unsent: u64) -> (Decision, bool) {
        let rttvar = Duration::from_millis(margin);
        let subflows = [subflow(FAST, rtt_fast, 10, 10), SubflowView { rttvar, ..subflow(SLOW, rtt_slow, 10, 0) }];
        let mut ecf = Ecf { beta: 0.25, waiting };
        (ecf.decide(at(0), &view(&subflows, unsent)), ecf.waiting)
    }

    /// Computed by hand, and what hysteresis makes of the third.
    #[test]
    fn worked_examples() {
        let send = Decision::send(SLOW);
        for (waiting, times, unsent, decision, then_waiting) in [
            (false, [10, 100, 2], 5, Decision::WAIT, true),  //  15 < 102,  50 ≥ 22
            (false, [10, 100, 2], 30, Decision::WAIT, true), //  40 < 102, 300 ≥ 22
            (false, [10, 100, 2], 100, send, false),         // 110 ≥ 102
            (true, [10, 100, 2], 100, Decision::WAIT, true), // 110 < 1.25 · 102
            (false, [40, 60, 5], 5, send, false),            //  60 < 65, but 30 < 85
            (true, [40, 60, 5], 5, send, true),              // the same; it keeps waiting in mind
            (true, [40, 60, 5], 20, send, false),            // 120 ≥ 1.25 · 65
        ] {
            assert_eq!(ecf(waiting, times, unsent), (decision, then_waiting), "{waiting} {times:?} {unsent}");
        }
    }

    #[test]
    fn never_waits_for_a_subflow_with_nothing_in_flight() {
        let held_back = SubflowView { throttled: true, ..subflow(FAST, 10, 10, 0) };
        let mut ecf = Ecf { beta: 0.25, waiting: false };
        assert_eq!(ecf.decide(at(0), &view(&[held_back, subflow(SLOW, 100, 10, 0)], 5)), Decision::send(SLOW));
    }

    #[test]
    fn the_fast_subflow_takes_what_it_has_room_for() {
        let subflows = [subflow(FAST, 10, 10, 9), subflow(SLOW, 100, 10, 0)];
        assert_eq!(Ecf { beta: 0.25, waiting: true }.decide(at(0), &view(&subflows, 5)), Decision::send(FAST));
    }
}
