//! The largest value of the last few rounds or cycles, for models of a path.

/// A maximum over a sliding window of `SLOTS` counts of a virtual clock (rounds, cycles): one slot per count.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxFilter<const SLOTS: usize> {
    slots: [f64; SLOTS],
    newest: u64,
}

impl<const SLOTS: usize> Default for MaxFilter<SLOTS> {
    fn default() -> Self {
        MaxFilter { slots: [0.0; SLOTS], newest: 0 }
    }
}

impl<const SLOTS: usize> MaxFilter<SLOTS> {
    /// A value of `count`, which is not before the latest.
    pub(super) fn update(&mut self, count: u64, value: f64) {
        self.advance(count);
        let slot = &mut self.slots[(count % SLOTS as u64) as usize];
        *slot = slot.max(value);
    }

    /// Forgets what is too old at `count`.
    fn advance(&mut self, count: u64) {
        for stale in self.newest + 1..=count.min(self.newest + SLOTS as u64) {
            self.slots[(stale % SLOTS as u64) as usize] = 0.0;
        }
        self.newest = self.newest.max(count);
    }

    /// The largest value; 0 without any.
    pub(super) fn best(&self) -> f64 {
        self.slots.iter().fold(0.0, |best, slot| best.max(*slot))
    }

    /// The largest value of the latest count alone.
    pub(super) fn latest(&self) -> f64 {
        self.slots[(self.newest % SLOTS as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_lasts_ten_rounds() {
        let mut filter = MaxFilter::<10>::default();
        assert_eq!(filter.best(), 0.0);
        filter.update(3, 50.0);
        filter.update(3, 40.0);
        for round in 4..13 {
            filter.update(round, 10.0 + round as f64);
            assert_eq!((filter.best(), filter.latest()), (50.0, 10.0 + round as f64), "round {round}");
        }
        filter.update(13, 1.0);
        assert_eq!(filter.best(), 22.0);
        filter.update(500, 2.0);
        assert_eq!(filter.best(), 2.0);
    }
}
