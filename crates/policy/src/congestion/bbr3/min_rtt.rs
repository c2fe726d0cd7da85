//! The smallest round trip and ProbeRTT ("ProbeRTT", "Restarting From Idle").

use super::path::{Path, Sample};
use super::phase::Phase;
use super::probe_bw::AckPhase;
use crate::congestion::{Ack, Flow};
use anabranch_units::{Duration, Instant};

impl Path {
    /// `UpdateMinRTT()`.
    pub(super) fn update_min_rtt(&mut self, now: Instant, rs: &Sample) {
        self.probe_rtt_expired = now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rs.rtt
            && (self.probe_rtt_expired || self.probe_rtt_min_delay.is_none_or(|least| rtt < least))
        {
            self.probe_rtt_min_delay = Some(rtt);
            self.probe_rtt_min_stamp = now;
        }
        let expired = now > self.min_rtt_stamp + MIN_RTT_FILTER_LEN;
        if let Some(delay) = self.probe_rtt_min_delay
            && (expired || self.min_rtt.is_none_or(|least| delay < least))
        {
            self.min_rtt = Some(delay);
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    /// `CheckProbeRTT()`.
    pub(super) fn check_probe_rtt(&mut self, now: Instant, ack: &Ack, rs: &Sample) {
        if self.phase != Phase::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.phase = Phase::ProbeRtt; // EnterProbeRTT()
            self.save_cwnd();
            self.probe_rtt_done_stamp = None;
            self.held_back.clear();
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.phase == Phase::ProbeRtt {
            self.handle_probe_rtt(now, ack, rs);
        }
        if rs.delivered > 0.0 {
            self.idle_restart = false;
        }
    }

    /// `HandleProbeRTT()`.
    fn handle_probe_rtt(&mut self, now: Instant, ack: &Ack, rs: &Sample) {
        self.held_back.mark(ack); // MarkConnectionAppLimited()
        if self.probe_rtt_done_stamp.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(now);
            }
        } else if rs.in_flight <= self.probe_rtt_cwnd() {
            self.probe_rtt_done_stamp = Some(now + PROBE_RTT_DURATION);
            self.probe_rtt_round_done = false;
            self.start_round();
        }
    }

    /// `CheckProbeRTTDone()`; returns true if it is.
    fn check_probe_rtt_done(&mut self, now: Instant) -> bool {
        let done = self.probe_rtt_done_stamp.is_some_and(|done| now > done);
        if done {
            self.probe_rtt_min_stamp = now;
            self.restore_cwnd();
            self.exit_probe_rtt(now);
        }
        done
    }

    /// `ExitProbeRTT()`.
    fn exit_probe_rtt(&mut self, now: Instant) {
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_probe_bw_down(now);
            self.start_probe_bw_cruise();
        } else {
            self.enter_startup();
        }
    }

    /// `HandleRestartFromIdle()`; returns the window if ProbeRTT ends with it.
    pub(super) fn handle_restart_from_idle(&mut self, now: Instant, flow: &Flow) -> Option<f64> {
        self.see(flow);
        self.idle_restart = true;
        self.extra_acked_interval_start = now;
        if self.phase.is_probe_bw() {
            self.set_pacing_rate(1.0);
            return None;
        }
        (self.phase == Phase::ProbeRtt && self.check_probe_rtt_done(now)).then_some(self.cwnd)
    }
}

/// `BBR.MinRTTFilterLen`.
const MIN_RTT_FILTER_LEN: Duration = Duration::from_secs(10);
/// `BBR.ProbeRTTInterval`.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// `BBR.ProbeRTTDuration`.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
