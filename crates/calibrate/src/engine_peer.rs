//! Both ends of a transfer as applications of our engine.

use crate::transfer::{Bursts, Plan, REQUEST, Transfer, TransferError};
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
    /// Writes what the endpoint takes.
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

/// Report of an end whose part is done: the time at which it had read each file or burst, on the wall's clock.
pub(crate) type Report = Result<Vec<time::Instant>, TransferError>;

/// Bursts at the end that sends them.
struct Agenda {
    bursts: Bursts,
    sent: usize,
    next: Instant,
}

/// The end that opens the connection.
pub(crate) struct Client {
    transfer: Transfer,
    local: IpAddr,
    remote: SocketAddr,
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
    /// Ends, in the stream, of the file or bursts to be read.
    ends: Vec<u64>,
    /// Times at which the first of them were reached.
    arrived: Vec<time::Instant>,
    agenda: Option<Agenda>,
    closed: bool,
    begun: Sender<time::Instant>,
    report: Option<Sender<Report>>,
}

impl End {
    fn new(ends: Vec<u64>, target: u64, begun: Sender<time::Instant>, report: Sender<Report>) -> Self {
        let streams = Streams { target, ..Streams::default() };
        End { id: None, streams, ends, arrived: Vec::new(), agenda: None, closed: false, begun, report: Some(report) }
    }

    /// Notes the beginning of the file or of a burst.
    fn begin(&self) {
        // Nobody listens any more once the transfer was given up.
        let _ = self.begun.send(time::Instant::now());
    }

    /// Warms the connection up and begins to count towards the first burst.
    fn start(&mut self, now: Instant, bursts: Bursts) {
        self.streams.target = bursts.warm_up.get();
        self.agenda = Some(Agenda { bursts, sent: 0, next: now + on_our_clock(bursts.interval) });
    }

    /// Sends the bursts whose time has come.
    fn keep_agenda(&mut self, cx: &mut Context<'_>) {
        while let Some(agenda) = self.agenda.as_mut().filter(|agenda| agenda.next <= cx.now) {
            agenda.sent += 1;
            agenda.next += on_our_clock(agenda.bursts.interval);
            self.streams.target += agenda.bursts.size.get();
            if agenda.sent >= agenda.bursts.count {
                self.agenda = None;
            }
            self.begin();
            self.move_on(cx);
        }
    }

    /// Moves what can be moved; true once everything that was expected has been read.
    fn move_on(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(id) = self.id else { return false };
        if let Err(error) = self.streams.read(cx, id) {
            self.tell(Err(error));
            cx.endpoint.abort(cx.now, id);
        }
        self.streams.write(cx, id);
        while self.ends.get(self.arrived.len()).is_some_and(|end| *end <= self.streams.read) {
            self.arrived.push(time::Instant::now());
        }
        self.arrived.len() == self.ends.len()
    }

    fn tell(&mut self, report: Report) {
        if let Some(sender) = self.report.take() {
            // Nobody listens any more once the other end's report decided.
            let _ = sender.send(report);
        }
    }

    fn tell_arrivals(&mut self) {
        let times = self.arrived.clone();
        self.tell(Ok(times));
    }

    fn fail(&mut self, reason: &str) {
        let read = self.streams.read;
        self.tell(Err(TransferError::Broken { read, reason: reason.to_owned() }));
        self.closed = true;
    }
}

/// The engine's duration; the longest one for what it cannot hold.
fn on_our_clock(duration: time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

impl Client {
    pub(crate) fn new(
        transfer: Transfer,
        local: IpAddr,
        remote: SocketAddr,
        begun: Sender<time::Instant>,
        report: Sender<Report>,
    ) -> Self {
        let (ends, target) = match (transfer.direction, transfer.plan) {
            (Direction::Down, Plan::File(_)) => (transfer.plan.ends(), REQUEST),
            (Direction::Down, Plan::Bursts(_)) => (transfer.plan.ends(), 0),
            (Direction::Up, Plan::File(size)) => (Vec::new(), size.get()),
            (Direction::Up, Plan::Bursts(_)) => (Vec::new(), 0),
        };
        Client { transfer, local, remote, end: End::new(ends, target, begun, report), deadline: Instant::MAX }
    }
}

impl Application for Client {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        match (self.transfer.plan, self.transfer.direction) {
            (Plan::File(_), _) => self.end.begin(),
            (Plan::Bursts(bursts), Direction::Up) => self.end.start(cx.now, bursts),
            (Plan::Bursts(_), Direction::Down) => {}
        }
        self.end.id = Some(cx.endpoint.open(cx.now, self.local, self.remote));
        self.deadline = cx.now + on_our_clock(self.transfer.patience);
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
            Direction::Up => self.end.streams.written == self.transfer.plan.total(),
        };
        if shut {
            cx.endpoint.shutdown(cx.now, id);
        }
        if done && self.transfer.direction == Direction::Down {
            self.end.tell_arrivals();
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let next = self.end.agenda.as_ref().map_or(Instant::MAX, |agenda| agenda.next);
        Some(self.deadline.min(next))
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        if cx.now < self.deadline {
            return self.end.keep_agenda(cx);
        }
        self.deadline = Instant::MAX;
        self.end.agenda = None;
        if let Some(id) = self.end.id {
            cx.endpoint.abort(cx.now, id);
        }
        let (read, size) = (self.end.streams.read, self.transfer.plan.total());
        self.end.tell(Err(TransferError::Unfinished { read, size, after: self.transfer.patience }));
        self.end.closed = true;
    }

    fn is_finished(&self) -> bool {
        self.end.closed
    }
}

impl Server {
    pub(crate) fn new(transfer: Transfer, port: u16, begun: Sender<time::Instant>, report: Sender<Report>) -> Self {
        let ends = match (transfer.direction, transfer.plan) {
            (Direction::Down, Plan::File(_)) => vec![REQUEST],
            (Direction::Down, Plan::Bursts(_)) => Vec::new(),
            (Direction::Up, plan) => plan.ends(),
        };
        Server { transfer, port, end: End::new(ends, 0, begun, report) }
    }
}

impl Application for Server {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        cx.endpoint.listen(self.port);
    }

    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        match event {
            Event::Accepted { .. } => {
                self.end.id = Some(id);
                if let (Plan::Bursts(bursts), Direction::Down) = (self.transfer.plan, self.transfer.direction) {
                    self.end.start(cx.now, bursts);
                }
            }
            Event::Reset => self.end.fail("reset"),
            Event::Closed => self.end.closed = true,
            _ => {}
        }
        let done = self.end.move_on(cx);
        match self.transfer.direction {
            Direction::Down => {
                if let (Plan::File(size), true) = (self.transfer.plan, done) {
                    self.end.streams.target = size.get();
                    self.end.streams.write(cx, id);
                }
                if self.end.streams.written == self.transfer.plan.total() {
                    cx.endpoint.shutdown(cx.now, id);
                }
            }
            Direction::Up if done => {
                self.end.tell_arrivals();
                cx.endpoint.shutdown(cx.now, id);
            }
            Direction::Up => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.end.agenda.as_ref().map(|agenda| agenda.next)
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        self.end.keep_agenda(cx);
    }

    fn is_finished(&self) -> bool {
        self.end.closed
    }
}

/// Written at once.
const PIECE: u64 = 1 << 16;
