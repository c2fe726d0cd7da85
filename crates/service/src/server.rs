//! The server: which service stands at which port, and one session for each connection.

use crate::course::Course;
use crate::http::{HttpSession, Site};
use crate::journal::Journal;
use crate::patience::{LEAST_RATE, Pace, Patience};
use crate::plain::{Discard, Echo, Source};
use crate::session::Session;
use crate::stream::Stream;
use anabranch_engine::{ConnectionId, Event, Load};
use anabranch_events::ConnectionReport;
use anabranch_host::{Application, Context};
use anabranch_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Service on a port.
#[derive(Clone, Debug)]
pub enum Service {
    /// Reads everything.
    Discard,
    /// Sends back what comes.
    Echo,
    /// Sends this number of bytes of the test pattern and closes.
    Source(u64),
    /// HTTP/1.1.
    Http(Arc<Site>),
}

/// Limits on all clients together.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Connections at once; a further one is reset.
    pub connections: usize,
    /// The time that a connection may move no byte either way, and its peer acknowledge none, before it is reset; and
    /// the least rate at which the peer has to take what waits for it.
    pub pace: Pace,
    /// Longest time that connections may continue after a request to end.
    pub grace: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            connections: 1024,
            pace: Pace { stall: Duration::from_secs(120), least: LEAST_RATE },
            grace: Duration::from_secs(10),
        }
    }
}

/// Function that is told sentences about slow connections.
pub type Listener = Box<dyn FnMut(&str) + Send>;

/// Time between two sentences that are told.
const TOLD: Duration = Duration::from_secs(1);
/// No session is looked at more often without cause.
const SOON: Duration = Duration::from_millis(10);

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Totals {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections of these with MPTCP.
    pub multipath: u64,
    /// Connections turned away, because there were too many or the server was ending.
    pub turned_away: u64,
    /// MPTCP connections with data, all of which one subflow carried.
    pub on_one_subflow: u64,
    /// Connections that were slower than their best path alone.
    pub slower: u64,
    /// Closed in order by both ends.
    pub closed: u64,
    /// Reset by either.
    pub reset: u64,
    /// Bytes written and acknowledged by the peers.
    pub bytes_sent: u64,
    /// Bytes read.
    pub bytes_received: u64,
}

/// Services on an endpoint.
pub struct Server {
    services: BTreeMap<u16, Service>,
    limits: ServerLimits,
    journal: Journal,
    /// Sessions by the connection's index.
    sessions: Vec<Option<Slot>>,
    /// Times at which to check sessions; entries may be stale, never late.
    due: BTreeSet<(Instant, usize)>,
    totals: Totals,
    open: usize,
    /// Time at which what is still open is reset, once the server is to end.
    ending: Option<Instant>,
    /// Listener for sentences about slow connections, and the time at which it was told the last.
    tell: Option<Listener>,
    told: Option<Instant>,
}

struct Slot {
    id: ConnectionId,
    session: Box<dyn Session + Send>,
    patience: Patience,
    /// Its earliest entry in `due`.
    armed: Option<Instant>,
    course: Course,
}

impl Server {
    /// These services at these ports.
    pub fn new(services: BTreeMap<u16, Service>, limits: ServerLimits, journal: Journal) -> Self {
        let (sessions, due) = (Vec::new(), BTreeSet::new());
        Server {
            services,
            limits,
            journal,
            sessions,
            due,
            totals: Totals::default(),
            open: 0,
            ending: None,
            tell: None,
            told: None,
        }
    }

    /// Tells of connections that were slower than their best path alone, one in a second at most.
    #[must_use]
    pub fn tell(mut self, tell: Listener) -> Self {
        self.tell = Some(tell);
        self
    }

    /// Returns the counters so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Connections open now.
    pub fn open(&self) -> usize {
        self.open
    }

    /// The record of events.
    pub fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    fn accept(&mut self, cx: &mut Context<'_>, id: ConnectionId, multipath: bool) {
        let port = cx.endpoint.subflow_stats(id).first().map(|subflow| subflow.local.port());
        let service = port.and_then(|port| self.services.get(&port));
        let Some(service) = service.filter(|_| self.open < self.limits.connections && self.ending.is_none()) else {
            self.totals.turned_away += 1;
            return cx.endpoint.abort(cx.now, id);
        };
        let session: Box<dyn Session + Send> = match service {
            Service::Discard => Box::new(Discard),
            Service::Echo => Box::new(Echo::default()),
            Service::Source(length) => Box::new(Source::new(*length)),
            Service::Http(site) => Box::new(HttpSession::new(Arc::clone(site), cx.now)),
        };
        self.totals.accepted += 1;
        self.totals.multipath += u64::from(multipath);
        self.open += 1;
        if self.sessions.len() <= id.index() {
            self.sessions.resize_with(id.index() + 1, || None);
        }
        let patience = Patience::new(cx.now, &self.limits.pace);
        self.sessions[id.index()] = Some(Slot { id, session, patience, armed: None, course: Course::default() });
        self.with(cx, id, |session, stream| session.advance(stream));
    }

