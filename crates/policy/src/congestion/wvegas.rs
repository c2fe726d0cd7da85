//! wVegas: Vegas on every subflow, with one budget of queued packets that moves to where the rate is.
//!
//! Y. Cao, M. Xu, X. Fu. *Delay-based Congestion Control for Multipath TCP.* ICNP 2012; order of steps and constants as in the
//! authors' module of the out-of-tree Linux kernel (`mptcp_wvegas`).
//!
//! Once per round trip, with `base` the smallest RTT ever, `rtt` the mean of this round's samples and `w` in segments:
//! ```text
//! diff = w · (rtt − base) / rtt
//! slow start:  if diff > γ: w = min(w, w · base/rtt + 1), and slow start is over
//! then:        if diff ≥ α_i: rate_i = w / rtt, weight_i = rate_i / Σ rate, α_i = max(2, weight_i · total_alpha)
//!              if diff > α_i: w −= 1;  if diff < α_i: w += 1
//!              q = rtt − base; if q ≥ 2 · (smallest q > 0 seen): w *= base / (2 · rtt), and forget that smallest
//! ```
//! A round with fewer than three samples is NewReno's, as is everything from a loss until it is repaired; a loss halves the
//! window. Leaving recovery, idling and penalisation forget all but `base`, the rates and the budget.
//!
//! Where we differ: windows have fractions, but `diff` and `α_i` are rounded down as in the kernel, so that a backlog between
//! `α_i` and one packet more is left alone. The kernel restores α_i = 2 whenever it leaves recovery; so do we.

use super::ack::Round;
use super::coupled::{LISA, alone};
use super::vegas::{LEAST_SAMPLES, LEAST_SEGMENTS};
use super::{Ack, CongestionControl, Flow, Window};
use crate::registry::{Domain, Parameter};
use anabranch_units::{Duration, Instant};

/// Weighted Vegas over the subflows of one connection.
#[derive(Clone, Debug)]
pub struct WVegas {
    /// Packets in queues that all subflows together aim at.
    total_alpha: f64,
    /// γ \[segments\].
    gamma: f64,
    lisa: bool,
    /// One per flow, in their order.
    memories: Vec<Memory>,
}

/// What wVegas takes.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "total_alpha",
        about: "packets in queues that all subflows together aim at",
        unit: "segments",
        domain: Domain::Number { default: 10.0, min: 2.0, max: 10_000.0 },
    },
    Parameter {
        name: "gamma",
        about: "γ, packets in the queue that end slow start",
        unit: "segments",
        domain: Domain::Number { default: 1.0, min: 0.0, max: 10_000.0 },
    },
    LISA,
];

#[derive(Clone, Copy, Debug)]
struct Memory {
    /// Smallest RTT ever.
    base: Option<Duration>,
    round: Round,
    /// Of this round.
    sum: Duration,
    samples: u64,
    /// From a loss until it is repaired.
    repairing: bool,
    /// The ACK being counted ends a round that said too little.
    unsure: bool,
    /// α_i \[segments\].
    alpha: f64,
    /// `rate_i` when α_i was last set \[bytes/ns\]; 0 before.
    rate: f64,
    weight: f64,
    /// Smallest queueing delay since the last drain.
    least_queue: Option<Duration>,
}

impl Default for Memory {
    fn default() -> Self {
        Memory {
            base: None,
            round: Round::default(),
            sum: Duration::ZERO,
            samples: 0,
            repairing: false,
            unsure: false,
            alpha: LEAST_ALPHA,
            rate: 0.0,
            weight: 0.0,
            least_queue: None,
        }
    }
}

impl Memory {
    fn restart(&mut self, repairing: bool) {
        *self = Memory { base: self.base, rate: self.rate, weight: self.weight, repairing, ..Memory::default() };
    }
}

impl WVegas {
    /// wVegas with its budget and γ \[segments\], and linked slow start if `lisa`; the kernel has 10 and 1.
    pub fn new(total_alpha: f64, gamma: f64, lisa: bool) -> Self {
        WVegas { total_alpha, gamma, lisa, memories: Vec::new() }
    }

