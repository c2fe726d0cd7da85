//! Condition of a run: network and work, as a function of a [`Point`], and thus of a seed and a number.
//!
//! The distribution is defined in `docs/leaderboard.md`; the order below is the order there.

use super::drive::Network;
use super::point::{Choice, Draw, MOST_PATHS, PathChoice, Point};

/// Condition: paths, loss, dynamics, work and buffers.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Stem of the names of its files; also its name if it is not a draw of a seed.
    pub stem: String,
    /// Family, seed and number that it is drawn from.
    pub drawn: Option<(Family, u64, u64)>,
    /// Paths in the order of the file: the first one carries the first subflow.
    pub paths: Vec<DrawnPath>,
    /// Paths that lose packets.
    pub loss: LossKind,
    /// True if packets are lost in both directions, not only in that of the data.
    pub loss_both_ways: bool,
    /// Changes during a run.
    pub dynamics: Dynamics,
    /// Data that is sent.
    pub work: Work,
    /// Receive buffer in bytes; `None` for one that tunes itself.
    pub receive_buffer: Option<u64>,
    /// Send buffer in bytes.
    pub send_buffer: u64,
    /// Congestion control.
    pub congestion: &'static str,
}

/// Family of conditions, each with a distribution of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Networks of constant rates, some of which change.
    Drawn,
    /// Networks by the models of today's.
    Drives,
    /// Recorded networks.
    Recorded,
}

/// Path of a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnPath {
    /// Name from `a` to `d`.
    pub name: &'static str,
    /// Rate in the direction of the data \[Mbit/s\].
    pub rate: f64,
    /// Rate in the other direction \[Mbit/s\].
    pub up: f64,
    /// Round-trip time \[ms\].
    pub rtt: f64,
    /// Jitter \[ms\]; the flag is true if it reorders.
    pub jitter: Option<(f64, bool)>,
    /// Capacity of the queue in packets.
    pub queue: u64,
    /// Mean share of packets lost.
    pub loss: f64,
    /// Mean number of packets in a burst of losses.
    pub burst: Option<f64>,
    /// Model or recording that it follows, if any.
    pub network: Option<Network>,
}

/// Paths that lose packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossKind {
    /// No path.
    None,
    /// All paths, equally often.
    All,
    /// Each path with probability one half, each with a rate of its own.
    Some,
    /// One path, in bursts.
    Burst,
}

/// Changes during a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Dynamics {
    /// No changes.
    None,
    /// A path is a cellular link.
    Cellular {
        /// Index of the path.
        path: usize,
        /// Seed of the generator of traces.
        seed: u64,
        /// Mean time between handovers \[s\].
        handover: f64,
    },
    /// Rate and RTT of a path are drawn again at regular times.
    Vary {
        /// Index of the path.
        path: usize,
        /// Interval \[ms\].
        every: f64,
        /// Minimum and maximum \[Mbit/s\].
        rate: [f64; 2],
        /// Minimum and maximum \[ms\].
        rtt: [f64; 2],
    },
    /// A path fails.
    Failure {
        /// Index of the path.
        path: usize,
        /// Time of the failure \[s\].
        at: f64,
        /// True if the hosts get no notice.
        silent: bool,
        /// Time at which the path comes back \[s\], if it does.
        back: Option<f64>,
    },
    /// All paths cross one bottleneck.
    Shared {
        /// Rate of the bottleneck \[Mbit/s\].
        rate: f64,
        /// Capacity of its queue in packets.
        queue: u64,
    },
    /// Competing TCP on one path.
    CrossTcp {
        /// Index of the path.
        path: usize,
        /// Duration \[s\].
        duration: u64,
        /// Its congestion control.
        congestion: &'static str,
    },
    /// On-off UDP cross traffic on one path.
    CrossUdp {
        /// Index of the path.
        path: usize,
        /// Rate \[Mbit/s\].
        rate: f64,
        /// Mean time on \[ms\].
        on: f64,
        /// Mean time off \[ms\].
        off: f64,
    },
}

/// Work: the data that is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// One file over a new connection.
    File {
        /// Size in bytes.
        size: u64,
        /// Class of the size: short, medium or long.
        class: Class,
    },
    /// Bursts over a connection that has been used before.
    Bursts {
        /// Size of each burst in bytes.
        size: u64,
        /// Number of bursts.
        count: u64,
        /// Time from one beginning to the next \[ms\].
        interval: f64,
    },
    /// As much data as possible for [`BULK_SECONDS`].
    Bulk,
    /// A web page.
    Page {
        /// Kind of page.
        page: PageKind,
        /// Protocol: `http1` or `http2`.
        protocol: &'static str,
    },
    /// Objects requested as a user acts.
    Interactive {
        /// Seed of the generated session.
        session: u64,
    },
}

