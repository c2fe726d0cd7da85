//! mVeno (reconstruction): Veno on every subflow, with LIA's linked increase.
//!
//! P. Dong and others propose mVeno for wireless paths: Veno's test of whether a loss is random on each subflow, and an
//! additive increase that is coupled with weights. The weights were not available to us, nor any code. This is the
//! reconstruction of reference section 5.7:
//! ```text
//! backlog_i = w_i · (rtt_i − base_i) / rtt_i, as in Veno
//! increase:  LIA's capped one (RFC 6356 §3), halved while backlog_i ≥ β
//! loss:      ssthresh_i = 4/5 of the window while backlog_i < β, otherwise 1/2
//! ```
//! Reconstructed: the weights, for which LIA's stand. Veno's test, β = 3 and both decreases are published. With one subflow
//! it is Veno.

use super::lia::linked_increase;
use super::veno::Backlogs;
use super::{Ack, CongestionControl, Flow, Window};
use anabranch_units::Instant;

/// Linked Veno over the subflows of one connection.
#[derive(Clone, Debug)]
pub struct MVeno {
    backlogs: Backlogs,
    lisa: bool,
}

impl MVeno {
    /// mVeno with its β \[segments\], and linked slow start if `lisa`.
    pub fn new(beta: f64, lisa: bool) -> Self {
        MVeno { backlogs: Backlogs::new(beta), lisa }
    }
}

impl CongestionControl for MVeno {
    fn on_ack(&mut self, _now: Instant, on: usize, ack: &Ack, _flows: &[Flow]) -> Option<Window> {
        self.backlogs.sample(on, ack.rtt);
        None
    }

    fn avoidance(&mut self, _now: Instant, on: usize, acked: f64, flows: &[Flow]) -> f64 {
        linked_increase(on, acked, flows) * self.backlogs.scale(on, &flows[on])
    }

    fn on_fast_retransmit(&mut self, _now: Instant, on: usize, in_flight: f64, flows: &[Flow]) -> f64 {
        in_flight * self.backlogs.left(on, &flows[on])
    }

    fn linked_slow_start(&self) -> bool {
        self.lisa
    }

    fn on_flow_added(&mut self, at: usize) {
        self.backlogs.insert(at);
    }

    fn on_flow_removed(&mut self, at: usize) {
        self.backlogs.remove(at);
    }
}
