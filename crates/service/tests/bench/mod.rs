//! A proxy whose engine is joined in memory to another engine, and whose sockets are real ones on loopback.
//!
//! The clock is the bench's own: it moves by turns and by [`Bench::skip`], so that a process that stands still loses no
//! time.
#![allow(dead_code, clippy::unwrap_used)]

use anabranch_engine::{self as engine, Config, ConnectionId, Endpoint, Event, LocalAddress, Profile};
use anabranch_host::{Application, Context, Ready};
use anabranch_service::proxy::{Access, Direction, Limits, Proxy, Settings, Timeouts};
use anabranch_units::{Bytes as Size, Instant, Seed, SubflowSeq};
use bytes::{Buf, Bytes};
use mio::{Events, Poll, Token};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

pub const PORT: u16 = 443;

/// Limit that only a hang reaches.
const GUARD: Duration = Duration::from_secs(300);
/// Added to the clock by a turn: less than any turn takes, so that nothing is ever late.
const TURN: anabranch_units::Duration = anabranch_units::Duration::from_millis(1);
/// Time within which only what is under way wakes the proxy.
const SOON: anabranch_units::Duration = anabranch_units::Duration::from_millis(50);
/// Number of turns without any activity after which none is expected.
const QUIET_TURNS: u32 = 200;

pub fn proxy_ip(number: u8) -> IpAddr {
    IpAddr::from([10, 1, 0, number])
}

pub fn peer_ip(number: u8) -> IpAddr {
    IpAddr::from([10, 2, 0, number])
}

/// Application on the other engine.
#[derive(Default)]
pub struct Peer {
    pub to_send: VecDeque<Bytes>,
    pub finish: bool,
    /// Gives up as soon as everything was acknowledged.
    pub quits: bool,
    pub read: Vec<u8>,
    pub deaf: bool,
    /// Bytes that the application still reads; `None`: without a limit.
    pub thirst: Option<i64>,
    pub events: Vec<Event>,
}

impl Peer {
    pub fn has(&self, event: Event) -> bool {
        self.events.contains(&event)
    }
}

pub struct Bench {
    pub proxy: Proxy,
    pub engine: Endpoint,
    pub other: Endpoint,
    pub peers: BTreeMap<ConnectionId, Peer>,
    pub deaf: bool,
    /// Connections that the proxy's engine has told of.
    pub accepted: BTreeSet<ConnectionId>,
    /// The most that [`Bench::held`] came to after a round of the proxy.
    pub most_held: u64,
    /// The most that it grew by in a round.
    pub most_at_once: u64,
    last_held: u64,
    /// The first data of each connection that the other engine opens is lost, again and again, and nothing joins: by
    /// port, where it began.
    pub holes: Option<BTreeMap<u16, SubflowSeq>>,
    /// Loses all segments between the engines.
    pub cut: bool,
    poll: Poll,
    now: Instant,
}

pub fn settings(direction: Direction) -> Settings {
    Settings { direction, metrics: None, device: None, limits: Limits::default(), timeouts: Timeouts::default() }
}

pub fn to(address: SocketAddr) -> Settings {
    settings(Direction::Listen {
        port: PORT,
        host: address.ip().to_string(),
        to_port: address.port(),
        proxy_protocol: false,
    })
}

pub fn socks() -> Settings {
    let via = vec![proxy_ip(1), proxy_ip(2)];
    settings(Direction::Socks { listen: "127.0.0.1:0".parse().unwrap(), via, users: None, access: Access::default() })
}

fn endpoint(addresses: [IpAddr; 2], seed: u64) -> Endpoint {
    // Buffers that some megabytes fill.
    let profile = Profile { buffer: Size::new(6 << 20), ..Profile::tcp() };
    let addresses = addresses.map(|ip| LocalAddress { ip, backup: false });
    Endpoint::new(Config::new(profile, addresses.to_vec()), Seed(seed)).unwrap()
}

