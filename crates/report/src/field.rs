//! Field studies on the terminal and as a document: measured numbers beside predicted ranges.

use crate::number::short;
use crate::table::{Align, Table};
use crate::wrap::hang;
use anabranch_study::field::{FieldResult, FieldRow, FieldVerdict};

/// Heads of the columns, with their alignment.
pub(crate) const COLUMNS: [(&str, Align); 6] = [
    ("row", Align::Left),
    ("measured", Align::Right),
    ("predicted", Align::Right),
    ("90 % of the draws", Align::Right),
    ("±", Align::Right),
    ("measured is", Align::Left),
];

/// The rows of a field study with their verdicts, and the conditions; lines of about `width` characters.
pub fn field(result: &FieldResult, width: usize) -> String {
    let mut text = hang("", &format!("{}: {}", result.name, result.title), width);
    let quick = if result.quick { ", --quick" } else { "" };
    let version = format!("{} (build {})", result.version, result.build);
    text += &hang("", &format!("anabranch {version}, {} runs, {}{quick}", result.runs, draws(result)), width);
    let mut table = Table::new(COLUMNS);
    result.rows.iter().for_each(|row| table.row(cells(row)));
    text += &format!("\n{table}\n");
    text += &hang("", &total(result), width);
    text += "\n";
    text += &hang("measured by  ", &result.source, width);
    text += &hang("stack        ", &result.stack, width);
    for it in &result.unrecorded {
        text += &hang("drawn        ", &format!("{}: {}. {}", it.name, it.range, it.reason), width);
    }
    for row in &result.rows {
        if let Some(note) = &row.note {
            text += &hang("note         ", &format!("{}: {note}", row.name), width);
        }
    }
    for it in &result.left_out {
        text += &hang("left out     ", &format!("{}: {}", it.what, it.why), width);
    }
    text
}

