//! Every system in every condition, on common seeds.

use super::condition::Condition;
use super::is_oracle;
use crate::compare::{Entrant, Plan};
use crate::file::MeasureName;
use crate::run::in_parallel;
use crate::tree::hex;
use crate::{Journal, KeepError, Measured, Scenario, ScenarioError, Variant};
use anabranch_policy::Catalogue;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What to run.
pub struct League {
    catalogue: Arc<Catalogue>,
    conditions: Vec<Condition>,
    schedulers: Vec<String>,
    variants: Vec<Variant>,
    /// Also plain TCP on each path.
    baselines: bool,
    /// Of the first repetition, and how many where seeds make a difference.
    seeds: (u64, usize),
    sets: Vec<String>,
    runs: usize,
}

/// All systems in one condition.
#[derive(Clone, Debug)]
pub struct Field {
    /// The condition.
    pub condition: Condition,
    /// SHA-256 of its content.
    pub digest: String,
    /// The seed of each repetition: one where seeds make no difference.
    pub seeds: Vec<u64>,
    /// By scheduler, one trial per seed.
    pub schedulers: Vec<Vec<Trial>>,
    /// Plain TCP on each path.
    pub singles: Vec<Single>,
}

/// Plain TCP on one path.
#[derive(Clone, Debug)]
pub struct Single {
    /// The path.
    pub path: String,
    /// One per seed.
    pub trials: Vec<Trial>,
}

/// One run, as far as it ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Its seed.
    pub seed: u64,
    /// Completion time or page load time \[s\]; of a run that did not finish the time at which it was stopped; for
    /// goodput the time that 10 MB take at it.
    pub time_s: f64,
    /// All transfers are through.
    pub finished: bool,
    /// Payload bytes sent for the first time.
    pub bytes: u64,
    /// Bytes sent again on another subflow.
    pub repeated: u64,
    /// Bytes that the receiver got more than once.
    pub duplicates: u64,
}

