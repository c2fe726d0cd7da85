//! Tournament: every scheduler against every other, over several scenarios.
//!
//! For two schedulers, the ratio of their speeds is taken for each seed, since both met the same draws, and averaged as
//! logarithms: a geometric mean, which does not depend on the order of the two.

use crate::compare::{Comparison, Plan, REFERENCE};
use crate::stats::Estimate;
use crate::{Journal, KeepError, VERSION, build};
use anabranch_scenario::file::MeasureName;
use anabranch_scenario::{Chosen, Scenario, ScenarioError, Variant};
use serde::Serialize;

/// Runs that a tournament consists of.
pub struct Tournament {
    plans: Vec<Plan>,
}

/// Results of a tournament.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Standings {
    /// Version of Anabranch.
    pub version: &'static str,
    /// Digest of the program that made the runs.
    pub build: &'static str,
    /// Schedulers with their parameters, by wins minus losses, the best first.
    pub schedulers: Vec<Standing>,
    /// Results for each scenario, in the order asked for.
    pub scenarios: Vec<Bout>,
}

/// Result of a scheduler over all scenarios.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Standing {
    /// The scheduler with its parameters.
    #[serde(flatten)]
    pub scheduler: Variant,
    /// Number of pairs in which it was faster.
    pub won: usize,
    /// Number of pairs in which it was slower.
    pub lost: usize,
}

/// Results of all pairs over one scenario.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Bout {
    /// Name of the scenario.
    pub scenario: String,
    /// SHA-256 of the content of the scenario.
    pub digest: String,
    /// Measure that ranks: completion time or goodput.
    pub measure: &'static str,
    /// Seed of each repetition.
    pub seeds: Vec<u64>,
    /// Policies of the host that sends; each scheduler under test replaces its scheduler.
    pub policies: Chosen,
    /// Number of runs that did not finish.
    pub unfinished: usize,
    /// Each pair of schedulers once, in the order of the standings.
    pub pairs: Vec<Pair>,
}

/// Result of two schedulers over one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Pair {
    /// First scheduler.
    pub a: String,
    /// Second scheduler.
    pub b: String,
    /// Speed of `a` over that of `b`.
    pub speed: Ratio,
    /// The faster of the two, if the difference is significant.
    pub winner: Option<String>,
}

/// Geometric mean with its 95 % interval; a single repetition has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Ratio {
    /// The mean.
    pub mean: f64,
    /// Lower end of the 95 % interval.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval.
    pub high: Option<f64>,
}

/// Smallest relative difference of speed that counts; a smaller one is ignored even if it is significant.
pub const LEAST: f64 = 0.01;

impl Tournament {
    /// Plans a tournament of the named schedulers, or of all, over these scenarios; seed and repetitions are the
    /// scenarios' own unless given.
    pub fn new(
        scenarios: Vec<Scenario>,
        schedulers: &[String],
        seed: Option<u64>,
        repeat: Option<usize>,
    ) -> Result<Tournament, ScenarioError> {
        let plan = |scenario: Scenario| {
            let (seed, repeat) = (seed.unwrap_or(scenario.seed), repeat.unwrap_or(scenario.repeat));
            let schedulers = if schedulers.is_empty() { scenario.default_schedulers() } else { schedulers.to_vec() };
            Plan::between(scenario, &schedulers, seed, repeat)
        };
        Ok(Tournament { plans: scenarios.into_iter().map(plan).collect::<Result<_, _>>()? })
    }

    /// Returns the number of runs.
    pub fn len(&self) -> usize {
        self.plans.iter().map(Plan::len).sum()
    }

    /// Returns true if there are no runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of runs that are not in the journal.
    pub fn missing(&self, journal: &Journal) -> usize {
        self.plans.iter().map(|plan| plan.missing(journal)).sum()
    }

