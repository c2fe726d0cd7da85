//! Evaluations as sections of a page that an author can attach to a draft.

use super::{Column, Grid, Page, Section};
use crate::Align;
use crate::evaluation::{COLUMNS, cells, found, level, peer, subject, total, what};
use anabranch_study::evaluate::{Evaluation, Judged, OnTestbed, Row, RowVerdict};

impl Page {
    /// A page about these evaluations, made by `command`.
    pub fn of_evaluations(results: &[Evaluation], command: &str) -> Page {
        let title = match results {
            [one] => format!("{} by {}", subject(one), one.suite),
            many => format!("{} congestion controls evaluated", many.len()),
        };
        Page {
            title,
            lead: results.first().map(|it| it.about.clone()).unwrap_or_default(),
            version: anabranch_lab::version_with_build(),
            command: command.to_owned(),
            sections: results.iter().map(Section::of_evaluation).collect(),
        }
    }
}

impl Section {
    /// Everything that an evaluation came to.
    fn of_evaluation(result: &Evaluation) -> Section {
        let quick = "Run with --quick: few conditions. The verdicts of the full evaluation count.".to_owned();
        let has_program = result.testbed.as_ref().is_some_and(|on| on.peer.program.is_some());
        let mut tables = vec![overview(result)];
        tables.extend(result.rows.iter().filter(|row| row.case.is_some()).map(details));
        tables.push(words(result));
        Section {
            name: format!("{}/{}", result.suite, result.control),
            title: subject(result),
            kicker: result.title.clone(),
            citation: result.source.clone(),
            about: total(&result.counts),
            warnings: result.quick.then_some(quick).into_iter().chain(result.testbed.iter().flat_map(late)).collect(),
            tables,
            facts: [
                (if has_program { "client" } else { "congestion control" }.to_owned(), result.control.clone()),
                ("scheduler".to_owned(), result.scheduler.clone().unwrap_or_else(|| "default".to_owned())),
                ("runs".to_owned(), result.runs.to_string()),
                ("Anabranch".to_owned(), anabranch_lab::version_with_build()),
            ]
            .into_iter()
            .chain(result.testbed.iter().flat_map(peer).map(|line| ("testbed".to_owned(), line)))
            .collect(),
            command: result.command.clone(),
            ..Section::default()
        }
    }
}

/// Warnings about runs in real time whose links were late.
fn late(on: &OnTestbed) -> Option<String> {
    let runs = on.late.len();
    (runs > 0).then(|| format!("{runs} runs say little, since the links were late: repeat on a quieter machine."))
}

fn overview(result: &Evaluation) -> Grid {
    Grid {
        caption: "Verdicts".to_owned(),
        columns: COLUMNS.iter().map(|(head, align)| Column::new(*head, *align)).collect(),
        rows: result.rows.iter().map(|row| cells(row).to_vec()).collect(),
        notes: vec![total(&result.counts)],
        shades: Vec::new(),
    }
}

/// Table of the criteria of a case.
fn details(row: &Row) -> Grid {
    let heads = ["criterion", "bound", "verdict", "failed", "worst", "repeat", "reason for the bound"];
    let line = |it: &Judged| {
        let (worst, command) = match &it.worst {
            Some(worst) => (found(it, worst), worst.command.clone()),
            None => ("no number in these conditions".to_owned(), String::new()),
        };
        let share = format!("{} of {}", it.failed, it.checked);
        vec![what(it), it.bound.clone(), it.verdict.name().to_owned(), share, worst, command, it.reason.clone()]
    };
    let not_run = row.not_run.iter().map(|line| format!("Not run: {line}."));
    let notes = [row.asks.clone(), row.test.clone()].into_iter().chain(row.range.iter().cloned()).chain(not_run);
    Grid {
        caption: format!("{} {} ({}): {}", row.section, row.title, level(row.level), row.verdict.name()),
        columns: heads.iter().map(|head| Column::new(*head, Align::Left)).collect(),
        rows: row.criteria.iter().map(line).collect(),
        notes: notes.chain(row.note.clone()).collect(),
        shades: Vec::new(),
    }
}

/// Table of the obligations that no run can meet.
fn words(result: &Evaluation) -> Grid {
    let rows = result.rows.iter().filter(|row| row.case.is_none());
    let line = |row: &Row| {
        let note = row.note.clone().unwrap_or_default();
        let verdict = match row.verdict {
            RowVerdict::ToBeArgued => "to be argued".to_owned(),
            verdict => verdict.name().to_owned(),
        };
        vec![row.section.clone(), level(row.level).to_owned(), row.title.clone(), row.asks.clone(), verdict, note]
    };
    let heads = ["section", "level", "title", "asks", "verdict", "note"];
    Grid {
        caption: "Obligations without a measurement".to_owned(),
        columns: heads.iter().map(|head| Column::new(*head, Align::Left)).collect(),
        rows: rows.map(line).collect(),
        notes: Vec::new(),
        shades: Vec::new(),
    }
}
