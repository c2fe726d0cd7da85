//! The proxy as an application of the reactor: what happens when something happens.

use super::dial::{self, Dial};
use super::front::{Denial, Front, Host, Progress, Request};
use super::limits::{Admission, Limit};
use super::metrics::{self, Scrape, Totals};
use super::metrics_server::{MOST_VISITORS, MetricsServer, Page};
use super::proxy_protocol;
use super::relay::SCRATCH;
use super::report::{Outcome, Throttle};
use super::resolver::Resolver;
use super::session::{Session, Stage};
use super::settings::{Direction, Settings};
use super::slab::Slab;
use anabranch_engine::{ConnectionId, Event};
use anabranch_host::{Application, Context, FIRST_TOKEN, Ready};
use anabranch_units::{Duration, Instant};
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Token};
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Shutdown, SocketAddr, ToSocketAddrs};

/// The proxy. Its sockets are bound when it is made, its threads start with the reactor.
pub struct Proxy {
    settings: Settings,
    sessions: Slab<Session>,
    serial: u64,
    /// Whose connection it is, by [`ConnectionId::index`].
    owners: Vec<Option<(ConnectionId, usize)>>,
    admission: Admission,
    totals: Totals,
    listener: Option<TcpListener>,
    metrics: Option<MetricsServer>,
    resolver: Option<Resolver>,
    /// Where the service is.
    service: Vec<SocketAddr>,
    /// Sessions that are here only to be refused.
    refused: usize,
    /// When sessions are looked after next.
    tick: Option<Instant>,
    /// Clients may be waiting that could not be accepted.
    accept_again: bool,
    /// When those that still run are cut off.
    drain: Option<Instant>,
    scratch: Vec<u8>,
    refusals: Throttle,
    failures: Throttle,
    /// What keeps it from going on.
    broken: Option<std::io::Error>,
}

/// Why a proxy cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A socket cannot be bound.
    #[error("cannot listen on {address}: {error}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: std::io::Error,
    },
    /// The service has no address.
    #[error("cannot find `{host}`, where connections are to go: {error}")]
    Service {
        /// Its name.
        host: String,
        /// What the resolver said.
        error: std::io::Error,
    },
}

/// What a step comes to.
enum Next {
    /// Until something happens.
    Wait,
    /// It is over.
    End(Outcome),
}

const LISTENER: Token = Token(FIRST_TOKEN);
const METRICS: Token = Token(FIRST_TOKEN + 1);
const RESOLVER: Token = Token(FIRST_TOKEN + 2);
const FIRST_VISITOR: usize = FIRST_TOKEN + 16;
const FIRST_SESSION: usize = FIRST_VISITOR + MOST_VISITORS;

const TICK: Duration = Duration::from_secs(1);
/// Clients that are told of a limit at the same time; beyond it they are cut off without a word.
const MOST_REFUSED: usize = 64;
/// How long a service that has finished may leave the rest of the client's data without a reader.
const DISCARD: Duration = Duration::from_secs(30);
/// Answers with this number are for the service's name.
const SERVICE: u64 = u64::MAX;

impl Proxy {
    /// Binds its sockets and looks up where the service is.
    pub fn new(settings: Settings) -> Result<Self, BuildError> {
        let bind = |address, result: std::io::Result<_>| result.map_err(|error| BuildError::Bind { address, error });
        let (mut listener, mut service) = (None, Vec::new());
        match &settings.direction {
            Direction::Listen { host, to_port, .. } => {
                let found = (host.as_str(), *to_port).to_socket_addrs();
                let found = found.map_err(|error| BuildError::Service { host: host.clone(), error })?;
                service = found.collect();
            }
            Direction::Socks { listen, .. } => listener = Some(bind(*listen, TcpListener::bind(*listen))?),
        }
        let metrics = match settings.metrics {
            Some(address) => {
                let server = MetricsServer::bind(address, FIRST_VISITOR);
                Some(server.map_err(|error| BuildError::Bind { address, error })?)
            }
            None => None,
        };
        Ok(Proxy {
            sessions: Slab::new(),
            serial: 0,
            owners: Vec::new(),
            admission: Admission::new(settings.limits),
            totals: Totals::default(),
            listener,
            metrics,
            resolver: None,
            service,
            refused: 0,
            tick: None,
            accept_again: false,
            drain: None,
            scratch: vec![0; SCRATCH],
            refusals: Throttle::default(),
            failures: Throttle::default(),
            broken: None,
            settings,
        })
    }

