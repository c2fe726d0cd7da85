//! BLEST as Linux MPTCP v0.95 has it.
//!
//! The idea and its paper are in [`Blest`](super::Blest). The code decides otherwise in these points:
//! - a segment on the slow subflow `s` lingers for its SRTT or, if longer, for a time between the least and the largest
//!   SRTT it had at any call of the scheduler, by how full its window is:
//!   `min + (max - min) · (in_flight_s + 1) / cwnd_s`, in segments;
//! - rounds are whole: `r = ⌊linger / ((min_f + max_f) / 2)⌋ + 1`;
//! - before its first loss the fast subflow doubles: `cwnd_f · (2^min(r,16) - 1)` packets; later
//!   `(max(cwnd_f, ssthresh_f + 1) + ⌊(r - 1) / 2⌋) · r`;
//! - `s` may send only if `packets · mss_f · λ ≤ window - (in flight on s + this segment)`;
//! - λ starts at 1.2 and stays within 1.0 and 1.3; at most once per least SRTT of `s` it rises by 0.04 if data was
//!   reinjected since because the window was full, or else falls by 0.01. Its clock starts with the connection;
//! - numbers have 32 bits and wrap around: `(max - min) · (in_flight_s + 1)` in eighths of microseconds (from 1,074
//!   segments if SRTT spreads over half a second), `packets`, and the bytes of the fast subflow (beyond 4.3 GB, which
//!   39 segments doubled 16 times exceed). `wrap=false` has them whole (A-WRAP).
//!
//! Source: `net/mptcp/mptcp_blest.c` of the out-of-tree kernel, v0.95 (`blest_get_available_subflow` for the extremes,
//! `blestsched_update_lambda`, `blestsched_estimate_bytes`, `blestsched_estimate_linger_time`). The authors' own kernel
//! (KAU) takes the extremes of SRTT at the same place, starts the clock of λ at the first choice between two subflows,
//! and compares it with microseconds, so that λ hardly moves there.
//!
//! Where we differ: `f` is a usable subflow, the search in Linux includes backup and failed ones, and Linux notes the
//! SRTT of these as well. The clock starts with the first call, a round trip after the connection. When nothing is in
//! flight on `f`, nothing would end the wait, so `s` sends.

use super::{Entry, Scheduler, ack_due};
use crate::registry::{Flag, Number, Params, flag, number};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::{Bytes, Duration, Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "blest-kernel",
    "BLEST as Linux MPTCP has it: other constants, whole rounds, slow start",
    include_str!("blest_kernel.rs"),
    |p| Box::new(BlestKernel::new(p)),
)
.paper("Linux MPTCP v0.95, after Ferlin et al. 2016")
.parameters(&[
    LAMBDA.parameter(),
    MIN_LAMBDA.parameter(),
    MAX_LAMBDA.parameter(),
    UP.parameter(),
    DOWN.parameter(),
    WRAP.parameter(),
]);

/// Blocking estimation after the code.
pub struct BlestKernel {
    /// λ and what moves it, in hundredths.
    lambda: u64,
    min_lambda: u64,
    max_lambda: u64,
    up: u64,
    down: u64,
    /// Numbers of 32 bits.
    wrap: bool,
    /// Data was reinjected since `since` because the window was full.
    reinjected: bool,
    /// Time of λ's last correction, or else of the first call.
    since: Option<Instant>,
    /// Extremes of each subflow that was ever usable.
    extremes: Vec<Extremes>,
}

/// The least and the largest SRTT of a subflow, as seen when the scheduler was called.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Extremes {
    subflow: SubflowId,
    min: Duration,
    max: Duration,
}

impl Extremes {
    /// A subflow that is seen for the first time.
    fn first(subflow: &SubflowView) -> Extremes {
        Extremes { subflow: subflow.id, min: subflow.srtt, max: subflow.srtt }
    }
}

impl BlestKernel {
    /// Reads λ, its bounds and its steps from `parameters`, each rounded to hundredths.
    pub fn new(parameters: &Params) -> Self {
        let hundredths = |number: Number| (100.0 * number.of(parameters) + 0.5) as u64;
        BlestKernel {
            lambda: hundredths(LAMBDA),
            min_lambda: hundredths(MIN_LAMBDA),
            max_lambda: hundredths(MAX_LAMBDA),
            up: hundredths(UP),
            down: hundredths(DOWN),
            wrap: WRAP.of(parameters),
            reinjected: false,
            since: None,
            extremes: Vec::new(),
        }
    }

