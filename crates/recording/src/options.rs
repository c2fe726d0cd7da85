//! Options for what a recording does not say of itself.

use crate::error::RecordingError;
use anabranch_units::Duration;
use std::fmt;
use std::str::FromStr;

/// Directions for reading a recording. The default recognises what it can.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Form of the text.
    pub form: Option<Form>,
    /// Operator or path of a file that holds several.
    pub of: Option<String>,
    /// Column of the rate.
    pub rate: Option<Column>,
    /// Column of the delay.
    pub delay: Option<Column>,
    /// Column of the loss.
    pub loss: Option<Column>,
    /// Column of the time.
    pub time: Option<Column>,
    /// Unit of the rate.
    pub rate_unit: Option<RateUnit>,
    /// Unit of the delay.
    pub delay_unit: Option<TimeUnit>,
    /// Unit of the time.
    pub time_unit: Option<TimeUnit>,
    /// Time between rows that have none.
    pub interval: Option<Duration>,
    /// Treatment of times without rows.
    pub gaps: Gaps,
}

/// Form of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Opportunities of 1500 bytes, a whole number of milliseconds per line.
    Mahimahi,
    /// Rows with a time each, separated by commas, semicolons, tabs, bars or spaces.
    Table,
    /// Text of iperf or iperf3.
    Iperf,
    /// JSON of iperf3.
    IperfJson,
    /// Text of ping.
    Ping,
    /// JSON of irtt.
    Irtt,
}

/// A column, by name or by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// As in the header.
    Name(String),
    /// Counted from 1.
    Number(usize),
}

/// Unit of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateUnit {
    /// Bits per second of one unit.
    PerSecond(u64),
    /// Bytes in the time until the next row.
    BytesPerInterval,
}

/// Unit of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}

/// Treatment of a time without rows, longer than one and a half intervals between rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gaps {
    /// Up to ten intervals or five seconds, whichever is longer, the last value holds; a longer time is a pause, which
    /// is no part of the recording.
    #[default]
    Short,
    /// Hold: the last value counts on.
    Hold,
    /// Outage: nothing passes.
    Outage,
    /// Pause, which is no part of the recording.
    Close,
}

/// Each form with its name.
const FORMS: &[(Form, &str)] = &[
    (Form::Mahimahi, "mahimahi"),
    (Form::Table, "table"),
    (Form::Iperf, "iperf"),
    (Form::IperfJson, "iperf-json"),
    (Form::Ping, "ping"),
    (Form::Irtt, "irtt"),
];

const RATE_UNITS: &[(RateUnit, &str)] = &[
    (RateUnit::PerSecond(1), "bit"),
    (RateUnit::PerSecond(1_000), "kbit"),
    (RateUnit::PerSecond(1_000_000), "mbit"),
    (RateUnit::PerSecond(1_000_000_000), "gbit"),
    (RateUnit::PerSecond(8), "B/s"),
    (RateUnit::PerSecond(8_000), "kB/s"),
    (RateUnit::PerSecond(8_000_000), "MB/s"),
    (RateUnit::BytesPerInterval, "B"),
];

const TIME_UNITS: &[(TimeUnit, &str)] = &[
    (TimeUnit::Seconds, "s"),
    (TimeUnit::Milliseconds, "ms"),
    (TimeUnit::Microseconds, "us"),
    (TimeUnit::Nanoseconds, "ns"),
];

const GAPS: &[(Gaps, &str)] =
    &[(Gaps::Short, "short"), (Gaps::Hold, "hold"), (Gaps::Outage, "outage"), (Gaps::Close, "close")];

/// Gives a type the names of a table, in both directions.
macro_rules! named {
    ($($type:ty: $names:expr;)*) => {$(
        impl $type {
            /// Names that are accepted.
            pub fn names() -> impl Iterator<Item = &'static str> {
                $names.iter().map(|(_, name)| *name)
            }
        }
        impl FromStr for $type {
            type Err = String;
            /// The error says what is accepted.
            fn from_str(text: &str) -> Result<Self, String> {
                let found = $names.iter().find(|(_, name)| *name == text);
                found.map(|(value, _)| *value).ok_or_else(|| {
                    let names: Vec<&str> = Self::names().collect();
                    format!("accepted: {}", names.join(", "))
                })
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let found = $names.iter().find(|(value, _)| value == self);
                f.write_str(found.map_or("other", |(_, name)| name))
            }
        }
    )*};
}

named! {
    Form: FORMS;
    RateUnit: RATE_UNITS;
    TimeUnit: TIME_UNITS;
    Gaps: GAPS;
}

impl TimeUnit {
    /// Returns the nanoseconds of one.
    pub(crate) fn nanos(self) -> u32 {
        match self {
            TimeUnit::Seconds => 1_000_000_000,
            TimeUnit::Milliseconds => 1_000_000,
            TimeUnit::Microseconds => 1_000,
            TimeUnit::Nanoseconds => 1,
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Column::Name(name) => f.write_str(name),
            Column::Number(number) => number.fmt(f),
        }
    }
}

impl Form {
    /// Recognises the form of a text by its first lines.
    pub fn of(text: &str) -> Option<Form> {
        let start = text.trim_start();
        if start.starts_with('{') {
            return match start.contains("\"round_trips\"") {
                true => Some(Form::Irtt),
                false => start.contains("\"intervals\"").then_some(Form::IperfJson),
            };
        }
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty()).take(100);
        if lines().any(|line| line.contains("icmp_seq=") || line.starts_with("PING ")) {
            return Some(Form::Ping);
        }
        if lines().any(|line| line.contains(" sec ") && (line.contains("bits/sec") || line.contains("Bytes/sec"))) {
            return Some(Form::Iperf);
        }
        if lines().next()?.bytes().all(|b| b.is_ascii_digit()) {
            return Some(Form::Mahimahi);
        }
        let has_number = |line: &str| line.bytes().any(|b| b.is_ascii_digit());
        lines().skip(1).any(has_number).then_some(Form::Table)
    }
}

impl Options {
    /// Refuses what has no meaning for a form.
    pub(crate) fn check(&self, form: Form) -> Result<(), RecordingError> {
        let of_tables = [
            ("of", self.of.is_some()),
            ("rate", self.rate.is_some()),
            ("delay", self.delay.is_some()),
            ("loss", self.loss.is_some()),
            ("time", self.time.is_some()),
            ("rate-unit", self.rate_unit.is_some()),
            ("delay-unit", self.delay_unit.is_some()),
            ("time-unit", self.time_unit.is_some()),
            ("interval", self.interval.is_some() && form != Form::Ping),
            ("gaps", self.gaps != Gaps::default() && form == Form::Mahimahi),
        ];
        let wrong = of_tables.iter().find(|(key, given)| *given && (form != Form::Table || *key == "gaps"));
        match wrong {
            None => Ok(()),
            Some((key, _)) => {
                Err(RecordingError::plain(format!("`{key}` has no meaning for a recording of form {form}"))
                    .help("accepted: `form = \"table\"` if it is a table, or none of the keys that choose columns"))
            }
        }
    }
}
