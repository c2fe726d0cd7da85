//! An inquiry: the run, watched by the judge, and its counterfactuals on the same seeds.

use crate::alternative::{Alternatives, Load};
use crate::answer::{Answer, Share, Transfer, Tried};
use crate::buffers::{DataBuffers, buffer_name, buffers, size_text};
use crate::element::is_long;
use crate::idle::idle_paths;
use crate::pauses::pauses;
use crate::sentence::{choice, fault, might_be_fault, remedy, sentence};
use crate::{Alternative, Cause, Judge, Judged, Kind};
use anabranch_lab::stats::Estimate;
use anabranch_lab::{Keep, Measured, Run, RunError, in_parallel, run, run_watched};
use anabranch_net::LinkConfig;
use anabranch_paths::Direction;
use anabranch_scenario::Scenario;
use anabranch_scenario::file::MeasureName;
use anabranch_sim::{Spec, Workload};
use anabranch_units::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs to be made for an answer.
pub struct Inquiry<'a> {
    scenario: &'a Scenario,
    alternatives: Alternatives,
    seeds: Vec<u64>,
}

/// Error: a run broke.
pub type InquiryError = RunError;

/// A function that is told how many runs are made, and how many are planned by now.
pub type Progress<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// A run as it is, with the time of its transfers.
pub(crate) struct Case {
    pub(crate) run: Run,
    pub(crate) judged: Vec<Judged>,
}

/// A counterfactual with the measure of each seed.
struct Trial {
    alternative: Alternative,
    tried: Tried,
    values: Vec<f64>,
}

impl Trial {
    /// Compares its values with those of the scenario as it is, seed by seed.
    fn compare(&mut self, as_is: &[f64]) {
        let pairs = || self.values.iter().zip(as_is);
        self.tried.larger = pairs().filter(|(with, without)| with > without).count();
        self.tried.smaller = pairs().filter(|(with, without)| with < without).count();
        self.tried.difference = Estimate::of_difference(&self.values, as_is).map(Into::into);
    }
}

/// Threads, and the count of runs on them.
struct Work<'a> {
    jobs: usize,
    progress: &'a Progress<'a>,
    planned: AtomicUsize,
    done: AtomicUsize,
    /// Runs that an equal one stood for.
    spared: AtomicUsize,
}

impl Work<'_> {
    fn plan(&self, runs: usize) {
        self.planned.fetch_add(runs, Ordering::Relaxed);
    }

    fn done(&self, runs: usize) {
        let done = self.done.fetch_add(runs, Ordering::Relaxed) + runs;
        (self.progress)(done, self.planned.load(Ordering::Relaxed));
    }
}

/// Sizes of buffers that are tried: each twice the one before.
const DOUBLINGS: u32 = 8;
/// Share of the gain of unbounded buffers that a size has to bring.
const ENOUGH: f64 = 0.9;
/// Half of the interval of a promise, as a share of it, that is worth no further seeds.
const SURE: f64 = 0.1;
/// Seeds up to which their number is doubled for a promise that is less sure.
const SEEDS: usize = 40;
/// Runs of a scenario without draws that have to be equal, to stand for those of all seeds.
const EQUAL: usize = 2;

impl<'a> Inquiry<'a> {
    /// Prepares the runs of a scenario with these seeds, from `seed` on.
    pub fn new(scenario: &'a Scenario, alternatives: Alternatives, seed: u64, repeat: usize) -> Self {
        Inquiry { scenario, alternatives, seeds: (0..repeat as u64).map(|n| seed.wrapping_add(n)).collect() }
    }

