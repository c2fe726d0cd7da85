//! Two-path MPTCP bulk over 10 and 100 Mbit/s: delivered data packets per second of wall time.
//!
//! `cargo run --release -p anabranch-sim --example bulk [SECONDS OF VIRTUAL TIME] [CONNECTIONS]`

use anabranch_engine::{Policies, Profile};
use anabranch_net::{LinkConfig, LossModel};
use anabranch_sim::{Direction, HostSpec, PathSpec, Spec, Workload, run};
use anabranch_units::{Duration, Rate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let connections = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let link = |mbps, rtt_ms: u64| LinkConfig::new(Rate::from_mbps(mbps), Duration::from_millis(rtt_ms) / 2);
    let lossy = LinkConfig { loss: LossModel::Bernoulli { p: 0.001 }, ..link(100, 50) };
    let paths = vec![PathSpec::new("slow", link(10, 20), link(10, 20)), PathSpec::new("fast", lossy, link(100, 50))];
    let host = HostSpec::new(Profile::linux(), Policies::default());
    let mut spec = Spec::new(paths, host.clone(), host);
    let bulk =
        Workload::Bulk { direction: Direction::Down, start: Duration::ZERO, duration: Duration::from_secs(seconds) };
    spec.workloads = vec![bulk; connections];
    spec.stop = Duration::from_secs(seconds + 1);

    let begin = std::time::Instant::now();
    let outcome = run(&spec)?;
    let wall = begin.elapsed().as_secs_f64();
    let bytes: u64 = outcome.transfers.iter().map(|transfer| transfer.bytes).sum();
    let goodput = bytes as f64 * 8e-6 / seconds as f64;
    let speed = outcome.packets as f64 / wall / 1e6;
    println!("{} data packets in {wall:.3} s: {speed:.2} M/s, goodput {goodput:.1} Mbit/s", outcome.packets);
    Ok(())
}
