//! Effects of queue disciplines on the packets of a link.
#![allow(clippy::unwrap_used)]

use anabranch_net::{
    Carried, Change, Delivery, Discipline, DropNotice, LinkConfig, LinkId, LinkStats, Network, Output, QueueLimit,
    Reordering, RouteId, Waits,
};
use anabranch_policy::queue::QUEUES;
use anabranch_policy::registry::{Value, find};
use anabranch_units::{Bytes, Duration, Ecn, Instant, Rate, Seed};
use proptest::prelude::*;

const FULL: Bytes = Bytes::new(1500);

/// A packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet {
    number: u64,
    flow: u64,
    ecn: Ecn,
}

impl Carried for Packet {
    fn flow(&self) -> u64 {
        self.flow
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }
}

fn packet(number: u64, flow: u64) -> Packet {
    Packet { number, flow, ecn: Ecn::NotEct }
}

fn us(n: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(n)
}

fn ms(n: u64) -> Instant {
    us(n * 1000)
}

fn discipline(name: &str, sets: &[(&str, f64)]) -> Option<Discipline> {
    let entry = find(QUEUES, "queue discipline", name).unwrap();
    let sets = sets.iter().map(|(name, value)| ((*name).to_owned(), Value::Number(*value))).collect();
    let params = entry.params(&sets).unwrap();
    Some(Discipline::new(name, move || entry.build(&params).policy))
}

/// 12 Mbit/s, so 1 ms for a full packet, and 5 ms of delay.
fn twelve_mbit() -> LinkConfig {
    LinkConfig::new(Rate::from_mbps(12), Duration::from_millis(5))
}

/// A network of one link, and all that it has said.
struct Bench {
    network: Network<Packet>,
    link: LinkId,
    route: RouteId,
    outputs: Vec<Output<Packet>>,
    drops: Vec<DropNotice>,
}

impl Bench {
    fn new(config: LinkConfig) -> Self {
        let mut network = Network::new();
        let link = network.add_link(config, "test", Seed(1)).unwrap();
        let route = network.add_route(&[link]).unwrap();
        network.report_drops();
        Bench { network, link, route, outputs: Vec::new(), drops: Vec::new() }
    }

    fn with(name: &str, sets: &[(&str, f64)]) -> Self {
        Bench::new(LinkConfig { discipline: discipline(name, sets), ..twelve_mbit() })
    }

    fn send(&mut self, now: Instant, packet: Packet, size: Bytes) {
        self.run(now);
        self.network.send(now, self.route, packet, size, packet.number);
        self.network.check_conservation().unwrap();
    }

    fn apply(&mut self, now: Instant, change: Change) {
        self.run(now);
        self.network.apply(now, self.link, change).unwrap();
        self.network.check_conservation().unwrap();
    }

    fn run(&mut self, end: Instant) {
        while let Some(now) = self.network.next_time().filter(|&now| now <= end) {
            while let Some(output) = self.network.poll(now) {
                self.outputs.push(output);
            }
            self.network.check_conservation().unwrap();
        }
        self.drops.extend(std::iter::from_fn(|| self.network.poll_drop()));
    }

    fn stats(&mut self, now: Instant) -> LinkStats {
        self.network.stats(now, self.link)
    }

    fn waits(&mut self, now: Instant) -> Waits {
        self.network.queue_outcome(now, self.link).waits
    }

    fn deliveries(&self) -> Vec<(Packet, Instant)> {
        let of = |output: &Output<Packet>| match output {
            Output::Delivery(Delivery { packet, at, .. }) => Some((*packet, *at)),
            Output::Departure(_) => None,
        };
        self.outputs.iter().filter_map(of).collect()
    }
}

/// Something that happens to a link, so many microseconds after the last.
#[derive(Clone, Debug)]
enum Event {
    Comes { after: u64, size: u64 },
    Changes { after: u64, change: Change },
}

fn event() -> impl Strategy<Value = Event> {
    let change = prop_oneof![
        (0..40_u64).prop_map(|mbps| Change::Rate(Rate::from_mbps(mbps))),
        (0..20_u64).prop_map(|ms| Change::Delay(Duration::from_millis(ms))),
        Just(Change::Down),
        Just(Change::Blackhole),
        Just(Change::Restore),
    ];
    prop_oneof![
        8 => (0..1500_u64, 40..1501_u64).prop_map(|(after, size)| Event::Comes { after, size }),
        1 => (0..5000_u64, change).prop_map(|(after, change)| Event::Changes { after, change }),
    ]
}

