//! ADD_ADDR and REMOVE_ADDR (RFC 8684 §3.4).

use crate::common::puppet::{KEY, Line, Puppet, handshake, reason};
use crate::common::{CLIENT, PATTERN, PORT, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Config, Event, LocalAddress};
use anabranch_units::{AddressId, Duration, Nonce, SubflowId, SubflowSeq, add_addr_hmac, join_hmac};
use anabranch_wire::{
    AddAddr, Flags, JoinSyn, JoinSynAck, MpCapable, MpOption, RemoveAddr, ResetReason, Segment, Timestamps,
};
use std::net::{IpAddr, SocketAddr};

fn client() -> Config {
    let mut config = config([client_ip(0)]);
    config.rejoin = None;
    config
}

fn connected() -> (Puppet, Line) {
    let (mut puppet, line) = Puppet::connected(client(), MpCapable::OFFER);
    puppet.confirm(line, 1, 0);
    puppet.take();
    (puppet, line)
}

fn add(puppet: &Puppet, id: u8, address: IpAddr, port: Option<u16>) -> AddAddr {
    let hmac = add_addr_hmac(KEY, puppet.theirs.unwrap(), AddressId(id), address, port);
    AddAddr { id: AddressId(id), address, port, hmac: Some(hmac.last_8()) }
}

fn announce(puppet: &mut Puppet, line: Line, add: AddAddr) -> Vec<Segment> {
    puppet.send(line.ack(1), |s| s.options.push_mptcp(MpOption::AddAddr(add)));
    puppet.take()
}

fn echoes(out: &[Segment]) -> Vec<AddAddr> {
    let options = out.iter().flat_map(|s| s.options.mptcp());
    options
        .filter_map(|option| match option {
            MpOption::AddAddr(add) => Some(*add),
            _ => None,
        })
        .collect()
}

fn joins(out: &[Segment]) -> Vec<SocketAddr> {
    out.iter().filter(|s| s.flags == Flags::SYN).map(|s| s.flow.destination()).collect()
}

/// §3.4.1: a good announcement is echoed without HMAC and joined, at its port or at that of the initial subflow.
#[test]
fn a_good_announcement_is_echoed_and_joined() {
    for port in [None, Some(5555)] {
        let (mut puppet, line) = connected();
        let good = add(&puppet, 3, server_ip(1), port);
        let out = announce(&mut puppet, line, good);
        assert_eq!(echoes(&out), [AddAddr { hmac: None, ..good }]);
        assert_eq!(joins(&out), [SocketAddr::new(server_ip(1), port.unwrap_or(PORT))]);
        // Its repetition (our echo was lost) is echoed again, and joined no second time.
        let out = announce(&mut puppet, line, good);
        assert_eq!((echoes(&out).len(), joins(&out).len()), (1, 0));
    }
}

/// §3.4.1: the HMAC covers identifier, address and port; with a wrong one the option is silently ignored.
#[test]
fn a_bad_hmac_is_silently_ignored() {
    let (mut puppet, line) = connected();
    let good = add(&puppet, 3, server_ip(1), Some(5555));
    for bad in [
        AddAddr { id: AddressId(4), ..good },
        AddAddr { address: server_ip(2), ..good },
        AddAddr { port: Some(5556), ..good },
        AddAddr { port: None, ..good },
        AddAddr { hmac: Some([0; 8]), ..good },
    ] {
        assert!(announce(&mut puppet, line, bad).is_empty());
    }
    assert_eq!(puppet.host.counters().bad_add_addr, 5);
}

