//! Veno: NewReno that takes a loss for random while the queue is short.
//!
//! C. P. Fu, S. C. Liew. *TCP Veno: TCP Enhancement for Transmission Over Wireless Access Networks.* IEEE JSAC 21(2),
//! 2003; as in Linux (`tcp_veno`).
//!
//! With `base` the smallest RTT ever, `rtt` the latest sample and `w` in segments, `backlog = w · (rtt − base) / rtt`
//! estimates our packets in the queue.
//! ```text
//! a loss with backlog < β is random:  ssthresh = 4/5 of the window, otherwise 1/2
//! congestion avoidance:               +1/w per acknowledged segment, half of that while backlog ≥ β
//! ```
//! All else is NewReno, timeouts included, whose threshold follows the same test.
//!
//! Where we differ: Linux adds a whole segment in every other round trip, we half a one in each.

use super::coupled::alone;
use super::{Ack, CongestionControl, Entry, Flow, PerFlow, WindowBased, WindowUpdate};
use crate::registry::{Number, number};
use anabranch_units::{Duration, Instant, Window};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "veno",
    "reno that takes a loss for random while few packets are queued; each subflow by itself",
    include_str!("veno.rs"),
    |p| CongestionControl::window_based(Veno::new(BETA.of(p))),
)
.paper("Fu 2003")
.parameters(&[BETA.parameter()]);

/// Veno for every subflow by itself.
#[derive(Clone, Debug)]
pub struct Veno {
    backlogs: Backlogs,
}

/// β, of which both Veno and mVeno speak.
pub(super) const BETA: Number =
    number("beta", "β, queued packets from which on a loss counts as congestion", 3.0, 0.0..=10_000.0)
        .in_unit("segments");

/// Veno's test, for all subflows.
#[derive(Clone, Debug)]
pub(super) struct Backlogs {
    /// β \[segments\].
    beta: f64,
    /// The smallest RTT ever and the latest.
    rtts: PerFlow<Option<(Duration, Duration)>>,
}

impl Backlogs {
    pub(super) fn new(beta: f64) -> Self {
        Backlogs { beta, rtts: PerFlow::default() }
    }

    pub(super) fn sample(&mut self, flow: &Flow, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            let known = self.rtts.of(flow);
            let base = known.map_or(rtt, |(base, _)| base.min(rtt));
            *known = Some((base, rtt));
        }
    }

    /// Our packets in the queue reach β. Without a sample there is no queue.
    pub(super) fn is_congested(&self, flow: &Flow) -> bool {
        let backlog = self
            .rtts
            .get(flow)
            .copied()
            .flatten()
            .map_or(0.0, |(base, rtt)| flow.cwnd_segments() * (1.0 - base.per(rtt)));
        backlog >= self.beta
    }

    /// Share of the window that a loss leaves.
    pub(super) fn left(&self, flow: &Flow) -> f64 {
        if self.is_congested(flow) { 0.5 } else { 0.8 }
    }

    /// Factor on an increase.
    pub(super) fn scale(&self, flow: &Flow) -> f64 {
        if self.is_congested(flow) { 0.5 } else { 1.0 }
    }
}

impl Veno {
    /// Veno with its β \[segments\]; 3 in paper and kernel.
    pub fn new(beta: f64) -> Self {
        Veno { backlogs: Backlogs::new(beta) }
    }
}

impl Default for Veno {
    fn default() -> Self {
        Veno::new(3.0)
    }
}

impl WindowBased for Veno {
    fn on_ack(&mut self, _now: Instant, on: usize, ack: &Ack, flows: &[Flow]) -> Option<WindowUpdate> {
        self.backlogs.sample(&flows[on], ack.rtt);
        None
    }

    fn avoidance(&mut self, _now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window {
        alone(&flows[on], acked) * self.backlogs.scale(&flows[on])
    }

    fn on_fast_retransmit(&mut self, _now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        in_flight * self.backlogs.left(&flows[on])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::FlowKey;
    use anabranch_units::{Bytes, SubflowId};

    /// Base 100 ms and now 110 ms; windows are counted in segments: the MSS is 1. β = 3 is reached with 33.
    #[test]
    fn worked_example() {
        for (cwnd, increment, left) in [
            // w       +/ACK      after a loss
            (20.0, 1.0 / 20.0, 16.0),  // 20 · 10/110 = 1.82: random
            (32.9, 1.0 / 32.9, 26.32), // 2.99: random
            (33.0, 0.5 / 33.0, 16.5),  // 3: congestion
            (60.0, 0.5 / 60.0, 30.0),  // 5.45: congestion
        ] {
            let mut veno = Veno::default();
            let flow = Flow {
                id: SubflowId(0),
                key: FlowKey::nth(0),
                mss: Bytes::new(1),
                cwnd: Window::new(cwnd),
                ssthresh: Window::new(1.0),
                srtt: None,
                recovering: false,
                counted: true,
            };
            let flows = [flow];
            for rtt_ms in [100, 150, 110] {
                let ack = Ack { rtt: Some(Duration::from_millis(rtt_ms)), ..Ack::default() };
                assert_eq!(veno.on_ack(Instant::ZERO, 0, &ack, &flows), None);
            }
            assert!(
                (veno.avoidance(Instant::ZERO, 0, Window::new(1.0), &flows).as_f64() - increment).abs() < 1e-12,
                "{cwnd}"
            );
            assert!(
                (veno.on_fast_retransmit(Instant::ZERO, 0, Window::new(cwnd), &flows).as_f64() - left).abs() < 1e-12,
                "{cwnd}"
            );
            assert!((veno.on_rto(Instant::ZERO, 0, Window::new(cwnd), &flows).as_f64() - left).abs() < 1e-12, "{cwnd}");
        }
    }
}
