//! Runs, one by one or several on threads.
//!
//! Results are in the order in which the runs were asked for, whichever ends first.

use crate::asked::{Answer, Answers};
use crate::qlog::QlogObserver;
use crate::timeline::{All, Timeline, TimelineObserver};
use crate::{Measured, Recorder, samples};
use anabranch_engine::Purpose;
use anabranch_paths::{End, PacketId};
use anabranch_policy::Failure;
use anabranch_scenario::Scenario;
use anabranch_sim::{Condition, Loss, Observer, Outcome, Sight, Spec};
use anabranch_units::Duration;
use rayon::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// A run with its results.
#[derive(Clone, Debug)]
pub struct Run {
    /// Command that repeats the run.
    pub command: String,
    /// Measurements of the run.
    pub measured: Measured,
    /// Outcome of the simulator.
    pub outcome: Outcome,
    /// Timeline of the run, if [`Keep::timeline`] asked for it.
    pub timeline: Option<Timeline>,
    /// Decisions of its schedulers, if [`Keep::answers`] asked for them.
    pub answers: Option<Vec<Answer>>,
    /// Events of the run as qlog, without the head of a file, if [`Keep::qlog`] asked for them.
    pub qlog: Option<Vec<u8>>,
}

/// Error: a run broke.
#[derive(Clone, Debug, PartialEq, thiserror::Error, miette::Diagnostic)]
#[error("a run failed: {problem}")]
#[diagnostic(help("this repeats it: {command}\nwith the same build: {}", crate::build()))]
pub struct RunError {
    /// The problem.
    pub problem: String,
    /// Command that repeats the run.
    pub command: String,
}

/// Records of a run to keep besides its measurements.
#[derive(Clone, Debug, Default)]
pub struct Keep {
    /// Record of every packet, in the outcome.
    pub events: bool,
    /// Directory for capture files; several runs have a directory `seed-N` below it each.
    pub captures: Option<PathBuf>,
    /// A [`Timeline`], and samples in the outcome at the resolution of a diagram.
    pub timeline: bool,
    /// Every decision of a scheduler.
    pub answers: bool,
    /// Events as qlog.
    pub qlog: bool,
    /// The run is one of several that share files: there its seed tells it apart.
    pub is_one_of_many: bool,
}

/// Runs the scenario once with this seed.
pub fn run(scenario: &Scenario, seed: u64, keep: &Keep) -> Result<Run, RunError> {
    run_watched(scenario, seed, keep, None)
}

/// The same while `other` watches.
pub fn run_watched(
    scenario: &Scenario,
    seed: u64,
    keep: &Keep,
    other: Option<&mut dyn Observer>,
) -> Result<Run, RunError> {
    let mut spec = scenario.spec(seed);
    spec.record_events = keep.events;
    if keep.timeline {
        let every = Duration::from_nanos((spec.stop.as_nanos() / SAMPLES).clamp(MOST_OFTEN.as_nanos(), u64::MAX));
        spec.samples.extend((0..).map(|n| every * n).take_while(|at| *at <= spec.stop));
    }
    let answers = keep.answers.then(Answers::default);
    if let Some(answers) = &answers {
        answers.note(&mut spec);
    }
    let command = scenario.origin.command(seed);
    let broken = |problem: String| RunError { problem, command: command.clone() };
    let recorder = keep.captures.as_deref().map(|directory| Recorder::create(directory, scenario, seed)).transpose();
    let mut recorder = recorder.map_err(|error| broken(error.to_string()))?;
    let mut timeline = keep.timeline.then(|| TimelineObserver::new(scenario.client_sends()));
    let mut stop = scenario.stop_flag().map(StopObserver);
    let mut qlog = keep.qlog.then(|| QlogObserver::new(scenario, seed, keep.is_one_of_many));
    let mut all: Vec<&mut dyn Observer> = Vec::new();
    all.extend(recorder.as_mut().map(|it| it as &mut dyn Observer));
    all.extend(timeline.as_mut().map(|it| it as &mut dyn Observer));
    all.extend(stop.as_mut().map(|it| it as &mut dyn Observer));
    all.extend(qlog.as_mut().map(|it| it as &mut dyn Observer));
    if let Some(other) = other {
        all.push(other);
    }
    let outcome = play(&spec, All(all)).map_err(broken)?;
    if let Some(recorder) = recorder {
        recorder.finish().map_err(|error| broken(error.to_string()))?;
    }
    let mut measured = Measured::of(&spec, &outcome);
    samples::fill(scenario.watch(), &mut measured, &spec, &outcome, scenario.late(seed));
    let timeline = timeline.map(TimelineObserver::finish);
    let (qlog, answers) = (qlog.map(QlogObserver::finish), answers.map(|answers| answers.take()));
    Ok(Run { command, measured, outcome, timeline, answers, qlog })
}

