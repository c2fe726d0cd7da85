//! Why a run took as long as it did, for a terminal: the sentence, bars over time, tables.

use crate::number::{percent, with_interval};
use crate::{Align, Table, hang, wrap};
use anabranch_lab::stats::Estimate;
use anabranch_why::{Answer, Interval, LIMITS, Limit, Measure, PathTime, Share, Transfer, Tried};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Shares below this are summed up in one line.
const SMALL: f64 = 0.005;

/// Formats an answer for lines of `width` characters.
pub fn why(answer: &Answer, width: usize) -> String {
    let mut text = wrap(&answer.sentence, width).join("\n") + "\n";
    // Of several transfers the longest tells most.
    if let Some(longest) = answer.longest() {
        text += &format!("\n{}", bars(answer, longest, width));
    }
    text += &format!("\n{}", limits(&answer.shares, answer.repeat));
    if !answer.counterfactuals.is_empty() {
        text += &format!("\n{}", counterfactuals_table(answer, width));
    }
    if !answer.left_out.is_empty() {
        text += "\nNot tried:\n";
        for (because, all) in left_out(answer) {
            text += &match all.as_slice() {
                [one] => hang(&format!("  {one}: "), because, width),
                all => format!("  {because}:\n{}", hang("    ", &all.join(", "), width)),
            };
        }
    }
    text
}

/// Changes that were not tried, by their reason.
pub(crate) fn left_out(answer: &Answer) -> Vec<(&str, Vec<&str>)> {
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for left in &answer.left_out {
        match by_reason.iter_mut().find(|(because, _)| *because == left.because) {
            Some((_, all)) => all.push(&left.what),
            None => by_reason.push((&left.because, vec![&left.what])),
        }
    }
    by_reason
}

/// One bar for the connection and one for each path, with a legend of the letters.
fn bars(answer: &Answer, transfer: &Transfer, width: usize) -> String {
    let label = answer.paths.iter().map(|path| path.chars().count()).max().unwrap_or(0).max("connection".len());
    let columns = width.saturating_sub(label + 4).clamp(10, 120);
    let mut text = String::new();
    if answer.transfers.len() > 1 {
        let place = format!("{} of connection {}", transfer.label, transfer.connection);
        text += &format!("{place}, the longest of {} transfers; seed {}:\n", answer.transfers.len(), answer.seed);
    }
    let rows = Rows {
        from_ns: transfer.from_ns,
        time_ns: transfer.time_ns,
        connection: &transfer.intervals,
        paths: &transfer.paths,
    };
    text + &draw(&rows, label, columns, &answer.shares, width)
}

/// Bars over the same time.
pub(crate) struct Rows<'a> {
    pub from_ns: u64,
    pub time_ns: u64,
    pub connection: &'a [Interval],
    pub paths: &'a [PathTime],
}

/// Draws bars, with a legend of the letters in them and of the limits with a line in the table.
pub(crate) fn draw(rows: &Rows<'_>, label: usize, columns: usize, shares: &[Share], width: usize) -> String {
    let mut text = String::new();
    let mut used = BTreeSet::new();
    let paths = rows.paths.iter().map(|path| (path.path.as_str(), path.intervals.as_slice()));
    for (name, intervals) in [("connection", rows.connection)].into_iter().chain(paths) {
        let bar = bar(rows, intervals, columns, &mut used);
        writeln!(text, "{name:<label$}  │{bar}│").expect("writing to a String cannot fail");
    }
    let end = format!("{:.3} s", rows.time_ns as f64 / 1e9);
    writeln!(text, "{:<label$}  0{end:>columns$}", "").expect("writing to a String cannot fail");
    // The table names limits too that take less than half of every column.
    used.extend(shares.iter().filter(|share| share.share >= SMALL).map(|share| share.limit));
    for entry in LIMITS.iter().filter(|entry| used.contains(&entry.limit)) {
        text += &hang(&format!("{:label$}  {} {}: ", "", entry.letter, entry.name), entry.meaning, width);
    }
    text
}

/// The letter of the limit that took most of each column's time.
fn bar(rows: &Rows<'_>, intervals: &[Interval], columns: usize, used: &mut BTreeSet<Limit>) -> String {
    let (begin, length) = (rows.from_ns, rows.time_ns);
    let edge = |column: usize| begin + (u128::from(length) * column as u128 / columns as u128) as u64;
    let mut rest = intervals;
    let mut bar = String::new();
    for column in 0..columns {
        let (from, to) = (edge(column), edge(column + 1));
        while rest.first().is_some_and(|interval| interval.to_ns <= from) {
            rest = &rest[1..];
        }
        let mut times: BTreeMap<Limit, u64> = BTreeMap::new();
        for interval in rest.iter().take_while(|interval| interval.from_ns < to) {
            *times.entry(interval.limit).or_default() += interval.to_ns.min(to) - interval.from_ns.max(from);
        }
        let most = times.into_iter().max_by_key(|(_, time)| *time);
        bar.push(most.map_or(' ', |(limit, _)| limit.entry().letter));
        used.extend(most.map(|(limit, _)| limit));
    }
    bar
}

/// The table of limits.
pub(crate) fn limits(shares: &[Share], repeat: usize) -> String {
    limits_table(shares, repeat).to_string()
}

