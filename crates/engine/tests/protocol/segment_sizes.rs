//! Segments fit the devices and paths that they take.

use crate::common::puppet::Puppet;
use crate::common::{CLIENT, PATTERN, PORT, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Config, Endpoint, Profile};
use anabranch_units::{Bytes, Duration, Instant, Seed, SubflowSeq};
use anabranch_wire::{Flags, FlowKey, Handshake, MpCapable, MpOption, Segment};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

fn v6(n: u16) -> IpAddr {
    IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, n])
}

/// The MSS that a SYN of ours names, and the payload that a full segment then has towards a peer that names `theirs`.
fn sizes(local: IpAddr, remote: IpAddr, mtu: Option<u16>, theirs: Option<u16>) -> (u16, usize) {
    let mut host = Endpoint::new(config([local]), Seed(1)).unwrap();
    let now = Instant::ZERO;
    host.set_mtu(now, local, mtu);
    let id = host.open(now, local, SocketAddr::new(remote, PORT)).unwrap();
    let syn = host.poll_transmit(now).unwrap().segment;
    let mut answer = Segment::new(syn.flow.reversed(), Flags::SYN.with(Flags::ACK), SubflowSeq::new(5), syn.seq + 1);
    answer.window = 60_000;
    *answer.options.handshake_mut() = Handshake { mss: theirs, ..Handshake::default() };
    host.handle_segment(now, &mut answer);
    host.write(id, &bytes::Bytes::from_static(PATTERN)).unwrap();
    let sent = std::iter::from_fn(|| host.poll_transmit(now)).map(|transmit| transmit.segment.payload.len());
    (syn.options.handshake().mss.unwrap(), sent.max().unwrap())
}

/// RFC 9293 §3.7.1: the device's MTU makes our option, the smaller of both options the segments, and a peer that names
/// none takes 536 over IPv4 and 1220 over IPv6. (The answer has no MPTCP and no timestamps: segments hold nothing but
/// data.)
#[test]
fn segments_fit_our_device_and_the_peer_s_option() {
    let (c4, s4) = (client_ip(0), server_ip(0));
    for (local, remote, mtu, theirs, expected) in [
        (c4, s4, None, Some(1460), (1460, 1460)),
        (c4, s4, Some(1400), Some(1460), (1360, 1360)),
        (c4, s4, Some(9000), Some(8960), (8960, 8960)),
        (c4, s4, Some(9000), Some(1460), (8960, 1460)),
        (c4, s4, Some(65_535), Some(65_000), (65_495, 60_000)),
        (c4, s4, None, None, (1460, 536)),
        (v6(1), v6(2), None, Some(1440), (1440, 1440)),
        (v6(1), v6(2), Some(1280), Some(1440), (1220, 1220)),
        (v6(1), v6(2), None, None, (1440, 1220)),
    ] {
        let mut seen = sizes(local, remote, mtu, theirs);
        // The initial window of ten such segments is more than the peer's window.
        seen.1 = seen.1.min(60_000);
        assert_eq!(seen, expected, "{local} {mtu:?} {theirs:?}");
    }
}

fn sent_data(puppet: &mut Puppet) -> Vec<Segment> {
    let mut out = puppet.take();
    out.retain(|segment| !segment.payload.is_empty());
    out
}

fn lengths(sent: &[Segment]) -> Vec<usize> {
    sent.iter().map(|segment| segment.payload.len()).collect()
}

/// A router's report is believed for a packet under way: it is sent again in parts under the same numbers with the same
/// mapping, and what follows is small enough.
#[test]
fn a_packet_that_was_too_big_is_sent_again_in_parts() {
    for burst in [None, Some(Bytes::new(60_000))] {
        let (mut puppet, line) = Puppet::confirmed(Config { burst, ..config([server_ip(0)]) });
        puppet.write(&PATTERN[..3 * 1432]);
        let first = sent_data(&mut puppet);
        assert_eq!(lengths(&first), [1432; 3]);
        let flow = line.flow.reversed();
        assert!(puppet.host.handle_too_big(puppet.now, flow, first[1].seq, 1000));
        puppet.pump();
        let again = sent_data(&mut puppet);
        // 1000 less 40 of headers and 28 of mapping.
        assert_eq!(lengths(&again), [932, 500, 932, 500, 932, 500]);
        let map = |segment: &Segment| segment.options.dss().unwrap().map.unwrap();
        for (n, part) in again.iter().enumerate() {
            let at = (n / 2 * 1432 + n % 2 * 932) as u64;
            assert_eq!(part.seq, line.irs + 1 + at);
            assert_eq!(part.payload, PATTERN[at as usize..at as usize + part.payload.len()]);
            assert_eq!(map(part), map(&first[n / 2]), "the mapping of the whole");
        }
        puppet.confirm(line.acking(1 + 3 * 1432), 11, 3 * 1432);
        puppet.write(&PATTERN[3 * 1432..6 * 1432]);
        assert!(lengths(&sent_data(&mut puppet)).iter().all(|length| *length <= 932));
        assert_eq!(puppet.host.counters().too_big, 1);
    }
}

