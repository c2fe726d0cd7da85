//! Numbers, ranges, times and addresses as scripts write them.

use anabranch_units::{Duration, quantity};

/// A number: decimal, `0x` hexadecimal with `_` between digits, negative, or a size such as `64KiB` or `1MB`.
pub(crate) fn number(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if digits.starts_with(['+', '-', '_']) {
        return None;
    }
    let plain = digits.replace('_', "");
    let value = if let Some(hex) = plain.strip_prefix("0x") {
        if hex.starts_with('+') {
            return None;
        }
        i128::from_str_radix(hex, 16).ok()?
    } else if plain.ends_with('B') {
        i128::from(quantity::size(&plain).ok()?.get())
    } else {
        plain.parse().ok()?
    };
    Some(if negative { -value } else { value })
}

/// `5` or `3..9`, both ends included; `3..` and `..9` are open.
pub(crate) fn range(text: &str) -> Option<(i128, i128)> {
    match text.split_once("..") {
        None => number(text).map(|n| (n, n)),
        Some((low, high)) => {
            let low = if low.is_empty() { i128::MIN } else { number(low)? };
            let high = if high.is_empty() { i128::MAX } else { number(high)? };
            (low <= high).then_some((low, high))
        }
    }
}

/// `10ms`, `1.5s`, `20us`, `0`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    quantity::duration(text).ok()
}

/// `on`/`yes` and `off`/`no`.
pub(crate) fn switch(text: &str) -> Option<bool> {
    match text {
        "on" | "yes" => Some(true),
        "off" | "no" => Some(false),
        _ => None,
    }
}

/// A time as scripts write it.
pub(crate) fn time(nanos: u64) -> String {
    match nanos {
        0 => "0".to_owned(),
        n if n % 1_000_000_000 == 0 => format!("{}s", n / 1_000_000_000),
        n if n % 1_000_000 == 0 => format!("{}ms", n / 1_000_000),
        n if n % 1_000 == 0 => format!("{}us", n / 1_000),
        n => format!("{n}ns"),
    }
}

/// Bytes in hexadecimal, spaces allowed.
pub(crate) fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    if digits.len() % 2 == 1 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let pair = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
    digits.chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        assert_eq!(number("0xffff_fff0"), Some(0xffff_fff0));
        assert_eq!(
            (number("-3"), number("64KiB"), number("64k"), number("x"), number("--3"), number("")),
            (Some(-3), Some(65536), None, None, None, None)
        );
        assert_eq!((range("5"), range("1..4"), range("4..1")), (Some((5, 5)), Some((1, 4)), None));
        assert_eq!(range("7.."), Some((7, i128::MAX)));
        assert_eq!(duration("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!((duration("0"), duration("5"), duration("s")), (Some(Duration::ZERO), None, None));
        assert_eq!(time(duration("250ms").expect("a time").as_nanos()), "250ms");
        assert_eq!((hex("00 11f"), hex("0011ff")), (None, Some(vec![0, 0x11, 0xff])));
    }
}
