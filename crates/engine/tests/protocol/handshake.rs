//! MP_CAPABLE and MP_JOIN handshakes, good and bad (RFC 8684 §3.1, §3.2).

use crate::common::puppet::{KEY, Line, Puppet, WINDOW, handshake, reason};
use crate::common::{CLIENT, PATTERN, PORT, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Config, Event, FallbackReason};
use anabranch_units::{AddressId, Duration, Key, Nonce, Seed, SubflowSeq, Token, join_hmac};
use anabranch_wire::{Flags, FlowKey, JoinAck, JoinSyn, JoinSynAck, MpCapable, MpOption, ResetReason, Segment};
use bytes::Bytes as Payload;
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

fn server() -> Config {
    config([server_ip(0)])
}

fn client(paths: u8) -> Config {
    config((0..paths).map(client_ip))
}

fn offer(segment: &Segment) -> Option<MpCapable> {
    segment.options.mptcp().iter().find_map(|option| match option {
        MpOption::Capable(capable) => Some(*capable),
        _ => None,
    })
}

fn fell_back(puppet: &Puppet, reason: FallbackReason) -> bool {
    puppet.host.counters().fallbacks.get(&reason) == Some(&1)
}

fn resets(puppet: &mut Puppet) -> Vec<Segment> {
    puppet.take().into_iter().filter(|s| s.flags.has(Flags::RST)).collect()
}

/// §3.1: what a listener makes of the versions and flags of a SYN.
#[test]
fn only_a_usable_offer_is_answered() {
    for (what, syn, answered) in [
        ("version 1", MpCapable::OFFER, true),
        ("version 0, another protocol", MpCapable { version: 0, ..MpCapable::OFFER }, false),
        ("version 2: answered with ours", MpCapable { version: 2, ..MpCapable::OFFER }, true),
        ("flag B: silently ignored", MpCapable { extensibility: true, ..MpCapable::OFFER }, false),
        ("no algorithm: treated as plain TCP", MpCapable { hmac_sha256: false, ..MpCapable::OFFER }, false),
        ("flags D to G: ignored", MpCapable { other_flags: 0xf, ..MpCapable::OFFER }, true),
        (
            "flag C of a client concerns the server alone",
            MpCapable { no_join_to_source: true, ..MpCapable::OFFER },
            true,
        ),
        ("a key in the SYN is version 0", MpCapable { sender_key: Some(KEY), ..MpCapable::OFFER }, false),
    ] {
        let mut puppet = Puppet::new(server());
        puppet.syn(MpOption::Capable(syn), 0);
        let out = puppet.take();
        assert_eq!(out[0].flags, Flags::SYN.with(Flags::ACK), "{what}");
        let answer = offer(&out[0]);
        assert_eq!(answer.is_some(), answered, "{what}");
        if let Some(answer) = answer {
            assert_eq!((answer.version, answer.other_flags, answer.extensibility), (1, 0, false), "{what}");
            assert!(answer.hmac_sha256 && answer.sender_key.is_some() && answer.receiver_key.is_none());
        } else {
            assert!(fell_back(&puppet, FallbackReason::Syn), "{what}");
        }
    }
}

/// §3.1: a SYN without MP_CAPABLE must not be answered with one.
#[test]
fn a_plain_syn_gets_a_plain_answer() {
    let mut puppet = Puppet::new(server());
    puppet.syn(MpOption::Prio { backup: false }, 0);
    assert!(!puppet.take()[0].options.has_mptcp());
}

