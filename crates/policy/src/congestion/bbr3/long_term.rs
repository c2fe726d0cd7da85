//! The long-term model: `inflight_longterm` and the clock of `max_bw` ("ProbeBW Algorithm Details").

use super::path::{Path, Sample};
use super::phase::Phase;
use super::probe_bw::AckPhase;

impl Path {
    /// `AdaptLongTermModel()`; returns true if it decided on a transition.
    pub(super) fn adapt_long_term_model(&mut self, rs: &Sample) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.phase.is_probe_bw() && !rs.app_limited {
                self.cycle_count += 1; // AdvanceMaxBwFilter()
            }
            // "Precautionary Bandwidth Probing: Acceleration".
            if self.phase.is_probe_bw() && self.prev_probe_precautionary && !self.prev_probe_too_high {
                self.start_probe_bw_refill();
                return true;
            }
        }
        if !rs.too_high && self.inflight_longterm.is_finite() {
            self.inflight_longterm = self.inflight_longterm.max(rs.tx_in_flight);
            if self.phase == Phase::Up {
                self.probe_inflight_longterm_upward(rs);
            }
        }
        false
    }

    /// `RaiseInflightLongtermSlope()`: 1, 2, 4, 8 … segments in a round.
    pub(super) fn raise_inflight_longterm_slope(&mut self) {
        let growth_this_round = f64::from(1_u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(MOST_DOUBLINGS);
        self.probe_up_acked_per_inc = (self.cwnd / growth_this_round).max(self.mss);
    }

    /// `ProbeInflightLongtermUpward()`.
    fn probe_inflight_longterm_upward(&mut self, rs: &Sample) {
        if !self.is_cwnd_limited() || self.cwnd < self.inflight_longterm {
            return;
        }
        self.bw_probe_up_acked += rs.newly_acked;
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = (self.bw_probe_up_acked / self.probe_up_acked_per_inc).floor();
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            self.inflight_longterm += delta * self.mss;
        }
        if self.round_start {
            self.raise_inflight_longterm_slope();
        }
    }
}

/// Doublings of the step, at most.
const MOST_DOUBLINGS: u32 = 30;
