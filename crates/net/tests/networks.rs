//! Routes over several links: order, sharing, and conservation of packets under all changes.
#![allow(clippy::unwrap_used)]

use anabranch_net::{Change, LinkConfig, LossModel, Network, Output, QueueLimit, Reordering, RouteId, Trace};
use anabranch_units::{Bytes, Duration, Instant, Rate, Seed};
use proptest::prelude::*;

fn us(n: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(n)
}

#[test]
fn a_route_passes_its_links_in_order() {
    let mut network = Network::new();
    let nic = LinkConfig { notify_departure: true, ..LinkConfig::new(Rate::from_mbps(100), Duration::ZERO) };
    let nic = network.add_link(nic, "nic", Seed(1)).unwrap();
    let slow =
        network.add_link(LinkConfig::new(Rate::from_mbps(10), Duration::from_millis(5)), "slow", Seed(1)).unwrap();
    let route = network.add_route(&[nic, slow]).unwrap();
    assert_eq!(network.route(route).collect::<Vec<_>>(), [nic, slow]);
    assert_eq!((network.links().count(), network.link_name(slow)), (2, "slow"));
    for packet in 0..2 {
        network.send(us(0), route, packet, Bytes::new(1500), 10 + packet);
    }
    let story: Vec<(u64, Instant)> = std::iter::from_fn(|| network.poll(us(100_000)))
        .map(|output| match output {
            Output::Departure(departure) => (departure.tag, departure.at),
            Output::Delivery(delivery) => (delivery.packet, delivery.at),
        })
        .collect();
    // 0.12 ms each on the first link; 1.2 ms each and 5 ms on the second.
    assert_eq!(story, [(10, us(120)), (11, us(240)), (0, us(6320)), (1, us(7520))]);
}

#[test]
fn an_empty_route_is_refused() {
    assert!(Network::<()>::new().add_route(&[]).is_err());
}

#[test]
fn a_shared_bottleneck_carries_its_rate_and_no_more() {
    let mut network = Network::new();
    let fast = LinkConfig::new(Rate::from_mbps(100), Duration::from_millis(1));
    let a = network.add_link(fast.clone(), "a", Seed(1)).unwrap();
    let b = network.add_link(fast, "b", Seed(1)).unwrap();
    let queue = QueueLimit::Packets(20);
    let shared = LinkConfig { queue, ..LinkConfig::new(Rate::from_mbps(10), Duration::from_millis(10)) };
    let shared = network.add_link(shared, "shared", Seed(1)).unwrap();
    let routes = [network.add_route(&[a, shared]).unwrap(), network.add_route(&[b, shared]).unwrap()];

    // Each route offers 10 Mbit/s for a second: one packet per 1.2 ms.
    let mut delivered = [0u64; 2];
    let mut count = |network: &mut Network<()>, now| {
        while let Some(Output::Delivery(delivery)) = network.poll(now) {
            delivered[delivery.route.index()] += 1;
        }
    };
    for n in 0..833 {
        let now = us(1200 * n);
        count(&mut network, now);
        for route in routes {
            network.send(now, route, (), Bytes::new(1500), 0);
        }
        network.check_conservation().unwrap();
    }
    count(&mut network, us(5_000_000));
    network.check_conservation().unwrap();
    let stats = network.stats(us(5_000_000), shared);
    assert_eq!((stats.offered, stats.queued, stats.in_flight, stats.max_queued), (1666, 0, 0, 20));
    assert_eq!(stats.delivered, delivered[0] + delivered[1]);
    assert_eq!(stats.delivered + stats.dropped.queue, 1666);
    // Busy throughout, so 833 packets pass while 833 pairs are offered, and the 19 behind the last one in service.
    assert_eq!(stats.delivered, 833 + 19);
    // Ties go to the lower link: on each tick the first route's packet finds the room.
    assert!(delivered[0] > delivered[1]);
}

#[derive(Clone, Debug)]
enum Op {
    Wait(u64),
    Send(usize, u64),
    Change(usize, Change),
}

fn change() -> impl Strategy<Value = Change> {
    let trace = std::sync::Arc::new(Trace::parse("0\n1\n1\n7\n8\n").unwrap());
    prop_oneof![
        prop_oneof![Just(0u64), 100_000..100_000_000u64].prop_map(|bps| Change::Rate(Rate::from_bps(bps))),
        Just(Change::Trace(trace)),
        (0..20_000u64).prop_map(|us| Change::Delay(Duration::from_micros(us))),
        (0..5_000u64).prop_map(|us| Change::Jitter(Duration::from_micros(us))),
        (0.0..0.5f64).prop_map(|p| Change::Loss(LossModel::Bernoulli { p })),
        Just(Change::Down),
        Just(Change::Up),
        Just(Change::Blackhole),
        Just(Change::Restore),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0..20_000u64).prop_map(Op::Wait),
        6 => (0..3usize, 1..3000u64).prop_map(|(route, size)| Op::Send(route, size)),
        1 => (0..4usize, change()).prop_map(|(link, change)| Op::Change(link, change)),
    ]
}

