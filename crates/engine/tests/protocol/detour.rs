//! Pure ACKs on the path of another subflow: what moves, what is put back, and what is refused.

use crate::common::*;
use anabranch_engine::{Config, ConnectionStats, Endpoint, Switch};
use anabranch_policy::registry::{ACK_PATHS, Value, find};
use anabranch_units::{Duration, Seed, SubflowId};
use anabranch_wire::{Echo, Flags, FlowKey, MpOption, Segment};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// ACKs of both hosts on the path of the client's second address, where that is possible.
fn wishes(mut config: Config, ack_rewrite: bool) -> Config {
    let entry = find(ACK_PATHS, "ACK path", "fixed").unwrap();
    let params = entry.params(&[("path".to_owned(), Value::Text(client_ip(1).to_string()))].into()).unwrap();
    config.policies.ack_path = Arc::new(move || entry.build(&params));
    config.ack_rewrite = ack_rewrite;
    config
}

fn pair_of(paths: u8, client_can: bool, server_can: bool) -> Pair {
    let client = wishes(config((0..paths).map(client_ip)), client_can);
    Pair::with(client, wishes(config([server_ip(0)]), server_can))
}

/// Establishes both subflows; the first data makes them join.
fn connect(pair: &mut Pair) {
    pair.open();
    pair.run(Duration::from_millis(100));
    pair.write(SERVER, b"hello");
    pair.run(Duration::from_secs(1));
    pair.read[CLIENT].clear();
    let id = pair.id[CLIENT].unwrap();
    assert!(pair.hosts[CLIENT].subflow_stats(id).iter().filter(|subflow| subflow.established).count() == 2);
}

/// The server sends the pattern.
fn download(pair: &mut Pair) {
    connect(pair);
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(20));
    assert_eq!(pair.read[CLIENT], PATTERN);
}

fn stats(pair: &Pair, host: usize) -> ConnectionStats {
    pair.hosts[host].connection_stats(pair.id[host].unwrap()).unwrap()
}

/// Flows of the client's subflows, as it sends them.
fn flows(pair: &Pair) -> Vec<FlowKey> {
    let subflows = pair.hosts[CLIENT].subflow_stats(pair.id[CLIENT].unwrap());
    subflows.iter().map(|subflow| FlowKey::new(subflow.local, subflow.remote)).collect()
}

/// Everything that both hosts send, with who sent it.
fn record(pair: &mut Pair) -> Rc<RefCell<Vec<(usize, Segment)>>> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let recorder = Rc::clone(&seen);
    pair.rule = Box::new(move |host, segment| {
        recorder.borrow_mut().push((host, segment.clone()));
        true
    });
    seen
}

/// Away from its own addresses.
fn is_detoured(host: usize, segment: &Segment, flows: &[FlowKey]) -> bool {
    let flow = if host == CLIENT { segment.flow } else { segment.flow.reversed() };
    !flows.contains(&flow)
}

#[test]
fn pure_acks_take_the_other_path_and_nothing_else_does() {
    let mut pair = pair_of(2, true, true);
    let seen = record(&mut pair);
    download(&mut pair);
    pair.shutdown(SERVER);
    pair.shutdown(CLIENT);
    let flows = flows(&pair);
    let id = pair.id;
    assert!(pair.run(Duration::from_secs(100)));
    let stats = [CLIENT, SERVER].map(|host| pair.hosts[host].connection_stats(id[host].unwrap()).unwrap());
    let seen = seen.borrow();
    let (moved, kept): (Vec<_>, Vec<_>) = seen.iter().partition(|(host, segment)| is_detoured(*host, segment, &flows));
    assert!(moved.len() > 20, "{} moved", moved.len());
    for (host, segment) in &moved {
        let flow = if *host == CLIENT { segment.flow } else { segment.flow.reversed() };
        assert_eq!(flow, FlowKey { src: client_ip(1), ..flows[0] });
        assert!(segment.payload.is_empty() && segment.flags == Flags::ACK, "{segment:?}");
        assert!(segment.options.mptcp().is_empty(), "no message: {segment:?}");
    }
    for host in [CLIENT, SERVER] {
        let sent = moved.iter().filter(|(from, _)| *from == host).count() as u64;
        assert_eq!((stats[host].acks_detoured, stats[1 - host].acks_restored), (sent, sent));
    }
    assert_eq!(stats[CLIENT].ack_fallbacks, 0);
    assert_eq!(pair.hosts[SERVER].counters().unacceptable, 0, "late ACKs of the own path do no harm");
    assert_eq!(pair.hosts[SERVER].counters().unknown_flow, 0);
    // One of sixteen keeps its path, for the sake of middleboxes.
    let own = kept.iter().filter(|(host, s)| *host == CLIENT && s.flow == flows[0] && s.flags == Flags::ACK).count();
    assert!(own * 15 >= moved.len(), "{own} of {}", own + moved.len());
}

