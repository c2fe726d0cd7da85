//! Time for which an endpoint waits for a peer that is silent, or says nothing of use.

use crate::common::{CLIENT, PATTERN, Pair, SERVER, buffer, client_ip, config, server_ip};
use anabranch_engine::{Config, Event, RtoRule};
use anabranch_units::Duration;
use std::cell::Cell;
use std::rc::Rc;

const HOUR: Duration = Duration::from_secs(3600);

/// A client that has stopped reading, with a window that is full.
fn with_a_closed_window() -> Pair {
    close_window(config([client_ip(0)]), config([server_ip(0)]))
}

/// The same between these.
fn close_window(mut client: Config, server: Config) -> Pair {
    client.receive_buffer = buffer(20_000);
    let mut pair = Pair::with(client, server);
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(1));
    pair.deaf[CLIENT] = true;
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(5));
    pair
}

/// RFC 9293 §3.8.6.1: the connection stays open as long as the receiver answers the probes.
#[test]
fn a_peer_may_keep_its_window_closed_as_long_as_it_answers() {
    let mut pair = with_a_closed_window();
    pair.run(HOUR * 4);
    let blocked = pair.hosts[SERVER].connection_stats(pair.id[SERVER].unwrap()).unwrap().blocked;
    assert!(blocked.receive_window > HOUR * 3 && blocked.cwnd < Duration::from_secs(60), "{blocked:?}");
    assert!(!pair.has(SERVER, |event| matches!(event, Event::Reset | Event::SubflowClosed(_))), "{:?}", pair.events);
    pair.deaf[CLIENT] = false;
    pair.run(HOUR);
    assert_eq!(pair.read[CLIENT].len(), PATTERN.len());
}

#[test]
fn a_dead_peer_with_a_closed_window_is_given_up() {
    let mut pair = with_a_closed_window();
    pair.rule = Box::new(|_, _| false);
    pair.run(HOUR);
    assert!(pair.has(SERVER, |event| *event == Event::Reset), "{:?}", pair.events[SERVER]);
    assert_eq!(pair.hosts[SERVER].connection_count(), 0);
}

/// RFC 7323 §5.5: a timestamp clock may have come round during so long a silence.
#[test]
fn data_flows_after_more_than_24_days_of_silence() {
    let mut pair = Pair::new(1);
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(1));
    pair.now += HOUR * 24 * 25;
    pair.write(CLIENT, b" again");
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.read[SERVER], b"GET again");
}

/// Pauses between what `host` sends from now on, in turn, until nothing is left to do or `span` is over.
fn pauses(pair: &mut Pair, host: usize, span: Duration, passes: bool) -> Vec<Duration> {
    let sent = Rc::new(Cell::new(false));
    let seen = Rc::clone(&sent);
    pair.rule = Box::new(move |from, _| {
        seen.set(seen.get() || from == host);
        passes
    });
    let (end, mut last, mut pauses) = (pair.now + span, pair.now, Vec::new());
    while pair.now < end {
        let quiet = pair.run(Duration::from_secs(1));
        if sent.take() {
            pauses.push(pair.now.since(last));
            last = pair.now;
        }
        if quiet {
            break;
        }
    }
    pauses
}

/// A client and a server whose timeouts begin at four seconds, so that six doublings lead beyond what a timeout may be.
fn with_long_timeouts() -> (Config, Config) {
    let slow = |mut config: Config| {
        config.profile.rto = RtoRule::Linux { min_var: Duration::from_secs(4) };
        config
    };
    (slow(config([client_ip(0)])), slow(config([server_ip(0)])))
}

/// Window probes back off as timeouts do, and no further (RFC 9293 §3.8.6.1, RFC 6298 §2.5, Linux `tcp_probe0_when`).
#[test]
fn window_probes_come_at_least_as_often_as_the_longest_timeout() {
    let (client, server) = with_long_timeouts();
    let mut pair = close_window(client, server);
    let longest = pauses(&mut pair, SERVER, HOUR, true).into_iter().max().unwrap();
    assert!((119.0..=122.0).contains(&longest.as_secs_f64()), "{longest}");
}

/// A DATA_FIN is repeated until the time of fifteen timeouts on a subflow is over, then the unacknowledged connection
/// ends (Linux `mptcp_set_datafin_timeout`).
#[test]
fn a_data_fin_is_repeated_at_least_as_often_as_the_longest_timeout() {
    let (client, server) = with_long_timeouts();
    let mut pair = Pair::with(client, server);
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(10));
    pair.shutdown(CLIENT);
    let pauses = pauses(&mut pair, CLIENT, HOUR * 12, false);
    let longest = *pauses.iter().max().unwrap();
    assert!((119.0..=122.0).contains(&longest.as_secs_f64()), "{pauses:?}");
    assert!(pair.has(CLIENT, |event| *event == Event::Reset));
    let total: Duration = pauses.into_iter().fold(Duration::ZERO, |sum, pause| sum + pause);
    assert!(total < Duration::from_secs(16 * 121), "{total}");
}
