//! Original segments of one subflow that are not acknowledged there, as they left.
//!
//! RFC 8684 §3.3.2 and §3.3.6: data is kept until it is acknowledged at the data level *and* by every subflow that
//! carried it. A repetition on the same subflow has the same bytes under the same sequence numbers, and the same
//! mapping and checksum, also when the data came through elsewhere meanwhile: middleboxes and the peer may hold the
//! first copy (§6).
//!
//! Bytes that follow one another in the stream and in memory are one run, however many segments carried them. A mapping
//! of one segment without a checksum is what the scoreboard knows of that segment, and is not kept here.

use crate::recovery::Sent;
use crate::ring::Ring;
use bytes::Bytes as Payload;
use std::borrow::Cow;

/// A mapping as it was declared: of one segment, or of a burst of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Declared {
    /// First subflow offset.
    pub(crate) start: u64,
    /// First data offset.
    pub(crate) data: u64,
    /// Bytes, the DATA_FIN not counted: less than 64 KiB.
    pub(crate) length: u16,
    /// Checksum, if checksums were negotiated.
    pub(crate) checksum: Option<u16>,
    /// Ends with the DATA_FIN.
    pub(crate) data_fin: bool,
}

impl Declared {
    fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }
}

/// Consecutive bytes of one piece of memory.
#[derive(Default, Debug)]
struct Run {
    /// First subflow offset.
    start: u64,
    /// First data offset.
    data: u64,
    length: u64,
    memory: Payload,
    /// Position of the first in `memory`.
    at: usize,
}

impl Run {
    fn end(&self) -> u64 {
        self.start + self.length
    }

    fn slice(&self, start: u64, length: u64) -> &[u8] {
        let from = self.at + (start - self.start) as usize;
        &self.memory[from..from + length as usize]
    }

    /// Tells whether bytes that lie at `at` in `memory` go on where this ends, in the stream and in memory.
    fn goes_on_with(&self, data: u64, memory: &Payload, at: usize) -> bool {
        let same = std::ptr::eq(self.memory.as_ptr(), memory.as_ptr()) && self.memory.len() == memory.len();
        same && self.data + self.length == data && self.at + self.length as usize == at
    }
}

/// Runs by subflow offset, in order, without gaps.
#[derive(Debug, Default)]
pub(crate) struct Originals {
    runs: Ring<Run>,
    /// Mappings over several segments, and those with a checksum; disjoint.
    maps: Ring<Declared>,
}

impl Originals {
    /// `sent` leaves for the first time, behind all others, with what lies at `at` in `memory`.
    pub(crate) fn push(&mut self, sent: &Sent, memory: Cow<'_, Payload>, at: usize) {
        let length = u64::from(sent.len);
        match self.runs.back_mut() {
            Some(last) if last.goes_on_with(sent.data, &memory, at) => last.length += length,
            _ => {
                let memory = memory.into_owned();
                self.runs.push_back(Run { start: sent.start, data: sent.data, length, memory, at });
            }
        }
    }

    /// Keeps the mapping of the segments that were sent last.
    pub(crate) fn declare(&mut self, map: Declared) {
        self.maps.push_back(map);
    }

    /// `length` bytes that were sent from subflow offset `start` on, piece by piece.
    pub(crate) fn bytes(&self, start: u64, length: u64) -> impl Iterator<Item = &[u8]> {
        let end = start + length;
        let runs = self.runs.iter_from(self.index(start)).take_while(move |run| run.start < end);
        runs.map(move |run| {
            let from = start.max(run.start);
            run.slice(from, end.min(run.end()) - from)
        })
    }

    /// `length` bytes of one segment from subflow offset `start` on, if they were sent before.
    pub(crate) fn payload(&self, start: u64, length: usize) -> Option<Payload> {
        // New data lies behind all that was sent.
        if self.runs.back().is_none_or(|last| last.end() <= start) {
            return None;
        }
        let run = self.runs.get(self.index(start)).filter(|run| run.start <= start)?;
        let from = run.at + (start - run.start) as usize;
        Some(run.memory.slice(from..from + length))
    }

    /// The mapping of subflow offset `at`, if it is not that of a segment without a checksum.
    pub(crate) fn map(&self, at: u64) -> Option<Declared> {
        let index = self.maps.partition_point(|map| map.end() <= at);
        self.maps.get(index).filter(|map| map.start <= at).copied()
    }

    /// Returns true if the byte at data offset `at` is among these bytes, or in a mapping with a checksum, which can be
    /// checked only when all of it has arrived.
    pub(crate) fn hold(&self, at: u64) -> bool {
        let own = self.runs.iter().any(|run| (run.data..run.data + run.length).contains(&at));
        let covers = |map: &Declared| (map.data..map.data + u64::from(map.length)).contains(&at);
        own || self.maps.iter().any(|map| map.checksum.is_some() && covers(map))
    }

