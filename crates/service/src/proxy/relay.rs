//! Relay between an engine connection and a kernel socket.
//!
//! Data of one end goes to the other through a bounded buffer, so that a slow reader slows its writer down: through the
//! socket's buffers on one side, through the receive window on the other. Each direction ends by itself: EOF from the
//! socket becomes a DATA_FIN, a DATA_FIN becomes `shutdown(SHUT_WR)`, each after the last byte before it. After a reset
//! of either end the other still gets what had arrived before.

use super::forward::{Exchange, Forward};
use anabranch_engine::{self as engine, ConnectionId};
use anabranch_host::{Context, Ready};
use bytes::{Buf, Bytes};
use mio::net::TcpStream;
use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;

/// The state of both directions.
#[derive(Default)]
pub(super) struct Relay {
    /// Read from the engine, to be written to the socket.
    outward: VecDeque<Bytes>,
    outward_bytes: usize,
    /// Read from the socket and not taken by the engine.
    inward: Bytes,
    /// The engine's peer has finished, and all it sent is in `outward` or beyond.
    engine_finished: bool,
    /// The socket's peer has finished, and all it sent is in `inward` or beyond.
    socket_finished: bool,
    /// The engine was told that no more comes.
    engine_shut: bool,
    /// The socket was told that no more comes.
    socket_shut: bool,
    /// The engine's connection was reset: what it has left is read, and what the socket still says is dropped.
    engine_reset: bool,
    /// The socket accepts no more data: the rest for it is dropped.
    discarding: bool,
    /// Error of the socket. What it had sent before still goes to the engine.
    broken: Option<std::io::Error>,
    /// A read may succeed.
    pub(super) readable: bool,
    /// A write may succeed.
    pub(super) writable: bool,
    /// The socket's peer has closed its direction, or there is an error to fetch: reading goes on until it says so.
    pub(super) closed: bool,
    /// Times that something was written to the socket, up to the second.
    writes: u8,
    /// Bytes from the engine's peer.
    pub(super) from_engine: u64,
    /// Bytes from the socket's peer.
    pub(super) from_socket: u64,
    /// Bytes that the socket has taken.
    pub(super) to_socket: u64,
    /// The HTTP request that the two exchange; a stream otherwise.
    pub(super) exchange: Option<Box<Exchange>>,
}

/// The socket has failed: its peer sent a RST, or cannot be reached any more.
#[derive(Debug)]
pub(super) struct SocketBroken(pub(super) std::io::Error);

/// Bytes kept for a socket that takes no more; the rest waits in the engine, where it counts in the window.
pub(super) const OUTWARD: usize = 256 << 10;

/// Bytes read from a socket at once.
pub(super) const SCRATCH: usize = 64 << 10;

/// Bytes read from one socket before the others have their turn.
pub(super) const TURN: u64 = 256 << 10;

/// Pieces written to a socket at once.
const PIECES: usize = 64;

impl Relay {
    /// Something to be written to the socket before what the engine gives.
    pub(super) fn push_outward(&mut self, bytes: Bytes) {
        self.outward_bytes += bytes.len();
        self.outward.push_back(bytes);
    }

    /// Something to be written to the engine before what the socket gives.
    pub(super) fn push_inward(&mut self, bytes: Bytes) {
        debug_assert!(self.inward.is_empty(), "only at the beginning");
        self.from_socket += bytes.len() as u64;
        self.inward = bytes;
    }

    /// The engine's connection was reset. Nothing can be written to it any more.
    pub(super) fn on_engine_reset(&mut self) {
        self.engine_reset = true;
        self.inward = Bytes::new();
    }

    /// The engine's connection was reset.
    pub(super) fn is_engine_reset(&self) -> bool {
        self.engine_reset
    }

    /// The socket's peer has asked for `forward` and sent `behind` since: the request goes to the engine.
    pub(super) fn begin_exchange(&mut self, forward: Forward, behind: Bytes) {
        self.from_socket += behind.len() as u64;
        let (exchange, bytes) = Exchange::begin(forward, behind);
        self.inward = bytes;
        self.exchange = Some(Box::new(exchange));
    }

    /// Ends the exchange, whose connection is gone or no longer of interest.
    pub(super) fn end_exchange(&mut self) {
        self.exchange = None;
        self.inward = Bytes::new();
        (self.engine_finished, self.engine_shut) = (false, false);
        self.engine_reset = false;
        (self.from_engine, self.from_socket, self.to_socket) = (0, 0, 0);
        // The next request may have come while nobody looked.
        self.readable = true;
    }

