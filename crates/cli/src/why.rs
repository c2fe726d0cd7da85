//! `anabranch why`: where the time of a run goes, and what would have helped; or where that of a capture went, or goes
//! in a live connection.

use crate::args::{Overrides, PolicyOptions, interval, span};
use crate::captures;
use crate::completion::Names;
use crate::failure::Failure;
use crate::host;
use crate::output;
use crate::result_file::ResultFile;
use crate::stop;
use anabranch_lab::format::{WHY, WHY_CAPTURE};
use anabranch_lab::{Keep, Recorder};
use anabranch_policy::Catalogue;
use anabranch_report::html::{self, Page};
use anabranch_scenario::{Scenario, split_policies};
use anabranch_units::{Duration, input};
use anabranch_why::{Alternatives, Answer, CaptureInquiry, Inquiry, Kind, Others, Trace};
use clap::Args as ClapArgs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments of `why`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch why wlan-lte
  anabranch why my.toml --repeat 10                   every change, over ten seeds
  anabranch why asymmetric-10-100 --set host.receive-buffer=64KiB
  anabranch why path-failure --schedulers late,ecf:beta=0.5 --json
  anabranch why capture.pcapng                        of a capture, from its packets alone
  anabranch why client.pcapng server.pcapng           the same, captured at both ends
  anabranch why capture.pcapng --report why.html      data, limits and windows over time, packet by packet, as a page
  anabranch why capture.pcapng --xpl graphs           time-sequence graphs for xplot
  sudo anabranch why --follow                         of live connections of this host's kernel, second by second
  sudo anabranch why --follow 10.0.0.1:443            of one, by the address and port of either end
  sudo anabranch why --follow $(pidof curl) --json    of those of a process, one JSON object per interval

One sentence first. Then the time of the longest transfer of the first repetition as a bar, one for the connection and
one for each path; the time of all transfers by limit; and what each change would have given. docs/why.md says what each
limit means.

Of a scenario it makes one run, and as many with one thing changed as fit into five times the work of that run: those
first on whose limits the time went. What was not tried is listed. Ctrl-C ends the work, and the answer is that of the
runs made until then; a second one ends the command.")]
pub struct WhyArgs {
    /// A scenario file, or the name of a shipped scenario, or of a drawn one, drawn/SEED/NUMBER (`anabranch rank`); or
    /// captures of one connection in pcap or pcapng, from one end or both. With --follow: processes by their numbers,
    /// or ADDRESS:PORT of either end.
    #[arg(
        required_unless_present = "follow", value_name = "SCENARIO|CAPTURE|CONNECTION",
        add = Names::or_file(crate::args::What::Scenarios)
    )]
    pub scenario: Vec<String>,
    /// Follow live TCP and MPTCP connections of this host's kernel until they end, or Ctrl-C; without a process or an
    /// address, all. What belongs to which MPTCP connection is seen with CAP_NET_ADMIN only.
    #[arg(long, conflicts_with_all = OF_RUNS, conflicts_with_all = PolicyOptions::IDS, conflicts_with = "connection")]
    pub follow: bool,
    /// With --follow: answer this often.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// With --follow: end after this time.
    #[arg(long, value_name = "TIME", value_parser = span, requires = "follow")]
    pub max_time: Option<Duration>,
    /// Of a capture: judge this connection; unless given, the one with most data.
    #[arg(long, value_name = "N", conflicts_with_all = OF_RUNS, conflicts_with_all = PolicyOptions::IDS)]
    pub connection: Option<usize>,
    /// Values that lie over those of the scenario.
    #[command(flatten)]
    pub overrides: Overrides,
    /// Seed of the first repetition; each further one takes the next.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Number of repetitions of the run and of each counterfactual, all of which are then tried. Unless given, one, and
    /// those that fit into five times the work of a run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repeat: Option<u32>,
    /// The schedulers to try in place of the scenario's, with commas between.
    #[arg(long, value_name = "NAME[:PARAMETER=VALUE,…],…", add = Names::joined(crate::args::What::Schedulers))]
    pub schedulers: Option<String>,
    /// The congestion controls to try in place of the scenario's, with commas between.
    #[arg(long, value_name = "NAME[:PARAMETER=VALUE,…],…", add = Names::joined(crate::args::What::Congestion))]
    pub congestions: Option<String>,
    /// Threads to run on, at most 4 per processor; one per processor unless given. Results do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub jobs: usize,
    /// Write a page that draws the transfer packet by packet: data over time by path, limits, bytes in flight. Of a
    /// scenario it is the longest transfer of the first repetition.
    #[arg(long, value_name = "FILE", conflicts_with = "follow")]
    pub report: Option<ResultFile>,
    /// Write files for xplot to this directory, in the commands and colours of tcptrace: a time-sequence graph of each
    /// subflow and direction, and one of the data by path. Of a scenario they are those of --report.
    #[arg(long, value_name = "DIR", conflicts_with = "follow")]
    pub xpl: Option<PathBuf>,
    /// Print JSON instead of the sentence, bars and tables.
    #[arg(long)]
    pub json: bool,
}

