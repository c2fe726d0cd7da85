//! HyStart: the end of slow start before the queue overflows.
//!
//! S. Ha, I. Rhee. *Taming the Elephants: New TCP Slow Start.* Computer Networks 55(9), 2011; as CUBIC has it in Linux
//! (`hystart_update`, `bictcp_acked`, net/ipv4/tcp_cubic.c). Slow start ends, and does not come back before a timeout,
//! when in one round trip with a window of 16 segments and more
//! ```text
//! ACKs no more than 2 ms apart have come for longer than RTT_min / 2        (train)
//! the least of 8 RTT samples exceeds RTT_min + clamp(RTT_min / d, 4 ms, 16 ms)   (delay)
//! ```
//! with `d` = 16 before Linux 3.19 and 8 since. Linux 5.16 has three rules more: all samples of the round so far count
//! rather than the first 8 (since 5.8), the ACK that ends a round is the first of the next one (since 5.16), and a
//! train is longer than (since 5.6)
//! ```text
//! (RTT_min + min(1 ms, 256 KiB / pace)) / 2        pace = 2 cwnd / SRTT, or 1.2 above half of the threshold
//! ```
//! (`hystart_ack_delay`, `tcp_update_pacing_rate`). Where we differ: our clock is exact, that of kernels before 5.6 one
//! of milliseconds; Linux takes no sample in the first second of congestion avoidance.

use super::Ack;
use super::ack::Round;
use anabranch_units::{Bytes, Duration, Instant};

/// Rise of the RTT that ends slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HyStart {
    /// A sixteenth of the least RTT (Linux before 3.19).
    Sixteenth,
    /// An eighth of it (Linux 3.19 to 5.5).
    Eighth,
    /// An eighth of it, by all samples of a round, and trains up to half a millisecond longer (Linux 5.16 and later).
    Linux5_16,
    /// HyStart++ (RFC 9406): an eighth over the round trip before, and a slower slow start first.
    PlusPlus,
}

impl HyStart {
    fn threshold(self, least: Duration) -> Duration {
        let share = match self {
            HyStart::Sixteenth => least / 16,
            HyStart::Eighth | HyStart::Linux5_16 | HyStart::PlusPlus => least / 8,
        };
        share.clamp(MIN_THRESHOLD, MAX_THRESHOLD)
    }
}

/// ACKs of one flow, as far as they matter here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watch {
    round: Round,
    /// Beginning of the round; `None` before the first ACK.
    began: Option<Instant>,
    /// The latest ACK of the train.
    latest: Instant,
    /// Least RTT of the round's first samples, and their number.
    sample: Option<Duration>,
    samples: u32,
    /// Least RTT of the flow.
    least: Option<Duration>,
    found: bool,
}

impl Watch {
    /// Takes an ACK in. True if slow start is to end; `armed` if it goes on with a large enough window. Up to
    /// `burst_time` an ACK may have waited for others (since 5.16).
    pub(super) fn ends_slow_start(
        &mut self,
        now: Instant,
        ack: &Ack,
        rule: HyStart,
        armed: bool,
        burst_time: Duration,
    ) -> bool {
        let begins_round = self.round.ends(ack) || self.began.is_none();
        let early = rule == HyStart::Linux5_16;
        if begins_round && early {
            self.begin(now);
        }
        let mut ends = false;
        if let Some(rtt) = ack.rtt {
            let least = self.least.map_or(rtt, |least| least.min(rtt));
            self.least = Some(least);
            if armed && !self.found {
                let train = if early { least + burst_time.min(MAX_BURST_TIME) } else { least } / 2;
                ends = self.is_train(now, train) | self.is_delayed(rtt, least, rule);
                self.found = ends;
            }
        }
        if begins_round && !early {
            self.begin(now);
        }
        ends
    }

    /// A round begins.
    fn begin(&mut self, now: Instant) {
        (self.began, self.latest, self.sample, self.samples) = (Some(now), now, None, 0);
    }

    /// Begins slow start anew, after a timeout.
    pub(super) fn restart(&mut self) {
        *self = Watch::default();
    }

    fn is_train(&mut self, now: Instant, length: Duration) -> bool {
        if now.since(self.latest) > TRAIN_GAP {
            return false;
        }
        self.latest = now;
        self.began.is_some_and(|began| now.since(began) > length)
    }

    fn is_delayed(&mut self, rtt: Duration, least: Duration, rule: HyStart) -> bool {
        if self.samples < SAMPLES || rule == HyStart::Linux5_16 {
            self.sample = Some(self.sample.map_or(rtt, |sample| sample.min(rtt)));
        }
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        self.sample.is_some_and(|sample| sample > least + rule.threshold(least))
    }
}

