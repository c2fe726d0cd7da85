//! Campaign: numbered conditions, the systems in each, and the runs of any range of conditions.
//!
//! A condition is the unit of work: one process runs all its systems and seeds, so that the number of its repetitions
//! depends on nothing else. Its rows are a function of build, campaign and number.

use super::axis::{Axis, AxisInfo, Value};
use super::draw::Draws;
use super::row::{Layout, Numbers, Role, Row, RowDigest, Trial};
use super::store::{Manifest, SystemInfo};
use super::work::Work;
use crate::rank::Condition;
use crate::study::metric::Metric;
use anabranch_lab::columnar::Writer;
use anabranch_lab::format::CAMPAIGN;
use anabranch_lab::statistic::Cell;
use anabranch_lab::stats::Estimate;
use anabranch_lab::{Keep, run};
use anabranch_lab::{VERSION, build, threads};
use anabranch_policy::Catalogue;
use anabranch_scenario::{Origin, Scenario, ScenarioError};
use anabranch_units::hex;
use parquet::errors::ParquetError;
use rayon::prelude::*;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::ops::Range;
use std::sync::Arc;

/// Systems, and the conditions in which they are compared.
pub struct Campaign {
    /// Purpose in one line.
    pub(super) about: Option<String>,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) source: Source,
    /// Overrides of every condition, each `KEY=VALUE`.
    pub(super) sets: Vec<String>,
    pub(super) axes: Vec<Axis>,
    /// Drawn points of the axes, and their number.
    pub(super) draws: Option<(Draws, u64)>,
    pub(super) systems: Vec<System>,
    pub(super) baselines: Baselines,
    /// Metrics with their names.
    pub(super) metrics: Vec<(String, Metric)>,
    pub(super) repeat: Repeat,
    pub(super) most_events: Option<u64>,
    /// Additional text that distinguishes it from other campaigns.
    pub(super) mark: String,
    /// Digests of the scenarios below the conditions, in order.
    pub(super) base: Vec<String>,
    /// Digest of all that affects its rows.
    pub(super) digest: String,
}

/// Runs on each path beside those of the systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baselines {
    /// No baseline runs.
    None,
    /// Plain TCP.
    Tcp,
    /// Plain TCP, and the path with all others as its backups.
    All,
}

/// A baseline on the path of an index.
type Baseline = (Role, fn(&Scenario, usize) -> Scenario);

const BASELINES: [Baseline; 2] = [(Role::SinglePath, Scenario::single_path), (Role::Backups, Scenario::with_backups)];

/// Scenarios below the conditions.
pub(super) enum Source {
    /// Scenario by its name or file.
    Scenario(String),
    /// Scenario inside a sweep file, with the file's name and text.
    Inline { name: String, text: String },
    /// Drawn conditions of this seed, from 0 up to this number.
    Drawn { seed: u64, count: u64 },
    /// Given conditions.
    Conditions(Vec<Condition>),
}

/// System of a campaign.
pub(super) struct System {
    pub(super) name: String,
    /// Name of its scheduler; `None` for a system that overrides settings of the condition instead.
    pub(super) scheduler: Option<String>,
    pub(super) sets: Vec<String>,
    /// The policy with its parameters, or the settings.
    pub(super) about: String,
}

/// Seeds of a condition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Repeat {
    /// The first seed.
    pub(super) seed: u64,
    /// Number of seeds in a condition that draws from them.
    pub(super) count: usize,
    /// Half width of the interval at which no more seeds are run, as a share.
    pub(super) until: Option<f64>,
    /// Maximum number of seeds.
    pub(super) most: usize,
}

/// System or baseline that runs in a condition.
struct Entrant {
    role: Role,
    name: String,
    origin: Origin,
    /// Scenario, or the error that prevents it.
    scenario: Result<Scenario, String>,
}

impl Campaign {
    /// Returns the number of conditions.
    pub fn conditions(&self) -> u64 {
        let base = match &self.source {
            Source::Scenario(_) | Source::Inline { .. } => 1,
            Source::Drawn { count, .. } => *count,
            Source::Conditions(all) => all.len() as u64,
        };
        base * self.points()
    }

    /// Returns the number of points of the axes.
    fn points(&self) -> u64 {
        let listed: u64 = self.axes.iter().filter(|axis| !axis.is_drawn()).map(Axis::len).product();
        listed * self.draws.as_ref().map_or(1, |(_, count)| *count)
    }

    /// Returns the SHA-256 of all that affects its rows, the build included.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Adds `mark` to the identity of the campaign: a digest of code that is not part of the build.
    pub fn marked(mut self, mark: &str) -> Campaign {
        mark.clone_into(&mut self.mark);
        self.identify();
        self
    }