#[test]
fn without_both_hosts_every_ack_keeps_its_path_and_is_counted() {
    for (client, server) in [(true, false), (false, true), (false, false)] {
        let mut pair = pair_of(2, client, server);
        let seen = record(&mut pair);
        download(&mut pair);
        let flows = flows(&pair);
        assert!(seen.borrow().iter().all(|(host, segment)| !is_detoured(*host, segment, &flows)));
        let stats = stats(&pair, CLIENT);
        assert_eq!(stats.acks_detoured, 0);
        assert!(stats.acks_kept > 20, "{} kept", stats.acks_kept);
        // A host without the feature says nothing; a host with it offers it, and answers only an offer.
        let says = |who| seen.borrow().iter().any(|(host, s)| *host == who && !s.options.unknown().is_empty());
        assert_eq!((says(CLIENT), says(SERVER)), (client, false));
    }
}

#[test]
fn a_middlebox_that_eats_the_offer_or_its_answer_leaves_all_as_it_was() {
    for from in [CLIENT, SERVER] {
        let mut pair = pair_of(2, true, true);
        pair.rule = Box::new(move |host, segment| {
            if host == from {
                *segment.options.foreign_mut() = anabranch_wire::Foreign::default();
            }
            true
        });
        download(&mut pair);
        assert_eq!(stats(&pair, CLIENT).acks_detoured, 0, "eaten on the way from {from}");
        assert!(stats(&pair, CLIENT).acks_kept > 0);
    }
}

/// A stateful middlebox that has seen no SYN of these addresses and ports drops their packets.
#[test]
fn acks_that_get_lost_fall_back_to_their_own_path() {
    let play = |drops: bool| {
        let mut pair = pair_of(2, true, true);
        connect(&mut pair);
        let first = flows(&pair)[0];
        let away = move |segment: &Segment| segment.flow.src == client_ip(1) && segment.flow.src_port == first.src_port;
        pair.rule = Box::new(move |host, segment| !(drops && host == CLIENT && away(segment)));
        // Bursts shorter than sixteen ACKs, all on the first subflow.
        for _ in 0..6 {
            pair.write(SERVER, &PATTERN[..7000]);
            pair.run(Duration::from_millis(150));
        }
        let subflow = pair.hosts[SERVER].subflow_stats(pair.id[SERVER].unwrap())[0].clone();
        assert_eq!(stats(&pair, SERVER).data_acked, 5 + 6 * 7000, "nothing waits for an ACK");
        (stats(&pair, CLIENT), subflow.retransmitted)
    };
    let (free, repeated) = play(false);
    assert_eq!((free.ack_fallbacks, free.acks_kept, repeated), (0, 0, 0));
    assert!(free.acks_detoured > 10, "{free:?}");
    let (blocked, repeated) = play(true);
    assert_eq!(blocked.ack_fallbacks, 1, "barred for a second: {blocked:?}");
    assert_eq!(repeated, 1, "one tail loss probe tells");
    assert!(blocked.acks_detoured <= free.acks_detoured / 4 && blocked.acks_kept > 10, "{blocked:?}");
}

#[test]
fn options_about_this_subflow_mean_the_one_of_the_ports() {
    let mut pair = pair_of(2, true, true);
    download(&mut pair);
    pair.rule = Box::new(|host, segment| {
        let prio = segment.options.mptcp().iter().any(|option| matches!(option, MpOption::Prio { .. }));
        if host == CLIENT && prio && segment.flow.src == client_ip(0) {
            segment.flow.src = client_ip(1);
        }
        true
    });
    let id = pair.id[CLIENT].unwrap();
    pair.hosts[CLIENT].set_backup(pair.now, id, SubflowId(0), true);
    pair.run(Duration::from_secs(1));
    let backups: Vec<_> = pair.hosts[SERVER].subflow_stats(pair.id[SERVER].unwrap()).iter().map(|s| s.backup).collect();
    assert_eq!(backups, [true, false]);
    assert_eq!(pair.hosts[SERVER].counters().unknown_flow, 0);
}

/// Three addresses, two connections of two subflows: from the first and second, and from the third and first.
fn two_connections() -> (Pair, Vec<FlowKey>) {
    let mut client = wishes(config((0..3).map(client_ip)), true);
    client.max_subflows = 2;
    let mut server = wishes(config([server_ip(0)]), true);
    server.max_subflows = 2;
    let mut pair = Pair::with(client, server);
    connect(&mut pair);
    pair.hosts[CLIENT].open(pair.now, client_ip(2), SocketAddr::new(server_ip(0), PORT)).unwrap();
    pair.run(Duration::from_millis(200));
    assert_eq!((pair.hosts[CLIENT].connection_count(), pair.hosts[SERVER].connection_count()), (2, 2));
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(20));
    let flows = flows(&pair);
    (pair, flows)
}

