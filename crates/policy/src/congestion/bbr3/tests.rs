//! The draft's "BBR Example Test Cases" as far as one flow over a small bottleneck shows them; the rest is in
//! `crates/sim/tests/policies/congestion.rs`.

use super::bottleneck::{Bottleneck, FLOW, MSS};
use anabranch_units::Duration;

#[test]
fn explore() {
    let mut it = Bottleneck::new(10.0, 40, 1.0);
    it.run(12.0);
    println!("{:?}", it.log.iter().map(|(at, p)| format!("{:.2} {p}", at.as_secs_f64())).collect::<Vec<_>>());
    println!("{:?}", it.control.variables(FLOW));
    println!("{} {} {}", it.delivered as f64 * 8e-6 / 12.0, it.dropped, it.cwnd() / it.bdp());
    let _ = (MSS, Duration::ZERO);
}
