//! A place in a trace of opportunities.

use super::{Served, Slot};
use anabranch_units::{Duration, Instant};
use std::sync::Arc;

/// A place in the endless repetition of opportunities; only moves forward.
#[derive(Clone, Debug)]
pub(super) struct Place {
    slots: Arc<[Slot]>,
    period: Duration,
    /// The beginning of the current repetition.
    base: Instant,
    index: usize,
    /// Bytes left in the current slot.
    left: u64,
}

impl Place {
    /// Makes a place at the first opportunity not before `now`.
    pub(super) fn new(slots: Arc<[Slot]>, period: Duration, now: Instant) -> Self {
        let left = slots[0].bytes;
        let mut place = Place { slots, period, base: Instant::ZERO, index: 0, left };
        if place.at() < now {
            place.seek(now);
        }
        place
    }

    /// Serves `bytes` that were queued at `now`, behind all that was served before.
    pub(super) fn serve(&mut self, now: Instant, bytes: u64) -> Served {
        let mut at = self.at();
        if at < now {
            self.seek(now);
            at = self.at();
        }
        let (mut need, mut at_once) = (bytes, 0);
        loop {
            let taken = need.min(self.left);
            self.left -= taken;
            need -= taken;
            at_once += taken;
            if need == 0 {
                // More than 4 GiB at one instant cannot be told from 4 GiB, and no packet is that large.
                return Served { departs: at, at_once: u32::try_from(at_once).unwrap_or(u32::MAX) };
            }
            self.advance();
            // A slot of 0 ms coincides with the last one of the repetition before.
            if self.at() != at {
                (at, at_once) = (self.at(), 0);
            }
        }
    }

    /// Returns the bytes offered after `from` and before `to`.
    pub(super) fn offered_between(&self, from: Instant, to: Instant) -> u64 {
        let mut place = Place::new(Arc::clone(&self.slots), self.period, from + Duration::from_nanos(1));
        let mut sum = 0;
        while place.at() < to {
            sum += place.left;
            place.advance();
        }
        sum
    }

    fn at(&self) -> Instant {
        self.base + self.slots[self.index].at
    }

    fn advance(&mut self) {
        self.index += 1;
        if self.index == self.slots.len() {
            self.index = 0;
            self.base += self.period;
        }
        self.left = self.slots[self.index].bytes;
    }

    /// Forward to the first slot not before `now`, which lies after the current one. Steps double until they pass it,
    /// so the cost grows with the logarithm of the slots passed over.
    fn seek(&mut self, now: Instant) {
        let period = self.period.as_nanos();
        // The last slot of a repetition stands at its end, so a repetition covers (base, base + period].
        let repetitions = (now.since(self.base).as_nanos() - 1) / period;
        if repetitions > 0 {
            self.base += self.period * repetitions;
            self.index = 0;
        }
        let (slots, wanted) = (&self.slots, now.since(self.base));
        let (mut low, mut step) = (self.index, 1);
        while low + step < slots.len() && slots[low + step].at < wanted {
            low += step;
            step *= 2;
        }
        let high = (low + step + 1).min(slots.len());
        self.index = low + slots[low..high].partition_point(|slot| slot.at < wanted);
        self.left = slots[self.index].bytes;
    }
}
