//! ACK paths: the experiments of their paper (Cheng 2019, sections V-A to V-C), and DATA_ACKs early.

use super::{common::*, policy};
use anabranch_engine::{Policies, Profile};
use anabranch_net::Change;
use anabranch_paths::*;
use anabranch_policy::ack_path::theory::{self, Path};
use anabranch_policy::registry::{ACK_PATHS, CONGESTION, REINJECTIONS, SCHEDULERS, Value};
use anabranch_sim::*;
use anabranch_units::{Bytes, Duration, Instant, Seed};

/// A bulk download under Reno between hosts with buffers that do not bind, and with `ack-rewrite`.
fn experiment(paths: Vec<PathSpec>, ack_path: &str, given: &[(&str, Value)], seconds: u64) -> Spec {
    let policies = Policies {
        congestion: policy(CONGESTION, "reno", &[]),
        ack_path: policy(ACK_PATHS, ack_path, given),
        ..Policies::default()
    };
    let mut host = HostSpec::new(Profile::tcp(), policies);
    host.config.ack_rewrite = true;
    host.config.send_buffer = Bytes::new(16 << 20);
    host.config.receive_buffer = Bytes::new(16 << 20);
    let mut spec = Spec::new(paths, host.clone(), host);
    spec.workloads = vec![bulk(seconds)];
    spec.stop = Duration::from_secs(seconds + 10);
    spec
}

/// Mbit/s over two seeds.
fn mean(spec: &Spec) -> f64 {
    let one = |seed| goodput(&run(&Spec { seed: Seed(seed), ..spec.clone() }).unwrap());
    (one(1) + one(2)) / 2.0
}

fn srtts(outcome: &Outcome) -> Vec<u64> {
    outcome.connections[0].subflows.iter().map(|subflow| subflow.stats.srtt.unwrap().as_millis()).collect()
}

/// Section V-A: 10 ms with 1 % loss, and β times as long with 0.02 %. All ACKs on the first path make the round trip of
/// the second d_0 + d_1 in place of 2 d_1, and Reno's rate is inverse to it.
#[test]
fn acks_on_the_shortest_path_speed_reno_up_as_the_theory_says() {
    for (beta, seconds) in [(2, 120), (5, 240)] {
        let paths = || vec![lossy_path("zero", 1000, 10, 0.01), lossy_path("one", 1000, 10 * beta, 0.0002)];
        let measured =
            mean(&experiment(paths(), "fixed", &[], seconds)) / mean(&experiment(paths(), "own", &[], seconds));
        let path = |delay, loss| Path { delay, loss };
        let expected = theory::reno(&[path(10.0, 0.01), path(10.0 * beta as f64, 0.0002)], 0);
        println!("beta {beta}: I = {:.3}, in theory {expected:.3}", measured - 1.0);
        assert!((measured - 1.0 - expected).abs() < 0.08, "beta {beta}: {} against {expected}", measured - 1.0);
    }
}

