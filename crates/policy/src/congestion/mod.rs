//! Congestion control: how much may be in flight on each subflow; may be coupled.
//!
//! What all algorithms share (slow start, one reduction per recovery, RTO, idle restart, the cwnd-limited rule,
//! penalisation) stands once, in [`Controller`]; an algorithm says how a window grows in congestion avoidance and how far
//! it falls on loss.

use crate::registry::Entry;
use anabranch_units::{Duration, Instant, SubflowId};

/// One subflow as its congestion control sees it. Windows are in bytes with their fraction kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Which subflow.
    pub id: SubflowId,
    /// Payload of a full segment \[bytes\].
    pub mss: f64,
    /// Congestion window \[bytes\].
    pub cwnd: f64,
    /// Slow-start threshold \[bytes\]; infinite before the first loss.
    pub ssthresh: f64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// In loss recovery: others couple to its ssthresh (reference section 5.0).
    pub recovering: bool,
    /// Counts in coupled sums: established, has an RTT sample, neither failed nor an idle backup.
    pub counted: bool,
}

/// How windows grow and fall. `on` is an index into `flows`.
pub trait CongestionControl: Send {
    /// Growth \[bytes, may be negative\] that `acked` bytes earn flow `on` in congestion avoidance.
    fn avoidance(&mut self, now: Instant, on: usize, acked: f64, flows: &[Flow]) -> f64;
    /// The slow-start threshold \[bytes\] after a loss repaired by fast retransmit; the window follows it.
    fn on_fast_retransmit(&mut self, now: Instant, on: usize, flows: &[Flow]) -> f64;
    /// The slow-start threshold \[bytes\] after a timeout; the window falls to one segment.
    fn on_rto(&mut self, now: Instant, on: usize, flows: &[Flow]) -> f64 {
        self.on_fast_retransmit(now, on, flows)
    }
    /// The window of `on` was changed from outside (idle restart, penalisation): forget any epoch.
    fn on_reset(&mut self, _now: Instant, _on: usize, _flows: &[Flow]) {}
    /// A flow was added at the end of `flows`, or the one at `removed` left.
    fn on_flows_changed(&mut self, _removed: Option<usize>) {}
}

/// Every policy of this kind.
pub const CONGESTION: &[Entry<dyn CongestionControl>] = &[];
