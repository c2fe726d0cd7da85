//! One subflow under congestion control.

use super::FlowKey;
#[cfg(doc)]
use super::PerFlow;
use super::rules::MIN_SSTHRESH_SEGMENTS;
use anabranch_units::{Bytes, Duration, SubflowId, Window};

/// One subflow as its congestion control sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Id of the subflow.
    pub id: SubflowId,
    /// Its identity among all flows that the connection ever had, by which an algorithm keeps state ([`PerFlow`]).
    pub key: FlowKey,
    /// Payload of a full segment; at least one byte.
    pub mss: Bytes,
    /// Congestion window.
    pub cwnd: Window,
    /// Slow-start threshold; infinite before the first loss.
    pub ssthresh: Window,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// True in loss recovery: others couple to its ssthresh (A-COUPLED).
    pub recovering: bool,
    /// Counts in coupled sums: established, has an RTT sample, neither failed nor an idle backup.
    pub counted: bool,
}

impl Flow {
    /// A full segment.
    pub fn segment(&self) -> Window {
        self.mss.into()
    }

    /// `n` full segments.
    pub fn segments(&self, n: f64) -> Window {
        self.segment() * n
    }

    /// The congestion window in segments, with their fraction.
    pub fn cwnd_segments(&self) -> f64 {
        self.cwnd.per(self.segment())
    }

    /// Sets the slow-start threshold; two segments at least (RFC 5681 §3.1, eq. 4).
    pub(super) fn set_threshold(&mut self, ssthresh: Window) {
        self.ssthresh = ssthresh.max(self.segments(MIN_SSTHRESH_SEGMENTS));
    }

    /// Sets it after a loss: no more than the window there was.
    pub(super) fn fall_to(&mut self, ssthresh: Window) {
        self.set_threshold(ssthresh.min(self.cwnd));
    }
}
