//! FPS, forward prediction scheduling: every round succeeds.
//!
//! F. H. Mirani, N. Boukhatem, M. A. Tran. *A Data-Scheduling Mechanism for Multi-Homed Mobile Terminals with Disparate
//! Link Latencies.* IEEE VTC Fall 2010. The paper is about SCTP; we take the rounds of TCP from F2P-DPS's account of
//! it.

use super::{Conditions, Model, Outcome, Window};
use anabranch_units::Duration;

/// Growth without loss.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fps {
    /// The last doubling of slow start may exceed the threshold.
    pub overshoot: bool,
}

impl Model for Fps {
    fn begin(&mut self, _conditions: &Conditions) {}

    fn timeout(&self) -> Duration {
        Duration::MAX // None ever happens.
    }

    fn round(&mut self, window: Window, _left: Duration, mut outcome: impl FnMut(Outcome)) {
        let next = window.grown(self.overshoot);
        outcome(Outcome::new(1.0, window.as_f64(), 1, false, next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::{Forecast, Forecaster};

    fn fps(horizon_ms: u64, cwnd: u32, ssthresh: Option<u32>, overshoot: bool) -> f64 {
        let conditions = Conditions {
            rtt: Duration::from_millis(100),
            rto: Duration::from_millis(300),
            cwnd,
            ssthresh,
            loss: 0.01, // to be ignored
            max_cwnd: None,
        };
        Forecaster::new(Fps { overshoot }).expected(Duration::from_millis(horizon_ms), &conditions)
    }

    #[test]
    fn counts_the_rounds_that_arrive() {
        assert_eq!(fps(49, 10, Some(16), false), 0.0);
        assert_eq!(fps(50, 10, Some(16), false), 10.0);
        assert_eq!(fps(250, 10, Some(16), false), 43.0); // 10 + 16 + 17
        assert_eq!(fps(250, 10, Some(16), true), 51.0); // 10 + 20 + 21
        assert_eq!(fps(250, 10, None, false), 70.0); // 10 + 20 + 40
    }
}
