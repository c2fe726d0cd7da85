//! A first path that dies between the handshake and the first answer (RFC 8684 §3.1, §3.2).

use crate::common::{CLIENT, PATTERN, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Event, FallbackReason};
use anabranch_policy::registry::{FIRST_PATHS, find};
use anabranch_units::Duration;
use anabranch_wire::Flags;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// Lets path 0 carry, beside SYNs, only the third ACK and the `more` next segments of the client.
fn dies_after_the_handshake(pair: &mut Pair, more: u32) -> Rc<Cell<bool>> {
    let dead = Rc::new(Cell::new(true));
    let (state, mut left) = (dead.clone(), 1 + more);
    pair.rule = Box::new(move |host, segment| {
        let client = if host == CLIENT { segment.flow.src } else { segment.flow.dst };
        if client != client_ip(0) || segment.flags.has(Flags::SYN) || !state.get() {
            return true;
        }
        let through = host == CLIENT && left > 0;
        left -= u32::from(through);
        through
    });
    dead
}

/// Within max(3 RTO, 1 s): here the RTO is about 210 ms.
const SOON: Duration = Duration::from_secs(1);

/// Data arrives from either side first, and also if the first words were lost.
#[test]
fn data_takes_another_path_although_the_first_never_answered() {
    for more in [0, 1] {
        for first in [CLIENT, SERVER] {
            let mut pair = Pair::new(3);
            dies_after_the_handshake(&mut pair, more);
            pair.open();
            pair.write(first, &PATTERN[..1000]);
            pair.run(SOON);
            assert_eq!(pair.read[1 - first].len(), 1000, "host {first} speaks, {more}: {:?}", pair.events);
            pair.write(1 - first, &PATTERN[..20_000]);
            pair.run(SOON);
            assert!(pair.read[first] == PATTERN[..20_000], "host {first} hears, {more}");
            for host in [CLIENT, SERVER] {
                let stats = pair.hosts[host].connection_stats(pair.id[host].unwrap()).unwrap();
                assert_eq!(stats.fallback, None);
                pair.shutdown(host);
            }
            pair.run(Duration::from_secs(200));
            assert!(pair.has(CLIENT, |event| *event == Event::Closed), "{:?}", pair.events[CLIENT]);
        }
    }
}

/// A client that closes without a word is heard as well.
#[test]
fn a_data_fin_takes_another_path() {
    let mut pair = Pair::new(2);
    dies_after_the_handshake(&mut pair, 0);
    pair.open();
    pair.run(Duration::from_millis(11));
    pair.shutdown(CLIENT);
    pair.run(SOON);
    assert!(pair.has(SERVER, |event| *event == Event::PeerFinished), "{:?}", pair.events[SERVER]);
}

/// The interface of the first path goes down before the first answer: there is nothing to wait for.
#[test]
fn a_lost_carrier_makes_the_other_path_begin_at_once() {
    let mut pair = Pair::new(2);
    dies_after_the_handshake(&mut pair, 1);
    pair.open();
    pair.write(CLIENT, &PATTERN[..1000]);
    pair.run(Duration::from_millis(12));
    pair.hosts[CLIENT].set_carrier(pair.now, client_ip(0), false);
    pair.write(SERVER, &PATTERN[..1000]);
    // Two round trips of path 1 until the fourth ACK.
    pair.run(Duration::from_millis(61));
    let subflows = pair.hosts[CLIENT].subflow_stats(pair.id[CLIENT].unwrap());
    assert!(subflows.iter().any(|subflow| subflow.established && subflow.local.ip() == client_ip(1)), "{subflows:#?}");
    // The server finds out with its timeout.
    pair.run(SOON);
    assert_eq!(pair.read[CLIENT].len(), 1000, "{:?}", pair.events);
}

/// The third ACK was lost: the server cannot know what a join belongs to, and refuses it. When the path is back, all is
/// well, and the refusals have barred nothing.
#[test]
fn a_server_without_the_keys_is_joined_when_it_has_them() {
    let mut pair = Pair::new(2);
    // The path is silent: were the SYN/ACK repeated to it, the client would take the keys for dropped by a box.
    let (dead, mut syns) = (Rc::new(Cell::new(true)), 2);
    let state = dead.clone();
    pair.rule = Box::new(move |host, segment| {
        let client = if host == CLIENT { segment.flow.src } else { segment.flow.dst };
        let first = segment.flags.has(Flags::SYN) && syns > 0 && client == client_ip(0);
        syns -= i32::from(first);
        client != client_ip(0) || first || !state.get()
    });
    pair.open();
    pair.write(CLIENT, &PATTERN[..1000]);
    pair.run(Duration::from_secs(5));
    assert!(pair.hosts[SERVER].counters().joins_refused >= 2, "{:?}", pair.hosts[SERVER].counters());
    assert!(!pair.has(SERVER, |event| matches!(event, Event::Accepted { .. })));
    dead.set(false);
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.read[SERVER].len(), 1000, "{:?}", pair.events);
    let open = pair.hosts[CLIENT].subflow_stats(pair.id[CLIENT].unwrap());
    assert_eq!(open.iter().filter(|subflow| subflow.established).count(), 2, "{:?}", pair.events);
}