    /// Returns the columns of its rows.
    pub fn layout(&self) -> Layout {
        Layout {
            version: VERSION.to_owned(),
            build: build().to_owned(),
            axes: self.axes.iter().map(|axis| (axis.name.clone(), axis.kind())).collect(),
            metrics: self.metrics.iter().map(|(name, _)| name.clone()).collect(),
        }
    }

    /// Returns the planned number of runs. Conditions that are repeated until an interval is narrow have more;
    /// conditions that draw nothing have fewer.
    pub fn runs(&self) -> u64 {
        self.conditions() * (self.systems.len() * self.repeat.count) as u64
    }

    /// Returns the conditions in part `number` of `of` equal parts; `number` counts from 1.
    pub fn share(&self, number: u64, of: u64) -> Range<u64> {
        let at = |n: u64| (u128::from(self.conditions()) * u128::from(n) / u128::from(of.max(1))) as u64;
        at(number.saturating_sub(1))..at(number.min(of))
    }

    /// Returns the manifest of a directory with its results, made by `command`; `text` is the sweep file.
    pub fn manifest(&self, kind: &str, command: &str, text: &str) -> Manifest {
        Manifest {
            format: CAMPAIGN.name.to_owned(),
            format_version: CAMPAIGN.version,
            version: VERSION.to_owned(),
            build: build().to_owned(),
            kind: kind.to_owned(),
            digest: self.digest.clone(),
            about: self.about.clone(),
            command: command.to_owned(),
            conditions: self.conditions(),
            axes: self.axes.iter().map(Axis::info).collect(),
            systems: self.systems.iter().map(System::info).collect(),
            baselines: self.baselines != Baselines::None,
            metrics: self.metrics.iter().map(|(name, _)| name.clone()).collect(),
            text: text.to_owned(),
        }
    }

    /// Runs these conditions. A run that breaks is a row with the reason. `None` if the work was stopped: finished runs
    /// are discarded.
    pub fn run(&self, range: Range<u64>, work: &Work<'_>) -> Option<Vec<Row>> {
        let all: Vec<u64> = range.collect();
        let one = |number: &u64| {
            if work.is_stopped() {
                return Vec::new();
            }
            let rows = self.rows(*number, work);
            (work.done)();
            rows
        };
        let rows = match rayon::ThreadPoolBuilder::new().num_threads(threads(work.jobs, usize::MAX)).build() {
            Ok(pool) => pool.install(|| all.par_iter().flat_map_iter(one).collect()),
            // Without threads, sequential runs give the same rows.
            Err(_) => all.iter().flat_map(one).collect(),
        };
        // The flag is checked at the end, so that no run that it ended is among the rows.
        (!work.is_stopped()).then_some(rows)
    }

    /// Encodes the rows of the range as the bytes of a part.
    ///
    /// # Errors
    ///
    /// If the writer refuses a row, which would be a bug of ours.
    pub fn part(&self, range: &Range<u64>, rows: &[Row]) -> Result<Vec<u8>, ParquetError> {
        let layout = self.layout();
        let cells: Vec<Vec<Cell>> = rows.iter().map(|row| row.cells(&layout)).collect();
        let mut digest = RowDigest::default();
        cells.iter().for_each(|row| digest.add(row));
        let said = Manifest::of_part(&self.digest, range, digest.finish());
        let mut writer = Writer::new(Vec::new(), &layout.columns(), &said)?;
        writer.group(&cells)?;
        writer.finish()
    }

    /// Returns the value of each axis in this condition.
    fn values(&self, number: u64) -> Vec<Value> {
        let mut rest = number % self.points().max(1);
        let drawn = self.draws.as_ref().map(|(draws, count)| {
            let point = rest % count;
            rest /= count;
            (draws, point)
        });
        let mut place = self.axes.iter().filter(|axis| axis.is_drawn()).count();
        // The last axis varies fastest.
        let one = |axis: &Axis| match (axis.is_drawn(), &drawn) {
            (true, Some((draws, point))) => {
                place -= 1;
                axis.drawn(draws.coordinate(*point, place, &axis.name))
            }
            _ => {
                let at = rest % axis.len();
                rest /= axis.len();
                axis.listed(at).unwrap_or_else(|| axis.drawn(0.0))
            }
        };
        let mut values: Vec<Value> = self.axes.iter().rev().map(one).collect();
        values.reverse();
        values
    }

