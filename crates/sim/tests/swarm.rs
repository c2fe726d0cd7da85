//! The swarm: each seed draws paths, hosts, policies, work and faults, and everything must still arrive.
//!
//! Every run is audited after every event and ends with nothing left: no timer, no packet, no connection. Where a host
//! restarts, or a middlebox on the first path can be the end of a connection, not everything need arrive, but both ends
//! notice (`draw/deep.rs`). A failure prints the command that repeats it. `SWARM_SEEDS=FIRST..END` chooses which seeds
//! to run.
#![allow(clippy::unwrap_used)]

mod common;
mod draw;

use anabranch_engine::{Profile, Purpose};
use anabranch_paths::{End, NetworkSpec, PacketId};
use anabranch_policy::registry::FIRST_PATHS;
use anabranch_sim::{Condition, ConnectionOutcome, Content, Loss, Observer, Outcome, Sight, Spec, run, run_observed};
use anabranch_units::{Duration, Seed};
use anabranch_wire::ResetReason;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The digest of the run of a seed, or what is wrong with it.
fn play(seed: u64) -> Result<u64, String> {
    let spec = draw::spec(Seed(seed));
    let result = catch_unwind(AssertUnwindSafe(|| {
        let outcome = run(&spec).unwrap();
        judge(&spec, &outcome).map_or(Ok(outcome.digest), Err)
    }));
    result.unwrap_or_else(|panic| {
        Err(match panic.downcast_ref::<String>() {
            Some(message) => message.clone(),
            None => panic.downcast_ref::<&str>().map_or("panicked".to_owned(), |message| (*message).to_owned()),
        })
    })
}

fn verdict(spec: &Spec) -> Option<String> {
    judge(spec, &run(spec).unwrap())
}

/// Judges a run; returns a description of the fault, if any.
fn judge(spec: &Spec, outcome: &Outcome) -> Option<String> {
    if !outcome.finished && !draw::deep::may_fail(spec) && !is_honest_failure(spec, outcome) {
        let left: Vec<_> = outcome.transfers.iter().filter(|transfer| transfer.finished.is_none()).collect();
        return Some(format!("not finished at {}: {left:?}", outcome.end));
    }
    // However a connection ends, both ends notice: a reset that is lost is made up for by keepalives.
    if !outcome.quiet && (outcome.finished || !draw::deep::may_starve(spec)) {
        return Some(format!("not quiet after {}", outcome.end));
    }
    let unfinished = outcome.transfers.iter().filter(|transfer| !outcome.quiet && transfer.finished.is_none());
    if let Some(held) = unfinished.map(|it| &outcome.connections[it.connection]).find(|it| is_held(spec, it)) {
        return Some(format!("{} neither finished nor ended", held.label));
    }
    for stats in outcome.connections.iter().filter_map(|c| c.sender.as_ref()) {
        // A scheduler that waits for the fastest subflow while that repairs a loss by timeout may be found starving.
        // Where a scheduler has skipped the next byte, a window policy that counts data sent behind it may leave all
        // shares empty.
        if stats.overruled.total() > stats.overruled.starving + stats.overruled.shares {
            return Some(format!("the scheduler had to be overruled: {:?}", stats.overruled));
        }
    }
    for transfer in outcome.transfers.iter().filter(|_| outcome.finished) {
        if Some(transfer.bytes) != transfer.asked && !draw::deep::alters(spec) {
            return Some(format!("{} delivered {} of {:?}", transfer.label, transfer.bytes, transfer.asked));
        }
    }
    // With checksums a change by a box is noticed before the data is read, as long as MPTCP is spoken (RFC 8684
    // §3.3.1). Without, or on plain TCP, it cannot be.
    let checked = spec.client.config.checksum || spec.server.config.checksum;
    let caught = outcome.counters.iter().map(|host| host.checksum_failures).sum::<u64>();
    let by_chance = if caught >= CHANCE { LARGEST_MAPPING } else { 0 };
    if outcome.altered_bytes > by_chance && checked && outcome.connections.iter().all(|connection| connection.multipath)
    {
        return Some(format!("{} altered bytes were read in spite of checksums", outcome.altered_bytes));
    }
    None
}

/// Returns true for a connection that has not ended although both ends can tell that a box cuts bytes out of it.
fn is_held(spec: &Spec, connection: &ConnectionOutcome) -> bool {
    let ends = || [&connection.sender, &connection.receiver].into_iter().flatten();
    let checked = spec.client.config.checksum || spec.server.config.checksum;
    let speaks = connection.multipath && ends().all(|end| end.fallback.is_none());
    draw::deep::alters(spec) && checked && speaks && ends().count() == 2 && ends().all(|end| end.ended.is_none())
}

