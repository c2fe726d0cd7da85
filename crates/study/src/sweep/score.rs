//! Scores of the systems in a condition: against the best of all others, and against plain TCP on the best single path.

use super::row::{Role, Row, Trial};
use super::versus::{best, versus};
use anabranch_lab::pairwise::Ratio;

/// Ratio to plain TCP on the best single path above which a system counts as slower.
pub(crate) const SLOWER: f64 = 1.05;

/// Ratio to the best path with the others as backups above which using several paths costs something.
pub(crate) const REGRETTED: f64 = 1.03;

/// Runs of all systems in one condition.
#[derive(Clone, Debug)]
pub struct Trials {
    /// SHA-256 of the condition's content.
    pub digest: String,
    /// Seed of each repetition: one if the condition draws nothing.
    pub seeds: Vec<u64>,
    /// Trials of each system, one per seed.
    pub systems: Vec<Vec<Trial>>,
    /// Plain TCP on each path.
    pub singles: Vec<(String, Vec<Trial>)>,
    /// The scenario's policies on each path, with the others as backups.
    pub backups: Vec<(String, Vec<Trial>)>,
}

/// Score of a system in one condition.
pub(crate) struct Score {
    /// Mean logarithm of its times.
    pub(crate) log: f64,
    /// Its time over that of the best of all others, if there are others.
    pub(crate) to_best: Option<f64>,
    /// Its time over that of plain TCP on the best single path.
    pub(crate) to_single: Option<f64>,
    /// Time of the system over that of the best path with the others as backups.
    pub(crate) to_backups: Option<f64>,
    /// Index of the best of all others over all seeds.
    pub(crate) best: Option<usize>,
    /// Index of the path on which plain TCP is fastest over all seeds.
    pub(crate) single: Option<usize>,
    pub(crate) repeated: f64,
    pub(crate) duplicates: f64,
    pub(crate) unfinished: usize,
}

impl Trials {
    /// Groups the rows of one condition.
    ///
    /// # Errors
    ///
    /// The first row of a run that broke.
    pub fn of(rows: &[Row]) -> Result<Trials, &Row> {
        let mut trials = Trials {
            digest: String::new(),
            seeds: Vec::new(),
            systems: Vec::new(),
            singles: Vec::new(),
            backups: Vec::new(),
        };
        for group in rows.chunk_by(|a, b| a.role == b.role && a.name == b.name) {
            let own = group.iter().map(|row| row.result.as_ref().map(|numbers| numbers.trial).map_err(|_| row));
            let own: Vec<Trial> = own.collect::<Result<_, _>>()?;
            trials.seeds = group.iter().map(|row| row.seed).collect();
            trials.digest.clone_from(&group[0].digest);
            match group[0].role {
                Role::System => trials.systems.push(own),
                Role::SinglePath => trials.singles.push((group[0].name.clone(), own)),
                Role::Backups => trials.backups.push((group[0].name.clone(), own)),
            }
        }
        Ok(trials)
    }

    /// Returns true if the condition is one sample: there is one seed, or all seeds gave every system the same time.
    pub(crate) fn is_one_sample(&self) -> bool {
        let of_baselines = self.singles.iter().chain(&self.backups).map(|(_, trials)| trials);
        let copies = |all: &Vec<Trial>| all.windows(2).all(|two| two[0].time_s.to_bits() == two[1].time_s.to_bits());
        self.systems.iter().chain(of_baselines).all(copies)
    }

    /// Returns the logarithms of the times of each system.
    pub(crate) fn logarithms(&self) -> Vec<Vec<f64>> {
        self.systems.iter().map(|trials| logarithms(trials)).collect()
    }

    /// Returns the logarithms of the times of plain TCP on each path.
    pub(crate) fn logarithms_of_singles(&self) -> Vec<Vec<f64>> {
        of_each(&self.singles)
    }
}

fn of_each(paths: &[(String, Vec<Trial>)]) -> Vec<Vec<f64>> {
    paths.iter().map(|(_, trials)| logarithms(trials)).collect()
}

fn logarithms(trials: &[Trial]) -> Vec<f64> {
    trials.iter().map(|trial| libm::log(trial.time_s)).collect()
}

pub(crate) fn slices(all: &[Vec<f64>]) -> Vec<&[f64]> {
    all.iter().map(Vec::as_slice).collect()
}

/// Returns the score of each system. Oracles do not count as another's best other.
pub(crate) fn scores(trials: &Trials, oracles: &[bool]) -> Vec<Score> {
    let (times, singles, backups) = (trials.logarithms(), trials.logarithms_of_singles(), of_each(&trials.backups));
    let all: Vec<usize> = (0..trials.seeds.len()).collect();
    let score = |(n, own): (usize, &Vec<Trial>)| {
        let logs: &[f64] = &times[n];
        let others: Vec<usize> = (0..times.len()).filter(|other| *other != n && !oracles[*other]).collect();
        let theirs: Vec<&[f64]> = others.iter().map(|other| times[*other].as_slice()).collect();
        let share = |count: fn(&Trial) -> u64| {
            let sum = |count: fn(&Trial) -> u64| own.iter().map(count).sum::<u64>() as f64;
            sum(count) / sum(|trial| trial.bytes).max(1.0)
        };
        Score {
            log: logs.iter().sum::<f64>() / logs.len() as f64,
            to_best: versus(&[logs], &theirs).map(libm::exp),
            to_single: versus(&[logs], &slices(&singles)).map(libm::exp),
            to_backups: versus(&[logs], &slices(&backups)).map(libm::exp),
            best: best(&theirs, &all).map(|place| others[place]),
            single: best(&slices(&singles), &all),
            repeated: share(|trial| trial.repeated),
            duplicates: share(|trial| trial.duplicates),
            unfinished: own.iter().filter(|trial| !trial.finished).count(),
        }
    };
    trials.systems.iter().enumerate().map(score).collect()
}

pub(crate) fn geometric_mean(ratios: impl Iterator<Item = f64>) -> Option<Ratio> {
    let ratios: Vec<f64> = ratios.collect();
    Ratio::of(&ratios, &vec![1.0; ratios.len()])
}

/// Returns the ratio below which `percent` of the sorted ratios lie.
pub(crate) fn quantile(sorted: &[f64], percent: usize) -> f64 {
    sorted.get((percent * sorted.len() / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}
