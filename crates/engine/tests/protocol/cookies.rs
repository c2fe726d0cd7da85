//! Handshakes of which nothing is kept, where a script cannot go: two engines, chance and secrets, tokens that are
//! taken.

use crate::common::puppet::{Puppet, handshake};
use crate::common::{CLIENT, PATTERN, PORT, Pair, SERVER, buffer, client_ip, config, server_ip};
use anabranch_engine::{Config, Endpoint, Event};
use anabranch_units::{Duration, Entropy, Instant, Seed, SubflowSeq};
use anabranch_wire::{Flags, FlowKey, MpCapable, MpOption, Segment, Timestamps};
use std::net::SocketAddr;

/// A server that keeps no handshake.
fn server() -> Config {
    Config { max_half_open: 0, receive_buffer: buffer(1 << 20), ..config([server_ip(0)]) }
}

fn syn(port: u16, timestamps: bool) -> Segment {
    let flow = FlowKey::new(SocketAddr::new(client_ip(9), port), SocketAddr::new(server_ip(0), PORT));
    let mut syn = Segment::new(flow, Flags::SYN, SubflowSeq::new(1), SubflowSeq::new(0));
    *syn.options.handshake_mut() = handshake();
    syn.options.set_timestamps(timestamps.then_some(Timestamps { value: 5, echo: 0 }));
    syn.options.push_mptcp(MpOption::Capable(MpCapable::OFFER));
    syn
}

/// Immediate answers of the endpoint.
fn answer(host: &mut Endpoint, mut segment: Segment) -> Option<Segment> {
    host.handle_segment(Instant::ZERO, &mut segment);
    host.poll_transmit(Instant::ZERO).map(|transmit| *transmit.segment)
}

#[test]
fn whole_transfers_go_on_as_without_cookies() {
    for timestamps in [false, true] {
        for checksum in [false, true] {
            for multipath in [false, true] {
                let mut client = config([client_ip(0), client_ip(1)]);
                let mut host = server();
                (client.profile.timestamps, host.profile.timestamps) = (timestamps, timestamps);
                (client.multipath, client.checksum) = (multipath, checksum);
                let mut pair = Pair::with(client, host);
                pair.open();
                pair.write(CLIENT, b"GET");
                pair.run(Duration::from_secs(1));
                pair.write(SERVER, PATTERN);
                pair.run(Duration::from_secs(10));
                pair.shutdown(SERVER);
                pair.shutdown(CLIENT);
                pair.run(Duration::from_secs(60));
                assert!(pair.read[SERVER] == b"GET" && pair.read[CLIENT] == PATTERN);
                assert!(pair.has(SERVER, |event| *event == Event::Accepted { multipath }));
                assert!(pair.has(SERVER, |event| *event == Event::Closed));
                let counters = pair.hosts[SERVER].counters();
                assert_eq!((counters.cookies_sent, counters.cookies_received, counters.cookies_invalid), (1, 1, 0));
                let id = pair.id[CLIENT].unwrap();
                assert_eq!(pair.hosts[CLIENT].subflow_stats(id).len(), if multipath { 2 } else { 1 });
            }
        }
    }
}

/// The third ACK is lost: the client's first data answers the cookie (RFC 8684 §3.1), the rest of its flight that came
/// with it is not reset, although the server knows nothing of it.
#[test]
fn the_third_ack_may_be_lost_and_the_first_data_as_well() {
    for lost in 1..4 {
        let mut pair = Pair::with(config([client_ip(0)]), server());
        let mut left = lost;
        pair.rule = Box::new(move |from, segment| {
            let strikes = from == CLIENT && !segment.flags.has(Flags::SYN) && left > 0;
            left -= u32::from(strikes);
            !strikes
        });
        pair.open();
        pair.write(CLIENT, &PATTERN[..10_000]);
        pair.run(Duration::from_secs(20));
        assert!(pair.read[SERVER] == PATTERN[..10_000], "{lost} lost: {:?}", pair.events);
        assert!(pair.has(SERVER, |event| *event == Event::Accepted { multipath: true }), "{lost} lost");
    }
}

/// A flood of SYNs leaves no state: as many connections as before, no timer, and no event for the application.
#[test]
fn a_flood_of_syns_leaves_nothing_behind() {
    let mut puppet = Puppet::new(server());
    for port in 1024..31_024 {
        puppet.host.handle_segment(Instant::ZERO, &mut syn(port, port.is_multiple_of(2)));
        assert!(puppet.host.poll_transmit(Instant::ZERO).is_some_and(|answer| answer.segment.flags.has(Flags::SYN)));
    }
    assert_eq!((puppet.host.connection_count(), puppet.host.poll_timeout()), (0, None));
    assert_eq!(puppet.host.counters().cookies_sent, 30_000);
    assert!(puppet.events.is_empty());
    // A full handshake beside it works at once.
    let line = puppet.open();
    let map = puppet.map(1, 0, 10);
    puppet.data(line, 1, &PATTERN[..10], Some(map));
    assert!(puppet.read == PATTERN[..10]);
}

