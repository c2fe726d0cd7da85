//! Specification of a run.

use crate::Host;
use crate::address::MAX_HOSTS;
use crate::apps::Gaps;
use crate::page::{Page, Protocol};
use anabranch_engine::{Config, Factory, Policies, Profile, Switch};
use anabranch_paths::{Direction, NetworkError, NetworkSpec, PathSpec, copy_name};
use anabranch_policy::congestion::CongestionControl;
use anabranch_units::{Bytes, Duration, Rate, Seed, Stream};
use std::sync::Arc;

/// A whole run: two hosts, the network between them, what they do and what happens to them; all of it as often as there
/// are clients. The client opens connections, from its address on the primary path.
#[derive(Clone)]
pub struct Spec {
    /// Fixes every draw of the run.
    pub seed: Seed,
    /// Paths between the hosts, and what happens to them.
    pub network: NetworkSpec,
    /// Number of clients, 1 by default. Each has a server and copies of all paths, links and workloads of its own; the
    /// clients are not connected to each other. The first one's run equals the run of a single client.
    pub clients: usize,
    /// The host that opens connections.
    pub client: HostSpec,
    /// The host that accepts them.
    pub server: HostSpec,
    /// Workloads of the run. The run ends when all bulk, files and bursts are through; competing TCP and UDP alone keep
    /// it going only if they are all there is.
    pub workloads: Vec<Workload>,
    /// The run ends here even if it is not finished.
    pub stop: Duration,
    /// Longest time to run on after the last transfer until no timer, packet or connection is left; see
    /// [`Outcome::quiet`](crate::Outcome::quiet).
    /// [`Outcome::quiet`](crate::Outcome::quiet).
    pub linger: Option<Duration>,
    /// Replacements of policies during the run.
    pub switches: Vec<TimedSwitch>,
    /// The hosts that lose all their state.
    pub restarts: Vec<TimedRestart>,
    /// Send every TCP segment through the codec: as the bytes of a packet, checksums included, and back. The run is the
    /// same, but slower, and shows that nothing travels that has no bytes.
    pub codec: bool,
    /// Note the state of the run at these times, and at its end, in [`Outcome::samples`](crate::Outcome::samples); not
    /// at all if there are none.
    pub samples: Vec<Duration>,
    /// Note which path each segment of new data took, in [`Outcome::decisions`](crate::Outcome::decisions).
    pub decisions: bool,
    /// Keep a record of every packet sent and delivered.
    pub record_events: bool,
    /// Senders take the true mean loss rate of each path in place of an estimate.
    pub loss_oracle: bool,
    /// Check every endpoint's invariants after every event. Slow: for tests.
    pub audit: bool,
    /// Most events that the run may take before it is given up with [`SpecError::Budget`]; any number if `None`.
    pub budget: Option<u64>,
}

/// One host.
#[derive(Clone)]
pub struct HostSpec {
    /// Settings of its endpoint. The run fills in the addresses, `loss_oracle` and `reports_departures`.
    pub config: Config,
    /// Number of the server's addresses; 1 by default. The client has one per path.
    pub addresses: usize,
}

/// Something that is sent. Times count from the beginning of the run.
#[derive(Clone)]
pub enum Workload {
    /// Sends as much as possible for a time, over one connection.
    Bulk {
        /// Direction of the data.
        direction: Direction,
        /// Time at which the connection is opened.
        start: Duration,
        /// Time after that in which bytes count.
        duration: Duration,
    },
    /// Files of given sizes. A download begins with a request of 100 bytes from the client.
    Files {
        /// Direction of the data.
        direction: Direction,
        /// Size of each file.
        sizes: Vec<Bytes>,
        /// Order, and the connections they take.
        order: FileOrder,
        /// Time at which the first connection is opened.
        start: Duration,
    },
    /// Bursts on one warm connection, whether or not the one before has arrived.
    Bursts {
        /// Direction of the data.
        direction: Direction,
        /// Size of each burst.
        size: Bytes,
        /// Number of bursts.
        count: usize,
        /// Between the beginnings of bursts, and between `start` and the first.
        interval: Duration,
        /// Time at which the connection is opened.
        start: Duration,
        /// Sent right after connecting, and not reported, so that all subflows have been used.
        warm_up: Bytes,
    },
    /// Exchange over one connection: both ends send at once, and each closes its direction after its last byte. Two
    /// transfers.
    Exchange {
        /// Bytes from server to client.
        down: Bytes,
        /// Bytes from client to server.
        up: Bytes,
        /// Time at which the connection is opened.
        start: Duration,
        /// Pause from then until both have data to send.
        pause: Duration,
    },
    /// A web page, loaded once. Each of its objects is a transfer, which starts with its request.
    Web {
        /// Activities of the page.
        page: Arc<Page>,
        /// Protocol that fetches it.
        protocol: Protocol,
        /// Time at which it is asked for.
        start: Duration,
    },
    /// Objects that are asked for as a user acts, over HTTP/2 on one connection. Each is a transfer.
    Interactive {
        /// The objects; times count from `start`.
        page: Arc<Page>,
        /// Time at which the connection is opened.
        start: Duration,
    },
    /// UDP that is on and off in turn.
    Udp {
        /// The name of the path.
        path: String,
        /// Direction of the data.
        direction: Direction,
        /// Rate while on, counting whole IP packets.
        rate: Rate,
        /// Size of the IP packet.
        packet: Bytes,
        /// Distribution of the gaps between packets.
        spacing: Spacing,
        /// Mean time on; zero for always.
        on: Duration,
        /// Mean time off.
        off: Duration,
        /// Distribution of the times on and off.
        phases: Spacing,
        /// Time at which it is on first.
        start: Duration,
        /// Time at which it ends.
        stop: Duration,
    },
    /// Competing single-path TCP from hosts of its own, with the profile and buffers of the main ones.
    Tcp {
        /// The name of the path.
        path: String,
        /// Direction of the data.
        direction: Direction,
        /// Time at which the first connection is opened.
        start: Duration,
        /// Amount of data.
        extent: Extent,
        /// Its congestion control.
        congestion: Factory<CongestionControl>,
    },
}

