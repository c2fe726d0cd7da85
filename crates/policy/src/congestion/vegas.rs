//! Vegas: a few packets in the queue, and no more, found by the round-trip time.
//!
//! L. Brakmo, S. O'Malley, L. Peterson. *TCP Vegas: New Techniques for Congestion Detection and Avoidance.* SIGCOMM 1994;
//! parameters and the order of steps as in Linux (`tcp_vegas`).
//!
//! Once per round trip, with `base` the smallest RTT ever, `rtt` the smallest of this round and `w` in segments,
//! ```text
//! diff = w · (rtt − base) / rtt
//! ```
//! estimates our packets in the queue. Congestion avoidance adds a segment if `diff < α`, takes one if `diff > β`; slow
//! start, otherwise as ever, ends when `diff > γ`: then `w = min(w, w · base/rtt + 1)`. A round with fewer than three samples
//! says too little and is NewReno's, as is everything from a loss until it is repaired. A loss halves the window.
//!
//! Where we differ: `diff` is a real number and divided by `rtt`, as in the paper, where Linux rounds down and divides by
//! `base`. Linux doubles in every round trip of slow start, and so do we; the paper doubles in every other.

use super::ack::Round;
use super::coupled::alone;
use super::{Ack, CongestionControl, Flow, Window};
use crate::registry::{Domain, Parameter};
use anabranch_units::{Duration, Instant};

/// Vegas for every subflow by itself.
#[derive(Clone, Debug)]
pub struct Vegas {
    /// α \[segments\].
    alpha: f64,
    /// β \[segments\].
    beta: f64,
    /// γ \[segments\].
    gamma: f64,
    /// One per flow, in their order.
    memories: Vec<Memory>,
}

/// What Vegas takes.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "alpha",
        about: "α, queued packets below which the window grows",
        unit: "segments",
        domain: Domain::Number { default: 2.0, min: 0.0, max: 10_000.0 },
    },
    Parameter {
        name: "beta",
        about: "β, queued packets above which it shrinks",
        unit: "segments",
        domain: Domain::Number { default: 4.0, min: 0.0, max: 10_000.0 },
    },
    Parameter {
        name: "gamma",
        about: "γ, queued packets that end slow start",
        unit: "segments",
        domain: Domain::Number { default: 1.0, min: 0.0, max: 10_000.0 },
    },
];

#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// Smallest RTT ever.
    base: Option<Duration>,
    round: Round,
    /// Smallest RTT of this round.
    least: Option<Duration>,
    /// Samples in this round.
    samples: u32,
    /// From a loss until it is repaired.
    repairing: bool,
    /// The ACK being counted ends a round that said too little.
    unsure: bool,
}

impl Vegas {
    /// Vegas with its three thresholds \[segments\]; Linux has 2, 4 and 1.
    pub fn new(alpha: f64, beta: f64, gamma: f64) -> Self {
        Vegas { alpha, beta, gamma, memories: Vec::new() }
    }

    /// A new round begins with the next ACK.
    fn restart(&mut self, on: usize, repairing: bool) {
        let base = self.memories[on].base;
        self.memories[on] = Memory { base, repairing, ..Memory::default() };
    }
}

impl Default for Vegas {
    fn default() -> Self {
        Vegas::new(2.0, 4.0, 1.0)
    }
}

impl CongestionControl for Vegas {
    fn on_ack(&mut self, _now: Instant, on: usize, ack: &Ack, flows: &[Flow]) -> Option<Window> {
        let memory = &mut self.memories[on];
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
        let diff = flow.cwnd / flow.mss * (1.0 - share);
        let window = |cwnd: f64, ssthresh: f64| Window { cwnd: cwnd.max(LEAST_SEGMENTS * flow.mss), ssthresh };
        if flow.cwnd < flow.ssthresh {
            let cwnd = flow.cwnd.min(flow.cwnd * share + flow.mss);
            // A threshold below the window: slow start is over.
            return (diff > self.gamma).then_some(window(cwnd, flow.ssthresh.min(cwnd - flow.mss)));
        }
        if diff > self.beta {
            let cwnd = flow.cwnd - flow.mss;
            return Some(window(cwnd, flow.ssthresh.min(cwnd - flow.mss)));
        }
        (diff < self.alpha).then_some(window(flow.cwnd + flow.mss, flow.ssthresh))
    }

    /// Between two decisions the window stays.
    fn avoidance(&mut self, _now: Instant, on: usize, acked: f64, flows: &[Flow]) -> f64 {
        let memory = &self.memories[on];
        if memory.repairing || memory.unsure { alone(&flows[on], acked) } else { 0.0 }
    }

    fn on_fast_retransmit(&mut self, _now: Instant, on: usize, in_flight: f64, _flows: &[Flow]) -> f64 {
        self.restart(on, true);
        in_flight / 2.0
    }

    fn on_recovered(&mut self, _now: Instant, on: usize, _flows: &[Flow]) {
        self.restart(on, false);
    }

    fn on_reset(&mut self, _now: Instant, on: usize, _flows: &[Flow]) {
        let repairing = self.memories[on].repairing;
        self.restart(on, repairing);
    }

    fn on_flow_added(&mut self, at: usize) {
        self.memories.insert(at, Memory::default());
    }

    fn on_flow_removed(&mut self, at: usize) {
        self.memories.remove(at);
    }
}

/// Fewer samples in a round may all be of delayed ACKs.
pub(super) const LEAST_SAMPLES: u32 = 3;
/// No delay makes a window smaller.
pub(super) const LEAST_SEGMENTS: f64 = 2.0;
