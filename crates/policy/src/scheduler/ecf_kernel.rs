//! ECF as Linux MPTCP v0.95 has it.
//!
//! The idea and its paper are in [`Ecf`](super::Ecf). With `k` unsent, `f` the fastest subflow and `s` the fastest with room,
//! the code waits for `f` if both
//! ```text
//! srtt_f · (max(k, cwnd_f) + cwnd_f) · r_beta < cwnd_f · (srtt_s + δ) · (r_beta + waiting)      (1)
//! srtt_s · max(k, cwnd_s) ≥ cwnd_s · (2 · srtt_f + δ)                                           (2)
//! ```
//! Beside the paper:
//! - at least one window is assumed to be sent, so `k` counts only beyond that;
//! - δ is half of Linux's scaled variance, the larger of both subflows: `max(4 · RTTVAR, 200 ms) / 2`, never below 100 ms.
//!   On paths of some ten milliseconds (2) then fails with little data, and `s` sends where the paper waits;
//! - integers, multiplied across.
//!
//! Where we differ: the code multiplies 32-bit numbers, which overflow beyond 4 s · kB (100 ms and 42 kB); ours do not.
//! `f` is a usable subflow, the search in Linux includes backup and failed ones. When nothing is in flight on `f`, nothing
//! would end the wait, so `s` sends. Linux's variance is smoothed over whole round trips; ours is RTTVAR (RFC 6298).

use super::{Scheduler, ack_due, number};
use crate::registry::{Parameter, Params};
use crate::{Decision, SubflowView, View};
use anabranch_units::{Bytes, Duration, Instant};

/// Earliest completion first after the code.
pub struct EcfKernel {
    /// 1/β.
    r_beta: u128,
    waiting: bool,
}

impl EcfKernel {
    /// With `r_beta` from `parameters`, rounded to a whole number.
    pub fn new(parameters: &Params) -> Self {
        EcfKernel { r_beta: (parameters.number(R_BETA) + 0.5) as u128, waiting: false }
    }
}

impl Scheduler for EcfKernel {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        let (Some(fast), Some(slow)) = (view.fastest(), view.fastest_with_room()) else {
            return Decision::WAIT; // Every window is full.
        };
        if fast.id == slow.id || !ack_due(fast) {
            return Decision::send(slow.id);
        }
        let margin = half_variance(fast).max(half_variance(slow));
        let via_fast = area(fast.srtt, view.unsent.max(fast.cwnd) + fast.cwnd);
        let via_slow = area(slow.srtt + margin, fast.cwnd);
        if self.r_beta * via_fast >= (self.r_beta + u128::from(self.waiting)) * via_slow {
            self.waiting = false; // Against (1).
            return Decision::send(slow.id);
        }
        if area(slow.srtt, view.unsent.max(slow.cwnd)) < area(fast.srtt * 2 + margin, slow.cwnd) {
            return Decision::send(slow.id); // Against (2).
        }
        self.waiting = true;
        Decision::WAIT
    }
}

/// Half of what Linux keeps as `rttvar_us`.
fn half_variance(subflow: &SubflowView) -> Duration {
    (subflow.rttvar * 4).max(RTO_MIN) / 2
}

/// A time multiplied by a number of bytes. 2⁴⁰ bytes and 10 days are 2⁹⁰: no overflow.
fn area(time: Duration, bytes: Bytes) -> u128 {
    u128::from(time.as_nanos().min(1 << 50)) * u128::from(bytes.get().min(1 << 50))
}

/// The floor of Linux's variance (`tcp_rto_min`).
const RTO_MIN: Duration = Duration::from_millis(200);
const R_BETA: &str = "r_beta";
/// What can be set; the default as in Linux.
pub(super) const PARAMETERS: &[Parameter] = &[number(R_BETA, "1/β, the hysteresis of (1)", 4.0, 1.0, 1_000_000.0)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;

    /// Windows of 10, the fast one full; times in ms.
    fn kernel(waiting: bool, [rtt_fast, rtt_slow, rttvar]: [u64; 3], unsent: u64) -> (Decision, bool) {
        let rttvar = Duration::from_millis(rttvar);
        let subflows = [subflow(FAST, rtt_fast, 10, 10), SubflowView { rttvar, ..subflow(SLOW, rtt_slow, 10, 0) }];
        let mut ecf = EcfKernel { r_beta: 4, waiting };
        (ecf.decide(at(0), &view(&subflows, unsent)), ecf.waiting)
    }

    /// Both sides of (1) and (2), divided by the window of 10 segments, from a script of our own.
    #[test]
    fn worked_examples() {
        let send = Decision::send(SLOW);
        for (waiting, times, unsent, decision, then_waiting) in [
            (false, [10, 100, 2], 5, send, false),  //  20 < 200, but 100 < 120: the paper waits
            (false, [10, 100, 2], 11, send, false), //  21 < 200, but 110 < 120
            (false, [10, 100, 2], 12, Decision::WAIT, true), //  22 < 200, 120 ≥ 120
            (false, [10, 100, 60], 12, send, false), //  22 < 220, but 120 < 140: δ is 120
            (false, [10, 100, 2], 189, Decision::WAIT, true), // 199 < 200
            (false, [10, 100, 2], 190, send, false), // 200 ≥ 200
            (true, [10, 100, 2], 239, Decision::WAIT, true), // 249 < 250
            (true, [10, 100, 2], 240, send, false), // 250 ≥ 250
            (true, [10, 100, 2], 5, send, true),    // the first row; it keeps waiting in mind
        ] {
            assert_eq!(kernel(waiting, times, unsent), (decision, then_waiting), "{waiting} {times:?} {unsent}");
        }
    }

    /// 2 s and 16 MB: in 32 bits the left side of (1) would be any number.
    #[test]
    fn large_windows_do_not_overflow() {
        let subflows = [subflow(FAST, 2_000, 16_000, 16_000), subflow(SLOW, 9_000, 16_000, 0)];
        let mut ecf = EcfKernel { r_beta: 4, waiting: false };
        assert_eq!(ecf.decide(at(0), &view(&subflows, 1_000)), Decision::WAIT); // 4 s < 9.1 s, 9 s ≥ 4.1 s
    }

    #[test]
    fn the_fast_subflow_sends_and_a_silent_one_is_not_waited_for() {
        let mut ecf = EcfKernel { r_beta: 4, waiting: false };
        let room = [subflow(FAST, 10, 10, 9), subflow(SLOW, 100, 10, 0)];
        assert_eq!(ecf.decide(at(0), &view(&room, 50)), Decision::send(FAST));
        let held_back = [SubflowView { throttled: true, ..subflow(FAST, 10, 10, 0) }, room[1]];
        assert_eq!(ecf.decide(at(0), &view(&held_back, 50)), Decision::send(SLOW));
    }
}