/// Segments from which on slow start may end (`hystart_low_window`).
pub(super) const LOW_WINDOW: f64 = 16.0;
/// ACKs of a train are no further apart (`hystart_ack_delta`).
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// An ACK waits no longer for others (`hystart_ack_delay`).
const MAX_BURST_TIME: Duration = Duration::from_millis(1);
/// Bytes that may leave and be acknowledged together: four packets of the largest size that hardware splits up.
pub(super) const BURST: Bytes = Bytes::new(4 << 16);
/// Samples of a round trip that count (`HYSTART_MIN_SAMPLES`).
const SAMPLES: u32 = 8;
/// `HYSTART_DELAY_MIN`.
const MIN_THRESHOLD: Duration = Duration::from_millis(4);
/// `HYSTART_DELAY_MAX`.
const MAX_THRESHOLD: Duration = Duration::from_millis(16);

#[cfg(test)]
mod tests {
    use super::super::RateSample;
    use super::*;

    const MS: u64 = 1000;

    /// An ACK at `us` microseconds with this RTT; `sent` bytes had been delivered when its segment left.
    fn ack(watch: &mut Watch, us: u64, rtt_us: u64, sent: u64, delivered: u64, rule: HyStart) -> bool {
        let sample = RateSample { prior_delivered: sent, ..RateSample::default() };
        let rtt = Some(Duration::from_micros(rtt_us));
        let ack = Ack { rtt, delivered, sample: Some(sample), ..Ack::default() };
        watch.ends_slow_start(Instant::ZERO + Duration::from_micros(us), &ack, rule, true, Duration::from_millis(9))
    }

    /// RTT_min 100 ms. The round begins at 100 ms; ACKs come every 1.9 ms: the 27th is 51.3 ms after its beginning, the
    /// first beyond 50. One gap of 2.1 ms ends the train for good.
    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start() {
        for (gap_at, found) in [(None, Some(27)), (Some(20), None)] {
            let mut watch = Watch::default();
            assert!(!ack(&mut watch, 100 * MS, 100 * MS, 0, 1, HyStart::Eighth));
            let mut now = 100 * MS;
            let ended = (1..40).find(|&n| {
                now += if gap_at == Some(n) { 2100 } else { 1900 };
                ack(&mut watch, now, 100 * MS, 0, 1 + n, HyStart::Eighth)
            });
            assert_eq!(ended, found, "{gap_at:?}");
        }
    }

    /// RTT_min 100 ms: the threshold is 6.25 or 12.5 ms. A round whose first eight samples are 110 ms ends slow start
    /// at the ninth before 3.19 and not since; at RTT_min 20 ms the floor of 4 ms counts, at 400 ms the ceiling of 16
    /// ms.
    #[test]
    fn eight_late_samples_end_slow_start() {
        for (least, later, rule, found) in [
            (100, 110, HyStart::Sixteenth, true),
            (100, 110, HyStart::Eighth, false),
            (100, 113, HyStart::Eighth, true),
            (20, 23, HyStart::Sixteenth, false),
            (20, 25, HyStart::Eighth, true),
            (400, 415, HyStart::Eighth, false),
            (400, 417, HyStart::Sixteenth, true),
        ] {
            let mut watch = Watch::default();
            ack(&mut watch, 0, least * MS, 0, 1, rule);
            assert!(!ack(&mut watch, 10 * MS, least * MS, 1, 2, rule)); // The second round begins.
            let ended = (1..=9).find(|&n| ack(&mut watch, (10 + 3 * n) * MS, later * MS, 1, 2 + n, rule));
            assert_eq!(ended, found.then_some(9), "{least} {later} {rule:?}");
        }
    }
    /// RTT_min 100 ms: trains of more than 50.5 ms rather than 50.
    #[test]
    fn a_train_is_longer_since_5_16() {
        let ends = |rule| {
            let mut watch = Watch::default();
            (0..80).find(|n| ack(&mut watch, 100 * MS + 700 * n, 100 * MS, 0, 1 + n, rule))
        };
        // 72 · 0.7 = 50.4, 73 · 0.7 = 51.1
        assert_eq!([HyStart::Eighth, HyStart::Linux5_16].map(ends), [Some(72), Some(73)]);
    }

    /// RTT_min 100 ms: eight samples of 113 ms and one more end slow start. Since 5.16 the first of a round is that of
    /// the ACK which begins it, and the last counts: one of 100 ms ends nothing.
    #[test]
    fn all_samples_count_since_5_16() {
        for (rule, more, last, found) in [
            (HyStart::Eighth, 8, 113, true),
            (HyStart::Eighth, 8, 100, true),
            (HyStart::Eighth, 7, 113, false),
            (HyStart::Linux5_16, 7, 113, true),
            (HyStart::Linux5_16, 7, 100, false),
            (HyStart::Linux5_16, 6, 113, false),
        ] {
            let mut watch = Watch::default();
            ack(&mut watch, 0, 100 * MS, 0, 1, rule);
            assert!(!ack(&mut watch, 10 * MS, 113 * MS, 1, 2, rule)); // The second round begins.
            let mut later = |n: u64, rtt: u64| ack(&mut watch, (10 + 3 * n) * MS, rtt * MS, 1, 2 + n, rule);
            assert!(!(1..=more).any(|n| later(n, 113)), "{rule:?} {more}");
            assert_eq!(later(more + 1, last), found, "{rule:?} {more} {last}");
        }
    }
}
