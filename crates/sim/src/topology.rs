//! The links and routes of a run, and the addresses that select them.
//!
//! [`Topology`] moves anything, so that the emulator of `host` builds the very same network out of the same specification. The
//! addresses are the simulator's own.
//!
//! Hosts come in pairs: pair 0 is the client and the server, each competing TCP workload has one more. The client of pair
//! `n` has the address `10.2n.i.1` on path `i`, its server has `10.(2n+1).j.1`. A packet takes the path that is written in
//! its client's address, so finding the route takes no table.

use crate::{Affected, Direction, LinkOutcome, PathSpec, Spec, SpecError, check};
use anabranch_net::{Change, LinkConfig, LinkId, Network, QueueLimit, RouteId};
use anabranch_policy::Truth;
use anabranch_units::{Duration, Instant, Rate};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Network, routes and names of a run. `P` is what the network carries.
///
/// Data that travel down cross the server's first hop (if the path has one: [`PathSpec::nic`]), the shared link (if any:
/// [`PathSpec::via`]) and the path's own link, in this order; what travels up crosses the client's first hop, the path's own
/// link and the shared one.
pub struct Topology<P> {
    /// Links and packets. Change links with [`Topology::apply`], which remembers what they have become.
    pub network: Network<P>,
    paths: Vec<Path>,
    /// Names and links of shared links.
    shared: Vec<(String, PerDirection<LinkId>)>,
    /// What there is to know of each link, by `LinkId::index`.
    known: Vec<Known>,
}

/// One link as it is now.
struct Known {
    rate: Rate,
    delay: Duration,
    jitter: Duration,
    loss: f64,
    is_down: bool,
    is_blackhole: bool,
}

struct Path {
    name: String,
    /// The path's own links.
    own: PerDirection<LinkId>,
    routes: PerDirection<RouteId>,
    has_nic: bool,
}

/// One for each direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct PerDirection<T> {
    /// From server to client.
    pub down: T,
    /// From client to server.
    pub up: T,
}

impl<T> PerDirection<T> {
    /// The one for this direction.
    #[inline]
    pub fn of(&self, direction: Direction) -> &T {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }

    /// The one for this direction.
    #[inline]
    pub fn of_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }
}

/// The host that sends data in this direction: 0 for the client of a pair, 1 for its server.
#[inline]
pub(crate) const fn sender(direction: Direction) -> usize {
    match direction {
        Direction::Down => 1,
        Direction::Up => 0,
    }
}

/// The address of host `host` (pair `host / 2`, its client if even) with this index.
pub(crate) const fn address(host: usize, index: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, host as u8, index as u8, 1))
}

/// The client's address on path `path`, which names that path to a policy.
pub const fn client_address(path: usize) -> IpAddr {
    address(0, path)
}

/// The host that has this address, and the index of the address there.
#[inline]
pub(crate) fn owner(address: IpAddr) -> (usize, usize) {
    match address {
        IpAddr::V4(v4) => {
            let [_, host, index, _] = v4.octets();
            (usize::from(host), usize::from(index))
        }
        IpAddr::V6(_) => unreachable!("the simulator gives IPv4 addresses only"),
    }
}

/// The path between two addresses: written in the client's.
#[inline]
pub(crate) fn path_between(local: IpAddr, remote: IpAddr) -> usize {
    let (host, index) = owner(local);
    if host.is_multiple_of(2) { index } else { owner(remote).1 }
}

impl<P: Clone> Topology<P> {
    /// Builds all links and routes of a specification.
    ///
    /// # Errors
    /// If it names what there is not, or holds a number that means nothing.
    pub fn new(spec: &Spec) -> Result<Self, SpecError> {
        check::check(spec)?;
        let topology = Self::build(spec)?;
        check::names(spec, &topology)?;
        Ok(topology)
    }