/// §3.1: what a client makes of the SYN/ACK.
#[test]
fn an_unusable_answer_means_plain_tcp() {
    for (what, answer, good) in [
        ("good", MpCapable::OFFER, true),
        ("version 0", MpCapable { version: 0, ..MpCapable::OFFER }, false),
        ("version 2, which was not asked for", MpCapable { version: 2, ..MpCapable::OFFER }, false),
        ("flag B", MpCapable { extensibility: true, ..MpCapable::OFFER }, false),
        ("no algorithm", MpCapable { hmac_sha256: false, ..MpCapable::OFFER }, false),
    ] {
        let (mut puppet, _) = Puppet::connected(client(1), answer);
        assert!(puppet.has(|event| *event == Event::Connected { multipath: good }), "{what}: {:?}", puppet.events);
        assert_eq!(fell_back(&puppet, FallbackReason::SynAck), !good, "{what}");
        let third = puppet.take().pop().unwrap();
        let keys = offer(&third);
        assert_eq!(keys.is_some(), good, "{what}");
        if let Some(keys) = keys {
            // The third ACK has both keys.
            assert_eq!((keys.sender_key, keys.receiver_key), (puppet.theirs, Some(KEY)), "{what}");
        }
    }
}

/// §3.1: the SYN carries no key.
#[test]
fn the_syn_offers_version_1_without_a_key() {
    let mut puppet = Puppet::new(client(1));
    puppet.host.open(puppet.now, client_ip(0), SocketAddr::new(server_ip(0), PORT)).unwrap();
    puppet.pump();
    assert_eq!(offer(&puppet.out[0]), Some(MpCapable::OFFER));
}

/// §3.1: keys are unique at their sender; one that comes back to it is a reflection, which would let HMACs be
/// reflected.
#[test]
fn a_reflected_key_is_no_key() {
    let mut puppet = Puppet::new(server());
    let line = puppet.syn(MpOption::Capable(MpCapable::OFFER), 0);
    let line = puppet.answered(line);
    let keys = MpCapable { sender_key: puppet.theirs, receiver_key: puppet.theirs, ..MpCapable::OFFER };
    puppet.send(line.ack(1), |s| s.options.push_mptcp(MpOption::Capable(keys)));
    assert!(fell_back(&puppet, FallbackReason::ThirdAck));
}

/// §3.1: the third ACK decides whether the server goes on with MPTCP.
#[test]
fn a_third_ack_without_the_right_keys_means_plain_tcp() {
    for keys in [
        None,
        Some(MpCapable { sender_key: Some(KEY), ..MpCapable::OFFER }),
        Some(MpCapable { sender_key: Some(KEY), receiver_key: Some(Key::new(1)), ..MpCapable::OFFER }),
    ] {
        let mut puppet = Puppet::new(server());
        let line = puppet.syn(MpOption::Capable(MpCapable::OFFER), 0);
        let line = puppet.answered(line);
        puppet.send(line.ack(1), |s| {
            if let Some(keys) = keys {
                s.options.push_mptcp(MpOption::Capable(keys));
            }
        });
        assert!(fell_back(&puppet, FallbackReason::ThirdAck));
        assert_eq!(
            puppet.events[..2],
            [Event::SubflowEstablished(anabranch_units::SubflowId(0)), Event::Fallback(FallbackReason::ThirdAck)]
        );
        puppet.data(line, 1, &PATTERN[..100], None);
        assert!(puppet.read == PATTERN[..100]);
    }
}

/// §3.1: the keys on the first data replace a third ACK that was lost.
#[test]
fn data_with_the_keys_replaces_a_lost_third_ack() {
    let mut puppet = Puppet::new(server());
    let line = puppet.syn(MpOption::Capable(MpCapable::OFFER), 0);
    let line = puppet.answered(line);
    // A segment that overtakes it has no meaning yet, and is sent again.
    let map = puppet.map(101, 100, 100);
    puppet.data(line, 101, &PATTERN[100..200], Some(map));
    let keys = puppet.keys(Some((100, None)));
    puppet.send(line.ack(1), |s| {
        s.options.push_mptcp(MpOption::Capable(keys));
        s.payload = Payload::from_static(&PATTERN[..100]).into();
    });
    assert!(puppet.has(|event| *event == Event::Accepted { multipath: true }), "{:?}", puppet.events);
    puppet.data(line, 101, &PATTERN[100..200], Some(map));
    assert!(puppet.read == PATTERN[..200]);
}

