//! Connections from the first SYN to the last FIN, over a wire that may lose, change and strip.

use crate::common::{CLIENT, PATTERN, Pair, SERVER, buffer, client_ip, config, server_ip};
use anabranch_engine::{Event, FallbackReason};
use anabranch_units::{Duration, Key, Seed};
use anabranch_wire::{DataSeq, Flags, Map, MpOption, Segment};

const LONG: Duration = Duration::from_secs(120);

/// A request one way, the pattern the other way, and an orderly end.
fn transfer(pair: &mut Pair) {
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(20));
    assert_eq!(pair.read[SERVER], b"GET");
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(20));
    pair.shutdown(SERVER);
    pair.shutdown(CLIENT);
    assert!(pair.run(LONG), "all timers end: {:?}", pair.events);
    assert_eq!(pair.read[CLIENT].len(), PATTERN.len());
    assert!(pair.read[CLIENT] == PATTERN, "every byte in its place");
    for host in [CLIENT, SERVER] {
        assert!(pair.has(host, |event| *event == Event::PeerFinished), "{:?}", pair.events[host]);
        assert!(pair.has(host, |event| *event == Event::Closed), "{:?}", pair.events[host]);
        assert_eq!(pair.hosts[host].connection_count(), 0);
    }
}

#[test]
fn two_subflows_carry_one_stream() {
    let mut pair = Pair::new(2);
    transfer(&mut pair);
    let subflows = pair.hosts[SERVER].subflow_stats(pair.id[SERVER].unwrap());
    assert_eq!(subflows.len(), 2);
    assert!(subflows.iter().all(|subflow| subflow.bytes_first_sent > 10_000), "{subflows:#?}");
    assert!(pair.has(CLIENT, |event| *event == Event::Connected { multipath: true }));
    assert!(pair.has(SERVER, |event| *event == Event::Accepted { multipath: true }));
}

#[test]
fn plain_tcp_when_multipath_is_off() {
    let mut plain = config([server_ip(0)]);
    plain.multipath = false;
    let mut pair = Pair::with(config([client_ip(0), client_ip(1)]), plain);
    transfer(&mut pair);
    assert!(pair.has(CLIENT, |event| *event == Event::Fallback(FallbackReason::SynAck)));
    assert_eq!(pair.hosts[SERVER].subflow_stats(pair.id[SERVER].unwrap()).len(), 1);
}

#[test]
fn an_announced_address_is_joined() {
    let mut pair = Pair::with(config([client_ip(0)]), config([server_ip(0), server_ip(1)]));
    transfer(&mut pair);
    let subflows = pair.hosts[SERVER].subflow_stats(pair.id[SERVER].unwrap());
    assert_eq!(subflows.len(), 2, "ADD_ADDR led to a join: {subflows:#?}");
}

#[test]
fn a_forged_announcement_is_ignored() {
    let mut pair = Pair::with(config([client_ip(0)]), config([server_ip(0), server_ip(1)]));
    pair.rule = Box::new(|_, segment| {
        for option in segment.options.mptcp_mut() {
            if let MpOption::AddAddr(add) = option
                && let Some(hmac) = &mut add.hmac
            {
                hmac[0] ^= 1;
            }
        }
        true
    });
    transfer(&mut pair);
    assert!(pair.hosts[CLIENT].counters().bad_add_addr > 0);
    assert_eq!(pair.hosts[SERVER].subflow_stats(pair.id[SERVER].unwrap()).len(), 1);
}

#[test]
fn a_join_with_a_wrong_hmac_is_refused_and_the_rest_goes_on() {
    let mut pair = Pair::new(2);
    pair.rule = Box::new(|_, segment| {
        for option in segment.options.mptcp_mut() {
            if let MpOption::JoinAck(ack) = option {
                ack.hmac[3] ^= 1;
            }
        }
        true
    });
    transfer(&mut pair);
    assert!(pair.hosts[SERVER].counters().joins_refused > 0);
}

/// The middleboxes of RFC 8684 §3.7: where the options disappear, and what the endpoints call it.
#[test]
fn falls_back_wherever_options_are_stripped() {
    type Strip = fn(usize, &Segment) -> bool;
    let cases: [(&str, Strip, usize, FallbackReason); 4] = [
        ("SYN", |_, s| s.flags == Flags::SYN, CLIENT, FallbackReason::SynAck),
        ("SYN/ACK", |_, s| s.flags == Flags::SYN.with(Flags::ACK), CLIENT, FallbackReason::SynAck),
        ("third ACK and after", |host, s| host == CLIENT && !s.flags.has(Flags::SYN), SERVER, FallbackReason::ThirdAck),
        ("everything after the SYNs", |_, s| !s.flags.has(Flags::SYN), SERVER, FallbackReason::ThirdAck),
    ];
    for (what, strips, who, reason) in cases {
        let mut pair = Pair::new(2);
        pair.rule = Box::new(move |host, segment| {
            if strips(host, segment) {
                segment.options.strip_mptcp();
            }
            true
        });
        transfer(&mut pair);
        assert!(pair.has(who, |event| *event == Event::Fallback(reason)), "{what}: {:?}", pair.events);
        assert_eq!(pair.hosts[who].counters().fallbacks.get(&reason), Some(&1), "{what}");
    }
}

