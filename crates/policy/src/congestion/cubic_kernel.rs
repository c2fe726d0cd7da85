//! CUBIC as Linux has it: in whole segments, and friendly to Reno for good.
//!
//! From `tcp_cubic.c` of Linux 6.18 (`bictcp_update`, `cubictcp_recalc_ssthresh`, `cubictcp_state`) and
//! `tcp_cong_avoid_ai` (`net/ipv4/tcp_cong.c`). The function is that of [`Cubic`](super::Cubic). It departs from RFC
//! 9438 in what matters to small windows:
//! ```text
//! ssthresh = ⌊717/1024 · cwnd⌋, at least 2     of the window, however much is in flight
//! W_est   += 1 for every ⌊15/8 · cwnd⌋ segments acknowledged
//! cnt      = ⌊cwnd / (W_cubic(t + RTT_min) − cwnd)⌋, or 100 cwnd
//! cnt      = min(cnt, ⌊cwnd / (W_est − cwnd)⌋) if W_est > cwnd
//! cwnd    += 1 for every max(cnt, 2) segments acknowledged
//! ```
//! - α stays 3 · 0.3 / 1.7, that is 8/15, where RFC 9438 has 1 once the window of before the loss is reached (§4.3).
//! - A window that stays as it is looks at the function again after 1/32 s at the earliest.
//! - Before there is a W_max, at first and after a timeout, `cnt` is 20 at most: 5 % per round trip. A timeout forgets
//!   the function, in a recovery as well.
//! - Undoing an unfounded reduction gives the window back, but not W_max.
//!
//! Differences: time is exact, where Linux counts jiffies and evaluates the function once in each; the cube root is
//! exact.

use super::{Ack, Capabilities, CongestionControl, Entry, Flow, PerFlow, WindowBased, WindowUpdate};
use anabranch_units::{Duration, Instant, Window};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "cubic-kernel",
    "cubic as Linux has it: whole segments, friendly to Reno for good; each subflow by itself",
    include_str!("cubic_kernel.rs"),
    |_| CongestionControl::window_based(CubicKernel::default()),
)
.paper("Linux 6.18, default")
.capabilities(|_| Capabilities { hystart: true, ..Capabilities::default() });

/// CUBIC of Linux for every subflow by itself.
#[derive(Clone, Debug, Default)]
pub struct CubicKernel {
    curves: PerFlow<Curve>,
}

/// State of one subflow. Windows are in segments.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    /// `last_max_cwnd`; 0 before the first loss and after a timeout.
    w_max: f64,
    epoch: Option<Epoch>,
    /// Segments acknowledged that the window has not grown for (`snd_cwnd_cnt`).
    credit: f64,
    /// The least RTT (`delay_min`).
    rtt_min: Option<Duration>,
    /// Time of the latest ACK of data.
    latest: Instant,
}

/// Congestion avoidance since the latest reduction.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// `bic_K` \[s\].
    k: f64,
    /// `bic_origin_point`.
    origin: f64,
    /// `tcp_cwnd`.
    w_est: f64,
    /// Segments acknowledged that `w_est` has not grown for (`ack_cnt`).
    acked: f64,
    /// Acknowledged segments per segment of growth.
    cnt: f64,
    /// The latest look at the function, and the window then.
    looked: Instant,
    cwnd: f64,
}

impl Epoch {
    fn new(now: Instant, cwnd: f64, w_max: f64) -> Self {
        let (k, origin) = if w_max <= cwnd { (0.0, cwnd) } else { (libm::cbrt((w_max - cwnd) / C), w_max) };
        Epoch { start: now, k, origin, w_est: cwnd, acked: 0.0, cnt: 0.0, looked: now, cwnd: 0.0 }
    }

    /// Looks at the function, with the window at `cwnd`.
    fn look(&mut self, now: Instant, cwnd: f64, rtt_min: Duration, untried: bool) {
        if self.cwnd == cwnd && now.since(self.looked) <= SELDOM {
            return;
        }
        (self.cwnd, self.looked) = (cwnd, now);
        let off = (now.since(self.start) + rtt_min).as_secs_f64() - self.k;
        let target = self.origin + (C * off * off * off).trunc();
        self.cnt = if target > cwnd { (cwnd / (target - cwnd)).floor() } else { 100.0 * cwnd };
        if untried {
            self.cnt = self.cnt.min(UNTRIED_COUNT);
        }
        let step = (cwnd * FRIENDLY_NUMERATOR / FRIENDLY_DENOMINATOR).floor();
        if self.acked > step {
            let steps = (self.acked / step).ceil() - 1.0;
            self.acked -= steps * step;
            self.w_est += steps;
        }
        if self.w_est > cwnd {
            self.cnt = self.cnt.min((cwnd / (self.w_est - cwnd)).floor());
        }
        self.cnt = self.cnt.max(2.0);
    }
}

