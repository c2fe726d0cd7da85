//! `anabranch why`: where the time of a run goes, and what would have helped.

use crate::completion::Names;
use crate::failure::Failure;
use crate::output;
use anabranch_lab::format::WHY;
use anabranch_policy::Catalogue;
use anabranch_scenario::{Scenario, split_policies};
use anabranch_why::{Alternatives, Answer, Inquiry, Others};
use clap::Args as ClapArgs;
use std::sync::Arc;

/// Arguments of `why`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch why wlan-lte
  anabranch why my.toml --repeat 30
  anabranch why asymmetric-10-100 --set host.receive-buffer=64KiB
  anabranch why path-failure --schedulers late,ecf:beta=0.5 --json

One sentence first. Then the time of the longest transfer of the first repetition as a bar, one for the connection and
one for each path; the time of all transfers by limit; and what each change would have given. docs/why.md says what each
limit means.")]
pub struct WhyArgs {
    /// A scenario file, or the name of a shipped scenario, or of a drawn one, drawn/SEED/NUMBER (`anabranch rank`).
    #[arg(add = Names::or_file(crate::args::What::Scenarios))]
    pub scenario: String,
    /// Override a scenario value: a dotted key, `=`, and TOML (`path.lte.delay=40ms`, `workload.0.size=1MiB`).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Seed of the first repetition; each further one takes the next.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Number of repetitions of the run and of each counterfactual.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repeat: u32,
    /// The schedulers to try in place of the scenario's, with commas between.
    #[arg(long, value_name = "NAME[:PARAMETER=VALUE,…],…", add = Names::joined(crate::args::What::Schedulers))]
    pub schedulers: Option<String>,
    /// The congestion controls to try in place of the scenario's, with commas between.
    #[arg(long, value_name = "NAME[:PARAMETER=VALUE,…],…", add = Names::joined(crate::args::What::Congestion))]
    pub congestion: Option<String>,
    /// Threads to run on, at most 4 per processor; one per processor unless given. Results do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub jobs: usize,
    /// Print JSON instead of the sentence, bars and tables.
    #[arg(long)]
    pub json: bool,
}

/// Runs the scenario and its counterfactuals, and prints the answer.
pub fn why(catalogue: &Arc<Catalogue>, args: &WhyArgs) -> Result<(), Failure> {
    let scenario = anabranch_study::load(catalogue, &args.scenario, &args.sets)?;
    output::mention_study(&args.scenario, &args.sets);
    let mut others = Others::default();
    if let Some(named) = &args.schedulers {
        others.schedulers = split_policies(named);
    }
    if let Some(named) = &args.congestion {
        others.congestion = split_policies(named);
    }
    let seed = args.seed.unwrap_or(scenario.seed);
    let answer = ask(catalogue, &scenario, &args.scenario, &others, (seed, args.repeat as usize), args.jobs)?;
    if args.json {
        return output::print(&output::json(&WHY, &answer)?);
    }
    output::print(&anabranch_report::why(&answer, output::width().min(80)))
}

/// Makes the runs of an inquiry into the scenario called `name`.
fn ask(
    catalogue: &Arc<Catalogue>,
    scenario: &Scenario,
    name: &str,
    others: &Others,
    (seed, repeat): (u64, usize),
    jobs: usize,
) -> Result<Answer, Failure> {
    let load = |more: &[String]| {
        let sets: Vec<String> = scenario.origin.sets.iter().chain(more).cloned().collect();
        anabranch_study::load(catalogue, name, &sets)
    };
    let alternatives = Alternatives::of(scenario, catalogue, others, &load);
    let inquiry = Inquiry::new(scenario, alternatives, seed, repeat);
    let jobs = output::threads(jobs, inquiry.len());
    let bar = output::progress(inquiry.len());
    let answer = inquiry.run(jobs, &load, &|| bar.inc(1));
    bar.finish_and_clear();
    Ok(answer?)
}
