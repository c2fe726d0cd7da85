//! CUBIC: the window as a cubic function of the time since the last reduction.
//!
//! L. Xu, S. Ha, I. Rhee, V. Goel, L. Eggert. *CUBIC for Fast and Long-Distance Networks.* RFC 9438.
//!
//! With `t` since congestion avoidance began and windows in segments,
//! ```text
//! W_cubic(t) = C · (t − K)³ + W_max                                  Eq. (1)
//! K          = cbrt((W_max − cwnd_epoch) / C)                        Eq. (2)
//! W_est     += α · segments_acked / cwnd                             Eq. (4)
//! ```
//! A window that Reno would have grown further than the cubic follows `W_est` (§4.3); otherwise it approaches
//! `W_cubic(t + RTT)` within a round trip, by at most half of itself (§4.4, §4.5). The first congestion avoidance after
//! a timeout has `K = 0` and takes its own window for `W_max` (§4.8), in a recovery as well (Linux, `bictcp_reset`); so
//! does a window that is already at `W_max`, as after an idle restart (§4.10). Subflows are not coupled.
//!
//! A mark (ECN) leaves 0.85 of the window, for queues that mark are short (Alternative Backoff with ECN, RFC 8511
//! §3.1); `w_max` follows as after a loss.

use super::{Capabilities, CongestionControl, Entry, Flow, PerFlow, WindowBased};
use crate::registry::{Flag, Number, Parameter, Params, flag, number};
use anabranch_units::{Duration, Instant, Window};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "cubic",
    "a cubic function of the time since the last loss; each subflow by itself",
    include_str!("cubic.rs"),
    |p| CongestionControl::window_based(Cubic::of(p)),
)
.paper("RFC 9438")
.parameters(Cubic::PARAMETERS)
.capabilities(|_| Capabilities { hystart: true, ..Capabilities::default() });

const C: Number =
    number("c", "C, steepness of the cubic function (RFC 9438 §5)", 0.4, 0.001..=100.0).in_unit("segments/s^3");
const BETA: Number = number("beta", "β_cubic, share of the window that a loss leaves (RFC 9438 §4.6)", 0.7, 0.1..=0.95);
const BETA_ECN: Number =
    number("beta_ecn", "β_ecn, share of the window that a mark leaves (RFC 8511 §3.1)", 0.85, 0.1..=0.95);
const FAST_CONVERGENCE: Flag =
    flag("fast_convergence", "release more when the window shrinks from loss to loss (RFC 9438 §4.7)", true);

/// CUBIC for every subflow by itself.
#[derive(Clone, Debug)]
pub struct Cubic {
    /// C \[segments/s³\].
    c: f64,
    /// β_cubic.
    beta: f64,
    /// β_ecn; `None` for β_cubic.
    beta_ecn: Option<f64>,
    fast_convergence: bool,
    curves: PerFlow<Curve>,
}

/// State of one subflow, now and before its latest reduction.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    now: Memory,
    before: Memory,
}

#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// W_max \[segments\]; 0 when the next epoch is to begin at its own plateau.
    w_max: f64,
    /// cwnd_prior \[segments\]: the window when ssthresh was last set.
    cwnd_prior: f64,
    /// Congestion avoidance since the last reduction or reset.
    epoch: Option<Epoch>,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Time at which it began, moved on by the time in which the window was no limit (§5.8).
    start: Instant,
    /// The latest ACK.
    latest: Instant,
    /// K \[s\].
    k: f64,
    /// W_est \[segments\].
    w_est: f64,
    /// Part of one CUBIC that the subflow is.
    part: f64,
}

impl Cubic {
    /// CUBIC with `c` = C \[segments/s³\] and `beta` = β_cubic; RFC 9438 recommends 0.4, 0.7 and fast convergence.
    pub fn new(c: f64, beta: f64, fast_convergence: bool) -> Self {
        Cubic { c, beta, beta_ecn: None, fast_convergence, curves: PerFlow::default() }
    }

    /// Parameters of an entry in the table.
    pub(super) const PARAMETERS: &[Parameter] =
        &[C.parameter(), BETA.parameter(), BETA_ECN.parameter(), FAST_CONVERGENCE.parameter()];