    fn build(spec: &Spec) -> Result<Self, SpecError> {
        let mut builder = Builder { spec, network: Network::new(), known: Vec::new() };
        // Results list the links of paths first, but a path's route needs its shared link.
        let own: Vec<_> = spec.paths.iter().map(|path| builder.own_links(path)).collect::<Result<_, _>>()?;
        let mut shared = Vec::new();
        for link in &spec.shared {
            shared.push((link.name.clone(), builder.pair(&link.name, &link.down, &link.up)?));
        }
        let mut paths = Vec::new();
        for (path, (own, nic)) in spec.paths.iter().zip(own) {
            let via = match &path.via {
                None => None,
                Some(via) => Some(find_shared(&shared, via, &path.name)?),
            };
            let down: Vec<_> = nic.map(|n| n.down).into_iter().chain(via.map(|v| v.down)).chain([own.down]).collect();
            let up: Vec<_> = nic.map(|n| n.up).into_iter().chain([own.up]).chain(via.map(|v| v.up)).collect();
            let routes = PerDirection { down: builder.route(&down), up: builder.route(&up) };
            paths.push(Path { name: path.name.clone(), own, routes, has_nic: nic.is_some() });
        }
        Ok(Topology { network: builder.network, paths, shared, known: builder.known })
    }

    /// How many paths there are.
    pub fn paths(&self) -> usize {
        self.paths.len()
    }

    /// The route of a path in this direction.
    #[inline]
    pub fn route(&self, path: usize, direction: Direction) -> RouteId {
        *self.paths[path].routes.of(direction)
    }

    /// The path that takes this route, and which way.
    pub fn path_of(&self, route: RouteId) -> Option<(usize, Direction)> {
        let directions = [Direction::Down, Direction::Up];
        let all = (0..self.paths()).flat_map(|path| directions.map(|direction| (path, direction)));
        all.into_iter().find(|&(path, direction)| self.route(path, direction) == route)
    }

    /// Whether departures from the first hop of this path are reported.
    #[inline]
    pub(crate) fn has_nic(&self, path: usize) -> bool {
        self.paths[path].has_nic
    }

    /// What a path is called.
    pub fn path_name(&self, path: usize) -> &str {
        &self.paths[path].name
    }

    /// The index of the path called `name`.
    pub fn path_named(&self, name: &str) -> Option<usize> {
        self.paths.iter().position(|path| path.name == name)
    }

    /// The links that a change to `name`, a path or a shared link, affects.
    pub fn affected(&self, name: &str, affected: Affected) -> Option<Vec<LinkId>> {
        let paths = self.paths.iter().map(|path| (&path.name, path.own));
        let shared = self.shared.iter().map(|(name, links)| (name, *links));
        let (_, links) = paths.chain(shared).find(|(known, _)| *known == name)?;
        Some(match affected {
            Affected::Both => vec![links.down, links.up],
            Affected::Down => vec![links.down],
            Affected::Up => vec![links.up],
        })
    }

    /// Packets that wait on this path and the link it shares, the hosts' interfaces apart.
    pub(crate) fn queued(&mut self, now: Instant, path: usize, direction: Direction) -> u64 {
        let nic = usize::from(self.paths[path].has_nic);
        let links: Vec<LinkId> = self.network.route(self.route(path, direction)).skip(nic).collect();
        links.into_iter().map(|link| u64::from(self.network.stats(now, link).queued)).sum()
    }

    /// Changes a link.
    ///
    /// # Panics
    /// If the change holds a number that means nothing; [`Topology::new`] has checked those of the specification.
    pub fn apply(&mut self, now: Instant, link: LinkId, change: &Change) {
        self.known[link.index()].apply(change);
        self.network.apply(now, link, change.clone()).expect("changes were checked before the run");
    }

    /// What there is to know of a path in one direction.
    pub(crate) fn truth(&self, path: usize, direction: Direction) -> Truth {
        let links = || self.network.route(self.route(path, direction)).map(|link| &self.known[link.index()]);
        Truth {
            rate: links().map(Known::effective_rate).min().unwrap_or_default(),
            delay: links().fold(Duration::ZERO, |sum, link| sum + link.delay + link.jitter / 2),
            loss: 1.0 - links().map(|link| 1.0 - link.loss).product::<f64>(),
        }
    }

