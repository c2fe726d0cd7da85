//! An inquiry: the run, watched by the judge, and its counterfactuals on the same seeds.

use crate::alternative::{Alternatives, Load, buffer_name, buffers, subflow_limit};
use crate::answer::{Answer, IdlePath, Reason, Share, Transfer, Tried};
use crate::element::is_long;
use crate::pauses::pauses;
use crate::sentence::{fault, sentence};
use crate::{Alternative, Band, Bands, Cause, Judge, Judged, Kind, Limit};
use anabranch_lab::stats::Estimate;
use anabranch_lab::{Keep, Measured, Run, RunError, in_parallel, run, run_watched};
use anabranch_net::LinkConfig;
use anabranch_paths::Direction;
use anabranch_scenario::Scenario;
use anabranch_scenario::file::MeasureName;
use anabranch_sim::{Spec, Workload};
use anabranch_units::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// Runs to be made for an answer.
pub struct Inquiry<'a> {
    scenario: &'a Scenario,
    alternatives: Alternatives,
    seeds: Vec<u64>,
}

/// Error: a run broke.
pub type InquiryError = RunError;

/// A run as it is, with the time of its transfers.
struct Case {
    run: Run,
    judged: Vec<Judged>,
}

/// Sizes of buffers that are tried: each twice the one before.
const DOUBLINGS: u32 = 8;
/// Share of the gain of unbounded buffers that a size has to bring.
const ENOUGH: f64 = 0.9;
/// Time after which a SYN is repeated (RFC 6298 §2.1).
const FIRST_RTO: Duration = Duration::from_secs(1);

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

    /// Makes all runs on `jobs` threads, calls `done` after each, and sums up. `load` loads the scenario with overrides
    /// on top of its own.
    ///
    /// # Errors
    ///
    /// If a run breaks.
    pub fn run(self, jobs: usize, load: &Load<'_>, done: &(dyn Fn() + Sync)) -> Result<Answer, InquiryError> {
        let cases = in_parallel(&self.seeds, jobs, done, &|seed| self.judge(*seed))?;
        let mut tried = self.try_all(&self.alternatives.run, &cases, jobs, done)?;
        for kind in self.buffers_that_help(&tried) {
            if let Some(sized) = self.find_size(kind, &cases, &tried, jobs, load)? {
                tried.push(sized);
            }
        }
        Ok(self.sum_up(&cases, tried))
    }

    /// Makes the run as it is.
    fn judge(&self, seed: u64) -> Result<Case, RunError> {
        let mut judge = Judge::of(&self.scenario.spec(seed));
        let run = run_watched(self.scenario, seed, &Keep::default(), Some(&mut judge))?;
        let judged = judge.finish(&self.scenario.spec(seed).workloads, &run.outcome);
        Ok(Case { run, judged })
    }

    fn try_all(
        &self,
        alternatives: &[Alternative],
        cases: &[Case],
        jobs: usize,
        done: &(dyn Fn() + Sync),
    ) -> Result<Vec<Tried>, RunError> {
        let work: Vec<(&Alternative, u64)> =
            alternatives.iter().flat_map(|it| self.seeds.iter().map(move |seed| (it, *seed))).collect();
        let one = |(it, seed): &(&Alternative, u64)| run(&it.scenario, *seed, &Keep::default()).map(|run| run.measured);
        let measured = in_parallel(&work, jobs, done, &one)?;
        let groups = measured.chunks(self.seeds.len().max(1));
        Ok(alternatives.iter().zip(groups).map(|(it, runs)| self.compare(it, cases, runs)).collect())
    }

    fn compare(&self, it: &Alternative, cases: &[Case], runs: &[Measured]) -> Tried {
        let measure = self.scenario.measure;
        let values: Vec<f64> = runs.iter().map(|run| run.value(measure)).collect();
        let as_is: Vec<f64> = cases.iter().map(|case| case.run.measured.value(measure)).collect();
        let unfinished = |censored: bool| usize::from(censored);
        let unfinished_runs = runs.iter().map(|run| unfinished(run.is_censored(measure))).sum();
        let bounds = unfinished_runs > 0 || self.unfinished(cases) > 0;
        let own = self.scenario.origin.sets.len();
        Tried {
            kind: it.kind,
            what: it.what.clone(),
            cause: it.cause.clone(),
            sets: it.scenario.origin.sets[own..].to_vec(),
            value: estimate(&values),
            difference: (!bounds).then(|| Estimate::of_difference(&values, &as_is)).flatten().map(Into::into),
            unfinished_runs,
        }
    }

    fn unfinished(&self, cases: &[Case]) -> usize {
        cases.iter().filter(|case| case.run.measured.is_censored(self.scenario.measure)).count()
    }

    /// The gain of unbounded buffers of a kind, where there is one.
    fn unbounded(&self, kind: Kind, tried: &[Tried]) -> Option<f64> {
        let tried = tried.iter().find(|it| it.kind == kind)?;
        let gain = tried.difference.filter(|it| self.sign() * it.mean > it.half.unwrap_or(0.0))?;
        Some(self.sign() * gain.mean)
    }

    /// The kinds of buffers whose size is looked for: one buffer, where it brings nearly as much as both.
    fn buffers_that_help(&self, tried: &[Tried]) -> Vec<Kind> {
        let Some(both) = self.unbounded(Kind::Buffers, tried) else { return Vec::new() };
        let enough = |kind: &Kind| self.unbounded(*kind, tried).is_some_and(|gain| gain >= ENOUGH * both);
        let alone: Vec<Kind> = [Kind::ReceiveBuffer, Kind::SendBuffer].into_iter().filter(enough).collect();
        if alone.is_empty() { vec![Kind::Buffers] } else { alone }
    }

    /// Finds the smallest buffers, by doubling those there are, that bring nearly as much as unbounded ones do. None
    /// becomes smaller than it is.
    fn find_size(
        &self,
        kind: Kind,
        cases: &[Case],
        tried: &[Tried],
        jobs: usize,
        load: &Load<'_>,
    ) -> Result<Option<Tried>, RunError> {
        let Some(unbounded) = self.unbounded(kind, tried) else { return Ok(None) };
        let spec = self.scenario.spec(self.scenario.seed);
        let mut size = DataBuffers::of(&spec).first_larger(kind);
        for _ in 0..DOUBLINGS {
            let what = buffer_name(kind, &size_text(size));
            // A size beyond what is accepted ends the search.
            let Ok(scenario) = load(&buffers(&spec, kind, &size_text(size).replace(' ', ""))) else { return Ok(None) };
            let sized = Alternative { kind, what, cause: None, scenario };
            let tried = self.try_all(&[sized], cases, jobs, &|| {})?.pop();
            let Some(tried) = tried else { return Ok(None) };
            if tried.difference.is_some_and(|it| self.sign() * it.mean >= ENOUGH * unbounded) {
                return Ok(Some(tried));
            }
            size *= 2;
        }
        Ok(None)
    }

    /// Returns 1 if more of the measure is better, or else -1.
    fn sign(&self) -> f64 {
        if self.scenario.measure == MeasureName::Goodput { 1.0 } else { -1.0 }
    }

    fn sum_up(self, cases: &[Case], counterfactuals: Vec<Tried>) -> Answer {
        let (scenario, paths) = (self.scenario, self.scenario.paths());
        let spec = scenario.spec(scenario.seed);
        let values: Vec<f64> = cases.iter().map(|case| case.run.measured.value(scenario.measure)).collect();
        let mut answer = Answer {
            scenario: scenario.name.clone(),
            digest: scenario.digest.clone(),
            sets: scenario.origin.sets.clone(),
            seed: self.seeds.first().copied().unwrap_or(scenario.seed),
            repeat: self.seeds.len(),
            sentence: String::new(),
            measure: scenario.measure.name().replace(' ', "-"),
            unit: if scenario.measure == MeasureName::Goodput { "bit/s" } else { "s" }.to_owned(),
            value: estimate(&values),
            unfinished_runs: self.unfinished(cases),
            shares: shares(cases, &paths),
            fault: None,
            pauses: pauses(&spec, cases.iter().map(|case| case.judged.as_slice())),
            idle_paths: idle_paths(&spec, cases, &paths),
            transfers: cases
                .first()
                .map_or(Vec::new(), |first| first.judged.iter().map(|judged| Transfer::of(judged, &paths)).collect()),
            counterfactuals,
            left_out: self.alternatives.left_out,
            paths,
        };
        answer.fault = fault(&answer, &bloated(&spec, cases));
        answer.sentence = sentence(&answer, &DataBuffers::of(&spec));
        answer
    }
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