#[test]
fn the_round_trip_is_that_of_the_data_and_of_the_acks() {
    for (ack_path, given, expected) in [
        ("own", vec![], [20, 60]),
        ("fixed", vec![], [20, 40]),
        ("probed", vec![], [20, 40]),
        ("data-ack-fast", vec![], [20, 60]),
    ] {
        let paths = vec![lossy_path("zero", 100, 10, 0.01), lossy_path("one", 100, 30, 0.01)];
        let mut spec = experiment(paths, ack_path, &given, 5);
        (spec.codec, spec.audit, spec.linger) = (true, true, Some(Duration::from_secs(3000)));
        // With PRR the run ends within two milliseconds of it.
        spec.server.config.profile.prr = false;
        let outcome = run(&spec).unwrap();
        let apart = srtts(&outcome).iter().zip(expected).map(|(srtt, expected)| srtt.abs_diff(expected)).max();
        assert!(apart.unwrap() <= 1, "{ack_path}: {:?}", srtts(&outcome));
        let (sender, receiver) = ends(&outcome);
        assert_eq!(receiver.acks_detoured, sender.acks_restored + lost(&outcome), "{ack_path}");
        assert_eq!(receiver.acks_detoured > 0, expected != [20, 60], "{ack_path}");
        assert_eq!((receiver.acks_kept, receiver.ack_fallbacks), (0, 0), "{ack_path}");
        assert_eq!(outcome.counters[1].unacceptable, 0, "{ack_path}");
        assert!(outcome.quiet, "{ack_path}: probing ends with the connection");
    }
    // By way of a longer path: but those ACKs that keep theirs overtake the others, and shorten the mean.
    let paths = vec![lossy_path("zero", 100, 10, 0.01), lossy_path("one", 100, 30, 0.01)];
    let longer = [("path", Value::Text(client_address(1).to_string()))];
    let outcome = run(&experiment(paths, "fixed", &longer, 5)).unwrap();
    assert!((30..=40).contains(&srtts(&outcome)[0]) && srtts(&outcome)[1] == 60, "{:?}", srtts(&outcome));
}

/// Statistics of sender and receiver.
fn ends(outcome: &Outcome) -> (&anabranch_engine::ConnectionStats, &anabranch_engine::ConnectionStats) {
    let connection = &outcome.connections[0];
    (connection.sender.as_ref().unwrap(), connection.receiver.as_ref().unwrap())
}

/// ACKs that were under way when the bulk transfer was counted.
fn lost(outcome: &Outcome) -> u64 {
    let (sender, receiver) = ends(outcome);
    let under_way = receiver.acks_detoured - sender.acks_restored;
    assert!(under_way < 50, "{under_way} ACKs under way");
    under_way
}

fn changed(at: u64, path: &str, change: Change) -> TimedChange {
    TimedChange { at: Duration::from_secs(at), path: path.to_owned(), affected: Affected::Both, change, notify: false }
}

/// Section V-B: the first path, shortest at first, becomes the longest.
#[test]
fn probes_follow_a_path_that_changes_and_a_fixed_choice_loses() {
    // The second phase alone, and a first one before it, so that what is common cancels out.
    let paths = || vec![lossy_path("zero", 1000, 10, 0.001), lossy_path("one", 1000, 20, 0.001)];
    let phases = |ack_path: &str| {
        let first = mean(&experiment(paths(), ack_path, &[], 60)) * 60.0;
        let mut both = experiment(paths(), ack_path, &[], 180);
        both.network.changes = vec![changed(60, "zero", Change::Delay(ms(30)))];
        [first / 60.0, (mean(&both) * 180.0 - first) / 120.0]
    };
    let [own, fixed, probed] = ["own", "fixed", "probed"].map(phases);
    let gain = |policy: [f64; 2]| [policy[0] / own[0] - 1.0, policy[1] / own[1] - 1.0];
    println!("fixed {:.3?}, probed {:.3?}", gain(fixed), gain(probed));
    // Theory: +11.1 % for both, then -12.0 % and +8.0 %. Eight seeds: +11.0 and -8.5, +11.5 and +8.0 %. Every sixteenth
    // ACK keeps its path, and overtakes the others in the second phase; without these it is -11.7 %.
    assert!(gain(fixed)[0] > 0.06 && gain(probed)[0] > 0.06);
    assert!(gain(fixed)[1] < -0.07 && gain(probed)[1] > 0.03);
}

