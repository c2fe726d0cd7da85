//! mVeno (reconstruction): Veno on every subflow, with LIA's linked increase.
//!
//! P. Dong and others propose mVeno for wireless paths: Veno's test of whether a loss is random on each subflow, and an
//! additive increase that is coupled with weights. The weights were not available to us, nor any code. This is our
//! reconstruction (A-MVENO):
//! ```text
//! backlog_i = w_i · (rtt_i − base_i) / rtt_i, as in Veno
//! increase:  LIA's capped one (RFC 6356 §3), halved while backlog_i ≥ β
//! loss:      ssthresh_i = 4/5 of the window while backlog_i < β, otherwise 1/2
//! ```
//! Reconstructed: the weights, for which LIA's stand. Veno's test, β = 3 and both decreases are published. With one
//! subflow it is Veno.

use super::coupled::{LISA, linked};
use super::lia::linked_increase;
use super::veno::{self, Backlogs};
use super::{Ack, CongestionControl, Entry, Flow, WindowBased, WindowUpdate};
use anabranch_units::{Instant, Window};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "mveno-r",
    "veno with LIA's linked increase (reconstruction: the weights were not published)",
    include_str!("mveno.rs"),
    |p| CongestionControl::window_based(MVeno::new(veno::BETA.of(p))),
)
.paper("Dong 2016")
.parameters(&[veno::BETA.parameter(), LISA.parameter()])
.capabilities(linked);

/// Linked Veno over the subflows of one connection.
#[derive(Clone, Debug)]
pub struct MVeno {
    backlogs: Backlogs,
}

impl MVeno {
    /// mVeno with its β \[segments\].
    pub fn new(beta: f64) -> Self {
        MVeno { backlogs: Backlogs::new(beta) }
    }
}

impl WindowBased for MVeno {
    fn on_ack(&mut self, _now: Instant, on: usize, ack: &Ack, flows: &[Flow]) -> Option<WindowUpdate> {
        self.backlogs.sample(&flows[on], ack.rtt);
        None
    }

    fn avoidance(&mut self, _now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window {
        linked_increase(on, acked, flows) * self.backlogs.scale(&flows[on])
    }

    fn on_fast_retransmit(&mut self, _now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        in_flight * self.backlogs.left(&flows[on])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::FlowKey;
    use anabranch_units::{Bytes, Duration, SubflowId};

    /// Windows are counted in segments here: the MSS is 1. The flows of the vectors in `lia`.
    fn flow(id: u16, cwnd: f64, rtt_ms: u64) -> Flow {
        let srtt = Some(Duration::from_millis(rtt_ms));
        Flow {
            id: SubflowId(id),
            key: FlowKey::nth(id),
            mss: Bytes::new(1),
            cwnd: Window::new(cwnd),
            ssthresh: Window::new(1.0),
            srtt,
            recovering: false,
            counted: true,
        }
    }

    fn mveno(samples: &[[u64; 2]]) -> MVeno {
        let mut mveno = MVeno::new(3.0);
        for (on, samples) in samples.iter().enumerate() {
            for rtt_ms in samples {
                let ack = Ack { rtt: Some(Duration::from_millis(*rtt_ms)), ..Ack::default() };
                mveno.on_ack(Instant::ZERO, on, &ack, &[flow(0, 1.0, 1), flow(1, 1.0, 1)]);
            }
        }
        mveno
    }

    #[test]
    fn linked_increase_and_venos_decrease() {
        let flows = [flow(0, 10.0, 10), flow(1, 20.0, 100)];
        // No queue: LIA's 0.069444 and 0.05, and a loss takes a fifth.
        let mut short = mveno(&[[10, 11], [100, 101]]);
        // 10 · 10/20 = 5 and 20 · 25/125 = 4 packets queued: half of the increase, and a loss takes a half.
        let mut long = mveno(&[[10, 20], [100, 125]]);
        for (mveno, scale, left) in [(&mut short, 1.0, 0.8), (&mut long, 0.5, 0.5)] {
            for (on, increment) in [(0, 0.0694444), (1, 0.05)] {
                assert!(
                    (mveno.avoidance(Instant::ZERO, on, Window::new(1.0), &flows).as_f64() - increment * scale).abs()
                        < 5e-7,
                    "{on}"
                );
                assert_eq!(
                    mveno.on_fast_retransmit(Instant::ZERO, on, Window::new(20.0), &flows).as_f64(),
                    20.0 * left
                );
            }
        }
    }

    #[test]
    fn one_subflow_is_veno() {
        let flows = [flow(0, 10.0, 30), Flow { counted: false, ..flow(1, 50.0, 10) }];
        let mut mveno = mveno(&[[30, 30], [10, 10]]);
        assert!((mveno.avoidance(Instant::ZERO, 0, Window::new(1.0), &flows).as_f64() - 0.1).abs() < 1e-12);
        assert!((mveno.avoidance(Instant::ZERO, 1, Window::new(1.0), &flows).as_f64() - 0.02).abs() < 1e-12);
    }
}
