//! Declaration of a kind of middlebox: its name, its sources, and its keys in scenario files.
//!
//! Each kind declares its `ENTRY` in its own file, with each key as a typed constant that it reads by:
//!
//! ```
//! use anabranch_paths::declaration::{Given, Typed, size};
//!
//! const SIZE: Typed<u16> = size("size", "Maximum payload of a piece; 536B unless given.", 536);
//!
//! assert_eq!(SIZE.of(&Given::default()), 536);
//! ```

use super::Middlebox;
use crate::Direction;
use anabranch_units::{Bytes, Duration};
use std::collections::BTreeMap;
use std::fmt;

/// A kind of middlebox.
#[derive(Clone, Copy, Debug)]
pub struct MiddleboxInfo {
    /// Name in scenario files.
    pub name: &'static str,
    /// One line for lists.
    pub about: &'static str,
    /// One sentence for the reference of scenario files.
    pub meaning: &'static str,
    /// Reference that describes it.
    pub source: &'static str,
    /// Keys besides `kind` and `end`.
    pub keys: &'static [Key],
    /// Makes a box with the given keys; the others have their defaults.
    pub read: fn(&Given) -> Result<Middlebox, String>,
}

/// A key of a kind of middlebox. Displays as a list says it: `size = size (536B)`.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name in scenario files.
    pub name: &'static str,
    /// One sentence, with the default.
    pub about: &'static str,
    /// Accepted values, with the default.
    pub domain: Domain,
}

/// Values that a key accepts, with its default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Domain {
    /// A whole number up to a maximum.
    Whole {
        /// Value when not given.
        default: u32,
        /// Largest value accepted.
        max: u32,
    },
    /// A size of a packet or a payload, up to 65535 bytes.
    Size {
        /// Value when not given \[B\].
        default: u16,
    },
    /// A span of time.
    Time {
        /// Value when not given; `None` for never.
        default: Option<Duration>,
    },
    /// Numbers of segments; none when not given.
    Segments,
    /// One of these words.
    Choice {
        /// Each word with its meaning.
        words: &'static [(&'static str, &'static str)],
        /// Place of the word that stands for a key that is not given, if one does.
        default: Option<usize>,
    },
}

/// Value of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A whole number.
    Whole(u32),
    /// A size \[B\].
    Size(u16),
    /// A span of time.
    Time(Duration),
    /// Numbers of segments.
    Segments(Vec<u64>),
    /// Place of a word among those of the key.
    Word(usize),
}

/// Keys of a box as they were given, each with a value of its domain.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Given(BTreeMap<&'static str, Value>);

/// A key with the type that its kind reads.
#[derive(Clone, Copy)]
pub struct Typed<T> {
    key: Key,
    read: fn(&Key, Option<&Value>) -> T,
}

/// A key that is one of several words.
#[derive(Clone, Copy)]
pub struct Choice<T: 'static> {
    key: Key,
    values: &'static [T],
    otherwise: T,
}

/// Declares a whole number of up to 32 bits.
pub const fn whole(name: &'static str, about: &'static str, default: u32) -> Typed<u32> {
    let key = Key { name, about, domain: Domain::Whole { default, max: u32::MAX } };
    Typed { key, read: |key, value| number(key, value) }
}

/// Declares a whole number of up to 16 bits.
pub const fn short(name: &'static str, about: &'static str, default: u16) -> Typed<u16> {
    let key = Key { name, about, domain: Domain::Whole { default: default as u32, max: u16::MAX as u32 } };
    Typed { key, read: |key, value| u16::try_from(number(key, value)).unwrap_or(u16::MAX) }
}

/// Declares a size of a packet or a payload \[B\].
pub const fn size(name: &'static str, about: &'static str, default: u16) -> Typed<u16> {
    let key = Key { name, about, domain: Domain::Size { default } };
    Typed { key, read: |key, value| u16::try_from(number(key, value)).unwrap_or(u16::MAX) }
}

/// Declares a span of time.
pub const fn time(name: &'static str, about: &'static str, default: Duration) -> Typed<Duration> {
    let key = Key { name, about, domain: Domain::Time { default: Some(default) } };
    Typed { key, read: |key, value| moment(key, value).unwrap_or_default() }
}

/// Declares a time that is never reached when it is not given.
pub const fn time_or_never(name: &'static str, about: &'static str) -> Typed<Option<Duration>> {
    Typed { key: Key { name, about, domain: Domain::Time { default: None } }, read: moment }
}

/// Declares a list of numbers of segments, counted from 0 in each direction.
pub const fn segments(name: &'static str, about: &'static str) -> Typed<Vec<u64>> {
    Typed {
        key: Key { name, about, domain: Domain::Segments },
        read: |_, value| match value {
            Some(Value::Segments(numbers)) => numbers.clone(),
            _ => Vec::new(),
        },
    }
}

/// Declares a choice: each word with its meaning, the value of each, and the place of the default.
pub const fn choice<T: Copy>(
    name: &'static str,
    about: &'static str,
    words: &'static [(&'static str, &'static str)],
    values: &'static [T],
    default: usize,
) -> Choice<T> {
    assert!(words.len() == values.len(), "each word has a value");
    let domain = Domain::Choice { words, default: Some(default) };
    Choice { key: Key { name, about, domain }, values, otherwise: values[default] }
}

