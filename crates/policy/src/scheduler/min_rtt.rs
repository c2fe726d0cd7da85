//! Lowest RTT first: the default of Linux MPTCP v0.8x to v0.95, and what every other scheduler is compared with.
//!
//! Of the subflows with room, the one with the lowest smoothed RTT; the lower id on a tie. It never waits: once the
//! fast window is full, data spills to the slow subflow, however slow that is. What Linux does when the peer's window
//! is full (opportunistic retransmission and penalisation) is a policy of its own here: `reinjection`.

use super::{Entry, Scheduler};
use crate::{Decision, View};
use anabranch_units::Instant;

/// Entry in the table of its kind.
pub const ENTRY: Entry =
    Entry::new("min-rtt", "the lowest SRTT with room", include_str!("min_rtt.rs"), |_| Box::new(MinRtt))
        .paper("Linux MPTCP v0.95, default");

/// Lowest RTT first.
pub struct MinRtt;

impl Scheduler for MinRtt {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        view.fastest_with_room().map_or(Decision::WAIT, |subflow| Decision::send(subflow.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;

    /// Low-Latency Scheduling in MPTCP, Section II: 15 segments on paths of 10 and 100 ms with windows of 10. The last
    /// five take the slow path, so that the burst needs 50 ms (half its RTT) instead of 15.
    #[test]
    fn spills_a_burst_of_15_segments_to_the_slow_path() {
        let mut subflows = [subflow(FAST, 10, 10, 0), subflow(SLOW, 100, 10, 0)];
        for unsent in (1..=15).rev() {
            let Decision::Send { on, skip } = MinRtt.decide(at(0), &view(&subflows, unsent)) else {
                panic!("{unsent} segments left, room for more, and it waits");
            };
            assert!(skip.is_zero());
            subflows[usize::from(on.0)].in_flight += segments(1);
        }
        assert_eq!(subflows.map(|subflow| subflow.in_flight), [segments(10), segments(5)]);
    }

    #[test]
    fn ties_go_to_the_lower_id_and_full_windows_wait() {
        let tied = [subflow(FAST, 40, 10, 9), subflow(SLOW, 40, 10, 0)];
        assert_eq!(MinRtt.decide(at(0), &view(&tied, 3)), Decision::send(FAST));
        let full = [subflow(FAST, 40, 10, 10), subflow(SLOW, 40, 10, 10)];
        assert_eq!(MinRtt.decide(at(0), &view(&full, 3)), Decision::WAIT);
    }
}
