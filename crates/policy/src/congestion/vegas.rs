//! Vegas: a few packets in the queue, and no more, found by the round-trip time.
//!
//! L. Brakmo, S. O'Malley, L. Peterson. *TCP Vegas: New Techniques for Congestion Detection and Avoidance.* SIGCOMM
//! 1994; parameters and the order of steps as in Linux (`tcp_vegas`).
//!
//! Once per round trip, with `base` the smallest RTT ever, `rtt` the smallest of this round and `w` in segments,
//! ```text
//! diff = w · (rtt − base) / rtt
//! ```
//! estimates our packets in the queue. Congestion avoidance adds a segment if `diff < α`, takes one if `diff > β`; slow
//! start, otherwise as ever, ends when `diff > γ`: then `w = min(w, w · base/rtt + 1)`. A round with fewer than three
//! samples follows NewReno, as does everything from a loss until it is repaired. A loss halves the window.
//!
//! Where we differ: `diff` is a real number and divided by `rtt`, as in the paper, where Linux rounds down and divides
//! by `base`. Linux doubles in every round trip of slow start, and so do we; the paper doubles in every other.

use super::ack::Round;
use super::coupled::alone;
use super::{Ack, CongestionControl, Entry, Flow, PerFlow, WindowBased, WindowUpdate};
use crate::registry::{Number, number};
use anabranch_units::{Duration, Instant, Window};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "vegas",
    "keeps a few packets queued, found by the RTT; each subflow by itself",
    include_str!("vegas.rs"),
    |p| CongestionControl::window_based(Vegas::new(ALPHA.of(p), BETA.of(p), GAMMA.of(p))),
)
.paper("Brakmo 1994")
.parameters(&[ALPHA.parameter(), BETA.parameter(), GAMMA.parameter()]);

/// Vegas for every subflow by itself.
#[derive(Clone, Debug)]
pub struct Vegas {
    /// α \[segments\].
    alpha: f64,
    /// β \[segments\].
    beta: f64,
    /// γ \[segments\].
    gamma: f64,
    memories: PerFlow<Memory>,
}

const ALPHA: Number =
    number("alpha", "α, queued packets below which the window grows", 2.0, 0.0..=10_000.0).in_unit("segments");
const BETA: Number =
    number("beta", "β, queued packets above which it shrinks", 4.0, 0.0..=10_000.0).in_unit("segments");
const GAMMA: Number = number("gamma", "γ, queued packets that end slow start", 1.0, 0.0..=10_000.0).in_unit("segments");

#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// Smallest RTT ever.
    base: Option<Duration>,
    round: Round,
    /// Smallest RTT of this round.
    least: Option<Duration>,
    /// Samples in this round.
    samples: u32,
    /// True from a loss until it is repaired.
    repairing: bool,
    /// The ACK being counted ends a round that said too little.
    unsure: bool,
}

impl Vegas {
    /// Vegas with its three thresholds \[segments\]; Linux has 2, 4 and 1.
    pub fn new(alpha: f64, beta: f64, gamma: f64) -> Self {
        Vegas { alpha, beta, gamma, memories: PerFlow::default() }
    }

    /// A new round begins with the next ACK.
    fn restart(&mut self, flow: &Flow, repairing: bool) {
        let memory = self.memories.of(flow);
        *memory = Memory { base: memory.base, repairing, ..Memory::default() };
    }
}

impl Default for Vegas {
    fn default() -> Self {
        Vegas::new(2.0, 4.0, 1.0)
    }
}

impl WindowBased for Vegas {
    fn on_ack(&mut self, _now: Instant, on: usize, ack: &Ack, flows: &[Flow]) -> Option<WindowUpdate> {
        let memory = self.memories.of(&flows[on]);
        memory.unsure = false;
        if let Some(rtt) = ack.rtt {
            memory.base = Some(memory.base.map_or(rtt, |base| base.min(rtt)));
            memory.least = Some(memory.least.map_or(rtt, |least| least.min(rtt)));
            memory.samples += 1;
        }
        if memory.repairing || ack.in_recovery || !memory.round.ends(ack) {
            return None;
        }
        let (samples, least) = (std::mem::take(&mut memory.samples), memory.least.take());
        let (Some(base), Some(rtt)) = (memory.base, least.filter(|_| samples >= LEAST_SAMPLES)) else {
            memory.unsure = true;
            return None;
        };
        let (flow, share) = (&flows[on], base.per(rtt));
        let diff = flow.cwnd_segments() * (1.0 - share);
        let least = flow.segments(LEAST_SEGMENTS);
        let window = |cwnd: Window, ssthresh| WindowUpdate { cwnd: cwnd.max(least), ssthresh };
        if flow.cwnd < flow.ssthresh {
            let cwnd = flow.cwnd.min(flow.cwnd * share + flow.segment());
            // A threshold below the window: slow start is over.
            return (diff > self.gamma).then_some(window(cwnd, flow.ssthresh.min(cwnd - flow.segment())));
        }
        if diff > self.beta {
            let cwnd = flow.cwnd - flow.segment();
            return Some(window(cwnd, flow.ssthresh.min(cwnd - flow.segment())));
        }
        (diff < self.alpha).then_some(window(flow.cwnd + flow.segment(), flow.ssthresh))
    }

