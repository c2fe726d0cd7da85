//! Transfers of applications: data arrives whole, in order, in the time that theory allows.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_net::{Change, QueueLimit};
use anabranch_paths::{Affected, Direction, NetworkError, TimedChange};
use anabranch_policy::registry::{CONGESTION, REINJECTIONS};
use anabranch_sim::{Arrivals, Extent, FileOrder, Spacing, SpecError, Workload, run};
use anabranch_units::{Bytes, Duration, Instant, Rate, Seed};
use common::*;
use std::sync::Arc;

#[test]
fn one_lossless_path_takes_the_time_that_theory_allows() {
    let mut spec = spec(vec![path("only", 10, 20)], vec![download(1_000_000)]).single_path(0);
    spec.seed = Seed(7);
    let outcome = complete(&spec);
    // SYN and request take a round trip and a half, the first byte half of one more; then the link is the limit, but
    // for slow start from ten segments: 12 ms and 24 ms of sending in the first two round trips of 40 ms leave 44 ms
    // idle.
    let segments = 1_000_000_f64 / 1448.0;
    let wire = (1_000_000.0 + segments * 52.0) * 8.0 / 10e6;
    let least = 2.0 * 0.040 + wire;
    let took = outcome.transfers[0].duration().unwrap().as_secs_f64();
    assert!(took > least && took < least + 0.060, "took {took}, least {least}");
    assert!(!outcome.connections[0].multipath);
    assert_eq!(outcome.connections[0].subflows.len(), 1);
    assert_eq!(outcome.connections[0].subflows[0].stats.retransmitted, 0);
}

#[test]
fn one_lossy_path_delivers_every_byte() {
    for direction in [Direction::Down, Direction::Up] {
        let mut only = lossy_path("only", 10, 10, 0.02);
        only.up.loss = only.down.loss.clone();
        let outcome = complete(&spec(vec![only], vec![files(direction, &[500_000], false)]));
        assert!(outcome.connections[0].multipath);
        assert!(outcome.connections[0].subflows[0].stats.retransmitted > 0);
    }
}

#[test]
fn two_paths_deliver_every_byte_and_both_are_used() {
    let paths = vec![lossy_path("wifi", 20, 10, 0.01), lossy_path("lte", 10, 30, 0.001)];
    let outcome = complete(&spec(paths, vec![download(3_000_000)]));
    let connection = &outcome.connections[0];
    assert!(connection.multipath);
    assert_eq!(connection.subflows.len(), 2);
    for (path, subflow) in connection.subflows.iter().enumerate() {
        assert_eq!(subflow.path, path);
        assert!(subflow.stats.bytes_first_sent > 300_000, "{:?}", subflow.stats);
    }
    let first_sent: u64 = connection.subflows.iter().map(|subflow| subflow.stats.bytes_first_sent).sum();
    assert_eq!(first_sent, 3_000_000);
    assert_eq!(connection.receiver.as_ref().unwrap().delivered, 3_000_000);
}

#[test]
fn two_equal_paths_carry_the_sum() {
    let outcome = complete(&spec(vec![path("a", 10, 10), path("b", 10, 10)], vec![bulk(20)]));
    let sum = 20.0 * 1428.0 / 1500.0;
    assert!((0.95 * sum..=1.01 * sum).contains(&goodput(&outcome)), "{} of {sum}", goodput(&outcome));
}

#[test]
fn many_files_at_once_in_turn_and_on_one_connection() {
    let sizes: Vec<u64> = (1..=20).map(|n| n * 5_000).collect();
    let paths = || vec![lossy_path("a", 20, 10, 0.005), path("b", 5, 25)];
    let at_once = complete(&spec(paths(), vec![files(Direction::Down, &sizes, true)]));
    assert_eq!((at_once.transfers.len(), at_once.connections.len()), (20, 20));
    assert!(at_once.transfers.iter().all(|transfer| transfer.started == at_once.transfers[0].started));

    let in_turn = complete(&spec(paths(), vec![files(Direction::Up, &sizes, false)]));
    assert_eq!((in_turn.transfers.len(), in_turn.connections.len()), (20, 20));
    assert!(in_turn.transfers.windows(2).all(|pair| pair[0].finished.unwrap() <= pair[1].started));

    let warm_ups = [Bytes::ZERO, Bytes::new(100_000)];
    for (direction, warm_up) in [Direction::Down, Direction::Up].into_iter().zip(warm_ups) {
        let mut warm = files(direction, &sizes, false);
        if let Workload::Files { order, .. } = &mut warm {
            *order = FileOrder::OneConnection { warm_up, pause: ms(300) };
        }
        let warm = complete(&spec(paths(), vec![warm]));
        assert_eq!((warm.transfers.len(), warm.connections.len()), (20, 1));
        assert_eq!(warm.transfers[0].started > Instant::ZERO, !warm_up.is_zero());
        assert!(warm.transfers.windows(2).all(|pair| pair[0].finished.unwrap() + ms(300) == pair[1].started));
    }
}

