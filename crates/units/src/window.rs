//! Congestion windows: amounts of data with their fraction.

use crate::Bytes;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Sub, SubAssign};

/// A congestion window, a slow-start threshold, or a change of one, in bytes with their fraction.
///
/// Holds any number but NaN: a change may be negative, and a threshold is infinite before the first loss. Arithmetic is
/// that of `f64`, one rounding per operation, in the order written. It never panics: a result that is no number (the
/// difference of two infinite windows, zero times an infinite one, 0/0) is zero.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Window(f64);

impl Window {
    /// Zero bytes.
    pub const ZERO: Window = Window(0.0);
    /// More than any window; a threshold before the first loss.
    pub const INFINITE: Window = Window(f64::INFINITY);

    /// `bytes` with their fraction. NaN gives zero.
    pub const fn new(bytes: f64) -> Self {
        Window(if bytes.is_nan() { 0.0 } else { bytes })
    }

    /// The number of bytes, never NaN.
    pub const fn as_f64(self) -> f64 {
        self.0
    }

    /// Whole bytes, rounded down: zero for a negative amount, [`Bytes::MAX`] for one beyond 64 bits.
    pub const fn whole(self) -> Bytes {
        Bytes::new(self.0 as u64)
    }

    /// Returns false for an infinite amount.
    pub const fn is_finite(self) -> bool {
        self.0.is_finite()
    }

    /// Returns true for more than zero bytes.
    pub const fn is_positive(self) -> bool {
        self.0 > 0.0
    }

    /// The smaller of two amounts.
    pub const fn min(self, other: Window) -> Self {
        Window(self.0.min(other.0))
    }

    /// The larger of two amounts.
    pub const fn max(self, other: Window) -> Self {
        Window(self.0.max(other.0))
    }

    /// The amount, at least `least` and at most `most`; `most` if the two contradict each other.
    pub const fn clamp(self, least: Window, most: Window) -> Self {
        self.max(least).min(most)
    }

    /// Ratio of this amount to `other`; zero for 0/0.
    pub const fn per(self, other: Window) -> f64 {
        Window::new(self.0 / other.0).0
    }

    /// `self · by / per`, multiplied first. The additive increase of NewReno is `acked.scaled(mss, cwnd)`.
    pub const fn scaled(self, by: Window, per: Window) -> Self {
        Window::new(self.0 * by.0 / per.0)
    }
}

impl From<Bytes> for Window {
    /// Exact up to 2^53 bytes.
    fn from(bytes: Bytes) -> Self {
        Window(bytes.as_f64())
    }
}

impl Add for Window {
    type Output = Window;
    fn add(self, other: Window) -> Window {
        Window::new(self.0 + other.0)
    }
}

impl AddAssign for Window {
    fn add_assign(&mut self, other: Window) {
        *self = *self + other;
    }
}

impl Sub for Window {
    type Output = Window;
    /// The difference, negative if `other` is larger.
    fn sub(self, other: Window) -> Window {
        Window::new(self.0 - other.0)
    }
}

impl SubAssign for Window {
    fn sub_assign(&mut self, other: Window) {
        *self = *self - other;
    }
}

impl Mul<f64> for Window {
    type Output = Window;
    fn mul(self, factor: f64) -> Window {
        Window::new(self.0 * factor)
    }
}

impl MulAssign<f64> for Window {
    fn mul_assign(&mut self, factor: f64) {
        *self = *self * factor;
    }
}

impl Div<f64> for Window {
    type Output = Window;
    fn div(self, divisor: f64) -> Window {
        Window::new(self.0 / divisor)
    }
}

impl DivAssign<f64> for Window {
    fn div_assign(&mut self, divisor: f64) {
        *self = *self / divisor;
    }
}

impl Sum for Window {
    fn sum<I: Iterator<Item = Window>>(iter: I) -> Window {
        iter.fold(Window::ZERO, Add::add)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_arithmetic_leads_to_nan() {
        let extremes = [0.0, -0.0, 1.5, -3.0, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(Window::new);
        for a in extremes {
            for b in extremes {
                let factor = b.as_f64();
                let results = [a + b, a - b, a * factor, a / factor, a.min(b), a.max(b), a.scaled(b, b), a.clamp(b, a)];
                for result in results {
                    assert!(!result.as_f64().is_nan() && !a.per(b).is_nan(), "{a} {b}");
                }
                assert!((a * f64::NAN).as_f64() == 0.0 && (a / f64::NAN).as_f64() == 0.0);
            }
        }
    }

    #[test]
    fn whole_bytes_are_rounded_down_and_saturate() {
        for (window, bytes) in [(2999.9, 2999), (-1.0, 0), (0.0, 0), (1e30, u64::MAX), (f64::INFINITY, u64::MAX)] {
            assert_eq!(Window::new(window).whole(), Bytes::new(bytes), "{window}");
        }
    }

    /// 1000 bytes acknowledged of a window of 10,000 earn a tenth of a segment.
    #[test]
    fn windows_scale_and_compare() {
        let (mss, cwnd) = (Window::new(1000.0), Window::new(10_000.0));
        assert_eq!(mss.scaled(mss, cwnd), Window::new(100.0));
        assert_eq!((cwnd.per(mss), cwnd / 4.0, cwnd * 0.5 - cwnd), (10.0, Window::new(2500.0), Window::new(-5000.0)));
        assert!(cwnd < Window::INFINITE && !Window::INFINITE.is_finite() && !(mss - cwnd).is_positive());
        assert_eq!([mss, cwnd].into_iter().sum::<Window>(), Window::from(Bytes::new(11_000)));
    }
}