    /// Between two decisions the window stays.
    fn avoidance(&mut self, _now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window {
        let memory = self.memories.of(&flows[on]);
        if memory.repairing || memory.unsure { alone(&flows[on], acked) } else { Window::ZERO }
    }

    fn on_fast_retransmit(&mut self, _now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        self.restart(&flows[on], true);
        in_flight / 2.0
    }

    fn on_recovered(&mut self, _now: Instant, on: usize, flows: &[Flow]) {
        self.restart(&flows[on], false);
    }

    fn on_reset(&mut self, _now: Instant, on: usize, flows: &[Flow]) {
        let repairing = self.memories.of(&flows[on]).repairing;
        self.restart(&flows[on], repairing);
    }
}

/// Fewer samples in a round may all be of delayed ACKs.
pub(super) const LEAST_SAMPLES: u32 = 3;
/// No delay makes a window smaller.
pub(super) const LEAST_SEGMENTS: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::FlowKey;
    use crate::congestion::RateSample;
    use anabranch_units::{Bytes, SubflowId};

    fn update(cwnd: f64, ssthresh: f64) -> WindowUpdate {
        WindowUpdate { cwnd: Window::new(cwnd), ssthresh: Window::new(ssthresh) }
    }

    /// Windows are counted in segments here: the MSS is 1.
    fn flow(cwnd: f64, ssthresh: f64) -> [Flow; 1] {
        [Flow {
            id: SubflowId(0),
            key: FlowKey::nth(0),
            mss: Bytes::new(1),
            cwnd: Window::new(cwnd),
            ssthresh: Window::new(ssthresh),
            srtt: None,
            recovering: false,
            counted: true,
        }]
    }

    /// Vegas that has seen 100 ms, with a round under way.
    fn vegas() -> Vegas {
        let mut vegas = Vegas::default();
        vegas.on_ack(Instant::ZERO, 0, &ack(100, None), &flow(2.0, 1.0));
        let memory = vegas.memories.of(&flow(2.0, 1.0)[0]);
        (memory.samples, memory.least) = (0, None);
        vegas
    }

    fn ack(rtt_ms: u64, prior_delivered: Option<u64>) -> Ack {
        let sample = prior_delivered.map(|prior_delivered| RateSample { prior_delivered, ..RateSample::default() });
        Ack { rtt: Some(Duration::from_millis(rtt_ms)), delivered: 1, sample, ..Ack::default() }
    }

    /// The answer to a round with these samples \[ms\].
    fn round(vegas: &mut Vegas, samples: &[u64], flows: &[Flow]) -> Option<WindowUpdate> {
        let (last, before) = samples.split_last().expect("a round has an end");
        for rtt in before {
            assert_eq!(vegas.on_ack(Instant::ZERO, 0, &ack(*rtt, None), flows), None);
        }
        vegas.on_ack(Instant::ZERO, 0, &ack(*last, Some(1)), flows)
    }

    /// diff by a throw-away Python script, with the smallest RTT of the round.
    #[test]
    fn worked_example() {
        for (cwnd, samples, expected) in [
            // w      RTT              w         diff
            (20.0, [300, 110, 400], Some(21.0)), // 1.82 < α
            (20.0, [125, 125, 125], None),       // 4 is within α..β
            (20.0, [130, 131, 130], Some(19.0)), // 4.62 > β
            (6.0, [900, 900, 900], Some(5.0)),   // 5.33 > β
            (20.0, [100, 100, 100], Some(21.0)), // 0
        ] {
            let window = round(&mut vegas(), &samples, &flow(cwnd, 3.0));
            assert_eq!(window.map(|window| window.cwnd.as_f64()), expected, "{cwnd} {samples:?}");
        }
        let lowest = round(&mut Vegas::new(0.0, 0.5, 1.0).with(vegas()), &[900, 900, 900], &flow(2.0, 2.0));
        assert_eq!(lowest, Some(update(2.0, 0.0)), "two segments stay");
    }

    impl Vegas {
        fn with(mut self, other: Vegas) -> Vegas {
            self.memories = other.memories;
            self
        }
    }

    /// 30 · 3/103 = 0.87 ends nothing, 30 · 4/104 = 1.15 does: w = 30 · 100/104 + 1 = 29.85, ssthresh one less.
    #[test]
    fn slow_start_ends_with_the_first_packet_queued() {
        let mut vegas = vegas();
        let flows = flow(30.0, f64::INFINITY);
        assert_eq!(round(&mut vegas, &[103, 103, 103], &flows), None);
        let window = round(&mut vegas, &[104, 104, 104], &flows).expect("more than a packet");
        assert!(
            (window.cwnd.as_f64() - 29.8461538).abs() < 1e-6 && (window.ssthresh.as_f64() - 28.8461538).abs() < 1e-6,
            "{window:?}"
        );
    }

    #[test]
    fn few_samples_and_repairs_are_renos() {
        let mut vegas = vegas();
        let flows = flow(20.0, 3.0);
        assert_eq!(round(&mut vegas, &[200, 200], &flows), None);
        assert_eq!(vegas.avoidance(Instant::ZERO, 0, Window::new(1.0), &flows).as_f64(), 0.05);
        round(&mut vegas, &[125, 125, 125], &flows);
        assert_eq!(vegas.avoidance(Instant::ZERO, 0, Window::new(1.0), &flows).as_f64(), 0.0);
        assert_eq!(vegas.on_fast_retransmit(Instant::ZERO, 0, Window::new(20.0), &flows).as_f64(), 10.0);
        assert_eq!(round(&mut vegas, &[200, 200, 200], &flows), None);
        assert_eq!(vegas.avoidance(Instant::ZERO, 0, Window::new(1.0), &flows).as_f64(), 0.05);
        vegas.on_recovered(Instant::ZERO, 0, &flows);
        assert_eq!(vegas.avoidance(Instant::ZERO, 0, Window::new(1.0), &flows).as_f64(), 0.0);
        // The first ACK only begins a round; the smallest RTT is remembered.
        assert_eq!(round(&mut vegas, &[130, 130, 130, 130], &flows), Some(update(19.0, 3.0)));
    }
}
