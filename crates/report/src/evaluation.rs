//! Evaluations on the terminal and as a document: a row for each requirement, or a column for each control.

use crate::number::short;
use crate::table::{Align, Table};
use crate::wrap::hang;
use anabranch_study::evaluate::file::{Level, Of};
use anabranch_study::evaluate::{Counts, Evaluation, Judged, Kernel, OnTestbed, Row, RowVerdict, Worst};

/// Heads of the columns, with their alignment.
pub(crate) const COLUMNS: [(&str, Align); 6] = [
    ("section", Align::Left),
    ("level", Align::Left),
    ("case", Align::Left),
    ("verdict", Align::Left),
    ("failed", Align::Right),
    ("worst", Align::Left),
];

/// The rows of an evaluation with their verdicts, and what stands behind each; lines of about `width` characters.
pub fn evaluation(result: &Evaluation, width: usize) -> String {
    let mut text = hang("", &format!("{}: {}", subject(result), result.title), width);
    let quick = if result.quick { ", --quick" } else { "" };
    let version = anabranch_lab::version_with_build();
    text += &hang("", &format!("anabranch {version}, {} runs{quick}", result.runs), width);
    for line in result.testbed.iter().flat_map(peer) {
        text += &hang("", &line, width);
    }
    let mut table = Table::new(COLUMNS);
    result.rows.iter().for_each(|row| table.row(cells(row)));
    text += &format!("\n{table}\n");
    text += &hang("", &total(&result.counts), width);
    if result.testbed.is_some() {
        for line in left_out(result) {
            text += &hang("left out   ", &line, width);
        }
    }
    for row in result.rows.iter().filter(|row| row.verdict == RowVerdict::Fail) {
        text += &format!("\n{} {} ({})\n", row.section, row.title, name(row));
        for it in row.criteria.iter().filter(|it| it.verdict == RowVerdict::Fail) {
            text += &hang("  failed   ", &failed(it), width);
            text += &hang("  bound    ", &format!("{}. {}", it.bound, it.reason), width);
            if let Some(worst) = &it.worst {
                text += &format!("  repeat   {}\n", worst.command);
            }
        }
    }
    text
}

/// Markdown document about the results of several controls by one suite, made by `command`.
pub fn evaluation_document(results: &[Evaluation], command: &str) -> String {
    let Some(first) = results.first() else { return String::new() };
    let mut text = format!(
        "# {}\n\nEvery congestion control by every case of {}. Made by `{command}`; do not edit.\n\n{}\n\n",
        escaped(&first.title),
        escaped(&first.source),
        escaped(&first.about)
    );
    text += "A number in the table is that of conditions in which a criterion does not hold, of all in which it was\n";
    text +=
        "judged; of several criteria, of the one that fails most often. Below are the criteria with their reasons,\n";
    text += "and for each failure the worst condition with the command that repeats it. A case is a file of\n";
    text += "`evaluations/`; a suite of your own is a file with a folder of cases beside it.\n";
    let controls: Vec<String> = results.iter().map(|it| format!("`{}`", it.control)).collect();
    text += &format!("\n| section | case | {} |\n|---|---|{}\n", controls.join(" | "), "---|".repeat(controls.len()));
    for (place, row) in first.rows.iter().enumerate().filter(|(_, row)| row.case.is_some()) {
        let cell = |it: &Evaluation| it.rows.get(place).map_or_else(String::new, summary);
        let cells: Vec<String> = results.iter().map(cell).collect();
        text += &format!("| {} | {} | {} |\n", row.section, escaped(&row.title), cells.join(" | "));
    }
    let counts =
        |of: fn(&Counts) -> usize| results.iter().map(|it| of(&it.counts).to_string()).collect::<Vec<_>>().join(" | ");
    text += &format!("| | passed | {} |\n", counts(|counts| counts.passed));
    text += &format!("| | failed | {} |\n", counts(|counts| counts.failed));
    text += "\n## Cases\n";
    // One section for all controls: what a case asks is the same for each, and what fails is compared there.
    for (place, row) in first.rows.iter().enumerate() {
        text += &format!("\n### {} {}\n\n", row.section, escaped(&row.title));
        text += &format!("{} ({}).\n", escaped(row.asks.trim_end_matches('.')), level(row.level));
        let Some(case) = &row.case else {
            text += &format!("\n*{}*: {}\n", row.verdict.name(), escaped(row.note.as_deref().unwrap_or_default()));
            continue;
        };
        text += &format!("\nCase `{case}`: {}\n", escaped(&row.test));
        row.range.iter().for_each(|line| text += &format!("\n- {}", escaped(line)));
        row.not_run.iter().for_each(|line| text += &format!("\n- not run: {}", escaped(line)));
        text += "\n\n";
        for it in &row.criteria {
            text += &format!("- **{}**: {}. {}\n", what(it), escaped(&it.bound), escaped(&it.reason));
        }
        let failures: Vec<String> = results.iter().filter_map(|it| failure(it, place)).collect();
        if !failures.is_empty() {
            text += &format!(
                "\n| control | criterion | failed | worst | repeat |\n|---|---|---|---|---|\n{}",
                failures.concat()
            );
        }
    }
    text
}

