//! `anabranch twin`: from a capture to a scenario of the network that it was taken on.

use crate::captures;
use crate::failure::Failure;
use crate::output;
use crate::result_file::ResultFile;
use anabranch_lab::format::TWIN;
use anabranch_policy::Catalogue;
use anabranch_scenario::{Origin, Scenario};
use anabranch_why::CaptureInquiry;
use clap::Args as ClapArgs;
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of `twin`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch twin capture.pcapng > mine.toml      the scenario, with a comment beside each value
  anabranch twin capture.pcapng -o mine.toml     the same into a file, and a table of the values
  anabranch twin a.pcapng b.pcapng -o mine.toml  surer: captured at both ends
  anabranch twin capture.pcapng --json           values with ranges and reasons, for programs
  anabranch compare mine.toml                    which scheduler would have been best there?
  anabranch why mine.toml                        which change would have helped?

Each value says how sure it is and what it was seen from. Scheduler and stack are not on the wire: unless the capture \
tells, they are those of the Linux kernel. docs/twin.md says how values are estimated, and how near twins come.")]
pub struct TwinArgs {
    /// Captures of one connection in pcap or pcapng, from one end or both; `-` is standard input.
    #[arg(required = true, value_name = "CAPTURE", value_hint = clap::ValueHint::FilePath)]
    pub captures: Vec<PathBuf>,
    /// Make the twin of this connection; unless given, of the one with most data.
    #[arg(long, value_name = "N")]
    pub connection: Option<usize>,
    /// Write the scenario to this file, and print a table of its values.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<ResultFile>,
    /// Print JSON: the values with their ranges and reasons, and the scenario.
    #[arg(long)]
    pub json: bool,
}

/// Makes the twin of a connection of captures.
pub fn twin(catalogue: &Arc<Catalogue>, args: &TwinArgs) -> Result<(), Failure> {
    let inquiry = CaptureInquiry::read(&args.captures);
    let files = inquiry.files();
    captures::check_files(files)?;
    let twin = inquiry.twin(args.connection).map_err(|error| Failure::Refused(miette::miette!("{error}")))?;
    // What is written has to be a scenario, whatever was captured.
    let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
    let origin = Origin { scenario: "twin.toml".to_owned(), sets: Vec::new() };
    Scenario::read(catalogue, "twin", "twin.toml", &twin.scenario, origin, &none)?;
    for file in files {
        file.error.iter().chain(&file.notes).for_each(|note| output::remark(&format!("{}: {note}", file.name)));
    }
    if let Some(path) = &args.output {
        output::write(path, twin.scenario.as_bytes())?;
    }
    match (args.json, &args.output) {
        (true, _) => output::print(&output::json(&TWIN, &twin)?),
        (false, None) => output::print(&twin.scenario),
        (false, Some(_)) => output::print(&anabranch_report::twin(&twin, output::width().min(80))),
    }
}
