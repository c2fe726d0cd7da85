#![allow(clippy::unwrap_used)]
use super::*;
use crate::figure::{Figure, Point};
use crate::study::grid::Grid;
use crate::study::plot::draw;
use crate::testing::measured;
use anabranch_lab::Journal;
use anabranch_lab::Measured;
use anabranch_policy::Catalogue;
use std::sync::Arc;

/// Two systems, three points.
const STUDY: &str = r#"
title = "made up"
paper = "TEST"
figure = "Fig. 0"
about = "nothing"
repeat = { full = 10, quick = 2 }
[scenario.path.a]
rate = "1mbit"
[[scenario.workload]]
kind = "bulk"
duration = "1s"
[[axis]]
name = "x"
label = "x"
set = ["path.a.delay={}ms"]
values = [1, 2, 3]
[[system]]
name = "one"
set = ["host.scheduler=min-rtt"]
[[system]]
name = "two"
set = ["host.scheduler=ecf"]
[[plot]]
id = "p"
title = "p"
metric = "completion-time"
[[statement]]
text = "t"
source = "s"
metric = "completion-time"
"#;

/// Judges one statement by results made up by a formula.
fn verdict(statement: &str, result: fn(system: usize, x: f64, seed: u64) -> f64) -> Judged {
    verdict_of(STUDY, statement, result)
}

fn verdict_of(study: &str, statement: &str, result: fn(system: usize, x: f64, seed: u64) -> f64) -> Judged {
    let finished = |system: usize, x: f64, seed: u64| Measured {
        completion_s: Some(result(system, x, seed)),
        ..measured(seed, 1.0, 1.0)
    };
    with_plot(&format!("{study}{statement}\n"), &finished).0
}

/// Judges the one statement of this study by results made up as whole measurements; returns its plot as well.
fn with_plot(study: &str, result: &dyn Fn(usize, f64, u64) -> Measured) -> (Judged, Figure) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("study.toml");
    std::fs::write(&path, study).unwrap();
    let study = Study::load(path.to_str().unwrap()).unwrap();
    let grid = Grid::new(&study, &Arc::new(Catalogue::default()), &[]).unwrap();
    let journal = Journal::in_memory();
    for ((system, point), scenario) in grid.cells() {
        for seed in &grid.seeds {
            let made = result(*system, study.axes[0].points[point[0]].x, *seed);
            journal.put(&scenario.digest, made).unwrap();
        }
    }
    let table = grid.table(&journal);
    let figure = draw(&study, &table, study.plots().next().unwrap()).unwrap();
    (judge(&study, &table, study.claims().next().unwrap()).unwrap(), figure)
}

/// Returns noise that both systems share, and a little of their own.
fn noise(system: usize, seed: u64) -> f64 {
    seed as f64 / 10.0 + if (seed + system as u64).is_multiple_of(2) { 0.01 } else { -0.01 }
}

#[test]
fn an_order_is_reproduced_if_paired_differences_count() {
    let faster = |system: usize, x: f64, seed: u64| x + noise(system, seed) + if system == 0 { 0.0 } else { 0.1 };
    assert_eq!(verdict("order = \"one < two\"", faster).verdict, Verdict::Reproduced);
    assert_eq!(verdict("order = \"one <= two\"", faster).verdict, Verdict::Reproduced);
    assert_eq!(verdict("order = \"two < one\"", faster).verdict, Verdict::Opposite);
    assert_eq!(verdict("order = \"two <= one\"", faster).verdict, Verdict::Opposite);
    assert_eq!(verdict("order = \"two ~ one\"", faster).verdict, Verdict::Reproduced, "4 % apart");
    assert_eq!(verdict("order = \"two ~ one\"\nmargin = 1", faster).verdict, Verdict::Opposite);
}

#[test]
fn a_lead_within_the_noise_is_not_significant() {
    let hardly = |system: usize, _: f64, seed: u64| {
        10.0 + if system == 0 { 0.0 } else { 0.1 + if seed.is_multiple_of(2) { 1.0 } else { -1.0 } }
    };
    assert_eq!(verdict("order = \"one < two\"", hardly).verdict, Verdict::NotSignificant);
}

/// At one point both are zero but for rounding, which differs by 100 %; at the others the difference is not
/// significant.
#[test]
fn rounding_errors_decide_nothing() {
    let rounded = |system: usize, x: f64, seed: u64| match (x as u64, system) {
        (1, 0) => 3.4e-16,
        (1, _) => 1.1e-16,
        (_, 0) => 0.157,
        _ => 0.162 + if seed.is_multiple_of(2) { 0.05 } else { -0.05 },
    };
    let judged = verdict("order = \"two < one\"", rounded);
    assert_ne!(judged.verdict, Verdict::Reproduced, "{}: {:?}", judged.ours, judged.details);
    let nothing = |system: usize, _: f64, _: u64| if system == 0 { 3.4e-16 } else { 1.1e-16 };
    assert_eq!(verdict("order = \"two < one\"", nothing).verdict, Verdict::NotSignificant);
}

