//! A place in a trace of rates.

use super::Step;
use crate::service::{WORK_PER_BYTE, Work};
use anabranch_units::{Duration, Instant};
use std::sync::Arc;

/// A place in the endless repetition of rates; only moves forward. Time is exact: see [`Place::spent`].
#[derive(Clone, Debug)]
pub(super) struct Place {
    steps: Arc<[Step]>,
    period: Duration,
    /// Work of a whole period.
    total: Work,
    /// The beginning of the current repetition.
    base: Instant,
    index: usize,
    /// The link is free from `at` and `spent / rate` nanoseconds on.
    at: Instant,
    /// Work done after `at`, less than the rate of the current step.
    spent: Work,
}

impl Place {
    pub(super) fn new(steps: Arc<[Step]>, period: Duration, total: Work, now: Instant) -> Self {
        let mut place = Place { steps, period, total, base: Instant::ZERO, index: 0, at: Instant::ZERO, spent: 0 };
        place.seek(now);
        place
    }

    /// Serves `bytes` that were queued at `now`, behind all that was served before.
    pub(super) fn serve(&mut self, now: Instant, bytes: u64) -> Instant {
        self.work(now, u128::from(bytes) * WORK_PER_BYTE)
    }

    /// Does work that was there at `now`, behind all that was done before, and returns its end, rounded up.
    pub(super) fn work(&mut self, now: Instant, mut left: Work) -> Instant {
        if now >= self.free_at() {
            self.seek(now);
        }
        if left > self.total {
            // The place in the period is the same after whole periods. The last bit is left, for it may leave before an
            // outage.
            let periods = u64::try_from((left - 1) / self.total).unwrap_or(u64::MAX);
            let skipped = Duration::from_nanos(self.period.as_nanos().saturating_mul(periods));
            (self.base, self.at) = (self.base + skipped, self.at + skipped);
            left = (left - 1) % self.total + 1;
        }
        loop {
            let rate = self.rate();
            let end = self.base + self.steps[self.index].until;
            let room = u128::from(end.since(self.at).as_nanos()) * rate - self.spent;
            if left <= room && rate > 0 {
                let done = self.spent + left;
                self.at += Duration::from_nanos(u64::try_from(done / rate).unwrap_or(u64::MAX));
                self.spent = done % rate;
                return self.free_at();
            }
            left -= room;
            (self.at, self.spent) = (end, 0);
            self.index += 1;
            if self.index == self.steps.len() {
                (self.index, self.base) = (0, self.base + self.period);
            }
        }
    }

    /// Returns the work offered after `from` and before `to`.
    pub(super) fn offered_between(&self, from: Instant, to: Instant) -> Work {
        let mut place = Place::new(Arc::clone(&self.steps), self.period, self.total, from);
        let mut sum = 0;
        while place.at < to {
            let end = (place.base + place.steps[place.index].until).min(to);
            sum += u128::from(end.since(place.at).as_nanos()) * place.rate();
            place.seek(end);
        }
        sum
    }

    fn rate(&self) -> Work {
        u128::from(self.steps[self.index].rate.as_bps())
    }

    /// Time from which the link is free, rounded up.
    fn free_at(&self) -> Instant {
        self.at + Duration::from_nanos(u64::from(self.spent > 0))
    }

    /// Goes to `now`, with nothing under way.
    fn seek(&mut self, now: Instant) {
        let periods = now.since(self.base).as_nanos() / self.period.as_nanos();
        if periods > 0 {
            (self.base, self.index) = (self.base + self.period * periods, 0);
        }
        let wanted = now.since(self.base);
        self.index += self.steps[self.index..].partition_point(|step| step.until <= wanted);
        (self.at, self.spent) = (now, 0);
    }
}
