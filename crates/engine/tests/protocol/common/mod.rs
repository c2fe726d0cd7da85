//! Two endpoints and a wire with one delay for each path, for tests of the protocol itself.
#![allow(dead_code, clippy::unwrap_used)]

pub mod puppet;

use anabranch_engine::{Config, ConnectionId, Endpoint, Event, LocalAddress, Profile, Read};
use anabranch_units::{Bytes, Duration, Instant, Seed, Stream};
use anabranch_wire::{Flags, Segment};
use bytes::Bytes as Payload;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

pub const PORT: u16 = 80;
pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

/// Effect of the wire on a segment; may change it, and drops it on `false`.
pub type Rule = Box<dyn FnMut(usize, &mut Segment) -> bool>;

pub struct Pair {
    pub now: Instant,
    pub hosts: [Endpoint; 2],
    pub id: [Option<ConnectionId>; 2],
    pub events: [Vec<Event>; 2],
    pub read: [Vec<u8>; 2],
    pub rule: Rule,
    /// Segments under way, each with its receiving host.
    wire: BTreeMap<(Instant, u64), (usize, Segment)>,
    sent: u64,
    /// One-way delay, by path.
    pub delays: Vec<Duration>,
    /// Its application does not read.
    pub deaf: [bool; 2],
    pub pending: [Vec<Payload>; 2],
    /// Segments that differ in nothing but their place arrive as one, up to a length drawn from this (receive offload).
    pub lumps: Option<Stream>,
}

pub fn client_ip(path: u8) -> IpAddr {
    IpAddr::from([10, 0, path, 1])
}

pub fn server_ip(number: u8) -> IpAddr {
    IpAddr::from([10, 1, number, 1])
}

pub fn config(addresses: impl IntoIterator<Item = IpAddr>) -> Config {
    Config::new(Profile::tcp(), addresses.into_iter().map(|ip| LocalAddress { ip, backup: false }).collect())
}

impl Pair {
    pub fn new(paths: u8) -> Self {
        Pair::with(config((0..paths).map(client_ip)), config([server_ip(0)]))
    }

    pub fn with(client: Config, server: Config) -> Self {
        Pair::seeded(1, client, server)
    }

    pub fn seeded(seed: u64, client: Config, server: Config) -> Self {
        let delays = (0..client.addresses.len() as u64).map(|i| Duration::from_millis(5 + 10 * i)).collect();
        let hosts = [Endpoint::new(client, Seed(seed)).unwrap(), Endpoint::new(server, Seed(seed + 1)).unwrap()];
        let mut pair = Pair {
            now: Instant::ZERO,
            hosts,
            id: [None, None],
            events: [Vec::new(), Vec::new()],
            read: [Vec::new(), Vec::new()],
            rule: Box::new(|_, _| true),
            wire: BTreeMap::new(),
            sent: 0,
            delays,
            deaf: [false, false],
            pending: [Vec::new(), Vec::new()],
            lumps: None,
        };
        pair.hosts[SERVER].listen(PORT);
        pair
    }

    pub fn open(&mut self) {
        let id = self.hosts[CLIENT].open(self.now, client_ip(0), SocketAddr::new(server_ip(0), PORT)).unwrap();
        self.id[CLIENT] = Some(id);
    }

    pub fn write(&mut self, host: usize, data: &'static [u8]) {
        self.pending[host].push(Payload::from_static(data));
    }

    pub fn shutdown(&mut self, host: usize) {
        let id = self.id[host].unwrap();
        self.hosts[host].shutdown(id);
    }

    /// Runs until nothing is left to do, or until `limit` after now. True if all is quiet.
    pub fn run(&mut self, limit: Duration) -> bool {
        let end = self.now + limit;
        loop {
            self.pump();
            let next = self.wire.keys().next().map(|(at, _)| *at);
            let timers = self.hosts.iter().filter_map(Endpoint::poll_timeout).min();
            let Some(at) = next.into_iter().chain(timers).min() else { return true };
            if at > end {
                self.now = end;
                return false;
            }
            self.now = at;
            while self.wire.keys().next().is_some_and(|(at, _)| *at <= self.now) {
                let (_, (to, mut segment)) = self.wire.pop_first().unwrap();
                self.join_lump(to, &mut segment);
                self.hosts[to].handle_segment(self.now, &mut segment);
                self.pump();
            }
            for host in &mut self.hosts {
                host.handle_timeout(self.now);
            }
        }
    }

    /// Adds to `segment` what arrives at the same time behind it, as far as receive offload would.
    fn join_lump(&mut self, to: usize, segment: &mut Segment) {
        let Some(draw) = &mut self.lumps else { return };
        let most = draw.below(65_000) as usize;
        let mut whole = segment.payload.to_vec();
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (host, next) = entry.get();
            let same = (next.flow, next.ack, next.window) == (segment.flow, segment.ack, segment.window);
            let follows = next.seq == segment.seq + whole.len() as u64 && !whole.is_empty() && !next.payload.is_empty();
            let plain =
                segment.flags == Flags::ACK && (next.flags == Flags::ACK || next.flags == Flags::ACK.with(Flags::PSH));
            let fits = whole.len() + next.payload.len() <= most;
            if *host != to || !same || !follows || !plain || next.options != segment.options || !fits {
                break;
            }
            whole.extend_from_slice(&next.payload);
            segment.flags = next.flags;
            entry.remove();
        }
        segment.payload = Payload::from(whole).into();
    }

    fn pump(&mut self) {
        loop {
            let mut busy = false;
            for host in 0..2 {
                while let Some((id, event)) = self.hosts[host].poll_event() {
                    busy = true;
                    self.id[host].get_or_insert(id);
                    self.events[host].push(event);
                }
                if let Some(id) = self.id[host] {
                    while let Some(first) = self.pending[host].first().cloned() {
                        let taken = self.hosts[host].write(id, &first).unwrap_or(0);
                        if taken < first.len() {
                            self.pending[host][0] = first.slice(taken..);
                            break;
                        }
                        self.pending[host].remove(0);
                    }
                    while !self.deaf[host] {
                        let Ok(Read::Data(chunk)) = self.hosts[host].read(id) else { break };
                        busy = true;
                        self.read[host].extend_from_slice(&chunk);
                    }
                }
                while let Some(mut transmit) = self.hosts[host].poll_transmit(self.now) {
                    busy = true;
                    assert!(transmit.segment.options.wire_length() <= 40, "options fit: {:?}", transmit.segment);
                    if !(self.rule)(host, &mut transmit.segment) {
                        continue;
                    }
                    let flow = transmit.segment.flow;
                    let client = if host == CLIENT { flow.src } else { flow.dst };
                    let path = (0..self.delays.len()).find(|i| client_ip(*i as u8) == client).unwrap();
                    self.sent += 1;
                    self.wire.insert((self.now + self.delays[path], self.sent), (1 - host, *transmit.segment));
                }
                if let Err(fault) = self.hosts[host].check(self.now) {
                    panic!("host {host} at {}: {fault}", self.now);
                }
            }
            if !busy {
                return;
            }
        }
    }

    pub fn has(&self, host: usize, wanted: impl Fn(&Event) -> bool) -> bool {
        self.events[host].iter().any(wanted)
    }
}

pub const PATTERN: &[u8] = &{
    let mut bytes = [0; 200_000];
    let mut i = 0;
    while i < bytes.len() {
        bytes[i] = (i % 251) as u8;
        i += 1;
    }
    bytes
};

pub fn buffer(bytes: u64) -> Bytes {
    Bytes::new(bytes)
}