    /// Makes all runs on `jobs` threads. Calls `begin` with the name of each scenario, and `done` after each new run.
    /// Runs in the journal are taken from there; all others are kept in it.
    ///
    /// # Errors
    ///
    /// If a run breaks or cannot be kept.
    pub fn run(
        &self,
        journal: Option<&Journal>,
        jobs: usize,
        begin: &dyn Fn(&str),
        done: &(dyn Fn() + Sync),
    ) -> Result<Standings, KeepError> {
        let mut comparisons = Vec::new();
        for plan in &self.plans {
            begin(&plan.scenario.name);
            comparisons.push((plan, plan.run(journal, jobs, done)?));
        }
        Ok(standings(&comparisons))
    }
}

fn standings(comparisons: &[(&Plan, Comparison)]) -> Standings {
    let mut scenarios: Vec<Bout> = comparisons.iter().map(|(plan, comparison)| bout(plan, comparison)).collect();
    let schedulers = comparisons.first().map_or(Vec::new(), |(plan, _)| plan.described());
    let standing = |scheduler: Variant| {
        let (mut won, mut lost) = (0, 0);
        for pair in scenarios.iter().flat_map(|bout| &bout.pairs) {
            if pair.a == scheduler.name || pair.b == scheduler.name {
                won += usize::from(pair.winner.as_ref() == Some(&scheduler.name));
                lost += usize::from(pair.winner.as_ref().is_some_and(|winner| *winner != scheduler.name));
            }
        }
        Standing { scheduler, won, lost }
    };
    let mut schedulers: Vec<Standing> = schedulers.into_iter().map(standing).collect();
    // Stable: equal ones stay in the order of the registry.
    schedulers.sort_by_key(|standing| standing.lost as i64 - standing.won as i64);
    let rank = |name: &String| schedulers.iter().position(|standing| standing.scheduler.name == *name);
    for bout in &mut scenarios {
        for pair in &mut bout.pairs {
            if rank(&pair.a) > rank(&pair.b) {
                *pair = pair.reversed();
            }
        }
        bout.pairs.sort_by_key(|pair| (rank(&pair.a), rank(&pair.b)));
    }
    Standings { version: VERSION, build: build(), schedulers, scenarios }
}

fn bout(plan: &Plan, comparison: &Comparison) -> Bout {
    let groups: Vec<(&str, Vec<f64>)> =
        comparison.candidates.iter().map(|group| (&*group.name, group.values(comparison.measure))).collect();
    let mut pairs = Vec::new();
    for (at, (a, of_a)) in groups.iter().enumerate() {
        pairs.extend(groups[at + 1..].iter().filter_map(|(b, of_b)| {
            let speed = match comparison.measure {
                MeasureName::CompletionTime | MeasureName::PageLoadTime => Ratio::of(of_b, of_a)?,
                MeasureName::Goodput => Ratio::of(of_a, of_b)?,
            };
            let winner = speed.verdict().map(|a_is_faster| if a_is_faster { a } else { b });
            Some(Pair { a: (*a).to_owned(), b: (*b).to_owned(), speed, winner: winner.map(|name| (*name).to_owned()) })
        }));
    }
    Bout {
        scenario: plan.scenario.name.clone(),
        digest: plan.scenario.digest.clone(),
        measure: comparison.measure.name(),
        policies: plan.scenario.policies().clone(),
        seeds: comparison.seeds.clone(),
        unfinished: comparison.candidates.iter().flat_map(|group| &group.runs).filter(|run| !run.finished).count(),
        pairs,
    }
}

impl Bout {
    /// Returns the speed of `a` over that of `b`; `None` if they are the same or took no part.
    pub fn speed(&self, a: &str, b: &str) -> Option<Ratio> {
        let pair = self.pairs.iter().find(|pair| (pair.a == a && pair.b == b) || (pair.a == b && pair.b == a))?;
        Some(if pair.a == a { pair.speed } else { pair.speed.inverted() })
    }
}

impl Standings {
    /// Returns the number of scenarios that `a` won against `b`, minus those it lost.
    pub fn net(&self, a: &str, b: &str) -> i32 {
        let score = |bout: &Bout| match bout.speed(a, b).and_then(Ratio::verdict) {
            Some(true) => 1,
            Some(false) => -1,
            None => 0,
        };
        self.scenarios.iter().map(score).sum()
    }

