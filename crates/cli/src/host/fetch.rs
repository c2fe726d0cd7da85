//! `anabranch fetch`.

mod destination;
mod result;

pub use result::Transfer;

use super::event_files::EventFiles;
use super::path_memory::{KeptMemory, MemoryOption};
use super::wire_device::{Diverted, prepare};
use super::wire_options::{WireOptions, addresses, rate, size};
use crate::args::span;
use crate::failure::Failure;
use crate::output;
use anabranch_events::qlog::VantagePoint;
use anabranch_host::{Caught, Driver, Reactor};
use anabranch_lab::format::TRANSFER;
use anabranch_policy::Catalogue;
use anabranch_service::{
    Fetch, FetchError, FetchLimits, Journal, Outcome, Pace, Progress, Target, TargetError, Upload, Watch, WriterSink,
};
use anabranch_units::{Bytes, Duration, Rate, input};
use clap::Args as ClapArgs;
use destination::{Destination, Pending};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use miette::miette;
use std::io::{self, IsTerminal};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments of `fetch`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch testbed wlan-lte --server 'python3 -m http.server 80' -- anabranch fetch http://server/some-file
  sudo anabranch fetch http://192.0.2.7/big.iso --from 10.78.1.2,10.78.2.2 --scheduler late
  sudo anabranch fetch http://10.78.0.1/discard --upload-bytes 64MiB --from 10.78.1.2,10.78.2.2 --json
  sudo anabranch fetch tcp://10.78.0.1:19 --from 10.78.1.2 --output - | wc -c

http://HOST[:PORT]/PATH, or tcp://HOST:PORT for a plain stream of bytes. See docs/wire.md.

Exit status 0: complete. 1: the device failed, or the output could not be written. 2: the command line is \
refused. 3: no connection. 4: the transfer broke off, stalled or took too long. 5: the server answered with an error. \
6: the reply is not valid HTTP. 130: interrupted. A file appears under its name only when it is complete.")]
pub struct FetchArgs {
    /// URL to fetch.
    pub url: String,
    /// The engine's addresses, with commas between: the connection is opened from the first that fits, or where
    /// --first-path has it begin, and joined from the others. Those that the machine has itself are borrowed until the
    /// transfer ends.
    #[arg(long, value_name = "ADDR,…", value_delimiter = ',')]
    pub from: Vec<IpAddr>,
    /// Write the body to this file; `-` is standard output. Without it, to a new file named after the last part of the
    /// path.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Request only these bytes, such as 0-499, 500- or -500.
    #[arg(long, value_name = "RANGE", value_parser = range, conflicts_with_all = ["upload", "upload_bytes"])]
    pub range: Option<String>,
    /// Send this file (PUT). The answer goes to --output, or is discarded.
    #[arg(long, value_name = "FILE", conflicts_with = "upload_bytes")]
    pub upload: Option<PathBuf>,
    /// Send N bytes of a test pattern (PUT).
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub upload_bytes: Option<Bytes>,
    /// Maximum number of redirects to follow.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub max_redirects: u32,
    /// Longest time for a connection to open.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = span)]
    pub connect_timeout: Duration,
    /// Give up if no data arrives for this long.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = span)]
    pub stall_timeout: Duration,
    /// Least rate of the transfer; 0bit for none. Give up if it stays below for some multiple of --stall-timeout.
    #[arg(long, value_name = "RATE", default_value = "16kbit", value_parser = rate)]
    pub least_rate: Rate,
    /// Give up if the whole transfer takes longer than this.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub max_time: Option<Duration>,
    /// Print the result as JSON, also if it is a failure.
    #[arg(long)]
    pub json: bool,
    /// Settings of the engine.
    #[command(flatten)]
    pub wire: WireOptions,
    /// Files of events.
    #[command(flatten)]
    pub events: EventFiles,
    /// Memory of paths.
    #[command(flatten)]
    pub memory: MemoryOption,
}

fn range(text: &str) -> Result<String, String> {
    let number = |part: &str| part.parse::<u64>().is_ok() && !part.starts_with('+');
    let fits = text.split_once('-').is_some_and(|(first, last)| match (first, last) {
        ("", last) => number(last),
        (first, "") => number(first),
        (first, last) => {
            let (a, b) = (first.parse::<u64>(), last.parse::<u64>());
            number(first) && number(last) && matches!((a, b), (Ok(a), Ok(b)) if a <= b)
        }
    });
    if fits { Ok(text.to_owned()) } else { Err("accepted: one range of bytes such as 0-499, 500- or -500".to_owned()) }
}

