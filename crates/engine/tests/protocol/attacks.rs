//! Attacks that a TCP must withstand: blind attacks (RFC 5961), misbehaving receivers (RFC 5681 §2, optimistic ACK, ACK
//! division), windows that close and shrink (RFC 9293 §3.8.6), old timestamps (RFC 7323 §5.5).

use crate::common::puppet::{Line, Puppet, WINDOW, handshake};
use crate::common::{CLIENT, PATTERN, PORT, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Config, Event};
use anabranch_units::{Duration, SubflowSeq};
use anabranch_wire::{DataSeq, Dss, Flags, FlowKey, MpCapable, MpOption, Segment, Timestamps};
use bytes::Bytes as Payload;
use std::net::SocketAddr;

fn server() -> Config {
    config([server_ip(0)])
}

/// A server that knows that options get through.
fn confirmed(config: Config) -> (Puppet, Line) {
    let (mut puppet, line) = Puppet::accepted(config);
    let map = puppet.map(1, 0, 10);
    puppet.data(line, 1, &PATTERN[..10], Some(map));
    puppet.wait(Duration::from_millis(100));
    puppet.take();
    (puppet, line)
}

fn payload(out: &[Segment]) -> usize {
    out.iter().map(|s| s.payload.len()).sum()
}

/// RFC 5961 §3: a RST counts only at exactly the next number; elsewhere in the window it is challenged, outside
/// ignored.
#[test]
fn a_blind_rst_is_challenged() {
    let (mut puppet, line) = confirmed(server());
    for (at, challenged) in [(12, true), (40_000, true), (11 + (1 << 30), false)] {
        puppet.send(line.ack(at), |s| s.flags = Flags::RST);
        let out = puppet.take();
        assert_eq!(out.len(), usize::from(challenged), "at {at}");
        assert!(out.iter().all(|s| s.flags == Flags::ACK && s.ack == SubflowSeq::new(1011)));
        puppet.wait(Duration::from_secs(1));
        puppet.take();
    }
    puppet.send(line.ack(11), |s| s.flags = Flags::RST);
    assert!(puppet.has(|event| matches!(event, Event::SubflowClosed(_))));
}

/// RFC 5961 §4: a SYN never resets a connection; §7: challenges are limited.
#[test]
fn a_blind_syn_is_challenged_and_challenges_are_limited() {
    let (mut puppet, line) = confirmed(server());
    for i in 0..1000 {
        puppet.send(line.ack(11 + i), |s| s.flags = Flags::SYN);
        puppet.send(line.ack(12 + i), |s| s.flags = Flags::RST);
        puppet.send(line.acking(1 << 29).ack(11), |_| {});
        puppet.send(line.ack(0), |_| {});
        puppet.wait(Duration::from_millis(1));
    }
    let out = puppet.take();
    assert!((1..=4).contains(&out.len()), "{} answers in a second", out.len());
    assert_eq!(puppet.host.connection_count(), 1);
}

/// RFC 5961 §5: data with an implausible acknowledgment is not taken.
#[test]
fn blind_data_is_not_taken() {
    let (mut puppet, line) = confirmed(server());
    let map = puppet.map(11, 10, 10);
    for ack in [2, 1 << 20, 1u64 << 31, 0xffff_0000] {
        puppet.data(line.acking(ack), 11, &PATTERN[10..20], Some(map));
    }
    assert!(puppet.read == PATTERN[..10]);
}

/// Optimistic ACKs: an acknowledgment, on either level, of what was not sent changes nothing.
#[test]
fn optimistic_acks_are_ignored() {
    let (mut puppet, line) = confirmed(server());
    puppet.write(PATTERN);
    let first = payload(&puppet.take());
    assert!(first > 5000 && first < 30_000, "the initial window: {first}");
    // At the subflow.
    let dss = puppet.data_ack(100_000);
    puppet.send(line.acking(100_001).ack(11), |s| s.options.set_dss(Some(dss)));
    // At the data level alone, of everything there is, and beyond it.
    for (data, window) in [(200_000, 100), (1 << 40, 101)] {
        let dss = puppet.data_ack(data);
        puppet.send(line.ack(11), |s| {
            // Another window each time: no duplicate ACK, which may release a segment (RFC 3042).
            s.window = window;
            s.options.set_dss(Some(dss));
        });
    }
    assert_eq!(payload(&puppet.take()), 0);
    assert_eq!(puppet.host.connection_stats(puppet.id.unwrap()).unwrap().data_acked, 0);
    // An honest one goes on from there.
    puppet.confirm(line.acking(1401), 11, 1400);
    assert!(payload(&puppet.take()) > 0);
}

