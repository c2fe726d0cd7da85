//! Congestion controls.

use super::common::{bulk, download, lossy_path, ms, path, spec};
use super::policy;
use anabranch_net::QueueLimit;
use anabranch_policy::registry::{CONGESTION, SCHEDULERS, Value};
use anabranch_sim::{Direction, EventKind, Extent, Host, Outcome, PathSpec, SharedLink, Spec, Workload, run};
use anabranch_units::{Bytes, Duration};

/// One bulk download with buffers that are never the limit, without the audit of every event.
fn bulk_over(paths: Vec<PathSpec>, seconds: u64, congestion: &str) -> Spec {
    let mut spec = spec(paths, vec![bulk(seconds)]);
    spec.client.receive_buffer = Bytes::new(16 << 20);
    spec.server.send_buffer = Bytes::new(16 << 20);
    spec.linger = None;
    spec.audit = false;
    spec.server.policies.congestion = policy(CONGESTION, congestion, &[]);
    spec
}

/// A path with this round trip, and in the direction of the data a queue of so many bandwidth-delay products.
fn dumbbell(name: &str, mbps: u64, rtt_ms: u64, products: f64) -> PathSpec {
    let mut path = path(name, mbps, rtt_ms / 2);
    path.down.queue = QueueLimit::Bdp { factor: products, round_trip: ms(rtt_ms) };
    path
}

/// Two paths over one bottleneck of 20 Mbit/s and 40 ms.
fn shared(queue: QueueLimit, seconds: u64, congestion: &str) -> Spec {
    let mut paths = vec![path("a", 1000, 1), path("b", 1000, 1)];
    paths.iter_mut().for_each(|path| path.via = Some("core".to_owned()));
    let mut spec = bulk_over(paths, seconds, congestion);
    let mut core = path("core", 20, 19);
    core.down.queue = queue;
    spec.shared = vec![SharedLink { name: core.name, down: core.down, up: core.up }];
    spec
}

/// A TCP beside it, from the beginning.
fn competitor(path: &str, seconds: u64, congestion: &str) -> Workload {
    Workload::Tcp {
        path: path.to_owned(),
        direction: Direction::Down,
        start: Duration::ZERO,
        extent: Extent::For(Duration::from_secs(seconds)),
        congestion: policy(CONGESTION, congestion, &[]),
    }
}

/// [Mbit/s] of each transfer, over the whole run.
fn goodputs(outcome: &Outcome) -> Vec<f64> {
    let seconds = outcome.end.as_secs_f64();
    outcome.transfers.iter().map(|transfer| transfer.bytes as f64 * 8e-6 / seconds).collect()
}

/// Mean time in a queue [ms].
fn queue_ms(outcome: &Outcome, link: &str) -> f64 {
    let link = outcome.links.iter().find(|found| found.name == link).unwrap();
    link.stats.mean_queue_delay().unwrap().as_millis_f64()
}

fn drops(outcome: &Outcome, link: &str) -> u64 {
    outcome.links.iter().find(|found| found.name == link).unwrap().stats.dropped.queue
}

