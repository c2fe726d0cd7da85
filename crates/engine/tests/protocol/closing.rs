//! DATA_FIN, subflow FINs, fast close and resets (RFC 8684 §3.3.3, §3.5, §3.6).

use crate::common::puppet::{KEY, Line, Puppet, reason};
use crate::common::{CLIENT, PATTERN, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Config, Endpoint, Event, FastClose};
use anabranch_units::{Duration, Key, Seed, SubflowId};
use anabranch_wire::{DataSeq, Dss, Flags, MpCapable, MpOption, ResetReason, Segment};
use bytes::Bytes as Payload;

fn server() -> Config {
    config([server_ip(0)])
}

/// A server with data received on its initial subflow, and a second subflow.
fn two(config: Config) -> (Puppet, Line, Line) {
    let (mut puppet, line) = Puppet::accepted(config);
    let map = puppet.map(1, 0, 10);
    puppet.data(line, 1, &PATTERN[..10], Some(map));
    let second = puppet.join(1);
    puppet.wait(Duration::from_millis(100));
    puppet.take();
    (puppet, line, second)
}

fn data_fins(out: &[Segment]) -> Vec<&Segment> {
    out.iter().filter(|s| s.options.dss().is_some_and(|dss| dss.data_fin)).collect()
}

fn is_fin(segment: &Segment) -> bool {
    segment.flags.has(Flags::FIN)
}

/// §3.3.3: a lone DATA_FIN has subflow sequence number 0 and length 1, takes one data sequence number, goes out on
/// every subflow, and is repeated until DATA_ACKed; no subflow is closed before.
#[test]
fn a_data_fin_is_repeated_until_acknowledged() {
    let (mut puppet, line, second) = two(server());
    puppet.shutdown();
    let out = puppet.take();
    let fins = data_fins(&out);
    assert_eq!(fins.len(), 2);
    assert!(fins.iter().any(|s| line.carries(s)) && fins.iter().any(|s| second.carries(s)));
    let map = fins[0].options.dss().unwrap().map.unwrap();
    assert_eq!((map.subflow_seq, map.length), (0, 1));
    assert_eq!(map.dsn, DataSeq::Long(puppet.theirs.unwrap().idsn() + 1));
    puppet.wait(Duration::from_secs(10));
    let out = puppet.take();
    assert!(data_fins(&out).len() >= 4, "{out:#?}");
    assert!(!out.iter().any(is_fin));
    puppet.confirm(line, 11, 1);
    puppet.wait(Duration::from_secs(20));
    let out = puppet.take();
    assert!(data_fins(&out).is_empty() && !out.iter().any(is_fin), "one direction is closed, the other not: {out:#?}");
}

/// §3.3.3: on the last data the mapping's length counts it, and it is DATA_ACKed as one more.
#[test]
fn a_data_fin_on_the_last_data() {
    let (mut puppet, line) = Puppet::accepted(server());
    let map = puppet.map(1, 0, 10);
    puppet.data(line, 1, &PATTERN[..10], Some(map));
    puppet.take();
    let mut last = puppet.map(11, 10, 91);
    last.data_fin = true;
    puppet.data(line, 11, &PATTERN[10..100], Some(last));
    assert!(puppet.read == PATTERN[..100]);
    assert!(puppet.has(|event| *event == Event::PeerFinished));
    assert_eq!(puppet.take().iter().filter_map(Puppet::acked).max(), Some(101));
    // Our own, the same way.
    puppet.host.write(puppet.id.unwrap(), &Payload::from_static(b"bye")).unwrap();
    puppet.host.shutdown(puppet.id.unwrap());
    puppet.pump();
    let out = puppet.take();
    let fins = data_fins(&out);
    assert_eq!((fins.len(), fins[0].payload.as_ref()), (1, b"bye".as_slice()));
    assert_eq!(fins[0].options.dss().unwrap().map.unwrap().length, 4);
    assert!(!is_fin(fins[0]));
    // Both are acknowledged: now the subflow closes, and its FIN carries a DSS.
    puppet.confirm(line.acking(4), 101, 4);
    let fin = puppet.take().into_iter().find(is_fin).expect("a FIN");
    assert_eq!(Puppet::acked(&fin), Some(101));
    puppet.send(line.acking(5).ack(101), |s| s.flags = Flags::FIN.with(Flags::ACK));
    assert!(puppet.has(|event| *event == Event::Closed));
}

