//! Leaderboard: the results of a league.

use super::condition::{Condition, Family};
use super::league::{Field, League};
use super::{is_oracle, league};
use crate::sweep::{REGRETTED, SLOWER, Score, Share, geometric_mean, quantile, scores, slices, versus};
use anabranch_lab::pairwise::Ratio;
use anabranch_lab::stats::{Estimate, Tested};
use anabranch_scenario::Variant;
use anabranch_scenario::in_shell;
use serde::Serialize;
use std::collections::BTreeMap;

/// Leaderboard of schedulers, the one nearest to the best of all others first.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Leaderboard {
    /// Number of conditions.
    pub conditions: usize,
    /// Number of conditions that draw nothing, which run with one seed.
    pub deterministic: usize,
    /// Number of conditions that are one sample each: with one seed, or with seeds that all gave the same times.
    pub one_sample: usize,
    /// Number of seeds in each of the others.
    pub repeat: usize,
    /// Overrides of the conditions, each as a `--set`.
    pub sets: Vec<String>,
    /// SHA-256 of the digests of all conditions, in order.
    pub digest: String,
    /// Results of the schedulers.
    pub standings: Vec<Standing>,
    /// Best scheduler, and plain TCP on the best single path, each chosen on other seeds than those it is judged on.
    pub references: Vec<Reference>,
    /// Results by workload, by loss and so on.
    pub splits: Vec<Split>,
    /// Number of drives, which are conditions besides and count in none of the other figures.
    pub drives: usize,
    /// Number of recorded drives, which count in none of the other figures either.
    pub recorded: usize,
}

/// Results of a scheduler over all conditions.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Standing {
    /// Rank, from 1 for the best.
    pub rank: usize,
    /// The scheduler with its parameters.
    #[serde(flatten)]
    pub scheduler: Variant,
    /// True for an oracle, which knows more than a host can; it does not count as another scheduler's best other.
    pub oracle: bool,
    /// Time over that of the best of all others: geometric mean over conditions.
    pub to_best: Ratio,
    /// Time over that of the best of all others: geometric mean over the drives, if there are any.
    pub drives: Option<Ratio>,
    /// Time over that of the best of all others: geometric mean over the recorded drives, if there are any.
    pub recorded: Option<Ratio>,
    /// Share of conditions in which it is at most 2 % slower than the best of all others.
    pub within_2: Share,
    /// Share of conditions in which it is at most 5 % slower.
    pub within_5: Share,
    /// Share of conditions in which it is at most 20 % slower.
    pub within_20: Share,
    /// Ratio to the best of all others below which 95 % of conditions lie.
    pub p95: f64,
    /// Largest ratio to the best of all others.
    pub most: f64,
    /// Percentiles of the ratio to the best of all others over conditions, from 0 to 100.
    pub regret: Vec<f64>,
    /// Time over that of plain TCP on the best single path: geometric mean over conditions.
    pub to_single: Option<Ratio>,
    /// Share of conditions in which it is more than 5 % slower than that.
    pub slower_than_single: Option<Share>,
    /// Largest ratio to plain TCP on the best single path.
    pub most_to_single: Option<f64>,
    /// Time over that of the best path with all others as its backups.
    pub to_backups: Option<ToBackups>,
    /// Bytes sent again on another subflow over bytes sent: mean over conditions.
    pub repeated: f64,
    /// Bytes that arrived more than once over bytes sent: mean over conditions.
    pub duplicates: f64,
    /// Number of runs that did not finish.
    pub unfinished: usize,
    /// Logarithm of its time over that of the first, condition by condition, tested together with those of all others.
    pub to_first: Option<Tested>,
    /// Conditions with the largest ratios to the best of all others, the largest first.
    pub worst: Vec<Worst>,
    /// Conditions in which it is more than 5 % slower than plain TCP on the best single path, the slowest first.
    pub slower: Vec<Slower>,
}

/// Regret of using several paths.
#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
pub struct ToBackups {
    /// Time over that of the best path with the others as backups: geometric mean over conditions.
    pub mean: Ratio,
    /// Share of conditions in which it is more than 3 % slower than that.
    pub slower: Share,
    /// Largest ratio.
    pub most: f64,
}

/// Condition in which a scheduler is slower than plain TCP.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Slower {
    /// Name of the condition.
    pub condition: String,
    /// Description in a few words.
    pub about: String,
    /// Time over that of plain TCP on the best single path.
    pub ratio: f64,
    /// Name of that path.
    pub path: String,
    /// Command that repeats both.
    pub command: String,
    /// Place where its time goes with the first seed, in the words of `anabranch why`; absent where it was not asked.
    pub cause: Option<String>,
}

