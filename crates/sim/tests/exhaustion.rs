//! Exhaustive tests beside random ones: short runs with every choice of a few faults, each of which must end delivered
//! and quiet.
//!
//! A fault is a packet lost, repeated, swapped with the next of its way and path, or delayed beyond a timeout. Choices
//! are found by playing: each packet that a run sends after its last fault may meet the next one, so no fault is tried
//! at a packet that is never sent, and no choice twice. `EXHAUSTION_FAULTS=3` takes three faults in place of two; a
//! failure prints the command that repeats it.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_engine::{Factory, Purpose};
use anabranch_paths::{Direction, End, Fault, Faults, Middlebox, MiddleboxSpec, PacketId};
use anabranch_policy::registry::{Entry, FIRST_PATHS, REINJECTIONS, find};
use anabranch_policy::reinjection::Reinjection;
use anabranch_sim::{
    Condition, Content, FileOrder, Host, Loss, Observer, Outcome, Sight, Spec, Workload, run, run_observed,
};
use anabranch_units::{Bytes, Duration};
use common::{files, ms, path, spec};
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A packet by the number that its path and direction give it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Place {
    direction: Direction,
    path: usize,
    number: u64,
}

/// Place of each packet of a run, in the order in which hosts sent them.
#[derive(Default)]
struct Sent {
    places: Vec<Place>,
    counts: BTreeMap<(Direction, usize), u64>,
}

impl Observer for Sent {
    fn on_sent(&mut self, sight: Sight<'_>, _: Option<Purpose>) {
        if !matches!(sight.content, Content::Segment(_)) {
            return; // No middlebox counts probes.
        }
        let direction = if sight.host == Host::Client { Direction::Up } else { Direction::Down };
        let count = self.counts.entry((direction, sight.path)).or_default();
        self.places.push(Place { direction, path: sight.path, number: *count });
        *count += 1;
    }

