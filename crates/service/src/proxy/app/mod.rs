//! The proxy as an application of the reactor: what happens when something happens.

mod arrivals;
mod ends;
mod exchange;
mod memory;
mod reload;
mod stages;

use crate::http::PLAIN;
use crate::proxy::front::{Denial, Host};
use crate::proxy::limits::{Admission, Limit};
use crate::proxy::metrics::{self, Scrape, Totals};
use crate::proxy::metrics_server::{MOST_VISITORS, MetricsServer, Page};
use crate::proxy::relay::SCRATCH;
use crate::proxy::report::{Outcome, Throttle};
use crate::proxy::resolver::Resolver;
use crate::proxy::session::{Session, Stage};
use crate::proxy::settings::{Direction, Settings};
use crate::proxy::slab::Slab;
use anabranch_engine::{ConnectionId, Event};
use anabranch_host::{Application, Context, FIRST_TOKEN, Ready};
use anabranch_units::{Duration, Instant};
use memory::Ebb;
use mio::net::TcpListener;
use mio::{Interest, Token};
pub use reload::{Changes, Reload};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The proxy. Its sockets are bound when it is made, its threads start with the reactor.
pub struct Proxy {
    settings: Settings,
    /// Sessions, boxed since they are taken out and put back for each step.
    sessions: Slab<Box<Session>>,
    serial: u64,
    /// Session of each connection, by [`ConnectionId::index`].
    owners: Vec<Option<(ConnectionId, usize)>>,
    admission: Admission,
    totals: Totals,
    listener: Option<TcpListener>,
    metrics: Option<MetricsServer>,
    resolver: Option<Resolver>,
    /// Addresses of the service.
    service: Vec<SocketAddr>,
    /// Sessions that were not read for want of room or because it was the turn of others, with their serial numbers.
    waiting: VecDeque<(usize, u64)>,
    /// Some of them could go on.
    busy: bool,
    ebb: Ebb,
    /// The effect of SIGHUP.
    reload: Option<Box<dyn FnMut() -> Reload>>,
    /// Sessions that are here only to be refused.
    refused: usize,
    /// Time at which sessions are looked after next.
    tick: Option<Instant>,
    /// Sessions whose socket is to be reset once its peer has all that was said before, with their serial numbers, and
    /// the time at which they are looked at next.
    parting: Vec<(usize, u64)>,
    parting_at: Option<Instant>,
    /// Clients may be waiting that could not be accepted.
    accept_again: bool,
    /// Time at which those that still run are cut off.
    drain: Option<Instant>,
    scratch: Vec<u8>,
    refusals: Throttle,
    evictions: Throttle,
    failures: Throttle,
    /// Error that ends the proxy.
    broken: Option<std::io::Error>,
}

/// Why a proxy cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A socket cannot be bound.
    #[error("cannot listen on {address}: {error}")]
    Bind {
        /// Address of the listener.
        address: SocketAddr,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// The proxy would be open to everyone.
    #[error("{address} can be reached from other machines: anyone there could connect to any address through this one")]
    Open {
        /// Address of the listener.
        address: SocketAddr,
    },
    /// The service has no address.
    #[error("cannot resolve `{host}`, the destination of --to: {error}")]
    Service {
        /// Its name.
        host: String,
        /// Error of the resolver.
        error: std::io::Error,
    },
}

