//! The first of several timers.

use anabranch_units::Instant;

/// The earliest of the timers that run. Asked several times per segment, so without a branch per timer: one that does not
/// run counts as the end of time.
#[inline]
pub(crate) fn earliest<const N: usize>(timers: [Option<Instant>; N]) -> Option<Instant> {
    // One below the bits of the option: none is the largest number of all.
    let first = timers.into_iter().fold(NONE, |first, at| first.min(at.map_or(NONE, Instant::as_nanos)));
    (first < Instant::MAX.as_nanos()).then(|| Instant::from_nanos(first))
}

/// No timer runs, like [`Instant::MAX`].
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
