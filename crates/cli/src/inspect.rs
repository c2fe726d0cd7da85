//! `anabranch inspect`.

use crate::captures;
use crate::failure::Failure;
use crate::output;
use anabranch_inspect::Limits;
use anabranch_lab::format::INSPECTION;
use clap::Args as ClapArgs;
use std::path::PathBuf;

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

/// Analyses captures and prints what happened in them.
pub fn inspect(args: &InspectArgs) -> Result<(), Failure> {
    let mut report = anabranch_inspect::inspect(&args.files, Limits::default());
    let files = captures::check_files(&report.files);
    if report.files.iter().all(|file| !file.is_capture) {
        return files;
    }
    captures::check_number(args.connection, report.connections.len(), "MPTCP connection")?;
    if let Some(wanted) = args.connection {
        report.connections.retain(|connection| connection.number == wanted);
        report.plain_tcp.clear();
    }
    if args.json {
        output::print(&output::json(&INSPECTION, &report)?)?;
    } else {
        output::print(&anabranch_report::inspection(&report))?;
    }
    files
}