    /// Returns the number of runs, without those that look for a size of buffers.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        (1 + self.alternatives.run.len()) * self.seeds.len()
    }

    /// Makes all runs on `jobs` threads, tells `progress` after each, and sums up. `load` loads the scenario with
    /// overrides on top of its own.
    ///
    /// # Errors
    ///
    /// If a run breaks.
    pub fn run(mut self, jobs: usize, load: &Load<'_>, progress: &Progress<'_>) -> Result<Answer, InquiryError> {
        let zero = || AtomicUsize::new(0);
        let work = Work { jobs, progress, planned: AtomicUsize::new(self.len()), done: zero(), spared: zero() };
        let cases = in_parallel(&self.seeds, jobs, &|| work.done(1), &|seed| self.judge(*seed))?;
        let alternatives = std::mem::take(&mut self.alternatives.run);
        let mut trials = self.try_all(alternatives, &cases, &work)?;
        for kind in self.buffers_that_help(&trials) {
            if let Some(sized) = self.find_size(kind, &cases, &trials, &work, load)? {
                trials.push(sized);
            }
        }
        let mut answer = self.sum_up(&cases, &trials);
        self.make_sure(&mut answer, &cases, &mut trials, &work)?;
        answer.runs = work.done.into_inner() - work.spared.into_inner();
        Ok(answer)
    }

    /// Makes the run as it is.
    fn judge(&self, seed: u64) -> Result<Case, RunError> {
        let mut judge = Judge::of(&self.scenario.spec(seed));
        let run = run_watched(self.scenario, seed, &Keep::default(), Some(&mut judge))?;
        let judged = judge.finish(&self.scenario.spec(seed).workloads, &run.outcome);
        Ok(Case { run, judged })
    }

    fn try_all(&self, alternatives: Vec<Alternative>, cases: &[Case], work: &Work<'_>) -> Result<Vec<Trial>, RunError> {
        let (first, rest) = self.seeds.split_at(self.seeds.len().min(EQUAL));
        let mut measured = measure(alternatives.iter(), first, work)?;
        // Without draws each seed gives the same.
        let measure_of = self.scenario.measure;
        let is_equal = |(it, runs): &(&Alternative, &Vec<Measured>)| {
            !it.scenario.is_random() && runs.windows(2).all(|two| two[0].value(measure_of) == two[1].value(measure_of))
        };
        let equal: Vec<bool> = alternatives.iter().zip(&measured).map(|it| is_equal(&it)).collect();
        let others = alternatives.iter().zip(&equal).filter(|(_, equal)| !**equal).map(|(it, _)| it);
        let mut more = measure(others, rest, work)?.into_iter();
        for (runs, equal) in measured.iter_mut().zip(&equal) {
            match (equal, runs.first().cloned()) {
                (true, Some(run)) => {
                    runs.extend(rest.iter().map(|_| run.clone()));
                    work.spared.fetch_add(rest.len(), Ordering::Relaxed);
                    work.done(rest.len());
                }
                _ => runs.extend(more.next().unwrap_or_default()),
            }
        }
        let compared = |(it, runs): (Alternative, Vec<Measured>)| self.compare(it, cases, &runs);
        Ok(alternatives.into_iter().zip(measured).map(compared).collect())
    }

    fn compare(&self, alternative: Alternative, cases: &[Case], runs: &[Measured]) -> Trial {
        let measure = self.scenario.measure;
        let values: Vec<f64> = runs.iter().map(|run| run.value(measure)).collect();
        let as_is = self.as_is(cases);
        let unfinished_runs = runs.iter().filter(|run| run.is_censored(measure)).count();
        let bounds = unfinished_runs > 0 || self.unfinished(cases) > 0;
        let own = self.scenario.origin.sets.len();
        let it = &alternative;
        let tried = Tried {
            kind: it.kind,
            what: it.what.clone(),
            cause: it.cause.clone(),
            instead: it.instead.clone(),
            usual: it.usual,
            sets: it.scenario.origin.sets[own..].to_vec(),
            value: estimate(&values),
            difference: None,
            larger: 0,
            smaller: 0,
            unfinished_runs,
        };
        let mut trial = Trial { alternative, tried, values };
        if !bounds {
            trial.compare(&as_is);
        }
        trial
    }

    fn as_is(&self, cases: &[Case]) -> Vec<f64> {
        cases.iter().map(|case| case.run.measured.value(self.scenario.measure)).collect()
    }

    /// Runs what the sentence promises, and a fault that may cost more, with further seeds until the interval is small
    /// beside the difference: the seeds that chose it would promise too much.
    fn make_sure(
        &self,
        answer: &mut Answer,
        cases: &[Case],
        trials: &mut [Trial],
        work: &Work<'_>,
    ) -> Result<(), RunError> {
        let (mut as_is, mut seeds) = (self.as_is(cases), self.seeds.clone());
        let plain = |of: &Trial| Alternative { scenario: self.scenario.clone(), ..of.alternative.clone() };
        loop {
            let unsure = |index: &usize| {
                let Trial { tried, values, .. } = &trials[*index];
                let wide = tried.difference.is_some_and(|it| it.half.is_some_and(|half| half > SURE * it.mean.abs()));
                wide && (2..SEEDS).contains(&values.len())
            };
            let promised = [answer.fault, answer.remedy, might_be_fault(answer)];
            let Some(index) = promised.into_iter().flatten().find(unsure) else { return Ok(()) };
            let (begin, end) = (trials[index].values.len(), 2 * trials[index].values.len());
            while seeds.len() < end {
                seeds.push(seeds.last().map_or(0, |last| last.wrapping_add(1)));
            }
            // The scenario as it is may have been run with these seeds for another already.
            let missing = &seeds[as_is.len().min(end)..end];
            work.plan(missing.len() + end - begin);
            let more = self.finished(&plain(&trials[index]), missing, work)?;
            let with = self.finished(&trials[index].alternative, &seeds[begin..end], work)?;
            // A bound promises nothing: what has been run so far counts.
            let (Some(more), Some(with)) = (more, with) else { return Ok(()) };
            as_is.extend(more);
            trials[index].values.extend(with);
            trials[index].compare(&as_is);
            *answer = self.sum_up(cases, trials);
        }
    }

    /// The measure of an alternative with these seeds; `None` if some transfer did not finish.
    fn finished(&self, it: &Alternative, seeds: &[u64], work: &Work<'_>) -> Result<Option<Vec<f64>>, RunError> {
        let (of, runs) = (self.scenario.measure, measure([it].into_iter(), seeds, work)?);
        let value = |run: &Measured| (!run.is_censored(of)).then(|| run.value(of));
        Ok(runs.iter().flatten().map(value).collect())
    }

    fn unfinished(&self, cases: &[Case]) -> usize {
        cases.iter().filter(|case| case.run.measured.is_censored(self.scenario.measure)).count()
    }

    /// The gain of unbounded buffers of a kind, where there is one.
    fn unbounded(&self, kind: Kind, trials: &[Trial]) -> Option<f64> {
        let tried = trials.iter().map(|trial| &trial.tried).find(|it| it.kind == kind)?;
        let gain = tried.difference.filter(|it| self.sign() * it.mean > it.half.unwrap_or(0.0))?;
        Some(self.sign() * gain.mean)
    }

    /// The kinds of buffers whose size is looked for: one buffer, where it brings nearly as much as both.
    fn buffers_that_help(&self, trials: &[Trial]) -> Vec<Kind> {
        let Some(both) = self.unbounded(Kind::Buffers, trials) else { return Vec::new() };
        let enough = |kind: &Kind| self.unbounded(*kind, trials).is_some_and(|gain| gain >= ENOUGH * both);
        let alone: Vec<Kind> = [Kind::ReceiveBuffer, Kind::SendBuffer].into_iter().filter(enough).collect();
        if alone.is_empty() { vec![Kind::Buffers] } else { alone }
    }

    /// Finds the smallest buffers, by doubling those there are, that bring nearly as much as unbounded ones do. None
    /// becomes smaller than it is.
    fn find_size(
        &self,
        kind: Kind,
        cases: &[Case],
        trials: &[Trial],
        work: &Work<'_>,
        load: &Load<'_>,
    ) -> Result<Option<Trial>, RunError> {
        let Some(unbounded) = self.unbounded(kind, trials) else { return Ok(None) };
        let spec = self.scenario.spec(self.scenario.seed);
        let mut size = DataBuffers::of(&spec).first_larger(kind);
        for _ in 0..DOUBLINGS {
            let what = buffer_name(kind, &size_text(size));
            // A size beyond what is accepted ends the search.
            let Ok(scenario) = load(&buffers(&spec, kind, &size_text(size).replace(' ', ""))) else { return Ok(None) };
            let sized = Alternative { kind, what, cause: None, instead: None, usual: false, scenario };
            work.plan(self.seeds.len());
            let Some(trial) = self.try_all(vec![sized], cases, work)?.pop() else { return Ok(None) };
            if trial.tried.difference.is_some_and(|it| self.sign() * it.mean >= ENOUGH * unbounded) {
                return Ok(Some(trial));
            }
            size *= 2;
        }
        Ok(None)
    }

    /// Returns 1 if more of the measure is better, or else -1.
    fn sign(&self) -> f64 {
        if self.scenario.measure == MeasureName::Goodput { 1.0 } else { -1.0 }
    }

    fn sum_up(&self, cases: &[Case], trials: &[Trial]) -> Answer {
        let (scenario, paths) = (self.scenario, self.scenario.paths());
        let spec = scenario.spec(scenario.seed);
        let mut counterfactuals: Vec<Tried> = trials.iter().map(|trial| trial.tried.clone()).collect();
        let begins = first_path(cases).map(|first| format!("The connection begins on {}", paths[first]));
        let client = if scenario.client_sends() { scenario.policies() } else { scenario.receiver() };
        let policy = format!("first-path {}", client.first_path.name);
        let buffers = DataBuffers::of(&spec);
        for tried in &mut counterfactuals {
            tried.instead = match tried.kind {
                Kind::FirstPath => begins.clone(),
                Kind::FirstPathPolicy => begins.as_ref().map(|begins| format!("{begins} ({policy})")),
                kind => buffers.words(kind).or(tried.instead.take()),
            };
        }
        let mut answer = Answer {
            scenario: scenario.name.clone(),
            digest: scenario.digest.clone(),
            sets: scenario.origin.sets.clone(),
            seed: self.seeds.first().copied().unwrap_or(scenario.seed),
            repeat: self.seeds.len(),
            runs: 0,
            sentence: String::new(),
            measure: scenario.measure.name().replace(' ', "-"),
            unit: if scenario.measure == MeasureName::Goodput { "bit/s" } else { "s" }.to_owned(),
            value: estimate(&self.as_is(cases)),
            unfinished_runs: self.unfinished(cases),
            shares: shares(cases, &paths),
            fault: None,
            remedy: None,
            pauses: pauses(&spec, cases.iter().map(|case| case.judged.as_slice())),
            idle_paths: idle_paths(&spec, cases, &paths),
            transfers: cases
                .first()
                .map_or(Vec::new(), |first| first.judged.iter().map(|judged| Transfer::of(judged, &paths)).collect()),
            counterfactuals,
            left_out: self.alternatives.left_out.clone(),
            paths,
        };
        answer.fault = fault(&answer, &bloated(&spec, cases));
        answer.remedy = choice(&answer).or_else(|| remedy(&answer));
        answer.sentence = sentence(&answer, &buffers);
        answer
    }
}