/// The buffers that the data of a run passes through \[B\]: of several directions the smaller.
pub(crate) struct DataBuffers {
    /// Send buffer of the host that sends.
    pub(crate) send: u64,
    /// Receive buffer of the host that receives. One that tunes itself counts with its first size, and its last.
    pub(crate) receive: (u64, u64),
}

impl DataBuffers {
    pub(crate) fn of(spec: &Spec) -> Self {
        let mut all = DataBuffers { send: u64::MAX, receive: (u64::MAX, u64::MAX) };
        for way in ways(spec) {
            let (sender, receiver) = match way {
                Direction::Down => (&spec.server.config, &spec.client.config),
                Direction::Up => (&spec.client.config, &spec.server.config),
            };
            let last = receiver.receive_buffer.get();
            let first = receiver.initial_receive_buffer.map_or(last, |first| first.get().min(last));
            all.send = all.send.min(sender.send_buffer.get());
            all.receive = all.receive.min((first, last));
        }
        all
    }

    /// The first size to try of a kind of buffers: none of those that it sets is larger now.
    fn first_larger(&self, kind: Kind) -> u64 {
        let (first, last) = self.receive;
        // A buffer that begins below its last size gains from having that at once.
        let receive = if first < last { last } else { last.saturating_mul(2) };
        match kind {
            Kind::ReceiveBuffer => receive,
            Kind::SendBuffer => self.send.saturating_mul(2),
            // Of both the larger may stay as it is.
            _ => last.max(self.send).max(2 * last.min(self.send)),
        }
        .max(1)
    }
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

/// A size as scenario files have it.
pub(crate) fn size_text(bytes: u64) -> String {
    match bytes {
        n if n % (1 << 20) == 0 => format!("{} MiB", n >> 20),
        n if n % (1 << 10) == 0 => format!("{} KiB", n >> 10),
        n => format!("{n} B"),
    }
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

/// The paths that carried nothing in any run.
fn idle_paths(spec: &Spec, cases: &[Case], names: &[String]) -> Vec<IdlePath> {
    let carried = |path: usize| cases.iter().any(|case| case.run.measured.path_bytes[path] > 0);
    let idle = |(path, name): (usize, &String)| {
        let (reason, because) = reason(spec, cases, path);
        IdlePath { path: name.clone(), reason, because }
    };
    let any = cases.iter().any(|case| case.run.measured.path_bytes.iter().any(|bytes| *bytes > 0));
    names.iter().enumerate().filter(|(path, _)| any && !carried(*path)).map(idle).collect()
}

fn reason(spec: &Spec, cases: &[Case], path: usize) -> (Reason, String) {
    let connections = || cases.iter().flat_map(|case| &case.run.outcome.connections);
    if connections().all(|connection| !connection.multipath) {
        let of_end = |end: &Option<anabranch_engine::ConnectionStats>| end.as_ref().and_then(|end| end.fallback);
        let fallback = connections().find_map(|it| of_end(&it.receiver).or(of_end(&it.sender)));
        let because = match fallback {
            _ if !spec.client.config.multipath => "the client is set to plain TCP".to_owned(),
            _ if !spec.server.config.multipath => "the server answered without MP_CAPABLE".to_owned(),
            Some(fallback) => format!("the connection went on as plain TCP, since {}", words(fallback)),
            None => "the connection is plain TCP".to_owned(),
        };
        return (Reason::PlainTcp, because);
    }
    if spec.network.paths[path].backup {
        return (Reason::Backup, "it is marked as a backup".to_owned());
    }
    carried_nothing(spec, cases, path)
}

/// The reason for which a regular path of an MPTCP connection carried nothing, by what it waited for.
fn carried_nothing(spec: &Spec, cases: &[Case], path: usize) -> (Reason, String) {
    let bands = || cases.iter().flat_map(|case| &case.judged).filter_map(|judged| judged.paths.get(path));
    let mut times: BTreeMap<Limit, Duration> = BTreeMap::new();
    for (cause, time) in bands().flat_map(|bands| bands.times()) {
        *times.entry(cause.limit).or_insert(Duration::ZERO) += time;
    }
    let join = times.remove(&Limit::Join);
    times.retain(|limit, _| !matches!(limit, Limit::Unused | Limit::Handshake));
    let (reason, because) = match times.into_iter().max_by_key(|(_, time)| *time).map(|(limit, _)| limit) {
        Some(Limit::PeerWindow) => {
            (Reason::WindowUsedUp, "most of the time data on other paths used up the receiver's window")
        }
        Some(Limit::SendBuffer) => {
            (Reason::SendBufferFull, "most of the time data on other paths filled the send buffer")
        }
        Some(Limit::HeadOfLine | Limit::ApplicationReads) => {
            (Reason::OthersAwaited, "most of the time the receiver waited for data on other paths")
        }
        Some(Limit::InFlight | Limit::ApplicationSends | Limit::Request) => {
            (Reason::NothingLeft, "most of the time no data was left to send")
        }
        Some(_) => (Reason::NotChosen, "the scheduler gave it nothing"),
        None if join.is_some() => {
            // A SYN that is repeated has failed once; so has a join that was under way and no longer is.
            let of_join = |bands: &&Bands| bands.iter().any(|band| band.cause.limit == Limit::Join);
            let is_open = |last: &Band| last.cause.limit == Limit::Join && last.length() < FIRST_RTO;
            match bands().filter(of_join).filter_map(|bands| bands.iter().next_back()).all(is_open) {
                true => (Reason::JoinUnfinished, "the transfers ended before its join was complete"),
                false => (Reason::JoinFailed, "its join was never completed"),
            }
        }
        None => {
            let limit = subflow_limit(spec);
            let mut connections = cases.iter().flat_map(|case| &case.run.outcome.connections);
            if connections.all(|connection| connection.subflows.len() >= limit) {
                let because = format!("each connection had the {limit} subflows that `max-subflows` admits");
                return (Reason::SubflowLimit, because);
            }
            (Reason::NoSubflow, "no subflow was begun there")
        }
    };
    (reason, because.to_owned())
}

fn words(fallback: anabranch_engine::FallbackReason) -> &'static str {
    use anabranch_engine::FallbackReason as F;
    match fallback {
        F::Syn => "the SYN arrived without MP_CAPABLE",
        F::SynAck => "the SYN/ACK carried no MP_CAPABLE",
        F::SynLost => "SYNs with MP_CAPABLE were not answered",
        F::Remembered => "earlier connections on the path had lost MP_CAPABLE",
        F::ThirdAck => "the third ACK carried no MP_CAPABLE",
        F::FirstData | F::OptionsLost => "MPTCP options were lost on the way",
        F::InfiniteMapping | F::PeerFailed => "the peer asked for it",
        F::ChecksumFailed => "payload was altered on the way",
        _ => "MPTCP was not agreed on",
    }
}