/// ACK division (RFC 3465): what an ACK covers counts, not how many there are.
#[test]
fn divided_acks_open_the_window_no_faster() {
    let grown = |parts: u64| {
        let (mut puppet, line) = confirmed(server());
        puppet.write(PATTERN);
        let flight = payload(&puppet.take()) as u64;
        for i in 1..=parts {
            let at = flight * i / parts;
            puppet.confirm(line.acking(at + 1), 11, at);
        }
        payload(&puppet.take())
    };
    let (whole, divided) = (grown(10), grown(5000));
    assert!(divided <= whole + 1500, "{divided} bytes after 5000 ACKs, {whole} after 10");
}

/// RFC 9293 §3.8.6: a peer that takes back window loses nothing and stalls nothing.
#[test]
fn a_shrinking_window_is_survived() {
    let (mut puppet, line) = confirmed(server());
    puppet.write(&PATTERN[..100_000]);
    puppet.take();
    // 60,000 were promised; now 1000.
    let dss = puppet.data_ack(0);
    puppet.send(line.ack(11), |s| {
        s.window = 1000;
        s.options.set_dss(Some(dss));
    });
    puppet.wait(Duration::from_secs(2));
    let out = puppet.take();
    assert!(out.iter().any(|s| s.seq == line.irs + 1 && !s.payload.is_empty()), "the first segment is repeated");
    assert_eq!(puppet.host.connection_count(), 1);
}

/// RFC 9293 §3.8.6.1: a closed window is probed, for as long as the peer answers; if it falls silent that ends as any
/// silence does.
#[test]
fn a_closed_window_is_probed_while_the_peer_lives() {
    let shut = |s: &mut Segment, dss: Dss| {
        s.window = 0;
        s.options.set_dss(Some(dss));
    };
    let (mut puppet, line) = confirmed(server());
    puppet.write(&PATTERN[..100_000]);
    let mut sent = payload(&puppet.take()) as u64;
    // Everything it admitted is taken, and then its window is closed.
    while sent < u64::from(WINDOW) {
        let dss = puppet.data_ack(sent);
        let window = WINDOW - sent as u16;
        puppet.send(line.acking(sent + 1).ack(11), |s| {
            s.window = window;
            s.options.set_dss(Some(dss));
        });
        sent += payload(&puppet.take()) as u64;
    }
    let dss = puppet.data_ack(sent);
    let at = line.acking(sent + 1).ack(11);
    puppet.send(at, |s| shut(s, dss));
    puppet.take();
    let mut probes = 0;
    for _ in 0..3600 {
        puppet.wait(Duration::from_secs(1));
        let out = puppet.take();
        assert_eq!(payload(&out), 0);
        probes += out.len();
        if !out.is_empty() {
            puppet.send(at, |s| shut(s, dss));
        }
    }
    assert!(probes > 200, "{probes} probes in an hour");
    assert_eq!(puppet.host.connection_count(), 1);
    puppet.wait(Duration::from_secs(1200));
    assert_eq!(puppet.host.connection_count(), 0, "{:?}", puppet.events);
    assert!(puppet.has(|event| *event == Event::Reset));
}

/// RFC 7323 §5.3, §5.5: an old timestamp makes a segment unacceptable, but not after 24 days of silence.
#[test]
fn old_timestamps_are_refused_until_they_expire() {
    let mut puppet = Puppet::new(server());
    let flow = FlowKey::new(SocketAddr::new(client_ip(0), 4000), SocketAddr::new(server_ip(0), PORT));
    let stamp = |value| Some(Timestamps { value, echo: 0 });
    let mut syn = Segment::new(flow, Flags::SYN, SubflowSeq::new(1000), SubflowSeq::new(0));
    *syn.options.handshake_mut() = handshake();
    syn.options.set_timestamps(stamp(5000));
    syn.options.push_mptcp(MpOption::Capable(MpCapable::OFFER));
    puppet.deliver(syn);
    let line = puppet.answered(Line { flow, irs: SubflowSeq::new(0), ack: 1 });
    let keys = puppet.keys(None);
    puppet.send(line.ack(1), |s| {
        s.options.set_timestamps(stamp(5000));
        s.options.push_mptcp(MpOption::Capable(keys));
    });
    let map = puppet.map(1, 0, 10);
    let data = |puppet: &mut Puppet, value| {
        puppet.send(line.ack(1), |s| {
            s.options.set_timestamps(stamp(value));
            s.options.set_dss(Some(map));
            s.payload = Payload::from_static(&PATTERN[..10]).into();
        });
    };
    data(&mut puppet, 4999);
    assert!(puppet.read.is_empty());
    puppet.wait(Duration::from_secs(25 * 24 * 3600));
    data(&mut puppet, 4999);
    assert!(puppet.read == PATTERN[..10]);
}

