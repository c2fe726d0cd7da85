//! Memory that an idle connection gives back.

use std::collections::VecDeque;

/// Frees a queue's memory once nothing is in it: most connections are idle most of the time.
///
/// Queues for which this is used run empty only when a sender has nothing under way, so that a busy connection never
/// allocates on their account.
#[inline]
pub(crate) fn release_if_empty<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() && queue.capacity() > 0 {
        *queue = VecDeque::new();
    }
}

/// Peak use of a store, over a while that is the longer the larger the store is.
///
/// Made for stores that run empty again and again while a connection is busy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    most: u32,
    left: u32,
}

impl Usage {
    /// Notes that an element was put in: `used` are there now, and there is room for `room`.
    /// True once in a while, if a quarter of the room would have done since the last time.
    #[inline]
    pub(crate) fn note(&mut self, used: usize, room: usize) -> bool {
        self.most = self.most.max(used as u32);
        self.left = self.left.saturating_sub(1);
        self.left == 0 && self.renew(used, room)
    }

    #[cold]
    fn renew(&mut self, used: usize, room: usize) -> bool {
        let most = std::mem::replace(&mut self.most, used as u32) as usize;
        self.left = LEAST_WHILE.max(16 * room as u32);
        room >= 4 * most.max(LEAST_ROOM)
    }
}

/// Elements that come and go between two looks at the room, at least: making it anew takes about ten allocations.
const LEAST_WHILE: u32 = 1 << 14;
/// Room too small to be worth giving back.
const LEAST_ROOM: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_freed_once_it_is_empty() {
        let mut queue: VecDeque<u64> = (0..100).collect();
        release_if_empty(&mut queue);
        assert_eq!(queue.len(), 100);
        queue.clear();
        release_if_empty(&mut queue);
        assert_eq!(queue.capacity(), 0);
    }

    #[test]
    fn room_that_a_busy_store_used_once_is_found_after_a_while() {
        let mut usage = Usage::default();
        assert!(!usage.note(1000, 1000));
        let mut calls = 0;
        loop {
            calls += 1;
            if usage.note(30 + calls % 2, 1000) {
                break;
            }
        }
        assert!((16_000..=2 * 16_384).contains(&calls), "{calls}");
        assert!((0..100_000).all(|n| !usage.note(300 * (n % 2), 1000)), "what is used again and again stays");
    }
}
