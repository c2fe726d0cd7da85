//! Keys that never arrive, and options that are lost in one direction: every wait for them ends (RFC 8684 §3.1, §3.7).

use crate::common::puppet::{Line, Puppet};
use crate::common::{CLIENT, PATTERN, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Event, FallbackReason};
use anabranch_units::Duration;
use anabranch_wire::{Dss, Flags, MpCapable, MpOption, Segment};
use bytes::Bytes as Payload;

/// A server that has answered a SYN, and the client's side of it: the third ACK is lost.
fn without_third_ack() -> (Puppet, Line) {
    let mut puppet = Puppet::new(config([server_ip(0)]));
    let line = puppet.syn(MpOption::Capable(MpCapable::OFFER), 0);
    let line = puppet.answered(line);
    puppet.take();
    (puppet, line)
}

fn accepted(puppet: &Puppet, multipath: bool) -> bool {
    puppet.has(|event| *event == Event::Accepted { multipath })
}

/// A Linux client leaves the keys out of its first data once it knows of its DATA_FIN; it never sends them again.
#[test]
fn the_beginning_without_keys_means_plain_tcp_at_once() {
    for (length, data_fin) in [(100, false), (100, true), (0, true)] {
        let (mut puppet, line) = without_third_ack();
        let mut dss = if length == 0 { puppet.data_fin(0) } else { puppet.map(1, 0, length) };
        if data_fin && length > 0 {
            dss.data_fin = true;
            dss.map = dss.map.map(|map| anabranch_wire::Map { length: length + 1, ..map });
        }
        puppet.send(line.ack(1), |s| {
            s.options.set_dss(Some(dss));
            s.payload = Payload::from_static(&PATTERN[..usize::from(length)]).into();
        });
        assert!(accepted(&puppet, false), "{length} bytes, DATA_FIN {data_fin}: {:?}", puppet.events);
        assert!(puppet.has(|event| *event == Event::Fallback(FallbackReason::ThirdAck)) || !puppet.events.is_empty());
        assert!(puppet.read == PATTERN[..usize::from(length)]);
        let out = puppet.take();
        assert!(out.iter().all(|s| !s.options.has_mptcp()), "the client has to hear of it: {out:#?}");
    }
}

/// Data from behind the beginning, as after a loss of its first segment.
fn behind(puppet: &mut Puppet, line: Line) {
    let map = puppet.map(101, 100, 100);
    puppet.data(line, 101, &PATTERN[100..200], Some(map));
}

/// The beginning comes with the keys within the client's timeout: the connection is MPTCP.
#[test]
fn data_from_behind_the_beginning_waits_for_the_keys() {
    let (mut puppet, line) = without_third_ack();
    behind(&mut puppet, line);
    puppet.wait(Duration::from_millis(250));
    behind(&mut puppet, line);
    assert!(puppet.events.is_empty(), "{:?}", puppet.events);
    let keys = puppet.keys(Some((100, None)));
    puppet.send(line.ack(1), |s| {
        s.options.push_mptcp(MpOption::Capable(keys));
        s.payload = Payload::from_static(&PATTERN[..100]).into();
    });
    assert!(accepted(&puppet, true), "{:?}", puppet.events);
}

/// A box drops every segment with the keys. The SYN/ACK is repeated after a timeout, so that the client has to say
/// something, and after three timeouts what it says without keys means plain TCP.
#[test]
fn the_wait_for_the_keys_ends_after_three_timeouts() {
    let (mut puppet, line) = without_third_ack();
    let start = puppet.now;
    behind(&mut puppet, line);
    let mut asked = 0;
    while !accepted(&puppet, false) && puppet.now.since(start) < Duration::from_secs(10) {
        puppet.wait(Duration::from_millis(10));
        for _ in puppet.take().iter().filter(|s| s.flags.has(Flags::SYN)) {
            asked += 1;
            let ack = puppet.data_ack(0);
            puppet.send(line.ack(201), |s| s.options.set_dss(Some(ack)));
        }
    }
    // The round trip of the handshake is below a millisecond here, so a timeout is about 200 ms.
    assert!(accepted(&puppet, false) && asked >= 2, "asked {asked} times: {:?}", puppet.events);
    assert!(puppet.now.since(start) < Duration::from_millis(1500), "after {}", puppet.now.since(start));
    // A client repeats the keys with its first data, which the box drops, until it sees an ACK without a DSS.
    let bare = |s: &Segment| !s.flags.has(Flags::SYN) && !s.options.has_mptcp();
    assert!(puppet.take().iter().any(bare), "it is told at once");
}