    /// Sets `rate_i`, `weight_i` and `α_i` of flow `on`, which sends `rate` \[bytes/ns\].
    fn share_budget(&mut self, on: usize, rate: f64, flows: &[Flow]) {
        self.memories[on].rate = rate;
        let counted = |(index, flow): &(usize, &Flow)| flow.counted || *index == on;
        let counted = flows.iter().enumerate().filter(counted);
        let total: f64 = counted.map(|(index, _)| self.memories[index].rate).sum();
        let memory = &mut self.memories[on];
        if total > 0.0 {
            memory.weight = rate / total;
        }
        memory.alpha = (memory.weight * self.total_alpha).floor().max(LEAST_ALPHA);
    }
}

impl Default for WVegas {
    fn default() -> Self {
        WVegas::new(10.0, 1.0, false)
    }
}

impl CongestionControl for WVegas {
    fn on_ack(&mut self, _now: Instant, on: usize, ack: &Ack, flows: &[Flow]) -> Option<Window> {
        let memory = &mut self.memories[on];
        memory.unsure = false;
        if let Some(rtt) = ack.rtt {
            memory.base = Some(memory.base.map_or(rtt, |base| base.min(rtt)));
            memory.sum = memory.sum + rtt;
            memory.samples += 1;
        }
        if memory.repairing || ack.in_recovery || !memory.round.ends(ack) {
            return None;
        }
        let (samples, sum) = (std::mem::take(&mut memory.samples), std::mem::take(&mut memory.sum));
        let Some(base) = memory.base.filter(|_| samples >= u64::from(LEAST_SAMPLES)) else {
            memory.unsure = true;
            return None;
        };
        let (flow, rtt) = (&flows[on], sum / samples);
        let share = base.per(rtt);
        let diff = (flow.cwnd / flow.mss * (1.0 - share)).floor();
        if flow.cwnd < flow.ssthresh {
            let cwnd = flow.cwnd.min(flow.cwnd * share + flow.mss).max(LEAST_SEGMENTS * flow.mss);
            let ssthresh = flow.ssthresh.min(cwnd - flow.mss);
            return (diff > self.gamma).then_some(Window { cwnd, ssthresh });
        }

        if diff >= memory.alpha {
            self.share_budget(on, flow.cwnd / rtt.as_nanos().max(1) as f64, flows);
        }
        let memory = &mut self.memories[on];
        let mut window = Window { cwnd: flow.cwnd, ssthresh: flow.ssthresh };
        if diff > memory.alpha {
            window.cwnd -= flow.mss;
            window.ssthresh = window.ssthresh.min(window.cwnd - flow.mss);
        } else if diff < memory.alpha {
            window.cwnd += flow.mss;
        }
        let queue = rtt.saturating_sub(base);
        if !queue.is_zero() {
            let least = memory.least_queue.map_or(queue, |least| least.min(queue));
            memory.least_queue = Some(least);
            if queue >= least * 2 {
                window.cwnd *= share / 2.0;
                memory.least_queue = None;
            }
        }
        window.cwnd = window.cwnd.max(LEAST_SEGMENTS * flow.mss);
        Some(window)
    }

    /// Between two decisions the window stays.
    fn avoidance(&mut self, _now: Instant, on: usize, acked: f64, flows: &[Flow]) -> f64 {
        let memory = &self.memories[on];
        if memory.repairing || memory.unsure { alone(&flows[on], acked) } else { 0.0 }
    }

    fn on_fast_retransmit(&mut self, _now: Instant, on: usize, in_flight: f64, _flows: &[Flow]) -> f64 {
        self.memories[on].restart(true);
        in_flight / 2.0
    }

    fn on_rto(&mut self, now: Instant, on: usize, in_flight: f64, flows: &[Flow]) -> f64 {
        self.memories[on].rate = 0.0;
        self.on_fast_retransmit(now, on, in_flight, flows)
    }

    fn on_recovered(&mut self, _now: Instant, on: usize, _flows: &[Flow]) {
        self.memories[on].restart(false);
    }

    fn on_reset(&mut self, _now: Instant, on: usize, _flows: &[Flow]) {
        let repairing = self.memories[on].repairing;
        self.memories[on].restart(repairing);
    }

    fn linked_slow_start(&self) -> bool {
        self.lisa
    }

    fn on_flow_added(&mut self, at: usize) {
        self.memories.insert(at, Memory::default());
    }

    fn on_flow_removed(&mut self, at: usize) {
        self.memories.remove(at);
    }
}

/// α_i before the first decision, and its least value \[segments\].
const LEAST_ALPHA: f64 = 2.0;