    /// Returns the scenario below this condition, by name.
    fn origin(&self, number: u64, sets: Vec<String>) -> Origin {
        let base = number / self.points().max(1);
        let scenario = match &self.source {
            Source::Scenario(name) | Source::Inline { name, .. } => name.clone(),
            Source::Drawn { seed, .. } => Condition::drawn(*seed, base).name(),
            Source::Conditions(all) => all[base as usize].name(),
        };
        Origin { scenario, sets }
    }

    /// Returns the scenario of a condition with these overrides.
    pub(super) fn scenario(&self, number: u64, sets: &[String]) -> Result<Scenario, ScenarioError> {
        let base = number / self.points().max(1);
        let scenario = match &self.source {
            Source::Scenario(name) => crate::load(&self.catalogue, name, sets),
            Source::Inline { name, text } => super::load::inline(&self.catalogue, name, text, sets),
            Source::Drawn { seed, .. } => Condition::drawn(*seed, base).scenario(&self.catalogue, sets),
            Source::Conditions(all) => all[base as usize].scenario(&self.catalogue, sets),
        }?;
        Ok(match self.most_events {
            Some(events) => scenario.with_budget(events),
            None => scenario,
        })
    }

    /// Returns all rows of a condition.
    fn rows(&self, number: u64, work: &Work<'_>) -> Vec<Row> {
        let values = self.values(number);
        let axes = || self.axes.iter().zip(&values);
        let cells: Vec<Cell> = axes().map(|(axis, value)| axis.cell(value)).collect();
        let mut sets = self.sets.clone();
        sets.extend(axes().flat_map(|(axis, value)| axis.sets(value)));
        let origin = self.origin(number, sets.clone());
        let base = self.scenario(number, &sets);
        let digest = base.as_ref().map_or(String::new(), |base| base.digest.clone());
        let mut entrants = self.entrants(number, &origin, base.as_ref().map_err(in_words));
        if let Some(stop) = work.stop {
            let stoppable = |it: Entrant| Entrant { scenario: it.scenario.map(|it| it.stoppable(stop)), ..it };
            entrants = entrants.into_iter().map(stoppable).collect();
        }
        // Without a scenario there is nothing to measure: the first row of each system has the reason.
        let is_random = entrants.iter().any(|it| it.scenario.as_ref().is_ok_and(Scenario::is_random));
        let mut results: Vec<Vec<Result<Numbers, String>>> = entrants.iter().map(|_| Vec::new()).collect();
        let mut wanted = if is_random { self.repeat.count } else { 1 };
        loop {
            let made = results.first().map_or(0, Vec::len);
            let pairs: Vec<(usize, usize)> =
                (0..entrants.len()).flat_map(|it| (made..wanted).map(move |n| (it, n))).collect();
            let one = |(it, n): &(usize, usize)| self.measure(&entrants[*it], base.as_ref().ok(), self.seed(*n));
            let round: Vec<Result<Numbers, String>> = pairs.par_iter().map(one).collect();
            pairs.iter().zip(round).for_each(|((it, _), result)| results[*it].push(result));
            match self.repeat.until {
                Some(until) if is_random && wanted < self.repeat.most && !is_narrow(&entrants, &results, until) => {
                    wanted = (2 * wanted).min(self.repeat.most);
                }
                _ => break,
            }
        }
        let row = |entrant: &Entrant, n: usize, result: Result<Numbers, String>| Row {
            condition: number,
            scenario: origin.scenario.clone(),
            digest: digest.clone(),
            axes: cells.clone(),
            role: entrant.role,
            name: entrant.name.clone(),
            seed: self.seed(n),
            result,
            command: entrant.origin.command(self.seed(n)),
        };
        let of_entrant = |(entrant, results): (&Entrant, Vec<_>)| {
            results.into_iter().enumerate().map(|(n, result)| row(entrant, n, result)).collect::<Vec<_>>()
        };
        entrants.iter().zip(results).flat_map(of_entrant).collect()
    }

    fn seed(&self, n: usize) -> u64 {
        self.repeat.seed.wrapping_add(n as u64)
    }