/// §3.3.3: the end of the stream waits for the data before it, wherever the DATA_FIN came.
#[test]
fn a_data_fin_before_its_data_waits() {
    let (mut puppet, line, second) = two(server());
    let fin = puppet.data_fin(100);
    puppet.send(second.ack(1), |s| s.options.set_dss(Some(fin)));
    assert!(!puppet.has(|event| *event == Event::PeerFinished));
    assert_eq!(puppet.take().iter().filter_map(Puppet::acked).max(), Some(10));
    let map = puppet.map(11, 10, 90);
    puppet.data(line, 11, &PATTERN[10..100], Some(map));
    assert!(puppet.has(|event| *event == Event::PeerFinished));
    puppet.wait(Duration::from_secs(1));
    assert_eq!(puppet.take().iter().filter_map(Puppet::acked).max(), Some(101));
    // A repeated one is acknowledged again.
    puppet.send(second.ack(1), |s| s.options.set_dss(Some(fin)));
    assert_eq!(puppet.take().iter().filter_map(Puppet::acked).max(), Some(101));
}

/// §3.3.3: a subflow FIN without DATA_FIN closes that subflow and not the stream; ours is repeated like data.
#[test]
fn a_subflow_fin_ends_its_subflow_only() {
    let (mut puppet, line, second) = two(server());
    puppet.send(second.ack(1), |s| s.flags = Flags::FIN.with(Flags::ACK));
    assert!(!puppet.has(|event| *event == Event::PeerFinished));
    puppet.wait(Duration::from_secs(5));
    let fins: Vec<_> = puppet.take().into_iter().filter(is_fin).collect();
    assert!(fins.len() >= 3, "repeated until acknowledged: {}", fins.len());
    assert!(fins.iter().all(|s| second.carries(s) && s.ack == fins[0].ack && Puppet::acked(s) == Some(10)));
    assert!(!puppet.has(|event| matches!(event, Event::SubflowClosed(_))));
    puppet.send(second.acking(2).ack(2), |_| {});
    assert!(puppet.has(|event| *event == Event::SubflowClosed(SubflowId(1))));
    let map = puppet.map(11, 10, 90);
    puppet.data(line, 11, &PATTERN[10..100], Some(map));
    assert!(puppet.read == PATTERN[..100]);
}

/// §3.3.3: what was in flight on a subflow that closes is sent again on another.
#[test]
fn data_of_a_closed_subflow_moves_over() {
    let mut pair = Pair::new(2);
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(1));
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_millis(8));
    let id = pair.id[SERVER].unwrap();
    assert!(pair.hosts[SERVER].close_subflow(pair.now, id, SubflowId(0)));
    assert!(!pair.hosts[SERVER].close_subflow(pair.now, id, SubflowId(1)), "the last one stays");
    pair.run(Duration::from_secs(20));
    assert!(pair.read[CLIENT] == PATTERN);
    assert!(pair.has(SERVER, |event| *event == Event::SubflowClosed(SubflowId(0))));
    assert!(pair.hosts[SERVER].counters().resets_sent.is_empty(), "both FINs came through");
}

