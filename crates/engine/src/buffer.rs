//! The send buffer: what the application wrote, kept until a DATA_ACK covers it.

use crate::idle::release_if_empty;
use anabranch_wire::Payload;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Written data by stream offset. Pieces are kept as written; nothing is copied unless a segment straddles two.
///
/// A writer that offers a large piece, sees part of it taken and offers the rest later makes one piece, not many: the
/// rest lies in memory where the piece goes on, so the piece just admits more of itself.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    pieces: VecDeque<Piece>,
    start: u64,
    end: u64,
    /// The piece of the latest slice; transmissions are mostly sequential.
    hint: usize,
}

/// A piece of the stream as the application offered it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece {
    /// Offset of its first byte.
    start: u64,
    /// All that was offered.
    offered: Payload,
    /// Bytes taken from the front of the offered piece.
    taken: usize,
}

impl Piece {
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    pub(crate) fn end(&self) -> u64 {
        self.start + self.taken as u64
    }

    /// Its bytes from `offset` on, which it holds.
    pub(crate) fn from(&self, offset: u64) -> Payload {
        let at = (offset - self.start) as usize;
        self.offered.slice(at..self.taken)
    }

    fn data(&self) -> &[u8] {
        &self.offered[..self.taken]
    }

    /// Returns true if `data` is the rest of the offered piece, or its beginning, at the same place in memory.
    fn goes_on_with(&self, data: &[u8]) -> bool {
        let rest = &self.offered[self.taken..];
        rest.len() >= data.len() && std::ptr::eq(rest.as_ptr(), data.as_ptr())
    }
}

impl SendBuffer {
    /// Offset of the first byte without a DATA_ACK.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Offset after the last byte written.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Offset of the first byte in memory: a piece goes as a whole, when the last of it is acknowledged.
    pub(crate) fn held_from(&self) -> u64 {
        self.pieces.front().map_or(self.end, |first| first.start)
    }

    /// Bytes kept in memory.
    pub(crate) fn memory(&self) -> u64 {
        self.end - self.held_from()
    }

    /// Number of pieces kept.
    pub(crate) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// One of them, in the order of the stream.
    pub(crate) fn piece(&self, index: usize) -> Option<&Piece> {
        self.pieces.get(index)
    }

    /// Adds the first `taken` bytes of `data` at the end, at most [`Payload::LONGEST`].
    pub(crate) fn push(&mut self, data: &Bytes, taken: usize) {
        let taken = taken.min(data.len());
        if taken == 0 {
            return;
        }
        let start = self.end;
        self.end += taken as u64;
        match self.pieces.back_mut() {
            Some(last) if last.goes_on_with(&data[..taken]) => last.taken += taken,
            _ => self.pieces.push_back(Piece { start, offered: Payload::from(data.clone()), taken }),
        }
    }

    /// Number of pieces that end at or before `offset`: what [`Self::release`] will forget.
    pub(crate) fn covered(&self, offset: u64) -> usize {
        self.pieces.iter().take_while(|piece| piece.end() <= offset).count()
    }

    /// Forgets everything before `offset`.
    pub(crate) fn release(&mut self, offset: u64) {
        self.start = self.start.max(offset.min(self.end));
        while self.pieces.front().is_some_and(|piece| piece.end() <= self.start) {
            self.pieces.pop_front();
            self.hint = self.hint.saturating_sub(1);
        }
        release_if_empty(&mut self.pieces);
    }

    /// The bytes `offset..offset + length`, which must be in memory here: a part of a piece as the application offered
    /// it, or a copy of bytes that straddle two.
    pub(crate) fn slice(&mut self, offset: u64, length: usize) -> Payload {
        if length == 0 {
            return Payload::new();
        }
        assert!(offset >= self.held_from() && offset + length as u64 <= self.end, "only data in the buffer is sent");
        let index = self.index_of(offset);
        self.hint = index;
        let piece = &self.pieces[index];
        let at = (offset - piece.start) as usize;
        if at + length <= piece.taken {
            return piece.offered.slice(at..at + length);
        }
        let mut joined = BytesMut::with_capacity(length);
        joined.extend_from_slice(&piece.data()[at..]);
        for piece in self.pieces.range(index + 1..) {
            let missing = length - joined.len();
            if missing == 0 {
                break;
            }
            joined.extend_from_slice(&piece.data()[..missing.min(piece.taken)]);
        }
        joined.freeze().into()
    }

    /// The index of the piece that holds `offset`, which must be in memory.
    pub(crate) fn index_of(&self, offset: u64) -> usize {
        let holds =
            |index: usize| self.pieces.get(index).is_some_and(|piece| (piece.start..piece.end()).contains(&offset));
        if holds(self.hint) {
            return self.hint;
        }
        if holds(self.hint + 1) {
            return self.hint + 1;
        }
        self.pieces.partition_point(|piece| piece.start <= offset) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(buffer: &mut SendBuffer, data: &'static [u8]) {
        buffer.push(&Bytes::from_static(data), data.len());
    }

    #[test]
    fn slices_cross_pieces_and_survive_release() {
        let mut buffer = SendBuffer::default();
        push(&mut buffer, b"abcde");
        push(&mut buffer, b"fg");
        push(&mut buffer, b"hijkl");
        assert_eq!(buffer.slice(3, 6)[..], *b"defghi");
        buffer.release(6);
        assert_eq!((buffer.start(), buffer.end()), (6, 12));
        assert_eq!(buffer.slice(6, 6)[..], *b"ghijkl");
        assert_eq!(buffer.slice(11, 1)[..], *b"l");
        buffer.release(100);
        assert_eq!(buffer.start(), 12);
        assert_eq!(buffer.slice(3, 0)[..], *b"", "nothing of what is gone is still nothing");
    }

    #[test]
    fn the_rest_of_a_piece_joins_its_beginning() {
        let piece = Bytes::from_static(b"abcdefgh");
        let mut buffer = SendBuffer::default();
        buffer.push(&piece, 3);
        buffer.push(&piece.slice(3..), 2);
        assert_eq!((buffer.pieces.len(), buffer.slice(1, 4)), (1, Payload::from(b"bcde")));
        // Not the next bytes of the piece, although they are there.
        buffer.push(&piece.slice(6..), 2);
        assert_eq!((buffer.pieces.len(), buffer.slice(3, 4)), (2, Payload::from(b"degh")));
        buffer.release(5);
        assert_eq!((buffer.pieces.len(), buffer.slice(5, 2)), (1, Payload::from(b"gh")));
    }
}