    /// What all links have counted.
    pub fn link_outcomes(&mut self, now: Instant) -> Vec<LinkOutcome> {
        let ids: Vec<_> = self.network.links().collect();
        let outcome =
            |id| LinkOutcome { stats: self.network.stats(now, id), name: self.network.link_name(id).to_owned() };
        ids.into_iter().map(outcome).collect()
    }
}

impl Known {
    fn new(config: &LinkConfig) -> Self {
        Known {
            rate: config.service.mean_rate(),
            delay: config.delay,
            jitter: config.jitter,
            loss: config.loss.mean(),
            is_down: false,
            is_blackhole: false,
        }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Rate(rate) => self.rate = *rate,
            Change::Trace(trace) => self.rate = trace.mean_rate(),
            Change::Delay(delay) => self.delay = *delay,
            Change::Jitter(jitter) => self.jitter = *jitter,
            Change::Loss(model) => self.loss = model.mean(),
            Change::Down => self.is_down = true,
            Change::Up => self.is_down = false,
            Change::Blackhole => self.is_blackhole = true,
            Change::Restore => (self.is_down, self.is_blackhole) = (false, false),
        }
    }

    fn effective_rate(&self) -> Rate {
        if self.is_down || self.is_blackhole { Rate::default() } else { self.rate }
    }
}

struct Builder<'a, P> {
    spec: &'a Spec,
    network: Network<P>,
    known: Vec<Known>,
}

type Links = PerDirection<LinkId>;

impl<P: Clone> Builder<'_, P> {
    fn own_links(&mut self, path: &PathSpec) -> Result<(Links, Option<Links>), SpecError> {
        let own = self.pair(&path.name, &path.down, &path.up)?;
        let Some(rate) = path.nic else {
            return Ok((own, None));
        };
        let nic = first_hop(rate);
        let down = self.link(&path.name, "nic-down", nic.clone())?;
        let up = self.link(&path.name, "nic-up", nic)?;
        Ok((own, Some(PerDirection { down, up })))
    }

    fn pair(&mut self, name: &str, down: &LinkConfig, up: &LinkConfig) -> Result<Links, SpecError> {
        // Only first hops report departures: their packets have a host that waits for them.
        let quiet = |config: &LinkConfig| LinkConfig { notify_departure: false, ..config.clone() };
        Ok(PerDirection { down: self.link(name, "down", quiet(down))?, up: self.link(name, "up", quiet(up))? })
    }

    fn link(&mut self, owner: &str, part: &str, config: LinkConfig) -> Result<LinkId, SpecError> {
        let place = format!("{owner}/{part}");
        self.known.push(Known::new(&config));
        let added = self.network.add_link(config, &place, self.spec.seed);
        added.map_err(|error| SpecError::Link { place, error })
    }

    fn route(&mut self, links: &[LinkId]) -> RouteId {
        self.network.add_route(links).expect("every path has a link of its own")
    }
}

fn find_shared(shared: &[(String, Links)], via: &str, path: &str) -> Result<Links, SpecError> {
    shared.iter().find(|(name, _)| name == via).map(|(_, links)| *links).ok_or_else(|| SpecError::UnknownPath {
        what: format!("via of path {path}"),
        name: via.to_owned(),
        known: shared.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "),
    })
}

/// A host's own interface: fast, without delay or loss, with Linux's default transmit queue of 1000 packets.
fn first_hop(rate: Rate) -> LinkConfig {
    const TRANSMIT_QUEUE: u32 = 1000;
    LinkConfig {
        queue: QueueLimit::Packets(TRANSMIT_QUEUE),
        notify_departure: true,
        ..LinkConfig::new(rate, Duration::ZERO)
    }
}

/// The port that servers listen on: the one that iperf made usual for bulk transfers. Wireshark knows no protocol there, as it
/// does at 80, where it would take our bytes for broken HTTP.
pub(crate) const SERVICE: u16 = 5001;

