//! Comparison of schedulers with each other and with plain TCP.
//!
//! All run with the same seeds, and each random element of a run draws from a stream of its own: they meet the same
//! losses and the same stretches of a trace (common random numbers). Differences are therefore taken pair by pair.

use crate::run::{Keep, in_parallel, run};
use crate::stats::{Estimate, Tested};
use crate::{Journal, KeepError, Measured};
use anabranch_policy::registry::Value;
use anabranch_scenario::file::MeasureName;
use anabranch_scenario::{Chosen, Scenario, ScenarioError, Settings, Variant};
use serde::Serialize;

/// Scheduler that the others are compared with.
pub const REFERENCE: &str = "min-rtt";

/// Runs that a comparison consists of.
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// One variant for each scheduler, in the order asked for.
    candidates: Vec<Entrant>,
    /// Plain TCP on each path.
    singles: Vec<Entrant>,
    seeds: Vec<u64>,
    reference: String,
}

/// Candidate or baseline of a comparison.
pub(crate) struct Entrant {
    /// Scheduler as it was asked for, or name of the path.
    pub(crate) name: String,
    /// Parameters of the scheduler, or settings of a system.
    parameters: Settings,
    /// Key of its runs in a journal.
    digest: String,
    scenario: Scenario,
}

/// All runs of a comparison, in groups.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Measure that ranks.
    pub measure: MeasureName,
    /// Names of the paths, in order.
    pub paths: Vec<String>,
    /// One group for each scheduler, in the order asked for.
    pub candidates: Vec<Group>,
    /// Plain TCP on each path.
    pub singles: Vec<Group>,
    /// Seed of each repetition.
    pub seeds: Vec<u64>,
    /// Candidate that the others are compared with.
    pub reference: String,
    /// True if two paths cross one link.
    pub shared_link: bool,
}

/// Repetitions of one variant.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name of the scheduler or of the path.
    pub name: String,
    /// Policies of the sender; on a single path, its congestion control.
    pub policies: Chosen,
    /// One run per seed.
    pub runs: Vec<Measured>,
}

/// Results of a comparison.
///
/// The true time of a run in which transfers did not complete is at least the measured time (it is *censored*). A mean
/// with such a run is a lower bound: it enters no difference and no sum.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Summary {
    /// Measure that ranks.
    pub measure: &'static str,
    /// `s` or `bit/s`.
    pub unit: &'static str,
    /// Number of repetitions.
    pub repeat: usize,
    /// Scheduler that the others are compared with; for systems the first.
    pub reference: String,
    /// Candidates from the best to the worst. Those with censored runs come last, the fewest first.
    pub ranking: Vec<Ranked>,
    /// Plain TCP on each path.
    pub singles: Vec<Single>,
    /// Plain TCP on its best path, of the paths where it always completed.
    pub best_single_path: Option<Baseline>,
    /// Value of all paths together without loss from their combination. `None` if plain TCP did not complete on one.
    pub sum_of_paths: Option<Baseline>,
    /// True if paths share a link: `sum_of_paths` then counts the link more than once and cannot be reached.
    pub sum_out_of_reach: bool,
}

/// Results of a scheduler; means over the repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Ranked {
    /// Rank, from 1 for the best.
    pub rank: usize,
    /// Name of the scheduler.
    pub scheduler: String,
    /// Completion time or goodput; a lower bound if runs are censored.
    pub value: Estimate,
    /// Paired difference to the reference, in the unit of `value`, tested together with the differences of all others;
    /// `None` for the reference itself, without a reference, or if runs of either are censored.
    pub to_reference: Option<Tested>,
    /// Paired difference to the best of the ranking, tested together with the differences of all others; `None` for the
    /// best, or if runs of either are censored.
    pub to_best: Option<Tested>,
    /// Share of the bytes on each path.
    pub shares: Vec<f64>,
    /// Number of data segments that arrived out of order.
    pub ofo_count: f64,
    /// Maximum of the out-of-order fragments held at once.
    pub ofo_peak: f64,
    /// Timeouts per data segment sent.
    pub rto_rate: f64,
    /// Bytes sent again on another subflow.
    pub reinjected_bytes: f64,
    /// Time blocked \[s\] by cwnd, receive window, scheduler and application.
    pub blocked_s: [f64; 4],
    /// Number of decisions that were overruled.
    pub overruled: f64,
    /// Number of runs in which transfers did not complete.
    pub unfinished_runs: usize,
    /// Number of runs whose value is a lower bound.
    pub censored_runs: usize,
}

/// Results of plain TCP on one path.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Single {
    /// Name of the path.
    pub path: String,
    /// Completion time or goodput; a lower bound if runs are censored.
    pub value: Estimate,
    /// Number of runs in which transfers did not complete.
    pub unfinished_runs: usize,
    /// Number of runs whose value is a lower bound.
    pub censored_runs: usize,
}

