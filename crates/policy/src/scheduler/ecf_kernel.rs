//! ECF as Linux MPTCP v0.95 has it.
//!
//! The idea and its paper are in [`Ecf`](super::Ecf). With `k` unsent, `f` the fastest subflow and `s` the fastest with
//! room, the code waits for `f` if both
//! ```text
//! srtt_f · (max(k, cwnd_f) + cwnd_f) · r_beta < cwnd_f · (srtt_s + δ) · (r_beta + waiting)      (1)
//! srtt_s · max(k, cwnd_s) ≥ cwnd_s · (2 · srtt_f + δ)                                           (2)
//! ```
//! Beside the paper:
//! - at least one window is assumed to be sent, so `k` counts only beyond that;
//! - δ is half of Linux's scaled variance, the larger of both subflows: `max(4 · RTTVAR, 200 ms) / 2`, never below 100
//!   ms. On paths of some ten milliseconds (2) then fails with little data, and `s` sends where the paper waits;
//! - integers, multiplied across. The four products of microseconds and bytes have 32 bits and wrap around beyond 4.3
//!   s·kB (100 ms and 42 kB, 15 ms and 286 kB), which bulk transfers exceed all the time: both sides are then any
//!   number. `wrap=false` has them whole (A-WRAP).
//!
//! Source: `ecf_get_available_subflow` in `net/mptcp/mptcp_ecf.c`. Sums and products there are `u32` and stored as
//! `u64` afterwards; only the factors `r_beta` and `waiting` are multiplied in 64 bits.
//!
//! Differences: `k` in Linux is memory, and counts what the receiver holds out of order. `f` is a usable subflow, the
//! search in Linux includes backup and failed ones. When nothing is in flight on `f`, nothing would end the wait, so
//! `s` sends. Linux's variance is smoothed over whole round trips; ours is RTTVAR (RFC 6298).

use super::{Entry, Scheduler, ack_due};
use crate::registry::{Flag, Number, Params, flag, number};
use crate::{Decision, SubflowView, View};
use anabranch_units::{Bytes, Duration, Instant};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "ecf-kernel",
    "ECF as Linux MPTCP has it: at least one window, a margin of at least 100 ms",
    include_str!("ecf_kernel.rs"),
    |p| Box::new(EcfKernel::new(p)),
)
.paper("Linux MPTCP v0.95, after Lim et al. 2017")
.parameters(&[R_BETA.parameter(), WRAP.parameter()]);

/// Earliest completion first after the code.
pub struct EcfKernel {
    /// 1/β.
    r_beta: u128,
    /// Products of 32 bits.
    wrap: bool,
    waiting: bool,
}

impl EcfKernel {
    /// Reads `wrap` and `r_beta` from `parameters`, the latter rounded to a whole number.
    pub fn new(parameters: &Params) -> Self {
        let r_beta = (R_BETA.of(parameters) + 0.5) as u128;
        EcfKernel { r_beta, wrap: WRAP.of(parameters), waiting: false }
    }

