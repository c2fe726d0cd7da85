//! One subflow under congestion control.

use super::FlowKey;
#[cfg(doc)]
use super::PerFlow;
use super::rules::MIN_SSTHRESH_SEGMENTS;
use anabranch_units::{Duration, SubflowId};

/// One subflow as its congestion control sees it. Windows are in bytes with their fraction kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Id of the subflow.
    pub id: SubflowId,
    /// Its identity among all flows that the connection ever had, by which an algorithm keeps state ([`PerFlow`]).
    pub key: FlowKey,
    /// Payload of a full segment \[bytes\].
    pub mss: f64,
    /// Congestion window \[bytes\].
    pub cwnd: f64,
    /// Slow-start threshold \[bytes\]; infinite before the first loss.
    pub ssthresh: f64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// True in loss recovery: others couple to its ssthresh (A-COUPLED).
    pub recovering: bool,
    /// Counts in coupled sums: established, has an RTT sample, neither failed nor an idle backup.
    pub counted: bool,
}

impl Flow {
    /// Sets the slow-start threshold; two segments at least (RFC 5681 §3.1, eq. 4).
    pub(super) fn set_threshold(&mut self, ssthresh: f64) {
        self.ssthresh = ssthresh.max(MIN_SSTHRESH_SEGMENTS * self.mss);
    }

    /// Sets it after a loss: no more than the window there was. Not-a-number gives two segments.
    pub(super) fn fall_to(&mut self, ssthresh: f64) {
        self.set_threshold(if ssthresh.is_nan() { 0.0 } else { ssthresh.min(self.cwnd) });
    }
}
