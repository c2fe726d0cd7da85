//! Samples of the delivery rate.
//!
//! Y. Cheng, N. Cardwell, S. Hassas Yeganeh, V. Jacobson. *Delivery Rate Estimation.*
//! draft-cheng-iccrg-delivery-rate-estimation-00. Each segment leaves with a note of what had been delivered by then.
//! When it arrives, what was delivered since over the time since is a sample, where the time is the longer of sending
//! that flight and of its being acknowledged: ACKs that come bunched do not make the path look faster.
//!
//! Where we differ: bytes are counted as the scoreboard counts them, parts of segments included.

use anabranch_policy::congestion::RateSample;
use anabranch_units::{Duration, Instant};

/// Notes of a segment when it leaves, in 20 bytes: each segment under way has them.
#[derive(Clone, Copy, Debug, Default)]
#[repr(Rust, packed(4))]
pub(super) struct Departure {
    /// P.delivered_time.
    delivered_at: Instant,
    /// P.first_sent_time: when the flight began that this segment ends.
    first_sent_at: Instant,
    /// The lower 32 bits of P.delivered.
    delivered: u32,
}

/// C.delivered and its companions.
#[derive(Clone, Debug, Default)]
pub(super) struct Deliveries {
    next: Departure,
    delivered: u64,
    /// C.app_limited: until more than this is delivered, what leaves does so from a sender with too little to send.
    limited_until: Option<u64>,
}

impl Deliveries {
    /// Returns the record for a segment that leaves now; `idle` if no data is in flight.
    pub(super) fn departure(&mut self, now: Instant, idle: bool) -> Departure {
        if idle {
            self.next.first_sent_at = now;
            self.next.delivered_at = now;
        }
        self.next
    }

    /// Returns true if a segment that leaves now comes from an application-limited sender.
    pub(super) fn is_limited(&self) -> bool {
        self.limited_until.is_some()
    }

    /// Marks the sender as application-limited: it has room and no data, with `in_flight` bytes outstanding.
    pub(super) fn limit(&mut self, in_flight: u64) {
        self.limited_until = Some(self.delivered + in_flight);
    }

    /// An ACK delivers `bytes`. `latest`: of what it delivers, the segment that left last, when it did, and whether it
    /// was limited.
    pub(super) fn deliver(
        &mut self,
        now: Instant,
        bytes: u64,
        latest: Option<(Departure, Instant, bool)>,
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        if bytes == 0 {
            return None;
        }
        self.delivered += bytes;
        self.next.delivered = self.delivered as u32;
        self.next.delivered_at = now;
        if self.limited_until.is_some_and(|until| self.delivered > until) {
            self.limited_until = None;
        }
        let (departure, sent_at, app_limited) = latest?;
        self.next.first_sent_at = sent_at;
        let sending = sent_at.since(departure.first_sent_at);
        let interval = sending.max(now.since(departure.delivered_at));
        // Shorter than any round trip: segments that were sent again and arrived the first time.
        let believable = min_rtt.is_none_or(|min| interval >= min);
        let over = believable.then_some(interval);
        // Since a segment left, a few windows of at most 1 GiB have been delivered (RFC 7323 §2.3).
        let since = (self.delivered as u32).wrapping_sub(departure.delivered);
        Some(RateSample { prior_delivered: self.delivered - u64::from(since), over, app_limited, flight: None })
    }

    /// Bytes delivered in all.
    pub(super) fn total(&self) -> u64 {
        self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn sample(prior_delivered: u64, over_ms: Option<u64>, app_limited: bool) -> Option<RateSample> {
        Some(RateSample { prior_delivered, over: over_ms.map(Duration::from_millis), app_limited, flight: None })
    }

    /// Ten segments of 1250 bytes leave at once and are acknowledged 1 ms apart (10 Mbit/s) after 20 ms. Each takes the
    /// place of an older one.
    #[test]
    fn a_flight_is_as_fast_as_its_acks() {
        let mut d = Deliveries::default();
        let first = d.departure(at(0), true);
        let mut second = Vec::new();
        for n in 1..=10 {
            // n segments in 20 + n ms.
            assert_eq!(d.deliver(at(20 + n), 1250, Some((first, at(0), false)), None), sample(0, Some(20 + n), false));
            second.push((d.departure(at(20 + n), false), at(20 + n), false));
        }
        // The first of the second flight: ten segments in the 20 ms since the first ACK, but the flight that it ends
        // was begun with the first segment of all, 21 ms before it left.
        assert_eq!(d.deliver(at(41), 1250, Some(second[0]), None), sample(1250, Some(21), false));
        assert_eq!(d.total(), 11 * 1250);
    }

    #[test]
    fn bunched_acks_do_not_make_the_path_faster() {
        let mut d = Deliveries::default();
        let first = d.departure(at(0), true);
        let second = d.departure(at(10), false);
        d.deliver(at(20), 1250, Some((first, at(0), false)), None);
        let third = d.departure(at(20), false);
        // A millisecond after the ACK before, but 21 ms after the flight began.
        assert_eq!(d.deliver(at(21), 1250, Some((second, at(10), false)), None), sample(0, Some(21), false));
        // Sent within the 20 ms since the flight began with the first; the ACKs took 2 ms.
        assert_eq!(d.deliver(at(22), 1250, Some((third, at(20), false)), None), sample(1250, Some(20), false));
    }

    #[test]
    fn a_limited_sender_marks_its_segments_until_they_have_arrived() {
        let mut d = Deliveries::default();
        let first = d.departure(at(0), true);
        assert!(!d.is_limited());
        d.limit(1250);
        assert!(d.is_limited());
        d.deliver(at(10), 1250, Some((first, at(0), false)), None);
        assert!(d.is_limited(), "what leaves until more arrives is limited");
        let second = d.departure(at(10), true);
        let limited = d.deliver(at(20), 1250, Some((second, at(10), true)), None);
        assert_eq!(limited, sample(1250, Some(10), true));
        assert!(!d.is_limited());
    }

    #[test]
    fn what_is_faster_than_the_path_is_not_believed() {
        let mut d = Deliveries::default();
        let first = d.departure(at(0), true);
        assert_eq!(
            d.deliver(at(1), 1250, Some((first, at(0), false)), Some(Duration::from_millis(5))),
            sample(0, None, false)
        );
        assert_eq!(d.deliver(at(2), 0, None, None), None);
        assert_eq!(d.deliver(at(2), 600, None, None), None);
        assert_eq!(d.total(), 1850);
    }
}
