//! Reinjection.

use crate::common::*;
use crate::policy;
use anabranch_net::{Change, QueueLimit};
use anabranch_policy::registry::{REINJECTIONS, Value};
use anabranch_sim::{Affected, Direction, Outcome, Spec, TimedChange, Workload};
use anabranch_units::{Bytes, Duration, Seed};

fn with(mut spec: Spec, name: &str, given: &[(&str, Value)]) -> Spec {
    spec.server.policies.reinjection = policy(REINJECTIONS, name, given);
    spec
}

/// The completion times of all transfers over some seeds, sorted [s], and the bytes that were sent on a second subflow.
fn measure(spec: &Spec, name: &str) -> (Vec<f64>, u64) {
    let (mut times, mut copies) = (Vec::new(), 0);
    for seed in 1..=8 {
        let mut spec = with(spec.clone(), name, &[]);
        spec.seed = Seed(seed);
        spec.audit = false;
        let outcome = complete(&spec);
        times.extend(outcome.transfers.iter().map(|transfer| transfer.duration().unwrap().as_secs_f64()));
        copies += reinjected(&outcome);
    }
    times.sort_by(f64::total_cmp);
    (times, copies)
}

fn reinjected(outcome: &Outcome) -> u64 {
    outcome.connections.iter().map(|connection| connection.sender.as_ref().unwrap().reinjected).sum()
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn percentile(times: &[f64], p: usize) -> f64 {
    times[(times.len() - 1) * p / 100]
}

/// So many files of this size on one warm connection.
fn warm(size: u64, count: usize) -> Workload {
    let mut files = files(Direction::Down, &vec![size; count], false);
    if let Workload::Files { warm, think, .. } = &mut files {
        (*warm, *think) = (true, ms(200));
    }
    files
}

fn change(at_ms: u64, path: &str, change: Change) -> TimedChange {
    TimedChange { at: ms(at_ms), path: path.to_owned(), affected: Affected::Both, change, notify: false }
}

#[test]
fn explore() {
    let all = ["none", "on-rto", "opportunistic", "upstream", "tail", "deadline", "redundant"];
    let show = |label: &str, spec: &Spec| {
        println!("== {label}");
        for name in all {
            let (times, copies) = measure(spec, name);
            println!(
                "{name:14} mean {:.4} p50 {:.4} p95 {:.4} max {:.4} copies {copies}",
                mean(&times),
                percentile(&times, 50),
                percentile(&times, 95),
                percentile(&times, 100)
            );
        }
    };
    let mut hole = spec(vec![path("a", 10, 10), path("b", 10, 15)], vec![download(2_000_000)]);
    hole.changes = vec![change(500, "a", Change::Blackhole)];
    show("blackhole", &hole);
    let mut back = spec(vec![path("a", 10, 10), path("b", 10, 15)], vec![download(10_000_000)]);
    back.changes = vec![change(500, "a", Change::Blackhole), change(4000, "a", Change::Restore)];
    show("blackhole until 4 s, 10 MB", &back);
    let lossy = |size, count, p| {
        spec(vec![lossy_path("a", 20, 10, p), lossy_path("b", 10, 25, p)], vec![warm(size, count)])
    };
    show("warm 10 kB x 50, 2 %", &lossy(10_000, 50, 0.02));
    show("warm 30 kB x 50, 2 %", &lossy(30_000, 50, 0.02));
    show("warm 100 kB x 50, 2 %", &lossy(100_000, 50, 0.02));
    show("warm 500 kB x 10, 2 %", &lossy(500_000, 10, 0.02));
    let slow = |size, count, p| {
        spec(vec![lossy_path("a", 20, 10, p), lossy_path("b", 10, 100, p)], vec![warm(size, count)])
    };
    show("slow b, warm 100 kB x 50, 2 %", &slow(100_000, 50, 0.02));
    show("bulk 4 MB 1 %", &spec(vec![lossy_path("a", 20, 10, 0.01), lossy_path("b", 10, 25, 0.01)], vec![download(4_000_000)]));
    let mut held = spec(vec![path("fast", 100, 5), path("slow", 10, 50)], vec![download(4_000_000)]);
    held.client.receive_buffer = Bytes::new(1 << 18);
    held.paths[0].down.queue = QueueLimit::Packets(80);
    show("small buffer", &held);
    let _ = Duration::ZERO;
}