    fn on_received(&mut self, _: Sight<'_>, _: Condition) {}

    fn on_lost(&mut self, _: PacketId, _: Loss<'_>) {}

    fn on_kept(&mut self, _: PacketId, _: usize, _: End) {}
}

const FAULTS: [(Fault, &str); 4] =
    [(Fault::Drop, "drop"), (Fault::Duplicate, "duplicate"), (Fault::Swap, "swap"), (Fault::Delay, "delay")];
/// Beyond the first timeouts: one second for a SYN, some hundred milliseconds for data.
const LATE: Duration = Duration::from_secs(3);

type Choice = Vec<(Place, Fault)>;

/// A run that everything is tried on.
struct Subject {
    name: &'static str,
    spec: Spec,
    /// Number of packets of each direction among which faults strike.
    first: usize,
}

/// Two paths, one of twice the delay of the other.
fn two_paths(workload: Workload) -> Spec {
    let mut spec = spec(vec![path("a", 10, 10), path("b", 10, 20)], vec![workload]);
    spec.audit = true;
    spec
}

/// Handshake, a first 64 bytes, the join that their acknowledgment lets happen, 64 bytes more, close. Requests go the
/// other way.
fn warm() -> Subject {
    let sizes = vec![Bytes::new(64); 2];
    let order = FileOrder::OneConnection { warm_up: Bytes::ZERO, pause: ms(200) };
    let workload = Workload::Files { direction: Direction::Down, sizes, order, start: Duration::ZERO };
    Subject { name: "warm", spec: two_paths(workload), first: 20 }
}

/// Handshake, 64 bytes each way, close, with the join in the middle of that; data at once or when the handshake is long
/// over.
fn exchange(name: &'static str, pause: Duration, checksum: bool) -> Subject {
    let (down, up) = (Bytes::new(64), Bytes::new(64));
    let mut spec = two_paths(Workload::Exchange { down, up, start: Duration::ZERO, pause });
    spec.client.config.checksum = checksum;
    Subject { name, spec, first: 20 }
}

/// The same between hosts whose first SYN loses a race: every packet of the handshakes meets every fault.
fn race() -> Subject {
    let mut subject = exchange("race", Duration::ZERO, false);
    subject.spec.network.paths = vec![path("a", 10, 40), path("b", 10, 5)];
    let entry = find(FIRST_PATHS, "first path", "raced").unwrap();
    subject.spec.client.config.policies.first_path = Arc::new(|| entry.build_default());
    subject
}

/// The same with a client that sends its keys as Linux does: it never repeats those that two losses take. Faults strike
/// early, where the keys are.
fn linux_client(name: &'static str, workload: Workload, first: usize) -> Subject {
    let mut spec = two_paths(workload);
    spec.client.config.repeat_keys = false;
    Subject { name, spec, first }
}

/// Requests that end at once, after a pause, and none at all.
fn linux_clients() -> [Subject; 3] {
    let exchange =
        |up, pause| Workload::Exchange { down: Bytes::new(64), up: Bytes::new(up), start: Duration::ZERO, pause };
    [
        linux_client("linux-client-at-once", exchange(64, Duration::ZERO), 6),
        linux_client("linux-client", exchange(64, ms(150)), 6),
        linux_client("linux-client-segments", exchange(5000, Duration::ZERO), 6),
    ]
}

fn exchanges() -> [Subject; 5] {
    [
        warm(),
        race(),
        exchange("exchange", ms(150), false),
        exchange("exchange-checksum", ms(150), true),
        exchange("exchange-at-once", Duration::ZERO, false),
    ]
}

/// Twenty full segments under one reinjection policy.
fn transfer(entry: &'static Entry<dyn Reinjection>) -> Subject {
    let mut spec = two_paths(files(Direction::Down, &[20 * 1448], false));
    let factory: Factory<dyn Reinjection> = Arc::new(|| entry.build_default());
    spec.client.config.policies.reinjection = Arc::clone(&factory);
    spec.server.config.policies.reinjection = factory;
    Subject { name: &entry.name, spec, first: usize::MAX }
}

fn subjects() -> Vec<Subject> {
    REINJECTIONS.iter().map(transfer).chain(exchanges()).chain(linux_clients()).collect()
}

impl Subject {
    fn with(&self, choice: &[(Place, Fault)]) -> Spec {
        let mut spec = self.spec.clone();
        let mut plans: BTreeMap<(Direction, usize), Vec<(u64, Fault)>> = BTreeMap::new();
        for (place, fault) in choice {
            plans.entry((place.direction, place.path)).or_default().push((place.number, *fault));
        }
        for ((direction, path), plan) in plans {
            // Where its packets enter the path, in the order in which they were sent.
            let end = if direction == Direction::Up { End::Client } else { End::Server };
            let kind = Middlebox::Faults(Faults { plan, wait: LATE, direction: Some(direction) });
            spec.network.paths[path].middleboxes.push(MiddleboxSpec { kind, end });
        }
        spec
    }

    /// The fault of the run, and its packets.
    fn play(&self, choice: &[(Place, Fault)], wants_places: bool) -> (Option<String>, Vec<Place>) {
        let spec = self.with(choice);
        let mut sent = Sent::default();
        let played = catch_unwind(AssertUnwindSafe(|| {
            if wants_places { run_observed(&spec, &mut sent).unwrap() } else { run(&spec).unwrap() }
        }));
        let verdict = match played {
            Ok(outcome) => fault(&outcome),
            Err(panic) => Some(panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "panicked".to_owned())),
        };
        (verdict, sent.places)
    }

    /// The packets sent after the last fault of the choice that may meet the next one.
    fn candidates(&self, choice: &[(Place, Fault)], sent: &[Place]) -> Vec<Place> {
        let after = choice.last().map_or(0, |(last, _)| sent.iter().position(|place| place == last).unwrap() + 1);
        let mut seen = [0, 0];
        let mut within = |place: &Place| {
            let count: &mut usize = &mut seen[usize::from(place.direction == Direction::Up)];
            *count += 1;
            *count <= self.first
        };
        let all: Vec<bool> = sent.iter().map(&mut within).collect();
        (after..sent.len()).filter(|&index| all[index]).map(|index| sent[index]).collect()
    }

    /// Plays the choice, and all that add up to `more` faults after its last one.
    fn explore(&self, choice: &mut Choice, more: usize, tally: &Tally) {
        let (verdict, sent) = self.play(choice, more > 0);
        tally.note(self, choice, verdict);
        if more == 0 {
            return;
        }
        for place in self.candidates(choice, &sent) {
            for (fault, _) in FAULTS {
                choice.push((place, fault));
                self.explore(choice, more - 1, tally);
                choice.pop();
            }
        }
    }

    /// Plays all choices of up to `faults` faults, on all cores.
    fn exhaust(&self, faults: usize) -> Tally {
        let tally = Tally::default();
        let (verdict, sent) = self.play(&[], true);
        tally.note(self, &[], verdict);
        let first = self.candidates(&[], &sent).into_iter();
        let first: Vec<_> = first.flat_map(|place| FAULTS.map(|(fault, _)| (place, fault))).collect();
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    while let Some(fault) = first.get(next.fetch_add(1, Ordering::Relaxed)) {
                        self.explore(&mut vec![*fault], faults - 1, &tally);
                    }
                });
            }
        });
        tally
    }

    fn command(&self, choice: &[(Place, Fault)]) -> String {
        let name = |fault| FAULTS.iter().find(|(known, _)| *known == fault).unwrap().1;
        let faults = choice.iter().map(|(place, fault)| {
            let way = if place.direction == Direction::Up { "up" } else { "down" };
            format!("{way}.{}.{}.{}", place.path, place.number, name(*fault))
        });
        let faults: Vec<_> = faults.collect();
        let case = format!("{}:{}", self.name, faults.join(","));
        format!("EXHAUSTION_CASE={case} cargo test -p anabranch-sim --test exhaustion")
    }
}

