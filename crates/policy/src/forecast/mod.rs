//! Forecasts: how many segments a TCP subflow is expected to deliver within a given time.
//!
//! Schedulers that look ahead (FPS, F2P-DPS, DPSAF, LATE) put data on a slow subflow behind what the faster ones will
//! have delivered by then. They differ only in what may happen in one round trip, so each is a [`Model`] that lists the
//! outcomes of one round, and one dynamic programme, the [`Forecaster`], adds up all histories exactly.
//!
//! Windows are whole segments. A round begins with a full window at the decision instant, its data arrive half a round
//! trip later and the next round begins with its ACKs. Losses are independent of each other.

mod conditions;
mod dpsaf;
mod f2p;
mod f2p_printed;
mod forecaster;
mod fps;
mod kept;
mod late;
mod loss;
pub(crate) mod number;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod properties_f2p;
mod window;

pub use conditions::Conditions;
pub use dpsaf::Dpsaf;
pub use f2p::{F2p, F2pSwitches, delivery_time, mean_timeout};
pub use f2p_printed::{F2pPrinted, printed_delivery_time};
pub use forecaster::{Forecaster, MAX_ROUNDS};
pub use fps::Fps;
pub use kept::Kept;
pub use late::{Late, Later, Switches};
pub use loss::LossEstimate;
pub use window::{Window, grow};

use anabranch_units::Duration;

/// Number of segments that a subflow is expected to deliver.
pub trait Forecast {
    /// Expected number of segments that reach the peer within `horizon`, if a full window leaves now and each round
    /// after it as soon as it may.
    fn expected(&mut self, horizon: Duration, conditions: &Conditions) -> f64;
}

/// Fewer segments than this above the lost ones do not make three duplicate ACKs (RFC 5681 §3.2).
const DUPLICATE_ACKS: u32 = 3;
/// Windows whose odds a model keeps.
const KEPT_WINDOWS: usize = 256;

/// One round of TCP as a scheduler's paper sees it.
pub trait Model {
    /// A forecast for a subflow in these conditions begins.
    fn begin(&mut self, conditions: &Conditions);

    /// Duration of the timeout of an [`Outcome`]; not zero.
    fn timeout(&self) -> Duration;

    /// Tells `outcome` everything that may come of sending all of `window` when `left` remains until the horizon. At
    /// least half an RTT does. The probabilities sum to one; outcomes that cannot happen may be left out.
    fn round(&mut self, window: Window, left: Duration, outcome: impl FnMut(Outcome));

    /// The answer of a paper's literal reading that is no mean over histories.
    fn beside_histories(&mut self, _horizon: Duration, _conditions: &Conditions) -> Option<f64> {
        None
    }
}

/// One way a round may end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    /// Probability, given the round.
    pub probability: f64,
    /// Expected number of segments that arrive before the horizon, given this outcome.
    pub delivered: f64,
    /// Weight of later rounds: the probability again, unless a literal reading of a paper omits it.
    pub weight: f64,
    /// Round trips until the next round begins.
    pub rounds: u32,
    /// True if a timeout passes as well. A round takes time: without one, `rounds` is not zero.
    pub timeout: bool,
    /// Window of the next round.
    pub next: Window,
}

impl Outcome {
    /// One after which later rounds count as often as they happen.
    pub fn new(probability: f64, delivered: f64, rounds: u32, timeout: bool, next: Window) -> Self {
        Outcome { probability, delivered, weight: probability, rounds, timeout, next }
    }
}
