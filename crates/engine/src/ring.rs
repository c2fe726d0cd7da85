//! A queue whose memory follows what is in it.
//!
//! Segments under way come and go with a sender's window, and are most when slow start ends. A deque doubles when it is
//! full, moves all it holds and keeps its largest size. This one is a row of blocks of two kilobytes: it grows block by
//! block, moves nothing, leaves no holes in the heap for the next larger size, and gives a block back as soon as it is
//! empty. One empty block is kept, so that a steady state takes no allocation.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// Bytes of a block, at most.
const BLOCK: usize = 2048;
/// Places by which the first block grows, beside a quarter of its length.
const LEAST_GROWTH: usize = 4;

/// The queue.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// The first block. While it is the only one, its room grows with what is in it.
    front: VecDeque<T>,
    more: Option<Box<More<T>>>,
}

/// The blocks of a queue beside its first.
#[derive(Clone, Debug)]
struct More<T> {
    /// The blocks behind the first. None is empty, and all but the last are full.
    blocks: VecDeque<VecDeque<T>>,
    /// An empty block for the next elements, with its room, or without any.
    spare: VecDeque<T>,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { front: VecDeque::new(), more: None }
    }
}

impl<T> Ring<T> {
    /// Elements of a full block: a power of two, so that positions are found by shifting.
    const FULL: usize = 1 << (BLOCK / size_of::<T>()).ilog2();

    #[inline]
    pub(crate) fn len(&self) -> usize {
        let Some(more) = &self.more else { return self.front.len() };
        let last = more.blocks.back().map_or(0, VecDeque::len);
        self.front.len() + more.blocks.len().saturating_sub(1) * Self::FULL + last
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.front.is_empty()
    }

    #[inline]
    pub(crate) fn push_back(&mut self, element: T) {
        if self.blocks().is_none() && self.front.len() < self.front.capacity().min(Self::FULL) {
            return self.front.push_back(element);
        }
        self.push_behind(element);
    }

    /// Puts an element where there is no room in the first block, or others stand behind it.
    fn push_behind(&mut self, element: T) {
        if let Some(last) = self.more.as_mut().and_then(|more| more.blocks.back_mut())
            && last.len() < Self::FULL
        {
            return last.push_back(element);
        }
        self.grow();
        match self.more.as_mut().and_then(|more| more.blocks.back_mut()) {
            Some(last) => last.push_back(element),
            None => self.front.push_back(element),
        }
    }

    /// Makes room in the first block, or adds one.
    #[cold]
    fn grow(&mut self) {
        if self.blocks().is_none() && self.front.len() < Self::FULL {
            let growth = (self.front.len() / 4 + LEAST_GROWTH).min(Self::FULL - self.front.len());
            return self.front.reserve_exact(growth);
        }
        let new = || Box::new(More { blocks: VecDeque::new(), spare: VecDeque::new() });
        let more = self.more.get_or_insert_with(new);
        let mut block = std::mem::take(&mut more.spare);
        block.reserve_exact(Self::FULL);
        more.blocks.push_back(block);
    }

    /// Puts one in before the one at `index`.
    pub(crate) fn insert(&mut self, index: usize, element: T) {
        let mut at = self.len();
        assert!(index <= at, "positions are inside the queue");
        self.push_back(element);
        // From the back on, to where it belongs: what is put in between is near the end or rare.
        while at > index {
            self.swap_with_next(at - 1);
            at -= 1;
        }
    }

    /// Exchanges the one at `index` and the next.
    fn swap_with_next(&mut self, index: usize) {
        let first = self.front.len();
        if index + 1 < first {
            return self.front.swap(index, index + 1);
        }
        let Some(more) = &mut self.more else { return };
        if index + 1 == first {
            return std::mem::swap(&mut self.front[index], &mut more.blocks[0][0]);
        }
        let (block, at) = ((index - first) / Self::FULL, (index - first) % Self::FULL);
        if at + 1 < Self::FULL {
            return more.blocks[block].swap(at, at + 1);
        }
        let mut pair = more.blocks.range_mut(block..block + 2);
        if let (Some(one), Some(next)) = (pair.next(), pair.next()) {
            std::mem::swap(&mut one[at], &mut next[0]);
        }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let element = self.front.pop_front();
        if self.front.is_empty() && self.more.is_some() {
            self.next_block();
        }
        element
    }

