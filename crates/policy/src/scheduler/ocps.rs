//! OCPS-r, offset compensation: FPS, and an offset learnt from whether the last round still arrived out of order;
//! reconstructed.
//!
//! D. Ni, K. Xue, P. Hong, H. Zhang, H. Lu. *OCPS: Offset Compensation based Packet Scheduling Mechanism for Multipath
//! TCP.* IEEE ICC 2015. Known to us from its abstract.
//!
//! A slow subflow `s` starts `max(0, N + d_s)` segments into the unsent data, where `N` is what FPS expects the faster ones to
//! deliver meanwhile (see `fps`), and `d_s` follows from what the receiver had when its data arrived: half of what was missing
//! before them is taken off, half of what had overtaken them is added.
//!
//! Reconstructed (reference section 3.14): all but the idea, that an offset to the forecast of the next round is learnt
//! from SACK. MPTCP has no SACK at the data level; what stands in its place is in the module `feedback`. The model is FPS
//! with its switches (A-T `rtt`, A-PHASE `phase_aware`).

use super::feedback::Feedback;
use super::flag;
use super::prospects::Prospects;
use super::skip::{Reserve, SkipAhead, whole_segments};
use crate::forecast::{Conditions, Forecast, Forecaster, Fps};
use crate::registry::{Parameter, Params};
use crate::{Event, SubflowView, View};
use anabranch_units::{Bytes, Instant};

/// A forecast over half the slow subflow's RTT, or all of it, and what has been learnt of its error.
pub(super) struct Compensated<F> {
    prospects: Prospects<F>,
    feedback: Feedback,
    /// The horizon is the whole RTT.
    rtt: bool,
}

impl<F: Forecast> Compensated<F> {
    /// With this forecast and the switches from `parameters`.
    pub(super) fn new(forecast: F, parameters: &Params) -> Self {
        let prospects = Prospects::new(forecast, parameters.flag(PHASE_AWARE), |fast, _| Conditions::of(fast));
        Compensated { prospects, feedback: Feedback::default(), rtt: parameters.flag(RTT) }
    }
}

/// OCPS with the switches from `parameters`.
pub(super) fn scheduler(parameters: &Params) -> SkipAhead<Compensated<Forecaster<Fps>>> {
    SkipAhead(Compensated::new(Forecaster::new(Fps::default()), parameters))
}

impl<F: Forecast + Send> Reserve for Compensated<F> {
    fn reserve(&mut self, now: Instant, slow: &SubflowView, view: &View<'_>) -> Bytes {
        let horizon = if self.rtt { slow.srtt } else { slow.srtt / 2 };
        let expected = self.prospects.delivered(now, slow, view, horizon);
        whole_segments(expected + self.feedback.correction(slow), slow.mss)
    }

    fn look(&mut self, now: Instant, view: &View<'_>) {
        self.prospects.look(now, view);
        self.feedback.look(view);
    }

    fn observe(&mut self, now: Instant, event: &Event) {
        self.feedback.observe(now, event);
    }
}

pub(super) const RTT: &str = "rtt";
pub(super) const PHASE_AWARE: &str = "phase_aware";
/// What can be set.
pub(super) const PARAMETERS: &[Parameter] = &[
    flag(RTT, "the horizon is the slow subflow's whole SRTT instead of half of it (A-T)", false),
    flag(PHASE_AWARE, "forecasts begin in the round under way instead of with a fresh window (A-PHASE)", false),
];
