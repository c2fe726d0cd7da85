//! Schedulers that predict where a segment arrives first: STTF, OTIAS, EDPF; and Peekaboo, which learns.

use super::common::*;
use super::policy;
use anabranch_net::Change;
use anabranch_paths::{Affected, Direction, PathSpec, TimedChange};
use anabranch_policy::registry::{SCHEDULERS, Value};
use anabranch_policy::scheduler::{MinRtt, Scheduler};
use anabranch_policy::{Decision, Truth, View};
use anabranch_sim::{Outcome, Spec, Workload, run};
use anabranch_units::{Bytes, Duration, Instant, Rate, Seed};
use std::sync::{Arc, Mutex};

/// Payload of a full segment in a packet of 1500 bytes.
const SEGMENT: u64 = 1420;

/// Makes a run of bursts of `segments` segments, one each second, after both subflows were used.
fn bursts(paths: Vec<PathSpec>, segments: u64, name: &str, given: &[(&str, Value)]) -> Spec {
    let workload = Workload::Bursts {
        direction: Direction::Up,
        size: Bytes::new(segments * SEGMENT),
        count: 8,
        interval: Duration::from_secs(1),
        start: Duration::ZERO,
        warm_up: Bytes::new(200_000),
    };
    let mut spec = spec(paths, vec![workload]);
    spec.client.config.policies.scheduler = policy(SCHEDULERS, name, given);
    spec
}

/// Returns the duration of each burst [ms].
fn latencies(spec: &Spec) -> Vec<f64> {
    let outcome = complete(spec);
    assert_eq!(outcome.connections[0].sender.as_ref().unwrap().overruled.total(), 0);
    outcome.transfers.iter().map(|transfer| transfer.duration().unwrap().as_secs_f64() * 1e3).collect()
}

/// The slowest of the bursts [ms].
fn slowest(paths: Vec<PathSpec>, segments: u64, name: &str, given: &[(&str, Value)]) -> f64 {
    latencies(&bursts(paths, segments, name, given)).into_iter().fold(0.0, f64::max)
}

/// LOWLAT Fig. 8, the panel of 10 and 100 ms: RTTs at 100 Mbit/s, windows of ten after idling.
fn lowlat() -> Vec<PathSpec> {
    vec![path("path1", 100, 5), path("path2", 100, 50)]
}

/// LOWLAT Section II, Figs. 6 and 8. Ideal, without serialisation: 10 segments 5 ms, to 30 segments 15 ms, to 70
/// segments 25 ms on the fast path; min-RTT puts what does not fit there onto the slow one, whose delay is 50 ms.
/// Serialisation adds 0.12 ms a segment. OTIAS does the same until it expects more than five rounds of ten, since it
/// does not know that windows grow; what it put onto the slow path stays there.
///
/// | segments | ideal | sttf | otias | min-rtt |
/// |----------|-------|------|-------|---------|
/// | 10       | 5     | 6.2  | 6.2   | 6.2     |
/// | 15       | 15    | 15.7 | 15.7  | 50.6    |
/// | 30       | 15    | 17.5 | 17.5  | 51.2    |
/// | 70       | 25    | 30.1 | 51.2  | 51.2    |
#[test]
fn sttf_keeps_bursts_off_the_slow_path_and_otias_short_ones() {
    for (segments, ideal) in [(10, 5.0), (15, 15.0), (30, 15.0), (70, 25.0)] {
        let [sttf, code, otias, min_rtt] =
            ["sttf", "sttf-code", "otias", "min-rtt"].map(|name| slowest(lowlat(), segments, name, &[]));
        let near = |took: f64| (ideal..ideal + 0.2 + 0.12 * segments as f64).contains(&took);
        assert!(near(sttf) && near(code), "{segments} segments: {sttf} and {code} ms");
        assert!(if segments <= 30 { near(otias) } else { otias >= 50.0 }, "{segments} segments: {otias} ms");
        assert!(if segments <= 10 { near(min_rtt) } else { min_rtt >= 50.0 }, "{segments} segments: {min_rtt} ms");
    }
}

/// Sets the delay each way [ms] from `at` on.
fn delay(path: &str, at: u64, each_way: u64) -> TimedChange {
    TimedChange {
        at: ms(at),
        path: path.to_owned(),
        affected: Affected::Both,
        change: Change::Delay(ms(each_way)),
        notify: false,
    }
}

/// The fast path is congested for three seconds, in which its RTT is 300 ms, and then free again. With its last known
/// RTT it would not be used again, and the RTT would stay stale (LOWLAT: "stale" RTTs). STTF takes the first RTT of a
/// path that was silent.
#[test]
fn the_rtt_reset_brings_a_path_back() {
    let recovered = |name: &str| {
        let mut spec = bursts(vec![path("fast", 100, 5), path("slow", 100, 40)], 8, name, &[]);
        spec.network.changes = vec![delay("fast", 50, 150), delay("fast", 4500, 5)];
        latencies(&spec)[5..].to_vec()
    };
    for name in ["sttf", "sttf-code"] {
        let back = recovered(name);
        assert!(back.iter().all(|&took| took < 10.0), "{name}: {back:?}");
    }
    for name in ["min-rtt", "ecf"] {
        let stuck = recovered(name);
        assert!(stuck.iter().all(|&took| took > 40.0), "{name}: {stuck:?}");
    }
}