/// Result of a step.
enum Next {
    /// Wait for the next event.
    Wait,
    /// End the session.
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
/// Time between two looks at sockets that are to be reset once their peers have everything.
const PARTING: Duration = Duration::from_millis(20);
/// Time for which a service that has finished may leave the rest of the client's data unread.
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
            Direction::Socks { listen, users, access, .. } if access.is_open(*listen, users.is_some()) => {
                return Err(BuildError::Open { address: *listen });
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
            waiting: VecDeque::new(),
            busy: false,
            ebb: Ebb::default(),
            reload: None,
            refused: 0,
            tick: None,
            parting: Vec::new(),
            parting_at: None,
            accept_again: false,
            drain: None,
            scratch: vec![0; SCRATCH],
            refusals: Throttle::default(),
            evictions: Throttle::default(),
            failures: Throttle::default(),
            broken: None,
            settings,
        })
    }

    /// Returns the address of the listener for SOCKS and HTTP.
    pub fn socks_address(&self) -> Option<SocketAddr> {
        self.listener.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Returns the address of the metrics server.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(|metrics| metrics.address().ok())
    }

    /// Clients now.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the number of clients with this outcome.
    pub fn ended(&self, outcome: Outcome) -> u64 {
        self.totals.outcomes.get(&outcome).copied().unwrap_or(0)
    }

    /// The number of connections that were cut off because they held most when this limit was exceeded.
    pub fn evicted(&self, limit: Limit) -> u64 {
        self.totals.evicted.get(&limit).copied().unwrap_or(0)
    }

    /// Bytes of memory held for the data of connections.
    pub fn held(&self) -> u64 {
        self.admission.held()
    }

    /// Returns the number of times a limit refused a client.
    pub fn limit_hits(&self, limit: Limit) -> u64 {
        self.totals.limits.get(&limit).copied().unwrap_or(0)
    }

    /// Takes the error that ended the proxy.
    pub fn take_error(&mut self) -> Option<std::io::Error> {
        self.broken.take()
    }

    fn start(&mut self, cx: &mut Context<'_>) -> std::io::Result<()> {
        cx.endpoint.watch_loads();
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
        if names { self.start_resolver(cx) } else { Ok(()) }
    }

    fn engine_is_client(&self) -> bool {
        matches!(self.settings.direction, Direction::Listen { .. })
    }

    // --- new clients -----------------------------------------------------------------------------------------------

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

    fn cut_off(&mut self, cx: &mut Context<'_>) {
        let indices: Vec<usize> = self.sessions.iter().map(|(index, _)| index).collect();
        if !indices.is_empty() {
            tracing::warn!(target: "anabranch::proxy", connections = indices.len(), "connections cut off");
        }
        for index in indices {
            self.step(cx, index, |_, _, _| Next::End(Outcome::Drained));
        }
    }

    // --- reporting -------------------------------------------------------------------------------------------------

    fn on_page(&mut self, cx: &mut Context<'_>, place: usize, page: Page) {
        let (status, kind, body) = match page {
            Page::Health if self.drain.is_some() => (503, PLAIN, "draining\n".to_owned()),
            Page::Health => (200, PLAIN, "ok\n".to_owned()),
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
                (200, OPEN_METRICS, scrape.text())
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
                // Meanwhile an address may have taken the name's place.
                let by_name = match &self.settings.direction {
                    Direction::Listen { host, .. } => !matches!(Host::parse(host), Some(Host::Address(_))),
                    Direction::Socks { .. } => false,
                };
                match answer.addresses {
                    Ok(addresses) if by_name && !addresses.is_empty() => self.service = addresses,
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

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

fn fail(session: &mut Session, outcome: Outcome, why: &str) -> Next {
    session.detail = why.to_owned();
    Next::End(outcome)
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
            Event::Connected { multipath } => {
                self.count_protocol(multipath);
                self.step(cx, index, |proxy, cx, session| proxy.on_connected(cx, index, session));
            }
            Event::Readable | Event::Writable | Event::PeerFinished => {
                self.step(cx, index, |proxy, cx, session| match session.stage {
                    Stage::Relaying => proxy.relay(cx, index, session),
                    _ => Next::Wait,
                });
            }
            Event::Closed => self.on_engine_gone(cx, id, index, true),
            Event::Reset => self.on_engine_gone(cx, id, index, false),
            Event::SubflowEstablished(_) => self.totals.subflows += 1,
            Event::SubflowReset { .. } => self.totals.subflow_resets += 1,
            _ => {}
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
                session.relay.on_ready(ready);
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
        [self.tick, self.parting_at].into_iter().flatten().min()
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        if self.parting_at.take_if(|at| *at <= cx.now).is_some() {
            self.part_with_sockets(cx);
        }
        if self.tick.is_none_or(|at| at > cx.now) {
            return;
        }
        self.tick = None;
        self.look_after(cx);
        let visitors = self.metrics.as_ref().is_some_and(|metrics| !metrics.is_idle());
        if !self.sessions.is_empty() || visitors || self.accept_again || self.ebb.is_expected() {
            self.keep_time(cx);
        }
    }

    fn on_round(&mut self, cx: &mut Context<'_>) {
        self.count_changes(cx);
        self.resume(cx);
    }

    fn is_busy(&self) -> bool {
        self.busy
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

    fn on_hangup(&mut self, cx: &mut Context<'_>) {
        self.read_again(cx);
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
                format!("SOCKS5 and HTTP on {listen}, via {}", via.join(", "))
            }
        }
    }
}
