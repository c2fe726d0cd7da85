//! A queue whose memory follows what is in it.
//!
//! Segments under way come and go with a sender's window, and are most when slow start ends. A deque doubles when it is
//! full, moves all it holds and keeps its largest size. This one is a row of blocks of two kilobytes: it grows block by
//! block, moves nothing, leaves no holes in the heap for the next larger size, and gives blocks back as they run empty.
//! One empty block is kept, so that a steady state takes no allocation.

use std::ops::{Index, IndexMut};

/// Bytes of a block, at most.
const BLOCK: usize = 2048;
/// Places of the smallest block.
const SMALLEST: usize = 4;

/// The queue.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// Blocks of [`Ring::FULL`] places. While there is only one, it may be smaller. One without elements may stand at
    /// the end, and those in front that have run empty are left without places until there are many.
    blocks: Vec<Box<[T]>>,
    /// Place of the first element, counted from the first block.
    head: usize,
    len: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { blocks: Vec::new(), head: 0, len: 0 }
    }
}

impl<T> Ring<T> {
    /// Places of a block: a power of two, so that positions are found by shifting.
    const FULL: usize = 1 << (BLOCK / size_of::<T>()).ilog2();

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    #[inline]
    pub(crate) fn front_mut(&mut self) -> Option<&mut T> {
        self.get_mut(0)
    }

    #[inline]
    pub(crate) fn back(&self) -> Option<&T> {
        self.get(self.len.wrapping_sub(1))
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len {
            return None;
        }
        let at = self.head + index;
        self.blocks.get(at / Self::FULL)?.get(at % Self::FULL)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.len {
            return None;
        }
        let at = self.head + index;
        self.blocks.get_mut(at / Self::FULL)?.get_mut(at % Self::FULL)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.iter_from(0)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.blocks.iter_mut().flatten().skip(self.head % Self::FULL).take(self.len)
    }

    /// Those from `index` on.
    pub(crate) fn iter_from(&self, index: usize) -> impl DoubleEndedIterator<Item = &T> {
        (index..self.len).map(|index| &self[index])
    }

    /// The first position whose element does not meet `before`, which all others behind it must not meet either.
    pub(crate) fn partition_point(&self, mut before: impl FnMut(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low.midpoint(high);
            if before(&self[middle]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Places that it has memory for.
    pub(crate) fn capacity(&self) -> usize {
        self.blocks.iter().map(|block| block.len()).sum()
    }

    /// Frees its memory if nothing is in it: for queues that run empty when a connection idles.
    #[inline]
    pub(crate) fn release(&mut self) {
        if self.is_empty() && !self.blocks.is_empty() {
            *self = Ring::default();
        }
    }
}

impl<T: Default> Ring<T> {
    #[inline]
    pub(crate) fn push_back(&mut self, element: T) {
        let at = self.head + self.len;
        if let Some(place) = self.blocks.get_mut(at / Self::FULL).and_then(|block| block.get_mut(at % Self::FULL)) {
            *place = element;
            self.len += 1;
        } else {
            self.push_beyond(element);
        }
    }

    /// Makes room, and puts an element there.
    #[cold]
    fn push_beyond(&mut self, element: T) {
        match &mut self.blocks[..] {
            // What is there takes at most half of a small block: moved to its beginning, it leaves the other half free.
            [only] if only.len() < Self::FULL && 2 * self.len <= only.len() => {
                only.rotate_left(self.head);
                self.head = 0;
            }
            [only] if only.len() < Self::FULL => {
                let mut larger = std::mem::take(only).into_vec();
                larger.resize_with((2 * larger.len()).min(Self::FULL), T::default);
                *only = larger.into_boxed_slice();
            }
            [] => self.blocks.push(new_block(SMALLEST.min(Self::FULL))),
            _ => self.blocks.push(new_block(Self::FULL)),
        }
        self.push_back(element);
    }

    /// Puts one in before the one at `index`.
    pub(crate) fn insert(&mut self, index: usize, element: T) {
        assert!(index <= self.len, "positions are inside the queue");
        self.push_back(T::default());
        // From the back on, to where it belongs: what is put in between is near the end or rare.
        for at in (index + 1..self.len).rev() {
            self[at] = std::mem::take(&mut self[at - 1]);
        }
        self[index] = element;
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let element = std::mem::take(self.get_mut(0)?);
        self.len -= 1;
        self.head += 1;
        if self.head.is_multiple_of(Self::FULL) {
            self.leave_block();
        }
        Some(element)
    }

    /// The first block has run empty: it becomes the next at the end, unless there is one already.
    #[cold]
    fn leave_block(&mut self) {
        let left = self.head / Self::FULL;
        let empty = std::mem::take(&mut self.blocks[left - 1]);
        let has_spare = self.len + Self::FULL <= (self.blocks.len() - left) * Self::FULL;
        if !has_spare {
            self.blocks.push(empty);
        }
        if 2 * left >= self.blocks.len() {
            self.blocks.drain(..left);
            self.head = 0;
        }
    }

    /// Takes those from `from` on out.
    pub(crate) fn split_off(&mut self, from: usize) -> Vec<T> {
        let taken = (from..self.len).map(|index| std::mem::take(&mut self[index])).collect();
        self.len = self.len.min(from);
        let needed = (self.head + self.len).div_ceil(Self::FULL) + 1;
        self.blocks.truncate(needed);
        taken
    }
}

fn new_block<T: Default>(places: usize) -> Box<[T]> {
    std::iter::repeat_with(T::default).take(places).collect()
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
    use std::collections::VecDeque;

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
        let places = |ring: &Ring<u64>| {
            let blocks = ring.blocks.iter().filter(|block| !block.is_empty());
            let mut places: Vec<_> = blocks.map(|block| block.as_ptr()).collect();
            places.sort_unstable();
            places
        };
        let turn = |ring: &mut Ring<u64>| {
            ring.push_back(0);
            assert!(ring.pop_front().is_some());
        };
        (0..FULL).for_each(|_| turn(&mut ring));
        let before = places(&ring);
        for _ in 0..10 * FULL {
            turn(&mut ring);
            assert_eq!(places(&ring), before);
        }
    }
}