    /// Returns true if nothing more comes from the socket.
    pub(super) fn socket_finished(&self) -> bool {
        self.socket_finished
    }

    /// Everything that the engine's peer sent has been read.
    pub(super) fn engine_finished(&self) -> bool {
        self.engine_finished
    }

    /// Something waits for the socket.
    pub(super) fn has_outward(&self) -> bool {
        !self.outward.is_empty()
    }

    /// Bytes held here.
    pub(super) fn held(&self) -> usize {
        self.outward_bytes + self.inward.len() + self.exchange.as_ref().map_or(0, |exchange| exchange.held())
    }

    /// True if what the socket gives is for the engine: behind a whole request comes the next, for another connection.
    fn wants_inward(&self) -> bool {
        self.inward.is_empty() && !self.socket_finished && !self.exchange.as_ref().is_some_and(|it| it.is_sent())
    }

    /// Returns true if data for the socket is dropped because it accepts no more.
    pub(super) fn discards(&self) -> bool {
        self.discarding
    }

    /// The socket is ready for this, beside what it was ready for before.
    pub(super) fn on_ready(&mut self, ready: Ready) {
        self.closed |= ready.closed;
        self.readable |= ready.readable || ready.closed;
        self.writable |= ready.writable || ready.closed;
    }

    /// Another socket takes the place of the one before, of which nothing is known.
    pub(super) fn on_new_socket(&mut self) {
        (self.readable, self.writable, self.closed) = (false, false, false);
    }

    /// Error of the socket, once all that it had sent was handed to the engine.
    pub(super) fn broken(&self) -> Option<&std::io::Error> {
        self.broken.as_ref().filter(|_| self.inward.is_empty() && !self.readable)
    }

    /// Both directions of the socket are done.
    pub(super) fn socket_done(&self) -> bool {
        self.socket_finished && self.socket_shut
    }

    /// Something could be read from the socket, and was not for want of room, or because it is the turn of others.
    pub(super) fn is_held_back(&self) -> bool {
        self.readable && self.wants_inward() && !self.engine_reset
    }

    /// Both directions are closed behind the last byte, as far as this side goes.
    pub(super) fn is_over(&self) -> bool {
        self.socket_done() && self.engine_finished && self.engine_shut && self.outward.is_empty()
    }

    /// Moves what can be moved in one turn, and closes what is to be closed. At most `room` bytes are read from the
    /// socket.
    pub(super) fn pump(
        &mut self,
        cx: &mut Context<'_>,
        connection: Option<ConnectionId>,
        socket: &mut TcpStream,
        scratch: &mut [u8],
        mut room: u64,
    ) {
        room = room.min(TURN);
        loop {
            let mut moved = connection.map_or(0, |id| self.take_from_engine(cx, id));
            match self.give_to_socket(socket) {
                Ok(given) => moved += given,
                Err(SocketBroken(error)) => self.on_broken(error),
            }
            if self.engine_reset || connection.is_some() {
                moved += connection.map_or(0, |id| self.give_to_engine(cx, id));
                let read = self.take_from_socket(cx, connection, socket, scratch, room);
                room -= read;
                moved += read;
            }
            if moved == 0 {
                break;
            }
        }
        self.close(cx, connection, socket);
    }

    /// A write or a read has failed for good. What arrived before the socket's RST can still be read.
    fn on_broken(&mut self, error: std::io::Error) {
        self.broken.get_or_insert(error);
        self.discard_outward();
    }

    fn discard_outward(&mut self) {
        self.discarding = true;
        self.outward.clear();
        self.outward_bytes = 0;
        (self.readable, self.closed) = (true, true);
    }

    fn take_from_engine(&mut self, cx: &mut Context<'_>, id: ConnectionId) -> u64 {
        let before = self.from_engine;
        while self.outward_bytes < OUTWARD {
            match cx.endpoint.read(id) {
                Ok(engine::Read::Data(chunk)) => {
                    self.from_engine += chunk.len() as u64;
                    self.take_chunk(chunk);
                }
                Ok(engine::Read::End) => {
                    self.engine_finished = true;
                    break;
                }
                Ok(engine::Read::Pending) | Err(engine::ReadError) => break,
            }
        }
        self.from_engine - before
    }

