//! A comparison on the terminal: who won, by how much, how sure that is, and what held the others back.

use crate::number::{bytes, percent, seconds, short, with_interval};
use crate::policies::policies;
use crate::rows::Header;
use crate::table::{Align, Table};
use crate::wrap::hang;
use anabranch_lab::compare::{Ranked, Summary};
use anabranch_lab::stats::{Estimate, LEVEL, Tested};
use std::fmt::Write;

/// The two tables and the words below them.
pub fn comparison(header: &Header, summary: &Summary) -> String {
    let mut text = format!("{header}\n\n");
    let (shown, groups) = merged(summary);
    write!(text, "{}\n{}\n", ranking(header, &shown), limits(&shown))
        .and_then(|()| write!(text, "{groups}{}{}\n{}", legend(summary), words(summary), policies(header)))
        .expect("writing to a String cannot fail");
    text
}

/// The summary with one row for schedulers of which no number differs, and a line that names those of each such row.
fn merged(summary: &Summary) -> (Summary, String) {
    let is_same = |a: &Ranked, b: &Ranked| {
        // Rank, name and differences to others follow from what is compared here.
        let numbers =
            |it: &Ranked| Ranked { rank: 0, scheduler: String::new(), to_reference: None, to_best: None, ..it.clone() };
        numbers(a) == numbers(b)
    };
    let mut groups: Vec<Vec<&Ranked>> = Vec::new();
    for ranked in &summary.ranking {
        match groups.iter_mut().find(|group| is_same(group[0], ranked)) {
            Some(group) => group.push(ranked),
            None => groups.push(vec![ranked]),
        }
    }
    let (mut ranking, mut text) = (Vec::new(), String::new());
    for group in groups {
        let mut row = group[0].clone();
        if group.len() > 1 {
            let names: Vec<&str> = group.iter().map(|ranked| ranked.scheduler.as_str()).collect();
            text += &hang("", &format!("{} the same: {}.", group.len(), names.join(", ")), WIDTH);
            // The one that the differences are to is looked for in the table.
            let named = names.iter().find(|name| **name == summary.reference).unwrap_or(&names[0]);
            row.scheduler = format!("{named} and {} more", group.len() - 1);
            row.to_reference = group.iter().find_map(|ranked| ranked.to_reference);
        }
        ranking.push(row);
    }
    text += if text.is_empty() { "" } else { "\n" };
    (Summary { ranking, ..summary.clone() }, text)
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

    /// A mean with its interval, or the lower bound that it is.
    fn value(self, estimate: &Estimate, censored_runs: usize) -> String {
        match censored_runs {
            0 => with_interval(estimate, self.scale, false),
            _ => format!("≥ {}", with_interval(&Estimate { half: None, ..*estimate }, self.scale, false)),
        }
    }

    fn show(self, x: f64) -> String {
        format!("{} {}", short(x / self.scale), self.name)
    }
}

/// Schedulers from the best on, and their difference to the reference.
pub(crate) fn ranking(header: &Header, summary: &Summary) -> Table {
    let unit = Unit::of(summary);
    let value = format!("{} [{}]", summary.measure, unit.name);
    let difference = format!("to {} [{}]", summary.reference, unit.name);
    let shares: Vec<String> = header.paths.iter().map(|path| format!("via {path}")).collect();
    let mut columns = vec![("#", Align::Right), ("scheduler", Align::Left)];
    columns.extend([(value.as_str(), Align::Right), (difference.as_str(), Align::Right)]);
    columns.extend(shares.iter().map(|share| (share.as_str(), Align::Right)));
    let unfinished = unfinished_runs(summary).any(|(_, count)| count > 0);
    if unfinished {
        columns.push(("unfinished", Align::Right));
    }
    let mut table = Table::new(columns);
    for ranked in &summary.ranking {
        let difference = ranked.to_reference.as_ref().map_or(String::new(), |d| {
            let star = if d.is_significant() { " *" } else { "  " };
            format!("{}{star}", with_interval(&d.difference, unit.scale, true))
        });
        let mut row = vec![ranked.rank.to_string(), ranked.scheduler.clone()];
        row.extend([unit.value(&ranked.value, ranked.censored_runs), difference]);
        row.extend(ranked.shares.iter().map(|share| percent(*share)));
        if unfinished {
            row.push(format!("{} of {}", ranked.unfinished_runs, summary.repeat));
        }
        table.row(row);
    }
    let gaps = || std::iter::repeat_n(String::new(), 1 + header.paths.len());
    for single in &summary.singles {
        let mut row = vec![String::new(), format!("plain TCP on {}", single.path)];
        row.push(unit.value(&single.value, single.censored_runs));
        row.extend(gaps());
        row.push(format!("{} of {}", single.unfinished_runs, summary.repeat));
        table.row(row);
    }
    let sum = summary.sum_of_paths.as_ref();
    let sum = sum.map_or("not known".to_owned(), |sum| with_interval(&sum.value, unit.scale, false));
    table.row([String::new(), "sum of paths".to_owned(), sum]);
    table
}

