//! A sequence in blocks of bounded size, addressed by position.
//!
//! A peer decides where in a sorted sequence its next segment belongs. In one deque of many thousands an insertion
//! moves up to half of them; here it moves a part of one block, after a walk over the blocks. A short sequence is one
//! block and costs what a deque costs.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// Elements in a block, at most. A full one is cut in two.
const MOST: usize = 512;

/// The sequence. Either end is O(1), a position elsewhere O(length / 256 + 512).
#[derive(Clone, Debug)]
pub(crate) struct Blocks<T> {
    /// Non-empty blocks, unless there is only one.
    blocks: Vec<VecDeque<T>>,
    len: usize,
}

impl<T> Blocks<T> {
    /// The empty sequence; allocates nothing.
    pub(crate) const fn new() -> Self {
        Blocks { blocks: Vec::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn front(&self) -> Option<&T> {
        self.blocks.first()?.front()
    }

    pub(crate) fn front_mut(&mut self) -> Option<&mut T> {
        self.blocks.first_mut()?.front_mut()
    }

    pub(crate) fn back(&self) -> Option<&T> {
        self.blocks.last()?.back()
    }

    pub(crate) fn back_mut(&mut self) -> Option<&mut T> {
        self.blocks.last_mut()?.back_mut()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let (block, at) = self.locate(index);
        self.blocks.get(block)?.get(at)
    }

    /// All, from the first to the last.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.blocks.iter().flatten()
    }

    /// The first position whose element does not meet `before`, which all others behind it must not meet either.
    pub(crate) fn partition_point(&self, mut before: impl FnMut(&T) -> bool) -> usize {
        let block = match self.blocks.len() {
            0 | 1 => 0,
            _ => self.blocks.partition_point(|block| block.back().is_some_and(&mut before)),
        };
        let behind: usize = self.blocks[..block].iter().map(VecDeque::len).sum();
        behind + self.blocks.get(block).map_or(0, |block| block.partition_point(before))
    }

    /// Puts one in before the one at `index`.
    pub(crate) fn insert(&mut self, index: usize, element: T) {
        assert!(index <= self.len, "positions are inside the sequence");
        if index == self.len {
            return self.push_back(element);
        }
        let (at, offset) = self.locate(index);
        let block = &mut self.blocks[at];
        block.insert(offset, element);
        self.len += 1;
        if block.len() > MOST {
            let rest = block.split_off(MOST / 2);
            self.blocks.insert(at + 1, rest);
        }
    }

    pub(crate) fn push_back(&mut self, element: T) {
        self.len += 1;
        match self.blocks.last_mut() {
            Some(last) if last.len() < MOST => last.push_back(element),
            _ => self.blocks.push(VecDeque::from([element])),
        }
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let first = self.blocks.first_mut()?;
        let element = first.pop_front()?;
        self.len -= 1;
        if first.is_empty() && self.blocks.len() > 1 {
            self.blocks.remove(0);
        }
        Some(element)
    }

    pub(crate) fn pop_back(&mut self) -> Option<T> {
        let last = self.blocks.last_mut()?;
        let element = last.pop_back()?;
        self.len -= 1;
        if last.is_empty() && self.blocks.len() > 1 {
            self.blocks.pop();
        }
        Some(element)
    }

    /// Takes `from..to` out.
    pub(crate) fn remove(&mut self, from: usize, to: usize) {
        let mut left = to - from;
        self.len -= left;
        let (mut at, offset) = self.locate(from);
        let start = at;
        let mut first = offset;
        while left > 0 {
            let block = &mut self.blocks[at];
            let here = left.min(block.len() - first);
            block.drain(first..first + here);
            left -= here;
            if block.is_empty() && self.blocks.len() > 1 {
                self.blocks.remove(at);
            } else {
                at += 1;
            }
            first = 0;
        }
        self.merge(start);
        self.merge(start.wrapping_sub(1));
    }

    /// Joins the block at `at` with the next, if both together are half a block: however they were made, there are no
    /// more blocks than a few for every 256 elements.
    fn merge(&mut self, at: usize) {
        if let Some([block, next]) = self.blocks.get_mut(at..).and_then(<[_]>::first_chunk_mut)
            && block.len() + next.len() <= MOST / 2
        {
            block.append(next);
            self.blocks.remove(at + 1);
        }
    }

    /// Block and position in it.
    fn locate(&self, mut index: usize) -> (usize, usize) {
        for (at, block) in self.blocks.iter().enumerate() {
            if index < block.len() {
                return (at, index);
            }
            index -= block.len();
        }
        (self.blocks.len(), index)
    }
}

impl<T> Index<usize> for Blocks<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        let (block, at) = self.locate(index);
        &self.blocks[block][at]
    }
}

impl<T> IndexMut<usize> for Blocks<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        let (block, at) = self.locate(index);
        &mut self.blocks[block][at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(blocks: &Blocks<u64>, model: &[u64]) {
        assert!(blocks.iter().eq(model), "the elements agree");
        assert!(blocks.iter().rev().eq(model.iter().rev()));
        assert_eq!((blocks.len(), blocks.is_empty()), (model.len(), model.is_empty()));
        assert_eq!((blocks.front(), blocks.back()), (model.first(), model.last()));
        let empty = blocks.blocks.iter().filter(|block| block.is_empty()).count();
        assert!(blocks.blocks.len() <= 1 || empty == 0, "no block is empty beside others");
        assert!(blocks.blocks.iter().all(|block| block.len() <= MOST), "no insertion moves more than a block");
    }

    /// Sorted numbers as they come, and ranges taken out: what a deque would hold.
    fn replay(ops: &[(u8, u64, usize)]) -> Blocks<u64> {
        let (mut blocks, mut model) = (Blocks::new(), Vec::new());
        for &(op, value, count) in ops {
            match op {
                0 => (0..count as u64).for_each(|n| {
                    let new = value + 7 * n;
                    let at = blocks.partition_point(|&held| held < new);
                    assert_eq!(at, model.partition_point(|&held| held < new));
                    blocks.insert(at, new);
                    model.insert(at, new);
                }),
                1 => {
                    let from = (value as usize).min(model.len());
                    let to = (from + count).min(model.len());
                    blocks.remove(from, to);
                    model.drain(from..to);
                }
                2 => {
                    let gone = (!model.is_empty()).then(|| model.remove(0));
                    assert_eq!(blocks.pop_front(), gone);
                }
                _ => assert_eq!(blocks.pop_back(), model.pop()),
            }
            check(&blocks, &model);
            for index in [0, model.len() / 2, model.len().saturating_sub(1), model.len()] {
                assert_eq!(blocks.get(index), model.get(index));
            }
        }
        blocks
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn agrees_with_a_vector(ops in prop::collection::vec((0u8..4, 0u64..3000, 0usize..900), 1..40)) {
            replay(&ops);
        }
    }

    /// Blocks are filled and emptied in turn, but for one element each: they become one again.
    #[test]
    fn no_history_leaves_many_small_blocks() {
        let mut ops = Vec::new();
        for round in 0..100 {
            ops.push((0, 10 * round, 2 * MOST));
            ops.push((1, round + 1, 2 * MOST - 1));
        }
        let blocks = replay(&ops);
        assert!(blocks.blocks.len() <= 3, "{} blocks for {} elements", blocks.blocks.len(), blocks.len());
    }
}
