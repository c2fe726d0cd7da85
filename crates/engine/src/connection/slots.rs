//! Slots of subflows, and sets of them.

use super::handshake::MAX_HALF_OPEN_JOINS;
use crate::limits::MAX_SUBFLOWS;
use anabranch_units::SubflowId;
use std::num::NonZero;

/// Place of a subflow in its connection while an event is handled.
///
/// It stays the subflow's until the end of the event, and is nobody's once that has gone. Places are given anew between
/// events, for which subflows are named by their identifiers. With debug assertions each access compares those.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    place: usize,
    #[cfg(debug_assertions)]
    id: SubflowId,
}

impl Slot {
    #[inline(always)]
    pub(super) const fn new(place: usize, _id: SubflowId) -> Self {
        Slot {
            place,
            #[cfg(debug_assertions)]
            id: _id,
        }
    }

    #[inline(always)]
    pub(super) const fn place(self) -> usize {
        self.place
    }

    /// Tells whether it was made for the subflow with this identifier, as far as this build knows.
    #[inline(always)]
    pub(super) fn is_of(self, _id: SubflowId) -> bool {
        #[cfg(debug_assertions)]
        return self.id == _id;
        #[cfg(not(debug_assertions))]
        true
    }
}

/// A set of places, one bit each.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Places(u64);

// Those that go and as many as may be added in their stead while one event is handled.
const _: () = assert!(2 * MAX_SUBFLOWS + MAX_HALF_OPEN_JOINS <= u64::BITS as usize, "every place has its bit");

impl Places {
    pub(super) const NONE: Places = Places(0);
    /// All places, including unused ones.
    pub(super) const ALL: Places = Places(u64::MAX);

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, place: usize) {
        self.0 |= 1 << place;
    }

    /// Holds `place` afterwards, or not.
    #[inline(always)]
    pub(super) fn put(&mut self, place: usize, holds: bool) {
        self.0 = self.0 & !(1 << place) | u64::from(holds) << place;
    }

    /// Returns true if `place` is a member.
    #[inline(always)]
    pub(super) fn contains(self, place: usize) -> bool {
        self.0 >> place & 1 != 0
    }

    #[inline(always)]
    pub(super) fn union(self, other: Places) -> Places {
        Places(self.0 | other.0)
    }

    #[inline(always)]
    pub(super) fn intersection(self, other: Places) -> Places {
        Places(self.0 & other.0)
    }

    /// Members less than `place`.
    pub(super) fn below(self, place: usize) -> Places {
        Places(self.0 & ((1 << place) - 1))
    }

    /// Takes the smallest member out.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<usize> {
        let first = self.first()?;
        self.0 &= self.0 - 1;
        Some(first)
    }

    /// The smallest member.
    #[inline(always)]
    pub(super) fn first(self) -> Option<usize> {
        NonZero::new(self.0).map(|members| members.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_in_order_and_know_their_neighbours() {
        let mut set = Places::NONE;
        [3, 15, 0, 7].into_iter().for_each(|place| set.insert(place));
        assert_eq!((set.first(), set.len()), (Some(0), 4));
        assert_eq!([0, 3, 7, 15].map(|place| set.below(place).len()), [0, 1, 2, 3]);
        set.put(3, false);
        assert_eq!((set.len(), set.contains(3), set.contains(7)), (3, false, true));
        assert_eq!((Places::NONE.first(), set.pop(), set.pop(), set.first()), (None, Some(0), Some(7), Some(15)));
        assert_eq!(Places::ALL.below(63).len(), 63);
    }
}
