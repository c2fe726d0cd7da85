//! A brief inquiry: what it tries, within a few times the work of the run that it explains.
//!
//! Work is counted in events of the simulator, so that the same changes are tried on every machine and on any number of
//! threads. Changes go in waves: of those that are left, the first that fit into what is left of the budget are run at
//! once, each with an equal part as its own limit.

use crate::alternative::Load;
use crate::buffers::DataBuffers;
use crate::idle::idle_paths;
use crate::inquiry::{Case, DOUBLINGS, ENOUGH, Inquiry, STOPPED, Trial, Work, first_path, shares, sized};
use crate::order::Known;
use crate::sentence::{FAULT, brings};
use crate::{Alternative, Kind, LeftOut};
use anabranch_lab::{Measured, Run, RunError, in_parallel};
use anabranch_scenario::file::MeasureName;
use anabranch_sim::Workload;

/// Work of all changes together, as a multiple of that of the run as it is. With the judge that watches it, which takes
/// about as much again as two thirds of the run, all takes less than five times the run.
const TIMES: (u64, u64) = (305, 100);
/// Events that are added: of a short run, reading the scenario and starting the program take longer than these.
const FREE: u64 = 30_000;
/// Room that a change needs, as a multiple of the work of the run as it is: it may take somewhat more.
const ROOM: (u64, u64) = (5, 4);

/// Events of all runs, where the run as it is has so many.
pub(crate) fn of(events: u64) -> u64 {
    events + events * TIMES.0 / TIMES.1 + FREE
}

/// Factor from one size of buffers to the next.
const STEP: u64 = 4;

/// Reason for which a change was not tried.
const BEYOND: &str = "not within five times the work of the run; --repeat N tries all, N times";
/// Reason for which an element was not taken away alone.
const SPARED: &str = "without all of them together it is hardly better";
/// Reason for which a run was ended before its end.
const LONG: &str = "it takes much more work than the run as it is; --repeat N tries it to its end";

/// The rest of a budget, and what was tried of it.
struct Tries<'a> {
    inquiry: &'a Inquiry<'a>,
    cases: &'a [Case],
    trials: Vec<Trial>,
    left_out: Vec<LeftOut>,
    left: u64,
    /// Sizes of buffers that were tried, for each kind that helps.
    sizes: Vec<Search>,
}

/// The search for the smallest buffers of a kind that bring nearly as much as unbounded ones.
struct Search {
    kind: Kind,
    /// Gain of unbounded buffers.
    unbounded: f64,
    size: u64,
    tried: u32,
    /// A size waits to be run.
    waits: bool,
    is_over: bool,
}

impl<'a> Inquiry<'a> {
    /// Tries what the budget allows, and notes what it does not.
    pub(crate) fn try_some(
        &mut self,
        mut alternatives: Vec<Alternative>,
        cases: &[Case],
        work: &Work<'_>,
        load: &Load<'_>,
    ) -> Result<Vec<Trial>, RunError> {
        let (spec, paths) = (self.scenario.spec(self.scenario.seed), self.scenario.paths());
        let in_use: Vec<Kind> =
            idle_paths(&spec, cases, &paths).iter().filter_map(|idle| brings(idle.reason)).collect();
        let first = first_path(cases).map(|first| paths[first].as_str());
        Known { shares: &shares(cases, &paths), asked: &self.asked, in_use: &in_use, first }.sort(&mut alternatives);
        let left = of(cases[0].events) - cases[0].events;
        let (trials, left_out) = (Vec::new(), Vec::new());
        let mut tries = Tries { inquiry: self, cases, trials, left_out, left, sizes: Vec::new() };
        tries.all(alternatives, work, load)?;
        let Tries { trials, left_out, .. } = tries;
        self.alternatives.left_out.splice(0..0, left_out);
        Ok(trials)
    }
}

