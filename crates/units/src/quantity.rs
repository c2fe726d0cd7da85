//! Quantities as written in scenarios: a decimal number and its unit in one word, `"10ms"`, `"25mbit"`, `"64KiB"`,
//! `"0.5%"`, `"100p"`, `"1bdp"`.
//!
//! A number without a unit is an error, and so is an ambiguous unit (`mbps` is megabytes to `tc`). `KB` is 1000 bytes,
//! as `MB` is 1000 of it. Arithmetic is exact; fractions of a nanosecond, bit per second or byte are rounded.

use crate::{Bytes, Duration, Rate};

/// Error: the text is not a quantity of the kind wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct Refusal {
    /// The problem.
    pub problem: String,
    /// Accepted texts.
    pub accepted: String,
}

/// Capacity of a queue, before its path is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// Packets.
    Packets(u32),
    /// Bytes.
    Bytes(Bytes),
    /// Bandwidth-delay products of the path.
    Bdp(f64),
    /// Time that what waits takes to leave.
    Time(Duration),
}

/// Parses a span of time: `ns`, `us`, `ms`, `s`, `min`.
pub fn duration(text: &str) -> Result<Duration, Refusal> {
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000)];
    measure(text, &units, "a time with its unit (ns, us, ms, s, min), such as \"10ms\" or \"1.5s\"", &[])
        .map(Duration::from_nanos)
}

/// Parses a data rate in decimal bits per second: `bit`, `kbit`, `mbit`, `gbit`.
pub fn rate(text: &str) -> Result<Rate, Refusal> {
    let units = [("bit", 1), ("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000)];
    let likely = [("mbps", "mbit"), ("kbps", "kbit"), ("gbps", "gbit"), ("mbit/s", "mbit"), ("m", "mbit")];
    measure(text, &units, "bits per second (bit, kbit, mbit, gbit), such as \"25mbit\"", &likely).map(Rate::from_bps)
}

/// Parses an amount of data: `B`, decimal `kB` (or `KB`), `MB`, `GB`, binary `KiB`, `MiB`, `GiB`.
pub fn size(text: &str) -> Result<Bytes, Refusal> {
    let units = [
        ("B", 1),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ];
    let likely = [("kb", "kB"), ("K", "KiB"), ("M", "MiB"), ("k", "kB"), ("G", "GiB")];
    measure(text, &units, "bytes (B, kB, MB, GB of 1000, KiB, MiB, GiB of 1024), such as \"64KiB\"", &likely)
        .map(Bytes::new)
}

/// Parses a share between 0 and 1, written in percent: `"0.5%"`.
pub fn share(text: &str) -> Result<f64, Refusal> {
    const ACCEPTED: &str = "a percentage from 0% to 100%, such as \"0.5%\"";
    let (number, unit) = split(text, ACCEPTED)?;
    if unit != "%" {
        return Err(bad_unit(text, unit, ACCEPTED, None));
    }
    let share = number.as_f64() / 100.0;
    if share > 1.0 {
        return Err(refuse(format!("`{text}` is more than 100%"), ACCEPTED));
    }
    Ok(share)
}

/// Parses the capacity of a queue: `"100p"` in packets, `"64KiB"` in bytes, `"1bdp"` in bandwidth-delay products,
/// `"50ms"` in time.
pub fn queue(text: &str) -> Result<Queue, Refusal> {
    const ACCEPTED: &str = "packets \"100p\", bytes \"64KiB\", bandwidth-delay products \"1bdp\" or a time \"50ms\"";
    let (number, unit) = split(text, ACCEPTED)?;
    match unit {
        "p" => match number.scaled(1).map(u32::try_from) {
            Some(Ok(packets)) if number.places == 0 => Ok(Queue::Packets(packets)),
            _ => Err(refuse(format!("`{text}` is no whole number of packets below 2^32"), ACCEPTED)),
        },
        "bdp" => Ok(Queue::Bdp(number.as_f64())),
        "ns" | "us" | "ms" | "s" | "min" => duration(text).map(Queue::Time),
        _ => size(text).map(Queue::Bytes).map_err(|refusal| match refusal.accepted.split_once("? ") {
            Some((near, _)) => Refusal { accepted: format!("{near}? accepted: {ACCEPTED}"), ..refusal },
            None => bad_unit(text, unit, ACCEPTED, None),
        }),
    }
}

/// Returns true if the text looks like a quantity rather than, say, the name of a file.
pub fn is_quantity_like(text: &str) -> bool {
    // A text with a sign is a wrong quantity, not the name of a file.
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '_');
    rest.len() < text.len() && rest.trim().chars().all(|c| c.is_ascii_alphabetic() || c == '/' || c == '%')
}

/// Exact non-negative decimal number: `digits / 10^places`.
#[derive(Clone, Copy)]
struct Decimal {
    digits: u128,
    places: u32,
}

impl Decimal {
    /// Parses up to 24 digits, so that no product below overflows.
    fn parse(text: &str) -> Option<Decimal> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{fraction}");
        let bare_point = whole.is_empty() || (fraction.is_empty() && text.contains('.'));
        if bare_point || digits.len() > 24 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(Decimal { digits: digits.parse().ok()?, places: u32::try_from(fraction.len()).ok()? })
    }

    /// Returns this many units of `unit`, rounded; `None` beyond 64 bits.
    fn scaled(self, unit: u64) -> Option<u64> {
        let divisor = 10u128.pow(self.places);
        let product = self.digits.checked_mul(u128::from(unit))?;
        u64::try_from((product + divisor / 2) / divisor).ok()
    }

    fn as_f64(self) -> f64 {
        self.digits as f64 / 10u128.pow(self.places) as f64
    }
}

