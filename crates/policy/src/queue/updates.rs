//! Updates of a controller at even times.
//!
//! A discipline is asked only when packets come and leave, and does then what was due in between: until then nothing
//! could have told the difference.

use anabranch_units::{Duration, Instant};

/// Times of updates.
#[derive(Debug)]
pub(super) struct Updates {
    every: Duration,
    /// Time of the next update; `None` before the first packet.
    next: Option<Instant>,
}

impl Updates {
    pub(super) fn new(every: Duration) -> Self {
        Updates { every, next: None }
    }

    /// Returns the time of the next update if it was due by `now`.
    pub(super) fn due(&mut self, now: Instant) -> Option<Instant> {
        let at = *self.next.get_or_insert(now + self.every);
        (at <= now).then(|| {
            self.next = Some(at + self.every);
            at
        })
    }

    /// Leaves out the updates up to `now`: they change nothing.
    pub(super) fn skip(&mut self, now: Instant) {
        if let Some(next) = self.next.filter(|next| *next <= now) {
            let missed = now.since(next).as_nanos() / self.every.as_nanos().max(1) + 1;
            self.next = Some(next + self.every * missed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_come_late_and_none_is_left_out_unasked() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut updates = Updates::new(Duration::from_millis(10));
        assert_eq!(updates.due(at(3)), None);
        assert_eq!(updates.due(at(12)), None);
        let due: Vec<Instant> = std::iter::from_fn(|| updates.due(at(40))).collect();
        assert_eq!(due, [at(13), at(23), at(33)]);
        updates.skip(at(42));
        assert_eq!(updates.due(at(43)), Some(at(43)));
        updates.skip(at(1000));
        assert_eq!((updates.due(at(1002)), updates.due(at(1003))), (None, Some(at(1003))));
    }
}