/// A case as [`Subject::command`] writes it.
fn parse(case: &str) -> Option<(Subject, Choice)> {
    let (name, faults) = case.split_once(':')?;
    let subject = subjects().into_iter().find(|subject| subject.name == name)?;
    let fault = |text: &str| {
        let mut parts = text.split('.');
        let direction = match parts.next()? {
            "up" => Direction::Up,
            "down" => Direction::Down,
            _ => return None,
        };
        let (path, number) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let named = parts.next()?;
        let (fault, _) = FAULTS.into_iter().find(|(_, name)| *name == named)?;
        Some((Place { direction, path, number }, fault))
    };
    let faults: Option<Choice> = faults.split(',').filter(|text| !text.is_empty()).map(fault).collect();
    Some((subject, faults?))
}

fn fault(outcome: &Outcome) -> Option<String> {
    let short = |transfer: &&anabranch_sim::Transfer| Some(transfer.bytes) != transfer.asked;
    if let Some(transfer) = outcome.transfers.iter().find(short) {
        return Some(format!("{} delivered {} of {:?}", transfer.label, transfer.bytes, transfer.asked));
    }
    if !outcome.finished {
        return Some(format!("not finished at {}", outcome.end));
    }
    (!outcome.quiet).then(|| format!("not quiet after {}", outcome.end))
}

/// Results of many runs.
#[derive(Default)]
struct Tally {
    runs: AtomicU64,
    failures: Mutex<BTreeMap<Choice, String>>,
}

