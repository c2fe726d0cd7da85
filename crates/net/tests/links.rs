//! Effects of one link on packets, to the nanosecond.
#![allow(clippy::unwrap_used)]

use anabranch_net::{
    Change, Departure, LinkConfig, LinkId, LinkStats, LossModel, Network, Output, QueueLimit, Reordering, RouteId,
    Trace,
};
use anabranch_units::{Bytes, Duration, Instant, Rate, Seed};

const FULL: Bytes = Bytes::new(1500);

fn us(n: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(n)
}

fn ms(n: u64) -> Instant {
    us(n * 1000)
}

/// 10 Mbit/s, so 1.2 ms for a full packet, and 5 ms of delay.
fn ten_mbit() -> LinkConfig {
    LinkConfig::new(Rate::from_mbps(10), Duration::from_millis(5))
}

struct Bench {
    network: Network<u64>,
    link: LinkId,
    route: RouteId,
}

impl Bench {
    fn new(config: LinkConfig) -> Self {
        let mut network = Network::new();
        let link = network.add_link(config, "test", Seed(1)).unwrap();
        let route = network.add_route(&[link]).unwrap();
        Bench { network, link, route }
    }

    /// Sends full packets with these numbers.
    fn send(&mut self, now: Instant, packets: std::ops::Range<u64>) {
        for packet in packets {
            self.network.send(now, self.route, packet, FULL, packet);
        }
    }

    fn apply(&mut self, now: Instant, change: Change) {
        self.network.apply(now, self.link, change).unwrap();
        self.network.check_conservation().unwrap();
    }

    fn stats(&mut self, now: Instant) -> LinkStats {
        self.network.stats(now, self.link)
    }

    /// Returns all outputs up to `end`, polled at their times.
    fn run(&mut self, end: Instant) -> Vec<Output<u64>> {
        let mut outputs = Vec::new();
        while let Some(now) = self.network.next_time().filter(|&now| now <= end) {
            while let Some(output) = self.network.poll(now) {
                let (Output::Delivery(anabranch_net::Delivery { at, .. }) | Output::Departure(Departure { at, .. })) =
                    output;
                assert_eq!(at, now);
                outputs.push(output);
            }
            self.network.check_conservation().unwrap();
        }
        outputs
    }

    /// Packets that arrive up to `end`, with their times.
    fn arrivals(&mut self, end: Instant) -> Vec<(u64, Instant)> {
        let deliveries = self.run(end).into_iter().filter_map(|output| match output {
            Output::Delivery(delivery) => Some((delivery.packet, delivery.at)),
            Output::Departure(_) => None,
        });
        deliveries.collect()
    }
}

#[test]
fn n_packets_take_n_times_as_long() {
    let mut bench = Bench::new(LinkConfig { queue: QueueLimit::Packets(1000), ..ten_mbit() });
    bench.send(ms(3), 0..1000);
    let arrivals = bench.arrivals(Instant::MAX);
    let expected: Vec<(u64, Instant)> =
        (0..1000).map(|n| (n, ms(3) + Duration::from_micros(1200 * (n + 1) + 5000))).collect();
    assert_eq!(arrivals, expected);
    let stats = bench.stats(ms(10_000));
    assert_eq!((stats.offered, stats.delivered, stats.departed, stats.max_queued), (1000, 1000, 1000, 1000));
    assert_eq!((stats.delivered_bytes, stats.max_queued_bytes), (Bytes::new(1_500_000), Bytes::new(1_500_000)));
    assert_eq!(stats.mean_queue_delay(), Some(Duration::from_micros(600_600))); // 1.2 ms · (1 + … + 1000) / 1000
}

#[test]
fn queue_delays_are_told_packet_by_packet_once_asked_for() {
    let mut bench = Bench::new(LinkConfig { loss: LossModel::List(vec![1]), ..ten_mbit() });
    bench.send(ms(0), 0..1);
    bench.arrivals(ms(10));
    bench.network.record_queue_delays();
    bench.send(ms(10), 1..4); // The first of them is lost, but not before its last bit has left.
    bench.arrivals(Instant::MAX);
    let link = bench.link;
    let told: Vec<_> = bench.network.drain_queue_delays(link).collect();
    assert_eq!(told, [1200, 2400, 3600].map(Duration::from_micros));
    assert_eq!(bench.network.drain_queue_delays(link).count(), 0, "nothing is told twice");
}