/// Baseline for the results.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Baseline {
    /// Name of the path, or of all paths together.
    pub name: String,
    /// Completion time or goodput.
    pub value: Estimate,
    /// Paired difference of the best scheduler to the baseline, tested by itself; `None` if runs of the best are
    /// censored.
    pub best_to_it: Option<Estimate>,
}

impl Summary {
    /// Returns true if all repetitions of each scheduler and baseline gave the same: one sample.
    pub fn is_one_sample(&self) -> bool {
        let values = self.ranking.iter().map(|ranked| ranked.value).chain(self.singles.iter().map(|it| it.value));
        self.repeat > 1 && values.into_iter().all(|value| value.is_one_sample())
    }
}

impl Plan {
    /// Plans `repeat` runs of each of `schedulers`, with seeds from `seed` on, and of plain TCP on each path.
    pub fn new(scenario: Scenario, schedulers: &[String], seed: u64, repeat: usize) -> Result<Plan, ScenarioError> {
        let singles = singles(&scenario);
        Ok(Plan { singles, ..Plan::between(scenario, schedulers, seed, repeat)? })
    }

    /// Plans a comparison of `systems`: named variants of the scenario with settings of their own. The others are
    /// compared with the first.
    ///
    /// # Errors
    ///
    /// If a name occurs twice, or two systems are the same.
    pub fn of_systems(
        scenario: Scenario,
        systems: Vec<(String, Scenario)>,
        seed: u64,
        repeat: usize,
    ) -> Result<Plan, ScenarioError> {
        let mut candidates: Vec<Entrant> = Vec::new();
        for (name, system) in systems {
            if let Some(same) = candidates.iter().find(|other| other.name == name || other.digest == system.digest) {
                let problem = format!("`{}` and `{name}` are the same system", same.name);
                let help = "accepted: each system once, with settings of its own".to_owned();
                return Err(ScenarioError::plain(problem, Some(help)));
            }
            let own = system.origin.sets.iter().skip(scenario.origin.sets.len());
            let setting = |set: &String| {
                let (key, value) = set.split_once('=').unwrap_or((set, ""));
                (key.to_owned(), Value::Text(value.trim_matches('"').to_owned()))
            };
            let parameters = Settings(own.map(setting).collect());
            candidates.push(Entrant { name, parameters, digest: system.digest.clone(), scenario: system });
        }
        let reference = candidates.first().map_or(String::new(), |first| first.name.clone());
        let (singles, seeds) = (singles(&scenario), seeds(seed, repeat));
        Ok(Plan { scenario, candidates, singles, seeds, reference })
    }

    /// Plans a comparison as [`Plan::new`], without the baselines.
    pub fn between(scenario: Scenario, schedulers: &[String], seed: u64, repeat: usize) -> Result<Plan, ScenarioError> {
        let mut candidates: Vec<Entrant> = Vec::new();
        for name in schedulers {
            let candidate = scenario.with_scheduler(name)?;
            let variant = &candidate.policies().scheduler;
            if let Some(same) = candidates.iter().find(|other| other.scenario.policies().scheduler == *variant) {
                let problem = if same.name == *name {
                    format!("`{name}` is named twice")
                } else {
                    format!("`{}` and `{name}` are the same scheduler: {variant}", same.name)
                };
                let help = "accepted: each scheduler once, or with different parameters (ecf:beta=0.5,ecf)";
                return Err(ScenarioError::plain(problem, Some(help.to_owned())));
            }
            let digest = format!("{} scheduler {variant}", scenario.digest);
            let parameters = variant.parameters.clone();
            candidates.push(Entrant { name: name.clone(), parameters, digest, scenario: candidate });
        }
        let (seeds, reference) = (seeds(seed, repeat), REFERENCE.to_owned());
        Ok(Plan { scenario, candidates, singles: Vec::new(), seeds, reference })
    }

    /// Returns the candidates as they were asked for: schedulers with all their parameters, systems with their
    /// settings.
    pub fn described(&self) -> Vec<Variant> {
        let variant = |it: &Entrant| Variant { name: it.name.clone(), parameters: it.parameters.clone() };
        self.candidates.iter().map(variant).collect()
    }

    /// Returns the number of runs.
    pub fn len(&self) -> usize {
        self.entrants().count() * self.seeds.len()
    }

    /// Returns true if there are no runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of runs that are not in the journal.
    pub fn missing(&self, journal: &Journal) -> usize {
        let missing =
            |entrant: &Entrant| self.seeds.iter().filter(|seed| !journal.has(&entrant.digest, **seed)).count();
        self.entrants().map(missing).sum()
    }

