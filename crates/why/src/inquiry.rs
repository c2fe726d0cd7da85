//! An inquiry: the run, watched by the judge, and its counterfactuals on the same seeds.

use crate::alternative::{Alternatives, Load};
use crate::answer::{Answer, Share, Transfer, Tried};
use crate::buffers::{DataBuffers, buffer_name, buffers, size_text};
use crate::element::is_long;
use crate::idle::idle_paths;
use crate::meter::Meter;
use crate::pauses::pauses;
use crate::sentence::{choice, fault, might_be_fault, remedy, sentence};
use crate::{Alternative, Cause, Judge, Judged, Kind, LeftOut};
use anabranch_lab::stats::Estimate;
use anabranch_lab::timeline::All;
use anabranch_lab::{Keep, Measured, Run, RunError, in_parallel, run_watched};
use anabranch_net::LinkConfig;
use anabranch_paths::Direction;
use anabranch_scenario::Scenario;
use anabranch_scenario::file::MeasureName;
use anabranch_sim::{Spec, Workload};
use anabranch_units::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Runs to be made for an answer.
pub struct Inquiry<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) alternatives: Alternatives,
    seeds: Vec<u64>,
    /// True for one repetition, with as many changes as fit into a few times its work.
    is_brief: bool,
    /// Kinds of changes that somebody asked for.
    pub(crate) asked: Vec<Kind>,
    stop: Option<Arc<AtomicBool>>,
}

/// Error: a run broke.
pub type InquiryError = RunError;

/// A function that is told how many runs are made, and how many are planned by now.
pub type Progress<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// A run as it is, with the time of its transfers.
pub(crate) struct Case {
    pub(crate) run: Run,
    pub(crate) judged: Vec<Judged>,
    /// Events of the run.
    pub(crate) events: u64,
    /// It was stopped before its end.
    stopped: bool,
}

/// A counterfactual with the measure of each seed.
pub(crate) struct Trial {
    pub(crate) alternative: Alternative,
    pub(crate) tried: Tried,
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
pub(crate) struct Work<'a> {
    pub(crate) jobs: usize,
    progress: &'a Progress<'a>,
    planned: AtomicUsize,
    done: AtomicUsize,
    /// Runs that an equal one stood for.
    spared: AtomicUsize,
    /// Events of all runs.
    events: AtomicU64,
    stop: Option<&'a AtomicBool>,
}

impl Work<'_> {
    pub(crate) fn plan(&self, runs: usize) {
        self.planned.fetch_add(runs, Ordering::Relaxed);
    }

    /// Plans for so many more runs than are made, if it has not yet.
    pub(crate) fn expect(&self, runs: usize) {
        self.planned.fetch_max(self.done.load(Ordering::Relaxed) + runs, Ordering::Relaxed);
    }

    pub(crate) fn done(&self, runs: usize) {
        let done = self.done.fetch_add(runs, Ordering::Relaxed) + runs;
        (self.progress)(done, self.planned.load(Ordering::Relaxed));
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Runs an alternative for at most so many events. Returns it with its events, and true if it was ended early.
    pub(crate) fn run(&self, it: &Alternative, seed: u64, most: u64) -> Result<(Run, u64, bool), RunError> {
        let mut meter = Meter::new(most, self.stop);
        let run = run_watched(&it.scenario, seed, &Keep::default(), Some(&mut meter))?;
        self.events.fetch_add(meter.events, Ordering::Relaxed);
        Ok((run, meter.events, meter.ended))
    }
}

/// Sizes of buffers that are tried: each twice the one before.
pub(crate) const DOUBLINGS: u32 = 8;
/// Share of the gain of unbounded buffers that a size has to bring.
pub(crate) const ENOUGH: f64 = 0.9;
/// Half of the interval of a promise, as a share of it, that is worth no further seeds.
const SURE: f64 = 0.1;
/// Seeds up to which their number is doubled for a promise that is less sure.
const SEEDS: usize = 40;
/// Number of changes that a brief inquiry is taken to try, before it is known.
const GUESS: usize = 4;
/// Reason for which a change was not tried.
pub(crate) const STOPPED: &str = "it was stopped before";
/// Runs of a scenario without draws that have to be equal, to stand for those of all seeds.
const EQUAL: usize = 2;

