//! The two kinds of congestion control: by rules of a window, and by a model of the path.

use super::{Ack, Flow, LostSegment, Model, WindowBased};
use anabranch_units::{Duration, Instant, Window};

/// A congestion control of either kind.
pub enum CongestionControl {
    /// Grows and falls by rules, most of which the [`Controller`](super::Controller) keeps for all.
    WindowBased(Box<dyn WindowBased>),
    /// Sets window and pacing rate by a model of the path.
    ModelBased(Box<dyn ModelBased>),
}

/// Sets windows by a model of each path, at every ACK, in recovery as well. Slow start, threshold, undo, idle restart,
/// the cwnd-limited rule and penalisation do not apply. Flows are not coupled.
pub trait ModelBased: Send {
    /// The window after an ACK that delivers something; at least a segment of it counts.
    fn on_ack(&mut self, now: Instant, flow: &Flow, ack: &Ack) -> Window;
    /// The model of the path. `srtt` is known also before the first ACK of data.
    fn model(&self, flow: &Flow, srtt: Option<Duration>) -> Model;
    /// A segment was found lost. Comes after [`ModelBased::on_fast_retransmit`] or [`ModelBased::on_rto`] where a
    /// recovery begins with it, and before [`ModelBased::on_ack`] of the ACK that showed it.
    fn on_lost(&mut self, _now: Instant, _flow: &Flow, _lost: &LostSegment) {}
    /// Fast recovery begins; the window stays until the next ACK has been counted.
    fn on_fast_retransmit(&mut self, now: Instant, flow: &Flow);
    /// A mark (ECN), whose bytes are in the ACK that is counted next. Returns true if it is answered: then the next to
    /// be told is one of the round trip after.
    fn on_mark(&mut self, _now: Instant, _flow: &Flow) -> bool {
        false
    }
    /// A timeout: the window falls to one segment.
    fn on_rto(&mut self, now: Instant, flow: &Flow);
    /// A timeout within a recovery, or one after another.
    fn on_rto_again(&mut self, now: Instant, flow: &Flow);
    /// All that was in flight at the loss or the timeout is acknowledged.
    fn on_recovered(&mut self, now: Instant, flow: &Flow);
    /// The latest loss was none.
    fn on_spurious(&mut self, now: Instant, flow: &Flow);
    /// Data leave although nothing was in flight. Returns the window to begin with, if it is larger than before.
    fn on_restart(&mut self, now: Instant, flow: &Flow) -> Option<Window>;
    /// Name of the phase of its state machine, in kebab-case; `None` without one.
    fn phase(&self, _flow: &Flow) -> Option<&'static str> {
        None
    }
    /// Variables of the model, for test benches: names in kebab-case as in the source of the algorithm. Volumes are in
    /// bytes, rates in bytes per second, times in seconds; questions are 0 or 1. A bound that is not set is infinite.
    fn variables(&self, _flow: &Flow) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

impl CongestionControl {
    /// Wraps a window-based algorithm.
    pub fn window_based(algorithm: impl WindowBased + 'static) -> Self {
        CongestionControl::WindowBased(Box::new(algorithm))
    }

    /// Wraps a model-based algorithm.
    pub fn model_based(algorithm: impl ModelBased + 'static) -> Self {
        CongestionControl::ModelBased(Box::new(algorithm))
    }

    /// Returns true if it is model-based.
    pub fn is_model_based(&self) -> bool {
        matches!(self, CongestionControl::ModelBased(_))
    }

    pub(super) fn on_rto_again(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        match self {
            CongestionControl::WindowBased(algorithm) => algorithm.on_rto_again(now, on, flows),
            CongestionControl::ModelBased(algorithm) => algorithm.on_rto_again(now, &flows[on]),
        }
    }

    pub(super) fn on_recovered(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        match self {
            CongestionControl::WindowBased(algorithm) => algorithm.on_recovered(now, on, flows),
            CongestionControl::ModelBased(algorithm) => algorithm.on_recovered(now, &flows[on]),
        }
    }

    pub(super) fn on_spurious(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        match self {
            CongestionControl::WindowBased(algorithm) => algorithm.on_spurious(now, on, flows),
            CongestionControl::ModelBased(algorithm) => algorithm.on_spurious(now, &flows[on]),
        }
    }

    /// Returns the window that a model begins with again.
    pub(super) fn on_restart(&mut self, now: Instant, on: usize, flows: &[Flow]) -> Option<Window> {
        match self {
            CongestionControl::WindowBased(algorithm) => {
                algorithm.on_restart(now, on, flows);
                None
            }
            CongestionControl::ModelBased(algorithm) => algorithm.on_restart(now, &flows[on]),
        }
    }

    /// Resets the state of a window-based algorithm; a model-based one has none to reset.
    pub(super) fn on_reset(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        if let CongestionControl::WindowBased(algorithm) = self {
            algorithm.on_reset(now, on, flows);
        }
    }

    /// Tells a window-based algorithm that its sums over flows are out of date; a model-based one has none.
    pub(super) fn on_flows_changed(&mut self) {
        if let CongestionControl::WindowBased(algorithm) = self {
            algorithm.on_flows_changed();
        }
    }
}
