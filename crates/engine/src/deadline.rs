//! The first of several timers.

use anabranch_units::Instant;

/// The earliest of the timers that run. Asked several times per segment, so without a branch per timer: one that does not
/// run counts as the end of time.
#[inline]
pub(crate) fn earliest<const N: usize>(timers: [Option<Instant>; N]) -> Option<Instant> {
    let first = timers.into_iter().fold(Instant::MAX, |first, at| first.min(at.unwrap_or(Instant::MAX)));
    (first != Instant::MAX).then_some(first)
}

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
