//! Runs of the simulator: bursts over two paths, with some schedulers of the catalogue.
//!
//! ```text
//! cargo run --example simulate
//! ```

use anabranch::policy::Catalogue;
use anabranch::prelude::*;
use std::sync::Arc;

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let link = |mbps, ms| LinkConfig::new(Rate::from_mbps(mbps), Duration::from_millis(ms));
    let path = |name, mbps, ms| PathSpec::new(name, link(mbps, ms), link(mbps, ms));
    let catalogue = Catalogue::default();
    for name in ["round-robin", "min-rtt", "blest", "redundant"] {
        let entry = catalogue.schedulers.find(name)?.clone();
        let policies = Policies { scheduler: Arc::new(move || entry.build_default()), ..Policies::default() };
        let host = HostSpec::new(Profile::tcp(), policies);
        let mut spec = Spec::new(vec![path("wlan", 20, 10), path("lte", 3, 60)], host.clone(), host);
        spec.workloads = vec![Workload::Bursts {
            direction: Direction::Down,
            size: Bytes::new(40_000),
            count: 20,
            interval: Duration::from_millis(500),
            start: Duration::ZERO,
            warm_up: Bytes::new(200_000),
        }];
        let outcome = run(&spec)?;
        let carried: Vec<_> = outcome.connections[0].subflows.iter().map(|it| it.stats.bytes_first_sent).collect();
        let slowest =
            outcome.transfers.iter().filter_map(|it| Some(it.finished?.since(it.started))).max().unwrap_or_default();
        println!("{name}: slowest burst {:.0} ms, bytes by subflow {carried:?}", 1e3 * slowest.as_secs_f64());
    }
    Ok(())
}
