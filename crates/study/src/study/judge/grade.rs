//! Grades: verdicts from an effect and its uncertainty.

use super::super::claim::{Relation, Side};
use super::super::result::Verdict;
use super::WORTH_A_WORD;
use super::counts;
use anabranch_lab::stats::Estimate;

/// Grades the excess of a system over the one before it \[%\] against the relation that the paper states.
pub(super) fn relation(relation: Relation, difference: &Estimate, margin: Option<f64>) -> Verdict {
    match relation {
        Relation::Less => sign(difference, margin.unwrap_or(WORTH_A_WORD)),
        Relation::NotMore => match difference.mean >= -margin.unwrap_or(WORTH_A_WORD) {
            true => Verdict::Reproduced,
            // A single run shows nothing, and a difference that does not count contradicts nothing.
            false if difference.n < 2 => Verdict::NotSignificant,
            false if counts(difference) => Verdict::Opposite,
            false => Verdict::Reproduced,
        },
        Relation::Alike => flat(difference, margin),
    }
}

/// Grades a difference that should be above zero.
pub(super) fn sign(difference: &Estimate, margin: f64) -> Verdict {
    match difference.mean {
        _ if !counts(difference) => Verdict::NotSignificant,
        mean if mean >= margin => Verdict::Reproduced,
        mean if mean > 0.0 => Verdict::SignOnly,
        mean if mean > -margin => Verdict::NotSignificant,
        _ => Verdict::Opposite,
    }
}

/// Grades a difference that should be zero.
pub(super) fn flat(difference: &Estimate, margin: Option<f64>) -> Verdict {
    match difference.mean.abs() <= margin.unwrap_or(ALIKE) {
        true => Verdict::Reproduced,
        false if counts(difference) => Verdict::Opposite,
        false => Verdict::NotSignificant,
    }
}

/// Grades a number that should lie between two, with the tolerance `within`. A change must have the stated sign.
pub(super) fn number(estimate: &Estimate, [low, high]: [f64; 2], within: f64, is_change: bool) -> Verdict {
    let half = estimate.half.unwrap_or(0.0);
    let near = estimate.mean >= low - within && estimate.mean <= high + within;
    // A wide interval contains anything; it counts only if it is as narrow as a tenth of the number.
    let narrow = half <= within.max(0.1 * low.abs().max(high.abs()));
    let meets = narrow && estimate.mean + half >= low && estimate.mean - half <= high;
    // The stated number is the end of the range on our side, or across zero the end with our sign.
    let stated = match estimate.mean {
        mean if mean < low => low,
        _ => high,
    };
    match size(estimate.mean, stated) {
        _ if near || meets => Verdict::Reproduced,
        _ if is_change && !counts(estimate) => Verdict::NotSignificant,
        Some(verdict) => verdict,
        None if is_change && stated * estimate.mean > 0.0 => Verdict::SignOnly,
        None => Verdict::Opposite,
    }
}

/// Grades a number that should lie on one side of a bound.
pub(super) fn bound(estimate: &Estimate, side: Side, bound: f64) -> Verdict {
    let above = if side == Side::AtLeast { estimate.mean - bound } else { bound - estimate.mean };
    match size(estimate.mean, bound) {
        _ if above >= 0.0 => Verdict::Reproduced,
        _ if above + estimate.half.unwrap_or(0.0) >= 0.0 => Verdict::NotSignificant,
        Some(verdict) => verdict,
        None => Verdict::Opposite,
    }
}

/// Grades a number as weaker or stronger than stated, within a factor of two.
fn size(ours: f64, stated: f64) -> Option<Verdict> {
    match ours / stated {
        ratio if (0.5..=1.0).contains(&ratio) => Some(Verdict::Weaker),
        ratio if (1.0..=2.0).contains(&ratio) => Some(Verdict::Stronger),
        _ => None,
    }
}

