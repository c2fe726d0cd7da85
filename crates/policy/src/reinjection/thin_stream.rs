//! Thin streams: connections that send so little that every message may be sent twice.

use crate::View;
use anabranch_units::{Bytes, Duration, Instant};

/// A bucket that fills with what is sent and leaks at the rate of a thin stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThinStream {
    level: f64,
    latest: Option<Instant>,
    /// Time since when it has been thin.
    since: Option<Instant>,
}

/// Bytes per second of a thin stream at most: 100 kbit/s.
const LEAK: f64 = 12_500.0;
/// Bytes of a message of one at most, or of several that follow each other closely.
const MESSAGE: f64 = 4000.0;
/// Time for which it has to have been one: the beginning of a file, and its end on a slow path, look alike.
const LASTING: Duration = Duration::from_secs(1);

impl ThinStream {
    /// `length` bytes leave for the first time.
    pub(super) fn on_sent(&mut self, now: Instant, length: Bytes) {
        self.level = self.level(now) + length.as_f64();
        self.latest = Some(now);
        let since = *self.since.get_or_insert(now);
        self.since = Some(if self.level > MESSAGE { now } else { since });
    }

    /// Returns true if what was sent lately, and what is under way, is that of a thin stream.
    pub(super) fn is_thin(&self, now: Instant, view: &View<'_>) -> bool {
        let under_way: f64 = view.subflows.iter().map(|subflow| subflow.in_flight.as_f64()).sum();
        self.lasts(now) && under_way <= 2.0 * MESSAGE
    }

    fn lasts(&self, now: Instant) -> bool {
        self.since.is_some_and(|since| now.since(since) >= LASTING)
    }

    fn level(&self, now: Instant) -> f64 {
        let leaked = self.latest.map_or(0.0, |latest| LEAK * now.since(latest).as_secs_f64());
        (self.level - leaked).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Duration;

    /// True if it is thin after each of `count` messages of this size, one every `ms`.
    fn stays_thin(count: u64, bytes: u64, ms: u64) -> bool {
        let mut stream = ThinStream::default();
        (0..count).all(|n| {
            let now = Instant::ZERO + Duration::from_millis(n * ms);
            stream.on_sent(now, Bytes::new(bytes));
            stream.lasts(now) || n * ms < 1000
        })
    }

    #[test]
    fn speech_is_thin_and_a_file_is_not() {
        assert!(stays_thin(10_000, 160, 20), "64 kbit/s");
        assert!(stays_thin(1000, 2000, 500), "32 kbit/s");
        assert!(!stays_thin(1000, 320, 20), "128 kbit/s");
        assert!(!stays_thin(100, 5600, 500), "90 kbit/s, in large messages");
        // A file is forgotten after a second.
        let mut stream = ThinStream::default();
        stream.on_sent(Instant::ZERO, Bytes::new(16_500));
        assert!(!stream.lasts(Instant::ZERO + Duration::from_millis(999)));
        assert!(stream.lasts(Instant::ZERO + Duration::from_secs(1)));
    }
}