/// §3.3.3: with all subflows closed and no DATA_FIN the connection ends only after a while, so that it can be joined
/// again.
#[test]
fn a_connection_outlives_its_subflows_for_a_while() {
    for reset in [false, true] {
        let (mut puppet, line) = Puppet::accepted(server());
        let map = puppet.map(1, 0, 10);
        puppet.data(line, 1, &PATTERN[..10], Some(map));
        puppet.take();
        let ack = puppet.data_ack(0);
        puppet.send(line.ack(11), |s| {
            s.flags = if reset { Flags::RST } else { Flags::FIN.with(Flags::ACK) };
            s.options.set_dss(Some(ack));
        });
        puppet.confirm(line.acking(2), 12, 0);
        puppet.wait(Duration::from_secs(30));
        assert_eq!(puppet.host.connection_count(), 1);
        assert!(puppet.has(|event| *event == Event::SubflowClosed(SubflowId(0))));
        assert!(!puppet.has(|event| matches!(event, Event::PeerFinished | Event::Reset | Event::Closed)));
        let second = puppet.join(1);
        let map = puppet.map(1, 10, 10);
        puppet.data(second, 1, &PATTERN[10..20], Some(map));
        assert!(puppet.read == PATTERN[..20]);
        puppet.send(second.ack(11), |s| s.flags = Flags::RST);
        puppet.wait(Duration::from_secs(61));
        assert!(puppet.has(|event| *event == Event::Reset), "{:?}", puppet.events);
        assert_eq!(puppet.host.connection_count(), 0);
    }
}

/// §3.3.3: both ends close at once; also when the first DATA_FINs are lost.
#[test]
fn both_ends_close_at_once() {
    for lose in [0, 1, 3] {
        let mut pair = Pair::new(2);
        pair.open();
        pair.write(CLIENT, b"GET");
        pair.run(Duration::from_secs(1));
        let mut left = lose;
        pair.rule = Box::new(move |_, segment| {
            let fin = segment.options.dss().is_some_and(|dss| dss.data_fin);
            let lost = fin && left > 0;
            left -= i32::from(lost);
            !lost
        });
        pair.shutdown(CLIENT);
        pair.shutdown(SERVER);
        assert!(pair.run(Duration::from_secs(120)));
        for host in [CLIENT, SERVER] {
            assert!(pair.has(host, |event| *event == Event::Closed), "{lose} lost: {:?}", pair.events[host]);
        }
    }
}

/// §3.3.3: a DATA_FIN whose only carrier dies is sent on the others.
#[test]
fn a_data_fin_survives_its_subflow() {
    let mut pair = Pair::new(2);
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(1));
    // The first path dies with the last data and the DATA_FIN on it.
    pair.rule = Box::new(|_, segment| ![segment.flow.src, segment.flow.dst].contains(&client_ip(0)));
    pair.write(SERVER, &PATTERN[..1000]);
    pair.run(Duration::ZERO);
    pair.shutdown(SERVER);
    pair.shutdown(CLIENT);
    pair.run(Duration::from_secs(30));
    assert!(pair.read[CLIENT] == PATTERN[..1000]);
    assert!(pair.has(CLIENT, |event| *event == Event::PeerFinished));
}

/// §3.3.3: a stream cannot end in two places, nor before what came of it.
#[test]
fn a_contradictory_data_fin_resets_the_subflow() {
    for at in [5, 200] {
        let (mut puppet, _, second) = two(server());
        let fin = puppet.data_fin(100);
        puppet.send(second.ack(1), |s| s.options.set_dss(Some(fin)));
        puppet.take();
        let fin = puppet.data_fin(at);
        puppet.send(second.ack(1), |s| s.options.set_dss(Some(fin)));
        let out = puppet.take();
        assert!(out.iter().any(|s| second.carries(s) && reason(s) == Some(ResetReason::MptcpError)), "{out:#?}");
    }
}

fn fast_close(segment: &Segment) -> Option<Key> {
    segment.options.mptcp().iter().find_map(|option| match option {
        MpOption::FastClose { receiver_key } => Some(*receiver_key),
        _ => None,
    })
}

