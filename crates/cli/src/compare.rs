//! `anabranch compare`, over one scenario or all shipped ones.

use crate::args::{Common, What};
use crate::completion::Names;
use crate::failure::Failure;
use crate::output;
use crate::result_file::{ResultFile, draw, figure_file};
use anabranch_lab::compare::{Plan, Summary};
use anabranch_lab::format::PAIRWISE;
use anabranch_lab::pairwise::Tournament;
use anabranch_policy::Catalogue;
use anabranch_report::html::{self, Page};
use anabranch_report::{Header, Sheet, comparison_rows, hang};
use anabranch_scenario::Scenario;
use anabranch_scenario::shipped::SHIPPED;
use anabranch_why::{Alternatives, Inquiry};
use clap::Args as ClapArgs;
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of `compare`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch compare
  anabranch compare asymmetric-10-100 --schedulers min-rtt,blest,late --repeat 50
  anabranch compare wlan-lte --schedulers ecf:beta=0.5,ecf,min-rtt
  anabranch compare wlan-lte --repeat 1000 --out kept
  anabranch compare wlan-lte --report comparison.html
  anabranch compare wlan-lte --figure ranking.pdf
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
    /// Draw the ranking, for a paper: a file that ends in .svg, .pdf or .pgf (for LaTeX).
    #[arg(long, value_name = "FILE", value_parser = figure_file)]
    pub figure: Option<ResultFile>,
    /// Compare every scheduler with every other, over all shipped scenarios.
    #[arg(long, conflicts_with_all = ["scenario", "csv", "report", "figure"])]
    pub all: bool,
}

impl CompareArgs {
    /// Returns the schedulers that are named; an empty list means all.
    pub fn schedulers(&self) -> Vec<String> {
        self.schedulers.as_deref().map(anabranch_scenario::split_policies).unwrap_or_default()
    }
}

/// Runs all schedulers and the baselines, and ranks them.
pub fn compare(catalogue: &Arc<Catalogue>, args: &CompareArgs) -> Result<(), Failure> {
    let sets = args.common.overrides.sets_of_several("compare")?;
    let scenario = anabranch_study::load(catalogue, &args.scenario, &sets)?;
    output::mention_study(&args.scenario, &sets);
    let seed = args.common.seed.unwrap_or(scenario.seed);
    let repeat = args.common.repeat.map_or(scenario.repeat, |n| n as usize);
    let header = Header::new(&scenario, seed, repeat);
    let schedulers = match args.schedulers() {
        named if named.is_empty() => scenario.default_schedulers(),
        named => named,
    };
    let plan = Plan::new(scenario, &schedulers, seed, repeat)?;
    let header = header.comparing(plan.described());
    let scenario = plan.scenario.clone();
    let journal = args.out.as_deref().map(output::journal).transpose()?;
    let missing = journal.as_ref().map_or(plan.len(), |journal| plan.missing(journal));
    let jobs = output::threads(args.common.jobs, missing);
    let bar = output::progress(missing);
    let comparison = plan.run(journal.as_ref(), jobs, &|| bar.inc(1));
    bar.finish_and_clear();
    let comparison = comparison?;

    let rows = comparison_rows(&comparison);
    let summary = comparison.summary();
    // Only now: the best scheduler is known, and its runs are made again under the judge.
    let why = summary.as_ref().and_then(|summary| unpaid(&scenario, summary, seed, repeat));
    let why = why.transpose()?;
    if let Some(path) = &args.common.csv {
        let csv = Sheet::of_runs(&header, &rows).csv();
        output::write(path, &csv.map_err(|error| Failure::writing("CSV", error))?)?;
    }
    if let Some(summary) = &summary {
        let page = Page::of_comparison(&scenario, &header, &comparison, summary, &output::command_line());
        if let Some(path) = &args.common.report {
            output::write(path, html::page(&page).as_bytes())?;
        }
        let figures = page.sections.first().map_or(&[][..], |section| &section.figures);
        draw(args.figure.as_ref(), figures.get(..1).unwrap_or_default())?;
    }
    if args.common.json {
        let json = anabranch_report::json(&header, summary.as_ref(), &rows, why.as_deref());
        return output::print(&format!("{}\n", json.map_err(|error| Failure::writing("JSON", error))?));
    }
    let Some(summary) = summary else { return Ok(()) };
    let files = match &args.common.csv {
        Some(path) => format!("\nOne row per run: {}\n", path.display()),
        None => "\nOne row per run in a file: --csv compare.csv\n".to_owned(),
    };
    let why = why.map_or(String::new(), |why| hang("", &format!("Why: {why}"), WIDTH));
    output::print(&format!("{}{why}{files}", anabranch_report::comparison(&header, &summary)))
}

/// Runs the best scheduler again under the judge, where it is worse than one path or leaves a path unused, and returns
/// what its time went to.
fn unpaid(scenario: &Scenario, summary: &Summary, seed: u64, repeat: usize) -> Option<Result<String, Failure>> {
    let best = summary.ranking.first().filter(|best| best.censored_runs == 0)?;
    let sign = if summary.unit == "s" { 1.0 } else { -1.0 };
    let lag = summary.best_single_path.as_ref().and_then(|single| single.best_to_it);
    let is_worse = lag.is_some_and(|it| sign * it.mean > it.half.unwrap_or(0.0));
    let is_idle = best.shares.len() > 1 && best.shares.contains(&0.0);
    if !is_worse && !is_idle {
        return None;
    }
    let ask = || -> Result<String, Failure> {
        let scenario = scenario.with_scheduler(&best.scheduler)?;
        let none = Alternatives { run: Vec::new(), left_out: Vec::new() };
        let inquiry = Inquiry::new(&scenario, none, seed, repeat.min(WATCHED));
        // Without counterfactuals nothing is loaded.
        let answer = inquiry.run(1, &|_| Ok(scenario.clone()), &|_, _| {})?;
        Ok(answer.sentence)
    };
    Some(ask())
}

/// Repetitions that the judge watches.
const WATCHED: usize = 3;
/// Longer lines are broken, as in the rest of the text.
const WIDTH: usize = 120;

/// Runs every scheduler against every other over the shipped scenarios.
pub fn pairwise(catalogue: &Arc<Catalogue>, args: &CompareArgs) -> Result<(), Failure> {
    let Common { overrides, seed, repeat, json, .. } = &args.common;
    let sets = overrides.sets_of_several("compare")?;
    let scenarios = SHIPPED.iter().map(|shipped| Scenario::load(catalogue, shipped.name, &sets));
    let scenarios = scenarios.collect::<Result<Vec<_>, _>>()?;
    let tournament = Tournament::new(scenarios, &args.schedulers(), *seed, repeat.map(|n| n as usize))?;
    let journal = args.out.as_deref().map(output::journal).transpose()?;
    let missing = journal.as_ref().map_or(tournament.len(), |journal| tournament.missing(journal));
    let jobs = output::threads(args.common.jobs, missing);
    let bar = output::progress(missing);
    let standings =
        tournament.run(journal.as_ref(), jobs, &|name| bar.set_message(format!(" of {name}")), &|| bar.inc(1));
    bar.finish_and_clear();
    let standings = standings?;
    if *json {
        return output::print(&output::document(&PAIRWISE, &standings)?);
    }
    output::print(&anabranch_report::pairwise(&standings, output::width()))
}
