//! Strangers and liars: segments made up, changed, repeated and flooded, into both ends in every state.
//!
//! For all input, nothing panics, every invariant holds, memory stays bounded, and the next honest connection works.

use crate::common::{CLIENT, PATTERN, PORT, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Config, Event, Factory, FastClose, Policies};
use anabranch_policy::registry::{ACK_PATHS, CONGESTION, Entry, FIRST_PATHS, Kind, REINJECTIONS, SCHEDULERS, WINDOWS};
use anabranch_units::{AddressId, Duration, Key, Nonce, Seed, Stream, SubflowSeq, Token};
use anabranch_wire::{
    AddAddr, DataSeq, Dss, Flags, FlowKey, Handshake, JoinAck, JoinSyn, Map, MpCapable, MpOption, RemoveAddr,
    ResetReason, SackBlock, Segment, Timestamps,
};
use bytes::Bytes as Payload;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// Segments seen on the wire, latest last, with the host each was for.
type Seen = Rc<RefCell<Vec<(usize, Segment)>>>;

/// Returns true if the wire leads there.
fn known(flow: &FlowKey, paths: u8) -> bool {
    (0..paths).any(|path| [flow.src, flow.dst].contains(&client_ip(path)))
}

fn number(chance: &mut Stream) -> u64 {
    match chance.below(6) {
        0 => 0,
        1 => u64::MAX,
        2 => chance.below(4),
        3 => 65_530 + chance.below(8),
        4 => 1 << chance.below(64),
        _ => chance.next_u64(),
    }
}

/// A step to somewhere: usually near, where it hurts.
fn near(chance: &mut Stream, raw: u32) -> u32 {
    match chance.below(5) {
        0 => raw.wrapping_add(1),
        1 => raw.wrapping_sub(1),
        2 => raw.wrapping_add(chance.below(100_000) as u32),
        3 => raw.wrapping_sub(chance.below(100_000) as u32),
        _ => number(chance) as u32,
    }
}

fn data_seq(chance: &mut Stream, seq: DataSeq) -> DataSeq {
    match (seq, chance.below(2)) {
        (DataSeq::Long(dsn), 0) => DataSeq::Short(near(chance, dsn.low())),
        (DataSeq::Long(dsn), _) => DataSeq::Long(dsn + u64::from(near(chance, 0)) + (number(chance) << 40)),
        (DataSeq::Short(low), _) => DataSeq::Short(near(chance, low)),
    }
}

fn any_option(chance: &mut Stream) -> MpOption {
    let backup = chance.chance(0.5);
    let address = AddressId(chance.below(4) as u8);
    match chance.below(9) {
        0 => MpOption::Capable(MpCapable {
            version: chance.below(3) as u8,
            checksum_required: chance.chance(0.2),
            extensibility: chance.chance(0.2),
            no_join_to_source: backup,
            other_flags: 0,
            hmac_sha256: chance.chance(0.8),
            sender_key: chance.chance(0.5).then(|| Key::new(chance.next_u64())),
            receiver_key: chance.chance(0.5).then(|| Key::new(chance.next_u64())),
            data: chance.chance(0.5).then(|| (number(chance) as u16, None)),
        }),
        1 => MpOption::JoinSyn(JoinSyn { backup, address, token: Token(chance.next_u32()), nonce: Nonce(7) }),
        2 => MpOption::JoinAck(JoinAck { hmac: [chance.below(256) as u8; 20] }),
        3 => MpOption::AddAddr(AddAddr {
            id: address,
            address: server_ip(chance.below(4) as u8),
            port: backup.then_some(81),
            hmac: chance.chance(0.7).then_some([1; 8]),
        }),
        4 => MpOption::RemoveAddr(RemoveAddr { ids: (0..8).map(AddressId).collect() }),
        5 => MpOption::Prio { backup },
        6 => MpOption::FastClose { receiver_key: Key::new(chance.next_u64()) },
        7 => MpOption::Fail { dsn: anabranch_units::Dsn::new(chance.next_u64()) },
        _ => MpOption::TcpReset { transient: backup, reason: ResetReason::Middlebox },
    }
}

