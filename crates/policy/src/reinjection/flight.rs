//! First transmissions in the order of sending: a policy's own list of data that it may have to copy.
//!
//! The engine's record is ordered by DSN. With a scheduler that leaves holes this is not the order of time, in which
//! deadlines expire; and a walk through the record behind a mark would miss data that fills a hole later.

use super::{FlightView, Outstanding, Piece};
use anabranch_units::{Dsn, Instant};
use std::collections::VecDeque;

/// One first transmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    pub(super) from: Dsn,
    pub(super) end: Dsn,
    pub(super) at: Instant,
}

/// The list. Each entry has a number, which stays while earlier ones are dropped.
#[derive(Debug, Default)]
pub(super) struct Flight {
    sendings: VecDeque<Sending>,
    dropped: u64,
}

impl Flight {
    pub(super) fn push(&mut self, piece: &Piece) {
        self.sendings.push_back(Sending { from: piece.from, end: piece.end(), at: piece.sent });
    }

    /// Drops what a DATA_ACK covers, as far as nothing else is in front of it.
    pub(super) fn release(&mut self, una: Dsn) {
        while self.sendings.front().is_some_and(|sending| !sending.end.after(una)) {
            self.drop_front();
        }
        if self.sendings.is_empty() {
            // Most connections are idle most of the time.
            self.sendings = VecDeque::new();
        }
    }

    /// Drops from the front what is acknowledged or was repeated; the first piece of the rest, and when it was sent.
    pub(super) fn first_single(&mut self, flight: &FlightView<'_>) -> Option<(Instant, Piece)> {
        self.release(flight.view.data_una);
        while let Some(sending) = self.sendings.front() {
            let piece = flight.first_piece(sending.from, sending.end, Piece::is_single);
            if let Some(piece) = piece {
                return Some((sending.at, piece));
            }
            self.drop_front();
        }
        None
    }

    fn drop_front(&mut self) {
        self.dropped += u64::from(self.sendings.pop_front().is_some());
    }

    /// The number of the first entry.
    pub(super) fn first(&self) -> u64 {
        self.dropped
    }

    /// The entry with this number.
    pub(super) fn get(&self, number: u64) -> Option<&Sending> {
        let at = usize::try_from(number.checked_sub(self.dropped)?).ok()?;
        self.sendings.get(at)
    }
}

/// Returns the data in flight when a policy replaces another, in the order of sending.
pub(super) fn under_way(una: Dsn, outstanding: &dyn Outstanding) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = una;
    while let Some(piece) = outstanding.piece(at) {
        at = piece.end();
        pieces.push(piece);
    }
    pieces.sort_by_key(|piece| piece.sent);
    pieces
}
