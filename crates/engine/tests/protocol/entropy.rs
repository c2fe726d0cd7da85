//! Unpredictability on a real network: an endpoint with entropy of its driver's.

use crate::common::puppet::Puppet;
use crate::common::{CLIENT, PATTERN, PORT, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::Endpoint;
use anabranch_units::{Duration, Entropy, Instant, Seed, SubflowSeq};
use anabranch_wire::{Flags, MpOption, Segment};
use std::collections::BTreeSet;
use std::net::SocketAddr;

fn host(entropy: [u8; 32]) -> Endpoint {
    Endpoint::with_entropy(config([client_ip(0)]), &Entropy::new(entropy)).unwrap()
}

/// Opens `count` connections at the same instant and returns their SYNs.
fn syns(mut host: Endpoint, now: Instant, count: usize) -> Vec<Segment> {
    let open = |_| {
        host.open(now, client_ip(0), SocketAddr::new(server_ip(0), PORT)).unwrap();
        *host.poll_transmit(now).unwrap().segment
    };
    (0..count).map(open).collect()
}

fn clock(syn: &Segment) -> u32 {
    syn.options.timestamps().unwrap().value
}

/// 3.1-2. What another host draws, or the same host in another run, says nothing, however alike their entropy looks.
#[test]
fn nothing_can_be_foretold_without_the_entropy() {
    let now = Instant::from_nanos(1_000_000_000);
    let mut other = [1; 32];
    other[7] ^= 1;
    let runs = [[1; 32], other].map(|entropy| syns(host(entropy), now, 200));
    let distinct = |of: &dyn Fn(&Segment) -> u64| runs.iter().flatten().map(of).collect::<BTreeSet<_>>().len();
    assert_eq!(distinct(&|syn| u64::from(syn.seq.get())), 400, "initial sequence numbers");
    assert_eq!(distinct(&|syn| u64::from(clock(syn))), 2, "one clock for each pair of hosts and each run");
    // 400 of 16384 ports collide about five times.
    assert!(distinct(&|syn| u64::from(syn.flow.src_port)) > 380, "ports");
    let steps = runs[0].windows(2).map(|two| two[1].flow.src_port.wrapping_sub(two[0].flow.src_port));
    assert!(steps.collect::<BTreeSet<_>>().len() > 190, "ports do not follow from each other");
    let again = syns(host([1; 32]), now, 200);
    assert_eq!(format!("{again:?}"), format!("{:?}", runs[0]), "all of it comes from the entropy");
}

/// 3.1-2, seen by a peer: the server's keys and its nonces.
#[test]
fn keys_and_nonces_come_from_the_entropy() {
    let mut seen = BTreeSet::new();
    for first in 0..50 {
        let mut entropy = [9; 32];
        entropy[0] = first;
        let mut puppet = Puppet::with(Endpoint::with_entropy(config([server_ip(0)]), &Entropy::new(entropy)).unwrap());
        puppet.open();
        assert!(seen.insert(puppet.theirs.unwrap().get()));
        puppet.take();
        puppet.join(1);
    }
    // Of a seeded host the key is known to everybody who knows the seed.
    let seeded = || {
        let mut puppet = Puppet::with(Endpoint::new(config([server_ip(0)]), Seed(7)).unwrap());
        puppet.open();
        puppet.theirs.unwrap().get()
    };
    assert_eq!(seeded(), seeded());
    assert!(!seen.contains(&seeded()));
}

/// S3-2 (RFC 6528 §3): a flow that is opened again begins above where it began before, by a clock of 4 µs; other flows
/// begin anywhere.
#[test]
fn the_next_incarnation_of_a_flow_begins_above_the_last() {
    let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    let syn_ack = |now: Instant, port: u16| {
        let mut host = Endpoint::with_entropy(config([server_ip(0)]), &Entropy::new([3; 32])).unwrap();
        host.listen(PORT);
        let from = SocketAddr::new(client_ip(0), port);
        let flow = anabranch_wire::FlowKey::new(from, SocketAddr::new(server_ip(0), PORT));
        let mut syn = Segment::new(flow, Flags::SYN, SubflowSeq::new(5), SubflowSeq::new(0));
        syn.options.push_mptcp(MpOption::Capable(anabranch_wire::MpCapable::OFFER));
        host.handle_segment(now, &mut syn);
        host.poll_transmit(now).unwrap().segment.seq.get()
    };
    assert_eq!(syn_ack(at(4), 1000).wrapping_sub(syn_ack(at(0), 1000)), 1000, "4 ms of 4 µs");
    let others: BTreeSet<_> = (1000..1100).map(|port| syn_ack(at(0), port) >> 12).collect();
    assert!(others.len() > 95, "no two begin near each other");
}

/// With clocks that begin anywhere, round-trip times and PAWS are what they were.
#[test]
fn a_transfer_with_entropy_is_a_transfer() {
    for entropy in [[0; 32], [0xff; 32], [0x5a; 32]] {
        let mut pair = Pair::new(2);
        let client = config((0..2).map(client_ip));
        pair.hosts[CLIENT] = Endpoint::with_entropy(client, &Entropy::new(entropy)).unwrap();
        pair.hosts[SERVER] =
            Endpoint::with_entropy(config([server_ip(0)]), &Entropy::new(entropy.map(|byte| !byte))).unwrap();
        pair.hosts[SERVER].listen(PORT);
        let mut dice = Seed(1).stream("loss");
        pair.rule = Box::new(move |_, _| !dice.chance(0.02));
        pair.open();
        pair.write(CLIENT, PATTERN);
        pair.run(Duration::from_secs(60));
        assert!(pair.read[SERVER] == PATTERN);
        pair.shutdown(CLIENT);
        pair.shutdown(SERVER);
        assert!(pair.run(Duration::from_secs(300)));
        for host in [CLIENT, SERVER] {
            assert_eq!(pair.hosts[host].counters().unacceptable, 0);
            for subflow in pair.hosts[host].subflow_stats(pair.id[host].unwrap()) {
                // Both paths take 10 or 30 ms there and back.
                assert!(subflow.srtt.unwrap() < Duration::from_millis(200), "{subflow:?}");
            }
        }
    }
}