/// Name and number of the runs in which transfers did not complete, for all that was run.
fn unfinished_runs(summary: &Summary) -> impl Iterator<Item = (String, usize)> {
    let candidates = summary.ranking.iter().map(|ranked| (ranked.scheduler.clone(), ranked.unfinished_runs));
    candidates.chain(summary.singles.iter().map(|it| (format!("plain TCP on {}", it.path), it.unfinished_runs)))
}

/// Limits of each scheduler: time blocked by cause, out-of-order data, RTOs.
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

/// Legend of the tables.
fn legend(summary: &Summary) -> String {
    let means = match summary.is_one_sample() {
        true => format!("{}\nblocked: time the sender was kept waiting, by what.\n", one_sample(summary)),
        false => format!(
            "Means over {} repetitions; blocked: time the sender was kept waiting, by what; ±: 95 % intervals, \
             differences taken\nseed by seed. {}\n",
            summary.repeat,
            stars(summary)
        ),
    };
    let mut text =
        format!("{means}RTO rate: timeouts per segment sent. ofo: out of order at the connection level.\n\n");
    if let Some(warning) = unfinished(summary) {
        text += &hang("", &warning, WIDTH);
    }
    text
}

/// Sentence on repetitions that are all the same.
pub(crate) fn one_sample(summary: &Summary) -> String {
    format!("All {} repetitions are the same run: one sample, which has no interval and no star.", summary.repeat)
}

/// The meaning of a star in the ranking.
pub(crate) fn stars(summary: &Summary) -> String {
    let tests = family(summary.ranking.iter().filter_map(|it| it.to_reference.as_ref()));
    format!("*: other than {}, {tests}.", summary.reference)
}

/// The runs that did not finish, and what their numbers are worth.
pub(crate) fn unfinished(summary: &Summary) -> Option<String> {
    let each: Vec<String> = unfinished_runs(summary)
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count} of {}", summary.repeat))
        .collect();
    let bounds = match summary.unit {
        "s" => {
            "Their times count until the run was stopped, so means marked ≥ are lower bounds, \
             and nothing is derived from them"
        }
        _ => "What they moved until the run was stopped counts",
    };
    (!each.is_empty()).then(|| format!("Runs that did not finish: {}. {bounds}.", each.join(", ")))
}

/// The tests behind a claim: how many, and at which level.
fn family<'a>(tests: impl Iterator<Item = &'a Tested>) -> String {
    let percent = LEVEL * 100.0;
    match tests.count() {
        0 => "nothing to test".to_owned(),
        1 => format!("paired t-test at {percent} %"),
        n => format!("paired t-tests at {percent} % for all {n} together (Holm)"),
    }
}

/// The numbers in words.
pub(crate) fn words(summary: &Summary) -> String {
    let (Some(best), unit) = (summary.ranking.first(), Unit::of(summary)) else { return String::new() };
    if best.censored_runs > 0 {
        return "No scheduler finished all of its runs: nothing can be said of which is faster.\n\n".to_owned();
    }
    let mut text = first_place(summary, best, unit);
    text += &format!("{}\n{}\n", against_single(summary, best, unit), against_sum(summary, best, unit));
    text
}

