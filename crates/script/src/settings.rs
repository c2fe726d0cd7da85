//! Settings of the endpoint under test: the `host` and `peer` statements.

use crate::error::ScriptError;
use crate::peer::World;
use crate::statement::Field;
use crate::text::Line;
use crate::value;
use anabranch_engine::settings::{Domain, SETTINGS, Setting, Value};
use anabranch_engine::{Config, LocalAddress, Profile};
use anabranch_policy::registry::{CONGESTION, FIRST_PATHS, Kind, REINJECTIONS, SCHEDULERS};
use anabranch_units::suggest;
use anabranch_units::{Bytes, Dsn, Key, Seed};
use std::net::IpAddr;
use std::sync::Arc;

/// Keys of `host` that are no settings of the engine.
const OWN: &[&str] = &[
    "addresses",
    "backup_addresses",
    "profile",
    "seed",
    "key",
    "idsn",
    "scheduler",
    "congestion",
    "reinjection",
    "first_path",
];

/// Everything that is fixed before the first segment.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) config: Config,
    pub(crate) seed: Seed,
    /// The host's next key, in place of one from its seed.
    pub(crate) host_key: Option<Key>,
    pub(crate) host_idsn: Option<Dsn>,
    pub(crate) peer_key: Key,
    pub(crate) peer_idsn: Option<Dsn>,
}

impl Default for Settings {
    fn default() -> Self {
        // Scripts want to see one cause and one effect: no delayed ACKs, probes and timestamps unless asked for.
        let profile = Profile { tsq: None, delayed_ack: None, tlp: false, timestamps: false, ..Profile::tcp() };
        let address = LocalAddress { ip: IpAddr::from([10, 1, 0, 1]), backup: false };
        let mut config = Config::new(profile, vec![address]);
        config.announce = false;
        config.rejoin = None;
        Settings {
            config,
            seed: Seed(1),
            host_key: None,
            host_idsn: None,
            peer_key: Key::new(0x0102_0304_0506_0708),
            peer_idsn: None,
        }
    }
}

impl Settings {
    /// Applies a `host` statement.
    pub(crate) fn host(&mut self, fields: &[Field], line: &Line) -> Result<(), ScriptError> {
        fields.iter().try_for_each(|field| self.host_field(SETTINGS, field, line))
    }

    fn host_field(&mut self, table: &[Setting], field: &Field, line: &Line) -> Result<(), ScriptError> {
        let config = &mut self.config;
        let text = field.value.as_deref().unwrap_or_default();
        let refuse = |help: &str| ScriptError::refused(line, &field.at, format!("`{field}` is refused"), help);
        let whole = || {
            let number = value::number(text).and_then(|number| u64::try_from(number).ok());
            number.ok_or_else(|| refuse("a number of 64 bits"))
        };
        match field.name.as_str() {
            "addresses" => {
                config.addresses = addresses(text, false).ok_or_else(|| refuse("addresses=10.1.0.1,fd00::1"))?
            }
            "backup_addresses" => {
                config.addresses.extend(addresses(text, true).ok_or_else(|| refuse("backup_addresses=10.1.1.1"))?);
            }
            "profile" => {
                let profile =
                    Profile::named(text).ok_or_else(|| refuse(&suggest(text, Profile::NAMES.iter().copied())))?;
                config.profile = Profile { tsq: None, ..profile };
            }
            "seed" => self.seed = Seed(whole()?),
            "key" => self.host_key = Some(Key::new(whole()?)),
            "idsn" => self.host_idsn = Some(Dsn::new(whole()?)),
            "scheduler" => config.policies.scheduler = policy(SCHEDULERS, text).map_err(|help| refuse(&help))?,
            "congestion" => config.policies.congestion = policy(CONGESTION, text).map_err(|help| refuse(&help))?,
            "reinjection" => config.policies.reinjection = policy(REINJECTIONS, text).map_err(|help| refuse(&help))?,
            "first_path" => config.policies.first_path = policy(FIRST_PATHS, text).map_err(|help| refuse(&help))?,
            name => {
                let Some(setting) = table.iter().find(|setting| setting.script() == name) else {
                    let settings: Vec<String> = table.iter().map(Setting::script).collect();
                    let accepted = OWN.iter().copied().chain(settings.iter().map(String::as_str));
                    return Err(refuse(&suggest(name, accepted)));
                };
                let value = read(setting, text).map_err(|accepted| refuse(&accepted))?;
                setting.put(config, value).map_err(|_| refuse(&accepted(setting)))?;
                if setting.name == "delayed-ack" {
                    // The first segments would be acknowledged at once all the same.
                    config.profile.quick_acks = 0;
                }
            }
        }
        Ok(())
    }

