//! Positions of a sequence space that have passed, when the space may be entered anywhere and some packets are never
//! seen.

use anabranch_units::Instant;
use std::collections::BTreeMap;
use std::ops::Range;

/// Positions that have passed: all from `low` to `high` but for the holes.
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    /// Range from the lowest to the highest position that has passed; `None` before the first byte.
    bounds: Option<Range<i64>>,
    /// Missing and awaited, by where they begin.
    holes: BTreeMap<i64, Hole>,
    /// Missing for good, as far as can be known: acknowledged but never captured, or from before the capture began.
    lost: BTreeMap<i64, Lost>,
    /// Bytes that have passed, each once.
    pub unique: u64,
    /// Bytes that were acknowledged and have not passed.
    pub missing: u64,
    /// Bytes in `holes`.
    awaited: u64,
    /// Most entries in either map.
    limit: usize,
}

/// Bytes missing below bytes that have passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hole {
    /// End of the hole.
    pub end: i64,
    /// Time at which it could first be seen.
    pub opened: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Lost {
    end: i64,
    /// False before the beginning of the capture, where a loss cannot be told.
    acknowledged: bool,
}

/// A hole that is one no longer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Closed {
    /// Range of the hole.
    pub range: Range<i64>,
    /// Time at which it could first be seen.
    pub opened: Instant,
}

/// Result of one insertion.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Inserted {
    /// Passed for the first time, in order.
    pub fresh: Vec<Range<i64>>,
    /// Holes that are closed.
    pub closed: Vec<Closed>,
}

impl Inserted {
    /// Bytes that passed for the first time.
    pub fn bytes(&self) -> u64 {
        self.fresh.iter().map(length).sum()
    }
}

impl Coverage {
    /// Creates an empty coverage that remembers at most `limit` holes.
    pub fn new(limit: usize) -> Self {
        let (holes, lost) = (BTreeMap::new(), BTreeMap::new());
        Coverage { bounds: None, holes, lost, unique: 0, missing: 0, awaited: 0, limit }
    }

    /// The space begins here, whatever passes first; ignored if something has passed.
    pub fn begin_at(&mut self, position: i64) {
        self.bounds.get_or_insert(position..position);
    }

    /// One past the highest position that has passed.
    pub fn high(&self) -> Option<i64> {
        self.bounds.as_ref().map(|bounds| bounds.end)
    }

    /// All below has passed or will never.
    pub fn edge(&self) -> Option<i64> {
        self.holes.keys().next().copied().or(self.high())
    }

    /// Bytes above the edge: what a receiver here would have to hold.
    pub fn held(&self) -> u64 {
        match (self.edge(), self.high()) {
            (Some(edge), Some(high)) => length(&(edge..high)) - self.awaited,
            _ => 0,
        }
    }

    /// True if bytes are awaited.
    pub fn has_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    /// The holes that are there, in order.
    pub fn holes(&self) -> impl Iterator<Item = (i64, Hole)> {
        self.holes.iter().map(|(start, hole)| (*start, *hole))
    }

    /// `range` passes.
    pub fn insert(&mut self, range: Range<i64>, now: Instant) -> Inserted {
        let mut inserted = Inserted::default();
        if range.is_empty() {
            return inserted;
        }
        let bounds = self.bounds.get_or_insert(range.start..range.start).clone();
        if range.start < bounds.start {
            let end = range.end.min(bounds.start);
            inserted.fresh.push(range.start..end);
            self.add_lost(end..bounds.start, false);
        }
        if range.start < bounds.end && range.end > bounds.start && !(self.holes.is_empty() && self.lost.is_empty()) {
            self.fill(&(range.start.max(bounds.start)..range.end.min(bounds.end)), &mut inserted);
        }
        if range.end > bounds.end {
            if range.start > bounds.end {
                self.add_hole(bounds.end..range.start, now);
            }
            inserted.fresh.push(range.start.max(bounds.end)..range.end);
        }
        self.bounds = Some(bounds.start.min(range.start)..bounds.end.max(range.end));
        self.unique += inserted.bytes();
        inserted
    }

    /// All below `position` was received, seen or not. Answers the holes that are thereby closed.
    pub fn acknowledge(&mut self, position: i64) -> Vec<Closed> {
        let Some(bounds) = self.bounds.clone() else { return Vec::new() };
        let mut closed = Vec::new();
        while let Some((start, hole)) = self.holes.first_key_value().map(|(start, hole)| (*start, *hole)) {
            if start >= position {
                break;
            }
            self.holes.pop_first();
            self.awaited -= length(&(start..hole.end));
            if hole.end > position {
                self.holes.insert(position, hole);
                self.awaited += length(&(position..hole.end));
            }
            let range = start..hole.end.min(position);
            self.add_lost(range.clone(), true);
            closed.push(Closed { range, opened: hole.opened });
        }
        if position > bounds.end {
            self.add_lost(bounds.end..position, true);
            self.bounds = Some(bounds.start..position);
        }
        closed
    }

    fn add_hole(&mut self, range: Range<i64>, opened: Instant) {
        self.awaited += length(&range);
        self.holes.insert(range.start, Hole { end: range.end, opened });
        if self.holes.len() > self.limit
            && let Some((start, hole)) = self.holes.pop_first()
        {
            self.awaited -= length(&(start..hole.end));
            self.add_lost(start..hole.end, false);
        }
    }

    fn add_lost(&mut self, range: Range<i64>, acknowledged: bool) {
        if range.is_empty() {
            return;
        }
        self.missing += if acknowledged { length(&range) } else { 0 };
        self.lost.insert(range.start, Lost { end: range.end, acknowledged });
        if self.lost.len() > self.limit {
            self.lost.pop_first();
        }
    }