/// One lie.
fn lie(chance: &mut Stream, segment: &mut Segment) {
    match chance.below(16) {
        0 => segment.seq = SubflowSeq::new(near(chance, segment.seq.get())),
        1 => segment.ack = SubflowSeq::new(near(chance, segment.ack.get())),
        2 => segment.window = number(chance) as u16,
        3 => {
            let start = near(chance, segment.ack.get());
            let end = start.wrapping_add(number(chance) as u32);
            segment.options.push_sack(SackBlock { start: SubflowSeq::new(start), end: SubflowSeq::new(end) });
        }
        4..=6 => {
            let mut dss = segment.options.dss().unwrap_or_default();
            if let Some(map) = &mut dss.map {
                match chance.below(4) {
                    3 => map.checksum = map.checksum.map(|sum| sum ^ 1).filter(|_| chance.chance(0.7)),
                    0 => map.dsn = data_seq(chance, map.dsn),
                    1 => map.subflow_seq = near(chance, map.subflow_seq),
                    _ => map.length = number(chance) as u16,
                }
            } else {
                let dsn = dss.data_ack.unwrap_or(DataSeq::Short(0));
                let dsn = data_seq(chance, dsn);
                let subflow_seq = chance.below(70_000) as u32;
                dss.map = Some(Map { dsn, subflow_seq, length: number(chance) as u16, checksum: None });
            }
            segment.options.set_dss(Some(dss));
        }
        7 => {
            let mut dss = segment.options.dss().unwrap_or_default();
            dss.data_fin ^= true;
            if let (Some(map), true) = (&mut dss.map, chance.chance(0.5)) {
                map.length = chance.below(2) as u16;
            }
            segment.options.set_dss(Some(dss));
        }
        8 => {
            let mut dss = segment.options.dss().unwrap_or_default();
            let ack = dss.data_ack.unwrap_or(DataSeq::Short(0));
            dss.data_ack = Some(data_seq(chance, ack));
            segment.options.set_dss(Some(dss));
        }
        9 => segment.payload = segment.payload.slice(..segment.payload.len() / 2),
        10 => segment.payload = Payload::from_static(&PATTERN[..1 + (number(chance) % 3000) as usize]).into(),
        11 => {
            let flag = [Flags::FIN, Flags::SYN, Flags::RST, Flags::ACK, Flags::URG, Flags(0xff)];
            segment.flags = Flags(segment.flags.0 ^ flag[chance.below(6) as usize].0);
        }
        12 => segment.options.push_mptcp(any_option(chance)),
        13 => segment.options.strip_mptcp(),
        14 => {
            let (value, echo) = (number(chance) as u32, number(chance) as u32);
            segment.options.set_timestamps(chance.chance(0.8).then_some(Timestamps { value, echo }));
        }
        _ => {
            *segment.options.handshake_mut() = Handshake {
                mss: chance.chance(0.7).then(|| number(chance) as u16),
                window_scale: chance.chance(0.7).then(|| number(chance) as u8),
                sack_permitted: chance.chance(0.5),
            };
        }
    }
}

/// A segment out of nothing, for an address and a port that exist.
fn stranger(chance: &mut Stream, to: usize) -> Segment {
    let client = SocketAddr::new(client_ip(chance.below(2) as u8), 49152 + chance.below(4) as u16);
    let server = SocketAddr::new(server_ip(0), PORT + chance.below(2) as u16);
    let flow = if to == SERVER { FlowKey::new(client, server) } else { FlowKey::new(server, client) };
    let flags = Flags(chance.next_u32() as u8);
    let mut segment = Segment::new(flow, flags, SubflowSeq::new(chance.next_u32()), SubflowSeq::new(chance.next_u32()));
    segment.window = number(chance) as u16;
    for _ in 0..chance.below(6) {
        lie(chance, &mut segment);
    }
    segment
}

fn assert_sound(pair: &Pair, seed: u64) {
    for host in &pair.hosts {
        if let Err(fault) = host.check(pair.now) {
            panic!("seed {seed} at {}: {fault}", pair.now);
        }
    }
}

