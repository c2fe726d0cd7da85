//! Schedulers against each other, and against what plain TCP could do.
//!
//! All run with the same seeds, and each random element of a run draws from a stream of its own: they meet the same
//! losses and the same stretches of a trace (common random numbers). Differences are therefore taken pair by pair.

use crate::file::MeasureName;
use crate::run::run_all;
use crate::stats::Estimate;
use crate::{Chosen, Measured, RunError, Scenario, ScenarioError, Variant};
use serde::Serialize;

/// The scheduler that the others are measured by.
pub const REFERENCE: &str = "min-rtt";

/// What to compare.
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// One variant per scheduler, in the order asked for.
    candidates: Vec<(String, Scenario)>,
    /// Plain TCP on each path.
    singles: Vec<(String, Scenario)>,
    seeds: Vec<u64>,
}

/// All runs of a comparison, grouped.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What ranks.
    pub measure: MeasureName,
    /// The paths' names, in order.
    pub paths: Vec<String>,
    /// One per scheduler, in the order asked for.
    pub candidates: Vec<Group>,
    /// Plain TCP on each path.
    pub singles: Vec<Group>,
    /// The seed of each repetition.
    pub seeds: Vec<u64>,
    /// Two paths cross one link.
    pub shared_link: bool,
}

/// The repetitions of one variant.
#[derive(Clone, Debug)]
pub struct Group {
    /// The scheduler, or the path.
    pub name: String,
    /// What the sender ran with; of a single path, its congestion control.
    pub policies: Chosen,
    /// One run per seed.
    pub runs: Vec<Measured>,
}

/// A comparison in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// What ranks.
    pub measure: &'static str,
    /// `s` or `bit/s`.
    pub unit: &'static str,
    /// Repetitions.
    pub repeat: usize,
    /// The best first.
    pub ranking: Vec<Ranked>,
    /// Plain TCP on the path where it does best.
    pub best_single_path: Baseline,
    /// What all paths together would give if nothing were lost by joining them.
    pub sum_of_paths: Baseline,
    /// Paths share a link, so that their sum counts it more than once and is out of reach.
    pub sum_out_of_reach: bool,
}

/// A scheduler in numbers; means over the repetitions.
#[derive(Clone, Debug, Serialize)]
pub struct Ranked {
    /// 1 is the best.
    pub rank: usize,
    /// Its name.
    pub scheduler: String,
    /// Completion time or goodput.
    pub value: Estimate,
    /// Paired difference to `min-rtt`, in the same unit; `None` for itself or without it.
    pub to_reference: Option<Estimate>,
    /// Paired difference to the best of the ranking; `None` for the best.
    pub to_best: Option<Estimate>,
    /// By path.
    pub shares: Vec<f64>,
    /// Data segments that arrived out of order.
    pub ofo_count: f64,
    /// The most held at once.
    pub ofo_peak: f64,
    /// Timeouts per data segment sent.
    pub rto_rate: f64,
    /// Bytes sent again on another subflow.
    pub reinjected_bytes: f64,
    /// Time blocked \[s\] by cwnd, receive window, scheduler, application.
    pub blocked_s: [f64; 4],
    /// Decisions overruled.
    pub overruled: f64,
    /// Runs in which transfers did not complete.
    pub unfinished_runs: usize,
}

/// Something to hold results against.
#[derive(Clone, Debug, Serialize)]
pub struct Baseline {
    /// The path, or all of them.
    pub name: String,
    /// Completion time or goodput.
    pub value: Estimate,
    /// Paired difference of the best scheduler to it.
    pub best_to_it: Estimate,
}

impl Plan {
    /// `schedulers` by name; `repeat` runs of each, from `seed` on.
    pub fn new(scenario: Scenario, schedulers: &[String], seed: u64, repeat: usize) -> Result<Plan, ScenarioError> {
        let single = |(n, name)| (name, scenario.single_path(n));
        let singles = scenario.paths().into_iter().enumerate().map(single).collect();
        Ok(Plan { singles, ..Plan::between(scenario, schedulers, seed, repeat)? })
    }

    /// The same without the baselines.
    pub(crate) fn between(
        scenario: Scenario,
        schedulers: &[String],
        seed: u64,
        repeat: usize,
    ) -> Result<Plan, ScenarioError> {
        let candidate = |name: &String| Ok((name.clone(), scenario.with_scheduler(name)?));
        let candidates = schedulers.iter().map(candidate).collect::<Result<_, ScenarioError>>()?;
        let seeds = (0..repeat as u64).map(|n| seed.wrapping_add(n)).collect();
        Ok(Plan { scenario, candidates, singles: Vec::new(), seeds })
    }

    /// The candidates' schedulers, with their parameters.
    pub fn schedulers(&self) -> Vec<Variant> {
        self.candidates.iter().map(|(_, scenario)| scenario.policies().scheduler.clone()).collect()
    }