/// One exchange after the other, until one of them is no redirect.
struct Errand<'a> {
    args: &'a FetchArgs,
    caught: Caught,
    from: Vec<IpAddr>,
    destination: Destination,
    /// Output file, until it is complete.
    pending: Option<Pending>,
    driver: Option<Driver>,
    memory: Option<KeptMemory>,
    journal: Option<Journal>,
    redirects: Vec<String>,
}

/// Fetches the URL and reports the result.
pub fn fetch(catalogue: &Arc<Catalogue>, args: &FetchArgs) -> Result<(), Failure> {
    let target = Target::parse(&args.url).map_err(|error| bad_target(&error))?;
    let uploads = args.upload.is_some() || args.upload_bytes.is_some();
    let output = args.output.as_deref() == Some(Path::new("-"));
    if usize::from(output) + args.events.on_stdout() + usize::from(args.json) > 1 {
        let one_of = "--output -, --events -, --qlog - and --json";
        return Err(Failure::Refused(miette!("standard output can hold one of {one_of}")));
    }
    let destination = Destination::choose(args.output.as_deref(), &target, uploads)?;
    let others = [("--output", destination.file()), ("--path-memory", args.memory.file.as_ref())];
    output::check(others.into_iter().chain(args.events.files()))?;
    let memory = args.memory.read()?;
    // Errors of the upload are reported before a device is made.
    upload(args)?;
    let mut from = addresses(&args.from, "--from")?;
    // Names are resolved before there is a device that could be in the way.
    let remotes = resolve(&target, &from)?;
    if args.from.is_empty() {
        // A testbed has addresses of both families for each path, and one subflow for each path is meant.
        from.retain(|ip| ip.is_ipv4() == remotes[0].is_ipv4());
    }
    let remotes = remotes.into_iter().filter(|remote| from.iter().any(|ip| ip.is_ipv4() == remote.is_ipv4())).collect();
    let (config, chosen) = args.wire.config(catalogue, &from)?;
    let journal = Some(args.events.journal(VantagePoint::CLIENT)?);
    let caught = Caught::new().map_err(|error| Failure::Failed(miette!("cannot catch signals: {error}")))?;
    // One connection at a time; a redirect may follow while the last one's ports are not free yet.
    let ready = prepare(&args.wire, config, &from, Diverted::Opening(16))?;
    let (mut driver, _borrowed) = (ready.driver, ready.borrowed);
    if let Some(memory) = &memory {
        memory.tell(&mut driver);
    }
    let (driver, redirects) = (Some(driver), Vec::new());
    let mut errand = Errand { args, caught, from, destination, pending: None, driver, memory, journal, redirects };
    let (target, outcome) = errand.run(target, remotes)?;
    let saved = errand.save(&outcome);

    if let Some(error) = errand.journal.as_mut().and_then(Journal::failure) {
        return Err(args.events.lost(error));
    }
    let about = result::About {
        target: &target,
        chosen: &chosen,
        redirects: &errand.redirects,
        destination: &errand.destination,
        from: &errand.from,
    };
    let counters = errand.driver.as_mut().map(|driver| driver.endpoint().counters().clone()).unwrap_or_default();
    if args.json {
        output::print(&output::json(&TRANSFER, &result::Transfer::of(&about, &outcome, &counters))?)?;
    }
    saved?;
    result::failure(&about, &outcome)?;
    if !args.json {
        output::remark(&result::summary(&about, &outcome));
    }
    Ok(())
}

