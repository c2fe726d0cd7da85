//! Timers of loss recovery: the retransmission timer, the probe timer and the reordering timer.

use anabranch_units::{Duration, Instant};

use crate::deadline::Earliest;
use crate::rtt::RttEstimator;

/// The three deadlines and what they are computed from.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    /// RFC 6298 §5. Runs while anything is unacknowledged.
    pub(super) rto_at: Option<Instant>,
    /// Probe timeout (RFC 8985 §7.2).
    pub(super) probe_at: Option<Instant>,
    /// Reordering timer (RFC 8985 §6.2 step 5).
    pub(super) reorder_at: Option<Instant>,
    /// Doublings of the timeout since the last progress.
    pub(super) backoff: u32,
    rto: Duration,
    pub(super) srtt: Option<Duration>,
    max_rto: Duration,
}

impl Timers {
    pub(super) fn new(max_rto: Duration) -> Self {
        Timers {
            rto_at: None,
            probe_at: None,
            reorder_at: None,
            backoff: 0,
            rto: Duration::from_secs(1),
            srtt: None,
            max_rto,
        }
    }

    /// Takes over the estimate, for the calls that come without one.
    pub(super) fn consult(&mut self, rtt: &RttEstimator) {
        self.rto = rtt.rto();
        self.srtt = rtt.srtt();
    }

    /// RFC 6298 §5.2-5.6.
    pub(super) fn restart_rto(&mut self, now: Instant) {
        let doubled = Duration::from_nanos(self.rto.as_nanos().saturating_mul(1 << self.backoff.min(MAX_DOUBLINGS)));
        self.rto_at = Some(now + doubled.min(self.max_rto));
    }

    /// RFC 6298 §5.1.
    pub(super) fn start_rto(&mut self, now: Instant) {
        if self.rto_at.is_none() {
            self.restart_rto(now);
        }
    }

    /// RFC 8985 §7.2: twice the RTT, more if the only segment's ACK may be delayed, not after the timeout.
    pub(super) fn start_probe(&mut self, now: Instant, single_segment: bool) {
        let wait = match self.srtt {
            Some(srtt) if single_segment => srtt * 2 + MAX_ACK_DELAY,
            Some(srtt) => srtt * 2,
            None => Duration::from_secs(1),
        };
        let at = now + wait;
        self.probe_at = Some(self.rto_at.map_or(at, |rto| at.min(rto)));
    }

    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_DOUBLINGS);
    }

    pub(super) fn stop(&mut self) {
        self.rto_at = None;
        self.probe_at = None;
        self.reorder_at = None;
    }

    /// Adds the timers that run.
    #[inline(always)]
    pub(super) fn add_to(&self, first: Earliest) -> Earliest {
        first.and(self.rto_at).and(self.probe_at).and(self.reorder_at)
    }
}

/// The longest an ACK is assumed to be held back (RFC 8985 §7.2; Linux `TCP_DELACK_MAX`).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// Beyond any sensible maximum, and short of an overflow.
const MAX_DOUBLINGS: u32 = 30;
