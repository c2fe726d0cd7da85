//! The model of one path, and the order of steps at an ACK ("Algorithm Organization").

use super::phase::Phase;
use super::probe_bw::AckPhase;
use crate::congestion::ack::Round;
use crate::congestion::held_back::HeldBack;
use crate::congestion::max_filter::MaxFilter;
use crate::congestion::{Ack, Flow};
use anabranch_units::{Duration, Instant};

/// State of one flow. Volumes are in bytes, rates in bytes per second; a bound that is not set is infinite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// `OnInit()` has run, at the first ACK.
    pub(super) begun: bool,
    pub(super) phase: Phase,
    /// `C.SMSS`, `C.InitialCwnd`, `C.cwnd`, `C.delivered`.
    pub(super) mss: f64,
    pub(super) initial_cwnd: f64,
    pub(super) cwnd: f64,
    pub(super) delivered: u64,
    pub(super) pacing_rate: f64,

    // "BBR.round_count: Tracking Packet-Timed Round Trips".
    pub(super) round: Round,
    pub(super) round_count: u64,
    pub(super) round_start: bool,
    pub(super) rounds_since_probe_up: u64,
    /// `C.is_cwnd_limited`: the window was in full use in this round, in the one before.
    pub(super) limited: bool,
    pub(super) limited_before: bool,

    // "Data Rate Network Path Model Parameters", "Estimating BBR.max_bw".
    pub(super) max_bw: MaxFilter<2>,
    pub(super) cycle_count: u64,
    pub(super) bw: f64,
    pub(super) bw_shortterm: f64,

    // "Data Volume Network Path Model Parameters", "Estimating BBR.extra_acked".
    pub(super) inflight_shortterm: f64,
    pub(super) inflight_longterm: f64,
    pub(super) extra_acked: f64,
    pub(super) extra_acked_filter: MaxFilter<10>,
    pub(super) extra_acked_interval_start: Instant,
    pub(super) extra_acked_delivered: f64,

    // "State for Responding to Congestion".
    pub(super) loss_round: Round,
    pub(super) loss_round_start: bool,
    pub(super) is_loss_in_round: bool,
    pub(super) bw_latest: f64,
    pub(super) inflight_latest: f64,
    /// Separate ranges lost in this loss round, and the end of the latest.
    pub(super) lost_ranges: u32,
    pub(super) lost_until: Option<u64>,

    // "Startup Parameters and State".
    pub(super) full_bw: f64,
    pub(super) full_bw_count: u32,
    pub(super) full_bw_now: bool,
    pub(super) full_bw_reached: bool,
    pub(super) drain_start_round: u64,

    // "ProbeBW State".
    pub(super) ack_phase: AckPhase,
    pub(super) is_bw_probe_sample: bool,
    pub(super) bw_probe_up_acked: f64,
    pub(super) probe_up_acked_per_inc: f64,
    pub(super) bw_probe_up_rounds: u32,
    pub(super) bw_probe_wait: Duration,
    pub(super) cycle_stamp: Instant,
    pub(super) prev_probe_too_high: bool,
    pub(super) prev_probe_precautionary: bool,
    /// Random numbers drawn so far.
    pub(super) draws: u64,
    /// Serial number of the flow, from which they derive.
    pub(super) serial: u64,

    // "ProbeRTT and min_rtt Parameters and State".
    pub(super) min_rtt: Option<Duration>,
    pub(super) min_rtt_stamp: Instant,
    pub(super) probe_rtt_min_delay: Option<Duration>,
    pub(super) probe_rtt_min_stamp: Instant,
    pub(super) probe_rtt_expired: bool,
    pub(super) probe_rtt_done_stamp: Option<Instant>,
    pub(super) probe_rtt_round_done: bool,
    pub(super) held_back: HeldBack,
    pub(super) idle_restart: bool,

    // "Modulating cwnd in Loss Recovery", "Undo State".
    pub(super) prior_cwnd: f64,
    /// `InLossRecovery()`, and `C.delivered` when it began.
    pub(super) recovering_since: Option<u64>,
    /// `RestoreCwnd()` is due with the next ACK.
    pub(super) restoring: bool,
    /// The recovery that has begun has not shown a lost segment yet.
    pub(super) loss_unnoted: bool,
    /// State was saved in this recovery.
    pub(super) saved: bool,
    pub(super) undo_state: Option<Phase>,
    pub(super) undo_bw_shortterm: f64,
    pub(super) undo_inflight_shortterm: f64,
    pub(super) undo_inflight_longterm: f64,
}

