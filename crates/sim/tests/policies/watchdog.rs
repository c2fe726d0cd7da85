//! Schedulers that misbehave. Every byte arrives all the same, and the engine says what it had to overrule.

use crate::common::*;
use anabranch_engine::{Overruled, Policies, Profile};
use anabranch_net::Change;
use anabranch_paths::{Affected, TimedChange};
use anabranch_policy::registry::Built;
use anabranch_policy::scheduler::{Capabilities, Scheduler};
use anabranch_policy::{Decision, View};
use anabranch_sim::{HostSpec, Outcome, Spec};
use anabranch_units::{Bytes, Dsn, Duration, Instant, Seed, Stream, SubflowId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SIZE: u64 = 1_500_000;

/// Counts how often it is asked.
struct Counting<S>(S, Arc<AtomicU64>);

impl<S: FnMut(Instant, &View<'_>) -> Decision + Send> Scheduler for Counting<S> {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        self.1.fetch_add(1, Ordering::Relaxed);
        (self.0)(now, view)
    }
}

/// A download over two paths by such a scheduler; `change` is done to the specification.
fn download_with<S, M>(make: M, change: impl FnOnce(&mut Spec)) -> (Outcome, Overruled, u64)
where
    S: FnMut(Instant, &View<'_>) -> Decision + Send + 'static,
    M: Fn() -> S + Send + Sync + 'static,
{
    let asked = Arc::new(AtomicU64::new(0));
    let counter = asked.clone();
    let build = move || -> Built<dyn Scheduler> {
        Built { policy: Box::new(Counting(make(), counter.clone())), capabilities: Capabilities { repeats: true } }
    };
    let policies = Policies { scheduler: Arc::new(build), ..Policies::default() };
    let host = HostSpec::new(Profile::tcp(), policies);
    let mut spec = spec(vec![path("fast", 20, 10), path("slow", 10, 40)], vec![download(SIZE)]);
    (spec.client, spec.server) = (host.clone(), host);
    change(&mut spec);
    let outcome = complete(&spec);
    let overruled = outcome.connections[0].sender.as_ref().unwrap().overruled;
    (outcome, overruled, asked.load(Ordering::Relaxed))
}

fn seconds(outcome: &Outcome) -> f64 {
    outcome.transfers[0].duration().unwrap().as_secs_f64()
}

/// Any answer that can be written down: subflows that are not there, data that is not unsent, copies of anything.
#[test]
fn a_random_scheduler() {
    fn answer(chance: &mut Stream, now: Instant, view: &View<'_>) -> Decision {
        let on = SubflowId(chance.below(4) as u16);
        match chance.below(4) {
            0 => Decision::send(on),
            1 => Decision::Send { on, skip: Bytes::new(chance.below(2 * view.unsent.get() + 2)) },
            2 => Decision::Repeat {
                on,
                from: Dsn::new(view.data_una.get().wrapping_add(chance.next_u64() >> chance.below(64))),
            },
            _ => Decision::Wait {
                until: chance.chance(0.5).then(|| now + Duration::from_nanos(chance.below(10_000_000))),
            },
        }
    }
    for seed in 0..20 {
        let make = move || {
            let mut chance = Seed(seed).stream("nonsense");
            move |now, view: &View<'_>| answer(&mut chance, now, view)
        };
        let (_, overruled, _) = download_with(make, |spec| spec.seed = Seed(seed));
        assert!(overruled.impossible > 0, "{overruled:?}");
    }
}

/// Never sends. Each round trip, and when no data is in flight, the watchdog sends in its place.
#[test]
fn a_silent_scheduler() {
    let (outcome, overruled, _) = download_with(|| |_, _: &View<'_>| Decision::WAIT, |_| {});
    assert!(overruled.impossible > 0 && overruled.looping == 0, "{overruled:?}");
    let far = |now: Instant, _: &View<'_>| Decision::Wait { until: Some(now + Duration::from_secs(3600)) };
    let (patient, overruled, _) = download_with(move || far, |_| {});
    assert!(overruled.starving > 50 && overruled.impossible == 0, "{overruled:?}");
    assert!(seconds(&outcome) <= seconds(&patient) && seconds(&patient) < 20.0, "{}", seconds(&patient));
}

/// Has itself woken after a nanosecond, for ever.
#[test]
fn a_looping_scheduler() {
    let spin = |now: Instant, _: &View<'_>| Decision::Wait { until: Some(now + Duration::from_nanos(1)) };
    let (_, overruled, asked) = download_with(move || spin, |_| {});
    assert!(overruled.looping > 10 && overruled.starving > 50, "{overruled:?}");
    assert!(asked < 100 * (overruled.looping + overruled.starving), "{asked} questions, {overruled:?}");
}

/// Keeps choosing one subflow, whose path dies.
#[test]
fn a_scheduler_in_love_with_a_dead_subflow() {
    let (outcome, overruled, _) = download_with(
        || |_, _: &View<'_>| Decision::send(SubflowId(0)),
        |spec| {
            let at = Duration::from_millis(60);
            let (affected, change) = (Affected::Both, Change::Blackhole);
            spec.network.changes = vec![TimedChange { at, path: "fast".to_owned(), affected, change, notify: false }];
        },
    );
    assert!(overruled.impossible > 10, "{overruled:?}");
    assert!(seconds(&outcome) < 5.0, "{}", seconds(&outcome));
}

/// Never sends the first byte, until the window is full of later data.
#[test]
fn a_scheduler_that_skips_for_ever() {
    let skip = |_: Instant, view: &View<'_>| match view.fastest_with_room() {
        Some(subflow) => Decision::Send { on: subflow.id, skip: subflow.mss },
        None => Decision::WAIT,
    };
    let (_, overruled, _) = download_with(
        move || skip,
        |spec| {
            (spec.client.config.receive_buffer, spec.server.config.receive_buffer) =
                (Bytes::new(60_000), Bytes::new(60_000));
        },
    );
    assert!(overruled.total() > 0, "{overruled:?}");
}

/// Repeats the oldest data for ever, on the fastest subflow with room.
#[test]
fn a_scheduler_that_stutters() {
    let stutter = |_: Instant, view: &View<'_>| {
        let on = view.fastest_with_room().map_or(SubflowId(0), |subflow| subflow.id);
        Decision::Repeat { on, from: view.data_una }
    };
    let (outcome, overruled, asked) = download_with(move || stutter, |_| {});
    assert!(overruled.impossible + overruled.starving > 50, "{overruled:?}");
    // No subflow carries a byte twice on its behalf.
    let copies: u64 = outcome.connections[0].subflows.iter().map(|subflow| subflow.stats.reinjected).sum();
    assert!(copies <= SIZE && asked < 10_000, "{copies} bytes, {asked} questions");
}
