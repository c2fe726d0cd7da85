//! Verdicts: numbers of the candidate beside their bounds.

use super::file::{CriterionTable, Of, TextKind, TextTable};
use super::load::{Case, Criterion};
use super::plan::{Asked, Cell, Repeat, Trial};
use super::result::{Judged, Row, RowVerdict, Worst};
use anabranch_lab::{Flows, Journal};

/// Judges a case.
/// `repeat` makes the command that repeats a condition in real time, for runs that no simulator repeats.
pub(super) fn row(trial: &Trial, journal: &Journal<Flows>, quick: bool, repeat: Option<&Repeat<'_>>) -> Row {
    let file = &trial.case.file;
    let judged = |it| judged(it, trial, journal, repeat);
    let criteria: Vec<Judged> = match trial.left_out {
        Some(_) => Vec::new(),
        None => trial.case.criteria.iter().map(judged).collect(),
    };
    let any = |verdict| criteria.iter().any(|it| it.verdict == verdict);
    let verdict = if any(RowVerdict::Fail) {
        RowVerdict::Fail
    } else if any(RowVerdict::Pass) {
        RowVerdict::Pass
    } else if trial.left_out.is_some() {
        RowVerdict::NotRun
    } else {
        // No run has a number for any criterion: the control has no phases, say.
        RowVerdict::NotApplicable
    };
    Row {
        case: Some(trial.case.name.clone()),
        section: file.section.clone(),
        level: file.level,
        title: file.title.value.clone(),
        asks: file.asks.clone(),
        test: file.test.clone(),
        range: trial.case.range(quick),
        not_run: trial.not_run.clone(),
        verdict,
        criteria,
        note: trial.left_out.as_ref().map(|reason| format!("Left out in real time: {reason}.")),
    }
}

/// Returns the row of an obligation without a measurement.
pub(super) fn text(table: &TextTable) -> Row {
    Row {
        case: None,
        section: table.section.clone(),
        level: table.level,
        title: table.title.clone(),
        asks: table.asks.clone(),
        test: String::new(),
        range: Vec::new(),
        not_run: Vec::new(),
        verdict: match table.is {
            TextKind::Argue => RowVerdict::ToBeArgued,
            TextKind::NotRun => RowVerdict::NotRun,
            TextKind::NotApplicable => RowVerdict::NotApplicable,
        },
        criteria: Vec::new(),
        note: Some(table.note.clone()),
    }
}

/// Returns true if a larger number is better, which a bound decides where the metric does not.
fn is_larger_better(criterion: &Criterion) -> bool {
    let CriterionTable { at_most, at_least, .. } = criterion.table;
    match criterion.metric.has_two_sides() {
        true => at_least.is_some() && at_most.is_none(),
        false => criterion.metric.is_better_larger(),
    }
}

fn judged(criterion: &Criterion, trial: &Trial, journal: &Journal<Flows>, repeat: Option<&Repeat<'_>>) -> Judged {
    let Criterion { table, metric } = criterion;
    let found = trial.cells.iter().filter_map(|cell| Found::of(criterion, trial, cell, journal));
    let found: Vec<Found> = found.map(|it| it.repeated_by(&trial.case, repeat)).collect();
    let failed = found.iter().filter(|it| it.excess > 0.0).count();
    let worst = found.iter().max_by(|a, b| a.excess.total_cmp(&b.excess)).map(|it| it.worst.clone());
    Judged {
        metric: metric.name().to_owned(),
        about: metric.about(),
        unit: if table.harm { "%" } else { metric.unit() }.to_owned(),
        of: table.of,
        harm: table.harm,
        bound: bound(criterion),
        reason: table.reason.clone(),
        verdict: match (found.is_empty(), failed) {
            (true, _) => RowVerdict::NotApplicable,
            (_, 0) => RowVerdict::Pass,
            _ => RowVerdict::Fail,
        },
        checked: found.len(),
        failed,
        worst,
    }
}

/// A number in a condition, with its distance beyond the bound.
struct Found {
    /// Distance beyond the bound as a part of it; negative if the criterion holds.
    excess: f64,
    worst: Worst,
}