fn first_place(summary: &Summary, best: &Ranked, unit: Unit) -> String {
    let rivals = || summary.ranking[1..].iter().filter_map(|ranked| Some((ranked, ranked.to_best.as_ref()?)));
    let close: Vec<&str> =
        rivals().filter(|(_, lead)| !lead.is_significant()).map(|(ranked, _)| ranked.scheduler.as_str()).collect();
    let mut text = format!("{} is first with {}", best.scheduler, unit.show(best.value.mean));
    let reference = summary.ranking.iter().find(|ranked| ranked.scheduler == summary.reference);
    match (&best.to_reference, reference) {
        (Some(to_it), Some(_)) if to_it.difference.mean == 0.0 => {
            text += &format!(", exactly like {}.", summary.reference)
        }
        (Some(to_it), Some(reference)) => {
            let tests = family(summary.ranking.iter().filter_map(|it| it.to_reference.as_ref()));
            text +=
                &format!(", {} than {}", by_how_much(&to_it.difference, reference.value.mean, unit), summary.reference);
            text += &match (summary.repeat, to_it.is_significant()) {
                (1, _) => "; one repetition says nothing about significance.".to_owned(),
                _ if summary.is_one_sample() => "; one sample says nothing about significance.".to_owned(),
                (_, true) => format!(", which is significant: {tests}."),
                (_, false) => format!(", which is not significant: {tests}."),
            };
        }
        _ => text += ".",
    }
    let tests = family(rivals().map(|(_, lead)| lead));
    text = hang("", &text, WIDTH);
    let count = rivals().count();
    let finished = if count + 1 == summary.ranking.len() { "" } else { " that finished" };
    text += &match close.as_slice() {
        _ if count == 0 || summary.repeat == 1 || summary.is_one_sample() => String::new(),
        [] => hang("", &format!("Its lead over every other{finished} is significant: {tests}."), WIDTH),
        close if close.len() == count => {
            hang("", &format!("None of the others{finished} can be told from it: {tests}."), WIDTH)
        }
        close => hang("Not to be told from it: ", &format!("{}; {tests}.", close.join(", ")), WIDTH),
    };
    text
}

fn against_single(summary: &Summary, best: &Ranked, unit: Unit) -> String {
    let Some(single) = &summary.best_single_path else {
        return "Plain TCP did not finish all of its runs on any path: no factor can be given.".to_owned();
    };
    let Some(difference) = &single.best_to_it else { return String::new() };
    let ahead = (difference.mean < 0.0) == unit.less_is_better;
    let how = by_how_much(difference, single.value.mean, unit);
    let verdict = match (summary.repeat, difference.is_significant(), ahead) {
        (1, ..) => "one repetition says nothing about significance.",
        _ if summary.is_one_sample() => "one sample says nothing about significance.",
        (_, true, true) => "multipath pays.",
        (_, true, false) => "multipath does NOT pay here.",
        (_, false, _) => "that is not significant.",
    };
    let finished = match summary.singles.iter().any(|other| other.censored_runs > 0) {
        true => " of those on which it always finished",
        false => "",
    };
    let text = format!(
        "{} is {how} than plain TCP on the best single path{finished} ({}): {verdict}",
        best.scheduler, single.name
    );
    hang("", &text, WIDTH).trim_end().to_owned()
}

fn against_sum(summary: &Summary, best: &Ranked, unit: Unit) -> String {
    let Some(sum) = &summary.sum_of_paths else {
        return "The sum of the paths is not known, since plain TCP did not finish on one of them.".to_owned();
    };
    let reached = if unit.less_is_better { sum.value.mean / best.value.mean } else { best.value.mean / sum.value.mean };
    let note = if summary.sum_out_of_reach { ", which counts a shared link twice" } else { "" };
    format!("It reaches {} of the sum of the paths ({}{note}).", percent(reached), unit.show(sum.value.mean))
}

