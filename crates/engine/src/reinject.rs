//! Data to be sent again on another subflow, and the reason.

use crate::Reason;
use crate::ranges::RareSet;

/// Ranges of data that wait to be repeated elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Reinjections {
    ranges: RareSet,
    /// Reason for each range, the latest last. For reports only: the oldest of very many are forgotten.
    reasons: Vec<(u64, u64, Reason)>,
}

/// Reasons remembered. A subflow that timed out leaves one for each gap in what it carried.
const MAX_REASONS: usize = 64;

impl Reinjections {
    pub(crate) fn insert(&mut self, start: u64, end: u64, reason: Reason) {
        self.ranges.insert(start, end);
        match self.reasons.last_mut() {
            Some((_, last_end, last)) if *last == reason && *last_end == start => *last_end = end,
            _ => {
                if self.reasons.len() == MAX_REASONS {
                    self.reasons.remove(0);
                }
                self.reasons.push((start, end, reason));
            }
        }
    }

    /// The lowest range.
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.ranges.first()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        self.ranges.remove(start, end);
        self.forget_reasons();
    }

    pub(crate) fn remove_below(&mut self, edge: u64) {
        self.ranges.remove_below(edge);
        self.forget_reasons();
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
        self.forget_reasons();
    }

    /// Returns the latest reason to repeat `position`.
    pub(crate) fn reason(&self, position: u64) -> Option<Reason> {
        let covers = |(start, end, _): &&(u64, u64, Reason)| (*start..*end).contains(&position);
        self.reasons.iter().rev().find(covers).map(|(.., reason)| *reason)
    }

    fn forget_reasons(&mut self) {
        if self.ranges.is_empty() {
            self.ranges.release();
            self.reasons = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::SubflowId;

    #[test]
    fn the_latest_reason_counts_and_none_outlives_its_ranges() {
        let mut queue = Reinjections::default();
        let rto = Reason::Rto(SubflowId(1));
        queue.insert(10, 20, rto);
        queue.insert(20, 30, rto);
        queue.insert(15, 17, Reason::DataTimeout);
        assert_eq!(queue.reasons.len(), 2, "what joins what is there takes no room");
        assert_eq!(
            (queue.reason(14), queue.reason(15), queue.reason(29)),
            (Some(rto), Some(Reason::DataTimeout), Some(rto))
        );
        assert_eq!(queue.reason(30), None);
        queue.remove(10, 25);
        assert_eq!(queue.first(), Some((25, 30)));
        queue.remove_below(30);
        assert!(queue.is_empty() && queue.reasons.is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let mut queue = Reinjections::default();
        (0..1000).for_each(|n| queue.insert(3 * n, 3 * n + 1, Reason::DataTimeout));
        assert_eq!(queue.reasons.len(), MAX_REASONS);
        assert_eq!(queue.reason(2997), Some(Reason::DataTimeout));
    }
}
