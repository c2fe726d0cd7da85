//! How long an endpoint waits for a peer that says nothing, or nothing of use.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_engine::Event;
use anabranch_units::Duration;
use common::{CLIENT, PATTERN, Pair, SERVER, buffer, client_ip, config, server_ip};

const HOUR: Duration = Duration::from_secs(3600);

/// A client that has stopped reading, with a window that is full.
fn with_a_closed_window() -> Pair {
    let mut client = config([client_ip(0)]);
    client.receive_buffer = buffer(20_000);
    let mut pair = Pair::with(client, config([server_ip(0)]));
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(1));
    pair.deaf[CLIENT] = true;
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(5));
    pair
}

/// RFC 9293 §3.8.6.1: the connection stays open as long as the receiver answers the probes.
#[test]
fn a_peer_may_keep_its_window_closed_as_long_as_it_answers() {
    let mut pair = with_a_closed_window();
    pair.run(HOUR * 4);
    let blocked = pair.hosts[SERVER].connection(pair.id[SERVER].unwrap()).unwrap().blocked;
    assert!(blocked.receive_window > HOUR * 3 && blocked.cwnd < Duration::from_secs(60), "{blocked:?}");
    assert!(!pair.has(SERVER, |event| matches!(event, Event::Reset | Event::SubflowClosed(_))), "{:?}", pair.events);
    pair.deaf[CLIENT] = false;
    pair.run(HOUR);
    assert_eq!(pair.read[CLIENT].len(), PATTERN.len());
}

#[test]
fn a_dead_peer_with_a_closed_window_is_given_up() {
    let mut pair = with_a_closed_window();
    pair.rule = Box::new(|_, _| false);
    pair.run(HOUR);
    assert!(pair.has(SERVER, |event| *event == Event::Reset), "{:?}", pair.events[SERVER]);
    assert_eq!(pair.hosts[SERVER].connections(), 0);
}

/// RFC 7323 §5.5: a timestamp clock may have come round during so long a silence.
#[test]
fn data_flows_after_more_than_24_days_of_silence() {
    let mut pair = Pair::new(1);
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(1));
    pair.now += HOUR * 24 * 25;
    pair.write(CLIENT, b" again");
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.read[SERVER], b"GET again");
}