/// Options that make sense for runs only.
const OF_RUNS: [&str; 6] = ["sets", "seed", "repeat", "schedulers", "congestions", "jobs"];

/// Answers for captures or for a scenario.
pub fn why(catalogue: &Arc<Catalogue>, args: &WhyArgs) -> Result<(), Failure> {
    // Before the runs rather than after them.
    args.xpl.as_deref().map_or(Ok(()), output::check_directory)?;
    match args.scenario.as_slice() {
        _ if args.follow => host::follow(args),
        [one] if !is_capture(one) && args.connection.is_none() => of_scenario(catalogue, one, args),
        files => of_capture(files, args),
    }
}

/// Returns true if a file is a capture by its name, or begins like one.
fn is_capture(name: &str) -> bool {
    let bare = name.strip_suffix(".gz").unwrap_or(name);
    let by_name = Path::new(bare).extension().is_some_and(|end| ["pcap", "pcapng", "cap"].iter().any(|it| end == *it));
    let mut magic = [0; 4];
    let mut begins = || {
        input::open(Path::new(name)).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok() && MAGIC.contains(&magic))
    };
    name == "-" || by_name || begins()
}

/// First bytes of pcapng and pcap, in both orders and resolutions.
const MAGIC: [[u8; 4]; 5] = [
    [0x0a, 0x0d, 0x0d, 0x0a],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
];

/// Judges a connection of captures.
fn of_capture(files: &[String], args: &WhyArgs) -> Result<(), Failure> {
    let repeats = args.seed.is_some() || args.repeat.is_some() || args.jobs != 0;
    if !args.overrides.sets().is_empty() || repeats || args.schedulers.is_some() || args.congestions.is_some() {
        let text = "captures are judged as they are: --set, policies, --seed, --repeat, --schedulers, --congestions \
                    and --jobs are for scenarios";
        return Err(Failure::Refused(miette::miette!("{text}")));
    }
    let paths: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    let inquiry = CaptureInquiry::read(&paths);
    captures::check_number(args.connection, inquiry.connections(), "connection")?;
    let answer = inquiry.answer(args.connection);
    if inquiry.is_capture() {
        let is_drawn = args.report.is_some() || args.xpl.is_some();
        let traces = if is_drawn { inquiry.traces(args.connection) } else { Vec::new() };
        if let Some(path) = &args.report {
            let page = Page::of_captures(&answer, &traces, &output::command_line());
            output::write(path, html::page(&page).as_bytes())?;
        }
        if let (Some(directory), Some(connection)) = (&args.xpl, &answer.connection) {
            write_xplot(directory, &traces, &connection.sides)?;
        }
        match args.json {
            true => output::print(&output::json(&WHY_CAPTURE, &answer)?)?,
            false => output::print(&anabranch_report::why_capture(&answer, output::width().min(80)))?,
        }
    }
    captures::check_files(inquiry.files())
}