    /// Makes the second block the first.
    #[cold]
    fn next_block(&mut self) {
        let Some(more) = &mut self.more else { return };
        if let Some(next) = more.blocks.pop_front() {
            let empty = std::mem::replace(&mut self.front, next);
            if empty.capacity() >= Self::FULL {
                more.spare = empty;
            }
        }
    }

    pub(crate) fn front(&self) -> Option<&T> {
        self.front.front()
    }

    pub(crate) fn front_mut(&mut self) -> Option<&mut T> {
        self.front.front_mut()
    }

    #[inline]
    pub(crate) fn back(&self) -> Option<&T> {
        match self.blocks() {
            Some(blocks) => blocks.back()?.back(),
            None => self.front.back(),
        }
    }

    pub(crate) fn back_mut(&mut self) -> Option<&mut T> {
        match &mut self.more {
            Some(more) if !more.blocks.is_empty() => more.blocks.back_mut()?.back_mut(),
            _ => self.front.back_mut(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        match index.checked_sub(self.front.len()) {
            None => self.front.get(index),
            Some(behind) => self.more.as_ref()?.blocks.get(behind / Self::FULL)?.get(behind % Self::FULL),
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        match index.checked_sub(self.front.len()) {
            None => self.front.get_mut(index),
            Some(behind) => self.more.as_mut()?.blocks.get_mut(behind / Self::FULL)?.get_mut(behind % Self::FULL),
        }
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.front.iter().chain(self.more.iter().flat_map(|more| more.blocks.iter().flatten()))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.front.iter_mut().chain(self.more.iter_mut().flat_map(|more| more.blocks.iter_mut().flatten()))
    }

    /// Those from `index` on.
    pub(crate) fn iter_from(&self, index: usize) -> impl Iterator<Item = &T> {
        let first = self.front.len();
        let behind = index.saturating_sub(first);
        let (block, at) = (behind / Self::FULL, behind % Self::FULL);
        let blocks = self.more.iter().flat_map(move |more| more.blocks.iter().skip(block));
        self.front.range(index.min(first)..).chain(blocks.flatten().skip(at))
    }

    /// The first position whose element does not meet `before`, which all others behind it must not meet either.
    pub(crate) fn partition_point(&self, mut before: impl FnMut(&T) -> bool) -> usize {
        let Some(blocks) = self.blocks() else { return self.front.partition_point(before) };
        if self.front.back().is_some_and(|last| !before(last)) {
            return self.front.partition_point(before);
        }
        let block = blocks.partition_point(|block| block.back().is_some_and(&mut before));
        let within = blocks.get(block).map(|block| block.partition_point(before));
        within.map_or(self.len(), |within| self.front.len() + block * Self::FULL + within)
    }

    /// Takes those from `from` on out.
    pub(crate) fn split_off(&mut self, from: usize) -> Vec<T> {
        let mut taken = Vec::with_capacity(self.len().saturating_sub(from));
        while self.len() > from
            && let Some(element) = self.pop_back()
        {
            taken.push(element);
        }
        taken.reverse();
        taken
    }

    fn pop_back(&mut self) -> Option<T> {
        let Some(more) = self.more.as_mut().filter(|more| !more.blocks.is_empty()) else {
            return self.front.pop_back();
        };
        let last = more.blocks.back_mut()?;
        let element = last.pop_back();
        if last.is_empty() {
            more.spare = more.blocks.pop_back().unwrap_or_default();
        }
        element
    }

    /// Places that it has memory for.
    pub(crate) fn capacity(&self) -> usize {
        let more = self
            .more
            .as_ref()
            .map_or(0, |more| more.blocks.iter().map(VecDeque::capacity).sum::<usize>() + more.spare.capacity());
        self.front.capacity() + more
    }

    /// Frees its memory if nothing is in it: for queues that run empty when a connection idles.
    #[inline]
    pub(crate) fn release(&mut self) {
        if self.is_empty() && self.front.capacity() > 0 {
            *self = Ring::default();
        }
    }

    /// The blocks behind the first, if there are any.
    #[inline]
    fn blocks(&self) -> Option<&VecDeque<VecDeque<T>>> {
        self.more.as_ref().map(|more| &more.blocks).filter(|blocks| !blocks.is_empty())
    }
}

impl<T> Index<usize> for Ring<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        self.get(index).expect("positions are inside the queue")
    }
}

impl<T> IndexMut<usize> for Ring<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        self.get_mut(index).expect("positions are inside the queue")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FULL: usize = Ring::<u64>::FULL;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn agrees_with_a_deque(ops in prop::collection::vec((0u8..6, 0usize..900), 1..60)) {
            let (mut ring, mut model, mut next) = (Ring::default(), VecDeque::new(), 0u64);
            for (op, count) in ops {
                match op {
                    0 | 1 => for _ in 0..count {
                        ring.push_back(next);
                        model.push_back(next);
                        next += 2;
                    },
                    2 | 3 => for _ in 0..count {
                        prop_assert_eq!(ring.pop_front(), model.pop_front());
                        ring.release();
                    },
                    4 => {
                        let at = count.min(model.len());
                        let between = if at == 0 { 0 } else { model[at - 1] };
                        ring.insert(at, between);
                        model.insert(at, between);
                    }
                    _ => {
                        let from = model.len() - count.min(model.len());
                        prop_assert_eq!(ring.split_off(from), Vec::from(model.split_off(from)));
                    }
                }
                prop_assert!(ring.iter().eq(&model) && ring.iter_mut().map(|held| *held).eq(model.iter().copied()));
                prop_assert_eq!((ring.len(), ring.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!((ring.front(), ring.back()), (model.front(), model.back()));
                prop_assert_eq!(ring.back_mut().copied(), model.back().copied());
                for index in [0, 1, count, FULL, model.len() / 2, model.len().saturating_sub(1), model.len()] {
                    prop_assert_eq!(ring.get(index), model.get(index));
                    prop_assert_eq!(ring.get_mut(index).copied(), model.get(index).copied());
                    prop_assert!(ring.iter_from(index).eq(model.iter().skip(index)), "from {}", index);
                    let bound = index as u64 * 2;
                    prop_assert_eq!(ring.partition_point(|&n| n < bound), model.partition_point(|&n| n < bound));
                }
                prop_assert!(ring.capacity() > 0 || ring.is_empty());
                prop_assert!(ring.capacity() <= model.len() + 3 * FULL, "{} for {}", ring.capacity(), model.len());
            }
        }
    }