/// §3.5, option R: a RST with MP_FASTCLOSE on every subflow, with the peer's key; MP_TCPRST beside it (§3.6).
#[test]
fn abort_by_reset() {
    let (mut puppet, line, second) = two(server());
    puppet.host.abort(puppet.now, puppet.id.unwrap());
    puppet.pump();
    let out = puppet.take();
    assert_eq!(out.len(), 2);
    assert!(line.carries(&out[0]) && second.carries(&out[1]));
    assert!(out.iter().all(|s| s.flags.has(Flags::RST) && fast_close(s) == Some(KEY)));
    assert!(out.iter().all(|s| reason(s) == Some(ResetReason::Unspecified)));
    assert_eq!(puppet.host.connection_count(), 0);
}

/// §3.5, option A: MP_FASTCLOSE on an ACK of one subflow and RSTs on the others; at most three repetitions, an RTO
/// apart; then a RST with MP_FASTCLOSE.
#[test]
fn abort_by_acknowledgment_is_repeated() {
    let mut config = server();
    config.fast_close = FastClose::Ack;
    let (mut puppet, ..) = two(config);
    puppet.host.abort(puppet.now, puppet.id.unwrap());
    puppet.pump();
    let out = puppet.take();
    let closes: Vec<_> = out.iter().filter(|s| fast_close(s) == Some(KEY)).collect();
    assert_eq!(closes.len(), 1);
    assert!(!closes[0].flags.has(Flags::RST));
    assert_eq!(out.iter().filter(|s| s.flags.has(Flags::RST)).count(), 1);
    puppet.wait(Duration::from_secs(60));
    let out = puppet.take();
    assert_eq!(out.len(), 4, "{out:#?}");
    assert!(out.iter().all(|s| fast_close(s) == Some(KEY)));
    assert_eq!(out.iter().filter(|s| s.flags.has(Flags::RST)).count(), 1);
    assert!(out[3].flags.has(Flags::RST));
    assert_eq!(puppet.host.connection_count(), 0);
    assert!(puppet.has(|event| *event == Event::Reset));
}

/// §3.5: the peer's RST ends the wait; so does its own MP_FASTCLOSE, which is answered with a RST.
#[test]
fn an_answered_fast_close_is_over() {
    for crossing in [false, true] {
        let mut config = server();
        config.fast_close = FastClose::Ack;
        let (mut puppet, line, second) = two(config);
        puppet.host.abort(puppet.now, puppet.id.unwrap());
        puppet.pump();
        let out = puppet.take();
        let on = if line.carries(out.iter().find(|s| fast_close(s).is_some()).unwrap()) { line } else { second };
        let at = if on.flow == line.flow { 11 } else { 1 };
        let key = puppet.theirs.unwrap();
        puppet.send(on.ack(at), |s| {
            if crossing {
                s.options.push_mptcp(MpOption::FastClose { receiver_key: key });
            } else {
                s.flags = Flags::RST;
            }
        });
        assert_eq!(puppet.host.connection_count(), 0);
        let out = puppet.take();
        assert_eq!(out.len(), usize::from(crossing));
        assert!(out.iter().all(|s| s.flags.has(Flags::RST)));
    }
}

/// §3.5: while MP_FASTCLOSE waits for its answer an MP_FAIL means nothing. It is repeated, and a RST is the end.
#[test]
fn an_mp_fail_is_no_answer_to_a_fast_close() {
    let mut config = server();
    config.fast_close = FastClose::Ack;
    let (mut puppet, line, second) = two(config);
    puppet.host.abort(puppet.now, puppet.id.unwrap());
    puppet.pump();
    let out = puppet.take();
    let on = if line.carries(out.iter().find(|s| fast_close(s).is_some()).unwrap()) { line } else { second };
    let at = if on.flow == line.flow { 11 } else { 1 };
    puppet.send(on.ack(at), |s| s.options.push_mptcp(MpOption::Fail { dsn: KEY.idsn() }));
    assert!(puppet.take().is_empty());
    puppet.wait(Duration::from_secs(60));
    let out = puppet.take();
    assert_eq!(out.iter().filter(|s| fast_close(s).is_some() && !s.flags.has(Flags::RST)).count(), 3);
    assert!(out.last().unwrap().flags.has(Flags::RST));
    assert_eq!(puppet.host.connection_count(), 0);
    assert!(puppet.has(|event| *event == Event::Reset));
}

