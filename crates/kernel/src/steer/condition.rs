//! Conditions of rules, as a policy file writes them: `"rtt > 200ms"`, `"loss >= 5%"`, `"cheaper up"`.

use super::Measure;
use anabranch_units::quantity::{self, Refusal};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error};
use std::borrow::Cow;
use std::fmt;

/// A condition.
#[derive(Clone, PartialEq, Debug)]
pub enum Condition {
    /// Holds from the first look on.
    Always,
    /// A path that costs less has an established subflow and is neither a backup nor closed by a rule.
    CheaperUp,
    /// A measurement is beyond a bound.
    Beyond {
        /// The measurement.
        quantity: Quantity,
        /// Above the bound, not below it.
        above: bool,
        /// Also when it equals the bound.
        inclusive: bool,
        /// Bound, in the unit of [`Quantity::of`].
        bound: f64,
        /// Condition as it is written.
        text: String,
    },
}

/// A measurement of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// Smoothed round trip \[ms\].
    Rtt,
    /// Bytes sent again, as a share of those sent.
    Loss,
    /// Data sent and received \[bit/s\].
    Rate,
    /// The same, of all paths that cost less \[bit/s\].
    CheaperRate,
    /// Share of the quota that is used.
    Quota,
}

const ACCEPTED: &str = "accepted: QUANTITY > BOUND or QUANTITY < BOUND (also >= and <=), with rtt and a time, loss or \
                        quota and a percentage, rate or cheaper-rate and a rate, such as \"rtt > 200ms\"; or \
                        \"cheaper up\", or \"always\"";

const NAMES: [(&str, Quantity); 5] = [
    ("rtt", Quantity::Rtt),
    ("loss", Quantity::Loss),
    ("rate", Quantity::Rate),
    ("cheaper-rate", Quantity::CheaperRate),
    ("quota", Quantity::Quota),
];

impl Quantity {
    /// Its value on a path; `None` while it is not known.
    pub fn of(self, measure: &Measure) -> Option<f64> {
        match self {
            Quantity::Rtt => measure.rtt_ms,
            Quantity::Loss => measure.loss,
            Quantity::Rate => Some(measure.rate),
            Quantity::CheaperRate => Some(measure.cheaper_rate),
            Quantity::Quota => measure.quota_used,
        }
    }

    fn bound(self, text: &str) -> Result<f64, Refusal> {
        match self {
            Quantity::Rtt => quantity::duration(text).map(|time| time.as_millis_f64()),
            Quantity::Loss | Quantity::Quota => quantity::share(text),
            Quantity::Rate | Quantity::CheaperRate => quantity::rate(text).map(|rate| rate.as_bps() as f64),
        }
    }

    /// A value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Quantity::Rtt => format!("{value:.1} ms"),
            Quantity::Loss | Quantity::Quota => format!("{:.1} %", value * 100.0),
            Quantity::Rate | Quantity::CheaperRate => format!("{:.2} Mbit/s", value / 1e6),
        }
    }

    /// Its name in a policy file.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, it)| *it == self).map_or("", |(name, _)| name)
    }
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// If it is none, with what is accepted.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let refuse = |problem: String| Refusal { problem, accepted: ACCEPTED.to_owned() };
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            ["always"] => return Ok(Condition::Always),
            ["cheaper", "up"] => return Ok(Condition::CheaperUp),
            _ => {}
        }
        let place = text.find(['<', '>']).ok_or_else(|| refuse(format!("`{text}` is no condition")))?;
        let (name, rest) = (text[..place].trim(), &text[place + 1..]);
        let found = NAMES.iter().find(|(other, _)| *other == name);
        let Some((_, quantity)) = found else {
            let near = anabranch_units::nearest(name, NAMES.iter().map(|(name, _)| *name));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(refuse(format!("`{name}` is no measurement of a path{near}")));
        };
        let (inclusive, bound) = rest.strip_prefix('=').map_or((false, rest), |rest| (true, rest));
        let bound = quantity.bound(bound.trim())?;
        let above = text[place..].starts_with('>');
        Ok(Condition::Beyond { quantity: *quantity, above, inclusive, bound, text: words.join(" ") })
    }

    /// Returns true if it holds; `None` while its measurement is not known.
    pub fn holds(&self, measure: &Measure) -> Option<bool> {
        match self {
            Condition::Always => Some(true),
            Condition::CheaperUp => Some(measure.cheaper_up),
            Condition::Beyond { quantity, above, inclusive, bound, .. } => {
                let value = quantity.of(measure)?;
                Some(*inclusive && value == *bound || if *above { value > *bound } else { value < *bound })
            }
        }
    }

    /// The condition under which a rule with this one ends, unless it says so itself: 20 % within the bound.
    pub fn opposite(&self) -> Option<Condition> {
        let Condition::Beyond { quantity, above, bound, .. } = self else { return None };
        let (bound, sign) = if *above { (bound * 0.8, "<") } else { (bound * 1.25, ">") };
        let text = format!("{} {sign} {}", quantity.name(), quantity.show(bound));
        Some(Condition::Beyond { quantity: *quantity, above: !above, inclusive: false, bound, text })
    }

    /// The condition, with the measurement that it looks at.
    pub fn explain(&self, measure: &Measure) -> String {
        match self {
            Condition::Always => "always".to_owned(),
            Condition::CheaperUp if measure.cheaper_up => "a cheaper path is up".to_owned(),
            Condition::CheaperUp => "no cheaper path is up".to_owned(),
            Condition::Beyond { quantity, text, .. } => match quantity.of(measure) {
                Some(value) => format!("{text}: it is {}", quantity.show(value)),
                None => format!("{text}: it is not known"),
            },
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Condition::Always => "always",
            Condition::CheaperUp => "cheaper up",
            Condition::Beyond { text, .. } => text,
        })
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // The two parts as two lines, which pass through serde.
        Condition::parse(&text).map_err(|it| D::Error::custom(format_args!("{}\n{}", it.problem, it.accepted)))
    }
}

impl JsonSchema for Condition {
    fn schema_name() -> Cow<'static, str> {
        "Condition".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = r"^ *(always|cheaper +up|(rtt|loss|rate|cheaper-rate|quota) *[<>]=? *[0-9.]+ *[a-zA-Z%]+) *$";
        let about = "A measurement and its bound, \"rtt > 200ms\", \"loss > 5%\", \"rate < 1mbit\", \"cheaper-rate > \
                     5mbit\", \"quota >= 100%\"; or \"cheaper up\", or \"always\".";
        json_schema!({ "type": "string", "pattern": pattern, "description": about })
    }
}
