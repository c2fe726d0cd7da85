//! DSS checksums (RFC 8684 §3.1 flag A, §3.3.1) and what a wrong one leads to (§3.7).

use crate::common::puppet::{KEY, Line, Puppet, reason};
use crate::common::{CLIENT, PATTERN, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Config, Event, FallbackReason};
use anabranch_units::{Duration, Seed};
use anabranch_wire::{DataSeq, Dss, Flags, Map, MpCapable, MpOption, ResetReason, Segment, dss_checksum};
use bytes::Bytes as Payload;

fn server() -> Config {
    config([server_ip(0)])
}

/// A server whose peer requires checksums.
fn accepted(config: Config) -> (Puppet, Line) {
    let mut puppet = Puppet::new(config);
    puppet.checksum = true;
    let line = puppet.open();
    (puppet, line)
}

fn offer(segment: &Segment) -> Option<MpCapable> {
    segment.options.mptcp().iter().find_map(|option| match option {
        MpOption::Capable(capable) => Some(*capable),
        _ => None,
    })
}

fn fail(segment: &Segment) -> bool {
    segment.options.mptcp().iter().any(|option| matches!(option, MpOption::Fail { .. }))
}

/// A DSS that maps `bytes`, with their checksum.
fn sealed(puppet: &Puppet, subflow: u64, data: u64, bytes: &[u8], fin: bool) -> Dss {
    let mut dss = puppet.map(subflow, data, bytes.len() as u16 + u16::from(fin));
    dss.data_fin = fin;
    let map = dss.map.as_mut().unwrap();
    map.checksum = Some(dss_checksum(Puppet::dsn(data), subflow as u32, map.length, [bytes]));
    dss
}

fn spoiled(mut dss: Dss) -> Dss {
    let checksum = dss.map.as_mut().and_then(|map| map.checksum.as_mut()).unwrap();
    *checksum ^= 0x40;
    dss
}

/// The checksum of a segment of the endpoint is right.
fn is_sealed(puppet: &Puppet, segment: &Segment) -> bool {
    let idsn = puppet.theirs.unwrap().idsn();
    let (dsn, ssn, length, checksum) = match (segment.options.dss().and_then(|dss| dss.map), offer(segment)) {
        (Some(Map { dsn, subflow_seq, length, checksum }), _) => (dsn.near(idsn), subflow_seq, length, checksum),
        (None, Some(MpCapable { data: Some((length, checksum)), .. })) => (idsn + 1, 1, length, checksum),
        _ => return false,
    };
    checksum == Some(dss_checksum(dsn, ssn, length, [segment.payload.as_ref()]))
}

/// §3.1: checksums are used unless both sides set A to 0, and the third ACK confirms it.
#[test]
fn either_side_can_require_checksums() {
    for (ours, theirs) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut config = config([client_ip(0)]);
        config.checksum = ours;
        let mut puppet = Puppet::new(config);
        let id = puppet.host.open(puppet.now, client_ip(0), (server_ip(0), crate::common::PORT).into()).unwrap();
        puppet.id = Some(id);
        puppet.pump();
        assert_eq!(offer(&puppet.out[0]).unwrap().checksum_required, ours);
        let answer = MpCapable { sender_key: Some(KEY), checksum_required: theirs, ..MpCapable::OFFER };
        puppet.answer(MpOption::Capable(answer));
        puppet.theirs = offer(&puppet.out[0]).unwrap().sender_key;
        assert_eq!(offer(&puppet.out[0]).unwrap().checksum_required, ours || theirs);
        puppet.take();
        puppet.write(&PATTERN[..3000]);
        let out = puppet.take();
        assert_eq!(out.iter().filter(|s| is_sealed(&puppet, s)).count(), if ours || theirs { 3 } else { 0 });
        assert!(offer(&out[0]).is_some(), "MP_CAPABLE with the first data carries it too");
    }
    for (ours, theirs) in [(false, false), (false, true), (true, false)] {
        let mut config = server();
        config.checksum = ours;
        let mut puppet = Puppet::new(config);
        puppet.syn(MpOption::Capable(MpCapable { checksum_required: theirs, ..MpCapable::OFFER }), 0);
        assert_eq!(offer(&puppet.out[0]).unwrap().checksum_required, ours || theirs);
    }
}

