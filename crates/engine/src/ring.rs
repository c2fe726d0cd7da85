//! A queue whose memory follows what is in it.
//!
//! What a sender has under way comes and goes with its window, and is largest when slow start ends. A deque doubles when
//! it is full and keeps its largest size. Here elements stand in blocks of [`BLOCK`]: a block that runs empty at the front
//! serves again at the back, and is given back once there are four times as many as are in use.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// Elements in a block.
const BLOCK: usize = 32;
/// Blocks kept for each one in use, itself included: a window that is halved and grows again allocates nothing.
const KEPT_BLOCKS: usize = 4;
/// Room that stays in an empty queue, for connections that send a few segments now and then.
const KEPT: usize = 8;

/// The queue. Either end and any position are O(1), an insertion is O(elements behind it).
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// In order: the blocks in use, all but the last of them full; then empty ones.
    blocks: VecDeque<Vec<T>>,
    /// Elements of the first block that have left; less than a block.
    head: u32,
    len: u32,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { blocks: VecDeque::new(), head: 0, len: 0 }
    }
}

impl<T: Copy> Ring<T> {
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        if index < self.len() { Some(&self[index]) } else { None }
    }

    pub(crate) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    pub(crate) fn back(&self) -> Option<&T> {
        self.get(self.len().wrapping_sub(1))
    }

    /// All, from the first to the last.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.from(0)
    }

    /// Those from position `first` on.
    pub(crate) fn from(&self, first: usize) -> impl DoubleEndedIterator<Item = &T> {
        (first..self.len()).map(|index| &self[index])
    }

    /// The first position whose element does not meet `before`, which all others behind it must not meet either.
    pub(crate) fn partition_point(&self, mut before: impl FnMut(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if before(&self[middle]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    pub(crate) fn push_back(&mut self, element: T) {
        let block = (self.head as usize + self.len()) / BLOCK;
        if block == self.blocks.len() {
            // The first one grows: most connections have a few segments under way.
            self.blocks.push_back(if block == 0 { Vec::new() } else { Vec::with_capacity(BLOCK) });
        }
        self.blocks[block].push(element);
        self.len += 1;
    }

    /// Puts one in before the one at `index`.
    pub(crate) fn insert(&mut self, index: usize, element: T) {
        self.push_back(element);
        for at in (index + 1..self.len()).rev() {
            self[at] = self[at - 1];
        }
        self[index] = element;
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let element = *self.front()?;
        self.head += 1;
        self.len -= 1;
        if self.is_empty() {
            self.clear();
        } else if self.head as usize == BLOCK {
            self.head = 0;
            self.rotate();
        }
        Some(element)
    }

    /// Forgets all, and gives back what a queue of a few does not need.
    fn clear(&mut self) {
        self.head = 0;
        match self.blocks.make_contiguous() {
            [only] if only.capacity() <= KEPT => only.clear(),
            _ => self.blocks = VecDeque::new(),
        }
    }

    /// Takes the first block, which has run empty, out of use.
    fn rotate(&mut self) {
        let Some(mut block) = self.blocks.pop_front() else { return };
        let most = KEPT_BLOCKS * self.len().div_ceil(BLOCK);
        if self.blocks.len() < most && block.capacity() == BLOCK {
            block.clear();
            self.blocks.push_back(block);
        }
        self.blocks.truncate(most);
        if self.blocks.capacity() > KEPT_BLOCKS * most {
            self.blocks.shrink_to(most);
        }
    }
}

impl<T> Index<usize> for Ring<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        let at = self.head as usize + index;
        &self.blocks[at / BLOCK][at % BLOCK]
    }
}

impl<T> IndexMut<usize> for Ring<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        let at = self.head as usize + index;
        &mut self.blocks[at / BLOCK][at % BLOCK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(ring: &Ring<u32>, model: &VecDeque<u32>) {
        assert!(ring.iter().eq(model), "the elements agree");
        assert!(ring.iter().rev().eq(model.iter().rev()));
        assert_eq!((ring.len(), ring.is_empty()), (model.len(), model.is_empty()));
        assert_eq!((ring.front(), ring.back(), ring.get(model.len())), (model.front(), model.back(), None));
        let in_use = (ring.head as usize + ring.len()).div_ceil(BLOCK);
        let least = |at: usize| if at + 1 < in_use { BLOCK } else { 0 };
        assert!(
            ring.blocks.iter().enumerate().all(|(at, block)| block.len() >= least(at)),
            "the blocks in use are full"
        );
        assert!(ring.blocks.iter().skip(in_use).all(Vec::is_empty), "the others are empty");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn agrees_with_a_deque(ops in prop::collection::vec((0u8..3, 0usize..150), 1..60)) {
            let (mut ring, mut model, mut next) = (Ring::default(), VecDeque::new(), 0);
            for (op, count) in ops {
                match op {
                    0 => for _ in 0..count {
                        ring.push_back(next);
                        model.push_back(next);
                        next += 1;
                    },
                    1 => for _ in 0..count {
                        prop_assert_eq!(ring.pop_front(), model.pop_front());
                    },
                    _ => {
                        let at = count.min(model.len());
                        ring.insert(at, next);
                        model.insert(at, next);
                        next += 1;
                    }
                }
                check(&ring, &model);
                let sorted = ring.partition_point(|held| *held < next);
                prop_assert_eq!(sorted, model.len());
                prop_assert!(ring.from(count).eq(model.iter().skip(count)));
            }
        }
    }

    #[test]
    fn memory_follows_what_is_held() {
        let mut ring = Ring::default();
        (0..100 * BLOCK).for_each(|n| ring.push_back(n));
        assert_eq!(ring.blocks.len(), 100);
        // A window that is halved and grows again uses the same blocks.
        (0..50 * BLOCK).for_each(|_| assert!(ring.pop_front().is_some()));
        assert_eq!(ring.blocks.len(), 100);
        (0..48 * BLOCK).for_each(|_| assert!(ring.pop_front().is_some()));
        assert_eq!((ring.len(), ring.blocks.len()), (2 * BLOCK, KEPT_BLOCKS * 2));
        (0..2 * BLOCK).for_each(|_| assert!(ring.pop_front().is_some()));
        assert_eq!(ring.blocks.capacity(), 0, "nothing is kept where nothing is under way");
        // A few now and then stay where they are.
        ring.push_back(1);
        assert!(ring.pop_front().is_some());
        assert_eq!((ring.blocks.len(), ring.blocks[0].capacity() <= KEPT), (1, true));
    }
}
