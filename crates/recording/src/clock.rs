//! Times as files write them.

use chrono::{NaiveDate, NaiveDateTime};

/// Formats of dates, after the zone is taken off.
const FORMATS: &[&str] = &[
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y/%m/%d %H:%M:%S%.f",
    "%m/%d/%Y %H:%M:%S%.f",
    "%d.%m.%Y %H:%M:%S%.f",
    "%Y%m%d_%H%M%S",
    "%Y%m%dT%H%M%S",
    "%d %b %Y %H:%M:%S",
];

/// Zones by name, in minutes east of UTC. The names of North America are those of RFC 2822 §4.3 and their neighbours;
/// an abbreviation with two meanings is not here.
const ZONES: &[(&str, i32)] = &[
    ("UTC", 0),
    ("GMT", 0),
    ("Z", 0),
    ("EST", -300),
    ("EDT", -240),
    ("CST", -360),
    ("CDT", -300),
    ("MST", -420),
    ("MDT", -360),
    ("PST", -480),
    ("PDT", -420),
    ("AKST", -540),
    ("AKDT", -480),
    ("HST", -600),
    ("WET", 0),
    ("WEST", 60),
    ("CET", 60),
    ("CEST", 120),
    ("EET", 120),
    ("EEST", 180),
    ("JST", 540),
    ("AEST", 600),
    ("AEDT", 660),
];

/// A date and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    /// Nanoseconds since 1970 in UTC.
    pub(crate) nanos: i64,
    /// The text names its zone; one that does not is taken as UTC.
    pub(crate) has_zone: bool,
}

/// Reads a date with a time of day.
pub(crate) fn date(text: &str) -> Option<Date> {
    let text = text.trim();
    // The day of the week says nothing more.
    let text = text.split_once(", ").map_or(text, |(_, rest)| rest);
    let (rest, minutes) = match zone(text) {
        Some((rest, minutes)) => (rest, Some(minutes)),
        None => (text, None),
    };
    let naive = FORMATS.iter().find_map(|format| NaiveDateTime::parse_from_str(rest, format).ok())?;
    let utc = naive.and_utc().timestamp_nanos_opt()?;
    let east = i64::from(minutes.unwrap_or(0)) * 60_000_000_000;
    Some(Date { nanos: utc.checked_sub(east)?, has_zone: minutes.is_some() })
}

/// Splits off a zone at the end: a name, `Z`, or an offset such as `-05:00`.
fn zone(text: &str) -> Option<(&str, i32)> {
    let letters = text.len() - text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len();
    if letters > 0 {
        let (rest, name) = text.split_at(text.len() - letters);
        let name = name.to_ascii_uppercase();
        return ZONES.iter().find(|(known, _)| *known == name).map(|(_, minutes)| (rest.trim_end(), *minutes));
    }
    let at = text.rfind(['+', '-'])?;
    let (rest, offset) = text.split_at(at);
    // A date has signs too, but no time of day before them.
    if !rest.contains(':') {
        return None;
    }
    let digits: String = offset[1..].chars().filter(|c| *c != ':').collect();
    if !matches!(digits.len(), 2 | 4) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let hours: i32 = digits[..2].parse().ok()?;
    let minutes: i32 = if digits.len() == 4 { digits[2..].parse().ok()? } else { 0 };
    let east = hours * 60 + minutes;
    Some((rest.trim_end(), if offset.starts_with('-') { -east } else { east }))
}

/// Reads a decimal number of units, each of so many nanoseconds, exactly to the nanosecond.
pub(crate) fn decimal(text: &str, unit: u32) -> Option<i64> {
    let text = text.trim();
    if text.contains(['e', 'E']) {
        let value: f64 = text.parse().ok()?;
        let nanos = (value * f64::from(unit)).round();
        return (nanos.abs() < 9e18).then_some(nanos as i64);
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_number(whole) || !is_number(fraction) || whole.len() > 19 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Eighteen places are more than a nanosecond needs.
    let fraction = &fraction[..fraction.len().min(18)];
    let scale = 10i128.pow(u32::try_from(fraction.len()).ok()?);
    let part: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let nanos = whole * i128::from(unit) + (part * i128::from(unit) + scale / 2) / scale;
    i64::try_from(sign * nanos).ok()
}

/// Writes a clock time as a date in UTC.
pub(crate) fn written(nanos: i64) -> String {
    let epoch = NaiveDate::default().and_hms_opt(0, 0, 0).expect("midnight is a time of day");
    let time = epoch + chrono::TimeDelta::nanoseconds(nanos);
    time.format("%Y-%m-%dT%H:%M:%S%.fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_with_their_zones() {
        // 2023-04-12 15:40:20 UTC is 1681314020.
        let expected = Some(Date { nanos: 1_681_314_020_000_000_000, has_zone: true });
        for text in [
            "2023-04-12 10:40:20 CDT",
            "2023-04-12 10:40:20-05:00",
            "2023-04-12T10:40:20-0500",
            "2023-04-12T15:40:20Z",
            "2023-04-12T15:40:20.000000Z",
            "2023/04/12 17:40:20 CEST",
            "Wed, 12 Apr 2023 15:40:20 GMT",
            "2023-04-12 07:40:20-08",
        ] {
            assert_eq!(date(text), expected, "{text}");
        }
        let without = date("2023-04-12 15:40:20.25");
        assert_eq!(without, Some(Date { nanos: 1_681_314_020_250_000_000, has_zone: false }));
        assert_eq!(date("20230412_154020"), Some(Date { nanos: 1_681_314_020_000_000_000, has_zone: false }));
        for text in ["", "12", "2023-04-12", "2023-04-12 10:40:20 XYZ", "2023-13-12 10:40:20", "10:40:20"] {
            assert_eq!(date(text), None, "{text}");
        }
        assert_eq!(written(1_681_314_020_250_000_000), "2023-04-12T15:40:20.250Z");
    }

    #[test]
    fn decimals_are_exact() {
        for (text, unit, nanos) in [
            ("1705744800.533641", 1_000_000_000, Some(1_705_744_800_533_641_000)),
            ("1705744800616897349", 1, Some(1_705_744_800_616_897_349)),
            (".5", 1_000_000, Some(500_000)),
            ("-0.25", 1_000, Some(-250)),
            ("1.5e3", 1_000_000, Some(1_500_000_000)),
            ("0.0000000004", 1_000_000_000, Some(0)),
            ("", 1, None),
            (".", 1, None),
            ("1.2.3", 1, None),
            ("12a", 1, None),
            ("99999999999999999999", 1, None),
            ("9999999999999", 1_000_000_000, None),
        ] {
            assert_eq!(decimal(text, unit), nanos, "{text}");
        }
    }
}
