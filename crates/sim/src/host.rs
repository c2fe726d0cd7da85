//! A host: an endpoint, and which of its connections are which sessions.

use crate::topology::{Topology, address};
use crate::{HostSpec, Spec, Workload};
use anabranch_engine::{ConnectionId, Endpoint, LocalAddress};
use anabranch_units::{AddressId, Instant, Seed};
use std::collections::BTreeMap;

pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    /// When the endpoint wants to be woken.
    pub(crate) deadline: Instant,
    /// Waits to be asked for events and segments.
    pub(crate) touched: bool,
    sessions: BTreeMap<ConnectionId, usize>,
    /// The last answer: events of one connection come in runs.
    last: Option<(ConnectionId, usize)>,
}

impl Host {
    fn new(spec: &HostSpec, addresses: Vec<LocalAddress>, seed: Seed, reports_departures: bool) -> Self {
        let mut config = spec.config(addresses);
        if !reports_departures {
            config.profile.tsq = None;
        }
        Host {
            endpoint: Endpoint::new(config, seed),
            deadline: Instant::MAX,
            touched: false,
            sessions: BTreeMap::new(),
            last: None,
        }
    }

    pub(crate) fn bind(&mut self, id: ConnectionId, session: usize) {
        self.sessions.insert(id, session);
    }

    pub(crate) fn unbind(&mut self, id: ConnectionId) {
        self.sessions.remove(&id);
        self.last = None;
    }

    /// The session that this connection is.
    #[inline]
    pub(crate) fn session(&mut self, id: ConnectionId) -> Option<usize> {
        match self.last {
            Some((last, session)) if last == id => Some(session),
            _ => {
                let session = *self.sessions.get(&id)?;
                self.last = Some((id, session));
                Some(session)
            }
        }
    }

    /// After anything was done to the endpoint.
    #[inline]
    pub(crate) fn update_deadline(&mut self) {
        self.deadline = self.endpoint.poll_timeout().unwrap_or(Instant::MAX);
    }
}

/// The hosts of a run in the order of their numbers: client and server, then one pair for each competing TCP.
pub(crate) fn all(spec: &Spec, topology: &Topology) -> Vec<Host> {
    let reports = spec.paths.iter().any(|path| path.nic.is_some());
    let client_addresses = spec.paths.iter().enumerate().map(|(path, it)| local(0, path, it.backup)).collect();
    let server_addresses = (0..spec.server.addresses).map(|index| local(1, index, false)).collect();
    let mut hosts = vec![
        Host::new(&spec.client, client_addresses, spec.seed.child("host/client"), reports),
        Host::new(&spec.server, server_addresses, spec.seed.child("host/server"), reports),
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
            hosts.push(Host::new(&spec_of_host, vec![local(number, index, false)], seed, reports));
        }
    }
    hosts
}

fn local(host: usize, index: usize, backup: bool) -> LocalAddress {
    LocalAddress { ip: address(host, index), id: AddressId(index as u8), backup }
}