/// Plays an honest connection on the same two endpoints, after all that happened to them before.
fn honest(pair: &mut Pair, paths: u8, seed: u64) {
    pair.rule = Box::new(move |_, segment| known(&segment.flow, paths));
    for host in [CLIENT, SERVER] {
        if let Some(id) = pair.id[host].take() {
            pair.hosts[host].abort(pair.now, id);
        }
    }
    pair.run(Duration::from_secs(400));
    pair.id = [None, None];
    for host in [CLIENT, SERVER] {
        pair.events[host].clear();
        pair.read[host].clear();
        pair.pending[host].clear();
    }
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.read[SERVER], b"GET", "seed {seed}: {:?}", pair.events);
    pair.write(SERVER, &PATTERN[..5000]);
    pair.run(Duration::from_secs(5));
    pair.shutdown(SERVER);
    pair.shutdown(CLIENT);
    pair.run(Duration::from_secs(120));
    assert!(pair.read[CLIENT] == PATTERN[..5000], "seed {seed}: {:?}", pair.events);
    for host in [CLIENT, SERVER] {
        assert!(pair.has(host, |event| *event == Event::Closed), "seed {seed}: {:?}", pair.events[host]);
    }
}

fn any<T: Kind + ?Sized>(chance: &mut Stream, table: &'static [Entry<T>]) -> Factory<T> {
    let entry = &table[chance.below(table.len() as u64) as usize];
    Arc::new(move || entry.build_default())
}

fn hosts(chance: &mut Stream) -> (Config, Config) {
    let mut client = config((0..1 + chance.below(2) as u8).map(client_ip));
    let mut server = config((0..1 + chance.below(2) as u8).map(server_ip));
    for host in [&mut client, &mut server] {
        host.profile.timestamps = chance.chance(0.5);
        host.profile.sack = chance.chance(0.8);
        host.profile.window_scaling = chance.chance(0.8);
        host.multipath = chance.chance(0.9);
        host.receive_buffer = crate::common::buffer(20_000 + chance.below(100_000));
        host.close_timeout = Duration::from_secs(20);
        host.max_half_open = 16;
        host.checksum = chance.chance(0.3);
        host.fast_close = if chance.chance(0.3) { FastClose::Ack } else { FastClose::Rst };
        host.deny_join_to_initial = chance.chance(0.1);
    }
    // ACKs on other paths, probes and policies of every kind, for half of the pairs.
    if chance.chance(0.5) {
        for host in [&mut client, &mut server] {
            host.ack_rewrite = chance.chance(0.9);
            host.initial_receive_buffer = chance.chance(0.3).then_some(crate::common::buffer(1 + chance.below(20_000)));
            host.policies = Policies {
                scheduler: any(chance, SCHEDULERS),
                congestion: any(chance, CONGESTION),
                receive_window: any(chance, WINDOWS),
                ack_path: any(chance, ACK_PATHS),
                reinjection: any(chance, REINJECTIONS),
                first_path: any(chance, FIRST_PATHS),
            };
        }
    }
    (client, server)
}

/// A changed copy of something seen, or a stranger's segment, and the host that it is for.
fn injected(chance: &mut Stream, seen: &Seen) -> (usize, Segment) {
    let copied = {
        let seen = seen.borrow();
        let at = chance.below(seen.len().max(1) as u64) as usize;
        seen.get(at).cloned().filter(|_| chance.chance(0.85))
    };
    let Some((to, mut segment)) = copied else {
        let to = chance.below(2) as usize;
        return (to, stranger(chance, to));
    };
    for _ in 0..chance.below(4) {
        lie(chance, &mut segment);
    }
    (to, segment)
}