/// The client's first data was under way when the application gave the connection up. It confirms MPTCP, and the wait
/// for the answer to MP_FASTCLOSE goes on (§3.5).
#[test]
fn first_data_does_not_revive_what_was_given_up() {
    let mut config = server();
    config.fast_close = FastClose::Ack;
    let (mut puppet, line) = Puppet::accepted(config);
    puppet.host.abort(puppet.now, puppet.id.unwrap());
    puppet.pump();
    assert!(puppet.take().iter().any(|s| fast_close(s).is_some()));
    let keys = puppet.keys(Some((10, None)));
    puppet.send(line.ack(1), |s| {
        s.payload = PATTERN[..10].into();
        s.options.push_mptcp(MpOption::Capable(keys));
    });
    assert!(!puppet.has(|event| *event == Event::Readable));
    puppet.wait(Duration::from_secs(60));
    let out = puppet.take();
    assert!(out.iter().filter(|s| fast_close(s).is_some() && !s.flags.has(Flags::RST)).count() >= 3);
    assert_eq!(puppet.host.connection_count(), 0);
}

/// §3.5: with our key it is honoured on an ACK (answered with RSTs) and on a RST; any other key is ignored.
#[test]
fn a_fast_close_needs_the_right_key() {
    for on_reset in [false, true] {
        let (mut puppet, line, second) = two(server());
        let wrong = Key::new(1);
        puppet.send(line.ack(11), |s| s.options.push_mptcp(MpOption::FastClose { receiver_key: wrong }));
        assert!(!puppet.has(|event| *event == Event::Reset));
        assert!(puppet.take().is_empty());
        let key = puppet.theirs.unwrap();
        puppet.send(second.ack(1), |s| {
            s.options.push_mptcp(MpOption::FastClose { receiver_key: key });
            if on_reset {
                s.flags = Flags::RST;
            }
        });
        assert!(puppet.has(|event| *event == Event::Reset));
        assert_eq!(puppet.host.connection_count(), 0);
        let out = puppet.take();
        assert!(out.iter().all(|s| s.flags.has(Flags::RST)));
        assert!(out.iter().any(|s| line.carries(s)), "the other subflow is reset as well");
        assert!(on_reset || out.iter().any(|s| second.carries(s)));
    }
}

/// §3.6: the reason of a reset reaches the application and the counters; on anything but a RST it is ignored.
#[test]
fn reset_reasons_are_reported() {
    let (mut puppet, line, second) = two(server());
    let option = MpOption::TcpReset { transient: true, reason: ResetReason::LackOfResources };
    puppet.send(line.ack(11), |s| s.options.push_mptcp(option.clone()));
    assert!(puppet.host.counters().reset_reasons_received.is_empty());
    puppet.send(second.ack(1), |s| {
        s.flags = Flags::RST;
        s.options.push_mptcp(option.clone());
    });
    let event = Event::SubflowReset { subflow: SubflowId(1), reason: ResetReason::LackOfResources, transient: true };
    assert!(puppet.has(|seen| *seen == event), "{:?}", puppet.events);
    assert_eq!(puppet.host.counters().reset_reasons_received.get(&ResetReason::LackOfResources), Some(&1));
    assert_eq!(puppet.host.connection_count(), 1);
}

