//! Every scheduler in every drawn condition, on common seeds: a campaign without axes.

use super::condition::Condition;
use super::is_oracle;
use crate::compare::Plan;
use crate::sweep::{Campaign, Manifest, Row, Store, StoreError, Trials, Work};
use crate::{RunError, ScenarioError, Variant};
use anabranch_policy::Catalogue;
use anabranch_units::hex;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Schedulers and the conditions in which they meet.
pub struct League {
    campaign: Campaign,
    conditions: Vec<Condition>,
    variants: Vec<Variant>,
    /// Seeds in each condition in which they make a difference.
    repeat: usize,
    sets: Vec<String>,
}

/// All systems in one condition.
#[derive(Clone, Debug)]
pub struct Field {
    /// The condition.
    pub condition: Condition,
    /// Their runs.
    pub trials: Trials,
}

/// A leaderboard that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RankError {
    /// A condition, scheduler or override is refused.
    #[error(transparent)]
    Refused(#[from] ScenarioError),
    /// A run broke.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Runs cannot be kept, or what was kept cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl League {
    /// These schedulers (all if none is named) over these conditions, with each `KEY=VALUE` of `sets` laid over them:
    /// `seeds` are the first and their number. Reads every condition, so that nothing is refused after the first run.
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
        let mut schedulers = schedulers.to_vec();
        let mut variants = Vec::new();
        if let Some(first) = conditions.first() {
            let scenario = first.scenario(catalogue, sets)?;
            if schedulers.is_empty() {
                schedulers = scenario.default_schedulers();
            }
            variants = Plan::between(scenario, &schedulers, 1, 1)?.described();
        }
        if schedulers.iter().filter(|name| !is_oracle(name)).count() < 2 {
            let help = "accepted: two schedulers or more, oracles apart, such as min-rtt,late";
            let problem = "a scheduler is ranked against the best of all others, and there is no other";
            return Err(ScenarioError::plain(problem, Some(help.to_owned())));
        }
        let systems = variants.iter().map(|variant| (variant.name.clone(), variant.to_string())).collect();
        let campaign = Campaign::of_conditions(catalogue, conditions.clone(), systems, baselines, seeds, sets)?;
        Ok(League { campaign, conditions, variants, repeat: seeds.1, sets: sets.to_vec() })
    }

    /// Number of conditions.
    pub fn len(&self) -> usize {
        self.conditions.len()
    }

    /// True if there is no condition.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The schedulers as they were asked for, with all their parameters.
    pub fn schedulers(&self) -> &[Variant] {
        &self.variants
    }

    /// Seeds in each condition in which they make a difference.
    pub fn repeat(&self) -> usize {
        self.repeat
    }

    /// Each `KEY=VALUE` that is laid over the conditions.
    pub fn sets(&self) -> &[String] {
        &self.sets
    }

    /// The manifest of a directory with its runs; `command` made it.
    pub fn manifest(&self, command: &str) -> Manifest {
        self.campaign.manifest("rank", command, "")
    }

    /// Runs everything on `jobs` threads and calls `done` after each condition, also for those that the store has. All
    /// others are kept in it.
    ///
    /// # Errors
    /// If a run breaks or cannot be kept. What was made until then is kept.
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

/// SHA-256 of the digests of all conditions, in order.
pub(super) fn digest(fields: &[Field]) -> String {
    let digests: Vec<&str> = fields.iter().map(|field| field.trials.digest.as_str()).collect();
    hex(&Sha256::digest(digests.join("\n").as_bytes()))
}