    /// How many runs it takes.
    pub fn len(&self) -> usize {
        (self.candidates.len() + self.singles.len()) * self.seeds.len()
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Runs everything on `jobs` threads and calls `done` after each run.
    pub fn run(&self, jobs: usize, done: &(dyn Fn() + Sync)) -> Result<Comparison, RunError> {
        let variants: Vec<&(String, Scenario)> = self.candidates.iter().chain(&self.singles).collect();
        let runs: Vec<(&Scenario, u64)> =
            variants.iter().flat_map(|(_, scenario)| self.seeds.iter().map(move |seed| (scenario, *seed))).collect();
        let mut results = run_all(&runs, jobs, done)?.into_iter();
        let mut group = |(name, scenario): &(String, Scenario)| Group {
            name: name.clone(),
            policies: scenario.policies().clone(),
            runs: results.by_ref().take(self.seeds.len()).collect(),
        };
        Ok(Comparison {
            measure: self.scenario.measure,
            paths: self.scenario.paths(),
            candidates: self.candidates.iter().map(&mut group).collect(),
            singles: self.singles.iter().map(&mut group).collect(),
            seeds: self.seeds.clone(),
            shared_link: self.scenario.shares_a_link(),
        })
    }
}

impl Group {
    /// The number that ranks, of each run.
    pub fn values(&self, measure: MeasureName) -> Vec<f64> {
        self.runs.iter().map(|run| run.value(measure)).collect()
    }

    fn mean(&self, number: impl Fn(&Measured) -> f64) -> f64 {
        self.runs.iter().map(number).sum::<f64>() / self.runs.len().max(1) as f64
    }
}

impl Comparison {
    /// Ranks the schedulers. `None` if nothing was run.
    pub fn summary(&self) -> Option<Summary> {
        let measure = self.measure;
        let mut order: Vec<(&Group, Vec<f64>, Estimate)> = Vec::new();
        for group in &self.candidates {
            let values = group.values(measure);
            let estimate = Estimate::of(&values)?;
            order.push((group, values, estimate));
        }
        // Stable: equal means stay in the order of the registry.
        order.sort_by(|(_, _, a), (_, _, b)| match measure {
            MeasureName::CompletionTime | MeasureName::PageLoadTime => a.mean.total_cmp(&b.mean),
            MeasureName::Goodput => b.mean.total_cmp(&a.mean),
        });
        let best = order.first()?.1.clone();
        let reference = order.iter().find(|(group, ..)| group.name == REFERENCE).map(|(_, values, _)| values.clone());

        let ranked = |(n, (group, values, value)): (usize, &(&Group, Vec<f64>, Estimate))| Ranked {
            rank: n + 1,
            scheduler: group.name.clone(),
            value: *value,
            to_reference: reference
                .as_ref()
                .filter(|_| group.name != REFERENCE)
                .and_then(|reference| Estimate::of_difference(values, reference)),
            to_best: if n == 0 { None } else { Estimate::of_difference(values, &best) },
            shares: (0..self.paths.len()).map(|path| group.mean(|run| run.shares[path])).collect(),
            ofo_count: group.mean(|run| run.ofo_count as f64),
            ofo_peak: group.mean(|run| run.ofo_peak as f64),
            rto_rate: group.mean(Measured::rto_rate),
            reinjected_bytes: group.mean(|run| run.reinjected_bytes as f64),
            blocked_s: [
                group.mean(|run| run.blocked_cwnd_s),
                group.mean(|run| run.blocked_window_s),
                group.mean(|run| run.blocked_scheduler_s),
                group.mean(|run| run.blocked_application_s),
            ],
            overruled: group.mean(|run| run.overruled as f64),
            unfinished_runs: group.runs.iter().filter(|run| !run.finished).count(),
        };
        let baseline = |name: String, values: &[f64]| {
            let value = Estimate::of(values)?;
            Some(Baseline { name, value, best_to_it: Estimate::of_difference(&best, values)? })
        };
        let singles: Vec<(String, Vec<f64>)> =
            self.singles.iter().map(|group| (group.name.clone(), group.values(measure))).collect();
        let sum = sum_of_paths(measure, &singles, self.seeds.len());
        let (path, values) = singles.into_iter().reduce(|a, b| if is_better(measure, &b.1, &a.1) { b } else { a })?;
        Some(Summary {
            measure: measure.name(),
            unit: match measure {
                MeasureName::CompletionTime | MeasureName::PageLoadTime => "s",
                MeasureName::Goodput => "bit/s",
            },
            repeat: self.seeds.len(),
            ranking: order.iter().enumerate().map(ranked).collect(),
            best_single_path: baseline(path, &values)?,
            sum_of_paths: baseline(self.paths.join(" + "), &sum)?,
            sum_out_of_reach: self.shared_link,
        })
    }
}

/// Whether the mean of `a` is better than that of `b`.
fn is_better(measure: MeasureName, a: &[f64], b: &[f64]) -> bool {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    match measure {
        MeasureName::CompletionTime | MeasureName::PageLoadTime => mean(a) < mean(b),
        MeasureName::Goodput => mean(a) > mean(b),
    }
}

/// Seed by seed, what the paths would do together: goodputs add up, and so do the rates at which a given amount of work
/// completes, `1/T = 1/T₁ + 1/T₂ + …`.
fn sum_of_paths(measure: MeasureName, singles: &[(String, Vec<f64>)], runs: usize) -> Vec<f64> {
    let over_paths =
        |run: usize, number: fn(f64) -> f64| singles.iter().map(|(_, values)| number(values[run])).sum::<f64>();
    (0..runs)
        .map(|run| match measure {
            MeasureName::CompletionTime | MeasureName::PageLoadTime => 1.0 / over_paths(run, |time| 1.0 / time),
            MeasureName::Goodput => over_paths(run, |goodput| goodput),
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests;
