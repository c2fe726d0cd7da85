//! Hosts that lose all their state and come back: the other end hears of it or finds out, and nothing hangs.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_engine::Keepalive;
use anabranch_sim::{Host, Outcome, Spec, SpecError, TimedRestart, Workload, run};
use anabranch_units::{Bytes, Duration};
use common::{download, ms, path, spec};

/// A download that the restart cuts off, and an exchange after it.
fn interrupted(host: Host, at: Duration) -> Spec {
    let later = Workload::Exchange {
        down: Bytes::new(200_000),
        up: Bytes::new(300_000),
        start: Duration::from_secs(100),
        pause: Duration::ZERO,
    };
    let mut spec = spec(vec![path("a", 10, 10), path("b", 10, 25)], vec![download(10_000_000), later]);
    spec.restarts = vec![TimedRestart { at, host }];
    spec
}

fn assert_only_the_first_failed(outcome: &Outcome) {
    let finished: Vec<_> = outcome.transfers.iter().map(|it| (it.label.as_str(), it.finished.is_some())).collect();
    assert_eq!(finished, [("file 1", false), ("exchange down", true), ("exchange up", true)]);
    assert!(!outcome.finished && outcome.quiet);
}

/// A host that still sends is answered with RSTs; the connection is over once no subflow has come for a minute.
#[test]
fn a_host_that_forgets_resets_what_comes_from_its_peers() {
    for host in [Host::Client, Host::Server] {
        let outcome = run(&interrupted(host, ms(2000))).unwrap();
        assert_only_the_first_failed(&outcome);
        let survivor = if host == Host::Client { 1 } else { 0 };
        assert!(outcome.counters[survivor].resets_received > 0, "{host}");
    }
}

/// A client that only listens never hears that the server has forgotten it: keepalives find out, and nothing else does.
#[test]
fn a_client_that_waits_for_a_server_that_has_forgotten_needs_keepalives() {
    let mut spec = interrupted(Host::Server, ms(2000));
    // Nothing is under way when the server forgets, and nothing will be.
    let (down, up) = (Bytes::new(1000), Bytes::new(1000));
    spec.workloads = vec![Workload::Exchange { down, up, start: Duration::ZERO, pause: ms(5000) }];
    for (idle, quiet) in [(None, false), (Some(Duration::from_secs(30)), true)] {
        spec.client.config.keepalive = Keepalive { idle, ..Keepalive::default() };
        let outcome = run(&spec).unwrap();
        assert!(!outcome.finished);
        assert_eq!(outcome.quiet, quiet);
        if quiet {
            assert!(outcome.counters[0].resets_received > 0, "it answers the question");
        }
    }
}

#[test]
fn a_restart_gives_one_run() {
    let spec = interrupted(Host::Server, ms(1234));
    assert_eq!(run(&spec).unwrap().digest, run(&spec).unwrap().digest);
}

#[test]
fn only_the_hosts_under_test_restart() {
    let spec = interrupted(Host::CompetingClient(1), ms(1));
    assert_eq!(run(&spec).unwrap_err(), SpecError::Restart(Host::CompetingClient(1)));
}
