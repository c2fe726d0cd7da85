//! Sizes in URLs: `/bytes/1000`, `/bytes/16MiB`.

/// A whole number of bytes, with or without one of the units B, kB, MB, GB (1000) and KiB, MiB, GiB (1024).
pub(crate) fn parse(text: &str) -> Option<u64> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit {
        "" | "B" => 1,
        "kB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_and_without_units() {
        for (text, size) in
            [("0", Some(0)), ("1000", Some(1000)), ("16MiB", Some(16 << 20)), ("5GB", Some(5_000_000_000))]
        {
            assert_eq!(parse(text), size, "{text}");
        }
        for text in ["", "MiB", "-1", "1.5MiB", "1 MiB", "1mb", "99999999999999999999", "99999999999999999GiB"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
