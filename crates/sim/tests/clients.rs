//! Many clients, each with a server, paths and workloads of its own.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_net::{Change, LinkConfig};
use anabranch_paths::{
    Affected, Coalesce, Direction, End, Middlebox, MiddleboxSpec, Nat, SharedLink, TimedChange, Unmapped,
};
use anabranch_policy::registry::{SCHEDULERS, find};
use anabranch_sim::{Extent, Outcome, Spacing, Spec, SpecError, TimedRestart, TimedSwitch, Transfer, Workload, run};
use anabranch_units::{Bytes, Duration, Rate};
use common::*;
use std::sync::Arc;

fn with_clients(spec: &Spec, clients: usize) -> Outcome {
    run(&Spec { clients, ..spec.clone() }).unwrap()
}

/// The transfers of one client, with the connections numbered among its own.
fn transfers_of(outcome: &Outcome, client: usize) -> Vec<Transfer> {
    let numbers: Vec<usize> =
        (0..outcome.connections.len()).filter(|&n| outcome.connections[n].client == client).collect();
    let own = |transfer: &Transfer| {
        let connection = numbers.iter().position(|&number| number == transfer.connection)?;
        Some(Transfer { connection, ..transfer.clone() })
    };
    outcome.transfers.iter().filter_map(own).collect()
}

/// Returns the counters of links called `PREFIX…`.
fn links_of(outcome: &Outcome, prefix: &str) -> Vec<String> {
    let of =
        |link: &anabranch_paths::LinkOutcome| Some(format!("{} {:?}", link.name.strip_prefix(prefix)?, link.stats));
    outcome.links.iter().filter_map(of).collect()
}

/// Everything that a specification can hold, with chance in most of it.
fn everything() -> Spec {
    let mut a = lossy_path("a", 20, 10, 0.01);
    a.nic = Some(Rate::from_mbps(1000));
    a.middleboxes = vec![
        MiddleboxSpec::new(Middlebox::Nat(Nat { rebind: None, unmapped: Unmapped::Dropped })),
        MiddleboxSpec {
            kind: Middlebox::Coalesce(Coalesce { size: 2920, wait: ms(1), direction: None }),
            end: End::Server,
        },
    ];
    let mut b = lossy_path("b", 10, 30, 0.01);
    (a.via, b.via) = (Some("core".to_owned()), Some("core".to_owned()));
    let udp = Workload::Udp {
        path: "b".to_owned(),
        direction: Direction::Down,
        rate: Rate::from_mbps(2),
        packet: Bytes::new(1000),
        spacing: Spacing::Exponential,
        on: ms(200),
        off: ms(200),
        phases: Spacing::Exponential,
        start: ms(0),
        stop: ms(3000),
    };
    let competing = Workload::Tcp {
        path: "a".to_owned(),
        direction: Direction::Down,
        start: ms(100),
        extent: Extent::Repeat(Bytes::new(100_000)),
        congestion: Arc::new(|| {
            find(anabranch_policy::registry::CONGESTION, "congestion control", "reno").unwrap().build_default()
        }),
    };
    let mut spec = spec(vec![a, b], vec![udp, download(400_000), competing, files(Direction::Up, &[50_000; 3], true)]);
    let core = LinkConfig::new(Rate::from_mbps(25), ms(2));
    spec.network.shared = vec![SharedLink { name: "core".to_owned(), down: core.clone(), up: core }];
    let change =
        |at, change| TimedChange { at: ms(at), path: "b".to_owned(), affected: Affected::Both, change, notify: true };
    spec.network.changes = vec![change(150, Change::Down), change(300, Change::Up)];
    let scheduler = Arc::new(|| find(SCHEDULERS, "scheduler", "round-robin").unwrap().build_default());
    let switch = anabranch_engine::Switch::Scheduler(scheduler);
    spec.switches = vec![TimedSwitch { at: ms(100), host: None, switch }];
    spec.linger = None;
    spec.stop = Duration::from_secs(20);
    spec
}

#[test]
fn two_clients_on_own_paths_get_as_much_as_one_alone() {
    let spec = spec(vec![path("a", 20, 10), path("b", 10, 30)], vec![download(2_000_000)]);
    let (one, two) = (complete(&spec), complete(&Spec { clients: 2, ..spec.clone() }));
    let alone = transfers_of(&one, 0);
    assert_eq!(alone.len(), 1);
    assert_eq!(transfers_of(&two, 0), alone, "nothing of a client reaches another");
    // Keys and ports are drawn for each host, and nothing else here.
    let [first, second] = [0, 1].map(|client| transfers_of(&two, client)[0].duration().unwrap().as_secs_f64());
    assert!((first / second - 1.0).abs() < 0.01, "{first} s and {second} s");
}

