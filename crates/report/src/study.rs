//! Studies on the terminal, and as the document of what could be reproduced.

use crate::table::{Align, Table};
use crate::wrap::hang;
use anabranch_lab::figure::{Figure, Point};
use anabranch_lab::study::{Judged, StudyResult, Verdict};
use std::fmt::Write;

/// Figures as tables, then each statement with its verdict; lines of about `width` characters.
pub fn study(result: &StudyResult, width: usize) -> String {
    let mut text = format!("{}: {}, {}\n", result.name, result.paper, result.figure);
    text += &hang("", &result.title, width);
    let repetitions = match result.seeds.len() {
        1 => "1 repetition".to_owned(),
        n => format!("{n} repetitions"),
    };
    let quick = if result.quick { ", --quick" } else { "" };
    text +=
        &format!("anabranch {} (build {}), {} runs, {repetitions}{quick}\n", result.version, result.build, result.runs);
    if result.unfinished_runs > 0 {
        let count = result.unfinished_runs;
        text += &format!("{count} runs did not finish; what they left undone counts until the run was stopped.\n");
    }
    for figure in &result.figures {
        text += &format!("\n{}\n", table(figure));
        for note in &figure.notes {
            text += &hang("", note, width);
        }
    }
    for judged in &result.statements {
        text += &format!("\n{}", statement(judged, width));
    }
    text
}

/// Two lines and more: the verdict with what the paper states, then what we have.
fn statement(judged: &Judged, width: usize) -> String {
    let mut text = hang(&format!("{:<15} ", judged.outcome()), &format!("{} ({})", judged.text, judged.source), width);
    let mut line = |label: &str, what: &str| text += &hang(&format!("{label:>15} "), what, width);
    line("paper", &judged.claim);
    line("ours", &judged.ours);
    for detail in &judged.details {
        line("", detail);
    }
    if let Some(cause) = &judged.cause {
        line("believed cause", cause);
    }
    for tried in &judged.tried {
        line("tried", &format!("{}: {}, {}", tried.name, tried.outcome(), tried.ours));
    }
    text
}

/// A figure as a table: a row for each place on the horizontal axis, a column for each series.
fn table(figure: &Figure) -> String {
    let measured: Vec<_> = figure.series.iter().filter(|series| series.points.len() <= MOST_ROWS).collect();
    if measured.is_empty() {
        let points: usize = figure.series.iter().map(|series| series.points.len()).sum();
        return format!("{}: {points} points, for the eye: --report, or the JSON\n", figure.title);
    }
    let heading = match figure.y.unit.as_str() {
        "" => format!("{}: {}", figure.title, figure.y.label),
        unit => format!("{}: {} [{unit}]", figure.title, figure.y.label),
    };
    let x = if figure.x.unit.is_empty() {
        figure.x.label.clone()
    } else {
        format!("{} [{}]", figure.x.label, figure.x.unit)
    };
    let mut columns = Vec::new();
    columns.extend(figure.panels.as_deref().map(|panels| (panels, Align::Left)));
    columns.push((x.as_str(), Align::Right));
    columns.extend(measured.iter().map(|series| (series.name.as_str(), Align::Right)));
    let mut table = Table::new(columns);
    let mut places: Vec<(Option<String>, String)> = Vec::new();
    // Without an axis each system stands on a place of its own, of which a table needs none.
    let one_place = figure.x.label.is_empty();
    let place = |point: &Point| if one_place { (None, String::new()) } else { place(point) };
    for point in measured.iter().flat_map(|series| &series.points) {
        let place = place(point);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for here in places {
        let mut row: Vec<String> = figure.panels.iter().map(|_| here.0.clone().unwrap_or_default()).collect();
        row.push(here.1.clone());
        for series in &measured {
            row.push(series.points.iter().find(|point| place(point) == here).map(height).unwrap_or_default());
        }
        table.row(row);
    }
    format!("{heading}\n{table}")
}

/// Longer series, such as curves and series over time, are for the eye.
const MOST_ROWS: usize = 60;

fn place(point: &Point) -> (Option<String>, String) {
    let x = point.category.clone().or(point.x.map(crate::number::plain)).unwrap_or_default();
    (point.panel.clone(), x)
}

fn height(point: &Point) -> String {
    let half = point.high.zip(point.low).map(|(high, low)| (high - low) / 2.0);
    let Some(mean) = point.y else { return "–".to_owned() };
    let estimate = anabranch_lab::stats::Estimate { n: point.n.unwrap_or(1), mean, half };
    let shown = crate::number::with_interval(&estimate, 1.0, false);
    match (point.at_least, point.unfinished) {
        (true, _) => format!("≥ {shown}"),
        (false, 0) => shown,
        (false, _) => format!("{shown} †"),
    }
}

/// How many statements of each verdict: `12 reproduced, 3 direction only`.
pub fn tally<'a>(statements: impl IntoIterator<Item = &'a Judged>) -> String {
    let all: Vec<&Judged> = statements.into_iter().collect();
    let kinds = [Verdict::Reproduced, Verdict::DirectionOnly, Verdict::NotReproduced, Verdict::NotTested];
    let count = |kind: &Verdict| all.iter().filter(|judged| judged.verdict == *kind).count();
    let part = |kind: &Verdict| match all.iter().filter(|it| it.verdict == *kind && it.unfinished_runs > 0).count() {
        0 => format!("{} {}", count(kind), kind.name()),
        unfinished => format!("{} {} ({unfinished} with unfinished runs)", count(kind), kind.name()),
    };
    kinds.iter().filter(|kind| count(kind) > 0).map(part).collect::<Vec<_>>().join(", ")
}

