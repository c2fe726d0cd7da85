//! `anabranch proxy`.

mod log;

use crate::failure::Failure;
use crate::wire_device::{Diverted, prepare};
use crate::wire_options::{WireOptions, addresses, size, span};
use anabranch_host::testbed::notify_ready;
use anabranch_host::{Keep, Reactor, drop_privileges, raise_open_files};
use anabranch_policy::Catalogue;
use anabranch_service::proxy::{BuildError, Direction, Limits, Proxy, Settings, Timeouts, Users};
use anabranch_units::{Bytes, Duration};
use clap::{ArgGroup, Args as ClapArgs};
use log::{LogFormat, start_log};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments of `proxy`.
#[derive(ClapArgs, Debug)]
#[command(group = ArgGroup::new("direction").required(true).args(["listen", "socks"]), after_help = "Examples:
  sudo anabranch proxy --listen 10.78.0.1:80 --to 127.0.0.1:8080
  sudo anabranch proxy --listen 203.0.113.5:443 --listen '[2001:db8::5]:443' --to 127.0.0.1:8443 --proxy-protocol
  sudo anabranch proxy --socks 127.0.0.1:1080 --via 192.168.1.20,10.64.3.7 --metrics 127.0.0.1:9100
  curl --socks5-hostname 127.0.0.1:1080 https://example.org/

An address of --listen or --via that the machine does not have goes onto the TUN device as it is; routing to it is up to
you. One that the machine has is borrowed: only TCP to the engine's ports is diverted to it, by nftables, until the proxy
ends. The first SIGTERM or SIGINT lets running connections finish, the second ends at once. See docs/proxy.md.

Exit status 0: asked to end. 1: the device failed, or a permission is missing. 2: the command line is refused.")]
pub struct ProxyArgs {
    /// Accept MPTCP and plain TCP here. Repeated, with the same port: further addresses, announced to clients (ADD_ADDR).
    #[arg(long, value_name = "ADDR:PORT", requires = "to")]
    pub listen: Vec<SocketAddr>,
    /// Where the streams of clients go: an ordinary TCP service.
    #[arg(long, value_name = "HOST:PORT", requires = "listen", value_parser = target)]
    pub to: Option<(String, u16)>,
    /// Begin each stream to the service with a PROXY protocol v2 header, which names the client.
    #[arg(long, requires = "listen")]
    pub proxy_protocol: bool,
    /// Serve SOCKS5 and HTTP CONNECT here, and connect with MPTCP.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "listen")]
    pub socks: Option<SocketAddr>,
    /// Addresses to connect from, with commas between, the first to be used first.
    #[arg(long, value_name = "ADDR,…", value_delimiter = ',', requires = "socks")]
    pub via: Vec<IpAddr>,
    /// Only these users may use --socks: a file of lines `name:password`.
    #[arg(long, value_name = "FILE", requires = "socks")]
    pub users: Option<PathBuf>,
    /// Serve /metrics (Prometheus) and /healthz here.
    #[arg(long, value_name = "ADDR:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Connections at once.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_connections: u32,
    /// Connections at once of one client address, or of one /64 of IPv6.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_connections_per_client: u32,
    /// Bytes held for all connections; beyond it reading stops, and who holds most is reset.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    pub max_memory: Bytes,
    /// Bytes held for one client; beyond it nothing more is read for it.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    pub max_memory_per_client: Bytes,
    /// Reset a connection on which nothing moved for so long.
    #[arg(long, value_name = "TIME", default_value = "900s", value_parser = span)]
    pub idle: Duration,
    /// How long connecting to a destination may take, looking up its name included.
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = span)]
    pub connect_timeout: Duration,
    /// How long a client of --socks may take to say where it wants to go.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span)]
    pub handshake_timeout: Duration,
    /// How long running connections may go on after the first SIGTERM.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = span)]
    pub drain: Duration,
    /// What is logged: error, warn, info, debug, trace.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log: tracing::Level,
    /// How it is written to standard error.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// The engine's.
    #[command(flatten)]
    pub wire: WireOptions,
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

    fn settings(&self, via: &[IpAddr]) -> Result<Settings, Failure> {
        let direction = match (&self.socks, &self.to, self.listen.first()) {
            (Some(listen), ..) => {
                let users = self.users.as_deref().map(read_users).transpose()?;
                Direction::Socks { listen: *listen, via: via.to_vec(), users }
            }
            (None, Some((host, to_port)), Some(listen)) => Direction::Listen {
                port: listen.port(),
                host: host.clone(),
                to_port: *to_port,
                proxy_protocol: self.proxy_protocol,
            },
            _ => return Err(Failure::Refused(miette::miette!("--listen takes --to HOST:PORT with it"))),
        };
        let limits = Limits {
            connections: self.max_connections as usize,
            connections_per_client: self.max_connections_per_client as usize,
            memory: self.max_memory,
            memory_per_client: self.max_memory_per_client,
        };
        let timeouts = Timeouts {
            handshake: self.handshake_timeout,
            connect: self.connect_timeout,
            idle: self.idle,
            drain: self.drain,
            ..Timeouts::default()
        };
        Ok(Settings { direction, metrics: self.metrics, device: None, limits, timeouts })
    }
}

fn read_users(path: &Path) -> Result<Arc<Users>, Failure> {
    let refuse = |what: String| Failure::Refused(miette::miette!("--users {}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    Users::parse(&text).map(Arc::new).map_err(|error| refuse(error.to_string()))
}

/// Runs until it is asked to end.
pub fn proxy(catalogue: &Arc<Catalogue>, args: &ProxyArgs) -> Result<(), Failure> {
    let local = args.local()?;
    let mut settings = args.settings(&local)?;
    start_log(args.log, args.log_format);
    warn_of_strangers(args);
    let (config, _) = args.wire.config(catalogue, &local)?;

    let diverted = match args.listen.first() {
        Some(listen) => Diverted::Listening(vec![listen.port()]),
        None => Diverted::Opening(args.max_connections),
    };
    let ready = prepare(&args.wire, config, &local, diverted)?;
    settings.device = Some(ready.device);
    let proxy = Proxy::new(settings).map_err(|error| match error {
        BuildError::Bind { .. } | BuildError::Service { .. } => Failure::Failed(miette::miette!("{error}")),
    })?;
    raise_open_files();
    // What is borrowed is to be given back, for which it takes what borrowing took.
    let keep = if ready.borrowed.is_some() { Keep::NetAdmin } else { Keep::Nothing };
    let broke = |error| Failure::Failed(miette::miette!("the proxy broke off: {error}"));
    drop_privileges(keep).map_err(broke)?;

    let said = proxy.describe();
    let metrics = proxy.metrics_address().map(|address| address.to_string());
    let mut reactor = Reactor::new(ready.driver, proxy).map_err(broke)?;
    reactor.handle_signals().map_err(broke)?;
    tracing::info!(target: "anabranch::proxy", device = ready.name, metrics, "ready: {said}");
    if let Err(error) = notify_ready() {
        tracing::warn!(target: "anabranch::proxy", %error, "whoever started this cannot be told that it is ready");
    }
    let (mut proxy, _) = reactor.run().map_err(broke)?;
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
    if let Some(socks) = args.socks.filter(|address| !address.ip().is_loopback() && args.users.is_none()) {
        tracing::warn!(target: "anabranch::proxy", %socks, "open to everybody who can connect: consider --users");
    }
    if let Some(metrics) = args.metrics.filter(|address| !address.ip().is_loopback()) {
        tracing::warn!(target: "anabranch::proxy", %metrics, "metrics are open to everybody who can connect");
    }
}
