//! Runs of an evaluation: the candidate, standard controls in its place, and competitors alone.

use super::judge;
use super::live::{self, LiveRun, Peer};
use super::load::{Case, Condition, Suite};
use super::metric::Context;
use super::result::{Counts, Evaluation, OnTestbed, Row};
use crate::study::StudyError;
use anabranch_lab::{Flows, Journal, Span, flows, in_parallel};
use anabranch_policy::Catalogue;
use anabranch_policy::congestion::kernel_name;
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
    /// Program or kernel that is evaluated in real time; the simulator's engine if `None`.
    pub peer: Option<Peer>,
}

/// Suite with all runs that a candidate needs.
pub struct Plan {
    suite: Suite,
    candidate: Candidate,
    quick: bool,
    trials: Vec<Trial>,
}

/// Maker of commands: of the one that repeats a condition of a case, by their names, or else all.
pub type Repeat<'a> = dyn Fn(Option<(&str, &str)>) -> String + 'a;

/// Case with its runs.
pub(super) struct Trial {
    pub(super) case: Case,
    pub(super) cells: Vec<Cell>,
    pub(super) not_run: Vec<String>,
    /// Reason why nothing of the case is run.
    pub(super) left_out: Option<String>,
    seeds: u64,
}

/// A condition beside one competitor.
pub(super) struct Cell {
    pub(super) condition: String,
    pub(super) rival: Option<String>,
    pub(super) context: Context,
    pub(super) candidate: Asked,
    /// Standard controls in place of the candidate, by name.
    pub(super) standards: Vec<(String, Asked)>,
    /// The competitor alone.
    pub(super) solo: Option<Asked>,
}

/// Runs of one scenario.
pub(super) struct Asked {
    scenario: Scenario,
    /// Name under which the runs are kept.
    key: String,
    /// Congestion control of the sender; `None` for a program.
    control: Option<String>,
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
        if self.sender().is_some() {
            known("congestion control", &self.control, &controls)?;
        }
        if let Some(peer) = &self.peer
            && let Some(reason) = self.sender().and_then(|control| peer.lacks(control))
        {
            return Err(ScenarioError::plain(format!("{} cannot be evaluated: {reason}", self.control), None));
        }
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

    /// Returns the congestion control that the sender is under; `None` for a program, which has its own.
    fn sender(&self) -> Option<&str> {
        let has_own = self.peer.as_ref().is_some_and(|peer| peer.program.is_some());
        (!has_own).then_some(&self.control)
    }

    fn sets(&self) -> Vec<String> {
        let scheduler = self.scheduler.iter().map(|name| format!("host.scheduler={}", value(name)));
        let control = self.sender().map(|name| format!("host.congestion={}", value(name)));
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
        let one = |(asked, span, seed): &(&Asked, Span, u64)| -> Result<(), StudyError> {
            Ok(journal.made(&asked.key, *seed, || flows(&asked.scenario, *seed, *span)).map(drop)?)
        };
        let all: Vec<_> = self.to_do(journal).into_iter().map(|it| (it.asked, it.trial.case.span(), it.seed)).collect();
        in_parallel(&all, jobs, done, &one).map(|_: Vec<()>| ())
    }

    /// Says in what world the runs are made.
    fn world(&self) -> String {
        match &self.candidate.peer {
            None => "All runs are simulated.".to_owned(),
            Some(peer) => format!(
                "All runs are in real time, over emulated links between hosts of {}; standard controls and competitors \
                 are its own.",
                peer.kernel.release
            ),
        }
    }

