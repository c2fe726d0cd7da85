//! BBR version 3 against version 1 and CUBIC, and the cases of the draft ("BBR Example Test Cases") that need a whole
//! network.

use crate::common::*;
use crate::policy;
use anabranch_net::{Change, Discipline, LossModel, QueueLimit};
use anabranch_paths::{Affected, Direction, PathSpec, TimedChange};
use anabranch_policy::registry::{CONGESTION, QUEUES, Value};
use anabranch_sim::{Extent, Outcome, Spec, Workload, run};
use anabranch_units::{Bytes, Duration, Rate};

/// A path of this rate and round trip with a queue of `products` bandwidth-delay products.
fn link(mbps: u64, rtt_ms: u64, products: f64) -> PathSpec {
    let mut path = path("a", mbps, rtt_ms / 2);
    path.down.queue = QueueLimit::Bdp { factor: products, round_trip: ms(rtt_ms) };
    path
}

/// One bulk download with buffers that are never the limit.
fn bulk_over(path: PathSpec, seconds: u64, congestion: &str) -> Spec {
    let mut spec = spec(vec![path], vec![bulk(seconds)]);
    spec.client.config.receive_buffer = Bytes::new(32 << 20);
    spec.server.config.send_buffer = Bytes::new(32 << 20);
    spec.linger = None;
    spec.audit = false;
    spec.server.config.policies.congestion = policy(CONGESTION, congestion, &[]);
    spec
}

/// A bulk download beside a TCP with the same control.
fn two_over(path: PathSpec, seconds: u64, congestion: &str) -> Spec {
    let mut spec = bulk_over(path, seconds, congestion);
    spec.workloads.push(Workload::Tcp {
        path: "a".to_owned(),
        direction: Direction::Down,
        start: Duration::ZERO,
        extent: Extent::For(Duration::from_secs(seconds)),
        congestion: policy(CONGESTION, congestion, &[]),
    });
    spec
}

/// Sum of all transfers \[Mbit/s\], over the whole run.
fn goodput(outcome: &Outcome) -> f64 {
    let bytes: u64 = outcome.transfers.iter().map(|transfer| transfer.bytes).sum();
    bytes as f64 * 8e-6 / outcome.end.as_secs_f64()
}

/// Share of the packets that the bottleneck dropped, and its mean queueing delay \[ms\].
fn bottleneck(outcome: &Outcome) -> (f64, f64) {
    let stats = &outcome.links.iter().find(|found| found.name == "a/down").unwrap().stats;
    let dropped = stats.dropped.queue + stats.dropped.early;
    (dropped as f64 / stats.offered as f64, stats.mean_queue_delay().unwrap().as_millis_f64())
}

/// Goodput between two times \[Mbit/s\], from samples each 100 ms.
fn between(outcome: &Outcome, from_s: usize, to_s: usize) -> f64 {
    let at = |s: usize| outcome.samples[10 * s].paths[0].received;
    (at(to_s) - at(from_s)) as f64 * 8e-6 / (to_s - from_s) as f64
}

fn sampled(mut spec: Spec, seconds: u64) -> Outcome {
    spec.samples = (0..=10 * seconds).map(|n| ms(100) * n).collect();
    run(&spec).unwrap()
}

/// Two flows and a queue of half a product: version 1 keeps two products in flight each and drops all the time.
#[test]
fn two_flows_lose_little_in_a_short_queue() {
    let measure = |congestion| {
        let outcome = run(&two_over(link(20, 40, 0.5), 30, congestion)).unwrap();
        (bottleneck(&outcome).0, goodput(&outcome))
    };
    let (one, three) = (measure("bbr"), measure("bbr3"));
    println!("bbr {one:?}, bbr3 {three:?}");
    assert!(three.0 < 0.2 * one.0 && three.0 < 0.02, "bbr {one:?}, bbr3 {three:?}");
    assert!(three.1 > 0.85 * 20.0, "bbr {one:?}, bbr3 {three:?}");
}

#[test]
fn a_percent_of_random_loss_costs_cubic_most_and_bbr3_little() {
    let measure = |congestion| {
        let mut path = link(20, 40, 4.0);
        path.down.loss = LossModel::Bernoulli { p: 0.01 };
        goodput(&run(&bulk_over(path, 30, congestion)).unwrap())
    };
    let (cubic, three) = (measure("cubic"), measure("bbr3"));
    println!("cubic {cubic}, bbr3 {three}");
    assert!(three > 3.0 * cubic && three > 0.75 * 20.0, "cubic {cubic}, bbr3 {three}");
}

