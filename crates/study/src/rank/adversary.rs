//! Adversary: searches the space of conditions for those in which a scheduler loses most against the best of others, or
//! against plain TCP on the best single path.
//!
//! A third of the tries are draws. Searches begin at the worst of them: each moves all choices at once by CMA-ES
//! (Hansen and Ostermeier, *Completely Derandomized Self-Adaptation in Evolution Strategies*, Evolutionary Computation
//! 2001). The result is the largest of many noisy ratios, so it is run once more, with seeds that the search has not
//! seen.

use super::condition::Condition;
use super::league::{Field, League, RankError};
use super::point::Point;
use crate::sweep::{Baselines, Manifest, Store, SystemInfo, scores};
use anabranch_lab::format::CAMPAIGN;
use anabranch_lab::{VERSION, build};
use anabranch_policy::Catalogue;
use anabranch_scenario::{ScenarioError, in_shell};
use anabranch_units::hex;
use fcmaes_core::{Cmaes, CmaesParams, Fitness};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;

/// Parameters of a search.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// Scheduler that is to lose.
    pub target: String,
    /// Schedulers of which the best is to win; [`TCP`] alone for plain TCP on the best single path.
    pub others: Vec<String>,
    /// Seed of the draws and of the search.
    pub seed: u64,
    /// Approximate number of conditions to try: a search tries whole populations, at least one.
    pub tries: usize,
    /// Number of conditions wanted.
    pub wanted: usize,
    /// Number of seeds in each condition.
    pub repeat: usize,
    /// Overrides of the conditions, each `KEY=VALUE`.
    pub sets: Vec<String>,
}

/// Name of plain TCP on the best single path among the others of a [`Hunt`].
pub const TCP: &str = "tcp";

/// Condition that a search found.
#[derive(Clone, Debug)]
pub struct Find {
    /// The condition.
    pub condition: Condition,
    /// Number of the draw at which its search began.
    pub from: u64,
    /// Time of the target over that of the best other at the beginning of the search.
    pub drawn: f64,
    /// Number of conditions that its search tried.
    pub tries: usize,
    /// Time of the target over that of the best other in the condition, with the seeds of the search.
    pub seen: f64,
    /// Ratio with other seeds.
    pub verified: Verified,
}

/// Ratio with seeds that the search has not seen.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Verified {
    /// Time of the target over that of the best other.
    pub ratio: f64,
    /// Name of the best other.
    pub best: String,
    /// First seed, and number of seeds.
    pub seeds: (u64, usize),
}

impl Find {
    /// Returns the command that compares the target with the best other, over its file in this directory. A comparison
    /// has plain TCP on each path in any case.
    pub fn command(&self, hunt: &Hunt, directory: &str) -> String {
        let file = Path::new(directory).join(self.condition.file());
        let (first, repeat) = self.verified.seeds;
        let both = format!("{},{}", hunt.target, self.verified.best);
        let systems = if hunt.is_against_tcp() { &hunt.target } else { &both };
        let mut command = format!(
            "anabranch compare {} --schedulers {} --seed {first} --repeat {repeat}",
            in_shell(&file.to_string_lossy()),
            in_shell(systems),
        );
        for set in &hunt.sets {
            command += &format!(" --set {}", in_shell(set));
        }
        command
    }
}

/// Initial step of a search, as a share of the whole range of an amount.
const STEP: f64 = 0.1;
/// Initial step of a choice among classes: small, or nearly every step would change the condition.
const CLASS_STEP: f64 = 0.02;
/// Number of repetitions that verify.
const VERIFYING: usize = 10;

/// Common parts of the runs of a search.
struct Ground<'a> {
    hunt: &'a Hunt,
    catalogue: &'a Arc<Catalogue>,
    schedulers: Vec<String>,
    store: Option<&'a Store>,
    jobs: usize,
}

impl Hunt {
    /// Searches on `jobs` threads and calls `done` after each condition tried. The result does not depend on `jobs`.
    ///
    /// # Errors
    ///
    /// If a scheduler or an override is not valid, or a run breaks.
    pub fn run(
        &self,
        catalogue: &Arc<Catalogue>,
        store: Option<&Store>,
        jobs: usize,
        done: &(dyn Fn() + Sync),
    ) -> Result<Vec<Find>, RankError> {
        let mixed = self.others.len() > 1 && self.others.iter().any(|other| other == TCP);
        if mixed {
            let problem = format!("`{TCP}` is plain TCP on the best single path, and is no scheduler among others");
            return Err(ScenarioError::plain(problem, Some(format!("accepted: --schedulers {TCP} alone"))).into());
        }
        if self.others.is_empty() || self.others.contains(&self.target) {
            let problem = format!("`{}` has no others to lose against, or is one of them", self.target);
            let help = format!("accepted: --schedulers with one or more others, without {}", self.target);
            return Err(ScenarioError::plain(problem, Some(help)).into());
        }
        let others: &[String] = if self.is_against_tcp() { &[] } else { &self.others };
        let schedulers = [std::slice::from_ref(&self.target), others].concat();
        let ground = Ground { hunt: self, catalogue, schedulers, store, jobs };
        let drawn: Vec<Point> = (0..self.drawn() as u64).map(|n| Point::drawn(self.seed, n)).collect();
        let mut ratios: Vec<(usize, f64)> = ground.ratios(&drawn, done)?.into_iter().enumerate().collect();
        ratios.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let starts = ratios.into_iter().take(self.wanted.max(1));
        let tries = (self.tries - self.tries.min(drawn.len())) / self.wanted.max(1);
        let found = starts.map(|(n, ratio)| ground.search(n, &drawn[n], ratio, tries, done));
        let mut found = found.collect::<Result<Vec<_>, _>>()?;
        found.sort_by(|a, b| b.verified.ratio.total_cmp(&a.verified.ratio));
        for (n, find) in found.iter_mut().enumerate() {
            find.condition.stem = self.stem(n + 1);
        }
        Ok(found)
    }

