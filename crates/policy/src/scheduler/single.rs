//! Single: everything on one subflow, as if the others were not there. The baseline of every comparison.
//!
//! If the chosen subflow is not usable, the usable one with the lowest id takes its place; a full window is waited for.
//! If no ACK could end that wait (no room, and no data in flight), the lowest id with room is used.

use super::{Entry, Scheduler, ack_due};
use crate::registry::{Number, Params, number};
use crate::{Decision, View};
use anabranch_units::{Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry =
    Entry::new("single", "everything on one subflow; the baseline", include_str!("single.rs"), |p| {
        Box::new(Single::new(p))
    })
    .parameters(&[SUBFLOW.parameter()]);

/// One subflow for everything.
pub struct Single {
    subflow: SubflowId,
}

impl Single {
    /// The subflow that `parameters` name.
    pub fn new(parameters: &Params) -> Self {
        Single { subflow: SubflowId(SUBFLOW.of(parameters) as u16) }
    }
}

impl Scheduler for Single {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        let Some(chosen) = view.subflow(self.subflow).or(view.subflows.first()) else {
            return Decision::WAIT;
        };
        if chosen.has_room() {
            return Decision::send(chosen.id);
        }
        match view.subflows.iter().find(|subflow| subflow.has_room()) {
            Some(other) if !ack_due(chosen) => Decision::send(other.id),
            _ => Decision::WAIT,
        }
    }
}

const SUBFLOW: Number = number("subflow", "id of the subflow; 0 is the initial one", 0.0, 0.0..=u16::MAX as f64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;

    #[test]
    fn stays_on_its_subflow() {
        let other = SubflowId(7);
        for (chosen, first, second, decision) in [
            (FAST, subflow(FAST, 90, 10, 5), subflow(SLOW, 10, 10, 0), Decision::send(FAST)),
            (FAST, subflow(FAST, 90, 10, 10), subflow(SLOW, 10, 10, 0), Decision::WAIT),
            (SLOW, subflow(FAST, 10, 10, 0), subflow(SLOW, 90, 10, 5), Decision::send(SLOW)),
            (other, subflow(FAST, 90, 10, 5), subflow(SLOW, 10, 10, 0), Decision::send(FAST)),
            // No room, and no acknowledgment due that could make any.
            (FAST, subflow(FAST, 90, 0, 0), subflow(SLOW, 10, 10, 0), Decision::send(SLOW)),
        ] {
            assert_eq!(Single { subflow: chosen }.decide(at(0), &view(&[first, second], 50)), decision);
        }
    }
}
