//! The race for the first subflow (RFC 8305 §5), and the memory of paths that orders it.

use crate::common::{CLIENT, PATTERN, PORT, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Config, Ended, Event, FallbackReason, LocalAddress, PathMemory};
use anabranch_policy::registry::{FIRST_PATHS, Value, find};
use anabranch_units::{Duration, Instant};
use anabranch_wire::{Flags, Segment};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn policed(mut config: Config, name: &str, delay: Option<f64>) -> Config {
    let entry = find(FIRST_PATHS, "first path", name).unwrap();
    let given = delay.map(|delay| ("delay".to_owned(), Value::Number(delay))).into_iter().collect();
    let params = entry.params(&given).unwrap();
    config.policies.first_path = Arc::new(move || entry.build(&params));
    config
}

/// Paths with these one-way delays in ms.
fn pair(name: &str, delays: &[u64]) -> Pair {
    with(policed(config((0..delays.len() as u8).map(client_ip)), name, None), delays)
}

fn with(client: Config, delays: &[u64]) -> Pair {
    let mut pair = Pair::with(client, config([server_ip(0)]));
    pair.delays = delays.iter().copied().map(ms).collect();
    pair
}

/// Segments in the order of their sending: when, which host, which path, and the segment.
type Log = Rc<RefCell<Vec<(usize, u8, Segment)>>>;

fn path_of(host: usize, segment: &Segment) -> u8 {
    let client = if host == CLIENT { segment.flow.src } else { segment.flow.dst };
    (0..16).find(|path| client_ip(*path) == client).unwrap()
}

/// Notes what is sent; drops what `lost` says.
fn watch(pair: &mut Pair, mut lost: impl FnMut(usize, u8, &mut Segment) -> bool + 'static) -> Log {
    let log = Log::default();
    let notes = Rc::clone(&log);
    pair.rule = Box::new(move |host, segment| {
        let path = path_of(host, segment);
        notes.borrow_mut().push((host, path, segment.clone()));
        !lost(host, path, segment)
    });
    log
}

/// Paths of the client's SYNs with MP_CAPABLE or without any option of MPTCP, in their order.
fn offers(log: &Log) -> Vec<u8> {
    let joins = |segment: &Segment| {
        segment.options.mptcp().iter().any(|option| matches!(option, anabranch_wire::MpOption::JoinSyn(_)))
    };
    let syns = log.borrow();
    let syns = syns.iter().filter(|(host, _, segment)| *host == CLIENT && segment.flags == Flags::SYN);
    syns.filter(|(.., segment)| !joins(segment)).map(|(_, path, _)| *path).collect()
}

/// Opens, and runs until the connection is there; when that was.
fn connect(pair: &mut Pair) -> Duration {
    let begun = pair.now;
    for host in [CLIENT, SERVER] {
        (pair.id[host], pair.events[host], pair.read[host]) = (None, Vec::new(), Vec::new());
    }
    pair.open();
    while !pair.has(CLIENT, |event| matches!(event, Event::Connected { .. })) {
        assert!(pair.now.since(begun) < Duration::from_secs(300), "{:?}", pair.events[CLIENT]);
        pair.run(ms(1));
    }
    pair.now.since(begun)
}

/// Returns the path on which the connection began.
fn began_on(pair: &Pair) -> u8 {
    let subflows = pair.hosts[CLIENT].subflow_stats(pair.id[CLIENT].unwrap());
    assert_eq!(subflows[0].id.0, 0);
    (0..16).find(|path| client_ip(*path) == subflows[0].local.ip()).unwrap()
}

/// Exchanges some data and closes; everything must be in order.
fn finish(pair: &mut Pair) {
    for host in [CLIENT, SERVER] {
        pair.write(host, &PATTERN[..20_000]);
    }
    pair.run(Duration::from_secs(20));
    for host in [CLIENT, SERVER] {
        assert!(pair.read[host] == PATTERN[..20_000], "{} {:?}", pair.read[host].len(), pair.events);
        pair.shutdown(host);
    }
    pair.run(Duration::from_secs(200));
    for host in [CLIENT, SERVER] {
        assert!(pair.has(host, |event| *event == Event::Closed), "{:?}", pair.events);
    }
    assert_eq!(pair.hosts.each_ref().map(|host| host.connection_count()), [0, 0]);
}

