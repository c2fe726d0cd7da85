//! Applications: what the workloads of a run do, one file each.

mod bulk;
mod bursts;
mod exchange;
mod files;
mod gaps;
mod udp;
mod web;

pub(crate) use gaps::Gaps;

use crate::session::News;
use crate::spec::stream_of;
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
    /// Returns true if all its work is done.
    fn is_done(&self) -> bool;
    /// Returns true if it gave up on work that it had not begun. (Begun work shows as a transfer without an end.)
    fn gave_up(&self) -> bool {
        false
    }
}

/// Identity of an application, and the hosts between which it runs.
#[derive(Clone, Copy)]
struct Identity {
    /// Its number.
    app: usize,
    /// The client that it belongs to.
    client: usize,
    /// Its workload, by index.
    workload: usize,
    /// The hosts: client and server.
    ends: [usize; 2],
    /// The path of its connections; the primary one if `None`.
    path: Option<usize>,
    direction: Direction,
    /// Name of its transfers.
    kind: &'static str,
}

impl Identity {
    fn open(self, label: String, stage: &mut Stage) -> usize {
        let Identity { app, workload, ends, path, direction, .. } = self;
        stage.open(Opening { app, workload, label, ends, path, direction })
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

/// The applications of a run: of each client in turn, in the order of workloads.
pub(crate) fn all(spec: &Spec, stage: &mut Stage) -> Vec<Box<dyn App>> {
    let mut apps = Vec::new();
    for client in 0..spec.clients {
        add_client(&mut apps, spec, client, stage);
    }
    apps
}

/// Adds the applications of one client.
fn add_client(apps: &mut Vec<Box<dyn App>>, spec: &Spec, client: usize, stage: &mut Stage) {
    let under_test = stage.under_test(client);
    // Behind them are the pairs of competing TCP, in the order of their workloads.
    let mut competing = (under_test[1] + 1..).step_by(2).map(|number| [number, number + 1]);
    for (workload, it) in spec.workloads.iter().enumerate() {
        let app = apps.len();
        let main = |direction, kind| Identity { app, client, workload, ends: under_test, path: None, direction, kind };
        let stream = |kind: &str, name: &str| stream_of(spec.seed, client, workload, kind, name);
        apps.push(match it {
            Workload::Bulk { direction, start, duration } => {
                Box::new(bulk::Bulk::new(main(*direction, "bulk"), Instant::ZERO + *start, *duration))
            }
            Workload::Files { direction, sizes, order, start } => {
                let sizes = files::Sizes::These(sizes.clone());
                let order = files::Order::of(order, stream("files", "gaps"));
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
                let path = client * stage.topology.paths_per_client() + path;
                let gaps = gaps::Gaps::new(rate.time_for(*packet), *spacing, stream("udp", "gaps"));
                let times = |mean, name| gaps::Gaps::new(mean, *phases, stream("udp", name));
                let phases = (!on.is_zero()).then(|| udp::Phases { on: times(*on, "on"), off: times(*off, "off") });
                let schedule = udp::Schedule { gaps, phases, stop: Instant::ZERO + *stop };
                Box::new(udp::Udp::new(
                    udp::Flow { app, client, workload, path, direction: *direction, packet: *packet },
                    schedule,
                    Instant::ZERO + *start,
                    stage,
                ))
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
                let ends = competing.next().expect("numbers do not end");
                let identity = Identity { app, client, workload, ends, path, direction: *direction, kind: "tcp" };
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
}

/// Bytes of a request: about what a short HTTP request takes.
const REQUEST: u64 = 100;
