//! BBR version 1: send at the rate the path delivers, with two bandwidth-delay products in flight.
//!
//! N. Cardwell, Y. Cheng, C. S. Gunn, S. Hassas Yeganeh, V. Jacobson. *BBR: Congestion-Based Congestion Control.* ACM
//! Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00; details that the draft leaves open as in Linux
//! (`tcp_bbr`).
//!
//! Two filters model the path: `BtlBw`, the largest delivery rate of the last 10 rounds, and `RTprop`, the smallest RTT
//! of the last 10 s. Segments leave at `pacing_gain · BtlBw`, and `cwnd_gain · BtlBw · RTprop` may be in flight.
//! ```text
//! Startup    2.89 for both gains, until BtlBw has not grown by 25 % in three rounds
//! Drain      1/2.89 for pacing, until no more than one product is in flight
//! ProbeBW    cwnd_gain 2; pacing_gain 1.25, 0.75, 1, 1, 1, 1, 1, 1, each for an RTprop; 1.25 also until a loss or
//!            1.25 products are in flight, 0.75 at most until one is
//! ProbeRTT   when RTprop is 10 s old: 4 segments in flight for 200 ms and a round
//! ```
//! Loss does not set a rate. While the first round of a recovery lasts, as much leaves as arrives (packet
//! conservation); lost bytes are taken off the window; the previous window is restored at the end. A timeout begins
//! with one segment. There is no threshold, and penalisation is ignored (A-OPT). Subflows are not coupled.
//!
//! Where we differ: the phase in which ProbeBW begins comes from the digits of the clock rather than from a random
//! draw, so that runs repeat; a quantum is one segment below 1.2 Mbit/s and two above, since the engine never lets more
//! leave back to back; the extra room for aggregated ACKs and the policer detection that Linux added later are absent.

#[cfg(test)]
mod tests;

use super::ack::Round;
use super::held_back::HeldBack;
use super::max_filter::MaxFilter;
use super::{Ack, CongestionControl, Entry, Flow, Model, ModelBased, PerFlow};
use anabranch_units::{Duration, Instant, Rate, Window};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "bbr",
    "version 1: paces at the measured delivery rate, two BDPs in flight; each subflow by itself",
    include_str!("mod.rs"),
    |_| CongestionControl::model_based(Bbr::default()),
)
.paper("Cardwell 2016");

/// BBR for every subflow by itself.
#[derive(Clone, Debug, Default)]
pub struct Bbr {
    paths: PerFlow<Path>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Mode {
    #[default]
    Startup,
    Drain,
    /// Cycle of gains, in this phase.
    ProbeBw(usize),
    ProbeRtt,
}

/// The model of one path, and where its state machine stands.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    mode: Mode,
    /// BtlBw \[bytes/s\].
    bandwidth: MaxFilter<10>,
    round: Round,
    rounds: u64,
    rtprop: Option<Duration>,
    rtprop_at: Instant,
    /// \[bytes/s\]; 0 before the first ACK.
    pacing: f64,
    /// Startup: the bandwidth at the last growth \[bytes/s\], rounds without another, and whether that was enough.
    full_bandwidth: f64,
    full_rounds: u32,
    filled: bool,
    /// Time at which the phase of the cycle began.
    phase_since: Instant,
    /// ProbeRTT: when the 200 ms are over, once few enough are in flight; whether a round has ended since.
    probe_done: Option<Instant>,
    probe_round_done: bool,
    /// Rate samples are invalid, because ProbeRTT kept the flight small.
    kept_small: HeldBack,
    /// The window before ProbeRTT, a recovery or a timeout.
    prior_cwnd: Window,
    repair: Repair,
    /// Data left after a pause, and its first ACK has not come.
    resuming: bool,
}

/// State of the window during a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Repair {
    #[default]
    None,
    /// Recovery begins with the next ACK.
    Entering,
    /// Its first round: as much leaves as arrives.
    Conserving,
    /// Later rounds, and after a timeout.
    Growing,
    /// Ends with the next ACK.
    Leaving,
}