/// §3.1: the client repeats the keys with its first data until the peer has shown that it has them.
#[test]
fn the_first_data_carries_the_keys_until_confirmed() {
    for confirmed in [false, true] {
        let (mut puppet, line) = Puppet::connected(client(1), MpCapable::OFFER);
        if confirmed {
            puppet.confirm(line, 1, 0);
        }
        puppet.take();
        puppet.write(&PATTERN[..100]);
        let first = puppet.take().pop().unwrap();
        let keys = offer(&first);
        assert_eq!(keys.is_some(), !confirmed);
        assert_eq!(first.options.dss().is_some(), confirmed);
        if let Some(keys) = keys {
            assert_eq!((keys.sender_key, keys.receiver_key, keys.data), (puppet.theirs, Some(KEY), Some((100, None))));
        }
    }
}

/// RFC 9293 §3.5 (MUST-10): simultaneous open works; as plain TCP, since there is no MP_CAPABLE answer in it.
#[test]
fn a_simultaneous_open_becomes_plain_tcp() {
    let mut puppet = Puppet::new(client(1));
    let id = puppet.host.open(puppet.now, client_ip(0), SocketAddr::new(server_ip(0), PORT)).unwrap();
    puppet.id = Some(id);
    puppet.pump();
    let syn = puppet.take().remove(0);
    let line = Line { flow: syn.flow.reversed(), irs: syn.seq, ack: 1 };
    let mut crossing = Segment::new(line.flow, Flags::SYN, SubflowSeq::new(1000), SubflowSeq::new(0));
    crossing.window = WINDOW;
    *crossing.options.handshake_mut() = handshake();
    crossing.options.push_mptcp(MpOption::Capable(MpCapable::OFFER));
    puppet.deliver(crossing.clone());
    let answer = puppet.take().remove(0);
    assert_eq!(answer.flags, Flags::SYN.with(Flags::ACK));
    assert_eq!((answer.seq, answer.ack), (syn.seq, SubflowSeq::new(1001)));
    assert!(!answer.options.has_mptcp());
    crossing.flags = Flags::SYN.with(Flags::ACK);
    crossing.ack = syn.seq + 1;
    puppet.deliver(crossing);
    assert!(puppet.has(|event| *event == Event::Connected { multipath: false }), "{:?}", puppet.events);
    assert!(fell_back(&puppet, FallbackReason::SimultaneousOpen));
    puppet.data(line, 1, &PATTERN[..100], None);
    puppet.write(&PATTERN[..50]);
    assert!(puppet.read == PATTERN[..100]);
    assert!(puppet.take().iter().any(|s| s.payload.len() == 50 && s.seq == syn.seq + 1));
}

fn join_syn(puppet: &Puppet, address: u8) -> JoinSyn {
    JoinSyn { backup: false, address: AddressId(address), token: puppet.theirs.unwrap().token(), nonce: Nonce(5) }
}

/// §3.2: an unknown token is answered with a RST, reason 1 (§3.6); that of a connection that is plain TCP by now with a
/// SYN/ACK without MP_JOIN (A-LATE-JOIN).
#[test]
fn a_join_that_names_no_mptcp_connection_is_refused() {
    let (mut puppet, line) = Puppet::accepted(server());
    let unknown = JoinSyn { token: Token(1), ..join_syn(&puppet, 1) };
    puppet.syn(MpOption::JoinSyn(unknown), 1);
    let out = resets(&mut puppet);
    assert_eq!((out.len(), reason(&out[0])), (1, Some(ResetReason::MptcpError)));
    // Fallen back.
    puppet.data(line, 1, &PATTERN[..10], None);
    assert!(fell_back(&puppet, FallbackReason::FirstData));
    let join = join_syn(&puppet, 1);
    puppet.take();
    puppet.syn(MpOption::JoinSyn(join), 1);
    let out = puppet.take();
    assert_eq!((out.len(), out[0].flags), (1, Flags::SYN.with(Flags::ACK)));
    assert!(!out[0].options.has_mptcp());
    assert_eq!(puppet.host.counters().joins_refused, 2);
}