impl Tally {
    fn note(&self, subject: &Subject, choice: &[(Place, Fault)], verdict: Option<String>) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        if let Some(fault) = verdict {
            let text = format!("{fault}\n  {}", subject.command(choice));
            self.failures.lock().unwrap().insert(choice.to_vec(), text);
        }
    }

    /// Prints the number of runs, and fails if one of them did. Failures are in the order of the choices, independent
    /// of threads.
    fn conclude(self, what: &str) {
        let (runs, failures) = (self.runs.into_inner(), self.failures.into_inner().unwrap());
        let failed = failures.len();
        // Past the capture of the test harness: how much was tried is part of the result.
        let _ = writeln!(std::io::stdout(), "{what}: {runs} runs, {failed} failed");
        let shown: Vec<_> = failures.into_values().take(SHOWN).collect();
        assert!(shown.is_empty(), "{failed} of {runs} runs failed:\n{}", shown.join("\n"));
    }
}

const SHOWN: usize = 20;

/// Faults that an exchange meets at most: two, or what `EXHAUSTION_FAULTS` says.
fn how_many() -> usize {
    std::env::var("EXHAUSTION_FAULTS").ok().map_or(2, |text| text.parse().unwrap()).max(2)
}

/// Every choice of up to two faults, or of as many as `EXHAUSTION_FAULTS` says, among the first twenty packets each
/// way.
#[test]
fn a_short_exchange_survives_every_choice_of_faults() {
    if std::env::var_os("EXHAUSTION_CASE").is_some() {
        return;
    }
    let faults = how_many();
    for subject in exchanges() {
        let tally = subject.exhaust(faults);
        assert!(tally.runs.load(Ordering::Relaxed) > 50, "there is something to try");
        tally.conclude(&format!("{}, up to {faults} faults", subject.name));
    }
}

/// Every choice of up to three faults among the first packets of a client that is sparing with its keys.
#[test]
fn a_client_like_that_of_linux_survives_three_faults() {
    if std::env::var_os("EXHAUSTION_CASE").is_some() {
        return;
    }
    for subject in linux_clients() {
        let faults = how_many() + 1;
        subject.exhaust(faults).conclude(&format!("{}, up to {faults} faults", subject.name));
    }
}

/// Every single fault at every packet of twenty segments, for each reinjection policy; one less than the exchange
/// meets.
#[test]
fn a_transfer_survives_every_single_fault_under_each_reinjection_policy() {
    if std::env::var_os("EXHAUSTION_CASE").is_some() {
        return;
    }
    for entry in REINJECTIONS {
        let faults = how_many() - 1;
        transfer(entry).exhaust(faults).conclude(&format!("transfer, {}, up to {faults} faults", entry.name));
    }
}

#[test]
fn the_case_asked_for_is_delivered_and_quiet() {
    let Ok(case) = std::env::var("EXHAUSTION_CASE") else { return };
    let (subject, choice) = parse(&case).expect("SUBJECT:WAY.PATH.NUMBER.FAULT,… as a failure prints it");
    let (verdict, _) = subject.play(&choice, false);
    assert_eq!(verdict, None);
}

/// A fault beyond the limit is detected: a client that sends one SYN and no more loses it.
#[test]
fn what_cannot_be_survived_fails() {
    let mut subject = warm();
    subject.spec.client.config.profile.syn_retries = 0;
    let lost = [(Place { direction: Direction::Up, path: 0, number: 0 }, Fault::Drop)];
    assert_eq!(subject.play(&[], false).0, None);
    assert!(subject.play(&lost, false).0.is_some_and(|fault| fault.contains("delivered 0 of")));
}

/// A case survives being written and read.
#[test]
fn a_case_repeats_what_failed() {
    let [subject, ..] = exchanges();
    let place = |direction, path, number| Place { direction, path, number };
    let choice = vec![(place(Direction::Up, 0, 3), Fault::Drop), (place(Direction::Down, 1, 0), Fault::Swap)];
    let command = subject.command(&choice);
    let case = command.strip_prefix("EXHAUSTION_CASE=").and_then(|rest| rest.split_once(' ')).unwrap().0;
    let (again, same) = parse(case).unwrap();
    assert_eq!((again.name, same), (subject.name, choice));
}
