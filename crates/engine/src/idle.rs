//! What an idle connection gives back.

use std::collections::VecDeque;

/// Frees what a queue has grown to once nothing is in it: most connections are idle most of the time, and their queues were
/// sized by their busiest moment. Queues for which this is used run empty only when a sender has nothing under way, so that
/// a busy connection never allocates on their account.
#[inline]
pub(crate) fn release_if_empty<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() && queue.capacity() > KEPT {
        *queue = VecDeque::new();
    }
}

/// The same, and frees half of what a queue has grown to once four times as much fits as is in it. Growing and shrinking are
/// paid for by the elements that came and went in between.
#[inline]
pub(crate) fn release_unused<T>(queue: &mut VecDeque<T>) {
    release_if_empty(queue);
    if queue.capacity() > 4 * queue.len().max(KEPT) {
        queue.shrink_to(2 * queue.len().max(KEPT));
    }
}

/// Room that stays, for connections that send a few segments now and then.
const KEPT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_grew_is_freed_once_it_is_empty() {
        let mut queue: VecDeque<u64> = (0..100).collect();
        release_if_empty(&mut queue);
        assert_eq!(queue.len(), 100);
        queue.clear();
        release_if_empty(&mut queue);
        assert_eq!(queue.capacity(), 0);
        queue.push_back(1);
        let kept = queue.capacity();
        queue.clear();
        release_if_empty(&mut queue);
        assert_eq!(queue.capacity(), kept);
    }

    #[test]
    fn a_queue_that_was_four_times_as_long_is_halved() {
        let mut queue: VecDeque<u64> = (0..1000).collect();
        let mut sizes = vec![];
        while queue.pop_front().is_some() {
            release_unused(&mut queue);
            sizes.push(queue.capacity());
            assert!(queue.capacity() <= 4 * queue.len().max(KEPT));
        }
        sizes.dedup();
        assert!(sizes.len() < 10, "moved {} times", sizes.len());
    }
}