/// The same as a table.
pub(crate) fn limits_table(shares: &[Share], repeat: usize) -> Table {
    let columns = [("limit", Align::Left), ("path", Align::Left), ("time [s]", Align::Right), ("share", Align::Right)];
    let mut table = Table::new(columns);
    let runs = repeat.max(1) as f64;
    let seconds = |nanos: u64| format!("{:.3}", nanos as f64 / 1e9 / runs);
    for share in shares.iter().filter(|share| share.share >= SMALL) {
        let path = share.path.clone().unwrap_or_default();
        table.row([share.limit.name().to_owned(), path, seconds(share.time_ns), percent(share.share)]);
    }
    let small: Vec<_> = shares.iter().filter(|share| share.share < SMALL).collect();
    if !small.is_empty() {
        let (time, share) = (small.iter().map(|it| it.time_ns).sum(), small.iter().map(|it| it.share).sum());
        let others = format!("{} other{}", small.len(), if small.len() == 1 { "" } else { "s" });
        table.row([others, String::new(), seconds(time), percent(share)]);
    }
    table
}

/// The table of counterfactuals, the best first.
pub(crate) fn counterfactuals_table(answer: &Answer, width: usize) -> Table {
    let (scale, unit) = if answer.unit == "s" { (1.0, "s") } else { (1e6, "Mbit/s") };
    let value = format!("{} [{unit}]", answer.measure.replace('-', " "));
    let difference = format!("difference [{unit}]");
    let mut table =
        Table::new([("with", Align::Left), (value.as_str(), Align::Right), (difference.as_str(), Align::Right)]);
    let cell = |it: Measure, sign: bool| with_interval(&Estimate::from(it), scale, sign);
    let bound = |text: String, unfinished: usize| if unfinished > 0 { format!("≥ {text}") } else { text };
    let as_is = bound(cell(answer.value, false), answer.unfinished_runs);
    let mut rows = vec![["as it is".to_owned(), as_is, String::new()]];
    let better = |tried: &&Tried| {
        let gain = tried.difference.map_or(f64::NEG_INFINITY, |it| it.mean);
        if answer.unit == "s" { -gain } else { gain }
    };
    let mut order: Vec<&Tried> = answer.counterfactuals.iter().collect();
    order.sort_by(|a, b| {
        let key = |tried: &&Tried| tried.difference.map_or(f64::NEG_INFINITY, |_| better(tried));
        key(b).total_cmp(&key(a))
    });
    for tried in order {
        let least = usize::from(tried.at_least);
        let difference = tried.difference.map_or("not finished".to_owned(), |it| bound(cell(it, true), least));
        rows.push([tried.what.clone(), bound(cell(tried.value, false), tried.unfinished_runs + least), difference]);
    }
    // Long names of paths go on in further lines, so that the numbers keep their place.
    let length = |text: &str| text.chars().count();
    let widest = |column: usize, name: &str| rows.iter().map(|row| length(&row[column])).fold(length(name), usize::max);
    let room = width.saturating_sub(6 + widest(1, &value) + widest(2, &difference)).max(20);
    for [what, value, difference] in rows {
        let mut lines = wrap(&what, room).into_iter();
        table.row([lines.next().unwrap_or_default(), value, difference]);
        lines.for_each(|line| table.row([format!("  {line}")]));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_why::Kind;

    /// However long the names of paths are, a line has at most 80 characters, and no number is lost.
    #[test]
    fn long_names_keep_to_the_width() {
        let measure = |mean: f64| Measure { mean, half: Some(0.001), n: 3 };
        let path = "a-path-with-a-name-that-is-quite-long".to_owned();
        let tried = Tried {
            kind: Kind::FirstPath,
            what: format!("the first subflow on {path}"),
            cause: None,
            instead: None,
            usual: false,
            sets: Vec::new(),
            value: measure(1.25),
            difference: Some(measure(-0.25)),
            larger: 0,
            smaller: 3,
            unfinished_runs: 0,
            at_least: false,
        };
        let share = |limit, time_ns: u64| Share { limit, path: None, time_ns, share: time_ns as f64 / 1e9 };
        let answer = Answer {
            scenario: "test".to_owned(),
            digest: String::new(),
            sets: Vec::new(),
            seed: 1,
            runs: 0,
            events: 0,
            budget: None,
            stopped: false,
            repeat: 1,
            paths: vec![path],
            sentence: "A sentence.".to_owned(),
            measure: "completion-time".to_owned(),
            unit: "s".to_owned(),
            value: measure(1.5),
            unfinished_runs: 0,
            shares: vec![share(Limit::PathFull, 999_000_000), share(Limit::Handshake, 1_000_000)],
            fault: None,
            remedy: None,
            pauses: None,
            idle_paths: Vec::new(),
            transfers: Vec::new(),
            counterfactuals: vec![tried],
            left_out: Vec::new(),
        };
        let text = why(&answer, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let at = text.lines().position(|line| line.starts_with("  the first subflow on")).expect("it is there");
        let lines: Vec<&str> = text.lines().skip(at).collect();
        assert!(lines[0].contains("1.2500 ± 0.0010") && lines[0].contains("-0.2500 ± 0.0010"), "{text}");
        assert_eq!(lines[1], "    a-path-with-a-name-that-is-quite-long");
        assert!(text.contains("1 other ") && text.contains("completion time [s]"), "{text}");
    }
}
