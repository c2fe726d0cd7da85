//! Requirements of RFC 8684 that other tests do not cover. Each names its id in docs/conformance.md.

use crate::common::puppet::{KEY, Line, Puppet, handshake};
use crate::common::{PATTERN, PORT, client_ip, config, server_ip};
use anabranch_engine::{Config, Event, FallbackReason};
use anabranch_units::{AddressId, Dsn, Duration, Key, SubflowId, add_addr_hmac};
use anabranch_wire::{AddAddr, Dss, Flags, MpCapable, MpOption, RemoveAddr, Segment};
use bytes::Bytes as Payload;
use std::net::SocketAddr;

fn server() -> Config {
    config([server_ip(0)])
}

fn client(addresses: u8) -> Config {
    let mut config = config((0..addresses).map(client_ip));
    config.rejoin = None;
    config
}

/// A server with data received on its initial subflow, so that options are known to get through.
fn confirmed() -> (Puppet, Line) {
    let (mut puppet, line) = Puppet::accepted(server());
    let map = puppet.map(1, 0, 10);
    puppet.data(line, 1, &PATTERN[..10], Some(map));
    puppet.take();
    (puppet, line)
}

/// The same with a second subflow that has been used as well.
fn two() -> (Puppet, Line, Line) {
    let (mut puppet, line) = confirmed();
    let second = puppet.join(1);
    puppet.confirm(second, 1, 0);
    puppet.take();
    (puppet, line, second)
}

fn carrying(out: &[Segment], line: Line) -> impl Iterator<Item = &Segment> {
    out.iter().filter(move |s| line.carries(s) && !s.payload.is_empty())
}

/// 3-1, 3.4.1-8, 4-1: an MPTCP option other than DSS on a duplicate ACK makes it no sign of congestion; without one it
/// is.
#[test]
fn duplicate_acks_with_options_are_no_sign_of_loss() {
    for option in [
        None,
        Some(MpOption::Prio { backup: false }),
        Some(MpOption::RemoveAddr(RemoveAddr { ids: vec![AddressId(9)] })),
    ] {
        let (mut puppet, line) = confirmed();
        puppet.write(&PATTERN[..10_000]);
        puppet.take();
        let ack = puppet.data_ack(0);
        for _ in 0..5 {
            puppet.send(line.ack(11), |s| {
                s.options.set_dss(Some(ack));
                option.iter().for_each(|option| s.options.push_mptcp(option.clone()));
            });
        }
        let repeated = puppet.take().iter().any(|s| s.seq == line.irs + 1 && !s.payload.is_empty());
        assert_eq!(repeated, option.is_none(), "{option:?}");
    }
}

/// 3-2, 3.4.1-1, 3.4.2-1: a segment whose sequence or acknowledgment number cannot be is not read for MPTCP options.
#[test]
fn options_outside_the_window_are_not_read() {
    for (what, seq, ack) in [("sequence number", 50_000_000, 1), ("acknowledgment", 11, 5_000_000)] {
        let (mut puppet, line, second) = two();
        puppet.write(&PATTERN[..1000]);
        let holder = if puppet.take().iter().any(|s| line.carries(s) && !s.payload.is_empty()) { line } else { second };
        assert_eq!(holder.flow, line.flow, "the lower number breaks the tie");
        let theirs = puppet.theirs.unwrap();
        let hmac = Some(add_addr_hmac(KEY, theirs, AddressId(7), client_ip(5), None).last_8());
        let all = [
            MpOption::FastClose { receiver_key: theirs },
            MpOption::AddAddr(AddAddr { id: AddressId(7), address: client_ip(5), port: None, hmac }),
            MpOption::RemoveAddr(RemoveAddr { ids: vec![AddressId(1)] }),
            MpOption::Prio { backup: true },
            MpOption::Fail { dsn: Dsn::new(1) },
        ];
        for option in all {
            puppet.send(line.acking(ack).ack(seq), |s| s.options.push_mptcp(option));
        }
        let acked = puppet.data_ack(1000);
        puppet.send(line.acking(ack).ack(seq), |s| s.options.set_dss(Some(acked)));
        let out = puppet.take();
        assert!(out.iter().all(|s| line.carries(s) && s.flags == Flags::ACK && s.options.mptcp().is_empty()), "{what}");
        assert!(!puppet.has(|event| matches!(event, Event::Reset | Event::SubflowClosed(_) | Event::Fallback(_))));
        assert_eq!(puppet.host.connection_stats(puppet.id.unwrap()).unwrap().data_acked, 0, "{what}");
        puppet.write(&PATTERN[1000..1100]);
        puppet.wait(Duration::from_millis(10));
        assert_eq!(carrying(&puppet.take(), second).count(), 0, "the priority is as it was: {what}");
    }
}