impl Errand<'_> {
    fn run(&mut self, mut target: Target, mut remotes: Vec<SocketAddr>) -> Result<(Target, Outcome), Failure> {
        loop {
            let outcome = self.try_each(&target, &remotes)?;
            let Some(location) = outcome.redirect().filter(|_| outcome.error.is_none()) else {
                return Ok((target, outcome));
            };
            if self.redirects.len() >= self.args.max_redirects as usize {
                return Ok((target, outcome));
            }
            let next = target.redirected(location).map_err(|error| {
                Failure::NotFetched(result::REFUSED_BY_SERVER, miette!("cannot follow the redirect: {error}"))
            })?;
            self.redirects.push(next.url.to_string());
            remotes = resolve(&next, &self.from)?;
            target = next;
        }
    }

    /// The first of these addresses that can be connected to.
    fn try_each(&mut self, target: &Target, remotes: &[SocketAddr]) -> Result<Outcome, Failure> {
        let mut last = None;
        for remote in remotes {
            let outcome = self.exchange(target, *remote)?;
            if !matches!(outcome.error, Some(FetchError::NotConnected | FetchError::Open(_))) {
                return Ok(outcome);
            }
            last = Some(outcome);
        }
        Ok(last.expect("a name that resolves has an address"))
    }

    fn exchange(&mut self, target: &Target, remote: SocketAddr) -> Result<Outcome, Failure> {
        let broke = |error| Failure::Failed(miette!("the engine stopped: {error}"));
        let (pending, sink) = self.destination.open()?;
        self.pending = Some(pending);
        let local = self.from.iter().find(|ip| ip.is_ipv4() == remote.is_ipv4());
        let local = *local.expect("addresses we have none to go with are not tried");
        let args = self.args;
        let limits = FetchLimits {
            connect: args.connect_timeout,
            pace: Pace { stall: args.stall_timeout, least: args.least_rate },
            total: args.max_time,
            ..FetchLimits::default()
        };
        let fetch: Fetch<WriterSink> = Fetch::new(target.clone(), local, remote, sink)
            .upload(upload(args)?)
            .range(args.range.clone())
            .limits(limits)
            .journal(self.journal.take().unwrap_or_else(Journal::none))
            .watch(watch());
        let driver = self.driver.take().expect("an exchange gives the driver back");
        let mut reactor = Reactor::new(driver, fetch).map_err(broke)?;
        reactor.handle_signals(&self.caught).map_err(broke)?;
        if let Some(memory) = &self.memory {
            memory.keep(&mut reactor);
        }
        let (fetch, mut driver) = reactor.run().map_err(broke)?;
        if let Some(memory) = &self.memory {
            memory.save(&mut driver);
        }
        let (outcome, journal) = fetch.into_outcome();
        (self.driver, self.journal) = (Some(driver), Some(journal));
        Ok(outcome)
    }

    /// Gives a whole body its name.
    fn save(&mut self, outcome: &Outcome) -> Result<(), Failure> {
        match self.pending.take() {
            Some(pending) if outcome.error.is_none() && outcome.is_content() => pending.save(),
            _ => Ok(()),
        }
    }
}

/// Content for the server.
fn upload(args: &FetchArgs) -> Result<Upload, Failure> {
    match (&args.upload, args.upload_bytes) {
        (Some(path), _) => {
            let opened = input::open(path).and_then(Upload::file);
            opened.map_err(|error| Failure::Refused(miette!("cannot upload {}: {error}", path.display())))
        }
        (None, Some(length)) => Ok(Upload::pattern(length.get())),
        (None, None) => Ok(Upload::none()),
    }
}

fn bad_target(error: &TargetError) -> Failure {
    let help = "accepted: http://HOST[:PORT]/PATH such as http://10.78.0.1/bytes/16MiB, or tcp://HOST:PORT";
    Failure::Refused(miette!(help = help, "{error}"))
}

/// The host's addresses of a family that we have an address of, in the system's order.
fn resolve(target: &Target, from: &[IpAddr]) -> Result<Vec<SocketAddr>, Failure> {
    let unreachable = |what: String| Failure::NotFetched(result::NO_CONNECTION, miette!("{what}"));
    let found = (target.host.as_str(), target.port).to_socket_addrs();
    let all: Vec<SocketAddr> =
        found.map_err(|error| unreachable(format!("cannot resolve `{}`: {error}", target.host)))?.collect();
    let reachable = |remote: &&SocketAddr| from.iter().any(|ip| ip.is_ipv4() == remote.is_ipv4());
    let usable: Vec<SocketAddr> = all.iter().filter(reachable).copied().collect();
    if usable.is_empty() {
        let family = if from.iter().any(IpAddr::is_ipv4) { "IPv6" } else { "IPv4" };
        return Err(unreachable(format!("`{}` has only {family} addresses, and --from none of them", target.host)));
    }
    Ok(usable)
}

/// Returns a progress bar if standard error is a terminal.
fn watch() -> Option<Watch> {
    if !io::stderr().is_terminal() {
        return None;
    }
    let bar = Bar(ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()));
    bar.style("{spinner} {bytes} {bytes_per_sec}");
    let mut measured = false;
    Some(Box::new(move |progress: Progress| {
        if let Some(expected) = progress.expected.filter(|_| !measured) {
            measured = true;
            bar.0.set_length(expected);
            bar.style("{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left");
        }
        bar.0.set_position(progress.received.max(progress.uploaded));
    }))
}

/// The bar of one exchange; gone from the screen with it.
struct Bar(ProgressBar);

impl Bar {
    fn style(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.0.set_style(style);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
