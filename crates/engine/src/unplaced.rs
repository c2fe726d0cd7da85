//! Bytes that a subflow has in order and whose place in the data stream is not certain: their mapping has not arrived,
//! or is only proven once all of it has (RFC 8684 §3.3.1).
//!
//! They are acknowledged on the subflow and not at the data level. What a peer may make us hold is bounded by the
//! caller.

use crate::pieces::Pieces;
use anabranch_wire::Payload;

/// A queue of payloads without gaps, by subflow offset.
#[derive(Debug, Default)]
pub(crate) struct Unplaced {
    start: u64,
    length: u64,
    pieces: Pieces,
}

impl Unplaced {
    /// Adds what begins at `at`, which is where the queue ends if it is not empty.
    pub(crate) fn push(&mut self, at: u64, payload: Payload) {
        if self.length == 0 {
            self.start = at;
        }
        assert!(self.start + self.length == at, "subflow bytes come in order");
        self.length += payload.len() as u64;
        self.pieces.push(payload);
    }

    /// Offset of the first byte; meaningless if there is none.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    /// The pieces that they are in.
    pub(crate) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Returns true if no data is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The first `length` bytes, piece by piece.
    pub(crate) fn first(&self, length: u64) -> impl Iterator<Item = &[u8]> {
        let mut left = length as usize;
        self.pieces.iter().map_while(move |piece| {
            let take = left.min(piece.len());
            left -= take;
            (take > 0).then(|| &piece[..take])
        })
    }

    /// Takes up to `most` bytes off the front, at most one piece.
    pub(crate) fn pop(&mut self, most: u64) -> Option<Payload> {
        let front = self.pieces.front_mut()?;
        let payload = if front.len() as u64 <= most { self.pieces.pop()? } else { front.split_to(most as usize) };
        self.start += payload.len() as u64;
        self.length -= payload.len() as u64;
        if self.length == 0 {
            // Most subflows never hold anything; those that did give the room back.
            self.pieces.release();
        }
        Some(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_where_a_mapping_ends() {
        let mut held = Unplaced::default();
        held.push(7, Payload::from(b"abc"));
        held.push(10, Payload::from(b"defg"));
        assert_eq!((held.start(), held.len()), (7, 7));
        assert_eq!(held.first(5).collect::<Vec<_>>(), [b"abc".as_slice(), b"de"]);
        assert_eq!(held.pop(5).as_deref(), Some(b"abc".as_slice()));
        assert_eq!(held.pop(2).as_deref(), Some(b"de".as_slice()));
        assert_eq!((held.start(), held.len()), (12, 2));
        assert_eq!(held.pop(9).as_deref(), Some(b"fg".as_slice()));
        assert!(held.is_empty() && held.pop(1).is_none());
        held.push(40, Payload::from(b"x"));
        assert_eq!(held.start(), 40);
    }
}
