//! `anabranch proxy`.

mod log;
mod tunable;

use super::path_memory::MemoryOption;
use super::wire_device::{Diverted, prepare};
use super::wire_options::{WireOptions, addresses, rate, size};
use crate::args::span;
use crate::failure::Failure;
use anabranch_host::testbed::notify_ready;
use anabranch_host::{Caught, Keep, Reactor, drop_privileges, raise_open_files};
use anabranch_policy::Catalogue;
use anabranch_service::proxy::{Access, BuildError, Changes, Direction, Network, Proxy, Reload, Settings, Users};
use anabranch_units::{Bytes, Duration, Rate, input};
use clap::{ArgGroup, Args as ClapArgs};
pub use log::LogLine;
use log::{LogFormat, LogLevel, start_log};
use std::io::{IsTerminal, stderr};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use tunable::Tunable;

/// Arguments of `proxy`.
#[derive(ClapArgs, Clone, Debug)]
#[command(group = ArgGroup::new("direction").required(true).args(["listen", "socks"]), after_help = "Examples:
  sudo anabranch proxy --listen 10.78.0.1:80 --to 127.0.0.1:8080
  sudo anabranch proxy --listen 203.0.113.5:443 --listen '[2001:db8::5]:443' --to 127.0.0.1:8443 --proxy-protocol
  sudo anabranch proxy --socks 127.0.0.1:1080 --via 192.168.1.20,10.64.3.7 --metrics 127.0.0.1:9100
  curl --socks5-hostname 127.0.0.1:1080 https://example.org/

An address of --listen or --via that the machine does not have goes onto the TUN device as it is; routing to it is up \
to you. One that the machine has is borrowed: only TCP to the engine's ports is diverted to it, by nftables, until the \
proxy ends. The first SIGTERM or SIGINT lets running connections finish, the second ends at once. SIGHUP reads \
--settings and --users again and looks the name of --to up again. See docs/proxy.md.

--socks off the loopback interface takes --users or --allow: it would serve any client otherwise. Its clients are not \
connected to link-local and metadata addresses or to this machine's own unless --to-allow names them.

Exit status 0: asked to end. 1: the device failed, or a permission is missing. 2: the command line is refused.")]
pub struct ProxyArgs {
    /// Accept MPTCP and plain TCP here. Repeated, with the same port: further addresses, announced to clients
    /// (ADD_ADDR).
    #[arg(long, value_name = "ADDR:PORT", requires = "to")]
    pub listen: Vec<SocketAddr>,
    /// Forward streams of clients to this ordinary TCP service.
    #[arg(long, value_name = "HOST:PORT", requires = "listen", value_parser = target)]
    pub to: Option<(String, u16)>,
    /// Begin each stream to the service with a PROXY protocol v2 header, which names the client.
    #[arg(long, requires = "listen")]
    pub proxy_protocol: bool,
    /// Serve SOCKS5 and HTTP (CONNECT and plain requests) here, and connect with MPTCP.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "listen")]
    pub socks: Option<SocketAddr>,
    /// Addresses to connect from, with commas between, the first to be used first.
    #[arg(long, value_name = "ADDR,…", value_delimiter = ',', requires = "socks")]
    pub via: Vec<IpAddr>,
    /// Admit only these users to --socks: a file of lines `name:password`.
    #[arg(long, value_name = "FILE", requires = "socks")]
    pub users: Option<PathBuf>,
    /// Admit only clients from these networks to --socks, with commas between; programs on this machine always may.
    #[arg(long, value_name = "CIDR,…", value_delimiter = ',', requires = "socks")]
    pub allow: Vec<Network>,
    /// Clients of --socks may connect to these networks only, those that are denied otherwise included.
    #[arg(long, value_name = "CIDR,…", value_delimiter = ',', requires = "socks")]
    pub to_allow: Vec<Network>,
    /// Clients of --socks may not connect to these networks, whatever --to-allow says.
    #[arg(long, value_name = "CIDR,…", value_delimiter = ',', requires = "socks")]
    pub to_deny: Vec<Network>,
    /// A file of settings that take the place of options, read again at SIGHUP: `max-memory = "512MiB"` and the like
    /// (TOML).
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// Serve /metrics (Prometheus) and /healthz here.
    #[arg(long, value_name = "ADDR:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Limit of open connections.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_connections: u32,
    /// Limit of open connections of one client address, or of one /64 of IPv6.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_connections_per_client: u32,
    /// Limit of bytes held for all connections. Reading slows down near it; beyond it the largest holder is reset.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    pub max_memory: Bytes,
    /// Limit of bytes held for one client, in the same way.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    pub max_memory_per_client: Bytes,
    /// Reset a connection without progress for this long.
    #[arg(long, value_name = "TIME", default_value = "900s", value_parser = span)]
    pub idle: Duration,
    /// Least rate at which either end has to take what waits for it; 0bit for none. A connection that stays below it
    /// for some multiple of --idle is reset.
    #[arg(long, value_name = "RATE", default_value = "16kbit", value_parser = rate)]
    pub least_rate: Rate,
    /// Longest time to connect to a destination, with the lookup of its name.
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = span)]
    pub connect_timeout: Duration,
    /// Longest time for a client of --socks to name its destination.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span)]
    pub handshake_timeout: Duration,
    /// Longest time that running connections may continue after the first SIGTERM.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = span)]
    pub drain: Duration,
    /// Lowest level to log: error, warn, info, debug, trace.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log: tracing::Level,
    /// Format of the log on standard error.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// Settings of the engine.
    #[command(flatten)]
    pub wire: WireOptions,
    /// Memory of paths, with --socks.
    #[command(flatten)]
    pub memory: MemoryOption,
}

