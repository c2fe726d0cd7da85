//! Background traffic: UDP that is on and off, and competing TCP.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_net::QueueLimit;
use anabranch_paths::Direction;
use anabranch_sim::{Extent, Outcome, Spacing, Workload, run};
use anabranch_units::{Bytes, Duration, Rate, Seed};
use common::{ms, path, spec};

/// UDP of 1 Mbit/s in packets of 1250 B, on and off for these times on average, in a run of `seconds` seconds.
fn on_and_off(phases: Spacing, on: Duration, off: Duration, seconds: u64) -> Workload {
    Workload::Udp {
        path: "a".to_owned(),
        direction: Direction::Down,
        rate: Rate::from_mbps(1),
        packet: Bytes::new(1250),
        spacing: Spacing::Even,
        on,
        off,
        phases,
        start: Duration::ZERO,
        stop: Duration::from_secs(seconds),
    }
}

fn sent(workloads: Vec<Workload>, seconds: u64, seed: u64) -> Outcome {
    let mut spec = spec(vec![path("a", 100, 5), path("b", 100, 5)], workloads);
    spec.seed = Seed(seed);
    (spec.stop, spec.record_events) = (Duration::from_secs(seconds + 1), false);
    run(&spec).unwrap()
}

/// A packet is 10 ms. Half of 2000 s are 100,000 of them; the share of time on of exponential periods of 1 s deviates
/// by 1 / √(4 · 2000) = 1.1 % of the time, which is 2,200 packets.
#[test]
fn udp_that_is_on_half_the_time_delivers_half_its_rate() {
    let second = Duration::from_secs(1);
    let packets = |phases, on, off| sent(vec![on_and_off(phases, on, off, 2000)], 2000, 1).udp[0].sent;
    assert_eq!(packets(Spacing::Even, second, second), 100_000);
    // Periods that no packet fits into: a packet each four of them.
    assert_eq!(packets(Spacing::Even, ms(2) + ms(1) / 2, ms(2) + ms(1) / 2), 100_000);
    // A third of the time, of which 10 ms are no divisor.
    let third = packets(Spacing::Even, ms(25), ms(50));
    assert!((66_660..=66_670).contains(&third), "{third}");
    for phases in [Spacing::Uniform, Spacing::Exponential] {
        let half = packets(phases, second, second);
        assert!((95_600..=104_400).contains(&half) && half != 100_000, "{phases:?}: {half}");
    }
    // Three quarters: 3 s on, 1 s off.
    let most = packets(Spacing::Exponential, second * 3, second);
    assert!((143_000..=157_000).contains(&most), "{most}");
}

/// Exponential periods are drawn from streams of their own: what other workloads draw stays, and a run repeats.
#[test]
fn times_on_and_off_are_drawn_apart_from_everything_else() {
    let other = || {
        let mut other = on_and_off(Spacing::Even, Duration::ZERO, Duration::ZERO, 20);
        if let Workload::Udp { path, spacing, .. } = &mut other {
            (*path, *spacing) = ("b".to_owned(), Spacing::Exponential);
        }
        other
    };
    let exponential = || on_and_off(Spacing::Exponential, ms(300), ms(300), 20);
    let alone = sent(vec![other()], 20, 1);
    let beside = sent(vec![other(), exponential()], 20, 1);
    assert_eq!(beside.udp[0].sent, alone.udp[0].sent);
    assert_eq!(sent(vec![other(), exponential()], 20, 1).digest, beside.digest);
    assert_ne!(sent(vec![other(), exponential()], 20, 2).udp[1].sent, beside.udp[1].sent);
}

/// A download of 10 s over 10 Mbit/s. Beside 8 Mbit/s of UDP that is on half the time it has 6 Mbit/s at most; how the
/// times on and off are chosen changes what it gets.
#[test]
fn background_traffic_takes_its_share_of_a_download() {
    let goodput = |background: Vec<Workload>| {
        let download =
            Workload::Bulk { direction: Direction::Down, start: Duration::ZERO, duration: Duration::from_secs(10) };
        let mut spec = spec(vec![path("a", 10, 20)], vec![download]);
        spec.network.paths[0].down.queue = QueueLimit::Packets(40);
        spec.workloads.extend(background);
        (spec.stop, spec.record_events, spec.audit) = (Duration::from_secs(12), false, false);
        run(&spec).unwrap().transfers[0].bytes as f64 * 8.0 / 10e6
    };
    let udp = |phases| {
        let mut udp = on_and_off(phases, ms(500), ms(500), 10);
        if let Workload::Udp { rate, .. } = &mut udp {
            *rate = Rate::from_mbps(8);
        }
        udp
    };
    let tcp = || Workload::Tcp {
        path: "a".to_owned(),
        direction: Direction::Down,
        start: Duration::ZERO,
        extent: Extent::For(Duration::from_secs(10)),
        congestion: spec(vec![], vec![]).server.config.policies.congestion,
    };
    let (alone, even) = (goodput(vec![]), goodput(vec![udp(Spacing::Even)]));
    let exponential = goodput(vec![udp(Spacing::Exponential)]);
    assert!(alone > 9.0 && alone < 10.0, "{alone}");
    assert!(even < 6.0 && even > 3.0, "{even}");
    assert!(exponential < 6.5 && exponential > 3.0 && (exponential - even).abs() > 0.05, "{exponential}, {even}");
    // Four greedy flows with the same rule leave about a fifth.
    let fifth = goodput(vec![tcp(), tcp(), tcp(), tcp()]);
    assert!(fifth > 1.0 && fifth < 3.5, "{fifth}");
}
