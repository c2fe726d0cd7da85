//! Virtual time: nanoseconds since the run began.
//!
//! Only drivers (the simulator, the TUN loop) make an [`Instant`]; everything else receives it as an argument.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

const NANOS_PER_MICRO: u64 = 1_000;
const NANOS_PER_MILLI: u64 = 1_000_000;
const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A point in time: nanoseconds since the run began.
///
/// Kept as that number plus one, so that an `Option<Instant>`, of which every connection has dozens, takes eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(NonZeroU64);

/// A span of time in nanoseconds; never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Instant {
    /// The beginning of the run.
    pub const ZERO: Instant = Instant(NonZeroU64::MIN);
    /// The end of time; for sentinels inside queues, never for "unknown".
    pub const MAX: Instant = Instant(NonZeroU64::MAX);

    /// `nanos` nanoseconds after the beginning; [`Instant::MAX`] from 2⁶⁴ - 2 on.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// Nanoseconds since the beginning.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Seconds since the beginning, for reports.
    pub fn as_secs_f64(self) -> f64 {
        Duration(self.as_nanos()).as_secs_f64()
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl Default for Instant {
    fn default() -> Self {
        Instant::ZERO
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// The longest span.
    pub const MAX: Duration = Duration(u64::MAX);

    /// A span of `n` nanoseconds.
    pub const fn from_nanos(n: u64) -> Self {
        Duration(n)
    }

    /// A span of `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Duration(n.saturating_mul(NANOS_PER_MICRO))
    }

    /// A span of `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Duration(n.saturating_mul(NANOS_PER_MILLI))
    }

    /// A span of `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Duration(n.saturating_mul(NANOS_PER_SEC))
    }

    /// A span of `s` seconds, rounded to the nanosecond; negative or not-a-number gives zero.
    pub fn from_secs_f64(s: f64) -> Self {
        Duration((s * NANOS_PER_SEC as f64 + 0.5) as u64)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / NANOS_PER_MICRO
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / NANOS_PER_MILLI
    }

    /// Seconds as a real number.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }

    /// Milliseconds as a real number.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_MILLI as f64
    }

    /// True for the empty span.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Multiplies this span by `k` and rounds to the nanosecond; saturates, and a negative `k` gives zero.
    pub fn mul_f64(self, k: f64) -> Self {
        Duration((self.0 as f64 * k + 0.5) as u64)
    }

    /// Ratio of this span to `other`; infinite if `other` is zero.
    pub fn per(self, other: Duration) -> f64 {
        self.0 as f64 / other.0 as f64
    }

    /// The difference; zero if `other` is longer.
    pub const fn saturating_sub(self, other: Duration) -> Self {
        Duration(self.0.saturating_sub(other.0))
    }

    /// The distance between two spans.
    pub const fn abs_diff(self, other: Duration) -> Self {
        Duration(self.0.abs_diff(other.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, d: Duration) -> Instant {
        Instant(self.0.saturating_add(d.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    /// Saturates at the beginning of the run.
    fn sub(self, d: Duration) -> Instant {
        Instant(NonZeroU64::new(self.0.get().saturating_sub(d.0)).unwrap_or(NonZeroU64::MIN))
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, d: Duration) -> Duration {
        Duration(self.0.saturating_add(d.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub for Duration {
    type Output = Duration;
    /// # Panics
    /// If `d` is longer, as the standard library's; see [`Duration::saturating_sub`].
    fn sub(self, d: Duration) -> Duration {
        Duration(self.0.checked_sub(d.0).expect("a span is never negative; use saturating_sub"))
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, d: Duration) {
        *self = *self - d;
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, k: u64) -> Duration {
        Duration(self.0.saturating_mul(k))
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    /// # Panics
    /// If `k` is zero.
    fn div(self, k: u64) -> Duration {
        Duration(self.0 / k)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.as_nanos() / NANOS_PER_SEC, self.as_nanos() % NANOS_PER_SEC)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => write!(f, "0s"),
            n if n % NANOS_PER_SEC == 0 => write!(f, "{}s", n / NANOS_PER_SEC),
            n if n % NANOS_PER_MILLI == 0 => write!(f, "{}ms", n / NANOS_PER_MILLI),
            n if n % NANOS_PER_MICRO == 0 => write!(f, "{}us", n / NANOS_PER_MICRO),
            n => write!(f, "{n}ns"),
        }
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_spans_do_plain_arithmetic() {
        let t = Instant::ZERO + Duration::from_millis(5);
        assert_eq!(t.since(Instant::ZERO), Duration::from_micros(5_000));
        assert_eq!(Instant::ZERO.since(t), Duration::ZERO);
        assert_eq!(Duration::from_millis(10).mul_f64(1.25), Duration::from_micros(12_500));
        assert_eq!(Duration::from_millis(10).mul_f64(-1.0), Duration::ZERO);
        assert_eq!(Instant::MAX + Duration::from_secs(1), Instant::MAX);
    }

    #[test]
    fn spans_print_in_the_largest_whole_unit() {
        for (span, text) in [
            (Duration::from_secs(3), "3s"),
            (Duration::from_millis(1_500), "1500ms"),
            (Duration::from_nanos(1_001), "1001ns"),
            (Duration::ZERO, "0s"),
        ] {
            assert_eq!(span.to_string(), text);
        }
    }
}