impl Workload {
    /// Returns a download of one file of `size` that begins with the run.
    pub fn download(size: Bytes) -> Self {
        Workload::file(Direction::Down, size)
    }

    /// Returns an upload of one file of `size` that begins with the run.
    pub fn upload(size: Bytes) -> Self {
        Workload::file(Direction::Up, size)
    }

    fn file(direction: Direction, size: Bytes) -> Self {
        let order = FileOrder::InTurn(Duration::ZERO);
        Workload::Files { direction, sizes: vec![size], order, start: Duration::ZERO }
    }

    /// Returns true if some of its times are drawn from the seed of a run.
    pub fn is_random(&self) -> bool {
        match self {
            Workload::Files { order: FileOrder::AtOnce(arrivals), .. }
            | Workload::Files { order: FileOrder::Established { arrivals, .. }, .. } => {
                arrivals.spacing != Spacing::Even
            }
            Workload::Udp { spacing, phases, .. } => *spacing != Spacing::Even || *phases != Spacing::Even,
            _ => false,
        }
    }
}

/// Order of the files of a workload, and the connections they take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileOrder {
    /// Each on its own connection, so long after the end of the one before.
    InTurn(Duration),
    /// Files one after the other on one connection.
    OneConnection {
        /// Sent right after connecting, and not reported; nothing if zero.
        warm_up: Bytes,
        /// Pause from the end of one, or of the warm-up, to the beginning of the next.
        pause: Duration,
    },
    /// Each on its own connection, whether or not the one before is through.
    AtOnce(Arrivals),
    /// The same over connections that were all opened before, one per file, and have been used.
    Established {
        /// Sent over each right after connecting, and not reported, so that all subflows have been used.
        warm_up: Bytes,
        /// Pause from the arrival of the last of these to the first file.
        pause: Duration,
        /// Arrivals from then on.
        arrivals: Arrivals,
    },
}

/// Beginnings of things that do not wait for one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrivals {
    /// The mean time from one beginning to the next; zero for all at once.
    pub interval: Duration,
    /// Distribution of these times.
    pub spacing: Spacing,
}

impl Workload {
    /// Returns the times at which files begin that do not wait for one another, as the run with this seed draws them;
    /// `None` for other workloads. `place` is the index of the workload.
    pub fn file_times(&self, seed: Seed, place: usize) -> Option<Vec<Duration>> {
        let Workload::Files { sizes, order: FileOrder::AtOnce(arrivals), start, .. } = self else { return None };
        let mut gaps = Gaps::new(arrivals.interval, arrivals.spacing, stream_of(seed, 0, place, "files", "gaps"));
        let times = std::iter::successors(Some(*start), |at| Some(*at + gaps.next()));
        Some(times.take(sizes.len()).collect())
    }
}

/// Returns the stream of draws of a workload.
pub(crate) fn stream_of(seed: Seed, client: usize, place: usize, kind: &str, name: &str) -> Stream {
    seed.stream(&format!("{kind}/{}/{name}", copy_name(client, &place.to_string())))
}

/// Distribution of the gaps between packets of a UDP workload, of its times on and off, or of the gaps between files
/// that begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Spacing {
    /// All alike.
    #[default]
    Even,
    /// Each drawn evenly between nothing and twice the mean.
    Uniform,
    /// Each drawn from the exponential distribution with that mean: a Poisson process.
    Exponential,
}