/// §3.3.1: a mapping spans many segments, and nothing of it is DATA_ACKed before its checksum has been checked.
#[test]
fn nothing_is_delivered_before_the_whole_mapping_is_verified() {
    let (mut puppet, line) = accepted(server());
    let dss = sealed(&puppet, 1, 0, &PATTERN[..60_000], false);
    for at in (0..59_000).step_by(1000) {
        puppet.data(line, 1 + at as u64, &PATTERN[at..at + 1000], Some(dss));
    }
    puppet.wait(Duration::from_millis(100));
    assert!(puppet.read.is_empty());
    let out = puppet.take();
    assert!(out.iter().all(|s| Puppet::acked(s).is_none_or(|ack| ack == 0)));
    assert!(out.iter().any(|s| s.ack == anabranch_units::SubflowSeq::new(1001 + 59_000)), "the subflow acknowledges");
    puppet.data(line, 59_001, &PATTERN[59_000..60_000], None);
    assert!(puppet.read == PATTERN[..60_000]);
    assert_eq!(puppet.take().iter().filter_map(Puppet::acked).max(), Some(60_000));
}

/// The same out of order, in odd pieces, and with the mapping on one of them only.
#[test]
fn segments_of_a_mapping_may_come_in_any_order() {
    let (mut puppet, line) = accepted(server());
    let dss = sealed(&puppet, 1, 0, &PATTERN[..5001], false);
    let mut order: Vec<usize> = (0..5001).step_by(333).collect();
    let mut chance = Seed(2).stream("order");
    for i in (1..order.len()).rev() {
        order.swap(i, chance.below(i as u64 + 1) as usize);
    }
    for at in order {
        puppet.data(line, 1 + at as u64, &PATTERN[at..5001.min(at + 333)], (at == 333).then_some(dss));
    }
    assert!(puppet.read == PATTERN[..5001], "{}", puppet.read.len());
}

/// §3.3.3: a peer that closes while a mapping is under way may repeat it with the DATA_FIN behind it, as Linux does:
/// the same bytes, a length and a checksum that count one more. Reordering brings the two forms in any order.
#[test]
fn a_data_fin_may_join_a_mapping_under_way() {
    for fins in [0b1000, 0b1110, 0b0001, 0b0101, 0b1111] {
        for capable in [false, true] {
            let (mut puppet, line) = accepted(server());
            for i in 0..4 {
                assert!(puppet.read.is_empty(), "{fins:b}");
                let dss = sealed(&puppet, 1, 0, &PATTERN[..4000], fins >> i & 1 == 1);
                let first = dss.map.filter(|_| capable && !dss.data_fin);
                let first = first.map(|map| puppet.keys(Some((map.length, map.checksum))));
                puppet.send(line.ack(1 + 1000 * i), |s| {
                    s.payload = Payload::from_static(&PATTERN[1000 * i as usize..][..1000]).into();
                    match first {
                        Some(first) => s.options.push_mptcp(MpOption::Capable(first)),
                        None => s.options.set_dss(Some(dss)),
                    }
                });
            }
            assert!(puppet.read == PATTERN[..4000], "{fins:b}: {} bytes", puppet.read.len());
            assert_eq!(puppet.take().iter().filter_map(Puppet::acked).max(), Some(4001), "{fins:b}: with the DATA_FIN");
        }
    }
}

