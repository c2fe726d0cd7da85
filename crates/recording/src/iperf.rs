//! The output of iperf and iperf3, as text and as JSON.

use crate::clock;
use crate::error::RecordingError;
use crate::rows::{Amount, Loss, Row, Rows};
use anabranch_units::{Duration, Rate};
use serde::Deserialize;

/// Reads the lines of intervals. Of several streams, the lines of their sum count; the summary at the end does not.
pub(crate) fn read(text: &str) -> Result<Rows, RecordingError> {
    let mut rows = Rows::default();
    let mut begun = None;
    let has_sum = text.lines().any(|line| line.trim_start().starts_with("[SUM]"));
    for (line, content) in (1..).zip(text.lines()) {
        if let Some((_, date)) = content.split_once("Time: ") {
            begun = begun.or(clock::date(date));
        }
        let Some((head, tail)) = content.split_once(" sec ") else { continue };
        if tail.contains("sender") || tail.contains("receiver") || content.contains("(omitted)") {
            continue;
        }
        if has_sum && !content.trim_start().starts_with("[SUM]") {
            continue;
        }
        if let Some((from, until)) = span(head) {
            push(&mut rows, line, from, until, tail)?;
        }
    }
    // iperf 2 ends with a line over the whole time, which begins again at zero.
    if rows.rows.len() > 2 {
        let last = rows.rows[rows.rows.len() - 1];
        if last.at == rows.rows[0].at {
            rows.rows.pop();
        }
    }
    if let Some(begun) = begun {
        rows.is_clock = true;
        rows.rows.iter_mut().for_each(|row| row.at = row.at.saturating_add(begun.nanos));
    }
    Ok(rows)
}

/// Reads the span at the end of `[  5]   0.00-1.00`. iperf 2 writes a space after the dash: `0.0- 1.0`.
fn span(head: &str) -> Option<(i64, i64)> {
    let mut words = head.split_whitespace().rev();
    let last = words.next()?;
    let (from, until) = last.split_once('-').or_else(|| Some((words.next()?.strip_suffix('-')?, last)))?;
    Some((clock::decimal(from, 1_000_000_000)?, clock::decimal(until, 1_000_000_000)?))
}

fn push(rows: &mut Rows, line: usize, from: i64, until: i64, tail: &str) -> Result<(), RecordingError> {
    let words: Vec<&str> = tail.split_whitespace().collect();
    let found = words.windows(2).find_map(|two| Some((two[0], factor(two[1])?)));
    let Some((number, factor)) = found else {
        let help = "accepted: lines such as `[  5]   0.00-1.00   sec  1.60 MBytes  13.4 Mbits/sec`";
        return Err(RecordingError::at(line, "this interval has no rate").help(help));
    };
    let value: f64 = number.parse().map_err(|_| RecordingError::at(line, format!("`{number}` is no number")))?;
    let span = until.checked_sub(from).and_then(|span| u64::try_from(span).ok()).filter(|span| *span > 0);
    let Some(span) = span else {
        return Err(RecordingError::at(line, "this interval ends where it begins, or before"));
    };
    // A UDP server adds lost and sent datagrams: `5/1000 (0.5%)`.
    let percent = words.iter().find_map(|word| word.strip_prefix('(')?.strip_suffix("%)")?.parse::<f64>().ok());
    rows.rows.push(Row {
        line,
        at: from,
        lasts: Some(Duration::from_nanos(span)),
        rate: Some(Amount::Rate(Rate::from_bps((value * factor).round() as u64))),
        loss: percent.map(|percent| Loss::Share((percent / 100.0).clamp(0.0, 1.0))),
        ..Row::default()
    });
    Ok(())
}

/// Returns the bits per second of a unit.
fn factor(unit: &str) -> Option<f64> {
    let (prefix, bits) = match (unit.strip_suffix("bits/sec"), unit.strip_suffix("Bytes/sec")) {
        (Some(prefix), _) => (prefix, 1.0),
        (_, Some(prefix)) => (prefix, 8.0),
        _ => return None,
    };
    // Multiples of bits are of 1000, those of bytes of 1024 (iperf's units.c).
    let kilo: f64 = if bits == 1.0 { 1000.0 } else { 1024.0 };
    let power = ["", "K", "M", "G", "T"].iter().position(|known| *known == prefix)?;
    Some(bits * kilo.powi(i32::try_from(power).ok()?))
}

#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    start: Start,
    intervals: Vec<Interval>,
}

#[derive(Default, Deserialize)]
struct Start {
    timestamp: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Timestamp {
    timesecs: i64,
}

#[derive(Deserialize)]
struct Interval {
    sum: Sum,
}

#[derive(Deserialize)]
struct Sum {
    start: f64,
    end: f64,
    bits_per_second: f64,
    #[serde(default)]
    omitted: bool,
    lost_percent: Option<f64>,
}

/// Reads the intervals of iperf3's JSON.
pub(crate) fn read_json(text: &str) -> Result<Rows, RecordingError> {
    let output: Output = serde_json::from_str(text).map_err(|error| {
        RecordingError::at(error.line(), error.to_string()).help("accepted: the JSON that `iperf3 --json` writes")
    })?;
    let begun = output.start.timestamp.map(|stamp| stamp.timesecs.saturating_mul(1_000_000_000));
    let mut rows = Rows { is_clock: begun.is_some(), ..Rows::default() };
    for Interval { sum } in output.intervals.into_iter().filter(|interval| !interval.sum.omitted) {
        let lasts = Duration::from_secs_f64(sum.end - sum.start);
        if lasts.is_zero() || !sum.start.is_finite() {
            let problem = format!("the interval from {} s to {} s is empty", sum.start, sum.end);
            return Err(RecordingError::plain(problem));
        }
        rows.rows.push(Row {
            line: 0,
            at: ((sum.start * 1e9).round() as i64).saturating_add(begun.unwrap_or(0)),
            lasts: Some(lasts),
            rate: Some(Amount::Rate(Rate::from_bps(sum.bits_per_second.max(0.0).round() as u64))),
            loss: sum.lost_percent.map(|percent| Loss::Share((percent / 100.0).clamp(0.0, 1.0))),
            ..Row::default()
        });
    }
    Ok(rows)
}
