//! wVegas: Vegas on every subflow, with one budget of queued packets, shared out by rate.
//!
//! Y. Cao, M. Xu, X. Fu. *Delay-based Congestion Control for Multipath TCP.* ICNP 2012; order of steps and constants as
//! in the authors' module of the out-of-tree Linux kernel (`mptcp_wvegas`).
//!
//! Once per round trip, with `base` the smallest RTT ever, `rtt` the mean of this round's samples and `w` in segments:
//! ```text
//! diff = w · (rtt − base) / rtt
//! slow start:  if diff > γ: w = min(w, w · base/rtt + 1), and slow start is over
//! then:        if diff ≥ α_i: rate_i = w / rtt, weight_i = rate_i / Σ rate, α_i = max(2, weight_i · total_alpha)
//!              if diff > α_i: w −= 1;  if diff < α_i: w += 1
//!              q = rtt − base; if q ≥ 2 · (smallest q > 0 seen): w *= base / (2 · rtt), and forget that smallest
//! ```
//! A round with fewer than three samples is NewReno's, as is everything from a loss until it is repaired; a loss halves
//! the window. `drain` switches the last line off: where RTTs hardly vary, the smallest `q` is so small that it halves
//! the window again and again, which on a path by itself costs half the rate. Leaving recovery, idling and penalisation
//! forget all but `base`, the rates and the budget.
//!
//! Where we differ: windows have fractions, but `diff` and `α_i` are rounded down as in the kernel, so that a backlog
//! between `α_i` and one packet more is left alone. The kernel restores α_i = 2 whenever it leaves recovery; so do we.

use super::ack::Round;
use super::coupled::{LISA, alone, linked};
use super::vegas::{LEAST_SAMPLES, LEAST_SEGMENTS};
use super::{Ack, CongestionControl, Entry, Flow, PerFlow, WindowBased, WindowUpdate};
use crate::registry::{Flag, Number, flag, number};
use anabranch_units::{Duration, Instant, Window};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "wvegas",
    "vegas on every subflow, sharing one budget of queued packets by their rates",
    include_str!("wvegas.rs"),
    |p| CongestionControl::window_based(WVegas::new(TOTAL_ALPHA.of(p), GAMMA.of(p), DRAIN.of(p))),
)
.paper("Cao 2012")
.parameters(&[TOTAL_ALPHA.parameter(), GAMMA.parameter(), DRAIN.parameter(), LISA.parameter()])
.capabilities(linked);

/// Weighted Vegas over the subflows of one connection.
#[derive(Clone, Debug)]
pub struct WVegas {
    /// Packets in queues that all subflows together aim at.
    total_alpha: f64,
    /// γ \[segments\].
    gamma: f64,
    /// Empty the queue when its delay has doubled.
    drain: bool,
    memories: PerFlow<Memory>,
}

const TOTAL_ALPHA: Number =
    number("total_alpha", "target of queued packets for all subflows together", 10.0, 2.0..=10_000.0)
        .in_unit("segments");
const GAMMA: Number =
    number("gamma", "γ, packets in the queue that end slow start", 1.0, 0.0..=10_000.0).in_unit("segments");
const DRAIN: Flag = flag(
    "drain",
    "shrink to half the empty path's window when the queueing delay has doubled, as the kernel does",
    true,
);

#[derive(Clone, Copy, Debug)]
struct Memory {
    /// Smallest RTT ever.
    base: Option<Duration>,
    round: Round,
    /// Sum of the samples of this round.
    sum: Duration,
    samples: u64,
    /// True from a loss until it is repaired.
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
    /// wVegas with its budget and γ \[segments\]; the kernel has 10 and 1, and drains.
    pub fn new(total_alpha: f64, gamma: f64, drain: bool) -> Self {
        WVegas { total_alpha, gamma, drain, memories: PerFlow::default() }
    }