/// RTTs of 20 and 40 ms, 20 segments. A second window on the fast path arrives after 30 ms, later than one on the slow
/// path after 20: half of the burst goes there. As first published, what does not fit counts as if it left at once
/// (A-OTIAS).
#[test]
fn otias_as_published_forgets_the_first_wait() {
    let paths = || vec![path("fast", 100, 10), path("slow", 100, 20)];
    let (corrected, published) =
        (slowest(paths(), 20, "otias", &[]), slowest(paths(), 20, "otias", &[("floor", Value::Flag(true))]));
    assert!((20.0..26.0).contains(&corrected), "{corrected}");
    assert!((30.0..34.0).contains(&published), "{published}");
}

/// A path of 1 Mbit/s, 12 ms a packet, and one of 20 Mbit/s that is 25 ms longer: two segments of ten on the thin path
/// are there with the first on the fat one. Who counts windows and RTTs alone sends all ten over the thin path, or as
/// many as it has seen queue.
///
/// | segments | edpf | min-rtt | otias | sttf  |
/// |----------|------|---------|-------|-------|
/// | 5        | 31.8 | 33.0    | 33.0  | 65.0  |
/// | 10       | 34.8 | 36.0    | 36.0  | 125.0 |
/// | 20       | 92.4 | 125.0   | 96.6  | 125.0 |
#[test]
fn edpf_knows_what_serialisation_costs() {
    let paths = || vec![path("thin", 1, 5), path("fat", 20, 30)];
    for segments in [5, 10, 20] {
        let edpf = slowest(paths(), segments, "edpf", &[]);
        for other in ["min-rtt", "otias", "sttf", "ecf"] {
            let took = slowest(paths(), segments, other, &[]);
            assert!(edpf < took, "{segments} segments: {edpf} ms, {other} {took} ms");
        }
        assert!(slowest(paths(), segments, "sttf", &[]) > 1.3 * edpf, "{segments} segments: {edpf} ms");
    }
}

fn peekaboo(seed: u64, name: &str) -> Outcome {
    let mut spec = spec(vec![path("fast", 20, 10), path("slow", 10, 60)], vec![bulk(10)]);
    spec.seed = Seed(seed);
    spec.server.config.policies.scheduler = policy(SCHEDULERS, name, &[]);
    run(&spec).unwrap()
}

/// Returns the bytes sent on the slow path.
fn on_the_slow_path(outcome: &Outcome) -> u64 {
    let slow = outcome.connections[0].subflows.iter().filter(|subflow| subflow.path == 1);
    slow.map(|subflow| subflow.stats.bytes_first_sent).sum()
}

#[test]
fn peekaboo_decides_for_itself_and_by_its_seed() {
    let (one, again, other) = (peekaboo(1, "peekaboo"), peekaboo(1, "peekaboo"), peekaboo(2, "peekaboo"));
    assert_eq!((one.digest, on_the_slow_path(&one)), (again.digest, on_the_slow_path(&again)));
    assert_ne!(on_the_slow_path(&one), on_the_slow_path(&other));
    // Nothing else in this run is left to chance.
    let min_rtt = [1, 2].map(|seed| on_the_slow_path(&peekaboo(seed, "min-rtt")));
    assert_eq!(min_rtt[0], min_rtt[1]);
    assert_ne!(on_the_slow_path(&one), min_rtt[0]);
}

/// Observations of a scheduler: time, and truth and loss of each subflow.
type Seen = Arc<Mutex<Vec<(Instant, Vec<(Option<Truth>, f64)>)>>>;

struct Witness(Seen);

impl Scheduler for Witness {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        let seen = view.subflows.iter().map(|subflow| (subflow.truth, subflow.loss)).collect();
        self.0.lock().unwrap().push((now, seen));
        MinRtt.decide(now, view)
    }
}

/// From the first decision to the last: the truth of the direction of the data, and after a change the new one. With
/// `loss_oracle` (A-LOSS) the loss is the true one as well, without it an estimate.
#[test]
fn schedulers_see_the_truth() {
    for (oracle, direction) in [(true, Direction::Down), (false, Direction::Down), (true, Direction::Up)] {
        let seen = Seen::default();
        let mut spec =
            spec(vec![lossy_path("a", 10, 10, 0.02), path("b", 20, 30)], vec![files(direction, &[5_000_000], false)]);
        spec.loss_oracle = oracle;
        let change = Change::Rate(Rate::from_mbps(5));
        let (at, path, affected) = (Duration::from_millis(600), "b".to_owned(), Affected::Both);
        spec.network.changes = vec![TimedChange { at, path, affected, change, notify: false }];
        for host in [&mut spec.client, &mut spec.server] {
            let seen = seen.clone();
            host.config.policies.scheduler = Arc::new(move || Witness(seen.clone()).into());
        }
        complete(&spec);

        let seen = seen.lock().unwrap();
        let true_loss = if direction == Direction::Down { 0.02 } else { 0.0 };
        assert!(
            seen.iter().any(|(now, _)| now.as_secs_f64() < 0.6) && seen.iter().any(|(now, _)| now.as_secs_f64() > 0.7)
        );
        for (now, subflows) in seen.iter() {
            let [(Some(a), loss_a), (Some(b), _)] = subflows.as_slice() else { panic!("{subflows:?}") };
            assert_eq!((a.rate, a.delay), (Rate::from_mbps(10), ms(10)));
            assert!((a.loss - true_loss).abs() < 1e-12);
            let rate = if now.as_secs_f64() < 0.6 { 20 } else { 5 };
            assert_eq!((b.rate, b.delay, b.loss), (Rate::from_mbps(rate), ms(30), 0.0));
            assert_eq!(*loss_a == a.loss, oracle);
        }
    }
}