/// A leaderboard that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RankError {
    /// A condition, scheduler or override is refused.
    #[error(transparent)]
    Refused(#[from] ScenarioError),
    /// A run broke, or cannot be kept.
    #[error(transparent)]
    Keep(#[from] KeepError),
}

/// So many conditions are read at a time: enough to keep all processors busy, few enough to fit into memory.
const AT_ONCE: usize = 64;
/// Bits of the 10 MB for which goodput is turned into a time.
const GOODPUT_BITS: f64 = 80e6;
/// Goodput below it \[bit/s\] counts as this: a time must be finite.
const LEAST_GOODPUT: f64 = 1e3;
/// A time below it \[s\] counts as this: its logarithm must be finite.
const LEAST_TIME: f64 = 1e-6;

impl League {
    /// These schedulers (all if none is named) over these conditions, with each `KEY=VALUE` of `sets` laid over them:
    /// `seeds` are the first and how many. Reads every condition, so that nothing is refused after the first run.
    ///
    /// # Errors
    /// If a scheduler or what `sets` say is refused.
    pub fn new(
        catalogue: &Arc<Catalogue>,
        conditions: Vec<Condition>,
        schedulers: &[String],
        baselines: bool,
        seeds: (u64, usize),
        sets: &[String],
    ) -> Result<League, ScenarioError> {
        let read = |condition: &Condition| {
            let scenario = condition.scenario(catalogue, sets)?;
            Ok((scenario.is_random(), scenario.paths().len()))
        };
        let read: Vec<(bool, usize)> = in_parallel(&conditions, 0, &|| {}, &read)?;
        let mut league = League {
            catalogue: Arc::clone(catalogue),
            conditions,
            schedulers: schedulers.to_vec(),
            variants: Vec::new(),
            baselines,
            seeds,
            sets: sets.to_vec(),
            runs: 0,
        };
        if let Some(first) = league.conditions.first() {
            let scenario = first.scenario(catalogue, sets)?;
            if league.schedulers.is_empty() {
                league.schedulers = scenario.default_schedulers();
            }
            league.variants = Plan::between(scenario, &league.schedulers, 1, 1)?.schedulers();
        }
        if league.schedulers.iter().filter(|name| !is_oracle(name)).count() < 2 {
            let help = "accepted: two schedulers or more, oracles apart, such as min-rtt,late";
            let problem = "a scheduler is ranked against the best of all others, and there is no other";
            return Err(ScenarioError::plain(problem, Some(help.to_owned())));
        }
        let singles = |paths: usize| if baselines { paths } else { 0 };
        let runs = |(random, paths): &(bool, usize)| {
            (league.schedulers.len() + singles(*paths)) * if *random { seeds.1 } else { 1 }
        };
        league.runs = read.iter().map(runs).sum();
        Ok(league)
    }

    /// How many runs it takes.
    pub fn len(&self) -> usize {
        self.runs
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.runs == 0
    }

    /// The schedulers as they were asked for, with all their parameters.
    pub fn schedulers(&self) -> &[Variant] {
        &self.variants
    }

    /// Seeds in each condition in which they make a difference.
    pub fn repeat(&self) -> usize {
        self.seeds.1
    }

    /// Each `KEY=VALUE` that is laid over the conditions.
    pub fn sets(&self) -> &[String] {
        &self.sets
    }

    /// Runs everything on `jobs` threads and calls `done` after each run, also after those that the journal has. All
    /// others are kept in it.
    ///
    /// # Errors
    /// If a run breaks or cannot be kept. What was made until then is kept.
    pub fn run(
        &self,
        journal: Option<&Journal>,
        jobs: usize,
        done: &(dyn Fn() + Sync),
    ) -> Result<Vec<Field>, RankError> {
        let mut fields = Vec::new();
        for conditions in self.conditions.chunks(AT_ONCE) {
            let plans = conditions.iter().map(|condition| self.plan(condition)).collect::<Result<Vec<_>, _>>()?;
            let of_plan =
                |plan| Plan::entrants(plan).flat_map(move |it| plan.seeds().iter().map(move |seed| (plan, it, *seed)));
            let work: Vec<(&Plan, &Entrant, u64)> = plans.iter().flat_map(of_plan).collect();
            let one = |(plan, entrant, seed): &(&Plan, &Entrant, u64)| {
                entrant.measure(*seed, journal, &|| {}).map(|measured| Trial::of(&plan.scenario, &measured))
            };
            let mut trials = in_parallel(&work, jobs, done, &one)?.into_iter();
            fields.extend(
                conditions.iter().zip(&plans).map(|(condition, plan)| self.field(condition, plan, &mut trials)),
            );
        }
        Ok(fields)
    }

    fn plan(&self, condition: &Condition) -> Result<Plan, ScenarioError> {
        let scenario = condition.scenario(&self.catalogue, &self.sets)?;
        let (first, repeat) = self.seeds;
        let repeat = if scenario.is_random() { repeat } else { 1 };
        match self.baselines {
            true => Plan::new(scenario, &self.schedulers, first, repeat),
            false => Plan::between(scenario, &self.schedulers, first, repeat),
        }
    }

    /// Takes its trials from those that are left, which stand in the order of the plans' entrants and seeds.
    fn field(&self, condition: &Condition, plan: &Plan, trials: &mut impl Iterator<Item = Trial>) -> Field {
        let mut groups = plan.entrants().map(|entrant| Single {
            path: entrant.name.clone(),
            trials: trials.by_ref().take(plan.seeds().len()).collect(),
        });
        Field {
            condition: condition.clone(),
            digest: plan.scenario.digest.clone(),
            seeds: plan.seeds().to_vec(),
            schedulers: groups.by_ref().take(self.schedulers.len()).map(|group| group.trials).collect(),
            singles: groups.collect(),
        }
    }
}

/// SHA-256 of the digests of all conditions, in order.
pub(super) fn digest(fields: &[Field]) -> String {
    let digests: Vec<&str> = fields.iter().map(|field| field.digest.as_str()).collect();
    hex(&Sha256::digest(digests.join("\n").as_bytes()))
}

impl Trial {
    fn of(scenario: &Scenario, measured: &Measured) -> Trial {
        let value = measured.value(scenario.measure);
        let time_s = match scenario.measure {
            MeasureName::Goodput => GOODPUT_BITS / value.max(LEAST_GOODPUT),
            // A time that does not exist is that of a run in which nothing was reported to the end.
            _ if measured.finished && !value.is_nan() => value.max(LEAST_TIME),
            _ => scenario.stop().as_secs_f64(),
        };
        Trial {
            seed: measured.seed,
            time_s,
            finished: measured.finished,
            bytes: measured.path_bytes.iter().sum(),
            repeated: measured.reinjected_bytes,
            duplicates: measured.duplicate_bytes,
        }
    }
}