#[test]
fn falls_back_when_options_vanish_in_mid_stream() {
    let mut pair = Pair::new(1);
    let mut count = 0;
    pair.rule = Box::new(move |_, segment| {
        count += 1;
        if count > 60 {
            segment.options.strip_mptcp();
        }
        true
    });
    transfer(&mut pair);
    let fell = |event: &Event| *event == Event::Fallback(FallbackReason::OptionsLost);
    assert!(pair.has(CLIENT, fell) && pair.has(SERVER, fell), "{:?}", pair.events);
}

#[test]
fn a_stripping_second_path_costs_only_that_path() {
    let mut pair = Pair::new(2);
    pair.rule = Box::new(|_, segment| {
        let second = segment.flow.src == client_ip(1) || segment.flow.dst == client_ip(1);
        if second && !segment.payload.is_empty() {
            segment.options.strip_mptcp();
        }
        true
    });
    transfer(&mut pair);
    assert!(!pair.has(SERVER, |event| matches!(event, Event::Fallback(_))));
}

#[test]
fn a_syn_that_only_passes_without_mptcp_ends_as_tcp() {
    let mut pair = Pair::new(2);
    pair.rule = Box::new(|_, segment| !(segment.flags == Flags::SYN && segment.options.has_mptcp()));
    transfer(&mut pair);
    assert!(pair.has(CLIENT, |event| *event == Event::Fallback(FallbackReason::SynLost)));
}

#[test]
fn survives_loss_of_every_kind_of_segment() {
    for lost in 0..60 {
        let mut pair = Pair::new(2);
        let mut count = 0;
        pair.rule = Box::new(move |_, _| {
            count += 1;
            count != lost
        });
        transfer(&mut pair);
    }
}

#[test]
fn survives_heavy_periodic_loss() {
    for period in [2, 3, 7, 20] {
        let mut pair = Pair::new(2);
        let mut chance = anabranch_units::Seed(period).stream("loss");
        pair.rule = Box::new(move |_, _| !chance.chance(1.0 / (period as f64 + 1.0)));
        pair.open();
        pair.write(CLIENT, b"GET");
        pair.run(Duration::from_secs(300));
        pair.write(SERVER, PATTERN);
        pair.run(Duration::from_secs(3000));
        pair.shutdown(SERVER);
        pair.shutdown(CLIENT);
        pair.run(Duration::from_secs(3000));
        assert!(pair.read[CLIENT] == PATTERN, "1 in {}: {} bytes", period + 1, pair.read[CLIENT].len());
    }
}

#[test]
fn small_buffers_do_not_stall() {
    for bytes in [1460, 3000, 10_000] {
        let (mut client, mut server) = (config([client_ip(0), client_ip(1)]), config([server_ip(0)]));
        client.receive_buffer = buffer(bytes);
        server.send_buffer = buffer(bytes);
        let mut pair = Pair::with(client, server);
        pair.open();
        pair.write(CLIENT, b"GET");
        pair.run(Duration::from_secs(5));
        pair.write(SERVER, PATTERN);
        pair.run(Duration::from_secs(600));
        assert_eq!(pair.read[CLIENT].len(), PATTERN.len(), "buffer of {bytes}: {:?}", pair.events);
    }
}

/// A server with two established subflows whose send buffers grow up to `limit` bytes.
fn with_growing_send_buffer(limit: u64) -> Pair {
    let (client, mut server) = (config([client_ip(0), client_ip(1)]), config([server_ip(0)]));
    server.profile.subflow_send_buffer = Some(buffer(limit));
    let mut pair = Pair::with(client, server);
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(2));
    pair
}

/// Two windows of ten segments fill 4096 + 40 · 2304 bytes, beyond which nothing grows here. Once that is full, the
/// writer waits until a third of it is free.
#[test]
fn a_full_send_buffer_takes_data_again_when_a_third_is_free() {
    let mut pair = with_growing_send_buffer(46_080);
    let id = pair.id[SERVER].unwrap();
    assert_eq!(pair.hosts[SERVER].write(id, &bytes::Bytes::from(vec![7; 1 << 20])), Ok(96_256));
    let (mut waited, mut freed) = (0, 0);
    while freed < 96_256 {
        match (freed, pair.hosts[SERVER].write_space(id)) {
            (..32_086, 0) => waited += u64::from(freed > 0),
            (32_086.., space) => assert_eq!(space as u64, freed),
            it => panic!("bytes free and for the writer: {it:?}"),
        }
        pair.run(Duration::from_millis(1));
        freed = pair.hosts[SERVER].connection_stats(id).unwrap().data_acked;
    }
    assert!(waited > 5, "it waited for {waited} ms with less than a third free");
    assert!(pair.has(SERVER, |event| *event == Event::Writable));
}

