//! Prague: the congestion control of L4S, for queues that mark at once.
//!
//! K. De Schepper, O. Tilmans, B. Briscoe, V. Goel. *Prague Congestion Control.*
//! draft-briscoe-iccrg-prague-congestion-control-04; requirements of RFC 9331 §4.3; details that the draft leaves open
//! as in its reference implementation (`tcp_prague`).
//!
//! As in DCTCP α is a moving average of the share of marked bytes (g = 1/16), and the first mark in a round trip takes
//! α/2 of the window. Otherwise, per ACK in congestion avoidance, with `u` the bytes that were not marked,
//! ```text
//! cwnd += s · u · MSS / cwnd                     also while marks are being answered
//! s     = (min(srtt, R) / R)²,  R = 25 ms        once 500 round trips have passed since slow start
//! ```
//! so that flows with less than `R` share as if they all had it; α then has a new value at most once in `R`. A loss
//! halves the window. Slow start ends with the first mark or loss. Segments are paced at `cwnd / srtt`, in slow start
//! at twice that.
//!
//! Data asks for the marks of L4S with ECT(1); where none come, the control only halves on losses. Where we differ:
//! Prague does not tell queues apart that mark ECT(1) as RFC 3168 does (off by default in the reference implementation
//! as well).

use super::marks::MarkedShare;
use super::{Ack, Capabilities, CongestionControl, Entry, Flow, Model, ModelBased, PerFlow};
use crate::registry::{Number, number};
use anabranch_units::{Duration, Instant, Rate, Window};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "prague",
    "the control of L4S: small falls on frequent marks, paced; each subflow by itself",
    include_str!("prague.rs"),
    |p| CongestionControl::model_based(Prague::new(RTT_TARGET.of(p), TRANSITION.of(p))),
)
.paper("draft-briscoe-iccrg-prague-congestion-control")
.parameters(&[RTT_TARGET.parameter(), TRANSITION.parameter()])
.capabilities(|_| Capabilities { l4s: true, precise_marks: true, ..Capabilities::default() });

const RTT_TARGET: Number =
    number("rtt_target", "R, round-trip time below which all get the same share", 25.0, 0.0..=1000.0).in_unit("ms");
const TRANSITION: Number =
    number("transition", "round trips since slow start after which R counts", 500.0, 0.0..=1_000_000.0);

/// Prague for every subflow by itself.
#[derive(Clone, Debug)]
pub struct Prague {
    rtt_target: Duration,
    transition: u64,
    paths: PerFlow<Path>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Path {
    share: MarkedShare,
    /// Slow start is over.
    avoiding: bool,
    /// Round trips since.
    rounds: u64,
    /// A mark was reported in this round trip, and the window is to fall with its ACK.
    marked: bool,
    /// Window to which it falls with the next ACK after a loss.
    after_loss: Option<Window>,
    /// Fast recovery goes on: the window stays.
    repairing: bool,
    /// State before the latest loss.
    before_loss: Option<(Window, bool)>,
}

impl Prague {
    /// Prague with this target of the round-trip time \[ms\], which counts after `transition` round trips.
    pub fn new(rtt_target_ms: f64, transition: f64) -> Self {
        let rtt_target = Duration::from_micros((rtt_target_ms * 1000.0) as u64);
        Prague { rtt_target, transition: transition as u64, paths: PerFlow::default() }
    }
}

impl Path {
    fn begin_repair(&mut self, flow: &Flow) {
        self.before_loss = Some((flow.cwnd, self.avoiding));
        self.after_loss = Some(flow.cwnd / 2.0);
        (self.repairing, self.avoiding) = (true, true);
    }
}

impl ModelBased for Prague {
    fn on_ack(&mut self, now: Instant, flow: &Flow, ack: &Ack) -> Window {
        let (target, transition) = (self.rtt_target, self.transition);
        let path = self.paths.of(flow);
        let srtt = ack.srtt.or(flow.srtt).unwrap_or(target);
        let independent = path.rounds >= transition && srtt < target;
        let span = if independent { target } else { Duration::ZERO };
        let round_ends = path.share.count(now, ack, GAIN, span);
        path.rounds += u64::from(round_ends && path.avoiding);

        let mut cwnd = path.after_loss.take().unwrap_or(flow.cwnd);
        if std::mem::take(&mut path.marked) && !path.repairing {
            path.avoiding = true;
            cwnd *= 1.0 - path.share.get() / 2.0;
        }
        if !path.repairing && ack.cwnd_limited {
            let unmarked = Window::from(ack.acked.saturating_sub(ack.marked));
            if path.avoiding {
                let scale = if independent { srtt.per(target) * srtt.per(target) } else { 1.0 };
                cwnd += unmarked.min(cwnd).scaled(flow.segment(), cwnd) * scale;
            } else {
                cwnd += unmarked;
            }
        }
        cwnd.max(flow.segments(LEAST_SEGMENTS))
    }

    fn model(&self, flow: &Flow, srtt: Option<Duration>) -> Model {
        let avoiding = self.paths.get(flow).is_some_and(|path| path.avoiding);
        let srtt = srtt.unwrap_or(UNKNOWN_RTT).max(Duration::from_nanos(1)).as_secs_f64();
        let gain = if avoiding { 1.0 } else { 2.0 };
        Model { pacing: Rate::from_bps(((8.0 * gain * flow.cwnd.as_f64() / srtt) as u64).max(1)), bdp: None }
    }

    fn on_fast_retransmit(&mut self, _now: Instant, flow: &Flow) {
        self.paths.of(flow).begin_repair(flow);
    }

