//! Retransmissions on a subflow repeat the bytes sent there (RFC 8684 §3.3.2, §3.3.6, §6), and the properties that stay
//! the same for as long as a connection lives.

use crate::common::{CLIENT, PATTERN, Pair, SERVER, client_ip, config, server_ip};
use anabranch_units::{AddressId, Duration, Instant};
use anabranch_wire::{FlowKey, MpOption};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A path is dead for a while in one direction; what it carried comes through on the other and is DATA_ACKed. When it
/// is back, its subflow still has to repeat all that: the same bytes under the same numbers, with the same mapping.
#[test]
fn a_subflow_repeats_the_same_bytes_although_they_are_data_acked() {
    for checksum in [false, true] {
        let mut client = config([client_ip(0), client_ip(1)]);
        client.checksum = checksum;
        let mut pair = Pair::with(client, config([server_ip(0)]));
        let bytes: Rc<RefCell<BTreeMap<(FlowKey, u32), u8>>> = Rc::default();
        let (repeated, clock) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(Instant::ZERO)));
        let (sent, again, now) = (bytes.clone(), repeated.clone(), clock.clone());
        pair.rule = Box::new(move |host, segment| {
            let mut sent = sent.borrow_mut();
            for (at, byte) in segment.payload.iter().enumerate() {
                let known = sent.insert((segment.flow, (segment.seq + at as u64).get()), *byte);
                assert!(known.is_none_or(|known| known == *byte), "other bytes than before in {segment:?}");
                again.set(again.get() + u32::from(known.is_some()));
            }
            let first = segment.flow.dst == client_ip(0);
            let dead =
                (Duration::from_millis(25)..Duration::from_millis(1500)).contains(&now.get().since(Instant::ZERO));
            !(host == SERVER && first && dead)
        });
        pair.open();
        pair.write(CLIENT, b"GET");
        pair.write(SERVER, PATTERN);
        for step in 1..1000 {
            clock.set(pair.now);
            pair.run(Duration::from_millis(10));
            pair.now = pair.now.max(Instant::ZERO + Duration::from_millis(10 * step));
        }
        assert!(pair.read[CLIENT] == PATTERN, "{} bytes", pair.read[CLIENT].len());
        assert!(repeated.get() > 5_000, "{} bytes were repeated", repeated.get());
    }
}

/// §3.4.1: identifier 0 is the address of the initial subflow, also when that subflow is gone.
#[test]
fn another_address_never_takes_the_identifier_of_the_first() {
    let mut pair = Pair::new(3);
    let joins: Rc<RefCell<Vec<(std::net::IpAddr, AddressId)>>> = Rc::default();
    let seen = joins.clone();
    pair.rule = Box::new(move |_, segment| {
        for option in segment.options.mptcp() {
            if let MpOption::JoinSyn(join) = option {
                seen.borrow_mut().push((segment.flow.src, join.address));
            }
        }
        true
    });
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(1));
    for (path, up) in [(0, false), (2, false), (2, true), (0, true)] {
        let now = pair.now;
        pair.hosts[CLIENT].set_carrier(now, client_ip(path), up);
        pair.run(Duration::from_secs(5));
    }
    let joins = joins.borrow();
    for (address, id) in joins.iter() {
        assert_eq!(*id == AddressId(0), *address == client_ip(0), "{joins:?}");
    }
    assert!(joins.iter().any(|(address, _)| *address == client_ip(0)), "the first address joins again: {joins:?}");
    assert_eq!(joins.iter().filter(|(address, _)| *address == client_ip(2)).count(), 2, "{joins:?}");
}
