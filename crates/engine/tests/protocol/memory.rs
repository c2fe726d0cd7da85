//! Memory that an endpoint keeps of a destination from one connection to the next.

use crate::common::{CLIENT, PATTERN, PORT, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Config, Event, FallbackReason};
use anabranch_units::{Duration, SubflowSeq};
use anabranch_wire::{Flags, Segment};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

/// A path on which SYNs with MP_CAPABLE vanish for as long as the first says; the second counts them.
fn black_hole(client: Config) -> (Pair, Rc<Cell<bool>>, Rc<Cell<u32>>) {
    let mut pair = Pair::with(client, config([server_ip(0), server_ip(1)]));
    let (closed, lost) = (Rc::new(Cell::new(true)), Rc::new(Cell::new(0)));
    let (state, count) = (closed.clone(), lost.clone());
    pair.rule = Box::new(move |_, segment: &mut Segment| {
        let offers = segment.flags == Flags::SYN && segment.options.has_mptcp();
        if offers && state.get() {
            count.set(count.get() + 1);
            return false;
        }
        true
    });
    (pair, closed, lost)
}

/// Opens a connection to the server's address `number`, sends something and closes; how long the handshake took and
/// what it became.
fn connect(pair: &mut Pair, number: u8) -> (Duration, Option<FallbackReason>) {
    let begun = pair.now;
    for host in [CLIENT, SERVER] {
        (pair.id[host], pair.events[host], pair.read[host]) = (None, Vec::new(), Vec::new());
    }
    pair.id[CLIENT] =
        Some(pair.hosts[CLIENT].open(begun, client_ip(0), SocketAddr::new(server_ip(number), PORT)).unwrap());
    while !pair.has(CLIENT, |event| matches!(event, Event::Connected { .. })) {
        pair.run(Duration::from_millis(10));
    }
    let took = pair.now.since(begun);
    pair.write(CLIENT, &PATTERN[..1000]);
    pair.run(Duration::from_millis(500));
    assert!(pair.read[SERVER] == PATTERN[..1000]);
    let reason = pair.hosts[CLIENT].connection_stats(pair.id[CLIENT].unwrap()).unwrap().fallback;
    pair.shutdown(CLIENT);
    pair.shutdown(SERVER);
    pair.run(Duration::from_secs(5));
    (took, reason)
}

/// Lets time pass, also while nothing happens.
fn pass(pair: &mut Pair, span: Duration) {
    let end = pair.now + span;
    pair.run(span);
    pair.now = end;
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn lost_offers_are_paid_for_once() {
    let (mut pair, closed, lost) = black_hole(config([client_ip(0)]));
    let (took, reason) = connect(&mut pair, 0);
    assert!(took > SECOND * 6 && reason == Some(FallbackReason::SynLost), "{took} {reason:?}");
    assert_eq!(lost.take(), 3);
    for _ in 0..3 {
        let (took, reason) = connect(&mut pair, 0);
        assert!(took < SECOND && reason == Some(FallbackReason::Remembered), "{took} {reason:?}");
    }
    assert_eq!(lost.take(), 0, "nothing is offered");
    // Another address of the server is another destination.
    assert_eq!(connect(&mut pair, 1).1, Some(FallbackReason::SynLost));
    assert_eq!(lost.take(), 3);
    // After a minute it is offered again, once, and then not for two minutes.
    pass(&mut pair, SECOND * 60);
    let (took, reason) = connect(&mut pair, 0);
    assert!(took < SECOND * 2 && reason == Some(FallbackReason::SynLost), "{took} {reason:?}");
    assert_eq!(lost.take(), 1);
    pass(&mut pair, SECOND * 90);
    assert_eq!(connect(&mut pair, 0).1, Some(FallbackReason::Remembered));
    // The path has been mended meanwhile.
    closed.set(false);
    pass(&mut pair, SECOND * 60);
    for _ in 0..2 {
        assert_eq!(connect(&mut pair, 0).1, None);
    }
    // It is forgotten that there was anything: the next loss begins with a minute again.
    closed.set(true);
    assert_eq!(connect(&mut pair, 0).1, Some(FallbackReason::SynLost));
    assert_eq!(lost.take(), 3);
}

#[test]
fn memory_can_be_switched_off() {
    let mut client = config([client_ip(0)]);
    client.mptcp_blackhole = None;
    let (mut pair, _, lost) = black_hole(client);
    for _ in 0..2 {
        assert_eq!(connect(&mut pair, 0).1, Some(FallbackReason::SynLost));
        assert_eq!(lost.take(), 3);
    }
}

/// A host off the path does not know the sequence number of the SYN: its SYN/ACK leaves no trace.
#[test]
fn strangers_teach_nothing() {
    let (mut pair, closed, _) = black_hole(config([client_ip(0)]));
    let flow = Rc::new(Cell::new(None));
    let (seen, mut rule) = (flow.clone(), std::mem::replace(&mut pair.rule, Box::new(|_, _| true)));
    // Not even the SYN without MP_CAPABLE gets through.
    pair.rule = Box::new(move |host, segment| {
        seen.set(seen.get().or((host == CLIENT).then_some(segment.flow)));
        rule(host, segment) && segment.flags != Flags::SYN
    });
    pair.open();
    pair.run(SECOND * 8);
    for guess in 0..100 {
        let (seq, ack) = (SubflowSeq::new(1), SubflowSeq::new(guess << 25));
        let mut forged = Segment::new(flow.get().unwrap().reversed(), Flags::SYN.with(Flags::ACK), seq, ack);
        pair.hosts[CLIENT].handle_segment(pair.now, &mut forged);
    }
    assert!(!pair.has(CLIENT, |event| matches!(event, Event::Connected { .. })));
    pair.hosts[CLIENT].abort(pair.now, pair.id[CLIENT].unwrap());
    pair.rule = Box::new(|_, _| true);
    closed.set(false);
    pair.run(SECOND);
    assert_eq!(connect(&mut pair, 0).1, None);
}

/// An answer that has MP_CAPABLE and comes after the SYN without was slow, not lost.
#[test]
fn slow_answers_teach_nothing() {
    let mut pair = Pair::with(config([client_ip(0)]), config([server_ip(0)]));
    let mut syns = 0;
    pair.rule = Box::new(move |host, segment| {
        syns += u32::from(host == CLIENT && segment.flags == Flags::SYN);
        host == CLIENT || !segment.flags.has(Flags::SYN) || syns == 4
    });
    assert_eq!(connect(&mut pair, 0).1, Some(FallbackReason::SynLost));
    pair.rule = Box::new(|_, _| true);
    assert_eq!(connect(&mut pair, 0).1, None);
}
