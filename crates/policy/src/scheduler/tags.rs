//! For which subflow each unsent byte is meant, where a scheduler decides that before the byte can leave.
//!
//! The bytes stay where they are: a tag is a run of unsent bytes with the subflow they wait for. Runs are kept in the
//! order of the data, so that what leaves out of turn takes nothing but its own bytes away.

use super::wait_for;
use crate::{Decision, SubflowView, View};
use anabranch_units::{Bytes, SubflowId};
use std::collections::VecDeque;

/// Tags of the leading unsent bytes. Subflows are named by their place in the view.
#[derive(Default)]
pub(super) struct Tags {
    /// Neighbours wait for different subflows, and none is empty.
    runs: VecDeque<Run>,
    /// The subflows of the view that the places refer to, and how much waits for each.
    queues: Vec<(SubflowId, Bytes)>,
    total: Bytes,
}

#[derive(Clone, Copy)]
struct Run {
    place: usize,
    length: Bytes,
}

impl Tags {
    /// Number of unsent bytes with a tag.
    pub(super) fn total(&self) -> Bytes {
        self.total
    }

    /// Number of those for the subflow at `place`.
    pub(super) fn queued(&self, place: usize) -> Bytes {
        self.queues.get(place).map_or(Bytes::ZERO, |(_, queued)| *queued)
    }

    /// The place of the subflow for which the first unsent byte waits.
    pub(super) fn holder(&self) -> Option<usize> {
        self.runs.front().map(|run| run.place)
    }

    /// The first byte that waits for one of these places (bit n: place n): where it stands in the unsent data.
    pub(super) fn first_of(&self, places: u64) -> Option<(usize, Bytes)> {
        let mut skip = Bytes::ZERO;
        for run in &self.runs {
            if places >> run.place & 1 != 0 {
                return Some((run.place, skip));
            }
            skip += run.length;
        }
        None
    }

    /// Sends what comes first of all that waits for a subflow with room, or waits for the subflow of the first byte.
    pub(super) fn next(&self, view: &View<'_>) -> Decision {
        match self.first_of(places(view, SubflowView::has_room)) {
            Some((place, skip)) if view.admits(skip, view.subflows[place].mss) => {
                Decision::Send { on: view.subflows[place].id, skip }
            }
            _ => wait_for(self.holder().map(|place| &view.subflows[place]), view),
        }
    }

    /// Tags the next `length` bytes.
    pub(super) fn push(&mut self, place: usize, length: Bytes) {
        if let Some((_, queued)) = self.queues.get_mut(place).filter(|_| !length.is_zero()) {
            *queued += length;
            self.total += length;
            match self.runs.back_mut() {
                Some(last) if last.place == place => last.length += length,
                _ => self.runs.push_back(Run { place, length }),
            }
        }
    }

    /// `length` bytes left that began `skip` bytes into the unsent data.
    pub(super) fn remove(&mut self, skip: Bytes, length: Bytes) {
        let (mut head, end, mut at) = (Bytes::ZERO, skip + length, 0);
        let mut emptied = 0..0;
        while head < end
            && let Some(run) = self.runs.get_mut(at)
        {
            let tail = head + run.length;
            let gone = end.min(tail).saturating_sub(skip.max(head));
            run.length -= gone;
            self.queues[run.place].1 -= gone;
            self.total -= gone;
            head = tail;
            if run.length.is_zero() {
                emptied = if emptied.is_empty() { at..at + 1 } else { emptied.start..at + 1 };
            }
            at += 1;
        }
        if !emptied.is_empty() {
            let first = emptied.start;
            self.runs.drain(emptied);
            self.join(first);
        }
    }

    /// Forgets the tags of whatever is behind the first `unsent` bytes.
    pub(super) fn truncate(&mut self, unsent: Bytes) {
        // From the back, since there is next to nothing to do as a rule.
        while self.total > unsent
            && let Some(last) = self.runs.back_mut()
        {
            let gone = last.length.min(self.total - unsent);
            last.length -= gone;
            self.queues[last.place].1 -= gone;
            self.total -= gone;
            if last.length.is_zero() {
                self.runs.pop_back();
            }
        }
    }