/// §3.4.1: an identifier keeps its address; only another port may be added to it. To replace it, it is removed first.
#[test]
fn an_identifier_keeps_its_address() {
    let (mut puppet, line) = connected();
    let first = add(&puppet, 3, server_ip(1), None);
    announce(&mut puppet, line, first);
    let moved = add(&puppet, 3, server_ip(2), None);
    assert!(announce(&mut puppet, line, moved).is_empty());
    assert_eq!(puppet.host.counters().conflicting_add_addr, 1);
    let port = add(&puppet, 3, server_ip(1), Some(5555));
    assert_eq!(echoes(&announce(&mut puppet, line, port)).len(), 1);
    let remove = RemoveAddr { ids: vec![AddressId(3)] };
    puppet.send(line.ack(1), |s| s.options.push_mptcp(MpOption::RemoveAddr(remove)));
    let out = announce(&mut puppet, line, moved);
    assert_eq!((echoes(&out).len(), joins(&out)), (1, vec![SocketAddr::new(server_ip(2), PORT)]));
}

/// A RST without the T flag bars the path (§3.6), as when the peer gives an address up with data unread. Announced
/// anew, the address is tried anew.
#[test]
fn an_address_that_comes_back_is_joined_though_its_subflow_was_reset() {
    let (mut puppet, line) = connected();
    let good = add(&puppet, 3, server_ip(1), None);
    puppet.send(line.ack(1), |s| s.options.push_mptcp(MpOption::AddAddr(good)));
    let syn = puppet.take().into_iter().find(|s| s.flags == Flags::SYN).unwrap();
    let flags = Flags::RST.with(Flags::ACK);
    let mut reset = Segment::new(syn.flow.reversed(), flags, SubflowSeq::new(0), syn.seq + 1);
    reset.options.push_mptcp(MpOption::TcpReset { transient: false, reason: ResetReason::Unspecified });
    puppet.deliver(reset);
    assert!(joins(&announce(&mut puppet, line, good)).is_empty(), "it is barred");
    let remove = RemoveAddr { ids: vec![AddressId(3)] };
    puppet.send(line.ack(1), |s| s.options.push_mptcp(MpOption::RemoveAddr(remove)));
    assert_eq!(joins(&announce(&mut puppet, line, good)), [SocketAddr::new(server_ip(1), PORT)]);
}

/// Neither a flood of announcements nor addresses that no host has make us send or keep anything.
#[test]
fn hostile_announcements_are_harmless() {
    let (mut puppet, line) = connected();
    for address in [[0, 0, 0, 0], [255, 255, 255, 255], [224, 0, 0, 1], [127, 0, 0, 1]] {
        let strange = add(&puppet, 9, IpAddr::from(address), None);
        assert!(joins(&announce(&mut puppet, line, strange)).is_empty(), "{address:?}");
    }
    let zero = add(&puppet, 9, server_ip(1), Some(0));
    assert!(joins(&announce(&mut puppet, line, zero)).is_empty());
    let v6 = add(&puppet, 10, IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]), None);
    let out = announce(&mut puppet, line, v6);
    assert_eq!((echoes(&out).len(), joins(&out).len()), (1, 0), "no address of ours is of that family");
    let mut syns = 0;
    for i in 20..250 {
        let more = add(&puppet, i, IpAddr::from([10, 9, i, 1]), None);
        syns += joins(&announce(&mut puppet, line, more)).len();
    }
    assert!(syns <= 8, "{syns}");
}

