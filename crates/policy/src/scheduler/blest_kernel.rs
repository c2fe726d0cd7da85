//! BLEST as Linux MPTCP v0.95 has it.
//!
//! The idea and its paper are in [`Blest`](super::Blest). The code decides otherwise in these points:
//! - a segment on the slow subflow `s` lingers for its SRTT or, if longer, for a time between the least and the largest
//!   RTT it ever had, by how full its window is: `min + (max - min) · (in_flight_s + 1) / cwnd_s`, in segments;
//! - rounds are whole: `r = ⌊linger / ((min_f + max_f) / 2)⌋ + 1`;
//! - before its first loss the fast subflow doubles: `cwnd_f · (2^min(r,16) - 1)` packets; later
//!   `(max(cwnd_f, ssthresh_f + 1) + ⌊(r - 1) / 2⌋) · r`;
//! - `s` may send only if `packets · mss_f · λ ≤ window - (in flight on s + this segment)`;
//! - λ starts at 1.2 and stays within 1.0 and 1.3; at most once per least RTT of `s` it rises by 0.04 if data was
//!   reinjected since because the window was full, or else falls by 0.01.
//!
//! Where we differ: `f` is a usable subflow, the search in Linux includes backup and failed ones. When nothing is in
//! flight on `f`, nothing would end the wait, so `s` sends.

use super::{Scheduler, ack_due, number};
use crate::registry::{Parameter, Params};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::{Bytes, Duration, Instant};

/// Blocking estimation after the code.
pub struct BlestKernel {
    /// λ and what moves it, in hundredths.
    lambda: u64,
    min_lambda: u64,
    max_lambda: u64,
    up: u64,
    down: u64,
    /// Data was reinjected since `since` because the window was full.
    reinjected: bool,
    /// When λ was last corrected.
    since: Option<Instant>,
}

impl BlestKernel {
    /// With λ, its bounds and its steps from `parameters`, each rounded to hundredths.
    pub fn new(parameters: &Params) -> Self {
        let hundredths = |name| (100.0 * parameters.number(name) + 0.5) as u64;
        BlestKernel {
            lambda: hundredths(LAMBDA),
            min_lambda: hundredths(MIN_LAMBDA),
            max_lambda: hundredths(MAX_LAMBDA),
            up: hundredths(UP),
            down: hundredths(DOWN),
            reinjected: false,
            since: None,
        }
    }

    /// Corrects λ at most once per least RTT of the slow subflow.
    fn correct(&mut self, now: Instant, slow: &SubflowView) {
        if self.since.is_some_and(|since| now.since(since) < slow.rtt_min) {
            return;
        }
        let moved = if self.reinjected { self.lambda + self.up } else { self.lambda.saturating_sub(self.down) };
        self.lambda = moved.max(self.min_lambda).min(self.max_lambda);
        self.reinjected = false;
        self.since = Some(now);
    }
}

impl Scheduler for BlestKernel {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        let (Some(fast), Some(slow)) = (view.fastest(), view.fastest_with_room()) else {
            return Decision::WAIT; // Every window is full.
        };
        if fast.id == slow.id || !ack_due(fast) {
            return Decision::send(slow.id);
        }
        self.correct(now, slow);
        let via_fast = fast.mss.times(packets(fast, rounds(fast, slow)).saturating_mul(self.lambda)).get() / 100;
        let via_slow = slow.in_flight + slow.mss.min(view.unsent);
        let fits = Bytes::new(via_fast) <= view.window.saturating_sub(via_slow);
        if fits { Decision::send(slow.id) } else { Decision::WAIT }
    }

    fn observe(&mut self, _now: Instant, event: &Event) {
        self.reinjected |= matches!(event, Event::Reinjected { .. });
    }
}

/// Round trips of `fast` while a segment lingers on `slow`.
fn rounds(fast: &SubflowView, slow: &SubflowView) -> u64 {
    let linger = slow.srtt.max(expected_rtt(slow));
    let round = (fast.rtt_min.as_nanos() / 2 + fast.rtt_max.as_nanos() / 2).max(1);
    (linger.as_nanos() / round).saturating_add(1)
}

/// Between the least and the largest RTT of `slow`, by how full its window will be.
fn expected_rtt(slow: &SubflowView) -> Duration {
    let cwnd = u64::from(slow.cwnd_segments());
    let in_flight = slow.in_flight.get().div_ceil(slow.mss.get().max(1)).saturating_add(1);
    if in_flight >= cwnd {
        return slow.rtt_max;
    }
    slow.rtt_min + slow.rtt_max.saturating_sub(slow.rtt_min) * in_flight / cwnd
}