    /// Number of runs.
    pub(super) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Forgets the tags of one place. Those behind move up, to the bytes that it waited for.
    pub(super) fn withdraw(&mut self, place: usize) {
        if self.queued(place).is_zero() {
            return;
        }
        let before = std::mem::take(&mut self.runs);
        self.queues.iter_mut().for_each(|(_, queued)| *queued = Bytes::ZERO);
        self.total = Bytes::ZERO;
        for run in before.into_iter().filter(|run| run.place != place) {
            self.push(run.place, run.length);
        }
    }

    /// Forgets all tags.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.queues.iter_mut().for_each(|(_, queued)| *queued = Bytes::ZERO);
        self.total = Bytes::ZERO;
    }

    /// Returns true if the places are those of this view.
    pub(super) fn is_of(&self, view: &View<'_>) -> bool {
        let ids = view.subflows.iter().map(|subflow| subflow.id);
        self.queues.len() == view.subflows.len() && self.queues.iter().zip(ids).all(|((known, _), id)| *known == id)
    }

    /// Takes the places from this view. Data of a subflow that is gone loses its tag and is tagged anew by `choose`, a
    /// segment at a time, in the order of the data; all other tags stay. If `choose` returns `None`, all data behind
    /// that segment loses its tag.
    pub(super) fn adopt(&mut self, view: &View<'_>, mut choose: impl FnMut(&Tags) -> Option<usize>) {
        let before = std::mem::take(self);
        let place_now = |run: &Run| {
            let (id, _) = before.queues[run.place];
            view.subflows.iter().position(|subflow| subflow.id == id)
        };
        self.queues = view.subflows.iter().map(|subflow| (subflow.id, Bytes::ZERO)).collect();
        // The queues that stay are known to `choose` before the first orphan is dealt with.
        for run in &before.runs {
            if let Some(place) = place_now(run) {
                self.queues[place].1 += run.length;
            }
        }
        for run in &before.runs {
            if let Some(place) = place_now(run) {
                self.queues[place].1 -= run.length;
                self.push(place, run.length);
                continue;
            }
            let mut left = run.length;
            while !left.is_zero() {
                let Some(place) = choose(self) else { return self.count() };
                let segment = view.subflows[place].mss.max(Bytes::new(1)).min(left);
                self.push(place, segment);
                left -= segment;
            }
        }
    }

    /// Counts the queues from the runs.
    fn count(&mut self) {
        self.queues.iter_mut().for_each(|(_, queued)| *queued = Bytes::ZERO);
        for run in &self.runs {
            self.queues[run.place].1 += run.length;
        }
    }

    /// Makes one run of the run at `at` and the one before it, if they wait for the same subflow.
    fn join(&mut self, at: usize) {
        if let Some(before) = at.checked_sub(1)
            && let (Some(one), Some(other)) = (self.runs.get(before), self.runs.get(at))
            && one.place == other.place
        {
            let length = other.length;
            self.runs[before].length += length;
            self.runs.remove(at);
        }
    }
}