    /// Returns the scheduler that speeds are shown against: the usual reference if it took part, otherwise the first.
    pub fn reference(&self) -> Option<&str> {
        let names = || self.schedulers.iter().map(|standing| &*standing.scheduler.name);
        names().find(|name| *name == REFERENCE).or_else(|| names().next())
    }
}

impl Pair {
    fn reversed(&self) -> Pair {
        Pair { a: self.b.clone(), b: self.a.clone(), speed: self.speed.inverted(), winner: self.winner.clone() }
    }
}

impl Ratio {
    /// Returns the geometric mean of `over / under`, pair by pair; `None` without samples.
    pub fn of(over: &[f64], under: &[f64]) -> Option<Ratio> {
        let logarithms: Vec<f64> = over.iter().zip(under).map(|(over, under)| libm::log(over / under)).collect();
        let estimate = Estimate::of(&logarithms)?;
        let at = |half: f64| libm::exp(estimate.mean + half);
        // One stretch decides a condition, which is one sample of many.
        let half = estimate.half.or(estimate.is_one_sample().then_some(0.0));
        Some(Ratio { mean: at(0.0), low: half.map(|half| at(-half)), high: half.map(at) })
    }

    /// Returns the same mean without an interval.
    pub fn without_interval(self) -> Ratio {
        Ratio { low: None, high: None, ..self }
    }

    fn inverted(self) -> Ratio {
        Ratio { mean: 1.0 / self.mean, low: self.high.map(|x| 1.0 / x), high: self.low.map(|x| 1.0 / x) }
    }

    /// Returns true if the interval does not contain 1.
    pub fn is_significant(self) -> bool {
        self.low.is_some_and(|low| low > 1.0) || self.high.is_some_and(|high| high < 1.0)
    }

    /// Returns true if the numerator is faster, false if the denominator is, by at least [`LEAST`] and significantly;
    /// `None` otherwise.
    pub fn verdict(self) -> Option<bool> {
        let noticeable = (self.mean.max(1.0 / self.mean)) >= 1.0 + LEAST;
        (noticeable && self.is_significant()).then_some(self.mean > 1.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_ratio_by_hand() {
        // 2 and 8: geometric mean 4. Logarithms differ by ln 4 = 1.3863, so their standard error is 0.6931; times
        // 12.706 that is 8.807 to either side.
        let ratio = Ratio::of(&[2.0, 8.0], &[1.0, 1.0]).unwrap();
        assert!((ratio.mean - 4.0).abs() < 1e-12);
        assert!((ratio.high.unwrap() / ratio.mean / 8.807_f64.exp() - 1.0).abs() < 1e-2, "{ratio:?}");
        assert_eq!(ratio.verdict(), None);
        let inverted = Ratio::of(&[1.0, 1.0], &[2.0, 8.0]).unwrap();
        assert!((inverted.mean - ratio.inverted().mean).abs() < 1e-12);
        assert!((inverted.low.unwrap() - ratio.inverted().low.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn a_win_is_certain_and_noticeable() {
        let verdict = |over: &[f64]| Ratio::of(over, &[1.0; 3]).unwrap().verdict();
        assert_eq!(verdict(&[1.10, 1.11, 1.12]), Some(true));
        assert_eq!(verdict(&[0.90, 0.91, 0.92]), Some(false));
        assert_eq!(verdict(&[1.001, 1.0011, 1.0012]), None, "certain, and nobody notices");
        assert_eq!(verdict(&[0.5, 1.0, 3.0]), None, "noticeable, and not certain");
        assert_eq!(verdict(&[1.0, 1.0, 1.0]), None);
        assert_eq!(Ratio::of(&[2.0], &[1.0]).unwrap().verdict(), None, "once is nothing");
        assert_eq!(Ratio::of(&[], &[]), None);
    }
}
