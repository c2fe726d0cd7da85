//! Runs, one by one or many on several threads.
//!
//! Results stand in the order in which the runs were asked for, whatever thread was done first.

use crate::{Measured, Scenario};
use anabranch_sim::{Outcome, Spec};
use rayon::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A run and what it answered.
#[derive(Clone, Debug)]
pub struct Run {
    /// The command that repeats it.
    pub command: String,
    /// Its numbers.
    pub measured: Measured,
    /// All that the simulator answered.
    pub outcome: Outcome,
}

/// A run that broke.
#[derive(Clone, Debug, PartialEq, thiserror::Error, miette::Diagnostic)]
#[error("a run failed: {problem}")]
#[diagnostic(help("this repeats it: {command}"))]
pub struct RunError {
    /// What went wrong.
    pub problem: String,
    /// The command that repeats it.
    pub command: String,
}

/// Runs the scenario once with this seed; `events` asks for a record of every packet.
pub fn run(scenario: &Scenario, seed: u64, events: bool) -> Result<Run, RunError> {
    let mut spec = scenario.spec(seed);
    spec.record_events = events;
    let command = scenario.origin.command(seed);
    let outcome = play(&spec).map_err(|problem| RunError { problem, command: command.clone() })?;
    Ok(Run { command, measured: Measured::of(&spec, &outcome), outcome })
}

/// Runs the scenario with each seed on `jobs` threads (0: one per processor) and calls `done` after each.
pub fn run_seeds(
    scenario: &Scenario,
    seeds: &[u64],
    events: bool,
    jobs: usize,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<Run>, RunError> {
    in_parallel(seeds, jobs, done, &|seed| run(scenario, *seed, events))
}

/// Runs all variants on `jobs` threads (0: one per processor) and calls `done` after each.
pub(crate) fn run_all(
    runs: &[(&Scenario, u64)],
    jobs: usize,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<Measured>, RunError> {
    in_parallel(runs, jobs, done, &|(scenario, seed)| run(scenario, *seed, false).map(|run| run.measured))
}

/// Results in the order of `work`; the first failure in that order is the one reported.
fn in_parallel<W: Sync, R: Send>(
    work: &[W],
    jobs: usize,
    done: &(dyn Fn() + Sync),
    one: &(dyn Fn(&W) -> Result<R, RunError> + Sync),
) -> Result<Vec<R>, RunError> {
    let one = |work: &W| {
        let result = one(work);
        done();
        result
    };
    let results: Vec<Result<R, RunError>> = match rayon::ThreadPoolBuilder::new().num_threads(jobs).build() {
        Ok(pool) => pool.install(|| work.par_iter().map(one).collect()),
        // No threads to be had: one after the other gives the same results.
        Err(_) => work.iter().map(one).collect(),
    };
    results.into_iter().collect()
}

fn play(spec: &Spec) -> Result<Outcome, String> {
    // The simulator asserts what must hold in every run; a broken promise ends this run and not the program.
    match catch_unwind(AssertUnwindSafe(|| anabranch_sim::run(spec))) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            Err(text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
        }
    }
}