impl Bench {
    pub fn new(settings: Settings) -> Self {
        let mut bench = Bench {
            proxy: Proxy::new(settings).unwrap(),
            engine: endpoint([proxy_ip(1), proxy_ip(2)], 1),
            other: endpoint([peer_ip(1), peer_ip(2)], 2),
            peers: BTreeMap::new(),
            deaf: false,
            accepted: BTreeSet::new(),
            most_held: 0,
            most_at_once: 0,
            last_held: 0,
            holes: None,
            cut: false,
            poll: Poll::new().unwrap(),
            now: Instant::ZERO,
        };
        bench.other.listen(PORT);
        bench.with(|proxy, cx| proxy.on_start(cx));
        bench
    }

    /// The other engine speaks plain TCP from now on. It has no connection yet.
    pub fn speak_plainly(&mut self) {
        let addresses = [LocalAddress { ip: peer_ip(1), backup: false }];
        let profile = Profile::tcp();
        let config = Config { multipath: false, ..Config::new(profile, addresses.to_vec()) };
        self.other = Endpoint::new(config, Seed(2)).unwrap();
    }

    pub fn now(&self) -> Instant {
        self.now
    }

    /// Advances the clock for the whole bench, second by second.
    pub fn skip(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += anabranch_units::Duration::from_secs(1);
            self.turn();
        }
    }

    /// The other engine connects to the proxy.
    pub fn open(&mut self) -> ConnectionId {
        self.open_from(peer_ip(1))
    }

    pub fn open_from(&mut self, from: IpAddr) -> ConnectionId {
        let now = self.now();
        let id = self.other.open(now, from, SocketAddr::new(proxy_ip(1), PORT)).unwrap();
        self.peers.insert(id, Peer::default());
        id
    }

    /// Bytes that the proxy's engine holds for its connections.
    pub fn held(&self) -> u64 {
        let held = |id: &ConnectionId| {
            let alive = self.engine.load(*id).is_some();
            self.engine.connection_stats(*id).filter(|_| alive).map_or(0, |stats| {
                stats.written - stats.data_acked + stats.received - stats.delivered + stats.ofo_bytes
            })
        };
        self.accepted.iter().map(held).sum()
    }

    pub fn peer(&mut self, id: ConnectionId) -> &mut Peer {
        self.peers.get_mut(&id).unwrap()
    }

    pub fn send(&mut self, id: ConnectionId, data: &[u8]) {
        self.peer(id).to_send.push_back(Bytes::copy_from_slice(data));
    }

    pub fn signal(&mut self) {
        self.with(|proxy, cx| proxy.on_signal(cx, 15));
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Proxy, &mut Context<'_>) -> T) -> T {
        let now = self.now();
        let registry = self.poll.registry();
        act(&mut self.proxy, &mut Context { endpoint: &mut self.engine, now, registry })
    }

    /// Runs until it holds.
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Bench) -> bool) {
        let start = std::time::Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < GUARD, "this never happened: {what}");
            self.turn();
        }
    }

    /// Runs until [`QUIET_TURNS`] turns have passed without activity.
    pub fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < QUIET_TURNS {
            quiet = if self.turn() { 0 } else { quiet + 1 };
        }
    }

    /// Reads the sockets and lets both engines act; returns true if anything happened. The clock advances by [`TURN`]
    /// only if an engine has a timer set or the proxy wants to be woken within [`SOON`], so that slow clients and
    /// services do not run into timeouts.
    pub fn turn(&mut self) -> bool {
        let soon = self.proxy.deadline().is_some_and(|at| at <= self.now + SOON);
        if soon || [&self.engine, &self.other].iter().any(|engine| engine.poll_timeout().is_some()) {
            self.now += TURN;
        }
        let mut events = Events::with_capacity(256);
        match self.poll.poll(&mut events, Some(Duration::from_millis(1))) {
            // The process was stopped and goes on.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => events.clear(),
            polled => polled.unwrap(),
        }
        let ready: Vec<(Token, Ready)> = events
            .iter()
            .map(|event| {
                let closed = event.is_read_closed() || event.is_error();
                (event.token(), Ready { readable: event.is_readable(), writable: event.is_writable(), closed })
            })
            .collect();
        let mut busy = !ready.is_empty();
        for (token, ready) in ready {
            self.with(|proxy, cx| proxy.on_ready(cx, token, ready));
        }
        let now = self.now();
        self.engine.handle_timeout(now);
        self.other.handle_timeout(now);
        if self.proxy.deadline().is_some_and(|at| at <= now) {
            self.with(|proxy, cx| proxy.on_timeout(cx));
        }
        busy |= self.exchange();
        busy
    }

    /// Everything that the two engines have to say to each other and to their applications; whether there was anything.
    fn exchange(&mut self) -> bool {
        let mut any = false;
        loop {
            let mut busy = false;
            let now = self.now();
            while let Some((id, event)) = self.engine.poll_event() {
                busy = true;
                self.accepted.insert(id);
                self.with(|proxy, cx| proxy.on_event(cx, id, event));
            }
            while let Some((id, event)) = self.other.poll_event() {
                busy = true;
                let deaf = self.deaf;
                self.peers.entry(id).or_insert_with(|| Peer { deaf, ..Peer::default() }).events.push(event);
            }
            for (id, peer) in &mut self.peers {
                while let Some(first) = peer.to_send.front_mut() {
                    let taken = self.other.write(*id, first).unwrap_or(0);
                    first.advance(taken);
                    if !first.is_empty() {
                        break;
                    }
                    peer.to_send.pop_front();
                }
                if peer.finish && peer.to_send.is_empty() {
                    self.other.shutdown(*id);
                    peer.finish = false;
                }
                let has_all = |load: engine::Load| peer.to_send.is_empty() && load.unacknowledged.is_zero();
                if peer.quits && self.other.load(*id).is_some_and(has_all) {
                    self.other.abort(now, *id);
                    peer.quits = false;
                }
                while !peer.deaf
                    && peer.thirst.is_none_or(|thirst| thirst > 0)
                    && let Ok(engine::Read::Data(chunk)) = self.other.read(*id)
                {
                    busy = true;
                    peer.thirst = peer.thirst.map(|thirst| thirst - chunk.len() as i64);
                    peer.read.extend_from_slice(&chunk);
                }
            }
            let (from, into) = (&mut self.engine, &mut self.other);
            {
                // Packets to unknown addresses are lost.
                while let Some(mut transmit) = from.poll_transmit(now) {
                    busy = true;
                    if !self.cut && (1..=2).any(|number| transmit.segment.flow.dst == peer_ip(number)) {
                        into.handle_segment(now, &mut transmit.segment);
                    }
                }
                // No more in a round than the reactor reads.
                for _ in 0..64 {
                    let Some(mut transmit) = into.poll_transmit(now) else { break };
                    busy = true;
                    let (flow, seq) = (transmit.segment.flow, transmit.segment.seq);
                    if let Some(holes) = &mut self.holes
                        && (flow.src != peer_ip(1)
                            || !transmit.segment.payload.is_empty()
                                && *holes.entry(flow.src_port).or_insert(seq) == seq)
                    {
                        continue;
                    }
                    if !self.cut && (1..=2).any(|number| flow.dst == proxy_ip(number)) {
                        from.handle_segment(now, &mut transmit.segment);
                    }
                }
            }
            self.with(|proxy, cx| proxy.on_round(cx));
            let held = self.held();
            self.most_held = self.most_held.max(held);
            self.most_at_once = self.most_at_once.max(held.saturating_sub(self.last_held));
            self.last_held = held;
            if !busy {
                return any;
            }
            any = true;
        }
    }
}

/// Bytes in which every place can be told from the others.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Reads to the end.
pub fn read_all(mut stream: &TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// An HTTP answer from `address`.
pub fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
    String::from_utf8(read_all(&stream).unwrap()).unwrap()
}
