//! The send buffer: what the application wrote, kept until a DATA_ACK covers it.

use crate::idle::release_if_empty;
use bytes::{Bytes, BytesMut};
use std::borrow::Cow;
use std::collections::VecDeque;

/// Written data by stream offset. Chunks are kept as written; nothing is copied unless a segment straddles two.
///
/// A writer that offers a large piece, sees part of it taken and offers the rest later makes one chunk, not many: the
/// rest lies in memory where the chunk goes on, so the chunk just admits more of itself.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    chunks: VecDeque<Chunk>,
    start: u64,
    end: u64,
    /// The chunk of the latest slice; transmissions are mostly sequential.
    hint: usize,
}

/// A piece as the application offered it.
#[derive(Debug)]
struct Chunk {
    /// Offset of its first byte.
    start: u64,
    /// All that was offered.
    offered: Bytes,
    /// Bytes taken from the front of the offered piece.
    taken: usize,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.start + self.taken as u64
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
    /// Offset of the first byte kept.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Offset after the last byte written.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes kept in memory: a piece goes as a whole, when the last of it is acknowledged.
    pub(crate) fn memory(&self) -> u64 {
        self.chunks.front().map_or(0, |first| self.end - first.start)
    }

    /// Pieces kept.
    pub(crate) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Adds the first `taken` bytes of `data` at the end.
    pub(crate) fn push(&mut self, data: &Bytes, taken: usize) {
        let taken = taken.min(data.len());
        if taken == 0 {
            return;
        }
        let start = self.end;
        self.end += taken as u64;
        match self.chunks.back_mut() {
            Some(last) if last.goes_on_with(&data[..taken]) => last.taken += taken,
            _ => self.chunks.push_back(Chunk { start, offered: data.clone(), taken }),
        }
    }

    /// Forgets everything before `offset`.
    pub(crate) fn release(&mut self, offset: u64) {
        self.start = self.start.max(offset.min(self.end));
        while self.chunks.front().is_some_and(|chunk| chunk.end() <= self.start) {
            self.chunks.pop_front();
            self.hint = self.hint.saturating_sub(1);
        }
        release_if_empty(&mut self.chunks);
    }

    /// Memory that holds the bytes `offset..offset + length`, and their position in it.
    ///
    /// They must be kept here. The memory is a piece as the application offered it, or a copy of bytes that straddle
    /// two.
    pub(crate) fn find(&mut self, offset: u64, length: usize) -> (Cow<'_, Bytes>, usize) {
        if length == 0 {
            return (Cow::Owned(Bytes::new()), 0);
        }
        assert!(offset >= self.start && offset + length as u64 <= self.end, "only data still in the buffer is sent");
        let index = self.chunk_of(offset);
        self.hint = index;
        let chunk = &self.chunks[index];
        let at = (offset - chunk.start) as usize;
        if at + length <= chunk.taken {
            return (Cow::Borrowed(&chunk.offered), at);
        }
        let mut joined = BytesMut::with_capacity(length);
        joined.extend_from_slice(&chunk.data()[at..]);
        for chunk in self.chunks.range(index + 1..) {
            let missing = length - joined.len();
            if missing == 0 {
                break;
            }
            joined.extend_from_slice(&chunk.data()[..missing.min(chunk.taken)]);
        }
        (Cow::Owned(joined.freeze()), 0)
    }

    fn chunk_of(&self, offset: u64) -> usize {
        let holds =
            |index: usize| self.chunks.get(index).is_some_and(|chunk| (chunk.start..chunk.end()).contains(&offset));
        if holds(self.hint) {
            return self.hint;
        }
        if holds(self.hint + 1) {
            return self.hint + 1;
        }
        self.chunks.partition_point(|chunk| chunk.start <= offset) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(buffer: &mut SendBuffer, data: &'static [u8]) {
        buffer.push(&Bytes::from_static(data), data.len());
    }

    impl SendBuffer {
        fn slice(&mut self, offset: u64, length: usize) -> Bytes {
            let (memory, at) = self.find(offset, length);
            memory.slice(at..at + length)
        }
    }

    #[test]
    fn slices_cross_chunks_and_survive_release() {
        let mut buffer = SendBuffer::default();
        push(&mut buffer, b"abcde");
        push(&mut buffer, b"fg");
        push(&mut buffer, b"hijkl");
        assert_eq!(buffer.slice(3, 6), "defghi");
        buffer.release(6);
        assert_eq!((buffer.start(), buffer.end()), (6, 12));
        assert_eq!(buffer.slice(6, 6), "ghijkl");
        assert_eq!(buffer.slice(11, 1), "l");
        buffer.release(100);
        assert_eq!(buffer.start(), 12);
        assert_eq!(buffer.slice(3, 0), "", "nothing of what is gone is still nothing");
    }

    #[test]
    fn the_rest_of_a_piece_joins_its_beginning() {
        let piece = Bytes::from_static(b"abcdefgh");
        let mut buffer = SendBuffer::default();
        buffer.push(&piece, 3);
        buffer.push(&piece.slice(3..), 2);
        assert_eq!((buffer.chunks.len(), buffer.slice(1, 4)), (1, Bytes::from_static(b"bcde")));
        // Not the next bytes of the piece, although they are there.
        buffer.push(&piece.slice(6..), 2);
        assert_eq!((buffer.chunks.len(), buffer.slice(3, 4)), (2, Bytes::from_static(b"degh")));
        buffer.release(5);
        assert_eq!((buffer.chunks.len(), buffer.slice(5, 2)), (1, Bytes::from_static(b"gh")));
    }
}