    /// Returns the candidates in the order asked for, then plain TCP on each path.
    fn entrants(&self) -> impl Iterator<Item = &Entrant> {
        self.candidates.iter().chain(&self.singles)
    }

    /// Makes all runs on `jobs` threads and calls `done` after each new run. Runs in the journal are taken from there;
    /// all others are kept in it.
    ///
    /// # Errors
    ///
    /// If a run breaks or cannot be kept. Runs made until then are kept.
    pub fn run(
        &self,
        journal: Option<&Journal>,
        jobs: usize,
        done: &(dyn Fn() + Sync),
    ) -> Result<Comparison, KeepError> {
        let runs: Vec<(&Entrant, u64)> =
            self.entrants().flat_map(|entrant| self.seeds.iter().map(move |seed| (entrant, *seed))).collect();
        let one = |(entrant, seed): &(&Entrant, u64)| entrant.measure(*seed, journal, done);
        let mut results = in_parallel(&runs, jobs, &|| {}, &one)?.into_iter();
        let mut group = |entrant: &Entrant| Group {
            name: entrant.name.clone(),
            policies: entrant.scenario.policies().clone(),
            runs: results.by_ref().take(self.seeds.len()).collect(),
        };
        Ok(Comparison {
            measure: self.scenario.measure,
            paths: self.scenario.paths(),
            candidates: self.candidates.iter().map(&mut group).collect(),
            singles: self.singles.iter().map(&mut group).collect(),
            seeds: self.seeds.clone(),
            reference: self.reference.clone(),
            shared_link: self.scenario.shares_a_link(),
        })
    }
}

/// Returns plain TCP on each path.
fn singles(scenario: &Scenario) -> Vec<Entrant> {
    let single = |(n, name): (usize, String)| Entrant {
        parameters: Settings::default(),
        digest: format!("{} single-path {name}", scenario.digest),
        scenario: scenario.single_path(n),
        name,
    };
    scenario.paths().into_iter().enumerate().map(single).collect()
}

fn seeds(first: u64, repeat: usize) -> Vec<u64> {
    (0..repeat as u64).map(|n| first.wrapping_add(n)).collect()
}

impl Entrant {
    /// Returns the run with this seed: from the journal if it has one; otherwise makes it, keeps it and calls `done`.
    fn measure(&self, seed: u64, journal: Option<&Journal>, done: &(dyn Fn() + Sync)) -> Result<Measured, KeepError> {
        if let Some(measured) = journal.and_then(|journal| journal.get(&self.digest, seed)) {
            return Ok(measured);
        }
        let measured = match journal {
            Some(journal) => journal.run(&self.digest, &self.scenario, seed)?,
            None => run(&self.scenario, seed, &Keep::default())?.measured,
        };
        done();
        Ok(measured)
    }
}

impl Group {
    /// Returns the value that ranks, for each run.
    pub fn values(&self, measure: MeasureName) -> Vec<f64> {
        self.runs.iter().map(|run| run.value(measure)).collect()
    }

    /// Returns the number of runs whose value is a lower bound.
    pub fn censored_runs(&self, measure: MeasureName) -> usize {
        self.runs.iter().filter(|run| run.is_censored(measure)).count()
    }

    /// Returns the number of runs in which transfers did not complete.
    pub fn unfinished_runs(&self) -> usize {
        self.runs.iter().filter(|run| !run.finished).count()
    }

    fn mean(&self, number: impl Fn(&Measured) -> f64) -> f64 {
        self.runs.iter().map(number).sum::<f64>() / self.runs.len().max(1) as f64
    }
}

