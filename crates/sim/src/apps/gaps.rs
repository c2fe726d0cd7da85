//! Times from one thing to the next, of a mean.

use crate::Spacing;
use anabranch_units::{Duration, Stream};

/// The times from one packet, or file, to the next; times on or off.
pub(crate) struct Gaps {
    mean: Duration,
    spacing: Spacing,
    stream: Stream,
}

impl Gaps {
    pub(crate) fn new(mean: Duration, spacing: Spacing, stream: Stream) -> Self {
        Gaps { mean, spacing, stream }
    }

    /// The next one: at least a nanosecond if it is drawn.
    pub(crate) fn next(&mut self) -> Duration {
        match self.spacing {
            Spacing::Even => self.mean,
            Spacing::Uniform => {
                Duration::from_nanos(self.stream.between(0, self.mean.as_nanos().saturating_mul(2)).max(1))
            }
            // The logarithm of the library, not of the platform: the same bits everywhere.
            Spacing::Exponential => {
                let share = -libm::log(1.0 - self.stream.unit());
                Duration::from_nanos(((share * self.mean.as_nanos() as f64) as u64).max(1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Seed;

    /// Mean and standard deviation of 20,000 gaps of 10 ms, in milliseconds.
    fn moments(spacing: Spacing) -> (f64, f64) {
        let mut gaps = Gaps::new(Duration::from_millis(10), spacing, Seed(1).stream("gaps"));
        let all: Vec<f64> = (0..20_000).map(|_| gaps.next().as_secs_f64() * 1e3).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        (mean, (all.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / all.len() as f64).sqrt())
    }

    /// The deviation of a uniform distribution up to twice the mean is the mean over √3, that of the exponential one
    /// the mean itself.
    #[test]
    fn gaps_have_the_mean_and_the_deviation_of_their_distribution() {
        for (spacing, deviation) in
            [(Spacing::Even, 0.0), (Spacing::Uniform, 10.0 / 3f64.sqrt()), (Spacing::Exponential, 10.0)]
        {
            let (mean, found) = moments(spacing);
            assert!((mean - 10.0).abs() < 0.2, "{spacing:?}: {mean}");
            assert!((found - deviation).abs() < 0.2, "{spacing:?}: {found}");
        }
    }
}
