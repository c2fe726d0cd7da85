//! A run whose segments travel as bytes is the same run.
#![allow(clippy::unwrap_used)]

mod common;
mod draw;

use anabranch_paths::{AlterPayload, Coalesce, Direction, EarlyAck, Middlebox, MiddleboxSpec, Nat, Stripped};
use anabranch_sim::{Outcome, Spec, run};
use anabranch_units::Seed;
use common::*;

/// The run as structs and as bytes.
fn both(spec: &Spec) -> [Outcome; 2] {
    [false, true].map(|codec| run(&Spec { codec, record_events: true, ..spec.clone() }).unwrap())
}

fn assert_alike(spec: &Spec, what: &str) {
    let [values, bytes] = both(spec);
    assert_eq!(values.digest, bytes.digest, "{what}");
    assert_eq!(values.transfers, bytes.transfers, "{what}");
    assert_eq!(values.events, bytes.events, "{what}");
    assert_eq!(values.counters, bytes.counters, "{what}");
    assert_eq!(values.middleboxes, bytes.middleboxes, "{what}");
    // What is left has no equality; its text says everything.
    assert_eq!(format!("{values:?}"), format!("{bytes:?}"), "{what}");
}

#[test]
fn drawn_runs_are_alike() {
    for seed in 0..150 {
        assert_alike(&draw::spec(Seed(seed)), &format!("seed {seed}"));
    }
}

/// Bits are flipped, and the checksum finds them: as many packets are discarded as the links say they damaged.
#[test]
fn damaged_packets_are_found_by_their_checksums() {
    let mut only = path("a", 10, 10);
    (only.down.corruption, only.up.corruption) = (0.05, 0.05);
    let mut spec = spec(vec![only], vec![files(Direction::Down, &[2_000_000], false)]);
    // Only audited runs compute every checksum.
    for audit in [true, false] {
        spec.audit = audit;
        assert_alike(&spec, "corruption");
        let [_, bytes] = both(&spec);
        let damaged: u64 = bytes.links.iter().map(|link| link.stats.corrupted).sum();
        assert!(damaged > 50 && bytes.corrupted == damaged, "{damaged}");
    }
}

#[test]
fn what_middleboxes_make_has_bytes_too() {
    for kind in [
        Middlebox::EarlyAck(EarlyAck { delay: ms(1), lose: 0, direction: None }),
        Middlebox::Nat(Nat { rebind: Some(ms(300)), unmapped: anabranch_paths::Unmapped::Reset }),
        Middlebox::Coalesce(Coalesce { size: 65_000, wait: ms(20), direction: None }),
        Middlebox::AlterPayload(AlterPayload { offset: 100, remove: 3, insert: 900, direction: None }),
        Middlebox::strip(Stripped::ThirdAck),
    ] {
        for direction in [Direction::Down, Direction::Up] {
            for place in [MiddleboxSpec::new, MiddleboxSpec::at_server] {
                let mut paths = vec![path("a", 10, 10), path("b", 10, 15)];
                paths[0].middleboxes = vec![place(kind.clone())];
                let spec = spec(paths, vec![files(direction, &[500_000], false)]);
                assert_alike(&spec, &format!("{kind:?} {direction:?}"));
            }
        }
    }
}
