//! Chunks in blocks, so that a large store never moves to grow.

use std::ops::{Index, IndexMut};

/// Elements of a block; a power of two.
pub(super) const BLOCK: usize = 64;
/// Places of the first block at first, and by which it grows beside its quarter.
const FEW: usize = 8;

/// Elements that are found by number, added at the end and never taken out.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    /// All but the last are full. The first one's room grows with what is in it.
    blocks: Vec<Vec<T>>,
}

impl<T> Slab<T> {
    /// An empty store; allocates nothing.
    pub(super) const fn new() -> Self {
        Slab { blocks: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.len().saturating_sub(1) * BLOCK + self.blocks.last().map_or(0, Vec::len)
    }

    /// Places that it has memory for.
    pub(super) fn capacity(&self) -> usize {
        self.blocks.len().saturating_sub(1) * BLOCK + self.blocks.last().map_or(0, Vec::capacity)
    }

    pub(super) fn push(&mut self, element: T) {
        if self.blocks.last().is_none_or(|last| last.len() == BLOCK) {
            let first = self.blocks.is_empty();
            self.blocks.push(Vec::with_capacity(if first { FEW } else { BLOCK }));
        }
        let Some(last) = self.blocks.last_mut() else { return };
        if last.len() == last.capacity() {
            last.reserve_exact((last.len() / 4 + FEW).min(BLOCK - last.len()));
        }
        last.push(element);
    }
}

impl<T> Index<usize> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        &self.blocks[index / BLOCK][index % BLOCK]
    }
}

impl<T> IndexMut<usize> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.blocks[index / BLOCK][index % BLOCK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_found_and_room_follows() {
        let mut slab = Slab::new();
        for n in 0..1000 {
            slab.push(n);
            assert!((0..=n).step_by(7).all(|n| slab[n] == n));
            assert_eq!(slab.len(), n + 1);
            assert!((n + 1..=n + 1 + BLOCK).contains(&slab.capacity()), "{} for {n}", slab.capacity());
        }
        slab[500] = 0;
        assert_eq!((slab[499], slab[500], slab[501]), (499, 0, 501));
    }
}
