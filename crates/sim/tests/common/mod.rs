//! Three lines set the links.
#![allow(clippy::unwrap_used, dead_code)]

use anabranch_engine::{Policies, Profile};
use anabranch_net::{Change, LinkConfig, LossModel, QueueLimit};
use anabranch_paths::{Affected, Direction, PathSpec, TimedChange};
use anabranch_sim::{Arrivals, FileOrder, HostSpec, Outcome, Spec, Workload, run};
use anabranch_units::{Bytes, Duration, Rate};

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Makes a path of `mbps` Mbit/s with this delay each way, a queue of 1000 packets and no loss.
pub fn path(name: &str, mbps: u64, delay_ms: u64) -> PathSpec {
    let link = LinkConfig { queue: QueueLimit::Packets(1000), ..LinkConfig::new(Rate::from_mbps(mbps), ms(delay_ms)) };
    PathSpec::new(name, link.clone(), link)
}

/// The same with loss in the direction of the data.
pub fn lossy_path(name: &str, mbps: u64, delay_ms: u64, p: f64) -> PathSpec {
    let mut path = path(name, mbps, delay_ms);
    path.down.loss = LossModel::Bernoulli { p };
    path
}

pub fn spec(paths: Vec<PathSpec>, workloads: Vec<Workload>) -> Spec {
    let host = HostSpec::new(Profile::tcp(), Policies::default());
    let mut spec = Spec::new(paths, host.clone(), host);
    spec.workloads = workloads;
    spec.stop = Duration::from_secs(600);
    // A subflow whose path is dead gives up after fifteen timeouts of up to two minutes.
    spec.linger = Some(Duration::from_secs(3000));
    spec.audit = true;
    spec
}

pub fn download(bytes: u64) -> Workload {
    files(Direction::Down, &[bytes], false)
}

pub fn files(direction: Direction, sizes: &[u64], concurrent: bool) -> Workload {
    Workload::Files {
        direction,
        sizes: sizes.iter().map(|&size| Bytes::new(size)).collect(),
        order: order(concurrent, false, Duration::ZERO),
        start: Duration::ZERO,
    }
}

/// All at once; or else one after the other with such a pause, on one connection if it is `warm`.
pub fn order(concurrent: bool, warm: bool, think: Duration) -> FileOrder {
    match (concurrent, warm) {
        (true, _) => FileOrder::AtOnce(Arrivals::default()),
        (_, true) => FileOrder::OneConnection { warm_up: Bytes::ZERO, pause: think },
        _ => FileOrder::InTurn(think),
    }
}

/// A path swallows everything from one time \[ms\] to the other.
pub fn swallowed(path: &str, from: u64, until: u64) -> Vec<TimedChange> {
    let change =
        |at, change| TimedChange { at: ms(at), path: path.to_owned(), affected: Affected::Both, change, notify: false };
    vec![change(from, Change::Blackhole), change(until, Change::Restore)]
}

pub fn bulk(seconds: u64) -> Workload {
    Workload::Bulk { direction: Direction::Down, start: Duration::ZERO, duration: Duration::from_secs(seconds) }
}

/// Runs it and insists that everything arrived and that nothing is left.
pub fn complete(spec: &Spec) -> Outcome {
    let outcome = run(spec).unwrap();
    assert!(outcome.finished, "everything arrives: {:#?} {:#?}", outcome.transfers, outcome.connections);
    assert!(outcome.quiet, "nothing is left: {:#?}", outcome.connections);
    for transfer in &outcome.transfers {
        assert_eq!(Some(transfer.bytes), transfer.asked.or(Some(transfer.bytes)), "{}", transfer.label);
    }
    outcome
}

/// Returns the goodput of the only transfer [Mbit/s].
pub fn goodput(outcome: &Outcome) -> f64 {
    let transfer = &outcome.transfers[0];
    transfer.bytes as f64 * 8e-6 / transfer.duration().unwrap().as_secs_f64()
}
