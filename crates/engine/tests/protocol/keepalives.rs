//! Peers that vanish: keepalives, user timeouts, and why a connection is over.

use crate::common::puppet::Puppet;
use crate::common::{CLIENT, PATTERN, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Config, Ended, Event, Keepalive};
use anabranch_units::Duration;
use anabranch_wire::Segment;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const KEEPALIVE: Keepalive =
    Keepalive { idle: Some(Duration::from_secs(60)), interval: Duration::from_secs(10), probes: 3 };

fn pair(paths: u8, set: impl Fn(Config) -> Config) -> Pair {
    let mut pair = Pair::with(set(config((0..paths).map(client_ip))), set(config([server_ip(0)])));
    pair.open();
    pair.write(CLIENT, b"hello");
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.read[SERVER], b"hello");
    pair
}

fn ended(pair: &Pair, host: usize) -> Option<Ended> {
    pair.hosts[host].connection_stats(pair.id[host].unwrap()).unwrap().ended
}

/// With keepalives an idle connection costs a probe a minute and lives; without, nothing at all.
#[test]
fn an_idle_peer_that_answers_is_kept() {
    for keepalive in [Keepalive::default(), KEEPALIVE] {
        let mut pair = pair(2, |config| Config { keepalive, ..config });
        let count = Rc::new(RefCell::new(0));
        let seen = Rc::clone(&count);
        pair.rule = Box::new(move |host, _| {
            *seen.borrow_mut() += u32::from(host == SERVER);
            true
        });
        pair.run(Duration::from_secs(3600));
        let sent = *count.borrow();
        // About sixty on each of two subflows, questions and answers.
        assert!(if keepalive.idle.is_none() { sent == 0 } else { (100..300).contains(&sent) }, "{sent}");
        pair.write(SERVER, b"still here");
        pair.run(Duration::from_secs(1));
        assert_eq!(pair.read[CLIENT], b"still here");
    }
}

/// RFC 9293 §3.8.4: after the last probe, and what a connection without subflows is left, it is over, for that reason.
#[test]
fn an_idle_peer_that_vanished_is_found_out() {
    for paths in [1, 2] {
        let mut pair = pair(paths, |config| Config { keepalive: KEEPALIVE, ..config });
        pair.rule = Box::new(|_, _| false);
        // 60 s, and three times 10 s until the third has gone unanswered.
        pair.run(Duration::from_secs(88));
        assert_eq!(pair.hosts[SERVER].connection_count(), 1);
        pair.run(Duration::from_secs(70));
        assert_eq!(pair.hosts[SERVER].connection_count(), 0, "{:?}", pair.events[SERVER]);
        assert!(pair.has(SERVER, |event| *event == Event::Reset));
        assert_eq!(ended(&pair, SERVER), Some(Ended::Vanished));
    }
}

/// A host that has said all it has to say, and waits for the rest of the other's, is no less interested.
#[test]
fn a_peer_that_vanishes_from_a_half_closed_connection_is_found_out() {
    for multipath in [false, true] {
        let mut pair = pair(1, |config| Config { keepalive: KEEPALIVE, multipath, ..config });
        pair.shutdown(CLIENT);
        pair.run(Duration::from_secs(1));
        assert!(pair.has(SERVER, |event| *event == Event::PeerFinished));
        pair.rule = Box::new(|_, _| false);
        pair.run(Duration::from_secs(300));
        for host in [CLIENT, SERVER] {
            assert_eq!(pair.hosts[host].connection_count(), 0, "{host}, multipath {multipath}");
            assert_eq!(ended(&pair, host), Some(Ended::Vanished));
        }
    }
}

/// Data is an answer: the next probe is due when the peer has been silent for the idle time again, and not when the
/// second probe would have been.
#[test]
fn data_that_comes_after_a_probe_begins_the_wait_anew() {
    let keepalive = Keepalive { interval: Duration::from_secs(1000), ..KEEPALIVE };
    let (mut puppet, line) = Puppet::confirmed(Config { keepalive, ..config([server_ip(0)]) });
    puppet.wait(Duration::from_secs(61));
    assert_eq!(puppet.take().len(), 1, "a probe");
    let map = puppet.map(11, 10, 10);
    puppet.data(line, 11, &PATTERN[10..20], Some(map));
    assert_eq!(puppet.read, &PATTERN[..20]);
    puppet.take();
    puppet.wait(Duration::from_secs(61));
    assert_eq!(puppet.take().len(), 1, "the next probe");
}

/// One path of two dies in silence: its subflow goes, the connection stays.
#[test]
fn a_silent_path_is_given_up_alone() {
    let mut pair = pair(2, |config| Config { keepalive: KEEPALIVE, rejoin: None, ..config });
    pair.rule = Box::new(|_, segment| segment.flow.src != client_ip(1) && segment.flow.dst != client_ip(1));
    pair.run(Duration::from_secs(600));
    let alive = pair.hosts[SERVER].subflow_stats(pair.id[SERVER].unwrap());
    assert_eq!(alive.iter().filter(|subflow| subflow.established).count(), 1);
    assert_eq!(ended(&pair, SERVER), None);
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(20));
    assert!(pair.read[CLIENT] == PATTERN);
}