    /// Takes out of the holes what `range` covers.
    fn fill(&mut self, range: &Range<i64>, inserted: &mut Inserted) {
        let holes: Vec<(i64, Hole)> = overlapping(&self.holes, range, |hole| hole.end).collect();
        for (start, hole) in holes {
            let part = start.max(range.start)..hole.end.min(range.end);
            self.holes.remove(&start);
            self.awaited -= length(&part);
            let rests = [start..part.start, part.end..hole.end];
            for rest in rests.iter().filter(|rest| !rest.is_empty()) {
                self.holes.insert(rest.start, Hole { end: rest.end, opened: hole.opened });
            }
            if rests.iter().all(Range::is_empty) {
                inserted.closed.push(Closed { range: start..hole.end, opened: hole.opened });
            }
            inserted.fresh.push(part);
        }
        let lost: Vec<(i64, Lost)> = overlapping(&self.lost, range, |lost| lost.end).collect();
        for (start, lost) in lost {
            let part = start.max(range.start)..lost.end.min(range.end);
            self.lost.remove(&start);
            self.missing -= if lost.acknowledged { length(&part) } else { 0 };
            for rest in [start..part.start, part.end..lost.end] {
                if !rest.is_empty() {
                    self.lost.insert(rest.start, Lost { end: rest.end, ..lost });
                }
            }
            inserted.fresh.push(part);
        }
        inserted.fresh.sort_unstable_by_key(|part| part.start);
    }
}

/// The entries of `map`, a map from beginnings, that overlap `range`.
pub(crate) fn overlapping<'a, T: Copy>(
    map: &'a BTreeMap<i64, T>,
    range: &Range<i64>,
    end: impl Fn(&T) -> i64 + 'a,
) -> impl Iterator<Item = (i64, T)> + 'a {
    let before = map.range(..range.start).next_back().filter(|(_, entry)| end(entry) > range.start);
    let inside = map.range(range.start..range.end.max(range.start));
    before.into_iter().chain(inside).map(|(start, entry)| (*start, *entry))
}

/// Bytes in a range.
pub(crate) fn length(range: &Range<i64>) -> u64 {
    range.end.saturating_sub(range.start).max(0).unsigned_abs()
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn holes_open_shrink_and_close() {
        let mut coverage = Coverage::new(10);
        assert_eq!(coverage.insert(0..10, at(0)).fresh, [0..10]);
        assert_eq!(coverage.insert(30..40, at(1)).fresh, [30..40]);
        assert_eq!((coverage.edge(), coverage.high(), coverage.held()), (Some(10), Some(40), 10));
        let middle = coverage.insert(15..20, at(2));
        assert_eq!((middle.fresh, middle.closed), (vec![15..20], vec![]));
        assert_eq!(coverage.held(), 15);
        let rest = coverage.insert(5..35, at(3));
        assert_eq!(rest.fresh, [10..15, 20..30]);
        let closed: Vec<_> = rest.closed.iter().map(|hole| (hole.range.clone(), hole.opened)).collect();
        assert_eq!(closed, [(10..15, at(1)), (20..30, at(1))]);
        assert_eq!((coverage.edge(), coverage.unique, coverage.held()), (Some(40), 40, 0));
        assert!(coverage.insert(0..40, at(4)).fresh.is_empty());
    }

    #[test]
    fn what_is_acknowledged_unseen_is_missing_until_it_shows() {
        let mut coverage = Coverage::new(10);
        coverage.insert(0..10, at(0));
        coverage.insert(20..30, at(1));
        assert_eq!(coverage.acknowledge(15), [Closed { range: 10..15, opened: at(1) }]);
        assert_eq!((coverage.edge(), coverage.missing), (Some(15), 5));
        coverage.acknowledge(50);
        assert_eq!((coverage.edge(), coverage.missing), (Some(50), 30));
        assert_eq!(coverage.insert(12..45, at(2)).fresh, [12..15, 15..20, 30..45]);
        assert_eq!((coverage.missing, coverage.unique), (7, 43));
    }

    #[test]
    fn what_lay_before_the_first_byte_counts_when_it_comes() {
        let mut coverage = Coverage::new(10);
        coverage.insert(100..110, at(0));
        assert_eq!(coverage.insert(80..90, at(1)).fresh, [80..90]);
        assert_eq!((coverage.edge(), coverage.missing), (Some(110), 0));
        assert_eq!(coverage.insert(85..105, at(2)).fresh, [90..100]);
        assert_eq!(coverage.unique, 30);
    }

    proptest! {
        /// Against a plain set of positions.
        #[test]
        fn agrees_with_a_set(steps in proptest::collection::vec((0i64..200, 0i64..40, any::<bool>()), 1..60)) {
            let mut coverage = Coverage::new(1000);
            coverage.begin_at(0);
            let (mut seen, mut acknowledged) = (BTreeSet::new(), 0);
            for (start, length, acknowledge) in steps {
                if acknowledge {
                    coverage.acknowledge(start);
                    acknowledged = acknowledged.max(start);
                } else {
                    let before = seen.len();
                    seen.extend(start..start + length);
                    let fresh = coverage.insert(start..start + length, at(0)).bytes();
                    prop_assert_eq!(fresh as usize, seen.len() - before);
                }
                prop_assert_eq!(coverage.unique as usize, seen.len());
                prop_assert_eq!(coverage.missing as usize, (0..acknowledged).filter(|n| !seen.contains(n)).count());
                let edge = (acknowledged..).find(|n| !seen.contains(n)).expect("only so many have been seen");
                prop_assert_eq!(coverage.edge(), Some(edge));
                prop_assert_eq!(coverage.held() as usize, seen.iter().filter(|&&n| n >= edge).count());
            }
        }
    }
}
