//! One connection, as a service sees it.

use anabranch_engine::{ConnectionId, Endpoint, Load, Read, ReadError};
use anabranch_units::Instant;
use bytes::{Buf, Bytes};

/// Reads and writes one connection of an endpoint.
pub struct Stream<'a> {
    endpoint: &'a mut Endpoint,
    id: ConnectionId,
    now: Instant,
    moved: u64,
}

impl<'a> Stream<'a> {
    /// Connection `id` of `endpoint`.
    pub fn new(endpoint: &'a mut Endpoint, id: ConnectionId, now: Instant) -> Self {
        Stream { endpoint, id, now, moved: 0 }
    }

    /// The time of this call.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The next piece that has arrived.
    pub fn read(&mut self) -> Option<Bytes> {
        self.read_on().ok().and_then(Read::data)
    }

    /// The next piece, the end of the stream, or the error if it broke off.
    pub(crate) fn read_on(&mut self) -> Result<Read, ReadError> {
        let read = self.endpoint.read(self.id)?;
        if let Read::Data(piece) = &read {
            self.moved += piece.len() as u64;
        }
        Ok(read)
    }

    /// Hands over what the send buffer admits, which is taken from the front of `data`. True if that was all; otherwise
    /// the endpoint says when there is room again.
    pub fn write(&mut self, data: &mut Bytes) -> bool {
        if !data.is_empty() {
            // Where nothing can be written any more, an event tells of it.
            let taken = self.endpoint.write(self.id, data).unwrap_or(0);
            data.advance(taken);
            self.moved += taken as u64;
        }
        data.is_empty()
    }

    /// Closes our direction behind what was written.
    pub fn shutdown(&mut self) {
        self.endpoint.shutdown(self.id);
    }

    /// Gives the connection up; `Event::Reset` follows.
    pub fn abort(&mut self) {
        self.endpoint.abort(self.now, self.id);
    }

    /// Bytes that the peer has not taken yet, and when it last got on; `None` once the connection is gone.
    pub fn load(&self) -> Option<Load> {
        self.endpoint.load(self.id)
    }

    /// Bytes read and written in this call.
    pub(crate) fn moved(&self) -> u64 {
        self.moved
    }
}