/// 300 ms and 10 ms: with as-listed the handshake takes 300 ms, in a race the second SYN leaves after 10 ms and is
/// answered after 10 more. The first SYN's answer is reset, and its path joined.
#[test]
fn a_connection_begins_where_it_is_answered_first() {
    let mut slow = pair("as-listed", &[150, 5]);
    assert_eq!(connect(&mut slow), ms(300));
    assert_eq!(began_on(&slow), 0);

    let mut raced = pair("raced", &[150, 5]);
    let log = watch(&mut raced, |_, _, _| false);
    assert_eq!(connect(&mut raced), ms(10));
    assert_eq!((began_on(&raced), offers(&log)), (1, vec![0, 1]));
    // The losing SYN arrives at 150 ms: a half-open connection of which the server's application never hears.
    raced.run(ms(200));
    assert_eq!(raced.hosts[SERVER].connection_count(), 2);
    raced.run(ms(400));
    assert_eq!(raced.hosts[SERVER].connection_count(), 1, "the reset has arrived");
    let resets: Vec<_> =
        log.borrow().iter().filter(|(_, _, s)| s.flags.has(Flags::RST)).map(|(host, path, _)| (*host, *path)).collect();
    assert_eq!(resets, [(CLIENT, 0)]);
    let accepted = raced.events[SERVER].iter().filter(|event| matches!(event, Event::Accepted { .. })).count();
    assert_eq!(accepted, 1);
    raced.run(Duration::from_secs(1));
    let subflows = raced.hosts[CLIENT].subflow_stats(raced.id[CLIENT].unwrap());
    assert_eq!(subflows.iter().filter(|subflow| subflow.established).count(), 2, "{subflows:#?}");
    finish(&mut raced);
}

/// The path listed first is the faster: the race costs nothing if it answers within a delay that was set.
#[test]
fn an_answer_within_the_delay_ends_the_race_before_it_begins() {
    let mut pair = with(policed(config((0..3).map(client_ip)), "raced", Some(10.0)), &[4, 50, 60]);
    let log = watch(&mut pair, |_, _, _| false);
    assert_eq!(connect(&mut pair), ms(8));
    assert_eq!((began_on(&pair), offers(&log)), (0, vec![0]));
    finish(&mut pair);
    assert_eq!(pair.hosts[CLIENT].counters().unknown_flow, 0);
}

/// A lost SYN, and a lost SYN/ACK, cost a round trip of the other path, not a second.
#[test]
fn a_lost_syn_is_retried_on_another_path() {
    for lost in [CLIENT, SERVER] {
        for (name, expected) in [("as-listed", 1010), ("raced", 50)] {
            let mut pair = pair(name, &[5, 25]);
            let mut once = true;
            watch(&mut pair, move |host, path, segment| {
                let hit = host == lost && path == 0 && segment.flags.has(Flags::SYN) && once;
                once &= !hit;
                hit
            });
            assert_eq!(connect(&mut pair), ms(expected), "{name}");
            finish(&mut pair);
        }
    }
}

