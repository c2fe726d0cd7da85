//! Who may have how many connections.

use super::settings::Limits;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// Why a client is refused or cut off.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Limit {
    /// Connections of all clients.
    Connections,
    /// Connections of one client.
    ClientConnections,
    /// Memory of all clients.
    Memory,
    /// Memory of one client.
    ClientMemory,
    /// Names waiting to be looked up.
    Resolver,
    /// The proxy is about to end.
    Draining,
}

impl Limit {
    /// The word in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Connections => "connections",
            Limit::ClientConnections => "client-connections",
            Limit::Memory => "memory",
            Limit::ClientMemory => "client-memory",
            Limit::Resolver => "resolver",
            Limit::Draining => "draining",
        }
    }
}

/// Connections and memory by client.
pub(super) struct Admission {
    limits: Limits,
    clients: BTreeMap<IpAddr, Client>,
    connections: usize,
    /// Bytes held by all, as of the last round of counting.
    held: u64,
}

#[derive(Default)]
struct Client {
    connections: usize,
    held: u64,
}

impl Admission {
    pub(super) fn new(limits: Limits) -> Self {
        Admission { limits, clients: BTreeMap::new(), connections: 0, held: 0 }
    }

    /// Takes a connection of `client` into account, or says why it may not be.
    pub(super) fn admit(&mut self, client: IpAddr) -> Result<(), Limit> {
        if self.connections >= self.limits.connections {
            return Err(Limit::Connections);
        }
        if self.held > self.limits.memory.get() {
            return Err(Limit::Memory);
        }
        let entry = self.clients.entry(group(client)).or_default();
        let refused = if entry.connections >= self.limits.connections_per_client {
            Some(Limit::ClientConnections)
        } else if entry.held > self.limits.memory_per_client.get() {
            Some(Limit::ClientMemory)
        } else {
            None
        };
        if let Some(limit) = refused {
            // A limit of zero would otherwise leave an entry for each who tries.
            if entry.connections == 0 {
                self.clients.remove(&group(client));
            }
            return Err(limit);
        }
        entry.connections += 1;
        self.connections += 1;
        Ok(())
    }

    /// A connection that was admitted has gone.
    pub(super) fn release(&mut self, client: IpAddr) {
        self.connections -= 1;
        let entry = self.clients.get_mut(&group(client)).expect("whoever is released was admitted");
        entry.connections -= 1;
        if entry.connections == 0 {
            self.clients.remove(&group(client));
        }
    }

    /// Begins a round of counting what is held.
    pub(super) fn start_count(&mut self) {
        self.held = 0;
        self.clients.values_mut().for_each(|client| client.held = 0);
    }

    /// A connection of `client` holds so many bytes.
    pub(super) fn count(&mut self, client: IpAddr, bytes: u64) {
        self.held += bytes;
        if let Some(client) = self.clients.get_mut(&group(client)) {
            client.held += bytes;
        }
    }

    /// Which limit keeps the proxy from reading more for `client`.
    pub(super) fn holds(&self, client: IpAddr) -> Option<Limit> {
        if self.held > self.limits.memory.get() {
            return Some(Limit::Memory);
        }
        let held = self.clients.get(&group(client)).map_or(0, |client| client.held);
        (held > self.limits.memory_per_client.get()).then_some(Limit::ClientMemory)
    }

    /// Everybody together holds too much.
    pub(super) fn is_full(&self) -> bool {
        self.held > self.limits.memory.get()
    }

    /// Bytes held by all.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// Client addresses with connections.
    pub(super) fn clients(&self) -> usize {
        self.clients.len()
    }
}

/// Whom the limits for one client take together: one address, or one /64 of IPv6, out of which anybody who has one has all.
fn group(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Bytes;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn clients_are_counted_apart_and_together() {
        let limits = Limits { connections: 3, connections_per_client: 2, ..Limits::default() };
        let mut admission = Admission::new(limits);
        let (a, same_network, b) = (ip("2001:db8::1"), ip("2001:db8::2"), ip("::ffff:192.0.2.1"));
        assert_eq!(admission.admit(a), Ok(()));
        assert_eq!(admission.admit(same_network), Ok(()));
        assert_eq!(admission.admit(a), Err(Limit::ClientConnections));
        assert_eq!(admission.admit(b), Ok(()));
        assert_eq!(admission.admit(ip("192.0.2.2")), Err(Limit::Connections));
        admission.release(a);
        assert_eq!(admission.admit(ip("192.0.2.1")), Ok(()), "the same client as b");
        admission.release(ip("192.0.2.1"));
        admission.release(b);
        admission.release(same_network);
        assert_eq!(admission.clients(), 0, "nothing is kept of clients that have gone");
    }

    #[test]
    fn memory_stops_one_client_before_all() {
        let (one, all) = (Bytes::new(100), Bytes::new(150));
        let mut admission = Admission::new(Limits { memory: all, memory_per_client: one, ..Limits::default() });
        let (a, b) = (ip("192.0.2.1"), ip("192.0.2.2"));
        assert_eq!((admission.admit(a), admission.admit(b)), (Ok(()), Ok(())));
        admission.start_count();
        admission.count(a, 101);
        assert_eq!((admission.holds(a), admission.holds(b)), (Some(Limit::ClientMemory), None));
        assert_eq!((admission.admit(a), admission.admit(b)), (Err(Limit::ClientMemory), Ok(())));
        admission.count(b, 50);
        assert_eq!((admission.holds(b), admission.is_full()), (Some(Limit::Memory), true));
        assert_eq!(admission.admit(b), Err(Limit::Memory));
    }
}
