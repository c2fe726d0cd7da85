//! Grid of every system at every point: the runs of a study, and their results.

use super::file::{StatementTable, SystemTable};
use super::load::{Axis, Study};
use super::metric::Metric;
use anabranch_lab::in_parallel;
use anabranch_lab::statistic::Censoring;
use anabranch_lab::{Journal, KeepError, Measured};
use anabranch_policy::Catalogue;
use anabranch_scenario::Problem;
use anabranch_scenario::file::At;
use anabranch_scenario::{Scenario, ScenarioError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Point: for each axis the index of one of its points.
pub(super) type Point = Vec<usize>;

/// Runs of a study.
pub(super) struct Grid {
    cells: BTreeMap<(usize, Point), Scenario>,
    pub(super) seeds: Vec<u64>,
}

/// Error: a study could not be run.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The study or its scenario has an error.
    #[error(transparent)]
    Refused(#[from] ScenarioError),
    /// A run broke, or cannot be kept.
    #[error(transparent)]
    Keep(#[from] KeepError),
}

impl Grid {
    /// Builds all cells of the study, each with the settings `extra`.
    pub(super) fn new(study: &Study, catalogue: &Arc<Catalogue>, extra: &[At<String>]) -> Result<Grid, ScenarioError> {
        let mut cells = BTreeMap::new();
        for (number, system) in study.systems().enumerate() {
            for point in study.points(&BTreeMap::new()) {
                let sets = study.sets(&point, system, extra);
                let scenario = study.scenario(catalogue, &sets)?;
                cells.insert((number, point), scenario);
            }
        }
        Ok(Grid { cells, seeds: (1..=study.repeat().full as u64).collect() })
    }

    /// Builds only the scenario of the first system at the first point, to check that it is valid.
    pub(super) fn first(study: &Study, catalogue: &Arc<Catalogue>, extra: &[At<String>]) -> Result<(), ScenarioError> {
        let (Some(system), Some(point)) = (study.systems().next(), study.points(&BTreeMap::new()).into_iter().next())
        else {
            return Ok(());
        };
        study.scenario(catalogue, &study.sets(&point, system, extra)).map(drop)
    }

    /// Returns the number of runs.
    pub(super) fn runs(&self) -> usize {
        self.cells.len() * self.seeds.len()
    }

    /// Keeps the cells that these claims are about.
    pub(super) fn only(&self, study: &Study, claims: &[&StatementTable]) -> Grid {
        let points: BTreeSet<Point> = claims.iter().flat_map(|claim| study.points(&study.chosen(claim))).collect();
        let cells = self.cells.iter().filter(|((_, point), _)| points.contains(point));
        Grid {
            cells: cells.map(|(key, scenario)| (key.clone(), scenario.clone())).collect(),
            seeds: self.seeds.clone(),
        }
    }

    /// Makes runs end as failed soon after `stop` becomes true.
    pub(super) fn stoppable(mut self, stop: &Arc<AtomicBool>) -> Grid {
        self.cells = self.cells.into_iter().map(|(key, scenario)| (key, scenario.stoppable(stop))).collect();
        self
    }

    /// Limits the number of repetitions.
    pub(super) fn at_most(mut self, repetitions: usize) -> Grid {
        self.seeds.truncate(repetitions);
        self
    }

    /// Returns the digests of all scenarios: grids with the same digests have the same results.
    pub(super) fn digests(&self) -> Vec<String> {
        self.cells.values().map(|scenario| scenario.digest.clone()).collect()
    }

    /// Returns the runs that are not in the journal, each once. Every cell has a run with the first seed before any has
    /// one with the second: what there is at any time is an early form of the whole.
    pub(super) fn missing<'a>(&'a self, journal: &Journal) -> Vec<(&'a Scenario, u64)> {
        let mut known = BTreeSet::new();
        let all = self.seeds.iter().flat_map(|seed| self.cells.values().map(move |scenario| (scenario, *seed)));
        all.filter(|(scenario, seed)| !journal.has(&scenario.digest, *seed) && known.insert((&scenario.digest, *seed)))
            .collect()
    }

    /// Makes the runs that are missing.
    pub(super) fn run(&self, journal: &Journal, jobs: usize, done: &(dyn Fn() + Sync)) -> Result<(), StudyError> {
        let one = |(scenario, seed): &(&Scenario, u64)| -> Result<(), StudyError> {
            Ok(journal.run(&scenario.digest, scenario, *seed).map(drop)?)
        };
        in_parallel(&self.missing(journal), jobs, done, &one).map(|_: Vec<()>| ())
    }

    /// Returns the results that there are: of each cell the runs with the first seeds, so that pairs stay pairs.
    pub(super) fn table(&self, journal: &Journal) -> Table<'_> {
        let of =
            |scenario: &Scenario| self.seeds.iter().map_while(|seed| journal.get(&scenario.digest, *seed)).collect();
        Table { grid: self, runs: self.cells.iter().map(|(key, scenario)| (key.clone(), of(scenario))).collect() }
    }

    /// Returns the scenario of a system at the first point.
    pub(super) fn scenario(&self, system: usize) -> Option<&Scenario> {
        self.cells.iter().find(|((number, _), _)| *number == system).map(|(_, scenario)| scenario)
    }

    /// Returns all scenarios with system and point, in order.
    pub(super) fn cells(&self) -> impl Iterator<Item = (&(usize, Point), &Scenario)> {
        self.cells.iter()
    }
}