/// Number of samples in a diagram of a run that lasts until it is stopped; a run that ends before has fewer.
const SAMPLES: u64 = 6000;
/// Minimum interval between samples.
const MOST_OFTEN: Duration = Duration::from_millis(5);

/// Runs the scenario with each seed on `jobs` threads (0: one per processor) and calls `done` after each.
pub fn run_seeds(
    scenario: &Scenario,
    seeds: &[u64],
    keep: &Keep,
    jobs: usize,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<Run>, RunError> {
    let mut all = Vec::new();
    let mut take = |mut runs: Vec<Run>| {
        all.append(&mut runs);
        Ok(())
    };
    in_batches(scenario, seeds, keep, jobs, done, &mut take)?;
    Ok(all)
}

/// Runs all seeds and gives the runs away in batches, in the order of the seeds: no more than [`BATCH`] are in memory.
pub fn in_batches<E: From<RunError>>(
    scenario: &Scenario,
    seeds: &[u64],
    keep: &Keep,
    jobs: usize,
    done: &(dyn Fn() + Sync),
    take: &mut dyn FnMut(Vec<Run>) -> Result<(), E>,
) -> Result<(), E> {
    let apart = |seed: u64| {
        let captures = match &keep.captures {
            Some(directory) if seeds.len() > 1 => Some(directory.join(format!("seed-{seed}"))),
            captures => captures.clone(),
        };
        // A timeline is as long as the run: only that of the first seed is kept.
        let timeline = keep.timeline && seeds.first() == Some(&seed);
        Keep { captures, timeline, is_one_of_many: seeds.len() > 1, ..*keep }
    };
    for batch in seeds.chunks(BATCH) {
        take(in_parallel(batch, jobs, done, &|seed| run(scenario, *seed, &apart(*seed)))?)?;
    }
    Ok(())
}

/// Runs of a batch: enough for all threads to be busy most of the time.
pub const BATCH: usize = 256;

/// Returns the number of threads for `runs` runs: `jobs` (0: one per processor), but at most one for each run and four
/// for each processor. More would only wait for each other.
pub fn threads(jobs: usize, runs: usize) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let wanted = if jobs == 0 { processors } else { jobs };
    wanted.min(4 * processors).min(runs).max(1)
}

/// Returns results in the order of `work`; of the failures met before the work stopped, the first in that order.
pub fn in_parallel<W: Sync, R: Send, E: Send>(
    work: &[W],
    jobs: usize,
    done: &(dyn Fn() + Sync),
    one: &(dyn Fn(&W) -> Result<R, E> + Sync),
) -> Result<Vec<R>, E> {
    let broken = AtomicBool::new(false);
    let one = |work: &W| {
        // After a failure no further work begins: finished runs are kept, and others would not be shown.
        if broken.load(Ordering::Relaxed) {
            return None;
        }
        let result = one(work);
        broken.fetch_or(result.is_err(), Ordering::Relaxed);
        done();
        Some(result)
    };
    // Only finished runs take memory: a result is large, and millions of runs may not have begun.
    let results: Vec<Result<R, E>> =
        match rayon::ThreadPoolBuilder::new().num_threads(threads(jobs, work.len())).build() {
            Ok(pool) => pool.install(|| work.par_iter().filter_map(one).collect()),
            // Without threads, sequential runs give the same results.
            Err(_) => work.iter().filter_map(one).collect(),
        };
    results.into_iter().collect()
}

