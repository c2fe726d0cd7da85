//! Range of data that left while congestion control itself kept the flight small.

use super::Ack;

/// Range of delivered bytes during which a control held its sender back (ProbeRTT), so that rate samples of segments
/// that left meanwhile say nothing of the path (`C.app_limited` of the draft).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldBack(Option<(u64, u64)>);

impl HeldBack {
    /// The sender is held back from now on, or still is: until all that is in flight has been delivered.
    pub(super) fn mark(&mut self, ack: &Ack) {
        let from = self.0.map_or(ack.delivered, |(from, _)| from);
        self.0 = Some((from, ack.delivered + ack.in_flight.get()));
    }

    /// Returns true for a segment that left with `prior_delivered` bytes delivered, if the sender was held back then.
    pub(super) fn covers(&self, prior_delivered: u64) -> bool {
        self.0.is_some_and(|(from, to)| (from..=to).contains(&prior_delivered))
    }

    /// Forgets that the sender was held back.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }
}
