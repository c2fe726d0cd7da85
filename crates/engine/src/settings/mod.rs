//! The settings of an endpoint, each described once.
//!
//! A new setting is a field of [`Config`] or [`Profile`], where meaning, name, accepted values and default stand
//! together. Keys of scenario files and of `--set`, their JSON schema, the `host` statement of scripts, options of
//! `anabranch serve`, `fetch` and `proxy`, the kernel's settings on a testbed and docs/settings.md follow from the
//! field.

mod config;
mod declare;
mod profile;
mod words;

pub use config::{Config, Factory, FastClose, Keepalive, LocalAddress, Policies, Switch};
pub use profile::{Profile, ReceiveTuning};

use anabranch_units::{Bytes, Duration, quantity};
use std::fmt;
use std::ops::RangeInclusive;

use Domain::{Choice, Flag, Number, NumberOrOff, Ports, Size, SizeOrOff, Time, TimeOrOff};

/// One setting: its name, values, and the places where it can be set.
#[derive(Clone, Copy)]
pub struct Setting {
    /// Name in kebab-case: the key in scenario files.
    pub name: &'static str,
    /// Meaning, in sentences.
    pub about: &'static str,
    /// Accepted values, and the field that holds them.
    pub domain: Domain,
    /// Unit of a number; empty for a count.
    pub unit: &'static str,
    /// Scripts and the commands on the wire can set it, scenarios cannot.
    pub not_in_scenarios: bool,
    /// Counterpart in the Linux kernel, which the testbed sets; `None` if the kernel has none.
    pub kernel: Option<Kernel>,
    script: Option<&'static str>,
}

