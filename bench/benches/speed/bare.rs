//! The floor: R1's links and their event queue with a number for a packet, and a window in place of a protocol.

use crate::r1::R1;
use anabranch_net::{LinkId, Network, Output, RouteId};
use anabranch_paths::PathSpec;
use anabranch_units::{Bytes, Instant, Seed};

const DATA: Bytes = Bytes::new(1500);
const ACK: Bytes = Bytes::new(72);

/// Returns nanoseconds of wall time per data packet, over `packets`: each second one is answered, and each answer lets
/// two more leave.
pub fn nanos(packets: u64) -> f64 {
    let spec = R1::ONE.spec(1);
    let mut network = Network::new();
    let ways: Vec<[RouteId; 2]> = spec.network.paths.iter().map(|path| way(&mut network, path)).collect();
    let begin = std::time::Instant::now();
    for (way, path) in ways.iter().zip(&spec.network.paths) {
        let rate = path.down.service.mean_rate();
        let window = rate.bytes_in(path.down.delay * 3).get() / DATA.get();
        (0..window).for_each(|n| network.send(Instant::ZERO, way[0], n as u32, DATA, 0));
    }
    let mut delivered = 0;
    while delivered < packets
        && let Some(now) = network.next_time()
    {
        while let Some(output) = network.poll(now) {
            let Output::Delivery(delivery) = output else { continue };
            let way = ways.iter().find(|way| way.contains(&delivery.route)).expect("it took one of the routes");
            if delivery.route == way[1] {
                (0..2).for_each(|n| network.send(now, way[0], n, DATA, 0));
            } else {
                delivered += 1;
                if delivery.packet % 2 == 1 {
                    network.send(now, way[1], 0, ACK, 0);
                }
            }
        }
    }
    assert_eq!(delivered, packets, "loss of 1e-4 leaves enough under way");
    begin.elapsed().as_nanos() as f64 / packets as f64
}

fn way(network: &mut Network<u32>, path: &PathSpec) -> [RouteId; 2] {
    [&path.down, &path.up].map(|config| {
        let links: [LinkId; 1] = [network.add_link(config.clone(), &path.name, Seed(1)).expect("R1's links are sound")];
        network.add_route(&links).expect("a route of one link")
    })
}