/// Half of what is injected is a changed copy of something genuine, seconds old at most; some of the genuine segments
/// are changed on their way as well.
#[test]
fn survives_lies_in_every_state() {
    let seeds: u64 = std::env::var("HOSTILE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    let first: u64 = std::env::var("HOSTILE_FIRST").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    for seed in first..first + seeds {
        let mut chance = Seed(seed).stream("hostile");
        let (client, server) = hosts(&mut chance);
        let paths = client.addresses.len() as u8;
        let mut pair = Pair::seeded(seed, client, server);
        let seen = Seen::default();
        let on_the_way = if chance.chance(0.5) { 0.02 } else { 0.0 };
        let log = seen.clone();
        let mut liar = Seed(seed).stream("on the way");
        pair.rule = Box::new(move |from, segment| {
            let mut log = log.borrow_mut();
            if log.len() > 200 {
                log.drain(..100);
            }
            log.push((1 - from, segment.clone()));
            let ok = segment.flow;
            while liar.chance(on_the_way) {
                lie(&mut liar, segment);
            }
            segment.flow = ok;
            known(&segment.flow, paths)
        });
        pair.open();
        pair.write(CLIENT, b"GET");
        for step in 0..60 {
            for _ in 0..chance.below(4) {
                let (to, mut segment) = injected(&mut chance, &seen);
                pair.hosts[to].handle_segment(pair.now, &mut segment);
                if chance.chance(0.5) {
                    pair.run(Duration::ZERO);
                }
            }
            if step == 10 {
                pair.write(SERVER, &PATTERN[..60_000]);
            }
            if step == 30 {
                for host in [CLIENT, SERVER] {
                    if let Some(id) = pair.id[host] {
                        pair.hosts[host].shutdown(id);
                    }
                }
            }
            pair.run(Duration::from_millis(chance.below(30)));
            assert_sound(&pair, seed);
        }
        honest(&mut pair, paths, seed);
    }
}

/// Opens a connection, moves a request, and settles.
fn connected(pair: &mut Pair) {
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.read[SERVER], b"GET");
}

#[test]
fn a_server_that_lost_all_subflows_lives_on_after_a_join() {
    let mut pair = Pair::new(2);
    let seen = Seen::default();
    let log = seen.clone();
    pair.rule = Box::new(move |from, segment| {
        log.borrow_mut().push((1 - from, segment.clone()));
        true
    });
    connected(&mut pair);
    // Both subflows are reset at both ends, exactly in sequence.
    for path in 0..2 {
        for to in [CLIENT, SERVER] {
            let mut reset = {
                let seen = seen.borrow();
                let on_path = |s: &Segment| [s.flow.src, s.flow.dst].contains(&client_ip(path));
                seen.iter().rev().find(|(host, s)| *host == to && on_path(s)).unwrap().1.clone()
            };
            reset.seq = reset.seq + reset.sequence_length();
            reset.flags = Flags::RST;
            reset.payload = Default::default();
            pair.hosts[to].handle_segment(pair.now, &mut reset);
        }
    }
    // The client joins again; long after the server would have given up, the connection still exists.
    pair.run(Duration::from_secs(200));
    assert_eq!(pair.hosts[SERVER].connection_count(), 1, "{:?}", pair.events[SERVER]);
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(20));
    assert!(pair.read[CLIENT] == PATTERN);
}

#[test]
fn a_peer_that_never_sends_its_fin_does_not_hold_the_connection() {
    let mut pair = Pair::new(2);
    pair.rule = Box::new(|from, segment| from != CLIENT || !segment.flags.has(Flags::FIN));
    connected(&mut pair);
    pair.shutdown(SERVER);
    pair.shutdown(CLIENT);
    pair.run(Duration::from_secs(5));
    // Later not even a RST comes.
    pair.rule = Box::new(|from, _| from != CLIENT);
    assert!(pair.run(Duration::from_secs(100)), "all timers end");
    assert_eq!(pair.hosts[SERVER].connection_count(), 0, "{:?}", pair.events[SERVER]);
    assert!(pair.has(SERVER, |event| *event == Event::Closed));
}

#[test]
fn what_was_not_read_outlives_the_close() {
    for multipath in [true, false] {
        let mut client = config([client_ip(0)]);
        client.multipath = multipath;
        let mut pair = Pair::with(client, config([server_ip(0)]));
        connected(&mut pair);
        pair.deaf[CLIENT] = true;
        pair.write(SERVER, &PATTERN[..20_000]);
        pair.run(Duration::from_secs(1));
        pair.shutdown(SERVER);
        pair.shutdown(CLIENT);
        assert!(pair.run(Duration::from_secs(100)), "all timers end");
        assert_eq!(pair.hosts[SERVER].connection_count(), 0);
        assert!(!pair.has(CLIENT, |event| *event == Event::Closed), "not before it was read");
        pair.deaf[CLIENT] = false;
        pair.run(Duration::from_secs(1));
        assert!(pair.read[CLIENT] == PATTERN[..20_000], "{} bytes", pair.read[CLIENT].len());
        assert!(pair.has(CLIENT, |event| *event == Event::PeerFinished));
        assert!(pair.has(CLIENT, |event| *event == Event::Closed));
        assert_eq!(pair.hosts[CLIENT].connection_count(), 0);
    }
}