fn target(text: &str) -> Result<(String, u16), String> {
    let accepted = || "accepted: HOST:PORT, such as 127.0.0.1:8080, [::1]:8080 or backend.internal:80".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(accepted)?;
    let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(accepted)?;
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    if bare.is_empty() || (bare == host && host.contains(':')) { Err(accepted()) } else { Ok((bare.to_owned(), port)) }
}

impl ProxyArgs {
    /// The engine's addresses.
    fn local(&self) -> Result<Vec<IpAddr>, Failure> {
        let Some(first) = self.listen.first() else {
            return addresses(&self.via, "--via");
        };
        if let Some(other) = self.listen.iter().find(|other| other.port() != first.port()) {
            let help = "start a second proxy for a second port";
            let (port, wrong) = (first.port(), other.port());
            return Err(Failure::Refused(miette::miette!(help = help, "--listen names ports {port} and {wrong}")));
        }
        let ips: Vec<IpAddr> = self.listen.iter().map(SocketAddr::ip).collect();
        addresses(&ips, "--listen")
    }

    fn settings(&self, via: &[IpAddr], tunable: &Tunable) -> Result<Settings, Failure> {
        let direction = match (&self.socks, &tunable.to, self.listen.first()) {
            (Some(listen), ..) => {
                let users = self.read_users().map_err(|what| Failure::Refused(miette::miette!("{what}")))?;
                let (clients, to_allow) = (self.allow.clone(), self.to_allow.clone());
                let access = Access { clients, to_allow, to_deny: self.to_deny.clone() };
                if access.is_open(*listen, users.is_some()) {
                    let help =
                        "name its users with --users FILE, or their networks with --allow CIDR, or listen on 127.0.0.1";
                    let error = BuildError::Open { address: *listen };
                    return Err(Failure::Refused(miette::miette!(help = help, "--socks: {error}")));
                }
                Direction::Socks { listen: *listen, via: via.to_vec(), users, access }
            }
            (None, Some((host, to_port)), Some(listen)) => Direction::Listen {
                port: listen.port(),
                host: host.clone(),
                to_port: *to_port,
                proxy_protocol: self.proxy_protocol,
            },
            _ => return Err(Failure::Refused(miette::miette!("--listen needs --to HOST:PORT, the service behind it"))),
        };
        let Tunable { limits, timeouts, .. } = *tunable;
        Ok(Settings { direction, metrics: self.metrics, device: None, limits, timeouts })
    }

    fn read_tunable(&self) -> Result<Tunable, String> {
        let path = self.settings.as_ref().map_or_else(String::new, |path| path.display().to_string());
        Tunable::read(self).map_err(|what| format!("--settings {path}: {what}"))
    }

    fn read_users(&self) -> Result<Option<Arc<Users>>, String> {
        let Some(path) = &self.users else { return Ok(None) };
        let refuse = |what: String| format!("--users {}: {what}", path.display());
        let text = input::text(path, input::WRITTEN).map_err(|error| refuse(error.to_string()))?;
        Users::parse(&text).map(Arc::new).map(Some).map_err(|error| refuse(error.to_string()))
    }

    /// Reads again what may have changed, on SIGHUP. `on_terminal` says whether there was one at the start.
    fn reload(&self, level: &LogLevel, on_terminal: bool) -> Reload {
        if on_terminal && !stderr().is_terminal() {
            return Reload::End;
        }
        let read = self.read_tunable().and_then(|tunable| Ok((tunable, self.read_users()?)));
        match read {
            Ok((Tunable { limits, timeouts, log, to: service }, users)) => {
                level.set(log);
                Reload::Changed(Changes { limits, timeouts, service, users })
            }
            Err(error) => Reload::Failed(error),
        }
    }
}

