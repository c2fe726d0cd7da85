//! Packets under way.
//!
//! A segment is large and crosses several queues. It waits in a pool, and what travels through the network is its number
//! there; whatever becomes of the packet, dropped or delivered, its place is free again when it is dropped. In the steady
//! state nothing is allocated.

use crate::codec::Frame;
use anabranch_wire::{Echo, Segment};
use std::cell::RefCell;
use std::rc::Rc;

/// What the network carries.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    /// A TCP segment.
    Segment(Pooled<Segment>),
    /// A TCP segment as bytes.
    Frame(Pooled<Frame>),
    /// A probe of a path, or its answer.
    Echo(Echo),
    /// A datagram of this UDP workload, numbered among those.
    Datagram(u32),
}

/// Where segments, or frames, wait.
#[derive(Debug)]
pub(crate) struct Pool<T>(Rc<RefCell<Slots<T>>>);

#[derive(Debug)]
struct Slots<T> {
    items: Vec<Option<T>>,
    /// Used last first, so that the same few stay in the cache.
    free: Vec<u32>,
}

/// Something in the pool.
#[derive(Debug)]
pub(crate) struct Pooled<T> {
    slot: u32,
    pool: Pool<T>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool(Rc::new(RefCell::new(Slots { items: Vec::new(), free: Vec::new() })))
    }
}

impl<T> Clone for Pool<T> {
    /// The same pool.
    fn clone(&self) -> Self {
        Pool(Rc::clone(&self.0))
    }
}

impl<T> Pool<T> {
    /// Puts something in.
    #[inline]
    pub(crate) fn put(&self, item: T) -> Pooled<T> {
        let mut slots = self.0.borrow_mut();
        let slot = match slots.free.pop() {
            Some(slot) => {
                slots.items[slot as usize] = Some(item);
                slot
            }
            None => {
                slots.items.push(Some(item));
                (slots.items.len() - 1) as u32
            }
        };
        Pooled { slot, pool: self.clone() }
    }

    /// How many are inside.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let slots = self.0.borrow();
        slots.items.len() - slots.free.len()
    }
}

impl<T> Pooled<T> {
    /// Takes it out.
    #[inline]
    pub(crate) fn take(mut self) -> T {
        let mut slots = self.pool.0.borrow_mut();
        let taken = slots.items[self.slot as usize].take();
        slots.free.push(self.slot);
        drop(slots);
        self.slot = EMPTY;
        taken.expect("a slot holds what it was given until the one handle to it is gone")
    }
}

impl<T: Clone> Clone for Pooled<T> {
    /// A copy with a place of its own, for links that duplicate.
    fn clone(&self) -> Self {
        let copy = self.pool.0.borrow().items[self.slot as usize].clone();
        self.pool.put(copy.expect("a slot holds what it was given until the one handle to it is gone"))
    }
}

impl<T> Drop for Pooled<T> {
    #[inline]
    fn drop(&mut self) {
        if self.slot == EMPTY {
            return;
        }
        let mut slots = self.pool.0.borrow_mut();
        slots.items[self.slot as usize] = None;
        slots.free.push(self.slot);
    }
}

/// The slot of a handle from which was taken.
const EMPTY: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::SubflowSeq;
    use anabranch_wire::{Flags, FlowKey};

    fn segment(seq: u32) -> Segment {
        let flow = FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into());
        Segment::new(flow, Flags::ACK, SubflowSeq::new(seq), SubflowSeq::new(0))
    }

    #[test]
    fn copies_are_their_own_and_places_are_used_again() {
        let pool = Pool::default();
        let (first, second) = (pool.put(segment(1)), pool.put(segment(2)));
        let copy = first.clone();
        assert_eq!(pool.len(), 3);
        assert_eq!(first.take().seq, SubflowSeq::new(1));
        drop(second);
        assert_eq!(pool.len(), 1);
        let third = pool.put(segment(3));
        assert_eq!(copy.take().seq, SubflowSeq::new(1));
        assert_eq!(third.take().seq, SubflowSeq::new(3));
        assert_eq!(pool.len(), 0);
        assert_eq!(pool.0.borrow().items.len(), 3);
    }
}