/// §3.2: no join before the keys are exchanged.
#[test]
fn a_join_before_the_third_ack_is_reset() {
    let mut puppet = Puppet::new(server());
    let line = puppet.syn(MpOption::Capable(MpCapable::OFFER), 0);
    puppet.answered(line);
    let join = join_syn(&puppet, 1);
    puppet.syn(MpOption::JoinSyn(join), 1);
    assert_eq!(resets(&mut puppet).len(), 1);
}

/// §3.2: a wrong HMAC in the third ACK resets the subflow, and only that; so does a missing MP_JOIN.
#[test]
fn a_third_ack_with_a_bad_hmac_is_reset() {
    for hmac in [Some([7; 20]), None] {
        let (mut puppet, line) = Puppet::accepted(server());
        let join = join_syn(&puppet, 1);
        let second = puppet.syn(MpOption::JoinSyn(join), 1);
        let second = puppet.answered(second);
        puppet.take();
        puppet.send(second.ack(1), |s| {
            if let Some(hmac) = hmac {
                s.options.push_mptcp(MpOption::JoinAck(JoinAck { hmac }));
            }
        });
        let out = resets(&mut puppet);
        assert_eq!((out.len(), reason(&out[0])), (1, Some(ResetReason::MptcpError)));
        assert!(second.carries(&out[0]));
        let map = puppet.map(1, 0, 10);
        puppet.data(line, 1, &PATTERN[..10], Some(map));
        assert!(puppet.read == PATTERN[..10]);
    }
}

/// §3.2: the SYN/ACK has the first 8 bytes of the listener's HMAC, and the fourth ACK follows the third.
#[test]
fn a_good_join_is_answered_with_hmac_and_fourth_ack() {
    let (mut puppet, _) = Puppet::accepted(server());
    let join = join_syn(&puppet, 1);
    puppet.take();
    let second = puppet.syn(MpOption::JoinSyn(join), 1);
    let answer = puppet.out[0].options.mptcp().iter().find_map(|option| match option {
        MpOption::JoinSynAck(answer) => Some(*answer),
        _ => None,
    });
    let answer = answer.unwrap();
    let theirs = puppet.theirs.unwrap();
    assert_eq!(answer.hmac, join_hmac(theirs, KEY, answer.nonce, Nonce(5)).first_8());
    let second = puppet.answered(second);
    let hmac = join_hmac(KEY, theirs, Nonce(5), answer.nonce).first_20();
    puppet.send(second.ack(1), |s| s.options.push_mptcp(MpOption::JoinAck(JoinAck { hmac })));
    let fourth = puppet.take();
    assert_eq!((fourth.len(), Puppet::acked(&fourth[0])), (1, Some(0)));
    // Our fourth ACK was lost: the third comes again.
    puppet.send(second.ack(1), |s| s.options.push_mptcp(MpOption::JoinAck(JoinAck { hmac })));
    assert_eq!(puppet.take().len(), 1);
    // Data right behind it is taken.
    let map = puppet.map(1, 0, 10);
    puppet.data(second, 1, &PATTERN[..10], Some(map));
    assert!(puppet.read == PATTERN[..10]);
}

/// Linux resets a subflow if data out of order is the first it sees on it: the fourth ACK goes ahead of data that
/// waits.
#[test]
fn the_fourth_ack_goes_ahead_of_waiting_data() {
    let (mut puppet, first) = Puppet::accepted(server());
    puppet.confirm(first, 1, 0);
    puppet.write(PATTERN);
    puppet.take();
    let second = puppet.join(1);
    let sent: Vec<usize> =
        puppet.take().iter().filter(|s| second.carries(s)).map(|segment| segment.payload.len()).collect();
    assert!(sent.len() > 2 && sent[0] == 0 && sent[1..].iter().all(|length| *length > 0), "{sent:?}");
}