    /// Returns the manifest of a directory with its runs, made by `command`. A longer search with the same seed begins
    /// with the same tries, so the manifest does not depend on their number.
    pub fn manifest(&self, command: &str) -> Manifest {
        let built = format!("{VERSION} {}", build());
        let Hunt { target, others, seed, repeat, sets, .. } = self;
        let content = json!([built, target, others, seed, repeat, sets]);
        let systems = std::iter::once(target).chain(others);
        Manifest {
            format: CAMPAIGN.name.to_owned(),
            format_version: CAMPAIGN.version,
            version: VERSION.to_owned(),
            build: build().to_owned(),
            kind: "search".to_owned(),
            digest: hex(&Sha256::digest(content.to_string().as_bytes())),
            about: None,
            command: command.to_owned(),
            conditions: self.tries as u64,
            axes: Vec::new(),
            systems: systems.map(|name| SystemInfo { name: name.clone(), about: String::new() }).collect(),
            baselines: self.is_against_tcp(),
            metrics: Vec::new(),
            text: String::new(),
        }
    }

    /// Returns true if plain TCP on the best single path is to win.
    pub fn is_against_tcp(&self) -> bool {
        self.others == [TCP]
    }

    /// Returns the number of tries that are draws; searches begin at the worst of them.
    pub fn drawn(&self) -> usize {
        (self.tries / 3).max(1)
    }

    /// Returns a stem for files: letters, digits and `-` of the target's name, and a number.
    fn stem(&self, n: usize) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        format!("against-{}-{n}", self.target.chars().map(plain).collect::<String>())
    }
}

impl Ground<'_> {
    fn league(&self, points: &[Point], seeds: (u64, usize)) -> Result<Vec<Field>, RankError> {
        // All have one stem: the name of a condition does not affect its digest.
        let conditions = points.iter().map(|point| Condition::at("tried".to_owned(), point)).collect();
        let baselines = if self.hunt.is_against_tcp() { Baselines::Tcp } else { Baselines::None };
        let league = League::new(self.catalogue, conditions, &self.schedulers, baselines, seeds, &self.hunt.sets)?;
        league.run(self.store, self.jobs, &|| {})
    }

    /// Returns the time of the target over that of the best other, and the name of that one.
    fn against(&self, field: &Field) -> Option<(f64, &str)> {
        let scores = scores(&field.trials, &vec![false; field.trials.systems.len()]);
        let first = scores.first()?;
        match self.hunt.is_against_tcp() {
            true => Some((first.to_single?, TCP)),
            false => Some((first.to_best?, &self.schedulers[first.best?])),
        }
    }

    /// Returns the time of the target over that of the best other, at each point.
    fn ratios(&self, points: &[Point], done: &(dyn Fn() + Sync)) -> Result<Vec<f64>, RankError> {
        let mut ratios = Vec::new();
        // Runs in parts, so that progress shows.
        for part in points.chunks(PART) {
            let fields = self.league(part, (1, self.hunt.repeat))?;
            ratios.extend(fields.iter().map(|field| self.against(field).map_or(1.0, |(ratio, _)| ratio)));
            part.iter().for_each(|_| done());
        }
        Ok(ratios)
    }

    fn search(
        &self,
        from: usize,
        start: &Point,
        ratio: f64,
        tries: usize,
        done: &(dyn Fn() + Sync),
    ) -> Result<Find, RankError> {
        let (mut best, mut tried) = ((start.clone(), ratio), 1);
        let bounds = (vec![0.0; Point::DIMENSIONS], vec![1.0; Point::DIMENSIONS]);
        let space = Fitness::bounded(Point::DIMENSIONS, 1, &bounds.0, &bounds.1);
        let params = CmaesParams {
            popsize: 0,
            max_evaluations: tries as u64,
            seed: self.hunt.seed ^ from as u64,
            ..CmaesParams::default()
        };
        let steps: Vec<f64> = Point::classes().map(|class| if class { CLASS_STEP } else { STEP }).collect();
        let mut search = Cmaes::new(space, start.coordinates(), &steps, &params);
        // Whole populations only, and at least one.
        while (tried == 1 || tried + search.popsize() <= tries) && search.stop() == 0 {
            let points: Vec<Point> = search.ask().iter().map(|coordinates| Point::of(coordinates)).collect();
            let ratios = self.ratios(&points, done)?;
            tried += points.len();
            for (point, ratio) in points.into_iter().zip(&ratios) {
                if *ratio > best.1 {
                    best = (point, *ratio);
                }
            }
            // CMA-ES minimises.
            let losses: Vec<f64> = ratios.iter().map(|ratio| -libm::log(*ratio)).collect();
            search.tell(&losses);
        }
        let (point, seen) = best;
        let seeds = (1 + self.hunt.repeat as u64, VERIFYING);
        let fields = self.league(std::slice::from_ref(&point), seeds)?;
        let verified = fields.first().and_then(|field| self.against(field)).unwrap_or((1.0, &self.hunt.others[0]));
        Ok(Find {
            condition: Condition::at(String::new(), &point),
            from: from as u64,
            drawn: ratio,
            tries: tried,
            seen,
            verified: Verified {
                ratio: verified.0,
                best: verified.1.to_owned(),
                seeds: (seeds.0, fields.first().map_or(0, |field| field.trials.seeds.len())),
            },
        })
    }
}

/// Number of conditions between two reports of progress.
const PART: usize = 16;