/// A mapping larger than the receive buffer must not make the two ends wait for each other.
#[test]
fn a_mapping_larger_than_the_buffer_gets_through() {
    let mut config = server();
    config.receive_buffer = crate::common::buffer(5000);
    let (mut puppet, line) = accepted(config);
    let dss = sealed(&puppet, 1, 0, &PATTERN[..40_000], false);
    let mut edge = 5000;
    let mut at = 0;
    for _ in 0..200 {
        let end = (at + 1000).min(40_000).min(edge);
        if at < end {
            puppet.data(line, 1 + at as u64, &PATTERN[at..end], Some(dss));
            at = end;
        } else {
            puppet.wait(Duration::from_millis(100));
        }
        for segment in puppet.take() {
            if let Some(acked) = Puppet::acked(&segment) {
                edge = edge.max(acked as usize + usize::from(segment.window));
            }
        }
    }
    assert!(puppet.read == PATTERN[..40_000], "{} of 40000, edge {edge}", puppet.read.len());
}

/// §3.1: the data of MP_CAPABLE has its checksum there; length and checksum are those of a mapping.
#[test]
fn mp_capable_with_data_is_verified() {
    for good in [true, false] {
        let (mut puppet, line) = accepted(server());
        let sum = dss_checksum(Puppet::dsn(0), 1, 100, [&PATTERN[..100]]);
        let keys = puppet.keys(Some((100, Some(if good { sum } else { sum ^ 1 }))));
        puppet.take();
        puppet.send(line.ack(1), |s| {
            s.options.push_mptcp(MpOption::Capable(keys));
            s.payload = Payload::from_static(&PATTERN[..100]).into();
        });
        assert!(puppet.read == PATTERN[..100], "a wrong checksum on the only subflow still hands the data on");
        assert_eq!(puppet.host.counters().checksum_failures, u64::from(!good));
        assert_eq!(puppet.has(|event| *event == Event::Fallback(FallbackReason::ChecksumFailed)), !good);
    }
}

/// §3.3.3: a DATA_FIN counts in the length that the checksum covers; alone it is just the pseudo-header.
#[test]
fn data_fins_are_verified() {
    let (mut puppet, line) = accepted(server());
    let dss = sealed(&puppet, 1, 0, &PATTERN[..100], true);
    puppet.data(line, 1, &PATTERN[..100], Some(dss));
    assert!(puppet.has(|event| *event == Event::PeerFinished));
    assert_eq!(puppet.take().iter().filter_map(Puppet::acked).max(), Some(101));

    let (mut puppet, line) = accepted(server());
    let dss = sealed(&puppet, 1, 0, &PATTERN[..100], false);
    puppet.data(line, 1, &PATTERN[..100], Some(dss));
    let mut fin = puppet.data_fin(100);
    fin.map.as_mut().unwrap().checksum = Some(dss_checksum(Puppet::dsn(100), 0, 1, []));
    puppet.send(line.ack(101), |s| s.options.set_dss(Some(fin)));
    assert!(puppet.has(|event| *event == Event::PeerFinished));
    puppet.take();
    // Ours.
    puppet.shutdown();
    let ours = puppet.take().into_iter().find(|s| s.options.dss().is_some_and(|dss| dss.data_fin)).unwrap();
    assert!(is_sealed(&puppet, &ours));
}

/// §3.3: "If a checksum is not present when its use has been negotiated, the receiver MUST close the subflow with a
/// RST".
#[test]
fn a_missing_checksum_resets_the_subflow() {
    let (mut puppet, line) = accepted(server());
    puppet.take();
    let map = puppet.map(1, 0, 100);
    puppet.data(line, 1, &PATTERN[..100], Some(map));
    let out = puppet.take();
    assert!(out.iter().any(|s| reason(s) == Some(ResetReason::MptcpError)), "{out:#?}");
    assert!(puppet.read.is_empty());
}

