//! A queue of payloads that a peer cannot make expensive by sending single bytes.

use crate::ring::Ring;
use anabranch_wire::Payload;
use bytes::BytesMut;

/// Payloads in order. Many small ones in a row are joined: each would cost its bookkeeping and pin a whole packet.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    queue: Ring<Payload>,
    /// Small pieces in a row at the end.
    small: usize,
}

/// Pieces smaller than this are small.
const SMALL: usize = 256;
/// Room that stays in an empty queue.
const FEW: usize = 8;
/// Number of pieces in a row that are joined into one.
const ROW: usize = 1024;

impl Pieces {
    pub(crate) fn push(&mut self, piece: Payload) {
        self.small = if piece.len() < SMALL { self.small + 1 } else { 0 };
        self.queue.push_back(piece);
        if self.small >= ROW {
            self.join_row();
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Payload> {
        let piece = self.queue.pop_front();
        self.small = self.small.min(self.queue.len());
        piece
    }

    pub(crate) fn front_mut(&mut self) -> Option<&mut Payload> {
        self.queue.front_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Payload> {
        self.queue.iter()
    }

    /// Gives memory back if nothing is in it.
    ///
    /// Room for a few stays: what was out of order on a subflow passes through such a queue piece by piece.
    pub(crate) fn release(&mut self) {
        if self.queue.capacity() > FEW {
            self.queue.release();
        }
    }

    #[cold]
    fn join_row(&mut self) {
        let from = self.queue.len() - self.small.min(self.queue.len());
        let mut joined = BytesMut::new();
        for piece in self.queue.split_off(from) {
            joined.extend_from_slice(&piece);
        }
        self.queue.push_back(joined.freeze().into());
        self.small = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_bytes_are_joined_and_stay_in_order() {
        let mut pieces = Pieces::default();
        pieces.push(vec![7; 2000].into());
        for i in 0..100_000u32 {
            pieces.push(vec![i as u8].into());
        }
        assert!(pieces.queue.len() <= 2 + 100_000 / ROW + ROW);
        assert_eq!(pieces.pop().map(|piece| piece.len()), Some(2000));
        let mut next = 0u32;
        while let Some(piece) = pieces.pop() {
            for &byte in &piece {
                assert_eq!(byte, next as u8);
                next += 1;
            }
        }
        assert_eq!((next, pieces.small), (100_000, 0));
    }
}
