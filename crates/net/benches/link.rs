//! Cost of a packet per link: `cargo bench -p anabranch-net`. Prints the best and the median of several rounds in
//! nanoseconds; nothing is asserted, for machines differ.

use anabranch_net::{LinkConfig, LossModel, Network, Output, QueueLimit, Reordering, Service, Trace, trace};
use anabranch_units::{Bytes, Duration, Instant, Rate, Seed};
use std::hint::black_box;

/// Payload as large as a handle plus the state that a simulator keeps beside it.
type Packet = [u64; 4];

fn main() {
    let plain = LinkConfig::new(Rate::from_mbps(100), Duration::from_millis(10));
    let lossy = LinkConfig { loss: LossModel::Bernoulli { p: 0.01 }, ..plain.clone() };
    let gilbert = LossModel::GilbertElliott { p_good_bad: 0.01, p_bad_good: 0.2, loss_good: 0.0, loss_bad: 0.5 };
    let bursty = LinkConfig { loss: gilbert, jitter: Duration::from_millis(2), ..plain.clone() };
    let lte = Trace::parse(&trace::synthetic_lte(1, &trace::LteParams::default())).expect("it writes what we read");
    let recorded = LinkConfig { service: Service::from(lte), ..plain.clone() };
    let reordering = Some(Reordering { probability: 0.01, extra: Duration::from_millis(1) });
    let reordered = LinkConfig { reordering, ..plain.clone() };
    let noticed = LinkConfig { notify_departure: true, ..plain.clone() };

    for (name, config, hops, routes) in [
        ("one link", &plain, 1, 1),
        ("two links in a row", &plain, 2, 1),
        ("8 routes of two links", &plain, 2, 8),
        ("64 routes of two links", &plain, 2, 64),
        ("1 % loss", &lossy, 1, 1),
        ("Gilbert-Elliott and jitter", &bursty, 1, 1),
        ("LTE trace", &recorded, 1, 1),
        ("reordering", &reordered, 1, 1),
        ("departure notices", &noticed, 1, 1),
    ] {
        let mut rounds: Vec<f64> = (0..9).map(|_| nanos_per_packet_and_link(config, hops, routes)).collect();
        rounds.sort_by(f64::total_cmp);
        println!("{name:28} best {:6.1}  median {:6.1} ns per packet and link", rounds[0], rounds[4]);
    }
}

/// Keeps 50 packets on each route, as a window would: each delivery sends the next packet.
fn nanos_per_packet_and_link(config: &LinkConfig, hops: usize, routes: usize) -> f64 {
    let mut network: Network<Packet> = Network::new();
    let config = LinkConfig { queue: QueueLimit::Packets(1000), ..config.clone() };
    let ids: Vec<_> = (0..routes)
        .map(|route| {
            let links: Vec<_> = (0..hops)
                .map(|hop| network.add_link(config.clone(), &format!("{route}/{hop}"), Seed(1)).expect("it is valid"))
                .collect();
            network.add_route(&links).expect("it has links")
        })
        .collect();
    let size = Bytes::new(1500);
    let start = std::time::Instant::now();
    let mut now = Instant::ZERO;
    for _ in 0..50 {
        for &route in &ids {
            network.send(now, route, [0; 4], size, 0);
        }
    }
    let mut delivered = 0;
    while delivered < PACKETS {
        match network.poll(now) {
            Some(Output::Delivery(delivery)) => {
                delivered += 1;
                network.send(now, delivery.route, black_box(delivery.packet), size, delivered);
            }
            Some(Output::Departure(departure)) => {
                black_box(departure);
            }
            // Loss takes packets out of the loop; new ones keep it going.
            None => match network.next_time() {
                Some(next) => now = next,
                None => (0..50).for_each(|_| network.send(now, ids[0], [0; 4], size, 0)),
            },
        }
    }
    start.elapsed().as_nanos() as f64 / (PACKETS as f64 * hops as f64)
}

const PACKETS: u64 = 1_000_000;