/// Path 0 carries SYNs and their answers, and nothing else.
fn only_syns(pair: &mut Pair) -> Rc<Cell<bool>> {
    let dead = Rc::new(Cell::new(true));
    let state = dead.clone();
    pair.rule = Box::new(move |host, segment| {
        let client = if host == CLIENT { segment.flow.src } else { segment.flow.dst };
        client != client_ip(0) || segment.flags.has(Flags::SYN) || !state.get()
    });
    dead
}

/// A client with two addresses, whose first path carries SYNs and nothing else.
fn mute(first_path: &str) -> (Pair, Rc<Cell<bool>>) {
    let mut client = config([client_ip(0), client_ip(1)]);
    let entry = find(FIRST_PATHS, "first path", first_path).unwrap();
    client.policies.first_path = Arc::new(|| entry.build_default());
    let mut pair = Pair::with(client, config([server_ip(0)]));
    let dead = only_syns(&mut pair);
    (pair, dead)
}

fn counted(pair: &Pair, host: usize, what: impl Fn(&Event) -> bool) -> usize {
    pair.events[host].iter().filter(|event| what(event)).count()
}

/// The third ACK was lost, and the data with it, on a path that is dead: a request that may be repeated goes out on
/// another, within max(3 RTO, 1 s), and the server's application hears of one connection.
#[test]
fn a_replayable_request_begins_anew_elsewhere() {
    for interface_goes in [false, true] {
        let (mut pair, dead) = mute("raced");
        pair.open();
        pair.hosts[CLIENT].set_replayable(pair.id[CLIENT].unwrap());
        pair.write(CLIENT, &PATTERN[..1000]);
        pair.run(Duration::from_millis(25));
        assert!(pair.has(CLIENT, |event| *event == Event::Connected { multipath: true }), "{:?}", pair.events);
        if interface_goes {
            pair.hosts[CLIENT].set_carrier(pair.now, client_ip(0), false);
        }
        let limit = if interface_goes { Duration::from_millis(200) } else { SOON };
        pair.run(limit);
        assert_eq!(pair.read[SERVER].len(), 1000, "{:?}", pair.events);
        assert_eq!(counted(&pair, CLIENT, |event| *event == Event::Reopened { multipath: true }), 1);
        assert_eq!(counted(&pair, CLIENT, |event| matches!(event, Event::Connected { .. })), 1);
        assert_eq!(counted(&pair, SERVER, |event| matches!(event, Event::Accepted { .. })), 1);
        assert_eq!(pair.hosts[CLIENT].counters().reopened, 1);
        dead.set(false);
        pair.write(SERVER, &PATTERN[..20_000]);
        pair.run(Duration::from_secs(100));
        assert!(pair.read[CLIENT] == PATTERN[..20_000]);
        assert_eq!(pair.read[SERVER].len(), 1000, "once");
        assert_eq!(pair.hosts[SERVER].connection_count(), 1, "nothing is left of the first attempt");
        pair.shutdown(CLIENT);
        pair.shutdown(SERVER);
        pair.run(Duration::from_secs(200));
        assert!(pair.has(CLIENT, |event| *event == Event::Closed), "{:?}", pair.events[CLIENT]);
    }
}

/// Data that may not arrive twice wait for their path, as with TCP; so does a connection that may begin nowhere else.
#[test]
fn what_may_not_be_repeated_waits() {
    for (first_path, replayable) in [("raced", false), ("as-listed", true), ("as-listed", false)] {
        let (mut pair, dead) = mute(first_path);
        pair.open();
        if replayable {
            pair.hosts[CLIENT].set_replayable(pair.id[CLIENT].unwrap());
        }
        pair.write(CLIENT, &PATTERN[..1000]);
        pair.run(Duration::from_secs(5));
        assert!(pair.read[SERVER].is_empty() && pair.hosts[CLIENT].counters().reopened == 0, "{first_path}");
        dead.set(false);
        pair.run(Duration::from_secs(10));
        assert_eq!(pair.read[SERVER].len(), 1000, "{first_path}: {:?}", pair.events);
    }
}

