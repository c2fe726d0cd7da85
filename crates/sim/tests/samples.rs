//! Looking at a run on the way changes nothing, and what is seen agrees with what comes out; UDP with uneven gaps; many
//! paths.
#![allow(clippy::unwrap_used)]

mod common;
mod draw;

use anabranch_paths::Direction;
use anabranch_sim::{Sample, Spacing, Workload, run};
use anabranch_units::{Bytes, Duration, Instant, Rate, Seed};
use common::{bulk, complete, download, ms, path, spec};

/// Sampling changes no run of the swarm, faults, middleboxes and small queues included.
#[test]
fn a_run_is_the_same_whether_or_not_it_is_sampled() {
    for seed in 1..=25 {
        let mut plain = draw::spec(Seed(seed));
        (plain.audit, plain.linger) = (false, None);
        let mut sampled = plain.clone();
        sampled.samples = (0..2000).map(|n| ms(7) * n).collect();
        sampled.decisions = true;
        let (one, other) = (run(&plain).unwrap(), run(&sampled).unwrap());
        assert_eq!((one.digest, one.end, one.transfers), (other.digest, other.end, other.transfers), "seed {seed}");
        assert!(one.samples.is_empty() && one.decisions.is_none());
        assert!(!other.samples.is_empty() && other.decisions.is_some());
        assert!(other.samples.windows(2).all(|pair| pair[0].at <= pair[1].at && pair[0].read <= pair[1].read));
    }
}

/// The last sample holds the whole file: all of it was read, both paths together have received at least that, and no
/// data is left in the buffer.
#[test]
fn the_last_sample_is_the_whole() {
    let mut spec = spec(vec![path("a", 20, 10), path("b", 10, 30)], vec![download(3_000_000)]);
    spec.samples = (0..20).map(|n| ms(100) * n).collect();
    let outcome = complete(&spec);
    let last = outcome.samples.last().unwrap();
    assert_eq!((last.at, last.read, last.ofo_segments, last.buffered), (outcome.end, 3_000_000, 0, 0));
    let received: Vec<u64> = last.paths.iter().map(|path| path.received).collect();
    assert!(received.iter().sum::<u64>() >= 3_000_000 && received.iter().all(|&bytes| bytes > 500_000), "{received:?}");
    let first: &Sample = &outcome.samples[0];
    assert_eq!((first.at, first.read, first.data_acked, first.paths[0].received), (Instant::ZERO, 0, 0, 0));
    let middle = &outcome.samples[5];
    assert!(middle.data_acked < middle.read, "the sender hears later: {middle:?}");
    assert!(middle.paths.iter().all(|path| path.cwnd > 0) && middle.paths[0].queued > 0, "{middle:?}");
    // The run ended before the last of the times asked for.
    assert!(outcome.samples.len() < 20 && last.at < Instant::ZERO + ms(1900));
}

/// The mean rate is that of even gaps; gaps drawn between nothing and twice the mean deviate from it by mean / √3.
#[test]
fn uneven_gaps_have_the_same_mean() {
    let udp = |spacing| Workload::Udp {
        path: "a".to_owned(),
        direction: Direction::Down,
        rate: Rate::from_mbps(1),
        packet: Bytes::new(625),
        spacing,
        on: Duration::ZERO,
        off: Duration::ZERO,
        phases: anabranch_sim::Spacing::Even,
        start: Duration::ZERO,
        stop: Duration::from_secs(50),
    };
    let sent = |spacing, seed| {
        let mut spec = spec(vec![path("a", 100, 5)], vec![udp(spacing)]);
        spec.seed = Seed(seed);
        (spec.stop, spec.record_events) = (Duration::from_secs(60), false);
        let outcome = run(&spec).unwrap();
        (outcome.udp[0].sent, outcome.digest)
    };
    // 5 ms each.
    assert_eq!(sent(Spacing::Even, 1).0, 10_000);
    let (first, digest) = sent(Spacing::Uniform, 1);
    // 10 000 gaps deviate by 1 / √3 of a gap each: together by 58.
    assert!((9_800..=10_200).contains(&first) && first != 10_000, "{first}");
    assert_eq!(sent(Spacing::Uniform, 1).1, digest, "drawn from the seed");
    assert_ne!(sent(Spacing::Uniform, 2).1, digest);
}

/// Sixteen subflows, the largest number of a host.
#[test]
fn sixteen_paths_carry_one_connection() {
    let paths: Vec<_> = (0..16).map(|n| path(&format!("p{n}"), 2, 10 + n)).collect();
    let mut spec = spec(paths, vec![bulk(20)]);
    spec.audit = false;
    for host in [&mut spec.client, &mut spec.server] {
        (host.config.max_subflows, host.config.receive_buffer, host.config.send_buffer) =
            (16, Bytes::new(16 << 20), Bytes::new(16 << 20));
    }
    let outcome = run(&spec).unwrap();
    let subflows = &outcome.connections[0].subflows;
    assert_eq!(subflows.len(), 16);
    assert!(subflows.iter().all(|subflow| subflow.stats.bytes_first_sent > 1_000_000), "{subflows:#?}");
    // Of 32 Mbit/s, slow start and headers included.
    assert!(common::goodput(&outcome) > 16.0, "{}", common::goodput(&outcome));
}
