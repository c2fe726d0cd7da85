//! Marks (ECN): the same queues with senders that hear of them and with senders that do not.

use crate::common::*;
use crate::policy;
use anabranch_engine::EcnRule;
use anabranch_net::{Discipline, QueueLimit};
use anabranch_paths::{Direction, PathSpec};
use anabranch_policy::registry::{CONGESTION, QUEUES, Value};
use anabranch_sim::{Extent, Outcome, Spec, Workload, run};
use anabranch_units::{Bytes, Duration};

/// A path of `mbps` Mbit/s with this round trip, whose bottleneck has this discipline.
fn marking(mbps: u64, rtt_ms: u64, queue: &'static str, given: &[(&'static str, Value)]) -> PathSpec {
    let mut link = path("a", mbps, rtt_ms / 2);
    let make = policy(QUEUES, queue, given);
    link.down.queue = QueueLimit::Packets(make().capabilities.limit.max(1000));
    link.down.discipline = Some(Discipline::new(queue, move || make().policy));
    link
}

/// A bulk download for so many seconds under this rule and control.
fn bulk_with(path: PathSpec, seconds: u64, rule: EcnRule, congestion: &str) -> Spec {
    let mut spec = spec(vec![path], vec![bulk(seconds)]);
    for host in [&mut spec.client.config, &mut spec.server.config] {
        host.profile.ecn = rule;
        host.receive_buffer = Bytes::new(16 << 20);
        host.send_buffer = Bytes::new(16 << 20);
    }
    spec.linger = None;
    spec.server.config.policies.congestion = policy(CONGESTION, congestion, &[]);
    spec
}

/// Marks and drops of the bottleneck's discipline, and the mean delay of its queue \[ms\].
fn link(outcome: &Outcome) -> (u64, u64, f64) {
    let stats = &outcome.links.iter().find(|link| link.name == "a/down").unwrap().stats;
    (stats.marked, stats.dropped.early + stats.dropped.queue, stats.mean_queue_delay().unwrap().as_millis_f64())
}

/// Each discipline marks in place of dropping, as soon as both hosts know marks, and every mark that the receiver sees
/// is reported, one by one with accurate feedback.
#[test]
fn what_was_dropped_is_marked() {
    for queue in ["codel", "fq-codel", "pie", "red"] {
        let without = run(&bulk_with(marking(20, 40, queue, &[]), 20, EcnRule::OFF, "cubic")).unwrap();
        let (marks, drops, _) = link(&without);
        assert!(marks == 0 && drops > 5, "{queue}: {marks} {drops}");
        for rule in [EcnRule::CLASSIC, EcnRule::ACCURATE] {
            let with = run(&bulk_with(marking(20, 40, queue, &[]), 20, rule, "cubic")).unwrap();
            let (marks, drops, delay) = link(&with);
            let connection = &with.connections[0];
            let [server, client] = [&connection.subflows, &connection.receiving_subflows].map(|ends| &ends[0].stats);
            println!("{queue} {rule:?}: {marks} marks, {drops} drops, {delay} ms, {} reported", server.marks_reported);
            assert!(marks > 5 && drops < marks, "{queue} {rule:?}: {marks} marks, {drops} drops");
            assert!(client.marks_received.abs_diff(marks) <= 60, "what is under way at the end is missing");
            assert!(server.mark_reductions > 3 && server.mark_reductions <= server.marks_reported);
            if rule == EcnRule::ACCURATE {
                assert!(server.marks_reported.abs_diff(client.marks_received) <= 60, "{queue}");
            }
            assert!(goodput(&with) > 0.9 * goodput(&without), "{queue} {}", goodput(&with));
        }
    }
}

/// A host that does not agree gets no ECN-capable packet.
#[test]
fn it_takes_two() {
    for (client, server, marks) in [
        (EcnRule::OFF, EcnRule::ACCURATE, false),
        (EcnRule::ACCEPT_CLASSIC, EcnRule::ACCEPT_CLASSIC, false),
        (EcnRule::CLASSIC, EcnRule::ACCEPT_CLASSIC, true),
        (EcnRule::ACCURATE, EcnRule::ACCEPT_CLASSIC, true),
        (EcnRule::CLASSIC, EcnRule::ACCEPT_ACCURATE, true),
        (EcnRule::ACCURATE, EcnRule::OFF, false),
    ] {
        let mut spec = bulk_with(marking(20, 40, "fq-codel", &[]), 5, client, "cubic");
        spec.server.config.profile.ecn = server;
        let outcome = run(&spec).unwrap();
        assert_eq!(link(&outcome).0 > 0, marks, "{client:?} {server:?}");
    }
}

/// A queue that marks all from 24 packets on, a seventh of what the path holds: Reno leaves much of the rate unused,
/// and DCTCP, which falls by the share that is marked, does not (RFC 8257 §1).
#[test]
fn dctcp_fills_a_link_over_a_queue_that_marks_early() {
    let step = || {
        let given = [("min", 24.0), ("max", 24.5), ("max-p", 1.0), ("weight", 1.0)];
        marking(100, 20, "red", &given.map(|(name, value)| (name, Value::Number(value))))
    };
    for rule in [EcnRule::CLASSIC, EcnRule::ACCURATE] {
        let [reno, dctcp] = ["reno", "dctcp"].map(|control| {
            let outcome = run(&bulk_with(step(), 20, rule, control)).unwrap();
            (goodput(&outcome), link(&outcome))
        });
        println!("{rule:?}: reno {reno:?}, dctcp {dctcp:?}");
        assert!(dctcp.0 > reno.0 + 2.0, "{rule:?}: {} {}", dctcp.0, reno.0);
    }
}

/// Prague beside CUBIC over DualPI2: neither starves (RFC 9332 §2.5.2), and Prague's queue is short.
#[test]
fn prague_and_cubic_share_a_dual_queue() {
    let mut spec = bulk_with(marking(100, 20, "dualpi2", &[]), 30, EcnRule::ACCURATE, "prague");
    spec.workloads.push(Workload::Tcp {
        path: "a".to_owned(),
        direction: Direction::Down,
        start: Duration::ZERO,
        extent: Extent::For(Duration::from_secs(30)),
        congestion: policy(CONGESTION, "cubic", &[]),
    });
    let outcome = run(&spec).unwrap();
    let rates: Vec<f64> = outcome.transfers.iter().map(goodput_of).collect();
    println!("{rates:?} {:?}", link(&outcome));
    let ratio = rates[0] / rates[1];
    assert!((0.5..2.0).contains(&ratio), "{rates:?}");
    assert!(rates[0] + rates[1] > 85.0, "{rates:?}");
    let prague = &outcome.connections[0].subflows[0].stats;
    println!("prague: {} marks, {} answered", prague.marks_reported, prague.mark_reductions);
    // An RTT here is 20 ms and a queue of at most a millisecond: some 1400 round trips.
    assert!((100..1500).contains(&prague.mark_reductions), "{}", prague.mark_reductions);
    assert!(prague.marks_reported > 2 * prague.mark_reductions, "{}", prague.marks_reported);
    let bottleneck = outcome.links.iter().find(|link| link.name == "a/down").unwrap();
    let waits: Vec<Duration> = bottleneck.queue.flows.iter().map(|flow| flow.waits.p99).collect();
    assert!(waits.len() == 2 && waits.iter().min() < Some(&ms(1)), "{waits:?}");
}

fn goodput_of(transfer: &anabranch_sim::Transfer) -> f64 {
    transfer.bytes as f64 * 8e-6 / 30.0
}