    /// Notes the SRTT of every subflow; they come in the order of their ids.
    fn note(&mut self, subflows: &[SubflowView]) {
        for subflow in subflows {
            match self.extremes.binary_search_by_key(&subflow.id, |known| known.subflow) {
                Ok(at) => {
                    let known = &mut self.extremes[at];
                    (known.min, known.max) = (known.min.min(subflow.srtt), known.max.max(subflow.srtt));
                }
                Err(at) => self.extremes.insert(at, Extremes::first(subflow)),
            }
        }
    }

    fn extremes(&self, subflow: &SubflowView) -> Extremes {
        let known = self.extremes.binary_search_by_key(&subflow.id, |known| known.subflow);
        known.map_or_else(|_| Extremes::first(subflow), |at| self.extremes[at])
    }

    /// The low 32 bits of a number.
    const fn narrow(&self, number: u64) -> u64 {
        if self.wrap { number as u32 as u64 } else { number }
    }

    /// Corrects λ at most once per least SRTT of the slow subflow.
    fn correct(&mut self, now: Instant, slow: Extremes) {
        if self.since.is_some_and(|since| now.since(since) < slow.min) {
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
        self.since.get_or_insert(now);
        self.note(view.subflows);
        let (Some(fast), Some(slow)) = (view.fastest(), view.fastest_with_room()) else {
            return Decision::WAIT; // Every window is full.
        };
        if fast.id == slow.id || !ack_due(fast) {
            return Decision::send(slow.id);
        }
        let (of_fast, of_slow) = (self.extremes(fast), self.extremes(slow));
        self.correct(now, of_slow);
        let linger = slow.srtt.max(expected_rtt(slow, of_slow, self.wrap));
        let packets = self.narrow(packets(fast, rounds(of_fast, linger)));
        let via_fast = self.narrow(fast.mss.times(packets.saturating_mul(self.lambda)).get() / 100);
        let via_slow = slow.in_flight + slow.mss.min(view.unsent);
        let fits = Bytes::new(via_fast) <= view.window.saturating_sub(via_slow);
        if fits { Decision::send(slow.id) } else { Decision::WAIT }
    }

    fn observe(&mut self, _now: Instant, event: &Event) {
        self.reinjected |= matches!(event, Event::Reinjected { .. });
    }
}

/// Round trips of the fast subflow while a segment lingers on the slow one.
fn rounds(fast: Extremes, linger: Duration) -> u64 {
    let round = (fast.min.as_nanos() / 2 + fast.max.as_nanos() / 2).max(1);
    (linger.as_nanos() / round).saturating_add(1)
}

/// Between the least and the largest SRTT of `slow`, by how full its window will be.
fn expected_rtt(slow: &SubflowView, seen: Extremes, wrap: bool) -> Duration {
    let cwnd = u64::from(slow.cwnd_segments());
    let in_flight = slow.in_flight.get().div_ceil(slow.mss.get().max(1)).saturating_add(1);
    if in_flight >= cwnd {
        return seen.max;
    }
    let spread = seen.max.saturating_sub(seen.min);
    if wrap {
        let product = (spread.as_nanos() / (1000 / 8)) as u32;
        return seen.min + Duration::from_nanos(u64::from(product.wrapping_mul(in_flight as u32)) / cwnd * (1000 / 8));
    }
    seen.min + spread * in_flight / cwnd
}

/// Packets that `fast` sends in `rounds` round trips.
fn packets(fast: &SubflowView, rounds: u64) -> u64 {
    let cwnd = u64::from(fast.cwnd_segments());
    match fast.ssthresh_segments() {
        None => cwnd * ((1 << rounds.min(16)) - 1),
        Some(ssthresh) => (cwnd.max(u64::from(ssthresh) + 1) + (rounds - 1) / 2).saturating_mul(rounds),
    }
}

const LAMBDA: Number = number(
    "lambda",
    "λ at the beginning: the factor on the expected transmission of the fast subflow",
    1.2,
    0.0..=100.0,
);
const MIN_LAMBDA: Number = number("min_lambda", "smallest λ", 1.0, 0.0..=100.0);
const MAX_LAMBDA: Number = number("max_lambda", "largest λ; wins over min_lambda", 1.3, 0.0..=100.0);
const UP: Number = number("up", "increase of λ after a reinjection because the window was full", 0.04, 0.0..=10.0);
const DOWN: Number = number("down", "decrease of λ without one", 0.01, 0.0..=10.0);
const WRAP: Flag =
    flag("wrap", "numbers of 32 bits, which overflow with long queues and in a long slow start, as in Linux", true);

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

