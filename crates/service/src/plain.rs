//! Services without a protocol: discard (RFC 863), echo (RFC 862), and a source of a given length.

use crate::session::Session;
use crate::stream::Stream;
use anabranch_wire::pattern;
use bytes::Bytes;

/// Reads everything, answers nothing, and closes when the peer does.
#[derive(Debug, Default)]
pub(crate) struct Discard;

impl Session for Discard {
    fn advance(&mut self, stream: &mut Stream<'_>) {
        while stream.read().is_some() {}
    }

    fn on_end(&mut self, stream: &mut Stream<'_>) {
        stream.shutdown();
    }
}

/// Sends back what comes. Nothing is read that could not be sent on, so a peer that does not read is not read from
/// either.
#[derive(Debug, Default)]
pub(crate) struct Echo {
    held: Bytes,
    ended: bool,
}

impl Session for Echo {
    fn advance(&mut self, stream: &mut Stream<'_>) {
        while stream.write(&mut self.held) {
            match stream.read() {
                Some(piece) => self.held = piece,
                None if self.ended => return stream.shutdown(),
                None => return,
            }
        }
    }

    fn on_end(&mut self, stream: &mut Stream<'_>) {
        self.ended = true;
        self.advance(stream);
    }
}

/// Sends the first bytes of the pattern ([`anabranch_wire::pattern`]) and closes its direction. What the peer sends is
/// discarded.
#[derive(Debug)]
pub(crate) struct Source {
    next: u64,
    end: u64,
    held: Bytes,
}

impl Source {
    /// Serves a body of `length` bytes.
    pub(crate) fn new(length: u64) -> Self {
        Source { next: 0, end: length, held: Bytes::new() }
    }
}

impl Session for Source {
    fn advance(&mut self, stream: &mut Stream<'_>) {
        while stream.read().is_some() {}
        while stream.write(&mut self.held) {
            if self.next == self.end {
                return stream.shutdown();
            }
            self.held = pattern::slice(self.next, self.end - self.next);
            self.next += self.held.len() as u64;
        }
    }

    fn on_end(&mut self, _stream: &mut Stream<'_>) {}
}
