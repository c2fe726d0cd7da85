//! Rules that coupled algorithms share: which subflows count in their sums, and with which window (A-COUPLED).

use super::{Capabilities, Flow};
use crate::registry::{Flag, Params, flag};
use anabranch_units::Window;

/// A subflow that counts. Rates and their powers are in bytes per nanosecond: the unit of time cancels in every use.
#[derive(Clone, Copy)]
pub(super) struct Member {
    /// Its place among the flows.
    pub(super) on: usize,
    /// Its window, as [`window`] says.
    pub(super) window: Window,
    /// Smoothed round-trip time \[ns\].
    pub(super) rtt: f64,
}

impl Member {
    /// Window per round trip.
    pub(super) fn rate(&self) -> f64 {
        self.window.as_f64() / self.rtt
    }
}

/// Established, measured, neither failed nor an idle backup, in the order of the flows.
pub(super) fn members(flows: &[Flow]) -> impl Iterator<Item = Member> + Clone + '_ {
    flows.iter().enumerate().filter(|(_, flow)| flow.counted).filter_map(|(on, flow)| {
        // No sample is shorter than a nanosecond.
        let rtt = flow.srtt?.as_nanos().max(1) as f64;
        Some(Member { on, window: window(flow), rtt })
    })
}

/// The window others couple to: in recovery it is the threshold.
pub(super) fn window(flow: &Flow) -> Window {
    if flow.recovering && flow.ssthresh.is_finite() { flow.ssthresh } else { flow.cwnd }
}

/// Growth of NewReno: a subflow outside the sums is uncoupled.
pub(super) fn alone(flow: &Flow, acked: Window) -> Window {
    acked.scaled(flow.segment(), flow.cwnd)
}

/// Capabilities of a coupled algorithm: linked slow start if [`LISA`] is set.
pub(super) fn linked(params: &Params) -> Capabilities {
    Capabilities { linked_slow_start: LISA.of(params), ..Capabilities::default() }
}

/// Switches linked slow start on; see [`super::lisa`].
pub(super) const LISA: Flag =
    flag("lisa", "a joining subflow takes its first window from the one with the largest in slow start (LISA)", false);
