//! Limits on the connections and the memory of clients.
//!
//! Memory is counted where it is taken: a session reports the amount it holds whenever that may have changed. A session
//! may read up to an eighth of the free memory, so that slow readers are stopped while there is room for later ones. A
//! sixteenth of each limit is reserved for sessions that hold little: every admissible connection has an equal part of
//! it, whatever the others do.

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
    /// The networks that clients may come from.
    Network,
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
            Limit::Network => "network",
            Limit::Draining => "draining",
        }
    }
}

/// Connections and memory by client.
pub(super) struct Admission {
    limits: Limits,
    clients: BTreeMap<IpAddr, Client>,
    connections: usize,
    /// Bytes held by all.
    held: u64,
}

#[derive(Default)]
struct Client {
    connections: usize,
    held: u64,
}

/// Divisor of the free memory that gives one session's part.
const SHARE: u64 = 8;
/// Divisor of a limit that gives the part reserved for sessions that hold little. Once the limit is exceeded, sessions
/// are reset until that part is free again.
const RESERVED: u64 = 16;
/// A session is never promised less of it, however many there may be.
const LEAST_PROMISED: u64 = 4 << 10;

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

    /// A connection that was admitted has gone, and with it what it held.
    pub(super) fn release(&mut self, client: IpAddr, held: u64) {
        self.connections -= 1;
        self.held -= held;
        let entry = self.clients.get_mut(&group(client)).expect("whoever is released was admitted");
        entry.held -= held;
        entry.connections -= 1;
        if entry.connections == 0 {
            self.clients.remove(&group(client));
        }
    }

    /// A connection of `client` that was admitted holds `now` bytes, where it held `before`. Which limit is exceeded by
    /// that.
    pub(super) fn charge(&mut self, client: IpAddr, before: u64, now: u64) -> Option<Limit> {
        self.held = self.held - before + now;
        let entry = self.clients.get_mut(&group(client)).expect("whoever holds something was admitted");
        entry.held = entry.held - before + now;
        if entry.held > self.limits.memory_per_client.get() {
            return Some(Limit::ClientMemory);
        }
        (self.held > self.limits.memory.get()).then_some(Limit::Memory)
    }

    /// Bytes that may still be read for a session of `client` that holds `held`.
    pub(super) fn room(&self, client: IpAddr, held: u64) -> u64 {
        let of_client = self.clients.get(&group(client)).map_or(0, |client| client.held);
        let limits = &self.limits;
        let of_all = share(limits.memory.get(), limits.connections, self.held, held);
        of_all.min(share(limits.memory_per_client.get(), limits.connections_per_client, of_client, held))
    }

    /// Little is left for `client`, of its own or of all.
    pub(super) fn is_short(&self, client: IpAddr) -> bool {
        let of_client = self.clients.get(&group(client)).map_or(0, |client| client.held);
        let short = |limit: u64, held: u64| held > limit - limit / 4;
        short(self.limits.memory.get(), self.held) || short(self.limits.memory_per_client.get(), of_client)
    }

    /// The limit that is too close for comfort, once one was exceeded, and whose sessions are to go: those of this
    /// client, who has most.
    pub(super) fn offender(&self, exceeded: Limit, client: IpAddr) -> Option<IpAddr> {
        let enough = |limit: u64, held: u64| held <= limit - limit / RESERVED;
        if exceeded == Limit::ClientMemory {
            let held = self.clients.get(&group(client)).map_or(0, |client| client.held);
            return (!enough(self.limits.memory_per_client.get(), held)).then(|| group(client));
        }
        if enough(self.limits.memory.get(), self.held) {
            return None;
        }
        self.clients.iter().max_by_key(|(_, client)| client.held).map(|(client, _)| *client)
    }

    /// Tells whether the limits for one client take `client` for `group`.
    pub(super) fn is_of(client: IpAddr, of: IpAddr) -> bool {
        group(client) == of
    }

    /// Sets the limits; clients above them keep what they have.
    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
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

/// The bytes that a session that holds `own` may still take of a limit for so many connections, of which `held` bytes
/// are taken.
fn share(limit: u64, connections: usize, held: u64, own: u64) -> u64 {
    let reserved = limit / RESERVED;
    let common = (limit - reserved).saturating_sub(held) / SHARE;
    let promised = (reserved / connections.max(1) as u64).max(LEAST_PROMISED);
    common.max(promised).saturating_sub(own).min(limit.saturating_sub(held))
}

/// Groups clients for the limits per client: by address, or by /64 of IPv6, since a host has all addresses of its /64.
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
        admission.release(a, 0);
        assert_eq!(admission.admit(ip("192.0.2.1")), Ok(()), "the same client as b");
        admission.release(ip("192.0.2.1"), 0);
        admission.release(b, 0);
        admission.release(same_network, 0);
        assert_eq!(admission.clients(), 0, "nothing is kept of clients that have gone");
    }

    #[test]
    fn memory_stops_one_client_before_all() {
        let (one, all) = (Bytes::new(160 << 10), Bytes::new(240 << 10));
        let mut admission = Admission::new(Limits { memory: all, memory_per_client: one, ..Limits::default() });
        let (a, b) = (ip("192.0.2.1"), ip("192.0.2.2"));
        assert_eq!((admission.admit(a), admission.admit(b)), (Ok(()), Ok(())));
        assert_eq!(admission.room(a, 0), 150 * 1024 / 8, "an eighth of what is left");
        assert_eq!(admission.charge(a, 0, 160 << 10), None);
        assert_eq!((admission.room(a, 0), admission.room(b, 0)), (0, 65 * 1024 / 8));
        assert_eq!(admission.charge(a, 160 << 10, 161 << 10), Some(Limit::ClientMemory));
        assert_eq!((admission.admit(a), admission.admit(b)), (Err(Limit::ClientMemory), Ok(())));
        assert_eq!(admission.offender(Limit::ClientMemory, a), Some(a));
        assert_eq!(admission.charge(a, 161 << 10, 150 << 10), None);
        assert_eq!(admission.offender(Limit::ClientMemory, a), None, "a sixteenth is free again");
        assert_eq!(admission.charge(b, 0, 91 << 10), Some(Limit::Memory));
        assert_eq!(admission.offender(Limit::Memory, b), Some(a), "who has most, not who came last");
        assert_eq!(admission.admit(b), Err(Limit::Memory));
    }

    /// Each of `n` sessions that read nothing takes what it may until it may no more.
    #[test]
    fn however_many_read_nothing_there_is_room_for_one_more() {
        let limit = 256 << 20;
        let limits = Limits { memory_per_client: Bytes::new(limit), ..Limits::default() };
        let mut admission = Admission::new(limits);
        let client = ip("192.0.2.1");
        let mut held = [0; 255];
        held.iter().for_each(|_| assert_eq!(admission.admit(client), Ok(())));
        while let Some((session, room)) =
            (0..held.len()).map(|session| (session, admission.room(client, held[session]))).find(|(_, room)| *room > 0)
        {
            let now = held[session] + room.min(64 << 10);
            assert_eq!(admission.charge(client, held[session], now), None, "no limit is exceeded");
            held[session] = now;
        }
        assert!(admission.held() > limit * 9 / 10, "the limit is made use of");
        assert_eq!(admission.admit(client), Ok(()));
        assert!(admission.room(client, 0) >= 64 << 10, "and one that reads still gets on");
        assert!(held.iter().all(|held| *held >= 64 << 10), "all of them did");
    }
}
