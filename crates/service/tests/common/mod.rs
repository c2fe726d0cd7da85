//! Two endpoints joined in memory, in virtual time: what happens depends on the seed alone.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses its part")]

use anabranch_engine::{Config, ConnectionId, Endpoint, Event, LocalAddress, Profile};
use anabranch_host::{Application, Context};
use anabranch_units::{Bytes as Size, Duration, Instant, Seed};
use anabranch_wire::{Flags, Segment};
use bytes::{Buf, Bytes};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

pub const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

/// The client's addresses: one for each path.
pub fn client(path: u8) -> IpAddr {
    IpAddr::from([10, 0, path, 2])
}

pub fn at(port: u16) -> SocketAddr {
    SocketAddr::new(SERVER, port)
}

pub struct Pair<C, S> {
    pub client: C,
    pub server: S,
    pub endpoints: [Endpoint; 2],
    pub now: Instant,
    /// Segments under way: when they arrive, in which order they left, and where.
    wire: BTreeMap<(Instant, u64), (usize, Segment)>,
    sent: u64,
    /// Loses every n-th segment.
    pub lose_every: Option<u64>,
    /// A box takes the MPTCP options out of what the server says after its SYN/ACK.
    pub strips: bool,
    poll: mio::Poll,
}

impl<C: Application, S: Application> Pair<C, S> {
    pub fn new(client_app: C, server_app: S) -> Self {
        Pair::with_client(client_app, server_app, |_| ())
    }

    /// The client's settings are changed like this.
    pub fn with_client(client_app: C, server_app: S, change: impl FnOnce(&mut Config)) -> Self {
        let buffer = Size::new(256 << 10);
        let config = |addresses: &[IpAddr]| {
            let addresses = addresses.iter().map(|ip| LocalAddress { ip: *ip, backup: false }).collect();
            Config {
                send_buffer: buffer,
                receive_buffer: buffer,
                reports_departures: true,
                ..Config::new(Profile::tcp(), addresses)
            }
        };
        let mut clients = config(&[client(1), client(2)]);
        change(&mut clients);
        let mut pair = Pair {
            client: client_app,
            server: server_app,
            endpoints: [Endpoint::new(clients, Seed(1)).unwrap(), Endpoint::new(config(&[SERVER]), Seed(2)).unwrap()],
            now: Instant::ZERO,
            wire: BTreeMap::new(),
            sent: 0,
            lose_every: None,
            strips: false,
            poll: mio::Poll::new().unwrap(),
        };
        pair.server(|server, cx| server.on_start(cx));
        pair.client(|client, cx| client.on_start(cx));
        pair
    }

    pub fn client<T>(&mut self, act: impl FnOnce(&mut C, &mut Context<'_>) -> T) -> T {
        let (endpoint, registry) = (&mut self.endpoints[0], self.poll.registry());
        act(&mut self.client, &mut Context { endpoint, now: self.now, registry })
    }

    pub fn server<T>(&mut self, act: impl FnOnce(&mut S, &mut Context<'_>) -> T) -> T {
        let (endpoint, registry) = (&mut self.endpoints[1], self.poll.registry());
        act(&mut self.server, &mut Context { endpoint, now: self.now, registry })
    }

    /// Runs until `done`, until no event is left, or until the limit; returns `done`.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + limit;
        loop {
            self.settle();
            if done(self) {
                return true;
            }
            let wire = self.wire.keys().next().map(|(at, _)| *at);
            let timers = self.endpoints.iter().map(Endpoint::poll_timeout);
            let deadlines = [self.client.deadline(), self.server.deadline()];
            let next = timers.chain(deadlines).chain([wire]).flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return false;
            };
            self.now = self.now.max(next);
            while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, mut segment) = entry.remove();
                self.endpoints[to].handle_segment(self.now, &mut segment);
            }
            for endpoint in &mut self.endpoints {
                endpoint.handle_timeout(self.now);
            }
            if self.client.deadline().is_some_and(|at| at <= self.now) {
                self.client(|client, cx| client.on_timeout(cx));
            }
            if self.server.deadline().is_some_and(|at| at <= self.now) {
                self.server(|server, cx| server.on_timeout(cx));
            }
        }
    }

    pub fn run_for(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Events to the applications and segments onto the wire, until there are none.
    fn settle(&mut self) {
        loop {
            let mut quiet = true;
            while let Some((id, event)) = self.endpoints[0].poll_event() {
                self.client(|client, cx| client.on_event(cx, id, event));
                quiet = false;
            }
            while let Some((id, event)) = self.endpoints[1].poll_event() {
                self.server(|server, cx| server.on_event(cx, id, event));
                quiet = false;
            }
            for from in 0..2 {
                while let Some(mut transmit) = self.endpoints[from].poll_transmit(self.now) {
                    if self.strips && from == 1 && !transmit.segment.flags.has(Flags::SYN) {
                        transmit.segment.options.strip_mptcp();
                    }
                    let size = transmit.segment.wire_length();
                    self.endpoints[from].handle_departure(transmit.tag, size);
                    self.sent += 1;
                    quiet = false;
                    if self.lose_every.is_some_and(|every| self.sent.is_multiple_of(every)) {
                        continue;
                    }
                    // The second path is the longer one.
                    let flow = transmit.segment.flow;
                    let second = flow.src == client(2) || flow.dst == client(2);
                    let delay = Duration::from_millis(if second { 15 } else { 5 });
                    self.wire.insert((self.now + delay, self.sent), (1 - from, *transmit.segment));
                }
            }
            if quiet {
                return;
            }
        }
    }
}

