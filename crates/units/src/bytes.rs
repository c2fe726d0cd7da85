//! Amounts of data.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// An amount of data in bytes (octets).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Bytes = Bytes(0);
    /// More than anything; for limits that do not bind.
    pub const MAX: Bytes = Bytes(u64::MAX);

    /// `n` bytes.
    pub const fn new(n: u64) -> Self {
        Bytes(n)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bytes as a real number.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// True for nothing.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Ratio of this amount to `other`; infinite (or NaN for 0/0) if `other` is zero.
    pub fn per(self, other: Bytes) -> f64 {
        self.0 as f64 / other.0 as f64
    }

    /// The difference; zero if `other` is larger.
    pub const fn saturating_sub(self, other: Bytes) -> Self {
        Bytes(self.0.saturating_sub(other.0))
    }

    /// Multiplies by `k`; saturates.
    pub const fn times(self, k: u64) -> Self {
        Bytes(self.0.saturating_mul(k))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    /// # Panics
    /// If `other` is larger; see [`Bytes::saturating_sub`].
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.checked_sub(other.0).expect("an amount of data is never negative; use saturating_sub"))
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        *self = *self - other;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        iter.fold(Bytes::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
