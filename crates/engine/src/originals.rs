//! What left on one subflow and is not acknowledged there, as it left.
//!
//! RFC 8684 §3.3.2 and §3.3.6: data is kept until it is acknowledged at the data level *and* by every subflow that carried
//! it. A repetition on the same subflow has the same bytes under the same sequence numbers, and the same mapping and
//! checksum, also when the data came through elsewhere meanwhile: middleboxes and the peer may hold the first copy (§6).

use bytes::Bytes as Payload;
use std::collections::VecDeque;

/// A segment's data as first sent.
#[derive(Debug)]
pub(crate) struct Original {
    /// First subflow offset.
    pub(crate) start: u64,
    /// First data offset.
    pub(crate) data: u64,
    pub(crate) payload: Payload,
    /// The mapping it left with.
    pub(crate) map: Declared,
}

/// A mapping as it was declared: of one segment, or of a burst of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Declared {
    /// First subflow offset.
    pub(crate) start: u64,
    /// First data offset.
    pub(crate) data: u64,
    /// Bytes, the DATA_FIN not counted: less than 64 KiB.
    pub(crate) length: u16,
    /// If checksums were agreed on.
    pub(crate) checksum: Option<u16>,
    /// It ends with the DATA_FIN.
    pub(crate) data_fin: bool,
}

impl Original {
    fn end(&self) -> u64 {
        self.start + self.payload.len() as u64
    }

    /// `length` bytes from subflow offset `start` on.
    pub(crate) fn slice(&self, start: u64, length: usize) -> Payload {
        let from = (start - self.start) as usize;
        self.payload.slice(from..from + length)
    }
}

/// By subflow offset, in order, without gaps.
#[derive(Debug, Default)]
pub(crate) struct Originals(VecDeque<Original>);

impl Originals {
    /// Sent for the first time, behind all others.
    pub(crate) fn push(&mut self, original: Original) -> &Original {
        self.0.push_back(original);
        self.0.back().expect("it was just put there")
    }

    /// The payloads of the last `count` segments, in order.
    pub(crate) fn latest(&self, count: usize) -> impl Iterator<Item = &Payload> {
        self.0.range(self.0.len().saturating_sub(count)..).map(|original| &original.payload)
    }

    /// The last `count` segments, which have just been sent, share this mapping.
    pub(crate) fn share(&mut self, count: usize, map: Declared) {
        let from = self.0.len().saturating_sub(count);
        self.0.range_mut(from..).for_each(|original| original.map = map);
    }

    /// What holds subflow offset `at`.
    pub(crate) fn get(&self, at: u64) -> Option<&Original> {
        // New data lies behind all that was sent.
        if self.0.back().is_none_or(|last| last.end() <= at) {
            return None;
        }
        let index = self.0.partition_point(|original| original.end() <= at);
        self.0.get(index).filter(|original| original.start <= at)
    }

    /// Whether the byte at data offset `at` waits for one of them: it is among them, or in a mapping with a checksum, which is
    /// worth nothing before the whole of it has arrived.
    pub(crate) fn hold(&self, at: u64) -> bool {
        self.0.iter().any(|original| {
            let (data, map) = (original.data, &original.map);
            let own = (data..data + original.payload.len() as u64).contains(&at);
            own || map.checksum.is_some() && (map.data..map.data + u64::from(map.length)).contains(&at)
        })
    }

    /// The peer has everything before subflow offset `una`.
    pub(crate) fn release(&mut self, una: u64) {
        if self.0.is_empty() {
            return;
        }
        while self.0.front().is_some_and(|original| original.end() <= una) {
            self.0.pop_front();
        }
        if self.0.is_empty() {
            // Most connections are idle most of the time.
            self.0 = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first of two segments that share a mapping is acknowledged and released. Only with a checksum does its data wait
    /// for the other.
    #[test]
    fn data_waits_for_the_rest_of_its_checksum() {
        for checksum in [None, Some(7)] {
            let mut originals = Originals::default();
            let map = Declared { start: 1, data: 0, length: 8, checksum, data_fin: false };
            for start in [1, 5] {
                let payload = Payload::from_static(b"abcd");
                originals.push(Original { start, data: start - 1, payload, map });
            }
            originals.release(5);
            assert_eq!((originals.hold(0), originals.hold(4)), (checksum.is_some(), true));
        }
    }

    #[test]
    fn a_segment_cut_in_two_is_found_in_what_was_sent() {
        let mut originals = Originals::default();
        for (start, payload) in [(1, &b"abcd"[..]), (5, b"efgh")] {
            let map = Declared { start, data: start - 1, length: 4, checksum: None, data_fin: false };
            originals.push(Original { start, data: start - 1, payload: Payload::from_static(payload), map });
        }
        assert_eq!(originals.get(6).expect("it was sent").slice(6, 2), "fg");
        assert!(originals.get(9).is_none());
        originals.release(4);
        assert_eq!(originals.get(4).expect("it was sent").slice(4, 1), "d", "the first is not acknowledged as a whole");
        originals.release(5);
        assert!(originals.get(4).is_none());
        originals.release(9);
        assert_eq!(originals.0.capacity(), 0);
    }
}
