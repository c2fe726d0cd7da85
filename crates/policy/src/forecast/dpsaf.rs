//! DPSAF: of each round the one outcome that is most likely.
//!
//! K. Xue et al. *DPSAF: Forward Prediction Based Dynamic Packet Scheduling and Adjusting With Feedback for Multipath
//! TCP in Lossy Heterogeneous Networks.* IEEE Transactions on Vehicular Technology 2018. Known to us from its abstract
//! and from LATE's account of it; the rounds are our reconstruction (A-DPSAF):
//! ```text
//! (1-l)^w ≥ 1/2   no loss           w arrive; next round after RTT with grow(w)
//! else            fast retransmit   w arrive, or w - 1 if the repair comes too late; next after 2 RTT with w/2
//! ```
//! It flips at `w* = ln 2 / -ln(1-l)`: 69 segments at 1 %, 13.5 at 5 %. Below that window this is FPS.

use super::number::powi;
use super::{Conditions, Model, Outcome, Window};
use anabranch_units::Duration;

/// The most likely outcome of each round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dpsaf {
    kept: f64,
    /// Time from sending a window until its fast retransmits have arrived.
    repair: Duration,
}

impl Model for Dpsaf {
    fn begin(&mut self, conditions: &Conditions) {
        self.kept = 1.0 - conditions.loss;
        self.repair = conditions.rtt + conditions.rtt / 2;
    }

    fn timeout(&self) -> Duration {
        Duration::MAX // None ever happens.
    }

    fn round(&mut self, window: Window, left: Duration, mut outcome: impl FnMut(Outcome)) {
        let all = window.as_f64();
        if powi(self.kept, window.cwnd()) >= 0.5 {
            return outcome(Outcome::new(1.0, all, 1, false, window.grown(false)));
        }
        let delivered = if left >= self.repair { all } else { all - 1.0 };
        outcome(Outcome::new(1.0, delivered, 2, false, window.halved()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::{Forecast, Forecaster};

    /// Computed with a loop of a few lines in Python, apart from this code: T, RTT in ms, loss, cwnd, ssthresh.
    #[test]
    fn worked_examples() {
        for (times, loss, cwnd, ssthresh, segments) in [
            ([50, 10], 0.01, 10, 10, 60.0),    // 10 + ... + 14: below w* = 69, as FPS has it
            ([50, 10], 0.01, 10, 1000, 150.0), // 10, 20, 40 and 80, whose next round would begin too late
            ([50, 80], 0.01, 40, 10, 40.0),    // one round
            ([50, 20], 0.05, 10, 10, 33.0),    // 10 + 11 + 12
            ([12, 14], 0.05, 14, 10, 13.0),    // above w* = 13.5, and no time to repair
            ([55, 13], 0.05, 14, 10, 29.0),    // 14, then 7 at 26 ms and 8 at 39 ms
            ([55, 13], 0.05, 13, 10, 34.0),    // 13, then 14 above w*, then 7 at 39 ms
            ([55, 69], 0.01, 69, 10, 68.0),
            ([55, 68], 0.01, 68, 10, 68.0), // the largest window below w*
        ] {
            let conditions = Conditions {
                rtt: Duration::from_millis(times[1]),
                rto: Duration::from_millis(300),
                cwnd,
                ssthresh: Some(ssthresh),
                loss,
                max_cwnd: None,
            };
            let got = Forecaster::new(Dpsaf::default()).expected(Duration::from_millis(times[0]), &conditions);
            assert_eq!(got, segments, "{times:?} {loss} {cwnd} {ssthresh}");
        }
    }
}
