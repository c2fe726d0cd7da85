//! `anabranch run`.

use crate::args::{Common, What};
use crate::completion::Names;
use crate::failure::Failure;
use crate::output;
use crate::result_file::ResultFile;
use anabranch_lab::format::PACKET_EVENTS;
use anabranch_lab::{Keep, Measured, PacketEvent, Run, RunHead};
use anabranch_policy::Catalogue;
use anabranch_report::html::{self, Page};
use anabranch_report::{Frame, Header, Repeated, Sheet, run_rows};
use anabranch_scenario::Scenario;
use clap::Args as ClapArgs;
use serde_json::json;
use std::fmt::Write;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of `run`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch run wlan-lte
  anabranch run lossy --scheduler late --events events.jsonl
  anabranch run path-failure --qlog events.sqlog
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
    /// Write the events of packets, connections and congestion control to this file as qlog, a JSON text sequence.
    #[arg(long, value_name = "FILE")]
    pub qlog: Option<ResultFile>,
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
        qlog: args.qlog.is_some(),
        captures: args.pcap.clone(),
        timeline: args.common.report.is_some(),
        ..Keep::default()
    };
    let jobs = output::threads(args.common.jobs, repeat as usize);
    let bar = output::progress(repeat as usize);
    let seeds: Vec<u64> = (0..u64::from(repeat)).map(|n| seed.wrapping_add(n)).collect();
    let mut results = Results::new(args, &header, &scenario)?;
    let ended =
        anabranch_lab::in_batches(&scenario, &seeds, &keep, jobs, &|| bar.inc(1), &mut |runs| results.add(runs));
    bar.finish_and_clear();
    ended?;

    let Results { csv, events, qlog, rows, frame, repeated, first, all, .. } = results;
    if let (Some(path), Some(csv)) = (&args.common.csv, csv) {
        output::write_from(path, csv)?;
    }
    if let (Some(path), Some(run)) = (&args.common.report, &first) {
        let page = Page::of_runs(&scenario, &header, run, &all, &output::command_line());
        output::write(path, html::page(&page).as_bytes())?;
    }
    if let (Some(path), Some(events)) = (&args.events, events) {
        output::write_from(path, events)?;
    }
    if let (Some(path), Some(qlog)) = (&args.qlog, qlog) {
        output::write_from(path, qlog)?;
    }
    match (rows, &first) {
        (Some(rows), _) => output::print_around(&frame.begin, rows, &format!("{}\n", frame.end)),
        (None, Some(run)) if repeat == 1 => output::print(&anabranch_report::in_full(&header, run)),
        (None, _) => output::print(&repeated.text(&header)),
    }
}

/// Results of runs as far as they are there. What grows with the number of runs lies in files, but for the lines of the
/// table and, for a page, what was measured.
struct Results<'a> {
    header: &'a Header,
    csv: Option<File>,
    events: Option<File>,
    qlog: Option<File>,
    /// Rows of the JSON.
    rows: Option<File>,
    frame: Frame,
    repeated: Repeated,
    /// First run, whole: a page and the text of a single run tell more of it.
    first: Option<Run>,
    /// Measurements of all runs, for a page.
    all: Vec<Measured>,
    /// Runs so far.
    count: usize,
    has_page: bool,
}

impl<'a> Results<'a> {
    fn new(args: &RunArgs, header: &'a Header, scenario: &Scenario) -> Result<Self, Failure> {
        let file = |wanted: bool| wanted.then(output::scratch).transpose();
        let mut qlog = file(args.qlog.is_some())?;
        if let Some(file) = &mut qlog {
            output::write_scratch(file, &anabranch_lab::qlog_head(scenario))?;
        }
        Ok(Results {
            header,
            csv: file(args.common.csv.is_some())?,
            events: file(args.events.is_some())?,
            qlog,
            rows: file(args.common.json)?,
            frame: Frame::of_runs(header).map_err(|error| Failure::writing("JSON", error))?,
            repeated: Repeated::new(header, scenario.measure),
            first: None,
            all: Vec::new(),
            count: 0,
            has_page: args.common.report.is_some(),
        })
    }

    /// Takes the next runs.
    fn add(&mut self, runs: Vec<Run>) -> Result<(), Failure> {
        let rows = run_rows(self.header, &runs);
        if let Some(csv) = &mut self.csv {
            let sheet = Sheet::of_runs(self.header, &rows);
            let text = if self.count == 0 { sheet.csv() } else { sheet.csv_rows() };
            let text = text.map_err(|error| Failure::writing("CSV", error))?;
            output::write_scratch(csv, &text)?;
        }
        if let Some(events) = &mut self.events {
            output::write_scratch(events, self::events(&runs).as_bytes())?;
        }
        if let Some(file) = &mut self.qlog {
            runs.iter().filter_map(|run| run.qlog.as_ref()).try_for_each(|qlog| output::write_scratch(file, qlog))?;
        }
        for row in &rows {
            match &mut self.rows {
                Some(file) => {
                    let text = Frame::row(self.header, row).map_err(|error| Failure::writing("JSON", error))?;
                    let between = if self.count == 0 { "" } else { Frame::BETWEEN };
                    output::write_scratch(file, format!("{between}{text}").as_bytes())?;
                }
                None => self.repeated.add(row.measured),
            }
            self.count += 1;
        }
        if self.has_page {
            self.all.extend(runs.iter().map(|run| run.measured.clone()));
        }
        if self.first.is_none() {
            self.first = runs.into_iter().next();
        }
        Ok(())
    }
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
