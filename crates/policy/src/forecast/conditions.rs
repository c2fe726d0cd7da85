//! Input of a forecast about one subflow, derived from the view in this place only.

use crate::SubflowView;
use crate::view::segments;
use anabranch_units::{Bytes, Duration};

/// State of one subflow, as input of a forecast.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Conditions {
    /// Round-trip time. Zero counts as a nanosecond.
    pub rtt: Duration,
    /// Retransmission timeout without backoff. Less than the RTT counts as the RTT.
    pub rto: Duration,
    /// Congestion window in whole segments, all of it free. Zero counts as one.
    pub cwnd: u32,
    /// Slow-start threshold in segments; `None` before the first loss.
    pub ssthresh: Option<u32>,
    /// Probability that a segment is lost, 0 to 1.
    pub loss: f64,
    /// The largest window in segments that the path or the peer admits, where known. No later round exceeds it.
    pub max_cwnd: Option<u32>,
}

impl Conditions {
    /// Those of `subflow`, all of its window taken for free. Under a congestion control that models the path the window
    /// is the bandwidth-delay product and does not grow (A-MODEL).
    pub fn of(subflow: &SubflowView) -> Self {
        let SubflowView { srtt: rtt, rto, loss, .. } = *subflow;
        match subflow.bdp {
            None => {
                let (cwnd, ssthresh) = (subflow.cwnd_segments(), subflow.ssthresh_segments());
                Conditions { rtt, rto, cwnd, ssthresh, loss, max_cwnd: None }
            }
            Some(bdp) => {
                let cwnd = segments(bdp, subflow.mss).max(1);
                Conditions { rtt, rto, cwnd, ssthresh: Some(0), loss, max_cwnd: Some(cwnd) }
            }
        }
    }

    /// The same with windows of at most what the peer's `window` holds and, if `at_loss`, the largest at any loss or,
    /// if larger, the present one (A-LATE-7).
    pub fn bounded(self, subflow: &SubflowView, window: Bytes, at_loss: bool) -> Self {
        let path = subflow.cwnd_at_loss.filter(|_| at_loss).map(|cwnd| segments(cwnd, subflow.mss).max(self.cwnd));
        let bounds = [self.max_cwnd, path, Some(segments(window, subflow.mss))];
        Conditions { max_cwnd: bounds.into_iter().flatten().min(), ..self }
    }

    /// The same with every value in the range its field states.
    pub(super) fn normalised(self) -> Self {
        let rtt = self.rtt.max(Duration::from_nanos(1));
        Conditions {
            rtt,
            rto: self.rto.max(rtt),
            cwnd: self.cwnd.max(1),
            ssthresh: self.ssthresh,
            loss: if self.loss > 0.0 { self.loss.min(1.0) } else { 0.0 },
            max_cwnd: self.max_cwnd.map(|max| max.max(1)),
        }
    }
}