/// Twenty connections over which 200 kB have gone are used at one moment, or as they are drawn; nothing is joined any
/// more.
#[test]
fn files_at_once_on_established_connections() {
    let run = |direction, arrivals| {
        let mut established = files(direction, &[20_000; 20], true);
        if let Workload::Files { order, .. } = &mut established {
            *order = FileOrder::Established { warm_up: Bytes::new(200_000), pause: ms(50), arrivals };
        }
        complete(&spec(vec![path("a", 20, 10), path("b", 5, 25)], vec![established]))
    };
    for direction in [Direction::Down, Direction::Up] {
        let at_once = run(direction, Arrivals::default());
        assert_eq!((at_once.transfers.len(), at_once.connections.len()), (20, 20), "the warm-up is no transfer");
        // 4 MB have gone over 25 Mbit/s before.
        assert!(at_once.transfers[0].started.as_secs_f64() > 1.3, "{:?}", at_once.transfers[0].started);
        assert!(at_once.transfers.iter().all(|transfer| transfer.started == at_once.transfers[0].started));
        // The warm-up is not counted.
        let bytes = at_once.connections.iter().flat_map(|it| &it.subflows).map(|it| it.stats.bytes_first_sent);
        assert_eq!(bytes.sum::<u64>(), 20 * 20_000);
    }
    let starts = |spacing| -> Vec<Instant> {
        let outcome = run(Direction::Down, Arrivals { interval: ms(100), spacing });
        outcome.transfers.iter().map(|transfer| transfer.started).collect()
    };
    assert!(starts(Spacing::Even).windows(2).all(|pair| pair[1] == pair[0] + ms(100)));
    let drawn = starts(Spacing::Exponential);
    assert!(
        drawn.windows(2).any(|pair| pair[1] < pair[0] + ms(50))
            && drawn.windows(2).any(|pair| pair[1] > pair[0] + ms(150))
    );
}

#[test]
fn a_burst_takes_one_way() {
    let bursts = Workload::Bursts {
        direction: Direction::Down,
        size: Bytes::new(10 * 1400),
        count: 5,
        interval: Duration::from_secs(2),
        start: Duration::ZERO,
        warm_up: Bytes::new(50_000),
    };
    let outcome = complete(&spec(vec![path("a", 100, 5)], vec![bursts]));
    assert_eq!(outcome.transfers.len(), 5);
    for burst in &outcome.transfers {
        // Half a round trip, and ten packets on the wire at 100 Mbit/s: 1.2 ms.
        let took = burst.duration().unwrap();
        assert!(took > ms(6) && took < ms(7), "{} took {took}", burst.label);
    }
}

#[test]
fn udp_is_on_and_off() {
    let udp = Workload::Udp {
        path: "a".to_owned(),
        direction: Direction::Down,
        rate: Rate::from_mbps(1),
        packet: Bytes::new(1250),
        spacing: anabranch_sim::Spacing::Even,
        on: ms(100),
        off: ms(400),
        phases: anabranch_sim::Spacing::Even,
        start: ms(50),
        stop: Duration::from_secs(2),
    };
    // A packet each 10 ms: 10 in each of the periods from 50, 550, 1050 and 1550 ms.
    let outcome = complete(&spec(vec![path("a", 10, 5)], vec![udp]));
    assert_eq!((outcome.udp[0].sent, outcome.udp[0].received, outcome.udp[0].bytes.get()), (40, 40, 50_000));
}

#[test]
fn competing_tcp_takes_its_share() {
    let host = spec(vec![], vec![]).server;
    let tcp = |extent| Workload::Tcp {
        path: "a".to_owned(),
        direction: Direction::Down,
        start: Duration::ZERO,
        extent,
        congestion: Arc::clone(&host.config.policies.congestion),
    };
    let mut only = path("a", 10, 10);
    only.down.queue = anabranch_net::QueueLimit::Packets(40);
    let mut one = spec(vec![only.clone()], vec![bulk(30), tcp(Extent::For(Duration::from_secs(30)))]);
    one.linger = None;
    let outcome = run(&one).unwrap();
    let shares: Vec<u64> = outcome.transfers.iter().map(|transfer| transfer.bytes).collect();
    assert!(shares[0] > 2 * 3_000_000 && shares[1] > 2 * 3_000_000, "{shares:?}");
    assert!(shares[0] + shares[1] > 33_000_000, "{shares:?}");

    let mut short = spec(
        vec![only],
        vec![bulk(10), tcp(Extent::Repeat(Bytes::new(57_000))), tcp(Extent::File(Bytes::new(1_000_000)))],
    );
    short.linger = None;
    let outcome = run(&short).unwrap();
    assert!(outcome.finished);
    assert!(outcome.transfers.iter().filter(|transfer| transfer.workload == 1).count() > 10);
}

