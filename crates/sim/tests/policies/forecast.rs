//! Schedulers that forecast.

use super::common::*;
use super::policy;
use anabranch_policy::registry::{CONGESTION, REINJECTIONS, SCHEDULERS, Value};
use anabranch_sim::{Outcome, PathSpec, Spec};
use anabranch_units::{Bytes, Seed};

/// What a run shows of a scheduler's choices.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    seconds: f64,
    /// Data segments that arrived before others of lower DSN.
    out_of_order: f64,
    /// How long arrived bytes waited for missing ones [s].
    blocked: f64,
    peak: f64,
    /// Megabytes that left first on each path.
    on: [f64; 3],
    digest: u64,
}

fn shown(outcome: &Outcome) -> Shown {
    let connection = &outcome.connections[0];
    let receiver = connection.receiver.as_ref().unwrap();
    assert_eq!(connection.sender.as_ref().unwrap().overruled, Default::default(), "no decision is overruled");
    let mut on = [0.0; 3];
    for subflow in &connection.subflows {
        on[subflow.path] += subflow.stats.bytes_first_sent as f64 * 1e-6;
    }
    Shown {
        seconds: outcome.transfers[0].duration().unwrap().as_secs_f64(),
        out_of_order: receiver.ofo_count as f64,
        blocked: receiver.hol_blocked.as_secs_f64(),
        peak: receiver.ofo_peak as f64,
        on,
        digest: outcome.digest,
    }
}

/// The mean over some seeds of a download over these paths with this scheduler, no reinjection but after timeouts, and loss
/// rates as they are.
fn mean(paths: &[PathSpec], bytes: u64, buffer: u64, seeds: u64, name: &str, given: &[(&str, Value)]) -> Shown {
    let mut sum = Shown::default();
    for seed in 1..=seeds {
        let mut spec: Spec = spec(paths.to_vec(), vec![download(bytes)]);
        spec.seed = Seed(seed);
        spec.loss_oracle = true;
        spec.audit = false;
        spec.client.receive_buffer = Bytes::new(buffer);
        spec.server.policies.scheduler = policy(SCHEDULERS, name, given);
        spec.server.policies.congestion = policy(CONGESTION, "reno", &[]);
        spec.server.policies.reinjection = policy(REINJECTIONS, "on-rto", &[]);
        let one = shown(&complete(&spec));
        let n = seeds as f64;
        sum.seconds += one.seconds / n;
        sum.out_of_order += one.out_of_order / n;
        sum.blocked += one.blocked / n;
        sum.peak += one.peak / n;
        sum.digest ^= one.digest;
        sum.on.iter_mut().zip(one.on).for_each(|(sum, on)| *sum += on / n);
    }
    sum
}

const PLENTY: u64 = 6 << 20;

#[test]
fn look() {
    let clean = [path("fast", 10, 10), path("slow", 10, 100)];
    for name in
        ["min-rtt", "fps", "f2p-dps", "f2p-dps-printed", "ocps-r", "stms-r", "dpsaf-r", "cp-r", "late", "late-nested"]
    {
        println!("clean {name:18} {:?}", mean(&clean, 5_000_000, PLENTY, 1, name, &[]));
    }
    for p in [0.001, 0.01, 0.03, 0.05] {
        let paper = [lossy_path("fast", 5, 50, p), lossy_path("slow", 2, 250, 0.001)];
        for name in
            ["min-rtt", "fps", "f2p-dps", "f2p-dps-printed", "ocps-r", "dpsaf-r", "stms-r", "late", "late-nested"]
        {
            println!("paper {p} {name:18} {:?}", mean(&paper, 3_000_000, PLENTY, 4, name, &[]));
        }
    }
}
