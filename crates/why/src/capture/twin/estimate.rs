//! One estimated value, and how quantities are written.

use crate::Confidence;
use schemars::JsonSchema;
use serde::Serialize;

/// A value of a scenario that was estimated from a capture.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Estimate {
    /// Table of the scenario file: `path.NAME`, `host`, `client`, `server`, `workload`, `change` or `run`.
    pub table: String,
    /// Key in the table.
    pub key: String,
    /// Value as the file has it, in TOML.
    pub value: String,
    /// Least and most that the capture allows, written alike; absent where it does not tell. A missing end is open.
    pub range: Option<[Option<String>; 2]>,
    /// Confidence in the value.
    pub confidence: Confidence,
    /// Observation that it rests on, or the reason why it is not known.
    pub seen: String,
}

impl Estimate {
    /// Creates one without a range.
    pub(super) fn new(
        table: &str,
        key: &str,
        value: impl Into<String>,
        confidence: Confidence,
        seen: impl Into<String>,
    ) -> Self {
        let (table, key) = (table.to_owned(), key.to_owned());
        Estimate { table, key, value: value.into(), range: None, confidence, seen: seen.into() }
    }

    /// Sets the range.
    pub(super) fn within(self, least: Option<String>, most: Option<String>) -> Self {
        Estimate { range: Some([least, most]), ..self }
    }

    /// Returns its range in words; nothing without one.
    pub fn range_words(&self) -> String {
        let plain = |text: &String| text.trim_matches('"').to_owned();
        match &self.range {
            Some([Some(least), Some(most)]) => format!("{} to {}", plain(least), plain(most)),
            Some([Some(least), None]) => format!("at least {}", plain(least)),
            Some([None, Some(most)]) => format!("at most {}", plain(most)),
            _ => String::new(),
        }
    }
}

/// A text of TOML.
pub(super) fn text(text: &str) -> String {
    let escaped: String = text.chars().filter(|c| !c.is_control()).flat_map(escape).collect();
    format!("\"{escaped}\"")
}

fn escape(c: char) -> impl Iterator<Item = char> {
    let slash = (c == '"' || c == '\\').then_some('\\');
    slash.into_iter().chain([c])
}

/// A longer time is a clock that is wrong \[ns\].
const LONGEST: f64 = 1e15;

/// A rate, of bits per second.
pub(super) fn rate(bps: f64) -> String {
    format!("\"{}mbit\"", digits(bps.clamp(1e3, 4e11) / 1e6))
}

/// A time, of nanoseconds.
pub(super) fn time(nanos: f64) -> String {
    format!("\"{}ms\"", digits(nanos.clamp(0.0, LONGEST) / 1e6))
}

/// A probability.
pub(super) fn share(share: f64) -> String {
    format!("\"{}%\"", digits(100.0 * share.clamp(0.0, 1.0)))
}

/// A number of bytes.
pub(super) fn bytes(bytes: u64) -> String {
    format!("\"{bytes}B\"")
}

/// Four significant digits, without an exponent.
fn digits(value: f64) -> String {
    let places = match value.abs() {
        value if value >= 1000.0 => 0,
        value if value >= 100.0 => 1,
        value if value >= 10.0 => 2,
        value if value >= 1.0 => 3,
        _ => 5,
    };
    let text = format!("{value:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_four_digits_and_texts_are_escaped() {
        assert_eq!(rate(9_987_654.0), "\"9.988mbit\"");
        assert_eq!(time(40_000_000.0), "\"40ms\"");
        assert_eq!(share(0.012345), "\"1.234%\"");
        assert_eq!(share(0.0), "\"0%\"");
        assert_eq!(text("a\"b\\c\n"), "\"a\\\"b\\\\c\"");
    }
}
