//! Options lost in mid-stream at a host that has nothing to send: it asks the peer to follow, and resets one that does
//! not (RFC 8684 §3.7, A-LOST-OPTIONS).

use crate::common::puppet::{Line, Puppet, reason};
use crate::common::{CLIENT, PATTERN, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Ended, Event, FallbackReason};
use anabranch_units::{Bytes, Duration};
use anabranch_wire::{Flags, MpCapable, ResetReason, Segment};

/// Ten bytes of the peer have come with their mapping, ten more without: plain TCP. The engine is the client or the
/// server.
fn lost_in_mid_stream(role: usize) -> (Puppet, Line) {
    let (mut puppet, line) = if role == CLIENT {
        let (mut puppet, line) = Puppet::connected(config([client_ip(0)]), MpCapable::OFFER);
        let map = puppet.map(1, 0, 10);
        puppet.data(line, 1, &PATTERN[..10], Some(map));
        (puppet, line)
    } else {
        Puppet::confirmed(config([server_ip(0)]))
    };
    puppet.take();
    puppet.data(line, 11, &PATTERN[10..20], None);
    assert!(puppet.has(|event| *event == Event::Fallback(FallbackReason::OptionsLost)), "{:?}", puppet.events);
    (puppet, line)
}

fn is_reset(segment: &Segment) -> bool {
    segment.flags.has(Flags::RST)
}

fn data_acks(segments: &[Segment]) -> Vec<Option<i64>> {
    segments.iter().map(Puppet::acked).collect()
}

/// DATA_ACKs go on, so that a peer that reads them neither waits nor repeats. A silent one is left alone.
#[test]
fn data_acks_go_on() {
    for role in [CLIENT, SERVER] {
        let (mut puppet, line) = lost_in_mid_stream(role);
        for at in (20..2000).step_by(20) {
            puppet.data(line, at + 1, &PATTERN[..10], None);
            puppet.data(line, at + 11, &PATTERN[..10], None);
            assert_eq!(data_acks(&puppet.take()).last(), Some(&Some(at as i64 + 20)));
        }
        puppet.wait(Duration::from_secs(10));
        assert!(puppet.take().iter().all(|s| !is_reset(s)));
    }
}

/// Linux repeats data at the data level on the same subflow when all is acknowledged there. Behind a pause it is not
/// taken for more of the stream: a peer that does not follow is reset, with the reason.
#[test]
fn data_that_may_be_a_repetition_is_not_taken() {
    for role in [CLIENT, SERVER] {
        let (mut puppet, line) = lost_in_mid_stream(role);
        puppet.wait(Duration::from_millis(5));
        puppet.data(line, 21, &PATTERN[20..30], None);
        assert_eq!(puppet.read, &PATTERN[..30]);
        puppet.wait(Duration::from_millis(200));
        puppet.take();
        puppet.data(line, 31, &PATTERN[..10], None);
        assert_eq!(puppet.read, &PATTERN[..30]);
        assert!(puppet.take().iter().any(|s| reason(s) == Some(ResetReason::Middlebox)));
        assert!(puppet.has(|event| *event == Event::Reset), "{:?}", puppet.events);
        let stats = puppet.host.connection_stats(puppet.id.unwrap()).unwrap();
        assert_eq!(stats.ended, Some(Ended::Middlebox));
    }
}

/// A peer that sends more than the window from before admits has read DATA_ACKs, or is plain TCP: it may pause.
#[test]
fn a_peer_that_goes_beyond_the_window_may_pause() {
    let mut config = config([server_ip(0)]);
    config.receive_buffer = Bytes::new(4000);
    let (mut puppet, line) = Puppet::confirmed(config);
    for at in (10..10_010).step_by(1000) {
        puppet.data(line, at + 1, &PATTERN[..1000], None);
    }
    assert_eq!(puppet.read.len(), 10_010);
    puppet.wait(Duration::from_secs(1));
    puppet.data(line, 10_011, &PATTERN[..10], None);
    assert_eq!(puppet.read.len(), 10_020);
}

/// Data of ours that was under way tells the peer, with its mapping or without: nobody is reset for saying nothing.
#[test]
fn a_peer_that_has_had_data_meanwhile_is_not_reset() {
    let (mut puppet, line) = Puppet::confirmed(config([server_ip(0)]));
    puppet.write(&PATTERN[..100]);
    puppet.send(line.acking(101).ack(11), |_| {});
    puppet.data(line.acking(101), 11, &PATTERN[10..20], None);
    assert!(puppet.has(|event| *event == Event::Fallback(FallbackReason::OptionsLost)), "{:?}", puppet.events);
    puppet.wait(Duration::from_secs(10));
    puppet.data(line.acking(101), 21, &PATTERN[20..30], None);
    assert_eq!(puppet.read, &PATTERN[..30]);
    assert!(puppet.take().iter().all(|s| !is_reset(s)));
}

/// A peer that closes is plain TCP.
#[test]
fn a_peer_that_closes_is_not_reset() {
    let (mut puppet, line) = lost_in_mid_stream(CLIENT);
    puppet.send(line.ack(21), |s| s.flags = s.flags.with(Flags::FIN));
    puppet.wait(Duration::from_secs(10));
    assert!(puppet.take().iter().all(|s| !is_reset(s)));
    assert!(puppet.has(|event| *event == Event::PeerFinished), "{:?}", puppet.events);
}

/// Two engines of which one only sends, on a path that begins to take the options out in one direction or both, at
/// several moments: all bytes arrive, and the end.
#[test]
fn a_transfer_goes_on_without_its_options() {
    for sender in [CLIENT, SERVER] {
        for from in [vec![CLIENT], vec![SERVER], vec![CLIENT, SERVER]] {
            for at in [20, 35, 50] {
                let mut pair = Pair::new(1);
                pair.open();
                pair.write(CLIENT, b"request");
                pair.run(Duration::from_millis(15));
                pair.write(sender, PATTERN);
                pair.run(Duration::from_millis(at));
                let stripped = from.clone();
                pair.rule = Box::new(move |host, segment| {
                    if stripped.contains(&host) {
                        segment.options.strip_mptcp();
                    }
                    true
                });
                pair.shutdown(sender);
                pair.run(Duration::from_secs(5));
                let case = format!("{sender} sends, stripped from {from:?} after {at} ms: {:?}", pair.events);
                let receiver = 1 - sender;
                let begun = if receiver == SERVER { &b"request"[..] } else { b"" };
                assert!(pair.read[receiver] == [begun, PATTERN].concat(), "{} {case}", pair.read[receiver].len());
                assert!(pair.has(receiver, |event| *event == Event::PeerFinished), "{case}");
            }
        }
    }
}