/// The other end of that box: the peer has a connection half open, and answers a question, but neither the third ACK
/// nor the first data, nor its repetition. After three timeouts the data goes without the keys.
#[test]
fn keys_that_do_not_get_through_are_left_out_after_three_timeouts() {
    for paths in [1, 2] {
        let (mut puppet, line) = Puppet::connected(config((0..paths).map(client_ip)), MpCapable::OFFER);
        puppet.host.set_replayable(puppet.id.unwrap());
        puppet.write(&PATTERN[..100]);
        let start = puppet.now;
        let mut answered = false;
        while puppet.now.since(start) < Duration::from_millis(650) {
            puppet.wait(Duration::from_millis(10));
            for segment in puppet.take() {
                assert!(!segment.flags.has(Flags::RST), "the path has answered: {segment:#?}");
                if segment.flags == Flags::SYN {
                    // A peer without the keys refuses joins.
                    let mut refusal = Segment::new(segment.flow.reversed(), Flags::RST, segment.ack, segment.seq + 1);
                    refusal.flags = refusal.flags.with(Flags::ACK);
                    puppet.deliver(refusal);
                }
                // Linux answers once in half a second.
                if segment.payload.is_empty() && segment.seq == line.irs && !answered {
                    answered = true;
                    puppet.send(line.ack(1), |_| {});
                }
                if !segment.payload.is_empty() && !has_keys(&segment) {
                    assert!(segment.options.has_dss() && puppet.now.since(start) >= Duration::from_millis(590));
                    puppet.now = start + Duration::from_secs(1);
                    break;
                }
            }
        }
        assert!(puppet.now.since(start) >= Duration::from_secs(1), "the keys are still there");
    }
}

fn has_keys(segment: &Segment) -> bool {
    !segment.flags.has(Flags::SYN) && segment.options.mptcp().iter().any(|o| matches!(o, MpOption::Capable(_)))
}

/// Two engines behind such a box: with data of the client or none, a pause before it, and with its end or without.
#[test]
fn a_box_that_drops_all_keys_makes_both_ends_fall_back() {
    for (request, closes, pause) in [
        (100, true, 0),
        (100, false, 0),
        (20_000, true, 0),
        (20_000, false, 0),
        (0, true, 0),
        (100, false, 3000),
        (0, false, 0),
    ] {
        let mut pair = Pair::new(2);
        pair.rule = Box::new(|_, segment| !has_keys(segment));
        pair.open();
        pair.run(Duration::from_millis(pause));
        pair.write(CLIENT, &PATTERN[..request]);
        pair.run(Duration::from_millis(1));
        if closes {
            pair.shutdown(CLIENT);
        }
        let quiet = request == 0 && !closes;
        pair.run(Duration::from_secs(if quiet { 12 } else { 4 }));
        let case = format!("{request} bytes, closed {closes}, after {pause} ms: {:?}", pair.events);
        assert_eq!(pair.read[SERVER].len(), request, "{case}");
        assert!(pair.has(SERVER, |event| *event == Event::Accepted { multipath: false }), "{case}");
        assert!(!closes || pair.has(SERVER, |event| *event == Event::PeerFinished), "{case}");
        pair.write(SERVER, &PATTERN[..50_000]);
        pair.run(Duration::from_secs(2));
        assert_eq!(pair.read[CLIENT].len(), 50_000, "{case}");
    }
}

/// A client whose request was acknowledged without a DSS has become plain TCP; its peer has the keys and does not know.
fn half_fallen_back() -> (Puppet, Line) {
    let (mut puppet, line) = Puppet::connected(config([client_ip(0)]), MpCapable::OFFER);
    puppet.write(&PATTERN[..100]);
    puppet.take();
    puppet.send(line.acking(101).ack(1), |_| {});
    assert!(puppet.has(|event| *event == Event::Fallback(FallbackReason::FirstData)));
    (puppet, line.acking(101))
}

fn data_acks(segments: &[Segment]) -> Vec<Option<i64>> {
    segments.iter().map(Puppet::acked).collect()
}

/// DATA_ACKs go on with the ACKs of the peer's data, which would wait for them; its bytes are taken in the order of
/// TCP.
#[test]
fn a_peer_whose_options_are_lost_gets_data_acks() {
    let (mut puppet, line) = half_fallen_back();
    puppet.take();
    for at in (0..20_000).step_by(2000) {
        puppet.data(line, 1 + at, &PATTERN[..1000], None);
        puppet.data(line, 1001 + at, &PATTERN[..1000], None);
        let acks = data_acks(&puppet.take());
        assert!(!acks.is_empty() && acks.iter().all(Option::is_some), "{acks:?} at {at}");
        assert_eq!(acks.last().copied().flatten(), Some(at as i64 + 2000));
    }
    assert_eq!(puppet.read.len(), 20_000);
}

