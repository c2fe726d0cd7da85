//! Reports of packets that do not arrive: packet, place, time and cause of each.
#![allow(clippy::unwrap_used)]

use anabranch_net::{Change, DropCause, LinkConfig, LinkId, LossModel, Network, QueueLimit, RouteId};
use anabranch_units::{Bytes, Duration, Instant, Rate, Seed};

fn us(n: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(n)
}

/// Two links in series, 10 Mbit/s and 5 ms each: a full packet takes 1.2 ms on either.
fn network(first: LinkConfig, second: LinkConfig) -> (Network<()>, RouteId, [LinkId; 2]) {
    let mut network = Network::new();
    let links = [network.add_link(first, "a", Seed(7)).unwrap(), network.add_link(second, "b", Seed(7)).unwrap()];
    let route = network.add_route(&links).unwrap();
    (network, route, links)
}

fn ten_mbit() -> LinkConfig {
    LinkConfig::new(Rate::from_mbps(10), Duration::from_millis(5))
}

fn send(network: &mut Network<()>, now: Instant, route: RouteId, tags: std::ops::Range<u64>) {
    tags.for_each(|tag| network.send(now, route, (), Bytes::new(1500), tag));
}

fn told(network: &mut Network<()>) -> Vec<(u64, LinkId, DropCause, Instant)> {
    std::iter::from_fn(|| network.poll_drop()).map(|it| (it.tag, it.link, it.cause, it.at)).collect()
}

#[test]
fn each_cause_is_told_apart_with_its_link_and_time() {
    for jitter_reorders in [false, true] {
        let first = LinkConfig { queue: QueueLimit::Packets(3), jitter_reorders, ..ten_mbit() };
        let second = LinkConfig { loss: LossModel::List(vec![1]), jitter_reorders, ..ten_mbit() };
        let (mut network, route, [a, b]) = network(first, second);
        network.report_drops();
        send(&mut network, us(0), route, 0..5);
        assert_eq!(
            told(&mut network),
            [(3, a, DropCause::QueueFull, us(0)), (4, a, DropCause::QueueFull, us(0))],
            "known as soon as it happens"
        );
        while network.poll(us(9000)).is_some() {}
        // Packet 1 reaches the second link at 7.4 ms and leaves it at 8.6 ms, into nothing.
        assert_eq!(told(&mut network), [(1, b, DropCause::Loss, us(8600))]);
        network.apply(us(9000), b, Change::Blackhole).unwrap();
        while network.poll(us(9800)).is_some() {}
        // Packet 2 went into the hole at 9.8 ms, which a link that keeps order need not notice at once; packet 0 is
        // still in flight.
        network.apply(us(9900), b, Change::Down).unwrap();
        assert_eq!(told(&mut network), [(2, b, DropCause::Blackhole, us(9800)), (0, b, DropCause::Down, us(9900))]);
        send(&mut network, us(9900), route, 5..6);
        network.apply(us(9900), a, Change::Down).unwrap();
        send(&mut network, us(9900), route, 6..7);
        assert_eq!(told(&mut network), [(5, a, DropCause::Down, us(9900)), (6, a, DropCause::Down, us(9900))]);
    }
}

#[test]
fn every_packet_is_delivered_or_told_of_once() {
    for jitter_reorders in [false, true] {
        let first = LinkConfig { queue: QueueLimit::Packets(20), loss: LossModel::Bernoulli { p: 0.1 }, ..ten_mbit() };
        let second = LinkConfig { loss: LossModel::Bernoulli { p: 0.2 }, jitter_reorders, ..ten_mbit() };
        let (mut network, route, links) = network(first, second);
        network.report_drops();
        let (mut seen, mut tags) = (Vec::new(), 0);
        for step in 0..400 {
            let now = us(step * 1000);
            while let Some(output) = network.poll(now) {
                if let anabranch_net::Output::Delivery(delivery) = output {
                    seen.push(delivery.tag);
                }
            }
            match step % 100 {
                40 => network.apply(now, links[1], Change::Down).unwrap(),
                50 => network.apply(now, links[1], Change::Up).unwrap(),
                60 => network.apply(now, links[0], Change::Blackhole).unwrap(),
                70 => network.apply(now, links[0], Change::Restore).unwrap(),
                _ => {}
            }
            send(&mut network, now, route, tags..tags + step % 3);
            tags += step % 3;
            seen.extend(std::iter::from_fn(|| network.poll_drop()).map(|it| it.tag));
        }
        while let Some(output) = network.poll(us(1_000_000_000)) {
            if let anabranch_net::Output::Delivery(delivery) = output {
                seen.push(delivery.tag);
            }
        }
        seen.extend(std::iter::from_fn(|| network.poll_drop()).map(|it| it.tag));
        seen.sort_unstable();
        assert_eq!(seen, (0..tags).collect::<Vec<_>>());
        let dropped = links.map(|link| network.stats(us(1_000_000_000), link).dropped);
        assert!(dropped[0].queue > 0 && dropped[0].blackhole > 0 && dropped[1].loss > 0 && dropped[1].down > 0);
    }
}

#[test]
fn nothing_is_remembered_for_nobody() {
    let (mut network, route, _) = network(LinkConfig { queue: QueueLimit::Packets(1), ..ten_mbit() }, ten_mbit());
    send(&mut network, us(0), route, 0..10);
    assert_eq!(network.poll_drop(), None);
}
