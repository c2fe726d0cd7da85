//! Axes: settings that vary, their values, and the map from [0, 1) to values.

use super::file::{AxisTable, GridTable, Item};
use super::measure::Measure;
use anabranch_lab::statistic::{Cell, Kind};
use anabranch_scenario::Problem;
use anabranch_scenario::file::At;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Setting that varies.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// Name of its column, which ends in the unit of its numbers.
    pub(super) name: String,
    /// Settings that take its value, each with its place in the file.
    pub(super) keys: Vec<At<String>>,
    pub(super) domain: Domain,
    /// Measure of all its values; `None` if they are not of one, and its column holds texts.
    measure: Option<Measure>,
    /// Place of its values in the file.
    pub(super) span: Range<usize>,
    /// True for numbers that are spaced evenly by logarithm.
    log: bool,
}

/// The values of an axis.
#[derive(Clone, Debug)]
pub(super) enum Domain {
    /// These values, crossed with the values of other axes.
    Listed(Vec<Value>),
    /// Drawn from these values.
    Choice(Vec<Value>),
    /// Drawn between these bounds.
    Between { low: f64, high: f64, log: bool, whole: bool, unit: String },
}

/// Value: a number with its unit, or a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    number: Option<f64>,
    /// Unit of a number, or the whole of a text.
    text: String,
    /// True for a flag, which TOML writes without quotes.
    bare: bool,
}

/// Description of an axis in a manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AxisInfo {
    /// Name of its column, which ends in the unit of its numbers.
    pub name: String,
    /// Settings that take its value.
    pub keys: Vec<String>,
    /// Unit of the numbers in its column, empty for shares and other numbers without one; `None` if it holds texts.
    pub unit: Option<String>,
    /// Values in words: `5, 10, 20`, `1 to 100, logarithmic`.
    pub values: String,
    /// True if its values are drawn.
    pub drawn: bool,
    /// True for numbers that are spaced evenly by logarithm.
    pub log: bool,
    /// Minimum and maximum of the numbers in its column.
    pub range: Option<[f64; 2]>,
    /// Values that it lists, as in its column.
    pub listed: Vec<String>,
}

impl Axis {
    /// Reads an axis of a file.
    pub(super) fn read(at: &At<AxisTable>) -> Result<Axis, Problem> {
        let table = &at.value;
        let keys: Vec<At<String>> = std::iter::once(&table.key).chain(&table.also).cloned().collect();
        for key in &keys {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            if key.value.is_empty() || !key.value.chars().all(plain) {
                let help = "accepted: a dotted key of the scenario, such as \"path.lte.rate\" or \"workload.0.size\"";
                return Err(Problem::at(&key.span, format!("`{}` is no key", key.value), help));
            }
        }
        // Exactly one way: if several were given, which one counts would depend on the order in this function.
        let given = [
            table.values.is_some(),
            table.grid.is_some(),
            table.uniform.is_some(),
            table.loguniform.is_some(),
            table.choice.is_some(),
        ];
        if given.iter().filter(|given| **given).count() != 1 {
            let problem = format!("axis `{}` has none or several of the ways to give values", table.key.value);
            return Err(Problem::at(&at.span, problem, "accepted: one of values, grid, uniform, loguniform, choice"));
        }
        let listed = |values: &Option<Vec<At<Item>>>| -> Result<Option<Vec<Value>>, Problem> {
            let Some(values) = values else { return Ok(None) };
            if values.is_empty() {
                return Err(Problem::at(&at.span, "the axis has no values", "accepted: one value or more"));
            }
            Ok(Some(values.iter().map(|item| Value::of(&item.value)).collect()))
        };
        let domain = if let Some(values) = listed(&table.values)? {
            Domain::Listed(values)
        } else if let Some(values) = listed(&table.choice)? {
            Domain::Choice(values)
        } else if let Some(grid) = &table.grid {
            Domain::Listed(spaced(grid)?)
        } else {
            let (pair, log) = match (&table.uniform, &table.loguniform) {
                (Some(pair), _) => (pair, false),
                (None, Some(pair)) => (pair, true),
                (None, None) => return Err(Problem::at(&at.span, "the axis has no values", "accepted: values = […]")),
            };
            let ends = [Value::of(&pair.value[0]), Value::of(&pair.value[1])];
            let (low, high, unit) = bounds(&pair.span, &ends, log)?;
            let plain = pair.value.iter().all(|item| matches!(item, Item::Whole(_)));
            let whole = plain || (WHOLE.contains(&&*unit) && low.fract() == 0.0 && high.fract() == 0.0);
            Domain::Between { low, high, log, whole, unit }
        };
        let name = &table.name.as_ref().unwrap_or(&table.key).value;
        let log = table.loguniform.is_some() || table.grid.as_ref().is_some_and(|grid| grid.value.log);
        let mut axis = Axis { name: name.clone(), keys, domain, measure: None, span: at.span.clone(), log };
        axis.measure = Measure::of_all(axis.samples().iter().map(Value::shown));
        if let Some(measure) = axis.measure {
            axis.name = measure.column(name);
        }
        Ok(axis)
    }