/// §3.4.2: subflows to withdrawn addresses are asked for signs of life first. Meanwhile they take no places: a peer
/// that has flushed its addresses and joins from a new one would find none, and Linux does not ask twice.
#[test]
fn withdrawn_subflows_leave_room_for_a_join() {
    for withdrawn in [vec![AddressId(1)], vec![AddressId(0), AddressId(1)]] {
        let mut config = server(1);
        config.max_subflows = 2;
        let (mut puppet, line) = Puppet::confirmed(config);
        puppet.join(1);
        puppet.take();
        let join = |puppet: &mut Puppet| {
            let nonce = Nonce(7);
            let token = puppet.theirs.unwrap().token();
            puppet.syn(MpOption::JoinSyn(JoinSyn { backup: false, address: AddressId(2), token, nonce }), 2);
            puppet.take().iter().any(|s| s.flags == Flags::SYN.with(Flags::ACK))
        };
        assert!(!join(&mut puppet), "both places are taken");
        let remove = RemoveAddr { ids: withdrawn };
        puppet.send(line.ack(11), |s| s.options.push_mptcp(MpOption::RemoveAddr(remove)));
        puppet.take();
        let (line, third) = puppet.begin_join(2);
        puppet.send(line.ack(1), |s| s.options.push_mptcp(MpOption::JoinAck(third)));
        assert!(puppet.take().iter().all(|s| !s.flags.has(Flags::RST)), "the third ACK is taken as well");
        let subflows = puppet.host.subflow_stats(puppet.id.unwrap());
        assert!(subflows.iter().any(|s| s.remote.ip() == client_ip(2) && s.established), "{subflows:#?}");
    }
}

/// A subflow that was closed alone takes no place either while the other FIN is awaited, for a minute at most: neither
/// of a join of the peer nor of one of ours.
#[test]
fn subflows_closed_alone_leave_room_for_a_join() {
    let mut config = server(1);
    config.max_subflows = 2;
    let (mut puppet, _) = Puppet::confirmed(config);
    puppet.join(1);
    puppet.host.close_subflow(puppet.now, puppet.id.unwrap(), SubflowId(1));
    puppet.pump();
    puppet.take();
    let (line, third) = puppet.begin_join(2);
    puppet.send(line.ack(1), |s| s.options.push_mptcp(MpOption::JoinAck(third)));
    assert!(puppet.take().iter().all(|s| !s.flags.has(Flags::RST)), "the third ACK is taken as well");

    let mut config = crate::common::config((0..2).map(client_ip));
    config.max_subflows = 2;
    let mut pair = Pair::with(config, server(1));
    pair.open();
    pair.write(CLIENT, &PATTERN[..1000]);
    pair.run(Duration::from_secs(1));
    // The second path is dead, so that no FIN comes from there.
    pair.rule = Box::new(|_, segment| ![segment.flow.src, segment.flow.dst].contains(&client_ip(1)));
    pair.hosts[CLIENT].close_subflow(pair.now, pair.id[CLIENT].unwrap(), SubflowId(1));
    pair.delays.push(Duration::from_millis(5));
    pair.hosts[CLIENT].add_address(pair.now, LocalAddress { ip: client_ip(2), backup: false });
    pair.run(Duration::from_secs(2));
    let subflows = pair.hosts[CLIENT].subflow_stats(pair.id[CLIENT].unwrap());
    assert!(subflows.iter().any(|s| s.local.ip() == client_ip(2) && s.established), "{subflows:#?}");
}

fn server(addresses: u8) -> Config {
    config((0..addresses).map(server_ip))
}

/// §3.4.1: repeated until echoed, at most three times.
#[test]
fn an_announcement_is_repeated_until_echoed() {
    for echo in [false, true] {
        let (mut puppet, line) = Puppet::accepted(server(2));
        let ours = echoes(&puppet.take());
        assert_eq!(ours.len(), 1);
        let theirs = puppet.theirs.unwrap();
        let hmac = add_addr_hmac(theirs, KEY, AddressId(2), server_ip(1), None).last_8();
        assert_eq!(ours[0], AddAddr { id: AddressId(2), address: server_ip(1), port: None, hmac: Some(hmac) });
        if echo {
            // An echo of something else is none.
            puppet.send(line.ack(1), |s| s.options.push_mptcp(MpOption::AddAddr(AddAddr { hmac: None, ..ours[0] })));
        }
        puppet.wait(Duration::from_secs(30));
        assert_eq!(echoes(&puppet.take()).len(), if echo { 0 } else { 2 });
    }
}

