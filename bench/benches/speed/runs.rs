//! The simulated runs that are timed.

use crate::counting;
use crate::r1::{Links, R1};
use anabranch_engine::{Policies, Profile};
use anabranch_net::{LinkConfig, LossModel, QueueLimit};
use anabranch_paths::{Direction, PathSpec};
use anabranch_sim::{HostSpec, Outcome, Spec, Workload, run};
use anabranch_units::{Bytes, Duration, Rate};
use std::time::Instant;

/// Simulated runs, which are equal apart from what is named: profile `linux`, LIA, min-RTT, a send buffer of 4 and a
/// receive buffer of 6 MiB, queues of one bandwidth-delay product.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Run {
    /// Plain TCP over 100 Mbit/s and 20 ms.
    Tcp,
    /// MPTCP over 10 Mbit/s, 20 ms and 100 Mbit/s, 50 ms, 0.1 % loss.
    Bulk,
    /// The same without loss, so that both links are full.
    Clean,
    /// Many connections as in `Bulk`, over links faster by the same factor.
    Many(u64),
    /// The reference run or one of its relatives.
    R1(R1),
}

/// The runs that can be asked for by name.
pub const NAMED: [(&str, Run); 15] = [
    ("tcp", Run::Tcp),
    ("bulk", Run::Bulk),
    ("clean", Run::Clean),
    ("many", Run::Many(1000)),
    ("r1", Run::R1(R1::ONE)),
    ("r1-codel", Run::R1(R1::queued("codel"))),
    ("r1-fq-codel", Run::R1(R1::queued("fq-codel"))),
    ("r1-100", Run::R1(R1::shared(100))),
    ("r1-1000", Run::R1(R1::shared(1000))),
    ("r1-own-100", Run::R1(R1::own(100))),
    ("r1-own-1000", Run::R1(R1::own(1000))),
    ("r1-8-subflows", Run::R1(R1::wide(8))),
    ("r1-16-subflows", Run::R1(R1::wide(16))),
    ("gigabit", Run::R1(R1::over(Links::Gigabit))),
    ("long", Run::R1(R1::over(Links::Long))),
];

impl Run {
    /// Returns the name used in the tables.
    pub fn name(self) -> String {
        match self {
            Run::Tcp => "one TCP, 100 Mbit/s, 20 ms".to_owned(),
            Run::Bulk => "MPTCP, 10 + 100 Mbit/s, 20 + 50 ms, 0 + 0.1 %".to_owned(),
            Run::Clean => "MPTCP, 10 + 100 Mbit/s, 20 + 50 ms, no loss".to_owned(),
            Run::Many(_) => "1,000 such connections with loss".to_owned(),
            Run::R1(r1) => r1.name(),
        }
    }

    /// Seconds of virtual time for about half a second of ours, or a few for the many connections.
    pub fn seconds(self, quick: bool) -> u64 {
        match (self, quick) {
            (Run::Tcp | Run::Clean, true) => 10,
            (Run::Tcp | Run::Clean, false) => 60,
            (Run::Bulk, true) => 100,
            (Run::Bulk, false) => 500,
            (Run::Many(_), true) => 1,
            (Run::Many(_), false) => 3,
            (Run::R1(r1), _) => r1.seconds(quick),
        }
    }

    fn spec(self, seconds: u64) -> Spec {
        let connections = match self {
            Run::R1(r1) => return r1.spec(seconds),
            Run::Many(connections) => connections,
            Run::Tcp | Run::Bulk | Run::Clean => 1,
        };
        let link = |mbps: u64, rtt_ms: u64| {
            let round_trip = Duration::from_millis(rtt_ms);
            let queue = QueueLimit::Bdp { factor: 1.0, round_trip };
            LinkConfig { queue, ..LinkConfig::new(Rate::from_mbps(mbps * connections), round_trip / 2) }
        };
        let path = |name, mbps, rtt_ms, loss| {
            let down = LinkConfig { loss, ..link(mbps, rtt_ms) };
            PathSpec::new(name, down, link(mbps, rtt_ms))
        };
        let fast = match self {
            Run::Tcp => path("fast", 100, 20, LossModel::None),
            Run::Clean => path("fast", 100, 50, LossModel::None),
            Run::Bulk | Run::Many(_) | Run::R1(_) => path("fast", 100, 50, LossModel::Bernoulli { p: 0.001 }),
        };
        let mut paths = vec![fast];
        if self != Run::Tcp {
            paths.insert(0, path("slow", 10, 20, LossModel::None));
        }
        let mut host = HostSpec::new(Profile { buffer: Bytes::new(6 << 20), ..Profile::tcp() }, Policies::default());
        host.config.multipath = self != Run::Tcp;
        let mut spec = Spec::new(paths, host.clone(), host);
        let duration = Duration::from_secs(seconds);
        let bulk = Workload::Bulk { direction: Direction::Down, start: Duration::ZERO, duration };
        spec.workloads = vec![bulk; connections as usize];
        spec.stop = duration + Duration::from_secs(1);
        spec
    }

    /// Plays it.
    pub fn play(self, seconds: u64) -> Played {
        self.play_through(seconds, false)
    }

    /// Plays it, with segments as bytes if `codec`.
    pub fn play_through(self, seconds: u64, codec: bool) -> Played {
        let spec = Spec { codec, ..self.spec(seconds) };
        let (calls, begin, cpu) = (counting::calls(), Instant::now(), processor_nanos());
        let outcome = run(&spec).expect("the specifications above are sound");
        let wall_nanos = begin.elapsed().as_nanos() as f64;
        let processor_nanos = cpu.zip(processor_nanos()).map_or(wall_nanos, |(before, now)| now - before);
        Played { outcome, wall_nanos, processor_nanos, allocations: counting::calls() - calls }
    }

    /// Allocations per delivered data packet in the second half of a run twice as long, with segments as bytes if
    /// `codec`.
    pub fn allocations(self, seconds: u64, codec: bool) -> f64 {
        let (half, whole) = (self.play_through(seconds, codec), self.play_through(2 * seconds, codec));
        let packets = whole.outcome.packets - half.outcome.packets;
        whole.allocations.saturating_sub(half.allocations) as f64 / packets as f64
    }
}

/// A run with what it took.
pub struct Played {
    /// Outcome of the run.
    pub outcome: Outcome,
    wall_nanos: f64,
    /// Wall time where the system does not tell.
    processor_nanos: f64,
    allocations: u64,
}

/// Returns the processor time of this process in nanoseconds; `None` without `/proc`.
fn processor_nanos() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

impl Played {
    /// Nanoseconds of wall time per delivered data packet.
    pub fn wall_nanos(&self) -> f64 {
        self.wall_nanos / self.outcome.packets as f64
    }

    /// Nanoseconds of processor time per delivered data packet: the same, unless others want the processor too.
    pub fn processor_nanos(&self) -> f64 {
        self.processor_nanos / self.outcome.packets as f64
    }

    /// Application bytes per second of virtual time, in Mbit/s.
    pub fn goodput(&self, seconds: u64) -> f64 {
        let bytes: u64 = self.outcome.transfers.iter().map(|transfer| transfer.bytes).sum();
        bytes as f64 * 8e-6 / seconds as f64
    }
}
