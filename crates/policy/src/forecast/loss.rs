//! The loss rate of one subflow, which the forecasting papers take as given and none defines.
//!
//! A ratio of two counters that forget with each segment sent: about the last 512 segments count, beside a prior worth
//! as many segments at 0.05 %, so that a young subflow is neither perfect nor hopeless. A simulator may put the true
//! rate in its place (the oracle), to tell what a scheduler does from what its estimate does to it.

use super::number::powi;

/// An estimate of the probability that a segment is lost.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LossEstimate {
    sent: f64,
    lost: f64,
    oracle: Option<f64>,
}

/// Memory of the estimate in segments, and weight of the prior.
const MEMORY: f64 = 512.0;
/// Loss rate before anything is known.
const PRIOR: f64 = 0.0005;
/// No estimate is below: even a clean path loses a segment some day.
const LOWEST: f64 = 1e-5;
/// No estimate is above: the models say nothing about worse paths.
const HIGHEST: f64 = 0.5;

impl LossEstimate {
    /// Creates an estimate without samples.
    pub fn new() -> Self {
        LossEstimate::default()
    }

    /// `segments` were sent, retransmissions included.
    pub fn on_sent(&mut self, segments: u32) {
        let kept = powi(1.0 - 1.0 / MEMORY, segments);
        // A geometric series: each segment counts one, then fades with those after it.
        self.sent = self.sent * kept + MEMORY * (1.0 - kept);
        self.lost *= kept;
    }

    /// `segments` were marked lost, by SACK, duplicate ACKs or a timeout.
    pub fn on_lost(&mut self, segments: u32) {
        self.lost += f64::from(segments);
    }

    /// `segments` marked lost had arrived after all (DSACK, RFC 2883). That their mark has faded a little by now is
    /// ignored.
    pub fn on_spurious(&mut self, segments: u32) {
        self.lost = (self.lost - f64::from(segments)).max(0.0);
    }

    /// Fixes the rate at `rate`, regardless of the counts; `None` goes back to counting.
    pub fn set_oracle(&mut self, rate: Option<f64>) {
        self.oracle = rate.map(|rate| if rate > 0.0 { rate.min(1.0) } else { 0.0 });
    }

    /// The probability that a segment is lost: the oracle's, or an estimate between 10⁻⁵ and 0.5.
    pub fn rate(&self) -> f64 {
        self.oracle.unwrap_or(((self.lost + PRIOR * MEMORY) / (self.sent + MEMORY)).clamp(LOWEST, HIGHEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_at_the_prior_and_follows_the_losses() {
        let mut estimate = LossEstimate::new();
        assert!((estimate.rate() - 0.0005).abs() < 1e-12);
        estimate.on_sent(1);
        estimate.on_lost(1);
        assert!((estimate.rate() - 1.256 / 513.0).abs() < 1e-12);
        for segment in 1..=100_000 {
            estimate.on_sent(1);
            estimate.on_lost(u32::from(segment % 50 == 0));
        }
        // Half of 2 % (512 segments of memory) and half of the prior; one loss moves it by 1/1024.
        assert!((estimate.rate() - 0.01025).abs() < 0.0012, "{}", estimate.rate());
    }

    #[test]
    fn a_train_counts_like_its_segments() {
        let (mut one_by_one, mut train) = (LossEstimate::new(), LossEstimate::new());
        one_by_one.on_lost(3);
        train.on_lost(3);
        (0..700).for_each(|_| one_by_one.on_sent(1));
        train.on_sent(700);
        assert!((one_by_one.rate() - train.rate()).abs() < 1e-12);
    }

    #[test]
    fn spurious_marks_are_taken_back() {
        let mut estimate = LossEstimate::new();
        estimate.on_sent(100);
        let before = estimate.rate();
        estimate.on_lost(2);
        assert!(estimate.rate() > before);
        estimate.on_spurious(2);
        assert_eq!(estimate.rate(), before);
        estimate.on_spurious(9);
        assert_eq!(estimate.rate(), before);
    }

    #[test]
    fn stays_within_its_limits() {
        let mut estimate = LossEstimate::new();
        estimate.on_lost(u32::MAX);
        assert_eq!(estimate.rate(), HIGHEST);
        estimate.on_sent(u32::MAX);
        assert!((estimate.rate() - PRIOR / 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_oracle_overrules() {
        let mut estimate = LossEstimate::new();
        estimate.set_oracle(Some(0.03));
        estimate.on_lost(50);
        assert_eq!(estimate.rate(), 0.03);
        estimate.set_oracle(Some(f64::NAN));
        assert_eq!(estimate.rate(), 0.0);
        estimate.set_oracle(None);
        assert!(estimate.rate() > 0.03);
    }
}