/// Half as much at two small points has more weight than a fifth more at a large one, but the displayed means have the
/// opposite order.
#[test]
fn no_order_is_reproduced_against_the_means_that_are_shown() {
    let weighed = |system: usize, x: f64, seed: u64| match (x as u64, system) {
        (3, 0) => 100.0,
        (3, _) => 120.0 + if seed.is_multiple_of(2) { 50.0 } else { -50.0 },
        (_, 0) => 1.0,
        _ => 0.3 + 0.001 * seed as f64,
    };
    let judged = verdict("order = \"two < one\"", weighed);
    assert_eq!(judged.verdict, Verdict::SignOnly, "{}: {:?}", judged.ours, judged.details);
    assert!(judged.details.iter().any(|line| line.starts_with("the means are the other way")), "{:?}", judged.details);
}

/// Twenty percent less at the small points, ± twice as much, and a little more at the large one.
#[test]
fn a_difference_within_the_noise_is_no_direction_against_the_means_that_are_shown() {
    let vague = |system: usize, x: f64, seed: u64| match (x as u64, system) {
        (3, 0) => 100.0,
        (3, _) => 105.0,
        (_, 0) => 1.0,
        _ => 0.8 + if seed.is_multiple_of(2) { 0.5 } else { -0.5 },
    };
    let judged = verdict("order = \"two < one\"", vague);
    assert_eq!(judged.verdict, Verdict::NotSignificant, "{}: {:?}", judged.ours, judged.details);
    assert!(judged.details.iter().any(|line| line.starts_with("the means are the other way")), "{:?}", judged.details);
}

#[test]
fn an_order_at_each_point_fails_where_one_point_fails() {
    let crossing = |system: usize, x: f64, seed: u64| {
        10.0 + noise(system, seed) + if system == 0 { 0.0 } else { if x == 3.0 { -0.5 } else { 1.0 } }
    };
    let average = verdict("order = \"one < two\"", crossing);
    assert_eq!(average.verdict, Verdict::SignOnly, "an average does not hide a point that contradicts it");
    assert!(average.details[1].starts_with("the other way at x 3: two is lower by"), "{:?}", average.details);
    let each = verdict("order = \"one < two\"\neach = true", crossing);
    assert_eq!(each.verdict, Verdict::SignOnly);
    assert_eq!(each.details.iter().filter(|line| line.starts_with("NOT")).count(), 1, "{:?}", each.details);
    let there = verdict("order = \"one < two\"\nat = { x = [3] }", crossing);
    assert_eq!(there.verdict, Verdict::Opposite);
}

/// An average does not compensate significant differences the other way at most points.
#[test]
fn what_counts_the_other_way_is_opposite() {
    let mostly = |system: usize, x: f64, seed: u64| {
        10.0 + noise(system, seed) + if system == 0 { 0.0 } else { if x == 1.0 { 9.0 } else { -0.5 } }
    };
    assert_eq!(verdict("order = \"one < two\"\neach = true", mostly).verdict, Verdict::Opposite);
}

#[test]
fn a_number_is_held_against_its_tolerance_or_our_interval() {
    // The second takes 20 % less, ± 0.
    let less = |system: usize, x: f64, seed: u64| (x + seed as f64) * if system == 0 { 1.0 } else { 0.8 };
    let claim = |value: &str| verdict(&format!("system = \"two\"\nover = \"one\"\n{value}"), less);
    assert_eq!(claim("value = -21").verdict, Verdict::Reproduced);
    assert_eq!(claim("value = -21").ours, "-20 ± 0 %");
    assert_eq!(claim("value = -39").verdict, Verdict::Weaker);
    assert_eq!(claim("value = -41").verdict, Verdict::SignOnly);
    assert_eq!(claim("value = 20").verdict, Verdict::Opposite);
    assert_eq!(claim("range = [-30, -10]").verdict, Verdict::Reproduced);
    assert_eq!(claim("at-most = -15").verdict, Verdict::Reproduced);
    assert_eq!(claim("at-least = -15").verdict, Verdict::Stronger);
    assert_eq!(claim("at-least = 15").verdict, Verdict::Opposite);
}