/// Condition in which a scheduler is far behind.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Worst {
    /// Name of the condition.
    pub condition: String,
    /// Description in a few words.
    pub about: String,
    /// Time over that of the best of all others.
    pub ratio: f64,
    /// Name of the best other.
    pub best: String,
    /// Command that repeats both.
    pub command: String,
}

/// Reference for the schedulers.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Reference {
    /// Description in words.
    pub name: &'static str,
    /// Time over that of the best of all schedulers.
    pub to_best: Ratio,
    /// Share of conditions in which it is more than 5 % slower than plain TCP on the best single path.
    pub slower_than_single: Option<Share>,
}

/// Results over parts of the conditions.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Split {
    /// Property in which the parts differ.
    pub by: &'static str,
    /// Names of the parts.
    pub parts: Vec<String>,
    /// Number of conditions in each part.
    pub conditions: Vec<usize>,
    /// Results by scheduler, in the order of the standings, and by part.
    pub cells: Vec<Vec<Cell>>,
}

/// Results of a scheduler over a part of the conditions.
#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
pub struct Cell {
    /// Geometric mean of its time over that of the best of all others.
    pub to_best: f64,
    /// Share of conditions in which it is more than 5 % slower than plain TCP on the best single path.
    pub slower_than_single: Option<f64>,
    /// Bytes that arrived more than once over bytes sent: mean over conditions.
    pub duplicates: f64,
}

/// Number of conditions that are listed as the worst.
const WORST: usize = 10;

impl Leaderboard {
    /// Computes the leaderboard of a league, whose drives are behind all other conditions and whose recorded drives are
    /// behind those. What there is first is ranked. `None` without conditions, or where a scheduler has no other to be
    /// ranked against.
    pub fn of(league: &League, fields: &[Field]) -> Option<Leaderboard> {
        if !league.has_rivals() {
            return None;
        }
        let of_family = |family| fields.iter().filter(|field| field.condition.family() == family).count();
        let (drives, recorded) = (of_family(Family::Drives), of_family(Family::Recorded));
        let (rest, recorded) = fields.split_at(fields.len() - recorded);
        let (drawn, drives) = rest.split_at(rest.len() - drives);
        let none = &fields[..0];
        let (fields, drives, recorded) = match (drawn, drives) {
            ([], []) => (recorded, none, none),
            ([], drives) => (drives, none, recorded),
            (drawn, drives) => (drawn, drives, recorded),
        };
        let variants = league.schedulers();
        let oracles: Vec<bool> = variants.iter().map(|variant| is_oracle(&variant.name)).collect();
        // Indexed by condition, then by scheduler.
        let scored = |fields: &[Field]| fields.iter().map(|field| scores(&field.trials, &oracles)).collect();
        let [scores, of_drives, of_recorded]: [Vec<Vec<Score>>; 3] = [fields, drives, recorded].map(scored);
        let over = |scores: &[Vec<Score>], n: usize| {
            geometric_mean(scores.iter().map(|condition| against_best(&condition[n])))
        };
        let of = |scheduler: usize| scores.iter().map(move |condition| &condition[scheduler]);
        let mut order: Vec<(usize, Ratio)> =
            (0..variants.len()).map(|n| Some((n, geometric_mean(of(n).map(against_best))?))).collect::<Option<_>>()?;
        // Stable: equal ones stay in the order asked for.
        order.sort_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean));
        let logs = |n: usize| of(n).map(|score| score.log).collect::<Vec<f64>>();
        let first = order.first().map(|(n, _)| logs(*n))?;
        let differences: Vec<Option<Estimate>> = order
            .iter()
            .enumerate()
            .map(|(rank, (n, _))| Estimate::of_difference(&logs(*n), &first).filter(|_| rank > 0))
            .collect();
        let to_first = Tested::family(&differences);
        let standing = |(rank, (n, to_best)): (usize, &(usize, Ratio))| {
            let within = |limit: f64| Share::of(of(*n).map(|score| against_best(score) <= limit));
            let mut sorted: Vec<f64> = of(*n).map(against_best).collect();
            sorted.sort_by(f64::total_cmp);
            let mean = |number: fn(&Score) -> f64| of(*n).map(number).sum::<f64>() / fields.len() as f64;
            let singles: Option<Vec<f64>> = of(*n).map(|score| score.to_single).collect();
            Some(Standing {
                rank: rank + 1,
                scheduler: variants[*n].clone(),
                oracle: oracles[*n],
                to_best: *to_best,
                drives: over(&of_drives, *n),
                recorded: over(&of_recorded, *n),
                within_2: within(1.02)?,
                within_5: within(1.05)?,
                within_20: within(1.2)?,
                p95: quantile(&sorted, 95),
                most: quantile(&sorted, 100),
                regret: (0..=100).map(|percent| quantile(&sorted, percent)).collect(),
                to_single: singles.as_ref().and_then(|all| geometric_mean(all.iter().copied())),
                slower_than_single: singles.as_ref().and_then(|all| Share::of(all.iter().map(|it| *it > SLOWER))),
                most_to_single: singles.as_ref().and_then(|all| all.iter().copied().reduce(f64::max)),
                to_backups: ToBackups::of(of(*n).map(|score| score.to_backups)),
                repeated: mean(|score| score.repeated),
                duplicates: mean(|score| score.duplicates),
                unfinished: of(*n).map(|score| score.unfinished).sum(),
                to_first: to_first[rank],
                worst: worst(league, fields, *n, &of(*n).collect::<Vec<_>>()),
                slower: slower(league, fields, *n, &of(*n).collect::<Vec<_>>()),
            })
        };
        let standings: Vec<Standing> = order.iter().enumerate().map(standing).collect::<Option<_>>()?;
        let order: Vec<usize> = order.into_iter().map(|(n, _)| n).collect();
        Some(Leaderboard {
            conditions: fields.len(),
            deterministic: fields.iter().filter(|field| field.trials.seeds.len() == 1).count(),
            one_sample: fields.iter().filter(|field| field.trials.is_one_sample()).count(),
            repeat: league.repeat(),
            sets: league.sets().to_vec(),
            digest: league::digest(fields),
            standings,
            references: references(fields, &oracles),
            splits: SPLITS.iter().map(|(by, part)| split(by, *part, fields, &scores, &order)).collect(),
            drives: drives.len(),
            recorded: recorded.len(),
        })
    }
}

