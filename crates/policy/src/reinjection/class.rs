//! Classes of paths: high, mid and low (A-XQUIC).
//!
//! ```text
//! low:   srtt > 2 s,  or at least 2 probe timeouts in a row,  or loss > 30 %
//! mid:   srtt > min(500 ms, 3 · min_srtt),  or bandwidth < 375 kB/s,  or loss > 10 %
//! high:  all others
//! ```
//!
//! Where we differ: a probe timeout of QUIC is a retransmission timeout here, bandwidth is cwnd / SRTT, and the loss is
//! the decayed estimate that schedulers see as well.

use crate::SubflowView;
use crate::registry::{Number, Params, number};
use anabranch_units::{Duration, Rate};

/// Quality of a path; the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Neither low nor mid.
    High,
    /// Slow, thin or lossy.
    Mid,
    /// Next to useless.
    Low,
}

/// Limits between classes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    low_srtt: Duration,
    low_timeouts: u32,
    low_loss: f64,
    mid_srtt: Duration,
    mid_factor: f64,
    mid_rate: Rate,
    mid_loss: f64,
}

impl Limits {
    pub(super) fn new(params: &Params) -> Self {
        let ms = |limit: Number| Duration::from_secs_f64(limit.of(params) / 1e3);
        Limits {
            low_srtt: ms(LOW_SRTT),
            low_timeouts: LOW_TIMEOUTS.of(params) as u32,
            low_loss: LOW_LOSS.of(params) / 100.0,
            mid_srtt: ms(MID_SRTT),
            mid_factor: MID_FACTOR.of(params),
            mid_rate: Rate::from_bps((MID_RATE.of(params) * 8e3) as u64),
            mid_loss: MID_LOSS.of(params) / 100.0,
        }
    }

    /// Returns the class of a path after `timeouts` timeouts in a row, beside others of which the best has this SRTT.
    pub fn class(&self, subflow: &SubflowView, timeouts: u32, min_srtt: Duration) -> Class {
        if subflow.srtt > self.low_srtt || timeouts >= self.low_timeouts || subflow.loss > self.low_loss {
            return Class::Low;
        }
        let slow = subflow.srtt > self.mid_srtt.min(min_srtt.mul_f64(self.mid_factor));
        // cwnd / srtt < rate, without the division.
        let thin = subflow.cwnd.as_f64() * 8.0 < self.mid_rate.as_bps() as f64 * subflow.srtt.as_secs_f64();
        if slow || thin || subflow.loss > self.mid_loss { Class::Mid } else { Class::High }
    }
}

pub(super) const LOW_SRTT: Number =
    number("low-srtt", "a path with a larger SRTT is low", 2000.0, 1.0..=60_000.0).in_unit("ms");
pub(super) const LOW_TIMEOUTS: Number =
    number("low-timeouts", "as many timeouts in a row make a path low", 2.0, 1.0..=100.0);
pub(super) const LOW_LOSS: Number = number("low-loss", "a path that loses more is low", 30.0, 0.0..=100.0).in_unit("%");
pub(super) const MID_SRTT: Number =
    number("mid-srtt", "a path with a larger SRTT is no better than mid", 500.0, 1.0..=60_000.0).in_unit("ms");
pub(super) const MID_FACTOR: Number =
    number("mid-factor", "a path with more than this times the lowest SRTT is no better than mid", 3.0, 1.0..=1000.0);
pub(super) const MID_RATE: Number =
    number("mid-rate", "a path with less bandwidth is no better than mid", 375.0, 0.0..=1_000_000.0).in_unit("kB/s");
pub(super) const MID_LOSS: Number =
    number("mid-loss", "a path that loses more is no better than mid", 10.0, 0.0..=100.0).in_unit("%");

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::{Bytes, SubflowId};

    const BEST: Duration = Duration::from_millis(40);

    fn limits() -> Limits {
        Limits::new(&Params::default())
    }

    /// A path of `cwnd` bytes per `srtt`, beside one of 40 ms: min(500, 3 · 40) = 120 ms and 375 kB/s are what mid
    /// begins at.
    #[test]
    fn the_limits_of_the_reference() {
        use Class::{High, Low, Mid};
        for (srtt_ms, cwnd, timeouts, loss, expected) in [
            (40, 100_000, 0, 0.0, High),
            (120, 100_000, 0, 0.0, High), // not more than 120 ms
            (121, 100_000, 0, 0.0, Mid),
            (40, 15_000, 0, 0.0, High), // 15,000 B / 40 ms = 375 kB/s
            (40, 14_999, 0, 0.0, Mid),
            (100, 37_500, 0, 0.0, High),
            (100, 37_499, 0, 0.0, Mid),
            (40, 100_000, 0, 0.10, High),
            (40, 100_000, 0, 0.11, Mid),
            (40, 100_000, 0, 0.30, Mid),
            (40, 100_000, 0, 0.31, Low),
            (40, 100_000, 1, 0.0, High),
            (40, 100_000, 2, 0.0, Low),
            (2000, 9_000_000, 0, 0.0, Mid),
            (2001, 9_000_000, 0, 0.0, Low),
        ] {
            let path = SubflowView {
                loss,
                ..SubflowView::steady(SubflowId(0), Bytes::new(1000), Duration::from_millis(srtt_ms), Bytes::new(cwnd))
            };
            assert_eq!(limits().class(&path, timeouts, BEST), expected, "{srtt_ms} ms, {cwnd}, {timeouts}, {loss}");
        }
    }

    #[test]
    fn three_times_the_best_counts_up_to_half_a_second() {
        let path =
            |ms| SubflowView::steady(SubflowId(0), Bytes::new(1000), Duration::from_millis(ms), Bytes::new(1 << 30));
        for (best_ms, at_most) in [(10, 30), (166, 498), (167, 500), (1000, 500)] {
            let best = Duration::from_millis(best_ms);
            assert_eq!(limits().class(&path(at_most), 0, best), Class::High, "{best_ms}");
            assert_eq!(limits().class(&path(at_most + 2), 0, best), Class::Mid, "{best_ms}");
        }
    }
}
