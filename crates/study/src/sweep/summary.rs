//! Summary of the rows of a sweep. It reads condition by condition, and keeps one or two numbers per system of each.

use super::axis::AxisInfo;
use super::row::{Role, Row, RowDigest};
use super::score::{SLOWER, Score, Trials, geometric_mean, quantile, scores};
use super::store::{Manifest, Parts, Store, StoreError, SystemInfo};
use super::versus::Share;
use crate::rank::{Condition, is_oracle};
use anabranch_lab::pairwise::Ratio;
use anabranch_lab::statistic::Cell;
use serde::Serialize;
use std::collections::BTreeMap;

/// Summary of a sweep: the systems, the one nearest to the best first.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Summary {
    /// Kind of campaign that made the directory, such as `sweep`.
    pub kind: String,
    /// Command that began it.
    pub command: String,
    /// Version and build that made the runs.
    pub made_by: String,
    /// Digest of the campaign.
    pub digest: String,
    /// Number of conditions.
    pub conditions: u64,
    /// Number of conditions that have been run.
    pub done: u64,
    /// Number of these that are one sample each: with one seed, or with seeds that all gave the same times.
    pub one_sample: u64,
    /// True if all of them are, and none of their settings is drawn: the means over them have no interval.
    pub fixed: bool,
    /// Number of rows, one per run.
    pub rows: u64,
    /// SHA-256 of all rows in order: equal for equal results, however the work was divided.
    pub rows_digest: String,
    /// Settings that vary.
    pub axes: Vec<AxisInfo>,
    /// Results of the systems.
    pub standings: Vec<Standing>,
    /// Heat map of the first two axes, if there are two.
    pub heat: Option<HeatMap>,
    /// Number of runs that broke.
    pub failures: u64,
    /// First runs that broke.
    pub failed: Vec<Failed>,
    /// Files that do not count, each with the reason.
    pub set_aside: Vec<(String, String)>,
}

/// Results of a system over all conditions in which no run broke.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Standing {
    /// Rank, from 1 for the best.
    pub rank: usize,
    /// Name, with its policy and parameters or its settings.
    #[serde(flatten)]
    pub system: SystemInfo,
    /// True for an oracle, which knows more than a host can; it does not count as another system's best other.
    pub oracle: bool,
    /// Number of conditions behind these results.
    pub conditions: usize,
    /// Time over that of the best of all others: geometric mean over conditions. `None` without others.
    pub to_best: Option<Ratio>,
    /// Share of conditions in which it is at most 2 % slower than the best of all others.
    pub within_2: Option<Share>,
    /// Share of conditions in which it is at most 5 % slower.
    pub within_5: Option<Share>,
    /// Share of conditions in which it is at most 20 % slower.
    pub within_20: Option<Share>,
    /// Percentiles of the ratio over conditions, from 0 to 100: to the best of all others, or to plain TCP if there are
    /// none.
    pub regret: Vec<f64>,
    /// Time over that of plain TCP on the best single path: geometric mean over conditions.
    pub to_single: Option<Ratio>,
    /// Share of conditions in which it is more than 5 % slower than that.
    pub slower_than_single: Option<Share>,
    /// Bytes sent again on another subflow over bytes sent: mean over conditions.
    pub repeated: f64,
    /// Number of runs that did not finish.
    pub unfinished: usize,
    /// Conditions with the largest ratios, the largest first.
    pub worst: Vec<Loss>,
}

/// Condition in which a system is far behind.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Loss {
    /// Number of the condition.
    pub condition: u64,
    /// Name of its scenario.
    pub scenario: String,
    /// Axes with their values.
    pub at: Vec<(String, String)>,
    /// Time over that of the best of all others; over that of plain TCP if there are none.
    pub ratio: f64,
    /// Name of the best other.
    pub best: Option<String>,
    /// Command that repeats its runs.
    pub command: String,
    /// Command that repeats the runs of the best other.
    pub best_command: Option<String>,
}

