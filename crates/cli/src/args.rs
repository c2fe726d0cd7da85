//! The command line: the commands, and options that several of them share. The others stand beside the code that reads
//! them, in the file of their command.

use crate::completion::Names;
use crate::failure::Failure;
use crate::host;
use crate::result_file::ResultFile;
use anabranch_scenario::in_shell;
use anabranch_units::{Duration, quantity};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

/// Multipath TCP, simulated exactly: run scenarios and compare schedulers.
#[derive(Parser, Debug)]
#[command(
    name = "anabranch",
    version,
    arg_required_else_help = true,
    after_help = "Examples:
  anabranch compare                                   which scheduler is best over Wi-Fi and LTE?
  anabranch compare my.toml --schedulers min-rtt,late --report my.html
  anabranch run path-failure --pcap captures          one run, for Wireshark
  anabranch why wlan-lte                              where the time goes, and which change would help
  anabranch twin capture.pcapng -o mine.toml          the network of a capture, as a scenario
  anabranch list schedulers late                      its algorithm, and where it differs from the paper
  anabranch study late/fig10                          a figure of a paper, with a verdict on each statement
  anabranch evaluate rfc9743 --control bbr            what a congestion control does to others
  anabranch testbed wlan-lte --server 'mptcpize run iperf3 -s' -- mptcpize run iperf3 -c server
  sudo anabranch proxy --listen 10.78.0.1:80 --to 127.0.0.1:8080
  anabranch inspect capture.pcapng                    a capture of MPTCP, in words
  anabranch trace drive.csv                           what a recording of a network holds

`anabranch COMMAND --help` has examples of each command."
)]
pub struct Args {
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands of the program.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a scenario and print the results.
    Run(crate::run::RunArgs),
    /// Run all schedulers over a scenario and rank them.
    Compare(crate::compare::CompareArgs),
    /// Explain the time that a scenario's or capture's transfers take, and which change would help.
    Why(crate::why::WhyArgs),
    /// Make a scenario of a capture, to ask what other policies would have given on its network.
    Twin(crate::twin::TwinArgs),
    /// Open the laboratory: lessons, scenarios to edit and run, and the judge of captures, in the browser.
    Lab(crate::lab::LabArgs),
    /// Rank schedulers over drawn conditions, or search for those in which one loses most.
    Rank(crate::rank::RankArgs),
    /// Compare systems over many conditions, in parts that any process can continue.
    Sweep(crate::sweep::SweepArgs),
    /// Run the figures of the papers again and judge their statements.
    Study(crate::study::StudyArgs),
    /// Judge a congestion control by the criteria of RFC 9743: harm, starvation, backoff, changes of path.
    Evaluate(crate::evaluate::EvaluateArgs),
    /// Analyse a capture of MPTCP (pcap or pcapng, of any origin).
    Inspect(crate::inspect::InspectArgs),
    /// Say what recordings of a network hold; cut, align and convert them.
    Trace(crate::trace::TraceArgs),
    /// List policies, profiles, scenarios and studies.
    List(crate::list::ListArgs),
    /// Run conformance scripts: one endpoint against a peer whose every segment is written down.
    Script(crate::script::ScriptArgs),
    #[command(flatten)]
    Host(HostCommand),
    /// Print the JSON schema of scenario files, or of what a command writes.
    Schema(crate::schema::SchemaArgs),
    /// Print a completion script for a shell.
    Completions(crate::completion::CompletionsArgs),
    /// Write the manual pages of all commands.
    Man(crate::man::ManArgs),
}

/// Policies and profile of an endpoint, by the same options in every command.
#[derive(ClapArgs, Clone, Debug, Default)]
#[command(next_help_heading = "Policies")]
pub struct PolicyOptions {
    /// Scheduler: chooses a subflow for each segment (`anabranch list schedulers`).
    #[arg(long, value_name = "NAME[:PARAMETER=VALUE,…]", add = Names::one(What::Schedulers))]
    pub scheduler: Option<String>,
    /// Congestion control: limits the bytes in flight (`anabranch list congestion`).
    #[arg(long, value_name = "NAME[:…]", add = Names::one(What::Congestion))]
    pub congestion: Option<String>,
    /// Window policy: shares out the peer's window (`anabranch list windows`).
    #[arg(long, value_name = "NAME[:…]", add = Names::one(What::Windows))]
    pub window: Option<String>,
    /// ACK-path policy: chooses the path of an ACK (`anabranch list ack-paths`).
    #[arg(long, value_name = "NAME[:…]", add = Names::one(What::AckPaths))]
    pub ack_path: Option<String>,
    /// Reinjection policy: repeats bytes in flight elsewhere (`anabranch list reinjection`).
    #[arg(long, value_name = "NAME[:…]", add = Names::one(What::Reinjection))]
    pub reinjection: Option<String>,
    /// First-path policy: chooses the address on which a connection begins (`anabranch list first-paths`).
    #[arg(long, value_name = "NAME[:…]", add = Names::one(What::FirstPaths))]
    pub first_path: Option<String>,
    /// Stack that its TCP resembles, and policies that are not given (`anabranch list profiles`).
    #[arg(long, value_name = "NAME", add = Names::one(What::Profiles))]
    pub profile: Option<String>,
}

/// Values that lie over those of a scenario.
#[derive(ClapArgs, Clone, Debug, Default)]
pub struct Overrides {
    /// Override a scenario value: a dotted key, `=`, and TOML (`path.lte.delay=40ms`, `workload.0.size=1MiB`).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Policies of both hosts.
    #[command(flatten)]
    policies: PolicyOptions,
}