/// 3.1-6, 3.7-10: after a failed handshake no segment has MPTCP options, even if the peer goes on to send them.
#[test]
fn nothing_of_mptcp_follows_a_failed_handshake() {
    for answer in [
        MpCapable { version: 0, ..MpCapable::OFFER },
        MpCapable { extensibility: true, ..MpCapable::OFFER },
        MpCapable { hmac_sha256: false, ..MpCapable::OFFER },
    ] {
        let (mut puppet, line) = Puppet::connected(client(2), answer);
        puppet.theirs = Some(Key::new(1));
        let map = puppet.map(1, 0, 10);
        puppet.data(line, 1, &PATTERN[..10], Some(map));
        let keys = puppet.keys(None);
        puppet.send(line.ack(11), |s| s.options.push_mptcp(MpOption::Capable(keys)));
        puppet.write(&PATTERN[..5000]);
        puppet.wait(Duration::from_secs(2));
        let out = puppet.take();
        assert!(out.iter().all(|s| !s.options.has_mptcp()), "{out:#?}");
        assert!(out.iter().any(|s| !s.payload.is_empty()) && puppet.read == PATTERN[..10]);
        assert!(puppet.has(|event| *event == Event::Connected { multipath: false }));
    }
}

/// 3.7-10: nor after options have been lost in mid-connection; DSS that come later change nothing, and joins are
/// refused.
#[test]
fn a_fallback_is_for_good() {
    let (mut puppet, line) = Puppet::accepted(server());
    puppet.data(line, 1, &PATTERN[..10], None);
    assert!(puppet.has(|event| *event == Event::Fallback(FallbackReason::FirstData)));
    puppet.write(&PATTERN[..100]);
    // The infinite mapping goes with the first data, if at all.
    puppet.send(line.acking(101).ack(11), |_| {});
    puppet.take();
    let map = puppet.map(11, 10, 10);
    let ack = puppet.data_ack(100).data_ack;
    puppet.data(line.acking(101), 11, &PATTERN[10..20], Some(Dss { data_ack: ack, ..map }));
    puppet.write(&PATTERN[100..5000]);
    puppet.wait(Duration::from_secs(1));
    let out = puppet.take();
    assert!(out.iter().any(|s| !s.payload.is_empty()));
    assert!(out.iter().all(|s| !s.options.has_mptcp()), "{out:#?}");
    assert!(puppet.read == PATTERN[..20]);
}

/// 3.1-7: no subflow is opened before a DSS has been received from a peer that answers; acknowledgments and other
/// options are not enough.
#[test]
fn no_subflow_before_a_dss() {
    let (mut puppet, line) = Puppet::connected(client(2), MpCapable::OFFER);
    let joins = |puppet: &mut Puppet| puppet.take().iter().filter(|s| s.flags == Flags::SYN).count();
    for _ in 0..20 {
        puppet.send(line.ack(1), |_| {});
        puppet.send(line.ack(1), |s| s.options.push_mptcp(MpOption::Prio { backup: false }));
        puppet.wait(Duration::from_millis(50));
    }
    assert_eq!(joins(&mut puppet), 0);
    puppet.confirm(line, 1, 0);
    assert_eq!(joins(&mut puppet), 1);
}

