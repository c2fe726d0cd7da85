//! Requirements of a program that runs for months: ports in bounds, no more connections, no memory of old ones.

use crate::common::{CLIENT, PORT, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::Event;
use anabranch_units::Duration;
use std::collections::BTreeSet;
use std::net::SocketAddr;

const LONG: Duration = Duration::from_secs(120);

#[test]
fn ports_stay_in_their_range_and_are_used_in_turn() {
    let mut restricted = config([client_ip(0), client_ip(1)]);
    restricted.ports = Some(61_000..=61_003);
    let mut pair = Pair::with(restricted, config([server_ip(0)]));
    let mut seen = BTreeSet::new();
    for _ in 0..4 {
        let remote = SocketAddr::new(server_ip(0), PORT);
        let id = pair.hosts[CLIENT].open(pair.now, client_ip(0), remote).unwrap();
        pair.id[CLIENT] = Some(id);
        pair.write(CLIENT, b"confirms MPTCP, so that the second subflow may come");
        pair.run(Duration::from_secs(1));
        for subflow in pair.hosts[CLIENT].subflow_stats(id) {
            assert!((61_000..=61_003).contains(&subflow.local.port()), "{subflow:?}");
            assert!(seen.insert(subflow.local), "no flow is used twice: {subflow:?}");
        }
    }
    assert_eq!(seen.len(), 8, "two subflows each");
}

#[test]
fn after_it_stopped_listening_what_is_open_goes_on_and_nothing_is_accepted() {
    let mut pair = Pair::new(1);
    pair.open();
    pair.run(Duration::from_secs(1));
    pair.hosts[SERVER].stop_listening(PORT);
    let late = pair.hosts[CLIENT].open(pair.now, client_ip(0), SocketAddr::new(server_ip(0), PORT)).unwrap();
    pair.write(CLIENT, b"still here");
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.read[SERVER], b"still here");
    assert_eq!(
        pair.events[CLIENT].iter().filter(|event| **event == Event::Reset).count(),
        1,
        "the late one is refused"
    );
    assert_eq!(pair.hosts[CLIENT].subflow_stats(late).iter().filter(|subflow| subflow.established).count(), 0);
    assert_eq!(pair.hosts[SERVER].connection_count(), 1);
}

#[test]
fn a_connection_forgotten_at_its_end_leaves_nothing() {
    for hears_first in [true, false] {
        let mut pair = Pair::new(1);
        pair.open();
        pair.run(Duration::from_secs(1));
        let id = pair.id[CLIENT].unwrap();
        pair.hosts[CLIENT].forget(id);
        pair.hosts[CLIENT].abort(pair.now, id);
        if hears_first {
            // The application hears of the end before the endpoint has taken the connection down.
            assert!(std::iter::from_fn(|| pair.hosts[CLIENT].poll_event()).any(|(_, event)| event == Event::Reset));
            pair.hosts[CLIENT].forget(id);
        }
        pair.run(LONG);
        assert_eq!(pair.hosts[CLIENT].connection_count(), 0);
        assert_eq!(pair.hosts[CLIENT].connection_stats(id).is_none(), hears_first, "a living one is not forgotten");
    }
}
