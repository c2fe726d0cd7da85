//! HyStart++: conservative slow start between slow start and congestion avoidance.
//!
//! P. Balasubramanian, Y. Huang, M. Olson. *HyStart++: Modified Slow Start for TCP.* RFC 9406 §4. A round trip is over
//! when what was sent after its beginning arrives. From the eighth RTT sample of a round on, with `last` and `current`
//! the least of the round before and of this one,
//! ```text
//! current ≥ last + clamp(last / 8, 4 ms, 16 ms)     the window grows by a quarter of slow start's from here on
//! ```
//! If then a round stays below the `current` that was found (the rise was jitter), slow start goes on; after five such
//! rounds, the one in which the rise was found included, congestion avoidance begins.
//!
//! Deviation: bytes per ACK are bounded by the host's own byte counting rather than by `L` = 8 segments.

use super::Ack;
use super::ack::Round;
use anabranch_units::Duration;

/// ACKs of one flow in slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlusPlus {
    round: Round,
    /// Least RTT of the round before.
    last: Option<Duration>,
    /// Least RTT of this one, and its samples.
    current: Option<Duration>,
    samples: u32,
    conservative: Option<Conservative>,
}

/// Conservative slow start (CSS).
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// Least RTT of the round in which the rise was found.
    baseline: Duration,
    /// Rounds so far, the one under way included.
    rounds: u32,
}

impl PlusPlus {
    /// Takes an ACK in. True if slow start is over.
    pub(super) fn ends_slow_start(&mut self, ack: &Ack, in_slow_start: bool) -> bool {
        if !in_slow_start {
            *self = PlusPlus::default();
            return false;
        }
        if self.round.ends(ack) {
            (self.last, self.current, self.samples) = (self.current, None, 0);
            if let Some(css) = &mut self.conservative {
                css.rounds += 1;
                if css.rounds > CSS_ROUNDS {
                    *self = PlusPlus::default();
                    return true;
                }
            }
        }
        let Some(rtt) = ack.rtt else { return false };
        let current = self.current.map_or(rtt, |current| current.min(rtt));
        (self.current, self.samples) = (Some(current), self.samples + 1);
        if self.samples < N_RTT_SAMPLE {
            return false;
        }
        match (self.conservative, self.last) {
            (Some(css), _) if current < css.baseline => self.conservative = None,
            (None, Some(last)) if current >= last + (last / 8).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH) => {
                self.conservative = Some(Conservative { baseline: current, rounds: 1 });
            }
            _ => {}
        }
        false
    }

    /// Divisor of slow start's growth at present.
    pub(super) fn divisor(&self) -> f64 {
        if self.conservative.is_some() { CSS_GROWTH_DIVISOR } else { 1.0 }
    }
}

// RFC 9406 §4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::super::RateSample;
    use super::*;

    /// A round of ten ACKs with this RTT each; its number from 0. Whether slow start ended, and the divisor afterwards.
    fn round(it: &mut PlusPlus, number: u64, rtt_ms: u64) -> (bool, f64) {
        let ended = (0..10).any(|n| {
            let prior_delivered = (number * 10 + n + 1).saturating_sub(10);
            let sample = RateSample { prior_delivered, ..RateSample::default() };
            let (rtt, delivered) = (Some(Duration::from_millis(rtt_ms)), number * 10 + n + 1);
            it.ends_slow_start(&Ack { rtt, delivered, sample: Some(sample), ..Ack::default() }, true)
        });
        (ended, it.divisor())
    }

    /// Divisors after rounds with these RTTs in ms, none of which ends slow start.
    fn divisors<const N: usize>(it: &mut PlusPlus, rtts: [u64; N]) -> [f64; N] {
        let mut number = 0;
        rtts.map(|rtt| {
            let (ended, divisor) = round(it, number, rtt);
            assert!(!ended, "round {number}");
            number += 1;
            divisor
        })
    }

    /// 50 and 56 ms: the thresholds are 6.25 and 7 ms, so 64 is a rise. The fifth round after it is congestion
    /// avoidance.
    #[test]
    fn a_rise_slows_slow_start_down_and_five_rounds_end_it() {
        let mut it = PlusPlus::default();
        let found = divisors(&mut it, [50, 56, 64, 66, 68, 68, 70]);
        assert_eq!(found, [1.0, 1.0, 4.0, 4.0, 4.0, 4.0, 4.0]);
        assert!(round(&mut it, 7, 70).0);
    }

    #[test]
    fn a_rise_that_was_jitter_is_taken_back() {
        let found = divisors(&mut PlusPlus::default(), [50, 60, 60, 59, 60, 70]);
        assert_eq!(found, [1.0, 4.0, 4.0, 1.0, 1.0, 4.0]);
    }

    /// 20 ms: at least 4 ms; 400 ms: at most 16.
    #[test]
    fn the_threshold_has_bounds() {
        for (last, current, found) in [(20, 23, false), (20, 24, true), (400, 415, false), (400, 416, true)] {
            let mut it = PlusPlus::default();
            round(&mut it, 0, last);
            assert_eq!(round(&mut it, 1, current).1 == 4.0, found, "{last} {current}");
        }
    }

    #[test]
    fn seven_samples_say_nothing() {
        let mut it = PlusPlus::default();
        round(&mut it, 0, 50);
        for n in 0..7 {
            let sample = RateSample { prior_delivered: 1 + n, ..RateSample::default() };
            let rtt = Some(Duration::from_millis(90));
            it.ends_slow_start(&Ack { rtt, delivered: 11 + n, sample: Some(sample), ..Ack::default() }, true);
            assert_eq!(it.divisor(), 1.0, "{n}");
        }
    }
}