/// All statements in one table, then for each that failed what was tried and what we believe is the cause.
pub fn reproduction(results: &[StudyResult], command: &str, all_papers: bool) -> String {
    let mut text = String::from("# What could be reproduced\n\n");
    let all = results.iter().flat_map(|result| &result.statements);
    text += &format!(
        "{} beside what we measured. Made by `{command}`; do not edit.\n{} statements in {} studies: **{}**.\n\n",
        if all_papers { "Every statement of the five papers," } else { "Statements" },
        all.clone().count(),
        results.len(),
        tally(all)
    );
    text += "A statement is *reproduced* if it holds within its tolerance or our 95 % interval, an order if every paired\n\
             difference counts; *direction only* if the means point the same way and no more can be said; *not reproduced*\n\
             otherwise. The rules are in `crates/lab/src/study/judge.rs`. Nothing is fitted to a figure, save where a study says so: what a paper leaves\n\
             open is assumed once for all of its figures and listed in the study.\n\n";
    text += "| study | the paper states | paper | ours | verdict |\n|---|---|---|---|---|\n";
    for result in results {
        for judged in &result.statements {
            let outcome = judged.outcome();
            let verdict = match judged.verdict {
                Verdict::Reproduced | Verdict::NotTested => outcome,
                Verdict::DirectionOnly => format!("*{outcome}*"),
                Verdict::NotReproduced => format!("**{outcome}**"),
            };
            let cells = [&result.name, &judged.text, &judged.claim, &judged.ours].map(|cell| escaped(cell));
            writeln!(text, "| {} | {verdict} |", cells.join(" | ")).expect("writing to a String cannot fail");
        }
    }
    text += "\n## What failed, what we tried, and what we believe\n";
    for result in results {
        let failed: Vec<&Judged> =
            result.statements.iter().filter(|judged| judged.verdict != Verdict::Reproduced).collect();
        if failed.is_empty() {
            continue;
        }
        text += &format!("\n### {}: {}\n", result.name, result.title);
        for judged in failed {
            let (text_of_paper, source) = (escaped(&judged.text), escaped(&judged.source));
            text += &format!("\n**{text_of_paper}** ({source}): {}.\n\n", judged.outcome());
            text += &format!("- paper: {}\n- ours: {}\n", judged.claim, judged.ours);
            for detail in &judged.details {
                text += &format!("  - {detail}\n");
            }
            for tried in &judged.tried {
                text += &format!("- tried, {}: {}, {}\n", tried.name, tried.outcome(), tried.ours);
            }
            let cause = judged.cause.as_deref().unwrap_or("not known");
            text += &format!("- what we believe: {cause}\n");
        }
    }
    text
}

fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}