impl Comparison {
    /// Ranks the schedulers. `None` if there are no runs.
    pub fn summary(&self) -> Option<Summary> {
        let measure = self.measure;
        let mut order: Vec<Entry<'_>> = Vec::new();
        for group in &self.candidates {
            order.push(Entry::of(group, measure)?);
        }
        // Stable: equal means stay in the order of the registry.
        order.sort_by(|a, b| {
            let by_mean = match measure {
                MeasureName::CompletionTime | MeasureName::PageLoadTime => a.value.mean.total_cmp(&b.value.mean),
                MeasureName::Goodput => b.value.mean.total_cmp(&a.value.mean),
            };
            a.censored.cmp(&b.censored).then(by_mean)
        });
        let best = order.first()?;
        let reference = order.iter().find(|entry| entry.group.name == self.reference);
        let against = |other: Option<&Entry<'_>>| -> Vec<Option<Tested>> {
            let difference = |entry: &Entry<'_>| {
                other.filter(|other| entry.group.name != other.group.name).and_then(|other| entry.less(other))
            };
            Tested::family(&order.iter().map(difference).collect::<Vec<_>>())
        };
        let (to_reference, to_best) = (against(reference), against(Some(best)));
        let ranked = |(n, entry): (usize, &Entry<'_>)| {
            let group = entry.group;
            Ranked {
                rank: n + 1,
                scheduler: group.name.clone(),
                value: entry.value,
                to_reference: to_reference[n],
                to_best: to_best[n],
                shares: (0..self.paths.len()).map(|path| group.mean(|run| run.shares[path])).collect(),
                ofo_count: group.mean(|run| run.counted.count("ofo_count") as f64),
                ofo_peak: group.mean(|run| run.counted.count("ofo_peak") as f64),
                rto_rate: group.mean(Measured::rto_rate),
                reinjected_bytes: group.mean(|run| run.counted.count("reinjected_bytes") as f64),
                blocked_s: [
                    group.mean(|run| run.counted.seconds("blocked_cwnd_s")),
                    group.mean(|run| run.counted.seconds("blocked_window_s")),
                    group.mean(|run| run.counted.seconds("blocked_scheduler_s")),
                    group.mean(|run| run.counted.seconds("blocked_application_s")),
                ],
                overruled: group.mean(|run| run.counted.count("overruled_kinds") as f64),
                unfinished_runs: group.unfinished_runs(),
                censored_runs: entry.censored,
            }
        };
        let ranking = order.iter().enumerate().map(ranked).collect();

        let singles: Vec<Entry<'_>> =
            self.singles.iter().map(|group| Entry::of(group, measure)).collect::<Option<_>>()?;
        let single = |entry: &Entry<'_>| Single {
            path: entry.group.name.clone(),
            value: entry.value,
            unfinished_runs: entry.group.unfinished_runs(),
            censored_runs: entry.censored,
        };
        let baseline = |name: String, values: Vec<f64>| {
            let value = Estimate::of(&values)?;
            let best_to_it = Estimate::of_difference(&best.values, &values).filter(|_| best.censored == 0);
            Some(Baseline { name, value, best_to_it })
        };
        let complete = || singles.iter().filter(|entry| entry.censored == 0);
        let best_single = complete().reduce(|a, b| if is_better(measure, &b.values, &a.values) { b } else { a });
        let sum = (complete().count() == singles.len() && !singles.is_empty())
            .then(|| sum_of_paths(measure, &singles, self.seeds.len()));
        Some(Summary {
            measure: measure.name(),
            unit: match measure {
                MeasureName::CompletionTime | MeasureName::PageLoadTime => "s",
                MeasureName::Goodput => "bit/s",
            },
            reference: self.reference.clone(),
            repeat: self.seeds.len(),
            ranking,
            singles: singles.iter().map(single).collect(),
            best_single_path: best_single.and_then(|it| baseline(it.group.name.clone(), it.values.clone())),
            sum_of_paths: sum.and_then(|values| baseline(self.paths.join(" + "), values)),
            sum_out_of_reach: self.shared_link,
        })
    }
}

/// A group with its values that rank.
struct Entry<'a> {
    group: &'a Group,
    values: Vec<f64>,
    value: Estimate,
    censored: usize,
}

impl<'a> Entry<'a> {
    /// Computes the values of `group`; `None` without runs.
    fn of(group: &'a Group, measure: MeasureName) -> Option<Self> {
        let values = group.values(measure);
        Some(Entry { group, value: Estimate::of(&values)?, values, censored: group.censored_runs(measure) })
    }

    /// Returns the paired difference to `other`; `None` if one of the two has censored runs.
    fn less(&self, other: &Entry<'_>) -> Option<Estimate> {
        Estimate::of_difference(&self.values, &other.values).filter(|_| self.censored == 0 && other.censored == 0)
    }
}

/// Returns true if the mean of `a` is better than that of `b`.
fn is_better(measure: MeasureName, a: &[f64], b: &[f64]) -> bool {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    match measure {
        MeasureName::CompletionTime | MeasureName::PageLoadTime => mean(a) < mean(b),
        MeasureName::Goodput => mean(a) > mean(b),
    }
}

/// Returns for each seed the value of all paths together: the sum of goodputs, or for times the sum of the rates at
/// which a given amount of work completes, `1/T = 1/T₁ + 1/T₂ + …`.
fn sum_of_paths(measure: MeasureName, singles: &[Entry<'_>], runs: usize) -> Vec<f64> {
    let over_paths =
        |run: usize, number: fn(f64) -> f64| singles.iter().map(|single| number(single.values[run])).sum::<f64>();
    (0..runs)
        .map(|run| match measure {
            MeasureName::CompletionTime | MeasureName::PageLoadTime => 1.0 / over_paths(run, |time| 1.0 / time),
            MeasureName::Goodput => over_paths(run, |goodput| goodput),
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests;