/// A client that writes given pieces at given times, and keeps the bytes it reads.
pub struct Script {
    pub port: u16,
    pub id: Option<ConnectionId>,
    /// Pieces to write, each with the time since the one before.
    pub pieces: Vec<(Duration, Bytes)>,
    /// Close our direction behind the last piece.
    pub finish: bool,
    /// Read what comes.
    pub reads: bool,
    pub received: Vec<u8>,
    pub ended: bool,
    pub gone: Option<Event>,
    /// Bytes that the endpoint has not taken.
    held: Bytes,
    next: Option<Instant>,
    connected: bool,
}

impl Script {
    pub fn new(port: u16, pieces: &[&[u8]]) -> Self {
        let pieces = pieces.iter().map(|piece| (Duration::from_millis(1), Bytes::copy_from_slice(piece))).collect();
        Script {
            port,
            id: None,
            pieces,
            finish: false,
            reads: true,
            received: Vec::new(),
            ended: false,
            gone: None,
            held: Bytes::new(),
            next: None,
            connected: false,
        }
    }

    pub fn every(mut self, pause: Duration) -> Self {
        self.pieces.iter_mut().for_each(|(wait, _)| *wait = pause);
        self
    }

    pub fn finishing(mut self) -> Self {
        self.finish = true;
        self
    }

    pub fn not_reading(mut self) -> Self {
        self.reads = false;
        self
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.received).into_owned()
    }

    /// Everything was said and the server's direction is closed.
    pub fn is_over(&self) -> bool {
        self.ended || self.gone.is_some()
    }

    pub fn advance(&mut self, cx: &mut Context<'_>) {
        let Some(id) = self.id.filter(|_| self.gone.is_none()) else { return };
        while self.reads
            && let Ok(anabranch_engine::Read::Data(piece)) = cx.endpoint.read(id)
        {
            self.received.extend_from_slice(&piece);
        }
        if !self.connected {
            return;
        }
        loop {
            let taken = cx.endpoint.write(id, &self.held).unwrap_or(0);
            self.held.advance(taken);
            if !self.held.is_empty() {
                return;
            }
            let Some((wait, _)) = self.pieces.first() else { break };
            let due = *self.next.get_or_insert(cx.now + *wait);
            if due > cx.now {
                return;
            }
            self.held = self.pieces.remove(0).1;
            self.next = None;
        }
        if self.finish {
            cx.endpoint.shutdown(id);
        }
    }
}

impl Application for Script {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        self.id = Some(cx.endpoint.open(cx.now, client(1), at(self.port)).unwrap());
    }

    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        if self.id != Some(id) {
            return;
        }
        match event {
            Event::Connected { .. } => self.connected = true,
            Event::PeerFinished => self.ended = true,
            Event::Closed | Event::Reset => {
                // Data that arrived before the end can still be read.
                while self.reads
                    && let Ok(anabranch_engine::Read::Data(piece)) = cx.endpoint.read(id)
                {
                    self.received.extend_from_slice(&piece);
                }
                self.gone = Some(event);
            }
            _ => {}
        }
        self.advance(cx);
    }

    fn deadline(&self) -> Option<Instant> {
        self.next.filter(|_| self.gone.is_none())
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        self.advance(cx);
    }
}
