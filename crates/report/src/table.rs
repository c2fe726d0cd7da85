//! Plain tables: columns as wide as they must be, numbers to the right, in lines of at most 80 characters.

use anabranch_units::in_one_line;
use std::fmt;

/// Alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Cells in rows under a header; prints with spaces between columns and a line under the header. Where a line has no
/// room, heads are broken; columns that have none even then stand below, beside the first columns again.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of these columns.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Self {
        Table { columns: columns.into_iter().map(|(name, align)| (cell(name), align)).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells stay empty, and there is no place for more than the header has.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut row: Vec<String> = cells.into_iter().take(self.columns.len()).map(|text| cell(&text)).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// Columns and rows.
    pub(crate) fn into_parts(self) -> (Vec<(String, Align)>, Vec<Vec<String>>) {
        (self.columns, self.rows)
    }
}

/// Names come from files and from the network, and what a terminal does not show would move the columns.
fn cell(text: &str) -> String {
    in_one_line(text).into_owned()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (heads, widths) = self.heads();
        for (n, shown) in self.parts(&widths).iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            let lines = shown.iter().map(|column| heads[*column].len()).max().unwrap_or(0);
            for line in 0..lines {
                // They stand on the rule, so that the last line is full.
                let head =
                    |column: usize| (line + heads[column].len()).checked_sub(lines).map(|at| &*heads[column][at]);
                self.line(f, &widths, shown, |column| head(column).unwrap_or_default().to_owned())?;
            }
            self.line(f, &widths, shown, |column| "─".repeat(widths[column]))?;
            let keys = self.keys();
            for row in &self.rows {
                // Below, only rows that have something there.
                if n == 0 || shown.iter().any(|column| *column >= keys && !row[*column].is_empty()) {
                    self.line(f, &widths, shown, |column| row[column].clone())?;
                }
            }
        }
        Ok(())
    }
}

impl Table {
    /// Lines of the head of each column, and the width of each column. Where a line has no room for whole heads, those
    /// wider than what is below them are broken between words.
    fn heads(&self) -> (Vec<Vec<String>>, Vec<usize>) {
        let length = |text: &str| text.chars().count();
        let below = |column: usize| self.rows.iter().map(|row| length(&row[column])).max().unwrap_or(0);
        let width =
            |column: usize, head: &[String]| head.iter().map(|line| length(line)).fold(below(column), usize::max);
        let whole: Vec<Vec<String>> = self.columns.iter().map(|(head, _)| vec![head.clone()]).collect();
        let widths =
            |heads: &[Vec<String>]| heads.iter().enumerate().map(|(n, head)| width(n, head)).collect::<Vec<_>>();
        let wide = widths(&whole);
        if wide.iter().map(|width| 2 + width).sum::<usize>() <= WIDTH {
            return (whole, wide);
        }
        let broken = |(column, (head, _)): (usize, &(String, Align))| {
            let longest = head.split(' ').map(length).max().unwrap_or(0);
            crate::wrap(head, longest.max(below(column)).max(1))
        };
        let broken: Vec<Vec<String>> = self.columns.iter().enumerate().map(broken).collect();
        let widths = widths(&broken);
        (broken, widths)
    }

    /// Number of columns that name a row: up to the first of words.
    fn keys(&self) -> usize {
        self.columns.iter().position(|(_, align)| *align == Align::Left).map_or(1, |first| first + 1)
    }

    /// Columns that stand beside one another, part by part. One that is too wide by itself, such as a command, widens
    /// the line.
    fn parts(&self, widths: &[usize]) -> Vec<Vec<usize>> {
        let taken = |columns: &[usize]| columns.iter().map(|column| 2 + widths[*column]).sum::<usize>();
        let keys: Vec<usize> = (0..self.keys().min(widths.len())).collect();
        let all: Vec<usize> = (0..widths.len()).collect();
        let widest = all[keys.len()..].iter().map(|column| 2 + widths[*column]).max().unwrap_or(0);
        if taken(&all) <= WIDTH || taken(&keys) + widest > WIDTH {
            return vec![all];
        }
        let mut parts = vec![keys.clone()];
        for column in all.into_iter().skip(keys.len()) {
            let last = parts.last_mut().expect("there is one from the beginning");
            if last.len() > keys.len() && taken(last) + 2 + widths[column] > WIDTH {
                parts.push(keys.iter().copied().chain([column]).collect());
            } else {
                last.push(column);
            }
        }
        parts
    }

    fn line(
        &self,
        f: &mut fmt::Formatter<'_>,
        widths: &[usize],
        shown: &[usize],
        cell: impl Fn(usize) -> String,
    ) -> fmt::Result {
        let mut line = String::new();
        for column in shown {
            let cell = cell(*column);
            let padding = " ".repeat(widths[*column] - cell.chars().count());
            line += "  ";
            match self.columns[*column].1 {
                Align::Left => line.extend([cell, padding]),
                Align::Right => line.extend([padding, cell]),
            }
        }
        writeln!(f, "{}", line.trim_end())
    }
}

/// Characters in a line of a terminal.
const WIDTH: usize = 80;

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

    #[test]
    fn heads_are_broken_and_columns_without_room_stand_below() {
        let numbers = ["completion time [s]", "to min-rtt [s]", "blocked: cwnd", "via wlan", "via lte", "reinjected"];
        let columns = [("#", Align::Right), ("scheduler", Align::Left)].into_iter();
        let mut table = Table::new(columns.chain(numbers.map(|name| (name, Align::Right))));
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        table.row(row(&["1", "late", "0.799 ± 0.045", "+0.00109 ± 0.00071 *", "681 ms", "51 %", "49 %", "72.4 kB"]));
        table.row(row(&["", "plain TCP on wlan", "1.94 ± 0.15"]));
        let text = table.to_string();
        let expected = [
            "                           completion                        blocked:   via",
            "  #  scheduler               time [s]        to min-rtt [s]      cwnd  wlan",
            "  ─  ─────────────────  ─────────────  ────────────────────  ────────  ────",
            "  1  late               0.799 ± 0.045  +0.00109 ± 0.00071 *    681 ms  51 %",
            "     plain TCP on wlan    1.94 ± 0.15",
            "",
            "                         via",
            "  #  scheduler           lte  reinjected",
            "  ─  ─────────────────  ────  ──────────",
            "  1  late               49 %     72.4 kB",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_column_wider_than_a_line_does_not_tear_the_table() {
        let mut table = Table::new([("seed", Align::Right), ("problem", Align::Left), ("command", Align::Left)]);
        table.row(["1".to_owned(), "stalled".to_owned(), "anabranch run ".repeat(6)]);
        assert_eq!(table.to_string().lines().count(), 3);
    }
}
