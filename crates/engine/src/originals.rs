//! Memory of a subflow for repeating segments as they first left.
//!
//! RFC 8684 §3.3.2 and §3.3.6: data is kept until it is acknowledged at the data level *and* by every subflow that
//! carried it. A repetition on the same subflow has the same bytes under the same sequence numbers, and the same
//! mapping and checksum, also when the data came through elsewhere meanwhile: middleboxes and the peer may hold the
//! first copy (§6).
//!
//! The scoreboard has the one record of a segment under way: its numbers, and the data that it carried. That data is in
//! the send buffer until it has its DATA_ACK. Kept here is the rest: pieces of the stream that have left the send
//! buffer before a segment of this subflow was acknowledged, and mappings that are not those of one segment without a
//! checksum. Most subflows have neither.

use crate::buffer::{Piece, SendBuffer};
use crate::recovery::Recovery;
use crate::ring::Ring;
use anabranch_wire::Payload;
use bytes::BytesMut;

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

/// A piece of the stream that has its DATA_ACK.
#[derive(Default, Debug)]
struct Kept {
    piece: Piece,
    /// End of the last segment under way here that carried some of it, as a subflow offset.
    until: u64,
}

#[derive(Default, Debug)]
struct Contents {
    /// By data offset, disjoint.
    pieces: Ring<Kept>,
    /// Mappings over several segments, and those with a checksum: by subflow offset, disjoint.
    maps: Ring<Declared>,
}

/// Pieces and mappings, if there are any.
#[derive(Debug, Default)]
pub(crate) struct Originals(Option<Box<Contents>>);

impl Originals {
    /// The first `covered` pieces of the send buffer are about to leave it: keeps those of which a segment of this
    /// subflow under way has carried some.
    pub(crate) fn keep(&mut self, buffer: &SendBuffer, covered: usize, recovery: &Recovery) {
        let Some(end) = covered.checked_sub(1).and_then(|last| buffer.piece(last)).map(Piece::end) else { return };
        for sent in recovery.carrying(buffer.held_from(), end) {
            let (from, to) = (sent.data.max(buffer.held_from()), sent.data + u64::from(sent.len));
            let pieces = (buffer.index_of(from)..covered).filter_map(|index| buffer.piece(index));
            for piece in pieces.take_while(|piece| piece.start() < to) {
                self.keep_until(piece, sent.end());
            }
        }
    }

    fn keep_until(&mut self, piece: &Piece, until: u64) {
        let pieces = &mut self.0.get_or_insert_default().pieces;
        let at = pieces.partition_point(|kept| kept.piece.start() < piece.start());
        match pieces.get_mut(at) {
            Some(kept) if kept.piece.start() == piece.start() => kept.until = kept.until.max(until),
            _ => pieces.insert(at, Kept { piece: piece.clone(), until }),
        }
    }

    /// Keeps the mapping of the segments that were sent last.
    pub(crate) fn declare(&mut self, map: Declared) {
        self.0.get_or_insert_default().maps.push_back(map);
    }

    /// `length` bytes of the stream from `offset` on, which a segment of this subflow under way has carried.
    pub(crate) fn payload(&self, offset: u64, length: usize, buffer: &mut SendBuffer) -> Payload {
        if self.0.is_none() || offset >= buffer.held_from() {
            return buffer.slice(offset, length);
        }
        let rest_of = |from: u64| {
            let piece = self.piece_at(from).or_else(|| buffer.piece(buffer.index_of(from)));
            piece.expect("what is under way is kept").from(from)
        };
        let first = rest_of(offset);
        if first.len() >= length {
            return first.slice(..length);
        }
        let mut joined = BytesMut::with_capacity(length);
        while joined.len() < length {
            let rest = rest_of(offset + joined.len() as u64);
            joined.extend_from_slice(&rest[..rest.len().min(length - joined.len())]);
        }
        joined.freeze().into()
    }

    fn piece_at(&self, offset: u64) -> Option<&Piece> {
        let pieces = &self.0.as_ref()?.pieces;
        let at = pieces.partition_point(|kept| kept.piece.end() <= offset);
        pieces.get(at).map(|kept| &kept.piece).filter(|piece| piece.start() <= offset)
    }

    /// The mapping of subflow offset `at`, if it is not that of a segment without a checksum.
    pub(crate) fn map(&self, at: u64) -> Option<Declared> {
        let maps = &self.0.as_ref()?.maps;
        let index = maps.partition_point(|map| map.end() <= at);
        maps.get(index).filter(|map| map.start <= at).copied()
    }

    /// Returns true if the byte at data offset `at` is in a mapping with a checksum, which can be checked only when all
    /// of it has arrived.
    pub(crate) fn is_in_proof(&self, at: u64) -> bool {
        let covers = |map: &Declared| (map.data..map.data + u64::from(map.length)).contains(&at);
        let mut maps = self.0.iter().flat_map(|contents| contents.maps.iter());
        maps.any(|map| map.checksum.is_some() && covers(map))
    }

