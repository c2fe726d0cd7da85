//! Studies on the terminal, and as the document of what could be reproduced.

use crate::headline::{Headline, PaperHead, paper_heads, paper_names};
use crate::table::{Align, Table};
use crate::wrap::hang;
use anabranch_study::figure::{Figure, Point};
use anabranch_study::study::{Judged, Search, Standing, StudyResult, Tally, Verdict};
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
    let mut text = hang(&format!("{:<22} ", judged.outcome()), &format!("{} ({})", judged.text, judged.source), width);
    let mut line = |label: &str, what: &str| text += &hang(&format!("{label:>22} "), what, width);
    if let Some(sentence) = &judged.sentence {
        line("part of", sentence);
    }
    line("paper", &judged.claim);
    line("ours", &judged.ours);
    for detail in &judged.details {
        line("", detail);
    }
    if let Some(cause) = &judged.cause {
        line("believed cause", cause);
    }
    if let Some(search) = &judged.search {
        for tried in search.alone() {
            line("tried", &format!("{}: {}, {}", tried.name(), tried.outcome(), tried.ours));
        }
        line("", &search.to_string());
    }
    text
}

/// A figure as a table.
fn table(figure: &Figure) -> String {
    match numbers(figure) {
        Some((heading, table)) => format!("{heading}\n{table}"),
        None => {
            let points: usize = figure.series.iter().map(|series| series.points.len()).sum();
            format!("{}: {points} points, for the eye: --report, or the JSON\n", figure.title)
        }
    }
}