/// Runs the scenario and its counterfactuals, and prints the answer.
fn of_scenario(catalogue: &Arc<Catalogue>, name: &str, args: &WhyArgs) -> Result<(), Failure> {
    let sets = args.overrides.sets();
    let scenario = anabranch_study::load(catalogue, name, &sets)?;
    output::mention_study(name, &sets);
    let mut others = Others::default();
    if let Some(named) = &args.schedulers {
        others.schedulers = split_policies(named);
        // A slip of the finger is told before the runs, and not below their table.
        others.schedulers.iter().try_for_each(|name| scenario.with_scheduler(name).map(drop))?;
    }
    if let Some(named) = &args.congestions {
        others.congestion = split_policies(named);
        let set = |name: &String| format!("host.congestion={}", toml::Value::from(name.as_str()));
        others.congestion.iter().try_for_each(|it| anabranch_study::load(catalogue, name, &[set(it)]).map(drop))?;
    }
    let seed = args.seed.unwrap_or(scenario.seed);
    let asked: Vec<Kind> = [(&args.schedulers, Kind::Scheduler), (&args.congestions, Kind::Congestion)]
        .into_iter()
        .filter_map(|(named, kind)| named.as_ref().map(|_| kind))
        .collect();
    let answer = ask(catalogue, &scenario, name, (&others, &asked), (seed, args.repeat), args.jobs)?;
    if args.report.is_some() || args.xpl.is_some() {
        let traces = traces(&scenario, &answer)?;
        if let Some(path) = &args.report {
            let page = Page::of_why(&scenario, &answer, traces.first(), &output::command_line());
            output::write(path, html::page(&page).as_bytes())?;
        }
        if let Some(directory) = &args.xpl {
            write_xplot(directory, &traces, &["client", "server"].map(str::to_owned))?;
        }
    }
    if args.json {
        return output::print(&output::json(&WHY, &answer)?);
    }
    output::print(&anabranch_report::why(&answer, output::width().min(80)))
}

/// Writes the files for xplot.
fn write_xplot(directory: &Path, traces: &[Trace], sides: &[String; 2]) -> Result<(), Failure> {
    for file in anabranch_report::xplot(traces, sides) {
        output::write(&directory.join(&file.name), file.text.as_bytes())?;
    }
    Ok(())
}

/// The course of the longest transfer of the first repetition, from captures at both ends, which see every packet.
fn traces(scenario: &Scenario, answer: &Answer) -> Result<Vec<Trace>, Failure> {
    // Whoever stops a run does not wait for a further one.
    let Some(longest) = answer.longest().filter(|_| !answer.stopped) else { return Ok(Vec::new()) };
    let failed = |error: &std::io::Error| Failure::writing_to(&std::env::temp_dir(), error);
    let directory = tempfile::tempdir().map_err(|error| failed(&error))?;
    let keep = Keep { captures: Some(directory.path().to_owned()), ..Keep::default() };
    let run = anabranch_lab::run(scenario, answer.seed, &keep)?;
    let connection = &run.outcome.connections[longest.connection];
    // It sent nothing if it has no subflow.
    let Some(first) = connection.subflows.first() else { return Ok(Vec::new()) };
    let names = Recorder::file_names(connection.client);
    let files = names.each_ref().map(|name| directory.path().join(name));
    let mut traces = CaptureInquiry::read(&files).traces_between(first.stats.local, first.stats.remote);
    for trace in &mut traces {
        trace.files = names.to_vec();
    }
    Ok(traces)
}

/// Makes the runs of an inquiry into the scenario called `name`, up to Ctrl-C or SIGTERM.
fn ask(
    catalogue: &Arc<Catalogue>,
    scenario: &Scenario,
    name: &str,
    (others, asked): (&Others, &[Kind]),
    (seed, repeat): (u64, Option<u32>),
    jobs: usize,
) -> Result<Answer, Failure> {
    let load = |more: &[String]| {
        let sets: Vec<String> = scenario.origin.sets.iter().chain(more).cloned().collect();
        anabranch_study::load(catalogue, name, &sets)
    };
    let alternatives = Alternatives::of(scenario, catalogue, others, &load);
    let inquiry = match repeat {
        Some(repeat) => Inquiry::new(scenario, alternatives, seed, repeat as usize),
        None => Inquiry::brief(scenario, alternatives, seed).asked(asked),
    };
    let inquiry = inquiry.stoppable(&stop::flag()?);
    let jobs = output::threads(jobs, inquiry.len());
    let bar = output::progress(inquiry.len());
    // The first run may take long.
    bar.tick();
    let answer = inquiry.run(jobs, &load, &|done, planned| {
        bar.set_length(planned as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    Ok(answer?)
}
