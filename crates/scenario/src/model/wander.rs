//! A number that wanders around a mean: the autoregression of first order, as Gudmundson (*Correlation model for shadow
//! fading in mobile radio systems*, Electronics Letters 27, 1991) has it for signals in decibels.
//!
//! ```text
//! x(t + Δt) = μ + a (x(t) - μ) + σ √(1 - a²) g,    a = e^(-Δt / memory)
//! ```
//! `g` has mean 0 and variance 1: the sum of twelve even draws, within ±6.

use anabranch_units::{Duration, Stream};

/// A number that wanders.
pub(super) struct Wander {
    mean: f64,
    value: f64,
    keep: f64,
    kick: f64,
    stream: Stream,
}

impl Wander {
    /// Begins anywhere in its distribution: a mean, and a standard deviation in the long run. After `memory` a
    /// correlation of 1/e is left of where it was.
    pub(super) fn new(mean: f64, deviation: f64, step: Duration, memory: Duration, mut stream: Stream) -> Self {
        let keep = libm::exp(-(step.as_secs_f64() / memory.as_secs_f64()));
        let value = mean + deviation * about_normal(&mut stream);
        Wander { mean, value, keep, kick: deviation * (1.0 - keep * keep).sqrt(), stream }
    }

    pub(super) fn value(&self) -> f64 {
        self.value
    }

    /// Goes on by a step.
    pub(super) fn step(&mut self) {
        self.value = self.mean + self.keep * (self.value - self.mean) + self.kick * about_normal(&mut self.stream);
    }
}

/// Mean 0, variance 1.
fn about_normal(stream: &mut Stream) -> f64 {
    (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Seed;

    /// Steps with a memory of 10 count a twentieth: 400,000 are about 20,000 independent ones. The deviation of their
    /// mean, σ / √20,000, is 0.014 of a mean of 3.
    #[test]
    fn it_has_its_mean_deviation_and_memory() {
        let ms = Duration::from_millis;
        let mut wander = Wander::new(3.0, 2.0, ms(10), ms(100), Seed(4).stream("wander"));
        let values: Vec<f64> = std::iter::repeat_with(|| {
            wander.step();
            wander.value()
        })
        .take(400_000)
        .collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n;
        let after = |lag: usize| {
            let products = values.windows(lag + 1).map(|some| (some[0] - mean) * (some[lag] - mean));
            products.sum::<f64>() / (n - lag as f64) / variance
        };
        assert!((mean - 3.0).abs() < 0.07 && (variance.sqrt() - 2.0).abs() < 0.05, "{mean} {variance}");
        assert!((after(10) - 0.368).abs() < 0.03 && after(100).abs() < 0.03, "{} {}", after(10), after(100));
    }
}