    /// Where SOCKS and HTTP CONNECT clients are expected.
    pub fn socks_address(&self) -> Option<SocketAddr> {
        self.listener.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Where metrics are served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(|metrics| metrics.address().ok())
    }

    /// Clients now.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// How many clients ended like this.
    pub fn ended(&self, outcome: Outcome) -> u64 {
        self.totals.outcomes.get(&outcome).copied().unwrap_or(0)
    }

    /// How often a limit was in the way.
    pub fn limit_hits(&self, limit: Limit) -> u64 {
        self.totals.limits.get(&limit).copied().unwrap_or(0)
    }

    /// What made it end before its time.
    pub fn take_error(&mut self) -> Option<std::io::Error> {
        self.broken.take()
    }

    fn start(&mut self, cx: &mut Context<'_>) -> std::io::Result<()> {
        if let Some(metrics) = &mut self.metrics {
            metrics.register(cx.registry, METRICS)?;
        }
        if let Some(listener) = &mut self.listener {
            cx.registry.register(listener, LISTENER, Interest::READABLE)?;
        }
        let names = match &self.settings.direction {
            Direction::Listen { port, host, .. } => {
                cx.endpoint.listen(*port);
                !matches!(Host::parse(host), Some(Host::Address(_)))
            }
            Direction::Socks { .. } => true,
        };
        if names {
            self.resolver = Some(Resolver::start(cx.registry, RESOLVER)?);
        }
        Ok(())
    }

    fn engine_is_client(&self) -> bool {
        matches!(self.settings.direction, Direction::Listen { .. })
    }

    // --- new clients -----------------------------------------------------------------------------------------------

    /// The engine has accepted a connection.
    fn on_accepted(&mut self, cx: &mut Context<'_>, id: ConnectionId, multipath: bool) {
        let Direction::Listen { host, to_port, .. } = &self.settings.direction else { return };
        let target = format!("{host}:{to_port}");
        let Some(subflow) = cx.endpoint.subflows(id).into_iter().next() else { return };
        let client = subflow.remote;
        let admitted = if self.drain.is_some() { Err(Limit::Draining) } else { self.admission.admit(client.ip()) };
        if let Err(limit) = admitted {
            self.note_refusal(cx.now, client, limit);
            // Its end comes as an event of a connection that nobody owns.
            return cx.endpoint.abort(cx.now, id);
        }
        self.count_protocol(multipath);
        self.totals.accepted += 1;
        let stage = Stage::Connecting(Dial::direct(&self.service));
        let mut session = Session::new(self.next_serial(), client, cx.now, stage);
        session.target = target;
        session.connection = Some(id);
        let index = self.settle(cx, session);
        self.own(id, index);
        self.step(cx, index, |proxy, cx, session| proxy.connect(cx, index, session));
    }