#[test]
fn a_send_buffer_grows_with_the_windows_of_its_subflows_up_to_its_limit() {
    let mut pair = with_growing_send_buffer(100_000);
    let id = pair.id[SERVER].unwrap();
    assert_eq!(pair.hosts[SERVER].write_space(id), 4096 + 2 * 46_080);
    for _ in 0..20 {
        pair.write(SERVER, PATTERN);
        pair.run(Duration::from_secs(5));
    }
    assert_eq!(pair.hosts[SERVER].write_space(id), 4096 + 2 * 100_000);
}

#[test]
fn an_aborted_connection_is_gone_on_both_sides() {
    let mut pair = Pair::new(2);
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(1));
    let id = pair.id[CLIENT].unwrap();
    pair.hosts[CLIENT].abort(pair.now, id);
    assert!(pair.run(LONG));
    assert!(pair.has(SERVER, |event| *event == Event::Reset));
    assert_eq!((pair.hosts[CLIENT].connection_count(), pair.hosts[SERVER].connection_count()), (0, 0));
}

#[test]
fn a_path_that_goes_down_is_left_and_joined_again() {
    let mut pair = Pair::new(2);
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(1));
    let alive = |pair: &Pair, host: usize| {
        pair.hosts[host].subflow_stats(pair.id[host].unwrap()).iter().filter(|s| s.established).count()
    };
    pair.hosts[CLIENT].set_carrier(pair.now, client_ip(0), false);
    // Before the server sends anything, which a RST would answer: only REMOVE_ADDR can have told it.
    pair.run(Duration::from_millis(200));
    assert_eq!((alive(&pair, CLIENT), alive(&pair, SERVER)), (1, 1), "REMOVE_ADDR told the server");
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(10));
    assert!(pair.read[CLIENT] == PATTERN);
    pair.hosts[CLIENT].set_carrier(pair.now, client_ip(0), true);
    pair.run(Duration::from_secs(3));
    assert_eq!((alive(&pair, CLIENT), alive(&pair, SERVER)), (2, 2), "{:?}", pair.events);
}

#[test]
fn a_backup_path_is_silent_while_another_works() {
    let mut client = config([client_ip(0), client_ip(1)]);
    client.addresses[1].backup = true;
    let mut pair = Pair::with(client, config([server_ip(0)]));
    transfer(&mut pair);
    let subflows = pair.hosts[SERVER].subflow_stats(pair.id[SERVER].unwrap());
    assert_eq!(subflows[1].bytes_sent, 0, "{subflows:#?}");
}

#[test]
fn half_close_lets_the_other_side_finish() {
    let mut pair = Pair::new(2);
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(1));
    pair.shutdown(CLIENT);
    pair.run(Duration::from_secs(1));
    assert!(pair.has(SERVER, |event| *event == Event::PeerFinished));
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(10));
    assert!(pair.read[CLIENT] == PATTERN);
    pair.shutdown(SERVER);
    assert!(pair.run(LONG));
    assert!(pair.has(CLIENT, |event| *event == Event::Closed));
}

/// The initial numbers are random, so a seed is looked for with which 200 kB run over the wrap: of the client's subflow
/// sequence (2³²), then of the low half of its data sequence, which is all a 4-byte DATA_ACK carries.
#[test]
fn sequence_numbers_wrap_on_both_levels() {
    let near = |low: u32| low > u32::MAX - PATTERN.len() as u32 / 2;
    let draws = |seed: u64| {
        // The endpoint draws its key first, then the initial sequence number of its first subflow.
        let mut chance = Seed(seed).stream("endpoint");
        (Key::new(chance.next_u64()), chance.next_u32())
    };
    let subflow = (0..1_000_000).find(|seed| near(draws(*seed).1)).unwrap();
    let data = (0..1_000_000).find(|seed| near(draws(*seed).0.idsn().low())).unwrap();
    for (seed, level) in [(subflow, "subflow"), (data, "data")] {
        let mut pair = Pair::seeded(seed, config([client_ip(0), client_ip(1)]), config([server_ip(0)]));
        let wrapped = std::rc::Rc::new(std::cell::Cell::new(0_u32));
        let seen = wrapped.clone();
        let mut chance = Seed(1).stream("loss");
        pair.rule = Box::new(move |host, segment| {
            let low = match (level, segment.options.dss().and_then(|dss| dss.map)) {
                ("subflow", _) => segment.seq.get(),
                (_, Some(Map { dsn: DataSeq::Long(dsn), .. })) => dsn.low(),
                _ => u32::MAX,
            };
            if host == CLIENT && !segment.payload.is_empty() && low < PATTERN.len() as u32 {
                seen.set(seen.get() + 1);
            }
            !chance.chance(0.02)
        });
        pair.open();
        pair.write(CLIENT, PATTERN);
        pair.run(Duration::from_secs(60));
        assert!(pair.read[SERVER] == PATTERN, "{level}: {} bytes", pair.read[SERVER].len());
        assert!(wrapped.get() > 10, "{level}: {} segments past the wrap", wrapped.get());
    }
}