/// Packets that `fast` sends in `rounds` round trips.
fn packets(fast: &SubflowView, rounds: u64) -> u64 {
    let cwnd = u64::from(fast.cwnd_segments());
    match fast.ssthresh_segments() {
        None => cwnd * ((1 << rounds.min(16)) - 1),
        Some(ssthresh) => (cwnd.max(u64::from(ssthresh) + 1) + (rounds - 1) / 2).saturating_mul(rounds),
    }
}

const LAMBDA: &str = "lambda";
const MIN_LAMBDA: &str = "min_lambda";
const MAX_LAMBDA: &str = "max_lambda";
const UP: &str = "up";
const DOWN: &str = "down";
/// What can be set; defaults as in Linux.
pub(super) const PARAMETERS: &[Parameter] = &[
    number(LAMBDA, "λ at the beginning: the factor on what the fast subflow is expected to send", 1.2, 0.0, 100.0),
    number(MIN_LAMBDA, "smallest λ", 1.0, 0.0, 100.0),
    number(MAX_LAMBDA, "largest λ; wins over min_lambda", 1.3, 0.0, 100.0),
    number(UP, "what λ rises by after a reinjection for want of window", 0.04, 0.0, 10.0),
    number(DOWN, "what λ falls by without one", 0.01, 0.0, 10.0),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use crate::scheduler::SCHEDULERS;
    use crate::scheduler::testing::*;
    use std::collections::BTreeMap;

    fn kernel() -> BlestKernel {
        let entry = registry::find(SCHEDULERS, "scheduler", "blest-kernel").expect("it is in the table");
        BlestKernel::new(&entry.params(&BTreeMap::new()).expect("no parameter is given, so none can be wrong"))
    }

    /// Fast: 50 ms, window 5 and full, past its first loss. Slow: 100 ms, two of ten in flight.
    fn pair() -> [SubflowView; 2] {
        let fast = SubflowView { ssthresh: Some(segments(4)), ..subflow(FAST, 50, 5, 5) };
        [fast, subflow(SLOW, 100, 10, 2)]
    }

    /// r = ⌊100 / 50⌋ + 1 = 3 and (5 + 1) · 3 = 18 packets, where the paper has 11. The first decision lowers λ to 1.19:
    /// 21,420 bytes, beside three segments on the slow subflow.
    #[test]
    fn worked_example() {
        let decide = |window| kernel().decide(at(0), &View { window, ..view(&pair(), 50) });
        assert_eq!(decide(Bytes::new(24_420)), Decision::send(SLOW));
        assert_eq!(decide(Bytes::new(24_419)), Decision::WAIT);
    }

    #[test]
    fn slow_start_doubles_and_large_thresholds_count() {
        let [fast, _] = pair();
        assert_eq!(packets(&SubflowView { ssthresh: None, ..fast }, 3), 5 * 7);
        assert_eq!(packets(&SubflowView { ssthresh: None, ..fast }, 99), 5 * 65_535);
        assert_eq!(packets(&SubflowView { ssthresh: Some(segments(20)), ..fast }, 4), (21 + 1) * 4);
    }

    #[test]
    fn a_segment_lingers_the_longer_the_fuller_the_window() {
        let ms = Duration::from_millis;
        let slow = |in_flight| SubflowView { rtt_max: ms(200), ..subflow(SLOW, 100, 10, in_flight) };
        assert_eq!(expected_rtt(&slow(0)), ms(110));
        assert_eq!(expected_rtt(&slow(4)), ms(150));
        assert_eq!(expected_rtt(&slow(9)), ms(200));
        assert_eq!(rounds(&subflow(FAST, 50, 5, 5), &slow(4)), 4);
    }

    #[test]
    fn lambda_rises_fast_and_falls_slowly_within_its_bounds() {
        let mut kernel = kernel();
        let subflows = pair();
        let mut lambda_at = |ms, reinjected| {
            if reinjected {
                kernel.observe(at(ms), &Event::Reinjected { on: FAST });
            }
            kernel.decide(at(ms), &view(&subflows, 50));
            kernel.lambda
        };
        assert_eq!([lambda_at(0, false), lambda_at(99, true), lambda_at(100, false)], [119, 119, 123]);
        assert_eq!([lambda_at(200, true), lambda_at(300, true), lambda_at(400, true)], [127, 130, 130]);
        assert_eq!((5..50).map(|round| lambda_at(100 * round, false)).last(), Some(100));
    }
}
