//! Choice of the first path, which decides how long a short transfer takes.

use super::common::*;
use super::policy;
use anabranch_engine::Policies;
use anabranch_paths::*;
use anabranch_policy::registry::FIRST_PATHS;
use anabranch_sim::*;
use anabranch_units::{Bytes, Duration};

/// Seconds until 20 kB have been downloaded, and the run, with this policy at the client.
fn download_20k(mut spec: Spec, first_path: &str) -> (f64, Outcome) {
    spec.workloads = vec![files(Direction::Down, &[20_000], false)];
    spec.client.config.policies = Policies { first_path: policy(FIRST_PATHS, first_path, &[]), ..Policies::default() };
    spec.stop = Duration::from_secs(120);
    spec.audit = true;
    let outcome = run(&spec).unwrap();
    assert!(outcome.finished && outcome.quiet, "{first_path}: {:?}", outcome.transfers);
    assert_eq!(outcome.digest, run(&spec).unwrap().digest, "{first_path}: twice the same");
    let transfer = &outcome.transfers[0];
    (transfer.finished.unwrap().since(transfer.started).as_secs_f64(), outcome)
}

/// The first path listed has an RTT of 300 ms, the second one of 10 ms.
fn slow_and_fast() -> Spec {
    spec(vec![path("slow", 20, 150), path("fast", 20, 5)], vec![])
}

fn times(spec: &Spec) -> [f64; 4] {
    ["as-listed", "lowest-rtt", "raced", "remembered"].map(|name| download_20k(spec.clone(), name).0)
}

/// Loses the packets with these numbers that the client sends on a path.
fn lose(spec: &mut Spec, path: usize, numbers: &[u64]) {
    let plan = numbers.iter().map(|number| (*number, Fault::Drop)).collect();
    let kind = Middlebox::Faults(Faults { plan, wait: ms(1), direction: Some(Direction::Up) });
    spec.network.paths[path].middleboxes.push(MiddleboxSpec { kind, end: End::Client });
}

fn show(what: &str, [listed, lowest, raced, remembered]: [f64; 4]) {
    println!("{what}: as-listed {listed:.3} s, lowest-rtt {lowest:.3}, raced {raced:.3}, remembered {remembered:.3}");
}

#[test]
fn the_faster_path_listed_second_is_found() {
    let all = times(&slow_and_fast());
    show("300 ms, 10 ms", all);
    let [listed, lowest, raced, remembered] = all;
    assert!(listed > 0.6 && lowest < 0.1, "{listed} {lowest}");
    assert!((raced - lowest).abs() < 0.001, "{raced} {lowest}");
    assert_eq!(raced, remembered, "nothing is known yet");
    let (_, outcome) = download_20k(slow_and_fast(), "raced");
    assert_eq!(outcome.connections.len(), 1);
    assert!(outcome.connections[0].multipath && outcome.connections[0].receiver.is_some());
}

/// The faster path, listed first, is kept by all policies at next to no cost.
#[test]
fn the_faster_path_listed_first_is_kept() {
    let all = times(&spec(vec![path("fast", 20, 5), path("slow", 20, 150)], vec![]));
    show("10 ms, 300 ms", all);
    assert!(all.iter().all(|time| time - all[0] < 0.001), "{all:?}");
}

/// A SYN that is lost costs a round trip of the other path where it would cost a second.
#[test]
fn a_lost_syn_costs_no_second() {
    let mut lossy = spec(vec![path("fast", 20, 5), path("slow", 20, 25)], vec![]);
    lose(&mut lossy, 0, &[0]);
    let all = times(&lossy);
    show("10 ms with the first SYN lost, 50 ms", all);
    let [listed, _, raced, _] = all;
    assert!(listed > 1.0 && raced < 0.25, "{listed} {raced}");
    let mut lossy = slow_and_fast();
    lose(&mut lossy, 1, &[0]);
    let all = times(&lossy);
    show("300 ms, 10 ms with the first SYN lost", all);
    assert!(all[2] <= all[0], "{all:?}");
}