    /// CUBIC with the parameters of an entry.
    pub(super) fn of(params: &Params) -> Self {
        let cubic = Cubic::new(C.of(params), BETA.of(params), FAST_CONVERGENCE.of(params));
        cubic.with_beta_ecn(BETA_ECN.of(params))
    }

    /// Returns the same with another share of the window that a mark leaves than that of a loss.
    pub fn with_beta_ecn(self, beta_ecn: f64) -> Self {
        Cubic { beta_ecn: Some(beta_ecn), ..self }
    }

    /// Notes a reduction of the window of `flow` (§4.6, §4.7).
    fn reduce(&mut self, flow: &Flow) -> &mut Memory {
        let (cwnd, curve) = (flow.cwnd_segments(), self.curves.of(flow));
        let shrinking = self.fast_convergence && cwnd < curve.now.w_max;
        let w_max = if shrinking { cwnd * (1.0 + self.beta) / 2.0 } else { cwnd };
        curve.before = curve.now;
        curve.now = Memory { w_max, cwnd_prior: cwnd, epoch: None };
        &mut curve.now
    }

    /// The window of `flow` becomes this part of itself: its curve begins anew towards as much smaller a plateau.
    pub(super) fn scale(&mut self, flow: &Flow, part: f64) {
        let memory = &mut self.curves.of(flow).now;
        *memory = Memory { w_max: memory.w_max * part, cwnd_prior: memory.cwnd_prior * part, epoch: None };
    }

    /// Growth that `acked` bytes earn `flow`, which is a `part` (1 if it is alone) of one CUBIC: C and α are as much
    /// smaller.
    pub(super) fn growth(&mut self, now: Instant, flow: &Flow, acked: Window, part: f64) -> Window {
        let (cwnd, acked) = (flow.cwnd_segments(), acked.per(flow.segment()));
        let (c, beta) = (self.c * part, self.beta);
        let memory = &mut self.curves.of(flow).now;
        if memory.epoch.is_some_and(|epoch| epoch.part != part) {
            memory.epoch = None;
        }
        if memory.epoch.is_none() {
            memory.w_max = memory.w_max.max(cwnd);
        }
        let epoch = memory.epoch.get_or_insert_with(|| {
            let k = libm::cbrt((memory.w_max - cwnd) / c); // Eq. (2)
            Epoch { start: now, latest: now, k, w_est: cwnd, part }
        });
        epoch.latest = now;

        // Reno-friendly at first, one segment per round trip once it has made good the reduction (§4.3).
        let alpha = if epoch.w_est < memory.cwnd_prior { 3.0 * (1.0 - beta) / (1.0 + beta) } else { 1.0 };
        epoch.w_est += part * alpha * acked / cwnd; // Eq. (4)

        let since = now.since(epoch.start).as_secs_f64();
        let at = |t: f64| c * (t - epoch.k) * (t - epoch.k) * (t - epoch.k) + memory.w_max; // Eq. (1)
        let growth = if at(since) < epoch.w_est {
            (epoch.w_est - cwnd).max(0.0)
        } else {
            let target = at(since + flow.srtt.unwrap_or(Duration::ZERO).as_secs_f64()).clamp(cwnd, 1.5 * cwnd);
            (target - cwnd) / cwnd * acked
        };
        flow.segments(growth)
    }
}

impl Default for Cubic {
    fn default() -> Self {
        Cubic::new(0.4, 0.7, true).with_beta_ecn(0.85)
    }
}