#[test]
fn occupancy_is_exact_at_any_time() {
    let mut bench = Bench::new(ten_mbit());
    bench.send(ms(0), 0..3);
    for (at, queued, in_flight) in [(0, 3, 0), (1199, 3, 0), (1200, 2, 1), (2400, 1, 2), (3599, 1, 2), (3600, 0, 3)] {
        let stats = bench.stats(us(at));
        assert_eq!((stats.queued, stats.in_flight), (queued, in_flight), "{at} us");
        assert_eq!(stats.queued_bytes, FULL.times(u64::from(queued)));
    }
    assert_eq!(bench.arrivals(Instant::MAX).len(), 3);
}

#[test]
fn a_full_queue_drops_the_newcomer() {
    let round_trip = Duration::from_millis(12); // 10 full packets at 10 Mbit/s.
    for (queue, held) in [
        (QueueLimit::Packets(4), 4),
        (QueueLimit::Bytes(Bytes::new(5 * 1500 + 1499)), 5),
        (QueueLimit::Bdp { factor: 0.6, round_trip }, 6),
        (QueueLimit::Bdp { factor: 0.0, round_trip }, 2),
    ] {
        let mut bench = Bench::new(LinkConfig { queue, ..ten_mbit() });
        bench.send(ms(0), 0..20);
        // One has left by 1.2 ms, so one more fits.
        bench.send(us(1200), 20..22);
        let packets: Vec<u64> = bench.arrivals(Instant::MAX).into_iter().map(|(packet, _)| packet).collect();
        assert_eq!(packets, (0..held).chain([20]).collect::<Vec<u64>>(), "{queue:?}");
        assert_eq!(bench.stats(ms(100)).dropped.queue, 21 - held);
    }
}

#[test]
fn lost_packets_consume_capacity() {
    let mut bench = Bench::new(LinkConfig { loss: LossModel::List(vec![0, 2]), ..ten_mbit() });
    bench.send(ms(0), 0..4);
    assert_eq!(bench.arrivals(Instant::MAX), [(1, us(7400)), (3, us(9800))]);
    let stats = bench.stats(ms(20));
    assert_eq!((stats.dropped.loss, stats.departed, stats.delivered), (2, 4, 2));
}

#[test]
fn loss_counts_packets_that_the_queue_dropped_too() {
    let lossy = LinkConfig { loss: LossModel::List(vec![3]), queue: QueueLimit::Packets(2), ..ten_mbit() };
    let mut bench = Bench::new(lossy);
    bench.send(ms(0), 0..3); // The third finds no room.
    bench.send(ms(50), 3..5); // The fourth is lost.
    assert_eq!(bench.arrivals(Instant::MAX).into_iter().map(|(packet, _)| packet).collect::<Vec<_>>(), [0, 1, 4]);
}

#[test]
fn a_trace_serves_at_its_opportunities() {
    let trace = Trace::parse("2\n2\n5\n10\n").unwrap();
    let mut bench =
        Bench::new(LinkConfig { queue: QueueLimit::Packets(5), ..LinkConfig::new(trace, Duration::from_millis(1)) });
    bench.send(us(1500), 0..3); // Two at 2 ms, one at 5 ms.
    assert_eq!(bench.arrivals(ms(7)), [(0, ms(3)), (1, ms(3)), (2, ms(6))]);
    bench.send(ms(8), 3..10); // Five fit: 10, 12, 12, 15, 20 ms.
    assert_eq!(bench.arrivals(Instant::MAX), [(3, ms(11)), (4, ms(13)), (5, ms(13)), (6, ms(16)), (7, ms(21))]);
    assert_eq!(bench.stats(ms(30)).dropped.queue, 2);
}

#[test]
fn a_change_of_rate_takes_effect_within_the_packet() {
    let mut bench = Bench::new(ten_mbit());
    bench.send(ms(0), 0..3);
    // Half of the first packet is out; the other half takes 6 ms at 1 Mbit/s, then 12 ms for the second.
    bench.apply(us(600), Change::Rate(Rate::from_mbps(1)));
    assert_eq!(bench.arrivals(us(11_600)), [(0, us(11_600))]);
    // 5 of 12 ms are served when the second stalls; the remaining 875 bytes take 0.07 ms at 100 Mbit/s.
    bench.apply(us(11_600), Change::Rate(Rate::from_bps(0)));
    assert_eq!(bench.network.next_time(), None);
    assert_eq!(bench.stats(ms(500)).queued, 2);
    bench.apply(ms(500), Change::Rate(Rate::from_mbps(100)));
    assert_eq!(bench.arrivals(Instant::MAX), [(1, us(505_070)), (2, us(505_190))]);
}