/// Results of a grid.
pub(super) struct Table<'a> {
    pub(super) grid: &'a Grid,
    runs: BTreeMap<(usize, Point), Vec<Measured>>,
}

impl Table<'_> {
    /// Returns the runs of a system at a point, in the order of seeds.
    pub(super) fn runs(&self, system: usize, point: &Point) -> &[Measured] {
        self.runs.get(&(system, point.clone())).map_or(&[], Vec::as_slice)
    }

    /// Returns the metric in each run; `None` if a run does not have it.
    pub(super) fn values(&self, system: usize, point: &Point, metric: &Metric) -> Option<Vec<f64>> {
        self.runs(system, point).iter().map(|run| metric.of(run)).collect()
    }

    /// Returns the number of runs of a system at a point whose metric is affected by transfers that did not complete.
    pub(super) fn unfinished(&self, system: usize, point: &Point, metric: &Metric) -> usize {
        match metric.censoring() {
            Censoring::None => 0,
            _ => self.runs(system, point).iter().filter(|run| run.has_bounds()).count(),
        }
    }

    /// Returns the excess of the metric of `system` over that of `base`, seed by seed \[%\].
    pub(super) fn change(&self, system: usize, base: usize, point: &Point, metric: &Metric) -> Option<Vec<f64>> {
        let (ours, theirs) = (self.values(system, point, metric)?, self.values(base, point, metric)?);
        let change = |(a, b): (&f64, &f64)| Some(100.0 * (a / b - 1.0)).filter(|x| x.is_finite());
        ours.iter().zip(&theirs).map(change).collect()
    }

    /// Returns all runs.
    pub(super) fn all(&self) -> impl Iterator<Item = &Measured> {
        self.runs.values().flatten()
    }
}

impl Study {
    /// Returns the points with one of the chosen values on each axis that is named, and with any value on the others;
    /// the first axis varies fastest.
    pub(super) fn points(&self, chosen: &BTreeMap<String, Vec<f64>>) -> Vec<Point> {
        let mut all: Vec<Point> = vec![Vec::new()];
        for axis in self.axes.iter().rev() {
            let is_chosen = |x: f64| chosen.get(&axis.name).is_none_or(|values| values.contains(&x));
            let indices: Vec<usize> = (0..axis.points.len()).filter(|n| is_chosen(axis.points[*n].x)).collect();
            let grow = |rest: &Point| -> Vec<Point> {
                indices.iter().map(|n| std::iter::once(*n).chain(rest.iter().copied()).collect()).collect()
            };
            all = all.iter().flat_map(grow).collect();
        }
        all
    }

    /// Returns the values of the axes at which a claim is made.
    pub(super) fn chosen(&self, claim: &StatementTable) -> BTreeMap<String, Vec<f64>> {
        claim.at.iter().map(|(name, at)| (name.clone(), at.value.clone())).collect()
    }

    /// Returns the settings of a point: axes first, so that a system can override them; overrides of the whole study
    /// lie over both.
    pub(super) fn sets(&self, point: &Point, system: &SystemTable, extra: &[At<String>]) -> Vec<String> {
        let of_axes = self.axes.iter().zip(point).flat_map(|(axis, n)| axis.points[*n].sets.iter().cloned());
        let values = |all: &[At<String>]| all.iter().map(|at| at.value.clone()).collect::<Vec<_>>();
        of_axes.chain(values(&system.set)).chain(self.sets.iter().cloned()).chain(values(extra)).collect()
    }

    /// Describes a point in words: `loss 1 %, RTT 20 ms`.
    pub(super) fn place(&self, point: &Point) -> String {
        let one = |(axis, n): (&Axis, &usize)| match axis.unit == axis.name {
            true => axis.shown(*n), // `30 segments` rather than `segments 30 segments`
            false => format!("{} {}", axis.name, axis.shown(*n)),
        };
        let all: Vec<String> = self.axes.iter().zip(point).map(one).collect();
        all.join(", ")
    }

    /// Returns the metric of that name, in the scenario of this study.
    pub(super) fn metric(&self, at: &At<String>, grid: &Grid) -> Result<Metric, ScenarioError> {
        let paths = grid.scenario(0).map(Scenario::paths).unwrap_or_default();
        Metric::parse(at, &paths).map_err(|problem: Problem| self.refuse(problem))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::shipped::STUDIES;
    use super::*;
    use anabranch_engine::Profile;

    /// Results of papers are those of the stacks that they were measured on, whatever our own defaults are.
    #[test]
    fn every_study_names_its_stack() {
        let catalogue = Arc::new(Catalogue::default());
        for name in STUDIES.iter().map(|it| it.name) {
            let grid = Grid::new(&Study::load(name).unwrap().quick(), &catalogue, &[]).unwrap();
            for scenario in grid.cells.values() {
                for host in [scenario.policies(), scenario.receiver()] {
                    assert_ne!(host.profile, Profile::DEFAULT, "{name}");
                    assert_eq!(host.first_path.name, "as-listed", "{name}");
                    assert_ne!(host.reinjection.name, "insured", "{name}");
                }
            }
        }
    }
}