    fn on_mark(&mut self, _now: Instant, flow: &Flow) -> bool {
        let path = self.paths.of(flow);
        // What marks took is not given back with an unfounded loss before.
        (path.marked, path.before_loss) = (true, None);
        true
    }

    /// Begins slow start anew: what the path carries has to be found again.
    fn on_rto(&mut self, _now: Instant, flow: &Flow) {
        let path = self.paths.of(flow);
        path.begin_repair(flow);
        (path.after_loss, path.marked, path.repairing, path.avoiding) = (None, false, false, false);
    }

    fn on_rto_again(&mut self, _now: Instant, flow: &Flow) {
        let path = self.paths.of(flow);
        (path.after_loss, path.marked, path.repairing, path.avoiding) = (None, false, false, false);
    }

    fn on_recovered(&mut self, _now: Instant, flow: &Flow) {
        self.paths.of(flow).repairing = false;
    }

    /// Restores the window from before the loss, with the next ACK.
    fn on_spurious(&mut self, _now: Instant, flow: &Flow) {
        let path = self.paths.of(flow);
        path.repairing = false;
        if let Some((cwnd, avoiding)) = path.before_loss.take() {
            (path.after_loss, path.avoiding) = (Some(cwnd.max(flow.cwnd)), avoiding);
        }
    }

    fn on_restart(&mut self, _now: Instant, _flow: &Flow) -> Option<Window> {
        None
    }
}

/// g, weight of the latest round trip in α.
const GAIN: f64 = 1.0 / 16.0;
const LEAST_SEGMENTS: f64 = 2.0;
const UNKNOWN_RTT: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{FlowKey, RateSample};
    use anabranch_units::{Bytes, SubflowId};

    const MSS: u64 = 1000;

    fn flow(cwnd: f64) -> Flow {
        Flow {
            id: SubflowId(0),
            key: FlowKey::nth(0),
            mss: Bytes::new(MSS),
            cwnd: Window::new(cwnd),
            ssthresh: Window::INFINITE,
            srtt: None,
            recovering: false,
            counted: true,
        }
    }

    fn ack(delivered: u64, marked: u64, rtt_ms: u64) -> Ack {
        let sample = RateSample { prior_delivered: delivered.saturating_sub(10 * MSS), ..RateSample::default() };
        Ack {
            acked: Bytes::new(MSS),
            marked: Bytes::new(marked),
            srtt: Some(Duration::from_millis(rtt_ms)),
            delivered,
            sample: Some(sample),
            cwnd_limited: true,
            ..Ack::default()
        }
    }

    /// The first mark halves the window, for nothing is known of the share; a second falls by less.
    #[test]
    fn a_mark_ends_slow_start_and_each_falls_by_half_the_share() {
        let mut prague = Prague::new(25.0, 500.0);
        assert_eq!(prague.on_ack(Instant::ZERO, &flow(10_000.0), &ack(1000, 0, 50)).as_f64(), 11_000.0);
        assert_eq!(prague.model(&flow(10_000.0), Some(Duration::from_millis(10))).pacing, Rate::from_mbps(16));
        prague.on_mark(Instant::ZERO, &flow(20_000.0));
        assert_eq!(prague.on_ack(Instant::ZERO, &flow(20_000.0), &ack(2000, 1000, 50)).as_f64(), 10_000.0);
        assert_eq!(prague.model(&flow(10_000.0), Some(Duration::from_millis(10))).pacing, Rate::from_mbps(8));
        // Without a mark it grows by MSS · MSS / cwnd.
        assert_eq!(prague.on_ack(Instant::ZERO, &flow(10_000.0), &ack(3000, 0, 50)).as_f64(), 10_100.0);
        let share = prague.paths.of(&flow(0.0)).share.get();
        for segment in 4..40 {
            prague.on_ack(Instant::ZERO, &flow(10_000.0), &ack(segment * MSS, 0, 50));
        }
        let less = prague.paths.of(&flow(0.0)).share.get();
        assert!(less < share, "{less} {share}");
        prague.on_mark(Instant::ZERO, &flow(10_000.0));
        let after = prague.on_ack(Instant::ZERO, &flow(10_000.0), &ack(40_000, 1000, 50)).as_f64();
        let now = prague.paths.of(&flow(0.0)).share.get();
        assert!((after - 10_000.0 * (1.0 - now / 2.0)).abs() < 1e-6, "{after} {now}");
    }

    /// With 5 ms growth is (5/25)² of the usual, once the transition is over.
    #[test]
    fn short_round_trips_grow_as_long_ones() {
        let mut prague = Prague::new(25.0, 0.0);
        prague.on_mark(Instant::ZERO, &flow(20_000.0));
        prague.on_ack(Instant::ZERO, &flow(20_000.0), &ack(1000, 1000, 5));
        let grown = prague.on_ack(Instant::ZERO, &flow(10_000.0), &ack(2000, 0, 5)).as_f64();
        assert!((grown - 10_004.0).abs() < 1e-9, "{grown}");
    }

    #[test]
    fn a_loss_halves_and_an_unfounded_one_is_undone() {
        let mut prague = Prague::new(25.0, 500.0);
        prague.on_fast_retransmit(Instant::ZERO, &flow(20_000.0));
        assert_eq!(prague.on_ack(Instant::ZERO, &flow(20_000.0), &ack(1000, 0, 50)).as_f64(), 10_000.0);
        assert_eq!(prague.on_ack(Instant::ZERO, &flow(10_000.0), &ack(2000, 0, 50)).as_f64(), 10_000.0, "it stays");
        prague.on_spurious(Instant::ZERO, &flow(10_000.0));
        assert_eq!(prague.on_ack(Instant::ZERO, &flow(10_000.0), &ack(3000, 0, 50)).as_f64(), 21_000.0);
    }
}