    /// Applies a `peer` statement.
    pub(crate) fn peer(&mut self, fields: &[Field], line: &Line) -> Result<(), ScriptError> {
        for field in fields {
            let raw = field.value.as_deref().and_then(value::number).and_then(|raw| u64::try_from(raw).ok());
            match (field.name.as_str(), raw) {
                ("key", Some(raw)) => self.peer_key = Key::new(raw),
                ("idsn", Some(raw)) => self.peer_idsn = Some(Dsn::new(raw)),
                (name, _) => {
                    let help = format!("key=0x… or idsn=0x… with 64 bits; {}", suggest(name, ["key", "idsn"]));
                    return Err(ScriptError::refused(line, &field.at, format!("`{field}` is refused"), help));
                }
            }
        }
        Ok(())
    }

    /// Refuses settings of the endpoint that cannot be, at the line that made them so.
    pub(crate) fn check(&self, line: &Line) -> Result<(), ScriptError> {
        let whole = 0..line.text.len();
        self.config.check().map_err(|error| {
            ScriptError::refused(line, &whole, error.to_string(), "correct this line, or an earlier `host` statement")
        })
    }

    /// The endpoint, and what is known before it speaks.
    pub(crate) fn endpoint(&self) -> (anabranch_engine::Endpoint, World) {
        let mut host = anabranch_engine::Endpoint::new(self.config.clone(), self.seed).expect("every line was checked");
        let mut world = World::default();
        let host_key = self.host_key.or_else(|| self.host_idsn.map(|_| Key::new(0x1112_1314_1516_1718)));
        if let Some(key) = host_key {
            host.set_next_key(key);
        }
        for (key, idsn) in
            [host_key.zip(self.host_idsn), self.peer_idsn.map(|idsn| (self.peer_key, idsn))].into_iter().flatten()
        {
            host.pin_idsn(key, idsn);
            world.pinned.push((key, idsn));
        }
        (host, world)
    }
}

/// Reads the value of a setting. The error says what is accepted.
fn read(setting: &Setting, text: &str) -> Result<Value, String> {
    if setting.can_be_off() && text == "off" {
        return Ok(Value::Off);
    }
    let number = || value::number(text).and_then(|number| i64::try_from(number).ok());
    let value = match setting.domain {
        Domain::Flag(_) => value::switch(text).map(Value::Flag),
        Domain::Number(..) | Domain::NumberOrOff(..) => number().map(Value::Number),
        Domain::Size(_) | Domain::SizeOrOff(_) => {
            number().and_then(|number| u64::try_from(number).ok()).map(|size| Value::Size(Bytes::new(size)))
        }
        Domain::Time(_) | Domain::TimeOrOff(_) => value::duration(text).map(Value::Time),
        Domain::Ports(_) => setting.parse(text).ok(),
        Domain::Choice(words) => words.iter().find(|word| word.name == text).map(|word| Value::Word(word.name)),
    };
    value.ok_or_else(|| accepted(setting))
}

/// Returns the accepted values in words, as scripts write them.
fn accepted(setting: &Setting) -> String {
    match setting.domain {
        Domain::Flag(_) => "on or off".to_owned(),
        _ => setting.accepted().replace("or false", "or off"),
    }
}

fn addresses(text: &str, backup: bool) -> Option<Vec<LocalAddress>> {
    text.split(',').map(|ip| ip.parse().ok().map(|ip| LocalAddress { ip, backup })).collect()
}

fn policy<T: Kind + ?Sized>(
    table: &'static [anabranch_policy::registry::Entry<T>],
    name: &str,
) -> Result<anabranch_engine::Factory<T>, String> {
    let entry = table.iter().find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| suggest(name, table.iter().map(|entry| &*entry.name)))?;
    Ok(Arc::new(|| entry.build_default()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::text::Source;

    #[test]
    fn a_new_setting_is_found() {
        let new = Setting::new("dummy-flag", "Does nothing.", Domain::Flag(|config| &mut config.checksum));
        let table = [SETTINGS, &[new]].concat();
        let text = "host dummy_flag=on";
        let source = Source { name: "t.script".into(), text: text.into() };
        let line = Line { source, number: 1, start: 0, text: text.to_owned(), verbatim: true };
        let field =
            |name: &str, value: &str| Field { name: name.to_owned(), value: Some(value.to_owned()), at: 5..text.len() };
        let mut settings = Settings::default();
        settings.host_field(&table, &field("dummy_flag", "on"), &line).unwrap();
        assert!(settings.config.checksum);
        let refused = |field| format!("{:?}", settings.clone().host_field(&table, &field, &line).unwrap_err());
        assert!(refused(field("dummy_flag", "maybe")).contains("on or off"));
        assert!(refused(field("dumy_flag", "on")).contains("did you mean `dummy_flag`?"));
    }
}
