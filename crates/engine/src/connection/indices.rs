//! Sets of subflows by their indices.

use super::handshake::MAX_HALF_OPEN_JOINS;
use crate::limits::MAX_SUBFLOWS;
use std::num::NonZero;

/// A set of indices of subflows, one bit each.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Indices(u64);

const _: () = assert!(MAX_SUBFLOWS + MAX_HALF_OPEN_JOINS < u64::BITS as usize, "every index has its bit");

impl Indices {
    pub(super) const NONE: Indices = Indices(0);
    /// All indices, including unused ones.
    pub(super) const ALL: Indices = Indices(u64::MAX);

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, index: usize) {
        self.0 |= 1 << index;
    }

    /// Holds `index` afterwards, or not.
    #[inline(always)]
    pub(super) fn put(&mut self, index: usize, holds: bool) {
        self.0 = self.0 & !(1 << index) | u64::from(holds) << index;
    }

    /// Returns true if `index` is a member.
    pub(super) fn contains(self, index: usize) -> bool {
        self.0 >> index & 1 != 0
    }

    pub(super) fn union(self, other: Indices) -> Indices {
        Indices(self.0 | other.0)
    }

    pub(super) fn intersection(self, other: Indices) -> Indices {
        Indices(self.0 & other.0)
    }

    /// Members less than `len`.
    pub(super) fn below(self, len: usize) -> Indices {
        debug_assert!(len < u64::BITS as usize, "every index has its bit");
        Indices(self.0 & ((1 << len) - 1))
    }

    /// Place of `index` among the members in order.
    pub(super) fn rank(self, index: usize) -> usize {
        self.below(index).len()
    }
}

impl Iterator for Indices {
    type Item = usize;

    /// The smallest member, which is taken out.
    #[inline]
    fn next(&mut self) -> Option<usize> {
        let members = NonZero::new(self.0)?;
        self.0 &= self.0 - 1;
        Some(members.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_in_order_and_know_their_place() {
        let mut set = Indices::NONE;
        [3, 15, 0, 7].into_iter().for_each(|index| set.insert(index));
        assert_eq!(set.collect::<Vec<_>>(), [0, 3, 7, 15]);
        assert_eq!([0, 3, 7, 15].map(|index| set.rank(index)), [0, 1, 2, 3]);
        set.put(3, false);
        assert_eq!((set.len(), set.rank(7)), (3, 1));
        assert_eq!(Indices::ALL.below(63).len(), 63);
        assert_eq!(Indices::ALL.below(2).collect::<Vec<_>>(), [0, 1]);
        assert!(Indices::ALL.below(0).is_empty());
    }
}
