//! Numbers with as many digits as they are worth.

use anabranch_lab::stats::Estimate;

/// Three significant digits.
pub(crate) fn short(x: f64) -> String {
    let places = match x.abs() {
        x if x >= 99.95 || x == 0.0 => 0,
        x if x >= 9.995 => 1,
        x if x >= 0.9995 => 2,
        _ => 3,
    };
    format!("{x:.places$}")
}

/// Without the noise of binary fractions.
pub(crate) fn plain(x: f64) -> String {
    ((x * 1e6).round() / 1e6).to_string()
}

/// `1.234 ± 0.056`, both with the digits that the interval is worth: two of its own.
pub(crate) fn with_interval(estimate: &Estimate, scale: f64, sign: bool) -> String {
    let (mean, half) = (estimate.mean / scale, estimate.half.map(|half| half / scale));
    let places = match half {
        Some(half) if half > 0.0 => places_for(half),
        _ => 3,
    };
    let mean = if sign { format!("{mean:+.places$}") } else { format!("{mean:.places$}") };
    match half {
        Some(half) => format!("{mean} ± {half:.places$}"),
        None => mean,
    }
}

/// Number of decimal places that show two significant digits of `half`.
fn places_for(half: f64) -> usize {
    (0..5usize).find(|places| half * [1.0, 10.0, 100.0, 1e3, 1e4][*places] >= 9.5).unwrap_or(5)
}

/// Formats a share in percent; a small share that would round to zero is shown as `<0.01 %`.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p >= 9.95 => format!("{p:.0} %"),
        p if p >= 0.0995 => format!("{p:.1} %"),
        p if p >= 0.00995 => format!("{p:.2} %"),
        _ => "<0.01 %".to_owned(),
    }
}

/// Formats bytes in decimal kB or MB.
pub fn bytes(n: f64) -> String {
    match n {
        0.0 => "0".to_owned(),
        n if n < 999.5 => format!("{n:.0} B"),
        n if n < 999_500.0 => format!("{} kB", short(n / 1e3)),
        n => format!("{} MB", short(n / 1e6)),
    }
}

/// Seconds as a person would say them.
pub(crate) fn seconds(s: f64) -> String {
    match s {
        0.0 => "0".to_owned(),
        s if s < 0.0005 => "<1 ms".to_owned(),
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s => format!("{} s", short(s)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_follow_the_interval() {
        let show = |mean, half| with_interval(&Estimate { n: 9, mean, half }, 1.0, false);
        assert_eq!(show(1.23456, Some(0.0345)), "1.235 ± 0.035");
        assert_eq!(show(123.456, Some(12.3)), "123 ± 12");
        assert_eq!(show(1.5, Some(0.0)), "1.500 ± 0.000");
        assert_eq!(show(1.5, None), "1.500");
        assert_eq!(with_interval(&Estimate { n: 2, mean: 2.5e6, half: Some(1e5) }, 1e6, true), "+2.50 ± 0.10");
    }

    #[test]
    fn small_and_large_are_readable() {
        assert_eq!([short(0.0), short(0.1234), short(9.999), short(1234.5)], ["0", "0.123", "10.0", "1234"]);
        assert_eq!(
            [percent(0.0), percent(0.00001), percent(0.004), percent(0.63)],
            ["0 %", "<0.01 %", "0.4 %", "63 %"]
        );
        assert_eq!([bytes(0.0), bytes(512.0), bytes(1460.0), bytes(2.5e6)], ["0", "512 B", "1.46 kB", "2.50 MB"]);
        assert_eq!([seconds(0.0), seconds(0.0001), seconds(0.25), seconds(12.3)], ["0", "<1 ms", "250 ms", "12.3 s"]);
    }
}
