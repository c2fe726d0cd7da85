//! What a forecast costs: nanoseconds per evaluation, by horizon in round trips.
//!
//! `cargo bench -p anabranch-policy --bench forecast`

use anabranch_policy::forecast::{Conditions, Forecaster, Fps, Late, Model, Switches};
use anabranch_units::Duration;
use std::hint::black_box;
use std::time::Instant;

const RTT: Duration = Duration::from_millis(10);

fn main() {
    println!("{:34}{:>8}{:>14}{:>14}{:>14}", "", "T/RTT", "same loss", "new loss", "fps");
    for (name, cwnd, ssthresh, loss) in [
        ("cwnd 10, ssthresh 10, 1 %", 10, Some(10), 0.01),
        ("cwnd 10, ssthresh 16, 5 %", 10, Some(16), 0.05),
        ("cwnd 3, ssthresh 8, 10 %", 3, Some(8), 0.1),
        ("cwnd 100, ssthresh 50, 0.1 %", 100, Some(50), 0.001),
        ("cwnd 10, slow start to 2000, 0.1 %", 10, None, 0.001),
    ] {
        for half_rounds in [1, 2, 4, 10, 20, 40, 100, 128, 400] {
            let conditions = Conditions { rtt: RTT, rto: RTT * 21, cwnd, ssthresh, loss, max_cwnd: Some(2000) };
            let horizon = RTT * half_rounds / 2;
            let late = || Forecaster::new(Late::new(Switches::default()));
            let same = nanos(late(), horizon, conditions, 0.0);
            let new = nanos(late(), horizon, conditions, 1e-9);
            let fps = nanos(Forecaster::new(Fps::default()), horizon, conditions, 0.0);
            let rounds = half_rounds as f64 / 2.0;
            println!("{name:34}{rounds:>8}{same:>11.0} ns{new:>11.0} ns{fps:>11.0} ns");
        }
    }
}

/// Best of several batches, each at least a few milliseconds long. The loss rate moves by `step` from one evaluation to
/// the next.
fn nanos<M: Model>(mut forecaster: Forecaster<M>, horizon: Duration, mut conditions: Conditions, step: f64) -> f64 {
    let mut repeats = 1;
    let mut best = f64::INFINITY;
    for _ in 0..30 {
        let start = Instant::now();
        for _ in 0..repeats {
            conditions.loss += step;
            black_box(forecaster.expected(black_box(horizon), black_box(&conditions)));
        }
        let took = start.elapsed().as_nanos() as f64;
        if took < 2e6 {
            repeats *= 2;
        } else {
            best = best.min(took / f64::from(repeats));
        }
    }
    best
}
