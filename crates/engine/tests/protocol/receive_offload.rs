//! Receive offload hands the endpoint many segments as one, of up to 64 KiB: everything counts as if they had come
//! alone.

use crate::common::puppet::{Line, Puppet};
use crate::common::{CLIENT, PATTERN, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::{Config, Profile};
use anabranch_units::{Bytes, Duration, Seed};
use anabranch_wire::{Dss, Segment, dss_checksum};
use std::cell::RefCell;
use std::rc::Rc;

/// Payload of a full segment of the puppet's, which has no timestamps.
const FULL: usize = 1460 - 28;

fn patient() -> Config {
    let mut config = config([server_ip(0)]);
    config.profile.quick_acks = 0;
    config
}

/// The peer sends what stands at these data offsets in one lump, which the mapping `map` covers.
fn lump(puppet: &mut Puppet, line: Line, range: std::ops::Range<usize>, map: Dss) {
    puppet.data(line, 1 + range.start as u64, &PATTERN[range], Some(map));
}

/// The peer's subflow offset and data offset that an ACK acknowledges.
fn acked(segment: &Segment) -> (u64, i64) {
    (u64::from(segment.ack.get() - 1001), Puppet::acked(segment).unwrap())
}

/// RFC 5681 §4.2: an ACK at least for every second full segment, however they are packed.
#[test]
fn a_lump_of_two_segments_is_acknowledged_at_once() {
    for (lengths, acks) in [
        (vec![FULL], 0),
        (vec![FULL, FULL], 1),
        (vec![2 * FULL], 1),
        (vec![2 * FULL - 1], 0),
        (vec![2 * FULL - 1, 10], 1),
        (vec![45 * FULL], 1),
        (vec![FULL, 20 * FULL, 2 * FULL, 7 * FULL], 3),
    ] {
        let (mut puppet, line) = Puppet::accepted(patient());
        puppet.take();
        let whole: usize = lengths.iter().sum();
        let map = puppet.map(1, 0, whole as u16);
        let mut at = 0;
        for length in &lengths {
            lump(&mut puppet, line, at..at + length, map);
            at += length;
        }
        let out = puppet.take();
        assert_eq!(out.len(), acks, "{lengths:?}");
        if let Some(last) = out.last() {
            assert_eq!(acked(last), (at as u64, at as i64), "{lengths:?}");
        }
        // What was held back comes with the delay.
        puppet.wait(Duration::from_millis(100));
        let late = puppet.take();
        assert_eq!(late.len(), usize::from(acks == 0), "{lengths:?}");
        assert!(puppet.read == PATTERN[..at]);
    }
}

/// The window closes by the bytes of a lump and opens as they are read.
#[test]
fn the_window_counts_the_bytes_of_a_lump() {
    let mut small = patient();
    small.receive_buffer = Bytes::new(70_000);
    small.profile = Profile { window_scaling: false, ..small.profile };
    let (mut puppet, line) = Puppet::accepted(small);
    puppet.deaf = true;
    puppet.take();
    let map = puppet.map(1, 0, 65_000);
    lump(&mut puppet, line, 0..40_000, map);
    let first = puppet.take();
    lump(&mut puppet, line, 40_000..65_000, map);
    let second = puppet.take();
    // 65535 were told at first, and the edge does not move back.
    assert_eq!((acked(&first[0]), first[0].window), ((40_000, 40_000), 30_000));
    assert_eq!((acked(&second[0]), second[0].window), ((65_000, 65_000), 5_000));
    let id = puppet.id.unwrap();
    let pieces = std::iter::from_fn(|| puppet.host.read(id).ok().and_then(anabranch_engine::Read::data));
    let read: usize = pieces.map(|piece| piece.len()).sum();
    assert_eq!(read, 65_000);
    puppet.pump();
    assert!(puppet.take().iter().any(|ack| ack.window == u16::MAX), "the whole window again");
}

/// A lump out of order is one hole and one SACK; one that overlaps what is there adds only what is new.
#[test]
fn lumps_out_of_order_and_repeated_fill_the_holes() {
    let (mut puppet, line) = Puppet::accepted(patient());
    puppet.take();
    let map = puppet.map(1, 0, 60_000);
    for range in [20_000..40_000, 50_000..60_000, 10_000..45_000, 0..30_000] {
        lump(&mut puppet, line, range, map);
    }
    assert_eq!(acked(puppet.take().last().unwrap()), (45_000, 45_000));
    lump(&mut puppet, line, 0..60_000, map);
    assert_eq!(acked(puppet.take().last().unwrap()), (60_000, 60_000));
    assert!(puppet.read == PATTERN[..60_000]);
}

/// With checksums nothing counts before all of the mapping has arrived and is proven.
#[test]
fn a_checksum_is_verified_over_lumps() {
    for spoilt in [false, true] {
        let mut puppet = Puppet::new(Config { checksum: true, ..patient() });
        puppet.checksum = true;
        let line = puppet.open();
        puppet.take();
        let mut map = puppet.map(1, 0, 50_000);
        let sum = dss_checksum(Puppet::dsn(0), 1, 50_000, [&PATTERN[..50_000]]);
        map.map.as_mut().unwrap().checksum = Some(if spoilt { sum ^ 1 } else { sum });
        lump(&mut puppet, line, 0..30_001, map);
        let early = puppet.take();
        assert_eq!(acked(&early[0]), (30_001, 0));
        assert!(puppet.read.is_empty());
        lump(&mut puppet, line, 30_001..50_000, map);
        assert_eq!(puppet.host.counters().checksum_failures, u64::from(spoilt));
        if !spoilt {
            assert_eq!(acked(&puppet.take()[0]), (50_000, 50_000));
        }
        assert!(puppet.read == PATTERN[..50_000]);
    }
}

/// The echo of a timestamp in a lump is a round-trip time as good as any (receive buffer tuning).
#[test]
fn a_lump_is_a_full_segment_for_the_receiver_s_round_trip_time() {
    let mut tuned = patient();
    tuned.initial_receive_buffer = Some(Bytes::new(80_000));
    let mut pair = Pair::with(bursting(config([client_ip(0)]), 60_000), tuned);
    pair.lumps = Some(Seed(1).stream("lumps"));
    pair.open();
    for _ in 0..8 {
        pair.write(CLIENT, PATTERN);
    }
    pair.run(Duration::from_secs(20));
    let stats = pair.hosts[SERVER].connection_stats(pair.id[SERVER].unwrap()).unwrap();
    assert_eq!(stats.received, 8 * PATTERN.len() as u64);
    assert!(stats.autotuned_buffer.unwrap() > 150_000, "{stats:?}");
}

fn bursting(config: Config, most: u64) -> Config {
    Config { burst: Some(Bytes::new(most)), ..config }
}

/// Lumps of random length over lossy paths, both ways, with and without checksums: every byte in its place,
/// acknowledged often enough, and the sender's round-trip times stay those of the paths.
#[test]
fn random_lumps_carry_the_stream() {
    for seed in 0..16 {
        let set = |mut config: Config| {
            config.checksum = seed % 4 == 3;
            bursting(config, 65_000)
        };
        let mut pair = Pair::seeded(seed, set(config((0..2).map(client_ip))), set(config([server_ip(0)])));
        pair.lumps = Some(Seed(seed).stream("lumps"));
        let mut dice = Seed(seed).stream("loss");
        let acks = Rc::new(RefCell::new((0, 0)));
        let count = Rc::clone(&acks);
        pair.rule = Box::new(move |_, segment| {
            let mut count = count.borrow_mut();
            count.0 += u32::from(segment.payload.is_empty());
            count.1 += u32::from(!segment.payload.is_empty());
            !dice.chance(0.02)
        });
        pair.open();
        pair.write(CLIENT, PATTERN);
        pair.run(Duration::from_secs(100));
        pair.write(SERVER, PATTERN);
        pair.run(Duration::from_secs(100));
        assert!(pair.read[SERVER] == PATTERN && pair.read[CLIENT] == PATTERN, "seed {seed}");
        let (acks, data) = *acks.borrow();
        assert!(acks < data, "seed {seed}: {acks} ACKs for {data} segments: lumps were acknowledged as one");
        for host in [CLIENT, SERVER] {
            for subflow in pair.hosts[host].subflow_stats(pair.id[host].unwrap()) {
                assert!(subflow.srtt.unwrap() < Duration::from_millis(100), "seed {seed}: {subflow:?}");
            }
        }
    }
}
