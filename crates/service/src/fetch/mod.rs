//! The client of `anabranch fetch`: one exchange on one connection, a download, an upload, or both.
//!
//! Redirects and further addresses are the caller's: it looks at the [`Outcome`] and starts another.

mod outcome;
mod reply;
mod sink;
mod target;
mod upload;

pub use outcome::{FetchError, Outcome};
pub use sink::{Sink, WriterSink};
pub use target::{Scheme, Target, TargetError};
pub use upload::Upload;

use crate::course::Course;
use crate::journal::Journal;
use crate::patience::{LEAST_RATE, Pace, Patience};
use crate::stream::Stream;
use anabranch_engine::{ConnectionId, Event, FallbackReason, Read, ReadError};
use anabranch_events::ConnectionReport;
use anabranch_host::{Application, Context, FIRST_TOKEN, Ready};
use anabranch_units::{Duration, Instant};
use anabranch_wire::pattern;
use bytes::Bytes;
use mio::Token;
use reply::{Reply, Step};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

/// Time limits of an exchange.
#[derive(Clone, Copy, Debug)]
pub struct FetchLimits {
    /// Longest time from the first SYN to the connection.
    pub connect: Duration,
    /// Between two bytes, either way: received or acknowledged; and the least rate of both together.
    pub pace: Pace,
    /// All together; `None` for as long as it takes.
    pub total: Option<Duration>,
    /// Longest time from the last byte, either way, to the end of the connection, which is then aborted.
    pub linger: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        FetchLimits {
            connect: Duration::from_secs(30),
            pace: Pace { stall: Duration::from_secs(60), least: LEAST_RATE },
            total: None,
            linger: Duration::from_secs(3),
        }
    }
}

/// Progress of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the body received.
    pub received: u64,
    /// Length of the body, if it is known.
    pub expected: Option<u64>,
    /// Bytes of the upload handed over.
    pub uploaded: u64,
}

/// Callback that receives the progress, ten times a second.
pub type Watch = Box<dyn FnMut(Progress)>;

/// One exchange.
pub struct Fetch<S> {
    target: Target,
    local: IpAddr,
    remote: SocketAddr,
    range: Option<String>,
    upload: Upload,
    sink: S,
    limits: FetchLimits,
    journal: Journal,
    watch: Option<(Watch, Instant)>,
    id: Option<ConnectionId>,
    reply: Reply,
    /// Bytes to be written before the upload goes on.
    held: Bytes,
    /// Bytes of the reply that the sink had no room for.
    spare: Bytes,
    /// The connection is over; what it had received is still to be read.
    gone: bool,
    /// MPTCP was given up alone for this reason, and the peer may not know.
    fell_back: Option<FallbackReason>,
    /// Our FIN has told it.
    said_end: bool,
    /// Time at which something of the reply last arrived.
    moved: Instant,
    started: Instant,
    patience: Patience,
    phase: Phase,
    course: Course,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    /// Both directions may be under way.
    Exchange,
    /// The body is whole; the sink is still writing.
    Saving,
    /// Only the connection is still to be closed; it is aborted at that time.
    Closing(Instant),
    Over,
}

/// Interval of reports to the [`Watch`].
const WATCH: Duration = Duration::from_millis(100);
/// Pause after which the end of a reply may have come unseen.
const QUIET: Duration = Duration::from_secs(1);
/// The sink's.
const SINK: Token = Token(FIRST_TOKEN);

impl<S: Sink> Fetch<S> {
    /// Fetches `target` at `remote` from `local`, and gives the body to `sink`.
    pub fn new(target: Target, local: IpAddr, remote: SocketAddr, sink: S) -> Self {
        let reply = match target.scheme {
            Scheme::Http => Reply::http(),
            Scheme::Tcp => Reply::plain(),
        };
        Fetch {
            target,
            local,
            remote,
            range: None,
            upload: Upload::none(),
            sink,
            limits: FetchLimits::default(),
            journal: Journal::none(),
            watch: None,
            id: None,
            reply,
            held: Bytes::new(),
            spare: Bytes::new(),
            gone: false,
            fell_back: None,
            said_end: false,
            moved: Instant::ZERO,
            started: Instant::ZERO,
            patience: Patience::new(Instant::ZERO, &FetchLimits::default().pace),
            phase: Phase::Connecting,
            course: Course::default(),
            outcome: Outcome::default(),
        }
    }

