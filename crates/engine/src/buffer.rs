//! The send buffer: what the application wrote, kept until a DATA_ACK covers it.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Written data by stream offset. Chunks are kept as written; nothing is copied unless a segment straddles two.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    chunks: VecDeque<(u64, Bytes)>,
    start: u64,
    end: u64,
    /// The chunk of the latest slice; transmissions are mostly sequential.
    hint: usize,
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

    /// Adds `data` at the end.
    pub(crate) fn push(&mut self, data: Bytes) {
        if data.is_empty() {
            return;
        }
        let start = self.end;
        self.end += data.len() as u64;
        self.chunks.push_back((start, data));
    }

    /// Forgets everything before `offset`.
    pub(crate) fn release(&mut self, offset: u64) {
        self.start = self.start.max(offset.min(self.end));
        while self.chunks.front().is_some_and(|(start, chunk)| start + chunk.len() as u64 <= self.start) {
            self.chunks.pop_front();
            self.hint = self.hint.saturating_sub(1);
        }
    }

    /// The bytes `offset..offset + length`, which must be kept here.
    pub(crate) fn slice(&mut self, offset: u64, length: usize) -> Bytes {
        if length == 0 {
            return Bytes::new();
        }
        assert!(offset >= self.start && offset + length as u64 <= self.end, "only data still in the buffer is sent");
        let index = self.chunk_of(offset);
        self.hint = index;
        let (start, chunk) = &self.chunks[index];
        let at = (offset - start) as usize;
        if at + length <= chunk.len() {
            return chunk.slice(at..at + length);
        }
        let mut joined = BytesMut::with_capacity(length);
        joined.extend_from_slice(&chunk[at..]);
        for (_, chunk) in self.chunks.range(index + 1..) {
            let missing = length - joined.len();
            if missing == 0 {
                break;
            }
            joined.extend_from_slice(&chunk[..missing.min(chunk.len())]);
        }
        joined.freeze()
    }

    fn chunk_of(&self, offset: u64) -> usize {
        let holds = |index: usize| {
            self.chunks.get(index).is_some_and(|(start, chunk)| (*start..*start + chunk.len() as u64).contains(&offset))
        };
        if holds(self.hint) {
            return self.hint;
        }
        if holds(self.hint + 1) {
            return self.hint + 1;
        }
        self.chunks.partition_point(|(start, _)| *start <= offset) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cross_chunks_and_survive_release() {
        let mut buffer = SendBuffer::default();
        buffer.push(Bytes::from_static(b"abcde"));
        buffer.push(Bytes::from_static(b"fg"));
        buffer.push(Bytes::from_static(b"hijkl"));
        assert_eq!(buffer.slice(3, 6), "defghi");
        buffer.release(6);
        assert_eq!((buffer.start(), buffer.end()), (6, 12));
        assert_eq!(buffer.slice(6, 6), "ghijkl");
        assert_eq!(buffer.slice(11, 1), "l");
        buffer.release(100);
        assert_eq!(buffer.start(), 12);
        assert_eq!(buffer.slice(3, 0), "", "nothing of what is gone is still nothing");
    }
}
