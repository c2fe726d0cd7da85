//! `anabranch evaluate`: congestion controls by the criteria of a document.

use crate::args::{What, time};
use crate::completion::Names;
use crate::failure::Failure;
use crate::host;
use crate::output;
use crate::result_file::ResultFile;
use anabranch_lab::format::EVALUATION;
use anabranch_lab::{Flows, Journal};
use anabranch_policy::Catalogue;
use anabranch_report::html::{Page, page};
use anabranch_scenario::in_shell;
use anabranch_study::evaluate::{Candidate, Evaluation, Plan, Suite};
use clap::Args as ClapArgs;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Options that only runs have a use for.
const RUNNING: [&str; 10] =
    ["control", "all", "scheduler", "sets", "quick", "json", "report", "document", "out", "testbed"];
/// Options that programs in real time have no use for.
const SIMULATED: [&str; 3] = ["all", "scheduler", "jobs"];

/// Arguments of `evaluate`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch evaluate rfc9743 --control bbr
  anabranch evaluate rfc9743 --control cubic:beta=0.5 --report cubic.html
  anabranch evaluate rfc9743 --control bbr --case shallow-buffers,harm-drop-tail
  anabranch evaluate rfc9743 --control lia --scheduler min-rtt --json
  anabranch evaluate rfc9743 --all --out kept --document evaluation.md
  anabranch evaluate bbr --control bbr3
  anabranch evaluate rfc9743 --list
  anabranch run rfc9743/black-hole --congestion reno       the scenario of a case
  anabranch evaluate rfc9743 --testbed --control cubic --case harm-drop-tail --quick
  anabranch evaluate rfc9743 --testbed --case range,aqm --quick --server 'iperf3 -s -p $ANABRANCH_PORT' -- \
      sh -c 'iperf3 -c $ANABRANCH_SERVER -p $ANABRANCH_PORT -R -t $ANABRANCH_SECONDS'

With --testbed the cases run in real time, between the kernels of two network namespaces, and the flows under \
evaluation are those of a program, or the kernel's own under a congestion control that it has. See docs/testbed.md.

A case has a bound for each number, with its reason; most are what Reno and CUBIC reach in the same condition. Every \
number has the command that repeats it.")]
pub struct EvaluateArgs {
    /// Document whose criteria judge (`rfc9743`, or `bbr` for the test cases of its draft), or a file with a folder of
    /// cases beside it.
    pub suite: String,
    /// Congestion control to evaluate; unless given, `bbr3` for the cases of BBR and else the default of hosts.
    #[arg(long, value_name = "NAME[:PARAMETER=VALUE,…]", add = Names::one(What::Congestion))]
    pub control: Option<String>,
    /// Evaluate every congestion control.
    #[arg(long, conflicts_with = "control")]
    pub all: bool,
    /// Scheduler of the cases with several paths; the default of hosts unless given.
    #[arg(long, value_name = "NAME[:…]", add = Names::one(What::Schedulers))]
    pub scheduler: Option<String>,
    /// Override a setting of the hosts under evaluation: a dotted key, `=`, and TOML (`host.max-rto=10s`).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Judge these cases alone, with commas between.
    #[arg(long = "case", value_name = "NAME,…", value_delimiter = ',')]
    pub cases: Vec<String>,
    /// Judge this condition alone, by its name in the results.
    #[arg(long, value_name = "NAME")]
    pub condition: Option<String>,
    /// Run a few conditions with one seed: seconds instead of minutes.
    #[arg(long)]
    pub quick: bool,
    /// List the cases and run nothing.
    #[arg(long, conflicts_with_all = RUNNING)]
    pub list: bool,
    /// Keep the runs in this directory and reuse those that are there.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Threads to run on, at most 4 per processor; one per processor unless given. Results do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub jobs: usize,
    /// Run in real time between network namespaces: with --server and a command, a program; else the kernel's TCP under
    /// --control. Linux only.
    #[arg(long, conflicts_with_all = SIMULATED)]
    pub testbed: bool,
    /// The program's server, a command for `sh`: one for each workload, on port $ANABRANCH_PORT of $ANABRANCH_SERVER.
    /// The server sends the data.
    #[arg(long, value_name = "CMD", requires = "testbed")]
    pub server: Option<String>,
    /// The program uses several paths (Multipath TCP or QUIC): also run the cases that have some, beside Multipath TCP
    /// of the kernel.
    #[arg(long, requires = "testbed")]
    pub multipath: bool,
    /// Wait for a server at most this long.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30s", requires = "server")]
    pub wait: Duration,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Also write a page to attach to a draft, with all verdicts, bounds and commands, to this file.
    #[arg(long, value_name = "FILE")]
    pub report: Option<ResultFile>,
    /// Write the table of all controls and cases to this Markdown file.
    #[arg(long, value_name = "FILE")]
    pub document: Option<ResultFile>,
    /// The program's client, with its arguments: one process for each flow. It receives for $ANABRANCH_SECONDS, or
    /// $ANABRANCH_BYTES if that is set.
    #[arg(last = true, value_name = "CMD", requires = "testbed")]
    pub command: Vec<String>,
}

