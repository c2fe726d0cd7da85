//! Recordings as text.

use crate::clock;
use crate::recording::{Recording, Supply};
use anabranch_units::Duration;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Writes a recording as a table that [`read`](crate::read) reads back: a row for each change of a value, with the
/// units in the names of the columns. Times are seconds from the beginning; of a recording with clocks, dates in UTC.
/// The last row lasts as long as rows usually do, whatever was left of it.
pub fn table_text(recording: &Recording) -> String {
    let rates = recording.rates(Duration::from_millis(100));
    let mut ends: BTreeSet<Duration> = recording.stretches.iter().map(|stretch| stretch.at).collect();
    ends.extend(rates.iter().flat_map(|levels| levels.iter().map(|level| level.until)));
    ends.extend(recording.delay.iter().flat_map(|levels| levels.iter().map(|level| level.until)));
    ends.extend(recording.loss.iter().flat_map(|levels| levels.iter().map(|level| level.until)));
    // Where no value changes for longer, rows every interval: the reader learns from them how long a row lasts, and
    // what is a pause.
    let step = recording.interval.max(Duration::from_millis(1)).max(recording.length() / MOST_ROWS);
    for stretch in &recording.stretches {
        let within: Vec<Duration> = ends.range(stretch.at..stretch.end()).copied().chain([stretch.end()]).collect();
        for pair in within.windows(2) {
            let mut at = pair[0] + step;
            while at < pair[1] {
                ends.insert(at);
                at += step;
            }
        }
    }
    let has_clock = recording.has_clock();
    let mut text = if has_clock { "time".to_owned() } else { "time_s".to_owned() };
    for (name, there) in [
        ("rate_bit", rates.is_some()),
        ("one_way_delay_ns", recording.delay.is_some()),
        ("loss", recording.loss.is_some()),
    ] {
        if there {
            text.push(',');
            text.push_str(name);
        }
    }
    text.push('\n');
    for at in ends.into_iter().filter(|at| *at < recording.length()) {
        let stretch = recording.stretches.partition_point(|stretch| stretch.end() <= at);
        match recording.stretches.get(stretch).and_then(|stretch| Some((stretch, stretch.clock?))) {
            Some((stretch, clock)) if has_clock => {
                let since = i64::try_from((at - stretch.at).as_nanos()).unwrap_or(i64::MAX);
                text.push_str(&clock::written(clock.saturating_add(since)));
            }
            _ => {
                let nanos = at.as_nanos();
                let _ = write!(text, "{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
            }
        }
        if let Some(rates) = &rates {
            let _ = write!(text, ",{}", rates.at(at).as_bps());
        }
        if let Some(delays) = &recording.delay {
            let _ = write!(text, ",{}", delays.at(at).as_nanos());
        }
        if let Some(losses) = &recording.loss {
            let _ = write!(text, ",{}", losses.at(at));
        }
        text.push('\n');
    }
    text
}

/// Writes a clock time, in nanoseconds since 1970, as a date in UTC.
pub fn clock_text(nanos: i64) -> String {
    clock::written(nanos)
}

impl Recording {
    /// Writes the rate as opportunities in mahimahi's format: as many bytes until each millisecond as the recording
    /// gives, rounded down to whole packets of 1500 bytes. `None` without a rate, if not even one packet passes, or
    /// beyond a day.
    pub fn mahimahi_text(&self) -> Option<String> {
        const PACKET: u128 = 1500 * 8 * 1_000_000_000;
        let rates = match self.rate.as_ref()? {
            Supply::Opportunities(trace) => return Some(trace.to_string()),
            Supply::Rates(rates) => rates,
        };
        let whole = self.length().as_nanos().div_ceil(1_000_000);
        if whole > MOST_MILLISECONDS {
            return None;
        }
        let (mut text, mut done, mut sent) = (String::new(), 0u128, 0u128);
        let mut levels = rates.iter().peekable();
        let mut at = 0;
        for ms in 1..=whole {
            let until = (ms * 1_000_000).min(self.length().as_nanos());
            while at < until {
                let level = levels.peek().copied()?;
                let end = level.until.as_nanos().min(until);
                done += u128::from(end - at) * u128::from(level.value.as_bps());
                at = end;
                if at == level.until.as_nanos() {
                    levels.next();
                }
            }
            while done / PACKET > sent {
                let _ = writeln!(text, "{ms}");
                sent += 1;
            }
        }
        // The last line is the period.
        let last = text.trim_end().rsplit('\n').next()?.parse::<u64>().ok()?;
        if last < whole {
            let _ = writeln!(text, "{whole}");
        }
        Some(text)
    }
}

/// Rows that a table has at most besides its changes.
const MOST_ROWS: u64 = 1_000_000;
/// Length of mahimahi's text at most: a day.
const MOST_MILLISECONDS: u64 = 86_400_000;