#[test]
fn rate_and_trace_take_over_from_each_other() {
    let trace = std::sync::Arc::new(Trace::parse("1\n").unwrap()); // 12 Mbit/s, on the millisecond.
    let mut bench = Bench::new(LinkConfig { delay: Duration::ZERO, ..ten_mbit() });
    bench.send(ms(0), 0..4);
    // 1.5 packets are out: the second's other half leaves at 2 ms, half of the third with it.
    bench.apply(us(1800), Change::Trace(trace));
    assert_eq!(bench.arrivals(ms(2)), [(0, us(1200)), (1, ms(2))]);
    // At 2.5 ms half a packet is left of the third, again.
    bench.apply(us(2500), Change::Rate(Rate::from_mbps(10)));
    assert_eq!(bench.arrivals(Instant::MAX), [(2, us(3100)), (3, us(4300))]);
}

#[test]
fn a_shorter_delay_never_overtakes_on_a_link_that_keeps_order() {
    let change = |jitter_reorders| {
        let mut bench = Bench::new(LinkConfig { jitter_reorders, ..ten_mbit() });
        bench.send(ms(0), 0..3);
        bench.apply(us(1200), Change::Delay(Duration::from_millis(1))); // The first is in flight.
        bench.arrivals(Instant::MAX)
    };
    assert_eq!(change(false), [(0, us(6200)), (1, us(6200)), (2, us(6200))]);
    assert_eq!(change(true), [(1, us(3400)), (2, us(4600)), (0, us(6200))]);
}

#[test]
fn jitter_spreads_arrivals_and_reorders_only_if_told() {
    let run = |jitter_reorders| {
        let jitter = Duration::from_millis(10);
        let mut bench =
            Bench::new(LinkConfig { jitter, jitter_reorders, queue: QueueLimit::Packets(500), ..ten_mbit() });
        bench.send(ms(0), 0..500);
        bench.arrivals(Instant::MAX)
    };
    let (ordered, shuffled) = (run(false), run(true));
    assert!(ordered.is_sorted_by_key(|&(packet, _)| packet));
    assert!(!shuffled.is_sorted_by_key(|&(packet, _)| packet));
    assert_eq!((ordered.len(), shuffled.len()), (500, 500));
    let mut extra_us = Vec::new();
    for (packet, at) in shuffled {
        let earliest = us(1200 * (packet + 1) + 5000);
        assert!(at >= earliest && at < earliest + Duration::from_millis(10));
        extra_us.push(at.since(earliest).as_nanos() / 1000);
    }
    // Uniform over 10 ms: mean 5000 us, σ of the mean 2887/√500 = 129.
    let mean = extra_us.iter().sum::<u64>() / 500;
    assert!((4355..=5645).contains(&mean), "{mean}");
    // A packet waits for the latest before it, so order costs time but never gains any.
    assert!(ordered.iter().all(|&(packet, at)| at >= us(1200 * (packet + 1) + 5000)));
}

#[test]
fn equal_arrivals_keep_their_order_even_on_a_link_that_reorders() {
    let trace = Trace::parse(&"7\n".repeat(50)).unwrap();
    let mut bench = Bench::new(LinkConfig { jitter_reorders: true, ..LinkConfig::new(trace, Duration::ZERO) });
    bench.send(ms(0), 0..50);
    assert_eq!(bench.arrivals(Instant::MAX), (0..50).map(|packet| (packet, ms(7))).collect::<Vec<_>>());
}

#[test]
fn some_packets_fall_behind() {
    let reordering = Some(Reordering { probability: 0.1, extra: Duration::from_millis(3) });
    let mut bench = Bench::new(LinkConfig { reordering, queue: QueueLimit::Packets(1000), ..ten_mbit() });
    bench.send(ms(0), 0..1000);
    let arrivals = bench.arrivals(Instant::MAX);
    let on_time = |&&(packet, at): &&(u64, Instant)| at == us(1200 * (packet + 1) + 5000);
    let late = arrivals.iter().filter(|arrival| !on_time(arrival)).count();
    assert!((53..=147).contains(&late), "{late}"); // 100 expected, σ = 9.5.
    assert!(arrivals.iter().filter(|a| !on_time(a)).all(|&(packet, at)| at == us(1200 * (packet + 1) + 8000)));
    assert!(arrivals.is_sorted_by_key(|&(_, at)| at));
}