/// Returns its time over that of the best of all others.
fn against_best(score: &Score) -> f64 {
    score.to_best.expect("a league has two schedulers or more")
}

impl ToBackups {
    fn of(ratios: impl Iterator<Item = Option<f64>>) -> Option<ToBackups> {
        let ratios: Vec<f64> = ratios.collect::<Option<_>>()?;
        Some(ToBackups {
            mean: geometric_mean(ratios.iter().copied())?,
            slower: Share::of(ratios.iter().map(|ratio| *ratio > REGRETTED))?,
            most: ratios.iter().copied().reduce(f64::max)?,
        })
    }
}

/// Returns the command that compares these schedulers, and plain TCP on each path, in a condition.
fn compare(league: &League, field: &Field, schedulers: &str) -> String {
    let mut command = format!(
        "anabranch compare {} --schedulers {} --repeat {}",
        in_shell(&field.condition.name()),
        in_shell(schedulers),
        field.trials.seeds.len()
    );
    for set in league.sets() {
        command += &format!(" --set {}", in_shell(set));
    }
    command
}

fn slower(league: &League, fields: &[Field], scheduler: usize, scores: &[&Score]) -> Vec<Slower> {
    let one = |(field, score): (&Field, &&Score)| {
        let ratio = score.to_single.filter(|ratio| *ratio > SLOWER)?;
        Some(Slower {
            condition: field.condition.name(),
            about: field.condition.about(),
            ratio,
            path: score.single.map(|path| field.trials.singles[path].0.clone()).unwrap_or_default(),
            command: compare(league, field, &league.schedulers()[scheduler].name),
            cause: None,
        })
    };
    let mut all: Vec<Slower> = fields.iter().zip(scores).filter_map(one).collect();
    all.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    all
}

fn worst(league: &League, fields: &[Field], scheduler: usize, scores: &[&Score]) -> Vec<Worst> {
    let mut order: Vec<usize> = (0..fields.len()).collect();
    order.sort_by(|a, b| against_best(scores[*b]).total_cmp(&against_best(scores[*a])));
    let name = |n: usize| league.schedulers()[n].name.clone();
    let one = |n: usize| {
        let (condition, best) = (&fields[n].condition, scores[n].best.map(name).unwrap_or_default());
        let command = compare(league, &fields[n], &format!("{},{best}", name(scheduler)));
        Worst { condition: condition.name(), about: condition.about(), ratio: against_best(scores[n]), best, command }
    };
    order.into_iter().take(WORST).map(one).collect()
}

