//! Data rates: decimal bits per second, as link rates are quoted.

use crate::{Bytes, Duration};
use std::fmt;

const NANOS_PER_SEC: u128 = 1_000_000_000;

/// A data rate in bits per second (decimal: 1 Mbit/s is 10⁶ bit/s).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Rate {
    /// `n` bits per second.
    pub const fn from_bps(n: u64) -> Self {
        Rate(n)
    }

    /// `n` megabits (10⁶ bits) per second.
    pub const fn from_mbps(n: u64) -> Self {
        Rate(n.saturating_mul(1_000_000))
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Megabits per second, for reports.
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// True if nothing moves.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the time that `amount` takes at this rate, rounded up to the nanosecond; `Duration::MAX` at rate zero.
    pub fn time_for(self, amount: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let bits = amount.get().saturating_mul(8);
        // 64-bit division is several times cheaper and covers every packet; 128 bits only for huge amounts.
        match bits.checked_mul(NANOS_PER_SEC as u64) {
            Some(scaled) => Duration::from_nanos(scaled.div_ceil(self.0)),
            None => {
                let nanos = (u128::from(bits) * NANOS_PER_SEC).div_ceil(u128::from(self.0));
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        }
    }

    /// Returns the bytes that pass in `span`, rounded down.
    pub fn bytes_in(self, span: Duration) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / NANOS_PER_SEC / 8;
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// The rate that moves `amount` in `span`; `None` if `span` is empty.
    pub fn of(amount: Bytes, span: Duration) -> Option<Self> {
        if span.is_zero() {
            return None;
        }
        // As above: 64 bits hold up to 2 GB.
        let bps = match amount.get().checked_mul(8 * NANOS_PER_SEC as u64) {
            Some(scaled) => scaled / span.as_nanos(),
            None => {
                let bps = u128::from(amount.get()) * 8 * NANOS_PER_SEC / u128::from(span.as_nanos());
                u64::try_from(bps).unwrap_or(u64::MAX)
            }
        };
        Some(Rate(bps))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => write!(f, "0bit"),
            n if n % 1_000_000_000 == 0 => write!(f, "{}gbit", n / 1_000_000_000),
            n if n % 1_000_000 == 0 => write!(f, "{}mbit", n / 1_000_000),
            n if n % 1_000 == 0 => write!(f, "{}kbit", n / 1_000),
            n => write!(f, "{n}bit"),
        }
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_at_ten_megabits() {
        let rate = Rate::from_mbps(10);
        assert_eq!(rate.time_for(Bytes::new(1500)), Duration::from_micros(1200));
        assert_eq!(rate.bytes_in(Duration::from_micros(1200)), Bytes::new(1500));
        assert_eq!(Rate::of(Bytes::new(1500), Duration::from_micros(1200)), Some(rate));
    }

    #[test]
    fn extremes_neither_overflow_nor_divide_by_zero() {
        assert_eq!(Rate::from_bps(0).time_for(Bytes::new(1)), Duration::MAX);
        assert_eq!(Rate::from_bps(1).time_for(Bytes::MAX), Duration::MAX);
        assert_eq!(Rate::of(Bytes::new(1), Duration::ZERO), None);
        assert_eq!(Rate::from_bps(u64::MAX).time_for(Bytes::new(1)), Duration::from_nanos(1));
    }
}
