//! HSR, highest sending rate: of the subflows with room, the one with the largest `cwnd / srtt`.
//!
//! B. Y. L. Kimura, D. C. S. F. Lima, A. A. F. Loureiro. *Alternative Scheduling Decisions for Multipath TCP.* IEEE
//! Communications Letters 21(11), 2017. Known to us from LATE, which names it beside lowest RTT first.
//!
//! Ties go to the lower id. It never waits. A subflow with a large window is preferred however long its RTT, and the
//! more it is used, the larger its window grows.
//!
//! It compares `srtt / cwnd`, the time per byte of window, and takes the least.

use super::{Entry, Scheduler};
use crate::{Decision, View};
use anabranch_units::Instant;

/// Entry in the table of its kind.
pub const ENTRY: Entry =
    Entry::new("hsr", "the highest cwnd / srtt with room", include_str!("hsr.rs"), |_| Box::new(Hsr))
        .paper("Kimura et al. 2017, as LATE cites it");

/// Highest sending rate.
pub struct Hsr;

impl Scheduler for Hsr {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        let best = view.lowest_with_room(|subflow| subflow.srtt.as_nanos() as f64 / subflow.cwnd.as_f64());
        best.map_or(Decision::WAIT, |subflow| Decision::send(subflow.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;

    #[test]
    fn the_rate_decides_not_the_round_trip() {
        let hsr = |subflows: &[_]| Hsr.decide(at(0), &view(subflows, 50));
        for (fast, slow, expected) in [
            // 1 against 0.5 segments per ms, 1 against 1.2, and a tie; room does not count.
            ((10, 10, 0), (100, 50, 0), Decision::send(FAST)),
            ((10, 10, 0), (100, 120, 0), Decision::send(SLOW)),
            ((10, 10, 9), (100, 100, 0), Decision::send(FAST)),
            // The subflow with the highest rate has no room; then none has.
            ((10, 10, 10), (100, 10, 9), Decision::send(SLOW)),
            ((10, 10, 10), (100, 10, 10), Decision::WAIT),
        ] {
            let pair = [subflow(FAST, fast.0, fast.1, fast.2), subflow(SLOW, slow.0, slow.1, slow.2)];
            assert_eq!(hsr(&pair), expected, "{fast:?} {slow:?}");
        }
    }
}