/// Runs until it is asked to end.
pub fn proxy(catalogue: &Arc<Catalogue>, args: &ProxyArgs) -> Result<(), Failure> {
    if args.memory.file.is_some() && args.socks.is_none() {
        let help = "with --listen the proxy opens no MPTCP connections, which is what the memory is for";
        return Err(Failure::Refused(miette::miette!(help = help, "--path-memory goes with --socks")));
    }
    let memory = args.memory.read()?;
    let local = args.local()?;
    let tunable = args.read_tunable().map_err(|what| Failure::Refused(miette::miette!("{what}")))?;
    let mut settings = args.settings(&local, &tunable)?;
    let level = start_log(tunable.log, args.log_format);
    let on_terminal = stderr().is_terminal();
    warn_of_strangers(args);
    let (config, _) = args.wire.config(catalogue, &local)?;

    let diverted = match args.listen.first() {
        Some(listen) => Diverted::Listening(vec![listen.port()]),
        None => Diverted::Opening(args.max_connections),
    };
    let caught = Caught::new().map_err(|error| Failure::Failed(miette::miette!("cannot catch signals: {error}")))?;
    let ready = prepare(&args.wire, config, &local, diverted)?;
    settings.device = Some(ready.device);
    let proxy = Proxy::new(settings).map_err(|error| match error {
        BuildError::Open { .. } => Failure::Refused(miette::miette!("{error}")),
        BuildError::Bind { .. } | BuildError::Service { .. } => Failure::Failed(miette::miette!("{error}")),
    })?;
    let again = args.clone();
    let proxy = proxy.reloading(move || again.reload(&level, on_terminal));
    raise_open_files();
    // Returning borrowed addresses needs the same capability as borrowing them.
    let keep = if ready.borrowed.is_some() { Keep::NetAdmin } else { Keep::Nothing };
    let broke = |error| Failure::Failed(miette::miette!("the proxy stopped: {error}"));
    drop_privileges(keep).map_err(broke)?;
    let mut driver = ready.driver;
    if let Some(memory) = &memory {
        // Not before: without privileges fewer places can be written to.
        memory.check()?;
        memory.tell(&mut driver);
    }

    let said = proxy.describe();
    let metrics = proxy.metrics_address().map(|address| address.to_string());
    let mut reactor = Reactor::new(driver, proxy).map_err(broke)?;
    reactor.handle_signals(&caught).map_err(broke)?;
    tracing::info!(target: "anabranch::proxy", device = ready.name, metrics, "ready: {said}");
    if let Err(error) = notify_ready() {
        tracing::warn!(target: "anabranch::proxy", %error, "cannot tell the service manager that the proxy is ready");
    }
    if let Some(memory) = &memory {
        memory.keep(&mut reactor);
    }
    let (mut proxy, mut driver) = reactor.run().map_err(broke)?;
    if let Some(memory) = &memory {
        memory.save(&mut driver);
    }
    drop(ready.borrowed);
    match proxy.take_error() {
        Some(error) => Err(broke(error)),
        None => {
            tracing::info!(target: "anabranch::proxy", "ended");
            Ok(())
        }
    }
}

fn warn_of_strangers(args: &ProxyArgs) {
    if let Some(metrics) = args.metrics.filter(|address| !address.ip().is_loopback()) {
        tracing::warn!(target: "anabranch::proxy", %metrics, "metrics are open to everybody who can connect");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::args::{Args, Command, HostCommand};
    use clap::Parser;

    const UNIT: &str = include_str!("../../../../packaging/anabranch-proxy.service");
    const OPTIONS: &str = include_str!("../../../../packaging/anabranch-proxy.default");
    const USERS: &str = include_str!("../../../../packaging/anabranch.sysusers");

    /// The value of a key, behind `=`.
    fn value<'a>(file: &'a str, key: &str) -> &'a str {
        let found = file.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("there is no {key}"))
    }

    #[test]
    fn the_unit_of_systemd_starts_a_proxy_that_is_waited_for() {
        let options = value(OPTIONS, "OPTIONS").trim_matches('"');
        let command = value(UNIT, "ExecStart").replace("$OPTIONS", options);
        let args = Args::try_parse_from(command.split_whitespace()).unwrap();
        let Command::Host(HostCommand::Proxy(args)) = args.command else { panic!("{command} is no proxy") };
        // The unit's own limits have to leave the program its time and its connections.
        let patience: u64 = value(UNIT, "TimeoutStopSec").parse().unwrap();
        assert!(args.drain.as_secs_f64() < patience as f64);
        assert!(value(UNIT, "LimitNOFILE").parse::<u32>().unwrap() > 2 * args.max_connections);
        assert_eq!(value(UNIT, "Type"), "notify");
        assert_eq!(value(UNIT, "EnvironmentFile"), "/etc/default/anabranch-proxy");
        let user = value(UNIT, "User");
        assert!(USERS.lines().any(|line| line.starts_with(&format!("u {user} "))), "{user} is not made");
    }
}
