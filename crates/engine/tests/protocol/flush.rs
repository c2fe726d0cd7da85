//! All addresses of a host removed at once in mid-transfer, as `ip mptcp endpoint flush` does, at every moment of the
//! transfer; one of them comes back. The data arrives whole, whatever became of the subflows (RFC 8684 §3.4.2, §3.6).

use crate::common::{CLIENT, PATTERN, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Event, LocalAddress};
use anabranch_units::{Duration, Instant};
use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;

/// Fate of the segments from and to removed addresses, but for those of a subflow that begins later.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    /// All arrive.
    Arrive,
    /// The resets and FINs of the host are lost, and nothing answers its peer.
    Vanish,
}

/// One moment and manner of it.
#[derive(Clone, Copy, Debug)]
struct Flush {
    /// Host whose addresses go: the client or the server.
    host: usize,
    at: Duration,
    /// The first address goes as well.
    first: bool,
    fate: Fate,
    max_subflows: usize,
    /// Until one address is back.
    back: Duration,
}

/// Address of a host.
fn ip(host: usize, number: u8) -> IpAddr {
    if host == CLIENT { client_ip(number) } else { server_ip(number) }
}

fn play(flush: Flush) {
    let mut client = config((0..3).map(client_ip));
    let mut server = config((0..2).map(server_ip));
    (client.max_subflows, server.max_subflows) = (flush.max_subflows, flush.max_subflows);
    (client.close_timeout, server.close_timeout) = (CLOSE_TIMEOUT, CLOSE_TIMEOUT);
    let mut pair = Pair::with(client, server);
    pair.open();
    for host in [CLIENT, SERVER] {
        pair.write(host, PATTERN);
    }
    pair.run(flush.at);
    let (host, count) = (flush.host, if flush.host == CLIENT { 3 } else { 2 });
    let gone: Vec<IpAddr> = (u8::from(!flush.first)..count).map(|number| ip(host, number)).collect();
    // A client joins from any address. A server that comes back where nobody knows it is not found.
    let returning = ip(host, u8::from(host == CLIENT || !flush.first));
    let revived = Rc::new(Cell::new(false));
    if flush.fate == Fate::Vanish {
        let (gone, revived) = (gone.clone(), Rc::clone(&revived));
        pair.rule = Box::new(move |_, segment| {
            let lost = gone.iter().any(|ip| [segment.flow.src, segment.flow.dst].contains(ip));
            let back = revived.get() && [segment.flow.src, segment.flow.dst].contains(&returning);
            !lost || back
        });
    }
    for ip in &gone {
        pair.hosts[host].remove_address(pair.now, *ip);
    }
    pair.run(flush.back);
    revived.set(true);
    pair.hosts[host].add_address(pair.now, LocalAddress { ip: returning, backup: false });
    let until = pair.now + LIMIT;
    let all = PATTERN.len();
    while pair.now < until && pair.read.iter().any(|read| read.len() < all) {
        pair.run(Duration::from_millis(100));
    }
    for host in [CLIENT, SERVER] {
        let read = &pair.read[host];
        let right = *read == PATTERN[..read.len()];
        let lengths = pair.read.each_ref().map(Vec::len);
        assert!(read.len() == all && right, "{flush:?}: host {host} has {lengths:?} of {all}: {:?}", pair.events);
        assert!(!pair.has(host, |event| *event == Event::Reset), "{flush:?}");
    }
    for host in [CLIENT, SERVER] {
        pair.shutdown(host);
    }
    pair.run(LIMIT);
    for host in [CLIENT, SERVER] {
        assert!(pair.has(host, |event| *event == Event::Closed), "{flush:?}: {:?}", pair.events[host]);
        assert_eq!(pair.hosts[host].connection_count(), 0, "{flush:?}");
    }
}

fn at_every_moment(host: usize, fate: Fate, max_subflows: usize) {
    for first in [false, true] {
        for back in [0, 30, 3000].map(Duration::from_millis) {
            // A server has fewer addresses, and fewer ways to come back.
            for step in (0..MOMENTS).step_by(if host == CLIENT { 1 } else { 3 }) {
                let at = FROM.since(Instant::ZERO) + STEP * step;
                play(Flush { host, at, first, fate, max_subflows, back });
            }
        }
    }
}

#[test]
fn everything_of_removed_addresses_arrives() {
    at_every_moment(CLIENT, Fate::Arrive, 8);
}

/// The places of the lost subflows are taken until the server knows of their end.
#[test]
fn everything_of_removed_addresses_is_lost() {
    at_every_moment(CLIENT, Fate::Vanish, 8);
}

#[test]
fn removed_subflows_took_all_places() {
    at_every_moment(CLIENT, Fate::Vanish, 3);
}

#[test]
fn everything_of_removed_addresses_of_the_server_arrives() {
    at_every_moment(SERVER, Fate::Arrive, 8);
}

#[test]
fn everything_of_removed_addresses_of_the_server_is_lost() {
    at_every_moment(SERVER, Fate::Vanish, 8);
}

/// After the handshake of the first subflow.
const FROM: Instant = Instant::from_nanos(11_000_000);
/// Moments of a transfer that lasts about 90 ms.
const STEP: Duration = Duration::from_millis(5);
const MOMENTS: u64 = 18;
const CLOSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Simulated time in which all has to be there.
const LIMIT: Duration = Duration::from_secs(120);