/// Stops a run at the next packet that a host sends after its flag became true.
struct StopObserver<'a>(&'a AtomicBool);

impl Observer for StopObserver<'_> {
    fn on_sent(&mut self, _sight: Sight<'_>, _purpose: Option<Purpose>) {
        if self.0.load(Ordering::Relaxed) {
            resume_unwind(Box::new("stopped on request"));
        }
    }

    fn on_received(&mut self, _sight: Sight<'_>, _condition: Condition) {}

    fn on_lost(&mut self, _id: PacketId, _loss: Loss<'_>) {}

    fn on_kept(&mut self, _id: PacketId, _path: usize, _end: End) {}
}

fn play(spec: &Spec, mut observers: All<'_>) -> Result<Outcome, String> {
    // The simulator asserts its invariants; a violation ends this run and not the program.
    let played = catch_unwind(AssertUnwindSafe(|| match observers.0.is_empty() {
        true => anabranch_sim::run(spec),
        false => anabranch_sim::run_observed(spec, &mut observers),
    }));
    match played {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => Err(panic_text(&*panic)),
    }
}

/// Returns the text of a panic, or of a policy's failure.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    if let Some(failure) = panic.downcast_ref::<Failure>() {
        return failure.to_string();
    }
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason was given").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::scheduler::{Entry, Scheduler};
    use anabranch_policy::{Catalogue, Decision, View};
    use anabranch_units::Instant;
    use std::sync::Arc;

    fn scenario(catalogue: Catalogue, sets: &[&str]) -> Scenario {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Scenario::load(&Arc::new(catalogue), "wlan-lte", &sets).expect("it is shipped")
    }

    #[test]
    fn a_flag_ends_runs_and_changes_nothing_else() {
        let (plain, stop) = (scenario(Catalogue::default(), &[]), Arc::new(AtomicBool::new(false)));
        let watched = plain.clone().stoppable(&stop);
        let digest = |scenario: &Scenario| run(scenario, 1, &Keep::default()).map(|run| run.measured.events_digest);
        assert_eq!(digest(&watched), digest(&plain));
        stop.store(true, Ordering::Relaxed);
        assert_eq!(digest(&watched).map_err(|error| error.problem), Err("stopped on request".to_owned()));
    }

    #[test]
    fn a_policy_that_fails_ends_its_run_with_its_reason_and_the_time() {
        struct Broken;
        impl Scheduler for Broken {
            fn decide(&mut self, now: Instant, _view: &View<'_>) -> Decision {
                Failure { policy: "broken".to_owned(), at: Some(now), why: "for this test".to_owned() }.raise()
            }
        }
        let mut catalogue = Catalogue::default();
        let added = catalogue.schedulers.add(Entry::new("broken", "", "", |_| Box::new(Broken)));
        added.expect("no other is called so");
        let failed = run(&scenario(catalogue, &["host.scheduler=broken"]), 1, &Keep::default()).map(drop);
        let failed = failed.expect_err("its scheduler fails");
        assert!(failed.problem.starts_with("policy `broken` failed 36."), "{}", failed.problem); // run.spread
        assert!(failed.problem.ends_with(" s into the run: for this test"), "{}", failed.problem);
        assert_eq!(failed.command, "anabranch run wlan-lte --seed 1 --set host.scheduler=broken");
    }

    #[test]
    fn threads_are_bounded_by_runs_and_processors() {
        assert_eq!(threads(20_000, 3), 3);
        assert_eq!((threads(1, 100), threads(0, 1), threads(7, 0)), (1, 1, 1));
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        assert_eq!(threads(20_000, 1_000_000), 4 * processors);
        assert_eq!(threads(0, 1_000_000), processors);
    }
}