#[test]
fn a_trend_and_its_peak() {
    let rising = |system: usize, x: f64, seed: u64| 10.0 * x + noise(system, seed);
    assert_eq!(verdict("trend = \"rises\"", rising).verdict, Verdict::Reproduced);
    assert_eq!(verdict("trend = \"falls\"\nsystem = \"one\"", rising).verdict, Verdict::Opposite);
    assert_eq!(verdict("trend = \"flat\"", rising).verdict, Verdict::Opposite);
    let hill = |system: usize, x: f64, seed: u64| 20.0 - (x - 2.0) * (x - 2.1) + noise(system, seed);
    assert_eq!(verdict("peak = [2]\nsystem = \"one\"", hill).verdict, Verdict::Reproduced);
    assert_eq!(verdict("peak = [3]\nsystem = \"one\"", hill).verdict, Verdict::Opposite);
    let dented = |system: usize, x: f64, seed: u64| if x == 2.0 { 1.0 } else { x + 2.0 } + noise(system, seed);
    assert_eq!(verdict("trend = \"rises\"", dented).verdict, Verdict::SignOnly);
}

#[test]
fn a_lead_is_followed_in_its_own_points() {
    // The lead of the second grows from 1 to 3 % of the first: by two points, whatever the size of the lead.
    let lead =
        |system: usize, x: f64, seed: u64| (10.0 + seed as f64) * if system == 0 { 1.0 } else { 1.0 + x / 100.0 };
    let judged = verdict("system = \"two\"\nover = \"one\"\nlead = \"above\"\ntrend = \"rises\"", lead);
    assert_eq!(judged.verdict, Verdict::Reproduced);
    assert!(judged.details[0].ends_with("from end to end +2 %"), "{:?}", judged.details);
    let flat = verdict("system = \"two\"\nover = \"one\"\nlead = \"above\"\ntrend = \"flat\"", lead);
    assert_eq!(flat.verdict, Verdict::Reproduced, "two points are less than five");
}

/// A gap that shrinks below zero is not one that shrinks above it.
#[test]
fn a_gap_on_the_other_side_is_the_opposite() {
    let below =
        |system: usize, x: f64, seed: u64| (10.0 + seed as f64) * if system == 0 { 1.0 } else { 0.9 - x / 50.0 };
    let trend = |claim: &str| verdict(&format!("system = \"two\"\nover = \"one\"\n{claim}"), below).verdict;
    assert_eq!(trend("trend = \"falls\"\nlead = \"above\""), Verdict::Opposite);
    assert_eq!(trend("trend = \"falls\"\nlead = \"below\""), Verdict::Reproduced);
    assert_eq!(trend("trend = \"rises\"\nlead = \"below\""), Verdict::Opposite);
}

/// Differences are chance; at the third point one exceeds its own interval. It is one of three votes, so its p-value of
/// 3 % counts three times.
#[test]
fn one_vote_of_many_must_weigh_more() {
    let one_in_many = |system: usize, x: f64, seed: u64| {
        let off = if seed.is_multiple_of(2) { 1.0 } else { -1.0 };
        10.0 + match (x as u64, system) {
            (_, 0) => 0.0,
            (3, _) => -0.85 + off,
            _ => 0.6 + off,
        }
    };
    let alone = verdict("order = \"two < one\"\nat = { x = [3] }", one_in_many);
    assert_eq!(alone.verdict, Verdict::Reproduced, "{:?}", alone.details);
    let among = verdict("order = \"one < two\"", one_in_many);
    assert_eq!(among.verdict, Verdict::NotSignificant, "{:?}", among.details);
    assert_eq!(among.details.len(), 1, "no point says otherwise: {:?}", among.details);
}

#[test]
fn what_is_said_of_a_reconstruction_is_not_judged() {
    let text =
        STUDY.replace("\"host.scheduler=ecf\"]", "\"host.scheduler=ecf\"]\nunavailable = \"its paper is not public\"");
    let faster = |system: usize, x: f64, seed: u64| x + noise(system, seed) + if system == 0 { 0.0 } else { 0.1 };
    let judge = |statement: &str| verdict_of(&text, statement, faster);
    let order = judge("order = \"one < two\"");
    assert_eq!(order.verdict, Verdict::ComparatorUnavailable);
    assert_eq!(order.details[0], "reproduced against our reconstruction: its paper is not public");
    assert_eq!(judge("system = \"one\"\nover = \"two\"\nvalue = -3").verdict, Verdict::ComparatorUnavailable);
    let trend = judge("trend = \"rises\"");
    assert_eq!((trend.verdict, trend.ours.contains("two")), (Verdict::Reproduced, false), "the others are judged");
}

#[test]
fn without_chance_a_difference_must_be_worth_a_word() {
    let copies = |system: usize, _: f64, _: u64| if system == 0 { 100.0 } else { 100.5 };
    assert_eq!(verdict("order = \"one < two\"", copies).verdict, Verdict::NotSignificant);
    let apart = |system: usize, _: f64, _: u64| if system == 0 { 100.0 } else { 102.0 };
    assert_eq!(verdict("order = \"one < two\"", apart).verdict, Verdict::Reproduced);
}

