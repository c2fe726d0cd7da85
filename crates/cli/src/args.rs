//! The command line.

use crate::completion::Names;
use crate::failure::Failure;
use crate::output;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

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
  anabranch why wlan-lte                              where its time goes, and what would help
  anabranch list schedulers late                      what it does, and where it differs from its paper
  anabranch study late/fig10                          a figure of a paper, with a verdict on each statement
  anabranch testbed wlan-lte --server 'mptcpize run iperf3 -s' -- mptcpize run iperf3 -c server
  sudo anabranch proxy --listen 10.78.0.1:80 --to 127.0.0.1:8080
  anabranch inspect capture.pcapng                    a capture of MPTCP, in words

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
    Run(RunArgs),
    /// Run all schedulers over a scenario and rank them.
    Compare(CompareArgs),
    /// Say why a scenario's transfers take as long as they do, and what would help.
    Why(crate::why::WhyArgs),
    /// Rank schedulers over drawn conditions, or search for those in which one loses most.
    Rank(crate::rank::RankArgs),
    /// Compare systems over many conditions, in parts that any process can continue.
    Sweep(crate::sweep::SweepArgs),
    /// Run the figures of the papers again and judge their statements.
    Study(crate::study::StudyArgs),
    /// Analyse a capture of MPTCP (pcap or pcapng, of any origin).
    Inspect(InspectArgs),
    /// List policies, profiles, scenarios and studies.
    List(ListArgs),
    /// Run conformance scripts: one endpoint against a peer whose every segment is written down.
    Script(ScriptArgs),
    /// Compare the simulator with real time and the real kernel.
    Calibrate(crate::calibrate::CalibrateArgs),
    /// Run a program behind a scenario's paths, in real time.
    Testbed(crate::testbed::TestbedArgs),
    /// Load congestion controls of ours into the stock Linux kernel.
    Kernel(crate::kernel::KernelArgs),
    /// Serve files and test data over MPTCP, from an engine on a TUN device.
    Serve(crate::serve::ServeArgs),
    /// Download or upload over MPTCP, by an engine on a TUN device.
    Fetch(crate::fetch::FetchArgs),
    /// Add MPTCP to programs without it: in front of a TCP service, or behind SOCKS5 and HTTP CONNECT.
    Proxy(crate::proxy::ProxyArgs),
    /// Print the JSON schema of scenario files, or of what a command writes.
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    Completions(crate::completion::CompletionsArgs),
    /// Write the manual pages of all commands.
    Man(crate::man::ManArgs),
}