/// Runs each alternative with these seeds.
fn measure<'a>(
    alternatives: impl Iterator<Item = &'a Alternative>,
    seeds: &[u64],
    work: &Work<'_>,
) -> Result<Vec<Vec<Measured>>, RunError> {
    let runs: Vec<(&Alternative, u64)> =
        alternatives.flat_map(|it| seeds.iter().map(move |seed| (it, *seed))).collect();
    if seeds.is_empty() {
        return Ok(Vec::new());
    }
    let one = |(it, seed): &(&Alternative, u64)| run(&it.scenario, *seed, &Keep::default()).map(|run| run.measured);
    let measured = in_parallel(&runs, work.jobs, &|| work.done(1), &one)?;
    Ok(measured.chunks(seeds.len()).map(<[Measured]>::to_vec).collect())
}

/// The path on which the first connection began.
fn first_path(cases: &[Case]) -> Option<usize> {
    let first = cases.first()?.run.outcome.connections.first()?;
    first.subflows.first().map(|subflow| subflow.path)
}

fn estimate(values: &[f64]) -> crate::answer::Measure {
    Estimate::of(values).map_or(crate::answer::Measure { mean: f64::NAN, half: None, n: 0 }, Into::into)
}

/// The links, by the assignments' prefix, in whose queues packets waited long in some run.
fn bloated(spec: &Spec, cases: &[Case]) -> Vec<String> {
    let paths = spec.network.paths.iter().map(|path| ("path", &path.name, &path.down));
    let shared = spec.network.shared.iter().map(|link| ("link", &link.name, &link.down));
    let waited = |(_, name, link): &(&str, &String, &LinkConfig)| {
        let of_run = cases.iter().flat_map(|case| &case.run.outcome.links);
        let mut same = of_run.filter(|it| it.name == format!("{name}/down"));
        same.any(|it| is_long(link, it.stats.max_queued_bytes))
    };
    paths.chain(shared).filter(waited).map(|(table, name, _)| format!("{table}.{name}.")).collect()
}