/// RFC 5927 §7.2: not for what was never sent or has arrived, not for sizes that no link has, not to grow.
#[test]
fn reports_that_cannot_be_are_not_believed() {
    let (mut puppet, line) = Puppet::confirmed(config([server_ip(0)]));
    puppet.write(&PATTERN[..2864]);
    let sent = sent_data(&mut puppet);
    let flow = line.flow.reversed();
    let stranger = FlowKey { src_port: 81, ..flow };
    for (flow, seq, mtu) in [
        (stranger, sent[0].seq, 1000),
        (line.flow, sent[0].seq, 1000),
        (flow, line.irs, 1000),
        (flow, line.irs + 2865, 1000),
        (flow, line.irs + 100_000, 1000),
        (flow, sent[0].seq, 1500),
        (flow, sent[0].seq, u32::MAX),
    ] {
        assert!(!puppet.host.handle_too_big(puppet.now, flow, seq, mtu), "{flow} {seq:?} {mtu}");
    }
    puppet.pump();
    assert!(puppet.take().is_empty());
    // A forged report asks for headers only: 552 is the bound.
    assert!(puppet.host.handle_too_big(puppet.now, flow, sent[0].seq, 0));
    puppet.pump();
    assert_eq!(lengths(&sent_data(&mut puppet))[0], 552 - 40 - 28);
    // Once more, and larger again: neither says anything new.
    assert!(!puppet.host.handle_too_big(puppet.now, flow, sent[0].seq, 552));
    assert!(!puppet.host.handle_too_big(puppet.now, flow, sent[0].seq, 1000));
    assert_eq!(puppet.host.counters().too_big_ignored, 9);
}

/// After ten minutes full segments are tried again.
#[test]
fn a_path_is_not_narrow_for_ever() {
    let (mut puppet, line) = Puppet::confirmed(config([server_ip(0)]));
    puppet.write(&PATTERN[..1432]);
    let sent = sent_data(&mut puppet);
    assert!(puppet.host.handle_too_big(puppet.now, line.flow.reversed(), sent[0].seq, 1280));
    puppet.pump();
    puppet.confirm(line.acking(1433), 11, 1432);
    for (wait, expected) in [(599, 1280 - 68), (2, 1432)] {
        puppet.wait(Duration::from_secs(wait));
        puppet.take();
        puppet.write(&PATTERN[..1432]);
        let sent = sent_data(&mut puppet);
        assert_eq!(sent[0].payload.len(), expected);
        let end = sent.last().unwrap().seq + sent.last().unwrap().payload.len() as u64;
        let offset = u64::from(end.get().wrapping_sub(line.irs.get()));
        puppet.confirm(line.acking(offset), 11, offset - 1);
    }
}

/// The window has room for a small segment when the path's size grows old, and for no full one: the full one waits.
#[test]
fn a_segment_that_grows_stays_inside_the_window() {
    for under_way in (3000..4800).step_by(100) {
        let (mut puppet, line) = Puppet::confirmed(config([server_ip(0)]));
        puppet.write(&PATTERN[..1432]);
        let sent = sent_data(&mut puppet);
        assert!(puppet.host.handle_too_big(puppet.now, line.flow.reversed(), sent[0].seq, 552));
        puppet.pump();
        puppet.confirm(line.acking(1433), 11, 1432);
        puppet.wait(Duration::from_millis(599_950));
        puppet.take();
        puppet.write(&PATTERN[..under_way]);
        assert!(lengths(&sent_data(&mut puppet)).iter().all(|length| *length <= 484));
        puppet.wait(Duration::from_millis(60));
        puppet.write(&PATTERN[..1432]);
        // In a full segment or not at all: a part of one would be silly.
        assert!(lengths(&sent_data(&mut puppet)).iter().all(|length| *length > 484), "{under_way} under way");
    }
}

