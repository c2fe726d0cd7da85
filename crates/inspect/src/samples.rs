//! Round-trip times, thinned out so that a capture of any length fits.

use anabranch_units::Duration;

/// Samples spread evenly over all that there were.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    kept: Vec<Duration>,
    /// One in `1 << thinned` is kept.
    thinned: u32,
    count: u64,
    min: Option<Duration>,
}

impl Samples {
    /// Adds one.
    pub fn push(&mut self, sample: Duration) {
        self.min = Some(self.min.map_or(sample, |min| min.min(sample)));
        if self.count.is_multiple_of(1 << self.thinned) {
            self.kept.push(sample);
        }
        self.count += 1;
        if self.kept.len() == MOST {
            let mut keep = false;
            self.kept.retain(|_| {
                keep = !keep;
                keep
            });
            self.thinned += 1;
        }
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The least of all.
    pub fn min(&self) -> Option<Duration> {
        self.min
    }

    /// The middle one of those kept.
    pub fn median(&self) -> Option<Duration> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    }
}

/// Enough for a median; there are up to eight of these for each subflow.
const MOST: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_minimum_and_middle() {
        let mut samples = Samples::default();
        (0..100_000u64).rev().for_each(|n| samples.push(Duration::from_nanos(n)));
        assert_eq!((samples.count(), samples.min()), (100_000, Some(Duration::ZERO)));
        let median = samples.median().expect("there are samples").as_nanos();
        assert!((48_000..52_000).contains(&median), "{median}");
        assert!(samples.kept.len() < MOST);
    }
}
