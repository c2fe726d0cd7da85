//! The text of ping.

use crate::clock;
use crate::error::RecordingError;
use crate::options::Options;
use crate::rows::{Loss, Row, Rows};
use anabranch_units::Duration;

/// Numbers of this size wrap: `icmp_seq` has 16 bits (RFC 792).
const WRAP: u64 = 1 << 16;
/// More missing numbers in a row than this are a pause, or another run, and no loss.
const MOST_MISSING: u64 = 100_000;

/// Reads replies with their round trips. A number that is missing is a lost probe. Times are those of `ping -D`;
/// without, they follow from the numbers and the interval, one second unless given.
pub(crate) fn read(text: &str, options: &Options) -> Result<Rows, RecordingError> {
    let mut rows = Rows::default();
    // Each reply: line, extended number, clock time, round trip.
    let mut replies: Vec<(usize, u64, Option<i64>, Duration)> = Vec::new();
    let (mut base, mut last) = (0, None);
    for (line, content) in (1..).zip(text.lines()) {
        let (Some(number), Some(time)) = (after(content, "icmp_seq="), after(content, "time=")) else { continue };
        let number = number.parse::<u64>().ok().filter(|number| *number < WRAP).ok_or_else(|| {
            RecordingError::at(line, format!("`icmp_seq={number}` is no number below 65536"))
                .help("accepted: lines as ping prints them")
        })?;
        let round_trip =
            clock::decimal(time, unit(content)).and_then(|nanos| u64::try_from(nanos).ok()).ok_or_else(|| {
                RecordingError::at(line, format!("`time={time}` is no time"))
                    .help("accepted: lines as ping prints them")
            })?;
        if last.is_some_and(|last| number + WRAP / 2 < last) {
            base += WRAP;
        }
        last = Some(number);
        let clock = content
            .trim_start()
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
            .and_then(|(clock, _)| clock::decimal(clock, 1_000_000_000));
        replies.push((line, base + number, clock, Duration::from_nanos(round_trip)));
    }
    rows.is_clock = !replies.is_empty() && replies.iter().all(|(_, _, clock, _)| clock.is_some());
    let interval = options.interval.unwrap_or(Duration::from_secs(1));
    if !rows.is_clock {
        if options.interval.is_none() && !replies.is_empty() {
            rows.remarks
                .push("the replies have no clock time: one probe per second (`interval` says otherwise)".to_owned());
        }
        replies.sort_by_key(|(_, number, ..)| *number);
    }
    for (index, &(line, number, clock, round_trip)) in replies.iter().enumerate() {
        let by_number = i64::try_from(number.saturating_mul(interval.as_nanos())).unwrap_or(i64::MAX);
        let at = if rows.is_clock { clock.unwrap_or(by_number) } else { by_number };
        // The probes missing before this one, spread evenly since the reply before.
        if let (Some(&(_, before, ..)), Some(earlier)) =
            (index.checked_sub(1).and_then(|i| replies.get(i)), rows.rows.last())
        {
            let missing = number.saturating_sub(before + 1);
            let (from, steps) = (earlier.at, i64::try_from(missing + 1).unwrap_or(i64::MAX));
            for step in (1..steps).take_while(|_| missing <= MOST_MISSING && at > from) {
                let at = from + (at - from) / steps * step;
                rows.rows.push(Row { line, at, loss: Some(Loss::Probe { is_lost: true }), ..Row::default() });
            }
        }
        let loss = Some(Loss::Probe { is_lost: false });
        rows.rows.push(Row { line, at, delay: Some(round_trip / 2), loss, ..Row::default() });
    }
    Ok(rows)
}

/// Returns the word after a key.
fn after<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = &line[line.find(key)? + key.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    Some(&rest[..end])
}

fn unit(line: &str) -> u32 {
    match line.trim_end().ends_with(" us") {
        true => 1_000,
        false => 1_000_000,
    }
}