proptest! {
    /// A link that knows each departure as the packet comes, and one that chooses as the link is free, do the same
    /// where the discipline is drop-tail.
    #[test]
    fn drop_tail_is_drop_tail_either_way(
        events in prop::collection::vec(event(), 1..200),
        queue in prop_oneof![
            (0..20_u32).prop_map(QueueLimit::Packets),
            (0..20_000_u64).prop_map(|bytes| QueueLimit::Bytes(Bytes::new(bytes))),
        ],
        (jitter, reorders, notify_departure) in (0..5_u64, any::<bool>(), any::<bool>()),
    ) {
        let reordering = reorders.then_some(Reordering { probability: 0.2, extra: Duration::from_millis(3) });
        let jitter = Duration::from_millis(jitter);
        let plain = LinkConfig { queue, jitter, reordering, notify_departure, duplication: 0.1, ..twelve_mbit() };
        let chosen = LinkConfig { discipline: discipline("drop-tail", &[]), ..plain.clone() };
        let (mut early, mut late) = (Bench::new(plain), Bench::new(chosen));
        let mut now = Instant::ZERO;
        for (number, event) in events.iter().enumerate() {
            for bench in [&mut early, &mut late] {
                match event {
                    Event::Comes { after, size } => {
                        bench.send(now + Duration::from_micros(*after), packet(number as u64, 0), Bytes::new(*size));
                    }
                    Event::Changes { after, change } => {
                        bench.apply(now + Duration::from_micros(*after), change.clone());
                    }
                }
            }
            let (Event::Comes { after, .. } | Event::Changes { after, .. }) = event;
            now += Duration::from_micros(*after);
            prop_assert_eq!(early.stats(now), late.stats(now));
            prop_assert_eq!(early.waits(now), late.waits(now));
        }
        for bench in [&mut early, &mut late] {
            bench.apply(now, Change::Restore);
            bench.apply(now, Change::Rate(Rate::from_mbps(1)));
            bench.run(now + Duration::from_secs(10));
            // A link that goes down tells of all packets at one time, each kind in an order of its own.
            bench.drops.sort_by_key(|drop| (drop.at, drop.tag));
            bench.outputs.sort_by_key(|output| match output {
                Output::Departure(departure) => (departure.at, 0, departure.tag),
                Output::Delivery(delivery) => (delivery.at, 1, delivery.tag),
            });
        }
        prop_assert_eq!(&early.outputs, &late.outputs);
        prop_assert_eq!(&early.drops, &late.drops);
    }

    /// Packets that come in go out, are dropped or are inside, whatever the discipline and whatever happens to the
    /// link.
    #[test]
    fn nothing_is_lost_unseen(events in prop::collection::vec(event(), 1..100), queue in 1..20_u32) {
        for entry in QUEUES {
            let queue = QueueLimit::Packets(queue);
            let mut bench = Bench::new(LinkConfig { queue, discipline: discipline(&entry.name, &[]), ..twelve_mbit() });
            let mut now = Instant::ZERO;
            for (number, event) in events.iter().enumerate() {
                match event {
                    Event::Comes { after, size } => {
                        now += Duration::from_micros(*after);
                        let ecn = Ecn::from_bits(number as u8);
                        let packet = Packet { ecn, ..packet(number as u64, number as u64 % 3) };
                        bench.send(now, packet, Bytes::new(*size));
                    }
                    Event::Changes { after, change } => {
                        now += Duration::from_micros(*after);
                        bench.apply(now, change.clone());
                    }
                }
            }
            bench.apply(now, Change::Restore);
            bench.apply(now, Change::Rate(Rate::from_mbps(1)));
            bench.run(now + Duration::from_secs(10));
            let stats = bench.stats(now + Duration::from_secs(10));
            prop_assert_eq!((stats.queued, stats.in_flight), (0, 0), "{}", entry.name);
            prop_assert_eq!(stats.offered, stats.delivered + stats.dropped.total(), "{}", entry.name);
            prop_assert_eq!(bench.drops.len() as u64, stats.dropped.total(), "{}", entry.name);
        }
    }
}

/// A hundred packets of one flow wait; one of another, which comes last, arrives as soon as the turn of the first is
/// over.
#[test]
fn a_thin_flow_passes_a_queue() {
    for (name, expected) in [("drop-tail", ms(105)), ("fq-codel", us(6800)), ("fq", us(6800))] {
        let mut bench = Bench::with(name, &[]);
        (0..99).for_each(|number| bench.send(ms(0), packet(number, 1), FULL));
        bench.send(us(500), packet(99, 2), Bytes::new(1200));
        bench.run(ms(200));
        let (_, at) = *bench.deliveries().iter().find(|(packet, _)| packet.number == 99).unwrap();
        // fq-codel and fq: the first flow's turn is over after its second packet, or its tenth.
        let turns = Duration::from_millis(match name {
            "fq-codel" => 1,
            "fq" => 10,
            _ => 0,
        });
        let expected = if name == "drop-tail" { us(99_000 + 800 + 5000) } else { expected + turns };
        assert_eq!(at, expected, "{name}");
    }
}

