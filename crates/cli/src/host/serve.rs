//! `anabranch serve`.

use super::event_files::EventFiles;
use super::wire_device::{Diverted, prepare};
use super::wire_options::{WireOptions, addresses, rate, size};
use crate::args::span;
use crate::failure::Failure;
use crate::output;
use anabranch_engine::path_use::PathUse;
use anabranch_events::CounterReport;
use anabranch_events::qlog::VantagePoint;
use anabranch_host::testbed::notify_ready;
use anabranch_host::{Caught, Reactor};
use anabranch_lab::format::SERVICE;
use anabranch_policy::Catalogue;
use anabranch_scenario::Chosen;
use anabranch_service::{Pace, Root, Server, ServerLimits, Service, Site, Totals};
use anabranch_units::{Bytes, Duration, Rate};
use clap::Args as ClapArgs;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of `serve`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  sudo anabranch serve --listen 10.78.0.1 --root /srv/files
  sudo anabranch serve --listen 10.78.0.1,fd78::1 --source 5001:1GiB --discard 5002 --scheduler blest
  anabranch testbed wlan-lte --server 'anabranch serve' -- mptcpize run curl -o /dev/null http://10.78.0.1/bytes/16MiB

Without a service: HTTP on port 80, echo on 7, discard on 9, and on 19 a source of 16 MiB. Over HTTP there are \
always /bytes/N (N bytes of a pattern; N may have a unit, as 16MiB) and PUT or POST to /discard (answers how many \
bytes came); files only with --root. Ends on SIGINT or SIGTERM, when connections are through or after --grace; on \
the second at once. \
See docs/wire.md.

Exit status 0: asked to end. 1: the device failed. 2: the command line is refused.")]
pub struct ServeArgs {
    /// The engine's addresses, with commas between. Those behind the first are announced to clients (ADD_ADDR).
    #[arg(long, value_name = "ADDR,…", value_delimiter = ',')]
    pub listen: Vec<IpAddr>,
    /// Serve HTTP/1.1 on this port.
    #[arg(long, value_name = "PORT", value_parser = port())]
    pub http: Vec<u16>,
    /// Serve the files below this directory over HTTP. A symbolic link that leads outside is not followed.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Discard all data on this port.
    #[arg(long, value_name = "PORT", value_parser = port())]
    pub discard: Vec<u16>,
    /// Echo all data on this port.
    #[arg(long, value_name = "PORT", value_parser = port())]
    pub echo: Vec<u16>,
    /// Send N bytes of a test pattern on this port, and close.
    #[arg(long, value_name = "PORT:SIZE", value_parser = source)]
    pub source: Vec<(u16, Bytes)>,
    /// Limit of open connections; a further one is reset.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub max_connections: usize,
    /// Reset a connection without progress for this long.
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = span)]
    pub idle: Duration,
    /// Least rate at which a client has to take what waits for it; 0bit for none. One that stays below it for some
    /// multiple of --idle is reset.
    #[arg(long, value_name = "RATE", default_value = "16kbit", value_parser = rate)]
    pub least_rate: Rate,
    /// Longest time that connections may continue after the first signal to end.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span)]
    pub grace: Duration,
    /// Print JSON at the end: the data served and the engine's counters.
    #[arg(long)]
    pub json: bool,
    /// Settings of the engine.
    #[command(flatten)]
    pub wire: WireOptions,
    /// Files of events.
    #[command(flatten)]
    pub events: EventFiles,
}

fn port() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..)
}

fn source(text: &str) -> Result<(u16, Bytes), String> {
    let parts = text.split_once(':').and_then(|(port, size)| Some((port.parse().ok().filter(|port| *port > 0)?, size)));
    let (port, length) = parts.ok_or_else(|| "accepted: a port and a size, such as 5001:16MiB".to_owned())?;
    Ok((port, size(length)?))
}

/// Size of the default source \[B\].
const SOURCE: u64 = 16 << 20;