    /// A connection with little under way has memory for little.
    #[test]
    fn a_short_queue_takes_less_than_a_block() {
        let mut ring = Ring::default();
        (0..10u64).for_each(|n| ring.push_back(n));
        assert!(ring.capacity() <= 16, "{}", ring.capacity());
        (0..10).for_each(|n| assert_eq!(ring.pop_front(), Some(n)));
        ring.release();
        assert_eq!(ring.capacity(), 0, "nothing is kept where nothing is under way");
    }

    /// A queue that moves on without growing takes no allocation: the block that runs empty in front is the next at the
    /// end.
    #[test]
    fn a_steady_state_keeps_its_blocks() {
        let mut ring = Ring::default();
        (0..1000u64).for_each(|n| ring.push_back(n));
        let blocks = |ring: &Ring<u64>| {
            let more = ring.more.as_ref().expect("more than a block");
            let starts = more.blocks.iter().chain([&ring.front, &more.spare]).filter(|block| block.capacity() > 0);
            let mut starts: Vec<_> = starts.map(|block| block.as_slices().0.as_ptr() as usize / BLOCK).collect();
            starts.sort_unstable();
            starts.len()
        };
        let turn = |ring: &mut Ring<u64>| {
            ring.push_back(0);
            assert!(ring.pop_front().is_some());
        };
        (0..FULL).for_each(|_| turn(&mut ring));
        let most = blocks(&ring);
        for _ in 0..10 * FULL {
            turn(&mut ring);
            assert!(blocks(&ring).abs_diff(most) <= 1, "{} and {most}", blocks(&ring));
        }
    }
}
