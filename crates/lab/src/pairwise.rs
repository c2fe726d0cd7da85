//! Every scheduler against every other, over several scenarios.
//!
//! Of two schedulers the ratio of their speeds is taken seed by seed, since both met the same draws, and averaged as
//! logarithms: a geometric mean, which says the same whichever of the two is named first.

use crate::compare::{Comparison, Plan, REFERENCE};
use crate::file::MeasureName;
use crate::stats::Estimate;
use crate::{Chosen, Journal, KeepError, Scenario, ScenarioError, VERSION, Variant, build};
use serde::Serialize;

/// What to run.
pub struct Tournament {
    plans: Vec<Plan>,
}

/// Who won against whom.
#[derive(Clone, Debug, Serialize)]
pub struct Standings {
    /// Of Anabranch.
    pub version: &'static str,
    /// Digest of the program that made the runs.
    pub build: &'static str,
    /// The schedulers with their parameters, the one with most to its credit first.
    pub schedulers: Vec<Standing>,
    /// In the order asked for.
    pub scenarios: Vec<Bout>,
}

/// A scheduler over all scenarios.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    /// It and its parameters.
    #[serde(flatten)]
    pub scheduler: Variant,
    /// Pairs in which it was faster.
    pub won: usize,
    /// Pairs in which it was slower.
    pub lost: usize,
}

/// All pairs over one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Bout {
    /// Its name.
    pub scenario: String,
    /// SHA-256 of its content.
    pub digest: String,
    /// What ranks: completion time or goodput.
    pub measure: &'static str,
    /// The seed of each repetition.
    pub seeds: Vec<u64>,
    /// The policies of the host that sends; the schedulers that take part stand in the place of its scheduler.
    pub policies: Chosen,
    /// Runs that did not finish, of all.
    pub unfinished: usize,
    /// Each two schedulers once, in the order of the standings.
    pub pairs: Vec<Pair>,
}

/// Two schedulers over one scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// One.
    pub a: String,
    /// The other.
    pub b: String,
    /// How often as fast as `b` `a` was.
    pub speed: Ratio,
    /// Who was faster, if that can be told.
    pub winner: Option<String>,
}

/// A geometric mean with its 95 % interval; without one for a single repetition.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The mean.
    pub mean: f64,
    /// The true mean is between this …
    pub low: Option<f64>,
    /// … and this in 95 % of cases.
    pub high: Option<f64>,
}

/// A difference that is certain but smaller than this is none that anybody would notice.
pub const LEAST: f64 = 0.01;

impl Tournament {
    /// The named schedulers, or all, over these scenarios; seed and repetitions are the scenarios' own unless given.
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

    /// How many runs it takes.
    pub fn len(&self) -> usize {
        self.plans.iter().map(Plan::len).sum()
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of runs that the journal does not have.
    pub fn missing(&self, journal: &Journal) -> usize {
        self.plans.iter().map(|plan| plan.missing(journal)).sum()
    }

    /// Runs everything on `jobs` threads, and calls `begin` with the name of each scenario and `done` after each run
    /// that is made. Runs that the journal has are taken from there, and all others are kept in it.
    ///
    /// # Errors
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
    /// How often as fast as `b` `a` was; `None` for the same or strangers.
    pub fn speed(&self, a: &str, b: &str) -> Option<Ratio> {
        let pair = self.pairs.iter().find(|pair| (pair.a == a && pair.b == b) || (pair.a == b && pair.b == a))?;
        Some(if pair.a == a { pair.speed } else { pair.speed.inverted() })
    }
}

impl Standings {
    /// How many scenarios `a` won against `b`, less those it lost.
    pub fn net(&self, a: &str, b: &str) -> i32 {
        let score = |bout: &Bout| match bout.speed(a, b).and_then(Ratio::verdict) {
            Some(true) => 1,
            Some(false) => -1,
            None => 0,
        };
        self.scenarios.iter().map(score).sum()
    }

    /// The scheduler that speeds are shown against: the usual reference if it took part, or else the first.
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
    /// Of the mean of `over / under`, pair by pair; `None` without samples.
    pub fn of(over: &[f64], under: &[f64]) -> Option<Ratio> {
        let logarithms: Vec<f64> = over.iter().zip(under).map(|(over, under)| libm::log(over / under)).collect();
        let estimate = Estimate::of(&logarithms)?;
        let at = |half: f64| libm::exp(estimate.mean + half);
        Some(Ratio { mean: at(0.0), low: estimate.half.map(|half| at(-half)), high: estimate.half.map(at) })
    }

    fn inverted(self) -> Ratio {
        Ratio { mean: 1.0 / self.mean, low: self.high.map(|x| 1.0 / x), high: self.low.map(|x| 1.0 / x) }
    }

    /// Whether the interval leaves out 1.
    pub fn is_significant(self) -> bool {
        self.low.is_some_and(|low| low > 1.0) || self.high.is_some_and(|high| high < 1.0)
    }

    /// True if what stands above is faster, by at least [`LEAST`] and with certainty; `None` if it cannot be told.
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
        // 2 and 8: geometric mean 4. Logarithms differ by ln 4 = 1.3863, so their standard error is 0.6931; times 12.706
        // that is 8.807 to either side.
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
