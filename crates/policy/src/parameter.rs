//! Parameters of policies: what can be set, which values are accepted, and what was set.
//!
//! A policy declares each parameter once, as a typed constant that it reads by:
//!
//! ```
//! use anabranch_policy::registry::{Number, Params, number};
//!
//! const BETA: Number = number("beta", "hysteresis β of Eq. (1)", 0.25, 0.0..=10.0);
//!
//! assert_eq!(BETA.of(&Params::default()), 0.25);
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// A parameter of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name in scenarios.
    pub name: &'static str,
    /// One line, with the symbol and equation of the paper.
    pub about: &'static str,
    /// Unit, or empty for a pure number, a flag or a choice.
    pub unit: &'static str,
    /// Values that it takes, and its default.
    pub domain: Domain,
}

/// The values a parameter takes, with its default.
#[derive(Clone, Copy, Debug)]
pub enum Domain {
    /// A number in `min..=max`.
    Number {
        /// Value when not set.
        default: f64,
        /// Smallest value accepted.
        min: f64,
        /// Largest value accepted.
        max: f64,
    },
    /// True or false.
    Flag {
        /// Value when not set.
        default: bool,
    },
    /// A text of a certain form.
    Text {
        /// Value when not set.
        default: &'static str,
        /// Accepted form, as an error or a table says it.
        form: &'static str,
        /// Error of a text that is not of this form.
        check: fn(&str) -> Result<(), String>,
    },
}

/// The value of a parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A number.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// Text.
    Text(String),
}

/// The parameters of one policy as they were set. One that is not among them has its default.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Params(pub(crate) BTreeMap<&'static str, Value>);

/// A parameter that is a number.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    name: &'static str,
    about: &'static str,
    unit: &'static str,
    default: f64,
    min: f64,
    max: f64,
}

/// A parameter that is true or false.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    name: &'static str,
    about: &'static str,
    default: bool,
}

/// A parameter that is a text.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    name: &'static str,
    about: &'static str,
    default: &'static str,
    form: &'static str,
    check: fn(&str) -> Result<(), String>,
}

/// Declares a pure number in `range`.
pub const fn number(name: &'static str, about: &'static str, default: f64, range: RangeInclusive<f64>) -> Number {
    Number { name, about, unit: "", default, min: *range.start(), max: *range.end() }
}

/// Declares a flag.
pub const fn flag(name: &'static str, about: &'static str, default: bool) -> Flag {
    Flag { name, about, default }
}

/// Declares a text that `check` accepts; `form` says in words what that is.
pub const fn text(
    name: &'static str,
    about: &'static str,
    default: &'static str,
    form: &'static str,
    check: fn(&str) -> Result<(), String>,
) -> Text {
    Text { name, about, default, form, check }
}

impl Number {
    /// Counts in `unit`.
    #[must_use]
    pub const fn in_unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// Describes it for an entry.
    pub const fn parameter(self) -> Parameter {
        let Number { name, about, unit, default, min, max } = self;
        Parameter { name, about, unit, domain: Domain::Number { default, min, max } }
    }

    /// Reads it.
    pub fn of(self, params: &Params) -> f64 {
        match params.0.get(self.name) {
            Some(Value::Number(number)) => *number,
            _ => self.default,
        }
    }
}

impl Flag {
    /// Describes it for an entry.
    pub const fn parameter(self) -> Parameter {
        let Flag { name, about, default } = self;
        Parameter { name, about, unit: "", domain: Domain::Flag { default } }
    }

    /// Reads it.
    pub fn of(self, params: &Params) -> bool {
        match params.0.get(self.name) {
            Some(Value::Flag(flag)) => *flag,
            _ => self.default,
        }
    }
}

impl Text {
    /// Describes it for an entry.
    pub const fn parameter(self) -> Parameter {
        let Text { name, about, default, form, check } = self;
        Parameter { name, about, unit: "", domain: Domain::Text { default, form, check } }
    }

    /// Reads it.
    pub fn of(self, params: &Params) -> &str {
        match params.0.get(self.name) {
            Some(Value::Text(text)) => text,
            _ => self.default,
        }
    }
}

impl Domain {
    /// Value when not set.
    pub fn default_value(&self) -> Value {
        match *self {
            Domain::Number { default, .. } => Value::Number(default),
            Domain::Flag { default } => Value::Flag(default),
            Domain::Text { default, .. } => Value::Text(default.to_owned()),
        }
    }

    /// Says what would be accepted instead, if `value` is not.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        match (self, value) {
            (Domain::Number { min, max, .. }, Value::Number(n)) if (*min..=*max).contains(n) => Ok(()),
            (Domain::Flag { .. }, Value::Flag(_)) => Ok(()),
            (Domain::Text { check, .. }, Value::Text(text)) => check(text).map_err(|why| format!("{self}, and {why}")),
            _ => Err(self.to_string()),
        }
    }
}

impl Params {
    /// All parameters in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(n) => write!(f, "{n}"),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Domain::Number { min, max, .. } => write!(f, "a number from {min} to {max}"),
            Domain::Flag { .. } => write!(f, "true or false"),
            Domain::Text { form, .. } => f.write_str(form),
        }
    }
}