/// Longer lines are broken.
const WIDTH: usize = 120;

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

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_lab::compare::{Baseline, Single};

    fn estimate(mean: f64, half: f64) -> Estimate {
        Estimate { n: 20, mean, half: Some(half) }
    }

    fn tested(mean: f64, half: f64) -> Tested {
        Tested { difference: estimate(mean, half), p_holm: Some(if mean.abs() > half { 0.01 } else { 0.2 }) }
    }

    fn ranked(rank: usize, scheduler: &str, mean: f64, to_best: Option<Tested>) -> Ranked {
        Ranked {
            rank,
            scheduler: scheduler.to_owned(),
            value: estimate(mean, 0.05),
            to_reference: (scheduler != "min-rtt").then(|| tested(mean - 1.5, 0.04)),
            to_best,
            shares: vec![0.7, 0.3],
            ofo_count: 120.4,
            ofo_peak: 31.0,
            rto_rate: 0.0012,
            reinjected_bytes: 14_600.0,
            blocked_s: [0.9, 0.0, 0.012, 0.1],
            overruled: 0.0,
            unfinished_runs: 0,
            censored_runs: 0,
        }
    }

    fn summary() -> Summary {
        let baseline = |name: &str, mean, difference| Baseline {
            name: name.to_owned(),
            value: estimate(mean, 0.1),
            best_to_it: Some(estimate(difference, 0.05)),
        };
        let single =
            Single { path: "wlan".to_owned(), value: estimate(1.9, 0.1), unfinished_runs: 0, censored_runs: 0 };
        Summary {
            reference: "min-rtt".to_owned(),
            measure: "completion time",
            unit: "s",
            repeat: 20,
            ranking: vec![
                ranked(1, "ecf", 1.35, None),
                ranked(2, "late", 1.37, Some(tested(0.02, 0.03))),
                ranked(3, "min-rtt", 1.5, Some(tested(0.15, 0.04))),
            ],
            singles: vec![single],
            best_single_path: Some(baseline("wlan", 1.9, -0.55)),
            sum_of_paths: Some(baseline("wlan + lte", 1.1, 0.25)),
            sum_out_of_reach: false,
        }
    }

    #[test]
    fn the_words_say_what_the_numbers_say() {
        let header = Header::for_tests();
        insta::assert_snapshot!(comparison(&header, &summary()));
    }

    #[test]
    fn what_did_not_finish_is_marked_and_nothing_is_said_of_it() {
        let mut summary = summary();
        (summary.ranking[2].unfinished_runs, summary.ranking[2].censored_runs) = (3, 3);
        (summary.ranking[0].to_reference, summary.ranking[2].to_best) = (None, None);
        (summary.singles[0].unfinished_runs, summary.singles[0].censored_runs) = (20, 20);
        (summary.best_single_path, summary.sum_of_paths) = (None, None);
        insta::assert_snapshot!(comparison(&Header::for_tests(), &summary));
    }

    #[test]
    fn schedulers_of_which_no_number_differs_are_one_row() {
        let mut whole = summary();
        for (rank, name) in [(4, "blest"), (5, "otias")] {
            whole.ranking.push(Ranked { rank, ..ranked(rank, name, 1.5, Some(tested(0.15, 0.04))) });
        }
        whole.ranking[4].ofo_peak += 1.0;
        let text = comparison(&Header::for_tests(), &whole);
        assert!(text.contains("2 the same: min-rtt, blest.\n"), "{text}");
        let rows = |name: &str| text.lines().filter(|line| line.contains(&format!("  {name}  "))).count();
        // In the ranking, and in both parts of the table of limits.
        assert_eq!([rows("min-rtt and 1 more"), rows("otias"), rows("blest")], [3, 3, 0], "{text}");
    }

    #[test]
    fn a_sentence_says_what_was_tested() {
        let mut summary = summary();
        assert!(words(&summary).contains("paired t-tests at 5 % for all 2 together (Holm)"));
        // By itself it would count.
        summary.ranking[0].to_reference = Some(Tested { difference: estimate(-0.15, 0.1), p_holm: Some(0.06) });
        assert!(words(&summary).contains("which is not significant: paired t-tests"), "{}", words(&summary));
        assert!(!ranking(&Header::for_tests(), &summary).to_string().contains("-0.15 ± 0.10 *"));
    }

    #[test]
    fn copies_of_one_run_are_one_sample() {
        let mut summary = summary();
        let one = |it: &mut Estimate| it.half = None;
        for ranked in &mut summary.ranking {
            one(&mut ranked.value);
            ranked.to_reference.iter_mut().chain(&mut ranked.to_best).for_each(|tested| {
                one(&mut tested.difference);
                tested.p_holm = None;
            });
        }
        summary.singles.iter_mut().for_each(|single| one(&mut single.value));
        for baseline in [&mut summary.best_single_path, &mut summary.sum_of_paths].into_iter().flatten() {
            one(&mut baseline.value);
            baseline.best_to_it.iter_mut().for_each(one);
        }
        let text = comparison(&Header::for_tests(), &summary);
        assert!(text.contains("All 20 repetitions are the same run: one sample"), "{text}");
        assert!(text.contains("one sample says nothing about significance"), "{text}");
        for absent in ["±", "*", "significant", "multipath pays"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
    }

    #[test]
    fn multipath_that_does_not_pay_is_called_so() {
        let mut summary = summary();
        let mut said = |mean, half| {
            summary.best_single_path.as_mut().expect("it has one").best_to_it = Some(estimate(mean, half));
            words(&summary)
        };
        assert!(said(0.3, 0.1).contains("multipath does NOT pay here"));
        assert!(said(-0.05, 0.1).contains("that is not significant"));
    }
}