/// Kind of page.
#[derive(Clone, Debug, PartialEq)]
pub enum PageKind {
    /// Site that scenario files can name.
    Site(&'static str),
    /// Generated page.
    Generated {
        /// Number of objects.
        objects: u64,
        /// Size of all objects in bytes.
        total: u64,
        /// Seed of the page.
        seed: u64,
    },
}

/// Class of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// 15 to 300 kB.
    Short,
    /// 1 to 5 MB.
    Medium,
    /// 20 MB.
    Long,
}

/// Duration of bulk transfers \[s\].
pub const BULK_SECONDS: u64 = 20;
pub(super) const NAMES: [&str; MOST_PATHS] = ["a", "b", "c", "d"];
const SITES: [&str; 5] = ["google", "wikipedia", "instagram", "amazon", "theguardian"];
/// Default send buffer in bytes.
const SEND_BUFFER: u64 = 16 << 20;

impl Condition {
    /// Returns condition `number` of `seed`.
    pub fn drawn(seed: u64, number: u64) -> Condition {
        let stem = format!("drawn-{seed}-{number}");
        Condition { drawn: Some((Family::Drawn, seed, number)), ..Condition::at(stem, &Point::drawn(seed, number)) }
    }

    /// Returns the condition at this point of the space, with the stem of its files.
    pub fn at(stem: String, point: &Point) -> Condition {
        let once = |choice| point.once(choice);
        let mut paths = paths(point);
        let loss = once(Choice::Loss).weighted(&[
            (LossKind::None, 35.0),
            (LossKind::All, 25.0),
            (LossKind::Some, 25.0),
            (LossKind::Burst, 15.0),
        ]);
        lose(point, loss, &mut paths);
        let kind = once(Choice::Dynamics).weighted(&[
            (Kind::None, 64.0),
            (Kind::Cellular, 12.0),
            (Kind::Vary, 8.0),
            (Kind::Failure, 8.0),
            (Kind::Shared, 4.0),
            (Kind::Cross, 4.0),
        ]);
        let target = once(Choice::Target).any(&(0..paths.len()).collect::<Vec<_>>());
        if kind == Kind::Cellular {
            make_cellular(point, &mut paths[target]);
        }
        let shared = (kind == Kind::Shared).then(|| {
            let sum: f64 = paths.iter().map(|path| path.rate).sum();
            round(sum * once(Choice::SharedRate).uniform(0.3, 0.8), 3)
        });
        let able: f64 = paths.iter().map(DrawnPath::able).sum();
        let able = shared.map_or(able, |rate| able.min(rate));
        let work = work(point, able);
        let expected = work.expected(able, paths.iter().map(|path| path.rtt).fold(f64::INFINITY, f64::min));
        let dynamics = dynamics(point, kind, target, &paths[target], shared, expected);
        Condition {
            stem,
            drawn: None,
            loss,
            loss_both_ways: once(Choice::LossBothWays).chance(0.5),
            dynamics,
            work,
            receive_buffer: match once(Choice::ReceiveTuned).chance(0.3) {
                true => None,
                false => Some(once(Choice::ReceiveBuffer).log_uniform(64.0, 16384.0).round() as u64 * 1024),
            },
            send_buffer: match once(Choice::SendSmall).chance(0.3) {
                true => once(Choice::SendBuffer).log_uniform(128.0, 4096.0).round() as u64 * 1024,
                false => SEND_BUFFER,
            },
            congestion: once(Choice::Congestion).weighted(&[
                ("cubic", 40.0),
                ("lia", 20.0),
                ("reno", 20.0),
                ("bbr", 20.0),
            ]),
            paths,
        }
    }

    /// Returns the family that it is of; what is moved through the space is of that of the space.
    pub fn family(&self) -> Family {
        self.drawn.map_or(Family::Drawn, |(family, ..)| family)
    }

    /// Returns the longest RTT over the shortest.
    pub fn rtt_ratio(&self) -> f64 {
        let rtts = || self.paths.iter().map(|path| path.rtt);
        rtts().fold(0.0, f64::max) / rtts().fold(f64::INFINITY, f64::min)
    }

