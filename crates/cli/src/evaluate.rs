//! `anabranch evaluate`: congestion controls by the criteria of a document.

use crate::args::What;
use crate::completion::Names;
use crate::failure::Failure;
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

/// Options that only runs have a use for.
const RUNNING: [&str; 9] = ["control", "all", "scheduler", "sets", "quick", "json", "report", "document", "out"];

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
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Also write a page to attach to a draft, with all verdicts, bounds and commands, to this file.
    #[arg(long, value_name = "FILE")]
    pub report: Option<ResultFile>,
    /// Write the table of all controls and cases to this Markdown file.
    #[arg(long, value_name = "FILE")]
    pub document: Option<ResultFile>,
}

/// Contents of the JSON.
#[derive(Serialize, JsonSchema)]
pub struct Evaluations<'a> {
    evaluations: &'a [Evaluation],
}

/// Evaluates congestion controls.
pub fn evaluate(catalogue: &Arc<Catalogue>, args: &EvaluateArgs) -> Result<(), Failure> {
    let suite = Suite::load(&args.suite)?.only(&args.cases)?;
    if args.list {
        let line = |(name, title): (&str, &str)| anabranch_report::hang(&format!("{name:<34}"), title, output::width());
        return output::print(&suite.cases().map(line).collect::<String>());
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
    };
    // All are read before the first runs: what is wrong shows at once.
    let plan = |control| Plan::new(suite.clone(), candidate(control), args.quick, catalogue);
    let plans = controls.iter().map(plan).collect::<Result<Vec<_>, _>>()?;
    let journal: Journal<Flows> = match &args.out {
        Some(directory) => output::flow_journal(directory)?,
        None => Journal::in_memory(),
    };
    let missing = plans.iter().map(|plan| plan.missing(&journal)).sum();
    let jobs = output::threads(args.jobs, missing);
    let bar = output::progress(missing);
    let mut results = Vec::new();
    for (plan, control) in plans.iter().zip(&controls) {
        bar.set_message(format!(" ({control})"));
        plan.run(&journal, jobs, &|| bar.inc(1)).map_err(Failure::study)?;
        results.push(plan.result(&journal, &command(args, Some(control))));
    }
    bar.finish_and_clear();
    let whole = command(args, if args.all { None } else { controls.first().map(String::as_str) });
    if let Some(path) = &args.report {
        output::write(path, page(&Page::of_evaluations(&results, &whole)).as_bytes())?;
    }
    if let Some(path) = &args.document {
        output::write(path, anabranch_report::evaluation_document(&results, &whole).as_bytes())?;
    }
    if args.json {
        return output::print(&output::json(&EVALUATION, &Evaluations { evaluations: &results })?);
    }
    let each: Vec<String> = results.iter().map(|it| anabranch_report::evaluation(it, output::width())).collect();
    output::print(&each.join("\n"))
}

/// The command line again, as far as results depend on it; with all controls unless one is named.
fn command(args: &EvaluateArgs, control: Option<&str>) -> String {
    let mut command = format!("anabranch evaluate {}", in_shell(&args.suite));
    command += &control.map_or_else(|| " --all".to_owned(), |control| format!(" --control {}", in_shell(control)));
    args.scheduler.iter().for_each(|name| command += &format!(" --scheduler {}", in_shell(name)));
    args.sets.iter().for_each(|set| command += &format!(" --set {}", in_shell(set)));
    if !args.cases.is_empty() {
        command += &format!(" --case {}", in_shell(&args.cases.join(",")));
    }
    if args.quick {
        command += " --quick";
    }
    command
}