#[test]
fn copies_follow_their_originals() {
    for jitter_reorders in [false, true] {
        let mut bench = Bench::new(LinkConfig { duplication: 1.0, jitter_reorders, ..ten_mbit() });
        bench.send(ms(0), 0..2);
        assert_eq!(bench.arrivals(Instant::MAX), [(0, us(6200)), (0, us(6200)), (1, us(7400)), (1, us(7400))]);
        let stats = bench.stats(ms(10));
        assert_eq!((stats.offered, stats.duplicated, stats.delivered), (2, 2, 4));
    }
}

#[test]
fn damage_travels_with_the_packet() {
    let mut network: Network<u64> = Network::new();
    let bad = network.add_link(LinkConfig { corruption: 0.5, ..ten_mbit() }, "bad", Seed(1)).unwrap();
    let good = network.add_link(ten_mbit(), "good", Seed(1)).unwrap();
    let route = network.add_route(&[bad, good]).unwrap();
    (0..100).for_each(|packet| network.send(ms(0), route, packet, FULL, 0));
    let mut damaged = 0;
    while let Some(output) = network.poll(ms(1000)) {
        damaged += u64::from(matches!(output, Output::Delivery(delivery) if delivery.corrupted));
    }
    assert!((25..=75).contains(&damaged), "{damaged}"); // 50 expected, σ = 5.
    assert_eq!((network.stats(ms(1000), bad).corrupted, network.stats(ms(1000), good).corrupted), (damaged, 0));
}

#[test]
fn down_drops_what_is_inside_and_what_is_offered() {
    for jitter_reorders in [false, true] {
        let mut bench = Bench::new(LinkConfig { jitter_reorders, ..ten_mbit() });
        bench.send(ms(0), 0..8);
        assert_eq!(bench.arrivals(us(6200)), [(0, us(6200))]);
        bench.apply(us(6200), Change::Down); // Four in flight, three queued.
        assert!(!bench.network.has_carrier(bench.link));
        assert_eq!(bench.network.next_time(), None);
        bench.send(ms(7), 8..10);
        let stats = bench.stats(ms(7));
        assert_eq!((stats.dropped.down, stats.queued, stats.in_flight), (9, 0, 0));

        bench.apply(ms(8), Change::Up);
        assert!(bench.network.has_carrier(bench.link));
        bench.send(ms(8), 10..11);
        assert_eq!(bench.arrivals(Instant::MAX), [(10, us(14_200))]);
    }
}

#[test]
fn down_gives_back_what_a_trace_had_promised() {
    let trace = Trace::parse("10\n").unwrap();
    let mut bench = Bench::new(LinkConfig::new(trace, Duration::ZERO));
    bench.send(ms(0), 0..20); // The last would leave at 200 ms.
    bench.apply(ms(1), Change::Down);
    bench.apply(ms(2), Change::Up);
    bench.send(ms(2), 20..21);
    assert_eq!(bench.arrivals(Instant::MAX), [(20, ms(10))]);
}

#[test]
fn what_has_arrived_survives_down() {
    let mut bench = Bench::new(ten_mbit());
    bench.send(ms(0), 0..2);
    bench.apply(us(6200), Change::Down); // Nobody has polled yet.
    assert_eq!(bench.arrivals(Instant::MAX), [(0, us(6200))]);
    assert_eq!(bench.stats(ms(10)).dropped.down, 1);
}

#[test]
fn restore_undoes_down_as_well() {
    let mut bench = Bench::new(ten_mbit());
    bench.apply(ms(0), Change::Down);
    bench.send(ms(1), 0..1);
    bench.apply(ms(2), Change::Restore);
    assert!(bench.network.has_carrier(bench.link));
    bench.send(ms(2), 1..2);
    assert_eq!(bench.arrivals(Instant::MAX).iter().map(|(packet, _)| *packet).collect::<Vec<_>>(), [1]);
    assert_eq!(bench.stats(ms(10)).dropped.down, 1);
}