impl Found {
    /// Returns nothing where the runs have no such number: nothing was sent, say, so that nothing was delayed.
    fn of(criterion: &Criterion, trial: &Trial, cell: &Cell, journal: &Journal<Flows>) -> Option<Found> {
        let number = |asked: &Asked, of: Of| {
            let runs = trial.runs(asked, journal);
            let values: Vec<(u64, f64)> =
                runs.iter().filter_map(|run| Some((run.seed, criterion.metric.of(run, of, &cell.context)?))).collect();
            let mean = values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64;
            (!values.is_empty()).then_some((mean, values))
        };
        let CriterionTable { of, harm, .. } = criterion.table;
        let more = is_larger_better(criterion);
        let solo = match &cell.solo {
            Some(asked) if harm => {
                let of = trial.case.file.rivals.as_ref().map_or(Of::Own, |rivals| rivals.solo_of);
                Some(number(asked, of)?.0)
            }
            _ => None,
        };
        let judge = |value: f64| solo.map_or(value, |solo| 100.0 * harm_of(value, solo, more));
        let (mean, values) = number(&cell.candidate, of)?;
        let value = judge(mean);
        let standards = cell.standards.iter().filter_map(|(name, it)| Some((name.clone(), judge(number(it, of)?.0))));
        let limit = limit(&criterion.table, more && !harm, standards.collect())?;
        let (sign, more) = if more && !harm { (-1.0, true) } else { (1.0, false) };
        let size = if harm { 100.0 } else { limit.0.abs().max(value.abs()).max(1e-9) };
        let worse = |a: &&(u64, f64), b: &&(u64, f64)| if more { b.1.total_cmp(&a.1) } else { a.1.total_cmp(&b.1) };
        // The harm in a rate is worst where the rate is least.
        let by_value = |a: &&(u64, f64), b: &&(u64, f64)| match harm && criterion.metric.is_better_larger() {
            true => b.1.total_cmp(&a.1),
            false => worse(a, b),
        };
        let seed = values.iter().max_by(by_value).map_or(1, |(seed, _)| *seed);
        Some(Found {
            excess: sign * (value - limit.0) / size,
            worst: Worst {
                condition: cell.condition.clone(),
                rival: cell.rival.clone(),
                value,
                limit: limit.0,
                standard: limit.1,
                command: cell.candidate.command(seed),
            },
        })
    }
}

impl Found {
    /// Replaces the command that repeats the condition, if there is another.
    fn repeated_by(mut self, case: &Case, repeat: Option<&Repeat<'_>>) -> Found {
        if let Some(repeat) = repeat {
            self.worst.command = repeat(Some((case.short(), &self.worst.condition)));
        }
        self
    }
}

/// Returns the part of what a flow has alone that it loses (Ware et al., "Beyond Jain's Fairness Index", HotNets 2019).
fn harm_of(value: f64, solo: f64, more: bool) -> f64 {
    let (lost, whole) = if more { (solo - value, solo) } else { (value - solo, value) };
    if whole > 0.0 { (lost / whole).max(0.0) } else { 0.0 }
}

/// Returns the bound: the more lenient of a fixed one and that of standard controls, with the control that sets it.
fn limit(table: &CriterionTable, more: bool, standards: Vec<(String, f64)>) -> Option<(f64, Option<(String, f64)>)> {
    let fixed = if more { table.at_least } else { table.at_most };
    let of_standards = table.standard.and_then(|slack| {
        let worst =
            standards.into_iter().max_by(|a, b| if more { b.1.total_cmp(&a.1) } else { a.1.total_cmp(&b.1) })?;
        let limit = match (table.harm, more) {
            (true, _) => worst.1 + 100.0 * slack,
            (false, true) => worst.1 / slack,
            (false, false) => worst.1 * slack,
        };
        Some((limit, Some(worst)))
    });
    match (fixed, of_standards) {
        (Some(fixed), Some((limit, standard))) => {
            let is_lenient = if more { limit < fixed } else { limit > fixed };
            Some(if is_lenient { (limit, standard) } else { (fixed, None) })
        }
        (Some(fixed), None) => Some((fixed, None)),
        (None, standards) => standards,
    }
}

/// Puts the bound into words.
fn bound(criterion: &Criterion) -> String {
    let CriterionTable { at_most, at_least, standard, harm, .. } = criterion.table;
    let unit = if harm { "%" } else { criterion.metric.unit() };
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let fixed = match (at_most, at_least) {
        (Some(most), _) => Some(format!("at most {most}{unit}")),
        (_, Some(least)) => Some(format!("at least {least}{unit}")),
        _ => None,
    };
    let standard = standard.map(|slack| match (harm, criterion.metric.is_better_larger()) {
        (true, _) => format!("at most {:.0} points more than by standard controls", 100.0 * slack),
        (false, true) => format!("at least 1/{slack} of what it is with standard controls"),
        (false, false) => format!("at most {slack} times what it is with standard controls"),
    });
    fixed.into_iter().chain(standard).collect::<Vec<_>>().join(", or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harm_is_the_part_that_is_lost() {
        assert_eq!(harm_of(2.5, 10.0, true), 0.75, "a quarter of the rate is left");
        assert_eq!(harm_of(40.0, 10.0, false), 0.75, "four times the delay");
        assert_eq!((harm_of(12.0, 10.0, true), harm_of(0.0, 0.0, true)), (0.0, 0.0));
    }
}