/// A first path that leads nowhere: as listed, a connection never begins.
#[test]
fn a_black_first_path_is_passed_by() {
    let mut black = spec(vec![path("black", 20, 5), path("fast", 20, 10)], vec![]);
    black.network.changes = swallowed("black", 0, 30_000);
    let all = times(&black);
    show("black for 30 s, 20 ms", all);
    let [listed, lowest, raced, _] = all;
    assert!(listed > 30.0, "{listed}");
    assert!((raced - lowest).abs() < 0.001, "{raced} {lowest}");
}

/// The fast path dies between the SYN/ACK and the third ACK, for three seconds: only a connection begun anew helps. A
/// request may be repeated, an upload may not.
#[test]
fn a_path_that_dies_with_the_keys_is_left() {
    let play = |first_path: &str, direction: Direction| {
        let mut spec = spec(vec![path("fast", 20, 10), path("slow", 20, 30)], vec![]);
        spec.network.changes = swallowed("fast", 15, 3_000);
        spec.client.config.policies.first_path = policy(FIRST_PATHS, first_path, &[]);
        let sizes = vec![Bytes::new(20_000)];
        spec.workloads =
            vec![Workload::Files { direction, sizes, order: order(false, false, ms(0)), start: Duration::ZERO }];
        let outcome = complete(&spec);
        let time = outcome.transfers[0].duration().unwrap().as_secs_f64();
        println!("{first_path}, {direction:?}: {time:.3} s, begun anew {}", outcome.counters[0].reopened);
        (time, outcome.counters[0].reopened)
    };
    let raced = play("raced", Direction::Down);
    assert!(raced.0 < 1.2 && raced.1 == 1, "{raced:?}");
    for (first_path, direction) in [("as-listed", Direction::Down), ("raced", Direction::Up)] {
        let waited = play(first_path, direction);
        assert!(waited.0 > 3.0 && waited.1 == 0, "{first_path} {direction:?}: {waited:?}");
    }
}

/// Files one after the other, each on a connection of its own. The first races, and lets the answers to the SYNs that
/// lost come in, which tell the round trips of paths that no subflow was quick enough to join.
#[test]
fn memory_saves_the_race() {
    let play = |first_path: &str| {
        let mut spec = slow_and_fast();
        spec.network.paths.push(path("middle", 20, 20));
        spec.client.config.policies.first_path = policy(FIRST_PATHS, first_path, &[]);
        let sizes = vec![Bytes::new(20_000); 5];
        let order = order(false, false, ms(500));
        spec.workloads = vec![Workload::Files { direction: Direction::Down, sizes, order, start: Duration::ZERO }];
        let outcome = complete(&spec);
        // A SYN that loses is answered, and the answer belongs to nothing.
        let lost = outcome.counters[0].unknown_flow;
        let times: Vec<_> = outcome.transfers.iter().map(|transfer| transfer.duration().unwrap()).collect();
        println!("{first_path}: {lost} segments for nobody, {times:?}");
        (lost, times)
    };
    let (raced, remembered) = (play("raced"), play("remembered"));
    assert!(remembered.0 < raced.0, "{remembered:?} {raced:?}");
    assert!(remembered.1[1..].iter().all(|time| *time <= remembered.1[0]), "{remembered:?}");
}

/// 2 Mbit/s answer first, and 100 carry the first flight sooner: the connections after the first begin there.
#[test]
fn memory_leaves_a_thin_path_that_answers_first() {
    let play = |first_path: &str| {
        let mut spec = spec(vec![path("thin", 2, 5), path("fat", 100, 10)], vec![]);
        spec.client.config.policies.first_path = policy(FIRST_PATHS, first_path, &[]);
        let sizes = vec![Bytes::new(14_000); 4];
        let order = order(false, false, ms(500));
        spec.workloads = vec![Workload::Files { direction: Direction::Down, sizes, order, start: Duration::ZERO }];
        let outcome = complete(&spec);
        outcome.transfers.iter().map(|transfer| transfer.duration().unwrap().as_secs_f64()).collect::<Vec<f64>>()
    };
    for first_path in ["raced", "remembered"] {
        let times = play(first_path);
        println!("{first_path}: {times:?}");
        assert!(times[1..].iter().all(|time| *time < 0.8 * times[0]), "{first_path}: {times:?}");
    }
    let listed = play("as-listed");
    assert!(listed[1..].iter().all(|time| *time > 0.9 * listed[0]), "{listed:?}");
}