    /// Sends this (PUT, with HTTP).
    pub fn upload(mut self, upload: Upload) -> Self {
        self.upload = upload;
        self
    }

    /// Asks for these bytes only, as in `Range: bytes=RANGE`.
    pub fn range(mut self, range: Option<String>) -> Self {
        self.range = range;
        self
    }

    /// Other limits.
    pub fn limits(mut self, limits: FetchLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Writes down what happens.
    pub fn journal(mut self, journal: Journal) -> Self {
        self.journal = journal;
        self
    }

    /// Tells of the progress.
    pub fn watch(mut self, watch: Option<Watch>) -> Self {
        self.watch = watch.map(|watch| (watch, Instant::ZERO));
        self
    }

    /// Returns the outcome, once it is finished, and the journal for the next exchange.
    pub fn into_outcome(self) -> (Outcome, Journal) {
        (self.outcome, self.journal)
    }

    /// The connection is there.
    fn begin(&mut self, now: Instant, multipath: bool) {
        self.phase = Phase::Exchange;
        self.patience = Patience::new(now, &self.limits.pace);
        self.outcome.multipath = multipath;
        self.outcome.connected = Some(now.since(self.started));
        if self.target.scheme == Scheme::Http {
            let method = if self.upload.is_some() { "PUT" } else { "GET" };
            let mut head = format!("{method} {} HTTP/1.1\r\nHost: {}\r\n", self.target.path, self.target.authority);
            head += concat!("User-Agent: anabranch/", env!("CARGO_PKG_VERSION"), "\r\n");
            head += "Accept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n";
            if let Some(range) = &self.range {
                head += &format!("Range: bytes={range}\r\n");
            }
            if self.upload.is_some() {
                head += &format!("Content-Length: {}\r\n", self.upload.length());
            }
            self.held = (head + "\r\n").into();
        }
    }

    /// Proceeds as far as possible.
    fn advance(&mut self, cx: &mut Context<'_>) {
        if self.phase != Phase::Exchange {
            return self.settle(cx);
        }
        let Some(id) = self.id else { return };
        let mut stream = Stream::new(cx.endpoint, id, cx.now);
        let sent = if self.gone { Ok(()) } else { self.send(&mut stream) };
        let result = sent.and_then(|()| self.receive(cx.now, || stream.read_on()));
        if self.misses_the_end().is_some_and(|at| at <= cx.now) {
            self.said_end = true;
            stream.shutdown();
        }
        self.patience.note(cx.now, stream.moved(), stream.load().as_ref(), true, &self.limits.pace);
        match result {
            Ok(true) => {
                self.explain(cx);
                self.outcome.finished = Some(cx.now.since(self.started));
                self.sink.finish();
                self.phase = Phase::Saving;
                cx.endpoint.shutdown(id);
                if self.gone {
                    self.let_go(cx);
                }
                self.settle(cx);
            }
            Ok(false) => {}
            Err(error) => self.fail(cx, error),
        }
    }

    fn send(&mut self, stream: &mut Stream<'_>) -> Result<(), FetchError> {
        while stream.write(&mut self.held) {
            match self.upload.next().map_err(FetchError::Upload)? {
                Some(piece) => {
                    self.outcome.uploaded += piece.len() as u64;
                    self.held = piece;
                }
                None => {
                    if self.target.scheme == Scheme::Tcp && self.upload.is_some() {
                        stream.shutdown();
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// Time from which on the end of the reply may have come unseen: it is a DATA_FIN if the peer does not know of the
    /// fallback. A FIN tells it (RFC 8684 §3.7), and there is nothing more to say. A peer that certainly had MPTCP is
    /// left alone while it sends: it may close the subflow at a FIN whose options are lost.
    fn misses_the_end(&self) -> Option<Instant> {
        // Nothing of the upload is left to be handed over.
        let done = self.held.is_empty() && self.outcome.uploaded == self.upload.length();
        let open = self.phase == Phase::Exchange && !self.gone && !self.said_end;
        let reason = self.fell_back.filter(|_| done && open && self.reply.lasts_until_close())?;
        Some(if reason == FallbackReason::FirstData { self.started } else { self.moved + QUIET })
    }

    /// Reads as long as the sink has room; true if the body is whole.
    fn receive(&mut self, now: Instant, mut read: impl FnMut() -> Result<Read, ReadError>) -> Result<bool, FetchError> {
        while !self.reply.is_done() {
            if !self.sink.has_room() {
                return Ok(false);
            }
            if self.spare.is_empty() {
                match read() {
                    Ok(Read::Data(piece)) => self.spare = piece,
                    Ok(Read::End) => {
                        self.reply.end()?;
                        continue;
                    }
                    Ok(Read::Pending) => return Ok(false),
                    Err(ReadError) => return Err(FetchError::Broken),
                }
            }
            match self.reply.read(&mut self.spare)? {
                Step::More => {}
                Step::Head { status, location, range, expected } => {
                    self.outcome.status = Some(status);
                    self.outcome.location = location;
                    self.outcome.expected = expected;
                    self.check_range(status, range)?;
                }
                Step::Body(piece) => {
                    self.moved = now;
                    self.outcome.first_byte.get_or_insert(now.since(self.started));
                    self.outcome.pattern &= pattern::matches(self.outcome.received, &piece);
                    self.outcome.received += piece.len() as u64;
                    // The body of an error reply is dropped.
                    if self.outcome.is_content() {
                        self.sink.offer(piece);
                    }
                }
            }
        }
        Ok(true)
    }

    /// A range that was asked for must be the one that comes.
    fn check_range(&self, status: u16, range: Option<Range<u64>>) -> Result<(), FetchError> {
        match (&self.range, status) {
            (Some(_), 200) => Err(FetchError::RangeIgnored),
            (Some(asked), 206) => {
                let first = asked.split('-').next().and_then(|first| first.parse::<u64>().ok());
                let right = range.is_some_and(|range| first.is_none_or(|first| first == range.start));
                if right { Ok(()) } else { Err(FetchError::RangeIgnored) }
            }
            _ => Ok(()),
        }
    }

    fn fail(&mut self, cx: &mut Context<'_>, error: FetchError) {
        self.take_report(cx);
        if self.outcome.finished.is_none() {
            self.explain(cx);
            self.outcome.finished = Some(cx.now.since(self.started));
        }
        self.outcome.error.get_or_insert(error);
        if let Some(id) = self.id.take() {
            cx.endpoint.abort(cx.now, id);
            cx.endpoint.forget(id);
        }
        self.phase = Phase::Over;
    }

    /// Forgets a connection that is gone, once its report was taken.
    fn let_go(&mut self, cx: &mut Context<'_>) {
        self.take_report(cx);
        if let Some(id) = self.id.take() {
            cx.endpoint.forget(id);
        }
    }

    fn take_report(&mut self, cx: &Context<'_>) {
        if let Some(id) = self.id {
            self.outcome.report = ConnectionReport::of(cx.endpoint, id).or(self.outcome.report.take());
        }
    }

    /// Says why it was slow, if it was. Called once, as the transfer ends: the wait for the end of the connection is no
    /// part of it.
    fn explain(&mut self, cx: &Context<'_>) {
        let now = self.id.and_then(|id| ConnectionReport::of(cx.endpoint, id));
        let Some(report) = now.as_ref().or(self.outcome.report.as_ref()) else { return };
        self.outcome.why = self.course.sentence(cx.now, &report.stats, &report.subflows);
    }

    /// Finishes the exchange: waits for the output, then for the connection to close.
    fn settle(&mut self, cx: &mut Context<'_>) {
        if self.phase == Phase::Saving {
            match self.sink.result() {
                None => return,
                Some(Err(error)) => return self.fail(cx, FetchError::Output(error)),
                Some(Ok(())) => self.phase = Phase::Closing(cx.now + self.limits.linger),
            }
        }
        let Phase::Closing(at) = self.phase else { return };
        if let Some(id) = self.id {
            while matches!(cx.endpoint.read(id), Ok(Read::Data(_))) {}
            let until = cx.endpoint.load(id).map_or(at, |load| {
                let patience = if load.unacknowledged.is_zero() { self.limits.linger } else { self.limits.pace.stall };
                at.max(load.active + patience)
            });
            self.phase = Phase::Closing(until);
            if until <= cx.now {
                self.take_report(cx);
                cx.endpoint.abort(cx.now, id);
                self.id = None;
            }
        }
        if self.id.is_none() {
            self.phase = Phase::Over;
        }
    }

    /// The connection is gone. What it had received is read to its end first, as fast as the sink takes it.
    fn on_gone(&mut self, cx: &mut Context<'_>) {
        match self.phase {
            Phase::Connecting => self.fail(cx, FetchError::NotConnected),
            Phase::Exchange => {
                self.gone = true;
                self.advance(cx);
            }
            Phase::Saving | Phase::Closing(_) | Phase::Over => {
                self.let_go(cx);
                self.settle(cx);
            }
        }
    }

    fn progress(&self) -> Progress {
        let Outcome { received, expected, uploaded, .. } = self.outcome;
        Progress { received, expected, uploaded }
    }

    /// Returns the next deadline, and the error if it passes.
    fn due(&self) -> Option<(Instant, FetchError)> {
        let total = self.limits.total.map(|total| (self.started + total, FetchError::TooLong));
        let phase = match self.phase {
            Phase::Connecting => (self.started + self.limits.connect, FetchError::NotConnected),
            Phase::Exchange => (self.patience.until(), FetchError::Stalled),
            Phase::Saving | Phase::Closing(_) | Phase::Over => return None,
        };
        [total, Some(phase)].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

impl<S: Sink> Application for Fetch<S> {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        self.started = cx.now;
        if let Err(error) = self.sink.register(cx.registry, SINK) {
            return self.fail(cx, FetchError::Output(error));
        }
        let id = match cx.endpoint.open(cx.now, self.local, self.remote) {
            Ok(id) => id,
            Err(error) => return self.fail(cx, FetchError::Open(error)),
        };
        if !self.upload.is_some() {
            // A GET (RFC 9110 §9.2.2).
            cx.endpoint.set_replayable(id);
        }
        self.id = Some(id);
    }

    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        self.journal.note(cx.now, cx.endpoint, id, event);
        if self.id != Some(id) {
            if matches!(event, Event::Closed | Event::Reset) {
                cx.endpoint.forget(id);
            }
            return;
        }
        if self.phase == Phase::Exchange {
            self.course.look(cx.now, cx.endpoint, id);
        }
        match event {
            Event::Connected { multipath } => {
                self.begin(cx.now, multipath);
                self.advance(cx);
            }
            Event::Readable | Event::Writable | Event::PeerFinished => self.advance(cx),
            Event::Closed | Event::Reset => self.on_gone(cx),
            Event::Reopened { multipath } => self.outcome.multipath = multipath,
            Event::Fallback(reason) => {
                self.outcome.multipath = false;
                self.fell_back = reason.is_one_sided().then_some(reason);
                self.advance(cx);
            }
            _ => {}
        }
    }

    fn on_ready(&mut self, cx: &mut Context<'_>, token: Token, _ready: Ready) {
        if token != SINK {
            return;
        }
        self.sink.on_ready();
        if self.phase == Phase::Exchange
            && let Some(Err(error)) = self.sink.result()
        {
            return self.fail(cx, FetchError::Output(error));
        }
        self.advance(cx);
    }

    fn deadline(&self) -> Option<Instant> {
        let due = self.due().map(|(at, _)| at);
        let closing = if let Phase::Closing(at) = self.phase { Some(at) } else { None };
        let watch = self.watch.as_ref().filter(|_| self.phase != Phase::Over).map(|(_, at)| *at);
        [due, closing, watch, self.misses_the_end()].into_iter().flatten().min()
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        if let Some(load) = self.id.and_then(|id| cx.endpoint.load(id)) {
            // Progress of the peer on data in the send buffer counts as well.
            self.patience.note(cx.now, 0, Some(&load), true, &self.limits.pace);
        }
        let progress = self.progress();
        if let Some((watch, at)) = &mut self.watch
            && *at <= cx.now
        {
            watch(progress);
            *at = cx.now + WATCH;
        }
        match self.due().filter(|(at, _)| *at <= cx.now) {
            // Not the peer's fault: our output is slow.
            Some((_, FetchError::Stalled)) if !self.sink.has_room() => self.patience.renew(cx.now, &self.limits.pace),
            Some((_, error)) => self.fail(cx, error),
            None => self.advance(cx),
        }
    }

    fn on_signal(&mut self, cx: &mut Context<'_>, _signal: i32) {
        if matches!(self.phase, Phase::Connecting | Phase::Exchange | Phase::Saving) {
            self.fail(cx, FetchError::Interrupted);
        } else {
            self.phase = Phase::Over;
        }
    }

    fn is_finished(&self) -> bool {
        self.phase == Phase::Over
    }
}
