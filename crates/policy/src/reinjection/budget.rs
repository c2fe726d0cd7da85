//! Budget of copies: in proportion to what is sent for the first time, but on fast paths without loss to time.

use anabranch_units::{Bytes, Duration, Instant};

/// Bytes that may be copied, and those that were.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    /// Bytes copied at most, of those sent for the first time.
    share: f64,
    /// Segments that may be copied besides.
    allowance: f64,
    /// The share of all that was sent.
    most: f64,
    /// Bytes that needs other than a loss may take.
    earned: f64,
    /// Time of the latest sending.
    latest: Option<Instant>,
    /// Bytes copied in place of lost ones, and all others.
    repaired: f64,
    copied: f64,
}

/// Reason of a copy, as far as its price goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Need {
    /// The original is lost, or its path is not usable: the data have to be sent again.
    Lost,
    /// The original is late, or the copy is expected before it.
    Late,
    /// The oldest data fill the peer's window, and the path with room is much faster.
    Window,
    /// Insurance against a loss that nothing shows yet; `loss` is the loss estimate of the original's path.
    Insurance { loss: f64 },
}

/// Part of the budget that insurance may use.
const INSURANCE: f64 = 0.5;
/// The loss estimate of a path of which nothing is known: above it, something was lost lately.
const UNKNOWN: f64 = 5e-4;
/// A loss estimate up to this is none: that of a path that has carried 128 segments and lost none, or about 900 since
/// its latest loss.
const LOSSLESS: f64 = 4e-4;
/// Bytes earned by a byte sent, times the loss estimate beyond that.
const WORTH: f64 = 10.0;
/// Bytes earned in a second of sending.
const PER_SECOND: f64 = 2.5e5;
/// Longest pause between two sendings that counts.
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes earned at the beginning, and in advance at most.
const ADVANCE: f64 = 1e5;

impl Budget {
    pub(super) fn new(share: f64, allowance: f64) -> Self {
        Budget { share, allowance, most: 0.0, earned: ADVANCE, latest: None, repaired: 0.0, copied: 0.0 }
    }

    /// `length` bytes leave for the first time, on a path with this loss estimate.
    pub(super) fn on_sent(&mut self, now: Instant, length: Bytes, loss: f64) {
        let pause = self.latest.map_or(Duration::ZERO, |latest| now.since(latest).min(PAUSE));
        self.latest = Some(now);
        self.most += self.share * length.as_f64();
        let earned = self.earned
            + (WORTH * (loss - UNKNOWN)).clamp(0.0, self.share) * length.as_f64()
            + PER_SECOND * pause.as_secs_f64();
        self.earned = earned.min(self.most + ADVANCE);
    }

    /// `length` bytes were copied that were `lost`, or that may yet arrive.
    pub(super) fn on_copied(&mut self, length: Bytes, lost: bool) {
        let account = if lost { &mut self.repaired } else { &mut self.copied };
        *account += length.as_f64();
    }

    /// Returns true if there is enough for another segment of `mss`, for this need.
    pub(super) fn affords(&self, mss: Bytes, need: Need) -> bool {
        let mss = mss.as_f64();
        let allowance = self.allowance * mss;
        let budget = match need {
            // What was copied on suspicion leaves no loss without repair.
            Need::Lost => return self.repaired + mss <= allowance + self.most,
            // Such moments come early, when little was sent, and each of these copies opens the window.
            Need::Window => allowance + self.earned,
            Need::Late => allowance + self.most.min(self.earned),
            Need::Insurance { loss } if loss <= LOSSLESS => 0.0,
            Need::Insurance { .. } => INSURANCE * (allowance + self.most.min(self.earned)),
        };
        self.copied + mss <= budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1000);
    const LOSSY: f64 = 0.03;

    /// Segments that may be copied for each need, when this number has left, one each `micros`.
    fn copies(segments: u64, micros: u64, loss: f64) -> [u64; 4] {
        let mut budget = Budget::new(0.3, 10.0);
        for n in 0..segments {
            budget.on_sent(Instant::ZERO + Duration::from_micros(n * micros), MSS, loss);
        }
        [Need::Lost, Need::Window, Need::Late, Need::Insurance { loss }].map(|need| {
            let mut budget = budget.clone();
            while budget.affords(MSS, need) {
                budget.on_copied(MSS, matches!(need, Need::Lost));
            }
            (budget.copied + budget.repaired) as u64 / MSS.get()
        })
    }

    /// 1,000 segments in 0.4 s, which are 20 Mbit/s: the share counts.
    #[test]
    fn on_a_slow_path_copies_are_a_share_of_what_is_sent() {
        assert_eq!(copies(1000, 400, LOSSY), [310, 410, 310, 155]);
        assert_eq!(copies(1000, 4000, 0.0), [310, 410, 310, 0]);
    }

    /// 50,000 segments in 0.2 s, which are 2 Gbit/s: 50 segments for the time, 100 in advance and 10 besides are a
    /// third of a percent.
    #[test]
    fn on_a_fast_path_without_loss_copies_cost_next_to_nothing() {
        assert_eq!(copies(50_000, 4, 0.0), [15_010, 159, 159, 0]);
        let [lost, window, ..] = copies(50_000, 4, LOSSY);
        assert!(lost == 15_010 && window > 10_000, "{window}");
    }

    /// A pause earns no more than a tenth of a second does.
    #[test]
    fn a_pause_saves_nothing_up() {
        assert_eq!(copies(2, 3_600_000_000, 0.0)[1], 110);
    }
}
