//! Rules in which TCP implementations differ, whatever the algorithm.

use super::hystart::HyStart;
use anabranch_units::{Bytes, Window};

/// Rules in which TCP implementations differ.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rules {
    /// The window of a new subflow.
    pub initial_window: InitialWindow,
    /// True if the window decays while no data is sent (RFC 2861).
    pub idle_restart: bool,
    /// True if a window that did not limit the sender does not grow.
    pub cwnd_limited_check: bool,
    /// L of RFC 3465: how many segments one ACK may add in slow start, 2 in that RFC, 1 after a timeout whatever is set
    /// here. `u32::MAX` sets no limit at all, as in Linux.
    pub byte_counting_limit_segments: u32,
    /// No window grows beyond this.
    pub max_cwnd: Option<Bytes>,
    /// The threshold of a new subflow, as remembered from an earlier connection; `None` for none.
    pub initial_ssthresh_segments: Option<u32>,
    /// Slow start of an algorithm that has HyStart (CUBIC) ends by it.
    pub hystart: Option<HyStart>,
    /// The window falls in the course of a fast recovery (RFC 6937) rather than at its beginning.
    pub prr: bool,
    /// Fall of the window on a loss.
    pub loss_response: LossResponse,
}

/// Fall of window and threshold on a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossResponse {
    /// Falls as the algorithm says, from the bytes in flight if the window was no limit; to one segment on a timeout
    /// (RFC 5681 Eq. (4)).
    Standard,
    /// Falls as in `Standard`, but always from the window (`tcp_reno_ssthresh`, `bictcp_recalc_ssthresh` of Linux), so
    /// that a loss in the last segments of a burst leaves more than two.
    Linux,
    /// Falls to half of the window on a fast retransmit and on each timeout, with a threshold of two segments, so that
    /// slow start does not come back (`MpTcpSocketImpl::reduceCWND` of mptcp-ns3, which compares segments with bytes
    /// there).
    Halve,
}

/// The window of a subflow that has sent nothing yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InitialWindow {
    /// This number of full segments.
    Segments(u32),
    /// Two to four segments, by their size (RFC 5681 §3.1).
    Rfc5681,
    /// Ten segments, or less if they are large (RFC 6928 §2).
    Rfc6928,
}

impl Rules {
    /// The largest window of a flow with segments of `mss`.
    pub(super) fn limit(&self, mss: Bytes) -> Window {
        self.max_cwnd.map_or(Window::INFINITE, |max| max.max(mss).into())
    }

    /// The threshold of a new flow with segments of `mss`.
    pub(super) fn initial_ssthresh(&self, mss: Bytes) -> Window {
        let segments = |n| Window::from(mss) * f64::from(n).max(MIN_SSTHRESH_SEGMENTS);
        self.initial_ssthresh_segments.map_or(Window::INFINITE, segments)
    }

    /// Segments that an ACK may add in slow start.
    pub(super) fn counted(&self, after_rto: bool) -> f64 {
        match self.byte_counting_limit_segments {
            u32::MAX => f64::INFINITY,
            // A cumulative ACK after a timeout says little about what left the network (RFC 3465 §2.3).
            _ if after_rto => 1.0,
            limit => f64::from(limit.max(1)),
        }
    }
}

impl InitialWindow {
    /// Returns the window for segments of `mss`; at least one segment.
    pub(super) fn window(self, mss: Bytes) -> Window {
        let mss = mss.as_f64();
        Window::new(match self {
            InitialWindow::Segments(n) => f64::from(n.max(1)) * mss,
            InitialWindow::Rfc5681 if mss > 2190.0 => 2.0 * mss,
            InitialWindow::Rfc5681 if mss > 1095.0 => 3.0 * mss,
            InitialWindow::Rfc5681 => 4.0 * mss,
            InitialWindow::Rfc6928 => (10.0 * mss).min((2.0 * mss).max(14_600.0)),
        })
    }
}

/// No threshold is smaller (RFC 5681 Eq. (4)).
pub(super) const MIN_SSTHRESH_SEGMENTS: f64 = 2.0;

/// Rules of the worked examples: ten segments at first, appropriate byte counting, RFC 5681 on a loss.
#[cfg(test)]
pub(super) const EXAMPLE: Rules = Rules {
    initial_window: InitialWindow::Segments(10),
    idle_restart: true,
    cwnd_limited_check: true,
    byte_counting_limit_segments: 2,
    max_cwnd: None,
    initial_ssthresh_segments: None,
    hystart: None,
    prr: false,
    loss_response: LossResponse::Standard,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_windows_follow_their_formulas() {
        for (rule, mss, expected) in [
            (InitialWindow::Segments(10), 1460, 14_600.0),
            (InitialWindow::Segments(0), 1460, 1460.0),
            (InitialWindow::Rfc5681, 1095, 4380.0),
            (InitialWindow::Rfc5681, 1460, 4380.0),
            (InitialWindow::Rfc5681, 2191, 4382.0),
            (InitialWindow::Rfc6928, 1460, 14_600.0),
            (InitialWindow::Rfc6928, 536, 5360.0),
            (InitialWindow::Rfc6928, 9000, 18_000.0),
        ] {
            assert_eq!(rule.window(Bytes::new(mss)), Window::new(expected), "{rule:?} {mss}");
        }
    }
}