impl PolicyOptions {
    /// Names of the fields, which are the identifiers of the options.
    pub const IDS: [&str; 7] =
        ["scheduler", "congestion", "window", "ack_path", "reinjection", "first_path", "profile"];

    /// Each as a `--set` of both hosts.
    fn sets(&self) -> impl Iterator<Item = String> {
        let PolicyOptions { scheduler, congestion, window, ack_path, reinjection, first_path, profile } = self;
        let given = [profile, scheduler, congestion, window, ack_path, reinjection, first_path];
        let keys = ["profile", "scheduler", "congestion", "window", "ack-path", "reinjection", "first-path"];
        // A bare name stays bare, as people write it: it stands in reports and in commands that repeat a run.
        let is_bare = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
                && !["true", "false", "inf", "nan"].contains(&name)
        };
        let set = move |(key, name): (&str, &Option<String>)| {
            let name = name.as_ref()?;
            let value = if is_bare(name) { name.clone() } else { toml::Value::from(name.as_str()).to_string() };
            Some(format!("host.{key}={value}"))
        };
        keys.into_iter().zip(given).filter_map(set)
    }
}

impl Overrides {
    /// Returns all as `KEY=VALUE`, the policies last.
    pub fn sets(&self) -> Vec<String> {
        self.sets.iter().cloned().chain(self.policies.sets()).collect()
    }

    /// Returns all of a command that runs several schedulers, in which one by itself has no place.
    pub fn sets_of_several(&self, command: &str) -> Result<Vec<String>, Failure> {
        let Some(one) = &self.policies.scheduler else { return Ok(self.sets()) };
        let one = in_shell(one);
        let help = format!("accepted: --schedulers {one},… to choose some; `anabranch run SCENARIO --scheduler {one}`");
        Err(Failure::Refused(miette::miette!(help = help, "`{command}` runs several schedulers, each in turn")))
    }
}

/// Commands of the program that work with Linux: with its devices, namespaces and sockets.
#[derive(Subcommand, Debug)]
pub enum HostCommand {
    /// Compare the simulator with real time and the real kernel.
    Calibrate(host::CalibrateArgs),
    /// Run a program behind a scenario's paths, in real time.
    Testbed(host::TestbedArgs),
    /// Extend the MPTCP of the stock Linux kernel: congestion controls, ACK paths, a watch of its decisions.
    Kernel(host::KernelArgs),
    /// Serve files and test data over MPTCP, from an engine on a TUN device.
    Serve(host::ServeArgs),
    /// Download or upload over MPTCP, by an engine on a TUN device.
    Fetch(host::FetchArgs),
    /// Add MPTCP to programs without it: in front of a TCP service, or behind SOCKS5 and HTTP.
    Proxy(host::ProxyArgs),
}

/// Options common to `run` and `compare`.
#[derive(ClapArgs, Debug)]
pub struct Common {
    /// Values that lie over those of the scenario.
    #[command(flatten)]
    pub overrides: Overrides,
    /// Seed of the first repetition; each further one takes the next.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Number of repetitions.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repeat: Option<u32>,
    /// Threads to run on, at most 4 per processor; one per processor unless given. Results do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub jobs: usize,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Also write one row per run to this file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<ResultFile>,
    /// Also write an HTML page with diagrams to this file.
    #[arg(long, value_name = "FILE")]
    pub report: Option<ResultFile>,
}

/// Places and forms of the results of a campaign.
#[derive(ClapArgs, Debug)]
pub struct Results {
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Also write one row per run to this file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<ResultFile>,
    /// Also write the rows as Apache Parquet, in one file.
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<ResultFile>,
    /// Also write an HTML page with diagrams and all tables to this file.
    #[arg(long, value_name = "FILE")]
    pub report: Option<ResultFile>,
}

/// Kinds of entries.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Schedulers: the bytes that leave next, and the subflow that carries them.
    Schedulers,
    /// Congestion controls: the bytes that may be in flight.
    Congestion,
    /// Window policies: the shares of subflows in the peer's window.
    Windows,
    /// ACK-path policies: the path that an ACK takes.
    AckPaths,
    /// Reinjection policies: repetition of bytes in flight on another subflow.
    Reinjection,
    /// First-path policies: the path on which a connection begins.
    FirstPaths,
    /// Queue disciplines of links: the packet that leaves next, and those dropped or marked.
    Queues,
    /// Middleboxes that a path can have.
    Middleboxes,
    /// Profiles: the TCP stacks that a host can resemble.
    Profiles,
    /// Scenarios that this program contains.
    Scenarios,
    /// Studies: figures of papers that can be run again; see `anabranch study`.
    Studies,
}

/// Parses `10s`; 0 is refused.
pub fn span(text: &str) -> Result<Duration, String> {
    let span = quantity::duration(text).map_err(|refusal| format!("{}; {}", refusal.problem, refusal.accepted))?;
    if span.is_zero() { Err("accepted: a time above zero, such as 10s".to_owned()) } else { Ok(span) }
}

/// Parses `30s`, of the machine's clock; 0 is refused.
pub fn time(text: &str) -> Result<std::time::Duration, String> {
    Ok(std::time::Duration::from_nanos(span(text)?.as_nanos()))
}

/// Reads the time between two answers.
pub fn interval(text: &str) -> Result<Duration, String> {
    match span(text)? {
        span if span < SHORTEST_INTERVAL => Err("accepted: 100ms or more".to_owned()),
        span => Ok(span),
    }
}

/// Less would be mostly the time that looking takes.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);
