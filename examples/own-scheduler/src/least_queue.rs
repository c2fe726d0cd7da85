//! Least queue: the subflow whose packets wait the least on their way.
//!
//! A packet's wait is SRTT less the smallest RTT the subflow ever saw. Waits that differ by up to `slack` count as
//! equal; of equals the one with the lowest SRTT sends.

use anabranch_policy::registry::{Number, Params, number};
use anabranch_policy::scheduler::{Entry, Scheduler};
use anabranch_policy::{Decision, SubflowView, View};
use anabranch_units::{Duration, Instant};

/// The scheduler as a catalogue lists it.
pub const ENTRY: Entry = Entry::new(
    "least-queue",
    "the subflow whose packets wait the least on their way",
    include_str!("least_queue.rs"),
    |params| Box::new(LeastQueue::new(params)),
)
.parameters(&[SLACK.parameter()]);

const SLACK: Number =
    number("slack", "waits that differ by up to this count as equal", 5.0, 0.0..=1000.0).in_unit("ms");

/// Picks the subflow with the shortest queue.
pub struct LeastQueue {
    slack: Duration,
}

impl LeastQueue {
    /// For one connection.
    pub fn new(params: &Params) -> Self {
        LeastQueue { slack: Duration::from_micros((SLACK.of(params) * 1e3) as u64) }
    }
}

impl Scheduler for LeastQueue {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        let wait = |subflow: &SubflowView| subflow.srtt.saturating_sub(subflow.rtt_min);
        let with_room = || view.subflows.iter().filter(|subflow| subflow.has_room());
        // No subflow has room: that cannot happen when the engine asks, but costs nothing to answer.
        let Some(least) = with_room().map(wait).min() else { return Decision::WAIT };
        let short = with_room().filter(|subflow| wait(subflow) <= least + self.slack);
        short.min_by_key(|subflow| subflow.srtt).map_or(Decision::WAIT, |subflow| Decision::send(subflow.id))
    }
}
