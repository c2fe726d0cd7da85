//! Receive windows.

use super::common::{ms, path, spec};
use super::policy;
use anabranch_engine::Profile;
use anabranch_net::{LossModel, QueueLimit};
use anabranch_policy::registry::{CONGESTION, REINJECTIONS, SCHEDULERS, Value, WINDOWS};
use anabranch_sim::{Direction, HostSpec, Spec, Workload, run};
use anabranch_units::{Bytes, Duration, Rate, Seed};

fn rbp_spec(delay: u64, loss: f64, seconds: u64, udp: bool) -> Spec {
    let mut paths = vec![path("subflow0", 5, delay), path("subflow1", 10, 50)];
    for (path, loss) in paths.iter_mut().zip([loss, 0.001]) {
        path.down.loss = LossModel::Bernoulli { p: loss };
        path.down.queue = QueueLimit::Packets(100);
        path.up.queue = QueueLimit::Packets(100);
    }
    let mut spec = spec(
        paths,
        vec![Workload::Bulk {
            direction: Direction::Down,
            start: Duration::ZERO,
            duration: Duration::from_secs(seconds),
        }],
    );
    spec.audit = false;
    spec.linger = None;
    let mut host = HostSpec::new(Profile::ns3(), spec.client.policies.clone());
    host.receive_buffer = Bytes::new(131_072);
    host.send_buffer = Bytes::new(1 << 20);
    host.policies.scheduler = policy(SCHEDULERS, "round-robin", &[]);
    host.policies.congestion = policy(CONGESTION, "reno", &[]);
    host.policies.reinjection = policy(REINJECTIONS, "none", &[]);
    spec.client = host.clone();
    spec.server = host;
    if udp {
        for name in ["subflow0", "subflow1"] {
            spec.workloads.push(Workload::Udp {
                path: name.to_owned(),
                direction: Direction::Down,
                rate: Rate::from_bps(1_683_200),
                packet: Bytes::new(1052),
                on: Duration::ZERO,
                off: Duration::ZERO,
                start: Duration::ZERO,
                stop: Duration::from_secs(seconds),
            });
        }
    }
    let _ = ms(1);
    spec
}

#[test]
fn explore() {
    let loss: f64 = std::env::var("LOSS").map_or(0.001, |s| s.parse().unwrap());
    let sched = std::env::var("SCHED").unwrap_or("round-robin".into());
    let reinj = std::env::var("REINJ").unwrap_or("none".into());
    let buf: u64 = std::env::var("BUF").map_or(131072, |s| s.parse().unwrap());
    let udp = std::env::var("NOUDP").is_err();
    let seeds: u64 = std::env::var("SEEDS").map_or(4, |s| s.parse().unwrap());
    let profile = std::env::var("PROFILE").unwrap_or("ns3".into());
    for delay in [10, 20, 30, 40, 50] {
        for (name, given) in [
            ("shared", vec![]),
            ("even", vec![]),
            ("even", vec![("in_flight", Value::Flag(true))]),
            ("rbp", vec![]),
            ("rbp", vec![("per_rtt", Value::Flag(true))]),
        ] {
            let mut row = [0.0; 9];
            for seed in 1..=seeds {
                let mut spec = rbp_spec(delay, loss, 60, udp);
                spec.seed = Seed(seed);
                spec.client.profile = Profile::named(&profile).unwrap();
                spec.server.profile = Profile::named(&profile).unwrap();
                if std::env::var("NOLIMIT").is_ok() {
                    spec.server.profile.cwnd_limited_check = false;
                }
                spec.client.receive_buffer = Bytes::new(buf);
                spec.server.policies.scheduler = policy(SCHEDULERS, &sched, &[]);
                spec.server.policies.reinjection = policy(REINJECTIONS, &reinj, &[]);
                spec.server.policies.receive_window = policy(WINDOWS, name, &given);
                let outcome = run(&spec).unwrap();
                let c = &outcome.connections[0];
                let r = c.receiver.as_ref().unwrap();
                let s = c.sender.as_ref().unwrap();
                let n = seeds as f64;
                row[0] += outcome.transfers[0].bytes as f64 * 8e-6 / 60.0 / n;
                for sub in &c.subflows {
                    row[1 + sub.path] += sub.stats.bytes_first_sent as f64 * 8e-6 / 60.0 / n;
                }
                row[3] += r.ofo_count as f64 / r.segments_received as f64 / n;
                row[4] += r.ofo_peak as f64 / n;
                row[5] += s.blocked.receive_window.as_secs_f64() / n;
                row[6] += r.hol_blocked.as_secs_f64() / n;
                row[8] += r.ofo_wait.as_secs_f64() / 60.0 / n;
                row[7] += s.overruled as f64;
            }
            println!(
                "{delay:3} {name:8}{given:?} total {:.3} = {:.3} + {:.3} ofo {:.3} peak {:.0} mean {:.2} blocked {:.1} hol {:.1} over {}",
                row[0], row[1], row[2], row[3], row[4], row[8], row[5], row[6], row[7]
            );
        }
    }
}

#[test]
fn explore2() {
    for (label, a, b, buffer) in [
        ("bloat", (10, 10, 100), (2, 10, 1000), 262_144u64),
        ("bloat1", (20, 10, 100), (1, 10, 1000), 262_144u64),
        ("bloat2", (20, 50, 300), (2, 10, 1000), 400_000u64),
        ("asym", (20, 50, 300), (1, 5, 20), 300_000),
        ("asym2", (20, 50, 300), (5, 5, 50), 300_000),
    ] {
        for sched in ["round-robin", "min-rtt"] {
            for (name, given) in [
                ("shared", vec![]),
                ("even", vec![]),
                ("even", vec![("in_flight", Value::Flag(true))]),
                ("rbp", vec![]),
            ] {
                let mut paths = vec![path("a", a.0, a.1), path("b", b.0, b.1)];
                paths[0].down.queue = QueueLimit::Packets(a.2);
                paths[1].down.queue = QueueLimit::Packets(b.2);
                let mut spec = rbp_spec(10, 0.0, 20, false);
                spec.paths = paths;
                spec.client.receive_buffer = Bytes::new(buffer);
                spec.server.policies.scheduler = policy(SCHEDULERS, sched, &[]);
                spec.server.policies.receive_window = policy(WINDOWS, name, &given);
                let outcome = run(&spec).unwrap();
                let c = &outcome.connections[0];
                let r = c.receiver.as_ref().unwrap();
                let s = c.sender.as_ref().unwrap();
                let sub: Vec<_> = c.subflows.iter().map(|s| s.stats.bytes_first_sent as f64 * 8e-6 / 20.0).collect();
                println!(
                    "{label} {sched} {name}{given:?} total {:.2} {sub:.2?} mean ofo {:.1} blocked {:.1}",
                    outcome.transfers[0].bytes as f64 * 8e-6 / 20.0,
                    r.ofo_wait.as_secs_f64() / 20.0,
                    s.blocked.receive_window.as_secs_f64()
                );
            }
        }
    }
}
