//! Runs of an evaluation: the candidate, standard controls in its place, and competitors alone.

use super::judge;
use super::load::{Case, Condition, Suite};
use super::metric::Context;
use super::result::{Counts, Evaluation, Row};
use crate::study::StudyError;
use anabranch_lab::{Flows, Journal, Span, flows, in_parallel};
use anabranch_policy::Catalogue;
use anabranch_scenario::file::At;
use anabranch_scenario::{Scenario, ScenarioError};
use anabranch_units::suggest;
use std::collections::BTreeSet;
use std::sync::Arc;

/// System under evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Congestion control: a name, with parameters behind a colon.
    pub control: String,
    /// Scheduler, if one was chosen.
    pub scheduler: Option<String>,
    /// Further settings of its hosts, each as `--set` takes it.
    pub sets: Vec<String>,
}

/// Suite with all runs that a candidate needs.
pub struct Plan {
    suite: Suite,
    candidate: Candidate,
    quick: bool,
    trials: Vec<Trial>,
}

/// Case with its runs.
pub(super) struct Trial {
    pub(super) case: Case,
    pub(super) cells: Vec<Cell>,
    pub(super) not_run: Vec<String>,
    seeds: u64,
}

/// A condition beside one competitor.
pub(super) struct Cell {
    pub(super) condition: String,
    pub(super) rival: Option<String>,
    pub(super) context: Context,
    pub(super) candidate: Scenario,
    /// Standard controls in place of the candidate, by name.
    pub(super) standards: Vec<(String, Scenario)>,
    /// The competitor alone.
    pub(super) solo: Option<Scenario>,
}

/// Controls of the standards track that other controls are compared with (RFC 5681, RFC 9438).
const STANDARDS: [&str; 2] = ["reno", "cubic"];

impl Candidate {
    /// Checks that its policies exist and that its settings are those of hosts.
    ///
    /// # Errors
    ///
    /// If there is no such policy, with the names that there are, or a setting is another's.
    pub fn check(&self, catalogue: &Catalogue) -> Result<(), ScenarioError> {
        let controls: Vec<&str> = catalogue.congestion.names().collect();
        known("congestion control", &self.control, &controls)?;
        if let Some(scheduler) = &self.scheduler {
            known("scheduler", scheduler, &catalogue.schedulers.names().collect::<Vec<_>>())?;
        }
        let of_host = |set: &&String| ["host.", "client.", "server."].iter().any(|table| set.starts_with(table));
        match self.sets.iter().find(|set| !of_host(set)) {
            Some(set) => {
                let help =
                    "accepted: settings of hosts, such as host.pacing=true; the conditions are those of the cases";
                Err(ScenarioError::plain(format!("`{set}` is no setting of a host"), Some(help.to_owned())))
            }
            None => Ok(()),
        }
    }

    fn sets(&self) -> Vec<String> {
        let scheduler = self.scheduler.iter().map(|name| format!("host.scheduler={}", value(name)));
        let control = [format!("host.congestion={}", value(&self.control))];
        control.into_iter().chain(scheduler).chain(self.sets.iter().cloned()).collect()
    }
}

fn known(kind: &str, named: &str, names: &[&str]) -> Result<(), ScenarioError> {
    let name = named.split(':').next().unwrap_or_default();
    if names.contains(&name) {
        return Ok(());
    }
    Err(ScenarioError::plain(format!("there is no {kind} `{name}`"), Some(suggest(name, names.iter().copied()))))
}

/// Returns a name as a `--set` takes it: bare if it can be.
fn value(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    match name.chars().all(plain) && name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => name.to_owned(),
        false => toml::Value::from(name).to_string(),
    }
}

fn filled(sets: &[At<String>], name: &str) -> Vec<String> {
    sets.iter().map(|set| set.value.replace("{}", &value(name))).collect()
}

impl Plan {
    /// Builds the scenarios of all runs.
    ///
    /// # Errors
    ///
    /// If a policy is unknown or a scenario is not valid.
    pub fn new(
        suite: Suite,
        candidate: Candidate,
        quick: bool,
        catalogue: &Arc<Catalogue>,
    ) -> Result<Plan, ScenarioError> {
        candidate.check(catalogue)?;
        let trials = suite.cases.iter().map(|case| Trial::new(case, &candidate, quick, catalogue));
        let trials = trials.collect::<Result<_, _>>()?;
        Ok(Plan { suite, candidate, quick, trials })
    }

    /// Returns the number of runs that are not in the journal.
    pub fn missing(&self, journal: &Journal<Flows>) -> usize {
        self.to_do(journal).len()
    }

    /// Makes the runs that the journal does not have, on `jobs` threads (0: one per processor), and calls `done` after
    /// each.
    ///
    /// # Errors
    ///
    /// If a run breaks or cannot be kept. Runs made until then are kept.
    pub fn run(&self, journal: &Journal<Flows>, jobs: usize, done: &(dyn Fn() + Sync)) -> Result<(), StudyError> {
        let one = |(scenario, span, seed): &(&Scenario, Span, u64)| -> Result<(), StudyError> {
            let key = key(scenario, span);
            Ok(journal.made(&key, *seed, || flows(scenario, *seed, *span)).map(drop)?)
        };
        in_parallel(&self.to_do(journal), jobs, done, &one).map(|_: Vec<()>| ())
    }

    fn all(&self) -> impl Iterator<Item = (&Scenario, Span, u64)> {
        self.trials.iter().flat_map(|trial| {
            let span = trial.case.span();
            let scenarios = trial.cells.iter().flat_map(Cell::scenarios);
            scenarios.flat_map(move |scenario| (1..=trial.seeds).map(move |seed| (scenario, span, seed)))
        })
    }

