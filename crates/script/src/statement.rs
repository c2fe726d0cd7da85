//! Statements: the content of one line of a script.

use anabranch_units::Duration;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

/// Time at which a statement holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// Interval after the last statement, least and greatest.
    After(Duration, Duration),
    /// Since the script began.
    At(Duration, Duration),
}

/// A name with or without a value, and where it stands in its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    pub(crate) at: Range<usize>,
}

/// An option with its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OptionText {
    pub(crate) name: String,
    pub(crate) args: Vec<Field>,
    pub(crate) at: Range<usize>,
}

/// A segment as it is written: control bits, fields, MPTCP options.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct SegmentText {
    pub(crate) flags: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) options: Vec<OptionText>,
}

/// Comparison of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Compare {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

/// One line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Statement {
    pub(crate) when: Option<When>,
    pub(crate) action: Action,
}

/// Action or expectation of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Host(Vec<Field>),
    Peer(Vec<Field>),
    Subflow { name: String, host: (IpAddr, Option<u16>), peer: SocketAddr, join: Option<String>, fields: Vec<Field> },
    Listen(u16),
    Open(String),
    Write { bytes: u64, takes: u64, on: Option<String> },
    Read { bytes: u64, on: Option<String> },
    Shutdown { on: Option<String> },
    Abort { on: Option<String> },
    CloseSubflow(String),
    Backup(String, bool),
    Carrier(IpAddr, bool),
    Event { words: Vec<String>, absent: bool, on: Option<String> },
    Check { name: String, compare: Compare, value: String, on: Option<String>, at: Range<usize> },
    Nothing,
    Drain { least: i128, most: i128 },
    Inject { subflow: String, segment: SegmentText },
    Expect { subflow: String, segment: SegmentText },
}

impl SegmentText {
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl OptionText {
    pub(crate) fn arg(&self, name: &str) -> Option<&Field> {
        self.args.iter().find(|arg| arg.name == name)
    }

    /// The first of `names` that is there.
    pub(crate) fn any(&self, names: &[&str]) -> Option<&Field> {
        names.iter().find_map(|name| self.arg(name))
    }
}

impl std::fmt::Display for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl std::fmt::Display for OptionText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let args: Vec<String> = self.args.iter().map(Field::to_string).collect();
        if args.is_empty() { f.write_str(&self.name) } else { write!(f, "{}({})", self.name, args.join(", ")) }
    }
}

impl std::fmt::Display for SegmentText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.flags)?;
        self.fields.iter().try_for_each(|field| write!(f, " {field}"))?;
        self.options.iter().try_for_each(|option| write!(f, " {option}"))
    }
}

/// A field in text.
pub(crate) fn field(name: &str, value: impl ToString) -> Field {
    Field { name: name.to_owned(), value: Some(value.to_string()), at: 0..0 }
}

/// A bare word among fields.
pub(crate) fn flag(name: &str) -> Field {
    Field { name: name.to_owned(), value: None, at: 0..0 }
}
