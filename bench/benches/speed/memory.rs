//! Memory of runs and of idle connections.

use crate::counting;
use anabranch_engine::{Config, Endpoint, Event, LocalAddress, Profile, Read};
use anabranch_units::{Duration, Instant, Seed};
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The largest resident size that this process has had, in MiB; `None` where there is no `/proc`.
pub fn peak_resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kibibytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes / 1024.0)
}

/// Heap bytes per end of an idle connection of two subflows.
pub struct Idle {
    /// Just established.
    pub fresh: f64,
    /// Memory after so much data each way that every queue was in use.
    pub used: f64,
}

/// Establishes `count` connections between two hosts and lets them idle.
pub fn idle(count: usize) -> Idle {
    let mut pair = Pair::new();
    // What hosts keep beside connections is there from the beginning.
    pair.open();
    let before = counting::live();
    let ids: Vec<_> = (0..count).map(|_| pair.open()).collect();
    pair.rest();
    let per_end = |now: u64| now.saturating_sub(before) as f64 / (2 * count) as f64;
    let fresh = per_end(counting::live());
    for (client, server) in ids {
        pair.exchange(client, server);
    }
    pair.rest();
    Idle { fresh, used: per_end(counting::live()) }
}

type Id = anabranch_engine::ConnectionId;

/// Two hosts, and a wire that takes `DELAY`.
struct Pair {
    now: Instant,
    hosts: [Endpoint; 2],
    opened: [Option<Id>; 2],
}

impl Pair {
    fn new() -> Self {
        let host = |addresses: &[Ipv4Addr], seed| {
            let local = |&ip: &Ipv4Addr| LocalAddress { ip: IpAddr::V4(ip), backup: false };
            // The driver here does not report departures.
            let profile = Profile { tsq: None, ..Profile::tcp() };
            Endpoint::new(Config::new(profile, addresses.iter().map(local).collect()), Seed(seed))
                .expect("usual settings")
        };
        let mut hosts = [host(&CLIENT, 1), host(&[SERVER], 2)];
        hosts[1].listen(PORT);
        Pair { now: Instant::ZERO, hosts, opened: [None; 2] }
    }

    /// A connection with both its subflows.
    fn open(&mut self) -> (Id, Id) {
        let client = self.hosts[0]
            .open(self.now, IpAddr::V4(CLIENT[0]), SocketAddr::new(IpAddr::V4(SERVER), PORT))
            .expect("a first connection");
        self.run();
        // The first bytes show the peer that MPTCP gets through; then the second subflow is joined.
        self.hosts[0].write(client, &Bytes::from_static(&DATA[..100])).unwrap_or(0);
        self.run();
        let server = self.opened[1].expect("the server accepts within a round trip");
        assert_eq!(self.hosts[1].subflow_stats(server).iter().filter(|subflow| subflow.established).count(), 2);
        (client, server)
    }

    /// Data in both directions.
    fn exchange(&mut self, client: Id, server: Id) {
        for (host, id) in [(0, client), (1, server)] {
            assert_eq!(self.hosts[host].write(id, &Bytes::from_static(&DATA)), Ok(DATA.len()));
        }
        self.run();
    }

    /// Runs until the wire is empty.
    fn run(&mut self) {
        loop {
            self.now += DELAY;
            let mut wire = Vec::new();
            for (host, endpoint) in self.hosts.iter_mut().enumerate() {
                while let Some((id, event)) = endpoint.poll_event() {
                    match event {
                        Event::Accepted { .. } => self.opened[host] = Some(id),
                        Event::Readable => while matches!(endpoint.read(id), Ok(Read::Data(_))) {},
                        _ => {}
                    }
                }
                while let Some(transmit) = endpoint.poll_transmit(self.now) {
                    wire.push((1 - host, transmit.segment));
                }
            }
            if wire.is_empty() {
                return;
            }
            for (host, mut segment) in wire {
                self.hosts[host].handle_segment(self.now, &mut segment);
            }
        }
    }

    /// Runs until all timers have finished.
    fn rest(&mut self) {
        while let Some(at) = self.hosts.iter().filter_map(Endpoint::poll_timeout).min() {
            self.now = self.now.max(at);
            self.hosts.iter_mut().for_each(|host| host.handle_timeout(self.now));
            self.run();
        }
    }
}

const CLIENT: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const PORT: u16 = 80;
const DELAY: Duration = Duration::from_millis(5);
static DATA: [u8; 100_000] = [7; 100_000];