/// Contents of the JSON.
#[derive(Serialize, JsonSchema)]
pub struct Evaluations<'a> {
    evaluations: &'a [Evaluation],
}

/// Evaluates congestion controls.
pub fn evaluate(catalogue: &Arc<Catalogue>, args: &EvaluateArgs) -> Result<(), Failure> {
    let suite = Suite::load(&args.suite)?.only(&args.cases)?;
    let suite = match &args.condition {
        Some(name) => suite.in_condition(name)?,
        None => suite,
    };
    if args.list {
        let line = |(name, title): (&str, &str)| anabranch_report::hang(&format!("{name:<34}"), title, output::width());
        return output::print(&suite.cases().map(line).collect::<String>());
    }
    if args.testbed {
        return host::evaluate(catalogue, args, suite);
    }
    let controls: Vec<String> = match &args.control {
        _ if args.all => catalogue.congestion.names().map(str::to_owned).collect(),
        Some(control) => vec![control.clone()],
        None => vec![suite.control()],
    };
    let candidate = |control: &String| Candidate {
        control: control.clone(),
        scheduler: args.scheduler.clone(),
        sets: args.sets.clone(),
        peer: None,
    };
    // All are read before the first runs: what is wrong shows at once.
    let plan = |control| Plan::new(suite.clone(), candidate(control), args.quick, catalogue);
    let plans = controls.iter().map(plan).collect::<Result<Vec<_>, _>>()?;
    let journal = journal(args)?;
    let missing = plans.iter().map(|plan| plan.missing(&journal)).sum();
    let jobs = output::threads(args.jobs, missing);
    let bar = output::progress(missing);
    let mut results = Vec::new();
    for (plan, control) in plans.iter().zip(&controls) {
        bar.set_message(format!(" ({control})"));
        plan.run(&journal, jobs, &|| bar.inc(1)).map_err(Failure::study)?;
        results.push(plan.result(&journal, &|place| command(args, Some(control), place)));
    }
    bar.finish_and_clear();
    show(args, &results, &command(args, if args.all { None } else { controls.first().map(String::as_str) }, None))
}

/// Opens the journal of `--out`, or one in memory.
pub fn journal(args: &EvaluateArgs) -> Result<Journal<Flows>, Failure> {
    match &args.out {
        Some(directory) => output::flow_journal(directory),
        None => Ok(Journal::in_memory()),
    }
}

/// Prints the results, and writes the files that were asked for. `whole` repeats all.
pub fn show(args: &EvaluateArgs, results: &[Evaluation], whole: &str) -> Result<(), Failure> {
    if let Some(path) = &args.report {
        output::write(path, page(&Page::of_evaluations(results, whole)).as_bytes())?;
    }
    if let Some(path) = &args.document {
        output::write(path, anabranch_report::evaluation_document(results, whole).as_bytes())?;
    }
    if args.json {
        return output::print(&output::json(&EVALUATION, &Evaluations { evaluations: results })?);
    }
    let each: Vec<String> = results.iter().map(|it| anabranch_report::evaluation(it, output::width())).collect();
    output::print(&each.join("\n"))
}

/// The command line again, as far as results depend on it; of a place alone, a case and its condition, if one is given.
/// In the simulator all controls are meant unless one is named.
pub fn command(args: &EvaluateArgs, control: Option<&str>, place: Option<(&str, &str)>) -> String {
    let mut command = format!("anabranch evaluate {}", in_shell(&args.suite));
    if args.testbed {
        command += " --testbed";
    }
    if args.multipath {
        command += " --multipath";
    }
    match control {
        Some(control) => command += &format!(" --control {}", in_shell(control)),
        None if args.testbed => {}
        None => command += " --all",
    }
    args.scheduler.iter().for_each(|name| command += &format!(" --scheduler {}", in_shell(name)));
    args.sets.iter().for_each(|set| command += &format!(" --set {}", in_shell(set)));
    let cases = place.map_or_else(|| args.cases.join(","), |(case, _)| case.to_owned());
    if !cases.is_empty() {
        command += &format!(" --case {}", in_shell(&cases));
    }
    let condition = place.map(|(_, condition)| condition).or(args.condition.as_deref());
    if let Some(condition) = condition.filter(|condition| !condition.is_empty()) {
        command += &format!(" --condition {}", in_shell(condition));
    }
    if args.quick {
        command += " --quick";
    }
    if let Some(server) = &args.server {
        let words: Vec<String> = args.command.iter().map(|word| in_shell(word)).collect();
        command += &format!(" --server {} -- {}", in_shell(server), words.join(" "));
    }
    command
}