/// An announcement that has waited for another is due when that is out of the way, not before: no alarm is set in the
/// past, though the subflow that would carry it is closing.
#[test]
fn an_announcement_that_waited_is_not_overdue() {
    let (mut puppet, line) = Puppet::accepted(server(4));
    let ours = echoes(&puppet.take());
    puppet.wait(Duration::from_millis(50));
    puppet.send(line.ack(1), |s| s.flags = Flags::FIN.with(Flags::ACK));
    puppet.send(line.ack(2), |s| s.options.push_mptcp(MpOption::AddAddr(AddAddr { hmac: None, ..ours[0] })));
    puppet.wait(Duration::from_millis(50));
    let (mut puppet, _) = Puppet::accepted(server(4));
    puppet.wait(Duration::from_millis(50));
    puppet.host.remove_address(puppet.now, server_ip(1));
    puppet.pump();
}

/// §3.4.1: of several addresses one is announced at a time. The next follows the echo, or the last repetition of one
/// without an echo; an address that is given up meanwhile is passed over.
#[test]
fn announcements_wait_for_each_other() {
    let (mut puppet, line) = Puppet::accepted(server(5));
    let echo = |puppet: &mut Puppet, add: AddAddr| {
        puppet.send(line.ack(1), |s| s.options.push_mptcp(MpOption::AddAddr(AddAddr { hmac: None, ..add })));
        echoes(&puppet.take())
    };
    let first = echoes(&puppet.take());
    assert_eq!(first.iter().map(|add| add.address).collect::<Vec<_>>(), [server_ip(1)]);
    let second = echo(&mut puppet, first[0]);
    assert_eq!(second.iter().map(|add| add.address).collect::<Vec<_>>(), [server_ip(2)]);
    assert!(echo(&mut puppet, first[0]).is_empty(), "an echo once more");
    puppet.host.remove_address(puppet.now, server_ip(3));
    puppet.pump();
    puppet.take();
    puppet.wait(Duration::from_secs(60));
    let rest: Vec<_> = echoes(&puppet.take()).iter().map(|add| add.address).collect();
    assert_eq!(rest, [2, 2, 4, 4, 4].map(server_ip));
}

/// §3.4.1: the largest announcement, of an IPv6 address with a port, fits beside timestamps as well.
#[test]
fn the_largest_announcement_fits() {
    let v6 = IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]);
    for (timestamps, port) in [(true, None), (true, Some(81)), (false, Some(81))] {
        let mut config = config([server_ip(0), v6]);
        config.announced_port = port;
        let mut puppet = Puppet::new(config);
        let stamp = timestamps.then_some(Timestamps { value: 1, echo: 0 });
        let flow =
            anabranch_wire::FlowKey::new(SocketAddr::new(client_ip(0), 4000), SocketAddr::new(server_ip(0), PORT));
        let mut syn = Segment::new(flow, Flags::SYN, SubflowSeq::new(1000), SubflowSeq::new(0));
        *syn.options.handshake_mut() = handshake();
        syn.options.set_timestamps(stamp);
        syn.options.push_mptcp(MpOption::Capable(MpCapable::OFFER));
        puppet.deliver(syn);
        let line = puppet.answered(Line { flow, irs: SubflowSeq::new(0), ack: 1 });
        let keys = puppet.keys(None);
        puppet.send(line.ack(1), |s| {
            s.options.set_timestamps(stamp);
            s.options.push_mptcp(MpOption::Capable(keys));
        });
        let ours = echoes(&puppet.take());
        assert_eq!(ours.len(), 1, "timestamps {timestamps}, port {port:?}");
        assert_eq!((ours[0].address, ours[0].port), (v6, port));
    }
}

fn two() -> (Puppet, Line, Line) {
    let (mut puppet, line) = Puppet::accepted(server(1));
    let map = puppet.map(1, 0, 10);
    puppet.data(line, 1, &PATTERN[..10], Some(map));
    let second = puppet.join(1);
    puppet.wait(Duration::from_millis(100));
    puppet.take();
    (puppet, line, second)
}