    /// Returns true if its values are drawn.
    pub(super) fn is_drawn(&self) -> bool {
        !matches!(self.domain, Domain::Listed(_))
    }

    /// Returns the number of values that it lists.
    pub(super) fn len(&self) -> u64 {
        match &self.domain {
            Domain::Listed(values) | Domain::Choice(values) => values.len() as u64,
            Domain::Between { .. } => 1,
        }
    }

    /// Returns the value of that number in its list.
    pub(super) fn listed(&self, number: u64) -> Option<Value> {
        let Domain::Listed(values) = &self.domain else { return None };
        values.get(usize::try_from(number).ok()?).cloned()
    }

    /// Returns the value at this number of [0, 1).
    pub(super) fn drawn(&self, u: f64) -> Value {
        match &self.domain {
            Domain::Listed(values) | Domain::Choice(values) => {
                values[((u * values.len() as f64) as usize).min(values.len() - 1)].clone()
            }
            Domain::Between { low, high, log, whole, unit } => {
                let x = match (whole, log) {
                    // Each whole number has an equal share of the range.
                    (true, false) => (low + u * (high - low + 1.0)).floor().min(*high),
                    (false, false) => digits(low + u * (high - low)),
                    (whole, true) => {
                        let x = low * libm::exp(u * libm::log(high / low));
                        if *whole { x.round() } else { digits(x) }
                    }
                };
                Value { number: Some(x.clamp(*low, *high)), text: unit.clone(), bare: false }
            }
        }
    }

    /// Returns values to check before the first run: all that are listed, or both ends.
    pub(super) fn samples(&self) -> Vec<Value> {
        match &self.domain {
            Domain::Listed(values) | Domain::Choice(values) => values.clone(),
            Domain::Between { .. } => vec![self.drawn(0.0), self.drawn(1.0 - f64::EPSILON)],
        }
    }

    /// Returns each `KEY=VALUE` that sets it to this value.
    pub(super) fn sets(&self, value: &Value) -> impl Iterator<Item = String> {
        self.keys.iter().map(move |key| format!("{}={}", key.value, value.toml()))
    }

    /// Returns the kind of its column.
    pub(super) fn kind(&self) -> Kind {
        if self.measure.is_some() { Kind::Number } else { Kind::Text }
    }

    /// Returns a value as a cell of its column.
    pub(super) fn cell(&self, value: &Value) -> Cell {
        let number = self.measure.and_then(|_| Measure::read(&value.shown()));
        number.map_or_else(|| Cell::Text(value.shown()), |(_, number)| Cell::Number(number))
    }

    pub(super) fn info(&self) -> AxisInfo {
        let list = |values: &[Value]| values.iter().map(Value::shown).collect::<Vec<_>>().join(", ");
        let values = match &self.domain {
            Domain::Listed(values) => list(values),
            Domain::Choice(values) => format!("one of {}", list(values)),
            Domain::Between { low, high, log, whole, unit } => {
                let [log, whole] =
                    [(*log, ", logarithmic"), (*whole, ", whole")].map(|(is, word)| if is { word } else { "" });
                format!("{low}{unit} to {high}{unit}{log}{whole}")
            }
        };
        let cells: Vec<Cell> = self.samples().iter().map(|value| self.cell(value)).collect();
        let numbers =
            || cells.iter().filter_map(|cell| if let Cell::Number(number) = cell { Some(*number) } else { None });
        let range = numbers().reduce(f64::min).zip(numbers().reduce(f64::max)).map(|(low, high)| [low, high]);
        let listed = match self.domain {
            Domain::Between { .. } => Vec::new(),
            _ => cells.iter().map(Cell::to_string).collect(),
        };
        AxisInfo {
            range,
            listed,
            name: self.name.clone(),
            keys: self.keys.iter().map(|key| key.value.clone()).collect(),
            unit: self.measure.map(|measure| measure.unit().to_owned()),
            values,
            drawn: self.is_drawn(),
            log: self.log,
        }
    }
}