fn references(fields: &[Field], oracles: &[bool]) -> Vec<Reference> {
    let mut of_best = Vec::new();
    let mut of_single = Vec::new();
    for field in fields {
        let real = field.trials.logarithms().into_iter().zip(oracles).filter(|(_, oracle)| !**oracle);
        let real: Vec<Vec<f64>> = real.map(|(logarithms, _)| logarithms).collect();
        let singles = field.trials.logarithms_of_singles();
        let Some(ratio) = versus(&slices(&real), &slices(&singles)) else { return Vec::new() };
        of_best.push(libm::exp(ratio));
        of_single.push(libm::exp(-ratio));
    }
    let slower = Share::of(of_best.iter().map(|ratio| *ratio > SLOWER));
    let reference = |name, ratios: Vec<f64>, slower_than_single| {
        Some(Reference { name, to_best: geometric_mean(ratios.into_iter())?, slower_than_single })
    };
    [
        reference("best of all schedulers", vec![1.0; of_best.len()], slower),
        reference("plain TCP on the best single path", of_single, None),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Function that returns the part of a split that a condition belongs to, with its index among the parts.
type Part = fn(&Condition) -> (usize, String);

const SPLITS: [(&str, Part); 7] = [
    ("workload", |it| {
        let all = ["short", "warm", "medium", "long", "bulk", "web", "interactive"];
        named(&all, it.work.name())
    }),
    ("loss", |it| (it.loss as usize, it.loss.name().to_owned())),
    ("RTT ratio", |it| class(it.rtt_ratio(), &[1.5, 4.0, 16.0], "")),
    ("receive buffer", |it| match it.receive_buffer {
        Some(bytes) => class(bytes as f64 / 1024.0, &[256.0, 2048.0], " KiB"),
        None => (usize::MAX, "self-tuning".to_owned()),
    }),
    ("dynamics", |it| {
        let all = ["none", "cellular", "varying", "failure", "shared bottleneck", "cross traffic"];
        named(&all, it.dynamics.name())
    }),
    ("congestion control", |it| (0, it.congestion.to_owned())),
    ("paths", |it| (it.paths.len(), it.paths.len().to_string())),
];

/// Returns the class of that name, with its index among all.
fn named(all: &[&str], name: &str) -> (usize, String) {
    (all.iter().position(|other| *other == name).unwrap_or(all.len()), name.to_owned())
}

/// Returns the class of `x` between these limits.
fn class(x: f64, limits: &[f64], unit: &str) -> (usize, String) {
    let place = limits.iter().filter(|limit| x >= **limit).count();
    let name = match (place.checked_sub(1).map(|n| limits[n]), limits.get(place)) {
        (None, Some(high)) => format!("below {high}{unit}"),
        (Some(low), Some(high)) => format!("{low} to {high}{unit}"),
        (Some(low), None) => format!("from {low}{unit}"),
        (None, None) => String::new(),
    };
    (place, name)
}

fn split(by: &'static str, part: Part, fields: &[Field], scores: &[Vec<Score>], order: &[usize]) -> Split {
    let mut parts: BTreeMap<(usize, String), Vec<usize>> = BTreeMap::new();
    for (n, field) in fields.iter().enumerate() {
        parts.entry(part(&field.condition)).or_default().push(n);
    }
    let cell = |scheduler: usize, conditions: &[usize]| {
        let of = || conditions.iter().map(|n| &scores[*n][scheduler]);
        let n = conditions.len() as f64;
        let singles: Option<Vec<f64>> = of().map(|score| score.to_single).collect();
        Cell {
            to_best: libm::exp(of().map(|score| libm::log(against_best(score))).sum::<f64>() / n),
            slower_than_single: singles.map(|all| all.iter().filter(|ratio| **ratio > SLOWER).count() as f64 / n),
            duplicates: of().map(|score| score.duplicates).sum::<f64>() / n,
        }
    };
    Split {
        by,
        parts: parts.keys().map(|(_, name)| name.clone()).collect(),
        conditions: parts.values().map(Vec::len).collect(),
        cells: order.iter().map(|n| parts.values().map(|conditions| cell(*n, conditions)).collect()).collect(),
    }
}