impl<'a> Inquiry<'a> {
    /// Prepares the runs of a scenario with these seeds, from `seed` on.
    pub fn new(scenario: &'a Scenario, alternatives: Alternatives, seed: u64, repeat: usize) -> Self {
        let seeds = (0..repeat as u64).map(|n| seed.wrapping_add(n)).collect();
        Inquiry { scenario, alternatives, seeds, is_brief: false, asked: Vec::new(), stop: None }
    }

    /// Prepares one run of a scenario with this seed, and as many with one thing changed as a few times its work
    /// allows, those on whose limits its time went before others.
    pub fn brief(scenario: &'a Scenario, alternatives: Alternatives, seed: u64) -> Self {
        Inquiry { is_brief: true, ..Inquiry::new(scenario, alternatives, seed, 1) }
    }

    /// Puts changes of these kinds before all others where not all can be tried.
    pub fn asked(mut self, kinds: &[Kind]) -> Self {
        self.asked = kinds.to_vec();
        self
    }

    /// Makes it end soon after `stop` becomes true, with an answer from the runs made until then.
    pub fn stoppable(mut self, stop: &Arc<AtomicBool>) -> Self {
        self.stop = Some(Arc::clone(stop));
        self
    }

    /// Returns the number of runs, without those that look for a size of buffers; of a brief inquiry a guess.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        let alternatives = self.alternatives.run.len();
        if self.is_brief { 1 + alternatives.min(GUESS) } else { (1 + alternatives) * self.seeds.len() }
    }

    /// Makes all runs on `jobs` threads, tells `progress` after each, and sums up. `load` loads the scenario with
    /// overrides on top of its own.
    ///
    /// # Errors
    ///
    /// If a run breaks.
    pub fn run(mut self, jobs: usize, load: &Load<'_>, progress: &Progress<'_>) -> Result<Answer, InquiryError> {
        let (zero, stop) = (|| AtomicUsize::new(0), self.stop.clone());
        let (planned, events) = (AtomicUsize::new(self.len()), AtomicU64::new(0));
        let work = Work { jobs, progress, planned, done: zero(), spared: zero(), events, stop: stop.as_deref() };
        let cases = in_parallel(&self.seeds, jobs, &|| {}, &|seed| self.judge(*seed, &work))?;
        let mut cases: Vec<Case> = cases.into_iter().map_while(|case| case).collect();
        // Of a run that was stopped, the time until then counts only where there is no other.
        let whole = cases.iter().take_while(|case| !case.stopped).count().max(1);
        cases.truncate(whole);
        self.seeds.truncate(whole);
        let mut trials = self.trials(&cases, &work, load)?;
        let budget = self.is_brief.then(|| crate::budget::of(cases.first().map_or(0, |case| case.events)));
        let mut answer = self.sum_up(&cases, &trials, budget, work.is_stopped());
        self.make_sure(&mut answer, &cases, &mut trials, &work)?;
        answer.runs = work.done.into_inner() - work.spared.into_inner();
        answer.events = work.events.into_inner();
        Ok(answer)
    }

    /// Runs alternatives: as many as a brief inquiry may, or all, and sizes of buffers.
    fn trials(&mut self, cases: &[Case], work: &Work<'_>, load: &Load<'_>) -> Result<Vec<Trial>, RunError> {
        let alternatives = std::mem::take(&mut self.alternatives.run);
        if work.is_stopped() || cases.is_empty() {
            self.leave_out(&alternatives, &[], STOPPED);
            return Ok(Vec::new());
        }
        if self.is_brief {
            return self.try_some(alternatives, cases, work, load);
        }
        let mut trials = self.try_all(alternatives.clone(), cases, work)?;
        self.leave_out(&alternatives, &trials, STOPPED);
        for kind in self.buffers_that_help(&trials) {
            if let Some(sized) = self.find_size(kind, cases, &trials, work, load)? {
                trials.push(sized);
            }
        }
        Ok(trials)
    }

    /// Notes why those were not run that have no trial.
    fn leave_out(&mut self, alternatives: &[Alternative], trials: &[Trial], because: &str) {
        let missing = alternatives.iter().filter(|it| trials.iter().all(|trial| trial.tried.what != it.what));
        let left_out = missing.map(|it| LeftOut { what: it.what.clone(), because: because.to_owned() });
        self.alternatives.left_out.extend(left_out);
    }

    /// Makes the run as it is. After a stop it makes none but that of the first seed, up to where it is.
    fn judge(&self, seed: u64, work: &Work<'_>) -> Result<Option<Case>, RunError> {
        if work.is_stopped() && self.seeds.first() != Some(&seed) {
            return Ok(None);
        }
        let mut judge = Judge::of(&self.scenario.spec(seed));
        let mut meter = Meter::new(u64::MAX, work.stop);
        let run = run_watched(self.scenario, seed, &Keep::default(), Some(&mut All(vec![&mut judge, &mut meter])))?;
        work.events.fetch_add(meter.events, Ordering::Relaxed);
        let judged = judge.finish(&self.scenario.spec(seed).workloads, &run.outcome);
        work.done(1);
        Ok(Some(Case { run, judged, events: meter.events, stopped: meter.ended }))
    }

    /// Runs alternatives with all seeds. Those of which a stop left no run are not among the results.
    fn try_all(&self, alternatives: Vec<Alternative>, cases: &[Case], work: &Work<'_>) -> Result<Vec<Trial>, RunError> {
        let (first, rest) = self.seeds.split_at(self.seeds.len().min(EQUAL));
        let mut measured = measure(alternatives.iter(), first, work)?;
        // Without draws each seed gives the same.
        let measure_of = self.scenario.measure;
        let is_equal = |(it, runs): &(&Alternative, &Vec<Measured>)| {
            !it.scenario.is_random()
                && runs.len() == first.len()
                && runs.windows(2).all(|two| two[0].value(measure_of) == two[1].value(measure_of))
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
        let has_run = |(_, runs): &(Alternative, Vec<Measured>)| !runs.is_empty();
        Ok(alternatives.into_iter().zip(measured).filter(has_run).map(compared).collect())
    }

    pub(crate) fn compare(&self, alternative: Alternative, cases: &[Case], runs: &[Measured]) -> Trial {
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
            at_least: false,
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
            *answer = self.sum_up(cases, trials, answer.budget, work.is_stopped());
        }
    }

    /// The measure of an alternative with these seeds; `None` if some transfer did not finish, or it was stopped.
    fn finished(&self, it: &Alternative, seeds: &[u64], work: &Work<'_>) -> Result<Option<Vec<f64>>, RunError> {
        let (of, runs) = (self.scenario.measure, measure([it].into_iter(), seeds, work)?);
        let value = |run: &Measured| (!run.is_censored(of)).then(|| run.value(of));
        let values: Option<Vec<f64>> = runs.iter().flatten().map(value).collect();
        Ok(values.filter(|values| values.len() == seeds.len()))
    }

    pub(crate) fn unfinished(&self, cases: &[Case]) -> usize {
        cases.iter().filter(|case| case.stopped || case.run.measured.is_censored(self.scenario.measure)).count()
    }

    /// The gain of unbounded buffers of a kind, where there is one.
    pub(crate) fn unbounded(&self, kind: Kind, trials: &[Trial]) -> Option<f64> {
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
            let Some(sized) = sized(&spec, kind, size, load) else { return Ok(None) };
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
    pub(crate) fn sign(&self) -> f64 {
        if self.scenario.measure == MeasureName::Goodput { 1.0 } else { -1.0 }
    }

    fn sum_up(&self, cases: &[Case], trials: &[Trial], budget: Option<u64>, stopped: bool) -> Answer {
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
            events: 0,
            budget,
            stopped,
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

/// Runs each alternative with these seeds, or those up to a stop.
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
    let one = |(it, seed): &(&Alternative, u64)| -> Result<Option<Measured>, RunError> {
        if work.is_stopped() {
            return Ok(None);
        }
        let (run, _, ended) = work.run(it, *seed, u64::MAX)?;
        work.done(1);
        Ok((!ended).then_some(run.measured))
    };
    let measured = in_parallel(&runs, work.jobs, &|| {}, &one)?;
    Ok(measured.chunks(seeds.len()).map(|runs| runs.iter().map_while(Clone::clone).collect()).collect())
}

/// The alternative with buffers of this size; `None` beyond what is accepted.
pub(crate) fn sized(spec: &Spec, kind: Kind, size: u64, load: &Load<'_>) -> Option<Alternative> {
    let what = buffer_name(kind, &size_text(size));
    let scenario = load(&buffers(spec, kind, &size_text(size).replace(' ', ""))).ok()?;
    Some(Alternative { kind, what, cause: None, instead: None, usual: false, scenario })
}

/// The path on which the first connection began.
pub(crate) fn first_path(cases: &[Case]) -> Option<usize> {
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
pub(crate) fn shares(cases: &[Case], paths: &[String]) -> Vec<Share> {
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