    /// Returns the time at which a run is stopped \[s\].
    pub fn stop(&self) -> u64 {
        match self.work {
            Work::Bulk => BULK_SECONDS + 5,
            Work::Interactive { .. } => 120,
            _ => 300,
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    None,
    Cellular,
    Vary,
    Failure,
    Shared,
    Cross,
}

fn paths(point: &Point) -> Vec<DrawnPath> {
    let count = point.once(Choice::Paths).weighted(&[(2, 60.0), (3, 25.0), (4, 15.0)]);
    let similar = point.once(Choice::Similar).chance(0.25);
    let rate = |draw: Draw| draw.log_uniform(0.5, 1000.0);
    let rtt = |draw: Draw| draw.log_uniform(5.0, 600.0);
    let near = |draw: Draw| draw.log_uniform(1.0, 1.3);
    let base = (rate(point.once(Choice::BaseRate)), rtt(point.once(Choice::BaseRtt)));
    let one = |(n, name): (usize, &'static str)| {
        let of = |choice| point.path(n, choice);
        let (rate, rtt) = match similar {
            true => (base.0 * near(of(PathChoice::Rate)), base.1 * near(of(PathChoice::Rtt))),
            false => (rate(of(PathChoice::Rate)), rtt(of(PathChoice::Rtt))),
        };
        let (rate, rtt) = (round(rate.min(1000.0), 3), round(rtt, 2));
        let bdp = rate * 1e6 * rtt / 1e3 / 8.0 / 1500.0;
        DrawnPath {
            name,
            rate,
            up: match of(PathChoice::SlowUp).chance(0.3) {
                true => round((rate / 10.0).max(0.25), 3),
                false => rate,
            },
            rtt,
            jitter: of(PathChoice::Jitters).chance(0.3).then(|| {
                (round(rtt * of(PathChoice::Jitter).uniform(0.02, 0.2), 2), of(PathChoice::Reorders).chance(0.1))
            }),
            queue: match of(PathChoice::Bloated).chance(0.15) {
                true => of(PathChoice::Bloat).any(&[500, 1000]),
                false => ((bdp * of(PathChoice::Queue).log_uniform(0.25, 4.0)).round() as u64).max(10),
            },
            loss: 0.0,
            burst: None,
            network: None,
        }
    };
    NAMES.into_iter().take(count).enumerate().map(one).collect()
}

fn lose(point: &Point, kind: LossKind, paths: &mut [DrawnPath]) {
    let rate = |draw: Draw| draw.log_uniform(1e-4, 5e-2);
    match kind {
        LossKind::None => {}
        LossKind::All => paths.iter_mut().for_each(|path| path.loss = rate(point.once(Choice::CommonLoss))),
        LossKind::Some => {
            for (n, path) in paths.iter_mut().enumerate() {
                if point.path(n, PathChoice::Lossy).chance(0.5) {
                    path.loss = rate(point.path(n, PathChoice::Loss));
                }
            }
        }
        LossKind::Burst => {
            let path = &mut paths[point.once(Choice::BurstPath).any(&(0..paths.len()).collect::<Vec<_>>())];
            path.loss = point.once(Choice::BurstLoss).log_uniform(1e-3, 3e-2);
            path.burst = Some(point.once(Choice::BurstLength).uniform(2.0, 10.0));
        }
    }
}

/// Gives a path mean rates and queues as of phones in cars and trains.
fn make_cellular(point: &Point, path: &mut DrawnPath) {
    path.rate = round(point.once(Choice::CellularDown).log_uniform(3.0, 8.0), 3);
    path.up = round(path.rate * point.once(Choice::CellularUp).uniform(0.4, 1.2), 3);
    path.rtt = round(point.once(Choice::CellularRtt).log_uniform(20.0, 120.0), 2);
    path.queue = point.once(Choice::CellularQueue).any(&[50, 100, 200, 500, 1000]);
}

fn dynamics(
    point: &Point,
    kind: Kind,
    path: usize,
    target: &DrawnPath,
    shared: Option<f64>,
    expected: f64,
) -> Dynamics {
    let once = |choice| point.once(choice);
    match kind {
        Kind::None => Dynamics::None,
        Kind::Cellular => Dynamics::Cellular {
            path,
            seed: once(Choice::CellularSeed).whole(0, u64::from(u32::MAX)),
            handover: round(once(Choice::CellularHandover).log_uniform(5.0, 30.0), 1),
        },
        Kind::Vary => {
            let (rate, rtt) = (once(Choice::VaryRate).uniform(1.2, 4.0), once(Choice::VaryRtt).uniform(1.1, 3.0));
            Dynamics::Vary {
                path,
                every: once(Choice::VaryEvery).log_uniform(100.0, 1000.0).round(),
                rate: [round((target.rate / rate).max(0.25), 3), round(target.rate * rate, 3)],
                rtt: [round(target.rtt / rtt, 2), round(target.rtt * rtt, 2)],
            }
        }
        Kind::Failure => {
            let at = expected * once(Choice::FailAt).uniform(0.05, 0.7) + target.rtt / 1e3;
            let back = once(Choice::FailBack).chance(0.5).then(|| at + once(Choice::FailFor).log_uniform(0.5, 10.0));
            Dynamics::Failure {
                path,
                at: round(at, 3),
                silent: once(Choice::FailSilently).chance(0.5),
                back: back.map(|back| round(back, 3)),
            }
        }
        Kind::Shared => Dynamics::Shared {
            rate: shared.unwrap_or(target.rate),
            queue: once(Choice::SharedQueue).any(&[20, 50, 100, 200, 500]),
        },
        Kind::Cross if once(Choice::CrossKind).chance(0.5) => Dynamics::CrossTcp {
            path,
            // Short on a fast path: the time to simulate it is proportional to the bytes.
            duration: if target.rate < 100.0 { 60 } else { 5 },
            congestion: once(Choice::CrossCongestion).any(&["cubic", "reno"]),
        },
        Kind::Cross => Dynamics::CrossUdp {
            path,
            rate: round(target.rate.min(100.0) * once(Choice::CrossRate).uniform(0.2, 0.8), 3),
            on: once(Choice::CrossOn).log_uniform(100.0, 2000.0).round(),
            off: once(Choice::CrossOff).log_uniform(100.0, 2000.0).round(),
        },
    }
}

/// Draws the work, bounded by the amount that the paths can carry in about 40 s at `able` Mbit/s.
pub(super) fn work(point: &Point, able: f64) -> Work {
    #[derive(Clone, Copy, PartialEq)]
    enum Sort {
        Short,
        Warm,
        Medium,
        Long,
        Page,
        Interactive,
    }
    let once = |choice| point.once(choice);
    let most = able * 1e6 / 8.0 * 40.0;
    let sort = once(Choice::Workload).weighted(&[
        (Sort::Short, 22.0),
        (Sort::Warm, 18.0),
        (Sort::Medium, 25.0),
        (Sort::Long, 20.0),
        (Sort::Page, 10.0),
        (Sort::Interactive, 5.0),
    ]);
    let small = || once(Choice::Size).log_uniform(15e3, 300e3).round() as u64;
    match sort {
        Sort::Short => Work::File { size: small(), class: Class::Short },
        Sort::Warm => Work::Bursts {
            size: small(),
            count: once(Choice::Bursts).whole(4, 12),
            interval: once(Choice::Interval).uniform(500.0, 3000.0).round(),
        },
        Sort::Long if most >= 5e6 => match able <= 30.0 && once(Choice::Bulk).chance(0.4) {
            true => Work::Bulk,
            false => Work::File { size: most.min(20e6).round() as u64, class: Class::Long },
        },
        Sort::Medium | Sort::Long => {
            let size = once(Choice::Size).log_uniform(1e6, 5e6).min(most.max(300e3));
            Work::File { size: size.round() as u64, class: Class::Medium }
        }
        Sort::Page => Work::Page {
            page: match once(Choice::Page).whole(0, SITES.len() as u64) {
                n if (n as usize) < SITES.len() => PageKind::Site(SITES[n as usize]),
                _ => PageKind::Generated {
                    objects: once(Choice::PageObjects).log_uniform(30.0, 200.0).round() as u64,
                    total: once(Choice::PageBytes).log_uniform(5e5, 5e6).round() as u64,
                    seed: once(Choice::PageSeed).whole(1, 1000),
                },
            },
            protocol: once(Choice::Protocol).any(&["http1", "http2"]),
        },
        Sort::Interactive => Work::Interactive { session: once(Choice::Session).whole(1, 1000) },
    }
}

impl Work {
    /// Estimates its duration \[s\], over paths that carry `able` Mbit/s of which one has this RTT \[ms\].
    fn expected(&self, able: f64, rtt: f64) -> f64 {
        match *self {
            Work::File { size, .. } => (size as f64 / (able * 1e6 / 8.0)).max(0.05) + 4.0 * rtt / 1e3,
            Work::Bursts { count, interval, .. } => count as f64 * interval / 1e3,
            Work::Bulk => BULK_SECONDS as f64,
            Work::Page { .. } | Work::Interactive { .. } => 5.0,
        }
    }
}

impl DrawnPath {
    /// Estimates the rate that the path can carry \[Mbit/s\]: its own, or under loss that of Reno after Mathis et al.
    /// (*The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm*, CCR 1997).
    fn able(&self) -> f64 {
        if self.loss > 0.0 {
            self.rate.min(1.22 * 1460.0 * 8.0 / (self.rtt / 1e3) / self.loss.sqrt() / 1e6)
        } else {
            self.rate
        }
    }
}

pub(super) fn round(x: f64, places: i32) -> f64 {
    let scale = [1.0, 10.0, 100.0, 1000.0][places.clamp(0, 3) as usize];
    (x * scale).round() / scale
}