impl ServeArgs {
    fn services(&self) -> Result<BTreeMap<u16, Service>, Failure> {
        let root = match &self.root {
            None => None,
            Some(path) => Some(
                Root::open(path)
                    .map_err(|error| Failure::Refused(miette::miette!("cannot serve {}: {error}", path.display())))?,
            ),
        };
        let site = Arc::new(Site::new(root));
        let mut all: Vec<(u16, Service)> = Vec::new();
        all.extend(self.http.iter().map(|port| (*port, Service::Http(Arc::clone(&site)))));
        if self.root.is_some() && self.http.is_empty() {
            all.push((80, Service::Http(Arc::clone(&site))));
        }
        all.extend(self.discard.iter().map(|port| (*port, Service::Discard)));
        all.extend(self.echo.iter().map(|port| (*port, Service::Echo)));
        all.extend(self.source.iter().map(|(port, length)| (*port, Service::Source(length.get()))));
        if all.is_empty() {
            let source = Service::Source(SOURCE);
            all.extend([(80, Service::Http(site)), (7, Service::Echo), (9, Service::Discard), (19, source)]);
        }
        let mut services = BTreeMap::new();
        for (port, service) in all {
            if services.insert(port, service).is_some() {
                return Err(Failure::Refused(miette::miette!(
                    "port {port} is given to two services; accepted: one service for each port"
                )));
            }
        }
        Ok(services)
    }
}

/// Serves until it is asked to end.
pub fn serve(catalogue: &Arc<Catalogue>, args: &ServeArgs) -> Result<(), Failure> {
    let services = args.services()?;
    if args.events.on_stdout() > 1 {
        return Err(Failure::Refused(miette::miette!("standard output can hold one of --events - and --qlog -")));
    }
    output::check(args.events.files())?;
    let listen = addresses(&args.listen, "--listen")?;
    let (config, chosen) = args.wire.config(catalogue, &listen)?;
    let journal = args.events.journal(VantagePoint::SERVER)?;
    let caught = Caught::new().map_err(|error| Failure::Failed(miette::miette!("cannot catch signals: {error}")))?;
    let ready = prepare(&args.wire, config, &listen, Diverted::Listening(services.keys().copied().collect()))?;
    let (driver, _borrowed) = (ready.driver, ready.borrowed);
    let broke = |error| Failure::Failed(miette::miette!("the engine stopped: {error}"));

    let said: Vec<String> = services.iter().map(|(port, service)| described(&listen, *port, service)).collect();
    let pace = Pace { stall: args.idle, least: args.least_rate };
    let limits = ServerLimits { connections: args.max_connections, pace, grace: args.grace };
    let tell = |line: &str| output::remark(&format!("slow: {line}"));
    let server = Server::new(services, limits, journal).tell(Box::new(tell));
    let mut reactor = Reactor::new(driver, server).map_err(broke)?;
    reactor.handle_signals(&caught).map_err(broke)?;
    // The process that starts us waits for this line.
    output::remark(&format!("serving {}", said.join(", ")));
    // Fails if the service manager has gone; the service runs all the same.
    let _ = notify_ready();
    let (mut server, mut driver) = reactor.run().map_err(broke)?;

    let fallbacks = driver.endpoint().counters().fallbacks.clone();
    let counters = CounterReport::of(driver.endpoint().counters());
    if let Some(error) = server.journal().failure() {
        return Err(args.events.lost(error));
    }
    let totals = server.totals();
    let path_use = PathUse {
        connections: totals.accepted,
        plain: fallbacks,
        on_one_subflow: totals.on_one_subflow,
        paths: Vec::new(),
    };
    let remarks = path_use.remarks();
    if args.json {
        return output::print(&output::json(
            &SERVICE,
            &Served { policies: chosen, listen, totals, counters, remarks },
        )?);
    }
    output::remark(&format!(
        "served {} connections ({} with MPTCP, {} reset, {} turned away), sent {} and received {} bytes",
        totals.accepted, totals.multipath, totals.reset, totals.turned_away, totals.bytes_sent, totals.bytes_received
    ));
    for remark in remarks {
        output::remark(&format!("  note: {remark}"));
    }
    Ok(())
}

/// Contents of the JSON.
#[derive(Serialize, JsonSchema)]
pub struct Served {
    policies: Chosen,
    listen: Vec<IpAddr>,
    totals: Totals,
    counters: CounterReport,
    remarks: Vec<String>,
}

fn described(listen: &[IpAddr], port: u16, service: &Service) -> String {
    let at = listen.first().map_or_else(String::new, |ip| SocketAddr::new(*ip, port).to_string());
    match service {
        Service::Http(_) => format!("http://{at}/"),
        Service::Echo => format!("echo at {at}"),
        Service::Discard => format!("discard at {at}"),
        Service::Source(length) => format!("{} from {at}", Bytes::new(*length)),
    }
}
