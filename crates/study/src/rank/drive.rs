//! Family of drives: conditions whose paths follow models of today's networks (docs/scenarios.md, Models).
//!
//! The distribution is defined in `docs/leaderboard.md`; the order below is the order there. Work is drawn as for all
//! other conditions.

use super::condition::{Condition, DrawnPath, Dynamics, Family, LossKind, NAMES, round, work};
use super::point::{Draw, Point};
#[cfg(not(target_arch = "wasm32"))]
use super::recorded::Recorded;
use anabranch_units::Seed;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::Arc;

/// Model that a path follows, with what it takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    /// Satellites in low orbit.
    Leo {
        /// Share of the time without a view.
        obstructed: f64,
    },
    /// LTE.
    Lte {
        /// Mean ratio of signal to noise \[dB\].
        signal: f64,
    },
    /// 5G in millimetre waves.
    Blockage {
        /// Mean ratio of signal to noise \[dB\].
        signal: f64,
        /// People in the way.
        blockers: u64,
    },
    /// Wi-Fi.
    Wifi {
        /// Mean strength of the signal \[dBm\].
        signal: f64,
        /// Other stations.
        stations: u64,
    },
    /// A recording.
    #[cfg(not(target_arch = "wasm32"))]
    Recorded(Arc<Recorded>),
}

impl Condition {
    /// Returns condition `number` of `seed` of the family of drives.
    pub fn drive(seed: u64, number: u64) -> Condition {
        let draw = |name: &str| Draw::of(Seed(seed).stream(&format!("drive/{number}/{name}")).unit());
        let count = draw("paths").weighted(&[(2, 70.0), (3, 30.0)]);
        let paths: Vec<DrawnPath> =
            NAMES.into_iter().take(count).enumerate().map(|(n, name)| path(n, name, &draw)).collect();
        Condition::over(paths, (Family::Drives, seed, number), &draw)
    }

    /// Returns the condition of this family over these paths, whose rates are about what they carry on average.
    pub(super) fn over(
        paths: Vec<DrawnPath>,
        (family, seed, number): (Family, u64, u64),
        draw: &dyn Fn(&str) -> Draw,
    ) -> Condition {
        let able = paths.iter().map(|path| path.rate).sum();
        let stem = if family == Family::Recorded { "recorded" } else { "drive" };
        Condition {
            stem: format!("{stem}-{seed}-{number}"),
            drawn: Some((family, seed, number)),
            loss: LossKind::None,
            loss_both_ways: false,
            dynamics: Dynamics::None,
            work: work(&Point::drawn(seed, number), able),
            receive_buffer: draw("receive-fixed").chance(0.5).then_some(BUFFER),
            send_buffer: BUFFER,
            congestion: draw("congestion").weighted(&[("cubic", 60.0), ("lia", 20.0), ("bbr", 20.0)]),
            paths,
        }
    }
}

/// Draws path `n`. Its rate is about what its network carries on average.
fn path(n: usize, name: &'static str, draw: &dyn Fn(&str) -> Draw) -> DrawnPath {
    #[derive(Clone, Copy)]
    enum Kind {
        Leo,
        Lte,
        Blockage,
        Wifi,
    }
    let of = |what: &str| draw(&format!("path/{n}/{what}"));
    let kind =
        of("network").weighted(&[(Kind::Leo, 30.0), (Kind::Lte, 30.0), (Kind::Blockage, 20.0), (Kind::Wifi, 20.0)]);
    let (network, [slow, fast], [near, far], [up_least, up_most]) = match kind {
        Kind::Leo => {
            let obstructed = if of("obstructs").chance(0.5) { of("obstructed").uniform(0.02, 0.25) } else { 0.0 };
            (Network::Leo { obstructed }, [40.0, 250.0], [24.0, 60.0], [0.05, 0.2])
        }
        Kind::Lte => {
            (Network::Lte { signal: of("signal").uniform(5.0, 25.0) }, [10.0, 150.0], [24.0, 80.0], [0.2, 0.5])
        }
        Kind::Blockage => {
            let (signal, blockers) = (of("signal").uniform(10.0, 30.0), of("blockers").whole(0, 4));
            (Network::Blockage { signal, blockers }, [100.0, 1000.0], [10.0, 40.0], [0.1, 0.3])
        }
        Kind::Wifi => {
            let (signal, stations) = (of("signal").uniform(-80.0, -45.0), of("stations").whole(0, 5));
            (Network::Wifi { signal, stations }, [50.0, 800.0], [2.0, 20.0], [1.0, 1.0])
        }
    };
    let rate = round(of("rate").log_uniform(slow, fast), 3);
    DrawnPath {
        name,
        rate,
        up: round(rate * of("up").uniform(up_least, up_most), 3),
        rtt: round(of("rtt").log_uniform(near, far), 2),
        jitter: None,
        queue: of("queue").any(&[50, 100, 200, 500, 1000]),
        loss: 0.0,
        burst: None,
        network: Some(network),
    }
}

impl Network {
    /// Returns the name of its model.
    pub fn name(&self) -> &str {
        match self {
            Network::Leo { .. } => "leo",
            Network::Lte { .. } => "lte",
            Network::Blockage { .. } => "5g",
            Network::Wifi { .. } => "wifi",
            #[cfg(not(target_arch = "wasm32"))]
            Network::Recorded(recorded) => &recorded.name,
        }
    }

    /// Returns the entries of a path that follows it in a scenario file, at this rate \[Mbit/s\] and round-trip time
    /// \[ms\]; `trace` is the name of its recording's file.
    pub(super) fn entries(&self, rate: f64, rtt: f64, trace: &str) -> String {
        let delay = round(rtt / 2.0, 3);
        let own = match self {
            Network::Leo { obstructed } => format!("obstructed = \"{:.2}%\"", 100.0 * obstructed),
            Network::Lte { signal } => format!("signal-db = {signal:.2}"),
            Network::Blockage { signal, blockers } => format!("signal-db = {signal:.2}, blockers = {blockers}"),
            Network::Wifi { signal, stations } => format!("signal-dbm = {signal:.2}, stations = {stations}"),
            #[cfg(not(target_arch = "wasm32"))]
            Network::Recorded(recorded) => {
                let delay = if recorded.has_delay { String::new() } else { format!("\ndelay = \"{delay}ms\"") };
                return format!("trace = {{ file = \"{trace}\", offset = \"0s\" }}{delay}");
            }
        };
        let name = self.name();
        format!("model = {{ name = \"{name}\", rate = \"{rate}mbit\", delay = \"{delay}ms\", {own} }}")
    }
}

/// Send buffer, and receive buffers of fixed size \[B\]: the product's.
const BUFFER: u64 = 32 << 20;
