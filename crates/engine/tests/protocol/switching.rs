//! Another policy for one connection, and for a whole endpoint.

use crate::common::{CLIENT, PATTERN, Pair, SERVER};
use anabranch_engine::{Factory, Switch};
use anabranch_policy::registry::SCHEDULERS;
use anabranch_policy::scheduler::Scheduler;
use anabranch_units::Duration;
use std::sync::Arc;

fn scheduler(name: &str) -> Switch {
    let entry = SCHEDULERS.iter().find(|entry| entry.name == name).unwrap();
    let factory: Factory<dyn Scheduler> = Arc::new(move || entry.build_default());
    Switch::Scheduler(factory)
}

/// A download on a connection of its own, with `act` in between its halves; what the second subflow carried of each.
fn download(pair: &mut Pair, act: impl Fn(&mut Pair)) -> [u64; 2] {
    pair.id = [None, None];
    pair.read[CLIENT].clear();
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(5));
    let second = |pair: &Pair| pair.hosts[SERVER].subflow_stats(pair.id[SERVER].unwrap())[1].bytes_first_sent;
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(20));
    let before = second(pair);
    act(pair);
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(20));
    assert!(pair.read[CLIENT] == [PATTERN, PATTERN].concat(), "every byte in its place");
    let after = second(pair) - before;
    pair.shutdown(SERVER);
    pair.shutdown(CLIENT);
    assert!(pair.run(Duration::from_secs(120)), "all timers end: {:?}", pair.events);
    [before, after]
}

#[test]
fn one_connection_goes_on_otherwise_and_the_next_as_before() {
    let mut pair = Pair::new(2);
    let [before, after] = download(&mut pair, |pair| {
        let id = pair.id[SERVER].unwrap();
        pair.hosts[SERVER].switch_connection(pair.now, id, &scheduler("single"));
    });
    assert!(before > 10_000 && after == 0, "{before} {after}");
    let [before, after] = download(&mut pair, |_| {});
    assert!(before > 10_000 && after > 10_000, "{before} {after}");
}

#[test]
fn an_endpoint_goes_on_otherwise_for_good() {
    let mut pair = Pair::new(2);
    let all = |pair: &mut Pair| pair.hosts[SERVER].switch(pair.now, &scheduler("single"));
    let [before, after] = download(&mut pair, all);
    assert!(before > 10_000 && after == 0, "{before} {after}");
    let [before, after] = download(&mut pair, |_| {});
    assert_eq!([before, after], [0, 0]);
}