/// A link that has nothing in service wakes up when the shaper lets the next packet go.
#[test]
fn a_shaper_holds_packets_beside_an_idle_link() {
    let mut bench = Bench::with("token-bucket", &[("rate", 1.2), ("burst", 1514.0)]);
    (0..3).for_each(|number| bench.send(ms(0), packet(number, 0), FULL));
    bench.run(ms(100));
    // 10 ms for the tokens of a packet, of which 14 bytes were left over.
    let spare = |packets: u64| ms(packets * 10) - Duration::from_nanos(93_333);
    let took = Duration::from_millis(6);
    let times: Vec<Instant> = bench.deliveries().into_iter().map(|(_, at)| at).collect();
    assert_eq!(times, [ms(0) + took, spare(1) + Duration::from_nanos(0) + took, spare(2) + took]);
}

/// CoDel marks the packets of transports that know marks, and drops others; the link counts both.
#[test]
fn marks_arrive() {
    for ecn in [Ecn::Ect0, Ecn::NotEct] {
        let mut bench = Bench::new(LinkConfig {
            queue: QueueLimit::Packets(1000),
            discipline: discipline("codel", &[]),
            ..twelve_mbit()
        });
        for number in 0..400 {
            bench.send(us(number * 800), Packet { ecn, ..packet(number, 0) }, FULL);
        }
        bench.run(ms(1000));
        let stats = bench.stats(ms(1000));
        let marked = bench.deliveries().iter().filter(|(packet, _)| packet.ecn == Ecn::Ce).count() as u64;
        assert_eq!(stats.marked, marked);
        match ecn {
            Ecn::Ect0 => assert!(marked > 3 && stats.dropped.early == 0, "{stats:?}"),
            _ => assert!(marked == 0 && stats.dropped.early > 3, "{stats:?}"),
        }
    }
}

/// Packets 1 ms of service apart wait as many milliseconds as there are before them; drops and marks belong to the flow
/// that met them.
#[test]
fn waits_are_counted_by_flow() {
    let mut bench = Bench::with("drop-tail", &[]);
    (0..100).for_each(|number| bench.send(ms(0), packet(number, number % 4 / 3), FULL));
    bench.send(ms(0), packet(100, 7), FULL);
    bench.run(ms(300));
    let outcome = bench.network.queue_outcome(ms(300), bench.link);
    let near = |got: Duration, ms: f64| (got.as_millis_f64() - ms).abs() <= ms / 64.0;
    assert!(near(outcome.waits.p50, 49.0) && near(outcome.waits.p99, 98.0), "{:?}", outcome.waits);
    assert_eq!((outcome.waits.packets, outcome.waits.max), (100, Duration::from_millis(99)));
    let by_flow: Vec<_> = outcome.flows.iter().map(|flow| (flow.waits.packets, flow.dropped_full)).collect();
    assert_eq!(by_flow, [(75, 0), (25, 0), (0, 1)]);
    assert!(outcome.others.is_none() && near(outcome.flows[1].waits.p50, 51.0), "{:?}", outcome.flows[1]);
}

/// A queue of 20 ms drops what would wait longer, before and after a change of the rate: 21 packets at 12 Mbit/s, and
/// at 6 Mbit/s 11. With a discipline of its own the link holds what it sends in 20 ms, the packet in service included.
#[test]
fn a_queue_in_time_follows_the_rate() {
    for (discipline, slow, fast) in [(None, 11, 21), (discipline("codel", &[]), 10, 20)] {
        let queue = QueueLimit::Time(Duration::from_millis(20));
        let mut bench = Bench::new(LinkConfig { queue, discipline, ..twelve_mbit() });
        (0..100).for_each(|number| bench.send(ms(0), packet(number, 0), FULL));
        assert_eq!(bench.stats(ms(0)).queued, fast);
        bench.apply(ms(50), Change::Rate(Rate::from_mbps(6)));
        (0..100).for_each(|number| bench.send(ms(50), packet(number, 0), FULL));
        assert_eq!(bench.stats(ms(50)).queued, slow);
        assert_eq!(bench.stats(ms(50)).dropped.queue, 200 - u64::from(slow + fast));
        assert!(bench.waits(ms(500)).max <= Duration::from_millis(20));
    }
}
