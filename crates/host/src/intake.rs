//! Memory for received packets: read into a large buffer, kept without copying only if they fill it well.

use crate::LONGEST_PACKET;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::ops::Range;

/// The buffer that packets are read into. A payload of at least half its size leaves with the buffer itself, and
/// another takes its place; a smaller one is copied into memory of its own size. So what is kept of a connection's data
/// takes at most about twice its length, whatever the peer makes of its segments.
pub(crate) struct Intake {
    current: BytesMut,
    /// Buffers lent, oldest first. A buffer without other owners is used again.
    lent: VecDeque<Bytes>,
}

impl Intake {
    pub(crate) fn new() -> Self {
        Intake { current: BytesMut::zeroed(LONGEST_PACKET), lent: VecDeque::new() }
    }

    /// Buffer for the next packet.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        &mut self.current
    }

    /// The packet in it, of this length.
    pub(crate) fn packet(&self, length: usize) -> &[u8] {
        &self.current[..length]
    }

    /// Returns this part of the packet for keeping.
    pub(crate) fn keep(&mut self, range: Range<usize>) -> Bytes {
        if range.len() < LARGE {
            return Bytes::copy_from_slice(&self.current[range]);
        }
        let next = self.reclaim().unwrap_or_else(|| BytesMut::zeroed(LONGEST_PACKET));
        let filled = std::mem::replace(&mut self.current, next).freeze();
        let kept = filled.slice(range);
        self.lent.push_back(filled);
        if self.lent.len() > MOST_LENT {
            self.lent.pop_front();
        }
        kept
    }

    /// Takes one of the oldest buffers, if it has no other owner.
    fn reclaim(&mut self) -> Option<BytesMut> {
        for _ in 0..TRIES.min(self.lent.len()) {
            match self.lent.pop_front()?.try_into_mut() {
                Ok(free) => return Some(free),
                // Someone is slow to read it; those behind it may be free.
                Err(held) => self.lent.push_back(held),
            }
        }
        None
    }
}

const LARGE: usize = LONGEST_PACKET / 2;
/// Buffers remembered: what one receive buffer of 4 MiB holds.
const MOST_LENT: usize = 64;
/// Looked at for a free one.
const TRIES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(intake: &mut Intake, byte: u8, length: usize) -> Bytes {
        intake.space()[..length].fill(byte);
        assert_eq!(intake.packet(length).len(), length);
        intake.keep(0..length)
    }

    #[test]
    fn what_is_kept_stays_as_it_was() {
        let mut intake = Intake::new();
        let kept: Vec<Bytes> = (0..200).map(|n| fill(&mut intake, n, if n % 3 == 0 { 1400 } else { 60_000 })).collect();
        for (n, bytes) in kept.iter().enumerate() {
            assert!(bytes.iter().all(|byte| usize::from(*byte) == n), "packet {n}");
        }
        assert!(intake.lent.len() <= MOST_LENT, "no more than {MOST_LENT} are remembered");
    }

    #[test]
    fn a_large_payload_is_not_copied_and_a_small_one_holds_no_buffer() {
        let mut intake = Intake::new();
        let at = intake.space().as_ptr();
        let small = fill(&mut intake, 1, 1400);
        assert!(small.as_ptr() != at && intake.space().as_ptr() == at);
        assert!(small.try_into_mut().is_ok_and(|owned| owned.capacity() < 3000), "memory of its own");
        let large = fill(&mut intake, 2, LARGE);
        assert!(large.as_ptr() == at && intake.space().as_ptr() != at);
    }

    #[test]
    fn buffers_are_used_again() {
        let mut intake = Intake::new();
        let mut places = std::collections::BTreeSet::new();
        let mut slow = None;
        for n in 0..100 {
            let kept = fill(&mut intake, n, 60_000);
            places.insert(kept.as_ptr() as usize);
            if n == 3 {
                slow = Some(kept);
            }
        }
        assert!(places.len() <= 4, "{} buffers for one packet at a time and one held", places.len());
        assert!(slow.is_some_and(|kept| kept.iter().all(|byte| *byte == 3)));
    }
}
