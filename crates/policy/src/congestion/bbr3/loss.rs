//! Loss and its undoing ("Updating the Model Upon Packet Loss", "… Upon Detecting a Spurious Loss Recovery").

use super::path::{Path, Sample};
use super::phase::Phase;
use crate::congestion::{Ack, Flight, Flow, LostSegment};
use anabranch_units::Instant;

/// `IsInflightTooHigh()`: more than 2 % of a flight was lost; without SACK anything.
pub(super) fn is_inflight_too_high(flight: &Flight) -> bool {
    let lost = flight.lost_since.as_f64();
    lost > flight.at_departure.as_f64() * LOSS_THRESH || (lost > 0.0 && !flight.selective)
}

/// `InflightAtLoss()`: the flight at which losses passed the threshold, within a segment that is lost.
fn inflight_at_loss(lost: &LostSegment) -> f64 {
    let size = lost.bytes.as_f64();
    let inflight_prev = lost.flight.at_departure.as_f64() - size;
    let lost_prev = lost.flight.lost_since.as_f64() - size;
    let lost_prefix = (LOSS_THRESH * inflight_prev - lost_prev) / (1.0 - LOSS_THRESH);
    inflight_prev + lost_prefix
}

impl Path {
    /// `NoteLoss()`.
    pub(super) fn note_loss(&mut self) {
        self.loss_unnoted = false;
        if !self.is_loss_in_round {
            self.loss_round.restart(self.delivered);
            self.save_state_upon_loss();
        }
        self.is_loss_in_round = true;
    }

    /// `HandleLostPacket()`.
    pub(super) fn handle_lost_packet(&mut self, now: Instant, flow: &Flow, lost: &LostSegment) {
        self.see(flow);
        self.delivered = lost.delivered;
        self.note_loss();
        self.lost_ranges += u32::from(self.lost_until != Some(lost.start));
        self.lost_until = Some(lost.start + lost.bytes.get());
        if self.is_bw_probe_sample && is_inflight_too_high(&lost.flight) {
            self.handle_inflight_too_high(now, inflight_at_loss(lost), lost.app_limited);
        }
    }

    /// `HandleInflightTooHigh()`: `tx_in_flight` was too much.
    pub(super) fn handle_inflight_too_high(&mut self, now: Instant, tx_in_flight: f64, app_limited: bool) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false; // Reacts once per probe.
        if !app_limited {
            self.inflight_longterm = tx_in_flight.max(self.target_inflight() * BETA);
        }
        if self.phase == Phase::Up {
            self.undo_state = Some(Phase::Up);
            self.start_probe_bw_down(now);
        }
    }

    /// `UpdateLatestDeliverySignals()`.
    pub(super) fn update_latest_delivery_signals(&mut self, ack: &Ack, rs: &Sample) {
        self.bw_latest = self.bw_latest.max(rs.rate);
        self.inflight_latest = self.inflight_latest.max(rs.delivered);
        self.loss_round_start = self.loss_round.ends(ack);
    }

    /// `AdvanceLatestDeliverySignals()`.
    pub(super) fn advance_latest_delivery_signals(&mut self, rs: &Sample) {
        if self.loss_round_start {
            self.bw_latest = rs.rate;
            self.inflight_latest = rs.delivered;
        }
    }

    /// `ResetCongestionSignals()`.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    /// `UpdateCongestionSignals()`.
    pub(super) fn update_congestion_signals(&mut self, ack: &Ack, rs: &Sample) {
        self.update_max_bw(ack, rs);
        if self.loss_round_start {
            self.adapt_lower_bounds_from_congestion();
            self.is_loss_in_round = false;
        }
    }

    /// `AdaptLowerBoundsFromCongestion()`, `InitLowerBounds()` and `LossLowerBounds()`: once per round.
    fn adapt_lower_bounds_from_congestion(&mut self) {
        if self.phase.is_probing() || !self.is_loss_in_round {
            return;
        }
        if self.bw_shortterm.is_infinite() {
            self.bw_shortterm = self.max_bw.best();
        }
        if self.inflight_shortterm.is_infinite() {
            self.inflight_shortterm = self.cwnd;
        }
        self.bw_shortterm = self.bw_latest.max(BETA * self.bw_shortterm);
        self.inflight_shortterm = self.inflight_latest.max(BETA * self.inflight_shortterm);
    }

    /// `ResetShortTermModel()`.
    pub(super) fn reset_short_term_model(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    /// `OnEnterFastRecovery()` and `OnEnterRTO()`. The window of a timeout is set outside: one segment, with nothing
    /// left in flight.
    pub(super) fn enter_recovery(&mut self, flow: &Flow) {
        self.see(flow);
        self.save_state_upon_loss();
        self.recovering_since.get_or_insert(self.delivered);
        self.loss_unnoted = true;
    }

    /// All losses are repaired.
    pub(super) fn leave_recovery(&mut self) {
        self.restoring |= self.recovering_since.take().is_some();
        self.saved = false;
    }

    /// `SaveStateUponLoss()`; what can be undone is saved once in a recovery.
    fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        if !std::mem::replace(&mut self.saved, true) {
            self.undo_state = None;
            self.undo_bw_shortterm = self.bw_shortterm;
            self.undo_inflight_shortterm = self.inflight_shortterm;
            self.undo_inflight_longterm = self.inflight_longterm;
        }
    }

    /// `SaveCwnd()`.
    pub(super) fn save_cwnd(&mut self) {
        let undisturbed = self.recovering_since.is_none() && self.phase != Phase::ProbeRtt;
        self.prior_cwnd = if undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// `RestoreCwnd()`.
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// `HandleSpuriousLossDetection()`. The window comes back with the next ACK.
    pub(super) fn handle_spurious_loss_detection(&mut self) {
        (self.recovering_since, self.saved, self.loss_unnoted) = (None, false, false);
        self.restoring = true;
        self.is_loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.max(self.undo_bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo_inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo_inflight_longterm);
        match self.undo_state.take() {
            Some(Phase::Startup) if self.phase != Phase::Startup => {
                self.full_bw_reached = false;
                if self.phase != Phase::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(Phase::Up) if self.phase != Phase::Up && self.phase != Phase::ProbeRtt => {
                self.start_probe_bw_refill();
            }
            _ => {}
        }
    }
}

/// `BBR.LossThresh`.
pub(super) const LOSS_THRESH: f64 = 0.02;
/// `BBR.Beta`.
const BETA: f64 = 0.7;