/// RFC 8684 §3.1: no two connections of a host have one token. A key of a cookie whose token is taken is passed over,
/// and where it is taken between SYN/ACK and third ACK the connection is plain TCP.
#[test]
fn a_token_is_never_used_twice() {
    let key = |segment: &Segment| match segment.options.mptcp() {
        [MpOption::Capable(capable)] => capable.sender_key,
        _ => None,
    };
    // Which keys the cookie for this SYN has is found by taking one after the other.
    let mut taken = Vec::new();
    loop {
        let mut host = Endpoint::new(Config { max_half_open: taken.len(), ..server() }, Seed(7)).unwrap();
        host.listen(PORT);
        for (nth, other) in taken.iter().enumerate() {
            host.set_next_key(*other);
            let answer = answer(&mut host, syn(2000 + nth as u16, false)).unwrap();
            assert_eq!(key(&answer), Some(*other));
        }
        let answer = answer(&mut host, syn(1024, false)).expect("an answer in any case");
        match key(&answer) {
            Some(next) if taken.len() < 3 => {
                assert!(!taken.contains(&next));
                taken.push(next);
            }
            offered => {
                assert_eq!((offered, taken.len()), (None, 3), "with all taken it is plain TCP");
                break;
            }
        }
    }

    let mut puppet = Puppet::new(Config { max_half_open: 0, ..server() });
    let line = puppet.syn(MpOption::Capable(MpCapable::OFFER), 0);
    let line = puppet.answered(line);
    puppet.host.set_next_key(puppet.theirs.unwrap());
    let _ = puppet.host.open(puppet.now, server_ip(0), SocketAddr::new(client_ip(5), 99)).unwrap();
    puppet.pump();
    let keys = puppet.keys(None);
    puppet.send(line.ack(1), |segment| segment.options.push_mptcp(MpOption::Capable(keys)));
    assert!(puppet.has(|event| *event == Event::Accepted { multipath: false }), "{:?}", puppet.events);
}

/// On a real network another run of the host has another secret; in a simulation the seed says all.
#[test]
fn the_secret_follows_the_seed_or_the_entropy() {
    let number = |mut host: Endpoint| {
        host.listen(PORT);
        answer(&mut host, syn(1024, false)).unwrap().seq
    };
    let seeded = |seed| number(Endpoint::new(server(), Seed(seed)).unwrap());
    let secret = |byte| number(Endpoint::with_entropy(server(), &Entropy::new([byte; 32])).unwrap());
    assert_eq!(seeded(1), seeded(1));
    assert_ne!(seeded(1), seeded(2));
    assert_ne!(secret(1), secret(2));
    assert_ne!(secret(1), seeded(1));
}

/// A driver may drop unread what the endpoint would neither use nor answer, and nothing else.
#[test]
fn what_is_ignored_changes_nothing() {
    let strange = FlowKey::new(SocketAddr::new(client_ip(8), 9), SocketAddr::new(server_ip(0), PORT));
    let mut puppet = Puppet::new(Config { resets_per_second: Some(2), max_half_open: 1, ..server() });
    let line = puppet.open();
    let now = puppet.now;
    let ignores = |host: &mut Endpoint, flow: &FlowKey, flags| host.ignores(now, flow, flags);
    for flags in [Flags::ACK, Flags::SYN, Flags::RST, Flags::FIN] {
        assert!(!ignores(&mut puppet.host, &line.flow, flags), "a connection's own");
    }
    assert!(ignores(&mut puppet.host, &strange, Flags::RST), "no RST is answered");
    assert!(!ignores(&mut puppet.host, &strange, Flags::SYN), "it may open or join");
    for _ in 0..2 {
        assert!(!ignores(&mut puppet.host, &strange, Flags::ACK), "it is reset");
        puppet.deliver(Segment::new(strange, Flags::ACK, SubflowSeq::new(5), SubflowSeq::new(6)));
        assert!(puppet.take().iter().any(|segment| segment.flags.has(Flags::RST)));
    }
    assert!(ignores(&mut puppet.host, &strange, Flags::ACK), "enough were");
    puppet.deliver(syn(4000, false));
    puppet.deliver(syn(4001, false));
    assert!(puppet.host.counters().cookies_sent > 0);
    assert!(!ignores(&mut puppet.host, &strange, Flags::ACK), "it may answer a cookie");
    assert!(ignores(&mut puppet.host, &strange, Flags::RST));
}
