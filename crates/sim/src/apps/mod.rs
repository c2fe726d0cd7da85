//! Applications: what the workloads of a run do, one file each.

mod bulk;
mod bursts;
mod exchange;
mod files;
mod gaps;
mod udp;
mod web;

use crate::session::News;
use crate::stage::{Opening, Stage};
use crate::{Extent, Spec, Workload};
use anabranch_paths::Direction;
use anabranch_units::Instant;
use std::sync::Arc;

/// One workload at work, with both its ends.
pub(crate) trait App {
    /// Called once at the beginning: sets the first timer.
    fn begin(&mut self, stage: &mut Stage);
    /// A timer has fired.
    fn on_timer(&mut self, token: u32, stage: &mut Stage);
    /// Something happened on one of its sessions.
    fn on_news(&mut self, _session: usize, _news: News, _stage: &mut Stage) {}
    /// Whether it has nothing more to do.
    fn is_done(&self) -> bool;
    /// Whether it gave up on what it had not begun. (What it had begun shows as a transfer without an end.)
    fn gave_up(&self) -> bool {
        false
    }
}

/// Who an application is, and between which hosts it runs.
#[derive(Clone, Copy)]
struct Identity {
    /// Its number, which is also that of its workload.
    app: usize,
    /// The pair of hosts.
    pair: usize,
    /// The path of its connections; the primary one if `None`.
    path: Option<usize>,
    direction: Direction,
    /// What its transfers are called.
    kind: &'static str,
}

impl Identity {
    fn open(self, label: String, stage: &mut Stage) -> usize {
        let Identity { app, pair, path, direction, .. } = self;
        stage.open(Opening { app, workload: app, label, pair, path, direction })
    }

    /// Has the client ask for data, if it is the server that sends them.
    fn request(self, session: usize, stage: &mut Stage) {
        if self.direction == Direction::Down {
            let asked = stage.target(session, Direction::Up) + REQUEST;
            stage.expect(session, Direction::Up, asked);
            stage.write(session, Direction::Up, REQUEST);
        }
    }
}

/// The applications of a run in the order of its workloads.
pub(crate) fn all(spec: &Spec, stage: &mut Stage) -> Vec<Box<dyn App>> {
    let mut pairs = 1;
    let mut apps: Vec<Box<dyn App>> = Vec::new();
    for (app, workload) in spec.workloads.iter().enumerate() {
        let main = |direction, kind| Identity { app, pair: 0, path: None, direction, kind };
        apps.push(match workload {
            Workload::Bulk { direction, start, duration } => {
                Box::new(bulk::Bulk::new(main(*direction, "bulk"), Instant::ZERO + *start, *duration))
            }
            Workload::Files { direction, sizes, order, start } => {
                let sizes = files::Sizes::These(sizes.clone());
                let order = files::Order::of(order, spec.seed.stream(&format!("files/{app}/gaps")));
                Box::new(files::Files::new(main(*direction, "file"), sizes, order, Instant::ZERO + *start))
            }
            Workload::Bursts { direction, size, count, interval, start, warm_up } => {
                let plan = bursts::Plan {
                    size: size.get(),
                    count: *count,
                    interval: *interval,
                    start: Instant::ZERO + *start,
                    warm_up: warm_up.get(),
                };
                Box::new(bursts::Bursts::new(main(*direction, "burst"), plan))
            }
            Workload::Exchange { down, up, start, pause } => {
                let identity = main(Direction::Down, "exchange");
                Box::new(exchange::Exchange::new(identity, [*down, *up], Instant::ZERO + *start, *pause))
            }
            Workload::Udp { path, direction, rate, packet, spacing, on, off, phases, start, stop } => {
                let path = stage.topology.path_named(path).expect("names were checked before the run");
                let gaps =
                    gaps::Gaps::new(rate.time_for(*packet), *spacing, spec.seed.stream(&format!("udp/{app}/gaps")));
                let times = |mean, name| gaps::Gaps::new(mean, *phases, spec.seed.stream(&format!("udp/{app}/{name}")));
                let phases = (!on.is_zero()).then(|| udp::Phases { on: times(*on, "on"), off: times(*off, "off") });
                let schedule = udp::Schedule { gaps, phases, stop: Instant::ZERO + *stop };
                Box::new(udp::Udp::new(app, path, *direction, *packet, schedule, Instant::ZERO + *start, stage))
            }
            Workload::Web { page, protocol, start } => {
                let identity = main(Direction::Down, "object");
                Box::new(web::Web::page(identity, Arc::clone(page), *protocol, Instant::ZERO + *start))
            }
            Workload::Interactive { page, start } => {
                let identity = main(Direction::Down, "object");
                Box::new(web::Web::interactive(identity, Arc::clone(page), Instant::ZERO + *start))
            }
            Workload::Tcp { path, direction, start, extent, .. } => {
                let path = stage.topology.path_named(path);
                let identity = Identity { app, pair: pairs, path, direction: *direction, kind: "tcp" };
                pairs += 1;
                let (start, no_pause) = (Instant::ZERO + *start, anabranch_units::Duration::ZERO);
                let order = files::Order::InTurn(no_pause);
                let files = |sizes| Box::new(files::Files::new(identity, sizes, order, start));
                match *extent {
                    Extent::For(duration) => Box::new(bulk::Bulk::new(identity, start, duration)),
                    Extent::File(size) => files(files::Sizes::These(vec![size])),
                    Extent::Repeat(size) => files(files::Sizes::Always(size)),
                }
            }
        });
    }
    apps
}

/// Bytes of a request: about what a short HTTP request takes.
const REQUEST: u64 = 100;