/// 3.3.2-3: the window of a segment without DATA_ACK says nothing of the connection's.
#[test]
fn a_window_without_data_ack_is_the_subflows_alone() {
    let (mut puppet, line) = Puppet::accepted(server());
    let ack = puppet.data_ack(0);
    let map = Dss { data_ack: ack.data_ack, ..puppet.map(1, 0, 10) };
    puppet.send(line.ack(1), |s| {
        s.payload = Payload::from_static(&PATTERN[..10]).into();
        s.options.set_dss(Some(map));
        s.window = 500;
    });
    puppet.take();
    // The third ACK's window was the first to count, so it is used up before.
    puppet.write(PATTERN);
    let sent: usize = puppet.take().iter().map(|s| s.payload.len()).sum();
    let window = u64::from(crate::common::puppet::WINDOW);
    assert!(sent > 0 && sent as u64 <= window);
    let mut line = line;
    let mut told = sent as u64;
    while told < window {
        line = line.acking(told + 1);
        let ack = puppet.data_ack(told);
        let left = (window - told) as u16;
        puppet.send(line.ack(11), |s| {
            s.options.set_dss(Some(ack));
            s.window = left;
        });
        told += puppet.take().iter().map(|s| s.payload.len() as u64).sum::<u64>();
    }
    assert_eq!(told, window);
    let ack = puppet.data_ack(window);
    puppet.send(line.acking(window + 1).ack(11), |s| {
        s.options.set_dss(Some(ack));
        s.window = 0;
    });
    // A bare ACK, on this subflow, with the window wide open.
    puppet.send(line.acking(window + 1).ack(11), |_| {});
    assert!(puppet.take().iter().all(|s| s.payload.is_empty()));
    puppet.send(line.acking(window + 1).ack(11), |s| s.options.set_dss(Some(ack)));
    assert!(puppet.take().iter().any(|s| !s.payload.is_empty()));
}

/// 3.3.5-1: each subflow also keeps to the window that was told on it.
#[test]
fn a_subflow_keeps_to_its_own_window() {
    let (mut puppet, line, second) = two();
    // A smaller one never takes back what was told before, so the second subflow is a third one with 100 bytes from the
    // start.
    puppet.send(second.ack(1), |s| s.flags = Flags::RST);
    let join = anabranch_wire::JoinSyn {
        backup: false,
        address: AddressId(2),
        token: puppet.theirs.unwrap().token(),
        nonce: anabranch_units::Nonce(3),
    };
    let flow = anabranch_wire::FlowKey::new(SocketAddr::new(client_ip(2), 4000), SocketAddr::new(server_ip(0), PORT));
    let zero = anabranch_units::SubflowSeq::new(0);
    let mut syn = Segment::new(flow, Flags::SYN, anabranch_units::SubflowSeq::new(1000), zero);
    syn.window = 100;
    *syn.options.handshake_mut() = handshake();
    syn.options.push_mptcp(MpOption::JoinSyn(join));
    puppet.take();
    puppet.deliver(syn);
    let theirs = puppet.out.iter().flat_map(|s| s.options.mptcp()).find_map(|option| match option {
        MpOption::JoinSynAck(answer) => Some(answer.nonce),
        _ => None,
    });
    let third = puppet.answered(Line { flow, irs: zero, ack: 1 });
    let hmac = anabranch_units::join_hmac(KEY, puppet.theirs.unwrap(), join.nonce, theirs.unwrap()).first_20();
    let small = |s: &mut Segment| s.window = 100;
    puppet.send(third.ack(1), |s| {
        s.options.push_mptcp(MpOption::JoinAck(anabranch_wire::JoinAck { hmac }));
        small(s);
    });
    let ack = puppet.data_ack(0);
    puppet.send(third.ack(1), |s| {
        s.options.set_dss(Some(ack));
        small(s);
    });
    puppet.take();
    // The first subflow is to be used last.
    puppet.send(line.ack(11), |s| s.options.push_mptcp(MpOption::Prio { backup: true }));
    puppet.write(&PATTERN[..5000]);
    let out = puppet.take();
    let sent: usize = carrying(&out, third).map(|s| s.payload.len()).sum();
    assert_eq!(sent, 100, "{out:#?}");
}

/// 3.3.2-5: a DATA_ACK that has not moved may be left out, on data and on ACKs.
#[test]
fn a_data_ack_is_not_needed_on_every_segment() {
    let (mut puppet, line, second) = two();
    puppet.send(line.ack(11), |s| s.options.push_mptcp(MpOption::Prio { backup: true }));
    puppet.write(&PATTERN[..1000]);
    assert_eq!(carrying(&puppet.take(), second).count(), 1);
    puppet.send(line.ack(11), |s| s.options.push_mptcp(MpOption::Prio { backup: false }));
    puppet.send(second.ack(1), |s| s.options.push_mptcp(MpOption::Prio { backup: true }));
    puppet.write(&PATTERN[1000..9000]);
    puppet.take();
    // What the first subflow carried comes behind a hole at the data level.
    for (at, acked) in [(11, 1400), (21, 2800), (31, 4200), (41, 5600)] {
        let map = puppet.map(at, at - 1, 10);
        let from = at as usize - 1;
        puppet.data(line.acking(acked), at, &PATTERN[from..from + 10], Some(map));
        puppet.send(line.acking(acked + 100).ack(at + 10), |_| {});
    }
    assert!(puppet.take().iter().all(|s| !s.flags.has(Flags::RST)));
    assert!(!puppet.has(|event| matches!(event, Event::Fallback(_) | Event::SubflowClosed(_))), "{:?}", puppet.events);
    assert!(puppet.read == PATTERN[..50]);
    puppet.confirm(line.acking(8001), 51, 9000);
    assert_eq!(puppet.host.connection_stats(puppet.id.unwrap()).unwrap().data_acked, 9000);
}