/// Run that broke.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Failed {
    /// Number of the condition.
    pub condition: u64,
    /// Name of the system or of the path.
    pub name: String,
    /// Seed of the run.
    pub seed: u64,
    /// The reason.
    pub problem: String,
    /// Command that repeats the run.
    pub command: String,
}

/// Geometric mean of the ratio over two axes.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct HeatMap {
    /// Names of the axes, with their units.
    pub axes: [String; 2],
    /// Names of the cells on each axis.
    pub bins: [Vec<String>; 2],
    /// Cells by system, in the order of the standings.
    pub cells: Vec<Vec<HeatCell>>,
}

/// Cell of a heat map that has conditions.
#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
pub struct HeatCell {
    /// Index on each axis.
    pub at: [usize; 2],
    /// Geometric mean of the ratio.
    pub ratio: f64,
    /// Number of conditions in it.
    pub conditions: usize,
}

/// Number of conditions that are listed as the worst, and of runs that broke.
const LISTED: usize = 10;
/// Number of cells on an axis of a heat map.
const BINS: usize = 8;
/// Maximum number of values that each have a cell of their own.
const OWN_CELLS: usize = 12;

/// Results of one system in the conditions read so far.
#[derive(Default)]
struct Tally {
    to_best: Vec<f64>,
    to_single: Vec<f64>,
    repeated: f64,
    unfinished: usize,
    worst: Vec<Loss>,
    /// Sum of logarithms and number of conditions, by cell.
    heat: BTreeMap<[usize; 2], (f64, usize)>,
}

impl Summary {
    /// Summarises the parts of a directory.
    ///
    /// # Errors
    ///
    /// If the directory or a part cannot be read.
    pub fn of(store: &Store, manifest: &Manifest) -> Result<Summary, StoreError> {
        let parts = store.parts(&manifest.digest)?;
        Summary::of_parts(store, manifest, &parts, &mut |_| {})
    }

    /// Summarises these parts, and calls `each` with the rows of each condition.
    ///
    /// # Errors
    ///
    /// If a part cannot be read.
    pub fn of_parts(
        store: &Store,
        manifest: &Manifest,
        parts: &Parts,
        each: &mut dyn FnMut(&[Row]),
    ) -> Result<Summary, StoreError> {
        let oracles: Vec<bool> = manifest.systems.iter().map(|system| is_oracle(&system.name)).collect();
        let layout = Store::layout(manifest);
        let axes = Binned::of(&manifest.axes);
        let mut tallies: Vec<Tally> = manifest.systems.iter().map(|_| Tally::default()).collect();
        let (mut done, mut rows, mut failures, mut failed) = (0, 0, 0, Vec::new());
        let (mut one_sample, mut whole) = (0, 0);
        let mut drawn = manifest.axes.iter().any(|axis| axis.drawn);
        let mut digest = RowDigest::default();
        store.read(parts, &mut |condition| {
            done += 1;
            rows += condition.len() as u64;
            condition.iter().for_each(|row| digest.add(&row.cells(&layout)));
            each(condition);
            for row in condition.iter().filter(|row| row.result.is_err()) {
                failures += 1;
                if failed.len() < LISTED {
                    failed.extend(Failed::of(row));
                }
            }
            let Ok(trials) = Trials::of(condition) else { return };
            if trials.systems.len() != tallies.len() {
                return;
            }
            whole += 1;
            one_sample += u64::from(trials.is_one_sample());
            drawn |= Condition::named(&condition[0].scenario).is_some();
            let cell = axes.as_ref().and_then(|axes| axes.cell(&condition[0].axes));
            let all = scores(&trials, &oracles);
            for (n, score) in all.iter().enumerate() {
                tallies[n].add(n, score, cell, condition, manifest);
            }
        })?;
        let mut order: Vec<usize> = (0..tallies.len()).collect();
        let key = |n: &usize| tallies[*n].mean();
        // Stable: equal ones stay in the order asked for.
        order.sort_by(|a, b| key(a).total_cmp(&key(b)));
        let fixed = whole > 0 && one_sample == whole && !drawn;
        let standing = |(rank, n): (usize, &usize)| {
            let standing = tallies[*n].standing(rank + 1, &manifest.systems[*n], oracles[*n]);
            if fixed { standing.without_intervals() } else { standing }
        };
        let set_aside = parts.set_aside.iter().map(|(path, why)| (path.display().to_string(), why.clone()));
        Ok(Summary {
            kind: manifest.kind.clone(),
            command: manifest.command.clone(),
            made_by: format!("{} (build {})", manifest.version, manifest.build),
            digest: manifest.digest.clone(),
            conditions: manifest.conditions,
            done,
            one_sample,
            fixed,
            rows,
            rows_digest: digest.finish(),
            axes: manifest.axes.clone(),
            standings: order.iter().enumerate().map(standing).collect(),
            heat: axes.map(|axes| axes.map(order.iter().map(|n| &tallies[*n]))),
            failures,
            failed,
            set_aside: set_aside.collect(),
        })
    }
}