impl Default for Path {
    /// `OnInit()`, as far as it needs neither the clock nor the flow.
    fn default() -> Self {
        let mut round = Round::default();
        round.restart(0);
        Path {
            begun: false,
            phase: Phase::Startup,
            mss: 1.0,
            initial_cwnd: 0.0,
            cwnd: 0.0,
            delivered: 0,
            pacing_rate: 0.0,
            round,
            round_count: 0,
            round_start: false,
            rounds_since_probe_up: 0,
            limited: false,
            limited_before: false,
            max_bw: MaxFilter::default(),
            cycle_count: 0,
            bw: 0.0,
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
            extra_acked: 0.0,
            extra_acked_filter: MaxFilter::default(),
            extra_acked_interval_start: Instant::ZERO,
            extra_acked_delivered: 0.0,
            loss_round: round,
            loss_round_start: false,
            is_loss_in_round: false,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            lost_ranges: 0,
            lost_until: None,
            full_bw: 0.0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            drain_start_round: 0,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: f64::INFINITY,
            bw_probe_up_rounds: 0,
            bw_probe_wait: Duration::ZERO,
            cycle_stamp: Instant::ZERO,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            draws: 0,
            serial: 0,
            min_rtt: None,
            min_rtt_stamp: Instant::ZERO,
            probe_rtt_min_delay: None,
            probe_rtt_min_stamp: Instant::ZERO,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            held_back: HeldBack::default(),
            idle_restart: false,
            prior_cwnd: 0.0,
            recovering_since: None,
            restoring: false,
            loss_unnoted: false,
            saved: false,
            undo_state: None,
            undo_bw_shortterm: 0.0,
            undo_inflight_shortterm: 0.0,
            undo_inflight_longterm: 0.0,
        }
    }
}

/// The rate sample of an ACK, `RS`, and what came with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// `RS.delivery_rate`; 0 without a believable one.
    pub(super) rate: f64,
    /// `RS.delivered`.
    pub(super) delivered: f64,
    /// `RS.prior_delivered`; `None` if no whole segment arrived.
    pub(super) prior_delivered: Option<u64>,
    /// `RS.newly_acked`.
    pub(super) newly_acked: f64,
    pub(super) app_limited: bool,
    /// `IsInflightTooHigh()` of the segment that this ACK delivers.
    pub(super) too_high: bool,
    /// `RS.tx_in_flight`; 0 if it was not noted.
    pub(super) tx_in_flight: f64,
    pub(super) rtt: Option<Duration>,
    /// `C.inflight` after the ACK.
    pub(super) in_flight: f64,
    /// `!C.has_selective_acks`.
    pub(super) cumulative_only: bool,
}

impl Path {
    fn sample(&self, ack: &Ack) -> Sample {
        let rs = ack.sample;
        let flight = rs.and_then(|rs| rs.flight);
        Sample {
            rate: ack.delivery_rate().map_or(0.0, |rate| rate.as_bps() as f64 / 8.0),
            delivered: rs.map_or(0.0, |rs| ack.delivered.saturating_sub(rs.prior_delivered) as f64),
            prior_delivered: rs.map(|rs| rs.prior_delivered),
            newly_acked: ack.acked.as_f64(),
            app_limited: rs.is_some_and(|rs| rs.app_limited || self.held_back.covers(rs.prior_delivered)),
            too_high: flight.is_some_and(|flight| super::loss::is_inflight_too_high(&flight)),
            tx_in_flight: flight.map_or(0.0, |flight| flight.at_departure.as_f64()),
            rtt: ack.rtt,
            in_flight: ack.in_flight.as_f64(),
            cumulative_only: flight.is_some_and(|flight| !flight.selective),
        }
    }

    /// `UpdateOnACK()`; returns the window.
    pub(super) fn on_ack(&mut self, now: Instant, flow: &Flow, ack: &Ack) -> f64 {
        self.see(flow);
        self.delivered = ack.delivered;
        if !self.begun {
            self.begin(now, ack);
        }
        self.limited |= ack.in_flight_before.as_f64() + self.mss > self.cwnd;
        if std::mem::take(&mut self.restoring) {
            self.restore_cwnd();
        }
        if std::mem::take(&mut self.loss_unnoted) {
            self.note_loss();
        }
        let rs = self.sample(ack);
        self.update_model_and_state(now, ack, &rs);
        self.set_pacing_rate(self.phase.pacing_gain());
        self.set_cwnd(ack, &rs);
        self.cwnd
    }

    /// Copies what the flow knows.
    pub(super) fn see(&mut self, flow: &Flow) {
        self.mss = flow.segment().as_f64();
        self.cwnd = flow.cwnd.as_f64();
        self.serial = flow.key.serial();
    }

    /// The rest of `OnInit()`.
    fn begin(&mut self, now: Instant, ack: &Ack) {
        self.begun = true;
        self.initial_cwnd = self.cwnd;
        self.min_rtt = ack.srtt;
        self.min_rtt_stamp = now;
        self.probe_rtt_min_stamp = now;
        self.extra_acked_interval_start = now;
        self.pacing_rate = super::control::pacing_of(self.initial_cwnd, ack.srtt);
    }