/// §3.3.1: so does one that was not agreed on.
#[test]
fn an_unexpected_checksum_resets_the_subflow() {
    let (mut puppet, line) = Puppet::accepted(server());
    puppet.take();
    let dss = sealed(&puppet, 1, 0, &PATTERN[..100], false);
    puppet.data(line, 1, &PATTERN[..100], Some(dss));
    let out = puppet.take();
    assert!(out.iter().any(|s| reason(s) == Some(ResetReason::MptcpError)), "{out:#?}");
    assert!(puppet.read.is_empty());
}

/// §3.7: several subflows: RST with MP_FAIL (the DSN of the mapping that failed) and MP_TCPRST 6; nothing of it is
/// delivered, and the data comes on the other.
#[test]
fn a_failure_beside_another_subflow_resets_that_one() {
    let (mut puppet, line) = accepted(server());
    let dss = sealed(&puppet, 1, 0, &PATTERN[..100], false);
    puppet.data(line, 1, &PATTERN[..100], Some(dss));
    let second = puppet.join(1);
    puppet.take();
    let dss = spoiled(sealed(&puppet, 1, 100, &PATTERN[100..200], false));
    puppet.data(second, 1, &PATTERN[100..200], Some(dss));
    let out = puppet.take();
    let reset = out.iter().find(|s| s.flags.has(Flags::RST)).expect("a RST");
    assert!(second.carries(reset));
    assert!(reset.options.mptcp().contains(&MpOption::Fail { dsn: Puppet::dsn(100) }));
    assert_eq!(reason(reset), Some(ResetReason::Middlebox));
    assert!(puppet.read == PATTERN[..100]);
    let dss = sealed(&puppet, 101, 100, &PATTERN[100..200], false);
    puppet.data(line, 101, &PATTERN[100..200], Some(dss));
    assert!(puppet.read == PATTERN[..200]);
    assert!(!puppet.has(|event| matches!(event, Event::Fallback(_))));
}

/// §3.7: one subflow: MP_FAIL on every segment until the peer has answered, the data is handed on, no DATA_ACK any
/// more, our next data has an infinite mapping, and later data needs no options.
#[test]
fn a_failure_on_the_only_subflow_ends_in_plain_tcp() {
    let (mut puppet, line) = accepted(server());
    let dss = sealed(&puppet, 1, 0, &PATTERN[..100], false);
    puppet.data(line, 1, &PATTERN[..100], Some(dss));
    puppet.take();
    let dss = spoiled(sealed(&puppet, 101, 100, &PATTERN[100..200], false));
    puppet.data(line, 101, &PATTERN[100..200], Some(dss));
    assert!(puppet.read == PATTERN[..200]);
    let out = puppet.take();
    assert_eq!(out.len(), 1);
    assert!(out[0].options.mptcp().contains(&MpOption::Fail { dsn: Puppet::dsn(100) }));
    assert!(!out[0].flags.has(Flags::RST) && out[0].options.dss().is_none());
    // The peer has not heard: it goes on with mappings, and MP_FAIL with the ACKs.
    let dss = sealed(&puppet, 201, 200, &PATTERN[200..300], false);
    puppet.data(line, 201, &PATTERN[200..300], Some(dss));
    puppet.wait(Duration::from_secs(1));
    assert!(puppet.take().iter().any(fail));
    // It answers, and its next data has an infinite mapping.
    puppet.send(line.ack(301), |s| s.options.push_mptcp(MpOption::Fail { dsn: KEY.idsn() }));
    let mut infinite = puppet.map(301, 300, 0);
    infinite.map.as_mut().unwrap().checksum = Some(0);
    puppet.data(line, 301, &PATTERN[300..400], Some(infinite));
    puppet.data(line, 401, &PATTERN[400..500], None);
    puppet.wait(Duration::from_secs(1));
    assert!(puppet.take().iter().all(|s| !s.options.has_mptcp()));
    assert!(puppet.read == PATTERN[..500]);
    puppet.write(&PATTERN[..3000]);
    let out = puppet.take();
    let map = out[0].options.dss().unwrap().map.unwrap();
    assert_eq!((map.length, map.subflow_seq, map.checksum), (0, 1, Some(0)));
    assert_eq!(map.dsn, DataSeq::Long(puppet.theirs.unwrap().idsn() + 1));
    assert!(out[1..].iter().all(|s| !s.options.has_mptcp()));
    // Subflow ACKs alone clear the buffer now, and a FIN ends the stream.
    puppet.send(line.acking(3001).ack(501), |s| s.flags = Flags::FIN.with(Flags::ACK));
    assert!(puppet.has(|event| *event == Event::PeerFinished));
    assert_eq!(puppet.host.connection_stats(puppet.id.unwrap()).unwrap().data_acked, 3000);
    puppet.shutdown();
    assert!(puppet.take().iter().any(|s| s.flags.has(Flags::FIN) && !s.options.has_mptcp()));
}

