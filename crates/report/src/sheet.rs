//! Results as rows under typed columns: one row per run with every statistic, as CSV and as Apache Parquet.

use crate::rows::{Header, Row};
use ::parquet::errors::ParquetError;
use anabranch_lab::columnar::Writer;
use anabranch_lab::statistic::{Cell, Kind, STATISTICS, Statistic};
use anabranch_lab::{Measured, VERSION, build};
use anabranch_scenario::Variant;
use anabranch_study::rank::Field;
use anabranch_study::study::{StudyResult, StudyRow};
use anabranch_study::sweep::Trial;
use anabranch_units::in_one_line;

/// Rows under typed columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    columns: Vec<(String, Kind)>,
    rows: Vec<Vec<Cell>>,
}

impl Sheet {
    /// The runs of one scenario, or of a comparison: what identifies a row, its statistics, and the policies that ran.
    pub fn of_runs(header: &Header, rows: &[Row<'_>]) -> Sheet {
        Sheet::with_statistics(&STATISTICS, header, rows)
    }

    pub(crate) fn with_statistics(statistics: &[Statistic], header: &Header, rows: &[Row<'_>]) -> Sheet {
        let text = |text: &str| Cell::Text(text.to_owned());
        let mut sheet = Sheet::of_texts(["version", "build", "scenario", "digest", "kind", "name"], rows.len());
        sheet.fill(rows, |row| {
            let whose = [text(header.version), text(header.build), text(&header.scenario), text(&header.digest)];
            whose.into_iter().chain([text(row.kind), text(row.name)]).collect()
        });
        sheet.statistics(statistics, rows.iter().map(|row| (row.measured, header.paths.as_slice())));
        sheet.columns.push(("policies".to_owned(), Kind::Text));
        sheet.fill(rows, |row| vec![Cell::Text(row.policies_in_words())]);
        sheet
    }

    /// The runs of a study; its axes are columns.
    pub fn of_study(result: &StudyResult, rows: &[StudyRow]) -> Sheet {
        let text = |text: &str| Cell::Text(text.to_owned());
        let mut sheet = Sheet::of_texts(["version", "build", "study", "system"], rows.len());
        sheet.fill(rows, |row| vec![text(&result.version), text(&result.build), text(&result.name), text(&row.system)]);
        let axes = rows.first().map_or(&[][..], |row| row.axes.as_slice());
        sheet.columns.extend(axes.iter().map(|(name, _)| (name.clone(), Kind::Number)));
        sheet.fill(rows, |row| row.axes.iter().map(|(_, x)| Cell::number(Some(*x))).collect());
        sheet.columns.push(("digest".to_owned(), Kind::Text));
        sheet.fill(rows, |row| vec![text(&row.digest)]);
        sheet.statistics(&STATISTICS, rows.iter().map(|row| (&row.measured, row.paths.as_slice())));
        sheet.columns.push(("command".to_owned(), Kind::Text));
        sheet.fill(rows, |row| vec![text(&row.command)]);
        sheet
    }

    /// The runs of a leaderboard, each with what its condition is; `schedulers` names those of the fields.
    pub fn of_fields(fields: &[Field], schedulers: &[Variant]) -> Sheet {
        let kinds = [
            ("version", Kind::Text),
            ("build", Kind::Text),
            ("condition", Kind::Text),
            ("digest", Kind::Text),
            ("workload", Kind::Text),
            ("paths", Kind::Count),
            ("rtt_ratio", Kind::Number),
            ("loss", Kind::Text),
            ("dynamics", Kind::Text),
            ("congestion", Kind::Text),
            ("receive_buffer_bytes", Kind::Count),
            ("kind", Kind::Text),
            ("name", Kind::Text),
            ("seed", Kind::Count),
        ];
        let text = |text: &str| Cell::Text(text.to_owned());
        let mut rows = Vec::new();
        for field in fields {
            let it = &field.condition;
            let condition = [
                text(VERSION),
                text(build()),
                text(&it.name()),
                text(&field.trials.digest),
                text(it.work.name()),
                Cell::Count(it.paths.len() as u64),
                Cell::number(Some(it.rtt_ratio())),
                text(it.loss.name()),
                text(it.dynamics.name()),
                text(it.congestion),
                it.receive_buffer.map_or(Cell::Empty, Cell::Count),
            ];
            let named = schedulers.iter().zip(&field.trials.systems);
            let systems = named.map(|(variant, trials)| ("scheduler", &variant.name, trials));
            let singles = field.trials.singles.iter().map(|(path, trials)| ("single-path", path, trials));
            let backups = field.trials.backups.iter().map(|(path, trials)| ("backups", path, trials));
            for (kind, name, trials) in systems.chain(singles).chain(backups) {
                for trial in trials {
                    let mut row = condition.to_vec();
                    row.extend([text(kind), text(name), Cell::Count(trial.seed)]);
                    row.extend(trial.cells());
                    rows.push(row);
                }
            }
        }
        let columns = kinds.iter().chain(&Trial::COLUMNS).map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        Sheet { columns, rows }
    }

    /// These rows; each has a cell for every column.
    pub fn new(columns: Vec<(String, Kind)>, rows: Vec<Vec<Cell>>) -> Sheet {
        Sheet { columns, rows }
    }

    /// Name and type of each column.
    pub fn columns(&self) -> &[(String, Kind)] {
        &self.columns
    }

    /// The cells of each row, in the order of columns.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    fn of_texts<const N: usize>(columns: [&str; N], rows: usize) -> Sheet {
        let columns = columns.map(|name| (name.to_owned(), Kind::Text)).to_vec();
        Sheet { columns, rows: vec![Vec::new(); rows] }
    }

    fn fill<R>(&mut self, rows: &[R], cells: impl Fn(&R) -> Vec<Cell>) {
        for (cells_so_far, row) in self.rows.iter_mut().zip(rows) {
            cells_so_far.extend(cells(row));
        }
    }

    /// Adds these statistics, one run per row. Runs may differ in paths and windows: each column of any run is there.
    fn statistics<'a>(
        &mut self,
        statistics: &[Statistic],
        runs: impl Iterator<Item = (&'a Measured, &'a [String])> + Clone,
    ) {
        for statistic in statistics {
            let of_runs: Vec<Vec<(String, Cell)>> =
                runs.clone().map(|(measured, paths)| statistic.columns(measured, paths)).collect();
            let before = self.columns.len();
            if statistic.is_single() {
                self.columns.push((statistic.name.to_string(), statistic.kind()));
            }
            for (name, _) in of_runs.iter().flatten() {
                if !self.columns[before..].iter().any(|(known, _)| known == name) {
                    self.columns.push((name.clone(), statistic.kind()));
                }
            }
            for (row, mut cells) in self.rows.iter_mut().zip(of_runs) {
                row.extend(self.columns[before..].iter().map(|(name, _)| {
                    let held = cells.iter_mut().find(|(known, _)| known == name);
                    held.map_or(Cell::Empty, |(_, cell)| std::mem::replace(cell, Cell::Empty))
                }));
            }
        }
    }