    fn update_model_and_state(&mut self, now: Instant, ack: &Ack, rs: &Sample) {
        self.update_latest_delivery_signals(ack, rs);
        self.update_congestion_signals(ack, rs);
        self.update_ack_aggregation(now, rs);
        self.check_full_bw_reached(rs);
        self.check_startup_done(rs);
        self.check_drain_done(now, rs);
        self.update_probe_bw_cycle_phase(now, rs);
        self.update_min_rtt(now, rs);
        self.check_probe_rtt(now, ack, rs);
        self.advance_latest_delivery_signals(rs);
        self.bw = self.max_bw.best().min(self.bw_shortterm); // BoundBWForModel()
    }

    /// `UpdateRound()` and `UpdateMaxBw()`.
    pub(super) fn update_max_bw(&mut self, ack: &Ack, rs: &Sample) {
        self.round_start = self.round.ends(ack);
        if self.round_start {
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
            self.limited_before = std::mem::take(&mut self.limited);
            self.limited = ack.in_flight_before.as_f64() + self.mss > self.cwnd;
        }
        if rs.rate > 0.0 && (rs.rate >= self.max_bw.best() || !rs.app_limited) {
            self.max_bw.update(self.cycle_count, rs.rate);
        }
    }

    /// `StartRound()`.
    pub(super) fn start_round(&mut self) {
        self.round.restart(self.delivered);
    }

    /// `C.is_cwnd_limited`: at any point in the last round trip.
    pub(super) fn is_cwnd_limited(&self) -> bool {
        self.limited || self.limited_before
    }

    /// `UpdateACKAggregation()`.
    fn update_ack_aggregation(&mut self, now: Instant, rs: &Sample) {
        let mut expected = self.bw * now.since(self.extra_acked_interval_start).as_secs_f64();
        if self.extra_acked_delivered <= expected {
            self.extra_acked_delivered = 0.0;
            self.extra_acked_interval_start = now;
            expected = 0.0;
        }
        self.extra_acked_delivered += rs.newly_acked;
        let extra = (self.extra_acked_delivered - expected).min(self.cwnd).max(0.0);
        self.extra_acked_filter.update(self.round_count, extra);
        // In Startup, just one round is remembered.
        let filter = &self.extra_acked_filter;
        self.extra_acked = if self.full_bw_reached { filter.best() } else { filter.latest() };
    }

    /// `BBR.bdp`; `None` before both its factors are known.
    pub(super) fn bdp(&self) -> Option<f64> {
        self.min_rtt.filter(|_| self.bw > 0.0).map(|min_rtt| self.bw * min_rtt.as_secs_f64())
    }

    /// Variables for test benches.
    pub(super) fn variables(&self) -> Vec<(&'static str, f64)> {
        let is = |question: bool| f64::from(u8::from(question));
        let seconds = |time: Option<Duration>| time.map_or(f64::INFINITY, Duration::as_secs_f64);
        vec![
            ("max-bw", self.max_bw.best()),
            ("bw", self.bw),
            ("bw-shortterm", self.bw_shortterm),
            ("bw-latest", self.bw_latest),
            ("inflight-shortterm", self.inflight_shortterm),
            ("inflight-longterm", self.inflight_longterm),
            ("inflight-latest", self.inflight_latest),
            ("extra-acked", self.extra_acked),
            ("min-rtt", seconds(self.min_rtt)),
            ("probe-rtt-min-delay", seconds(self.probe_rtt_min_delay)),
            ("pacing-rate", self.pacing_rate),
            ("pacing-gain", self.phase.pacing_gain()),
            ("cwnd-gain", self.phase.cwnd_gain()),
            ("round-count", self.round_count as f64),
            ("drain-start-round", self.drain_start_round as f64),
            ("cycle-count", self.cycle_count as f64),
            ("full-bw", self.full_bw),
            ("full-bw-count", f64::from(self.full_bw_count)),
            ("full-bw-now", is(self.full_bw_now)),
            ("full-bw-reached", is(self.full_bw_reached)),
            ("probe-up-cnt", self.probe_up_acked_per_inc),
            ("bw-probe-up-rounds", f64::from(self.bw_probe_up_rounds)),
            ("bw-probe-wait", self.bw_probe_wait.as_secs_f64()),
            ("rounds-since-probe-up", self.rounds_since_probe_up as f64),
            ("is-bw-probe-sample", is(self.is_bw_probe_sample)),
            ("is-loss-in-round", is(self.is_loss_in_round)),
            ("prev-probe-too-high", is(self.prev_probe_too_high)),
            ("prev-probe-precautionary", is(self.prev_probe_precautionary)),
            ("idle-restart", is(self.idle_restart)),
            ("prior-cwnd", self.prior_cwnd),
            ("undo-bw-shortterm", self.undo_bw_shortterm),
            ("undo-inflight-shortterm", self.undo_inflight_shortterm),
            ("undo-inflight-longterm", self.undo_inflight_longterm),
        ]
    }
}