/// Where the server of a pair is reached first.
pub(crate) const fn service(pair: usize) -> SocketAddr {
    SocketAddr::new(address(2 * pair + 1, 0), SERVICE)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{HostSpec, SharedLink};
    use anabranch_engine::{Policies, Profile};
    use anabranch_net::LossModel;

    fn lossy(p: f64) -> LinkConfig {
        LinkConfig { loss: LossModel::Bernoulli { p }, ..LinkConfig::new(Rate::from_mbps(1), Duration::ZERO) }
    }

    fn spec() -> Spec {
        let mut near = PathSpec::new("near", lossy(0.1), lossy(0.0));
        near.nic = Some(Rate::from_mbps(100));
        let mut far = PathSpec::new("far", lossy(0.0), lossy(0.0));
        (near.via, far.via) = (Some("core".to_owned()), Some("core".to_owned()));
        let host = HostSpec::new(Profile::linux(), Policies::default());
        let mut spec = Spec::new(vec![near, far], host.clone(), host);
        spec.shared = vec![SharedLink { name: "core".to_owned(), down: lossy(0.5), up: lossy(0.0) }];
        spec
    }

    #[test]
    fn data_cross_the_first_hop_the_shared_link_and_the_path() {
        let topology = Topology::<()>::new(&spec()).unwrap();
        let names = |path, direction| {
            let links = topology.network.route(topology.route(path, direction));
            links.map(|link| topology.network.link_name(link).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(0, Direction::Down), ["near/nic-down", "core/down", "near/down"]);
        assert_eq!(names(0, Direction::Up), ["near/nic-up", "near/up", "core/up"]);
        assert_eq!(names(1, Direction::Down), ["core/down", "far/down"]);
        assert!(topology.has_nic(0) && !topology.has_nic(1));
    }

    #[test]
    fn the_truth_of_a_path_is_that_of_all_its_links() {
        let mut spec = spec();
        spec.paths[0].down.delay = Duration::from_millis(7);
        spec.paths[0].down.jitter = Duration::from_millis(4);
        spec.shared[0].down.delay = Duration::from_millis(30);
        spec.shared[0].down.service = Rate::from_mbps(3).into();
        let mut topology = Topology::<()>::new(&spec).unwrap();
        let near = topology.truth(0, Direction::Down);
        assert_eq!((near.rate, near.delay), (Rate::from_mbps(1), Duration::from_millis(39)));
        assert!((near.loss - 0.55).abs() < 1e-12); // 1 - 0.9 · 0.5
        assert!((topology.truth(1, Direction::Down).loss - 0.5).abs() < 1e-12);
        assert_eq!(topology.truth(0, Direction::Up).delay, Duration::ZERO);

        let core = topology.affected("core", Affected::Down).unwrap()[0];
        let mut after = |change| {
            topology.apply(Instant::ZERO, core, &change);
            topology.truth(0, Direction::Down)
        };
        assert!((after(Change::Loss(LossModel::None)).loss - 0.1).abs() < 1e-12);
        assert_eq!(after(Change::Rate(Rate::from_bps(400))).rate, Rate::from_bps(400));
        assert_eq!(after(Change::Delay(Duration::from_millis(1))).delay, Duration::from_millis(10));
        assert_eq!(after(Change::Jitter(Duration::from_millis(2))).delay, Duration::from_millis(11));
        assert!(after(Change::Blackhole).rate.is_zero());
        assert!(after(Change::Down).rate.is_zero());
        assert!(after(Change::Up).rate.is_zero(), "the black hole is still there");
        assert!(after(Change::Down).rate.is_zero());
        assert_eq!(after(Change::Restore).rate, Rate::from_bps(400));
    }

    #[test]
    fn the_path_is_written_in_the_address_of_the_client() {
        for pair in [0, 3] {
            let (client, server) = (address(2 * pair, 5), address(2 * pair + 1, 2));
            assert_eq!((path_between(client, server), path_between(server, client)), (5, 5));
            assert_eq!(owner(server), (2 * pair + 1, 2));
        }
    }
}
