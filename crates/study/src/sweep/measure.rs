//! Measures: the numbers that values of an axis are in the column of its name.

use anabranch_units::quantity::{self, Queue};

/// Kind of quantity, which has one unit in all columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Seconds.
    Time,
    /// Bits per second.
    Rate,
    /// Bytes.
    Size,
    /// Packets.
    Packets,
    /// Bandwidth-delay products.
    Bdp,
    /// Numbers without a unit, among them shares between 0 and 1.
    Plain,
}

impl Measure {
    /// Returns a value as a number of its measure: `40ms` is 0.04 of [`Measure::Time`]. `None` for a text.
    pub(super) fn read(text: &str) -> Option<(Measure, f64)> {
        let plain = || Some((Measure::Plain, text.parse::<f64>().ok().filter(|number| number.is_finite())?));
        let time = || Some((Measure::Time, quantity::duration(text).ok()?.as_secs_f64()));
        let rate = || Some((Measure::Rate, quantity::rate(text).ok()?.as_bps() as f64));
        let share = || Some((Measure::Plain, quantity::share(text).ok()?));
        let size = || Some((Measure::Size, quantity::size(text).ok()?.get() as f64));
        let queue = || match quantity::queue(text).ok()? {
            Queue::Packets(packets) => Some((Measure::Packets, f64::from(packets))),
            Queue::Bytes(bytes) => Some((Measure::Size, bytes.get() as f64)),
            Queue::Time(time) => Some((Measure::Time, time.as_secs_f64())),
            Queue::Bdp(products) => Some((Measure::Bdp, products)),
        };
        plain().or_else(time).or_else(rate).or_else(share).or_else(size).or_else(queue)
    }

    /// Returns the measure that all of these texts have.
    pub(super) fn of_all(mut texts: impl Iterator<Item = String>) -> Option<Measure> {
        let (first, _) = Measure::read(&texts.next()?)?;
        texts.all(|text| Measure::read(&text).is_some_and(|(measure, _)| measure == first)).then_some(first)
    }

    /// Returns the name of a column of such numbers, which ends in their unit.
    pub(super) fn column(self, name: &str) -> String {
        match self.unit() {
            "" => name.to_owned(),
            unit if name.ends_with(&format!("_{unit}")) => name.to_owned(),
            unit => format!("{name}_{unit}"),
        }
    }

    /// Returns the unit as names of columns have it.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Measure::Time => "s",
            Measure::Rate => "bps",
            Measure::Size => "bytes",
            Measure::Packets => "packets",
            Measure::Bdp => "bdp",
            Measure::Plain => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_numbers_in_one_unit_each() {
        for (text, column, number) in [
            ("40ms", "x_s", 0.04),
            ("1.5s", "x_s", 1.5),
            ("2min", "x_s", 120.0),
            ("20mbit", "x_bps", 20e6),
            ("256KiB", "x_bytes", 262_144.0),
            ("1MB", "x_bytes", 1e6),
            ("100p", "x_packets", 100.0),
            ("0.5bdp", "x_bdp", 0.5),
            ("0.5%", "x", 0.005),
            ("17", "x", 17.0),
            ("-0.25", "x", -0.25),
        ] {
            let read = Measure::read(text).map(|(measure, number)| (measure.column("x"), number));
            assert_eq!(read, Some((column.to_owned(), number)), "{text}");
        }
        for text in ["late", "true", "5 apples", "", "NaN", "inf"] {
            assert_eq!(Measure::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_that_has_the_unit_gets_it_once() {
        assert_eq!(Measure::Time.column("lte_delay_s"), "lte_delay_s");
        assert_eq!(Measure::Size.column("paths"), "paths_bytes");
    }
}