/// RFC 5482: data that is not acknowledged for so long ends the connection; one that moves, however slowly, goes on,
/// and one that has nothing to send is not affected.
#[test]
fn a_user_timeout_bounds_how_long_data_waits() {
    let timeout = Some(Duration::from_secs(30));
    let mut idle = pair(2, |config| Config { user_timeout: timeout, ..config });
    idle.run(Duration::from_secs(1000));
    assert_eq!(idle.hosts[SERVER].connection_count(), 1);
    let mut slow = pair(2, |config| Config { user_timeout: timeout, ..config });
    let mut count = 0;
    slow.rule = Box::new(move |host, segment| {
        count += u32::from(host == SERVER && !segment.payload.is_empty());
        host == CLIENT || segment.payload.is_empty() || count % 5 == 0
    });
    slow.write(SERVER, &PATTERN[..60_000]);
    slow.run(Duration::from_secs(2000));
    assert!(slow.read[CLIENT] == PATTERN[..60_000], "{}", slow.read[CLIENT].len());
    let mut dead = pair(2, |config| Config { user_timeout: timeout, ..config });
    dead.rule = Box::new(|_, _| false);
    dead.write(SERVER, PATTERN);
    dead.run(Duration::from_secs(29));
    assert_eq!(dead.hosts[SERVER].connection_count(), 1);
    dead.run(Duration::from_secs(2));
    assert_eq!(dead.hosts[SERVER].connection_count(), 0);
    assert!(dead.has(SERVER, |event| *event == Event::Reset));
    assert_eq!(ended(&dead, SERVER), Some(Ended::TimedOut));
}

/// Without any of these settings a peer that vanishes in the middle of data is given up in finite time as well.
#[test]
fn a_peer_that_vanishes_in_the_middle_is_given_up_in_the_end() {
    for paths in [1, 2] {
        let mut pair = pair(paths, |config| config);
        pair.rule = Box::new(|_, _| false);
        pair.write(SERVER, PATTERN);
        pair.run(Duration::from_secs(3600));
        assert_eq!(pair.hosts[SERVER].connection_count(), 0);
        assert_eq!(ended(&pair, SERVER), Some(Ended::TimedOut));
    }
}

#[test]
fn every_end_has_its_reason() {
    let mut orderly = pair(1, |config| config);
    orderly.shutdown(CLIENT);
    orderly.shutdown(SERVER);
    orderly.run(Duration::from_secs(10));
    assert_eq!((ended(&orderly, CLIENT), ended(&orderly, SERVER)), (Some(Ended::InOrder), Some(Ended::InOrder)));
    let mut aborted = pair(2, |config| config);
    let (now, id) = (aborted.now, aborted.id[CLIENT].unwrap());
    aborted.hosts[CLIENT].abort(now, id);
    aborted.run(Duration::from_secs(10));
    assert_eq!((ended(&aborted, CLIENT), ended(&aborted, SERVER)), (Some(Ended::Aborted), Some(Ended::Reset)));
    let mut alone = Pair::with(config([client_ip(0)]), config([server_ip(0)]));
    alone.rule = Box::new(|_, _| false);
    alone.open();
    alone.run(Duration::from_secs(600));
    assert_eq!(ended(&alone, CLIENT), Some(Ended::Unanswered));
}

/// A path that lets handshakes through and swallows every packet with data: its subflows die of timeouts, the client
/// joins again, and so on, to one address of the server or to two in turn. The connection ends all the same, at both
/// ends, and says why.
#[test]
fn a_path_that_lets_joins_through_and_no_data_is_given_up() {
    for addresses in [1, 2] {
        let mut pair = Pair::with(config([client_ip(0)]), config((0..addresses).map(server_ip)));
        let second_works = Rc::new(Cell::new(false));
        let works = Rc::clone(&second_works);
        let hole = move |_: usize, segment: &mut Segment| {
            let second = [segment.flow.src, segment.flow.dst].contains(&server_ip(1));
            segment.payload.len() < 100 && (!second || works.get())
        };
        pair.rule = Box::new(hole);
        pair.open();
        pair.write(CLIENT, b"hello");
        pair.run(Duration::from_secs(1));
        pair.write(SERVER, PATTERN);
        // Subflows to the one and to the other address do not die at the same time.
        pair.run(Duration::from_secs(400));
        second_works.set(true);
        pair.run(Duration::from_secs(4 * 3600));
        for host in [CLIENT, SERVER] {
            assert_eq!(pair.hosts[host].connection_count(), 0, "{host}, {addresses} addresses");
            assert!(pair.has(host, |event| *event == Event::Reset));
        }
        assert_eq!(ended(&pair, SERVER), Some(Ended::TimedOut));
    }
}