fn remove(puppet: &mut Puppet, line: Line, ids: &[u8]) {
    let ids = ids.iter().copied().map(AddressId).collect();
    puppet.send(line.ack(11), |s| s.options.push_mptcp(MpOption::RemoveAddr(RemoveAddr { ids })));
}

/// §3.4.2: a subflow whose address is withdrawn is asked for signs of life, and reset if there are none.
#[test]
fn a_withdrawn_address_takes_its_dead_subflow_along() {
    let (mut puppet, line, second) = two();
    remove(&mut puppet, line, &[1]);
    let probes = puppet.take();
    assert!(probes.iter().any(|s| second.carries(s) && s.payload.is_empty()), "a keepalive: {probes:#?}");
    assert!(!probes.iter().any(|s| s.flags.has(Flags::RST)));
    puppet.wait(Duration::from_secs(3));
    let out = puppet.take();
    assert!(out.iter().any(|s| second.carries(s) && reason(s) == Some(ResetReason::Unspecified)), "{out:#?}");
    assert_eq!(puppet.host.subflow_stats(puppet.id.unwrap()).iter().filter(|s| s.established).count(), 1);
}

/// §3.4.2: "If a response is received, the path SHOULD NOT be removed."
#[test]
fn a_subflow_that_answers_the_keepalive_stays() {
    let (mut puppet, line, second) = two();
    remove(&mut puppet, line, &[1]);
    puppet.confirm(second, 1, 0);
    puppet.wait(Duration::from_secs(10));
    assert!(!puppet.take().iter().any(|s| s.flags.has(Flags::RST)));
    let map = puppet.map(1, 10, 10);
    puppet.data(second, 1, &PATTERN[10..20], Some(map));
    assert!(puppet.read == PATTERN[..20]);
}

/// §3.4.2: a segment withdraws an address to which a join is under way, one that began before the segment's own
/// subflow. The join ends, and the rest of the segment counts: its data, its DATA_ACK.
#[test]
fn a_join_that_is_given_up_costs_nothing_of_the_segment_that_says_so() {
    let (mut puppet, line) = connected();
    let (pending, good) = (add(&puppet, 2, server_ip(1), None), add(&puppet, 3, server_ip(2), None));
    announce(&mut puppet, line, pending);
    let mut out = announce(&mut puppet, line, good);
    out.retain(|s| s.flags == Flags::SYN && s.flow.destination().ip() == server_ip(2));
    puppet.out = out;
    let join = puppet.out[0].options.mptcp().iter().find_map(|option| match option {
        MpOption::JoinSyn(join) => Some(*join),
        _ => None,
    });
    let hmac = join_hmac(KEY, puppet.theirs.unwrap(), Nonce(77), join.unwrap().nonce).first_8();
    let answer = JoinSynAck { backup: false, address: AddressId(3), hmac, nonce: Nonce(77) };
    let second = puppet.answer(MpOption::JoinSynAck(answer));
    puppet.confirm(second, 1, 0);
    let stats = |puppet: &Puppet| puppet.host.subflow_stats(puppet.id.unwrap());
    assert_eq!(stats(&puppet).iter().map(|it| it.established).collect::<Vec<_>>(), [true, false, true]);
    let map = puppet.map(1, 0, 10);
    puppet.send(second.ack(1), |s| {
        s.payload = PATTERN[..10].to_vec().into();
        s.options.set_dss(Some(map));
        s.options.push_mptcp(MpOption::RemoveAddr(RemoveAddr { ids: vec![AddressId(2)] }));
    });
    assert_eq!(stats(&puppet).iter().filter(|it| it.established).count(), 2);
    assert!(puppet.read == PATTERN[..10], "{} bytes", puppet.read.len());
}