/// Accepted values of a setting, with access to the field.
#[derive(Clone, Copy)]
pub enum Domain {
    /// True or false.
    Flag(Field<bool>),
    /// A whole number from the first bound to the second, both included.
    Number(Field<dyn Whole>, i64, i64),
    /// A whole number within these bounds, or off.
    NumberOrOff(Field<dyn Whole>, i64, i64),
    /// An amount of data above zero.
    Size(Field<Bytes>),
    /// An amount of data above zero, or off.
    SizeOrOff(Field<Option<Bytes>>),
    /// A span of time.
    Time(Field<Duration>),
    /// A span of time, or off.
    TimeOrOff(Field<Option<Duration>>),
    /// Ports from the first to the last, both included, or off.
    Ports(Field<Option<RangeInclusive<u16>>>),
    /// One of these words.
    Choice(&'static [Word]),
}

/// Access to a field of a configuration.
pub type Field<T> = fn(&mut Config) -> &mut T;

/// A whole number in a field, which may be optional.
pub trait Whole {
    /// Returns the number; `None` if an optional one is off.
    fn number(&self) -> Option<i64>;
    /// Sets the number; clamps it to the field's type.
    fn set(&mut self, number: i64);
    /// Turns an optional number off. Another keeps its value.
    fn clear(&mut self) {}
}

/// One of the values of a setting that has names for them.
#[derive(Clone, Copy)]
pub struct Word {
    /// Name in kebab-case.
    pub name: &'static str,
    /// Meaning, in sentences.
    pub about: &'static str,
    put: fn(&mut Config),
    is: fn(&Config) -> bool,
}

/// Counterpart of a setting in the Linux kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kernel {
    /// Kernel parameter that is 0 for false, and its value for true.
    Switch(&'static str, u8),
    /// Kernel parameter that is the same number.
    Number(&'static str),
    /// Kernel parameter that is the place of the word among all, from 0.
    Place(&'static str),
    /// Kernel parameter that is the time in this unit, 0 for off.
    Time(&'static str, Duration),
    /// Something else, in Markdown; the testbed has code for it.
    Other(&'static str),
}

/// Value of a setting. Displays as in scenario files.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// True or false.
    Flag(bool),
    /// A whole number.
    Number(i64),
    /// An amount of data.
    Size(Bytes),
    /// A span of time.
    Time(Duration),
    /// Ports from the first to the last.
    Ports(u16, u16),
    /// No number, amount, time or ports.
    Off,
    /// A name.
    Word(&'static str),
}

/// A value that a setting does not accept.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{problem}; accepted: {accepted}")]
pub struct SettingError {
    /// The setting and its value.
    pub problem: String,
    /// Accepted values.
    pub accepted: String,
}

/// All settings but policies, which [`Policies`] and their registries describe, and addresses; in the order in which
/// they are applied.
pub const SETTINGS: &[Setting] = Config::SETTINGS;

/// The largest number of a field with 32 bits: no limit.
pub(crate) const ANY: i64 = u32::MAX as i64;

/// The longest queue of handshakes, and the highest rate of resets.
pub(crate) const MANY: i64 = 1 << 20;

impl Setting {
    /// Creates a setting of all places but the kernel.
    pub const fn new(name: &'static str, about: &'static str, domain: Domain) -> Self {
        Setting { name, about, domain, unit: "", not_in_scenarios: false, kernel: None, script: None }
    }

    /// Returns the same with this unit of its number.
    pub const fn in_unit(self, unit: &'static str) -> Self {
        Setting { unit, ..self }
    }

    /// Returns the same for scripts and the commands on the wire alone.
    pub const fn not_in_scenarios(self) -> Self {
        Setting { not_in_scenarios: true, ..self }
    }

    /// Returns the same with this name in scripts, in place of its own with underscores.
    pub const fn called_in_scripts(self, name: &'static str) -> Self {
        Setting { script: Some(name), ..self }
    }

    /// Returns the same with this counterpart in the kernel.
    pub const fn in_kernel(self, kernel: Kernel) -> Self {
        Setting { kernel: Some(kernel), ..self }
    }

    /// Returns the name in scripts.
    pub fn script(&self) -> String {
        self.script.map_or_else(|| self.name.replace('-', "_"), str::to_owned)
    }

    /// Returns the accepted values in words.
    pub fn accepted(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let number = |min, max| match max {
            ANY => format!("{min}{unit} or more"),
            _ => format!("{min} to {max}{unit}"),
        };
        match self.domain {
            Flag(_) => "true or false".to_owned(),
            Number(_, min, max) => number(min, max),
            NumberOrOff(_, min, max) => number(min, max) + ", or false",
            Size(_) => "any size from 1B".to_owned(),
            SizeOrOff(_) => "any size from 1B, or false".to_owned(),
            Time(_) => "a time such as 40ms".to_owned(),
            TimeOrOff(_) => "a time such as 40ms, or false".to_owned(),
            Ports(_) => "ports such as 61000-65535, or false".to_owned(),
            Choice(words) => words.iter().map(|word| word.name).collect::<Vec<_>>().join(", "),
        }
    }

    /// Returns true if `false` turns it off.
    pub fn can_be_off(&self) -> bool {
        matches!(self.domain, NumberOrOff(..) | SizeOrOff(_) | TimeOrOff(_) | Ports(_))
    }

    /// Returns the value in `config`.
    pub fn value(&self, config: &Config) -> Value {
        let mut config = config.clone();
        match self.domain {
            Flag(field) => Value::Flag(*field(&mut config)),
            Number(field, ..) | NumberOrOff(field, ..) => field(&mut config).number().map_or(Value::Off, Value::Number),
            Size(field) => Value::Size(*field(&mut config)),
            SizeOrOff(field) => field(&mut config).map_or(Value::Off, Value::Size),
            Time(field) => Value::Time(*field(&mut config)),
            TimeOrOff(field) => field(&mut config).map_or(Value::Off, Value::Time),
            Ports(field) => {
                field(&mut config).as_ref().map_or(Value::Off, |ports| Value::Ports(*ports.start(), *ports.end()))
            }
            Choice(words) => Value::Word(words.iter().find(|word| (word.is)(&config)).map_or("", |word| word.name)),
        }
    }

    /// Reads a value as written: `true`, `3`, `64KiB`, `40ms`, `61000-65535`, a name, or `false` for off.
    ///
    /// # Errors
    ///
    /// The text is no value of this setting.
    pub fn parse(&self, text: &str) -> Result<Value, SettingError> {
        let value = match self.domain {
            _ if text == "false" && self.can_be_off() => Some(Value::Off),
            Flag(_) => text.parse().ok().map(Value::Flag),
            Number(..) | NumberOrOff(..) => text.parse().ok().map(Value::Number),
            Size(_) | SizeOrOff(_) => quantity::size(text).ok().map(Value::Size),
            Time(_) | TimeOrOff(_) => quantity::duration(text).ok().map(Value::Time),
            Ports(_) => text.split_once('-').and_then(|(first, last)| {
                let port = |text: &str| text.parse().ok();
                Some(Value::Ports(port(first)?, port(last)?))
            }),
            Choice(words) => words.iter().find(|word| word.name == text).map(|word| Value::Word(word.name)),
        };
        let refused = || SettingError { problem: format!("`{}` is {text}", self.name), accepted: self.accepted() };
        let value = value.ok_or_else(refused)?;
        self.check(value).map(|()| value)
    }

    /// Checks whether `value` is one of those accepted.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn check(&self, value: Value) -> Result<(), SettingError> {
        let problem = match (self.domain, value) {
            (Flag(_), Value::Flag(_)) | (Time(_) | TimeOrOff(_), Value::Time(_)) => return Ok(()),
            (_, Value::Off) if self.can_be_off() => return Ok(()),
            (Number(_, min, max) | NumberOrOff(_, min, max), Value::Number(number))
                if (min..=max).contains(&number) =>
            {
                return Ok(());
            }
            (Size(_) | SizeOrOff(_), Value::Size(size)) if !size.is_zero() => return Ok(()),
            (Size(_) | SizeOrOff(_), Value::Size(_)) => format!("`{}` is empty", self.name),
            (Ports(_), Value::Ports(first, last)) if (1..=last).contains(&first) => return Ok(()),
            (Choice(words), Value::Word(name)) if words.iter().any(|word| word.name == name) => return Ok(()),
            (_, value) => format!("`{}` is {value}", self.name),
        };
        Err(SettingError { problem, accepted: self.accepted() })
    }

    /// Sets it to `value`.
    ///
    /// # Errors
    ///
    /// The value is none of those accepted ([`check`](Self::check)). Nothing has changed then.
    pub fn put(&self, config: &mut Config, value: Value) -> Result<(), SettingError> {
        self.check(value)?;
        match (self.domain, value) {
            (Flag(field), Value::Flag(on)) => *field(config) = on,
            (Number(field, ..) | NumberOrOff(field, ..), Value::Number(number)) => field(config).set(number),
            (NumberOrOff(field, ..), _) => field(config).clear(),
            (Size(field), Value::Size(size)) => *field(config) = size,
            (SizeOrOff(field), Value::Size(size)) => *field(config) = Some(size),
            (SizeOrOff(field), _) => *field(config) = None,
            (Time(field), Value::Time(time)) => *field(config) = time,
            (TimeOrOff(field), Value::Time(time)) => *field(config) = Some(time),
            (TimeOrOff(field), _) => *field(config) = None,
            (Ports(field), Value::Ports(first, last)) => *field(config) = Some(first..=last),
            (Ports(field), _) => *field(config) = None,
            (Choice(words), Value::Word(name)) => {
                words.iter().filter(|word| word.name == name).for_each(|word| (word.put)(config));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the kernel parameter and its text for `value`, if the counterpart is a parameter.
    pub fn kernel_parameter(&self, value: Value) -> Option<(&'static str, String)> {
        let text = match (self.kernel?, value) {
            (Kernel::Switch(_, on), Value::Flag(flag)) => if flag { on } else { 0 }.to_string(),
            (Kernel::Number(_), Value::Number(number)) => number.to_string(),
            (Kernel::Place(_), Value::Word(name)) => {
                let Choice(words) = self.domain else { return None };
                words.iter().position(|word| word.name == name)?.to_string()
            }
            (Kernel::Number(_) | Kernel::Time(..), Value::Off) => "0".to_owned(),
            (Kernel::Time(_, unit), Value::Time(time)) => (time.as_nanos() / unit.as_nanos()).to_string(),
            _ => return None,
        };
        self.kernel?.parameter().map(|key| (key, text))
    }
}

impl Kernel {
    /// Returns the name of the kernel parameter, if the counterpart is one.
    pub const fn parameter(self) -> Option<&'static str> {
        match self {
            Kernel::Switch(key, _) | Kernel::Number(key) | Kernel::Place(key) | Kernel::Time(key, _) => Some(key),
            Kernel::Other(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(on) => on.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Size(size) => size.fmt(f),
            Value::Time(time) => time.fmt(f),
            Value::Ports(first, last) => write!(f, "{first}-{last}"),
            Value::Off => f.write_str("false"),
            Value::Word(name) => f.write_str(name),
        }
    }
}

/// Implements [`Whole`] for a type of numbers, and for an optional one.
macro_rules! whole {
    ($($number:ty),*) => {$(
        impl Whole for $number {
            fn number(&self) -> Option<i64> {
                i64::try_from(*self).ok()
            }
            fn set(&mut self, number: i64) {
                let most = i64::try_from(<$number>::MAX).unwrap_or(i64::MAX);
                *self = number.clamp(<$number>::MIN as i64, most) as $number;
            }
        }

        impl Whole for Option<$number> {
            fn number(&self) -> Option<i64> {
                self.as_ref()?.number()
            }
            fn set(&mut self, number: i64) {
                self.insert(0).set(number);
            }
            fn clear(&mut self) {
                *self = None;
            }
        }
    )*};
}

whole!(i8, u16, u32, usize);