#[test]
fn a_data_fin_that_nobody_answers_is_given_up() {
    let mut pair = Pair::new(1);
    connected(&mut pair);
    pair.rule = Box::new(|_, _| false);
    pair.shutdown(CLIENT);
    assert!(pair.run(Duration::from_secs(3600)), "all timers end");
    assert_eq!(pair.hosts[CLIENT].connection_count(), 0);
    assert!(pair.has(CLIENT, |event| *event == Event::Reset));
}

/// The window closes on both subflows; then a path dies, and with it perhaps the news that the window is open again.
#[test]
fn a_closed_window_is_probed_on_every_path() {
    for dead in [0, 1] {
        let mut client = config((0..2).map(client_ip));
        client.receive_buffer = crate::common::buffer(30_000);
        let mut pair = Pair::with(client, config([server_ip(0)]));
        connected(&mut pair);
        pair.deaf[CLIENT] = true;
        pair.write(SERVER, PATTERN);
        pair.run(Duration::from_secs(5));
        pair.rule = Box::new(move |_, segment| ![segment.flow.src, segment.flow.dst].contains(&client_ip(dead)));
        pair.deaf[CLIENT] = false;
        pair.run(Duration::from_secs(300));
        assert!(pair.read[CLIENT] == PATTERN, "without path {dead}: {} bytes", pair.read[CLIENT].len());
    }
}

/// A blind attacker may know the addresses and ports, and roughly the current sequence numbers.
#[test]
fn blind_segments_do_not_disturb() {
    let mut pair = Pair::new(1);
    let seen = Seen::default();
    let log = seen.clone();
    pair.rule = Box::new(move |from, segment| {
        log.borrow_mut().push((1 - from, segment.clone()));
        true
    });
    connected(&mut pair);
    pair.write(SERVER, PATTERN);
    let mut chance = Seed(3).stream("blind");
    for round in 0..400 {
        for to in [CLIENT, SERVER] {
            let latest = seen.borrow().iter().rev().find(|(host, _)| *host == to).unwrap().1.clone();
            let timestamps = latest.options.timestamps();
            let dss = latest.options.dss();
            let next = latest.seq + latest.sequence_length();
            let make = |flags: Flags, seq: SubflowSeq, ack: SubflowSeq| {
                let mut segment = Segment::new(latest.flow, flags, seq, ack);
                segment.options.set_timestamps(timestamps.map(|t| Timestamps { value: t.value + 1_000_000, ..t }));
                segment
            };
            let ahead = next + 1 + chance.below(20_000);
            // In the window, but not the next number (RFC 5961 §3.2, §4.2).
            pair.hosts[to].handle_segment(pair.now, &mut make(Flags::RST, ahead, latest.ack));
            pair.hosts[to].handle_segment(pair.now, &mut make(Flags::SYN, ahead, latest.ack));
            // In the window, with an implausible acknowledgment (§5.2).
            let mut data = make(Flags::ACK, ahead, latest.ack + ((3 << 30) - chance.below(1 << 29)));
            data.payload = Payload::from_static(b"all your base are belong to us").into();
            data.options.set_dss(dss);
            pair.hosts[to].handle_segment(pair.now, &mut data.clone());
            data.seq = next;
            pair.hosts[to].handle_segment(pair.now, &mut data.clone());
            // Anywhere, guessing at what may be DATA_ACKed.
            data.seq = next + ((1 << 32) - chance.below(1 << 30) - (1 << 20));
            if let Some(DataSeq::Long(dsn)) = dss.and_then(|dss| dss.data_ack) {
                data.options
                    .set_dss(Some(Dss { data_ack: Some(DataSeq::Long(dsn + chance.below(20_000))), ..Dss::default() }));
            }
            data.options.set_timestamps(timestamps);
            pair.hosts[to].handle_segment(pair.now, &mut data.clone());
            data.ack = latest.ack;
            pair.hosts[to].handle_segment(pair.now, &mut data);
        }
        pair.run(Duration::from_millis(3));
        assert_sound(&pair, round);
    }
    pair.rule = Box::new(|_, _| true);
    pair.shutdown(SERVER);
    pair.shutdown(CLIENT);
    assert!(pair.run(Duration::from_secs(200)));
    assert!(pair.read[CLIENT] == PATTERN, "{} bytes", pair.read[CLIENT].len());
    assert!(pair.has(CLIENT, |event| *event == Event::Closed) && pair.has(SERVER, |event| *event == Event::Closed));
}