/// §3.4.2: unknown identifiers are silently ignored, also in a list with known ones; the last subflow stays.
#[test]
fn unknown_identifiers_are_ignored() {
    let (mut puppet, line, second) = two();
    remove(&mut puppet, line, &[7, 200]);
    assert!(puppet.take().is_empty());
    remove(&mut puppet, line, &[7, 1, 9]);
    puppet.wait(Duration::from_secs(3));
    assert!(puppet.take().iter().any(|s| second.carries(s) && s.flags.has(Flags::RST)));
    remove(&mut puppet, line, &[0]);
    puppet.wait(Duration::from_secs(3));
    assert!(!puppet.take().iter().any(|s| s.flags.has(Flags::RST)));
    let map = puppet.map(11, 10, 10);
    puppet.data(line, 11, &PATTERN[10..20], Some(map));
    assert!(puppet.read == PATTERN[..20]);
}

/// §3.4.2: no subflow is opened to a withdrawn address, be it the initial one.
#[test]
fn nothing_is_opened_to_a_withdrawn_address() {
    for withdrawn in [false, true] {
        let mut config = config([client_ip(0), client_ip(1)]);
        config.full_mesh = true;
        let mut puppet = Puppet::connected(config, MpCapable::OFFER);
        let line = puppet.1;
        if withdrawn {
            // Before anything else confirmed the session.
            let remove = RemoveAddr { ids: vec![AddressId(0)] };
            puppet.0.send(line.ack(1), |s| s.options.push_mptcp(MpOption::RemoveAddr(remove)));
        }
        puppet.0.take();
        puppet.0.confirm(line, 1, 0);
        assert_eq!(joins(&puppet.0.take()).len(), usize::from(!withdrawn));
    }
}

/// §3.4.2: our own interface goes down: the address is withdrawn although no subflow used it, and announced when it is
/// back.
#[test]
fn an_announced_address_is_withdrawn_with_its_interface() {
    let (mut puppet, line) = Puppet::accepted(server(2));
    let ours = echoes(&puppet.take());
    puppet.send(line.ack(1), |s| s.options.push_mptcp(MpOption::AddAddr(AddAddr { hmac: None, ..ours[0] })));
    puppet.host.set_carrier(puppet.now, server_ip(1), false);
    puppet.pump();
    let removed = RemoveAddr { ids: vec![AddressId(2)] };
    assert!(puppet.take().iter().any(|s| s.options.mptcp().contains(&MpOption::RemoveAddr(removed.clone()))));
    puppet.host.set_carrier(puppet.now, server_ip(1), true);
    puppet.pump();
    assert_eq!(echoes(&puppet.take()), ours);
}

fn local(ip: IpAddr) -> LocalAddress {
    LocalAddress { ip, backup: false }
}

fn open_from(pair: &Pair, host: usize) -> Vec<IpAddr> {
    let subflows = pair.hosts[host].subflow_stats(pair.id[host].unwrap());
    subflows.iter().filter(|subflow| subflow.established).map(|subflow| subflow.local.ip()).collect()
}

/// §3.4.2: an address is given up with data in flight: its subflow ends with FINs at both ends, all data arrives,
/// nothing is joined from there until it is ours again.
#[test]
fn an_address_is_given_up_and_taken_again_in_the_middle_of_a_transfer() {
    for gone in [0, 1] {
        let mut pair = Pair::new(2);
        pair.open();
        pair.write(CLIENT, &PATTERN[..1000]);
        pair.run(Duration::from_millis(200));
        assert_eq!(open_from(&pair, CLIENT), [client_ip(0), client_ip(1)]);
        for _ in 0..4 {
            pair.write(CLIENT, PATTERN);
            pair.write(SERVER, PATTERN);
        }
        pair.run(Duration::from_millis(30));
        assert!(pair.hosts[CLIENT].remove_address(pair.now, client_ip(gone)));
        assert!(!pair.hosts[CLIENT].remove_address(pair.now, client_ip(gone)), "it has gone already");
        assert!(pair.run(Duration::from_secs(20)) || pair.read[SERVER].len() == 801_000);
        assert_eq!((pair.read[CLIENT].len(), pair.read[SERVER].len()), (800_000, 801_000));
        for (host, skip) in [(CLIENT, 0), (SERVER, 1000)] {
            assert!(pair.read[host][skip..].chunks(PATTERN.len()).all(|chunk| chunk == PATTERN), "to host {host}");
        }
        assert_eq!(open_from(&pair, CLIENT), [client_ip(1 - gone)]);
        assert_eq!(open_from(&pair, SERVER).len(), 1);
        for host in [CLIENT, SERVER] {
            assert!(pair.has(host, |event| matches!(event, Event::SubflowClosed(_))), "host {host}");
            assert_eq!(pair.hosts[host].counters().resets_received, 0, "FINs, no resets");
        }
        assert!(pair.hosts[CLIENT].add_address(pair.now, local(client_ip(gone))));
        assert!(!pair.hosts[CLIENT].add_address(pair.now, local(client_ip(gone))), "it is there already");
        pair.run(Duration::from_secs(1));
        assert_eq!(open_from(&pair, CLIENT).len(), 2, "joined again");
    }
}