impl Standing {
    /// Returns the same without intervals.
    fn without_intervals(self) -> Standing {
        let share = |it: Option<Share>| it.map(Share::without_interval);
        Standing {
            to_best: self.to_best.map(Ratio::without_interval),
            to_single: self.to_single.map(Ratio::without_interval),
            within_2: share(self.within_2),
            within_5: share(self.within_5),
            within_20: share(self.within_20),
            slower_than_single: share(self.slower_than_single),
            ..self
        }
    }
}

impl Failed {
    fn of(row: &Row) -> Option<Failed> {
        let problem = row.result.as_ref().err()?.clone();
        let (name, command) = (row.name.clone(), row.command.clone());
        Some(Failed { condition: row.condition, name, seed: row.seed, problem, command })
    }
}

impl Tally {
    fn add(&mut self, n: usize, score: &Score, cell: Option<[usize; 2]>, rows: &[Row], manifest: &Manifest) {
        self.to_best.extend(score.to_best);
        self.to_single.extend(score.to_single);
        self.repeated += score.repeated;
        self.unfinished += score.unfinished;
        let Some(ratio) = score.to_best.or(score.to_single) else { return };
        if let Some(cell) = cell {
            let (sum, conditions) = self.heat.entry(cell).or_default();
            *sum += libm::log(ratio);
            *conditions += 1;
        }
        if self.worst.len() == LISTED && self.worst.last().is_some_and(|last| last.ratio >= ratio) {
            return;
        }
        let name = |n: usize| manifest.systems[n].name.as_str();
        let command = |n: usize| {
            let own = || rows.iter().filter(|row| row.role == Role::System && row.name == name(n));
            let first = own().next()?;
            Some(match own().count() {
                1 => first.command.clone(),
                repeat => format!("{} --repeat {repeat}", first.command),
            })
        };
        let shown = |(axis, cell): (&AxisInfo, &Cell)| (axis.name.clone(), cell.to_string());
        let loss = Loss {
            condition: rows[0].condition,
            scenario: rows[0].scenario.clone(),
            at: manifest.axes.iter().zip(&rows[0].axes).map(shown).collect(),
            ratio,
            best: score.best.map(|best| name(best).to_owned()),
            command: command(n).unwrap_or_default(),
            best_command: score.best.and_then(command),
        };
        // Inserted behind equal ones: of these the first condition stays in front.
        let place = self.worst.partition_point(|other| other.ratio >= ratio);
        self.worst.insert(place, loss);
        self.worst.truncate(LISTED);
    }

    /// Returns the mean logarithm of its ratios, which ranks it.
    fn mean(&self) -> f64 {
        let ratios = if self.to_best.is_empty() { &self.to_single } else { &self.to_best };
        ratios.iter().map(|ratio| libm::log(*ratio)).sum::<f64>() / ratios.len() as f64
    }