/// The infinite mapping tells the peer, which is plain TCP once it has acknowledged it.
#[test]
fn the_peer_has_heard_once_it_acknowledges_the_infinite_mapping() {
    let (mut puppet, line) = half_fallen_back();
    puppet.write(&PATTERN[100..200]);
    let infinite = |s: &&Segment| s.options.dss().and_then(|dss: Dss| dss.map).is_some_and(|map| map.length == 0);
    assert_eq!(puppet.take().iter().filter(infinite).count(), 1);
    puppet.data(line.acking(201), 1, &PATTERN[..1000], None);
    puppet.data(line.acking(201), 1001, &PATTERN[..1000], None);
    let out = puppet.take();
    assert!(!out.is_empty() && out.iter().all(|s| !s.options.has_mptcp()), "{out:#?}");
}

/// A connection of two hosts between which a box strips the options of what host `stripped` sends, but for SYNs.
fn stripping(stripped: usize) -> Pair {
    let mut pair = Pair::new(1);
    pair.rule = Box::new(move |host, segment| {
        if host == stripped && !segment.flags.has(Flags::SYN) {
            segment.options.strip_mptcp();
        }
        true
    });
    pair.open();
    pair
}

/// All options of one direction are stripped after the SYN/ACK: whoever falls back, the other follows.
#[test]
fn options_lost_in_one_direction_hold_nothing_up() {
    for stripped in [CLIENT, SERVER] {
        for (request, answer) in [(100, 200_000), (200_000, 100), (0, 200_000)] {
            let mut pair = stripping(stripped);
            pair.write(CLIENT, &PATTERN[..request]);
            pair.write(SERVER, &PATTERN[..answer]);
            pair.run(Duration::from_secs(3));
            let case = format!("from host {stripped}, {request} and {answer} bytes: {:?}", pair.events);
            assert!(pair.read[SERVER] == PATTERN[..request] && pair.read[CLIENT] == PATTERN[..answer], "{case}");
        }
    }
}

/// A client with no data for the infinite mapping declares it with its FIN, and with each repetition of it. A peer that
/// has sent its end as a DATA_FIN, whose option is lost, then closes as TCP does.
#[test]
fn a_fin_tells_the_peer_that_mptcp_is_over() {
    let (mut puppet, line) = half_fallen_back();
    puppet.data(line, 1, &PATTERN[..1000], None);
    puppet.take();
    puppet.shutdown();
    let infinite = |s: &&Segment| {
        s.flags.has(Flags::FIN) && s.options.dss().and_then(|dss: Dss| dss.map).is_some_and(|map| map.length == 0)
    };
    assert_eq!(puppet.take().iter().filter(infinite).count(), 1);
    puppet.wait(Duration::from_secs(1));
    assert!(puppet.take().iter().any(|segment| infinite(&segment)), "it is repeated");
    puppet.send(line.acking(102).ack(1001), |s| s.flags = s.flags.with(Flags::FIN));
    let out = puppet.take();
    assert!(!out.is_empty() && out.iter().all(|s| !s.options.has_mptcp()), "{out:#?}");
    assert!(puppet.has(|event| *event == Event::PeerFinished), "{:?}", puppet.events);
}

/// Both ends close after all options of one direction were lost: the connection comes to its end at both, and soon.
#[test]
fn options_lost_in_one_direction_do_not_hold_up_the_end() {
    for stripped in [CLIENT, SERVER] {
        for (request, answer) in [(100, 200_000), (200_000, 100), (100, 0)] {
            for order in [[CLIENT, SERVER], [SERVER, CLIENT]] {
                let mut pair = stripping(stripped);
                pair.write(CLIENT, &PATTERN[..request]);
                pair.write(SERVER, &PATTERN[..answer]);
                pair.run(Duration::from_secs(1));
                for host in order {
                    pair.shutdown(host);
                    pair.run(Duration::from_millis(100));
                }
                pair.run(Duration::from_secs(2));
                let case = format!("from host {stripped}, {request} and {answer} bytes, {order:?}: {:?}", pair.events);
                assert!(pair.read[SERVER] == PATTERN[..request] && pair.read[CLIENT] == PATTERN[..answer], "{case}");
                for host in order {
                    assert!(pair.has(host, |event| *event == Event::Closed), "host {host} {case}");
                }
            }
        }
    }
}

/// An outage after a segment without the keys ends the half-open connection when one before it would have: after the
/// pauses of seven SYN/ACKs from a second on, 127 s, though the pauses began anew from a short timeout.
#[test]
fn a_client_without_keys_is_awaited_as_long_as_one_that_never_answered() {
    for answers in [false, true] {
        let (mut puppet, line) = without_third_ack();
        let start = puppet.now;
        if answers {
            behind(&mut puppet, line);
        }
        let mut last = start;
        while puppet.now.since(start) < Duration::from_secs(200) {
            puppet.wait(Duration::from_secs(1));
            if puppet.take().iter().any(|s| s.flags.has(Flags::SYN)) {
                last = puppet.now;
            }
        }
        let after = last.since(start);
        let right = Duration::from_secs(50)..Duration::from_secs(128);
        assert!(right.contains(&after), "answered {answers}: the last SYN/ACK after {after}");
    }
}