#[test]
fn the_first_of_many_clients_runs_as_one_alone_does() {
    let mut spec = everything();
    for codec in [false, true] {
        spec.codec = codec;
        let (one, three) = (with_clients(&spec, 1), with_clients(&spec, 3));
        assert!(one.finished && three.finished);
        // Competing TCP goes on until all clients are through.
        let measured = |transfers: Vec<Transfer>| -> Vec<Transfer> {
            transfers.into_iter().filter(|transfer| transfer.workload != 2).collect()
        };
        assert_eq!(measured(transfers_of(&one, 0)), measured(transfers_of(&three, 0)));
        let durations: Vec<_> = (0..3).map(|client| measured(transfers_of(&three, client))[0].duration()).collect();
        assert!(
            durations[0] != durations[1] && durations[1] != durations[2],
            "each has luck of its own: {durations:?}"
        );
        assert_eq!((one.udp.len(), three.udp.len()), (1, 3));
        assert!(three.udp.iter().enumerate().all(|(client, udp)| (udp.client, udp.workload) == (client, 0)));
        assert_eq!(one.middleboxes.len(), three.middleboxes.len());
        assert!(three.middleboxes[0].altered > 2 * one.middleboxes[0].altered, "counts of copies add up");
    }
}

#[test]
fn the_run_of_many_clients_repeats() {
    let mut spec = everything();
    spec.restarts = vec![TimedRestart { at: ms(900), host: anabranch_sim::Host::Server }];
    spec.record_events = true;
    let (first, second) = (with_clients(&spec, 3), with_clients(&spec, 3));
    assert_eq!((first.digest, &first.events, &first.transfers), (second.digest, &second.events, &second.transfers));
    let hosts = |outcome: &Outcome| {
        let events = outcome.events.as_ref().unwrap();
        events.iter().map(|event| (event.client, event.host)).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(hosts(&first), 12, "two pairs for each client");
}

#[test]
fn links_draw_from_streams_named_after_client_and_path() {
    let spec = spec(vec![lossy_path("a", 20, 10, 0.02)], vec![download(1_000_000)]);
    let (one, two) = (complete(&spec), complete(&Spec { clients: 2, ..spec.clone() }));
    assert_eq!(links_of(&one, "a/"), links_of(&two, "a/"));
    assert_ne!(links_of(&two, "a/"), links_of(&two, "1/a/"));
    assert_eq!(links_of(&two, "1/a/").len(), 2);
}

#[test]
fn a_sample_adds_up_the_copies_of_a_path() {
    let mut spec = spec(vec![path("a", 20, 10), path("b", 10, 30)], vec![bulk(2)]);
    (spec.samples, spec.linger) = (vec![ms(1000)], None);
    let (one, two) = (with_clients(&spec, 1), with_clients(&spec, 2));
    let read = |outcome: &Outcome| outcome.samples[0].read as f64;
    assert!((read(&two) / read(&one) - 2.0).abs() < 0.05, "{} and {}", read(&one), read(&two));
    let received = |outcome: &Outcome, path: usize| outcome.samples[0].paths[path].received as f64;
    assert_eq!(two.samples[0].paths.len(), 2);
    assert!((0..2).all(|path| (received(&two, path) / received(&one, path) - 2.0).abs() < 0.1));
}

/// More hosts than one octet of an address tells apart.
#[test]
fn thousands_of_clients_have_addresses_of_their_own() {
    let mut spec = spec(vec![path("a", 100, 5)], vec![download(3000)]);
    (spec.linger, spec.audit) = (None, false);
    let outcome = with_clients(&spec, 2100);
    assert!(outcome.finished);
    let alone = transfers_of(&with_clients(&spec, 1), 0)[0].duration();
    assert_eq!(outcome.transfers.len(), 2100);
    assert!(outcome.transfers.iter().all(|transfer| transfer.duration() == alone));
}

#[test]
fn more_clients_than_addresses_are_refused() {
    let spec = everything();
    for (clients, text) in [
        (0, "there are 0 clients; accepted are 1 to 6336, with 4 hosts for each"),
        (6337, "there are 6337 clients; accepted are 1 to 6336, with 4 hosts for each"),
    ] {
        let error = run(&Spec { clients, ..spec.clone() }).unwrap_err();
        assert!(matches!(error, SpecError::Clients { hosts: 4, .. }));
        assert_eq!(error.to_string(), text);
    }
}
