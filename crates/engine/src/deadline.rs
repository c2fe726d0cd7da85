//! The first of several timers.

use anabranch_units::Instant;

/// Gathers timers and keeps the earliest. Done at least once per segment, so without a branch per timer: one that does
/// not run counts as the end of time.
#[derive(Clone, Copy)]
pub(crate) struct Earliest(u64);

impl Earliest {
    pub(crate) const NONE: Earliest = Earliest(NONE);

    #[inline(always)]
    pub(crate) fn and(self, timer: Option<Instant>) -> Self {
        // One below the bits of the option: none is the largest number of all.
        Earliest(self.0.min(timer.map_or(NONE, Instant::as_nanos)))
    }

    /// The earliest, if any runs.
    #[inline]
    pub(crate) fn get(self) -> Option<Instant> {
        (self.0 < Instant::MAX.as_nanos()).then(|| Instant::from_nanos(self.0))
    }
}

/// The earliest of the timers that run.
#[inline]
pub(crate) fn earliest<const N: usize>(timers: [Option<Instant>; N]) -> Option<Instant> {
    timers.into_iter().fold(Earliest::NONE, Earliest::and).get()
}

/// Value for no timer, like [`Instant::MAX`].
const NONE: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_do_not_run_do_not_count() {
        let at = Instant::from_nanos;
        assert_eq!(earliest([None, Some(at(7)), None, Some(at(3))]), Some(at(3)));
        assert_eq!(earliest([None, None]), None);
    }
}
