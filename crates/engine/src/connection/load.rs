//! Memory that a connection takes for its data, and time of its peer's last progress: for drivers that bound either.

use super::{Connection, Mode};
use crate::Load;
use anabranch_units::{Bytes, Instant};

/// Progress of the peer, and since when.
#[derive(Debug)]
pub(super) struct Progress {
    acked: u64,
    fin_acked: bool,
    received: u64,
    at: Instant,
}

/// Memory of a piece of data beside its bytes: its place in a queue, its reference count, the allocator's.
const PIECE: u64 = 96;
/// Memory of a segment that is not acknowledged, beside its data: in the log of sent data and in its subflow's
/// scoreboard.
const SEGMENT: u64 = 72;

impl Load {
    /// Bytes that the bookkeeping of so many pieces takes up.
    pub(crate) fn of_pieces(pieces: usize) -> u64 {
        pieces as u64 * PIECE
    }
}

impl Progress {
    pub(super) fn new(now: Instant) -> Self {
        Progress { acked: 0, fin_acked: false, received: 0, at: now }
    }
}

impl Connection {
    /// A segment was handled, which may have brought the peer forward.
    pub(crate) fn note_progress(&mut self, now: Instant) {
        let (acked, fin_acked, received) = (self.sender.outgoing.una, self.end_acked(), self.receiver.next());
        let before = &self.progress;
        if (before.acked, before.fin_acked, before.received) != (acked, fin_acked, received) {
            self.progress = Progress { acked, fin_acked, received, at: now };
        }
    }

    /// The peer knows that our direction has ended: of plain TCP that is the FIN's.
    fn end_acked(&self) -> bool {
        let of_subflow = || {
            let subflow = self.subflows.first();
            subflow.is_some_and(|subflow| subflow.tx.fin_sent && subflow.tx.recovery.is_empty())
        };
        self.sender.outgoing.fin_acked || self.life.mode() == Mode::Plain && of_subflow()
    }

    pub(crate) fn load(&self) -> Load {
        let out = &self.sender.outgoing;
        let mut held = out.buffer.memory() + self.receiver.unread() + self.receiver.waiting_bytes();
        let mut pieces = out.buffer.pieces() + self.receiver.pieces();
        for subflow in self.subflows.iter() {
            held += subflow.rx.ofo.bytes() + subflow.rx.unplaced.len();
            pieces += subflow.rx.ofo.fragments() + subflow.rx.unplaced.pieces();
        }
        held += Load::of_pieces(pieces) + out.log.len() as u64 * SEGMENT;
        Load {
            held: Bytes::new(held),
            unacknowledged: Bytes::new(out.buffer.end() - out.una.min(out.buffer.end())),
            end_unacknowledged: out.fin.is_some() && !self.end_acked(),
            active: self.progress.at,
            subflows: self.subflows.len(),
        }
    }
}
