//! A sweep on the terminal, and its rows as files.

use crate::leaderboard::{against_best, ratio, with_interval};
use crate::number::percent;
use crate::table::Table;
use crate::wrap::wrap;
use anabranch_lab::columnar::Writer;
use anabranch_study::sweep::{Layout, Loss, Row, Share, Standing, Summary};
use std::io::{self, Write};

/// Number of the worst conditions that the terminal shows; JSON and page have all.
const WORST: usize = 3;

/// The tables and how to read them, in lines of at most `width` characters.
pub fn sweep(summary: &Summary, width: usize) -> String {
    let mut text = format!("anabranch {}: {}\n", summary.made_by, size(summary));
    for axis in &summary.axes {
        text += &(wrap(&format!("  {}: {}", axis.name, axis.values), width).join("\n") + "\n");
    }
    text += &format!("\n{}\n", sweep_ranking(summary));
    for note in sweep_notes(summary) {
        text += &(wrap(&note, width).join("\n") + "\n");
    }
    if let Some(first) = summary.standings.first().filter(|it| !it.worst.is_empty()) {
        text += &format!("\nThe worst conditions of {}\n\n", first.system.name);
        for it in first.worst.iter().take(WORST) {
            text += &format!("  {} times {}: {}\n", ratio(it.ratio), best(it), place(it));
            text += &format!("      {}\n", it.command);
            text += &it.best_command.as_ref().map(|command| format!("      {command}\n")).unwrap_or_default();
        }
    }
    if !summary.failed.is_empty() {
        text += &format!("\n{}\n\n", failures(summary));
        for it in &summary.failed {
            for line in wrap(&format!("{} at seed {}: {}", it.name, it.seed, it.problem), width.saturating_sub(2)) {
                text += &format!("  {line}\n");
            }
            text += &format!("      {}\n", it.command);
        }
    }
    text += "\nSystems:\n";
    for it in &summary.standings {
        text += &format!("  {}\n", in_full(it));
    }
    text
}

/// Numbers of conditions and runs.
pub(crate) fn size(summary: &Summary) -> String {
    let all = match summary.done == summary.conditions {
        true => format!("{} conditions", summary.conditions),
        false => format!("{} of {} conditions", summary.done, summary.conditions),
    };
    format!("{all}, {} runs, rows {}", summary.rows, &summary.rows_digest[..12])
}

/// Number of runs that broke, in words.
pub(crate) fn failures(summary: &Summary) -> String {
    let listed = match summary.failures > summary.failed.len() as u64 {
        true => format!(", of which the first {} are", summary.failed.len()),
        false => String::new(),
    };
    format!("{} of {} runs broke{listed}:", summary.failures, summary.rows)
}

/// A system with its policy or settings.
pub(crate) fn in_full(it: &Standing) -> String {
    match it.system.about.starts_with(&it.system.name) {
        true => it.system.about.clone(),
        false => format!("{}: {}", it.system.name, it.system.about),
    }
}

/// The system that a condition is lost against.
pub(crate) fn best(it: &Loss) -> String {
    it.best.clone().unwrap_or_else(|| "plain TCP".to_owned())
}

/// Number of a condition, its scenario, its place on the axes.
pub(crate) fn place(it: &Loss) -> String {
    let axes: Vec<String> = it.at.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("condition {} of {} {}", it.condition, it.scenario, axes.join(" ")).trim_end().to_owned()
}

/// The systems in order.
pub(crate) fn sweep_ranking(summary: &Summary) -> Table {
    let mut table = against_best("system", &["repeated", "unfinished"]);
    let share = |share: Option<Share>| share.map(|it| percent(it.share)).unwrap_or_default();
    for it in &summary.standings {
        let at = |percent: usize| it.regret.get(percent).copied().map(ratio).unwrap_or_default();
        table.row([
            it.rank.to_string(),
            format!("{}{}", it.system.name, if it.oracle { " (oracle)" } else { "" }),
            it.to_best.map(with_interval).unwrap_or_default(),
            share(it.within_2),
            share(it.within_5),
            share(it.within_20),
            at(95),
            at(100),
            it.to_single.map(|it| ratio(it.mean)).unwrap_or_default(),
            share(it.slower_than_single),
            percent(it.repeated),
            if it.unfinished > 0 { it.unfinished.to_string() } else { String::new() },
        ]);
    }
    table
}

/// Explanation of the columns of the ranking.
pub(crate) fn sweep_notes(summary: &Summary) -> Vec<String> {
    let interval = if summary.fixed { "" } else { " ± its 95 % interval" };
    let mut notes = vec![format!(
        "To best: time over that of the best of all other systems, geometric mean over conditions{interval}; the \
         best is chosen on one half of the seeds and judged on the other, both ways. ≤2 %: share of conditions in \
         which it is at most 2 % slower than that. To TCP: the same to plain TCP on the best single path; slower: \
         share of conditions in which it is more than 5 % slower. Repeated: bytes sent again on another subflow, of \
         those sent. A run that does not finish counts until it is stopped."
    )];
    notes.extend(summary.fixed.then(|| {
        "Each condition is one sample: one seed, or seeds that all give the same. Nothing is drawn, so that the means \
         over these conditions tell of no others and have no interval."
            .to_owned()
    }));
    if summary.failures > 0 {
        notes.push("Conditions in which a run broke are left out.".to_owned());
    }
    for (path, why) in &summary.set_aside {
        notes.push(format!("Set aside: {path}: {why}."));
    }
    notes
}

/// Writes the rows of a sweep as they come, to as many files as are wanted.
pub struct Rows<W: Write + Send> {
    layout: Layout,
    csv: Option<csv::Writer<W>>,
    parquet: Option<Writer<W>>,
    /// Rows that are to make a group of the Parquet file.
    waiting: Vec<Vec<anabranch_lab::statistic::Cell>>,
}

/// Rows of a group of a Parquet file.
const GROUP: usize = 20_000;

impl<W: Write + Send> Rows<W> {
    /// Files for rows of this layout.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn new(layout: Layout, csv: Option<W>, parquet: Option<W>) -> io::Result<Self> {
        let columns = layout.columns();
        let mut csv = csv.map(csv::Writer::from_writer);
        if let Some(csv) = &mut csv {
            csv.write_record(columns.iter().map(|(name, _)| name)).map_err(io::Error::other)?;
        }
        let parquet = parquet.map(|file| Writer::new(file, &columns, &[])).transpose().map_err(io::Error::other)?;
        Ok(Rows { layout, csv, parquet, waiting: Vec::new() })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn add(&mut self, rows: &[Row]) -> io::Result<()> {
        if self.csv.is_none() && self.parquet.is_none() {
            return Ok(());
        }
        for row in rows {
            let cells = row.cells(&self.layout);
            if let Some(csv) = &mut self.csv {
                csv.write_record(cells.iter().map(ToString::to_string)).map_err(io::Error::other)?;
            }
            if self.parquet.is_some() {
                self.waiting.push(cells);
            }
        }
        if self.waiting.len() >= GROUP { self.group() } else { Ok(()) }
    }

    fn group(&mut self) -> io::Result<()> {
        if let Some(parquet) = &mut self.parquet {
            parquet.group(&std::mem::take(&mut self.waiting)).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Ends the files: the CSV and the Parquet.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn finish(mut self) -> io::Result<(Option<W>, Option<W>)> {
        self.group()?;
        let csv = self.csv.map(|csv| csv.into_inner().map_err(|error| error.into_error())).transpose()?;
        Ok((csv, self.parquet.map(Writer::finish).transpose().map_err(io::Error::other)?))
    }
}