/// §3.6: after a permanent error the path is not tried again, after a transient one it is.
#[test]
fn a_permanent_error_bars_the_path() {
    for transient in [false, true] {
        let (mut puppet, line) = Puppet::connected(config((0..2).map(client_ip)), MpCapable::OFFER);
        puppet.confirm(line, 1, 0);
        let syn = puppet.out.iter().find(|s| s.flags == Flags::SYN).unwrap().clone();
        let mut reset = Segment::new(
            syn.flow.reversed(),
            Flags::RST.with(Flags::ACK),
            anabranch_units::SubflowSeq::new(0),
            syn.seq + 1,
        );
        reset.options.push_mptcp(MpOption::TcpReset { transient, reason: ResetReason::Prohibited });
        puppet.take();
        puppet.deliver(reset);
        puppet.wait(Duration::from_secs(60));
        let again = puppet.take().iter().filter(|s| s.flags == Flags::SYN).count();
        assert_eq!(again > 0, transient, "{again} SYNs");
    }
}

/// §3.3.8: MP_PRIO acts on the subflow it travels on, at once; ours is sent there as well.
#[test]
fn mp_prio_moves_the_data_away() {
    let (mut puppet, line, second) = two(server());
    puppet.confirm(second, 1, 0);
    puppet.send(line.ack(11), |s| s.options.push_mptcp(MpOption::Prio { backup: true }));
    puppet.write(&PATTERN[..5000]);
    let out = puppet.take();
    assert!(out.iter().all(|s| s.payload.is_empty() || second.carries(s)), "{out:#?}");
    assert!(out.iter().any(|s| second.carries(s) && !s.payload.is_empty()));
    puppet.confirm(second.acking(5001), 1, 5000);
    puppet.send(line.ack(11), |s| s.options.push_mptcp(MpOption::Prio { backup: false }));
    puppet.host.set_backup(puppet.now, puppet.id.unwrap(), SubflowId(1), true);
    puppet.pump();
    let prio = |s: &Segment| s.options.mptcp().contains(&MpOption::Prio { backup: true });
    assert!(puppet.take().iter().any(|s| second.carries(s) && prio(s)));
    puppet.write(&PATTERN[5000..10_000]);
    assert!(puppet.take().iter().all(|s| s.payload.is_empty() || line.carries(s)));
}

/// §3.3.3: no DATA_ACK beyond what was sent ends our stream.
#[test]
fn an_optimistic_data_fin_acknowledgment_is_ignored() {
    let (mut puppet, line, _) = two(server());
    puppet.confirm(line, 11, 1);
    puppet.write(&PATTERN[..10]);
    puppet.shutdown();
    let out = puppet.take();
    assert!(out.iter().any(|s| s.payload.len() == 10));
    let dss = Dss { data_ack: Some(DataSeq::Long(puppet.theirs.unwrap().idsn() + 1 + 500)), ..Dss::default() };
    puppet.send(line.ack(11), |s| s.options.set_dss(Some(dss)));
    puppet.wait(Duration::from_secs(1));
    assert!(puppet.take().iter().any(|s| s.payload.len() == 10), "still repeated");
}

/// §3.1: a client that closes without data repeats the keys before its DATA_FIN, each time, until the peer has shown
/// that it has them; nothing else would make up for a lost third ACK.
#[test]
fn the_keys_go_before_an_early_data_fin() {
    let (mut puppet, line) = Puppet::connected(config([client_ip(0)]), MpCapable::OFFER);
    puppet.take();
    puppet.shutdown();
    puppet.wait(Duration::from_secs(2));
    let keys = |s: &Segment| s.options.mptcp().iter().any(|option| matches!(option, MpOption::Capable(_)));
    let fin = |s: &Segment| s.options.dss().is_some_and(|dss| dss.data_fin);
    let mut out = puppet.take();
    // The question behind a repeated one goes without saying.
    out.retain(|s| keys(s) || fin(s));
    assert!(out.len() >= 4 && out.len() % 2 == 0, "{out:?}");
    assert!(out.chunks(2).all(|pair| keys(&pair[0]) && !fin(&pair[0]) && fin(&pair[1])), "{out:?}");
    puppet.confirm(line, 1, 0);
    puppet.take();
    puppet.wait(Duration::from_secs(8));
    let out = puppet.take();
    assert!(out.iter().any(fin) && !out.iter().any(keys), "{out:?}");
}