/// At 1 Gbit/s and 100 ms slow start ends with more than 12,000 segments that wait for the first that the queue
/// dropped. Only segments that the links lost are repeated, and no host concludes that options get lost.
#[test]
fn a_long_fat_path_repeats_what_it_lost_and_nothing_else() {
    for names in [&["p"][..], &["p", "q"]] {
        let mut wide = spec(names.iter().map(|name| path(name, 1000, 50)).collect(), vec![bulk(2)]);
        for path in &mut wide.network.paths {
            path.down.queue = QueueLimit::Bdp { factor: 1.0, round_trip: ms(100) };
        }
        let cubic = CONGESTION.iter().find(|entry| entry.name == "cubic").unwrap();
        for host in [&mut wide.client, &mut wide.server] {
            host.config.policies.congestion = Arc::new(|| cubic.build_default());
            (host.config.send_buffer, host.config.receive_buffer) = (Bytes::new(64 << 20), Bytes::new(64 << 20));
            // Or slow start would end before the queue drops anything.
            host.config.profile.hystart = None;
        }
        // Each event would be followed by a look at some 30,000 segments.
        (wide.audit, wide.linger) = (false, None);
        let outcome = run(&wide).unwrap();
        let connection = &outcome.connections[0];
        assert!(connection.multipath && connection.sender.as_ref().unwrap().fallback.is_none());
        assert!(connection.receiver.as_ref().unwrap().ofo_peak > 12_000);
        let dropped: u64 = outcome.links.iter().map(|link| link.stats.dropped.queue).sum();
        let repeated: u64 = connection.subflows.iter().map(|subflow| subflow.stats.retransmitted).sum();
        assert!(dropped > 10_000 && repeated <= dropped, "{repeated} repeated, {dropped} dropped");
    }
}

#[test]
fn a_dead_path_delays_but_loses_nothing() {
    for (change, notify) in [(Change::Down, true), (Change::Down, false), (Change::Blackhole, false)] {
        let mut spec = spec(vec![path("a", 10, 10), path("b", 10, 10)], vec![download(5_000_000)]);
        spec.network.changes = vec![TimedChange {
            at: Duration::from_secs(1),
            path: "a".to_owned(),
            affected: Affected::Both,
            change: change.clone(),
            notify,
        }];
        let outcome = complete(&spec);
        let took = outcome.transfers[0].duration().unwrap();
        assert!(took < Duration::from_secs(8), "{change:?}, notified {notify}: {took}");
    }
}

#[test]
fn a_path_that_is_restored_is_used_again() {
    let change = |at, change| TimedChange {
        at: Duration::from_millis(at),
        path: "a".to_owned(),
        affected: Affected::Both,
        change,
        notify: true,
    };
    let carried = |changes| {
        let mut spec = spec(vec![path("a", 10, 10), path("b", 10, 10)], vec![download(5_000_000)]);
        spec.network.changes = changes;
        let outcome = complete(&spec);
        let subflows = outcome.connections[0].subflows.iter();
        subflows.filter(|subflow| subflow.path == 0).map(|subflow| subflow.stats.bytes_first_sent).sum::<u64>()
    };
    let lost = carried(vec![change(500, Change::Down)]);
    let restored = carried(vec![change(500, Change::Down), change(1000, Change::Restore)]);
    let up = carried(vec![change(500, Change::Down), change(1000, Change::Up)]);
    assert!(restored > lost + 500_000, "{restored} with, {lost} without");
    assert_eq!(restored, up, "as by `up`");
}

#[test]
fn damaged_packets_are_discarded_and_counted() {
    let mut only = path("a", 10, 10);
    only.down.corruption = 0.02;
    only.down.duplication = 0.02;
    only.down.jitter = ms(5);
    only.down.jitter_reorders = true;
    let outcome = complete(&spec(vec![only], vec![download(500_000)]));
    let corrupted: u64 = outcome.links.iter().map(|link| link.stats.corrupted).sum();
    assert!(corrupted > 0);
    assert_eq!(outcome.corrupted, corrupted);
}