/// The directions in which a run has data of its own.
pub(crate) fn ways(spec: &Spec) -> BTreeSet<Direction> {
    let of = |workload: &Workload| match workload {
        Workload::Bulk { direction, .. } | Workload::Files { direction, .. } | Workload::Bursts { direction, .. } => {
            vec![*direction]
        }
        Workload::Exchange { .. } => vec![Direction::Down, Direction::Up],
        Workload::Udp { .. } | Workload::Tcp { .. } => Vec::new(),
        _ => vec![Direction::Down],
    };
    spec.workloads.iter().flat_map(of).collect()
}

/// The time of all transfers by cause, the longest first; of equals in the order of limits and paths.
fn shares(cases: &[Case], paths: &[String]) -> Vec<Share> {
    let mut times: BTreeMap<Cause, Duration> = BTreeMap::new();
    for judged in cases.iter().flat_map(|case| &case.judged) {
        for (cause, time) in judged.bands.times() {
            *times.entry(cause).or_insert(Duration::ZERO) += time;
        }
    }
    let whole = times.values().fold(Duration::ZERO, |sum, time| sum + *time);
    let mut shares: Vec<Share> = times
        .into_iter()
        .map(|(cause, time)| Share {
            limit: cause.limit,
            path: cause.path.map(|path| paths[path].clone()),
            time_ns: time.as_nanos(),
            share: if whole.is_zero() { 0.0 } else { time.per(whole) },
        })
        .collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.time_ns));
    shares
}
