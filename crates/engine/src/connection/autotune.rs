//! Receive-buffer auto-tuning: the buffer grows with what the application reads in a round trip (Linux
//! `tcp_rcv_space_adjust` in `net/ipv4/tcp_input.c`; at the data level `mptcp_rcv_space_adjust` in
//! `net/mptcp/protocol.c`).
//!
//! Once per round trip of the slowest subflow, if more was read than in any round trip before:
//! ```text
//! target = 2 · read + 16 · MSS
//! target = target + 2 · target · (read - before) / before
//! ```
//! The first line has room for what a sender in slow start sends next; the second looks ahead as far again as the rate
//! has just grown. That is Linux 4.16 and later ([`ReceiveTuning::Proportional`]). Linux 3.14 to 4.15
//! ([`ReceiveTuning::Stepwise`]) has in place of the second line `target · 2` where `read` is half more than `before`,
//! and `target · 1.5` where it is a quarter more (`tcp_rcv_space_adjust`, net/ipv4/tcp_input.c).
//!
//! The buffer never shrinks. Where we differ: Linux sizes memory with its overhead, here one byte of payload is one
//! byte of the buffer, of which `adv_win_scale` has taken its share before; and it looks when the application reads, we
//! when the next data arrives.

use crate::ReceiveTuning;
use anabranch_units::{Bytes, Duration, Instant};

#[cfg_attr(test, derive(Debug))]
pub(super) struct Autotune {
    /// The buffer grows to this size at most.
    most: u64,
    mss: u64,
    rule: ReceiveTuning,
    /// The most that was read in a round trip.
    before: u64,
    /// Read since `began`.
    read: u64,
    began: Instant,
    /// Earliest end of the round trip.
    look_at: Instant,
}

/// Segments that are assumed to be read in a round trip at first: Linux's initial window. But half of the buffer at
/// most, or a small one, which bounds what is read in a round trip, would never grow.
const FIRST_SEGMENTS: u64 = 10;
/// Segments added to the target.
const SPARE_SEGMENTS: u64 = 16;

impl Autotune {
    /// Tunes a buffer from `first` to `most` bytes.
    pub(super) fn new(first: Bytes, most: Bytes, mss: u16, rule: ReceiveTuning) -> Self {
        let mss = u64::from(mss);
        Autotune {
            most: most.get(),
            mss,
            rule,
            before: (first.get() / 2).min(FIRST_SEGMENTS * mss).max(1),
            read: 0,
            began: Instant::ZERO,
            look_at: Instant::ZERO,
        }
    }

    pub(super) fn on_read(&mut self, length: u64) {
        self.read += length;
    }

    /// Returns true if the RTT is worth finding out.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.look_at
    }

    /// The size that the buffer should have, if a round trip of `rtt` is over in which more was read than ever before.
    pub(super) fn target(&mut self, now: Instant, rtt: Duration) -> Option<u64> {
        self.look_at = self.began + rtt;
        if now < self.look_at {
            return None;
        }
        let (read, before) = (self.read, self.before);
        (self.read, self.began, self.look_at) = (0, now, now + rtt);
        if read <= before {
            return None;
        }
        self.before = read;
        let target = 2 * u128::from(read) + u128::from(SPARE_SEGMENTS * self.mss);
        let more = match self.rule {
            ReceiveTuning::Proportional => {
                2_u128.saturating_mul(target.saturating_mul(u128::from(read - before)) / u128::from(before))
            }
            ReceiveTuning::Stepwise if read >= before.saturating_add(before / 2) => target,
            ReceiveTuning::Stepwise if read >= before.saturating_add(before / 4) => target / 2,
            ReceiveTuning::Stepwise => 0,
        };
        Some(u64::try_from(target.saturating_add(more)).unwrap_or(u64::MAX).min(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    const RTT: Duration = Duration::from_millis(100);

    /// Figures of a throw-away script: reads of 10, 20, 20 and 21 segments of 1460 B in a round trip each.
    #[test]
    fn the_target_runs_ahead_of_what_is_read() {
        let mut tuning = Autotune::new(Bytes::new(65_536), Bytes::new(6 << 20), 1460, ReceiveTuning::Proportional);
        let targets = [(10, None), (20, Some(245_280)), (20, None), (21, Some(93_148)), (400, Some(6 << 20))];
        for (round, (segments, target)) in (1..).zip(targets) {
            tuning.on_read(segments * 1460);
            assert_eq!(tuning.target(at(100 * round), RTT), target, "{segments} segments");
        }
    }

    /// `tcp_rcv_space_adjust` of Linux 4.1 by hand, MSS 1460: reads of 14 600 B before, then of 18 000 (+23 %), 22 500
    /// (+25 %), 33 750 (+50 %) and 40 000 B (+19 %); each target is `2 · read + 23 360`, times 1, 1.5, 2 and 1.
    #[test]
    fn the_older_rule_goes_in_steps() {
        let mut tuning = Autotune::new(Bytes::new(65_536), Bytes::new(6 << 20), 1460, ReceiveTuning::Stepwise);
        let targets = [
            (18_000, Some(59_360)),
            (22_500, Some(102_540)),
            (33_750, Some(181_720)),
            (33_750, None),
            (40_000, Some(103_360)),
        ];
        for (round, (read, target)) in (1..).zip(targets) {
            tuning.on_read(read);
            assert_eq!(tuning.target(at(100 * round), RTT), target, "{read} bytes");
        }
        tuning.on_read(4 << 20);
        assert_eq!(tuning.target(at(600), RTT), Some(6 << 20));
    }

    #[test]
    fn it_waits_for_a_round_trip_of_the_slowest() {
        let mut tuning = Autotune::new(Bytes::new(65_536), Bytes::new(6 << 20), 1460, ReceiveTuning::Proportional);
        tuning.on_read(29_200);
        assert!(tuning.is_due(at(0)) && tuning.target(at(10), RTT).is_none() && !tuning.is_due(at(99)));
        assert!(tuning.is_due(at(100)));
        // A slower subflow has joined.
        assert!(tuning.target(at(100), RTT * 3).is_none() && !tuning.is_due(at(299)));
        assert!(tuning.target(at(300), RTT * 3).is_some());
    }

    #[test]
    fn a_buffer_of_a_segment_grows() {
        let mut tuning = Autotune::new(Bytes::new(1460), Bytes::new(6 << 20), 1460, ReceiveTuning::Proportional);
        tuning.on_read(1460);
        // Twice what was read and sixteen segments, and as much again twice.
        assert_eq!(tuning.target(at(100), RTT), Some(18 * 1460 * 3));
    }

    #[test]
    fn nothing_overflows() {
        let mut tuning = Autotune::new(Bytes::new(1), Bytes::MAX, u16::MAX, ReceiveTuning::Proportional);
        tuning.on_read(u64::MAX / 2);
        assert_eq!(tuning.target(at(1000), RTT), Some(u64::MAX));
    }
}