/// §3.7: a middlebox takes the options away after the handshake, and the only thing to be said is that the stream is
/// over. A DATA_FIN that never arrives is made up for by the subflow's FIN, which the peer takes for plain TCP's: both
/// ends close in order, in minutes at most. (Seed 9080814 of the swarm.)
#[test]
fn a_data_fin_whose_option_is_stripped_gives_way_to_a_fin() {
    for checksum in [false, true] {
        let mut pair = Pair::with(Config { checksum, ..config([client_ip(0)]) }, server());
        let mut sent = 0;
        pair.rule = Box::new(move |host, segment| {
            sent += u32::from(host == CLIENT);
            if host == CLIENT && sent > 3 {
                segment.options.retain_mptcp(|_| false);
                segment.options.set_dss(None);
            }
            true
        });
        pair.open();
        pair.write(CLIENT, b"the end");
        pair.run(Duration::from_secs(1));
        pair.shutdown(CLIENT);
        pair.run(Duration::from_secs(120));
        assert!(pair.has(SERVER, |event| *event == Event::PeerFinished), "{:?}", pair.events[SERVER]);
        pair.shutdown(SERVER);
        assert!(pair.run(Duration::from_secs(120)), "nothing is left");
        for host in [CLIENT, SERVER] {
            assert_eq!(pair.hosts[host].connection_count(), 0);
            assert!(pair.has(host, |event| *event == Event::Closed), "{host}: {:?}", pair.events[host]);
        }
    }
}

/// §3.6: a connection waits a minute for a subflow in the place of its last. Unanswered joins do not prolong that,
/// though one of them is always under way.
#[test]
fn joins_that_nobody_answers_do_not_keep_a_connection() {
    let mut pair = Pair::with(config([client_ip(0)]), config((0..3).map(server_ip)));
    let joins = |segment: &Segment| segment.options.mptcp().iter().any(|option| matches!(option, MpOption::JoinSyn(_)));
    pair.rule = Box::new(move |_, segment| !joins(segment));
    pair.open();
    pair.write(CLIENT, b"hello");
    pair.run(Duration::from_secs(20));
    // The server restarts and knows nothing of the connection.
    pair.hosts[SERVER] = Endpoint::new(config([server_ip(0)]), Seed(9)).unwrap();
    pair.write(CLIENT, b"anybody there?");
    pair.run(Duration::from_secs(90));
    assert_eq!(pair.hosts[CLIENT].connection_count(), 0);
    assert!(pair.has(CLIENT, |event| *event == Event::Reset));
}

/// §3.3.1, §3.7: a box that lengthens the stream moves its end. What a DATA_FIN said of it holds no more once plain TCP
/// has taken over: the subflow's FIN says where the stream ends.
#[test]
fn after_a_fallback_the_fin_is_the_end_whatever_a_data_fin_said() {
    let (mut puppet, line) = Puppet::accepted(server());
    let mut last = puppet.map(21, 20, 11);
    last.data_fin = true;
    puppet.data(line, 24, &PATTERN[20..30], Some(last));
    // Three bytes more than the mapping says.
    let first = puppet.map(1, 0, 10);
    puppet.data(line, 1, &PATTERN[..13], Some(first));
    puppet.data(line, 14, &PATTERN[10..20], None);
    assert!(puppet.has(|event| matches!(event, Event::Fallback(_))));
    assert_eq!(puppet.read.len(), 33);
    assert!(!puppet.has(|event| *event == Event::PeerFinished));
    puppet.send(line.ack(34), |s| s.flags = Flags::FIN.with(Flags::ACK));
    assert!(puppet.has(|event| *event == Event::PeerFinished));
}
