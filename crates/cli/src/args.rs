//! The command line: the commands, and options that several of them share. The others stand beside the code that reads
//! them, in the file of their command.

use crate::result_file::ResultFile;
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
    /// Analyse a capture of MPTCP (pcap or pcapng, of any origin).
    Inspect(crate::inspect::InspectArgs),
    /// List policies, profiles, scenarios and studies.
    List(crate::list::ListArgs),
    /// Run conformance scripts: one endpoint against a peer whose every segment is written down.
    Script(crate::script::ScriptArgs),
    /// Compare the simulator with real time and the real kernel.
    Calibrate(crate::calibrate::CalibrateArgs),
    /// Run a program behind a scenario's paths, in real time.
    Testbed(crate::testbed::TestbedArgs),
    /// Extend the MPTCP of the stock Linux kernel: congestion controls, ACK paths, a watch of its decisions.
    Kernel(crate::kernel::KernelArgs),
    /// Serve files and test data over MPTCP, from an engine on a TUN device.
    Serve(crate::serve::ServeArgs),
    /// Download or upload over MPTCP, by an engine on a TUN device.
    Fetch(crate::fetch::FetchArgs),
    /// Add MPTCP to programs without it: in front of a TCP service, or behind SOCKS5 and HTTP CONNECT.
    Proxy(crate::proxy::ProxyArgs),
    /// Print the JSON schema of scenario files, or of what a command writes.
    Schema(crate::schema::SchemaArgs),
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
    /// Middleboxes that a path can have.
    Middleboxes,
    /// Profiles: the TCP stacks that a host can resemble.
    Profiles,
    /// Scenarios that this program contains.
    Scenarios,
    /// Studies: figures of papers that can be run again; see `anabranch study`.
    Studies,
}