    /// Returns the systems in the order of the campaign, then each baseline on each path.
    fn entrants(&self, number: u64, origin: &Origin, base: Result<&Scenario, String>) -> Vec<Entrant> {
        let system = |system: &System| {
            let sets = [origin.sets.clone(), system.sets.clone()].concat();
            let scenario = match (&base, &system.scheduler) {
                (Err(problem), _) => Err(problem.clone()),
                (Ok(base), Some(scheduler)) => base.with_scheduler(scheduler).map_err(|error| in_words(&error)),
                (Ok(_), None) => self.scenario(number, &sets).map_err(|error| in_words(&error)),
            };
            let own = match &scenario {
                Ok(scenario) => scenario.origin.clone(),
                Err(_) => Origin { scenario: origin.scenario.clone(), sets },
            };
            Entrant { role: Role::System, name: system.name.clone(), origin: own, scenario }
        };
        let mut all: Vec<Entrant> = self.systems.iter().map(system).collect();
        let baselines: &[Baseline] = match self.baselines {
            Baselines::None => &[],
            Baselines::Tcp => &BASELINES[..1],
            Baselines::All => &BASELINES,
        };
        for (role, baseline) in baselines {
            let Ok(base) = &base else { break };
            for (n, name) in base.paths().into_iter().enumerate() {
                let scenario = baseline(base, n);
                all.push(Entrant { role: *role, name, origin: scenario.origin.clone(), scenario: Ok(scenario) });
            }
        }
        all
    }

    fn measure(&self, entrant: &Entrant, base: Option<&Scenario>, seed: u64) -> Result<Numbers, String> {
        let scenario = entrant.scenario.as_ref().map_err(Clone::clone)?;
        let measured = run(scenario, seed, &Keep::default()).map_err(|error| error.problem)?.measured;
        Ok(Numbers {
            trial: Trial::of(base.unwrap_or(scenario), &measured),
            metrics: self.metrics.iter().map(|(_, metric)| metric.of(&measured)).collect(),
        })
    }
}

impl System {
    fn info(&self) -> SystemInfo {
        SystemInfo { name: self.name.clone(), about: self.about.clone() }
    }

    /// Identifies a system: its name, policy and settings.
    pub(super) fn identity(&self) -> serde_json::Value {
        json!({ "name": self.name, "about": self.about, "sets": self.sets })
    }
}

impl Campaign {
    /// Computes the digest of all that affects the rows.
    pub(super) fn identify(&mut self) {
        let (method, count) = match &self.draws {
            Some((draws, count)) => (draws.identity(), *count),
            None => (serde_json::Value::Null, 0),
        };
        let Repeat { seed, count: seeds, until, most } = self.repeat;
        let content = json!({
            "format": Manifest::FORMAT,
            "build": format!("{VERSION} {}", build()),
            "base": self.base,
            "mark": self.mark,
            "drawn": if let Source::Drawn { seed, count } = self.source { json!([seed, count]) } else { json!(null) },
            "sets": self.sets,
            "axes": self.axes.iter().map(Axis::info).collect::<Vec<AxisInfo>>(),
            "draws": [method, json!(count)],
            "systems": self.systems.iter().map(System::identity).collect::<Vec<_>>(),
            "baselines": match self.baselines {
                Baselines::None => json!(false),
                Baselines::Tcp => json!(true),
                Baselines::All => json!("all"),
            },
            "metrics": self.metrics.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "repeat": json!([seed, seeds, until, most]),
            "most-events": self.most_events,
        });
        self.digest = hex(&Sha256::digest(content.to_string().as_bytes()));
    }
}

/// Formats the problem and the accepted values in a line.
fn in_words(error: &ScenarioError) -> String {
    match error.help() {
        Some(help) => format!("{error} ({help})"),
        None => error.to_string(),
    }
}

/// Returns true if the time of every system, relative to that of the fastest seed by seed, is known to ± `until`. A run
/// that broke ends the repetitions: more seeds would not help.
fn is_narrow(entrants: &[Entrant], results: &[Vec<Result<Numbers, String>>], until: f64) -> bool {
    let logarithms = |results: &Vec<Result<Numbers, String>>| -> Option<Vec<f64>> {
        results.iter().map(|result| Some(libm::log(result.as_ref().ok()?.trial.time_s))).collect()
    };
    let systems = entrants.iter().zip(results).filter(|(entrant, _)| entrant.role == Role::System);
    let Some(all) = systems.map(|(_, results)| logarithms(results)).collect::<Option<Vec<_>>>() else { return true };
    let mean = |times: &Vec<f64>| times.iter().sum::<f64>() / times.len() as f64;
    let Some(fastest) = all.iter().min_by(|a, b| mean(a).total_cmp(&mean(b))) else { return true };
    let enough = |times: &Vec<f64>| {
        let estimate = match all.len() {
            1 => Estimate::of(times),
            _ => Estimate::of_difference(times, fastest),
        };
        estimate.is_some_and(|it| it.is_one_sample() || it.half.is_some_and(|half| half <= libm::log1p(until)))
    };
    all.iter().all(enough)
}
