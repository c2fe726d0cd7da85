//! Units suited to the size of numbers.

/// Unit with its size in the basic unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    pub(super) name: &'static str,
    pub(super) size: f64,
}

impl Unit {
    /// Returns the unit in which numbers up to `largest` of `basic` are easy to read.
    pub(super) fn suited(basic: &'static str, largest: f64) -> Unit {
        let choices: &[(&str, f64)] = match basic {
            "s" => &[("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)],
            "bit/s" => &[("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)],
            "B" => &[("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)],
            _ => &[],
        };
        let fits = choices.iter().find(|(_, size)| largest.abs() >= *size).or(choices.last());
        fits.map_or(Unit { name: basic, size: 1.0 }, |&(name, size)| Unit { name, size })
    }

    /// Formats a number of the basic unit in this one, to three digits.
    pub(super) fn show(self, x: f64) -> String {
        digits(x / self.size)
    }
}

/// Formats a number to three significant digits, whole numbers in full.
pub(super) fn digits(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return "0".to_owned();
    }
    let mut decimals = 0;
    while decimals < 6 && x.abs() * 10f64.powi(decimals) < 99.95 {
        decimals += 1;
    }
    let text = format!("{x:.*}", decimals as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_suit_the_numbers() {
        for (basic, x, expected) in [
            ("s", 0.0123, "12.3 ms"),
            ("s", 12.0, "12 s"),
            ("bit/s", 8.4e6, "8.4 Mbit/s"),
            ("bit/s", 123_456.0, "123 kbit/s"),
            ("B", 64_000.0, "64 kB"),
            ("%", 12.345, "12.3 %"),
            ("s", 0.0, "0 µs"),
        ] {
            let unit = Unit::suited(basic, x);
            assert_eq!(format!("{} {}", unit.show(x), unit.name), expected);
        }
        assert_eq!(
            (digits(1234.5).as_str(), digits(-0.00456).as_str(), digits(20.0).as_str()),
            ("1234", "-0.00456", "20")
        );
    }
}
