//! HTTP's dates (RFC 9110 §5.6.7) as seconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The system's time of day.
pub(crate) fn today() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

/// Seconds since 1970 as `Sun, 06 Nov 1994 08:49:37 GMT`; times outside 1970 to 9999, which HTTP cannot write, as the
/// nearest of these years.
pub(crate) fn format(seconds: i64) -> String {
    let seconds = seconds.clamp(0, LAST).unsigned_abs();
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Seconds since 1970 of any of the three forms; `None` for what is no date.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let date: SystemTime = httpdate::parse_http_date(text).ok()?;
    i64::try_from(date.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}

/// The last second of the year 9999.
const LAST: i64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 9110 §5.6.7; `date -d @784111777`.
    #[test]
    fn the_three_forms_of_the_rfc() {
        assert_eq!(format(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(parse(text), Some(784_111_777), "{text}");
        }
        assert_eq!(parse("yesterday"), None);
    }

    /// A file can have any time of modification.
    #[test]
    fn every_time_has_a_date() {
        assert_eq!(format(i64::MIN), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(format(i64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(parse(&format(i64::MAX)), Some(LAST));
    }
}