    /// Sets `rate_i`, `weight_i` and `α_i` of flow `on`, which sends `rate` \[bytes/ns\].
    fn share_budget(&mut self, on: usize, rate: f64, flows: &[Flow]) {
        self.memories.of(&flows[on]).rate = rate;
        let counted = flows.iter().filter(|flow| flow.counted || flow.key == flows[on].key);
        let total: f64 = counted.map(|flow| self.memories.get(flow).map_or(0.0, |memory| memory.rate)).sum();
        let memory = self.memories.of(&flows[on]);
        if total > 0.0 {
            memory.weight = rate / total;
        }
        memory.alpha = (memory.weight * self.total_alpha).floor().max(LEAST_ALPHA);
    }
}

impl Default for WVegas {
    fn default() -> Self {
        WVegas::new(10.0, 1.0, true)
    }
}

impl WindowBased for WVegas {
    fn on_ack(&mut self, _now: Instant, on: usize, ack: &Ack, flows: &[Flow]) -> Option<WindowUpdate> {
        let memory = self.memories.of(&flows[on]);
        memory.unsure = false;
        if let Some(rtt) = ack.rtt {
            memory.base = Some(memory.base.map_or(rtt, |base| base.min(rtt)));
            memory.sum += rtt;
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
        let (share, queue) = (base.per(rtt), rtt.saturating_sub(base));
        // Multiplied first: whole results stay whole.
        let diff = (flow.cwnd_segments() * queue.as_nanos() as f64 / rtt.as_nanos().max(1) as f64).floor();
        if flow.cwnd < flow.ssthresh {
            let cwnd = flow.cwnd.min(flow.cwnd * share + flow.segment()).max(flow.segments(LEAST_SEGMENTS));
            let ssthresh = flow.ssthresh.min(cwnd - flow.segment());
            return (diff > self.gamma).then_some(WindowUpdate { cwnd, ssthresh });
        }

        if diff >= memory.alpha {
            self.share_budget(on, flow.cwnd.as_f64() / rtt.as_nanos().max(1) as f64, flows);
        }
        let memory = self.memories.of(&flows[on]);
        let mut window = WindowUpdate { cwnd: flow.cwnd, ssthresh: flow.ssthresh };
        if diff > memory.alpha {
            window.cwnd -= flow.segment();
            window.ssthresh = window.ssthresh.min(window.cwnd - flow.segment());
        } else if diff < memory.alpha {
            window.cwnd += flow.segment();
        }
        if !queue.is_zero() {
            let least = memory.least_queue.map_or(queue, |least| least.min(queue));
            memory.least_queue = Some(least);
            if self.drain && queue >= least * 2 {
                window.cwnd *= share / 2.0;
                memory.least_queue = None;
            }
        }
        window.cwnd = window.cwnd.max(flow.segments(LEAST_SEGMENTS));
        Some(window)
    }

    /// Between two decisions the window stays.
    fn avoidance(&mut self, _now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window {
        let memory = self.memories.of(&flows[on]);
        if memory.repairing || memory.unsure { alone(&flows[on], acked) } else { Window::ZERO }
    }

    fn on_fast_retransmit(&mut self, _now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        self.memories.of(&flows[on]).restart(true);
        in_flight / 2.0
    }

    fn on_rto(&mut self, now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        self.memories.of(&flows[on]).rate = 0.0;
        self.on_fast_retransmit(now, on, in_flight, flows)
    }

    fn on_recovered(&mut self, _now: Instant, on: usize, flows: &[Flow]) {
        self.memories.of(&flows[on]).restart(false);
    }

    fn on_reset(&mut self, _now: Instant, on: usize, flows: &[Flow]) {
        let memory = self.memories.of(&flows[on]);
        memory.restart(memory.repairing);
    }
}

/// α_i before the first decision, and its least value \[segments\].
const LEAST_ALPHA: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::FlowKey;
    use crate::congestion::RateSample;
    use anabranch_units::{Bytes, SubflowId};

    /// Windows are counted in segments here: the MSS is 1.
    fn flow(id: u16, cwnd: f64, ssthresh: f64) -> Flow {
        Flow {
            id: SubflowId(id),
            key: FlowKey::nth(id),
            mss: Bytes::new(1),
            cwnd: Window::new(cwnd),
            ssthresh: Window::new(ssthresh),
            srtt: None,
            recovering: false,
            counted: true,
        }
    }

    fn memory(wvegas: &mut WVegas, id: u16) -> Memory {
        *wvegas.memories.of(&flow(id, 2.0, 1.0))
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// wVegas over flows whose smallest RTT is 100 ms, with a round under way on each.
    fn wvegas(flows: usize) -> WVegas {
        let mut wvegas = WVegas::default();
        for on in 0..flows {
            let ack = Ack { rtt: Some(ms(100)), delivered: 1, ..Ack::default() };
            let all = [0, 1, 2].map(|id| flow(id, 2.0, 1.0));
            wvegas.on_ack(Instant::ZERO, on, &ack, &all);
            let memory = wvegas.memories.of(&all[on]);
            (memory.sum, memory.samples) = (Duration::ZERO, 0);
        }
        wvegas
    }

    /// The answer to a round with these samples \[ms\].
    fn round(wvegas: &mut WVegas, on: usize, samples: &[u64], flows: &[Flow]) -> Option<WindowUpdate> {
        let (last, before) = samples.split_last().expect("a round has an end");
        for rtt in before {
            let ack = Ack { rtt: Some(ms(*rtt)), delivered: 1, ..Ack::default() };
            assert_eq!(wvegas.on_ack(Instant::ZERO, on, &ack, flows), None);
        }
        let sample = RateSample { prior_delivered: 1, ..RateSample::default() };
        let ack = Ack { rtt: Some(ms(*last)), delivered: 1, sample: Some(sample), ..Ack::default() };
        wvegas.on_ack(Instant::ZERO, on, &ack, flows)
    }

    fn set(cwnd: f64, ssthresh: f64) -> Option<WindowUpdate> {
        Some(WindowUpdate { cwnd: Window::new(cwnd), ssthresh: Window::new(ssthresh) })
    }

    /// The mean of a round counts. 60 · 20/120 = 10 packets queued of a budget that is all its own: α = 10, and the
    /// window stays; 66 · 20/120 = 11 are one too many; below α it grows.
    #[test]
    fn one_subflow_keeps_the_whole_budget_in_the_queue() {
        let mut wvegas = wvegas(1);
        for (samples, cwnd, expected) in [
            ([110, 120, 130], 60.0, set(60.0, 5.0)),
            ([120, 120, 120], 66.0, set(65.0, 5.0)),
            ([120, 120, 120], 54.0, set(55.0, 5.0)),
        ] {
            assert_eq!(round(&mut wvegas, 0, &samples, &[flow(0, cwnd, 5.0)]), expected);
            assert_eq!((memory(&mut wvegas, 0).weight, memory(&mut wvegas, 0).alpha), (1.0, 10.0));
        }
    }

    /// Vectors of a Python script: rates 60/120 and 20/125 per ms, weights 0.758 and 0.242, budgets 7 and 2.
    #[test]
    fn the_budget_is_shared_by_rate() {
        let mut wvegas = wvegas(2);
        let flows = [flow(0, 60.0, 5.0), flow(1, 20.0, 5.0)];
        round(&mut wvegas, 0, &[120, 120, 120], &flows);
        assert_eq!(round(&mut wvegas, 1, &[125, 125, 125], &flows), set(19.0, 5.0)); // 4 queued, 2 allowed
        assert_eq!(memory(&mut wvegas, 1).alpha, 2.0);
        assert!((memory(&mut wvegas, 1).weight - 0.24242424).abs() < 1e-8);
        assert_eq!(round(&mut wvegas, 0, &[120, 120, 120], &flows), set(59.0, 5.0)); // 10 queued
        assert_eq!(memory(&mut wvegas, 0).alpha, 7.0);
        // A subflow that does not count leaves its part to the other; a timeout forgets its rate.
        let alone = [flow(0, 60.0, 5.0), Flow { counted: false, ..flow(1, 20.0, 5.0) }];
        round(&mut wvegas, 0, &[120, 120, 120], &alone);
        assert_eq!(memory(&mut wvegas, 0).alpha, 10.0);
        wvegas.on_rto(Instant::ZERO, 1, Window::new(20.0), &flows);
        assert_eq!(memory(&mut wvegas, 1).rate, 0.0);
    }

    /// 30 · 4/104 rounds down to 1 and is not above γ; 30 · 8/108 = 2: the window falls to 30 · 100/108 + 1.
    #[test]
    fn slow_start_ends_with_the_first_queue() {
        let mut wvegas = wvegas(1);
        let flows = [flow(0, 30.0, f64::INFINITY)];
        assert_eq!(round(&mut wvegas, 0, &[104, 104, 104], &flows), None);
        let window = round(&mut wvegas, 0, &[108, 108, 108], &flows).expect("a queue of two");
        assert!(
            (window.cwnd.as_f64() - 28.7777778).abs() < 1e-6 && (window.ssthresh.as_f64() - 27.7777778).abs() < 1e-6
        );
        assert_eq!(round(&mut wvegas, 0, &[900, 900, 900], &[flow(0, 3.0, 90.0)]), set(2.0, 1.0)); // not 1.33
    }

    /// A queue of 5 ms is remembered; one of 10 ms empties it: 20 · 100/110 queued 1, w = 21, times 100/220.
    #[test]
    fn a_queueing_delay_that_doubled_is_drained() {
        let mut wvegas = wvegas(1);
        let flows = [flow(0, 20.0, 5.0)];
        assert_eq!(round(&mut wvegas, 0, &[105, 105, 105], &flows), set(21.0, 5.0));
        assert_eq!(round(&mut wvegas, 0, &[100, 100, 100], &flows), set(21.0, 5.0)); // no queue is no smallest queue
        let drained = round(&mut wvegas, 0, &[110, 110, 110], &flows).expect("a decision").cwnd.as_f64();
        assert!((drained - 21.0 * 100.0 / 220.0).abs() < 1e-9, "{drained}");
        assert_eq!(memory(&mut wvegas, 0).least_queue, None);
        wvegas.drain = false;
        round(&mut wvegas, 0, &[105, 105, 105], &flows);
        assert_eq!(round(&mut wvegas, 0, &[110, 110, 110], &flows), set(21.0, 5.0));
    }

    #[test]
    fn a_short_round_and_a_repair_are_renos() {
        let mut wvegas = wvegas(1);
        let flows = [flow(0, 20.0, 5.0)];
        assert_eq!(round(&mut wvegas, 0, &[150, 150], &flows), None);
        assert_eq!(wvegas.avoidance(Instant::ZERO, 0, Window::new(1.0), &flows).as_f64(), 0.05);
        round(&mut wvegas, 0, &[120, 120, 120], &flows);
        assert_eq!(wvegas.avoidance(Instant::ZERO, 0, Window::new(1.0), &flows).as_f64(), 0.0);
        assert_eq!(wvegas.on_fast_retransmit(Instant::ZERO, 0, Window::new(20.0), &flows).as_f64(), 10.0);
        assert_eq!(round(&mut wvegas, 0, &[150, 150, 150], &flows), None);
        assert_eq!(wvegas.avoidance(Instant::ZERO, 0, Window::new(1.0), &flows).as_f64(), 0.05);
        wvegas.on_recovered(Instant::ZERO, 0, &flows);
        assert_eq!(memory(&mut wvegas, 0).base, Some(ms(100)));
        assert_eq!(wvegas.avoidance(Instant::ZERO, 0, Window::new(1.0), &flows).as_f64(), 0.0);
    }
}
