//! A comparison on the terminal: who won, by how much, how sure that is, and what held the others back.

use crate::number::{bytes, percent, seconds, short, with_interval};
use crate::policies::policies;
use crate::rows::Header;
use crate::table::{Align, Table};
use crate::wrap::hang;
use anabranch_lab::compare::{REFERENCE, Ranked, Summary};
use anabranch_lab::stats::Estimate;
use std::fmt::Write;

/// The two tables and the words below them.
pub fn comparison(header: &Header, summary: &Summary, singles: &[(String, Estimate)]) -> String {
    let mut text = format!("{header}\n\n");
    write!(text, "{}\n{}\n", ranking(header, summary, singles), limits(summary))
        .and_then(|()| write!(text, "{}{}\n{}", legend(summary), words(summary), policies(header)))
        .expect("writing to a String cannot fail");
    text
}

/// Seconds, or megabits per second.
#[derive(Clone, Copy)]
struct Unit {
    name: &'static str,
    scale: f64,
    less_is_better: bool,
}

impl Unit {
    fn of(summary: &Summary) -> Self {
        match summary.unit {
            "s" => Unit { name: "s", scale: 1.0, less_is_better: true },
            _ => Unit { name: "Mbit/s", scale: 1e6, less_is_better: false },
        }
    }

    fn show(self, x: f64) -> String {
        format!("{} {}", short(x / self.scale), self.name)
    }
}

/// Schedulers from the best on, and what they are held against.
pub(crate) fn ranking(header: &Header, summary: &Summary, singles: &[(String, Estimate)]) -> Table {
    let unit = Unit::of(summary);
    let value = format!("{} [{}]", summary.measure, unit.name);
    let difference = format!("to {REFERENCE} [{}]", unit.name);
    let shares: Vec<String> = header.paths.iter().map(|path| format!("via {path}")).collect();
    let mut columns = vec![("#", Align::Right), ("scheduler", Align::Left)];
    columns.extend([(value.as_str(), Align::Right), (difference.as_str(), Align::Right)]);
    columns.extend(shares.iter().map(|share| (share.as_str(), Align::Right)));
    let unfinished = summary.ranking.iter().any(|ranked| ranked.unfinished_runs > 0);
    if unfinished {
        columns.push(("unfinished", Align::Right));
    }
    let mut table = Table::new(columns);
    for ranked in &summary.ranking {
        let difference = ranked.to_reference.as_ref().map_or(String::new(), |d| {
            // A star where the interval leaves out zero.
            format!("{}{}", with_interval(d, unit.scale, true), if d.is_significant() { " *" } else { "  " })
        });
        let mut row = vec![ranked.rank.to_string(), ranked.scheduler.clone()];
        row.extend([with_interval(&ranked.value, unit.scale, false), difference]);
        row.extend(ranked.shares.iter().map(|share| percent(*share)));
        if unfinished {
            row.push(format!("{} of {}", ranked.unfinished_runs, summary.repeat));
        }
        table.row(row);
    }
    for (path, estimate) in singles {
        table.row([String::new(), format!("plain TCP on {path}"), with_interval(estimate, unit.scale, false)]);
    }
    let sum = with_interval(&summary.sum_of_paths.value, unit.scale, false);
    table.row([String::new(), "sum of paths".to_owned(), sum]);
    table
}

/// What held each scheduler back.
pub(crate) fn limits(summary: &Summary) -> Table {
    let overruled = summary.ranking.iter().any(|ranked| ranked.overruled > 0.0);
    let mut columns = vec![("scheduler", Align::Left)];
    let numbers =
        ["ofo count", "ofo peak", "RTO rate", "reinjected", "blocked: cwnd", "window", "scheduler", "application"];
    columns.extend(numbers.map(|name| (name, Align::Right)));
    if overruled {
        columns.push(("overruled", Align::Right));
    }
    let mut table = Table::new(columns);
    for ranked in &summary.ranking {
        let mut row = vec![ranked.scheduler.clone(), short(ranked.ofo_count), short(ranked.ofo_peak)];
        row.extend([percent(ranked.rto_rate), bytes(ranked.reinjected_bytes)]);
        row.extend(ranked.blocked_s.map(seconds));
        if overruled {
            row.push(short(ranked.overruled));
        }
        table.row(row);
    }
    table
}

/// How to read the tables.
fn legend(summary: &Summary) -> String {
    let mut text = format!(
        "Means over {} repetitions; blocked: time the sender was kept waiting, by what; ± and *: 95 % intervals,\n\
         differences taken seed by seed. RTO rate: timeouts per segment sent. ofo: out of order at the connection level.\n\n",
        summary.repeat
    );
    let unfinished: usize = summary.ranking.iter().map(|ranked| ranked.unfinished_runs).sum();
    if unfinished > 0 {
        text += &format!(
            "{unfinished} of {} runs did not finish; what they left undone counts until the run was stopped.\n",
            summary.repeat * summary.ranking.len()
        );
    }
    text
}

/// What the numbers say.
pub(crate) fn words(summary: &Summary) -> String {
    let (Some(best), unit) = (summary.ranking.first(), Unit::of(summary)) else { return String::new() };
    let mut text = first_place(summary, best, unit);
    text += &format!("{}\n{}\n", against_single(summary, best, unit), against_sum(summary, best, unit));
    text
}

