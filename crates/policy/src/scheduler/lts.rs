//! LTS, lowest time/space: of the subflows with room, the one with the least `srtt / (cwnd - in_flight)`, in whole
//! segments.
//!
//! B. Y. L. Kimura, D. C. S. F. Lima, A. A. F. Loureiro. *Alternative Scheduling Decisions for Multipath TCP.* IEEE
//! Communications Letters 21(11), 2017. Known to us from LATE, which names it beside lowest RTT first.
//!
//! Ties go to the lower id. It never waits. The fast subflow is preferred until its window is nearly full; with RTTs
//! ten times apart and ten segments of space on the slow one, down to its last segment.

use super::{Entry, Scheduler};
use crate::{Decision, View};
use anabranch_units::Instant;

/// Entry in the table of its kind.
pub const ENTRY: Entry =
    Entry::new("lts", "the least srtt per room in its window", include_str!("lts.rs"), |_| Box::new(Lts))
        .paper("Kimura et al. 2017, as LATE cites it");

/// Lowest time/space.
pub struct Lts;

impl Scheduler for Lts {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        let best = view.lowest_with_room(|subflow| subflow.srtt.as_nanos() as f64 / f64::from(subflow.room_segments()));
        best.map_or(Decision::WAIT, |subflow| Decision::send(subflow.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;

    #[test]
    fn time_per_space_decides() {
        for (fast, slow, expected) in [
            ((10, 10, 0), (40, 10, 0), Decision::send(FAST)), //  1 <  4 ms per segment
            ((10, 10, 8), (40, 10, 0), Decision::send(SLOW)), //  5 >  4
            ((10, 10, 8), (50, 10, 0), Decision::send(FAST)), //  5 =  5
            ((10, 10, 9), (99, 10, 0), Decision::send(SLOW)), // 10 > 9.9
            ((10, 10, 9), (40, 10, 8), Decision::send(FAST)), // 10 < 20
            ((10, 10, 10), (40, 10, 9), Decision::send(SLOW)),
            ((10, 10, 10), (40, 10, 10), Decision::WAIT),
        ] {
            let pair = [subflow(FAST, fast.0, fast.1, fast.2), subflow(SLOW, slow.0, slow.1, slow.2)];
            assert_eq!(Lts.decide(at(0), &view(&pair, 50)), expected, "{fast:?} {slow:?}");
        }
    }
}
