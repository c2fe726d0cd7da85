//! Means with 95 % intervals after Student (*The Probable Error of a Mean*, Biometrika 1908).
//!
//! Differences are paired: both sides met the same draws, so most of the noise is common to them and cancels. The
//! p-values of several differences tested at once are adjusted after Holm (*A Simple Sequentially Rejective Multiple
//! Test Procedure*, Scandinavian Journal of Statistics 1979): the chance of even one false finding in the family stays
//! below [`LEVEL`].

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Mean with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Estimate {
    /// Number of samples.
    pub n: usize,
    /// Mean of the samples.
    pub mean: f64,
    /// Half of the 95 % interval, `mean ± half`; `None` for fewer than two samples, and for copies of one number:
    /// without randomness, or over one stretch of a recording, all repetitions are one sample.
    pub half: Option<f64>,
}

/// Accepted probability of a false finding.
pub const LEVEL: f64 = 0.05;

/// Paired difference, tested together with others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Tested {
    /// The difference, with an interval of its own.
    #[serde(flatten)]
    pub difference: Estimate,
    /// p-value of a mean of zero (Student, two-sided), adjusted for the family after Holm; `None` without an interval.
    pub p_holm: Option<f64>,
}

impl Tested {
    /// Tests these differences as one family. A `None` stays `None` and does not count.
    pub fn family(differences: &[Option<Estimate>]) -> Vec<Option<Tested>> {
        let p_values: Vec<(usize, f64)> =
            differences.iter().enumerate().filter_map(|(n, it)| Some((n, (*it)?.p_value()?))).collect();
        let adjusted = holm(&p_values.iter().map(|(_, p)| *p).collect::<Vec<_>>());
        let p_holm = |n: usize| p_values.iter().zip(&adjusted).find(|((at, _), _)| *at == n).map(|(_, p)| *p);
        let tested =
            |(n, it): (usize, &Option<Estimate>)| it.map(|difference| Tested { difference, p_holm: p_holm(n) });
        differences.iter().enumerate().map(tested).collect()
    }

    /// Returns true if the mean is significantly different from zero, at [`LEVEL`] for the whole family.
    pub fn is_significant(&self) -> bool {
        self.p_holm.is_some_and(|p| p <= LEVEL)
    }
}

/// Adjusts the p-values of a family of tests.
fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let (mut adjusted, mut most) = (vec![1.0; p_values.len()], 0.0f64);
    for (rank, n) in order.into_iter().enumerate() {
        // The smallest is tested against all, the next against the rest; an adjusted one is at least as large as the
        // one before.
        most = most.max(p_values[n] * (p_values.len() - rank) as f64).min(1.0);
        adjusted[n] = most;
    }
    adjusted
}

impl Estimate {
    /// Estimates the mean of the samples; `None` without samples.
    pub fn of(samples: &[f64]) -> Option<Estimate> {
        Estimate::with_interval(samples, !are_copies(samples))
    }

    /// Estimates the mean of `a - b`, pair by pair. There is an interval if one of them varies, even if the difference
    /// does not.
    pub fn of_difference(a: &[f64], b: &[f64]) -> Option<Estimate> {
        let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        Estimate::with_interval(&differences, !are_copies(a) || !are_copies(b))
    }

    fn with_interval(samples: &[f64], is_known: bool) -> Option<Estimate> {
        let n = samples.len();
        if n == 0 {
            return None;
        }
        let mean = samples.iter().sum::<f64>() / n as f64;
        let half = (n > 1 && is_known).then(|| {
            let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
            quantile(n - 1) * (squares / (n - 1) as f64 / n as f64).sqrt()
        });
        Some(Estimate { n, mean, half })
    }

    /// Returns true if the samples are several copies of one number, which tell nothing about other conditions.
    pub fn is_one_sample(&self) -> bool {
        self.n > 1 && self.half.is_none()
    }

    /// Returns the probability of a mean at least as far from zero if the true mean is zero (Student, two-sided);
    /// `None` without an interval.
    pub fn p_value(&self) -> Option<f64> {
        let half = self.half?;
        if half == 0.0 {
            return Some(if self.mean == 0.0 { 1.0 } else { 0.0 });
        }
        let t = self.mean.abs() / (half / quantile(self.n - 1));
        Some(2.0 * student(self.n - 1).cdf(-t))
    }

    /// Returns true if the interval does not contain zero: a test by itself.
    pub fn is_significant(&self) -> bool {
        self.half.is_some_and(|half| self.mean.abs() > half)
    }
}

/// Returns true for several copies of one number.
fn are_copies(samples: &[f64]) -> bool {
    samples.iter().all(|x| x.to_bits() == samples[0].to_bits())
}

/// Returns the 97.5 % quantile of Student's t with `freedom` degrees of freedom.
fn quantile(freedom: usize) -> f64 {
    student(freedom).inverse_cdf(0.975)
}

fn student(freedom: usize) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom as f64).expect("at least one degree of freedom, scale one")
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
    fn p_values_are_those_of_the_tables() {
        // t = 2.093 and 2.861 with 19 degrees of freedom: two-sided 5 % and 1 %.
        for (t, p) in [(2.093, 0.05), (2.861, 0.01)] {
            let estimate = Estimate { n: 20, mean: t, half: Some(quantile(19)) };
            assert!((estimate.p_value().unwrap() - p).abs() < 1e-4, "{t}: {:?}", estimate.p_value());
        }
        assert_eq!(Estimate { n: 3, mean: 0.0, half: Some(0.0) }.p_value(), Some(1.0));
        assert_eq!(Estimate { n: 3, mean: 0.1, half: Some(0.0) }.p_value(), Some(0.0));
        assert_eq!(Estimate { n: 1, mean: 0.1, half: None }.p_value(), None);
    }

    #[test]
    fn holm_by_hand() {
        // 0.01 × 4, 0.02 × 3, 0.03 × 2 and at least the one before, 0.04 × 1 likewise.
        let adjusted = holm(&[0.03, 0.01, 0.04, 0.02]);
        let expected = [0.06, 0.04, 0.06, 0.06];
        assert!(adjusted.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{adjusted:?}");
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }

    #[test]
    fn what_counts_alone_need_not_count_among_many() {
        // p = 0.04 by itself; as one of three it takes p <= 0.05 / 3.
        let weak = Estimate { n: 20, mean: 2.2, half: Some(quantile(19)) };
        let strong = Estimate { n: 20, mean: 9.0, half: Some(quantile(19)) };
        assert!(weak.is_significant());
        let alone = Tested::family(&[Some(weak)]);
        assert!(alone[0].unwrap().is_significant());
        let family = Tested::family(&[Some(weak), None, Some(strong), Some(weak)]);
        let verdicts: Vec<Option<bool>> = family.iter().map(|it| it.map(|it| it.is_significant())).collect();
        assert_eq!(verdicts, [Some(false), None, Some(true), Some(false)]);
    }

    #[test]
    fn few_samples_claim_nothing() {
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[2.0]).unwrap().half, None);
        assert!(!Estimate::of(&[2.0]).unwrap().is_significant());
        let copies = Estimate::of(&[1.0, 1.0]).unwrap();
        assert!(copies.is_one_sample() && copies.half.is_none() && copies.p_value().is_none());
        assert!(!Estimate::of(&[2.0]).unwrap().is_one_sample());
    }
}
