//! The largest value of the last ten rounds.

/// A maximum over a sliding window of rounds: one slot per round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxFilter {
    slots: [f64; ROUNDS as usize],
    newest: u64,
}

/// "10 round trips" of the bandwidth filter.
pub(super) const ROUNDS: u64 = 10;

impl MaxFilter {
    /// A value of `round`, which is not before the latest.
    pub(super) fn update(&mut self, round: u64, value: f64) {
        self.advance(round);
        let slot = &mut self.slots[(round % ROUNDS) as usize];
        *slot = slot.max(value);
    }

    /// Forgets what is too old at `round`.
    fn advance(&mut self, round: u64) {
        for stale in self.newest + 1..=round.min(self.newest + ROUNDS) {
            self.slots[(stale % ROUNDS) as usize] = 0.0;
        }
        self.newest = self.newest.max(round);
    }

    /// The largest value; 0 without any.
    pub(super) fn best(&self) -> f64 {
        self.slots.iter().fold(0.0, |best, slot| best.max(*slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_lasts_ten_rounds() {
        let mut filter = MaxFilter::default();
        assert_eq!(filter.best(), 0.0);
        filter.update(3, 50.0);
        filter.update(3, 40.0);
        for round in 4..13 {
            filter.update(round, 10.0 + round as f64);
            assert_eq!(filter.best(), 50.0, "round {round}");
        }
        filter.update(13, 1.0);
        assert_eq!(filter.best(), 22.0);
        filter.update(500, 2.0);
        assert_eq!(filter.best(), 2.0);
    }
}