fn config() -> impl Strategy<Value = LinkConfig> {
    let queue = prop_oneof![
        (0..20u32).prop_map(QueueLimit::Packets),
        (0..30_000u64).prop_map(|n| QueueLimit::Bytes(Bytes::new(n)))
    ];
    (queue, any::<bool>(), any::<bool>(), 0..3_000u64, 0.0..0.3f64, 0.0..0.3f64, 0.0..0.3f64).prop_map(
        |(queue, reorders, notify_departure, jitter, loss, duplication, corruption)| LinkConfig {
            queue,
            notify_departure,
            jitter: Duration::from_micros(jitter),
            jitter_reorders: reorders,
            reordering: reorders.then_some(Reordering { probability: 0.2, extra: Duration::from_millis(2) }),
            loss: LossModel::Bernoulli { p: loss },
            duplication,
            corruption,
            ..LinkConfig::new(Rate::from_mbps(5), Duration::from_millis(3))
        },
    )
}

/// Does what it is told, checking the balance throughout; then lets everything drain.
fn play(configs: &[LinkConfig], ops: &[Op]) -> Vec<(Instant, Output<u64>)> {
    let mut network = Network::new();
    let links: Vec<_> = (0..)
        .zip(configs)
        .map(|(n, config)| network.add_link(config.clone(), &format!("{n}"), Seed(9)).unwrap())
        .collect();
    // Link 3 is shared; route 2 is the third way to it, without a first hop.
    let routes: Vec<RouteId> = [&[links[0], links[3]][..], &[links[1], links[2], links[3]], &[links[3]]]
        .into_iter()
        .map(|route| network.add_route(route).unwrap())
        .collect();
    let (mut now, mut story, mut sent) = (Instant::ZERO, Vec::new(), 0);
    let advance = |network: &mut Network<u64>, story: &mut Vec<_>, until: Instant| {
        while let Some(next) = network.next_time().filter(|&next| next <= until) {
            while let Some(output) = network.poll(next) {
                story.push((next, output));
            }
            network.check_conservation().unwrap();
        }
    };
    for op in ops {
        match op {
            Op::Wait(micros) => {
                now += Duration::from_micros(*micros);
                advance(&mut network, &mut story, now);
            }
            Op::Send(route, size) => {
                network.send(now, routes[*route], sent, Bytes::new(*size), sent);
                sent += 1;
            }
            Op::Change(link, change) => network.apply(now, links[*link], change.clone()).unwrap(),
        }
        network.check_conservation().unwrap();
    }
    for &link in &links {
        network.apply(now, link, Change::Rate(Rate::from_mbps(1))).unwrap();
    }
    advance(&mut network, &mut story, Instant::MAX);
    for &link in &links {
        let stats = network.stats(now + Duration::from_secs(1000), link);
        assert_eq!((stats.queued, stats.in_flight), (0, 0), "what no longer waits for anything has left");
        assert!(stats.is_balanced());
    }
    // All routes end with this link.
    let delivered = story.iter().filter(|(_, output)| matches!(output, Output::Delivery(_))).count() as u64;
    assert_eq!(network.stats(now, links[3]).delivered, delivered);
    story
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_appears_or_vanishes(
        configs in prop::collection::vec(config(), 4),
        ops in prop::collection::vec(op(), 1..300),
    ) {
        let story = play(&configs, &ops);
        prop_assert!(story.is_sorted_by_key(|&(at, _)| at));
    }

    #[test]
    fn links_that_keep_order_never_reorder(
        configs in prop::collection::vec(config(), 4),
        ops in prop::collection::vec(op(), 1..300),
    ) {
        let ordered = |config| LinkConfig { jitter_reorders: false, reordering: None, ..config };
        let configs: Vec<LinkConfig> = configs.into_iter().map(ordered).collect();
        let mut last = [0; 3];
        for (_, output) in play(&configs, &ops) {
            if let Output::Delivery(delivery) = output {
                let last = &mut last[delivery.route.index()];
                prop_assert!(*last <= delivery.packet, "{} after {last}", delivery.packet);
                *last = delivery.packet;
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_story(
        configs in prop::collection::vec(config(), 4),
        ops in prop::collection::vec(op(), 1..200),
    ) {
        prop_assert_eq!(play(&configs, &ops), play(&configs, &ops));
    }
}
