//! Axes: the range of their numbers, ticks, and the place of a number on paper.

use anabranch_study::figure::Scale;

/// Axis with numbers, or with categories at whole numbers.
pub(super) struct Span {
    low: f64,
    high: f64,
    log: bool,
}

/// Numbers that an axis of five or so ticks is divided by, times a power of ten.
const STEPS: [f64; 4] = [1.0, 2.0, 5.0, 10.0];

impl Span {
    /// Returns an axis on which all these numbers have a place. Numbers without a logarithm have none on one.
    pub fn of(numbers: impl Iterator<Item = f64>, scale: Scale) -> Span {
        let log = scale == Scale::Log;
        let fits = |x: &f64| x.is_finite() && (!log || *x > 0.0);
        let (low, high) =
            numbers.filter(fits).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        let (low, high) = match (low <= high, log) {
            (false, true) => (1.0, 10.0),
            (false, false) => (0.0, 1.0),
            (true, true) if low == high => (low / 2.0, high * 2.0),
            (true, true) => (low / ratio(low, high), high * ratio(low, high)),
            (true, false) if low == high => (low - low.abs().max(1.0) / 2.0, high + high.abs().max(1.0) / 2.0),
            // Zero is an end where it is near: a length beside it means something.
            (true, false) if low >= 0.0 && low < 0.3 * high => (0.0, high + 0.05 * high),
            (true, false) => (low - 0.05 * (high - low), high + 0.05 * (high - low)),
        };
        Span { low, high, log }
    }

    /// Returns an axis for this number of categories.
    pub fn of_categories(count: usize) -> Span {
        Span { low: -0.5, high: count.max(1) as f64 - 0.5, log: false }
    }

    /// Returns the place of a number between the ends, from 0 to 1; `None` if it has none.
    pub fn share(&self, x: f64) -> Option<f64> {
        match self.log {
            _ if !x.is_finite() => None,
            true if x <= 0.0 => None,
            true => Some(libm::log(x / self.low) / libm::log(self.high / self.low)),
            false => Some((x - self.low) / (self.high - self.low)),
        }
    }

    /// Returns ticks with their labels.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        if self.log { self.powers() } else { self.even() }
    }

    fn even(&self) -> Vec<(f64, String)> {
        let rough = (self.high - self.low) / 5.0;
        let magnitude = number(1, libm::floor(libm::log10(rough)) as i32);
        let step = STEPS.iter().map(|step| step * magnitude).find(|step| *step >= rough).unwrap_or(10.0 * magnitude);
        let places = (-libm::floor(libm::log10(step * 1.000_001))).clamp(0.0, 12.0) as usize;
        let first = libm::ceil(self.low / step) as i64;
        let last = libm::floor(self.high / step) as i64;
        let label = |x: f64| if x == 0.0 { "0".to_owned() } else { format!("{x:.places$}") };
        (first..=last).map(|n| n as f64 * step).map(|x| (x, label(x))).collect()
    }

    /// Powers of ten; with less than two of them, their double and fivefold, too.
    fn powers(&self) -> Vec<(f64, String)> {
        let exponents = libm::floor(libm::log10(self.low)) as i32..=libm::ceil(libm::log10(self.high)) as i32;
        let of = |digits: &[u8]| -> Vec<f64> {
            let all = exponents.clone().flat_map(|exponent| digits.iter().map(move |digit| number(*digit, exponent)));
            all.filter(|x| (self.low..=self.high).contains(x)).collect()
        };
        let mut ticks = of(&[1]);
        if ticks.len() < 3 {
            ticks = of(&[1, 2, 5]);
        }
        if ticks.len() < 2 {
            ticks = of(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        }
        match ticks.len() {
            // Less than a step of a decade: evenly spaced numbers are as good.
            0 | 1 => self.even(),
            _ => ticks.into_iter().map(|x| (x, label(x))).collect(),
        }
    }
}

/// Returns a number of one digit and a power of ten, exact as a product is not: labels are the numbers themselves.
fn number(digit: u8, exponent: i32) -> f64 {
    format!("{digit}e{exponent}").parse().unwrap_or(f64::NAN)
}

/// Room at both ends of a logarithmic axis.
fn ratio(low: f64, high: f64) -> f64 {
    libm::exp(0.04 * libm::log(high / low))
}

fn label(x: f64) -> String {
    if (1e-4..1e6).contains(&x) { x.to_string() } else { format!("{x:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(numbers: &[f64], scale: Scale) -> String {
        let ticks = Span::of(numbers.iter().copied(), scale).ticks();
        ticks.into_iter().map(|(_, label)| label).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round() {
        for (numbers, scale, expected) in [
            (&[0.2, 1.9][..], Scale::Linear, "0 0.5 1.0 1.5"),
            (&[2.1, 2.4], Scale::Linear, "2.1 2.2 2.3 2.4"),
            (&[-3.0, 4.0], Scale::Linear, "-2 0 2 4"),
            (&[120.0, 990.0], Scale::Linear, "0 500 1000"),
            (&[7.0], Scale::Linear, "4 6 8 10"),
            (&[], Scale::Linear, "0 0.2 0.4 0.6 0.8 1.0"),
            (&[0.01, 100.0], Scale::Log, "0.01 0.1 1 10 100"),
            (&[0.9, 7.0], Scale::Log, "1 2 5"),
            (&[1.0, 1.3], Scale::Log, "1.0 1.1 1.2 1.3"),
            (&[f64::NAN, 0.0], Scale::Log, "1 2 5 10"),
        ] {
            assert_eq!(labels(numbers, scale), expected, "{numbers:?}");
        }
    }

    #[test]
    fn numbers_without_a_place_have_none() {
        let span = Span::of([1.0, 100.0].into_iter(), Scale::Log);
        assert_eq!((span.share(0.0), span.share(-1.0), span.share(f64::NAN)), (None, None, None));
        assert!((span.share(10.0).expect("it is between the ends") - 0.5).abs() < 1e-9);
    }
}