/// Markdown document about the results of several field studies, made by `command`.
pub fn field_document(results: &[FieldResult], command: &str) -> String {
    let (inside, rows) = results.iter().fold((0, 0), |(inside, rows), it| (inside + it.inside, rows + it.rows.len()));
    let mut text = format!(
        "# Measured elsewhere, predicted here\n\n\
         Results that others measured, beside what is predicted from their inputs. Made by `{command}`; do not\n\
         edit. What nobody recorded is drawn from a range that was fixed, with its reason, before the first run; a\n\
         prediction is the middle 90 % of the draws. Nothing is fitted, and rows that stay outside are shown as they\n\
         are. *Below* means that the measured number is smaller than the draws; for times that is faster.\n\n\
         In all: **measured inside the predicted range in {inside} of {rows} rows.** `docs/studies.md` tells how such\n\
         a study is written.\n"
    );
    for result in results {
        text += &format!("\n## {}: {}\n\n{}\n\n", result.name, escaped(&result.title), escaped(&result.about));
        text += &format!("Measured by: {}\n\nStack: {}\n\n", escaped(&result.source), escaped(&result.stack));
        if let Some(data) = &result.data {
            text += &format!("Recordings: `{}`. Licence: {}.\n\n", data.fetch, escaped(&data.licence));
        }
        let heads: Vec<&str> = COLUMNS.iter().map(|(head, _)| *head).collect();
        text += &format!("| {} | source |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len() + 1));
        for row in &result.rows {
            let mut all: Vec<String> = cells(row).iter().map(|cell| escaped(cell)).collect();
            // A reader looks for what failed first.
            if row.verdict != FieldVerdict::Inside
                && let Some(verdict) = all.last_mut()
            {
                *verdict = format!("**{verdict}**");
            }
            text += &format!("| {} | {} |\n", all.join(" | "), escaped(&row.source));
        }
        text += &format!("\n{}\n\n{}.\n", total(result), capital(&draws(result)));
        text += "\n| not recorded | drawn from | reason |\n|---|---|---|\n";
        for it in &result.unrecorded {
            let all = [&it.name, &it.range, &it.reason].map(|cell| escaped(cell));
            text += &format!("| {} |\n", all.join(" | "));
        }
        for (row, note) in result.rows.iter().filter_map(|row| Some((row, row.note.as_ref()?))) {
            text += &format!("\n- **{}**: {}", escaped(&row.name), escaped(note));
        }
        for it in &result.left_out {
            text += &format!("\n- left out, {}: {}", escaped(&it.what), escaped(&it.why));
        }
        text += "\n";
    }
    text
}

/// Part of the measured number by which a median may differ and be called near.
const NEAR: f64 = 0.1;

/// Sentences that count the rows: `Measured inside the predicted range in 5 of 8 rows; …`.
pub(crate) fn total(result: &FieldResult) -> String {
    let widest = match result.widest_percent {
        Some(widest) => format!("; the widest range is ±{} %", short(widest)),
        None => String::new(),
    };
    let near = |row: &&FieldRow| row.predicted.is_some_and(|it| (it.median / row.measured - 1.0).abs() <= NEAR);
    format!(
        "Measured inside the predicted range in {} of {} rows{widest}. The median of the draws is within {} of the \
         measured number in {} rows.",
        result.inside,
        result.rows.len(),
        crate::percent(NEAR),
        result.rows.iter().filter(near).count()
    )
}

/// Number of draws of each row.
fn draws(result: &FieldResult) -> String {
    let counts = result.rows.iter().map(|row| row.draws);
    match (counts.clone().min(), counts.max()) {
        (Some(least), Some(most)) if least != most => format!("{least} to {most} draws for each row"),
        (_, most) => format!("{} draws for each row", most.unwrap_or(0)),
    }
}

/// Cells of a row, in the order of [`COLUMNS`].
pub(crate) fn cells(row: &FieldRow) -> [String; 6] {
    let (unit, size) = match row.unit.as_str() {
        "bit/s" => ("Mbit/s", 1e6),
        unit => (unit, 1.0),
    };
    let show = |x: f64| digits(x / size);
    let (median, range, half) = match row.predicted {
        Some(it) => {
            let half = it.half_percent();
            (show(it.median), format!("{} to {}", show(it.low), show(it.high)), format!("{half:.1} %"))
        }
        None => ("–".to_owned(), "–".to_owned(), "–".to_owned()),
    };
    let measured = format!("{} {unit}", show(row.measured));
    [row.name.clone(), measured.trim_end().to_owned(), median, range, half, row.verdict.name().to_owned()]
}

/// Four significant digits.
fn digits(x: f64) -> String {
    let places = (0..4usize).find(|places| x.abs() * [1.0, 10.0, 100.0, 1e3][*places] >= 999.5).unwrap_or(4);
    format!("{x:.places$}")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_study::field::Range;

    fn row(predicted: Option<Range>, verdict: FieldVerdict) -> FieldRow {
        FieldRow {
            name: "a".to_owned(),
            source: "Fig. 1 | left".to_owned(),
            metric: "goodput".to_owned(),
            unit: "bit/s".to_owned(),
            measured: 229e6,
            predicted,
            verdict,
            draws: 20,
            predictions: Vec::new(),
            note: Some("slow".to_owned()),
        }
    }

    #[test]
    fn a_row_says_what_was_measured_and_what_was_predicted() {
        let range = Range { low: 200e6, median: 250e6, high: 260e6 };
        let shown = cells(&row(Some(range), FieldVerdict::Inside));
        assert_eq!(shown, ["a", "229.0 Mbit/s", "250.0", "200.0 to 260.0", "12.0 %", "inside"]);
        let none = cells(&row(None, FieldVerdict::NoPrediction));
        assert_eq!(none[2..], ["–", "–", "–", "no prediction"]);
        assert_eq!((digits(0.2461), digits(12.345), digits(1234.5)), ("0.2461".into(), "12.35".into(), "1234".into()));
    }
}
