//! A set of positions kept as sorted, disjoint, half-open ranges.
//!
//! Made for sequence space: there are few ranges, they grow at the top and go away at the bottom, and both of those are
//! O(1). Touching ranges are always merged, so the ranges between two gaps are one.

use std::collections::VecDeque;
use std::ops::Deref;

/// The set. Every operation is O(1) at either end, otherwise a binary search plus the ranges it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: VecDeque<(u64, u64)>,
    total: u64,
}

impl RangeSet {
    /// The empty set.
    pub const fn new() -> Self {
        RangeSet { ranges: VecDeque::new(), total: 0 }
    }

    /// Adds `start..end`, merging; answers how many members are new. An empty range adds nothing.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let added = match self.ranges.back_mut() {
            Some(last) if start >= last.0 && start <= last.1 => {
                let added = end.saturating_sub(last.1);
                last.1 += added;
                added
            }
            Some(last) if start < last.0 => self.insert_within(start, end),
            _ => {
                self.ranges.push_back((start, end));
                end - start
            }
        };
        self.total += added;
        added
    }

    /// Takes `start..end` out; answers how many members went.
    pub fn remove(&mut self, start: u64, end: u64) -> u64 {
        if start >= end || self.ranges.front().is_none_or(|first| first.0 >= end) {
            return 0;
        }
        // The common case: the beginning of the first range.
        if let Some(first) = self.ranges.front_mut()
            && start <= first.0
            && end < first.1
        {
            let held = end - first.0;
            first.0 = end;
            self.total -= held;
            return held;
        }
        let i = self.ranges.partition_point(|r| r.1 <= start);
        let j = self.ranges.partition_point(|r| r.0 < end);
        if i >= j {
            return 0;
        }
        let held: u64 = self.ranges.range(i..j).map(|r| r.1 - r.0).sum();
        let left = (self.ranges[i].0, start);
        let right = (end, self.ranges[j - 1].1);
        let (keep_left, keep_right) = (left.0 < left.1, right.0 < right.1);
        let kept = if keep_left { left.1 - left.0 } else { 0 } + if keep_right { right.1 - right.0 } else { 0 };
        match (keep_left, keep_right) {
            (true, true) => {
                self.ranges[i] = left;
                if i + 1 == j {
                    self.ranges.insert(j, right);
                } else {
                    self.ranges[j - 1] = right;
                    self.drop_ranges(i + 1, j - 1);
                }
            }
            (true, false) => {
                self.ranges[i] = left;
                self.drop_ranges(i + 1, j);
            }
            (false, true) => {
                self.ranges[j - 1] = right;
                self.drop_ranges(i, j - 1);
            }
            (false, false) => self.drop_ranges(i, j),
        }
        self.total -= held - kept;
        held - kept
    }

    /// Takes everything below `x` out.
    pub fn remove_below(&mut self, x: u64) {
        while let Some(first) = self.ranges.front_mut() {
            if first.1 <= x {
                self.total -= first.1 - first.0;
                self.ranges.pop_front();
                continue;
            }
            if first.0 < x {
                self.total -= x - first.0;
                first.0 = x;
            }
            break;
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.total = 0;
    }

    /// Returns true if `x` is a member.
    pub fn contains(&self, x: u64) -> bool {
        self.end_of(x).is_some()
    }

    /// The end of the range that holds `x`.
    pub fn end_of(&self, x: u64) -> Option<u64> {
        let i = self.ranges.partition_point(|r| r.1 <= x);
        self.ranges.get(i).filter(|r| r.0 <= x).map(|r| r.1)
    }

    /// Has the set a member in `start..end`?
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        let i = self.ranges.partition_point(|r| r.1 <= start);
        start < end && self.ranges.get(i).is_some_and(|r| r.0 < end)
    }

    /// The position reached after skipping the `skip` lowest members, and the end of the range it lies in.
    /// O(ranges skipped).
    pub fn nth(&self, skip: u64) -> Option<(u64, u64)> {
        let &(start, end) = self.ranges.front()?;
        if skip < end - start {
            return Some((start + skip, end));
        }
        let mut skip = skip;
        for &(start, end) in &self.ranges {
            if skip < end - start {
                return Some((start + skip, end));
            }
            skip -= end - start;
        }
        None
    }

    /// Returns the number of members below `x`. O(1) if `x` is outside the set or in its last range.
    pub fn below(&self, x: u64) -> u64 {
        match self.ranges.back() {
            Some(last) if x >= last.0 => self.total - last.1.saturating_sub(x),
            _ => self.ranges.iter().take_while(|r| r.0 < x).map(|r| r.1.min(x) - r.0).sum(),
        }
    }

    /// The lowest range.
    pub fn first(&self) -> Option<(u64, u64)> {
        self.ranges.front().copied()
    }

    /// Members, not ranges. O(1).
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges from the lowest to the highest.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().copied()
    }

    /// The general case of `insert`: somewhere below the start of the last range.
    fn insert_within(&mut self, start: u64, end: u64) -> u64 {
        let i = self.ranges.partition_point(|r| r.1 < start);
        let j = self.ranges.partition_point(|r| r.0 <= end);
        if i == j {
            self.ranges.insert(i, (start, end));
            return end - start;
        }
        let held: u64 = self.ranges.range(i..j).map(|r| r.1 - r.0).sum();
        let merged = (start.min(self.ranges[i].0), end.max(self.ranges[j - 1].1));
        self.ranges[i] = merged;
        self.drop_ranges(i + 1, j);
        merged.1 - merged.0 - held
    }

    fn drop_ranges(&mut self, from: usize, to: usize) {
        match to - from {
            0 => {}
            // `remove` shifts the shorter side in place; `drain` has a set-up cost that this common case can do
            // without.
            1 => {
                self.ranges.remove(from);
            }
            _ => {
                self.ranges.drain(from..to);
            }
        }
    }
}