    /// Writes CSV with a line of column names.
    ///
    /// # Errors
    /// If the writer refuses a row, which would be a bug of ours.
    pub fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns.iter().map(|(name, _)| in_one_line(name).into_owned()))?;
        let mut head = writer.into_inner().map_err(|error| error.into_error())?;
        head.append(&mut self.csv_rows()?);
        Ok(head)
    }

    /// Writes the rows of the CSV without its head.
    ///
    /// # Errors
    /// If the writer refuses a row, which would be a bug of ours.
    pub fn csv_rows(&self) -> Result<Vec<u8>, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in &self.rows {
            writer.write_record(row.iter().map(|cell| in_one_line(&cell.to_string()).into_owned()))?;
        }
        Ok(writer.into_inner().map_err(|error| error.into_error())?)
    }

    /// Writes Parquet, uncompressed, with the columns of the CSV and their types.
    ///
    /// # Errors
    /// If the writer refuses a column, which would be a bug of ours.
    pub fn parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let mut writer = Writer::new(Vec::new(), &self.columns, &[])?;
        writer.group(&self.rows)?;
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_commands_the_terminal_that_shows_a_csv() {
        let columns = vec![("share_\u{1b}[31m".to_owned(), Kind::Text)];
        let sheet = Sheet::new(columns, vec![vec![Cell::Text("a\u{202e}b, c".to_owned())]]);
        assert_eq!(sheet.csv().expect("it is written into memory"), b"share_\\u001b[31m\n\"a\\u202eb, c\"\n");
    }
}