#[test]
fn only_pure_acks_between_addresses_of_the_same_connection_are_taken() {
    let (mut pair, flows) = two_connections();
    let latest = Rc::new(RefCell::new(None));
    // An honest ACK of the first subflow, which the server would take.
    let keep = Rc::clone(&latest);
    let first = flows[0];
    pair.rule = Box::new(move |host, segment| {
        if host == CLIENT && segment.flow.src_port == first.src_port && segment.flags == Flags::ACK {
            *keep.borrow_mut() = Some(Segment { flow: first, ..segment.clone() });
        }
        true
    });
    pair.write(SERVER, b"one more");
    pair.run(Duration::from_secs(20));
    let ack = latest.borrow().clone().unwrap();
    let via = |src, dst| FlowKey { src, dst, ..first };
    let server = server_ip(0);
    let before = (stats(&pair, SERVER).acks_restored, pair.hosts[SERVER].counters().unknown_flow);
    let mut try_it = |mut segment: Segment| {
        pair.hosts[SERVER].handle_segment(pair.now, &mut segment);
        let now = (stats(&pair, SERVER).acks_restored, pair.hosts[SERVER].counters().unknown_flow);
        let answer = pair.hosts[SERVER].poll_transmit(pair.now).map(|transmit| transmit.segment);
        assert!(answer.is_none_or(|answer| answer.flags.has(Flags::RST)), "nothing is believed");
        (now.0 - before.0, now.1 - before.1)
    };
    let good = Segment { flow: via(client_ip(1), server), ..ack.clone() };
    assert_eq!(try_it(good.clone()), (1, 0), "between the addresses of its second subflow");
    let mut strangers = 0;
    for (what, segment) in [
        ("an unknown address", Segment { flow: via(client_ip(9), server), ..ack.clone() }),
        ("one of another connection", Segment { flow: via(client_ip(2), server), ..ack.clone() }),
        ("an address of ours without subflow", Segment { flow: via(client_ip(1), server_ip(1)), ..ack.clone() }),
        ("reversed", Segment { flow: via(client_ip(1), client_ip(0)), ..ack.clone() }),
        ("other ports", Segment { flow: FlowKey { src_port: 7, ..good.flow }, ..ack.clone() }),
        ("data", Segment { payload: b"lie".into(), ..good.clone() }),
        ("a reset", Segment { flags: Flags::RST, ..good.clone() }),
        ("a reset with ACK", Segment { flags: Flags::RST.with(Flags::ACK), ..good.clone() }),
        ("a FIN", Segment { flags: Flags::FIN.with(Flags::ACK), ..good.clone() }),
        ("a SYN/ACK", Segment { flags: Flags::SYN.with(Flags::ACK), ..good.clone() }),
        ("no ACK at all", Segment { flags: Flags::default(), ..good.clone() }),
    ] {
        strangers += 1;
        assert_eq!(try_it(segment), (1, strangers), "{what}");
    }
    // What is taken is believed no more than from the own addresses.
    let unacceptable = pair.hosts[SERVER].counters().unacceptable;
    pair.hosts[SERVER].handle_segment(pair.now, &mut Segment { ack: ack.ack + 1_000_000, ..good });
    assert_eq!(pair.hosts[SERVER].counters().unacceptable, unacceptable + 1);
    pair.write(SERVER, b"and another");
    pair.run(Duration::from_secs(20));
    assert!(pair.read[CLIENT].ends_with(b"and another"), "the connection has not noticed");
}

/// Another host behind one of the peer's addresses uses the ports of the first subflow (a second client starts to count
/// where the first did): an ACK on the way of these addresses would be taken for one of its own.
#[test]
fn a_subflow_whose_ports_are_not_its_own_keeps_its_acks() {
    for clash in [false, true] {
        let mut pair = pair_of(2, true, true);
        connect(&mut pair);
        let mut other = Endpoint::new(config([if clash { client_ip(1) } else { client_ip(7) }]), Seed(5)).unwrap();
        let from = if clash { client_ip(1) } else { client_ip(7) };
        other.open(pair.now, from, SocketAddr::new(server_ip(0), PORT)).unwrap();
        for _ in 0..3 {
            while let Some(mut transmit) = other.poll_transmit(pair.now) {
                assert_eq!(transmit.segment.flow.src_port, flows(&pair)[0].src_port);
                pair.hosts[SERVER].handle_segment(pair.now, &mut transmit.segment);
            }
            while let Some(mut transmit) = pair.hosts[SERVER].poll_transmit(pair.now) {
                other.handle_segment(pair.now, &mut transmit.segment);
            }
        }
        assert_eq!(pair.hosts[SERVER].connection_count(), 2);
        pair.write(CLIENT, PATTERN);
        pair.run(Duration::from_secs(20));
        assert_eq!(pair.read[SERVER], PATTERN);
        let stats = stats(&pair, SERVER);
        assert_eq!((stats.acks_detoured == 0, stats.acks_kept > 0), (clash, clash), "{stats:?}");
    }
}

