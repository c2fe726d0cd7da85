//! Columns by their names.

use crate::options::{RateUnit, TimeUnit};

/// Words that name a time.
const TIME: &[&str] = &[
    "time",
    "timestamp",
    "date",
    "datetime",
    "ts",
    "t",
    "sec",
    "secs",
    "second",
    "seconds",
    "epoch",
    "utc",
    "elapsed",
];
/// Words that name a rate.
const RATE: &[&str] = &[
    "throughput",
    "tput",
    "thrpt",
    "thput",
    "thpt",
    "goodput",
    "bitrate",
    "bandwidth",
    "bw",
    "capacity",
    "datarate",
    "rate",
];
/// Words that name a delay of a round trip.
const ROUND_TRIP: &[&str] = &["rtt", "ping", "latency", "roundtrip"];
/// Words that name a delay of one direction.
const ONE_WAY: &[&str] = &["owd", "delay", "oneway"];
/// Words that name loss.
const LOSS: &[&str] = &["loss", "lost", "plr", "packetloss"];
/// Words that say that a column holds something about a value and not the value.
const DERIVED: &[&str] = &["jitter", "mdev", "std", "stddev", "variance", "var", "min", "max", "id", "count", "total"];

/// Content of a column, by its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Meaning {
    Time(Option<TimeUnit>),
    Rate(Option<RateUnit>),
    Delay { round_trip: bool, unit: Option<TimeUnit> },
    Loss { percent: bool },
    Other,
}

/// Returns the meaning of a column.
pub(crate) fn meaning(name: &str) -> Meaning {
    let words = words(name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if has(DERIVED) {
        return Meaning::Other;
    }
    let unit = rate_unit(name, &words);
    if has(ROUND_TRIP) || has(ONE_WAY) {
        return Meaning::Delay { round_trip: has(ROUND_TRIP), unit: time_unit(&words) };
    }
    if has(LOSS) {
        return Meaning::Loss { percent: name.contains('%') || has(&["pct", "percent", "percentage"]) };
    }
    if has(RATE) || unit.is_some() {
        return Meaning::Rate(unit);
    }
    if has(TIME) {
        return Meaning::Time(time_unit(&words));
    }
    Meaning::Other
}

/// Splits a name at all that is no letter or digit, and before capitals: `A_throughputMbps` is a, throughput, mbps.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().expect("there is one from the start").extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Megabytes and megabits differ in the case of a letter only.
fn rate_unit(name: &str, words: &[String]) -> Option<RateUnit> {
    for (text, factor) in [("GB", 8_000_000_000), ("MB", 8_000_000), ("kB", 8_000), ("KB", 8_000)] {
        if ["/s", "ps", "ytes/s"].iter().any(|end| name.contains(&format!("{text}{end}"))) {
            return Some(RateUnit::PerSecond(factor));
        }
    }
    if name.contains("B/s") || name.contains("Bps") || name.contains("bytes/s") {
        return Some(RateUnit::PerSecond(8));
    }
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if has(&["gbps", "gbit", "gbits"]) {
        Some(RateUnit::PerSecond(1_000_000_000))
    } else if has(&["mbps", "mbit", "mbits"]) {
        Some(RateUnit::PerSecond(1_000_000))
    } else if has(&["kbps", "kbit", "kbits"]) {
        Some(RateUnit::PerSecond(1_000))
    } else if has(&["bps", "bit", "bits"]) {
        Some(RateUnit::PerSecond(1))
    } else {
        has(&["bytes", "byte"]).then_some(RateUnit::BytesPerInterval)
    }
}

fn time_unit(words: &[String]) -> Option<TimeUnit> {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if has(&["ns", "nanos", "nsec"]) {
        Some(TimeUnit::Nanoseconds)
    } else if has(&["us", "usec", "micros"]) {
        Some(TimeUnit::Microseconds)
    } else if has(&["ms", "msec", "millis", "milliseconds"]) {
        Some(TimeUnit::Milliseconds)
    } else {
        has(&["s", "sec", "secs", "second", "seconds"]).then_some(TimeUnit::Seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_columns_hold() {
        for (name, expected) in [
            ("time", Meaning::Time(None)),
            ("Timestamp (ms)", Meaning::Time(Some(TimeUnit::Milliseconds))),
            ("A_time", Meaning::Time(None)),
            ("throughput", Meaning::Rate(None)),
            ("B_throughput_mbps", Meaning::Rate(Some(RateUnit::PerSecond(1_000_000)))),
            ("dlThroughputKbps", Meaning::Rate(Some(RateUnit::PerSecond(1_000)))),
            ("rate [MB/s]", Meaning::Rate(Some(RateUnit::PerSecond(8_000_000)))),
            ("bytes", Meaning::Rate(Some(RateUnit::BytesPerInterval))),
            ("Bitrate", Meaning::Rate(None)),
            ("starlink_mbps", Meaning::Rate(Some(RateUnit::PerSecond(1_000_000)))),
            ("rtt", Meaning::Delay { round_trip: true, unit: None }),
            ("A_rtt_ms", Meaning::Delay { round_trip: true, unit: Some(TimeUnit::Milliseconds) }),
            ("one-way delay (us)", Meaning::Delay { round_trip: false, unit: Some(TimeUnit::Microseconds) }),
            ("loss_pct", Meaning::Loss { percent: true }),
            ("speed", Meaning::Other),
            ("latitude", Meaning::Other),
            ("A_run", Meaning::Other),
            ("rtt_mdev", Meaning::Other),
        ] {
            assert_eq!(meaning(name), expected, "{name}");
        }
    }
}