impl WindowBased for CubicKernel {
    fn on_ack(&mut self, now: Instant, on: usize, ack: &Ack, flows: &[Flow]) -> Option<WindowUpdate> {
        let curve = self.curves.of(&flows[on]);
        curve.latest = now;
        // Samples of just after a recovery are not trusted.
        let settled = curve.epoch.is_none_or(|epoch| now.since(epoch.start) >= UNTRUSTED);
        if let Some(rtt) = ack.rtt.filter(|_| settled) {
            curve.rtt_min = Some(curve.rtt_min.map_or(rtt, |least| least.min(rtt)));
        }
        None
    }

    fn avoidance(&mut self, now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window {
        let (flow, curve) = (&flows[on], self.curves.of(&flows[on]));
        let (cwnd, acked) = (flow.cwnd_segments().floor().max(1.0), acked.per(flow.segment()));
        let w_max = curve.w_max;
        let epoch = curve.epoch.get_or_insert_with(|| Epoch::new(now, cwnd, w_max));
        epoch.acked += acked;
        epoch.look(now, cwnd, curve.rtt_min.unwrap_or(Duration::ZERO), w_max == 0.0);

        let mut grown = 0.0;
        if curve.credit >= epoch.cnt {
            (curve.credit, grown) = (0.0, 1.0);
        }
        curve.credit += acked;
        let earned = (curve.credit / epoch.cnt).floor();
        curve.credit -= earned * epoch.cnt;
        flow.segments(grown + earned)
    }

    fn on_fast_retransmit(&mut self, _now: Instant, on: usize, _in_flight: Window, flows: &[Flow]) -> Window {
        let cwnd = flows[on].cwnd_segments().floor();
        let curve = self.curves.of(&flows[on]);
        curve.w_max = if cwnd < curve.w_max { (cwnd * (1024.0 + BETA) / 2048.0).floor() } else { cwnd };
        (curve.epoch, curve.credit) = (None, 0.0);
        flows[on].segments((cwnd * BETA / 1024.0).floor().max(2.0))
    }

    fn on_rto(&mut self, now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        let ssthresh = self.on_fast_retransmit(now, on, in_flight, flows);
        self.on_rto_again(now, on, flows);
        ssthresh
    }

    fn on_rto_again(&mut self, _now: Instant, on: usize, flows: &[Flow]) {
        let curve = self.curves.of(&flows[on]);
        *curve = Curve { latest: curve.latest, ..Curve::default() };
    }

    fn on_reset(&mut self, _now: Instant, on: usize, flows: &[Flow]) {
        self.curves.of(&flows[on]).epoch = None;
    }

    /// The time of idling does not count.
    fn on_restart(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        let curve = self.curves.of(&flows[on]);
        if let Some(epoch) = &mut curve.epoch {
            epoch.start = (epoch.start + now.since(curve.latest)).min(now);
        }
    }
}

/// C \[segments/s³\] (`bic_scale`).
const C: f64 = 410.0 / 1024.0;
/// Window left by a loss, of 1024 segments (`beta`).
const BETA: f64 = 717.0;
/// `beta_scale`: ⌊8 · (1024 + 717) / (3 · (1024 − 717))⌋ eighths of a window earn W_est a segment.
const FRIENDLY_NUMERATOR: f64 = 15.0;
const FRIENDLY_DENOMINATOR: f64 = 8.0;
/// `cnt` at most, before there is a W_max.
const UNTRIED_COUNT: f64 = 20.0;
/// HZ/32.
const SELDOM: Duration = Duration::from_nanos(1_000_000_000 / 32);
/// No RTT sample counts for so long after a reduction.
const UNTRUSTED: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::FlowKey;
    use anabranch_units::{Bytes, SubflowId};