/// Maximum difference of systems that are alike \[%\].
const ALIKE: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(mean: f64, half: f64) -> Estimate {
        Estimate { n: 30, mean, half: Some(half) }
    }

    /// Grades of a stated -40 % with a tolerance of 4: within it, half to twice, the sign alone, noise, the opposite.
    #[test]
    fn a_change_is_graded_by_its_size() {
        let grade = |mean, half| number(&estimate(mean, half), [-40.0, -40.0], 4.0, true);
        assert_eq!([grade(-37.0, 1.0), grade(-44.0, 9.0)], [Verdict::Reproduced; 2]);
        assert_eq!([grade(-45.0, 3.9), grade(-45.0, 5.0)], [Verdict::Stronger; 2], "no interval meets 40 from there");
        assert_eq!([grade(-44.5, 4.6), grade(-44.5, 3.0)], [Verdict::Stronger; 2]);
        assert_eq!([grade(-35.0, 1.0), grade(-20.0, 1.0)], [Verdict::Weaker; 2]);
        assert_eq!(grade(-80.0, 1.0), Verdict::Stronger);
        assert_eq!([grade(-0.4, 0.2), grade(-90.0, 1.0)], [Verdict::SignOnly; 2]);
        assert_eq!([grade(-5.0, 6.0), grade(5.0, 6.0)], [Verdict::NotSignificant; 2]);
        assert_eq!(grade(5.0, 1.0), Verdict::Opposite);
        let around = |mean| number(&estimate(mean, 1.0), [-10.0, 30.0], 0.0, true);
        assert_eq!(
            [around(-15.0), around(-25.0), around(70.0)],
            [Verdict::Stronger, Verdict::SignOnly, Verdict::SignOnly]
        );
        let none = |mean| number(&estimate(mean, 1.0), [0.0, 0.0], 0.0, true);
        assert_eq!([none(-30.0), none(30.0)], [Verdict::Opposite; 2], "no change has no sign");
    }

    #[test]
    fn a_number_is_off_by_a_factor() {
        let grade = |mean| number(&estimate(mean, 0.1), [60.0, 80.0], 0.0, false);
        assert_eq!([grade(70.0), grade(59.0), grade(30.0)], [Verdict::Reproduced, Verdict::Weaker, Verdict::Weaker]);
        assert_eq!(
            [grade(29.0), grade(100.0), grade(161.0)],
            [Verdict::Opposite, Verdict::Stronger, Verdict::Opposite]
        );
    }

    #[test]
    fn a_bound_that_is_missed_is_missed_by_a_factor() {
        let at_most = |mean, half| bound(&estimate(mean, half), Side::AtMost, 20.0);
        assert_eq!([at_most(20.0, 0.0), at_most(21.0, 1.5)], [Verdict::Reproduced, Verdict::NotSignificant]);
        assert_eq!([at_most(24.0, 1.0), at_most(42.0, 1.0)], [Verdict::Stronger, Verdict::Opposite]);
        let at_least = |mean, half| bound(&estimate(mean, half), Side::AtLeast, 30.0);
        assert_eq!([at_least(31.0, 9.0), at_least(26.0, 1.0)], [Verdict::Reproduced, Verdict::Weaker]);
        assert_eq!(at_least(-26.0, 1.0), Verdict::Opposite);
    }

    #[test]
    fn an_order_counts_from_its_margin() {
        let less = |mean, half, margin| relation(Relation::Less, &estimate(mean, half), margin);
        assert_eq!([less(1.5, 0.2, None), less(0.5, 0.2, None)], [Verdict::Reproduced, Verdict::SignOnly]);
        assert_eq!([less(0.5, 0.2, Some(0.1)), less(1.5, 2.0, None)], [Verdict::Reproduced, Verdict::NotSignificant]);
        assert_eq!([less(-0.5, 0.2, None), less(-1.5, 0.2, None)], [Verdict::NotSignificant, Verdict::Opposite]);
        let not_more = |mean, half| relation(Relation::NotMore, &estimate(mean, half), None);
        assert_eq!([not_more(-0.5, 0.1), not_more(-3.0, 4.0)], [Verdict::Reproduced; 2]);
        assert_eq!(not_more(-3.0, 1.0), Verdict::Opposite);
        let alike = |mean, half| relation(Relation::Alike, &estimate(mean, half), None);
        assert_eq!([alike(4.0, 0.1), alike(-6.0, 7.0)], [Verdict::Reproduced, Verdict::NotSignificant]);
        assert_eq!(alike(6.0, 1.0), Verdict::Opposite);
        let once = Estimate { n: 1, mean: -9.0, half: None };
        assert_eq!(relation(Relation::Less, &once, None), Verdict::NotSignificant);
        assert_eq!(relation(Relation::NotMore, &once, None), Verdict::NotSignificant);
    }
}