/// Units of whole numbers.
const WHOLE: [&str; 2] = ["p", "B"];

impl Value {
    fn of(item: &Item) -> Value {
        let number = |number| Value { number: Some(number), text: String::new(), bare: false };
        match item {
            Item::Flag(flag) => Value { number: None, text: flag.to_string(), bare: true },
            Item::Whole(whole) => number(*whole as f64),
            Item::Number(x) => number(*x),
            Item::Text(text) => {
                let rest = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
                let unit = rest.trim();
                let is_unit = !unit.is_empty() && unit.chars().all(|c| c.is_ascii_alphabetic() || c == '%');
                match text[..text.len() - rest.len()].parse() {
                    Ok(x) if is_unit => Value { number: Some(x), text: unit.to_owned(), bare: false },
                    _ => Value { number: None, text: text.clone(), bare: false },
                }
            }
        }
    }

    /// Formats the value for people: `20mbit`, `late`.
    pub(super) fn shown(&self) -> String {
        match self.number {
            Some(number) => format!("{number}{}", self.text),
            None => self.text.clone(),
        }
    }

    fn toml(&self) -> String {
        let is_bare = self.bare || (self.number.is_some() && self.text.is_empty());
        if is_bare { self.shown() } else { toml::Value::from(self.shown()).to_string() }
    }
}

/// Returns the numbers of two ends and their unit.
fn bounds(span: &Range<usize>, ends: &[Value; 2], log: bool) -> Result<(f64, f64, String), Problem> {
    let refuse = |problem: &str, help: &str| Err(Problem::at(span, problem, help));
    let (Some(low), Some(high)) = (ends[0].number, ends[1].number) else {
        return refuse("both ends must be numbers", "accepted: two numbers, or two texts such as \"5ms\" and \"80ms\"");
    };
    if ends[0].text != ends[1].text {
        return refuse(
            "the ends differ in their unit",
            "accepted: the same unit at both ends: \"0.5mbit\" and \"20mbit\"",
        );
    }
    if !(low.is_finite() && high.is_finite() && low < high) {
        return refuse("the first end must be below the last", "accepted: the smaller value first");
    }
    if log && low <= 0.0 {
        return refuse("a logarithm needs values above zero", "accepted: a first end above zero");
    }
    Ok((low, high, ends[0].text.clone()))
}

fn spaced(grid: &At<GridTable>) -> Result<Vec<Value>, Problem> {
    let GridTable { from, to, count, log } = &grid.value;
    let (low, high, unit) = bounds(&grid.span, &[Value::of(from), Value::of(to)], *log)?;
    if !(2..=10_000).contains(count) {
        return Err(Problem::at(&grid.span, format!("a grid of {count} values"), "accepted: count from 2 to 10000"));
    }
    let one = |n: u32| {
        let u = f64::from(n) / f64::from(count - 1);
        let x = if *log { low * libm::exp(u * libm::log(high / low)) } else { low + u * (high - low) };
        // The ends stay exactly as written.
        let x = if n == 0 {
            low
        } else if n + 1 == *count {
            high
        } else {
            digits(x)
        };
        Value { number: Some(x), text: unit.clone(), bare: false }
    };
    Ok((0..*count).map(one).collect())
}