/// Amount of data that a competing TCP sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Sends as much as possible for this time.
    For(Duration),
    /// Sends one file.
    File(Bytes),
    /// Files of this size back to back, each on its own connection, until the run ends.
    Repeat(Bytes),
}

/// A policy that takes the place of another while the run goes on. At the same time as a change to links, it comes
/// after it.
#[derive(Clone)]
pub struct TimedSwitch {
    /// Time of the replacement.
    pub at: Duration,
    /// The host; both if none is named. Competing TCP keeps what it has.
    pub host: Option<Host>,
    /// Policy that takes over.
    pub switch: Switch,
}

/// A host that loses all its state and comes back at once: its connections are gone without a word to their peers, what
/// it had handed to its interface still leaves, and a server listens again. At the same time as other happenings, it
/// comes last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimedRestart {
    /// Time of the change.
    pub at: Duration,
    /// [`Host::Client`] or [`Host::Server`]; those of competing TCP do not restart.
    pub host: Host,
}

/// A run that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A network that cannot be, or the name of a path that is not there.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A setting of a host that cannot be.
    #[error("the {host}: {error}")]
    Host {
        /// The client or the server.
        host: &'static str,
        /// The setting.
        error: anabranch_engine::ConfigError,
    },
    /// Addresses of the server.
    #[error("the server has {0} addresses; accepted are 1 to 255")]
    ServerAddresses(usize),
    /// More competing TCP workloads than there are numbers for.
    #[error("there are {0} competing TCP workloads; accepted are up to 255")]
    CompetingTcp(usize),
    /// No clients, or more than there are addresses for.
    #[error("there are {clients} clients; accepted are 1 to {most}, with {hosts} hosts for each")]
    Clients {
        /// Number of clients.
        clients: usize,
        /// Hosts on the paths of each: two, and two for each competing TCP.
        hosts: usize,
        /// Largest number.
        most: usize,
    },
    /// Something to send that is nothing.
    #[error("{0} is empty; accepted: sizes and rates above zero")]
    Empty(&'static str),
    /// The run takes more events than [`Spec::budget`].
    #[error("the run took more than {events} events and was given up at {at} of {stop}")]
    Budget {
        /// The budget.
        events: u64,
        /// Virtual time that it reached.
        at: Duration,
        /// Virtual time at which it would have been stopped.
        stop: Duration,
    },
    /// A restart of a host that has none.
    #[error("{0} restarts; accepted are client and server")]
    Restart(Host),
    /// A page that cannot be loaded.
    #[error("the page of workload {workload} is not valid: {what}")]
    Page {
        /// Its number, counted from 1.
        workload: usize,
        /// Description of the error.
        what: String,
    },
}

impl Spec {
    /// Two hosts over these paths, with nothing to do yet: seed 1, nothing but the paths, one hour at most.
    pub fn new(paths: Vec<PathSpec>, client: HostSpec, server: HostSpec) -> Self {
        Spec {
            seed: Seed(1),
            network: NetworkSpec::new(paths),
            clients: 1,
            client,
            server,
            workloads: Vec::new(),
            stop: Duration::from_secs(3600),
            linger: None,
            switches: Vec::new(),
            restarts: Vec::new(),
            codec: false,
            samples: Vec::new(),
            decisions: false,
            record_events: false,
            loss_oracle: false,
            audit: false,
            budget: None,
        }
    }

    /// Returns the largest number of clients: each takes addresses for two hosts, and for two more per competing TCP.
    pub fn most_clients(&self) -> usize {
        MAX_HOSTS / self.hosts_per_client()
    }

    /// Hosts on the paths of one client.
    pub(crate) fn hosts_per_client(&self) -> usize {
        2 + 2 * self.workloads.iter().filter(|workload| matches!(workload, Workload::Tcp { .. })).count()
    }

    /// The same run with plain TCP over one path, all else equal: the baseline of multipath.
    pub fn single_path(&self, path: usize) -> Self {
        let mut spec = self.clone();
        spec.network.primary = path;
        spec.client.config.multipath = false;
        spec.server.config.multipath = false;
        spec
    }

    /// Returns the run over one path with all others as its backups: the baseline of using several at once.
    pub fn with_backups(&self, path: usize) -> Self {
        let mut spec = self.clone();
        spec.network.primary = path;
        for (other, it) in spec.network.paths.iter_mut().enumerate() {
            it.backup = other != path;
        }
        // That of Linux takes the path that is listed first.
        spec.client.config.policies.first_path = Policies::of(&Profile::linux()).first_path;
        spec
    }
}

impl HostSpec {
    /// An MPTCP host with the engine's defaults and one address.
    pub fn new(profile: Profile, policies: Policies) -> Self {
        HostSpec { config: Config { policies, ..Config::new(profile, Vec::new()) }, addresses: 1 }
    }
}