/// §3.2: subflow SYNs are demultiplexed by token, regardless of their port.
#[test]
fn a_join_may_go_to_a_port_nobody_listens_on() {
    let (mut puppet, _) = Puppet::accepted(server());
    let join = join_syn(&puppet, 1);
    puppet.take();
    let flow = FlowKey::new(SocketAddr::new(client_ip(1), 5000), SocketAddr::new(server_ip(0), 4242));
    let mut syn = Segment::new(flow, Flags::SYN, SubflowSeq::new(1), SubflowSeq::new(0));
    *syn.options.handshake_mut() = handshake();
    syn.options.push_mptcp(MpOption::JoinSyn(join));
    puppet.deliver(syn);
    assert_eq!(puppet.out[0].flags, Flags::SYN.with(Flags::ACK));
}

/// §3.2: local policy may prohibit a subflow; §3.6 has reason 3 for that.
#[test]
fn joins_beyond_the_limit_or_where_forbidden_are_prohibited() {
    let mut limited = server();
    limited.max_subflows = 2;
    let (mut puppet, _) = Puppet::accepted(limited);
    puppet.join(1);
    puppet.take();
    let join = join_syn(&puppet, 2);
    puppet.syn(MpOption::JoinSyn(join), 2);
    let out = resets(&mut puppet);
    assert_eq!((out.len(), reason(&out[0])), (1, Some(ResetReason::Prohibited)));

    let mut denying = server();
    denying.deny_join_to_initial = true;
    let mut puppet = Puppet::new(denying);
    puppet.syn(MpOption::Capable(MpCapable::OFFER), 0);
    assert!(offer(&puppet.out[0]).unwrap().no_join_to_source, "flag C (§3.1)");
    let (mut puppet, _) = {
        let mut denying = server();
        denying.deny_join_to_initial = true;
        Puppet::accepted(denying)
    };
    puppet.take();
    let join = join_syn(&puppet, 1);
    puppet.syn(MpOption::JoinSyn(join), 1);
    let out = resets(&mut puppet);
    assert_eq!((out.len(), reason(&out[0])), (1, Some(ResetReason::Prohibited)));
}

/// §3.2: several subflows may come from one address and share its identifier.
#[test]
fn an_address_identifier_may_be_used_twice() {
    let (mut puppet, line) = Puppet::accepted(server());
    let second = puppet.join(1);
    let join = join_syn(&puppet, 1);
    let third = puppet.syn(MpOption::JoinSyn(join), 2);
    assert!(puppet.take().iter().any(|s| third.carries(s) && s.flags.has(Flags::SYN)));
    let map = puppet.map(1, 0, 10);
    puppet.data(second, 1, &PATTERN[..10], Some(map));
    let map = puppet.map(1, 10, 10);
    puppet.data(line, 1, &PATTERN[10..20], Some(map));
    assert!(puppet.read == PATTERN[..20]);
}

/// §3.1, flag C: the client must not open subflows to the address and port it connected to.
#[test]
fn flag_c_keeps_the_client_from_joining() {
    for denied in [false, true] {
        let (mut puppet, line) =
            Puppet::connected(client(2), MpCapable { no_join_to_source: denied, ..MpCapable::OFFER });
        puppet.take();
        puppet.confirm(line, 1, 0);
        let joins = puppet.take().iter().filter(|s| s.flags == Flags::SYN).count();
        assert_eq!(joins, usize::from(!denied));
    }
}