fn first_place(summary: &Summary, best: &Ranked, unit: Unit) -> String {
    // Who cannot be told from the first?
    let close: Vec<&str> = summary.ranking[1..]
        .iter()
        .filter(|ranked| ranked.to_best.is_some_and(|difference| !difference.is_significant()))
        .map(|ranked| ranked.scheduler.as_str())
        .collect();
    let mut text = format!("{} is first with {}", best.scheduler, unit.show(best.value.mean));
    let reference = summary.ranking.iter().find(|ranked| ranked.scheduler == REFERENCE);
    match (&best.to_reference, reference) {
        (Some(difference), Some(_)) if difference.mean == 0.0 => text += &format!(", exactly like {REFERENCE}."),
        (Some(difference), Some(reference)) => {
            text += &format!(", {} than {REFERENCE}", by_how_much(difference, reference.value.mean, unit));
            text += verdict(difference, summary.repeat);
        }
        _ => text += ".",
    }
    text += &match (close.as_slice(), summary.ranking.len(), summary.repeat) {
        (_, 1, _) | (_, _, 1) => "\n".to_owned(),
        ([], ..) => "\nIts lead over every other is significant.\n".to_owned(),
        (close, all, _) if close.len() + 1 == all => "\nNone of the others can be told from it.\n".to_owned(),
        (close, ..) => format!("\n{}", hang("Not to be told from it: ", &format!("{}.", close.join(", ")), 110)),
    };
    text
}

fn against_single(summary: &Summary, best: &Ranked, unit: Unit) -> String {
    let single = &summary.best_single_path;
    let difference = &single.best_to_it;
    let ahead = (difference.mean < 0.0) == unit.less_is_better;
    let how = by_how_much(difference, single.value.mean, unit);
    let verdict = match (summary.repeat, difference.is_significant(), ahead) {
        (1, ..) => "one repetition says nothing about significance.",
        (_, true, true) => "multipath pays.",
        (_, true, false) => "multipath does NOT pay here.",
        (_, false, _) => "that is not significant.",
    };
    format!("{} is {how} than plain TCP on the best single path ({}): {verdict}", best.scheduler, single.name)
}

fn against_sum(summary: &Summary, best: &Ranked, unit: Unit) -> String {
    let sum = &summary.sum_of_paths;
    let reached = if unit.less_is_better { sum.value.mean / best.value.mean } else { best.value.mean / sum.value.mean };
    let note = if summary.sum_out_of_reach { ", which counts a shared link twice" } else { "" };
    format!("It reaches {} of the sum of the paths ({}{note}).", percent(reached), unit.show(sum.value.mean))
}

/// "0.12 s (8 %) faster"
fn by_how_much(difference: &Estimate, base: f64, unit: Unit) -> String {
    let word = match (unit.less_is_better, difference.mean < 0.0) {
        (true, true) => "faster",
        (true, false) => "slower",
        (false, true) => "lower",
        (false, false) => "higher",
    };
    let size = difference.mean.abs();
    format!("{} ({}) {word}", unit.show(size), percent(size / base))
}

fn verdict(difference: &Estimate, repeat: usize) -> &'static str {
    match (repeat, difference.is_significant()) {
        (1, _) => "; one repetition says nothing about significance.",
        (_, true) => ", which is significant.",
        (_, false) => ", which is not significant.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_lab::compare::Baseline;

    fn estimate(mean: f64, half: f64) -> Estimate {
        Estimate { n: 20, mean, half: Some(half) }
    }

    fn ranked(rank: usize, scheduler: &str, mean: f64, to_best: Option<Estimate>) -> Ranked {
        Ranked {
            rank,
            scheduler: scheduler.to_owned(),
            value: estimate(mean, 0.05),
            to_reference: (scheduler != REFERENCE).then(|| estimate(mean - 1.5, 0.04)),
            to_best,
            shares: vec![0.7, 0.3],
            ofo_count: 120.4,
            ofo_peak: 31.0,
            rto_rate: 0.0012,
            reinjected_bytes: 14_600.0,
            blocked_s: [0.9, 0.0, 0.012, 0.1],
            overruled: 0.0,
            unfinished_runs: 0,
        }
    }

    fn summary() -> Summary {
        let baseline = |name: &str, mean, difference| Baseline {
            name: name.to_owned(),
            value: estimate(mean, 0.1),
            best_to_it: estimate(difference, 0.05),
        };
        Summary {
            measure: "completion time",
            unit: "s",
            repeat: 20,
            ranking: vec![
                ranked(1, "ecf", 1.35, None),
                ranked(2, "late", 1.37, Some(estimate(0.02, 0.03))),
                ranked(3, "min-rtt", 1.5, Some(estimate(0.15, 0.04))),
            ],
            best_single_path: baseline("wlan", 1.9, -0.55),
            sum_of_paths: baseline("wlan + lte", 1.1, 0.25),
            sum_out_of_reach: false,
        }
    }

    #[test]
    fn the_words_say_what_the_numbers_say() {
        let header = Header::for_tests();
        insta::assert_snapshot!(comparison(&header, &summary(), &[("wlan".to_owned(), estimate(1.9, 0.1))]));
    }

    #[test]
    fn runs_that_did_not_finish_are_not_hidden() {
        let mut summary = summary();
        summary.ranking[1].unfinished_runs = 3;
        let text = comparison(&Header::for_tests(), &summary, &[]);
        assert!(text.contains("3 of 60 runs did not finish") && text.contains("3 of 20"), "{text}");
    }

    #[test]
    fn multipath_that_does_not_pay_is_called_so() {
        let mut summary = summary();
        summary.best_single_path.best_to_it = estimate(0.3, 0.1);
        assert!(words(&summary).contains("multipath does NOT pay here"));
        summary.best_single_path.best_to_it = estimate(-0.05, 0.1);
        assert!(words(&summary).contains("that is not significant"));
    }
}
