//! Policies swapped in the middle of a transfer: for each pair of policies every byte arrives once and in order (the
//! simulator checks each), and every invariant holds after every event.

use crate::common::*;
use crate::policy;
use anabranch_engine::{Policies, Switch};
use anabranch_policy::registry::{ACK_PATHS, CONGESTION, Entry, FIRST_PATHS, Kind, REINJECTIONS, SCHEDULERS, WINDOWS};
use anabranch_sim::{Host, Outcome, TimedSwitch, run};
use anabranch_units::{Bytes, Duration, Instant};
use std::sync::Arc;

/// The numbers below `n`, each of which follows each other one at some place.
fn every_pair(n: usize) -> Vec<usize> {
    // i, i+1, i, i+2, i, …, n-1, i, and then i+1 in the place of i.
    (0..n).flat_map(|i| std::iter::once(i).chain((i + 1..n).flat_map(move |j| [j, i]))).collect()
}

#[test]
fn every_pair_is_every_pair() {
    for n in 1..30 {
        let order = every_pair(n);
        let follows = |a, b| order.windows(2).any(|pair| pair == [a, b]);
        assert!((0..n).all(|a| (0..n).all(|b| a == b || follows(a, b))), "{n}");
    }
}

/// Two lossy paths, little buffer, and a switch of the table's policies every few milliseconds.
fn chain<T: Kind + ?Sized>(table: &'static [Entry<T>], wrap: fn(anabranch_engine::Factory<T>) -> Switch) -> Outcome {
    let mut spec = spec(vec![lossy_path("a", 20, 5, 0.005), lossy_path("b", 10, 20, 0.005)], Vec::new());
    spec.server.config.send_buffer = Bytes::new(200_000);
    spec.client.config.receive_buffer = Bytes::new(200_000);
    let order = every_pair(table.len());
    // Never in step with anything.
    let at = |n: usize| Duration::from_micros(200_000 + 7_310 * n as u64);
    let switch = |(n, &which): (usize, &usize)| {
        let entry = &table[which];
        TimedSwitch { at: at(n), host: None, switch: wrap(Arc::new(|| entry.build_default())) }
    };
    spec.switches = order.iter().enumerate().map(switch).collect();
    // So much that it cannot be through before the last switch: 30 Mbit/s.
    let until = at(order.len());
    spec.workloads = vec![download((until.as_secs_f64() * 30e6 / 8.0) as u64)];
    let outcome = complete(&spec);
    assert!(outcome.transfers[0].finished.unwrap() > Instant::ZERO + until, "all switches were made under way");
    let sender = outcome.connections[0].sender.as_ref().unwrap();
    assert_eq!(sender.overruled.total(), 0, "none is led astray by what another began: {:?}", sender.overruled);
    outcome
}

#[test]
fn every_scheduler_goes_on_from_every_other() {
    chain(SCHEDULERS, Switch::Scheduler);
}

#[test]
fn every_congestion_control_goes_on_from_every_other() {
    chain(CONGESTION, Switch::Congestion);
}

#[test]
fn every_window_ack_path_and_reinjection_policy_goes_on_from_every_other() {
    chain(WINDOWS, Switch::ReceiveWindow);
    chain(ACK_PATHS, Switch::AckPath);
    chain(REINJECTIONS, Switch::Reinjection);
}

/// A download of 8 MB that is switched after a second.
fn switched(from: Policies, host: Option<Host>, switches: &[Switch]) -> Outcome {
    let mut spec =
        spec(vec![lossy_path("a", 10, 10, 0.002), lossy_path("b", 10, 30, 0.002)], vec![download(8_000_000)]);
    spec.server.config.policies = from;
    let timed = |switch: &Switch| TimedSwitch { at: ms(1000), host, switch: switch.clone() };
    spec.switches = switches.iter().map(timed).collect();
    complete(&spec)
}

/// Policies without memory, so that going on with the same is going on.
fn plain() -> Policies {
    Policies {
        scheduler: policy(SCHEDULERS, "min-rtt", &[]),
        congestion: policy(CONGESTION, "reno", &[]),
        receive_window: policy(WINDOWS, "shared", &[]),
        ack_path: policy(ACK_PATHS, "own", &[]),
        reinjection: policy(REINJECTIONS, "on-rto", &[]),
        first_path: policy(FIRST_PATHS, "as-listed", &[]),
    }
}

#[test]
fn a_policy_that_takes_its_own_place_changes_nothing() {
    let Policies { scheduler, congestion, receive_window, ack_path, reinjection, first_path } = plain();
    let all = [
        Switch::Scheduler(scheduler),
        Switch::Congestion(congestion),
        Switch::ReceiveWindow(receive_window),
        Switch::AckPath(ack_path),
        Switch::Reinjection(reinjection),
        Switch::FirstPath(first_path),
    ];
    // Windows, thresholds, recoveries and packets in flight are as they were: not one packet differs.
    assert_eq!(switched(plain(), None, &all).digest, switched(plain(), None, &[]).digest);
}

#[test]
fn the_new_scheduler_decides_from_there_on() {
    let single = || Policies { scheduler: policy(SCHEDULERS, "single", &[]), ..plain() };
    let min_rtt = Switch::Scheduler(policy(SCHEDULERS, "min-rtt", &[]));
    let on_b = |outcome: &Outcome| outcome.connections[0].subflows[1].stats.bytes_first_sent;
    let (before, after) = (switched(single(), None, &[]), switched(single(), None, std::slice::from_ref(&min_rtt)));
    assert_eq!(on_b(&before), 0);
    assert!(on_b(&after) > 1_000_000, "{}", on_b(&after));
    assert!(goodput(&after) > 1.3 * goodput(&before), "{} {}", goodput(&before), goodput(&after));
    // The other host sends nothing, so that what it is told has no effect.
    assert_eq!(on_b(&switched(single(), Some(Host::Client), &[min_rtt])), 0);
}

#[test]
fn the_new_congestion_control_grows_the_windows_it_finds() {
    let reno = switched(plain(), None, &[]);
    let cubic = switched(plain(), None, &[Switch::Congestion(policy(CONGESTION, "cubic", &[]))]);
    assert_ne!(cubic.digest, reno.digest);
    // From the first segment on would be something else again.
    let from_the_start = switched(Policies { congestion: policy(CONGESTION, "cubic", &[]), ..plain() }, None, &[]);
    assert_ne!(cubic.digest, from_the_start.digest);
}

/// Each file on a connection of its own: those opened after the switch begin with the new policy.
#[test]
fn connections_to_come_begin_with_the_new_policy() {
    let mut spec = spec(
        vec![path("a", 10, 10), path("b", 10, 10)],
        vec![files(anabranch_paths::Direction::Down, &[300_000; 4], false)],
    );
    spec.server.config.policies.scheduler = policy(SCHEDULERS, "single", &[]);
    let scheduler = policy(SCHEDULERS, "round-robin", &[]);
    spec.switches = vec![TimedSwitch { at: ms(600), host: Some(Host::Server), switch: Switch::Scheduler(scheduler) }];
    let outcome = run(&spec).unwrap();
    let opened = |n: usize| outcome.transfers[n].started < Instant::ZERO + ms(600);
    let on_b = |n: usize| outcome.connections[n].subflows[1].stats.bytes_first_sent;
    assert!(opened(0) && !opened(3), "{:?}", outcome.transfers);
    assert_eq!(on_b(0), 0);
    assert!(on_b(3) > 50_000, "{}", on_b(3));
}
