//! Settings of the endpoint under test: the `host` and `peer` statements.

use crate::error::ScriptError;
use crate::peer::World;
use crate::statement::Field;
use crate::text::Line;
use crate::value;
use anabranch_engine::{Config, FastClose, LocalAddress, Profile};
use anabranch_policy::registry::{CONGESTION, FIRST_PATHS, Kind, REINJECTIONS, SCHEDULERS};
use anabranch_units::suggest;
use anabranch_units::{Bytes, Dsn, Key, Seed};
use std::net::IpAddr;
use std::sync::Arc;

/// Keys that `host` accepts.
const HOST: &[&str] = &[
    "addresses",
    "backup_addresses",
    "profile",
    "seed",
    "key",
    "idsn",
    "checksum",
    "multipath",
    "max_subflows",
    "full_mesh",
    "announce",
    "rejoin",
    "close_timeout",
    "send_buffer",
    "receive_buffer",
    "initial_receive_buffer",
    "max_half_open",
    "resets_per_second",
    "deny_join",
    "fast_close",
    "announced_port",
    "mss",
    "sack",
    "timestamps",
    "window_scaling",
    "delayed_ack",
    "tlp",
    "rack",
    "initial_window",
    "nagle",
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
        let profile = Profile { tsq: None, delayed_ack: None, tlp: false, timestamps: false, ..Profile::linux() };
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
        fields.iter().try_for_each(|field| self.host_field(field, line))
    }

    fn host_field(&mut self, field: &Field, line: &Line) -> Result<(), ScriptError> {
        let config = &mut self.config;
        let text = field.value.as_deref().unwrap_or_default();
        let refuse = |help: &str| ScriptError::refused(line, &field.at, format!("`{field}` is refused"), help);
        let on = || value::switch(text).ok_or_else(|| refuse("on or off"));
        let number = |most: i128| {
            let number = value::number(text).filter(|number| (0..=most).contains(number));
            number.ok_or_else(|| refuse(&format!("a number up to {most}")))
        };
        let bytes = || number(1 << 40).map(|number| Bytes::new(number as u64));
        let time = || value::duration(text).ok_or_else(|| refuse("a time such as 40ms"));
        let maybe_time = || if text == "off" { Ok(None) } else { time().map(Some) };
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
            "seed" => self.seed = Seed(number(i128::from(u64::MAX))? as u64),
            "key" => self.host_key = Some(Key::new(number(i128::from(u64::MAX))? as u64)),
            "idsn" => self.host_idsn = Some(Dsn::new(number(i128::from(u64::MAX))? as u64)),
            "checksum" => config.checksum = on()?,
            "multipath" => config.multipath = on()?,
            "max_subflows" => config.max_subflows = number(16)? as usize,
            "full_mesh" => config.full_mesh = on()?,
            "announce" => config.announce = on()?,
            "rejoin" => config.rejoin = maybe_time()?,
            "close_timeout" => config.close_timeout = time()?,
            "send_buffer" => config.send_buffer = bytes()?,
            "receive_buffer" => config.receive_buffer = bytes()?,
            "initial_receive_buffer" => config.initial_receive_buffer = Some(bytes()?),
            "max_half_open" => config.max_half_open = number(1 << 20)? as usize,
            "resets_per_second" => config.resets_per_second = Some(number(1 << 20)? as u32),
            "fast_close" => {
                config.fast_close = match text {
                    "rst" => FastClose::Rst,
                    "ack" => FastClose::Ack,
                    _ => return Err(refuse("rst or ack")),
                }
            }
            "announced_port" => config.announced_port = Some(number(65_535)? as u16),
            "deny_join" => config.deny_join_to_initial = on()?,
            "mss" => config.profile.mss = number(65_535)? as u16,
            "sack" => config.profile.sack = on()?,
            "timestamps" => config.profile.timestamps = on()?,
            "window_scaling" => config.profile.window_scaling = on()?,
            "delayed_ack" => {
                config.profile.delayed_ack = maybe_time()?;
                config.profile.quick_acks = 0;
            }
            "tlp" => config.profile.tlp = on()?,
            "rack" => config.profile.rack = on()?,
            "initial_window" => config.profile.initial_window = number(1000)? as u32,
            "nagle" => config.profile.nagle = on()?,
            "scheduler" => config.policies.scheduler = policy(SCHEDULERS, text).map_err(|help| refuse(&help))?,
            "congestion" => config.policies.congestion = policy(CONGESTION, text).map_err(|help| refuse(&help))?,
            "reinjection" => config.policies.reinjection = policy(REINJECTIONS, text).map_err(|help| refuse(&help))?,
            "first_path" => config.policies.first_path = policy(FIRST_PATHS, text).map_err(|help| refuse(&help))?,
            other => return Err(refuse(&suggest(other, HOST.iter().copied()))),
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
        self.config.check().map_err(|error| ScriptError::refused(line, &whole, error.to_string(), "another value"))
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
