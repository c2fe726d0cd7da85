//! Distribution of a quantity, in a few numbers.

use anabranch_units::Duration;
use hdrhistogram::Histogram;

/// A distribution in short; zeros if nothing was counted. Values are exact to 1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles<T> {
    /// Number of values.
    pub count: u64,
    /// The median.
    pub p50: T,
    /// Nine of ten values are not above.
    pub p90: T,
    /// 99 of 100 values are not above.
    pub p99: T,
    /// The largest.
    pub max: T,
}

/// Counts values of up to a minute in nanoseconds; what is longer counts as a minute.
pub(super) struct Tally(Histogram<u64>);

impl Tally {
    pub(super) fn new() -> Self {
        Tally(Histogram::new_with_bounds(1, MINUTE, 2).expect("these bounds are fine"))
    }

    #[inline]
    pub(super) fn add(&mut self, value: u64) {
        self.0.saturating_record(value);
    }

    #[inline]
    pub(super) fn add_duration(&mut self, value: Duration) {
        self.add(value.as_nanos());
    }

    pub(super) fn numbers(&self) -> Percentiles<u64> {
        let at = |quantile| if self.0.is_empty() { 0 } else { self.0.value_at_quantile(quantile).min(self.0.max()) };
        Percentiles { count: self.0.len(), p50: at(0.5), p90: at(0.9), p99: at(0.99), max: self.0.max() }
    }

    pub(super) fn durations(&self) -> Percentiles<Duration> {
        let Percentiles { count, p50, p90, p99, max } = self.numbers();
        let [p50, p90, p99, max] = [p50, p90, p99, max].map(Duration::from_nanos);
        Percentiles { count, p50, p90, p99, max }
    }
}

const MINUTE: u64 = 60_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_values() {
        let mut tally = Tally::new();
        assert_eq!(tally.numbers(), Percentiles::default());
        (1..=1000).for_each(|n| tally.add_duration(Duration::from_micros(n)));
        tally.add(0);
        let Percentiles { count, p50, p90, p99, max } = tally.durations();
        assert_eq!(count, 1001);
        for (got, expected) in [(p50, 500.0), (p90, 900.0), (p99, 990.0), (max, 1000.0)] {
            let got = got.as_nanos() as f64 / 1000.0;
            assert!((got / expected - 1.0).abs() < 0.01, "{got} for {expected}");
        }
        tally.add(u64::MAX);
        assert!(tally.numbers().max <= MINUTE + MINUTE / 100);
    }
}