/// The places in a view of the subflows for which `holds`, as bits.
pub(super) fn places(view: &View<'_>, holds: impl Fn(&SubflowView) -> bool) -> u64 {
    let bits = view.subflows.iter().enumerate().take(u64::BITS as usize);
    bits.filter(|(_, subflow)| holds(subflow)).fold(0, |bits, (place, _)| bits | 1 << place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;
    use proptest::prelude::*;

    const OTHER: SubflowId = SubflowId(2);

    fn ids(all: &[SubflowId]) -> Vec<SubflowView> {
        all.iter().map(|&id| subflow(id, 10, 10, 0)).collect()
    }

    fn tags(subflows: &[SubflowView], runs: &[(usize, u64)]) -> Tags {
        let mut tags = Tags::default();
        tags.adopt(&view(subflows, 0), |_| None);
        runs.iter().for_each(|&(place, length)| tags.push(place, Bytes::new(length)));
        tags
    }

    fn runs(tags: &Tags) -> Vec<(usize, u64)> {
        tags.runs.iter().map(|run| (run.place, run.length.get())).collect()
    }

    #[test]
    fn what_leaves_out_of_turn_joins_its_neighbours() {
        let mut tags = tags(&ids(&[FAST, SLOW]), &[(0, 30), (1, 10), (0, 5), (1, 7)]);
        assert_eq!(tags.first_of(0b10), Some((1, Bytes::new(30))));
        tags.remove(Bytes::new(30), Bytes::new(10));
        assert_eq!(runs(&tags), [(0, 35), (1, 7)]);
        tags.remove(Bytes::new(20), Bytes::new(17));
        assert_eq!((runs(&tags), tags.queued(0).get(), tags.total().get()), (vec![(0, 20), (1, 5)], 20, 25));
        tags.truncate(Bytes::new(19));
        assert_eq!((runs(&tags), tags.first_of(0b10), tags.holder()), (vec![(0, 19)], None, Some(0)));
    }

    #[test]
    fn what_is_withdrawn_is_left_to_those_behind() {
        let mut tags = tags(&ids(&[FAST, SLOW, OTHER]), &[(0, 30), (1, 10), (0, 5), (2, 7)]);
        tags.withdraw(1);
        assert_eq!((runs(&tags), tags.queued(1), tags.total().get()), (vec![(0, 35), (2, 7)], Bytes::ZERO, 42));
        tags.withdraw(0);
        assert_eq!((runs(&tags), tags.queued(0), tags.total().get()), (vec![(2, 7)], Bytes::ZERO, 7));
    }

    #[test]
    fn what_waited_for_a_subflow_that_is_gone_is_tagged_anew() {
        let (before, after) = (ids(&[FAST, SLOW, OTHER]), ids(&[FAST, OTHER]));
        let mut all = tags(&before, &[(0, 3000), (1, 2500), (2, 1000)]);
        let mut known = Vec::new();
        all.adopt(&view(&after, 10), |tags| {
            known.push((tags.queued(0).get(), tags.queued(1).get()));
            Some(known.len() % 2)
        });
        assert_eq!(known, [(3000, 1000), (3000, 2000), (4000, 2000)]);
        assert_eq!(runs(&all), [(0, 3000), (1, 1000), (0, 1000), (1, 1500)]);
        assert!(all.is_of(&view(&after, 10)) && !all.is_of(&view(&before, 10)));

        let mut none = tags(&before, &[(0, 3000), (1, 2500), (2, 1000)]);
        none.adopt(&view(&after, 10), |_| None);
        assert_eq!((runs(&none), none.queued(1)), (vec![(0, 3000)], Bytes::ZERO));
    }

    proptest! {
        /// Against a list with one entry per byte.
        #[test]
        fn tags_are_the_bytes(pushes in prop::collection::vec((0usize..3, 0u64..9), 0..20),
                              removals in prop::collection::vec((0u64..60, 0u64..30), 0..12)) {
            let mut tags = tags(&ids(&[FAST, SLOW, OTHER]), &pushes);
            let mut bytes: Vec<usize> = pushes.iter().flat_map(|&(place, n)| (0..n).map(move |_| place)).collect();
            for (skip, length) in removals {
                // A removal that reaches beyond the tags cuts them off.
                match length {
                    26.. => tags.truncate(Bytes::new(skip)),
                    _ => tags.remove(Bytes::new(skip), Bytes::new(length)),
                }
                let length = if length > 25 { u64::MAX / 2 } else { length };
                let end = (skip + length).min(bytes.len() as u64) as usize;
                bytes.drain((skip as usize).min(end)..end);
                let mut expected: Vec<(usize, u64)> = Vec::new();
                for &place in &bytes {
                    match expected.last_mut() {
                        Some(last) if last.0 == place => last.1 += 1,
                        _ => expected.push((place, 1)),
                    }
                }
                prop_assert_eq!(runs(&tags), expected);
                for place in 0..3 {
                    let count = bytes.iter().filter(|&&at| at == place).count() as u64;
                    prop_assert_eq!(tags.queued(place).get(), count);
                }
                prop_assert_eq!(tags.total().get(), bytes.len() as u64);
            }
        }
    }
}
