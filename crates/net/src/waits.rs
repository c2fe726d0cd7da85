//! Times that packets wait in a queue, as a histogram.
//!
//! Buckets are a unit wide up to 64 units, and then 32 to each doubling: a percentile is right within 1/64 of itself
//! (1.6 %) or half a unit, whichever is more. A histogram grows as far as its longest wait needs, to 4 kB at most.

use anabranch_units::Duration;

/// Percentiles of the times that packets waited; zeros if none has left. The maximum is exact, the others are within
/// 1.6 % or 0.5 µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Packets that left.
    pub packets: u64,
    /// Median.
    pub p50: Duration,
    /// Time that 95 of 100 packets do not exceed.
    pub p95: Duration,
    /// Time that 99 of 100 packets do not exceed.
    pub p99: Duration,
    /// Longest time.
    pub max: Duration,
}

/// Counts of waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    counts: Vec<u32>,
    packets: u64,
    max: u64,
}

impl Histogram {
    #[inline]
    pub(crate) fn add(&mut self, wait: Duration) {
        let nanos = wait.as_nanos();
        self.packets += 1;
        self.max = self.max.max(nanos);
        let bucket = bucket((nanos >> UNIT_BITS).min(LONGEST));
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
    }

    pub(crate) fn waits(&self) -> Waits {
        let [p50, p95, p99] = [50, 95, 99].map(|percent| self.percentile(percent));
        Waits { packets: self.packets, p50, p95, p99, max: Duration::from_nanos(self.max) }
    }

    /// The least wait that so many of a hundred packets do not exceed.
    fn percentile(&self, percent: u64) -> Duration {
        let rank = (self.packets * percent).div_ceil(100);
        let mut below = 0;
        let at = self.counts.iter().position(|count| {
            below += u64::from(*count);
            below >= rank
        });
        Duration::from_nanos(at.map_or(0, middle).min(self.max))
    }
}

/// Waits are counted in units of 1024 ns.
const UNIT_BITS: u32 = 10;
/// Bits of a wait, after its first, that tell buckets apart.
const FINE_BITS: u32 = 5;
/// Longest wait that is told from longer ones, in units: an hour.
const LONGEST: u64 = (1 << 32) - 1;

/// The bucket of a wait in units.
fn bucket(units: u64) -> usize {
    let shift = (u64::BITS - units.leading_zeros()).saturating_sub(FINE_BITS + 1);
    (u64::from(shift << FINE_BITS) + (units >> shift)) as usize
}

/// Nanoseconds in the middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let shift = (bucket as u64 >> FINE_BITS).saturating_sub(1);
    let first = (bucket as u64 - (shift << FINE_BITS)) << shift;
    (first << UNIT_BITS) + (1 << (shift + u64::from(UNIT_BITS)) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_lies_near_the_middle_of_its_bucket() {
        let mut last = 0;
        for units in (0..1000).chain((10..32).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 77])) {
            let bucket = bucket(units);
            assert!(bucket >= last, "{units}: buckets are in order");
            last = bucket;
            let (low, high) = (units << UNIT_BITS, (units + 1) << UNIT_BITS);
            let off = middle(bucket).abs_diff(u64::midpoint(low, high));
            assert!(off <= (high / 64).max(1 << (UNIT_BITS - 1)), "{units}: {off} ns");
        }
        assert!(bucket(LONGEST) < 1024, "a histogram has 4 kB at most");
    }

    #[test]
    fn percentiles_of_a_thousand_waits() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.waits(), Waits::default());
        (1..=1000).rev().for_each(|n| histogram.add(Duration::from_micros(n * 100)));
        let Waits { packets, p50, p95, p99, max } = histogram.waits();
        assert_eq!((packets, max), (1000, Duration::from_millis(100)));
        for (got, ms) in [(p50, 50.0), (p95, 95.0), (p99, 99.0)] {
            assert!((got.as_millis_f64() / ms - 1.0).abs() < 1.0 / 64.0, "{got} for {ms} ms");
        }
        histogram.add(Duration::MAX);
        assert_eq!(histogram.waits().max, Duration::MAX);
    }

    #[test]
    fn nobody_waits_longer_than_the_longest() {
        let mut histogram = Histogram::default();
        histogram.add(Duration::ZERO);
        assert_eq!(histogram.waits(), Waits { packets: 1, ..Waits::default() });
        histogram.add(Duration::from_micros(10));
        assert!(histogram.waits().p99 <= Duration::from_micros(10));
    }
}
