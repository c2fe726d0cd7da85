//! Plain tables: columns as wide as they must be, numbers to the right.

use std::fmt;

/// Alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Cells in rows under a header; prints with spaces between columns and a line under the header.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of these columns.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Self {
        Table { columns: columns.into_iter().map(|(name, align)| (name.to_owned(), align)).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells stay empty, and there is no place for more than the header has.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut row: Vec<String> = cells.into_iter().take(self.columns.len()).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// Columns and rows.
    pub(crate) fn into_parts(self) -> (Vec<(String, Align)>, Vec<Vec<String>>) {
        (self.columns, self.rows)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.columns[column].0.chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let header: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        self.line(f, &widths, &header)?;
        self.line(f, &widths, &rule.iter().map(String::as_str).collect::<Vec<_>>())?;
        for row in &self.rows {
            self.line(f, &widths, &row.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

impl Table {
    fn line(&self, f: &mut fmt::Formatter<'_>, widths: &[usize], cells: &[&str]) -> fmt::Result {
        let mut line = String::new();
        for ((cell, width), (_, align)) in cells.iter().zip(widths).zip(&self.columns) {
            let padding = " ".repeat(width - cell.chars().count());
            line += "  ";
            match align {
                Align::Left => line.extend([*cell, &padding]),
                Align::Right => line.extend([padding.as_str(), *cell]),
            }
        }
        writeln!(f, "{}", line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_right_and_words_left() {
        let mut table = Table::new([("path", Align::Left), ("share", Align::Right)]);
        table.row(["wlan".to_owned(), "63 %".to_owned()]);
        table.row(["satellite".to_owned(), "7 %".to_owned()]);
        table.row(["±".to_owned()]);
        insta::assert_snapshot!(table.to_string(), @r"
          path       share
          ─────────  ─────
          wlan        63 %
          satellite    7 %
          ±
        ");
    }
}
