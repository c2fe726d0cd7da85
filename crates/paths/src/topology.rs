//! The links and routes of a network.

use crate::{Affected, Direction, NetworkError, NetworkSpec, PathSpec, PerDirection, copy_name};
use anabranch_net::{Carried, Change, LinkConfig, LinkId, LinkStats, Network, QueueLimit, QueueOutcome, RouteId};
use anabranch_units::{Duration, Instant, Rate, Seed};

/// Network, routes and names of a [`NetworkSpec`]. `P` is the packet: the simulator's segments, the emulator's bytes.
///
/// Data that travel down cross the server's first hop (if the path has one: [`PathSpec::nic`]), the shared link (if
/// any: [`PathSpec::via`]) and the path's own link, in this order; what travels up crosses the client's first hop, the
/// path's own link and the shared one.
///
/// Each client has links and paths of its own: copies, named by [`copy_name`]. With `n` paths in the specification,
/// path `p` of client `c` has the number `c·n + p`; so the paths of a single client have the numbers of the
/// specification.
pub struct Topology<P> {
    /// Links and packets. Change links with [`Topology::apply`], which keeps track of their current settings.
    pub network: Network<P>,
    /// Client by client.
    paths: Vec<Path>,
    /// Paths per client.
    paths_per_client: usize,
    /// Names and links of shared links, client by client.
    shared: Vec<(String, PerDirection<LinkId>)>,
    /// The path and direction of each route, by `RouteId::index`.
    ways: Vec<(usize, Direction)>,
    /// Current settings of each link, by `LinkId::index`.
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

/// The links of a path in one direction, taken together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathState {
    /// The lowest rate; zero while one of the links is down or a black hole.
    pub rate: Rate,
    /// One-way propagation delay with the mean of the jitter, without queueing.
    pub delay: Duration,
    /// Mean rate of random loss, from 0 to 1.
    pub loss: f64,
}

/// The counts of one link.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LinkOutcome {
    /// Its name, for instance `wifi/down`.
    pub name: String,
    /// Counters of the link.
    pub stats: LinkStats,
    /// Waits in its queue, in sum and by flow.
    pub queue: QueueOutcome,
}

struct Path {
    name: String,
    /// The path's own links.
    own: PerDirection<LinkId>,
    routes: PerDirection<RouteId>,
    has_nic: bool,
}

impl<P: Carried> Topology<P> {
    /// Builds all links and routes of a specification, once for each client. Links draw from streams of `seed` that are
    /// named after them.
    ///
    /// # Errors
    /// If the specification refers to an unknown path, or a value is out of range.
    pub fn new(spec: &NetworkSpec, seed: Seed, clients: usize) -> Result<Self, NetworkError> {
        spec.check(clients)?;
        let mut topology = Topology {
            network: Network::new(),
            paths: Vec::new(),
            paths_per_client: spec.paths.len(),
            shared: Vec::new(),
            ways: Vec::new(),
            known: Vec::new(),
        };
        for client in 0..clients {
            topology.add_client(spec, seed, client)?;
        }
        for timed in &spec.changes {
            if topology.affected(&timed.path, timed.affected).is_none() {
                let shared = spec.shared.iter().map(|link| link.name.as_str());
                let known = topology.path_names().chain(shared).collect();
                return Err(NetworkError::unknown(format!("a change at {}", timed.at), &timed.path, known));
            }
        }
        Ok(topology)
    }