#[test]
fn hosts_that_move_acks_give_each_subflow_ports_of_its_own() {
    let (pair, _) = two_connections();
    let mut ports: Vec<_> =
        pair.id[CLIENT].iter().flat_map(|id| pair.hosts[CLIENT].subflow_stats(*id)).map(|s| s.local.port()).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 2);
}

#[test]
fn an_echo_is_answered_and_only_the_answer_to_a_question_counts() {
    let entry = find(ACK_PATHS, "ACK path", "probed").unwrap();
    let mut client = config((0..2).map(client_ip));
    client.ack_rewrite = true;
    client.policies.ack_path = Arc::new(|| entry.build_default());
    let mut server = config([server_ip(0)]);
    server.ack_rewrite = true;
    let ask = |pair: &mut Pair| std::iter::from_fn(|| pair.hosts[CLIENT].poll_echo()).collect::<Vec<_>>();
    // Three in each round on each path; who answers decides whether ACKs move.
    for honest in [true, false] {
        let mut pair = Pair::with(client.clone(), server.clone());
        connect(&mut pair);
        assert_eq!(ask(&mut pair), [], "nothing is probed before data arrives on one of several subflows");
        for _ in 0..8 {
            pair.write(SERVER, &PATTERN[..20_000]);
            pair.run(Duration::from_millis(1));
            pair.run(Duration::from_millis(19));
            for echo in ask(&mut pair) {
                let source = echo.source;
                pair.hosts[SERVER].handle_echo(pair.now, echo);
                let answer = pair.hosts[SERVER].poll_echo().unwrap();
                assert_eq!(answer, echo.answer());
                match honest {
                    // Who believes an answer finds the path of the data dead, and moves its ACKs.
                    _ if source == client_ip(0) => {}
                    true => pair.hosts[CLIENT].handle_echo(pair.now, answer),
                    false => {
                        let lies = [
                            Echo { sequence: answer.sequence.wrapping_add(100), ..answer },
                            Echo { source: server_ip(3), ..answer },
                            Echo { identifier: answer.identifier + 1, ..answer },
                            Echo { destination: client_ip(3), ..answer },
                            Echo { reply: false, ..answer },
                        ];
                        lies.into_iter().for_each(|lie| pair.hosts[CLIENT].handle_echo(pair.now, lie));
                        // The last is a question, and is answered.
                        assert_eq!(pair.hosts[CLIENT].poll_echo().map(|echo| echo.reply), Some(true));
                    }
                }
            }
            pair.run(Duration::from_millis(180));
        }
        let stats = stats(&pair, CLIENT);
        assert!((8 * 6 - 6..=8 * 6 + 6).contains(&stats.probes_sent), "{} probes", stats.probes_sent);
        assert_eq!(stats.acks_detoured > 0, honest, "{stats:?}");
        pair.run(Duration::from_secs(30));
        let later = ask(&mut pair).len();
        assert!(later <= 10 * 6, "probing ends where no data arrives: {later} more");
    }
}

/// ACKs that get lost on their own path say nothing of the other path, however many took it before.
#[test]
fn a_detour_is_not_blamed_for_what_was_lost_after_it_ended() {
    let mut pair = pair_of(2, true, true);
    connect(&mut pair);
    pair.write(SERVER, &PATTERN[..7000]);
    pair.run(Duration::from_millis(500));
    assert!(stats(&pair, CLIENT).acks_detoured > 0);
    let own = find(ACK_PATHS, "ACK path", "own").unwrap();
    pair.hosts[CLIENT].switch(pair.now, &Switch::AckPath(Arc::new(move || own.build_default())));
    pair.rule = Box::new(|host, _| host == SERVER);
    pair.write(SERVER, &PATTERN[..7000]);
    pair.run(Duration::from_secs(1));
    pair.rule = Box::new(|_, _| true);
    pair.run(Duration::from_secs(10));
    assert_eq!(stats(&pair, SERVER).data_acked, 5 + 2 * 7000);
    assert_eq!(stats(&pair, CLIENT).ack_fallbacks, 0);
}