/// A middlebox took options away in the middle, the two ends found out at different times, and one of them could not
/// follow the other to plain TCP any more: a reset that says so is all that is left (RFC 8684 §3.7).
fn is_honest_failure(spec: &Spec, outcome: &Outcome) -> bool {
    let interferes = spec.network.paths.iter().any(|path| !path.middleboxes.is_empty());
    let says_so = |counters: &anabranch_engine::Counters| counters.resets_sent.contains_key(&ResetReason::Middlebox);
    interferes && outcome.counters.iter().any(says_so)
}

/// The runs are those of `digests.txt` as well, in debug and release, on this machine and the next. A change that moves
/// an event says so there, and in its message why.
#[test]
fn everything_arrives_whatever_happens_and_in_the_same_way() {
    let asked = std::env::var("SWARM_SEEDS").ok().and_then(|text| {
        let (first, end) = text.split_once("..")?;
        Some(first.parse().ok()?..end.parse().ok()?)
    });
    let seeds = asked.clone().unwrap_or(0..SEEDS);
    let next = AtomicU64::new(seeds.start);
    let (failures, digests) = (Mutex::new(BTreeMap::new()), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    match play(seed) {
                        Ok(digest) => drop(digests.lock().unwrap().insert(seed, digest)),
                        Err(fault) => drop(failures.lock().unwrap().insert(seed, fault)),
                    }
                }
            });
        }
    });
    let report = |(seed, fault): (&u64, &String)| {
        let next = seed + 1;
        format!("seed {seed}: {fault}\n  SWARM_SEEDS={seed}..{next} cargo test -p anabranch-sim --test swarm")
    };
    let failures: Vec<_> = failures.lock().unwrap().iter().map(report).collect();
    assert!(failures.is_empty(), "{} seeds failed:\n{}", failures.len(), failures.join("\n"));
    if asked.is_none() {
        compare_digests(&digests.into_inner().unwrap());
    }
}

/// Compares what blocks of seeds come to with the file, or writes it if `BLESS` is set.
fn compare_digests(digests: &BTreeMap<u64, u64>) {
    let mut blocks = BTreeMap::new();
    for (seed, digest) in digests {
        let block: &mut u64 = blocks.entry(seed / BLOCK * BLOCK).or_default();
        *block = block.rotate_left(5) ^ digest;
    }
    let text: String =
        blocks.iter().map(|(first, digest)| format!("{first:4}..{:4} {digest:016x}\n", first + BLOCK)).collect();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/digests.txt");
    if std::env::var_os("BLESS").is_some() {
        return std::fs::write(file, text).unwrap();
    }
    let known = std::fs::read_to_string(file).unwrap_or_default();
    let moved: Vec<_> = text.lines().zip(known.lines()).filter(|(now, then)| now != then).map(|(now, _)| now).collect();
    let command = "BLESS=1 cargo test -p anabranch-sim --test swarm";
    assert!(
        text == known,
        "events moved in {} blocks of seeds; {command} writes {file}:\n{}",
        moved.len(),
        moved.join("\n")
    );
}

/// Seeds that once found a fault, each another. They keep to it for as long as the draw stays as it is.
#[test]
fn what_once_failed_does_not_again() {
    for seed in [658_004, 811_553, 827_805, 856_770, 859_065] {
        assert!(play(seed).is_ok(), "seed {seed}: {:?}", play(seed));
    }
}

/// Everything arrives with every SYN answered by a cookie, with timestamps and without. Such a SYN/ACK is not repeated:
/// where the server is to speak first and the third ACK is lost, both sides are silent (RFC 4987 §3.6), and the server
/// never knew of the connection.
#[test]
fn everything_arrives_although_no_handshake_is_kept() {
    let mut cookies = 0;
    let failures: Vec<_> = (SEEDS..SEEDS + COOKIE_SEEDS)
        .filter_map(|seed| {
            let mut spec = draw::spec(Seed(seed));
            for host in [&mut spec.client, &mut spec.server] {
                host.config.max_half_open = 0;
                host.config.profile.timestamps = seed.is_multiple_of(2);
            }
            let result = catch_unwind(AssertUnwindSafe(|| {
                let outcome = run(&spec).unwrap();
                cookies += outcome.counters.iter().map(|host| host.cookies_received).sum::<u64>();
                let known = |it: &ConnectionOutcome| it.sender.is_some() && it.receiver.is_some();
                verdict(&spec).filter(|_| outcome.connections.iter().all(known))
            }));
            result.unwrap_or_else(|_| Some("panicked".to_owned())).map(|fault| format!("seed {seed}: {fault}"))
        })
        .collect();
    assert!(failures.is_empty(), "{} seeds failed:\n{}", failures.len(), failures.join("\n"));
    assert!(cookies >= COOKIE_SEEDS * 9 / 10, "{cookies} connections from cookies");
}