impl Path {
    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => 1.0 / HIGH_GAIN,
            Mode::ProbeBw(phase) => CYCLE[phase],
            Mode::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw(_) => CWND_GAIN,
            Mode::ProbeRtt => 1.0,
        }
    }

    /// BtlBw · RTprop, once both are known.
    fn bdp(&self) -> Option<Window> {
        let bandwidth = self.bandwidth.best();
        self.rtprop.filter(|_| bandwidth > 0.0).map(|rtprop| Window::new(bandwidth * rtprop.as_secs_f64()))
    }

    /// `gain` products and three quanta; `unknown` while there is no model.
    fn inflight(&self, gain: f64, mss: Window, unknown: Window) -> Window {
        let quantum = if self.pacing < SLOW { mss } else { mss * 2.0 };
        self.bdp().map_or(unknown, |bdp| bdp * gain + quantum * 3.0)
    }

    fn update_bandwidth(&mut self, ack: &Ack) -> bool {
        let round_begins = self.round.ends(ack);
        self.rounds += u64::from(round_begins);
        if let Some(rate) = ack.delivery_rate() {
            let rate = rate.as_bps() as f64 / 8.0;
            if !self.is_limited(ack) || rate >= self.bandwidth.best() {
                self.bandwidth.update(self.rounds, rate);
            }
        }
        round_begins
    }

    /// The latest sample was taken while the sender held back.
    fn is_limited(&self, ack: &Ack) -> bool {
        ack.sample.is_some_and(|sample| sample.app_limited || self.kept_small.covers(sample.prior_delivered))
    }

    /// ProbeBW: the next phase, if this one is over.
    fn advance_cycle(&mut self, now: Instant, ack: &Ack, mss: Window) {
        let (Mode::ProbeBw(phase), Some(rtprop)) = (self.mode, self.rtprop) else {
            return;
        };
        let (gain, before) = (CYCLE[phase], Window::from(ack.in_flight_before));
        let full_length = now.since(self.phase_since) > rtprop;
        let over = if gain > 1.0 {
            full_length && (!ack.lost.is_zero() || before >= self.inflight(gain, mss, Window::ZERO))
        } else if gain < 1.0 {
            full_length || before <= self.inflight(1.0, mss, Window::ZERO)
        } else {
            full_length
        };
        if over {
            self.mode = Mode::ProbeBw((phase + 1) % CYCLE.len());
            self.phase_since = now;
        }
    }

    /// Any phase but the draining one.
    fn enter_probe_bw(&mut self, now: Instant) {
        let drawn = (now.as_nanos() % (CYCLE.len() as u64 - 1)) as usize;
        self.mode = Mode::ProbeBw(if drawn == 0 { 0 } else { drawn + 1 });
        self.phase_since = now;
    }

    fn check_full_pipe(&mut self, ack: &Ack, round_begins: bool) {
        if self.filled || !round_begins || self.is_limited(ack) {
            return;
        }
        let bandwidth = self.bandwidth.best();
        if bandwidth >= self.full_bandwidth * GROWTH {
            self.full_bandwidth = bandwidth;
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.filled = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, now: Instant, ack: &Ack, mss: Window) {
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && Window::from(ack.in_flight) <= self.inflight(1.0, mss, Window::ZERO) {
            self.enter_probe_bw(now);
        }
    }

    fn update_rtprop(&mut self, now: Instant, ack: &Ack, cwnd: Window, mss: Window, round_begins: bool) {
        let expired = self.rtprop.is_some() && now.since(self.rtprop_at) > RTPROP_SPAN;
        if let Some(rtt) = ack.rtt
            && (expired || self.rtprop.is_none_or(|rtprop| rtt <= rtprop))
        {
            self.rtprop = Some(rtt);
            self.rtprop_at = now;
        }
        if expired && !self.resuming && self.mode != Mode::ProbeRtt {
            self.save_cwnd(cwnd);
            self.mode = Mode::ProbeRtt;
            self.probe_done = None;
            self.kept_small.clear();
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(now, ack, mss, round_begins);
        }
        self.resuming = false;
    }

    fn probe_rtt(&mut self, now: Instant, ack: &Ack, mss: Window, round_begins: bool) {
        self.kept_small.mark(ack);
        let Some(done) = self.probe_done else {
            if Window::from(ack.in_flight) <= mss * LEAST_SEGMENTS {
                self.probe_done = Some(now + PROBE_RTT_SPAN);
                self.probe_round_done = false;
                self.round.restart(ack.delivered);
            }
            return;
        };
        self.probe_round_done |= round_begins;
        if self.probe_round_done && now > done {
            self.rtprop_at = now;
            self.repair = if self.repair == Repair::None { Repair::Leaving } else { self.repair };
            if self.filled {
                self.enter_probe_bw(now);
            } else {
                self.mode = Mode::Startup;
            }
        }
    }

    fn save_cwnd(&mut self, cwnd: Window) {
        let undisturbed = self.repair == Repair::None && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if undisturbed { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    fn set_pacing(&mut self, flow: &Flow, ack: &Ack) {
        if self.pacing <= 0.0 {
            self.pacing = initial_pacing(flow, ack.srtt);
        }
        let rate = self.pacing_gain() * self.bandwidth.best();
        if rate > 0.0 && (self.filled || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    /// The window after this ACK.
    fn window(&mut self, flow: &Flow, ack: &Ack) -> Window {
        let mss = flow.segment();
        let [acked, in_flight, lost] = [ack.acked, ack.in_flight, ack.lost].map(Window::from);
        let mut cwnd = (flow.cwnd - lost).max(mss);
        match self.repair {
            Repair::Entering => {
                cwnd = in_flight + acked;
                self.repair = Repair::Conserving;
                self.round.restart(ack.delivered);
            }
            Repair::Leaving => {
                cwnd = cwnd.max(self.prior_cwnd);
                self.repair = Repair::None;
            }
            Repair::None | Repair::Conserving | Repair::Growing => {}
        }
        if self.repair == Repair::Conserving {
            cwnd = cwnd.max(in_flight + acked);
        } else {
            let target = self.inflight(self.cwnd_gain(), mss, mss * INITIAL_SEGMENTS);
            if self.filled {
                cwnd = (cwnd + acked).min(target);
            } else if cwnd < target || (ack.delivered as f64) < (mss * INITIAL_SEGMENTS).as_f64() {
                cwnd += acked;
            }
            cwnd = cwnd.max(mss * LEAST_SEGMENTS);
        }
        if self.mode == Mode::ProbeRtt {
            cwnd = cwnd.min(mss * LEAST_SEGMENTS);
        }
        cwnd
    }
}

impl ModelBased for Bbr {
    fn on_ack(&mut self, now: Instant, flow: &Flow, ack: &Ack) -> Window {
        let (path, mss) = (self.paths.of(flow), flow.segment());
        let round_begins = path.update_bandwidth(ack);
        if round_begins && path.repair == Repair::Conserving {
            path.repair = Repair::Growing;
        }
        path.advance_cycle(now, ack, mss);
        path.check_full_pipe(ack, round_begins);
        path.check_drain(now, ack, mss);
        path.update_rtprop(now, ack, flow.cwnd, mss, round_begins);
        path.set_pacing(flow, ack);
        path.window(flow, ack)
    }

    fn model(&self, flow: &Flow, srtt: Option<Duration>) -> Model {
        let path = self.paths.get(flow);
        let pacing = path.map(|path| path.pacing).filter(|pacing| *pacing > 0.0);
        let pacing = pacing.unwrap_or_else(|| initial_pacing(flow, srtt));
        let bdp = path.and_then(Path::bdp).map(Window::whole);
        Model { pacing: Rate::from_bps(((8.0 * pacing) as u64).max(1)), bdp }
    }

    fn on_fast_retransmit(&mut self, _now: Instant, flow: &Flow) {
        let path = self.paths.of(flow);
        path.save_cwnd(flow.cwnd);
        path.repair = Repair::Entering;
    }

    fn on_rto(&mut self, _now: Instant, flow: &Flow) {
        let path = self.paths.of(flow);
        path.save_cwnd(flow.cwnd);
        path.repair = Repair::Growing;
        path.full_bandwidth = 0.0;
    }

    /// A timeout within a recovery ends the conservation.
    fn on_rto_again(&mut self, _now: Instant, flow: &Flow) {
        let path = self.paths.of(flow);
        if path.repair != Repair::None {
            path.repair = Repair::Growing;
        }
    }

    fn on_recovered(&mut self, _now: Instant, flow: &Flow) {
        let path = self.paths.of(flow);
        if path.repair != Repair::None {
            path.repair = Repair::Leaving;
        }
    }

    /// Undoes a spurious loss: restores the previous window, and Startup looks anew for the end of growth (Linux).
    fn on_spurious(&mut self, now: Instant, flow: &Flow) {
        self.on_recovered(now, flow);
        let path = self.paths.of(flow);
        (path.full_bandwidth, path.full_rounds) = (0.0, 0);
    }

    /// Paces at BtlBw after a pause: the path is empty, so there is no queue to drain and no need to probe.
    fn on_restart(&mut self, _now: Instant, flow: &Flow) -> Option<Window> {
        let path = self.paths.of(flow);
        path.resuming = true;
        if matches!(path.mode, Mode::ProbeBw(_)) && path.bandwidth.best() > 0.0 {
            path.pacing = path.bandwidth.best();
        }
        None
    }

    fn phase(&self, flow: &Flow) -> Option<&'static str> {
        Some(match self.paths.get(flow).map_or(Mode::Startup, |path| path.mode) {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::ProbeBw(_) => "probe-bw",
            Mode::ProbeRtt => "probe-rtt",
        })
    }

    fn variables(&self, flow: &Flow) -> Vec<(&'static str, f64)> {
        let Some(path) = self.paths.get(flow) else { return Vec::new() };
        let mut list = vec![
            ("max-bw", path.bandwidth.best()),
            ("pacing-rate", path.pacing),
            ("pacing-gain", path.pacing_gain()),
            ("cwnd-gain", path.cwnd_gain()),
            ("round-count", path.rounds as f64),
            ("full-bw", path.full_bandwidth),
            ("full-bw-count", f64::from(path.full_rounds)),
            ("full-bw-reached", f64::from(u8::from(path.filled))),
        ];
        list.extend(path.rtprop.map(|rtprop| ("min-rtt", rtprop.as_secs_f64())));
        list
    }
}

/// Rate that spreads a window over a round trip, with the gain of Startup \[bytes/s\]; a millisecond stands for an
/// unknown RTT.
fn initial_pacing(flow: &Flow, srtt: Option<Duration>) -> f64 {
    HIGH_GAIN * flow.cwnd.as_f64() / srtt.unwrap_or(UNKNOWN_RTT).max(Duration::from_nanos(1)).as_secs_f64()
}

/// 2/ln 2: the smallest gain that doubles the rate in each round.
const HIGH_GAIN: f64 = 2.885_390_081_777_927;
/// The cycle of pacing gains.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const CWND_GAIN: f64 = 2.0;
/// Growth that shows that the pipe was not full.
const GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Lifetime of the smallest RTT.
const RTPROP_SPAN: Duration = Duration::from_secs(10);
const PROBE_RTT_SPAN: Duration = Duration::from_millis(200);
/// BBRMinPipeCwnd: enough to keep ACKs coming.
const LEAST_SEGMENTS: f64 = 4.0;
/// RFC 6928.
const INITIAL_SEGMENTS: f64 = 10.0;
/// 1.2 Mbit/s \[bytes/s\].
const SLOW: f64 = 150_000.0;
const UNKNOWN_RTT: Duration = Duration::from_millis(1);
