//! `Endpoint::next_timeout`: as exact as a driver wants it to whom a call for nothing costs something.

use anabranch_engine::{Config, ConnectionId, Endpoint, Event, LocalAddress, Profile};
use anabranch_units::{Duration, Instant, Seed};
use bytes::Bytes;
use std::net::{IpAddr, SocketAddr};

const HOSTS: [IpAddr; 2] =
    [IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2))];
const PORT: u16 = 80;

/// A client and a server without anything between them.
fn hosts(change: impl Fn(&mut Config)) -> [Endpoint; 2] {
    let host = |number: usize| {
        let mut config = Config::new(Profile::tcp(), vec![LocalAddress { ip: HOSTS[number], backup: false }]);
        config.reports_departures = true;
        change(&mut config);
        Endpoint::new(config, Seed(number as u64)).unwrap()
    };
    let mut hosts = [host(0), host(1)];
    hosts[1].listen(PORT);
    hosts
}

/// Carries segments to and fro until there are none; the connections that were accepted.
fn settle(hosts: &mut [Endpoint; 2], now: Instant) -> Vec<ConnectionId> {
    let mut accepted = Vec::new();
    loop {
        let mut quiet = true;
        for from in 0..2 {
            while let Some(mut transmit) = hosts[from].poll_transmit(now) {
                hosts[from].handle_departure(transmit.tag, transmit.segment.wire_length());
                hosts[1 - from].handle_segment(now, &mut transmit.segment);
                quiet = false;
            }
            while let Some((id, event)) = hosts[from].poll_event() {
                accepted.extend(matches!(event, Event::Accepted { .. }).then_some(id));
            }
        }
        if quiet {
            return accepted;
        }
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

#[test]
fn deadlines_that_have_moved_or_gone_wake_nobody() {
    let mut hosts = hosts(|_| {});
    let id = hosts[0].open(at(0), HOSTS[0], SocketAddr::new(HOSTS[1], PORT)).unwrap();
    settle(&mut hosts, at(0));
    hosts[0].write(id, &Bytes::from_static(b"question")).unwrap();
    settle(&mut hosts, at(5));
    let [client, _] = &mut hosts;
    let (early, exact) = (client.poll_timeout(), client.next_timeout());
    assert!(early.is_some_and(|early| exact.is_none_or(|exact| exact > early)), "{early:?}, then {exact:?}");
    client.check(at(5)).unwrap();
    let until = exact.unwrap_or(at(100_000));
    client.handle_timeout(until - Duration::from_nanos(1));
    assert!(client.poll_transmit(until - Duration::from_nanos(1)).is_none(), "nothing was due before");
}

/// TIME-WAIT ends at a moment that connections share: no invariant is broken until then.
#[test]
fn the_end_of_time_wait_may_be_late() {
    let mut hosts = hosts(|config| config.multipath = false);
    let id = hosts[0].open(at(0), HOSTS[0], SocketAddr::new(HOSTS[1], PORT)).unwrap();
    let accepted = settle(&mut hosts, at(0));
    hosts[0].shutdown(id);
    settle(&mut hosts, at(3));
    hosts[1].shutdown(accepted[0]);
    settle(&mut hosts, at(3));
    let [client, _] = &mut hosts;
    let end = client.next_timeout().unwrap();
    assert_eq!(end, at(1010), "a second after 3 ms, and then some");
    client.check(end - Duration::from_nanos(1)).unwrap();
    client.handle_timeout(end);
    client.poll_transmit(end);
    assert_eq!(client.connection_count(), 0);
}