    /// Clients are waiting at the kernel's socket.
    fn on_visitors(&mut self, cx: &mut Context<'_>) {
        self.accept_again = false;
        loop {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((socket, client)) => self.on_visitor(cx, socket, client),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    // No descriptors, no memory: nobody rings again for those who wait already.
                    self.note_failure(cx.now, "cannot accept", &error);
                    self.accept_again = true;
                    return self.keep_time(cx);
                }
            }
        }
    }

    fn on_visitor(&mut self, cx: &mut Context<'_>, mut socket: TcpStream, client: SocketAddr) {
        let Direction::Socks { users, .. } = &self.settings.direction else { return };
        let front = Front::new(users.clone());
        let admitted = self.admission.admit(client.ip());
        if let Err(limit) = admitted {
            self.note_refusal(cx.now, client, limit);
            if self.refused >= MOST_REFUSED {
                return;
            }
            self.refused += 1;
        } else {
            self.totals.accepted += 1;
        }
        let mut session = Session::new(self.next_serial(), client, cx.now, Stage::Greeting(front));
        session.admitted = admitted;
        let index = self.settle_later();
        if let Err(error) = self.register(cx, &mut socket, index) {
            self.note_failure(cx.now, "cannot watch a socket", &error);
            session.socket = Some(socket);
            return self.finish(cx, index, session, Outcome::ConnectFailed);
        }
        session.socket = Some(socket);
        (session.relay.readable, session.relay.writable) = (true, true);
        self.sessions.put(index, session);
        self.keep_time(cx);
        self.step(cx, index, |proxy, cx, session| proxy.greet(cx, index, session));
    }

    fn settle(&mut self, cx: &mut Context<'_>, session: Session) -> usize {
        let index = self.settle_later();
        self.sessions.put(index, session);
        self.keep_time(cx);
        index
    }

    fn settle_later(&mut self) -> usize {
        self.sessions.reserve()
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    fn keep_time(&mut self, cx: &Context<'_>) {
        self.tick.get_or_insert(cx.now + TICK);
    }

    fn register(&self, cx: &Context<'_>, socket: &mut TcpStream, index: usize) -> std::io::Result<()> {
        // Latency before packets: what is relayed comes in pieces that are as large as they can be already.
        let _ = socket.set_nodelay(true);
        cx.registry.register(socket, Token(FIRST_SESSION + index), Interest::READABLE | Interest::WRITABLE)
    }

    fn own(&mut self, id: ConnectionId, index: usize) {
        if self.owners.len() <= id.index() {
            self.owners.resize(id.index() + 1, None);
        }
        self.owners[id.index()] = Some((id, index));
    }

    fn owner(&self, id: ConnectionId) -> Option<usize> {
        self.owners.get(id.index()).copied().flatten().filter(|(known, _)| *known == id).map(|(_, index)| index)
    }

    fn disown(&mut self, id: ConnectionId) {
        if self.owner(id).is_some() {
            self.owners[id.index()] = None;
        }
    }

    // --- a session's steps -----------------------------------------------------------------------------------------

    /// Does something with a session, and what follows from it.
    fn step(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        act: impl FnOnce(&mut Self, &mut Context<'_>, &mut Session) -> Next,
    ) {
        let Some(mut session) = self.sessions.take(index) else { return };
        match act(self, cx, &mut session) {
            Next::Wait => self.sessions.put(index, session),
            Next::End(outcome) => self.finish(cx, index, session, outcome),
        }
    }

    /// Whatever the session can do now.
    fn advance(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session) -> Next {
        match session.stage {
            Stage::Greeting(_) => self.greet(cx, index, session),
            Stage::Connecting(_) if session.socket.is_some() => self.finish_connect(cx, index, session),
            Stage::Resolving(_) | Stage::Opening(..) | Stage::Connecting(_) => Next::Wait,
            Stage::Relaying => self.relay(cx, session),
            Stage::Lingering => self.linger(session),
        }
    }

    /// Reads what the client says before its stream begins.
    fn greet(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session) -> Next {
        loop {
            let (Stage::Greeting(front), Some(socket)) = (&mut session.stage, &mut session.socket) else {
                return Next::Wait;
            };
            let progress = match socket.read(&mut self.scratch) {
                Ok(0) => return fail(session, Outcome::BadRequest, "left without a request"),
                Ok(length) => front.receive(&self.scratch[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Next::Wait,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Next::End(Outcome::ClientReset),
            };
            let reply = front.take_reply();
            if !reply.is_empty() {
                session.relay.push_outward(reply);
            }
            if session.relay.give_to_socket(socket).is_err() {
                return Next::End(Outcome::ClientReset);
            }
            match progress {
                Progress::More => {}
                Progress::Refused(why) => {
                    session.detail = why.to_owned();
                    return self.send_away(cx, session, Outcome::BadRequest);
                }
                Progress::Asked(request) => return self.on_request(cx, index, session, &request),
            }
        }
    }

    fn on_request(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session, request: &Request) -> Next {
        session.target = request.to_string();
        if let Err(limit) = session.admitted {
            return self.deny(cx, session, Denial::Busy, Outcome::Refused(limit));
        }
        match &request.host {
            Host::Address(address) => {
                let address = SocketAddr::new(*address, request.port);
                self.on_addresses(cx, index, session, &[address])
            }
            Host::Name(name) => {
                let who = session.serial << 32 | index as u64;
                if self.resolver.as_ref().is_some_and(|resolver| resolver.ask(who, name, request.port)) {
                    let Some(front) = take_front(session) else { return Next::Wait };
                    session.enter(cx.now, Stage::Resolving(front));
                    return Next::Wait;
                }
                self.note_refusal(cx.now, session.client, Limit::Resolver);
                self.deny(cx, session, Denial::Busy, Outcome::Refused(Limit::Resolver))
            }
        }
    }

    fn on_addresses(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        session: &mut Session,
        addresses: &[SocketAddr],
    ) -> Next {
        let Direction::Socks { via, .. } = &self.settings.direction else { return Next::Wait };
        let permitted: Vec<_> = addresses.iter().copied().filter(|address| dial::is_permitted(address.ip())).collect();
        if permitted.is_empty() {
            return self.deny(cx, session, Denial::NotAllowed, Outcome::NotAllowed);
        }
        let dial = Dial::via(via, &permitted);
        if dial.is_empty() {
            session.detail = "no --via address of the destination's family".into();
            return self.deny(cx, session, Denial::Unreachable, Outcome::ConnectFailed);
        }
        let Some(front) = take_front(session) else { return Next::Wait };
        session.enter(cx.now, Stage::Opening(front, dial));
        self.open(cx, index, session, Denial::Unreachable)
    }

    /// Opens an engine connection to the next address; if there is none, the last one's failure is told.
    fn open(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session, why: Denial) -> Next {
        let Stage::Opening(_, dial) = &mut session.stage else { return Next::Wait };
        match dial.next(cx.now, self.settings.timeouts.attempt) {
            Some((local, remote)) => {
                let id = cx.endpoint.open(cx.now, local, remote);
                session.connection = Some(id);
                self.own(id, index);
                Next::Wait
            }
            None => self.deny(cx, session, why, Outcome::ConnectFailed),
        }
    }

    /// The engine's connection stands: the client may begin.
    fn on_connected(&mut self, cx: &mut Context<'_>, session: &mut Session) -> Next {
        let Stage::Opening(front, _) = &mut session.stage else { return Next::Wait };
        let local = session.connection.and_then(|id| cx.endpoint.subflows(id).first().map(|subflow| subflow.local));
        front.grant(local.unwrap_or(session.client));
        let (reply, rest) = (front.take_reply(), front.take_rest());
        session.relay.push_outward(reply);
        session.relay.push_inward(rest);
        session.enter(cx.now, Stage::Relaying);
        self.relay(cx, session)
    }

    /// Tries the service's next address.
    fn connect(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session) -> Next {
        session.socket = None;
        loop {
            let Stage::Connecting(dial) = &mut session.stage else { return Next::Wait };
            let Some(((), address)) = dial.next(cx.now, self.settings.timeouts.attempt) else {
                return Next::End(Outcome::ConnectFailed);
            };
            let connected = TcpStream::connect(address).and_then(|mut socket| {
                self.register(cx, &mut socket, index)?;
                Ok(socket)
            });
            match connected {
                Ok(socket) => {
                    session.socket = Some(socket);
                    return Next::Wait;
                }
                Err(error) => self.note_attempt(cx.now, session, &error),
            }
        }
    }

    /// The service's socket is connected, or it never will be.
    fn finish_connect(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session) -> Next {
        let Some(socket) = &session.socket else { return Next::Wait };
        let failed = match socket.take_error() {
            Ok(None) => match socket.peer_addr() {
                Ok(_) => None,
                Err(error) if error.kind() == ErrorKind::NotConnected => return Next::Wait,
                Err(error) => Some(error),
            },
            Ok(Some(error)) | Err(error) => Some(error),
        };
        if let Some(error) = failed {
            self.note_attempt(cx.now, session, &error);
            return self.connect(cx, index, session);
        }
        if let Direction::Listen { proxy_protocol: true, .. } = self.settings.direction {
            let local = session.connection.and_then(|id| cx.endpoint.subflows(id).first().map(|subflow| subflow.local));
            session.relay.push_outward(proxy_protocol::header(session.client, local.unwrap_or(session.client)));
        }
        (session.relay.readable, session.relay.writable) = (true, true);
        session.enter(cx.now, Stage::Relaying);
        self.relay(cx, session)
    }

    /// Moves what can be moved.
    fn relay(&mut self, cx: &mut Context<'_>, session: &mut Session) -> Next {
        let Some(socket) = &mut session.socket else {
            // The socket's part is done; the engine still says goodbye.
            return if session.connection.is_none() { Next::End(Outcome::Closed) } else { Next::Wait };
        };
        let engine_is_client = matches!(self.settings.direction, Direction::Listen { .. });
        let hold = self.admission.holds(session.client.ip()).is_some();
        let before = (session.relay.from_engine, session.relay.from_socket);
        let moved = session.relay.pump(cx, session.connection, socket, &mut self.scratch, hold);
        let from_engine = session.relay.from_engine - before.0;
        let from_socket = session.relay.from_socket - before.1;
        let (from_client, to_client) =
            if engine_is_client { (from_engine, from_socket) } else { (from_socket, from_engine) };
        self.totals.from_client += from_client;
        self.totals.to_client += to_client;
        match moved {
            Ok(0) => {}
            Ok(_) if session.relay.discards() => {}
            Ok(_) => session.active = cx.now,
            Err(broken) => {
                session.detail = broken.0.to_string();
                return Next::End(if engine_is_client { Outcome::TargetReset } else { Outcome::ClientReset });
            }
        }
        if session.relay.socket_done() {
            session.socket = None;
        }
        match (session.connection, session.ending) {
            (Some(_), _) => Next::Wait,
            (None, _) if session.relay.has_outward() => Next::Wait,
            (None, Some(outcome)) => Next::End(outcome),
            (None, None) => Next::End(Outcome::Closed),
        }
    }

    /// Tells the client that its request fails, and why.
    fn deny(&mut self, cx: &mut Context<'_>, session: &mut Session, why: Denial, outcome: Outcome) -> Next {
        if let Stage::Greeting(front) | Stage::Resolving(front) | Stage::Opening(front, _) = &mut session.stage {
            front.deny(why);
            let reply = front.take_reply();
            session.relay.push_outward(reply);
        }
        self.send_away(cx, session, outcome)
    }

    /// Lets the client take the last words before the socket is closed.
    fn send_away(&mut self, cx: &mut Context<'_>, session: &mut Session, outcome: Outcome) -> Next {
        session.ending = Some(outcome);
        session.enter(cx.now, Stage::Lingering);
        self.linger(session)
    }

    fn linger(&mut self, session: &mut Session) -> Next {
        let outcome = session.ending.unwrap_or(Outcome::Closed);
        let Some(socket) = &mut session.socket else { return Next::End(outcome) };
        if session.relay.give_to_socket(socket).is_err() {
            return Next::End(outcome);
        }
        if session.relay.has_outward() {
            return Next::Wait;
        }
        let _ = socket.shutdown(Shutdown::Write);
        // A socket closed with unread data sends a RST, which can overtake what was said.
        loop {
            match socket.read(&mut self.scratch) {
                Ok(0) => return Next::End(outcome),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Next::Wait,
                Err(_) => return Next::End(outcome),
            }
        }
    }

    /// The engine's connection is gone.
    fn on_engine_gone(&mut self, cx: &mut Context<'_>, id: ConnectionId, index: usize, orderly: bool) {
        self.disown(id);
        self.step(cx, index, |proxy, cx, session| {
            if session.connection != Some(id) {
                return Next::Wait;
            }
            proxy.collect(cx, session);
            match session.stage {
                Stage::Opening(..) => {
                    proxy.totals.attempts_failed += 1;
                    proxy.open(cx, index, session, Denial::ConnectionRefused)
                }
                Stage::Relaying if orderly => proxy.relay(cx, session),
                Stage::Relaying if session.relay.engine_finished() && session.relay.has_outward() => {
                    // It had said everything before it gave up: that is delivered.
                    session.ending = Some(proxy.reset_by_engine());
                    proxy.relay(cx, session)
                }
                _ => Next::End(proxy.reset_by_engine()),
            }
        });
    }

    fn reset_by_engine(&self) -> Outcome {
        if self.engine_is_client() { Outcome::ClientReset } else { Outcome::TargetReset }
    }

    /// Takes what the engine counted of the session's connection, which is gone or about to be.
    fn collect(&mut self, cx: &mut Context<'_>, session: &mut Session) {
        let Some(id) = session.connection.take() else { return };
        let subflows = cx.endpoint.subflows(id);
        if let Some(stats) = cx.endpoint.connection(id) {
            self.totals.ended.add(&stats, &subflows);
            session.counted = Some((stats, subflows));
        }
        cx.endpoint.forget(id);
    }

    /// The end of a session, whatever is still open.
    fn finish(&mut self, cx: &mut Context<'_>, index: usize, mut session: Session, outcome: Outcome) {
        if let Some(id) = session.connection {
            self.collect(cx, &mut session);
            self.disown(id);
            cx.endpoint.abort(cx.now, id);
        }
        if let Some(socket) = session.socket.take() {
            let unsaid = session.relay.has_outward() || !session.relay.engine_finished();
            let broken = !matches!(outcome, Outcome::Closed) && !matches!(session.stage, Stage::Lingering);
            if broken && unsaid {
                // RST: the other end shall not take what it got for the whole.
                let _ = socket2::SockRef::from(&socket).set_linger(Some(std::time::Duration::ZERO));
            }
        }
        match session.admitted {
            Ok(()) => self.admission.release(session.client.ip()),
            Err(_) => self.refused -= 1,
        }
        *self.totals.outcomes.entry(outcome).or_default() += 1;
        if session.admitted.is_ok() {
            session.log(cx.now, outcome, self.engine_is_client());
        }
        self.sessions.release(index);
    }

    // --- once a second ---------------------------------------------------------------------------------------------

    fn look_after(&mut self, cx: &mut Context<'_>) {
        if self.accept_again {
            self.on_visitors(cx);
        }
        if let Some(metrics) = &mut self.metrics {
            metrics.tick();
        }
        self.count_memory(cx);
        let indices: Vec<usize> = self.sessions.iter().map(|(index, _)| index).collect();
        for index in indices {
            self.step(cx, index, |proxy, cx, session| proxy.check_time(cx, index, session));
        }
        if self.drain.is_some_and(|until| until <= cx.now) {
            self.cut_off(cx);
        }
    }

    fn check_time(&mut self, cx: &mut Context<'_>, index: usize, session: &mut Session) -> Next {
        let now = cx.now;
        if session.is_overdue(now, &self.settings.timeouts) {
            return match session.stage {
                Stage::Greeting(_) => {
                    session.detail = "did not say in time where to go".into();
                    Next::End(Outcome::BadRequest)
                }
                Stage::Resolving(_) | Stage::Opening(..) => {
                    session.detail = "not connected in time".into();
                    self.give_up_opening(cx, session);
                    self.deny(cx, session, Denial::TimedOut, Outcome::ConnectFailed)
                }
                Stage::Connecting(_) => {
                    session.detail = "not connected in time".into();
                    Next::End(Outcome::ConnectFailed)
                }
                Stage::Relaying if session.relay.discards() => Next::End(self.reset_by_socket()),
                Stage::Relaying => Next::End(Outcome::Idle),
                Stage::Lingering => Next::End(session.ending.unwrap_or(Outcome::Closed)),
            };
        }
        if session.is_attempt_overdue(now) {
            self.totals.attempts_failed += 1;
            if let Stage::Opening(..) = session.stage {
                self.give_up_opening(cx, session);
                return self.open(cx, index, session, Denial::TimedOut);
            }
            return self.connect(cx, index, session);
        }
        if session.relay.discards() && now.since(session.active) > DISCARD {
            return Next::End(self.reset_by_socket());
        }
        // What was held back for want of memory may go on.
        self.advance(cx, index, session)
    }

    fn reset_by_socket(&self) -> Outcome {
        if self.engine_is_client() { Outcome::TargetReset } else { Outcome::ClientReset }
    }

    /// Ends the attempt under way; its end comes as an event of a connection that nobody owns.
    fn give_up_opening(&mut self, cx: &mut Context<'_>, session: &mut Session) {
        if let Some(id) = session.connection.take() {
            self.disown(id);
            cx.endpoint.abort(cx.now, id);
        }
    }

    fn count_memory(&mut self, cx: &mut Context<'_>) {
        self.admission.start_count();
        let mut most: Option<(u64, usize)> = None;
        for (index, session) in self.sessions.iter() {
            let in_engine = session.connection.and_then(|id| cx.endpoint.connection(id)).map_or(0, |stats| {
                let unacknowledged = stats.written.saturating_sub(stats.data_acked);
                unacknowledged + stats.received.saturating_sub(stats.delivered) + stats.ofo_bytes
            });
            let held = in_engine + session.relay.held() as u64;
            self.admission.count(session.client.ip(), held);
            if most.is_none_or(|(most, _)| held > most) {
                most = Some((held, index));
            }
        }
        if self.admission.is_full()
            && let Some((_, index)) = most
            && let Some(session) = self.sessions.take(index)
        {
            self.note_refusal(cx.now, session.client, Limit::Memory);
            self.finish(cx, index, session, Outcome::OutOfMemory);
        }
    }

    fn cut_off(&mut self, cx: &mut Context<'_>) {
        let indices: Vec<usize> = self.sessions.iter().map(|(index, _)| index).collect();
        if !indices.is_empty() {
            tracing::warn!(target: "anabranch::proxy", connections = indices.len(), "connections cut off");
        }
        for index in indices {
            self.step(cx, index, |_, _, _| Next::End(Outcome::Drained));
        }
    }

    // --- what is told ----------------------------------------------------------------------------------------------

    fn on_page(&mut self, cx: &mut Context<'_>, place: usize, page: Page) {
        let (status, kind, body) = match page {
            Page::Health if self.drain.is_some() => ("503 Service Unavailable", PLAIN, "draining\n".to_owned()),
            Page::Health => ("200 OK", PLAIN, "ok\n".to_owned()),
            Page::Metrics => {
                let scrape = Scrape {
                    totals: &self.totals,
                    endpoint: cx.endpoint,
                    admission: &self.admission,
                    sessions: self.sessions.len(),
                    live: self.sessions.iter().filter_map(|(_, session)| session.connection).collect(),
                    draining: self.drain.is_some(),
                    device_drops: self.settings.device.as_deref().and_then(metrics::device_drops),
                };
                ("200 OK", OPEN_METRICS, scrape.text())
            }
        };
        if let Some(metrics) = &mut self.metrics {
            metrics.answer(place, status, kind, &body);
        }
    }

    fn count_protocol(&mut self, multipath: bool) {
        if multipath {
            self.totals.multipath += 1;
        } else {
            self.totals.plain += 1;
        }
    }

    fn note_refusal(&mut self, now: Instant, client: SocketAddr, limit: Limit) {
        self.totals.hit(limit);
        if let Some(suppressed) = self.refusals.pass(now) {
            let limit = limit.name();
            tracing::warn!(target: "anabranch::proxy", %client, limit, suppressed, "refused");
        }
    }

    fn note_failure(&mut self, now: Instant, what: &str, error: &std::io::Error) {
        if let Some(suppressed) = self.failures.pass(now) {
            tracing::error!(target: "anabranch::proxy", %error, suppressed, "{what}");
        }
    }

    fn note_attempt(&mut self, now: Instant, session: &mut Session, error: &std::io::Error) {
        self.totals.attempts_failed += 1;
        session.detail = error.to_string();
        self.note_failure(now, "cannot connect to the service", error);
        if let (Some(resolver), Direction::Listen { host, to_port, .. }) = (&self.resolver, &self.settings.direction) {
            // It may have moved.
            resolver.ask(SERVICE, host, *to_port);
        }
    }

    fn on_answers(&mut self, cx: &mut Context<'_>) {
        while let Some(answer) = self.resolver.as_mut().and_then(Resolver::next_answer) {
            if answer.who == SERVICE {
                match answer.addresses {
                    Ok(addresses) if !addresses.is_empty() => self.service = addresses,
                    _ => {}
                }
                continue;
            }
            let index = (answer.who & u64::from(u32::MAX)) as usize;
            self.step(cx, index, |proxy, cx, session| {
                if session.serial << 32 | index as u64 != answer.who || !matches!(session.stage, Stage::Resolving(_)) {
                    return Next::Wait;
                }
                match answer.addresses {
                    Ok(addresses) if !addresses.is_empty() => proxy.on_addresses(cx, index, session, &addresses),
                    Ok(_) => proxy.deny(cx, session, Denial::NoSuchName, Outcome::NoSuchName),
                    Err(error) => {
                        session.detail = error.to_string();
                        proxy.deny(cx, session, Denial::NoSuchName, Outcome::NoSuchName)
                    }
                }
            });
        }
    }
}

const PLAIN: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

fn fail(session: &mut Session, outcome: Outcome, why: &str) -> Next {
    session.detail = why.to_owned();
    Next::End(outcome)
}

/// The handshake out of a session that goes on to another stage.
fn take_front(session: &mut Session) -> Option<Front> {
    match std::mem::replace(&mut session.stage, Stage::Lingering) {
        Stage::Greeting(front) | Stage::Resolving(front) | Stage::Opening(front, _) => Some(front),
        _ => None,
    }
}

impl Application for Proxy {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        if let Err(error) = self.start(cx) {
            self.broken = Some(error);
        }
    }

    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        if let Event::Accepted { multipath } = event {
            return self.on_accepted(cx, id, multipath);
        }
        let Some(index) = self.owner(id) else {
            if matches!(event, Event::Closed | Event::Reset) {
                cx.endpoint.forget(id);
            }
            return;
        };
        match event {
            Event::Accepted { .. } => {}
            Event::Connected { multipath } => {
                self.count_protocol(multipath);
                self.step(cx, index, |proxy, cx, session| proxy.on_connected(cx, session));
            }
            Event::Readable | Event::Writable => {
                self.step(cx, index, |proxy, cx, session| match session.stage {
                    Stage::Relaying => proxy.relay(cx, session),
                    _ => Next::Wait,
                });
            }
            Event::PeerFinished => self.step(cx, index, |proxy, cx, session| {
                session.relay.on_engine_finished();
                match session.stage {
                    Stage::Relaying => proxy.relay(cx, session),
                    _ => Next::Wait,
                }
            }),
            Event::Closed => self.on_engine_gone(cx, id, index, true),
            Event::Reset => self.on_engine_gone(cx, id, index, false),
            Event::SubflowEstablished(_) => self.totals.subflows += 1,
            Event::SubflowReset { .. } => self.totals.subflow_resets += 1,
            Event::Fallback(_) | Event::SubflowClosed(_) | Event::SchedulerOverruled(_) => {}
        }
    }

    fn on_ready(&mut self, cx: &mut Context<'_>, token: Token, ready: Ready) {
        match token {
            LISTENER => self.on_visitors(cx),
            METRICS => {
                if let Some(metrics) = &mut self.metrics {
                    metrics.accept(cx.registry);
                }
                self.keep_time(cx);
            }
            RESOLVER => self.on_answers(cx),
            Token(number @ FIRST_SESSION..) => self.step(cx, number - FIRST_SESSION, |proxy, cx, session| {
                session.relay.readable |= ready.readable || ready.closed;
                session.relay.writable |= ready.writable || ready.closed;
                proxy.advance(cx, number - FIRST_SESSION, session)
            }),
            Token(number) => {
                let place = number.wrapping_sub(FIRST_VISITOR);
                if let Some(page) = self.metrics.as_mut().and_then(|metrics| metrics.on_ready(place)) {
                    self.on_page(cx, place, page);
                }
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.tick
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        self.tick = None;
        self.look_after(cx);
        let visitors = self.metrics.as_ref().is_some_and(|metrics| !metrics.is_idle());
        // What is held is counted again when those who held it have gone, or nobody would be let in any more.
        if !self.sessions.is_empty() || visitors || self.accept_again || self.admission.held() > 0 {
            self.keep_time(cx);
        }
    }

    fn on_signal(&mut self, cx: &mut Context<'_>, signal: i32) {
        if self.drain.is_some() {
            tracing::warn!(target: "anabranch::proxy", signal, "second signal: ending at once");
            self.drain = Some(cx.now);
            return self.cut_off(cx);
        }
        let until = self.settings.timeouts.drain;
        let connections = self.sessions.len();
        tracing::info!(target: "anabranch::proxy", signal, connections, "draining for at most {until}");
        self.drain = Some(cx.now + until);
        if let Direction::Listen { port, .. } = &self.settings.direction {
            cx.endpoint.stop_listening(*port);
        }
        if let Some(mut listener) = self.listener.take() {
            let _ = cx.registry.deregister(&mut listener);
        }
        self.keep_time(cx);
    }

    fn is_finished(&self) -> bool {
        self.broken.is_some() || (self.drain.is_some() && self.sessions.is_empty())
    }
}

impl Proxy {
    /// The addresses that a client's stream may come from, for messages.
    pub fn describe(&self) -> String {
        match &self.settings.direction {
            Direction::Listen { port, host, to_port, .. } => format!("port {port} to {host}:{to_port}"),
            Direction::Socks { via, .. } => {
                let via: Vec<String> = via.iter().map(IpAddr::to_string).collect();
                let listen = self.socks_address().map_or_else(String::new, |address| address.to_string());
                format!("SOCKS5 and HTTP CONNECT on {listen}, via {}", via.join(", "))
            }
        }
    }
}