    /// Adds the links and paths of one more client.
    fn add_client(&mut self, spec: &NetworkSpec, seed: Seed, client: usize) -> Result<(), NetworkError> {
        let mut builder = Builder { seed, client, network: &mut self.network, known: &mut self.known };
        // Results list the links of paths first, but a path's route needs its shared link.
        let own: Vec<_> = spec.paths.iter().map(|path| builder.own_links(path)).collect::<Result<_, _>>()?;
        let mut shared = Vec::new();
        for link in &spec.shared {
            shared.push((link.name.clone(), builder.pair(&link.name, &link.down, &link.up)?));
        }
        for (path, (own, nic)) in spec.paths.iter().zip(own) {
            let via = match &path.via {
                None => None,
                Some(via) => Some(find_shared(&shared, via, &path.name)?),
            };
            let down: Vec<_> = nic.map(|n| n.down).into_iter().chain(via.map(|v| v.down)).chain([own.down]).collect();
            let up: Vec<_> = nic.map(|n| n.up).into_iter().chain([own.up]).chain(via.map(|v| v.up)).collect();
            let routes = PerDirection { down: builder.route(&down), up: builder.route(&up) };
            self.ways.extend([Direction::Down, Direction::Up].map(|direction| (self.paths.len(), direction)));
            self.paths.push(Path { name: copy_name(client, &path.name), own, routes, has_nic: nic.is_some() });
        }
        self.shared.extend(shared);
        Ok(())
    }

    /// Number of paths, those of all clients together.
    pub fn paths(&self) -> usize {
        self.paths.len()
    }

    /// Number of paths per client.
    #[inline]
    pub fn paths_per_client(&self) -> usize {
        self.paths_per_client
    }

    /// The route of a path in this direction.
    #[inline]
    pub fn route(&self, path: usize, direction: Direction) -> RouteId {
        *self.paths[path].routes.of(direction)
    }

    /// The path that takes this route, and which way.
    #[inline]
    pub fn way(&self, route: RouteId) -> (usize, Direction) {
        self.ways[route.index()]
    }

    /// Returns true if departures from the first hop of this path are reported.
    #[inline]
    pub fn has_nic(&self, path: usize) -> bool {
        self.paths[path].has_nic
    }

    /// Name of a path.
    pub fn path_name(&self, path: usize) -> &str {
        &self.paths[path].name
    }

    /// The names of the paths of the specification.
    pub fn path_names(&self) -> impl Iterator<Item = &str> {
        self.paths[..self.paths_per_client].iter().map(|path| path.name.as_str())
    }

    /// The index of the path called `name` in the specification.
    pub fn path_named(&self, name: &str) -> Option<usize> {
        self.path_names().position(|known| known == name)
    }

    /// The links that a change to `name`, a path or a shared link, affects: those of all clients.
    pub fn affected(&self, name: &str, affected: Affected) -> Option<Vec<LinkId>> {
        let clients = self.paths.len() / self.paths_per_client;
        let copies: Vec<PerDirection<LinkId>> = match self.path_named(name) {
            Some(path) => self.paths[path..].iter().step_by(self.paths_per_client).map(|path| path.own).collect(),
            None => {
                let link = self.shared.iter().position(|(known, _)| known == name)?;
                self.shared[link..].iter().step_by(self.shared.len() / clients).map(|(_, links)| *links).collect()
            }
        };
        let of = |links: PerDirection<LinkId>| match affected {
            Affected::Both => vec![links.down, links.up],
            Affected::Down => vec![links.down],
            Affected::Up => vec![links.up],
        };
        Some(copies.into_iter().flat_map(of).collect())
    }

    /// Packets that wait on this path and the link it shares, the hosts' interfaces apart.
    pub fn queued(&mut self, now: Instant, path: usize, direction: Direction) -> u64 {
        let nic = usize::from(self.paths[path].has_nic);
        let links: Vec<LinkId> = self.network.route(self.route(path, direction)).skip(nic).collect();
        links.into_iter().map(|link| u64::from(self.network.stats(now, link).queued)).sum()
    }

    /// Returns the time at which the slowest link of a path, and the links that it shares with other paths, will have
    /// sent all that they have queued at `now`, if nothing follows and their rates stay; `None` if they are idle. A
    /// shared link may be faster than each path's own link, and still be what limits them together.
    pub fn busy_until(&mut self, now: Instant, path: usize, direction: Direction) -> Option<Instant> {
        self.limiting(path, direction).into_iter().filter_map(|link| self.network.busy_until(now, link)).max()
    }

