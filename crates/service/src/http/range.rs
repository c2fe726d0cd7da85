//! One range of bytes (RFC 9110 §14). Requests for several are answered with everything, as a server may.

use std::ops::Range;

/// Request of a `Range` field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Everything: the field is no single range of bytes.
    All,
    /// These.
    Part(Range<u64>),
    /// Outside the representation.
    Unsatisfiable,
}

/// Reads the field for a representation of `length` bytes.
pub(crate) fn wanted(field: &str, length: u64) -> Wanted {
    let Some((unit, spec)) = field.split_once('=') else { return Wanted::All };
    let Some((first, last)) = spec.trim().split_once('-') else { return Wanted::All };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Wanted::All;
    }
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // More digits than fit are more than there is.
        if digits { Some(text.parse().unwrap_or(u64::MAX)) } else { None }
    };
    let (first, last) = (first.trim(), last.trim());
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first > last => Wanted::All,
        (Some(first), last) if last.is_some() || spec.trim().ends_with('-') => {
            let end = last.map_or(length, |last| last.saturating_add(1).min(length));
            if first < length { Wanted::Part(first..end) } else { Wanted::Unsatisfiable }
        }
        // A suffix of this length.
        (None, Some(count)) if first.is_empty() => match count.min(length) {
            0 => Wanted::Unsatisfiable,
            count => Wanted::Part(length - count..length),
        },
        _ => Wanted::All,
    }
}

/// First byte, last byte and, if known, the length of `Content-Range: bytes 0-9/100`.
pub(crate) fn content_range(field: &str) -> Option<(Range<u64>, Option<u64>)> {
    let (range, length) = field.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let length = match length.trim() {
        "*" => None,
        number => Some(number.parse::<u64>().ok()?),
    };
    let whole = first <= last && last < u64::MAX && length.is_none_or(|length| last < length);
    if whole { Some((first..last + 1, length)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9110 §14.1.2, for a representation of 10 000 bytes.
    #[test]
    fn the_examples_of_the_rfc() {
        for (field, expected) in [
            ("bytes=0-499", Wanted::Part(0..500)),
            ("bytes=500-999", Wanted::Part(500..1000)),
            ("bytes=-500", Wanted::Part(9500..10_000)),
            ("bytes=9500-", Wanted::Part(9500..10_000)),
            ("bytes= 0-0", Wanted::Part(0..1)),
            ("Bytes=9999-99999999999999999999999", Wanted::Part(9999..10_000)),
            ("bytes=-99999", Wanted::Part(0..10_000)),
            ("bytes=10000-", Wanted::Unsatisfiable),
            ("bytes=-0", Wanted::Unsatisfiable),
            ("bytes=0-0,-1", Wanted::All),
            ("bytes=5-4", Wanted::All),
            ("bytes=-", Wanted::All),
            ("bytes=a-b", Wanted::All),
            ("bytes=5-b", Wanted::All),
            ("lines=1-2", Wanted::All),
            ("", Wanted::All),
        ] {
            assert_eq!(wanted(field, 10_000), expected, "{field}");
        }
        assert_eq!(wanted("bytes=0-", 0), Wanted::Unsatisfiable);
    }

    #[test]
    fn what_a_reply_says_of_its_range() {
        assert_eq!(content_range("bytes 0-9/100"), Some((0..10, Some(100))));
        assert_eq!(content_range("bytes 5-5/*"), Some((5..6, None)));
        for wrong in ["bytes */100", "bytes 9-0/100", "bytes 0-100/100", "0-9/100", "bytes 0-18446744073709551615/*"] {
            assert_eq!(content_range(wrong), None, "{wrong}");
        }
    }
}
