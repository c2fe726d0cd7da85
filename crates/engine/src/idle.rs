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
}
