//! Remainder of a connection that is gone: its statistics, and data that its application has not read yet.

use super::Read;
use crate::connection::Connection;
use crate::pieces::Pieces;
use crate::{ConnectionStats, Ended, Load, ReadError, SubflowStats};
use anabranch_units::{Bytes, Instant};

/// Remainder of a connection, kept until it is forgotten.
pub(super) struct Remains {
    pub(super) stats: ConnectionStats,
    pub(super) subflows: Vec<SubflowStats>,
    /// Received in order. The peer may have taken our acknowledgment of it for its delivery, so that neither RST nor
    /// MP_FASTCLOSE takes it away, as on Linux.
    unread: Pieces,
    bytes: u64,
    /// The peer's stream came to its end before the connection did.
    finished: bool,
    /// Time of the peer's last progress.
    active: Instant,
}

impl Remains {
    /// Takes over from `connection`, which is gone. Who has given it up itself has nothing more to read.
    pub(super) fn of(connection: &mut Connection) -> Self {
        let (stats, subflows) = (connection.stats(), connection.subflow_stats());
        let active = connection.load().active;
        let finished = stats.ended == Some(Ended::InOrder) || connection.has_received_all();
        let (unread, bytes) = match stats.ended {
            Some(Ended::Aborted) => (Pieces::default(), 0),
            _ => connection.take_unread(),
        };
        Remains { stats, subflows, unread, bytes, finished, active }
    }

    /// The next piece, the end of the stream behind the last, or the error if it broke off.
    pub(super) fn read(&mut self) -> Result<Read, ReadError> {
        match self.unread.pop() {
            Some(piece) => {
                self.bytes -= piece.len() as u64;
                self.stats.delivered += piece.len() as u64;
                Ok(Read::Data(piece.into()))
            }
            None if self.finished && self.stats.ended != Some(Ended::Aborted) => Ok(Read::End),
            None => Err(ReadError),
        }
    }

    /// Memory that unread data takes up; `None` if there is none.
    pub(super) fn load(&self) -> Option<Load> {
        let held = Bytes::new(self.bytes + Load::of_pieces(self.unread.len()));
        let load =
            Load { held, unacknowledged: Bytes::ZERO, end_unacknowledged: false, active: self.active, subflows: 0 };
        (self.unread.len() > 0).then_some(load)
    }
}