    /// The peer has all segments that ended at or before subflow offset `kept_from`.
    pub(crate) fn release(&mut self, kept_from: u64) {
        if self.runs.is_empty() {
            return;
        }
        while self.maps.front().is_some_and(|map| map.end() <= kept_from) {
            self.maps.pop_front();
        }
        while self.runs.front().is_some_and(|run| run.end() <= kept_from) {
            self.runs.pop_front();
        }
        if let Some(run) = self.runs.front_mut().filter(|run| run.start < kept_from) {
            let gone = kept_from - run.start;
            run.start = kept_from;
            run.data += gone;
            run.length -= gone;
            run.at += gone as usize;
        }
        if self.runs.is_empty() {
            // Most connections are idle most of the time.
            *self = Originals::default();
        }
    }

    /// The run that ends behind subflow offset `at`.
    fn index(&self, at: u64) -> usize {
        self.runs.partition_point(|run| run.end() <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::{Config, Recovery};
    use anabranch_units::{Duration, Instant};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// Segments of these lengths that carry the data from `data` on, as they are recorded when they are sent.
    fn segments(data: u64, lengths: &[u32]) -> Vec<Sent> {
        let config = Config {
            sack: true,
            rack: true,
            tlp: true,
            dup_threshold: 3,
            early_retransmit: false,
            single_repair: false,
            max_rto: Duration::from_secs(60),
        };
        let mut recovery = Recovery::new(config, 1, Instant::ZERO);
        let mut at = data;
        for length in lengths {
            recovery.on_sent(Instant::ZERO, *length, at, 0);
            at += u64::from(*length);
        }
        recovery.iter().collect()
    }

    fn map(start: u64, length: u16, checksum: Option<u16>) -> Declared {
        Declared { start, data: start - 1, length, checksum, data_fin: false }
    }

    /// The first of two segments that share a mapping is acknowledged and released. Only with a checksum does its data
    /// wait for the other.
    #[test]
    fn data_waits_for_the_rest_of_its_checksum() {
        for checksum in [None, Some(7)] {
            let mut originals = Originals::default();
            for sent in segments(0, &[4, 4]) {
                originals.push(&sent, Cow::Owned(Payload::from_static(b"abcd")), 0);
            }
            originals.declare(map(1, 8, checksum));
            originals.release(5);
            assert_eq!((originals.hold(0), originals.hold(4)), (checksum.is_some(), true));
            assert_eq!(originals.map(6), Some(map(1, 8, checksum)), "the second is repeated with the mapping of both");
            originals.release(9);
            assert_eq!((originals.hold(0), originals.map(6)), (false, None));
        }
    }

    #[test]
    fn a_segment_cut_in_two_is_found_in_what_was_sent() {
        let mut originals = Originals::default();
        for (sent, payload) in segments(0, &[4, 4]).iter().zip([&b"abcd"[..], b"efgh"]) {
            originals.push(sent, Cow::Owned(Payload::from_static(payload)), 0);
        }
        assert_eq!(originals.payload(6, 2), Some(Payload::from_static(b"fg")));
        assert_eq!(originals.payload(9, 1), None);
        assert_eq!(originals.bytes(3, 4).collect::<Vec<_>>(), [b"cd", b"ef"]);
        originals.release(5);
        assert_eq!((originals.payload(4, 1), originals.hold(3), originals.hold(4)), (None, false, true));
        originals.release(9);
        assert!(originals.runs.is_empty());
    }

    proptest! {
        /// Each segment with bytes of its own.
        #[test]
        fn agrees_with_a_list_of_segments(
            lengths in prop::collection::vec(1u32..9, 1..40),
            jumps in prop::collection::vec(any::<bool>(), 40),
            steps in prop::collection::vec(0usize..5, 40),
        ) {
            let memory = Payload::from_iter(0..=255u8);
            let (mut originals, mut model) = (Originals::default(), VecDeque::new());
            let (mut ahead, mut first) = (0, 0);
            for (n, mut sent) in segments(0, &lengths).into_iter().enumerate() {
                // Another subflow carries a byte in between.
                ahead += u64::from(jumps[n]);
                sent.data = (sent.data + ahead) % 200;
                let at = sent.data as usize;
                originals.push(&sent, Cow::Borrowed(&memory), at);
                model.push_back((sent, memory.slice(at..at + sent.len as usize)));
                for _ in 0..steps[n].saturating_sub(3).min(model.len() - 1) {
                    first = model.pop_front().map_or(first, |(gone, _)| gone.end());
                }
                originals.release(first);
                for (sent, payload) in &model {
                    prop_assert_eq!(originals.payload(sent.start, payload.len()), Some(payload.clone()));
                    let bytes = originals.bytes(sent.start, u64::from(sent.len)).collect::<Vec<_>>().concat();
                    prop_assert_eq!(&bytes[..], payload);
                }
                for data in 0..210 {
                    let contains = |sent: &Sent| (sent.data..sent.data + u64::from(sent.len)).contains(&data);
                    let held = model.iter().any(|(sent, _)| contains(sent));
                    prop_assert_eq!(originals.hold(data), held, "at {}", data);
                }
            }
        }
    }
}
