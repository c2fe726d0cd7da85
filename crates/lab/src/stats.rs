//! Means with 95 % intervals after Student (*The Probable Error of a Mean*, Biometrika 1908).
//!
//! Differences are paired: both sides of each met the same draws, so most of the noise is common to them and cancels.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// How many samples.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// The interval `mean ± half` covers the true mean in 95 % of cases; `None` for fewer than two samples.
    pub half: Option<f64>,
}

impl Estimate {
    /// Of the samples' mean; `None` without samples.
    pub fn of(samples: &[f64]) -> Option<Estimate> {
        let n = samples.len();
        if n == 0 {
            return None;
        }
        let mean = samples.iter().sum::<f64>() / n as f64;
        let half = (n > 1).then(|| {
            let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
            quantile(n - 1) * (squares / (n - 1) as f64 / n as f64).sqrt()
        });
        Some(Estimate { n, mean, half })
    }

    /// Of the mean of `a - b`, pair by pair.
    pub fn of_difference(a: &[f64], b: &[f64]) -> Option<Estimate> {
        let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        Estimate::of(&differences)
    }

    /// Whether the interval leaves out zero.
    pub fn is_significant(&self) -> bool {
        self.half.is_some_and(|half| self.mean.abs() > half)
    }
}

/// The 97.5 % quantile of Student's t with `freedom` degrees of freedom.
fn quantile(freedom: usize) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom as f64).expect("at least one degree of freedom, scale one");
    student.inverse_cdf(0.975)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Fisher and Yates, Statistical Tables, two-sided 5 %.
        for (freedom, t) in [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (19, 2.093), (29, 2.045), (120, 1.980)] {
            assert!((quantile(freedom) - t).abs() < 5e-4, "{freedom}: {}", quantile(freedom));
        }
    }

    #[test]
    fn an_interval_by_hand() {
        // 1 2 3 4 5: mean 3, variance 10/4 = 2.5, standard error √(2.5/5) = 0.7071, times 2.776 = 1.9632.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((estimate.n, estimate.mean), (5, 3.0));
        assert!((estimate.half.unwrap() - 1.9632).abs() < 1e-3, "{estimate:?}");
        assert!(estimate.is_significant());
    }

    #[test]
    fn pairing_removes_what_both_sides_share() {
        // Means 20 and 19 vary by 10 each; the differences are 1.0, 1.2, 0.8: 1 ± 4.303 · 0.2/√3 = 0.4969.
        let (a, b) = ([10.0, 20.2, 29.8], [9.0, 19.0, 29.0]);
        assert!(!Estimate { n: 3, mean: 1.0, half: Estimate::of(&a).unwrap().half }.is_significant());
        let difference = Estimate::of_difference(&a, &b).unwrap();
        assert!((difference.mean - 1.0).abs() < 1e-9 && (difference.half.unwrap() - 0.4969).abs() < 1e-3);
        assert!(difference.is_significant());
    }

    #[test]
    fn few_samples_claim_nothing() {
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[2.0]).unwrap().half, None);
        assert!(!Estimate::of(&[2.0]).unwrap().is_significant());
        assert!(!Estimate::of(&[1.0, 1.0]).unwrap().half.unwrap().is_nan());
    }
}