    /// Windows are counted in segments here: the MSS is 1.
    fn flow(cwnd: f64) -> [Flow; 1] {
        let srtt = Some(Duration::from_millis(22));
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

    fn curve(cubic: &mut CubicKernel) -> Curve {
        *cubic.curves.of(&flow(1.0)[0])
    }

    /// Windows that a full window reaches, with an ACK for two segments each and `rtt` s; one per round trip.
    fn rounds(cubic: &mut CubicKernel, mut cwnd: f64, rtt: f64, count: u32) -> Vec<f64> {
        let mut windows = vec![];
        let mut now = 0.0;
        for _ in 0..count {
            let acks = (cwnd / 2.0).ceil();
            for _ in 0..acks as u32 {
                now += rtt / acks;
                cwnd += cubic.avoidance(at(now), 0, Window::new(2.0), &flow(cwnd)).as_f64();
            }
            windows.push(cwnd);
        }
        windows
    }

    #[test]
    fn thresholds_are_whole_segments_of_the_window() {
        for (cwnd, ssthresh) in [
            (16.0, 11.0), // 11.2
            (14.0, 9.0),  //  9.8
            (13.0, 9.0),  //  9.1
            (12.0, 8.0),  //  8.4
            (2.0, 2.0),
        ] {
            // Whatever is in flight.
            assert_eq!(
                CubicKernel::default().on_fast_retransmit(at(0.0), 0, Window::new(3.0), &flow(cwnd)).as_f64(),
                ssthresh
            );
        }
    }

    /// A trace of Linux 6.18 over 20 Mbit/s and 20 ms, with RTTs of 22.6 ms: at 9 segments after a loss at 14, then at
    /// 10, 11, 12 … 17 after 1, 4, 6, 8, 10, 11, 13 and 15 round trips. W_est passes the window of before the loss at
    /// the pace that it had; RFC 9438 grows by a segment per round trip from there on.
    #[test]
    fn a_small_window_grows_at_one_pace() {
        let mut cubic = CubicKernel::default();
        cubic.on_ack(at(0.0), 0, &Ack { rtt: Some(Duration::from_millis(20)), ..Ack::default() }, &flow(14.0));
        cubic.on_fast_retransmit(at(0.0), 0, Window::new(14.0), &flow(14.0));
        let windows = rounds(&mut cubic, 9.0, 0.0226, 18);
        let reached = |window: u32| windows.iter().position(|now| *now >= window.into()).expect("it grows") + 1;
        assert_eq!([10, 11, 12, 13, 14, 15, 16, 17].map(reached), [1, 4, 6, 8, 11, 12, 14, 16], "{windows:?}");
    }

    /// 200 segments, untried: 10 more per round trip. After a loss at 200 the function is near its plateau.
    #[test]
    fn a_window_that_was_never_lost_grows_by_a_twentieth() {
        let mut untried = CubicKernel::default();
        assert_eq!(rounds(&mut untried, 200.0, 0.022, 1), [210.0]);
        let mut tried = CubicKernel::default();
        tried.on_fast_retransmit(at(0.0), 0, Window::new(200.0), &flow(200.0));
        assert!(rounds(&mut tried, 199.0, 0.022, 1)[0] < 202.0);
        // A timeout forgets that, within a recovery too.
        tried.on_rto_again(at(1.0), 0, &flow(200.0));
        assert_eq!(rounds(&mut tried, 200.0, 0.022, 1), [210.0]);
    }

    /// W_max 1000, reduced to 700: K = cbrt(300 / 0.400) = 9.083 s. At 4 s, W(4.02) = 1000 − 51.9 = 949: cnt = 940/9 =
    /// 104.
    #[test]
    fn follows_the_cubic_function() {
        let mut cubic = CubicKernel::default();
        cubic.on_ack(at(0.0), 0, &Ack { rtt: Some(Duration::from_millis(20)), ..Ack::default() }, &flow(1000.0));
        assert_eq!(cubic.on_fast_retransmit(at(0.0), 0, Window::new(1000.0), &flow(1000.0)).as_f64(), 700.0);
        cubic.avoidance(at(0.0), 0, Window::new(1.0), &flow(700.0));
        cubic.avoidance(at(4.0), 0, Window::new(1.0), &flow(940.0));
        let epoch = curve(&mut cubic).epoch.expect("congestion avoidance began");
        assert!((epoch.k - 9.083).abs() < 1e-3, "{}", epoch.k);
        assert_eq!(epoch.cnt, 104.0);
        // It is looked at again when the window moves or 1/32 s has passed.
        for (t, cwnd, cnt) in [(4.031, 940.0, 104.0), (4.031, 942.0, 134.0), (6.0, 942.0, 20.0)] {
            cubic.avoidance(at(t), 0, Window::new(1.0), &flow(cwnd));
            assert_eq!(curve(&mut cubic).epoch.expect("it goes on").cnt, cnt, "{t} s, {cwnd}");
        }
    }

    #[test]
    fn fast_convergence_lowers_the_plateau_and_an_undo_does_not_raise_it() {
        let mut cubic = CubicKernel::default();
        cubic.on_fast_retransmit(at(0.0), 0, Window::new(100.0), &flow(100.0));
        cubic.on_fast_retransmit(at(1.0), 0, Window::new(80.0), &flow(80.0));
        assert_eq!(curve(&mut cubic).w_max, 68.0); // 80 · 1741 / 2048 = 68.007
        cubic.on_spurious(at(1.1), 0, &flow(80.0));
        assert_eq!(curve(&mut cubic).w_max, 68.0);
    }

    #[test]
    fn idling_does_not_count() {
        let mut cubic = CubicKernel::default();
        cubic.avoidance(at(1.0), 0, Window::new(1.0), &flow(100.0));
        cubic.on_ack(at(2.0), 0, &Ack::default(), &flow(100.0));
        cubic.on_restart(at(9.0), 0, &flow(100.0));
        assert_eq!(curve(&mut cubic).epoch.expect("it goes on").start, at(8.0));
    }
}