impl WindowBased for Cubic {
    fn avoidance(&mut self, now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window {
        self.growth(now, &flows[on], acked, 1.0)
    }

    fn on_fast_retransmit(&mut self, _now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        self.reduce(&flows[on]);
        in_flight * self.beta
    }

    fn on_mark(&mut self, _now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        self.reduce(&flows[on]);
        in_flight * self.beta_ecn.unwrap_or(self.beta)
    }

    fn on_rto(&mut self, _now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        // The first congestion avoidance after a timeout begins at its plateau (§4.8).
        self.reduce(&flows[on]).w_max = 0.0;
        in_flight * self.beta
    }

    fn on_rto_again(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        self.on_reset(now, on, flows);
        self.curves.of(&flows[on]).now.w_max = 0.0;
    }

    /// Restores the curve from before the reduction (§4.9).
    fn on_spurious(&mut self, _now: Instant, on: usize, flows: &[Flow]) {
        let curve = self.curves.of(&flows[on]);
        curve.now = curve.before;
    }

    fn on_unlimited(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        if let Some(epoch) = &mut self.curves.of(&flows[on]).now.epoch {
            epoch.start += now.since(epoch.latest);
            epoch.latest = now;
        }
    }

    fn on_reset(&mut self, _now: Instant, on: usize, flows: &[Flow]) {
        self.curves.of(&flows[on]).now.epoch = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::FlowKey;
    use anabranch_units::{Bytes, SubflowId};

    /// Windows are counted in segments here: the MSS is 1.
    fn flow(cwnd: f64, rtt_ms: u64) -> [Flow; 1] {
        let srtt = Some(Duration::from_millis(rtt_ms));
        [Flow {
            id: SubflowId(0),
            key: FlowKey::nth(0),
            mss: Bytes::new(1),
            cwnd: Window::new(cwnd),
            ssthresh: Window::new(1.0),
            srtt,
            recovering: false,
            counted: true,
        }]
    }

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(seconds)
    }

    fn curve(cubic: &mut Cubic) -> Curve {
        *cubic.curves.of(&flow(1.0, 1)[0])
    }

    /// W_max 1000, reduced to 700: K = cbrt(300 / 0.4) = 9.0856 s.
    #[test]
    fn follows_the_cubic_function() {
        let mut cubic = Cubic::default();
        assert_eq!(cubic.on_fast_retransmit(at(0.0), 0, Window::new(1000.0), &flow(1000.0, 100)).as_f64(), 700.0);
        cubic.avoidance(at(0.0), 0, Window::new(1.0), &flow(700.0, 100)); // the epoch begins
        for (t, cwnd, target) in [
            // t [s]  cwnd  W(t + 0.1 s) = 0.4 (t + 0.1 − 9.0856)³ + 1000
            (1.0, 740.0, 796.3037),    // concave
            (4.0, 940.0, 950.4307),    // still concave
            (14.0, 1040.0, 1050.4332), // convex
            (30.0, 1100.0, 1650.0),    // far off: at most half the window per round trip
        ] {
            let growth = cubic.avoidance(at(t), 0, Window::new(1.0), &flow(cwnd, 100)).as_f64();
            assert!((growth - (target - cwnd) / cwnd).abs() < 1e-6, "at {t} s: {growth}");
        }
    }

    /// α = 3 · 0.3 / 1.7 = 0.5294 until W_est is back at the window before the loss, then 1.
    #[test]
    fn a_small_window_grows_like_reno() {
        let mut cubic = Cubic::default();
        cubic.on_fast_retransmit(at(0.0), 0, Window::new(10.0), &flow(10.0, 10));
        let mut window = 7.0;
        let mut steps = Vec::new();
        for round in 0..20 {
            let before = window;
            let growth =
                cubic.avoidance(at(0.01 * f64::from(round)), 0, Window::new(window), &flow(window, 10)).as_f64();
            window += growth;
            steps.push(window - before);
        }
        assert!((steps[1] - 0.529412).abs() < 1e-6, "{steps:?}");
        assert!((steps[19] - 1.0).abs() < 1e-6, "{steps:?}");
        // 7 + 6 · 0.5294 = 10.18 is the first beyond 10; 14 rounds at 1 follow.
        assert!((window - (7.0 + 6.0 * 9.0 / 17.0 + 14.0)).abs() < 1e-9, "{window}");
    }

    #[test]
    fn a_mark_takes_less_than_a_loss() {
        let mut cubic = Cubic::default();
        assert_eq!(cubic.on_mark(at(0.0), 0, Window::new(100.0), &flow(100.0, 10)).as_f64(), 85.0);
        assert_eq!(curve(&mut cubic).now.w_max, 100.0);
        let mut without = Cubic::new(0.4, 0.7, true);
        assert_eq!(without.on_mark(at(0.0), 0, Window::new(100.0), &flow(100.0, 10)).as_f64(), 70.0);
    }

    #[test]
    fn fast_convergence_lowers_the_plateau() {
        let mut cubic = Cubic::default();
        cubic.on_fast_retransmit(at(0.0), 0, Window::new(100.0), &flow(100.0, 10));
        cubic.on_fast_retransmit(at(1.0), 0, Window::new(80.0), &flow(80.0, 10));
        assert!((curve(&mut cubic).now.w_max - 68.0).abs() < 1e-12); // 80 · 1.7 / 2
        let mut without = Cubic::new(0.4, 0.7, false);
        without.on_fast_retransmit(at(0.0), 0, Window::new(100.0), &flow(100.0, 10));
        without.on_fast_retransmit(at(1.0), 0, Window::new(80.0), &flow(80.0, 10));
        assert_eq!(curve(&mut without).now.w_max, 80.0);
    }

    #[test]
    fn begins_at_the_plateau_after_a_timeout() {
        let mut cubic = Cubic::default();
        assert!((cubic.on_rto(at(0.0), 0, Window::new(1000.0), &flow(1000.0, 100)).as_f64() - 700.0).abs() < 1e-9);
        cubic.avoidance(at(5.0), 0, Window::new(1.0), &flow(700.0, 100));
        let epoch = curve(&mut cubic).now.epoch.expect("congestion avoidance began");
        assert_eq!((epoch.k, curve(&mut cubic).now.w_max), (0.0, 700.0));
    }

    /// A loss at 1000, and a timeout while it is repaired: slow start ends at 700, which is the plateau. A second later
    /// the cubic has grown by 0.4, so W_est counts: 701 · 9/17 / 700 = 0.5302. Towards a plateau at 1000 the window
    /// would grow to W(1.1 s) = 0.4 (1.1 − 9.0856)³ + 1000 = 796.3037.
    #[test]
    fn a_timeout_within_a_recovery_forgets_the_plateau_too() {
        for (timeout, growth) in [(true, 0.5302), (false, 96.3037)] {
            let mut cubic = Cubic::default();
            cubic.on_fast_retransmit(at(0.0), 0, Window::new(1000.0), &flow(1000.0, 100));
            if timeout {
                cubic.on_rto_again(at(0.3), 0, &flow(700.0, 100));
            }
            cubic.avoidance(at(2.0), 0, Window::new(1.0), &flow(700.0, 100)); // the epoch begins
            let grown = cubic.avoidance(at(3.0), 0, Window::new(700.0), &flow(700.0, 100)).as_f64();
            assert!((grown - growth).abs() < 1e-4, "{timeout}: {grown}");
        }
    }

    #[test]
    fn a_spurious_loss_gives_the_curve_back() {
        let mut cubic = Cubic::default();
        cubic.on_fast_retransmit(at(0.0), 0, Window::new(1000.0), &flow(1000.0, 100));
        let mut untouched = cubic.clone();
        let first = cubic.avoidance(at(1.0), 0, Window::new(1.0), &flow(700.0, 100)).as_f64();
        assert_eq!(first, untouched.avoidance(at(1.0), 0, Window::new(1.0), &flow(700.0, 100)).as_f64());
        cubic.on_fast_retransmit(at(2.0), 0, Window::new(720.0), &flow(720.0, 100));
        cubic.on_spurious(at(2.1), 0, &flow(720.0, 100));
        let (restored, expected) = (
            cubic.avoidance(at(3.0), 0, Window::new(1.0), &flow(720.0, 100)).as_f64(),
            untouched.avoidance(at(3.0), 0, Window::new(1.0), &flow(720.0, 100)).as_f64(),
        );
        assert_eq!(restored, expected);
    }

    #[test]
    fn time_without_limit_does_not_count() {
        let (mut paused, mut steady) = (Cubic::default(), Cubic::default());
        for cubic in [&mut paused, &mut steady] {
            cubic.on_fast_retransmit(at(0.0), 0, Window::new(1000.0), &flow(1000.0, 100));
            cubic.avoidance(at(0.0), 0, Window::new(1.0), &flow(700.0, 100));
        }
        paused.on_unlimited(at(60.0), 0, &flow(700.0, 100));
        let (after, without) = (
            paused.avoidance(at(61.0), 0, Window::new(1.0), &flow(700.0, 100)).as_f64(),
            steady.avoidance(at(1.0), 0, Window::new(1.0), &flow(700.0, 100)).as_f64(),
        );
        assert_eq!(after, without);
    }
}
