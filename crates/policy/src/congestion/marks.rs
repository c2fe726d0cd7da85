//! Share of the bytes that queues mark, as DCTCP estimates it.

use super::Ack;
use super::ack::Round;
use anabranch_units::{Duration, Instant, Window};

/// DCTCP.Alpha (RFC 8257 §3.3): a moving average of the share of marked bytes, with a new value in each round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkedShare {
    alpha: f64,
    /// True once a mark has been reported; the share is 1 until then.
    seen: bool,
    round: Round,
    acked: Window,
    marked: Window,
    updated: Instant,
}

impl Default for MarkedShare {
    fn default() -> Self {
        let zero = Window::ZERO;
        MarkedShare {
            alpha: 1.0,
            seen: false,
            round: Round::default(),
            acked: zero,
            marked: zero,
            updated: Instant::ZERO,
        }
    }
}

impl MarkedShare {
    /// The estimate, from 0 to 1.
    pub(super) fn get(&self) -> f64 {
        self.alpha
    }

    /// Counts an ACK with `gain` = g. A new value comes with the end of a round trip, and no earlier than `span` after
    /// the latest. Returns true if a round trip ends; until the first mark there is nothing to average.
    pub(super) fn count(&mut self, now: Instant, ack: &Ack, gain: f64, span: Duration) -> bool {
        self.seen |= !ack.marked.is_zero();
        self.acked += ack.acked.into();
        self.marked += ack.marked.into();
        let ends = self.round.ends(ack);
        if !ends || now.since(self.updated) < span {
            return ends;
        }
        if self.seen && self.acked.is_positive() {
            let share = self.marked.per(self.acked).min(1.0);
            self.alpha = (self.alpha * (1.0 - gain) + gain * share).clamp(0.0, 1.0);
        }
        (self.acked, self.marked, self.updated) = (Window::ZERO, Window::ZERO, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::RateSample;
    use anabranch_units::Bytes;

    /// An ACK of 1000 bytes sent when `prior` were delivered, `marked` of them marked.
    fn ack(prior: u64, delivered: u64, marked: u64) -> Ack {
        let sample = Some(RateSample { prior_delivered: prior, ..RateSample::default() });
        Ack { acked: Bytes::new(1000), marked: Bytes::new(marked), delivered, sample, ..Ack::default() }
    }

    /// α = 1 · 15/16 + 1/16 · 1/2 after a round with every second byte marked.
    #[test]
    fn the_share_follows_rounds() {
        let mut share = MarkedShare::default();
        let count = |share: &mut MarkedShare, ack: Ack| share.count(Instant::ZERO, &ack, 1.0 / 16.0, Duration::ZERO);
        assert!(!count(&mut share, ack(0, 1000, 0)));
        assert!(!count(&mut share, ack(0, 2000, 1000)));
        assert_eq!(share.get(), 1.0);
        assert!(count(&mut share, ack(1000, 3000, 500)));
        assert!((share.get() - (15.0 / 16.0 + 1.0 / 32.0)).abs() < 1e-12, "{}", share.get());
    }

    #[test]
    fn a_value_comes_no_earlier_than_the_span_after_the_latest() {
        let mut share = MarkedShare::default();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let span = Duration::from_millis(25);
        share.count(at(0), &ack(0, 1000, 1000), 0.5, span);
        assert!(share.count(at(10), &ack(1000, 2000, 0), 0.5, span));
        assert_eq!(share.get(), 1.0);
        assert!(share.count(at(25), &ack(2000, 3000, 0), 0.5, span));
        assert!((share.get() - (0.5 + 0.5 / 3.0)).abs() < 1e-12, "{}", share.get());
    }
}