#[test]
fn a_wide_interval_meets_no_number() {
    // 10 % ± 40.
    let noisy = |system: usize, _: f64, seed: u64| match system {
        0 => 10.0,
        _ => 11.0 + if seed.is_multiple_of(2) { 6.0 } else { -6.0 },
    };
    assert_eq!(verdict("system = \"two\"\nover = \"one\"\nvalue = 40", noisy).verdict, Verdict::NotSignificant);
}

#[test]
fn a_trend_follows_the_values_and_a_peak_needs_one() {
    let flat = verdict("system = \"one\"\npeak = [2]", |_, _, _| 0.0);
    assert_eq!(flat.verdict, Verdict::NotTested);
    let same = verdict("order = \"one <= two\"", |system, _, seed| 1.0 - system as f64 * 0.5 + seed as f64);
    assert_eq!(same.verdict, Verdict::Opposite);
}

/// The second does not finish in two runs of ten, at the last point.
fn partly_unfinished(system: usize, x: f64, seed: u64) -> Measured {
    let unfinished = usize::from(system == 1 && x == 3.0 && seed <= 2);
    let completion_s = Some(x + noise(system, seed) + system as f64);
    Measured { completion_s, unfinished, finished: unfinished == 0, ..measured(seed, 1.0, 1.0) }
}

#[test]
fn a_verdict_says_which_of_its_runs_did_not_finish() {
    let judge = |statement: &str| with_plot(&format!("{STUDY}{statement}\n"), &partly_unfinished).0;
    let order = judge("order = \"one < two\"");
    assert_eq!((order.verdict, order.unfinished_runs), (Verdict::Reproduced, 2));
    assert_eq!(order.outcome(), "reproduced (2 runs unfinished)");
    assert_eq!(order.details[0], "2 of 60 runs did not finish: their times are lower bounds");
    let change = judge("system = \"one\"\nover = \"two\"\nat = { x = [3] }\nat-most = 0");
    assert_eq!(
        (change.unfinished_runs, &*change.details[0]),
        (2, "2 of 20 runs did not finish: their times are lower bounds")
    );
    for untouched in ["system = \"one\"\ntrend = \"rises\"", "order = \"one < two\"\nat = { x = [1, 2] }"] {
        let judged = judge(untouched);
        assert_eq!((judged.outcome(), judged.unfinished_runs), ("reproduced".to_owned(), 0), "{untouched}");
    }
}

#[test]
fn a_point_says_which_of_its_runs_did_not_finish() {
    let figure = with_plot(&format!("{STUDY}order = \"one < two\"\n"), &partly_unfinished).1;
    let points: Vec<&Point> = figure.series.iter().flat_map(|series| &series.points).collect();
    let marked: Vec<&&Point> = points.iter().filter(|point| point.unfinished > 0).collect();
    let [point] = marked[..] else { panic!("{marked:?}") };
    assert!(point.at_least && point.low.is_none() && point.x == Some(3.0), "{point:?}");
    assert_eq!(point.note.as_deref(), Some("2 of 10 runs did not finish: at least this"));
    assert!(points.iter().all(|point| point.at_least || point.low.is_some()), "the others keep their intervals");
    assert!(matches!(&figure.notes[..], [note] if note.starts_with("≥")), "{:?}", figure.notes);
}

#[test]
fn a_statement_makes_one_claim_about_someone() {
    let load = |statement: &str| std::panic::catch_unwind(|| verdict(statement, |_, _, _| 1.0)).is_err();
    assert!(load("value = 3"), "about which system?");
    assert!(load("system = \"one\"\nvalue = 3\nat-most = 4"), "two claims");
    assert!(load("system = \"one\""), "no claim");
    assert!(load("system = \"two\"\nover = \"one\"\ntrend = \"falls\""), "a gap on which side?");
    assert!(load("order = \"one < three\""), "no such system");
    assert_eq!(verdict("untestable = \"words\"", |_, _, _| 1.0).verdict, Verdict::NotTested);
}

/// A headline that is judged at each point shows each point, in percent of the system that it is compared with.
#[test]
fn a_headline_at_each_point_has_the_gain_there() {
    let by_point = |system: usize, x: f64, _: u64| if system == 0 { 1.0 } else { 1.0 + x / 10.0 };
    let plain = verdict("order = \"one < two\"\neach = true", by_point);
    let headline = verdict("order = \"one < two\"\neach = true\nheadline = true", by_point);
    assert_eq!(plain.ours, "one 1 s, two 1.2 s");
    assert_eq!(headline.ours, "two over one: +10 % at x 1, +20 % at x 2, +30 % at x 3");
    assert_eq!((plain.verdict, headline.verdict), (Verdict::Reproduced, Verdict::Reproduced));
}