/// The only subflow stays although its address is given up; a join that is under way does not.
#[test]
fn what_has_no_alternative_stays() {
    let mut pair = Pair::new(2);
    pair.open();
    pair.write(CLIENT, &PATTERN[..1000]);
    // Until the SYN of the join has left: path 1 takes 15 ms.
    pair.run(Duration::from_millis(25));
    assert_eq!(pair.hosts[CLIENT].subflow_stats(pair.id[CLIENT].unwrap()).len(), 2);
    for path in [1, 0] {
        assert!(pair.hosts[CLIENT].remove_address(pair.now, client_ip(path)));
    }
    pair.run(Duration::from_secs(5));
    assert_eq!(open_from(&pair, CLIENT), [client_ip(0)]);
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(1));
    pair.shutdown(SERVER);
    pair.shutdown(CLIENT);
    pair.run(Duration::from_secs(5));
    assert!(pair.read[CLIENT] == PATTERN);
    assert!(pair.has(CLIENT, |event| *event == Event::Closed) && pair.has(SERVER, |event| *event == Event::Closed));
}

/// §3.4: a server's new address is announced under an identifier of its own, and withdrawn under it; nothing is
/// accepted there afterwards. The identifier is not used for the next.
#[test]
fn a_server_announces_and_withdraws_addresses_as_they_come_and_go() {
    let (mut puppet, line) = Puppet::accepted(server(1));
    puppet.take();
    for (number, id) in [(1, 2), (2, 3)] {
        assert!(puppet.host.add_address(puppet.now, local(server_ip(number))));
        puppet.pump();
        let ours = echoes(&puppet.take());
        assert_eq!(
            ours.iter().map(|add| (add.id, add.address)).collect::<Vec<_>>(),
            [(AddressId(id), server_ip(number))]
        );
        puppet.send(line.ack(1), |s| s.options.push_mptcp(MpOption::AddAddr(AddAddr { hmac: None, ..ours[0] })));
        assert!(puppet.host.addresses().any(|address| address.ip == server_ip(number)));
        assert!(puppet.host.remove_address(puppet.now, server_ip(number)));
        puppet.pump();
        let removed = MpOption::RemoveAddr(RemoveAddr { ids: vec![AddressId(id)] });
        assert!(puppet.take().iter().any(|s| s.options.mptcp().contains(&removed)));
        assert!(!puppet.host.addresses().any(|address| address.ip == server_ip(number)));
        let flow =
            anabranch_wire::FlowKey::new(SocketAddr::new(client_ip(1), 4444), SocketAddr::new(server_ip(number), PORT));
        puppet.deliver(Segment::new(flow, Flags::SYN, SubflowSeq::new(1), SubflowSeq::new(0)));
        assert!(puppet.take().iter().all(|s| s.flags.has(Flags::RST)), "nobody listens there");
    }
}
