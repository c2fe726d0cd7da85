//! Startup and Drain ("Startup", "Drain").

use super::path::{Path, Sample};
use super::phase::Phase;
use anabranch_units::Instant;

impl Path {
    /// `EnterStartup()`; the gains are those of the phase.
    pub(super) fn enter_startup(&mut self) {
        self.phase = Phase::Startup;
    }

    /// `ResetFullBW()`.
    pub(super) fn reset_full_bw(&mut self) {
        self.full_bw = 0.0;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    /// `CheckFullBWReached()`: three rounds, not limited by the application, without a quarter more.
    pub(super) fn check_full_bw_reached(&mut self, rs: &Sample) {
        if self.full_bw_now || !self.round_start || rs.app_limited {
            return;
        }
        if rs.rate >= self.full_bw * GROWTH {
            self.reset_full_bw();
            self.full_bw = rs.rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_BW_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// `CheckStartupDone()`.
    pub(super) fn check_startup_done(&mut self, rs: &Sample) {
        self.check_startup_high_loss(rs);
        if self.phase == Phase::Startup && self.full_bw_reached {
            self.phase = Phase::Drain;
            self.drain_start_round = self.round_count;
        }
    }

    /// `CheckStartupHighLoss()` ("Exiting Startup Based on Packet Loss"): a round of recovery with more than 2 % of
    /// loss in six separate ranges; without SACK any loss in recovery.
    fn check_startup_high_loss(&mut self, rs: &Sample) {
        let ranges = self.lost_ranges;
        if self.loss_round_start {
            (self.lost_ranges, self.lost_until) = (0, None);
        }
        let (Phase::Startup, false, Some(since)) = (self.phase, self.full_bw_reached, self.recovering_since) else {
            return;
        };
        let full_round = rs.prior_delivered.is_some_and(|prior| prior >= since);
        let too_many = self.loss_round_start && full_round && ranges >= STARTUP_FULL_LOSS_RANGES && rs.too_high;
        if too_many || (rs.cumulative_only && ranges > 0) {
            self.undo_state = Some(Phase::Startup);
            (self.full_bw_now, self.full_bw_reached) = (true, true);
            self.inflight_longterm = self.bdp().unwrap_or(0.0).max(self.inflight_latest);
        }
    }

    /// `CheckDrainDone()`.
    pub(super) fn check_drain_done(&mut self, now: Instant, rs: &Sample) {
        if self.phase == Phase::Drain
            && (rs.in_flight <= self.inflight(self.bw, 1.0) || self.round_count > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_probe_bw_down(now); // EnterProbeBW()
        }
    }
}

/// Growth that shows that the pipe was not full.
const GROWTH: f64 = 1.25;
/// Rounds without it.
const FULL_BW_ROUNDS: u32 = 3;
/// `BBRStartupFullLossCnt`.
const STARTUP_FULL_LOSS_RANGES: u32 = 6;
/// Rounds after which Drain gives up.
const DRAIN_ROUNDS: u64 = 3;