#[test]
fn a_first_hop_that_reports_departures_limits_what_waits_there() {
    let mut only = path("a", 10, 10);
    only.nic = Some(Rate::from_mbps(100));
    let outcome = complete(&spec(vec![only], vec![download(2_000_000)]));
    let nic = outcome.links.iter().find(|link| link.name == "a/nic-down").unwrap();
    assert!(nic.stats.max_queued < 20, "{:?}", nic.stats);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let good = spec(vec![path("a", 10, 10)], vec![download(1000)]);
    let refusal = |edit: &dyn Fn(&mut anabranch_sim::Spec)| {
        let mut bad = good.clone();
        edit(&mut bad);
        run(&bad).unwrap_err()
    };
    assert_eq!(refusal(&|spec| spec.network.paths.clear()), NetworkError::Paths(0).into());
    assert_eq!(refusal(&|spec| spec.network.primary = 1), NetworkError::Primary(1, 1).into());
    assert_eq!(
        refusal(&|spec| spec.network.paths.push(path("a", 1, 1))),
        NetworkError::DuplicateName("a".to_owned()).into()
    );
    assert!(matches!(refusal(&|spec| spec.workloads = vec![download(0)]), SpecError::Empty(_)));
    let via = refusal(&|spec| spec.network.paths[0].via = Some("core".to_owned())).to_string();
    assert!(via.contains("via of path a") && via.contains("`core`"), "{via}");
    let loss = refusal(&|spec| spec.network.paths[0].down.duplication = 2.0).to_string();
    assert_eq!(loss, "a/down: duplication is 2; a probability lies between 0 and 1");
}

/// The slow path holds up the window of 256 KiB: that is what the sender must blame, and what reinjection is there for.
#[test]
fn a_window_held_up_by_the_slow_path_is_named_and_relieved() {
    let with = |reinjection: &'static str| {
        let mut spec = spec(vec![path("fast", 100, 5), path("slow", 10, 50)], vec![download(4_000_000)]);
        spec.client.config.receive_buffer = Bytes::new(1 << 18);
        // Short, so that queueing does not hide that the paths are ten times apart.
        spec.network.paths[0].down.queue = QueueLimit::Packets(80);
        let entry = REINJECTIONS.iter().find(|entry| entry.name == reinjection).unwrap();
        spec.server.config.policies.reinjection = std::sync::Arc::new(|| entry.build_default());
        let outcome = complete(&spec);
        (outcome.transfers[0].duration().unwrap(), outcome.connections[0].sender.clone().unwrap())
    };
    let (unhelped, blamed) = with("none");
    let total = blamed.blocked;
    assert!(total.receive_window > total.application + total.scheduler, "{total:?}");
    assert_eq!(blamed.reinjected, 0);
    let (helped, relieved) = with("opportunistic");
    assert!(relieved.reinjected > 0 && helped < unhelped.mul_f64(0.8), "{helped} against {unhelped}");
}

/// Both directions of one connection at once, over both paths.
#[test]
fn data_travel_both_ways_at_once() {
    let (down, up) = (Bytes::new(3_000_000), Bytes::new(2_000_000));
    let workload = Workload::Exchange { down, up, start: ms(50), pause: ms(100) };
    let outcome = complete(&spec(vec![path("a", 10, 10), path("b", 10, 25)], vec![workload]));
    let labels: Vec<_> = outcome.transfers.iter().map(|it| (it.label.as_str(), it.bytes)).collect();
    assert_eq!(labels, [("exchange down", 3_000_000), ("exchange up", 2_000_000)]);
    // 3 MB at 20 Mbit/s take 1.2 s; one after the other would be 2 s.
    let last = outcome.transfers.iter().filter_map(anabranch_sim::Transfer::duration).max().unwrap();
    assert!(last < ms(1900), "{last}");
}

/// Data of one's own takes nothing from the ACKs that report losses of the peer's. Short queues lose a little in every
/// round trip; no timeout is needed, both ways at once as one way.
#[test]
fn losses_are_repaired_both_ways_at_once() {
    for (sack, paths) in [(true, 1), (true, 2), (false, 1), (false, 2)] {
        for up in [1, 20_000_000] {
            let short = |name| {
                let mut path = path(name, 20, 20);
                (path.down.queue, path.up.queue) = (QueueLimit::Packets(10), QueueLimit::Packets(10));
                path
            };
            let (down, up) = (Bytes::new(20_000_000), Bytes::new(up));
            let workload = Workload::Exchange { down, up, start: Duration::ZERO, pause: Duration::ZERO };
            let mut spec = spec(["a", "b"].into_iter().take(paths).map(short).collect(), vec![workload]);
            (spec.client.config.profile.sack, spec.server.config.profile.sack) = (sack, sack);
            let outcome = complete(&spec);
            let subflows = &outcome.connections[0].subflows;
            let rtos: u64 = subflows.iter().map(|it| it.stats.rtos).sum();
            let again: u64 = subflows.iter().map(|it| it.stats.retransmitted).sum();
            assert!(rtos == 0 && again < 50, "SACK {sack}, {paths} paths: {rtos} timeouts, {again} retransmissions");
        }
    }
}