/// Declares the direction to which a box is restricted; both when not given.
pub const fn direction(about: &'static str) -> Choice<Option<Direction>> {
    let words = &[("down", "From server to client."), ("up", "From client to server.")];
    let key = Key { name: "direction", about, domain: Domain::Choice { words, default: None } };
    Choice { key, values: &[Some(Direction::Down), Some(Direction::Up)], otherwise: None }
}

impl<T> Typed<T> {
    /// Describes it for an entry.
    pub const fn key(&self) -> Key {
        self.key
    }

    /// Reads it.
    pub fn of(&self, given: &Given) -> T {
        (self.read)(&self.key, given.0.get(self.key.name))
    }
}

impl<T: Copy> Choice<T> {
    /// Describes it for an entry.
    pub const fn key(&self) -> Key {
        self.key
    }

    /// Reads it.
    pub fn of(&self, given: &Given) -> T {
        match given.0.get(self.key.name) {
            Some(Value::Word(place)) => self.values.get(*place).copied().unwrap_or(self.otherwise),
            _ => self.otherwise,
        }
    }
}

impl Given {
    /// Gives a key a value, in place of an earlier one.
    ///
    /// # Errors
    /// The accepted values, if the key does not accept this one.
    pub fn put(&mut self, key: &Key, value: Value) -> Result<(), String> {
        let fits = match (&key.domain, &value) {
            (Domain::Whole { max, .. }, Value::Whole(number)) => number <= max,
            (Domain::Choice { words, .. }, Value::Word(place)) => *place < words.len(),
            (Domain::Size { .. }, Value::Size(_))
            | (Domain::Time { .. }, Value::Time(_))
            | (Domain::Segments, Value::Segments(_)) => true,
            _ => false,
        };
        if !fits {
            return Err(key.domain.to_string());
        }
        self.0.insert(key.name, value);
        Ok(())
    }
}

fn number(key: &Key, value: Option<&Value>) -> u32 {
    match (value, key.domain) {
        (Some(Value::Whole(number)), _) => *number,
        (Some(Value::Size(size)), _) => u32::from(*size),
        (_, Domain::Whole { default, .. }) => default,
        (_, Domain::Size { default }) => u32::from(default),
        _ => 0,
    }
}

fn moment(key: &Key, value: Option<&Value>) -> Option<Duration> {
    match (value, key.domain) {
        (Some(Value::Time(time)), _) => Some(*time),
        (_, Domain::Time { default }) => default,
        _ => None,
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Domain::Whole { max, .. } => write!(f, "a whole number up to {max}"),
            Domain::Size { .. } => f.write_str("a size up to 65535B"),
            Domain::Time { .. } => f.write_str("a time"),
            Domain::Segments => f.write_str("numbers of segments"),
            Domain::Choice { words, .. } => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                f.write_str(&words.join(" | "))
            }
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = ", self.name)?;
        match self.domain {
            Domain::Whole { default, .. } => write!(f, "number ({default})"),
            Domain::Size { default } => write!(f, "size ({})", Bytes::new(u64::from(default))),
            Domain::Time { default: Some(default) } => write!(f, "time ({default})"),
            Domain::Time { default: None } => f.write_str("time (never)"),
            Domain::Segments => f.write_str("[numbers from 0] (none)"),
            Domain::Choice { words, default } => {
                let default = default.and_then(|place| words.get(place)).map_or("any", |(word, _)| word);
                write!(f, "{} ({default})", self.domain)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::MIDDLEBOXES;

    #[test]
    fn every_kind_accepts_its_defaults_and_has_a_name_of_its_own() {
        for (place, info) in MIDDLEBOXES.iter().enumerate() {
            let kind = (info.read)(&Given::default()).expect("defaults are accepted");
            assert_eq!((kind.name(), kind.check()), (info.name, Ok(())));
            assert!(MIDDLEBOXES[..place].iter().all(|other| other.name != info.name), "{}", info.name);
            for (number, key) in info.keys.iter().enumerate() {
                assert!(info.keys[..number].iter().all(|other| other.name != key.name), "{}: {}", info.name, key.name);
            }
        }
    }

    #[test]
    fn a_key_has_its_default_until_a_value_of_its_domain_is_given() {
        let (count, word) = (short("count", "", 4), choice("word", "", &[("a", ""), ("b", "")], &['a', 'b'], 1));
        let mut given = Given::default();
        assert_eq!((count.of(&given), word.of(&given), direction("").of(&given)), (4, 'b', None));
        given.put(&count.key(), Value::Whole(65_535)).unwrap();
        given.put(&word.key(), Value::Word(0)).unwrap();
        assert_eq!(given.put(&count.key(), Value::Whole(65_536)), Err("a whole number up to 65535".to_owned()));
        assert_eq!(given.put(&word.key(), Value::Word(2)), Err("a | b".to_owned()));
        assert!(given.put(&word.key(), Value::Whole(0)).is_err());
        assert_eq!((count.of(&given), word.of(&given)), (65_535, 'a'));
        assert_eq!(count.key().to_string(), "count = number (4)");
        assert_eq!(word.key().to_string(), "word = a | b (b)");
    }
}
