//! Forecasts: how many segments a TCP subflow is expected to deliver within a given time.
//!
//! Schedulers that look ahead (FPS, F2P-DPS, DPSAF, LATE) put data on a slow subflow behind what the faster ones will
//! have delivered by then. They differ only in what may happen in one round trip, so each is a [`Model`] that lists the
//! outcomes of one round, and one dynamic programme, the [`Forecaster`], adds up all histories exactly.
//!
//! Windows are whole segments. A round begins with a full window at the decision instant, its data arrive half a round
//! trip later and the next round begins with its ACKs. Losses are independent of each other.

mod forecaster;
mod fps;
mod late;
mod loss;
pub(crate) mod number;
#[cfg(test)]
mod properties;
mod window;

pub use forecaster::{Forecaster, MAX_ROUNDS};
pub use fps::Fps;
pub use late::{Late, Switches};
pub use loss::LossEstimate;
pub use window::{Window, grow};

use anabranch_units::Duration;

/// What a forecast knows about one subflow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Conditions {
    /// Round-trip time. Zero counts as a nanosecond.
    pub rtt: Duration,
    /// Retransmission timeout without backoff. Less than the RTT counts as the RTT.
    pub rto: Duration,
    /// Congestion window in whole segments, all of it free. Zero counts as one.
    pub cwnd: u32,
    /// Slow-start threshold in segments; `None` before the first loss.
    pub ssthresh: Option<u32>,
    /// Probability that a segment is lost, 0 to 1.
    pub loss: f64,
    /// The largest window in segments that the path or the peer admits, where known. No later round exceeds it.
    pub max_cwnd: Option<u32>,
}

/// One round of TCP as a scheduler's paper sees it.
pub trait Model {
    /// A forecast for a subflow in these conditions begins.
    fn begin(&mut self, conditions: &Conditions);

    /// How long the timeout of an [`Outcome`] takes; not zero.
    fn timeout(&self) -> Duration;

    /// Tells `outcome` everything that may come of sending all of `window` when `left` remains until the horizon. At
    /// least half an RTT does. The probabilities sum to one; outcomes that cannot happen may be left out.
    fn round(&mut self, window: Window, left: Duration, outcome: impl FnMut(Outcome));
}

/// One way a round may end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    /// Probability, given the round.
    pub probability: f64,
    /// Expected number of segments that arrive before the horizon, given this outcome.
    pub delivered: f64,
    /// Round trips until the next round begins.
    pub rounds: u32,
    /// Whether a timeout passes as well. A round takes time: without one, `rounds` is not zero.
    pub timeout: bool,
    /// What the next round sends.
    pub next: Window,
}

impl Conditions {
    /// The same with every value in the range its field states.
    fn normalised(self) -> Self {
        let rtt = self.rtt.max(Duration::from_nanos(1));
        Conditions {
            rtt,
            rto: self.rto.max(rtt),
            cwnd: self.cwnd.max(1),
            ssthresh: self.ssthresh,
            loss: if self.loss > 0.0 { self.loss.min(1.0) } else { 0.0 },
            max_cwnd: self.max_cwnd.map(|max| max.max(1)),
        }
    }
}