/// §3.2: the third ACK is repeated until the fourth arrives, and no data is sent before.
#[test]
fn a_joining_client_waits_for_the_fourth_ack() {
    let (mut puppet, line) = Puppet::connected(client(2), MpCapable::OFFER);
    puppet.confirm(line, 1, 0);
    let nonce = |s: &Segment| {
        s.options.mptcp().iter().find_map(|option| match option {
            MpOption::JoinSyn(join) => Some(*join),
            _ => None,
        })
    };
    let join = puppet.out.iter().find_map(nonce).unwrap();
    assert_eq!(join.token, KEY.token());
    let hmac = join_hmac(KEY, puppet.theirs.unwrap(), Nonce(77), join.nonce).first_8();
    let second = puppet.answer(MpOption::JoinSynAck(JoinSynAck {
        backup: false,
        address: AddressId(0),
        hmac,
        nonce: Nonce(77),
    }));
    puppet.write(PATTERN);
    puppet.wait(Duration::from_secs(2));
    let out = puppet.take();
    let thirds = out
        .iter()
        .filter(|s| second.carries(s) && s.options.mptcp().iter().any(|option| matches!(option, MpOption::JoinAck(_))));
    assert!(thirds.count() >= 3);
    assert!(out.iter().all(|s| !second.carries(s) || (s.payload.is_empty() && s.options.dss().is_none())));
    puppet.confirm(second, 1, 0);
    assert!(puppet.take().iter().any(|s| second.carries(s) && !s.payload.is_empty()));
}

pub(crate) fn is_join_syn(segment: &Segment) -> bool {
    segment.options.mptcp().iter().any(|option| matches!(option, MpOption::JoinSyn(_)))
}

/// Loss of 15 % each way from the third ACK on, or an outage of two seconds, costs no join.
#[test]
fn a_lossy_path_loses_no_join() {
    for (delay, outage, loss) in [(10, 0, 0.15), (50, 0, 0.15), (10, 2000, 0.0), (50, 2000, 0.0)] {
        for seed in 0..100 {
            let mut pair = Pair::seeded(seed, config((0..2).map(client_ip)), config([server_ip(0)]));
            pair.delays[1] = Duration::from_millis(delay);
            let (mut dice, syns) = (Seed(seed).stream("loss"), Rc::new(Cell::new(0)));
            let dead = Rc::new(Cell::new(outage > 0));
            let (seen, out) = (Rc::clone(&syns), Rc::clone(&dead));
            let mut answered = false;
            pair.rule = Box::new(move |host, segment| {
                let second = [segment.flow.src, segment.flow.dst].contains(&client_ip(1));
                seen.set(seen.get() + u32::from(host == CLIENT && is_join_syn(segment)));
                let passes = !second || !answered || !(out.get() || dice.chance(loss));
                answered |= second && host == SERVER;
                passes
            });
            pair.open();
            pair.write(CLIENT, b"hello");
            pair.run(Duration::from_millis(outage));
            dead.set(false);
            pair.run(Duration::from_secs(10));
            let established = |event: &Event| matches!(event, Event::SubflowEstablished(_));
            let case = format!("{delay} ms, outage {outage} ms, loss {loss}, seed {seed}: {:?}", pair.events);
            assert!(pair.has(CLIENT, established) && pair.has(SERVER, established) && syns.get() == 1, "{case}");
        }
    }
}

/// §3.2: a SYN/ACK with a wrong HMAC, or without MP_JOIN, is answered with a RST.
#[test]
fn a_joining_client_refuses_a_bad_answer() {
    for answer in [
        MpOption::JoinSynAck(JoinSynAck { backup: false, address: AddressId(0), hmac: [1; 8], nonce: Nonce(77) }),
        MpOption::Prio { backup: false },
    ] {
        let (mut puppet, line) = Puppet::connected(client(2), MpCapable::OFFER);
        puppet.confirm(line, 1, 0);
        puppet.answer(answer);
        let out = resets(&mut puppet);
        assert_eq!((out.len(), reason(&out[0])), (1, Some(ResetReason::MptcpError)));
    }
}