    /// Returns true if what another path carries takes from a link that limits this one: its slowest, or one that it
    /// shares with other paths.
    pub fn is_contended(&self, path: usize, other: usize, direction: Direction) -> bool {
        let limiting = self.limiting(path, direction);
        self.network.route(self.route(other, direction)).any(|link| limiting.contains(&link))
    }

    /// The slowest link of a path, and those that it shares with other paths.
    fn limiting(&self, path: usize, direction: Direction) -> Vec<LinkId> {
        let route = || self.network.route(self.route(path, direction));
        let slowest = route().min_by_key(|link| self.known[link.index()].effective_rate());
        slowest.into_iter().chain(route().filter(|link| self.is_shared(*link))).collect()
    }

    fn is_shared(&self, link: LinkId) -> bool {
        self.shared.iter().any(|(_, links)| links.down == link || links.up == link)
    }

    /// Changes a link.
    ///
    /// # Panics
    /// If the change holds a number that means nothing; [`Topology::new`] has checked those of the specification.
    pub fn apply(&mut self, now: Instant, link: LinkId, change: &Change) {
        self.known[link.index()].apply(change);
        self.network.apply(now, link, change.clone()).expect("changes were checked before the run");
    }

    /// The links of a path in one direction, as they are now.
    pub fn state(&self, path: usize, direction: Direction) -> PathState {
        let links = || self.network.route(self.route(path, direction)).map(|link| &self.known[link.index()]);
        PathState {
            rate: links().map(Known::effective_rate).min().unwrap_or_default(),
            delay: links().fold(Duration::ZERO, |sum, link| sum + link.delay + link.jitter / 2),
            loss: 1.0 - links().map(|link| 1.0 - link.loss).product::<f64>(),
        }
    }

    /// Counters of all links.
    pub fn link_outcomes(&mut self, now: Instant) -> Vec<LinkOutcome> {
        let ids: Vec<_> = self.network.links().collect();
        let outcome = |id| LinkOutcome {
            stats: self.network.stats(now, id),
            queue: self.network.queue_outcome(now, id),
            name: self.network.link_name(id).to_owned(),
        };
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
    seed: Seed,
    client: usize,
    network: &'a mut Network<P>,
    known: &'a mut Vec<Known>,
}

type Links = PerDirection<LinkId>;

impl<P: Carried> Builder<'_, P> {
    fn own_links(&mut self, path: &PathSpec) -> Result<(Links, Option<Links>), NetworkError> {
        let own = self.pair(&path.name, &path.down, &path.up)?;
        let Some(rate) = path.nic else {
            return Ok((own, None));
        };
        let nic = first_hop(rate);
        let down = self.link(&path.name, "nic-down", nic.clone())?;
        let up = self.link(&path.name, "nic-up", nic)?;
        Ok((own, Some(PerDirection { down, up })))
    }

    fn pair(&mut self, name: &str, down: &LinkConfig, up: &LinkConfig) -> Result<Links, NetworkError> {
        // Only first hops report departures: their packets have a host that waits for them.
        let quiet = |config: &LinkConfig| LinkConfig { notify_departure: false, ..config.clone() };
        Ok(PerDirection { down: self.link(name, "down", quiet(down))?, up: self.link(name, "up", quiet(up))? })
    }

    fn link(&mut self, owner: &str, part: &str, config: LinkConfig) -> Result<LinkId, NetworkError> {
        let place = format!("{}/{part}", copy_name(self.client, owner));
        self.known.push(Known::new(&config));
        let added = self.network.add_link(config, &place, self.seed);
        added.map_err(|error| NetworkError::Link { place, error })
    }

    fn route(&mut self, links: &[LinkId]) -> RouteId {
        self.network.add_route(links).expect("every path has a link of its own")
    }
}

