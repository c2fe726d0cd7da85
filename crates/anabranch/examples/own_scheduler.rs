//! A packet scheduler of one's own: it waits for the subflow with the lowest RTT as long as that is worth it.
//!
//! ```text
//! cargo run --example own_scheduler
//! ```

use anabranch::policy::scheduler::Scheduler;
use anabranch::policy::{Decision, View};
use anabranch::prelude::*;
use std::sync::Arc;

/// Sends on another subflow only if the fastest would take longer with all that it has under way.
struct Patient;

impl Scheduler for Patient {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        let Some(fastest) = view.subflows.iter().min_by_key(|subflow| subflow.srtt) else { return Decision::WAIT };
        if fastest.has_room() {
            return Decision::send(fastest.id);
        }
        // The fastest needs one round trip for each window of unsent data, and one for what is under way.
        let rounds = 1 + view.unsent.get() / fastest.cwnd.get().max(1);
        let others = view.subflows.iter().filter(|subflow| subflow.has_room());
        match others.min_by_key(|subflow| subflow.srtt) {
            Some(other) if fastest.srtt * rounds > other.srtt => Decision::send(other.id),
            _ => Decision::WAIT,
        }
    }
}

/// Mean time in milliseconds that bursts of 40 kB take over paths of 20 Mbit/s and 10 ms, and 2 Mbit/s and 100 ms.
fn bursts(policies: Policies) -> Result<f64, anabranch::sim::SpecError> {
    let link = |mbps, ms| LinkConfig::new(Rate::from_mbps(mbps), Duration::from_millis(ms));
    let path = |name, mbps, ms| PathSpec::new(name, link(mbps, ms), link(mbps, ms));
    let host = HostSpec::new(Profile::tcp(), policies);
    let mut spec = Spec::new(vec![path("fast", 20, 10), path("slow", 2, 100)], host.clone(), host);
    spec.workloads = vec![Workload::Bursts {
        direction: Direction::Down,
        size: Bytes::new(40_000),
        count: 20,
        interval: Duration::from_millis(500),
        start: Duration::ZERO,
        warm_up: Bytes::new(200_000),
    }];
    let times: Vec<f64> =
        run(&spec)?.transfers.iter().filter_map(|it| Some((it.finished?.since(it.started)).as_secs_f64())).collect();
    Ok(1e3 * times.iter().sum::<f64>() / times.len() as f64)
}

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let patient = Policies { scheduler: Arc::new(|| Patient.into()), ..Policies::default() };
    let (usual, own) = (bursts(Policies::default())?, bursts(patient)?);
    println!("mean time of a burst: min-RTT {usual:.1} ms, one that waits {own:.1} ms");
    assert!(own < usual, "waiting pays where paths differ");
    Ok(())
}
