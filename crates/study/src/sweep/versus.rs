//! Comparison of the best of several with the best of several others, each chosen on other seeds than those it is
//! judged on.
//!
//! The best in hindsight of many is partly the luckiest. Seeds are therefore split in halves; the best is chosen by the
//! geometric mean of its times over one half and judged on the other, and then the other way round. A condition that
//! draws nothing has one seed, and no luck.

use serde::Serialize;

/// Share of conditions with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Share {
    /// The share.
    pub share: f64,
    /// Lower end of the 95 % interval; absent where conditions are fixed and one sample each.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval (Wilson, *Probable Inference, the Law of Succession, and Statistical Inference*,
    /// Journal of the American Statistical Association 1927).
    pub high: Option<f64>,
}

/// Returns the logarithm of the ratio of times of the best of `ours` to the best of `theirs`; each is given by the
/// logarithms of its times, one per seed. `None` if either side is empty.
pub(crate) fn versus(ours: &[&[f64]], theirs: &[&[f64]]) -> Option<f64> {
    let seeds = ours.first()?.len();
    let (even, odd): (Vec<usize>, Vec<usize>) = (0..seeds).partition(|seed| seed.is_multiple_of(2));
    let halves = if odd.is_empty() { vec![(&even, &even)] } else { vec![(&even, &odd), (&odd, &even)] };
    let mut sum = 0.0;
    for (choose, judge) in &halves {
        let judged = |all: &[&[f64]]| Some(mean_over(all[best(all, choose)?], judge));
        sum += judged(ours)? - judged(theirs)?;
    }
    Some(sum / halves.len() as f64)
}

/// Returns the index of the smallest mean over these seeds, the first of equals.
pub(crate) fn best(all: &[&[f64]], seeds: &[usize]) -> Option<usize> {
    (0..all.len()).min_by(|a, b| mean_over(all[*a], seeds).total_cmp(&mean_over(all[*b], seeds)))
}

fn mean_over(logarithms: &[f64], seeds: &[usize]) -> f64 {
    seeds.iter().map(|seed| logarithms[*seed]).sum::<f64>() / seeds.len() as f64
}

impl Share {
    /// Computes the share of `true`; `None` without values.
    pub(crate) fn of(hits: impl Iterator<Item = bool>) -> Option<Share> {
        let (mut n, mut count) = (0.0, 0.0);
        for hit in hits {
            n += 1.0;
            count += f64::from(u8::from(hit));
        }
        if n == 0.0 {
            return None;
        }
        let share = count / n;
        let (z2, spread) = (Z * Z, Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt());
        let at = |side: f64| ((share + z2 / (2.0 * n) + side) / (1.0 + z2 / n)).clamp(0.0, 1.0);
        Some(Share { share, low: Some(at(-spread)), high: Some(at(spread)) })
    }

    /// Returns the same share without an interval.
    pub(crate) fn without_interval(self) -> Share {
        Share { low: None, high: None, ..self }
    }
}

/// 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Two alike, each lucky on one half: in hindsight one is 1 ahead by chance; judged on the other half it is 1
    /// behind.
    #[test]
    fn luck_does_not_count() {
        let (a, b): (&[f64], &[f64]) = (&[0.0, 2.0, 0.0, 2.0], &[2.0, 0.0, 2.0, 0.0]);
        // On the even seeds a is chosen and judged at 2, on the odd ones b at 2: against 1 the best of both is 1
        // slower.
        assert_eq!(versus(&[&[1.0; 4]], &[a, b]), Some(-1.0));
        assert_eq!(versus(&[a], &[&[1.0; 4]]), Some(0.0));
    }

    #[test]
    fn who_is_better_on_both_halves_is_chosen() {
        let (slow, fast): (&[f64], &[f64]) = (&[3.0, 3.5, 3.0], &[1.0, 2.0, 1.0]);
        // Halves of two seeds and of one: own 3 and 3.5 against 1 and 2.
        assert_eq!(versus(&[slow], &[slow, fast]), Some((2.0 + 1.5) / 2.0));
        assert_eq!(best(&[slow, fast, fast], &[0, 1, 2]), Some(1));
    }

    #[test]
    fn one_seed_chooses_and_judges() {
        assert_eq!(versus(&[&[2.0]], &[&[3.0], &[0.5]]), Some(1.5));
        assert_eq!(versus(&[&[2.0]], &[]), None);
        assert_eq!(versus(&[], &[&[2.0]]), None);
    }

    /// 8 of 10: Wilson's interval is 0.490 to 0.943.
    #[test]
    fn a_share_by_hand() {
        let share = Share::of((0..10).map(|n| n < 8)).unwrap();
        assert_eq!(share.share, 0.8);
        assert!((share.low.unwrap() - 0.490).abs() < 1e-3 && (share.high.unwrap() - 0.943).abs() < 1e-3, "{share:?}");
        assert_eq!(Share::of(std::iter::empty()), None);
        let none = Share::of([false; 4].into_iter()).unwrap();
        assert!(none.share == 0.0 && none.low == Some(0.0) && none.high > Some(0.4));
    }
}
