//! Paths drawn by lot, within bounds that let a transfer end.

use anabranch_net::{LinkConfig, LossModel, QueueLimit, Reordering};
use anabranch_paths::{NetworkSpec, PathSpec};
use anabranch_units::{Duration, Rate, Seed, Stream};
use std::fmt;

/// Properties of a path, the same both ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// In Mbit/s.
    pub rate: u64,
    /// One way, in ms.
    pub delay: u64,
    /// Probability of loss, each way.
    pub loss: f64,
    /// Probability that a packet falls behind.
    pub reordering: f64,
    /// By so much, in ms.
    pub behind: u64,
}

/// From what paths are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Least and most, in Mbit/s.
    pub rate: (u64, u64),
    /// Longest delay one way, in ms.
    pub delay: u64,
    /// Greatest probability of loss.
    pub loss: f64,
    /// Greatest probability that a packet falls behind.
    pub reordering: f64,
    /// A TCP alone on the first path should come to at least this, in Mbit/s.
    pub first_path: f64,
}

impl Drawn {
    fn draw(bounds: &Bounds, chance: &mut Stream) -> Drawn {
        Drawn {
            rate: chance.between(bounds.rate.0, bounds.rate.1),
            delay: chance.between(0, bounds.delay),
            loss: chance.unit() * bounds.loss,
            reordering: chance.unit() * bounds.reordering,
            behind: chance.between(1, 10),
        }
    }

    /// Throughput of a single TCP here, in Mbit/s: MSS / RTT · √(3/2p) (Mathis et al. 1997), or the rate.
    fn throughput(&self) -> f64 {
        let round_trip = (2 * self.delay).max(1) as f64 / 1e3;
        let limit = MSS_BITS / round_trip * (1.5 / self.loss.max(1e-6)).sqrt();
        (limit / 1e6).min(self.rate as f64)
    }

    fn link(&self) -> LinkConfig {
        let delay = Duration::from_millis(self.delay);
        let mut link = LinkConfig::new(Rate::from_mbps(self.rate), delay);
        link.loss = LossModel::Bernoulli { p: self.loss };
        link.reordering = Some(Reordering { probability: self.reordering, extra: Duration::from_millis(self.behind) });
        link.queue = QueueLimit::Packets(200);
        link
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Drawn { rate, delay, loss, reordering, behind } = self;
        let (loss, reordering) = (loss * 100.0, reordering * 100.0);
        write!(f, "{rate} Mbit/s, {delay} ms, {loss:.2} % lost, {reordering:.2} % behind by {behind} ms")
    }
}

/// Two paths, the first of which is good enough to carry everything alone.
pub fn draw(seed: Seed, bounds: &Bounds) -> [Drawn; 2] {
    let mut chance = seed.stream("links");
    let first = std::iter::repeat_with(|| Drawn::draw(bounds, &mut chance))
        .find(|drawn| drawn.throughput() >= bounds.first_path)
        .expect("some path is good enough");
    [first, Drawn::draw(bounds, &mut chance)]
}

/// The paths as the emulator takes them.
pub fn network(paths: &[Drawn]) -> NetworkSpec {
    let path = |(n, drawn): (usize, &Drawn)| PathSpec::new(&format!("path{}", n + 1), drawn.link(), drawn.link());
    NetworkSpec::new(paths.iter().enumerate().map(path).collect())
}

const MSS_BITS: f64 = 1400.0 * 8.0;