/// §3.7: while data of ours waits to leave, it takes the place of every ACK: MP_FAIL leaves with it, until the peer has
/// answered.
#[test]
fn mp_fail_leaves_although_data_takes_the_place_of_acks() {
    let (mut puppet, line) = accepted(server());
    let dss = sealed(&puppet, 1, 0, &PATTERN[..100], false);
    puppet.data(line, 1, &PATTERN[..100], Some(dss));
    puppet.write(PATTERN);
    let sent: usize = puppet.take().iter().map(|s| s.payload.len()).sum();
    assert!(sent < PATTERN.len(), "some has to wait for the congestion window");
    // What it acknowledges lets more leave at the moment the failure is found.
    let dss = spoiled(sealed(&puppet, 101, 100, &PATTERN[100..200], false));
    puppet.data(line.acking(1 + sent as u64), 101, &PATTERN[100..200], Some(dss));
    let out = puppet.take();
    let data = |s: &&Segment| !s.payload.is_empty();
    assert_eq!(out[0].options.dss().and_then(|dss| dss.map).map(|map| map.length), Some(0));
    assert!(out.iter().filter(data).count() > 5 && out.iter().all(fail), "{} segments", out.len());
    let acked = sent + out.iter().map(|s| s.payload.len()).sum::<usize>();
    // The peer has not heard: MP_FAIL goes on with what is repeated.
    puppet.wait(Duration::from_secs(2));
    let out = puppet.take();
    assert!(out.iter().any(|s| data(&s)) && out.iter().all(fail), "{} segments", out.len());
    // It answers.
    puppet.send(line.acking(1 + acked as u64).ack(201), |s| {
        s.options.push_mptcp(MpOption::Fail { dsn: KEY.idsn() });
    });
    let out = puppet.take();
    assert!(!out.is_empty() && !out.iter().any(fail));
}

/// The acknowledgment of the infinite mapping says as much as an answer: the peer is where we are.
#[test]
fn mp_fail_ends_with_the_acknowledgment_of_the_infinite_mapping() {
    let (mut puppet, line) = accepted(server());
    let dss = sealed(&puppet, 1, 0, &PATTERN[..100], false);
    puppet.data(line, 1, &PATTERN[..100], Some(dss));
    puppet.write(PATTERN);
    let sent: usize = puppet.take().iter().map(|s| s.payload.len()).sum();
    let dss = spoiled(sealed(&puppet, 101, 100, &PATTERN[100..200], false));
    puppet.data(line.acking(1 + sent as u64), 101, &PATTERN[100..200], Some(dss));
    let out = puppet.take();
    assert!(!out.is_empty() && out.iter().all(fail));
    let acked = sent + out.iter().map(|s| s.payload.len()).sum::<usize>();
    puppet.send(line.acking(1 + acked as u64).ack(201), |_| {});
    let out = puppet.take();
    assert!(!out.is_empty() && !out.iter().any(fail), "{} segments", out.len());
}

