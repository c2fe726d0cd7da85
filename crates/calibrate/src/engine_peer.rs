//! Both ends of a transfer as applications of our engine.

use crate::transfer::{REQUEST, Transfer, TransferError};
use anabranch_engine::{ConnectionId, Event};
use anabranch_host::{Application, Context};
use anabranch_sim::{Direction, pattern};
use anabranch_units::{Duration, Instant};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::Sender;
use std::time;

/// One direction of the connection at one end: what is to be written and what was read.
#[derive(Default)]
struct Streams {
    written: u64,
    target: u64,
    read: u64,
}

impl Streams {
    /// Writes what the endpoint takes; closes our direction behind the last byte.
    fn write(&mut self, cx: &mut Context<'_>, id: ConnectionId) {
        while self.written < self.target {
            let piece = pattern::slice(self.written, (self.target - self.written).min(PIECE));
            let taken = cx.endpoint.write(cx.now, id, &piece);
            self.written += taken as u64;
            if taken < piece.len() {
                return; // `Writable` follows.
            }
        }
    }

    /// Reads what there is; the place where it is wrong, if it is.
    fn read(&mut self, cx: &mut Context<'_>, id: ConnectionId) -> Result<(), TransferError> {
        while let Some(piece) = cx.endpoint.read(cx.now, id) {
            if !pattern::matches(self.read, &piece) {
                return Err(TransferError::Altered { at: self.read });
            }
            self.read += piece.len() as u64;
        }
        Ok(())
    }
}

/// What an end tells when its part is done: when it had read everything, on the wall's clock.
pub(crate) type Report = Result<time::Instant, TransferError>;

/// The end that opens the connection.
pub(crate) struct Client {
    transfer: Transfer,
    local: IpAddr,
    remote: SocketAddr,
    begun: Sender<time::Instant>,
    end: End,
    deadline: Instant,
}

/// The end that accepts it.
pub(crate) struct Server {
    transfer: Transfer,
    port: u16,
    end: End,
}

/// What both have.
struct End {
    id: Option<ConnectionId>,
    streams: Streams,
    /// How much is to be read.
    expects: u64,
    closed: bool,
    report: Option<Sender<Report>>,
}

impl End {
    fn new(expects: u64, target: u64, report: Sender<Report>) -> Self {
        let streams = Streams { target, ..Streams::default() };
        End { id: None, streams, expects, closed: false, report: Some(report) }
    }

    /// Moves what can be moved; true once everything that was expected has been read.
    fn move_on(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(id) = self.id else { return false };
        if let Err(error) = self.streams.read(cx, id) {
            self.tell(Err(error));
            cx.endpoint.abort(cx.now, id);
        }
        self.streams.write(cx, id);
        self.streams.read >= self.expects
    }

    fn tell(&mut self, report: Report) {
        if let Some(sender) = self.report.take() {
            // Nobody listens any more once the transfer was given up.
            let _ = sender.send(report);
        }
    }

    fn fail(&mut self, reason: &str) {
        let read = self.streams.read;
        self.tell(Err(TransferError::Broken { read, reason: reason.to_owned() }));
        self.closed = true;
    }
}

impl Client {
    pub(crate) fn new(
        transfer: Transfer,
        local: IpAddr,
        remote: SocketAddr,
        begun: Sender<time::Instant>,
        report: Sender<Report>,
    ) -> Self {
        let (expects, target) = match transfer.direction {
            Direction::Down => (transfer.size.get(), REQUEST),
            Direction::Up => (0, transfer.size.get()),
        };
        Client { transfer, local, remote, begun, end: End::new(expects, target, report), deadline: Instant::MAX }
    }
}

impl Application for Client {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        let _ = self.begun.send(time::Instant::now());
        self.end.id = Some(cx.endpoint.open(cx.now, self.local, self.remote));
        let patience = u64::try_from(self.transfer.patience.as_nanos()).unwrap_or(u64::MAX);
        self.deadline = cx.now + Duration::from_nanos(patience);
        self.end.move_on(cx);
    }

    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        match event {
            Event::Reset => self.end.fail("reset"),
            Event::Closed => self.end.closed = true,
            _ => {}
        }
        let done = self.end.move_on(cx);
        let shut = match self.transfer.direction {
            Direction::Down => done,
            Direction::Up => self.end.streams.written == self.end.streams.target,
        };
        if shut {
            cx.endpoint.shutdown(cx.now, id);
        }
        if done && self.transfer.direction == Direction::Down {
            self.end.tell(Ok(time::Instant::now()));
        }
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.deadline)
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        self.deadline = Instant::MAX;
        if let Some(id) = self.end.id {
            cx.endpoint.abort(cx.now, id);
        }
        let (read, size) = (self.end.streams.read, self.transfer.size.get());
        self.end.tell(Err(TransferError::Unfinished { read, size, after: self.transfer.patience }));
        self.end.closed = true;
    }

    fn is_finished(&self) -> bool {
        self.end.closed
    }
}

impl Server {
    pub(crate) fn new(transfer: Transfer, port: u16, report: Sender<Report>) -> Self {
        let expects = match transfer.direction {
            Direction::Down => REQUEST,
            Direction::Up => transfer.size.get(),
        };
        Server { transfer, port, end: End::new(expects, 0, report) }
    }
}

impl Application for Server {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        cx.endpoint.listen(self.port);
    }

    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        match event {
            Event::Accepted { .. } => self.end.id = Some(id),
            Event::Reset => self.end.fail("reset"),
            Event::Closed => self.end.closed = true,
            _ => {}
        }
        if !self.end.move_on(cx) {
            return;
        }
        match self.transfer.direction {
            Direction::Down => {
                self.end.streams.target = self.transfer.size.get();
                self.end.streams.write(cx, id);
                if self.end.streams.written == self.end.streams.target {
                    cx.endpoint.shutdown(cx.now, id);
                }
            }
            Direction::Up => {
                self.end.tell(Ok(time::Instant::now()));
                cx.endpoint.shutdown(cx.now, id);
            }
        }
    }

    fn is_finished(&self) -> bool {
        self.end.closed
    }
}

/// Written at once.
const PIECE: u64 = 1 << 16;