    /// The peer has all segments that ended at or before subflow offset `kept_from`.
    #[inline]
    pub(crate) fn release(&mut self, kept_from: u64) {
        if self.0.is_some() {
            self.release_below(kept_from);
        }
    }

    fn release_below(&mut self, kept_from: u64) {
        let Some(contents) = &mut self.0 else { return };
        while contents.maps.front().is_some_and(|map| map.end() <= kept_from) {
            contents.maps.pop_front();
        }
        // One that was carried out of order may stay until those before it have gone.
        while contents.pieces.front().is_some_and(|kept| kept.until <= kept_from) {
            contents.pieces.pop_front();
        }
        if contents.maps.is_empty() && contents.pieces.is_empty() {
            self.0 = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::recovery::{AckIn, Config};
    use crate::rtt::RttEstimator;
    use anabranch_units::{Duration, Instant};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn recovery() -> Recovery {
        let config = Config {
            sack: true,
            rack: true,
            tlp: true,
            dup_threshold: 3,
            early_retransmit: false,
            single_repair: false,
            max_rto: Duration::from_secs(60),
        };
        Recovery::new(config, 1, Instant::ZERO)
    }

    fn acknowledge(recovery: &mut Recovery, ack: u64) {
        let input = AckIn { ack, sack: &[], dsack: None, is_duplicate: false, rtt_from_timestamp: None };
        recovery.on_ack(Instant::ZERO, &input, &RttEstimator::new(Profile::tcp().rto));
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
            originals.declare(map(1, 8, checksum));
            originals.release(5);
            assert_eq!((originals.is_in_proof(0), originals.is_in_proof(4)), (checksum.is_some(), checksum.is_some()));
            assert_eq!(originals.map(6), Some(map(1, 8, checksum)), "the second is repeated with the mapping of both");
            originals.release(9);
            assert_eq!((originals.is_in_proof(0), originals.map(6)), (false, None));
            assert!(originals.0.is_none(), "nothing takes no memory");
        }
    }

    proptest! {
        /// A stream in pieces, carried in order and out of it, with acknowledgments of either level as they come: each
        /// byte under way can be repeated, and memory is kept for nothing else.
        #[test]
        fn what_is_under_way_can_be_repeated(
            pieces in prop::collection::vec(1usize..12, 1..30),
            steps in prop::collection::vec((0u8..6, 0u64..200, 1u64..9), 1..80),
        ) {
            let stream: Vec<u8> = (0..pieces.iter().sum::<usize>()).map(|at| at as u8).collect();
            let (mut buffer, mut originals, mut recovery) = (SendBuffer::default(), Originals::default(), recovery());
            let mut at = 0;
            for length in &pieces {
                // Each in memory of its own.
                buffer.push(&stream[at..at + length].to_vec().into(), *length);
                at += length;
            }
            let (end, mut una, mut next) = (stream.len() as u64, 0, 0);
            let mut under_way = VecDeque::new();
            for (step, place, length) in steps {
                match step {
                    // New data, or what is not acknowledged once more.
                    0..=2 => {
                        let data = if step == 0 { una + place % (end - una).max(1) } else { next };
                        let length = length.min(end.saturating_sub(data)) as u32;
                        if let Some(sent) = recovery.on_sent(Instant::ZERO, length, data, 0) {
                            next = next.max(data + u64::from(length));
                            under_way.push_back((sent.start, data, u64::from(length)));
                        }
                    }
                    3 => {
                        una = (una + place % 20).min(next);
                        let covered = buffer.covered(una);
                        originals.keep(&buffer, covered, &recovery);
                        buffer.release(una);
                    }
                    _ => {
                        let ack = (recovery.snd_una() + length).min(recovery.snd_nxt());
                        acknowledge(&mut recovery, ack);
                        originals.release(recovery.kept_from());
                        under_way.retain(|(start, _, length)| start + length > ack);
                    }
                }
                for (start, data, length) in &under_way {
                    let gone = recovery.snd_una().saturating_sub(*start);
                    let (from, length) = (data + gone, (length - gone) as usize);
                    let payload = originals.payload(from, length, &mut buffer);
                    prop_assert_eq!(&payload[..], &stream[from as usize..from as usize + length]);
                }
                for at in 0..end {
                    let carries = under_way.iter().any(|(_, data, length)| (*data..data + length).contains(&at));
                    prop_assert_eq!(recovery.carries(at), carries, "at {}", at);
                }
                prop_assert!(originals.0.is_none() || !under_way.is_empty());
                let kept = || originals.0.iter().flat_map(|contents| contents.pieces.iter());
                prop_assert!(kept().all(|kept| kept.piece.end() <= una), "the send buffer has the rest");
                let first = under_way.front().map_or(0, |(start, ..)| *start);
                prop_assert!(kept().next().is_none_or(|kept| kept.until > first));
            }
        }
    }
}