    /// Returns the names of the cases of which nothing is run in real time, with the reasons.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, &str)> {
        self.trials.iter().filter_map(|trial| Some((trial.case.short(), trial.left_out.as_deref()?)))
    }

    /// Returns the runs that the journal does not have, for whoever makes them in real time. Those of the candidate
    /// come first in each condition.
    pub fn live_runs(&self, journal: &Journal<Flows>) -> Vec<LiveRun<'_>> {
        self.to_do(journal).into_iter().map(Todo::live).collect()
    }

    fn all(&self) -> impl Iterator<Item = Todo<'_>> {
        self.trials.iter().flat_map(|trial| {
            let of_cell = |cell| Cell::all(cell).map(move |asked| (cell, asked));
            trial
                .cells
                .iter()
                .flat_map(of_cell)
                .flat_map(move |(cell, asked)| (1..=trial.seeds).map(move |seed| Todo { trial, cell, asked, seed }))
        })
    }

    /// Returns the runs that are not in the journal, each once: cells share runs of standard controls.
    fn to_do(&self, journal: &Journal<Flows>) -> Vec<Todo<'_>> {
        let mut known = BTreeSet::new();
        let mut missing: Vec<Todo<'_>> = self.all().filter(|it| !journal.has(&it.asked.key, it.seed)).collect();
        missing.retain(|&Todo { asked, seed, .. }| known.insert((&asked.key, seed)));
        missing
    }

    /// Judges all cases when the runs are made. `command` makes the command that repeats the evaluation.
    pub fn result(&self, journal: &Journal<Flows>, command: &Repeat<'_>) -> Evaluation {
        assert_eq!(self.missing(journal), 0, "an evaluation is judged when its runs are made");
        // The simulator repeats a single run of its own.
        let repeat = self.candidate.peer.as_ref().map(|_| command);
        let row = |trial: &Trial| judge::row(trial, journal, self.quick, repeat);
        let mut rows: Vec<Row> = self.trials.iter().map(row).collect();
        rows.extend(self.suite.file.text.iter().map(judge::text));
        // In the order of the document; a matter of words follows what is measured in its section.
        rows.sort_by_key(|row| row.section.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>());
        let file = &self.suite.file;
        let runs: BTreeSet<_> = self.all().map(|it| (&it.asked.key, it.seed)).collect();
        let late = |(key, seed): &(&String, u64)| {
            let faults = journal.get(key, *seed).map_or_else(Vec::new, |flows| flows.faults);
            (!faults.is_empty()).then(|| faults.join("; "))
        };
        let testbed =
            self.candidate.peer.clone().map(|peer| OnTestbed { peer, late: runs.iter().filter_map(late).collect() });
        Evaluation {
            suite: self.suite.name.clone(),
            title: file.title.clone(),
            source: file.source.clone(),
            about: format!("{} {}", file.about, self.world()),
            control: match &self.candidate.peer {
                Some(peer) => peer.name(&self.candidate.control),
                None => self.candidate.control.clone(),
            },
            scheduler: self.candidate.scheduler.clone(),
            sets: self.candidate.sets.clone(),
            testbed,
            quick: self.quick,
            command: command(None),
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
        let left_out = candidate.peer.as_ref().and_then(|_| live::hidden(case));
        let mut trial =
            Trial { case: case.clone(), cells: Vec::new(), not_run: Vec::new(), left_out, seeds: case.seeds(quick) };
        if trial.left_out.is_some() {
            return Ok(trial);
        }
        let mut obstacles = BTreeSet::new();
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
                let mut cell = Cell::new(case, candidate, &condition, *rival, catalogue)?;
                match candidate.peer.as_ref().and_then(|peer| cell.fit(peer)) {
                    None => trial.cells.push(cell),
                    Some(reason) => {
                        let beside = rival.map(|rival| format!(" beside {rival}")).unwrap_or_default();
                        trial.not_run.push(format!("{}{beside}: {reason}", cell.condition));
                        obstacles.insert(reason);
                    }
                }
            }
        }
        if trial.cells.is_empty() && !obstacles.is_empty() {
            trial.left_out = Some(obstacles.into_iter().collect::<Vec<_>>().join("; "));
        }
        Ok(trial)
    }

    /// Returns the runs of a scenario of this case, seed by seed.
    pub(super) fn runs(&self, asked: &Asked, journal: &Journal<Flows>) -> Vec<Flows> {
        (1..=self.seeds).filter_map(|seed| journal.get(&asked.key, seed)).collect()
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
        let asked = |control: Option<&str>, own: &[String], more: &[String]| -> Result<Asked, ScenarioError> {
            let scenario = case.scenario(catalogue, &[&condition.sets[..], &beside, own, more].concat())?;
            let peer = candidate.peer.as_ref();
            let system = peer.map_or_else(String::new, |peer| peer.key(control.is_none()));
            let key = format!("{system}{} {}", scenario.digest, case.span().text());
            Ok(Asked { scenario, key, control: control.map(str::to_owned) })
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
                standards.push((name.to_owned(), asked(Some(name), &sets, &more)?));
            }
        }
        let solo = match (rival, rivals) {
            (Some(rival), Some(rivals)) if case.criteria.iter().any(|it| it.table.harm) => {
                let sets = [format!("host.congestion={}", value(rival))];
                Some(asked(Some(rival), &sets, &filled(&rivals.solo, rival))?)
            }
            _ => None,
        };
        let under_test = asked(candidate.sender(), &candidate.sets(), &[])?;
        let context = Context { stop_s: under_test.scenario.stop().as_secs_f64(), ..condition.context };
        Ok(Cell {
            condition: condition.name.clone(),
            rival: rival.map(str::to_owned),
            context,
            candidate: under_test,
            standards,
            solo,
        })
    }

    /// Leaves out standard controls that the kernel lacks. Returns the reason why the cell cannot be run in real time
    /// all the same, if there is one.
    fn fit(&mut self, peer: &Peer) -> Option<String> {
        self.standards.retain(|(name, _)| peer.lacks(name).is_none());
        let competing = self.candidate.scenario.competing().iter().find_map(|control| peer.lacks(control));
        live::obstacle(&self.candidate.scenario, &self.context, peer).or(competing)
    }

    fn all(&self) -> impl Iterator<Item = &Asked> {
        [&self.candidate].into_iter().chain(self.standards.iter().map(|(_, it)| it)).chain(&self.solo)
    }
}

impl Asked {
    /// Returns the command that repeats the run with this seed in the simulator.
    pub(super) fn command(&self, seed: u64) -> String {
        self.scenario.origin.command(seed)
    }
}

/// Run of a plan.
#[derive(Clone, Copy)]
struct Todo<'a> {
    trial: &'a Trial,
    cell: &'a Cell,
    asked: &'a Asked,
    seed: u64,
}

impl<'a> Todo<'a> {
    fn live(self) -> LiveRun<'a> {
        LiveRun {
            case: self.trial.case.short(),
            about: self.about(),
            scenario: &self.asked.scenario,
            span: self.trial.case.span(),
            seed: self.seed,
            control: self.asked.control.as_deref().map(kernel_name),
            key: self.asked.key.clone(),
        }
    }

    /// Returns words that tell the run from the others of its case.
    fn about(&self) -> String {
        let Cell { condition, rival, candidate, solo, .. } = self.cell;
        let beside = rival.as_ref().map(|rival| format!("beside {rival}"));
        let is = |other: &Asked| std::ptr::eq(self.asked, other);
        let control = self.asked.control.as_deref().unwrap_or_default();
        let sender = match solo {
            Some(solo) if is(solo) => Some(format!("{control} alone")),
            _ if is(candidate) => None,
            _ => Some(format!("{control} in its place")),
        };
        let parts =
            [(!condition.is_empty()).then(|| condition.clone()), beside, sender, Some(format!("seed {}", self.seed))];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}
