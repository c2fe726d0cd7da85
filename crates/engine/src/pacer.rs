//! Pacing: segments of a subflow leave at the rate that its congestion control gives, if it gives one.
//!
//! Each segment puts the next one off by the time that its payload takes at that rate. A sender that comes late, or has
//! paused, may make good one segment, so that never more than two leave back to back. New data, retransmissions and
//! what is repeated for other subflows all wait; tail loss probes, which come once and late, do not, but count.
//!
//! With segmentation offload (`Config::burst`) what leaves at once is one packet to the driver. Then a sender whose
//! time has come may send as much as its rate gives in a millisecond, a burst at most, and pays for it afterwards
//! (Linux `tcp_tso_autosize`).

use anabranch_units::{Bytes, Duration, Instant, Rate};

/// Times at which segments of a subflow may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacer {
    next: Instant,
    /// Time at which it was last open, and the burst allowed then beside the first segment, as time.
    opened: Instant,
    ahead: Duration,
    /// Something waits for that moment.
    pub(crate) wake: Option<Instant>,
}

/// Longest wait for the segment before: a congestion control without a rate would otherwise stop the subflow for good.
const LONGEST: Duration = Duration::from_secs(10);
/// The longest burst.
const LONGEST_BURST: Duration = Duration::from_millis(1);

impl Pacer {
    /// A segment may leave now.
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        self.next <= now || (self.opened == now && self.next <= now + self.ahead)
    }

    /// A segment with so much payload leaves at `rate`, perhaps the first of a burst.
    pub(crate) fn on_sent(&mut self, now: Instant, payload: Bytes, rate: Rate, burst: Option<Bytes>) {
        let span = rate.time_for(payload).min(LONGEST);
        if self.next <= now
            && let Some(burst) = burst
        {
            self.opened = now;
            let longest = rate.time_for(burst).min(LONGEST_BURST);
            // It is open until more than this is owed, so the last segment is left out.
            self.ahead = longest.saturating_sub(span);
        }
        self.next = self.next.max(now - span) + span;
    }

    /// Sets the alarm if something waits.
    pub(crate) fn arm(&mut self, now: Instant, waits: bool) {
        self.wake = (waits && !self.is_open(now)).then_some(self.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1250 bytes take 1 ms at 10 Mbit/s: two at once, then one per millisecond, two again after a pause.
    #[test]
    fn at_most_two_leave_back_to_back() {
        let (mut pacer, rate) = (Pacer::default(), Rate::from_mbps(10));
        let mut sent = Vec::new();
        for us in (100_000..103_500).step_by(100) {
            let now = Instant::ZERO + Duration::from_micros(us);
            while pacer.is_open(now) {
                pacer.on_sent(now, Bytes::new(1250), rate, None);
                sent.push(us);
            }
        }
        assert_eq!(sent, [100_000, 100_000, 101_000, 102_000, 103_000]);
        let late = Instant::ZERO + Duration::from_millis(200);
        for expected in [true, true, false] {
            assert_eq!(pacer.is_open(late), expected);
            pacer.on_sent(late, Bytes::new(1250), rate, None);
        }
    }

    /// 1250 bytes take 100 µs at 100 Mbit/s: ten at once and then nothing for a millisecond; of 5000 bytes, four.
    #[test]
    fn a_burst_leaves_at_once_and_is_paid_for() {
        for (burst, each) in [(64_000, 10), (5000, 4), (1, 1)] {
            let (mut pacer, rate, mut sent) = (Pacer::default(), Rate::from_mbps(100), Vec::new());
            for us in (100_000..103_000).step_by(10) {
                let now = Instant::ZERO + Duration::from_micros(us);
                let mut count = 0;
                while pacer.is_open(now) {
                    pacer.on_sent(now, Bytes::new(1250), rate, Some(Bytes::new(burst)));
                    count += 1;
                }
                sent.extend((count > 0).then_some(count));
            }
            // The pause before the first is made good, by a segment.
            sent[0] -= 1;
            assert_eq!(sent, vec![each; 30_usize.div_ceil(each)], "{burst}");
        }
    }

    #[test]
    fn no_rate_is_no_standstill() {
        let (mut pacer, now) = (Pacer::default(), Instant::ZERO + Duration::from_secs(60));
        pacer.on_sent(now, Bytes::new(1250), Rate::default(), None);
        pacer.on_sent(now, Bytes::new(1250), Rate::default(), None);
        pacer.arm(now, true);
        assert_eq!(pacer.wake, Some(now + Duration::from_secs(10)));
    }

    #[test]
    fn wakes_only_whoever_waits() {
        let (mut pacer, now) = (Pacer::default(), Instant::ZERO + Duration::from_secs(1));
        pacer.on_sent(now, Bytes::new(1250), Rate::from_mbps(10), None);
        pacer.on_sent(now, Bytes::new(1250), Rate::from_mbps(10), None);
        pacer.arm(now, false);
        assert_eq!(pacer.wake, None);
        pacer.arm(now, true);
        let then = now + Duration::from_millis(1);
        assert_eq!(pacer.wake, Some(then));
        pacer.arm(then, true);
        assert_eq!(pacer.wake, None);
    }
}