/// Section V-C: the path with the ACKs dies. How long the others then stand still.
#[test]
fn when_the_path_of_the_acks_dies_the_others_stand_still_for_less_than_three_intervals() {
    for (ack_path, tau, bound) in
        [("own", 0, 200), ("probed", 200, 3 * 200), ("probed", 1000, 3 * 1000), ("fixed", 0, 600)]
    {
        let given = if ack_path == "probed" { vec![("tau", Value::Number(f64::from(tau)))] } else { vec![] };
        for seed in 1..=3 {
            let delays = [("zero", 10), ("one", 20), ("two", 30)];
            let paths = delays.map(|(name, delay)| lossy_path(name, 1000, delay, 0.001)).to_vec();
            let mut spec = experiment(paths, ack_path, &given, 15);
            spec.network.changes = vec![changed(10, "zero", Change::Down)];
            (spec.seed, spec.record_events) = (Seed(seed), true);
            let outcome = run(&spec).unwrap();
            let still = [1, 2].map(|path| longest_gap(&outcome, path, 10));
            println!("{ack_path} {tau} ms, seed {seed}: {still:?} ms, {:?}", srtts(&outcome));
            assert!(still.iter().all(|gap| *gap < bound), "{ack_path} with τ = {tau} ms: {still:?} ms");
            let (_, receiver) = ends(&outcome);
            if ack_path == "probed" {
                assert_eq!(srtts(&outcome)[1..], [40, 50], "their ACKs now take the second path");
            } else if ack_path == "fixed" {
                assert!(receiver.ack_fallbacks > 0, "nobody probes, but the silence tells");
            }
        }
    }
}

/// The same without our precautions, as the paper has it: for the mean over moments between two rounds of probes, the
/// longer τ the longer the silence, and never longer than 3τ.
#[test]
fn without_caution_the_others_are_silent_until_probes_find_out() {
    let still = |ack_path: &str, tau: f64, at: u64| {
        let given = if ack_path == "probed" { vec![("tau", Value::Number(tau))] } else { vec![] };
        let delays = [("zero", 10), ("one", 20), ("two", 30)];
        let paths = delays.map(|(name, delay)| lossy_path(name, 1000, delay, 0.001)).to_vec();
        let mut spec = experiment(paths, ack_path, &given, 15);
        (spec.client.config.ack_caution, spec.server.config.ack_caution) = (false, false);
        let blackhole = changed(10, "zero", Change::Blackhole);
        spec.network.changes = vec![TimedChange { at: Duration::from_millis(at), ..blackhole }];
        spec.record_events = true;
        let outcome = run(&spec).unwrap();
        assert_eq!(ends(&outcome).1.ack_fallbacks, 0);
        // The last packets on their way when the path dies arrive up to 30 ms later.
        [1, 2].map(|path| longest_gap(&outcome, path, 10)).into_iter().max().unwrap_or_default()
    };
    let moments = [10_020, 10_260, 10_500, 10_740, 10_980];
    let of_tau = |tau: f64| moments.map(|at| still("probed", tau, at));
    let (short, long) = (of_tau(200.0), of_tau(1000.0));
    println!("τ = 200 ms: {short:?} ms, τ = 1 s: {long:?} ms");
    assert!(short.iter().all(|gap| (200..600).contains(gap)), "{short:?}");
    assert!(long.iter().all(|gap| *gap < 3000) && long.iter().max() > Some(&600), "{long:?}");
    assert!(long.iter().sum::<u64>() > short.iter().sum::<u64>());
}

/// Between arrivals of data on `path`, from `after` on [ms].
fn longest_gap(outcome: &Outcome, path: usize, after: u64) -> u64 {
    let start = Instant::ZERO + Duration::from_secs(after);
    let mut last = start;
    let mut longest = Duration::ZERO;
    let data = |e: &&EventRecord| e.kind == EventKind::Received && e.host == Host::Client && e.dsn.is_some();
    for event in outcome.events.as_ref().unwrap().iter().filter(data).filter(|e| e.path == path && e.at >= start) {
        longest = longest.max(event.at.since(last));
        last = event.at;
    }
    longest.as_millis()
}