fn find_shared(shared: &[(String, Links)], via: &str, path: &str) -> Result<Links, NetworkError> {
    shared.iter().find(|(name, _)| name == via).map(|(_, links)| *links).ok_or_else(|| {
        let known = shared.iter().map(|(name, _)| name.as_str()).collect();
        NetworkError::unknown(format!("via of path {path}"), via, known)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::SharedLink;
    use anabranch_net::LossModel;

    fn lossy(p: f64) -> LinkConfig {
        LinkConfig { loss: LossModel::Bernoulli { p }, ..LinkConfig::new(Rate::from_mbps(1), Duration::ZERO) }
    }

    fn spec() -> NetworkSpec {
        let mut near = PathSpec::new("near", lossy(0.1), lossy(0.0));
        near.nic = Some(Rate::from_mbps(100));
        let mut far = PathSpec::new("far", lossy(0.0), lossy(0.0));
        (near.via, far.via) = (Some("core".to_owned()), Some("core".to_owned()));
        let mut spec = NetworkSpec::new(vec![near, far]);
        spec.shared = vec![SharedLink { name: "core".to_owned(), down: lossy(0.5), up: lossy(0.0) }];
        spec
    }

    #[test]
    fn data_cross_the_first_hop_the_shared_link_and_the_path() {
        let topology = Topology::<()>::new(&spec(), Seed(1), 1).unwrap();
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
    fn the_state_of_a_path_is_that_of_all_its_links() {
        let mut spec = spec();
        spec.paths[0].down.delay = Duration::from_millis(7);
        spec.paths[0].down.jitter = Duration::from_millis(4);
        spec.shared[0].down.delay = Duration::from_millis(30);
        spec.shared[0].down.service = Rate::from_mbps(3).into();
        let mut topology = Topology::<()>::new(&spec, Seed(1), 1).unwrap();
        let near = topology.state(0, Direction::Down);
        assert_eq!((near.rate, near.delay), (Rate::from_mbps(1), Duration::from_millis(39)));
        assert!((near.loss - 0.55).abs() < 1e-12); // 1 - 0.9 · 0.5
        assert!((topology.state(1, Direction::Down).loss - 0.5).abs() < 1e-12);
        assert_eq!(topology.state(0, Direction::Up).delay, Duration::ZERO);

        let core = topology.affected("core", Affected::Down).unwrap()[0];
        let mut after = |change| {
            topology.apply(Instant::ZERO, core, &change);
            topology.state(0, Direction::Down)
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
    fn each_client_has_copies_of_all_links() {
        let topology = Topology::<()>::new(&spec(), Seed(1), 3).unwrap();
        let name = |link| topology.network.link_name(link);
        let names = |path, direction| {
            topology.network.route(topology.route(path, direction)).map(name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(0, Direction::Down), "near/nic-down core/down near/down");
        assert_eq!(names(4, Direction::Down), "2/near/nic-down 2/core/down 2/near/down");
        assert_eq!(topology.way(topology.route(3, Direction::Up)), (3, Direction::Up));
        let affected =
            |of, which| topology.affected(of, which).unwrap().into_iter().map(name).collect::<Vec<_>>().join(" ");
        assert_eq!(affected("far", Affected::Up), "far/up 1/far/up 2/far/up");
        assert_eq!(affected("core", Affected::Both), "core/down core/up 1/core/down 1/core/up 2/core/down 2/core/up");
        assert_eq!(topology.path_names().collect::<Vec<_>>(), ["near", "far"]);
    }

    #[test]
    fn no_path_has_the_name_of_a_copy() {
        let mut spec = spec();
        spec.paths[1].name = "1/near".to_owned();
        assert!(Topology::<()>::new(&spec, Seed(1), 1).is_ok());
        let error = Topology::<()>::new(&spec, Seed(1), 2).err();
        assert_eq!(error, Some(NetworkError::DuplicateName("1/near".to_owned())));
    }
}
