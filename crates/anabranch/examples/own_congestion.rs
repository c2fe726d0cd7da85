//! A congestion control of one's own: it grows by one segment in each round trip, and falls to seven tenths.
//!
//! ```text
//! cargo run --example own_congestion
//! ```

use anabranch::policy::congestion::{Flow, WindowBased};
use anabranch::prelude::*;
use anabranch::units::Window;
use std::sync::Arc;

/// Additive increase, multiplicative decrease by 0.7.
struct Gentle;

impl WindowBased for Gentle {
    fn avoidance(&mut self, _now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window {
        acked.scaled(flows[on].segment(), flows[on].cwnd)
    }

    fn on_fast_retransmit(&mut self, _now: Instant, _on: usize, in_flight: Window, _flows: &[Flow]) -> Window {
        in_flight * 0.7
    }
}

/// Seconds of virtual time for a download of 3 MB over 10 Mbit/s with random losses.
fn download(policies: Policies) -> Result<f64, anabranch::sim::SpecError> {
    let mut link = LinkConfig::new(Rate::from_mbps(10), Duration::from_millis(20));
    link.loss = anabranch::net::LossModel::Bernoulli { p: 0.005 };
    let host = HostSpec::new(Profile::tcp(), policies);
    let mut spec = Spec::new(vec![PathSpec::new("lossy", link.clone(), link)], host.clone(), host);
    spec.workloads = vec![Workload::download(Bytes::new(3_000_000))];
    Ok(run(&spec)?.end.as_secs_f64())
}

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gentle = Policies { congestion: Arc::new(|| Gentle.into()), ..Policies::default() };
    let (usual, own) = (download(Policies::default())?, download(gentle)?);
    println!("LIA: {usual:.3} s, falling to seven tenths: {own:.3} s");
    Ok(())
}
