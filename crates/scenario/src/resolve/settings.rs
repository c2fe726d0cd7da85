//! Settings of a host that the engine describes: found by name, read and checked.

use crate::error::Problem;
use crate::file::{Assignment, At, HostTable, OrOff, Unit};
use anabranch_engine::settings::{Domain, Setting, SettingError, Value};
use anabranch_units::{Bytes, Duration, suggest};
use serde::Deserialize;

/// A host's table with its settings.
#[derive(Clone)]
pub struct HostSettings {
    /// The table as written.
    pub table: HostTable,
    /// Its settings, in the order of their descriptions.
    pub given: Vec<Given>,
}

/// A setting that a table gives.
#[derive(Clone, Copy)]
pub struct Given {
    /// Description of the setting.
    pub setting: Setting,
    /// Value that it accepts.
    pub value: Value,
}

impl HostSettings {
    /// Finds the settings of a table.
    pub(super) fn read(settings: &[Setting], table: &HostTable) -> Result<HostSettings, Problem> {
        let mut given = Vec::new();
        for Assignment { key, value } in &table.others {
            let known = |setting: &Setting| setting.name == key.value && !setting.not_in_scenarios;
            let Some(place) = settings.iter().position(known) else { return Err(unknown(settings, key)) };
            given.push((place, Given { setting: settings[place], value: read(&settings[place], value)? }));
        }
        // Some settings depend on those before them: `min-rto` on `rto`.
        given.sort_by_key(|(place, _)| *place);
        Ok(HostSettings { table: table.clone(), given: given.into_iter().map(|(_, given)| given).collect() })
    }

    /// Returns true if the table gives this setting.
    pub(super) fn gives(&self, name: &str) -> bool {
        self.given.iter().any(|given| given.setting.name == name)
    }
}

fn unknown(settings: &[Setting], key: &At<String>) -> Problem {
    let settings = settings.iter().filter(|setting| !setting.not_in_scenarios).map(|setting| setting.name);
    let accepted = HostTable::KEYS.iter().copied().chain(settings);
    Problem::at(&key.span, format!("unknown key `{}`", key.value), suggest(&key.value, accepted))
}

fn read(setting: &Setting, at: &At<toml::Value>) -> Result<Value, Problem> {
    let accepted = |problem| Problem { help: Some(format!("accepted: {}", setting.accepted())), ..problem };
    let value = match setting.domain {
        Domain::Flag(_) => typed::<bool>(at).map(Value::Flag),
        _ if setting.can_be_off() && at.value == toml::Value::Boolean(false) => Ok(Value::Off),
        Domain::Number(..) | Domain::NumberOrOff(..) => typed::<i64>(at).map(Value::Number).map_err(accepted),
        Domain::Ports(_) => {
            let text: String = typed(at).map_err(accepted)?;
            setting.parse(&text).map_err(|error| refused(at, error))
        }
        Domain::Size(_) | Domain::SizeOrOff(_) => typed::<Unit<Bytes>>(at).map(|size| Value::Size(size.0)),
        Domain::Time(_) => typed::<Unit<Duration>>(at).map(|time| Value::Time(time.0)),
        Domain::TimeOrOff(_) => typed::<OrOff>(at).map(|time| time.0.map_or(Value::Off, Value::Time)),
        Domain::Choice(words) => {
            let names = || words.iter().map(|word| word.name);
            let name: String = typed(at)?;
            let found = names().find(|known| *known == name).map(Value::Word);
            found.ok_or_else(|| Problem::at(&at.span, format!("unknown value `{name}`"), suggest(&name, names())))
        }
    }?;
    setting.check(value).map(|()| value).map_err(|error| refused(at, error))
}

fn refused(at: &At<toml::Value>, error: SettingError) -> Problem {
    Problem::at(&at.span, error.problem, format!("accepted: {}", error.accepted))
}

/// Reads a value as written, as a type; the error stands at its place.
pub(super) fn typed<T: for<'de> Deserialize<'de>>(at: &At<toml::Value>) -> Result<T, Problem> {
    T::deserialize(at.value.clone())
        .map_err(|error| Problem { span: Some(at.span.clone()), ..Problem::from_toml(&error) })
}