/// §3.7: MP_FAIL received on the only subflow: MP_FAIL back, an infinite mapping on the next new data, then plain TCP.
#[test]
fn the_receiver_of_mp_fail_answers_in_kind() {
    let (mut puppet, line) = accepted(server());
    let dss = sealed(&puppet, 1, 0, &PATTERN[..10], false);
    puppet.data(line, 1, &PATTERN[..10], Some(dss));
    puppet.write(&PATTERN[..1000]);
    puppet.confirm(line.acking(501), 11, 500);
    puppet.take();
    let dsn = puppet.theirs.unwrap().idsn() + 1;
    let ack = line.acking(1001).ack(11);
    puppet.send(ack, |s| s.options.push_mptcp(MpOption::Fail { dsn }));
    let out = puppet.take();
    assert!(out.iter().any(fail), "{out:#?}");
    assert!(puppet.has(|event| *event == Event::Fallback(FallbackReason::PeerFailed)));
    // The answer was lost.
    puppet.send(ack, |s| s.options.push_mptcp(MpOption::Fail { dsn }));
    assert!(puppet.take().iter().any(fail));
    puppet.write(&PATTERN[1000..2000]);
    let out = puppet.take();
    assert_eq!(out[0].options.dss().and_then(|dss| dss.map).map(|map| map.length), Some(0));
    // Repeated, it carries it again.
    puppet.wait(Duration::from_secs(1));
    assert_eq!(puppet.take()[0].options.dss().and_then(|dss| dss.map).map(|map| map.length), Some(0));
    puppet.send(line.acking(2001).ack(11), |_| {});
    puppet.data(line, 11, &PATTERN[10..100], None);
    assert!(puppet.read == PATTERN[..100]);
}

/// §3.7: MP_FAIL when the levels are out of step leaves only a RST; data of another subflow goes on.
#[test]
fn mp_fail_beside_another_subflow_ends_that_subflow() {
    let (mut puppet, line) = accepted(server());
    let dss = sealed(&puppet, 1, 0, &PATTERN[..10], false);
    puppet.data(line, 1, &PATTERN[..10], Some(dss));
    let second = puppet.join(1);
    puppet.take();
    puppet.send(second.ack(1), |s| s.options.push_mptcp(MpOption::Fail { dsn: KEY.idsn() }));
    let out = puppet.take();
    assert!(out.iter().any(|s| second.carries(s) && s.flags.has(Flags::RST) && fail(s)), "{out:#?}");
    let dss = sealed(&puppet, 11, 10, &PATTERN[10..100], false);
    puppet.data(line, 11, &PATTERN[10..100], Some(dss));
    assert!(puppet.read == PATTERN[..100]);
    assert!(!puppet.has(|event| matches!(event, Event::Fallback(_))));
}

/// A peer that has not followed a fallback and repeats data at the data level would corrupt the stream: an honest
/// error.
#[test]
fn a_peer_that_does_not_follow_is_reset_rather_than_believed() {
    let (mut puppet, line) = accepted(server());
    let dss = spoiled(sealed(&puppet, 1, 0, &PATTERN[..100], false));
    puppet.data(line, 1, &PATTERN[..100], Some(dss));
    let again = sealed(&puppet, 101, 0, &PATTERN[..100], false);
    puppet.take();
    puppet.data(line, 101, &PATTERN[..100], Some(again));
    assert!(puppet.read == PATTERN[..100]);
    assert!(puppet.has(|event| *event == Event::Reset));
    assert!(puppet.take().iter().any(|s| s.flags.has(Flags::RST)));
}

fn pair(paths: u8) -> Pair {
    let mut client = config((0..paths).map(client_ip));
    client.checksum = true;
    Pair::with(client, server())
}