fn measure(text: &str, units: &[(&str, u64)], accepted: &str, likely: &[(&str, &str)]) -> Result<u64, Refusal> {
    let (number, unit) = split(text, accepted)?;
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        let same = |name: &str| name.eq_ignore_ascii_case(unit);
        let near = likely.iter().find(|(name, _)| same(name)).map(|(_, meant)| *meant);
        let near = near.or_else(|| units.iter().map(|(name, _)| *name).find(|name| same(name)));
        return Err(bad_unit(text, unit, accepted, near));
    };
    number.scaled(*factor).ok_or_else(|| refuse(format!("`{text}` is too large"), accepted))
}

fn split<'a>(text: &'a str, accepted: &str) -> Result<(Decimal, &'a str), Refusal> {
    let (number, unit) = text.split_at(unit_at(text));
    if number.is_empty() && text.starts_with('-') {
        return Err(refuse(format!("`{text}` is negative"), accepted));
    }
    match Decimal::parse(number) {
        Some(number) => Ok((number, unit.trim())),
        None => Err(refuse(format!("`{text}` does not begin with a decimal number"), accepted)),
    }
}

/// End of the number that `text` begins with.
fn unit_at(text: &str) -> usize {
    text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len())
}

fn bad_unit(text: &str, unit: &str, accepted: &str, near: Option<&str>) -> Refusal {
    let number = &text[..unit_at(text)];
    let problem = match unit {
        "" => format!("`{text}` has no unit"),
        _ => format!("`{unit}` is not a unit accepted here"),
    };
    match near {
        Some(near) => refuse(problem, &format!("did you mean \"{number}{near}\"? accepted: {accepted}")),
        None => refuse(problem, accepted),
    }
}

fn refuse(problem: String, accepted: &str) -> Refusal {
    let accepted = if accepted.starts_with("did you") { accepted.to_owned() } else { format!("accepted: {accepted}") };
    Refusal { problem, accepted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_means_what_it_says() {
        for (text, nanos) in [
            ("7ns", 7),
            ("200us", 200_000),
            ("10ms", 10_000_000),
            ("1.5s", 1_500_000_000),
            ("2min", 120_000_000_000),
            ("0s", 0),
            ("0.0000000005s", 1),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
        for (text, bps) in [("9bit", 9), ("56kbit", 56_000), ("2.5mbit", 2_500_000), ("10gbit", 10_000_000_000)] {
            assert_eq!(rate(text), Ok(Rate::from_bps(bps)), "{text}");
        }
        for (text, bytes) in [
            ("1500B", 1500),
            ("64kB", 64_000),
            ("64KB", 64_000),
            ("4MB", 4_000_000),
            ("1GB", 1_000_000_000),
            ("64KiB", 65_536),
            ("1.5MiB", 1_572_864),
            ("2GiB", 2_147_483_648),
        ] {
            assert_eq!(size(text), Ok(Bytes::new(bytes)), "{text}");
        }
        for (text, p) in [("0%", 0.0), ("0.5%", 0.005), ("100%", 1.0)] {
            assert_eq!(share(text), Ok(p), "{text}");
        }
        assert_eq!(queue("100p"), Ok(Queue::Packets(100)));
        assert_eq!(queue("64KiB"), Ok(Queue::Bytes(Bytes::new(65_536))));
        assert_eq!([queue("40KB"), queue("40kB")], [(); 2].map(|()| Ok(Queue::Bytes(Bytes::new(40_000)))));
        assert_eq!(queue("1.5bdp"), Ok(Queue::Bdp(1.5)));
        assert_eq!(queue("50ms"), Ok(Queue::Time(Duration::from_millis(50))));
    }

    #[test]
    fn a_refusal_says_what_would_be_accepted() {
        let mut said = String::new();
        let mut hear = |refusal: Refusal| said += &format!("{}\n  {}\n", refusal.problem, refusal.accepted);
        for text in ["10", "10 sec", "ms", "-5ms", "1.ms", "1.2.3s", "99999999999s", "10MS"] {
            hear(duration(text).expect_err(text));
        }
        for text in ["25", "25Mbps", "25MBIT"] {
            hear(rate(text).expect_err(text));
        }
        for text in ["64", "64K", "64kb", "1e6B"] {
            hear(size(text).expect_err(text));
        }
        for text in ["0.01", "101%"] {
            hear(share(text).expect_err(text));
        }
        for text in ["100", "1.5p", "3pkt", "40kib"] {
            hear(queue(text).expect_err(text));
        }
        insta::assert_snapshot!(said);
    }

    #[test]
    fn a_file_name_is_no_quantity() {
        assert!(is_quantity_like("-10mbit") && is_quantity_like("+10mbit"));
        assert!(is_quantity_like("25mbps") && is_quantity_like("25 mbit/s") && is_quantity_like("5"));
        assert!(!is_quantity_like("lte.down") && !is_quantity_like("traces/lte.down") && !is_quantity_like("5g.down"));
    }
}