    fn standing(&self, rank: usize, system: &SystemInfo, oracle: bool) -> Standing {
        let within = |limit: f64| Share::of(self.to_best.iter().map(|ratio| *ratio <= limit));
        let mut sorted = if self.to_best.is_empty() { self.to_single.clone() } else { self.to_best.clone() };
        sorted.sort_by(f64::total_cmp);
        let conditions = sorted.len();
        let regret = if sorted.is_empty() { Vec::new() } else { (0..=100).map(|it| quantile(&sorted, it)).collect() };
        Standing {
            rank,
            system: system.clone(),
            oracle,
            conditions,
            to_best: geometric_mean(self.to_best.iter().copied()),
            within_2: within(1.02),
            within_5: within(1.05),
            within_20: within(1.2),
            regret,
            to_single: geometric_mean(self.to_single.iter().copied()),
            slower_than_single: Share::of(self.to_single.iter().map(|ratio| *ratio > SLOWER)),
            repeated: self.repeated / conditions.max(1) as f64,
            unfinished: self.unfinished,
            worst: self.worst.clone(),
        }
    }
}

/// First two axes divided into cells.
struct Binned {
    names: [String; 2],
    bins: [Bins; 2],
}

enum Bins {
    /// One cell for each value.
    Each(Vec<String>),
    /// Equal parts of the range, or of the range of logarithms.
    Equal { low: f64, high: f64, log: bool },
}

impl Binned {
    /// Divides the first two axes.
    fn of(axes: &[AxisInfo]) -> Option<Binned> {
        let [first, second, ..] = axes else { return None };
        let bins = |axis: &AxisInfo| match axis.range {
            Some([low, high]) if axis.listed.is_empty() || axis.listed.len() > OWN_CELLS => {
                Bins::Equal { low, high, log: axis.log }
            }
            _ => Bins::Each(axis.listed.clone()),
        };
        Some(Binned { names: [first.name.clone(), second.name.clone()], bins: [bins(first), bins(second)] })
    }

    fn cell(&self, axes: &[Cell]) -> Option<[usize; 2]> {
        let [first, second, ..] = axes else { return None };
        Some([self.bins[0].place(first)?, self.bins[1].place(second)?])
    }

    fn map<'a>(self, tallies: impl Iterator<Item = &'a Tally>) -> HeatMap {
        let cell = |(at, (sum, conditions)): (&[usize; 2], &(f64, usize))| HeatCell {
            at: *at,
            ratio: libm::exp(sum / *conditions as f64),
            conditions: *conditions,
        };
        HeatMap {
            cells: tallies.map(|tally| tally.heat.iter().map(cell).collect()).collect(),
            bins: self.bins.map(|bins| bins.names()),
            axes: self.names,
        }
    }
}

impl Bins {
    fn place(&self, cell: &Cell) -> Option<usize> {
        match (self, cell) {
            (Bins::Each(names), cell) => {
                let shown = cell.to_string();
                names.iter().position(|name| *name == shown)
            }
            (Bins::Equal { low, high, log }, Cell::Number(x)) => {
                let share = match log {
                    true => libm::log(x / low) / libm::log(high / low),
                    false => (x - low) / (high - low),
                };
                Some(((share * BINS as f64) as usize).min(BINS - 1))
            }
            _ => None,
        }
    }

    fn names(self) -> Vec<String> {
        match self {
            Bins::Each(names) => names,
            Bins::Equal { low, high, log } => {
                let edge = |n: usize| {
                    let share = n as f64 / BINS as f64;
                    let x =
                        if log { low * libm::exp(share * libm::log(high / low)) } else { low + share * (high - low) };
                    format!("{x:.2e}").parse::<f64>().expect("what was formatted as a number is one")
                };
                (0..BINS).map(|n| format!("{} to {}", edge(n), edge(n + 1))).collect()
            }
        }
    }
}
