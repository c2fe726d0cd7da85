//! A queue whose memory follows what is in it.
//!
//! Segments under way come and go with a sender's window, and are most when slow start ends. A deque doubles when it is
//! full and keeps its largest size. This one grows by a quarter, and shrinks when a quarter of its room would have done
//! for a while. A steady state takes no allocation.

use crate::idle::{Usage, release_if_empty};
use std::collections::VecDeque;
use std::ops::{Deref, Index, IndexMut};

/// Places added beside a quarter of the length when the ring grows.
const LEAST_GROWTH: usize = 4;

/// The queue. It is read as the deque that it is.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    queue: VecDeque<T>,
    usage: Usage,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { queue: VecDeque::new(), usage: Usage::default() }
    }
}

impl<T> Ring<T> {
    #[inline]
    pub(crate) fn push_back(&mut self, element: T) {
        self.make_room();
        self.queue.push_back(element);
    }

    /// Puts one in before the one at `index`.
    pub(crate) fn insert(&mut self, index: usize, element: T) {
        self.make_room();
        self.queue.insert(index, element);
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        self.queue.pop_front()
    }

    pub(crate) fn front_mut(&mut self) -> Option<&mut T> {
        self.queue.front_mut()
    }

    pub(crate) fn back_mut(&mut self) -> Option<&mut T> {
        self.queue.back_mut()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.queue.get_mut(index)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.queue.iter_mut()
    }

    /// Takes those from `from` on out.
    pub(crate) fn drain_from(&mut self, from: usize) -> impl Iterator<Item = T> {
        self.queue.drain(from..)
    }

    /// Frees its memory if nothing is in it: for queues that run empty when a connection idles.
    #[inline]
    pub(crate) fn release(&mut self) {
        release_if_empty(&mut self.queue);
    }

    #[inline]
    fn make_room(&mut self) {
        let (used, room) = (self.queue.len() + 1, self.queue.capacity());
        if let Some(enough) = self.usage.note(used, room) {
            self.queue.shrink_to(enough);
        } else if used > room {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.queue.reserve_exact(self.queue.len() / 4 + LEAST_GROWTH);
    }
}

impl<T> Deref for Ring<T> {
    type Target = VecDeque<T>;

    fn deref(&self) -> &VecDeque<T> {
        &self.queue
    }
}

impl<T> Index<usize> for Ring<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        &self.queue[index]
    }
}

impl<T> IndexMut<usize> for Ring<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.queue[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn agrees_with_a_deque(ops in prop::collection::vec((0u8..4, 0usize..150), 1..60)) {
            let (mut ring, mut model, mut next) = (Ring::default(), VecDeque::new(), 0);
            for (op, count) in ops {
                match op {
                    0 => for _ in 0..count {
                        ring.push_back(next);
                        model.push_back(next);
                        next += 1;
                    },
                    1 | 2 => for _ in 0..count {
                        prop_assert_eq!(ring.pop_front(), model.pop_front());
                        ring.release();
                    },
                    _ => {
                        let at = count.min(model.len());
                        ring.insert(at, next);
                        model.insert(at, next);
                        next += 1;
                    }
                }
                prop_assert_eq!(&*ring, &model);
                prop_assert!(ring.capacity() > 0 || ring.is_empty());
            }
        }
    }

    #[test]
    fn memory_follows_what_is_held() {
        let mut ring = Ring::default();
        (0..1000).for_each(|n| ring.push_back(n));
        assert!(ring.capacity() <= 1250, "it grows by a quarter");
        (0..800).for_each(|_| assert!(ring.pop_front().is_some()));
        let mut turns = 0;
        while ring.capacity() >= 1000 {
            ring.push_back(turns);
            assert!(ring.pop_front().is_some());
            turns += 1;
        }
        assert!((402..=404).contains(&ring.capacity()), "{}", ring.capacity());
        assert!(turns <= 50_000, "{turns}");
        // A window that is halved and grows again moves nothing.
        for _ in 0..20 {
            (0..200).for_each(|n| ring.push_back(n));
            (0..200).for_each(|_| assert!(ring.pop_front().is_some()));
            assert!((402..=404).contains(&ring.capacity()));
        }
        (0..200).for_each(|_| assert!(ring.pop_front().is_some()));
        ring.release();
        assert_eq!(ring.capacity(), 0, "nothing is kept where nothing is under way");
    }
}