/// A client that has said nothing can repeat nothing: a server that speaks first is heard on another path.
#[test]
fn an_empty_connection_begins_anew_elsewhere() {
    let (mut pair, _dead) = mute("raced");
    pair.open();
    pair.write(SERVER, &PATTERN[..1000]);
    pair.run(Duration::from_millis(1500));
    assert_eq!(pair.read[CLIENT].len(), 1000, "{:?}", pair.events);
    assert_eq!(pair.hosts[CLIENT].counters().reopened, 1);
}

/// Data arrive twice only if the first words are under way for longer than two timeouts and a refused join take. They
/// are then reset, and the connection that began anew is untouched.
#[test]
fn first_words_that_arrive_after_all_are_reset() {
    let mut client = config([client_ip(0), client_ip(1)]);
    let entry = find(FIRST_PATHS, "first path", "raced").unwrap();
    client.policies.first_path = Arc::new(|| entry.build_default());
    let mut pair = Pair::with(client, config([server_ip(0)]));
    let ms = Duration::from_millis;
    pair.delays = vec![ms(5), ms(20)];
    pair.open();
    pair.hosts[CLIENT].set_replayable(pair.id[CLIENT].unwrap());
    pair.write(CLIENT, &PATTERN[..1000]);
    pair.run(ms(7));
    pair.delays[0] = ms(3000);
    pair.run(ms(2000));
    let accepted = |event: &Event| matches!(event, Event::Accepted { .. });
    assert_eq!((pair.hosts[CLIENT].counters().reopened, counted(&pair, SERVER, accepted)), (1, 1), "{:?}", pair.events);
    assert_eq!(pair.read[SERVER].len(), 1000);
    pair.delays[0] = ms(5);
    pair.run(ms(2000));
    assert_eq!(counted(&pair, SERVER, accepted), 2, "heard after all");
    pair.write(SERVER, &PATTERN[..20_000]);
    // The server keeps a connection without subflows for a minute (RFC 8684 §3.6).
    pair.run(ms(70_000));
    assert_eq!(counted(&pair, SERVER, |event| *event == Event::Reset), 1, "and reset: {:?}", pair.events[SERVER]);
    assert!(pair.read[CLIENT] == PATTERN[..20_000]);
    assert_eq!(pair.hosts[SERVER].connection_count(), 1);
}

/// A server that has the keys accepts joins: nothing begins anew, however long the first path is silent.
#[test]
fn a_server_with_the_keys_is_joined_and_nothing_begins_anew() {
    for more in [0, 1] {
        let (mut pair, _dead) = mute("raced");
        dies_after_the_handshake(&mut pair, more);
        pair.open();
        pair.hosts[CLIENT].set_replayable(pair.id[CLIENT].unwrap());
        pair.write(CLIENT, &PATTERN[..1000]);
        pair.run(Duration::from_secs(20));
        assert_eq!((pair.read[SERVER].len(), pair.hosts[CLIENT].counters().reopened), (1000, 0), "{more}");
    }
}

/// The first path loses options rather than packets, and so slowly that a join has begun: the join goes on, and the
/// first subflow is given up rather than the connection made plain TCP in the middle.
#[test]
fn a_first_path_that_loses_options_late_does_not_corrupt() {
    let mut pair = Pair::new(2);
    let mut lost = 0;
    pair.rule = Box::new(move |host, segment| {
        let client = if host == CLIENT { segment.flow.src } else { segment.flow.dst };
        if client != client_ip(0) || segment.flags.has(Flags::SYN) {
            return true;
        }
        if host == SERVER {
            segment.options.retain_mptcp(|_| false);
            segment.options.set_dss(None);
            lost += 1;
            return lost > 6;
        }
        true
    });
    pair.open();
    pair.write(CLIENT, &PATTERN[..10_000]);
    pair.write(SERVER, &PATTERN[..10_000]);
    pair.run(Duration::from_secs(20));
    assert!(pair.read[SERVER] == PATTERN[..10_000], "{} {:?}", pair.read[SERVER].len(), pair.events);
    assert!(pair.read[CLIENT] == PATTERN[..10_000], "{} {:?}", pair.read[CLIENT].len(), pair.events);
    let reason = pair.hosts[CLIENT].connection_stats(pair.id[CLIENT].unwrap()).unwrap().fallback;
    assert!(matches!(reason, None | Some(FallbackReason::FirstData)), "{reason:?}");
}

/// An idle connection is confirmed by a question, and joined, without a byte of data; the server is not asked again.
#[test]
fn an_idle_connection_is_confirmed_and_joined() {
    let mut pair = Pair::new(2);
    pair.open();
    assert!(pair.run(Duration::from_secs(60)), "quiet");
    let open = pair.hosts[CLIENT].subflow_stats(pair.id[CLIENT].unwrap());
    assert_eq!(open.iter().filter(|subflow| subflow.established).count(), 2);
}
