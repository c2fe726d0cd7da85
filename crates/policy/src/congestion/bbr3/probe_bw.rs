//! The cycle of ProbeBW: down, cruise, refill, up ("ProbeBW Algorithm Details").

use super::path::{Path, Sample};
use super::phase::Phase;
use anabranch_units::Instant;

/// `BBR.ack_phase`: what ACKs mean to the probing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AckPhase {
    /// No feedback of probing.
    Init,
    /// The pipe fills at the estimated rate.
    Refilling,
    /// The amount in flight rises, and no ACK tells of it yet.
    ProbeStarting,
    /// ACKs tell of the probing.
    ProbeFeedback,
    /// The probing is over, and ACKs still tell of it.
    ProbeStopping,
}

impl Path {
    /// `UpdateProbeBWCyclePhase()`.
    pub(super) fn update_probe_bw_cycle_phase(&mut self, now: Instant, rs: &Sample) {
        if !self.full_bw_reached || self.adapt_long_term_model(rs) {
            return;
        }
        match self.phase {
            Phase::Down => {
                if !self.is_time_to_probe_bw(now) && self.is_time_to_cruise(rs) {
                    self.start_probe_bw_cruise();
                }
            }
            Phase::Cruise => {
                self.is_time_to_probe_bw(now);
            }
            Phase::Refill if self.round_start => {
                self.is_bw_probe_sample = true;
                self.start_probe_bw_up(rs);
            }
            Phase::Up => {
                if self.is_time_to_go_down(rs) {
                    self.prev_probe_too_high = false;
                    self.start_probe_bw_down(now);
                }
            }
            Phase::Refill | Phase::Startup | Phase::Drain | Phase::ProbeRtt => {}
        }
    }

    /// `StartProbeBW_DOWN()`.
    pub(super) fn start_probe_bw_down(&mut self, now: Instant) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = f64::INFINITY;
        self.pick_probe_wait(now);
        self.cycle_stamp = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.phase = Phase::Down;
    }

    /// `StartProbeBW_CRUISE()`.
    pub(super) fn start_probe_bw_cruise(&mut self) {
        self.phase = Phase::Cruise;
    }

    /// `StartProbeBW_REFILL()`.
    pub(super) fn start_probe_bw_refill(&mut self) {
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.phase = Phase::Refill;
    }

    /// `StartProbeBW_UP()`.
    fn start_probe_bw_up(&mut self, rs: &Sample) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bw();
        self.full_bw = rs.rate;
        self.phase = Phase::Up;
        self.raise_inflight_longterm_slope();
    }

    /// `IsTimeToProbeBW()`, which also begins it.
    fn is_time_to_probe_bw(&mut self, now: Instant) -> bool {
        let elapsed = now > self.cycle_stamp + self.bw_probe_wait;
        let is_time = elapsed || self.is_reno_coexistence_probe_time();
        if is_time {
            self.start_probe_bw_refill();
        }
        is_time
    }

    /// `IsRenoCoexistenceProbeTime()`: as many rounds as Reno takes to regain a window.
    fn is_reno_coexistence_probe_time(&self) -> bool {
        let reno_rounds = self.target_inflight() / self.mss;
        self.rounds_since_probe_up as f64 >= reno_rounds.min(MOST_PROBE_ROUNDS)
    }

    /// `IsTimeToCruise()`.
    fn is_time_to_cruise(&self, rs: &Sample) -> bool {
        rs.in_flight <= self.inflight_with_headroom() && rs.in_flight <= self.inflight(self.max_bw.best(), 1.0)
    }

    /// `IsTimeToGoDown()`, precaution first.
    fn is_time_to_go_down(&mut self, rs: &Sample) -> bool {
        if self.prev_probe_too_high && rs.in_flight >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && self.cwnd >= self.inflight_longterm {
            // The rate is bounded by inflight_longterm, not by the path.
            self.reset_full_bw();
            self.full_bw = rs.rate;
            return false;
        }
        self.full_bw_now
    }

    /// `TargetInflight()`: the BDP, unless congestion cut the window.
    pub(super) fn target_inflight(&self) -> f64 {
        self.bdp().map_or(self.cwnd, |bdp| bdp.min(self.cwnd))
    }
}

/// Rounds between probes, at most, for coexistence with Reno and CUBIC ("Design Considerations for Choosing Constant
/// Parameters").
const MOST_PROBE_ROUNDS: f64 = 63.0;
