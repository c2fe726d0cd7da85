//! Settings that can change while the proxy runs: options that a file may set as well, read again at SIGHUP.

use super::{ProxyArgs, target};
use crate::args::span;
use crate::host::wire_options::{rate, size};
use anabranch_service::Pace;
use anabranch_service::proxy::{Limits, Timeouts};
use anabranch_units::{Bytes, Duration, Rate, input};
use serde::{Deserialize, Deserializer};
use std::path::Path;
use std::str::FromStr;

/// The file of `--settings`: what it names takes the place of the option of the same name.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    max_connections: Option<u32>,
    max_connections_per_client: Option<u32>,
    max_memory: Option<Size>,
    max_memory_per_client: Option<Size>,
    idle: Option<Span>,
    least_rate: Option<Pass>,
    connect_timeout: Option<Span>,
    handshake_timeout: Option<Span>,
    drain: Option<Span>,
    log: Option<Level>,
    to: Option<Target>,
}

/// Settings that result from the options and the file.
#[derive(Debug)]
pub struct Tunable {
    pub limits: Limits,
    pub timeouts: Timeouts,
    pub log: tracing::Level,
    pub to: Option<(String, u16)>,
}

impl Tunable {
    /// The options, with what the file says in their place.
    pub fn read(args: &ProxyArgs) -> Result<Self, String> {
        let file = args.settings.as_deref().map_or_else(|| Ok(File::default()), read)?;
        let count = |set: Option<u32>, name: &str, option: u32| match set {
            Some(0) => Err(format!("{name} must be at least 1")),
            set => Ok(set.unwrap_or(option) as usize),
        };
        if file.to.is_some() && args.listen.is_empty() {
            return Err("`to` is given without --listen; accepted: `to` together with --listen".to_owned());
        }
        let per_client = args.max_connections_per_client;
        let limits = Limits {
            connections: count(file.max_connections, "max-connections", args.max_connections)?,
            connections_per_client: count(file.max_connections_per_client, "max-connections-per-client", per_client)?,
            memory: file.max_memory.map_or(args.max_memory, |size| size.0),
            memory_per_client: file.max_memory_per_client.map_or(args.max_memory_per_client, |size| size.0),
        };
        let span = |set: Option<Span>, option: Duration| set.map_or(option, |span| span.0);
        let timeouts = Timeouts {
            handshake: span(file.handshake_timeout, args.handshake_timeout),
            connect: span(file.connect_timeout, args.connect_timeout),
            idle: Pace {
                stall: span(file.idle, args.idle),
                least: file.least_rate.map_or(args.least_rate, |rate| rate.0),
            },
            drain: span(file.drain, args.drain),
            ..Timeouts::default()
        };
        let log = file.log.map_or(args.log, |level| level.0);
        Ok(Tunable { limits, timeouts, log, to: file.to.map(|to| to.0).or_else(|| args.to.clone()) })
    }
}

fn read(path: &Path) -> Result<File, String> {
    let text = input::text(path, input::WRITTEN).map_err(|error| error.to_string())?;
    toml::from_str(&text).map_err(|error| error.to_string().trim_end().to_owned())
}

#[derive(Debug)]
struct Size(Bytes);

#[derive(Debug)]
struct Span(Duration);

#[derive(Debug)]
struct Pass(Rate);

#[derive(Debug)]
struct Level(tracing::Level);

#[derive(Debug)]
struct Target((String, u16));

/// A text that `parse` understands.
fn text<'de, D: Deserializer<'de>, T>(from: D, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, D::Error> {
    parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        text(from, size).map(Size)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        text(from, span).map(Span)
    }
}

impl<'de> Deserialize<'de> for Pass {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        text(from, rate).map(Pass)
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let accepted = |_| "accepted: error, warn, info, debug, trace".to_owned();
        text(from, |word| tracing::Level::from_str(word).map_err(accepted)).map(Level)
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        text(from, target).map(Target)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        proxy: ProxyArgs,
    }

    fn tunable(options: &[&str], settings: &str) -> Result<Tunable, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.toml");
        std::fs::write(&path, settings).unwrap();
        let words = ["proxy", "--settings", path.to_str().unwrap()];
        Tunable::read(&Line::parse_from([&words[..], options].concat()).proxy)
    }

    #[test]
    fn the_file_takes_the_place_of_options() {
        let listen = ["--listen", "10.78.0.1:80", "--to", "127.0.0.1:8080", "--idle", "5s", "--max-memory", "1MiB"];
        let read = tunable(&listen, "max-memory = \"2MiB\"\nlog = \"debug\"\nto = \"backend:81\"\n").unwrap();
        assert_eq!((read.limits.memory, read.timeouts.idle.stall), (Bytes::new(2 << 20), Duration::from_secs(5)));
        assert_eq!((read.log, read.to), (tracing::Level::DEBUG, Some(("backend".to_owned(), 81))));
        for (wrong, says) in [
            ("max-memroy = \"2MiB\"", "unknown field"),
            ("max-memory = 2", "string"),
            ("idle = \"soon\"", "such as"),
            ("max-connections = 0", "at least 1"),
            ("to = \"backend\"", "HOST:PORT"),
        ] {
            let error = tunable(&listen, wrong).unwrap_err();
            assert!(error.contains(says), "{wrong}: {error}");
        }
        let socks = ["--socks", "127.0.0.1:1080", "--via", "10.78.0.1"];
        assert!(tunable(&socks, "to = \"backend:81\"").unwrap_err().contains("--listen"));
    }
}