/// A device whose MTU falls while connections are open.
#[test]
fn a_device_s_mtu_can_fall() {
    let (mut puppet, line) = Puppet::confirmed(config([server_ip(0)]));
    puppet.write(&PATTERN[..1432]);
    sent_data(&mut puppet);
    puppet.host.set_mtu(puppet.now, server_ip(0), Some(1000));
    puppet.pump();
    assert_eq!(lengths(&sent_data(&mut puppet)), [932, 500]);
    puppet.confirm(line.acking(1433), 11, 1432);
    puppet.syn(MpOption::Capable(MpCapable::OFFER), 3);
    let answer = puppet.take().into_iter().find(|s| s.flags.has(Flags::SYN)).unwrap();
    assert_eq!(answer.options.handshake().mss, Some(960));
}

/// A path that swallows what is larger than `most` without a word.
fn swallowing(most: u64, black_hole_timeouts: Option<u32>) -> (Pair, Rc<RefCell<u32>>) {
    let holes = |config| Config { black_hole_timeouts, ..config };
    let mut pair = Pair::with(holes(config([client_ip(0)])), holes(config([server_ip(0)])));
    let swallowed = Rc::new(RefCell::new(0));
    let count = Rc::clone(&swallowed);
    pair.rule = Box::new(move |_, segment| {
        let passes = segment.wire_length().get() <= most;
        *count.borrow_mut() += u32::from(!passes);
        passes
    });
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(1));
    (pair, swallowed)
}

/// RFC 4821 §7.7: large packets vanish, small ones do not.
#[test]
fn a_black_hole_for_large_packets_is_found_out() {
    for (most, finds) in [(1400, true), (1300, true), (1030, true), (600, true), (1500, false)] {
        let (mut pair, _) = swallowing(most, Some(3));
        pair.write(SERVER, PATTERN);
        pair.run(Duration::from_secs(120));
        assert!(pair.read[CLIENT] == PATTERN, "{most}: {} of {}", pair.read[CLIENT].len(), PATTERN.len());
        assert_eq!(pair.hosts[SERVER].counters().black_holes, u64::from(finds));
    }
    let (mut pair, _) = swallowing(1300, None);
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(120));
    assert!(pair.read[CLIENT].is_empty(), "without it nothing gets through");
}

/// The first data of a client, which carries the keys, may be what vanishes.
#[test]
fn a_black_hole_for_the_first_data_is_found_out() {
    for short_dss in [false, true] {
        let profile = Profile { short_dss, ..config([client_ip(0)]).profile };
        let holes = |ip| Config { black_hole_timeouts: Some(3), profile: profile.clone(), ..config([ip]) };
        let mut pair = Pair::with(holes(client_ip(0)), holes(server_ip(0)));
        pair.rule = Box::new(|_, segment| segment.wire_length().get() <= 1400);
        pair.open();
        pair.write(CLIENT, PATTERN);
        pair.run(Duration::from_secs(120));
        assert!(pair.read[SERVER] == PATTERN, "{short_dss}: {} bytes", pair.read[SERVER].len());
        assert_eq!(pair.hosts[CLIENT].counters().black_holes, 1, "{short_dss}");
    }
}

/// A path that is dead is no black hole for large packets: when it is back, segments are as large as before.
#[test]
fn a_dead_path_keeps_its_size() {
    let (mut pair, _) = swallowing(1500, Some(3));
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_millis(25));
    let largest = Rc::new(RefCell::new(0));
    let seen = Rc::clone(&largest);
    pair.rule = Box::new(|_, _| false);
    pair.run(Duration::from_secs(20));
    pair.rule = Box::new(move |_, segment| {
        let mut seen = seen.borrow_mut();
        *seen = segment.payload.len().max(*seen);
        true
    });
    pair.run(Duration::from_secs(100));
    assert!(pair.read[CLIENT] == PATTERN);
    assert_eq!(*largest.borrow(), 1420);
    assert_eq!(pair.hosts[SERVER].counters().black_holes, 0);
}