/// Rounds to six significant digits, so that the value in a command is exactly the one of the run.
fn digits(x: f64) -> f64 {
    format!("{x:.5e}").parse().expect("what was formatted as a number is one")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn axis(text: &str) -> Result<Axis, String> {
        let table: AxisTable = toml::from_str(text).unwrap();
        Axis::read(&At { span: 0..text.len(), value: table }).map_err(|problem| problem.problem)
    }

    fn sets(axis: &Axis, u: f64) -> Vec<String> {
        axis.sets(&axis.drawn(u)).collect()
    }

    #[test]
    fn a_number_becomes_a_value_with_its_unit() {
        let rate =
            axis("key = \"path.a.rate\"\nalso = [\"path.b.rate\"]\nloguniform = [\"1mbit\", \"100mbit\"]").unwrap();
        assert_eq!(sets(&rate, 0.0), ["path.a.rate=\"1mbit\"", "path.b.rate=\"1mbit\""]);
        assert_eq!(sets(&rate, 0.5)[0], "path.a.rate=\"10mbit\"");
        assert_eq!(rate.cell(&rate.drawn(0.25)), Cell::Number(3_162_280.0));
        let queue = axis("key = \"path.a.queue\"\nuniform = [\"10p\", \"12p\"]").unwrap();
        let all = [0.0, 0.34, 0.67, 1.0 - f64::EPSILON].map(|u| queue.drawn(u).shown());
        assert_eq!(all, ["10p", "11p", "12p", "12p"], "packets stay whole, and each is as likely");
        let mss = axis("key = \"host.mss\"\nuniform = [536, 1460]").unwrap();
        assert_eq!(sets(&mss, 0.5), ["host.mss=998"]);
        let share = axis("key = \"path.a.loss\"\nuniform = [\"0%\", \"2%\"]").unwrap();
        assert_eq!(sets(&share, 0.123_456_789), ["path.a.loss=\"0.246914%\""]);
    }

    #[test]
    fn lists_are_numbers_of_one_unit_or_texts() {
        let delay = axis("key = \"path.a.delay\"\nvalues = [\"5ms\", \"20 ms\"]").unwrap();
        assert_eq!((delay.name.as_str(), delay.kind()), ("path.a.delay_s", Kind::Number));
        assert_eq!(delay.sets(&delay.listed(1).unwrap()).collect::<Vec<_>>(), ["path.a.delay=\"20ms\""]);
        let cells = |text: &str| {
            let axis = axis(text).unwrap();
            (axis.name.clone(), axis.samples().iter().map(|value| axis.cell(value)).collect::<Vec<_>>())
        };
        let numbers = |numbers: &[f64]| numbers.iter().map(|number| Cell::Number(*number)).collect::<Vec<_>>();
        assert_eq!(
            cells("key = \"path.a.delay\"\nvalues = [\"5ms\", \"1s\"]"),
            ("path.a.delay_s".to_owned(), numbers(&[0.005, 1.0]))
        );
        assert_eq!(
            cells("key = \"host.receive-buffer\"\nvalues = [\"256KiB\", \"4MiB\"]"),
            ("host.receive-buffer_bytes".to_owned(), numbers(&[262_144.0, 4_194_304.0]))
        );
        let queues = cells("key = \"path.a.queue\"\nvalues = [\"100p\", \"64KiB\"]");
        let texts = ["100p", "64KiB"].map(|text| Cell::Text(text.to_owned()));
        assert_eq!(queues, ("path.a.queue".to_owned(), texts.to_vec()), "of two measures");
        let sack = axis("key = \"host.sack\"\nchoice = [true, false]").unwrap();
        assert_eq!(
            (sets(&sack, 0.4), sets(&sack, 0.6)),
            (vec!["host.sack=true".into()], vec!["host.sack=false".into()])
        );
        let grid = axis("key = \"x\"\ngrid = { from = \"1ms\", to = \"100ms\", count = 3, log = true }").unwrap();
        assert_eq!(grid.samples().iter().map(Value::shown).collect::<Vec<_>>(), ["1ms", "10ms", "100ms"]);
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for (text, said) in [
            ("key = \"x\"", "axis `x` has none or several of the ways to give values"),
            ("key = \"x\"\nvalues = [1]\nchoice = [1]", "axis `x` has none or several of the ways to give values"),
            ("key = \"x\"\nvalues = []", "the axis has no values"),
            ("key = \"x y\"\nvalues = [1]", "`x y` is no key"),
            ("key = \"x\"\nuniform = [\"5ms\", \"1s\"]", "the ends differ in their unit"),
            ("key = \"x\"\nuniform = [5, 5]", "the first end must be below the last"),
            ("key = \"x\"\nuniform = [\"late\", \"fps\"]", "both ends must be numbers"),
            ("key = \"x\"\nloguniform = [0, 5]", "a logarithm needs values above zero"),
            ("key = \"x\"\ngrid = { from = 1, to = 2, count = 1 }", "a grid of 1 values"),
        ] {
            assert_eq!(axis(text).err().as_deref(), Some(said), "{text}");
        }
    }
}
