//! Weighted round robin: turns in proportion to the rate `cwnd / srtt` of each subflow.
//!
//! F2P describes it as the scheduler of LS-SCTP: the share of a path is proportional to its window divided by its RTT.
//! The order of turns is ours: smooth weighted round robin over the subflows with room, weights in bytes per second,
//! each taken anew once per SRTT of its subflow. A subflow without room is passed over and earns nothing meanwhile.
//!
//! In bulk transfers it comes close to every scheduler that never waits: all windows are full, and data goes wherever
//! an ACK opens one. With less data it spreads it where minRTT would keep it on the fast subflow.

use super::per_subflow::PerSubflow;
use super::turns::{Turn, take};
use super::{Entry, Scheduler};
use crate::{Decision, SubflowView, View};
use anabranch_units::{Instant, Rate};

/// Entry in the table of its kind.
pub const ENTRY: Entry =
    Entry::new("weighted", "turns in proportion to cwnd / srtt", include_str!("weighted.rs"), |_| {
        Box::new(Weighted::default())
    })
    .paper("Al et al., LS-SCTP, after F2P");

/// Weighted round robin.
#[derive(Default)]
pub struct Weighted {
    turns: PerSubflow<Weighed>,
}

struct Weighed {
    turn: Turn,
    /// Time at which its weight was taken.
    at: Instant,
}

impl Scheduler for Weighted {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        self.turns.follow(view.subflows, |subflow| Weighed { turn: Turn::new(weight(subflow)), at: now });
        for (weighed, subflow) in self.turns.iter_mut().zip(view.subflows) {
            if now.since(weighed.at) >= subflow.srtt {
                weighed.turn.weigh(weight(subflow));
                weighed.at = now;
            }
        }
        take(&mut self.turns, |weighed| &mut weighed.turn, view.subflows, true)
    }
}

/// Bytes per second.
fn weight(subflow: &SubflowView) -> u64 {
    Rate::of(subflow.cwnd, subflow.srtt).map_or(u64::MAX, |rate| rate.as_bps() / 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;

    fn turns(weighted: &mut Weighted, ms: u64, subflows: &[SubflowView], n: usize) -> Vec<u16> {
        let mut next = || match weighted.decide(at(ms), &view(subflows, 50)) {
            Decision::Send { on, .. } => on.0,
            _ => 99,
        };
        (0..n).map(|_| next()).collect()
    }

    /// 10 segments in 10 ms and 20 in 40 ms: 2 to 1.
    #[test]
    fn turns_follow_the_rates_and_the_rates_are_taken_once_per_round_trip() {
        let mut weighted = Weighted::default();
        let mut subflows = [subflow(FAST, 10, 10, 0), subflow(SLOW, 40, 20, 0)];
        assert_eq!(turns(&mut weighted, 100, &subflows, 6), [0, 1, 0, 0, 1, 0]);
        // The fast window falls to 5, that is 1 to 1; the slow one rises to 40, that is 1 to 2, half a round trip
        // later.
        (subflows[0].cwnd, subflows[1].cwnd) = (segments(5), segments(40));
        assert_eq!(turns(&mut weighted, 109, &subflows, 3), [0, 1, 0]);
        assert_eq!(turns(&mut weighted, 110, &subflows, 4), [0, 1, 0, 1]);
        assert_eq!(turns(&mut weighted, 139, &subflows, 4), [0, 1, 0, 1]);
        assert_eq!(turns(&mut weighted, 140, &subflows, 6), [1, 0, 1, 1, 0, 1]);
    }

    #[test]
    fn a_full_window_is_passed_over() {
        let mut weighted = Weighted::default();
        let subflows = [subflow(FAST, 10, 10, 10), subflow(SLOW, 400, 10, 0)];
        assert_eq!(turns(&mut weighted, 0, &subflows, 3), [1, 1, 1]);
        assert_eq!(turns(&mut weighted, 0, &[subflows[0]], 1), [99]);
    }
}
