//! League: every scheduler in every drawn condition, on common seeds, as a campaign without axes.

use super::condition::Condition;
use super::is_oracle;
use crate::sweep::{Baselines, Campaign, Manifest, Row, Store, StoreError, Trials, Work};
use anabranch_lab::RunError;
use anabranch_lab::compare::Plan;
use anabranch_policy::Catalogue;
use anabranch_scenario::{ScenarioError, Variant};
use anabranch_units::hex;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Schedulers and the conditions in which they are compared.
pub struct League {
    campaign: Campaign,
    conditions: Vec<Condition>,
    variants: Vec<Variant>,
    /// Number of seeds in each condition that draws from them.
    repeat: usize,
    sets: Vec<String>,
}

/// Results of all systems in one condition.
#[derive(Clone, Debug)]
pub struct Field {
    /// The condition.
    pub condition: Condition,
    /// Their runs.
    pub trials: Trials,
}

/// Error: a leaderboard could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RankError {
    /// A condition, scheduler or override is not valid.
    #[error(transparent)]
    Refused(#[from] ScenarioError),
    /// A run broke.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Runs cannot be kept, or kept runs cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl League {
    /// Makes a league of these schedulers (all if none is named) over these conditions, overridden by each `KEY=VALUE`
    /// of `sets`. `seeds` are the first seed and their number. Reads every condition, so that errors show before the
    /// first run.
    ///
    /// # Errors
    ///
    /// If a scheduler or an override is not valid.
    pub fn new(
        catalogue: &Arc<Catalogue>,
        conditions: Vec<Condition>,
        schedulers: &[String],
        baselines: Baselines,
        seeds: (u64, usize),
        sets: &[String],
    ) -> Result<League, ScenarioError> {
        let mut schedulers = schedulers.to_vec();
        let mut variants = Vec::new();
        if let Some(first) = conditions.first() {
            let scenario = first.scenario(catalogue, sets)?;
            if schedulers.is_empty() {
                schedulers = scenario.default_schedulers();
            }
            variants = Plan::between(scenario, &schedulers, 1, 1)?.described();
        }
        let systems = variants.iter().map(|variant| (variant.name.clone(), variant.to_string())).collect();
        let campaign = Campaign::of_conditions(catalogue, conditions.clone(), systems, baselines, seeds, sets)?;
        Ok(League { campaign, conditions, variants, repeat: seeds.1, sets: sets.to_vec() })
    }

    /// Returns the league if it can have a leaderboard.
    ///
    /// # Errors
    ///
    /// If it has fewer than two schedulers, oracles apart.
    pub fn contested(self) -> Result<League, ScenarioError> {
        if self.has_rivals() {
            return Ok(self);
        }
        let help = "accepted: two schedulers or more, oracles apart, such as min-rtt,late";
        let problem = "a scheduler is ranked against the best of all others, and there is no other";
        Err(ScenarioError::plain(problem, Some(help.to_owned())))
    }

    /// Returns true if every scheduler has another to be ranked against.
    pub(super) fn has_rivals(&self) -> bool {
        self.variants.iter().filter(|variant| !is_oracle(&variant.name)).count() > 1
    }

    /// Returns the number of conditions.
    pub fn len(&self) -> usize {
        self.conditions.len()
    }

    /// Returns true if there is no condition.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Returns the schedulers as they were asked for, with all their parameters.
    pub fn schedulers(&self) -> &[Variant] {
        &self.variants
    }

    /// Returns the number of seeds in each condition that draws from them.
    pub fn repeat(&self) -> usize {
        self.repeat
    }

    /// Returns the overrides of the conditions, each `KEY=VALUE`.
    pub fn sets(&self) -> &[String] {
        &self.sets
    }

    /// Returns the manifest of a directory with its runs, made by `command`.
    pub fn manifest(&self, command: &str) -> Manifest {
        self.campaign.manifest("rank", command, "")
    }

    /// Makes all runs on `jobs` threads and calls `done` after each condition, also for those that the store has. All
    /// others are kept in it.
    ///
    /// # Errors
    ///
    /// If a run breaks or cannot be kept. Runs made until then are kept.
    pub fn run(&self, store: Option<&Store>, jobs: usize, done: &(dyn Fn() + Sync)) -> Result<Vec<Field>, RankError> {
        let all = 0..self.campaign.conditions();
        let mut rows = Vec::new();
        let work = Work::on(jobs, done);
        match store {
            None => rows = self.campaign.run(all, &work).unwrap_or_default(),
            Some(store) => {
                let campaign = self.campaign.digest();
                let missing = store.parts(campaign)?.missing(&all);
                let count: u64 = missing.iter().map(|it| it.end - it.start).sum();
                (count..all.end).for_each(|_| done());
                self.campaign.work(store, &missing, &work)?;
                store.read(&store.parts(campaign)?, &mut |condition| rows.extend_from_slice(condition))?;
            }
        }
        let broken = |row: &Row| RunError {
            problem: row.result.as_ref().err().cloned().unwrap_or_default(),
            command: row.command.clone(),
        };
        let field = |(condition, rows): (&Condition, &[Row])| {
            let trials = Trials::of(rows).map_err(broken)?;
            Ok(Field { condition: condition.clone(), trials })
        };
        self.conditions.iter().zip(rows.chunk_by(|a, b| a.condition == b.condition)).map(field).collect()
    }
}

/// Returns the SHA-256 of the digests of all conditions, in order.
pub(super) fn digest(fields: &[Field]) -> String {
    let digests: Vec<&str> = fields.iter().map(|field| field.trials.digest.as_str()).collect();
    hex(&Sha256::digest(digests.join("\n").as_bytes()))
}