/// 3.3.2-4, 3.3.6-1, 3.3.6-2: data that was sent again on another subflow, and DATA_ACKed there, is still repeated
/// where it was lost.
#[test]
fn a_retransmission_stays_on_its_subflow() {
    let (mut puppet, line, second) = two();
    puppet.write(&PATTERN[..1000]);
    let first = puppet.take();
    let original = carrying(&first, line).next().expect("the data leaves on the first subflow").clone();
    puppet.wait(Duration::from_secs(2));
    let out = puppet.take();
    assert!(carrying(&out, second).any(|s| s.payload.len() == 1000), "reinjected");
    puppet.confirm(second.acking(1001), 1, 1000);
    assert_eq!(puppet.host.connection_stats(puppet.id.unwrap()).unwrap().data_acked, 1000);
    puppet.take();
    puppet.wait(Duration::from_secs(10));
    let out = puppet.take();
    let map = |s: &Segment| s.options.dss().unwrap().map.unwrap();
    let repeated: Vec<_> = carrying(&out, line).collect();
    assert!(!repeated.is_empty());
    for segment in repeated {
        assert_eq!(segment.seq, original.seq);
        assert!(segment.payload == original.payload, "the same bytes");
        assert_eq!((map(segment).dsn, map(segment).subflow_seq), (map(&original).dsn, map(&original).subflow_seq));
    }
}

/// 3.4.2-2: a subflow that works is closed by FIN, not by REMOVE_ADDR or RST.
#[test]
fn a_working_subflow_is_closed_by_fin() {
    let (mut puppet, _, second) = two();
    assert!(puppet.host.close_subflow(puppet.now, puppet.id.unwrap(), SubflowId(1)));
    puppet.pump();
    let out = puppet.take();
    assert!(out.iter().any(|s| second.carries(s) && s.flags.has(Flags::FIN)), "{out:#?}");
    assert!(out.iter().all(|s| !s.flags.has(Flags::RST) && s.options.mptcp().is_empty()), "{out:#?}");
}

/// 3.1-3: a key whose token another connection has is not taken, on either side and from the first segment on.
#[test]
fn no_two_connections_have_one_key() {
    let key = Key::new(42);
    let mut puppet = Puppet::new(server());
    let mut keys = Vec::new();
    for path in 0..3 {
        puppet.host.set_next_key(key);
        puppet.syn(MpOption::Capable(MpCapable::OFFER), path);
        let answer = puppet.take().remove(0);
        keys.extend(answer.options.mptcp().iter().find_map(|option| match option {
            MpOption::Capable(theirs) => theirs.sender_key,
            _ => None,
        }));
    }
    assert_eq!(keys[0], key);
    assert!(keys.len() == 3 && keys[1] != key && keys[2] != key && keys[1] != keys[2], "{keys:?}");

    let mut puppet = Puppet::new(client(1));
    let mut keys = Vec::new();
    for _ in 0..2 {
        puppet.host.set_next_key(key);
        puppet.host.open(puppet.now, client_ip(0), SocketAddr::new(server_ip(0), PORT)).unwrap();
    }
    puppet.pump();
    for _ in 0..2 {
        puppet.answer(MpOption::Capable(MpCapable { sender_key: Some(KEY), ..MpCapable::OFFER }));
        let third = puppet.out.iter().flat_map(|s| s.options.mptcp()).find_map(|option| match option {
            MpOption::Capable(ours) => ours.sender_key,
            _ => None,
        });
        keys.extend(third);
        puppet.out.retain(|s| s.flags == Flags::SYN);
    }
    assert!(keys.len() == 2 && keys[0] == key && keys[1] != key, "{keys:?}");
}