#[test]
fn a_long_queue_stays_short() {
    let measure = |congestion| {
        let outcome = run(&bulk_over(link(20, 40, 4.0), 30, congestion)).unwrap();
        (bottleneck(&outcome).1, goodput(&outcome))
    };
    let (cubic, three) = (measure("cubic"), measure("bbr3"));
    println!("cubic {cubic:?}, bbr3 {three:?}");
    assert!(three.0 < 0.25 * cubic.0 && three.1 > 0.95 * cubic.1, "cubic {cubic:?}, bbr3 {three:?}");
}

/// "Increasing Bandwidth 10x …" and "Decreasing Bandwidth 10x …": 10 to 100 Mbit/s at 8 s, and back at 20 s.
#[test]
fn follows_ten_times_the_rate_up_and_down() {
    let mut spec = bulk_over(link(10, 40, 1.0), 32, "bbr3");
    for (at, mbps) in [(8, 100), (20, 10)] {
        let change = Change::Rate(Rate::from_mbps(mbps));
        let (at, path, affected) = (Duration::from_secs(at), "a".to_owned(), Affected::Both);
        spec.network.changes.push(TimedChange { at, path, affected, change, notify: false });
    }
    let outcome = sampled(spec, 32);
    let rates = [(3, 8), (14, 19), (26, 31)].map(|(from, to)| between(&outcome, from, to));
    println!("{rates:?}");
    assert!(rates[0] > 8.8 && rates[1] > 80.0 && (8.5..10.0).contains(&rates[2]), "{rates:?}");
    let last = outcome.phases.last().unwrap();
    let max_bw = last.variables.iter().find(|(name, _)| *name == "max-bw").unwrap().1 * 8e-6;
    assert!(max_bw < 11.0, "{max_bw}");
}

/// "Handling Token Bucket Policers": 10 Mbit/s behind a burst of 100 kB on a link of 100 Mbit/s. Share that is dropped
/// and goodput, after the first 20 s of 60, so that what Startup loses is behind.
#[test]
fn a_policer_is_obeyed() {
    let measure = |congestion| {
        let [early, late] = [20, 60].map(|seconds| {
            let mut path = link(100, 40, 1.0);
            let (rate, burst) = (Value::Number(10.0), Value::Number(100_000.0));
            let given = [("rate", rate), ("burst", burst), ("police", Value::Flag(true))];
            let make = policy(QUEUES, "token-bucket", &given);
            path.down.discipline = Some(Discipline::new("token-bucket", move || make().policy));
            let outcome = run(&bulk_over(path, seconds, congestion)).unwrap();
            let stats = outcome.links.iter().find(|found| found.name == "a/down").unwrap().stats;
            (stats.dropped.queue + stats.dropped.early, stats.offered, outcome.transfers[0].bytes)
        });
        ((late.0 - early.0) as f64 / (late.1 - early.1) as f64, (late.2 - early.2) as f64 * 8e-6 / 40.0)
    };
    let (one, three) = (measure("bbr"), measure("bbr3"));
    println!("policer: bbr {one:?}, bbr3 {three:?}");
    assert!(three.0 < 0.5 * one.0 && three.0 < 0.03 && three.1 > 8.0, "bbr {one:?}, bbr3 {three:?}");
}

/// The phases of a transfer come in the order of the draft's "State Transition Diagram", and ProbeRTT after 5 s.
#[test]
fn phases_follow_the_diagram() {
    let outcome = run(&bulk_over(link(20, 40, 1.0), 20, "bbr3")).unwrap();
    let phases: Vec<_> = outcome.phases.iter().map(|record| record.phase).collect();
    assert_eq!(phases[..2], ["startup", "drain"], "{phases:?}");
    for two in phases.windows(2) {
        let may = match two[0] {
            "startup" => &["drain", "probe-rtt"][..],
            "drain" => &["probe-bw-down", "probe-bw-cruise", "probe-rtt"],
            "probe-bw-down" => &["probe-bw-cruise", "probe-bw-refill", "probe-rtt"],
            "probe-bw-cruise" => &["probe-bw-refill", "probe-rtt"],
            "probe-bw-refill" => &["probe-bw-up", "probe-rtt"],
            // A phase may be over with the ACK that it begins with.
            "probe-bw-up" => &["probe-bw-down", "probe-bw-cruise", "probe-rtt"],
            _ => &["probe-bw-cruise", "startup"],
        };
        assert!(may.contains(&two[1]), "{two:?} in {phases:?}");
    }
    let times =
        outcome.phases.iter().filter(|record| record.phase == "probe-rtt").map(|record| record.at.as_secs_f64());
    let times: Vec<_> = times.collect();
    assert!((3..=4).contains(&times.len()) && times.windows(2).all(|two| two[1] - two[0] > 5.0), "{times:?}");
    let other = run(&bulk_over(link(20, 40, 1.0), 5, "cubic")).unwrap();
    assert!(other.phases.is_empty());
}
