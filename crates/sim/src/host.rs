//! A host: an endpoint, and which of its connections are which sessions.

use crate::address::address;
use crate::{HostSpec, Spec, Workload};
use anabranch_engine::{Config, ConnectionId, Endpoint, LocalAddress};
use anabranch_net::Carried;
use anabranch_paths::{Direction, Topology, copy_name};
use anabranch_units::{Instant, Seed};

/// An endpoint with its place in the run.
pub(crate) struct Host {
    pub(crate) place: Place,
    config: Config,
    seed: Seed,
    /// The number of times that it has lost all state.
    restarts: u32,
    pub(crate) endpoint: Endpoint,
    /// Waits to be asked for events and segments.
    pub(crate) touched: bool,
    /// Connections that are gone, or will be before the host next rests.
    left: Vec<ConnectionId>,
    /// Session by the connection's index, which is used again once the connection is gone.
    sessions: Vec<Option<(ConnectionId, usize)>>,
}

impl Host {
    fn new(place: Place, config: Config, seed: Seed) -> Self {
        Host {
            place,
            endpoint: new_endpoint(&config, seed),
            config,
            seed,
            restarts: 0,
            touched: false,
            left: Vec::new(),
            sessions: Vec::new(),
        }
    }

    /// Loses all state: another endpoint with the same settings takes the place of the one there was.
    pub(crate) fn restart(&mut self) {
        self.restarts += 1;
        self.endpoint = new_endpoint(&self.config, self.seed.child(&format!("restart/{}", self.restarts)));
        self.left.clear();
        self.sessions.clear();
    }

    /// Assigns a connection to a session.
    pub(crate) fn bind(&mut self, id: ConnectionId, session: usize) {
        if self.sessions.len() <= id.index() {
            self.sessions.resize(id.index() + 1, None);
        }
        self.sessions[id.index()] = Some((id, session));
    }

    /// Removes a connection from its session.
    pub(crate) fn leave(&mut self, id: ConnectionId) {
        if self.session(id).is_some() {
            self.sessions[id.index()] = None;
            self.left.push(id);
        }
    }

    /// The host has nothing more to do now: memory of connections that are gone is freed. Returns when the endpoint
    /// wants to be woken; [`Instant::MAX`] for never.
    #[inline]
    pub(crate) fn rest(&mut self) -> Instant {
        if !self.left.is_empty() {
            self.left.drain(..).for_each(|id| self.endpoint.forget(id));
        }
        self.touched = false;
        self.endpoint.poll_timeout().unwrap_or(Instant::MAX)
    }

    /// The session that this connection is.
    #[inline]
    pub(crate) fn session(&self, id: ConnectionId) -> Option<usize> {
        match self.sessions.get(id.index()) {
            Some(&Some((known, session))) if known == id => Some(session),
            _ => None,
        }
    }
}

/// The place of a host in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The client whose copies of the paths it uses.
    pub(crate) client: usize,
    /// The pair of hosts on these paths: 0 is under test, `n` the n-th competing TCP.
    pub(crate) pair: u8,
    pub(crate) side: Side,
    /// The number of the other host of the pair.
    pub(crate) peer: usize,
}

/// The side of its connections that a host is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// Opens connections, and has an address on each path.
    Client = 0,
    /// Accepts them.
    Server = 1,
}

impl Side {
    /// Returns the direction in which it sends.
    #[inline]
    pub(crate) const fn sends(self) -> Direction {
        match self {
            Side::Client => Direction::Up,
            Side::Server => Direction::Down,
        }
    }
}

impl Place {
    /// Returns its role for observers, among the hosts of one client.
    pub(crate) const fn role(self) -> crate::Host {
        match (self.pair, self.side) {
            (0, Side::Client) => crate::Host::Client,
            (0, Side::Server) => crate::Host::Server,
            (pair, Side::Client) => crate::Host::CompetingClient(pair),
            (pair, Side::Server) => crate::Host::CompetingServer(pair),
        }
    }
}

fn new_endpoint(config: &Config, seed: Seed) -> Endpoint {
    Endpoint::new(config.clone(), seed).expect("the settings of hosts were checked before the run")
}

/// The hosts of a run in the order of their numbers: of each client in turn the client and its server, then one pair
/// for each competing TCP.
pub(crate) fn all<P: Carried>(spec: &Spec, topology: &Topology<P>) -> Vec<Host> {
    let mut hosts = Vec::new();
    for client in 0..spec.clients {
        add_pairs(&mut hosts, spec, topology, client);
    }
    hosts
}

/// Adds the hosts on the paths of one client.
fn add_pairs<P: Carried>(hosts: &mut Vec<Host>, spec: &Spec, topology: &Topology<P>, client: usize) {
    let reports_departures = spec.network.paths.iter().any(|path| path.nic.is_some());
    let config = |host: &HostSpec, addresses| Config {
        addresses,
        loss_oracle: spec.loss_oracle,
        reports_departures,
        ..host.config.clone()
    };
    let seed = |name: &str| spec.seed.child(&format!("host/{}", copy_name(client, name)));
    let number = hosts.len();
    let [here, there] = places(number, client, 0);
    let addresses = spec.network.paths.iter().enumerate().map(|(path, it)| local(number, path, it.backup)).collect();
    hosts.push(Host::new(here, config(&spec.client, addresses), seed("client")));
    let addresses = (0..spec.server.addresses).map(|index| local(number + 1, index, false)).collect();
    hosts.push(Host::new(there, config(&spec.server, addresses), seed("server")));
    for (workload, pair) in spec.workloads.iter().filter(|it| matches!(it, Workload::Tcp { .. })).zip(1..) {
        let Workload::Tcp { path, congestion, .. } = workload else { continue };
        let path = topology.path_named(path).expect("names were checked before the hosts are made");
        let number = hosts.len();
        for (place, base) in places(number, client, pair).into_iter().zip([&spec.client, &spec.server]) {
            let mut spec_of_host = base.clone();
            spec_of_host.config.multipath = false;
            spec_of_host.config.announce = false;
            spec_of_host.config.policies.congestion = congestion.clone();
            let (host, index) = if place.side == Side::Client { (number, path) } else { (number + 1, 0) };
            // Numbered among the hosts of one client.
            let name = (2 * usize::from(pair) + place.side as usize).to_string();
            hosts.push(Host::new(place, config(&spec_of_host, vec![local(host, index, false)]), seed(&name)));
        }
    }
}

/// The places of the pair of hosts numbered from `number` on.
fn places(number: usize, client: usize, pair: u8) -> [Place; 2] {
    [
        Place { client, pair, side: Side::Client, peer: number + 1 },
        Place { client, pair, side: Side::Server, peer: number },
    ]
}

fn local(host: usize, index: usize, backup: bool) -> LocalAddress {
    LocalAddress { ip: address(host, index), backup }
}
