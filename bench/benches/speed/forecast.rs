//! Cost of a forecast: nanoseconds per evaluation, by conditions and horizon in round trips.

use crate::figure::Spread;
use anabranch_policy::forecast::{Conditions, Forecast, Forecaster, Fps, Late, Model, Switches};
use anabranch_units::Duration;
use std::hint::black_box;

const RTT: Duration = Duration::from_millis(10);

/// One line of the table.
pub struct Line {
    /// Window, threshold and loss.
    pub conditions: &'static str,
    /// Horizon in round trips.
    pub rounds: u64,
    /// LATE's model, asked again with the loss rate it was asked with before.
    pub late: Spread,
    /// The same with a loss rate that moves from one evaluation to the next.
    pub late_new_loss: Spread,
    /// The model of FPS.
    pub fps: Spread,
}

/// The whole table.
pub fn all() -> Vec<Line> {
    let mut lines = Vec::new();
    for (name, cwnd, ssthresh, loss) in
        [("cwnd 10, ssthresh 10, 1 %", 10, Some(10), 0.01), ("cwnd 100, ssthresh 50, 0.1 %", 100, Some(50), 0.001)]
    {
        for rounds in [1, 5, 20, 100] {
            let conditions = Conditions { rtt: RTT, rto: RTT * 21, cwnd, ssthresh, loss, max_cwnd: Some(2000) };
            let late = || Forecaster::new(Late::new(Switches::default()));
            lines.push(Line {
                conditions: name,
                rounds,
                late: nanos(late(), RTT * rounds, conditions, 0.0),
                late_new_loss: nanos(late(), RTT * rounds, conditions, 1e-9),
                fps: nanos(Forecaster::new(Fps::default()), RTT * rounds, conditions, 0.0),
            });
        }
    }
    lines
}

/// The loss rate moves by `step` from one evaluation to the next.
fn nanos<M: Model>(mut forecaster: Forecaster<M>, horizon: Duration, mut conditions: Conditions, step: f64) -> Spread {
    Spread::per_call(1, || {
        conditions.loss += step;
        black_box(forecaster.expected(black_box(horizon), black_box(&conditions)));
    })
}