    /// A time multiplied by a number of bytes.
    fn area(&self, time: Duration, bytes: Bytes) -> u128 {
        if self.wrap {
            // `as` drops the upper bits, as Linux's u32 does.
            return u128::from((time.as_micros() as u32).wrapping_mul(bytes.get() as u32));
        }
        // 2⁵⁰ bytes and 13 days are 2¹⁰⁰: no overflow.
        u128::from(time.as_nanos().min(1 << 50)) * u128::from(bytes.get().min(1 << 50))
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
        let via_fast = self.area(fast.srtt, view.unsent.max(fast.cwnd) + fast.cwnd);
        let via_slow = self.area(slow.srtt + margin, fast.cwnd);
        if self.r_beta * via_fast >= (self.r_beta + u128::from(self.waiting)) * via_slow {
            self.waiting = false; // Against (1).
            return Decision::send(slow.id);
        }
        if self.area(slow.srtt, view.unsent.max(slow.cwnd)) < self.area(fast.srtt * 2 + margin, slow.cwnd) {
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

/// The floor of Linux's variance (`tcp_rto_min`).
const RTO_MIN: Duration = Duration::from_millis(200);
const R_BETA: Number = number("r_beta", "1/β, the hysteresis of (1)", 4.0, 1.0..=1_000_000.0);
const WRAP: Flag = flag("wrap", "products of 32 bits, which overflow beyond 4.3 s · kB, as in Linux", true);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;

    /// Windows of 10, the fast one full; times in ms.
    fn kernel(waiting: bool, [rtt_fast, rtt_slow, rttvar]: [u64; 3], unsent: u64) -> (Decision, bool) {
        let rttvar = Duration::from_millis(rttvar);
        let subflows = [subflow(FAST, rtt_fast, 10, 10), SubflowView { rttvar, ..subflow(SLOW, rtt_slow, 10, 0) }];
        let mut ecf = EcfKernel { r_beta: 4, wrap: true, waiting };
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

    /// RTT 15 ms with a window of 100 segments of 1000 B, 70 ms with one of 10, δ 100 ms; 2³² is 4,294,967,296.
    ///
    /// The right side of (1) is 100,000 B · 170,000 µs = 17,000,000,000 and wraps to 4,115,098,112, that of (2) is
    /// 10,000 B · 130,000 µs = 1,300,000,000. The left sides:
    ///
    /// | unsent |            (1) |     wrapped |            (2) |       wrapped |
    /// |--------|----------------|-------------|----------------|---------------|
    /// |     40 |  3,000,000,000 |           . |  2,800,000,000 |             . |
    /// |    200 |  4,500,000,000 | 205,032,704 | 14,000,000,000 | 1,115,098,112 |
    /// |  1,065 | 17,475,000,000 | 295,130,816 | 74,550,000,000 | 1,535,555,968 |
    #[test]
    fn products_of_32_bits_flip_decisions() {
        let send = Decision::send(SLOW);
        let subflows = [
            SubflowView { rttvar: Duration::from_millis(1), ..subflow(FAST, 15, 100, 100) },
            SubflowView { rttvar: Duration::from_millis(1), ..subflow(SLOW, 70, 10, 0) },
        ];
        for (unsent, whole, wrapped) in [
            (40, Decision::WAIT, Decision::WAIT),
            (200, Decision::WAIT, send),   // against (2)
            (1_065, send, Decision::WAIT), // against (1), in whole numbers
        ] {
            for (wrap, expected) in [(false, whole), (true, wrapped)] {
                let mut ecf = EcfKernel { r_beta: 4, wrap, waiting: false };
                assert_eq!(ecf.decide(at(0), &view(&subflows, unsent)), expected, "{unsent}, wrap {wrap}");
            }
        }
    }

    /// 2 s and 16 MB: in 32 bits the left side of (1) would be any number.
    #[test]
    fn large_windows_do_not_overflow_without_wrap() {
        let subflows = [subflow(FAST, 2_000, 16_000, 16_000), subflow(SLOW, 9_000, 16_000, 0)];
        let mut ecf = EcfKernel { r_beta: 4, wrap: false, waiting: false };
        assert_eq!(ecf.decide(at(0), &view(&subflows, 1_000)), Decision::WAIT); // 4 s < 9.1 s, 9 s ≥ 4.1 s
    }

    #[test]
    fn the_fast_subflow_sends_and_a_silent_one_is_not_waited_for() {
        let mut ecf = EcfKernel { r_beta: 4, wrap: true, waiting: false };
        let room = [subflow(FAST, 10, 10, 9), subflow(SLOW, 100, 10, 0)];
        assert_eq!(ecf.decide(at(0), &view(&room, 50)), Decision::send(FAST));
        let held_back = [SubflowView { throttled: true, ..subflow(FAST, 10, 10, 0) }, room[1]];
        assert_eq!(ecf.decide(at(0), &view(&held_back, 50)), Decision::send(SLOW));
    }
}