/// An on-path attacker knows the token. However many SYNs it sends, an honest join has its chance, subflows that are
/// there keep their places, and memory is bounded.
#[test]
fn a_flood_of_half_open_joins_does_not_lock_out_an_honest_one() {
    let (mut puppet, line) = Puppet::accepted(server());
    for i in 0..2000u16 {
        let flow = FlowKey::new(SocketAddr::new(client_ip(9), 1024 + i), SocketAddr::new(server_ip(0), PORT));
        let mut syn = Segment::new(flow, Flags::SYN, SubflowSeq::new(1), SubflowSeq::new(0));
        *syn.options.handshake_mut() = handshake();
        syn.options.push_mptcp(MpOption::JoinSyn(join_syn(&puppet, 3)));
        puppet.deliver(syn);
    }
    assert!(puppet.host.subflow_stats(puppet.id.unwrap()).len() <= 40);
    assert!(puppet.host.counters().joins_deferred > 1900);
    puppet.take();
    let second = puppet.join(1);
    let map = puppet.map(1, 0, 10);
    puppet.data(second, 1, &PATTERN[..10], Some(map));
    assert!(puppet.read == PATTERN[..10]);
    let map = puppet.map(1, 10, 10);
    puppet.data(line, 1, &PATTERN[10..20], Some(map));
    assert!(puppet.read == PATTERN[..20]);
    // A subflow that is not completed is gone soon.
    puppet.wait(Duration::from_secs(20));
    assert_eq!(puppet.host.subflow_stats(puppet.id.unwrap()).len(), 2);
    assert!(puppet.events.iter().all(|event| !matches!(event, Event::SubflowClosed(_))), "{:?}", puppet.events);
}

/// A join is answered, and the flood goes on until nothing is known of it any more. Its third ACK is not reset, though
/// no cookie is out; a minute after the flood it would be.
#[test]
fn a_join_forgotten_for_others_is_not_reset() {
    let (mut puppet, _) = Puppet::accepted(server());
    let flood = |puppet: &mut Puppet, count: u32| {
        for i in 0..count {
            let source = SocketAddr::new(client_ip(9), 1024 + i as u16);
            let flow = FlowKey::new(source, SocketAddr::new(server_ip(0), PORT));
            let mut syn = Segment::new(flow, Flags::SYN, SubflowSeq::new(1), SubflowSeq::new(0));
            *syn.options.handshake_mut() = handshake();
            syn.options.push_mptcp(MpOption::JoinSyn(join_syn(puppet, 3)));
            puppet.deliver(syn);
        }
        puppet.take();
    };
    flood(&mut puppet, 40);
    let (line, third) = puppet.begin_join(1);
    // Each of the 4096 places is spared with probability e⁻¹²; the seed is fixed.
    flood(&mut puppet, 50_000);
    let counters = puppet.host.counters().clone();
    assert!(counters.half_open_joins_dropped > 40_000 && counters.cookies_sent == 0);
    for (wait, answers) in [(0, 0), (61, 1)] {
        puppet.wait(Duration::from_secs(wait));
        puppet.take();
        puppet.send(line.ack(1), |s| s.options.push_mptcp(MpOption::JoinAck(third)));
        let out = resets(&mut puppet);
        assert_eq!(out.len(), answers, "{wait} s later: {out:?}");
    }
    assert_eq!(puppet.host.counters().cookies_invalid, 1);
}

/// RFC 4987: the same for connections; without the flood's end an honest handshake gets through at once.
#[test]
fn a_flood_of_syns_does_not_lock_out_an_honest_connection() {
    let mut puppet = Puppet::new(server());
    for i in 0..3000u16 {
        let flow = FlowKey::new(SocketAddr::new(client_ip(9), 1024 + i), SocketAddr::new(server_ip(0), PORT));
        let mut syn = Segment::new(flow, Flags::SYN, SubflowSeq::new(1), SubflowSeq::new(0));
        *syn.options.handshake_mut() = handshake();
        puppet.deliver(syn);
    }
    assert!(puppet.host.connection_count() <= 1024);
    assert!(puppet.events.is_empty(), "the application hears of none");
    puppet.take();
    let line = puppet.open();
    let map = puppet.map(1, 0, 10);
    puppet.data(line, 1, &PATTERN[..10], Some(map));
    assert!(puppet.read == PATTERN[..10]);
}
