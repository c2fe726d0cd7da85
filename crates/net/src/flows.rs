//! Outcome of a link's queue: waits, drops and marks, in sum and by flow.
//!
//! Flows are told apart only where the link has a discipline, which asks for the hash of each packet's flow anyway. The
//! first [`LISTED`] are counted one by one and all others together, so that memory stays bounded.

use crate::waits::{Histogram, Waits};
use anabranch_policy::queue::Cause;
use anabranch_units::Duration;
use std::collections::BTreeMap;

/// Outcome of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueOutcome {
    /// Times from arrival to the beginning of service, of all packets that left.
    pub waits: Waits,
    /// Flows in the order of their first packets, 64 at most. Empty if the link has no discipline of its own.
    pub flows: Vec<FlowOutcome>,
    /// All other flows together; `None` if there are none.
    pub others: Option<FlowOutcome>,
}

/// Outcome of a flow in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowOutcome {
    /// Times from arrival to the beginning of service.
    pub waits: Waits,
    /// Packets dropped because the link was full.
    pub dropped_full: u64,
    /// Packets dropped because the discipline wanted fewer.
    pub dropped_early: u64,
    /// Packets marked (ECN).
    pub marked: u64,
}

/// Most flows that are counted one by one.
pub(crate) const LISTED: usize = 64;

#[derive(Debug, Default)]
struct Flow {
    waits: Histogram,
    full: u64,
    early: u64,
    marked: u64,
}

/// Counts of flows.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    numbers: BTreeMap<u64, usize>,
    all: Vec<Flow>,
    /// The flow that was asked for last.
    last: Option<(u64, usize)>,
}

impl Flows {
    /// The counts of the flow with this hash.
    fn of(&mut self, hash: u64) -> &mut Flow {
        let number = match self.last {
            Some((last, number)) if last == hash => number,
            _ => {
                let known = self.numbers.len();
                let number = match self.numbers.get(&hash) {
                    Some(number) => *number,
                    // Those that are not listed come last, together.
                    None if known == LISTED => LISTED,
                    None => *self.numbers.entry(hash).or_insert(known),
                };
                self.last = Some((hash, number));
                number
            }
        };
        if number == self.all.len() {
            self.all.push(Flow::default());
        }
        &mut self.all[number]
    }

    /// A packet comes: flows are listed in this order.
    pub(crate) fn come(&mut self, hash: u64) {
        self.of(hash);
    }

    pub(crate) fn leave(&mut self, hash: u64, wait: Duration, marked: bool) {
        let flow = self.of(hash);
        flow.waits.add(wait);
        flow.marked += u64::from(marked);
    }

    pub(crate) fn drop(&mut self, hash: u64, cause: Cause) {
        let flow = self.of(hash);
        match cause {
            Cause::Full => flow.full += 1,
            Cause::Early => flow.early += 1,
        }
    }

    pub(crate) fn outcome(&self) -> (Vec<FlowOutcome>, Option<FlowOutcome>) {
        let of = |flow: &Flow| FlowOutcome {
            waits: flow.waits.waits(),
            dropped_full: flow.full,
            dropped_early: flow.early,
            marked: flow.marked,
        };
        (self.all.iter().take(LISTED).map(of).collect(), self.all.get(LISTED).map(of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_beyond_the_list_are_counted_together() {
        let mut flows = Flows::default();
        for hash in 0..100 {
            flows.come(hash * 7919 % 101);
            flows.leave(hash * 7919 % 101, Duration::from_millis(hash), hash % 2 == 0);
            flows.drop(hash * 7919 % 101, Cause::Early);
        }
        flows.leave(0, Duration::from_secs(1), false);
        let (listed, others) = flows.outcome();
        let others = others.expect("there are more");
        assert_eq!((listed.len(), listed[0].waits.packets, listed[0].waits.max), (64, 2, Duration::from_secs(1)));
        assert_eq!((others.waits.packets, others.dropped_early, others.marked), (36, 36, 18));
        assert!(listed.iter().all(|flow| flow.dropped_early == 1));
    }
}
