//! A host: an endpoint, and which of its connections are which sessions.

use crate::address::address;
use crate::{HostSpec, Spec, Workload};
use anabranch_engine::{Config, ConnectionId, Endpoint, LocalAddress};
use anabranch_paths::Topology;
use anabranch_units::{Instant, Seed};

pub(crate) struct Host {
    config: Config,
    seed: Seed,
    /// The number of times that it has lost all state.
    restarts: u32,
    pub(crate) endpoint: Endpoint,
    /// When the endpoint wants to be woken.
    pub(crate) deadline: Instant,
    /// Waits to be asked for events and segments.
    pub(crate) touched: bool,
    /// Connections that are gone, or will be before the host next rests.
    left: Vec<ConnectionId>,
    /// By the connection's index, which is used again once it is gone.
    sessions: Vec<Option<(ConnectionId, usize)>>,
}

impl Host {
    fn new(config: Config, seed: Seed) -> Self {
        Host {
            endpoint: Endpoint::new(config.clone(), seed),
            config,
            seed,
            restarts: 0,
            deadline: Instant::MAX,
            touched: false,
            left: Vec::new(),
            sessions: Vec::new(),
        }
    }

    /// Loses all state: another endpoint with the same settings takes the place of the one there was.
    pub(crate) fn restart(&mut self) {
        self.restarts += 1;
        self.endpoint = Endpoint::new(self.config.clone(), self.seed.child(&format!("restart/{}", self.restarts)));
        self.deadline = Instant::MAX;
        self.left.clear();
        self.sessions.clear();
    }

    /// This connection is that session.
    pub(crate) fn bind(&mut self, id: ConnectionId, session: usize) {
        if self.sessions.len() <= id.index() {
            self.sessions.resize(id.index() + 1, None);
        }
        self.sessions[id.index()] = Some((id, session));
    }

    /// This connection is no session any more.
    pub(crate) fn leave(&mut self, id: ConnectionId) {
        if self.session(id).is_some() {
            self.sessions[id.index()] = None;
            self.left.push(id);
        }
    }

    /// The host has nothing more to do now: memory of connections that are gone is freed, and the alarm set.
    #[inline]
    pub(crate) fn rest(&mut self) {
        for id in self.left.drain(..) {
            self.endpoint.forget(id);
        }
        self.touched = false;
        self.deadline = self.endpoint.poll_timeout().unwrap_or(Instant::MAX);
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

/// The hosts of a run in the order of their numbers: client and server, then one pair for each competing TCP.
pub(crate) fn all<P: Clone>(spec: &Spec, topology: &Topology<P>) -> Vec<Host> {
    let reports_departures = spec.network.paths.iter().any(|path| path.nic.is_some());
    let config = |host: &HostSpec, addresses| {
        let mut config = Config { loss_oracle: spec.loss_oracle, ..host.config(addresses) };
        config.profile.tsq = config.profile.tsq.filter(|_| reports_departures);
        config
    };
    let client_addresses = spec.network.paths.iter().enumerate().map(|(path, it)| local(0, path, it.backup)).collect();
    let server_addresses = (0..spec.server.addresses).map(|index| local(1, index, false)).collect();
    let mut hosts = vec![
        Host::new(config(&spec.client, client_addresses), spec.seed.child("host/client")),
        Host::new(config(&spec.server, server_addresses), spec.seed.child("host/server")),
    ];
    for workload in &spec.workloads {
        let Workload::Tcp { path, congestion, .. } = workload else {
            continue;
        };
        let path = topology.path_named(path).expect("names were checked before the hosts are made");
        for (side, base) in [&spec.client, &spec.server].into_iter().enumerate() {
            let mut spec_of_host = HostSpec { multipath: false, announce: false, ..base.clone() };
            spec_of_host.policies.congestion = congestion.clone();
            let number = hosts.len();
            let index = if side == 0 { path } else { 0 };
            let seed = spec.seed.child(&format!("host/{number}"));
            hosts.push(Host::new(config(&spec_of_host, vec![local(number, index, false)]), seed));
        }
    }
    hosts
}

fn local(host: usize, index: usize, backup: bool) -> LocalAddress {
    LocalAddress { ip: address(host, index), backup }
}