    fn with(&mut self, cx: &mut Context<'_>, id: ConnectionId, act: impl FnOnce(&mut dyn Session, &mut Stream<'_>)) {
        let Some(Some(slot)) = self.sessions.get_mut(id.index()) else { return };
        if slot.id != id {
            return;
        }
        slot.course.look(cx.now, cx.endpoint, id);
        let mut stream = Stream::new(cx.endpoint, id, cx.now);
        act(slot.session.as_mut(), &mut stream);
        slot.note(cx.now, stream.moved(), stream.load(), &self.limits.pace);
        // One that was just given up still wants what it wanted, until it is gone.
        let wanted = slot.wants().max(cx.now + SOON);
        if slot.armed.is_none_or(|armed| wanted < armed) {
            slot.armed = Some(wanted);
            self.due.insert((wanted, id.index()));
        }
    }

    fn leave(&mut self, cx: &mut Context<'_>, id: ConnectionId, closed: bool, report: Option<ConnectionReport>) {
        cx.endpoint.forget(id);
        let Some(place) = self.sessions.get_mut(id.index()) else { return };
        if place.as_ref().is_none_or(|slot| slot.id != id) {
            return;
        }
        *place = None;
        self.open -= 1;
        self.totals.closed += u64::from(closed);
        self.totals.reset += u64::from(!closed);
        if let Some(ConnectionReport { stats, subflows }) = report {
            self.totals.bytes_sent += stats.data_acked;
            self.totals.bytes_received += stats.delivered;
            let carried = subflows.iter().filter(|it| it.bytes_sent + it.bytes_received > 0).count();
            self.totals.on_one_subflow += u64::from(stats.fallback.is_none() && carried == 1);
        }
    }

    /// The sentence about a connection that is over and was slower than its best path alone, by its other end. Told to
    /// who listens, at most once a second.
    fn explain(&mut self, now: Instant, id: ConnectionId, report: &ConnectionReport) -> Option<String> {
        let slot = self.sessions.get(id.index())?.as_ref().filter(|slot| slot.id == id)?;
        let why = slot.course.sentence(now, &report.stats, &report.subflows)?;
        self.totals.slower += 1;
        if let Some(tell) = &mut self.tell
            && self.told.is_none_or(|told| now.since(told) >= TOLD)
        {
            self.told = Some(now);
            let remote = report.subflows.first().map_or_else(String::new, |subflow| subflow.remote.to_string());
            tell(&format!("{remote}: {why}"));
        }
        Some(why)
    }

    fn ids(&self) -> Vec<ConnectionId> {
        self.sessions.iter().flatten().map(|slot| slot.id).collect()
    }
}

impl Slot {
    /// Returns the time at which it is to be looked at.
    fn wants(&self) -> Instant {
        let stalled = self.patience.until();
        self.session.deadline().map_or(stalled, |deadline| deadline.min(stalled))
    }

    /// Takes note of progress: of `moved` bytes, and of the peer's on data in the send buffer.
    fn note(&mut self, now: Instant, moved: u64, load: Option<Load>, pace: &Pace) {
        let waits = load.is_some_and(|load| !load.unacknowledged.is_zero());
        self.patience.note(now, moved, load.as_ref(), waits, pace);
    }
}

impl Application for Server {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        for port in self.services.keys() {
            cx.endpoint.listen(*port);
        }
    }

    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        let is_over = matches!(event, Event::Closed | Event::Reset);
        if event == Event::Reset {
            // What had come before is its session's, and counts as received: the client knows that it came, although a
            // session that was held up by its own reply has no more use for it.
            self.with(cx, id, |session, stream| {
                session.advance(stream);
                while stream.read().is_some() {}
            });
        }
        let report = if is_over { ConnectionReport::of(cx.endpoint, id) } else { None };
        let why = report.as_ref().and_then(|report| self.explain(cx.now, id, report));
        self.journal.note_with(cx.now, cx.endpoint, id, event, why);
        match event {
            Event::Accepted { multipath } => self.accept(cx, id, multipath),
            Event::Readable | Event::Writable => self.with(cx, id, |session, stream| session.advance(stream)),
            Event::PeerFinished => self.with(cx, id, |session, stream| session.on_end(stream)),
            Event::Closed => self.leave(cx, id, true, report),
            Event::Reset => self.leave(cx, id, false, report),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let due = self.due.first().map(|(at, _)| *at);
        [due, self.ending].into_iter().flatten().min()
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        while let Some((at, index)) = self.due.first().copied().filter(|(at, _)| *at <= cx.now) {
            self.due.remove(&(at, index));
            let Some(Some(slot)) = self.sessions.get_mut(index) else { continue };
            if slot.armed != Some(at) {
                continue;
            }
            slot.armed = None;
            slot.note(cx.now, 0, cx.endpoint.load(slot.id), &self.limits.pace);
            let (id, stalled) = (slot.id, slot.patience.until() <= cx.now);
            let hurry = slot.session.deadline().is_some_and(|deadline| deadline <= cx.now);
            self.with(cx, id, |session, stream| match (hurry, stalled) {
                (true, _) => session.on_deadline(stream),
                (_, true) => stream.abort(),
                // Bytes have moved meanwhile.
                _ => {}
            });
        }
        if self.ending.is_some_and(|at| at <= cx.now) {
            self.ending = None;
            for id in self.ids() {
                cx.endpoint.abort(cx.now, id);
            }
            // The aborted connections still report their end; no new ones are accepted.
            self.ending = Some(Instant::MAX);
        }
    }

    /// First asks the sessions to end; the second time resets them.
    fn on_signal(&mut self, cx: &mut Context<'_>, _signal: i32) {
        let again = self.ending.is_some();
        for port in self.services.keys() {
            cx.endpoint.stop_listening(*port);
        }
        self.ending = Some(if again { cx.now } else { cx.now + self.limits.grace });
        for id in self.ids() {
            self.with(cx, id, |session, stream| session.drain(stream));
        }
    }

    fn is_finished(&self) -> bool {
        self.ending.is_some() && self.open == 0
    }
}
