//! The same run twice is the same run.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_sim::{EventKind, Host, run};
use anabranch_units::Seed;
use common::*;

#[test]
fn the_seed_and_the_specification_are_the_whole_run() {
    let paths = || vec![lossy_path("a", 20, 10, 0.01), lossy_path("b", 10, 30, 0.01)];
    let mut spec = spec(paths(), vec![download(1_000_000)]);
    spec.record_events = true;
    let (first, second) = (run(&spec).unwrap(), run(&spec).unwrap());
    assert_eq!(first.digest, second.digest);
    assert_eq!(first.events, second.events);
    assert_eq!(first.transfers, second.transfers);

    let elsewhere = std::thread::spawn({
        let spec = spec.clone();
        move || run(&spec).unwrap().digest
    });
    assert_eq!(elsewhere.join().unwrap(), first.digest);

    spec.seed = Seed(2);
    assert_ne!(run(&spec).unwrap().digest, first.digest);
}

#[test]
fn the_record_agrees_with_the_counts() {
    let mut spec = spec(vec![lossy_path("a", 20, 10, 0.01), path("b", 10, 30)], vec![download(300_000)]);
    spec.record_events = true;
    spec.linger = None;
    let outcome = run(&spec).unwrap();
    let events = outcome.events.as_ref().unwrap();
    let received = events.iter().filter(|event| event.kind == EventKind::Received && event.length > 0);
    assert_eq!(received.count() as u64, outcome.packets);
    let sent = |path: usize| {
        let is_it = |host, kind, on| host == Host::Server && kind == EventKind::Sent && on == path;
        events.iter().filter(|event| is_it(event.host, event.kind, event.path)).count() as u64
    };
    for (path, name) in ["a/down", "b/down"].into_iter().enumerate() {
        let link = outcome.links.iter().find(|link| link.name == name).unwrap();
        assert_eq!(link.stats.offered, sent(path));
    }
    assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at));
}

#[test]
fn a_record_does_not_change_the_run() {
    let mut spec = spec(vec![lossy_path("a", 20, 10, 0.01)], vec![download(300_000)]);
    let plain = run(&spec).unwrap();
    spec.record_events = true;
    assert_eq!(run(&spec).unwrap().digest, plain.digest);
}