fn syn(from: SocketAddr, join: Option<JoinSyn>, chance: &mut Stream) -> Segment {
    let flow = FlowKey::new(from, SocketAddr::new(server_ip(0), PORT));
    let mut syn = Segment::new(flow, Flags::SYN, SubflowSeq::new(chance.next_u32()), SubflowSeq::new(0));
    syn.window = 1000;
    if let Some(join) = join {
        syn.options.push_mptcp(MpOption::JoinSyn(join));
    }
    syn
}

#[test]
fn a_flood_of_syns_leaves_nothing_behind() {
    let mut pair = Pair::new(1);
    let mut chance = Seed(5).stream("flood");
    for burst in 0..3u16 {
        for i in 0..5000 {
            let from = SocketAddr::new(client_ip(0), 1024 + i + burst);
            pair.hosts[SERVER].handle_segment(pair.now, &mut syn(from, None, &mut chance));
        }
        assert!(pair.hosts[SERVER].connection_count() <= 1024);
        while pair.hosts[SERVER].poll_transmit(pair.now).is_some() {}
        // The SYN/ACKs stay unanswered.
        pair.rule = Box::new(|_, _| false);
        pair.run(Duration::from_secs(1000));
        pair.rule = Box::new(|_, _| true);
        assert_eq!(pair.hosts[SERVER].connection_count(), 0);
    }
    assert!(
        pair.events[SERVER].iter().all(|event| matches!(event, Event::Fallback(_))),
        "the application heard nothing"
    );
    assert!(pair.id[SERVER].is_none_or(|id| pair.hosts[SERVER].connection_stats(id).is_none()), "no statistics stay");
    honest(&mut pair, 1, 0);
}

/// More joins than there are numbers for subflows, each reset at once.
#[test]
fn a_flood_of_joins_leaves_the_connection_alone() {
    let mut pair = Pair::new(1);
    let key = Rc::new(RefCell::new(None));
    let heard = key.clone();
    pair.rule = Box::new(move |from, segment| {
        for option in segment.options.mptcp() {
            if let (MpOption::Capable(capable), SERVER) = (option, from) {
                *heard.borrow_mut() = capable.sender_key;
            }
        }
        true
    });
    connected(&mut pair);
    let key: Key = key.borrow().unwrap();
    let mut chance = Seed(5).stream("flood");
    for i in 0..70_000u32 {
        let token = if i % 8 == 7 { Token(i) } else { key.token() };
        let join = JoinSyn { backup: false, address: AddressId(9), token, nonce: Nonce(i) };
        let from = SocketAddr::new(client_ip(7), 1024 + (i % 50_000) as u16);
        let mut syn = syn(from, Some(join), &mut chance);
        let (flow, seq) = (syn.flow, syn.seq + 1);
        pair.hosts[SERVER].handle_segment(pair.now, &mut syn);
        pair.hosts[SERVER].handle_segment(pair.now, &mut Segment::new(flow, Flags::RST, seq, SubflowSeq::new(0)));
        while pair.hosts[SERVER].poll_transmit(pair.now).is_some() {}
        while pair.hosts[SERVER].poll_event().is_some() {}
    }
    assert_eq!(pair.hosts[SERVER].subflow_stats(pair.id[SERVER].unwrap()).len(), 1);
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(20));
    assert!(pair.read[CLIENT] == PATTERN);
    honest(&mut pair, 1, 0);
}