/// Options common to `run` and `compare`.
#[derive(ClapArgs, Debug)]
pub struct Common {
    /// Override a scenario value: a dotted key, `=`, and TOML (`path.lte.delay=40ms`, `workload.0.size=1MiB`).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
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
    pub csv: Option<PathBuf>,
    /// Also write an HTML page with diagrams to this file.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// Places and forms of the results of a campaign.
#[derive(ClapArgs, Debug)]
pub struct Results {
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Also write one row per run to this file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Also write the rows as Apache Parquet, in one file.
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// Also write an HTML page with diagrams and all tables to this file.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

impl Results {
    /// Refuses files that cannot be written, before anything is run.
    pub fn check(&self) -> Result<(), Failure> {
        let files = [("--csv", &self.csv), ("--parquet", &self.parquet), ("--report", &self.report)];
        output::check(files.map(|(option, path)| (option, path.as_ref())))
    }
}

/// Arguments of `run`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch run wlan-lte
  anabranch run lossy --set host.scheduler=late --events events.jsonl
  anabranch run my.toml --repeat 10 --csv runs.csv
  anabranch run wlan-lte --report run.html
  anabranch run path-failure --seed 7 --set host.scheduler=late --pcap captures")]
pub struct RunArgs {
    /// A scenario file, the name of a shipped scenario (`anabranch list scenarios`), or of a drawn one,
    /// drawn/SEED/NUMBER (`anabranch rank`).
    #[arg(add = Names::or_file(What::Scenarios))]
    pub scenario: String,
    /// Options shared with `compare`.
    #[command(flatten)]
    pub common: Common,
    /// Write the events of every packet to this file, one JSON object per line.
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Write what each host sends and receives to DIR/client.pcapng, DIR/server.pcapng and so on, for Wireshark and
    /// tshark; with --repeat to DIR/seed-N/. (For a row of a comparison: --seed and --set host.scheduler=NAME.)
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
}

/// Arguments of `compare`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch compare
  anabranch compare asymmetric-10-100 --schedulers min-rtt,blest,late --repeat 50
  anabranch compare wlan-lte --schedulers ecf:beta=0.5,ecf,min-rtt
  anabranch compare wlan-lte --repeat 1000 --out kept
  anabranch compare wlan-lte --report comparison.html
  anabranch compare --all --repeat 5 --json
  anabranch compare wlan-lte --set 'path.lte.down=\"recording.down\"' --csv runs.csv")]
pub struct CompareArgs {
    /// A scenario file, or the name of a shipped scenario, or of a drawn one, drawn/SEED/NUMBER (`anabranch rank`).
    #[arg(default_value = anabranch_scenario::shipped::DEFAULT, add = Names::or_file(What::Scenarios))]
    pub scenario: String,
    /// Options shared with `run`.
    #[command(flatten)]
    pub common: Common,
    /// The schedulers to compare, with commas between, each with parameters behind a colon where they differ from the
    /// defaults; all unless given.
    #[arg(long, value_name = "NAME[:PARAMETER=VALUE,…],…", add = Names::joined(What::Schedulers))]
    pub schedulers: Option<String>,
    /// Keep every run in DIR/runs.jsonl, and reuse the runs that this build left there. A comparison that was killed
    /// continues where it was.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Compare every scheduler with every other, over all shipped scenarios.
    #[arg(long, conflicts_with_all = ["scenario", "csv", "report"])]
    pub all: bool,
}

impl CompareArgs {
    /// Returns the schedulers that are named; an empty list means all.
    pub fn schedulers(&self) -> Vec<String> {
        self.schedulers.as_deref().map(anabranch_scenario::split_policies).unwrap_or_default()
    }
}

/// Arguments of `script`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch script conformance/join/server.script
  anabranch script conformance --json
  anabranch script my.script && echo it holds

The format is described in docs/scripts.md. Exit status 1: a script does not hold; 2: a script is not well written.")]
pub struct ScriptArgs {
    /// Scripts, or folders of *.script files.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print JSON: for each script its result, and where, what was expected and what came if it does not hold.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `inspect`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch inspect capture.pcapng
  anabranch inspect wlan0.pcap lte0.pcap                one report over captures of the same time
  anabranch inspect capture.pcapng --connection 2 --json
  tcpdump -i any -w - tcp | anabranch inspect -

Exit status 0: analysed, as far as it could be read. 2: a file is no capture, or there is no such connection.")]
pub struct InspectArgs {
    /// Captures of the same time, in pcap or pcapng, gzipped or not; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Show only this connection.
    #[arg(long, value_name = "N")]
    pub connection: Option<usize>,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `list`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch list schedulers
  anabranch list schedulers late
  anabranch list congestion --json")]
pub struct ListArgs {
    /// Kind of entry to list.
    pub what: What,
    /// Show only the entry of this name, with its documentation.
    #[arg(add = Names::of_list())]
    pub name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `schema`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch schema > scenario.schema.json
  anabranch schema leaderboard > leaderboard.schema.json
  anabranch schema --list")]
pub struct SchemaArgs {
    /// Format of JSON that a command writes, the `format` of its document; that of scenario files unless given.
    pub format: Option<String>,
    /// List the formats with their versions and the commands that write them.
    #[arg(long, conflicts_with = "format")]
    pub list: bool,
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
    /// Middleboxes that a path can have.
    Middleboxes,
    /// The stacks a host can resemble.
    Profiles,
    /// The scenarios in this program.
    Scenarios,
    /// The figures of papers that can be run again; see `anabranch study`.
    Studies,
}