/// A set that is empty most of the time: a pointer until something is put in.
///
/// Each subflow has several. It is read as the set that it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct RareSet(Option<Box<RangeSet>>);

static EMPTY: RangeSet = RangeSet::new();

impl Deref for RareSet {
    type Target = RangeSet;

    #[inline]
    fn deref(&self) -> &RangeSet {
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl RareSet {
    /// Inserts a range, as [`RangeSet::insert`].
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> u64 {
        self.0.get_or_insert_default().insert(start, end)
    }

    /// Removes a range, as [`RangeSet::remove`].
    pub(crate) fn remove(&mut self, start: u64, end: u64) -> u64 {
        self.0.as_mut().map_or(0, |set| set.remove(start, end))
    }

    /// Removes members below `x`, as [`RangeSet::remove_below`].
    #[inline]
    pub(crate) fn remove_below(&mut self, x: u64) {
        if let Some(set) = &mut self.0 {
            set.remove_below(x);
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        if let Some(set) = &mut self.0 {
            set.clear();
        }
    }

    /// Gives memory back if nothing is in it: the connection idles.
    pub(crate) fn release(&mut self) {
        self.0.take_if(|set| set.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(ranges: &[(u64, u64)]) -> RangeSet {
        let mut s = RangeSet::new();
        for &(a, b) in ranges {
            s.insert(a, b);
        }
        s
    }

    #[test]
    fn touching_ranges_become_one() {
        let mut s = set(&[(10, 20), (30, 40)]);
        assert_eq!(s.insert(20, 30), 10);
        assert_eq!(s.iter().collect::<Vec<_>>(), [(10, 40)]);
        assert_eq!(s.insert(5, 50), 15);
        assert_eq!(s.total(), 45);
    }

    #[test]
    fn nth_skips_members_and_not_gaps() {
        let s = set(&[(10, 20), (30, 40)]);
        assert_eq!(s.nth(0), Some((10, 20)));
        assert_eq!(s.nth(9), Some((19, 20)));
        assert_eq!(s.nth(10), Some((30, 40)));
        assert_eq!(s.nth(20), None);
    }

    fn check(s: &RangeSet, model: &BTreeSet<u64>) {
        let members: Vec<u64> = s.iter().flat_map(|(a, b)| a..b).collect();
        assert!(members.iter().eq(model.iter()), "the members agree");
        assert_eq!(s.total(), model.len() as u64);
        let ranges: Vec<_> = s.iter().collect();
        assert!(
            ranges.iter().all(|r| r.0 < r.1) && ranges.windows(2).all(|w| w[0].1 < w[1].0),
            "disjoint, not touching"
        );
        for x in 0..70 {
            assert_eq!(s.below(x), model.range(..x).count() as u64);
            assert_eq!(s.contains(x), model.contains(&x));
            assert_eq!(s.nth(x).map(|p| p.0), model.iter().nth(x as usize).copied());
            assert_eq!(s.overlaps(x, x + 3), model.range(x..x + 3).next().is_some());
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_set_of_numbers(ops in prop::collection::vec((0u8..4, 0u64..60, 0u64..12), 1..60)) {
            let (mut s, mut model) = (RangeSet::new(), BTreeSet::new());
            let mut rare = RareSet::default();
            for (op, start, len) in ops {
                let before = model.len() as u64;
                match op {
                    0 | 1 => {
                        model.extend(start..start + len);
                        prop_assert_eq!(s.insert(start, start + len), model.len() as u64 - before);
                        rare.insert(start, start + len);
                    }
                    2 => {
                        model.retain(|&x| x < start || x >= start + len);
                        prop_assert_eq!(s.remove(start, start + len), before - model.len() as u64);
                        rare.remove(start, start + len);
                    }
                    _ => {
                        model.retain(|&x| x >= start / 4);
                        s.remove_below(start / 4);
                        rare.remove_below(start / 4);
                        rare.release();
                    }
                }
                check(&s, &model);
                prop_assert_eq!(&*rare, &s);
            }
        }
    }
}