/// RFC 9293 §3.10.7.4: bytes that were received first stay, even if a later copy differs.
#[test]
fn overlaps_do_not_replace_what_is_there() {
    let (mut puppet, line) = confirmed(server());
    let map = puppet.map(11, 10, 90);
    puppet.data(line, 51, &PATTERN[50..100], Some(map));
    puppet.data(line, 51, &[0xff; 50], Some(map));
    puppet.data(line, 31, &[0xff; 30], Some(map));
    puppet.data(line, 11, &PATTERN[10..31], Some(map));
    let mut expected = PATTERN[..100].to_vec();
    expected[31..50].fill(0xff);
    expected[30] = PATTERN[30];
    assert_eq!(puppet.read[..30], expected[..30]);
    assert_eq!(puppet.read[50..], expected[50..], "the late copy of held bytes was dropped");
    puppet.data(line, 11, &[0xee; 90], Some(map));
    assert_eq!(puppet.read.len(), 100);
}

/// Data beyond the window is not acknowledged (plain TCP), nor kept.
#[test]
fn data_beyond_the_window_is_refused() {
    let mut small = server();
    small.receive_buffer = crate::common::buffer(10_000);
    small.multipath = false;
    let (mut puppet, line) = {
        let mut puppet = Puppet::new(small);
        let line = puppet.syn(MpOption::Capable(MpCapable::OFFER), 0);
        let line = puppet.answered(line);
        puppet.send(line.ack(1), |_| {});
        (puppet, line)
    };
    puppet.deaf = true;
    for at in 0..12u64 {
        puppet.data(line, 1 + at * 1000, &PATTERN[..1000], None);
    }
    puppet.wait(Duration::from_secs(1));
    let acked = puppet.take().iter().map(|s| s.ack.get()).max().unwrap();
    assert_eq!(acked, 1000 + 10_001);
}

/// Single bytes cost a peer more than us.
#[test]
fn single_bytes_are_bounded() {
    let (mut puppet, line) = confirmed(server());
    puppet.deaf = true;
    for at in 0..40_000u64 {
        let map = puppet.map(11 + at, 10 + at, 1);
        puppet.data(line, 11 + at, &PATTERN[..1], Some(map));
        puppet.out.clear();
    }
    puppet.deaf = false;
    puppet.pump();
    assert_eq!(puppet.read.len(), 40_010);
}

/// RFC 8684 §3.3.1, §3.3.2: four bytes of DSN and DATA_ACK do wherever eight do, over the wrap of the low half as well.
#[test]
fn four_byte_numbers_do_over_the_wrap() {
    use anabranch_units::{Key, Seed};
    let near = |seed: u64| {
        let mut chance = Seed(seed).stream("endpoint");
        Key::new(chance.next_u64()).idsn().low() > u32::MAX - PATTERN.len() as u32 / 2
    };
    let seed = (0..1_000_000).find(|seed| near(*seed)).unwrap();
    let mut pair = Pair::seeded(seed, config((0..2).map(client_ip)), server());
    let mut chance = Seed(1).stream("loss");
    pair.rule = Box::new(move |_, segment| {
        if let Some(dss) = &mut segment.options.dss() {
            let short = |seq: &mut DataSeq| {
                if let DataSeq::Long(dsn) = *seq {
                    *seq = DataSeq::Short(dsn.low());
                }
            };
            if let Some(ack) = &mut dss.data_ack {
                short(ack);
            }
            if let Some(map) = &mut dss.map {
                short(&mut map.dsn);
            }
        }
        !chance.chance(0.02)
    });
    pair.open();
    pair.write(CLIENT, PATTERN);
    pair.write(CLIENT, PATTERN);
    pair.run(Duration::from_secs(60));
    assert_eq!(pair.read[SERVER].len(), 2 * PATTERN.len());
    assert!(pair.read[SERVER][PATTERN.len()..] == *PATTERN);
}
