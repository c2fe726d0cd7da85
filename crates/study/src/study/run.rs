//! Runs a study from beginning to end.

use super::grid::{Grid, StudyError};
use super::judge::judge;
use super::load::Study;
use super::plot::draw;
use super::result::{StudyResult, SystemInfo};
use crate::figure::Figure;
use anabranch_lab::Journal;
use anabranch_policy::Catalogue;
use anabranch_scenario::Problem;
use anabranch_scenario::ScenarioError;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Study with all its scenarios, ready to run.
pub struct Prepared {
    /// The study.
    pub study: Study,
    grid: Grid,
    catalogue: Arc<Catalogue>,
}

/// Origin of results, to reproduce them.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// Command.
    pub command: String,
    /// True for the points and repetitions of `--quick`.
    pub quick: bool,
}

impl Prepared {
    /// Reads all scenarios of the study.
    ///
    /// # Errors
    ///
    /// If a scenario, metric, system or claim is not valid.
    pub fn new(study: Study, catalogue: &Arc<Catalogue>) -> Result<Prepared, ScenarioError> {
        let grid = Grid::new(&study, catalogue, &[])?;
        let prepared = Prepared { study, grid, catalogue: Arc::clone(catalogue) };
        prepared.rehearse()?;
        Ok(prepared)
    }

    /// Checks plots and statements before the first run rather than after the last.
    fn rehearse(&self) -> Result<(), ScenarioError> {
        let study = &self.study;
        let refuse = |problem: Problem| study.refuse(problem);
        for plot in study.plots() {
            match &plot.metric {
                Some(at) if plot.over_time => drop(super::over_time::Course::parse(study, at, &self.grid)?),
                Some(at) => drop(study.metric(at, &self.grid)?),
                None => {}
            }
            for theory in &plot.theory {
                super::claim::TheoryCurve::of(&theory.value).map_err(refuse)?;
            }
        }
        for other in &study.sensitivities {
            Grid::first(study, &self.catalogue, &other.set)?;
        }
        for statement in study.claims() {
            let claim = super::claim::Claim::of(study, statement).map_err(refuse)?;
            if !matches!(claim, super::claim::Claim::Untestable(_)) {
                study.metric(&statement.metric, &self.grid)?;
            }
        }
        Ok(())
    }

    /// Makes runs end as failed soon after `stop` becomes true.
    pub fn stoppable(self, stop: &Arc<AtomicBool>) -> Prepared {
        Prepared { grid: self.grid.stoppable(stop), ..self }
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> usize {
        self.grid.runs()
    }

    /// Returns the number of runs that are not in the journal.
    pub fn missing(&self, journal: &Journal) -> usize {
        self.grid.missing(journal).len()
    }

    /// Makes the runs that the journal does not have, on `jobs` threads (0: one per processor), and calls `done` after
    /// each.
    ///
    /// # Errors
    ///
    /// If a run breaks or cannot be kept. Runs made until then are kept.
    pub fn run(&self, journal: &Journal, jobs: usize, done: &(dyn Fn() + Sync)) -> Result<(), StudyError> {
        self.grid.run(journal, jobs, done)
    }

    /// Draws the figures from the runs that there are: of each system at each point those with the first seeds. Places
    /// without a run are gaps.
    ///
    /// # Errors
    ///
    /// If a plot is not valid.
    pub fn figures(&self, journal: &Journal) -> Result<Vec<Figure>, ScenarioError> {
        let table = self.grid.table(journal);
        self.study.plots().map(|plot| draw(&self.study, &table, plot)).collect()
    }

    /// Returns the systems with their settings.
    pub fn systems(&self) -> Vec<SystemInfo> {
        let system = |(n, system): (usize, &super::file::SystemTable)| SystemInfo {
            name: system.name.clone(),
            set: system.set.iter().map(|at| at.value.clone()).collect(),
            policies: self.grid.scenario(n).map(policies).unwrap_or_default(),
            unavailable: system.unavailable.clone(),
        };
        self.study.systems().enumerate().map(system).collect()
    }

    /// Draws and judges when all runs are made.
    ///
    /// # Errors
    ///
    /// If a plot or statement is not valid.
    pub fn result(&self, journal: &Journal, provenance: &Provenance) -> Result<StudyResult, ScenarioError> {
        assert_eq!(self.missing(journal), 0, "a study is judged when its runs are made");
        let (study, table) = (&self.study, self.grid.table(journal));
        let figures = study.plots().map(|plot| draw(study, &table, plot)).collect::<Result<_, _>>()?;
        let statements = study.claims().map(|claim| judge(study, &table, claim)).collect::<Result<_, _>>()?;
        Ok(StudyResult {
            version: anabranch_lab::VERSION.to_owned(),
            build: anabranch_lab::build().to_owned(),
            name: study.name.clone(),
            title: study.title().to_owned(),
            paper: study.paper().to_owned(),
            citation: super::Paper::named(study.paper()).map(|paper| paper.citation).unwrap_or_default().to_owned(),
            figure: study.figure().to_owned(),
            about: study.file.about.clone(),
            digest: study.digest.clone(),
            command: provenance.command.clone(),
            quick: provenance.quick,
            sets: study.sets.clone(),
            seeds: self.grid.seeds.clone(),
            runs: self.grid.runs(),
            unfinished_runs: table.all().filter(|run| !run.finished).count(),
            figures,
            statements,
            assumptions: study.assumptions.clone(),
            systems: self.systems(),
            scenario: study.scenario_text(&[])?,
        })
    }

    /// Returns the catalogue of the scenarios' policies.
    pub(super) fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    /// Returns one row per run: the study's systems and axes with all measurements.
    pub fn rows(&self, journal: &Journal) -> Vec<StudyRow> {
        let mut rows = Vec::new();
        for ((system, point), scenario) in self.grid.cells() {
            for seed in &self.grid.seeds {
                let Some(measured) = journal.get(&scenario.digest, *seed) else { continue };
                let axes = self.study.axes.iter().zip(point);
                rows.push(StudyRow {
                    system: self.study.systems().nth(*system).map(|it| it.name.clone()).unwrap_or_default(),
                    axes: axes.map(|(axis, n)| (axis.name.clone(), axis.points[*n].x)).collect(),
                    digest: scenario.digest.clone(),
                    paths: scenario.paths(),
                    command: scenario.origin.command(*seed),
                    measured,
                });
            }
        }
        rows
    }
}

/// Run of a study.
#[derive(Clone, Debug)]
pub struct StudyRow {
    /// Name of the system.
    pub system: String,
    /// Value on each axis.
    pub axes: Vec<(String, f64)>,
    /// SHA-256 of the scenario.
    pub digest: String,
    /// Names of its paths.
    pub paths: Vec<String>,
    /// Command that repeats the run.
    pub command: String,
    /// Measurements.
    pub measured: anabranch_lab::Measured,
}

fn policies(scenario: &anabranch_scenario::Scenario) -> Vec<(String, String)> {
    let chosen = scenario.policies();
    let seams = chosen.seams().into_iter().map(|(seam, variant)| (seam.to_owned(), variant.to_string()));
    std::iter::once(("profile".to_owned(), chosen.profile.clone())).chain(seams).collect()
}