#[test]
fn explore() {
    let bdp = QueueLimit::Bdp { factor: 1.0, round_trip: ms(40) };
    for cc in ["reno", "cubic", "lia", "olia", "balia", "veno", "mveno-r", "vegas", "wvegas", "bbr"] {
        let mut spec = shared(bdp, 60, cc);
        spec.workloads.push(competitor("a", 60, if cc == "wvegas" || cc == "vegas" { "vegas" } else { "reno" }));
        let o = run(&spec).unwrap();
        let g = goodputs(&o);
        eprintln!("shared {cc}: {g:?} share {}", g[0] / (g[0] + g[1]));
    }
    for cc in ["reno", "lia", "olia", "balia", "wvegas", "mveno-r"] {
        let mut spec = bulk_over(vec![dumbbell("a", 10, 40, 1.0), dumbbell("b", 10, 40, 1.0)], 60, cc);
        for _ in 0..3 {
            spec.workloads.push(competitor("b", 60, if cc == "wvegas" { "vegas" } else { "reno" }));
        }
        let o = run(&spec).unwrap();
        let by: Vec<_> =
            o.connections[0].subflows.iter().map(|s| s.stats.bytes_first_sent as f64 * 8e-6 / 60.0).collect();
        eprintln!("shift {cc}: {by:?} all {:?}", goodputs(&o));
    }
    for cc in ["reno", "cubic", "vegas", "veno", "bbr", "lia", "wvegas", "olia"] {
        let spec = bulk_over(vec![dumbbell("a", 10, 40, 4.0)], 30, cc);
        let o = run(&spec).unwrap();
        eprintln!("queue {cc}: {:?} queue {} ms drops {}", goodputs(&o), queue_ms(&o, "a/down"), drops(&o, "a/down"));
        let spec = bulk_over(vec![dumbbell("a", 10, 40, 4.0), dumbbell("b", 5, 20, 4.0)], 30, cc);
        let o = run(&spec).unwrap();
        eprintln!(
            "queue2 {cc}: {:?} queue {} {} ms drops {}",
            goodputs(&o),
            queue_ms(&o, "a/down"),
            queue_ms(&o, "b/down"),
            drops(&o, "a/down")
        );
    }
    for cc in ["reno", "cubic", "veno", "bbr", "vegas", "mveno-r"] {
        for p in [0.01, 0.02, 0.03] {
            let mut path = lossy_path("a", 20, 25, p);
            path.down.queue = QueueLimit::Bdp { factor: 4.0, round_trip: ms(50) };
            let o = run(&bulk_over(vec![path], 30, cc)).unwrap();
            eprintln!("loss {p} {cc}: {:?} queue {}", goodputs(&o), queue_ms(&o, "a/down"));
        }
    }
    for lisa in [false, true] {
        for cc in ["lia", "olia", "balia", "wvegas", "mveno-r"] {
            for queue in [10, 20, 30, 50] {
                let mut spec = shared(QueueLimit::Packets(queue), 1, cc);
                spec.server.policies.congestion = policy(CONGESTION, cc, &[("lisa", Value::Flag(lisa))]);
                let o = run(&spec).unwrap();
                eprintln!("lisa {lisa} {cc} {queue}: drops {} {:?}", drops(&o, "core/down"), goodputs(&o));
            }
        }
    }
    // ProbeRTT
    let mut spec = shared(QueueLimit::Bdp { factor: 4.0, round_trip: ms(40) }, 25, "bbr").single_path(0);
    spec.workloads.push(competitor("a", 25, "bbr"));
    spec.record_events = true;
    let o = run(&spec).unwrap();
    eprintln!("bbr pair {:?} queue {}", goodputs(&o), queue_ms(&o, "core/down"));
    let mut bins = vec![0; 260];
    for e in o.events.as_ref().unwrap() {
        if e.host == Host::Server && e.kind == EventKind::Sent && e.length > 0 {
            bins[(e.at.as_nanos() / 100_000_000) as usize] += 1;
        }
    }
    eprintln!("{bins:?}");
    for entry in SCHEDULERS {
        let mut spec = spec_two(entry.name);
        spec.audit = true;
        let o = run(&spec).unwrap();
        eprintln!(
            "{}: {:?} finished {} overruled {:?}",
            entry.name,
            goodputs(&o),
            o.finished,
            o.connections[0].sender.as_ref().unwrap().overruled
        );
    }
    let _ = download(1);
}

fn spec_two(scheduler: &str) -> Spec {
    let mut s = spec(vec![path("a", 10, 10), path("b", 5, 50)], vec![download(3_000_000)]);
    s.server.policies.congestion = policy(CONGESTION, "bbr", &[]);
    s.server.policies.scheduler = policy(SCHEDULERS, scheduler, &[]);
    s
}