/// A NAT has seen no SYN of these addresses and ports, so their packets are not recognised behind it.
#[test]
fn through_a_nat_acks_fall_back_to_their_own_path() {
    for nat in [0, 1] {
        let play = |ack_path: &str| {
            let mut paths = vec![path("zero", 20, 10), path("one", 20, 40)];
            paths[nat].middleboxes = vec![MiddleboxSpec {
                kind: Middlebox::Nat(Nat { rebind: None, unmapped: Unmapped::Dropped }),
                end: End::Client,
            }];
            for path in &mut paths {
                path.down.queue = anabranch_net::QueueLimit::Packets(100);
            }
            let mut spec = experiment(paths, ack_path, &[], 20);
            (spec.codec, spec.audit) = (true, true);
            run(&spec).unwrap()
        };
        let (own, fixed) = (play("own"), play("fixed"));
        let (sender, receiver) = ends(&fixed);
        println!("nat {nat}: {:.2} against {:.2}; {receiver:?}", goodput(&fixed), goodput(&own));
        assert_eq!(sender.acks_restored, 0, "none is taken for what it is");
        assert!(receiver.ack_fallbacks > 0 && receiver.acks_kept > 9 * receiver.acks_detoured, "{receiver:?}");
        assert!(goodput(&fixed) > 0.97 * goodput(&own), "{} against {}", goodput(&fixed), goodput(&own));
    }
}

/// Without the capability at both hosts the policies are `own`, say so, and do not probe.
#[test]
fn with_an_unknown_peer_every_ack_keeps_its_path() {
    for ack_path in ["own", "fixed", "probed"] {
        let paths = vec![lossy_path("zero", 100, 10, 0.01), lossy_path("one", 100, 30, 0.01)];
        let mut spec = experiment(paths, ack_path, &[], 5);
        spec.server.config.ack_rewrite = false;
        let outcome = run(&spec).unwrap();
        let (_, receiver) = ends(&outcome);
        assert_eq!(srtts(&outcome), [20, 60]);
        assert_eq!((receiver.acks_detoured, receiver.probes_sent), (0, 0));
        assert_eq!(receiver.acks_kept > 0, ack_path == "fixed");
    }
}

/// A-ACK-MOVE: DATA_ACKs early free the connection's window sooner, and do not make congestion windows turn faster.
#[test]
fn data_acks_early_free_a_small_window_and_no_congestion_window() {
    let play = |ack_path: &str, buffer: u64, loss: f64, seconds| {
        let paths = vec![lossy_path("zero", 100, 10, loss), lossy_path("one", 100, 60, loss)];
        let mut spec = experiment(paths, ack_path, &[], seconds);
        // Segments in turn, so that half of the window is always on the slow path, and nothing is repeated elsewhere.
        spec.server.config.policies.scheduler = policy(SCHEDULERS, "round-robin", &[]);
        spec.server.config.policies.reinjection = policy(REINJECTIONS, "none", &[]);
        // Any peer will do.
        (spec.client.config.receive_buffer, spec.client.config.ack_rewrite) = (Bytes::new(buffer), false);
        run(&spec).unwrap()
    };
    let (own, early) = (play("own", 200_000, 0.0, 20), play("data-ack-fast", 200_000, 0.0, 20));
    println!("small window: {:.3} against {:.3}", goodput(&early), goodput(&own));
    // A window turns in 60 + 10 ms in place of 120 ms.
    assert!(goodput(&early) > 1.3 * goodput(&own), "{} against {}", goodput(&early), goodput(&own));
    let (own, early) = (play("own", 16 << 20, 0.003, 60), play("data-ack-fast", 16 << 20, 0.003, 60));
    println!("loss-limited: {:.3} against {:.3}", goodput(&early), goodput(&own));
    assert_eq!(srtts(&early)[1], srtts(&own)[1], "the slow subflow's round trip is what it was");
    assert!((goodput(&early) / goodput(&own) - 1.0).abs() < 0.02, "{} against {}", goodput(&early), goodput(&own));
}