    /// r = ⌊100 / 50⌋ + 1 = 3 and (5 + 1) · 3 = 18 packets, where the paper has 11, times 1.2: 21,600 bytes, beside
    /// three segments on the slow subflow.
    #[test]
    fn worked_example() {
        let decide = |window| kernel().decide(at(0), &View { window, ..view(&pair(), 50) });
        assert_eq!(decide(Bytes::new(24_600)), Decision::send(SLOW));
        assert_eq!(decide(Bytes::new(24_599)), Decision::WAIT);
    }

    /// One sample of 250 ms, as a delayed ACK makes it, moves SRTT to 75 ms and the mean of the extremes to 62.5 ms,
    /// where the extremes of the samples would have a mean of 150 ms: two rounds, not one.
    #[test]
    fn one_late_ack_weighs_as_little_as_in_srtt() {
        let ms = Duration::from_millis;
        let [fast, slow] = pair();
        let late = SubflowView { srtt: ms(75), rtt_max: ms(250), ..fast };
        let mut kernel = kernel();
        kernel.note(&[fast, slow]);
        kernel.note(&[late, slow]);
        kernel.note(&[fast, slow]);
        assert_eq!(kernel.extremes(&fast), Extremes { subflow: FAST, min: ms(50), max: ms(75) });
        assert_eq!(rounds(kernel.extremes(&fast), slow.srtt), 2);
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
        let seen = Extremes { subflow: SLOW, min: ms(100), max: ms(200) };
        let expected = |in_flight| expected_rtt(&subflow(SLOW, 100, 10, in_flight), seen, true);
        assert_eq!([expected(0), expected(4), expected(9)], [ms(110), ms(150), ms(200)]);
        assert_eq!(rounds(Extremes::first(&subflow(FAST, 50, 5, 5)), ms(150)), 4);
    }

    /// 2³² is 4,294,967,296.
    #[test]
    fn numbers_of_32_bits_flip_decisions() {
        let whole = || BlestKernel { wrap: false, ..kernel() };
        // A window of 40 doubled 16 times is 2,621,400 packets, of 1000 B and times 1.2 are 3,145,680,000 bytes; of 55
        // it is 4,325,310,000, of which 30,342,704 are left. The peer's window of 40 MB is too small for all but these.
        let [fast, slow] = [subflow(FAST, 10, 40, 40), subflow(SLOW, 400, 10, 2)];
        let decide = |mut blest: BlestKernel, cwnd| {
            let fast = SubflowView { cwnd: segments(cwnd), in_flight: segments(cwnd), ssthresh: None, ..fast };
            blest.decide(at(0), &View { window: Bytes::new(40_000_000), ..view(&[fast, slow], 50) })
        };
        assert_eq!((decide(whole(), 40), decide(kernel(), 40)), (Decision::WAIT, Decision::WAIT));
        assert_eq!((decide(whole(), 55), decide(kernel(), 55)), (Decision::WAIT, Decision::send(SLOW)));

        // SRTT from 100 to 600 ms: 4,000,000 eighths of microseconds. Times 1,074 segments that is 4,296,000,000, of
        // which 1,032,704 are left: over 2,000 segments 516 eighths, 64.5 µs in place of 268.5 ms.
        let ms = Duration::from_millis;
        let seen = Extremes { subflow: SLOW, min: ms(100), max: ms(600) };
        let lingers = |in_flight, wrap| expected_rtt(&subflow(SLOW, 100, 2_000, in_flight), seen, wrap);
        assert_eq!(
            (lingers(1_073, false), lingers(1_073, true)),
            (Duration::from_micros(368_500), Duration::from_nanos(100_064_500))
        );
        assert_eq!(
            (lingers(1_072, false), lingers(1_072, true)),
            (Duration::from_micros(368_250), Duration::from_micros(368_250))
        );
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
        assert_eq!([lambda_at(0, false), lambda_at(99, true), lambda_at(100, false)], [120, 120, 124]);
        assert_eq!([lambda_at(200, true), lambda_at(300, true), lambda_at(400, true)], [128, 130, 130]);
        assert_eq!((5..50).map(|round| lambda_at(100 * round, false)).last(), Some(100));
    }
}