/// Both ends with checksums, over loss: every byte arrives, and every checksum is right.
#[test]
fn transfers_with_checksums_survive_loss() {
    for period in [3, 10, 50] {
        let mut pair = pair(2);
        let mut chance = Seed(period).stream("loss");
        pair.rule = Box::new(move |_, _| !chance.chance(1.0 / period as f64));
        pair.open();
        pair.write(CLIENT, PATTERN);
        pair.run(Duration::from_secs(600));
        pair.write(SERVER, PATTERN);
        pair.run(Duration::from_secs(3000));
        assert!(pair.read[SERVER] == PATTERN && pair.read[CLIENT] == PATTERN, "1 in {period}");
        for host in [CLIENT, SERVER] {
            assert_eq!(pair.hosts[host].counters().checksum_failures, 0);
        }
    }
}

/// Segments cut in two by a middlebox, one half lost: the repeated copy must be the very bytes of the first, although
/// the data was acknowledged through the other subflow meanwhile.
#[test]
fn repeated_segments_are_what_they_were() {
    for seed in 0..20 {
        let mut pair = pair(2);
        let mut chance = Seed(seed).stream("cut");
        pair.rule = Box::new(move |_, segment| {
            if segment.payload.len() > 100 && chance.chance(0.2) {
                // The end is lost.
                segment.payload.truncate(50);
            }
            true
        });
        pair.open();
        pair.write(CLIENT, PATTERN);
        pair.run(Duration::from_secs(600));
        assert!(pair.read[SERVER] == PATTERN, "seed {seed}: {}", pair.read[SERVER].len());
        assert_eq!(pair.hosts[SERVER].counters().checksum_failures, 0, "seed {seed}");
        assert!(pair.hosts[SERVER].counters().resets_sent.is_empty(), "seed {seed}");
    }
}

/// A middlebox that rewrites payload on one of two paths: that path is given up, and every byte is what was written.
#[test]
fn a_rewriting_path_is_given_up() {
    let mut pair = pair(2);
    pair.rule = Box::new(|from, segment| {
        if from == SERVER && segment.flow.dst == client_ip(1) && !segment.payload.is_empty() {
            let mut changed = segment.payload.to_vec();
            changed[0] ^= 0xff;
            segment.payload = changed.into();
        }
        true
    });
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(1));
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(60));
    assert!(pair.read[CLIENT] == PATTERN);
    assert!(pair.hosts[CLIENT].counters().checksum_failures > 0);
    assert!(pair.hosts[CLIENT].counters().resets_sent.contains_key(&ResetReason::Middlebox));
    assert!(!pair.has(CLIENT, |event| matches!(event, Event::Fallback(_))));
}

/// The same on the only path: the connection becomes TCP, and delivers what the middlebox made of the data, in full
/// length.
#[test]
fn a_rewriting_only_path_becomes_plain_tcp() {
    let mut pair = pair(1);
    pair.rule = Box::new(|from, segment| {
        if from == SERVER && segment.payload.len() > 10 {
            let mut changed = segment.payload.to_vec();
            changed[5] ^= 0xff;
            segment.payload = changed.into();
        }
        true
    });
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(1));
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(60));
    assert_eq!(pair.read[CLIENT].len(), PATTERN.len());
    assert!(pair.has(CLIENT, |event| *event == Event::Fallback(FallbackReason::ChecksumFailed)));
    assert!(pair.has(SERVER, |event| *event == Event::Fallback(FallbackReason::PeerFailed)));
    pair.shutdown(SERVER);
    pair.shutdown(CLIENT);
    assert!(pair.run(Duration::from_secs(120)));
    assert!(pair.has(CLIENT, |event| *event == Event::Closed) && pair.has(SERVER, |event| *event == Event::Closed));
}

/// §3.2: nothing about joins changes with checksums.
#[test]
fn a_join_with_checksums() {
    let (mut puppet, _) = accepted(server());
    let second = puppet.join(1);
    let dss = sealed(&puppet, 1, 0, &PATTERN[..100], false);
    puppet.data(second, 1, &PATTERN[..100], Some(dss));
    assert!(puppet.read == PATTERN[..100]);
}