/// Rows of a table with the criteria that a control fails in a case.
fn failure(result: &Evaluation, place: usize) -> Option<String> {
    let row = result.rows.get(place)?;
    let failed = row.criteria.iter().filter(|it| it.verdict == RowVerdict::Fail);
    let line = |it: &Judged| {
        let worst = it.worst.as_ref()?;
        let (command, worst) = (escaped(&worst.command), escaped(&found(it, worst)));
        let share = format!("{} of {}", it.failed, it.checked);
        Some(format!("| `{}` | {} | {share} | {worst} | `{command}` |\n", result.control, what(it)))
    };
    let lines: String = failed.filter_map(line).collect();
    (!lines.is_empty()).then_some(lines)
}

/// Verdict of a row in a cell of a table of controls.
fn summary(row: &Row) -> String {
    match row.verdict {
        RowVerdict::Fail => {
            let (failed, checked) = failures(row);
            format!("**{failed}/{checked}**")
        }
        verdict => verdict.name().to_owned(),
    }
}

/// Numbers of failed and of checked conditions of the criterion that fails most often.
fn failures(row: &Row) -> (usize, usize) {
    row.criteria.iter().map(|it| (it.failed, it.checked)).max().unwrap_or_default()
}

/// Sentence that counts the verdicts.
pub(crate) fn total(counts: &Counts) -> String {
    let Counts { passed, failed, not_applicable, not_run, to_be_argued } = counts;
    format!(
        "{passed} cases pass, {failed} fail; {not_applicable} do not apply, {not_run} are not run, {to_be_argued} are \
         to be argued in words."
    )
}

/// Sentences about the system of an evaluation in real time, and about its runs that are in doubt.
pub(crate) fn peer(on: &OnTestbed) -> Vec<String> {
    let Kernel { release, default_control, .. } = &on.peer.kernel;
    let mut lines =
        vec![format!("in real time; kernel {release}, whose sockets use {default_control} unless they choose")];
    lines.extend(on.peer.program.iter().map(|program| format!("server: {}", program.server)));
    lines.extend(on.late.iter().map(|why| format!("a run says little, since its links were late: {why}")));
    lines
}

/// Cases and conditions that were left out, with the reasons.
fn left_out(result: &Evaluation) -> Vec<String> {
    let of_row = |row: &Row| match &row.note {
        Some(note) if row.case.is_some() => vec![format!("{}: {note}", name(row))],
        _ => row.not_run.iter().map(|line| format!("{}, {line}", name(row))).collect(),
    };
    result.rows.iter().flat_map(of_row).collect()
}

/// System that was evaluated.
pub(crate) fn subject(result: &Evaluation) -> String {
    let scheduler = result.scheduler.iter().map(|name| format!(" with scheduler {name}"));
    let sets = result.sets.iter().map(|set| format!(", {set}"));
    [result.control.clone()].into_iter().chain(scheduler).chain(sets).collect()
}

/// Cells of a row, in the order of [`COLUMNS`].
pub(crate) fn cells(row: &Row) -> [String; 6] {
    let (failed, checked) = failures(row);
    let share = if checked > 0 { format!("{failed}/{checked}") } else { String::new() };
    let worst = row.deciding().and_then(|it| Some((it, it.worst.as_ref()?)));
    let worst = worst.map_or_else(|| brief(row), |(it, worst)| found(it, worst));
    let verdict = row.verdict.name().to_owned();
    [row.section.clone(), level(row.level).to_owned(), name(row), verdict, share, worst]
}

fn brief(row: &Row) -> String {
    row.title.clone()
}

/// Name of a case without that of its suite.
fn name(row: &Row) -> String {
    let case = row.case.as_deref().map(|case| case.rsplit_once('/').map_or(case, |(_, short)| short));
    case.map_or("–", |case| case.strip_suffix(".toml").unwrap_or(case)).to_owned()
}

/// Level as the document writes it.
pub(crate) fn level(level: Level) -> &'static str {
    match level {
        Level::Must => "MUST",
        Level::Should => "SHOULD",
        Level::Advice => "should",
        Level::Case => "case",
    }
}

/// Number that a criterion is about: `goodput lost by rivals`.
pub(crate) fn what(it: &Judged) -> String {
    let of = match it.of {
        Of::Own => "own",
        Of::Rival => "rival's",
        Of::All => "all flows'",
        Of::First => "first flow's",
        Of::Last => "last flow's",
    };
    match it.harm {
        true => format!("{of} {} lost", it.metric),
        false => format!("{of} {}", it.metric),
    }
}

fn failed(it: &Judged) -> String {
    let found = it.worst.as_ref().map(|worst| found(it, worst)).unwrap_or_default();
    format!("in {} of {} conditions: {found}", it.failed, it.checked)
}

/// Worst condition in words: `rival's loss 3.1 %, limit 0.52 % (cubic 0.26 %): 2 Mbit/s, 20 ms beside reno`.
pub(crate) fn found(it: &Judged, worst: &Worst) -> String {
    let number = |x: f64| format!("{} {}", short(x), it.unit).trim_end().to_owned();
    let standard = worst.standard.as_ref().map(|(name, x)| format!(" ({name} {})", number(*x))).unwrap_or_default();
    let beside = worst.rival.as_ref().map(|rival| format!(" beside {rival}")).unwrap_or_default();
    let place = format!("{}{beside}", worst.condition);
    let (value, limit) = (number(worst.value), number(worst.limit));
    format!("{} {value}, limit {limit}{standard}: {}", what(it), place.trim())
}

fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}
