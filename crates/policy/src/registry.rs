//! The one registry of policies: names, parameters, defaults, citations and constructors.
//!
//! `anabranch list`, the scenario keys, the docs and the conformance suite all read it. Each policy declares its `ENTRY` in
//! its own file; the table of its folder lists the entries. No other list of names exists.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use crate::ack_path::ACK_PATHS;
pub use crate::congestion::CONGESTION;
pub use crate::first_path::FIRST_PATHS;
pub use crate::receive_window::WINDOWS;
pub use crate::reinjection::REINJECTIONS;
pub use crate::scheduler::SCHEDULERS;

/// One policy that can be named.
pub struct Entry<T: ?Sized + 'static> {
    /// The name in scenarios and on the command line.
    pub name: Cow<'static, str>,
    /// One line for `anabranch list`.
    pub about: Cow<'static, str>,
    /// Author and year of the paper, or the document that defines it.
    pub paper: Option<&'static str>,
    /// Parameters that a scenario can set.
    pub parameters: &'static [Parameter],
    /// Source of its module, whose first lines are its documentation (`include_str!`).
    pub source: Cow<'static, str>,
    build: Build<T>,
}

/// The constructor of a policy.
enum Build<T: ?Sized + 'static> {
    /// A function: an entry that a program declares.
    Fixed(fn(&Params) -> Box<T>),
    /// A closure that may own something, such as a class that was found at run time.
    Owned(Arc<Closure<T>>),
}

type Closure<T> = dyn Fn(&Params) -> Box<T> + Send + Sync;

/// A parameter of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name in scenarios.
    pub name: &'static str,
    /// One line, with the symbol and equation of the paper.
    pub about: &'static str,
    /// Unit, or empty for a pure number, a flag or a choice.
    pub unit: &'static str,
    /// What it may be and what it is when not set.
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
        /// What it must be, as an error or a table says it.
        form: &'static str,
        /// What is wrong with a text that is not of this form.
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

/// The parameters of one policy, complete with defaults.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Params(BTreeMap<&'static str, Value>);

/// Why a policy cannot be built as asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ParamError {
    /// There is no policy of that name.
    #[error("there is no {kind} called `{name}`; there are: {known}")]
    UnknownPolicy {
        /// What was looked for: scheduler, congestion control, ….
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The policy has no such parameter.
    #[error("`{policy}` has no parameter `{name}`; it takes: {known}")]
    UnknownParameter {
        /// The policy.
        policy: String,
        /// The parameter asked for.
        name: String,
        /// The parameters it has.
        known: String,
    },
    /// The value is of the wrong kind or out of range.
    #[error("`{policy}.{name}` is {value}; it must be {accepted}")]
    BadValue {
        /// The policy.
        policy: String,
        /// The parameter.
        name: &'static str,
        /// The value given.
        value: Value,
        /// What would be accepted.
        accepted: String,
    },
}

/// The entry called `name` in `table`; `kind` names the table in the error.
pub fn find<'a, T: ?Sized>(table: &'a [Entry<T>], kind: &'static str, name: &str) -> Result<&'a Entry<T>, ParamError> {
    table.iter().find(|entry| entry.name == name).ok_or_else(|| ParamError::UnknownPolicy {
        kind,
        name: name.to_owned(),
        known: join(table.iter().map(|entry| &*entry.name)),
    })
}

impl<T: ?Sized> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Entry {
            name: self.name.clone(),
            about: self.about.clone(),
            paper: self.paper,
            parameters: self.parameters,
            source: self.source.clone(),
            build: self.build.clone(),
        }
    }
}

impl<T: ?Sized> Clone for Build<T> {
    fn clone(&self) -> Self {
        match self {
            Build::Fixed(function) => Build::Fixed(*function),
            Build::Owned(closure) => Build::Owned(Arc::clone(closure)),
        }
    }
}

impl<T: ?Sized> Entry<T> {
    /// Declares a policy without a paper and without parameters. `build` makes one for a connection.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        source: &'static str,
        build: fn(&Params) -> Box<T>,
    ) -> Self {
        Entry {
            name: Cow::Borrowed(name),
            about: Cow::Borrowed(about),
            paper: None,
            parameters: &[],
            source: Cow::Borrowed(source),
            build: Build::Fixed(build),
        }
    }

    /// Declares a policy that was found at run time and has no source of ours, such as a class of Python.
    pub fn found(name: String, about: String, build: impl Fn(&Params) -> Box<T> + Send + Sync + 'static) -> Self {
        Entry {
            name: name.into(),
            about: about.into(),
            paper: None,
            parameters: &[],
            source: "".into(),
            build: Build::Owned(Arc::new(build)),
        }
    }

    /// Cites the paper or the document that defines it.
    #[must_use]
    pub const fn paper(mut self, paper: &'static str) -> Self {
        self.paper = Some(paper);
        self
    }

    /// Lists the parameters that a scenario can set.
    #[must_use]
    pub const fn parameters(mut self, parameters: &'static [Parameter]) -> Self {
        self.parameters = parameters;
        self
    }

    /// The parameters with `given` in place of the defaults.
    pub fn params(&self, given: &BTreeMap<String, Value>) -> Result<Params, ParamError> {
        let mut all: BTreeMap<_, _> = self.parameters.iter().map(|p| (p.name, p.domain.default_value())).collect();
        for (name, value) in given {
            let Some(parameter) = self.parameters.iter().find(|p| p.name == name) else {
                return Err(ParamError::UnknownParameter {
                    policy: self.name.to_string(),
                    name: name.clone(),
                    known: join(self.parameters.iter().map(|p| p.name)),
                });
            };
            parameter.domain.check(value).map_err(|accepted| ParamError::BadValue {
                policy: self.name.to_string(),
                name: parameter.name,
                value: value.clone(),
                accepted,
            })?;
            all.insert(parameter.name, value.clone());
        }
        Ok(Params(all))
    }

    /// One policy for a connection, with parameters that [`Entry::params`] has checked.
    pub fn build(&self, params: &Params) -> Box<T> {
        match &self.build {
            Build::Fixed(function) => function(params),
            Build::Owned(closure) => closure(params),
        }
    }

    /// One policy with all defaults.
    pub fn build_default(&self) -> Box<T> {
        self.build(&self.params(&BTreeMap::new()).expect("no parameter is given, so none can be wrong"))
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

    /// What would be accepted instead, if `value` is not.
    fn check(&self, value: &Value) -> Result<(), String> {
        match (self, value) {
            (Domain::Number { min, max, .. }, Value::Number(n)) if (*min..=*max).contains(n) => Ok(()),
            (Domain::Flag { .. }, Value::Flag(_)) => Ok(()),
            (Domain::Text { check, .. }, Value::Text(text)) => check(text).map_err(|why| format!("{self}, and {why}")),
            _ => Err(self.to_string()),
        }
    }
}

impl Params {
    /// The number called `name`.
    pub fn number(&self, name: &str) -> f64 {
        match self.0.get(name) {
            Some(Value::Number(n)) => *n,
            _ => unreachable!("an entry reads only the numbers it declares: {name}"),
        }
    }

    /// The flag called `name`.
    pub fn flag(&self, name: &str) -> bool {
        match self.0.get(name) {
            Some(Value::Flag(flag)) => *flag,
            _ => unreachable!("an entry reads only the flags it declares: {name}"),
        }
    }

    /// The text called `name`.
    pub fn text(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(Value::Text(text)) => text,
            _ => unreachable!("an entry reads only the texts it declares: {name}"),
        }
    }

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

fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