/// With the first subflow raced, remembered or moved. A box that can be the end of a connection on the first path can
/// then be so on any.
#[test]
fn everything_arrives_wherever_connections_begin() {
    let policies: Vec<_> = FIRST_PATHS.iter().filter(|entry| entry.name != Profile::tcp().first_path).collect();
    let mut moved = 0;
    let failures: Vec<_> = (SEEDS..SEEDS + RACED_SEEDS)
        .filter_map(|seed| {
            let mut spec = draw::spec(Seed(seed));
            let usual = run(&spec).unwrap().digest;
            let entry = policies[seed as usize % policies.len()];
            spec.client.config.policies.first_path = Arc::new(|| entry.build_default());
            let may_fail = (0..spec.network.paths.len()).any(|primary| {
                let network = NetworkSpec { primary, ..spec.network.clone() };
                draw::deep::may_fail(&Spec { network, ..spec.clone() })
            });
            let result = catch_unwind(AssertUnwindSafe(|| {
                moved += u64::from(run(&spec).unwrap().digest != usual);
                verdict(&spec).filter(|_| !may_fail)
            }));
            let fault = result.unwrap_or_else(|_| Some("panicked".to_owned()));
            fault.map(|fault| format!("seed {seed}, {}: {fault}", entry.name))
        })
        .collect();
    assert!(failures.is_empty(), "{} seeds failed:\n{}", failures.len(), failures.join("\n"));
    assert!(moved > RACED_SEEDS / 3, "{moved} runs are others");
}

#[test]
fn a_seed_gives_one_run_on_any_thread() {
    for seed in 0..20 {
        let run_once = move || run(&draw::spec(Seed(seed))).unwrap().digest;
        assert_eq!(run_once(), std::thread::spawn(run_once).join().unwrap(), "seed {seed}");
    }
}

#[test]
fn a_path_that_stays_dead_is_found_out() {
    let mut spec = draw::spec(Seed(3));
    spec.workloads = vec![common::download(10_000_000)];
    spec.stop = Duration::from_secs(120);
    spec.network.changes = (0..spec.network.paths.len()).map(|path| draw::blackhole(&spec, path)).collect();
    assert!(verdict(&spec).is_some_and(|fault| fault.starts_with("not finished")));
}

/// Segments whose mapping reaches beyond them.
#[derive(Default)]
struct Shared(u64);

impl Observer for Shared {
    fn on_sent(&mut self, sight: Sight<'_>, _purpose: Option<Purpose>) {
        if let Content::Segment(segment) = sight.content {
            let map = segment.options.dss().and_then(|dss| dss.map);
            self.0 += u64::from(map.is_some_and(|map| usize::from(map.length) > segment.payload.len() + 1));
        }
    }

    fn on_received(&mut self, _: Sight<'_>, _: Condition) {}

    fn on_lost(&mut self, _: PacketId, _: Loss<'_>) {}

    fn on_kept(&mut self, _: PacketId, _: usize, _: End) {}
}

/// Runs of the swarm have mappings over bursts, beside those that middleboxes make by splitting segments.
#[test]
fn bursts_share_mappings() {
    let count = |spec: &Spec| {
        let mut shared = Shared::default();
        run_observed(spec, &mut shared).unwrap();
        shared.0
    };
    let (mut drawn, mut more) = (0, 0);
    for mut spec in (0..60).map(|seed| draw::spec(Seed(seed))) {
        if spec.client.config.burst.is_some() || spec.server.config.burst.is_some() {
            let with = count(&spec);
            (spec.client.config.burst, spec.server.config.burst) = (None, None);
            drawn += 1;
            more += u32::from(with > count(&spec));
        }
    }
    assert!(drawn > 30 && more > drawn / 8, "{more} of {drawn}");
}

const SEEDS: u64 = 2000;
/// Wrong mappings caught in a run from which on one may have passed: the checksum has 16 bits, so that it holds for one
/// altered mapping in 65,536.
const CHANCE: u64 = 500;
/// Most bytes of a mapping (RFC 8684 §3.3).
const LARGEST_MAPPING: u64 = 65_535;
/// Seeds whose digests stand in one line of the file.
const BLOCK: u64 = 50;
const COOKIE_SEEDS: u64 = 400;
/// Seeds with another first path.
const RACED_SEEDS: u64 = 300;
