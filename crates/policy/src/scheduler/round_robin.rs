//! Round robin: the subflows take turns, `burst` segments each. The baseline without intelligence.
//!
//! Parameters after the `roundrobin` module of Linux MPTCP: `num_segments` is our `burst`, `cwnd_limited` says whether
//! a subflow without room is passed over (the default) or waited for, which gives strict alternation.
//!
//! Where we differ: Linux counts a burst before it splits large buffers, so a turn may overshoot; ours is exact. A
//! subflow that is passed over in the middle of its burst loses the rest of it. A subflow in RTO recovery, or without
//! room and without anything in flight, is passed over in either mode: waiting for it might never end.

use super::{Entry, Scheduler, ack_due};
use crate::registry::{Flag, Number, Params, flag, number};
use crate::{Decision, View};
use anabranch_units::{Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new("round-robin", "the subflows take turns", include_str!("round_robin.rs"), |p| {
    Box::new(RoundRobin::new(p))
})
.parameters(&[BURST.parameter(), CWND_LIMITED.parameter()]);

/// Subflows in turn.
pub struct RoundRobin {
    burst: u32,
    /// Pass over a subflow without room.
    cwnd_limited: bool,
    /// Subflow with the next turn, or if it is not usable, the next id.
    turn: SubflowId,
    /// Segments left in this turn.
    left: u32,
}

impl RoundRobin {
    /// Reads `burst` and `cwnd_limited` from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        let burst = (BURST.of(parameters) as u32).max(1);
        RoundRobin { burst, cwnd_limited: CWND_LIMITED.of(parameters), turn: SubflowId(0), left: burst }
    }

    fn take(&mut self, subflow: SubflowId) -> Decision {
        if subflow != self.turn {
            (self.turn, self.left) = (subflow, self.burst);
        }
        self.left -= 1;
        if self.left == 0 {
            (self.turn, self.left) = (SubflowId(subflow.0.wrapping_add(1)), self.burst);
        }
        Decision::send(subflow)
    }
}

impl Scheduler for RoundRobin {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        let turn = view.subflows.iter().position(|subflow| subflow.id >= self.turn).unwrap_or(0);
        let (earlier, later) = view.subflows.split_at(turn);
        for subflow in later.iter().chain(earlier) {
            if subflow.has_room() {
                return self.take(subflow.id);
            }
            if !self.cwnd_limited && subflow.open && ack_due(subflow) {
                break;
            }
        }
        Decision::WAIT
    }
}

const BURST: Number = number("burst", "segments sent per turn (num_segments)", 1.0, 1.0..=255.0).in_unit("segments");
const CWND_LIMITED: Flag =
    flag("cwnd_limited", "pass over a subflow whose window is full instead of waiting for it", true);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SubflowView;
    use crate::scheduler::testing::*;

    const THIRD: SubflowId = SubflowId(4);

    fn round_robin(burst: u32, cwnd_limited: bool) -> RoundRobin {
        RoundRobin { burst, cwnd_limited, turn: FAST, left: burst }
    }

    /// The ids it sends on, one decision after the other; 99 for a wait.
    fn turns(scheduler: &mut RoundRobin, subflows: &[SubflowView], n: usize) -> Vec<u16> {
        (0..n)
            .map(|_| match scheduler.decide(at(0), &view(subflows, 50)) {
                Decision::Send { on, .. } => on.0,
                _ => 99,
            })
            .collect()
    }

    #[test]
    fn takes_turns_whatever_the_rtt() {
        let subflows = [subflow(FAST, 10, 10, 0), subflow(SLOW, 500, 10, 0), subflow(THIRD, 20, 10, 0)];
        assert_eq!(turns(&mut round_robin(1, true), &subflows, 6), [0, 1, 4, 0, 1, 4]);
        assert_eq!(turns(&mut round_robin(2, true), &subflows, 7), [0, 0, 1, 1, 4, 4, 0]);
    }

    #[test]
    fn a_full_window_is_passed_over_or_waited_for() {
        let full = [subflow(FAST, 10, 10, 0), subflow(SLOW, 500, 10, 10), subflow(THIRD, 20, 10, 0)];
        assert_eq!(turns(&mut round_robin(1, true), &full, 4), [0, 4, 0, 4]);
        assert_eq!(turns(&mut round_robin(1, false), &full, 3), [0, 99, 99]);
        // Neither what has nothing in flight nor what is in RTO recovery.
        for in_flight in [0, 5] {
            let shut = [full[0], SubflowView { open: false, ..subflow(SLOW, 500, 10, in_flight) }, full[2]];
            assert_eq!(turns(&mut round_robin(1, false), &shut, 3), [0, 4, 0], "{in_flight}");
        }
    }

    #[test]
    fn subflows_may_come_and_go() {
        let mut scheduler = round_robin(1, true);
        let all = [subflow(FAST, 10, 10, 0), subflow(SLOW, 500, 10, 0), subflow(THIRD, 20, 10, 0)];
        assert_eq!(turns(&mut scheduler, &all, 1), [0]);
        assert_eq!(turns(&mut scheduler, &[all[0], all[2]], 2), [4, 0]);
        assert_eq!(turns(&mut scheduler, &all[..1], 2), [0, 0]);
        assert_eq!(turns(&mut scheduler, &[], 1), [99]);
    }
}