/// Without any answer each path repeats its SYN as if it were alone, and the last to give up ends the connection.
#[test]
fn without_any_answer_the_connection_ends() {
    let mut client = policed(config((0..2).map(client_ip)), "raced", None);
    client.profile.syn_retries = 3;
    let mut pair = with(client, &[5, 5]);
    let log = watch(&mut pair, |_, _, _| true);
    pair.open();
    assert!(pair.run(Duration::from_secs(60)), "quiet");
    assert_eq!(offers(&log), [0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(pair.events[CLIENT], [Event::Reset]);
    assert_eq!(pair.hosts[CLIENT].connection_stats(pair.id[CLIENT].unwrap()).unwrap().ended, Some(Ended::Unanswered));
    // Both are known to be silent now, so that they are tried as listed again.
    assert!(pair.hosts[CLIENT].path_memory(Instant::ZERO).paths.iter().all(|path| path.silent.is_some()));
}

/// A path that refuses leaves the others; the next attempt does not wait for the delay when no other is under way.
#[test]
fn a_refused_attempt_is_not_the_end() {
    let mut pair = with(policed(config((0..2).map(client_ip)), "raced", Some(250.0)), &[20, 50]);
    watch(&mut pair, |host, path, segment| {
        if host == SERVER && path == 0 && segment.flags.has(Flags::SYN) {
            // A firewall.
            segment.flags = Flags::RST.with(Flags::ACK);
            segment.options = Default::default();
        }
        false
    });
    assert_eq!(connect(&mut pair), ms(40 + 100));
    assert_eq!(began_on(&pair), 1);

    // A closed port refuses everywhere, and the application hears of it once.
    let mut closed = self::pair("raced", &[5, 10]);
    closed.hosts[SERVER].stop_listening(PORT);
    closed.open();
    assert!(closed.run(Duration::from_secs(10)), "quiet");
    assert_eq!(closed.events[CLIENT], [Event::SubflowClosed(anabranch_units::SubflowId(1)), Event::Reset]);
}

/// MPTCP stripped where the first answer comes from: plain TCP there, as without a race.
#[test]
fn a_stripped_winner_is_plain_tcp() {
    let mut pair = pair("raced", &[150, 5]);
    watch(&mut pair, |_, path, segment| {
        if path == 1 {
            segment.options.retain_mptcp(|_| false);
        }
        false
    });
    assert_eq!(connect(&mut pair), ms(10));
    assert!(pair.has(CLIENT, |event| *event == Event::Connected { multipath: false }));
    let stats = pair.hosts[CLIENT].connection_stats(pair.id[CLIENT].unwrap()).unwrap();
    assert_eq!(stats.fallback, Some(FallbackReason::SynAck));
    finish(&mut pair);
}

/// A path on which SYNs with MP_CAPABLE vanish costs seconds and MPTCP when it is listed first; a race goes round it.
#[test]
fn a_black_hole_for_mptcp_is_passed_by() {
    for (name, multipath) in [("as-listed", false), ("raced", true)] {
        let mut pair = pair(name, &[5, 25]);
        watch(&mut pair, |_, path, segment| path == 0 && segment.flags == Flags::SYN && segment.options.has_mptcp());
        let took = connect(&mut pair);
        assert_eq!(took < Duration::from_secs(1), multipath, "{name}: {took}");
        assert!(pair.has(CLIENT, |event| *event == Event::Connected { multipath }), "{name}");
        finish(&mut pair);
    }
}

/// The first connection races and joins, so that all paths are known; the second begins on the fastest with one SYN.
/// When that has gone silent, its lost SYN costs three round trips, and in the minute after it nothing.
#[test]
fn what_is_remembered_is_not_raced() {
    let mut pair = pair("remembered", &[60, 40, 20]);
    // 120, 80 and 40 ms.
    assert_eq!(connect(&mut pair), ms(40));
    assert_eq!(began_on(&pair), 2);
    finish(&mut pair);
    let log = watch(&mut pair, |_, _, _| false);
    assert_eq!(connect(&mut pair), ms(40));
    assert_eq!((began_on(&pair), offers(&log)), (2, vec![2]));
    finish(&mut pair);
    let log = watch(&mut pair, |_, path, _| path == 2);
    // 3 · 40 ms and 80 ms.
    assert_eq!(connect(&mut pair), ms(120 + 80));
    assert_eq!((began_on(&pair), offers(&log)), (1, vec![2, 1, 0]));
    // The join repeats its SYN twice without an answer.
    pair.run(Duration::from_secs(5));
    let log = watch(&mut pair, |_, path, _| path == 2);
    assert_eq!(connect(&mut pair), ms(80));
    assert_eq!((began_on(&pair), offers(&log)), (1, vec![1]));
    let memory = pair.hosts[CLIENT].path_memory(pair.now);
    assert!(memory.paths[2].silent.is_some_and(|left| left > Duration::from_secs(50)), "{memory}");
}

/// Another endpoint begins with what the first has learned, by way of a text.
#[test]
fn a_memory_outlives_its_endpoint() {
    let mut first = pair("remembered", &[60, 20]);
    connect(&mut first);
    finish(&mut first);
    let text = first.hosts[CLIENT].path_memory(first.now).to_string();
    let memory: PathMemory = text.parse().unwrap();
    for (age, expected) in [(1, vec![1]), (601, vec![1, 0]), (7200, vec![0, 1])] {
        let mut second = pair("remembered", &[60, 20]);
        let now = second.now;
        second.hosts[CLIENT].set_path_memory(now, &memory.clone().aged(Duration::from_secs(age)));
        let log = watch(&mut second, |_, _, _| false);
        connect(&mut second);
        assert_eq!((began_on(&second), offers(&log)), (1, expected), "{age} s later");
    }
}

/// Paths of which MPTCP was stripped, backups and interfaces that are down are left for later, or out.
#[test]
fn some_paths_are_tried_last_or_never() {
    let mut client = policed(config((0..3).map(client_ip)), "raced", None);
    client.addresses[0] = LocalAddress { backup: true, ..client.addresses[0] };
    let mut pair = with(client, &[5, 100, 5]);
    let now = pair.now;
    pair.hosts[CLIENT].set_carrier(now, client_ip(2), false);
    let log = watch(&mut pair, |_, _, _| false);
    assert_eq!(connect(&mut pair), ms(200));
    assert_eq!((began_on(&pair), offers(&log)), (1, vec![1]));
    // Its only regular path is dead: the backup serves after a second.
    let mut dead = with(
        {
            let mut client = policed(config((0..2).map(client_ip)), "raced", None);
            client.addresses[0].backup = true;
            client
        },
        &[5, 5],
    );
    watch(&mut dead, |_, path, _| path == 1);
    assert_eq!(connect(&mut dead), ms(1010));
    assert_eq!(began_on(&dead), 0);
}

/// An interface that goes down before its turn is passed over; an application that gives up ends the race.
#[test]
fn the_plan_follows_what_happens() {
    let mut pair = with(policed(config((0..3).map(client_ip)), "raced", Some(50.0)), &[100, 5, 20]);
    let log = watch(&mut pair, |_, _, _| false);
    pair.open();
    pair.run(ms(20));
    let now = pair.now;
    pair.hosts[CLIENT].set_carrier(now, client_ip(1), false);
    pair.run(ms(70));
    assert!(pair.has(CLIENT, |event| *event == Event::Connected { multipath: true }), "{:?}", pair.events);
    assert_eq!((began_on(&pair), offers(&log)), (2, vec![0, 2]));

    let mut given_up = with(policed(config((0..2).map(client_ip)), "raced", Some(50.0)), &[100, 5]);
    let log = watch(&mut given_up, |_, _, _| false);
    given_up.open();
    given_up.run(ms(20));
    let (now, id) = (given_up.now, given_up.id[CLIENT].unwrap());
    given_up.hosts[CLIENT].abort(now, id);
    given_up.run(Duration::from_secs(5));
    assert_eq!(offers(&log), [0]);
    assert_eq!(given_up.hosts.each_ref().map(|host| host.connection_count()), [0, 0]);
}

/// Without MPTCP there is nothing to race for, and an address that the application names need not be a listed one.
#[test]
fn plain_tcp_is_not_raced() {
    let mut client = policed(config((0..2).map(client_ip)), "raced", None);
    client.multipath = false;
    let mut pair = with(client, &[150, 5]);
    assert_eq!(connect(&mut pair), ms(300));
    assert_eq!(began_on(&pair), 0);
}

/// A server under a flood answers with cookies: the losing SYN leaves nothing at all there.
#[test]
fn a_losing_syn_costs_a_server_with_cookies_nothing() {
    let mut server = config([server_ip(0)]);
    server.max_half_open = 0;
    let mut pair = Pair::with(policed(config((0..2).map(client_ip)), "raced", None), server);
    pair.delays = vec![ms(150), ms(5)];
    assert_eq!(connect(&mut pair), ms(10));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.hosts[SERVER].connection_count(), 1);
    assert_eq!(pair.hosts[SERVER].counters().cookies_sent, 2);
    finish(&mut pair);
}

/// Ten connections at once, each with its own race: none takes what is another's.
#[test]
fn races_side_by_side() {
    let mut pair = pair("raced", &[30, 20, 5]);
    let now = pair.now;
    let ids: Vec<_> = (0..10)
        .map(|_| pair.hosts[CLIENT].open(now, client_ip(0), SocketAddr::new(server_ip(0), PORT)).unwrap())
        .collect();
    pair.run(Duration::from_secs(2));
    for id in ids {
        let subflows = pair.hosts[CLIENT].subflow_stats(id);
        assert_eq!(subflows.iter().filter(|subflow| subflow.established).count(), 3, "{subflows:#?}");
        assert_eq!(subflows[0].local.ip(), client_ip(2));
    }
    assert_eq!(pair.hosts[SERVER].connection_count(), 10);
}