/// A TCP that probes a closed window with a byte of data (RFC 9293 §3.8.6.1) must not lose that byte.
#[test]
fn plain_tcp_keeps_the_byte_of_a_window_probe() {
    let mut client = config([client_ip(0)]);
    client.multipath = false;
    client.receive_buffer = crate::common::buffer(30_000);
    let mut pair = Pair::with(client, config([server_ip(0)]));
    let seen = Seen::default();
    let log = seen.clone();
    pair.rule = Box::new(move |from, segment| {
        log.borrow_mut().push((1 - from, segment.clone()));
        true
    });
    connected(&mut pair);
    pair.deaf[CLIENT] = true;
    pair.write(SERVER, &PATTERN[..60_000]);
    pair.run(Duration::from_secs(3));
    let last = |to: usize| seen.borrow().iter().rev().find(|(host, _)| *host == to).unwrap().1.clone();
    let mut probe = last(CLIENT);
    probe.seq = last(SERVER).ack;
    probe.payload = Payload::from_static(&PATTERN[30_000..30_001]).into();
    pair.hosts[CLIENT].handle_segment(pair.now, &mut probe.clone());
    pair.run(Duration::ZERO);
    assert_eq!(last(SERVER).ack, probe.seq, "not acknowledged, since it was not taken");
    pair.deaf[CLIENT] = false;
    pair.run(Duration::from_secs(60));
    assert!(pair.read[CLIENT] == PATTERN[..60_000], "{} bytes", pair.read[CLIENT].len());
}

/// A peer that repeats data on the same subflow is ahead there of where its stream is, and plain TCP would misplace
/// bytes.
#[test]
fn no_fallback_once_the_two_levels_are_out_of_step() {
    let mut pair = Pair::new(1);
    let seen = Seen::default();
    let log = seen.clone();
    pair.rule = Box::new(move |from, segment| {
        log.borrow_mut().push((1 - from, segment.clone()));
        true
    });
    connected(&mut pair);
    pair.write(SERVER, &PATTERN[..1000]);
    pair.run(Duration::from_secs(2));
    let data = seen.borrow().iter().rev().find(|(to, s)| *to == CLIENT && !s.payload.is_empty()).unwrap().1.clone();
    // The same data again under new subflow sequence numbers, then bytes without options.
    let mut again = data.clone();
    again.seq = data.seq + 1000;
    let mut dss = again.options.dss().unwrap();
    dss.map.as_mut().unwrap().subflow_seq += 1000;
    again.options.set_dss(Some(dss));
    let mut bare = data.clone();
    bare.seq = again.seq + 1000;
    bare.options.strip_mptcp();
    pair.hosts[CLIENT].handle_segment(pair.now, &mut again);
    pair.hosts[CLIENT].handle_segment(pair.now, &mut bare);
    pair.run(Duration::from_secs(2));
    assert!(!pair.has(CLIENT, |event| matches!(event, Event::Fallback(_))), "{:?}", pair.events[CLIENT]);
    assert!(pair.has(CLIENT, |event| matches!(event, Event::SubflowClosed(_))), "{:?}", pair.events[CLIENT]);
}

/// The dynamic ports have come round: a join must not take the port of an older connection's subflow.
#[test]
fn a_join_leaves_the_ports_of_others_alone() {
    let mut pair = Pair::new(2);
    let remote = SocketAddr::new(server_ip(0), PORT);
    let old = pair.hosts[CLIENT].open(pair.now, client_ip(1), remote).unwrap();
    pair.id[CLIENT] = Some(old);
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(2));
    let flows = pair.hosts[CLIENT].subflow_stats(old);
    assert_eq!((flows.len(), flows[0].local), (2, SocketAddr::new(client_ip(1), 49152)));
    for _ in 49154..65535 {
        let id = pair.hosts[CLIENT].open(pair.now, client_ip(0), remote).unwrap();
        pair.hosts[CLIENT].abort(pair.now, id);
        while pair.hosts[CLIENT].poll_transmit(pair.now).is_some() {}
        while pair.hosts[CLIENT].poll_event().is_some() {}
    }
    pair.id = [None, None];
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.hosts[SERVER].counters().resets_received, 0, "no SYN arrived in the middle of a connection");
    assert_eq!(pair.hosts[CLIENT].subflow_stats(pair.id[CLIENT].unwrap()).len(), 2);
}