#[test]
fn a_black_hole_keeps_its_pace_and_its_carrier() {
    for jitter_reorders in [false, true] {
        let mut bench = Bench::new(LinkConfig { jitter_reorders, notify_departure: true, ..ten_mbit() });
        bench.send(ms(0), 0..3);
        bench.apply(us(1200), Change::Blackhole); // The first has left the queue.
        assert!(bench.network.has_carrier(bench.link));
        bench.send(ms(4), 3..4);
        assert_eq!(bench.stats(us(5199)).queued, 1);
        bench.apply(us(5200), Change::Restore); // The fourth has just left the queue, into the hole.
        bench.send(us(5200), 4..5);
        let outputs = bench.run(Instant::MAX);
        let departures = outputs.iter().filter(|output| matches!(output, Output::Departure(_))).count();
        assert_eq!(departures, 5);
        let arrived = outputs.iter().filter_map(|output| match output {
            Output::Delivery(delivery) => Some((delivery.packet, delivery.at)),
            Output::Departure(_) => None,
        });
        assert_eq!(arrived.collect::<Vec<_>>(), [(0, us(6200)), (4, us(11_400))]);
        assert_eq!(bench.stats(ms(20)).dropped.blackhole, 3);
    }
}

/// 10 Mbit/s and 5 ms: 1.2 ms per packet, so that the queue of four drains within the delay. Of six packets at once
/// both links take four. At 5 ms the plain link is empty but for what flies; the one that counts the delay holds four
/// until 6.2 ms.
#[test]
fn a_queue_may_count_what_is_under_delay() {
    for (queue_counts_delay, arrived) in [(false, vec![0, 1, 2, 3, 6, 7, 8, 9]), (true, vec![0, 1, 2, 3, 8])] {
        for jitter_reorders in [false, true] {
            let queue = QueueLimit::Packets(4);
            let mut bench = Bench::new(LinkConfig { queue, queue_counts_delay, jitter_reorders, ..ten_mbit() });
            bench.send(ms(0), 0..6);
            bench.run(ms(5));
            bench.send(ms(5), 6..8);
            bench.run(us(6300));
            bench.send(us(6300), 8..10); // The first has arrived.
            let mut all: Vec<u64> = bench.arrivals(Instant::MAX).into_iter().map(|(packet, _)| packet).collect();
            all.insert(0, 0);
            assert_eq!(all, arrived, "{queue_counts_delay} {jitter_reorders}");
        }
    }
}

#[test]
fn loss_and_jitter_change_at_once() {
    let mut bench = Bench::new(ten_mbit());
    bench.send(ms(0), 0..1);
    bench.apply(ms(0), Change::Loss(LossModel::Bernoulli { p: 1.0 }));
    bench.send(ms(0), 1..2);
    bench.apply(ms(0), Change::Loss(LossModel::None));
    bench.apply(ms(0), Change::Jitter(Duration::from_millis(1)));
    bench.send(ms(0), 2..3);
    let arrivals = bench.arrivals(Instant::MAX);
    assert_eq!(arrivals[0], (0, us(6200)));
    assert!(arrivals[1].0 == 2 && arrivals[1].1 > us(8600) && arrivals[1].1 < us(9600));
    assert!(bench.network.apply(ms(20), bench.link, Change::Loss(LossModel::Bernoulli { p: 7.0 })).is_err());
}

#[test]
fn each_packet_offered_gives_one_departure_notice() {
    for jitter_reorders in [false, true] {
        let noticed =
            LinkConfig { notify_departure: true, jitter_reorders, queue: QueueLimit::Packets(3), ..ten_mbit() };
        let mut bench = Bench::new(noticed);
        bench.send(ms(0), 0..4); // The last is dropped and noticed at once.
        let mut notices = bench.run(us(1200));
        bench.apply(us(1300), Change::Down); // Drops the two that wait.
        bench.send(us(1400), 4..5);
        notices.extend(bench.run(Instant::MAX));
        let seen: Vec<(u64, Instant)> = notices
            .into_iter()
            .map(|output| match output {
                Output::Departure(Departure { tag, at, size: FULL, .. }) => (tag, at),
                other => panic!("nothing arrives over a link that went down: {other:?}"),
            })
            .collect();
        let mut sorted = seen.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [(0, us(1200)), (1, us(1300)), (2, us(1300)), (3, us(0)), (4, us(1400))]);
        assert!(seen.is_sorted_by_key(|&(_, at)| at));
    }
}

#[test]
fn a_late_poll_tells_the_true_times() {
    let mut bench = Bench::new(ten_mbit());
    bench.send(ms(0), 0..2);
    let times: Vec<Instant> = std::iter::from_fn(|| bench.network.poll(ms(100)))
        .map(|output| match output {
            Output::Delivery(delivery) => delivery.at,
            Output::Departure(departure) => departure.at,
        })
        .collect();
    assert_eq!(times, [us(6200), us(7400)]);
}
