//! Subflows that let joins through and nothing else: how a connection goes on beside them, and ends without others.

use crate::common::{CLIENT, PATTERN, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Ended, Event, Policies};
use anabranch_policy::registry::{REINJECTIONS, find};
use anabranch_units::Duration;
use anabranch_wire::{Flags, MpOption, Segment};
use bytes::Bytes as Payload;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Changes the first byte of the segment's payload.
fn spoil(segment: &mut Segment) {
    let mut bytes = segment.payload.to_vec();
    if let Some(first) = bytes.first_mut() {
        *first ^= 0x20;
        segment.payload = Payload::from(bytes).into();
    }
}

fn is_join(segment: &Segment) -> bool {
    segment.flags == Flags::SYN && segment.options.mptcp().iter().any(|it| matches!(it, MpOption::JoinSyn(_)))
}

fn ended(pair: &Pair, host: usize) -> Option<Ended> {
    pair.hosts[host].connection_stats(pair.id[host].unwrap()).unwrap().ended
}

/// DSS checksums; `paths` of the client, and two addresses of the server, so that plain TCP is soon no way out.
fn with_checksums(paths: u8) -> Pair {
    let (mut client, mut server) = (config((0..paths).map(client_ip)), config((0..2).map(server_ip)));
    (client.checksum, server.checksum) = (true, true);
    let mut pair = Pair::with(client, server);
    pair.open();
    pair.write(CLIENT, b"hello");
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.read[SERVER], b"hello");
    pair
}

/// Every path alters what one of the hosts sends: each subflow is reset with MP_FAIL, the client joins anew, between
/// two pairs of addresses in turn. Both ends count, for either sender, and neither is left waiting.
#[test]
fn a_connection_whose_every_path_alters_data_ends() {
    for sender in [CLIENT, SERVER] {
        let mut pair = with_checksums(1);
        let joins = Rc::new(Cell::new(0));
        let seen = Rc::clone(&joins);
        pair.rule = Box::new(move |host, segment| {
            seen.set(seen.get() + u32::from(is_join(segment)));
            if host == sender {
                spoil(segment);
            }
            true
        });
        pair.write(sender, PATTERN);
        pair.run(Duration::from_secs(600));
        for host in [CLIENT, SERVER] {
            assert_eq!(pair.hosts[host].connection_count(), 0, "host {host}, sender {sender}, {} joins", joins.get());
            assert!(pair.has(host, |event| *event == Event::Reset));
            assert!(matches!(ended(&pair, host), Some(Ended::Middlebox | Ended::Reset)), "{:?}", ended(&pair, host));
        }
        assert!(joins.get() < 20, "{} joins", joins.get());
    }
}

/// A peer that resets each subflow, and never gives the connection up itself.
#[test]
fn a_peer_that_resets_every_subflow_is_given_up() {
    let mut pair = with_checksums(1);
    pair.rule = Box::new(|host, segment| {
        if host == CLIENT {
            spoil(segment);
        }
        // What the server says when it gives up does not arrive.
        !segment.options.mptcp().iter().any(|it| matches!(it, MpOption::FastClose { .. }))
    });
    pair.write(CLIENT, PATTERN);
    pair.run(Duration::from_secs(600));
    assert_eq!(pair.hosts[CLIENT].connection_count(), 0);
    assert_eq!(ended(&pair, CLIENT), Some(Ended::Middlebox));
}

/// One of two paths alters data. All arrives over the other, and the altering one is joined less and less often.
#[test]
fn a_path_that_alters_data_is_tried_less_and_less_often() {
    let mut pair = with_checksums(2);
    let joins = Rc::new(Cell::new(0));
    let seen = Rc::clone(&joins);
    pair.rule = Box::new(move |_, segment| {
        seen.set(seen.get() + u32::from(is_join(segment)));
        if [segment.flow.src, segment.flow.dst].contains(&client_ip(0)) {
            spoil(segment);
        }
        true
    });
    for _ in 0..200 {
        pair.write(SERVER, &PATTERN[..1000]);
        pair.write(SERVER, &PATTERN[..1000]);
        pair.run(Duration::from_secs(1));
    }
    assert_eq!(pair.read[CLIENT].len(), 400_000);
    assert!(!pair.has(CLIENT, |event| *event == Event::Reset));
    // To two addresses of the server, after 1, 2, 4, ... 64 s: eight in 200 s. Every second would be 200.
    assert!((4..=20).contains(&joins.get()), "{} joins", joins.get());
}

/// A regular path drops large packets, and so times out again and again, beside a backup that works. After three
/// unacknowledged repetitions (RFC 9293 §3.8.3) the backup is used, also with a reinjection policy that calls no
/// subflow failed.
#[test]
fn a_backup_stands_in_for_a_path_that_only_times_out() {
    for policy in ["none", "on-rto", "upstream"] {
        let entry = find(REINJECTIONS, "reinjection", policy).unwrap();
        let (mut client, mut server) = (config((0..2).map(client_ip)), config([server_ip(0)]));
        client.addresses[1].backup = true;
        let params = entry.params(&BTreeMap::new()).unwrap();
        let policies = Policies { reinjection: Arc::new(move || entry.build(&params)), ..Policies::default() };
        (client.policies, server.policies) = (policies.clone(), policies);
        let mut pair = Pair::with(client, server);
        pair.open();
        pair.write(CLIENT, b"hello");
        pair.run(Duration::from_secs(1));
        pair.rule = Box::new(|_, segment| {
            let first = [segment.flow.src, segment.flow.dst].contains(&client_ip(0));
            !first || segment.payload.len() < 1000
        });
        pair.write(SERVER, PATTERN);
        pair.run(Duration::from_secs(120));
        assert_eq!(pair.read[CLIENT].len(), PATTERN.len(), "{policy}");
    }
}