    /// Returns the runs that are not in the journal, each once: cells share runs of standard controls.
    fn to_do(&self, journal: &Journal<Flows>) -> Vec<(&Scenario, Span, u64)> {
        let mut known = BTreeSet::new();
        let is_new = |(scenario, span, seed): &(&Scenario, Span, u64)| {
            let key = key(scenario, span);
            !journal.has(&key, *seed) && known.insert((key, *seed))
        };
        self.all().filter(is_new).collect()
    }

    /// Judges all cases when the runs are made. `command` repeats the evaluation.
    pub fn result(&self, journal: &Journal<Flows>, command: &str) -> Evaluation {
        assert_eq!(self.missing(journal), 0, "an evaluation is judged when its runs are made");
        let mut rows: Vec<Row> = self.trials.iter().map(|trial| judge::row(trial, journal, self.quick)).collect();
        rows.extend(self.suite.file.text.iter().map(judge::text));
        // In the order of the document; a matter of words follows what is measured in its section.
        rows.sort_by_key(|row| row.section.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>());
        let file = &self.suite.file;
        let runs: BTreeSet<_> = self.all().map(|(scenario, span, seed)| (key(scenario, &span), seed)).collect();
        Evaluation {
            suite: self.suite.name.clone(),
            title: file.title.clone(),
            source: file.source.clone(),
            about: file.about.clone(),
            control: self.candidate.control.clone(),
            scheduler: self.candidate.scheduler.clone(),
            sets: self.candidate.sets.clone(),
            quick: self.quick,
            command: command.to_owned(),
            runs: runs.len(),
            counts: Counts::of(&rows),
            rows,
        }
    }
}

impl Trial {
    fn new(
        case: &Case,
        candidate: &Candidate,
        quick: bool,
        catalogue: &Arc<Catalogue>,
    ) -> Result<Trial, ScenarioError> {
        let mut trial = Trial { case: case.clone(), cells: Vec::new(), not_run: Vec::new(), seeds: case.seeds(quick) };
        let rivals: Vec<Option<&str>> = match &case.file.rivals {
            None => vec![None],
            Some(rivals) if quick => rivals.quick.iter().map(|name| Some(name.as_str())).collect(),
            Some(rivals) => rivals.names.iter().map(|name| Some(name.as_str())).collect(),
        };
        for condition in case.conditions(quick)? {
            if let Some(why) = &condition.not_run {
                trial.not_run.push(format!("{}: {why}", condition.name));
                continue;
            }
            for rival in &rivals {
                trial.cells.push(Cell::new(case, candidate, &condition, *rival, catalogue)?);
            }
        }
        Ok(trial)
    }

    /// Returns the runs of a scenario of this case, seed by seed.
    pub(super) fn runs(&self, scenario: &Scenario, journal: &Journal<Flows>) -> Vec<Flows> {
        let key = key(scenario, &self.case.span());
        (1..=self.seeds).filter_map(|seed| journal.get(&key, seed)).collect()
    }
}

impl Cell {
    fn new(
        case: &Case,
        candidate: &Candidate,
        condition: &Condition,
        rival: Option<&str>,
        catalogue: &Arc<Catalogue>,
    ) -> Result<Cell, ScenarioError> {
        let rivals = case.file.rivals.as_ref();
        let beside = |rival: &str| rivals.map_or_else(Vec::new, |rivals| filled(&rivals.set, rival));
        let beside = rival.map_or_else(Vec::new, beside);
        let scenario = |own: &[String], more: &[String]| {
            case.scenario(catalogue, &[&condition.sets[..], &beside, own, more].concat())
        };
        let mut standards = Vec::new();
        if case.criteria.iter().any(|it| it.table.standard.is_some()) {
            let own: Vec<&str> = match &case.file.standards {
                Some(names) => names.iter().map(String::as_str).collect(),
                None => STANDARDS.to_vec(),
            };
            let more: Vec<String> = case.file.standard.iter().map(|at| at.value.clone()).collect();
            // Beside one of its own kind first: the harm that it does to itself is the yardstick of Ware 2019.
            for name in rival.into_iter().chain(own.into_iter().filter(|name| Some(*name) != rival)) {
                let sets = [format!("host.congestion={}", value(name))];
                standards.push((name.to_owned(), scenario(&sets, &more)?));
            }
        }
        let solo = match (rival, rivals) {
            (Some(rival), Some(rivals)) if case.criteria.iter().any(|it| it.table.harm) => {
                let sets = [format!("host.congestion={}", value(rival))];
                Some(scenario(&sets, &filled(&rivals.solo, rival))?)
            }
            _ => None,
        };
        let under_test = scenario(&candidate.sets(), &[])?;
        let context = Context { stop_s: under_test.stop().as_secs_f64(), ..condition.context };
        Ok(Cell {
            condition: condition.name.clone(),
            rival: rival.map(str::to_owned),
            context,
            candidate: under_test,
            standards,
            solo,
        })
    }

    fn scenarios(&self) -> impl Iterator<Item = &Scenario> {
        [&self.candidate].into_iter().chain(self.standards.iter().map(|(_, it)| it)).chain(&self.solo)
    }
}

/// Returns the name under which runs of a scenario are kept: what was measured depends on the span as well.
fn key(scenario: &Scenario, span: &Span) -> String {
    format!("{} {}", scenario.digest, span.text())
}
