//! Pacing rate and window ("Updating Control Parameters").

use super::path::{Path, Sample};
use super::phase::{Phase, STARTUP_PACING_GAIN};
use crate::congestion::{Ack, Flow};
use anabranch_units::Duration;

/// `InitPacingRate()` for a flow that has not seen an ACK \[bytes/s\].
pub(super) fn initial_pacing(flow: &Flow, srtt: Option<Duration>) -> f64 {
    pacing_of(flow.cwnd.as_f64(), srtt)
}

/// The rate that spreads a window over a round trip, with the gain of Startup \[bytes/s\].
pub(super) fn pacing_of(cwnd: f64, srtt: Option<Duration>) -> f64 {
    STARTUP_PACING_GAIN * cwnd / srtt.unwrap_or(UNKNOWN_RTT).max(Duration::from_nanos(1)).as_secs_f64()
}

impl Path {
    /// `SetPacingRateWithGain()`.
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw * PACING_MARGIN;
        if rate > 0.0 && (self.full_bw_reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// `SetCwnd()`.
    pub(super) fn set_cwnd(&mut self, ack: &Ack, rs: &Sample) {
        let max_inflight =
            self.quantization_budget(self.bdp_multiple(self.bw, self.phase.cwnd_gain()) + self.extra_acked);
        if self.full_bw_reached {
            self.cwnd = (self.cwnd + rs.newly_acked).min(max_inflight);
        } else if self.cwnd < max_inflight || (ack.delivered as f64) < self.initial_cwnd {
            self.cwnd += rs.newly_acked;
        }
        self.cwnd = self.cwnd.max(self.min_pipe_cwnd());
        if self.phase == Phase::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd()); // BoundCwndForProbeRTT()
        }
        self.bound_cwnd_for_model();
    }

    /// `BoundCwndForModel()`.
    fn bound_cwnd_for_model(&mut self) {
        let cap = match self.phase {
            Phase::Down | Phase::Refill | Phase::Up => self.inflight_longterm,
            Phase::Cruise | Phase::ProbeRtt => self.inflight_with_headroom(),
            Phase::Startup | Phase::Drain => f64::INFINITY,
        };
        self.cwnd = self.cwnd.min(cap.min(self.inflight_shortterm).max(self.min_pipe_cwnd()));
    }

    /// `BDPMultiple()`; the initial window before there is a model.
    fn bdp_multiple(&self, bw: f64, gain: f64) -> f64 {
        match self.min_rtt {
            Some(min_rtt) if bw > 0.0 => gain * bw * min_rtt.as_secs_f64(),
            _ => self.initial_cwnd,
        }
    }

    /// `QuantizationBudget()`, with `UpdateOffloadBudget()`: three quanta.
    fn quantization_budget(&self, inflight_cap: f64) -> f64 {
        let quantum = if self.pacing_rate < SLOW { self.mss } else { 2.0 * self.mss };
        let budget = inflight_cap.max(3.0 * quantum).max(self.min_pipe_cwnd());
        if self.phase == Phase::Up { budget + 2.0 * self.mss } else { budget }
    }

    /// `Inflight()`.
    pub(super) fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    /// `InflightWithHeadroom()`.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm.is_infinite() {
            return f64::INFINITY;
        }
        let headroom = (HEADROOM * self.inflight_longterm).max(self.mss);
        (self.inflight_longterm - headroom).max(self.min_pipe_cwnd())
    }

    /// `ProbeRTTCwnd()`.
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp_multiple(self.bw, Phase::ProbeRtt.cwnd_gain()).max(self.min_pipe_cwnd())
    }

    /// `BBR.MinPipeCwnd`: four segments.
    fn min_pipe_cwnd(&self) -> f64 {
        4.0 * self.mss
    }
}

/// 1 - `BBR.PacingMarginPercent`.
const PACING_MARGIN: f64 = 0.99;
/// `BBR.Headroom`.
const HEADROOM: f64 = 0.15;
/// 1.2 Mbit/s \[bytes/s\]: slower senders send one segment at a time.
const SLOW: f64 = 150_000.0;
const UNKNOWN_RTT: Duration = Duration::from_millis(1);
