//! `anabranch run`.

use crate::args::{Common, What};
use crate::completion::Names;
use crate::failure::Failure;
use crate::output;
use crate::result_file::ResultFile;
use anabranch_lab::format::PACKET_EVENTS;
use anabranch_lab::{Keep, PacketEvent, Run, RunHead};
use anabranch_policy::Catalogue;
use anabranch_report::html::{self, Page};
use anabranch_report::{Header, Sheet, run_rows};
use clap::Args as ClapArgs;
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of `run`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch run wlan-lte
  anabranch run lossy --scheduler late --events events.jsonl
  anabranch run my.toml --repeat 10 --csv runs.csv
  anabranch run wlan-lte --report run.html
  anabranch run path-failure --seed 7 --scheduler late --set host.mss=1200 --pcap captures")]
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
    pub events: Option<ResultFile>,
    /// Write what each host sends and receives to DIR/client.pcapng, DIR/server.pcapng and so on, for Wireshark and
    /// tshark; with --repeat to DIR/seed-N/. (For a row of a comparison: --seed and --scheduler.)
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
}

/// Runs the scenario, once unless told otherwise.
pub fn run(catalogue: &Arc<Catalogue>, args: &RunArgs) -> Result<(), Failure> {
    let sets = args.common.overrides.sets();
    let scenario = anabranch_study::load(catalogue, &args.scenario, &sets)?;
    output::mention_study(&args.scenario, &sets);
    let (seed, repeat) = (args.common.seed.unwrap_or(scenario.seed), args.common.repeat.unwrap_or(1));
    // Before the run rather than after it.
    args.pcap.as_deref().map_or(Ok(()), output::check_directory)?;
    let header = Header::new(&scenario, seed, repeat as usize);
    let keep = Keep {
        events: args.events.is_some(),
        captures: args.pcap.clone(),
        timeline: args.common.report.is_some(),
        ..Keep::default()
    };
    let jobs = output::threads(args.common.jobs, repeat as usize);
    let bar = output::progress(repeat as usize);
    let seeds: Vec<u64> = (0..u64::from(repeat)).map(|n| seed.wrapping_add(n)).collect();
    let runs = anabranch_lab::run_seeds(&scenario, &seeds, &keep, jobs, &|| bar.inc(1));
    bar.finish_and_clear();
    let runs = runs?;

    let rows = run_rows(&header, &runs);
    if let Some(path) = &args.common.csv {
        let csv = Sheet::of_runs(&header, &rows).csv();
        output::write(path, &csv.map_err(|error| Failure::writing("CSV", error))?)?;
    }
    if let Some(path) = &args.common.report {
        let page = Page::of_runs(&scenario, &header, &runs, &output::command_line());
        output::write(path, html::page(&page).as_bytes())?;
    }
    if let Some(path) = &args.events {
        output::write(path, events(&runs).as_bytes())?;
    }
    if args.common.json {
        let json =
            anabranch_report::json(&header, None, &rows, None).map_err(|error| Failure::writing("JSON", error))?;
        return output::print(&format!("{json}\n"));
    }
    output::print(&anabranch_report::runs(&header, scenario.measure, &runs))
}

/// One line per packet event; a line with format and seed before each repetition.
fn events(runs: &[Run]) -> String {
    let mut text = String::new();
    for run in runs {
        let head = json!(PACKET_EVENTS.document(RunHead { seed: run.measured.seed }));
        writeln!(text, "{head}").expect("writing to a String cannot fail");
        for event in run.outcome.events.iter().flatten() {
            text += &serde_json::to_string(&PacketEvent::from(event)).expect("an event is plain JSON");
            text.push('\n');
        }
    }
    text
}