    /// Queues what the engine's peer sent; of an answer to a request, what is left of it for the client.
    fn take_chunk(&mut self, chunk: Bytes) {
        let mut pieces = Vec::new();
        match &mut self.exchange {
            Some(exchange) => exchange.take_answer(chunk, &mut pieces),
            None if self.discarding => {}
            None => return self.push_outward(chunk),
        }
        if !self.discarding {
            pieces.into_iter().for_each(|piece| self.push_outward(piece));
        }
    }

    /// Writes what is queued for the socket.
    pub(super) fn give_to_socket(&mut self, socket: &mut TcpStream) -> Result<u64, SocketBroken> {
        let mut given = 0;
        while self.writable && !self.outward.is_empty() {
            let mut slices = [IoSlice::new(&[]); PIECES];
            let count = self.outward.len().min(PIECES);
            for (slice, piece) in slices.iter_mut().zip(&self.outward) {
                *slice = IoSlice::new(piece);
            }
            if self.writes == 1 {
                // Latency before packets: what is relayed comes in pieces that are as large as they can be already. A
                // first write is hardly ever held back (Linux has Minshall's form of RFC 9293 §3.7.4), and many a
                // connection has no second one.
                let _ = socket.set_nodelay(true);
            }
            match socket.write_vectored(&slices[..count]) {
                Ok(written) => {
                    self.writes = 2.min(self.writes + 1);
                    given += written as u64;
                    self.to_socket += written as u64;
                    self.advance_outward(written);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The peer had finished (FIN) before it refused more (RST): what it said is whole, and goes to the
                // other end.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => self.discard_outward(),
                Err(error) => return Err(SocketBroken(error)),
            }
        }
        Ok(given)
    }

    fn advance_outward(&mut self, mut written: usize) {
        self.outward_bytes -= written;
        while let Some(first) = self.outward.front_mut() {
            if written < first.len() {
                first.advance(written);
                return;
            }
            written -= first.len();
            self.outward.pop_front();
        }
    }

    fn give_to_engine(&mut self, cx: &mut Context<'_>, id: ConnectionId) -> u64 {
        if self.inward.is_empty() || self.engine_reset {
            return 0;
        }
        let taken = cx.endpoint.write(id, &self.inward).unwrap_or(0);
        self.inward.advance(taken);
        if self.inward.is_empty() {
            // Lets the allocation go, too.
            self.inward = Bytes::new();
        }
        taken as u64
    }

    fn take_from_socket(
        &mut self,
        cx: &mut Context<'_>,
        connection: Option<ConnectionId>,
        socket: &mut TcpStream,
        scratch: &mut [u8],
        room: u64,
    ) -> u64 {
        let mut read = 0;
        while self.readable && self.wants_inward() {
            let most = scratch.len().min(usize::try_from(room - read).unwrap_or(usize::MAX));
            if most == 0 {
                break;
            }
            match socket.read(&mut scratch[..most]) {
                // The kernel tells an error once; from then on a socket that was reset looks as if it had ended.
                Ok(0) if self.broken.is_some() => self.readable = false,
                Ok(0) => self.socket_finished = true,
                Ok(length) => {
                    // A socket that returns less than requested is empty (epoll(7)); later data is signalled again.
                    self.readable = length == most || self.closed;
                    read += length as u64;
                    let bytes = Bytes::copy_from_slice(&scratch[..length]);
                    let bytes = match &mut self.exchange {
                        Some(exchange) => exchange.take_request(bytes),
                        None => bytes,
                    };
                    if let Some(id) = connection.filter(|_| !self.engine_reset) {
                        self.from_socket += length as u64;
                        self.inward = bytes;
                        self.give_to_engine(cx, id);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.on_broken(error);
                    self.readable = false;
                }
            }
        }
        read
    }

    fn close(&mut self, cx: &mut Context<'_>, connection: Option<ConnectionId>, socket: &TcpStream) {
        if self.exchange.is_some() {
            // Messages say where they end, and the client's connection outlives the origin's.
            return;
        }
        if self.socket_finished
            && self.inward.is_empty()
            && !self.engine_shut
            && let Some(id) = connection
        {
            cx.endpoint.shutdown(id);
            self.engine_shut = true;
        }
        if self.engine_finished && self.outward.is_empty() && !self.socket_shut {
            // Without the other direction the socket is about to be closed, which says the same.
            if !self.socket_finished {
                // Fails if the peer is gone; the next read or write says so.
                let _ = socket.shutdown(Shutdown::Write);
            }
            self.socket_shut = true;
        }
    }
}