impl Tries<'_> {
    /// Runs wave after wave of those that wait, until the budget is spent.
    fn all(&mut self, mut waiting: Vec<Alternative>, work: &Work<'_>, load: &Load<'_>) -> Result<(), RunError> {
        let events = self.cases[0].events.max(1);
        loop {
            self.spare(&mut waiting);
            self.size_buffers(&mut waiting, load);
            let count = (self.left * ROOM.1 / (events * ROOM.0)).max(u64::from(self.left >= events));
            let count = usize::try_from(count).unwrap_or(usize::MAX).min(waiting.len());
            // Those that somebody asked for are tried in any case.
            let asked = waiting.iter().take_while(|it| self.inquiry.asked.contains(&it.kind)).count();
            let count = if asked > 0 { asked } else { count };
            if count == 0 || work.is_stopped() {
                let because = if work.is_stopped() { STOPPED } else { BEYOND };
                self.left_out.extend(waiting.iter().map(|it| left_out(it, because)));
                return Ok(());
            }
            let most = if asked > 0 { u64::MAX } else { self.left / count as u64 };
            let wave: Vec<Alternative> = waiting.drain(..count).collect();
            work.expect(count);
            let seed = self.cases[0].run.measured.seed;
            let one = |it: &Alternative| {
                let made = work.run(it, seed, most)?;
                work.done(usize::from(!(made.2 && work.is_stopped())));
                Ok(made)
            };
            let runs = in_parallel(&wave, work.jobs, &|| {}, &one)?;
            for (alternative, (run, events, ended)) in wave.into_iter().zip(runs) {
                self.left = self.left.saturating_sub(events);
                self.take(alternative, &run, ended, work.is_stopped());
            }
        }
    }

    /// Takes in a run, or notes that it was ended too early to tell anything.
    fn take(&mut self, alternative: Alternative, run: &Run, ended: bool, stopped: bool) {
        let measured = match ended {
            false => Some(run.measured.clone()),
            true => self.at_least(run).filter(|_| !stopped),
        };
        let Some(measured) = measured else {
            return self.left_out.push(left_out(&alternative, if stopped { STOPPED } else { LONG }));
        };
        let mut trial = self.inquiry.compare(alternative, self.cases, &[measured]);
        trial.tried.at_least = ended;
        let (kind, gain) = (trial.tried.kind, self.gain(&trial));
        let search = self.sizes.iter_mut().find(|search| search.kind == kind && search.waits);
        match search {
            Some(search) => {
                search.waits = false;
                search.is_over = gain >= ENOUGH * search.unbounded || search.tried == DOUBLINGS;
                // Of sizes only the one that is enough is shown.
                self.trials.extend((gain >= ENOUGH * search.unbounded).then_some(trial));
            }
            None => self.trials.push(trial),
        }
    }

    /// Measurements of a run that was ended early, if it had carried more by then than the run as it is carried in all
    /// its time.
    fn at_least(&self, run: &Run) -> Option<Measured> {
        let as_is = &self.cases[0].run;
        let spec = self.inquiry.scenario.spec(as_is.measured.seed);
        let bytes = |run: &Run| -> u64 {
            let own = |workload: usize| !matches!(spec.workloads[workload], Workload::Tcp { .. });
            run.outcome.transfers.iter().filter(|it| own(it.workload)).map(|it| it.bytes).sum()
        };
        let (before, now) = (bytes(as_is), bytes(run));
        let counts = self.inquiry.scenario.measure == MeasureName::Goodput && now > before && before > 0;
        let goodput_bps = as_is.measured.goodput_bps * now as f64 / before as f64;
        counts.then(|| Measured { goodput_bps, ..run.measured.clone() })
    }

    /// The gain of a change, as a positive number.
    fn gain(&self, trial: &Trial) -> f64 {
        trial.tried.difference.map_or(0.0, |it| self.inquiry.sign() * it.mean)
    }

    /// Takes elements out of those that wait where taking away all of their kind together gave next to nothing.
    fn spare(&mut self, waiting: &mut Vec<Alternative>) {
        let own = self.inquiry.scenario.origin.sets.len();
        let as_is = self.cases[0].run.measured.value(self.inquiry.scenario.measure);
        let unfinished = self.inquiry.unfinished(self.cases) > 0;
        let is_void = |trial: &&Trial| match unfinished {
            true => trial.tried.unfinished_runs > 0,
            false => trial.tried.difference.is_some() && self.gain(trial) < FAULT * as_is,
        };
        let is_spared = |it: &Alternative| {
            let sets = &it.scenario.origin.sets[own..];
            let holds = |trial: &&Trial| {
                let all = &trial.tried.sets;
                trial.tried.kind == it.kind && all.len() > sets.len() && sets.iter().all(|set| all.contains(set))
            };
            it.cause.is_some() && self.trials.iter().filter(holds).any(|trial| is_void(&trial))
        };
        let (spared, rest) = std::mem::take(waiting).into_iter().partition(is_spared);
        *waiting = rest;
        let spared: Vec<Alternative> = spared;
        self.left_out.extend(spared.iter().map(|it| left_out(it, SPARED)));
    }

    /// Puts the next size of buffers that help before all that wait. Both together count where neither does alone.
    fn size_buffers(&mut self, waiting: &mut Vec<Alternative>, load: &Load<'_>) {
        let spec = self.inquiry.scenario.spec(self.inquiry.scenario.seed);
        for kind in [Kind::ReceiveBuffer, Kind::SendBuffer, Kind::Buffers] {
            let known = self.sizes.iter().any(|search| search.kind == kind);
            let alone = kind == Kind::Buffers && !self.sizes.is_empty();
            if let Some(unbounded) = self.inquiry.unbounded(kind, &self.trials).filter(|_| !known && !alone) {
                let size = DataBuffers::of(&spec).first_larger(kind);
                self.sizes.push(Search { kind, unbounded, size, tried: 0, waits: false, is_over: false });
            }
        }
        for search in self.sizes.iter_mut().filter(|search| !search.is_over && !search.waits) {
            match sized(&spec, search.kind, search.size, load) {
                Some(next) => {
                    waiting.insert(0, next);
                    search.waits = true;
                }
                None => search.is_over = true,
            }
            search.tried += 1;
            search.size = search.size.saturating_mul(STEP);
        }
    }
}

fn left_out(it: &Alternative, because: &str) -> LeftOut {
    LeftOut { what: it.what.clone(), because: because.to_owned() }
}