/// The heading and the numbers of a figure: a row for each place on the horizontal axis, a column for each series.
/// `None` if its series are too long.
pub(crate) fn numbers(figure: &Figure) -> Option<(String, Table)> {
    let measured: Vec<_> = figure.series.iter().filter(|series| series.points.len() <= MOST_ROWS).collect();
    if measured.is_empty() {
        return None;
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
    Some((heading, table))
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

/// A row per paper, in the order of the results, and one of all.
fn by_paper(results: &[StudyResult]) -> String {
    let papers = paper_names(results);
    let of = |paper: Option<&str>| {
        let these = results.iter().filter(move |result| paper.is_none_or(|paper| result.paper == paper));
        let tally = Tally::of(these.clone().flat_map(|result| &result.statements));
        let counts: Vec<String> = Verdict::ALL.iter().map(|verdict| tally.count(*verdict).to_string()).collect();
        let name = paper.unwrap_or("all");
        format!("| {name} | {} | {} | {} |\n", these.count(), tally.all(), counts.join(" | "))
    };
    let names: Vec<&str> = Verdict::ALL.iter().map(|verdict| verdict.name()).collect();
    let mut text = format!("| paper | studies | statements | {} |\n|---|---|---|", names.join(" | "));
    text += &"---|".repeat(names.len());
    text += "\n";
    let rows: Vec<String> = papers.iter().map(|paper| of(Some(paper))).chain([of(None)]).collect();
    text + &rows.concat() + "\n"
}

/// A paper on half a page: its headlines, ours beside its own, and what to believe.
fn paper(head: &PaperHead) -> String {
    let mut text = format!("## {}\n\n{}\n\n", head.name, escaped(&head.citation));
    text += "| where | the paper states | paper | ours | verdict | stack |\n|---|---|---|---|---|---|\n";
    for Headline { study, figure, stack, judged } in &head.headlines {
        let cells = [&judged.text, &judged.claim, &judged.ours].map(|cell| escaped(cell));
        let verdict = marked(judged);
        writeln!(text, "| {figure} (`{study}`) | {} | {verdict} | `{stack}` |", cells.join(" | "))
            .expect("writing to a String cannot fail");
    }
    if head.quick {
        text += "\nFrom quick runs, with few points and repetitions.\n";
    }
    text += &format!(
        "\n**What to believe.** {}\n\n{} statements in {} studies: {}.\n\n",
        head.belief,
        head.tally.all(),
        head.studies,
        head.tally
    );
    text
}

/// The verdict in a cell: what fails is bold, what holds in part italic.
fn marked(judged: &Judged) -> String {
    let outcome = judged.outcome();
    let own = if judged.own { " (ours)" } else { "" };
    match judged.verdict.standing() {
        Standing::Holds | Standing::Open => format!("{outcome}{own}"),
        Standing::InPart => format!("*{outcome}*{own}"),
        Standing::Fails => format!("**{outcome}**{own}"),
    }
}

/// The papers' heads, all statements in one table, then for each that failed what was tried and what we believe is the
/// cause.
pub fn reproduction(results: &[StudyResult], command: &str, all_papers: bool) -> String {
    let mut text = String::from("# What could be reproduced\n\n");
    let tally = Tally::of(results.iter().flat_map(|result| &result.statements));
    text += &format!(
        "{} beside what we measured. Made by `{command}`; do not edit.\n\
         {} statements in {} studies, judged in {} parts: **{tally}**",
        if all_papers { "Every statement of the five papers," } else { "Statements" },
        tally.all(),
        results.len(),
        tally.parts,
    );
    text += &match tally.own {
        0 => ".\n\n".to_owned(),
        own => format!("; {own} more are ours.\n\n"),
    };
    text += "A statement is *reproduced* if it holds within its tolerance or our 95 % interval, an \
             order if every paired\n\
             difference counts and is at least one percent. Otherwise it is graded by the size of \
             the effect: *stronger* or\n\
             *weaker* by at most a factor of two, *sign only*, *not significant*, *opposite*. Where \
             a paper compares with a\n\
             system whose formulas are not public, the *comparator* is *unavailable*, whatever our \
             reconstruction does. A sentence\n\
             that several rows judge, such as that one system is faster than three others, counts \
             once, by the worst of them. The\n\
             rules are in `docs/studies.md`. Nothing is fitted to a figure, save where a study says \
             so: what a paper leaves\n\
             open is assumed once for all of its figures and listed in the study.\n\n";
    let searches: Vec<&Search> =
        results.iter().flat_map(|result| &result.statements).filter_map(|judged| judged.search.as_ref()).collect();
    if !searches.is_empty() {
        let found = searches.iter().filter(|search| search.reproduced().next().is_some()).count();
        text += &format!(
            "Where a statement fails, the last column has the smallest set of its study's other \
             assumptions under which it is\n\
             reproduced with all repetitions: each alone was tried, then pairs and triples. There \
             is one for {found} of {}\n\
             statements; a set that was found among many may owe it to chance.\n\n",
            searches.len()
        );
    }
    text += &by_paper(results);
    for head in paper_heads(results) {
        text += &paper(&head);
    }
    text += "## Every statement\n\n";
    // A column without a single entry would only make the table wider.
    let more = if searches.is_empty() { ["", ""] } else { [" under other assumptions |", "---|"] };
    text += &format!(
        "| study | the paper states | paper | ours | verdict |{}\n|---|---|---|---|---|{}\n",
        more[0], more[1]
    );
    for result in results {
        for judged in &result.statements {
            let verdict = marked(judged);
            let cells = [&result.name, &judged.text, &judged.claim, &judged.ours].map(|cell| escaped(cell));
            let condition = match (&judged.search, searches.is_empty()) {
                (_, true) => String::new(),
                (None, false) => " – |".to_owned(),
                (Some(search), false) => format!(" {} |", escaped(&search.to_string())),
            };
            writeln!(text, "| {} | {verdict} |{condition}", cells.join(" | "))
                .expect("writing to a String cannot fail");
        }
    }
    text += "\n## What failed, what we tried, and what we believe\n";
    for result in results {
        let failed: Vec<&Judged> =
            result.statements.iter().filter(|judged| judged.verdict.standing() != Standing::Holds).collect();
        if failed.is_empty() {
            continue;
        }
        text += &format!("\n### {}: {}\n", result.name, result.title);
        for judged in failed {
            let (text_of_paper, source) = (escaped(&judged.text), escaped(&judged.source));
            text += &format!("\n**{text_of_paper}** ({source}): {}.\n\n", judged.outcome());
            if let Some(sentence) = &judged.sentence {
                text += &format!("- part of: {}\n", escaped(sentence));
            }
            text += &format!("- paper: {}\n- ours: {}\n", judged.claim, judged.ours);
            for detail in &judged.details {
                text += &format!("  - {detail}\n");
            }
            if let Some(search) = &judged.search {
                for tried in search.alone() {
                    text += &format!("- tried, {}: {}, {}\n", tried.name(), tried.outcome(), tried.ours);
                }
                text += &format!("- **{search}**\n");
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
