//! Reinjection.

use crate::common::*;
use crate::policy;
use anabranch_net::{Change, QueueLimit};
use anabranch_paths::{Affected, Direction, TimedChange};
use anabranch_policy::SubflowView;
use anabranch_policy::registry::{Built, REINJECTIONS, SCHEDULERS, Value};
use anabranch_policy::reinjection::{Capabilities, FlightView, Piece, Reinjection, Repeat, Request, SubflowSet, Why};
use anabranch_sim::{FileOrder, Outcome, Spec, Workload};
use anabranch_units::{Bytes, Dsn, Duration, Instant, Seed, SubflowId};
use std::sync::{Arc, Mutex};

fn with(mut spec: Spec, name: &str, given: &[(&str, Value)]) -> Spec {
    spec.server.config.policies.reinjection = policy(REINJECTIONS, name, given);
    spec
}

/// The completion times of all transfers over some seeds, sorted [s], and the bytes that were sent on a second subflow.
fn measure(spec: &Spec, name: &str) -> (Vec<f64>, u64) {
    let (mut times, mut copies) = (Vec::new(), 0);
    for seed in 1..=8 {
        let mut spec = with(spec.clone(), name, &[]);
        spec.seed = Seed(seed);
        spec.audit = false;
        let outcome = complete(&spec);
        times.extend(outcome.transfers.iter().map(|transfer| transfer.duration().unwrap().as_secs_f64()));
        copies += reinjected(&outcome);
    }
    times.sort_by(f64::total_cmp);
    (times, copies)
}

fn reinjected(outcome: &Outcome) -> u64 {
    outcome.connections.iter().map(|connection| connection.sender.as_ref().unwrap().reinjected).sum()
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn percentile(times: &[f64], p: usize) -> f64 {
    times[(times.len() - 1) * p / 100]
}

/// Makes a workload of `count` files of this size on one warm connection.
pub(super) fn warm(size: u64, count: usize) -> Workload {
    let mut files = files(Direction::Down, &vec![size; count], false);
    if let Workload::Files { order, .. } = &mut files {
        *order = FileOrder::OneConnection { warm_up: Bytes::ZERO, pause: ms(200) };
    }
    files
}

fn change(at_ms: u64, path: &str, change: Change) -> TimedChange {
    TimedChange { at: ms(at_ms), path: path.to_owned(), affected: Affected::Both, change, notify: false }
}

/// Two lossy paths, and many small files on one connection.
fn small_files() -> Spec {
    spec(vec![lossy_path("a", 20, 10, 0.02), lossy_path("b", 10, 25, 0.02)], vec![warm(10_000, 50)])
}

/// Data on a dead path waits for the path without reinjection, and for the timeout with it.
#[test]
fn a_dead_path_holds_nothing_up_for_longer_than_a_timeout() {
    let mut hole = spec(vec![path("a", 10, 10), path("b", 10, 15)], vec![download(2_000_000)]);
    hole.network.changes = vec![change(500, "a", Change::Blackhole)];
    let time = |name| goodput_time(&with(hole.clone(), name, &[]));
    let (none, on_rto) = (time("none"), time("on-rto"));
    // 2 MB at 10 Mbit/s take 1.7 s.
    assert!(on_rto < 2.5 && none > 10.0 * on_rto, "{on_rto} s against {none} s");
}

fn goodput_time(spec: &Spec) -> f64 {
    complete(spec).transfers[0].duration().unwrap().as_secs_f64()
}

/// A-OPT. A slow path that holds the oldest data blocks a small window; nothing times out, so `on-rto` does nothing.
#[test]
fn a_small_window_is_not_held_up_by_the_slow_path() {
    let mut held = spec(vec![path("fast", 100, 5), path("slow", 10, 50)], vec![download(4_000_000)]);
    held.client.config.receive_buffer = Bytes::new(1 << 18);
    // Short, so that queueing does not hide that the paths are ten times apart.
    held.network.paths[0].down.queue = QueueLimit::Packets(80);
    let (on_rto, no_copies) = measure(&held, "on-rto");
    let (opportunistic, copies) = measure(&held, "opportunistic");
    assert!(no_copies == 0 && copies > 0);
    assert!(mean(&opportunistic) < 0.85 * mean(&on_rto), "{} s against {} s", mean(&opportunistic), mean(&on_rto));
}

/// A window of 85 KiB, most of which the fast path has under way, often leaves room for a part of a copy only. The rest
/// of that segment is copied as well, and the thin path holds the window up for no longer than a copy takes.
#[test]
fn a_copy_that_the_window_cuts_short_is_completed() {
    let fast = || {
        let mut fast = path("fast", 120, 16);
        fast.down.queue = QueueLimit::Packets(573);
        fast
    };
    let mut thin = path("thin", 1, 5);
    thin.down.queue = QueueLimit::Packets(10);
    let time = |paths| {
        let mut spec = spec(paths, vec![download(5_000_000)]);
        spec.client.config.receive_buffer = Bytes::new(87_040);
        spec.server.config.policies.scheduler = policy(SCHEDULERS, "anabranch", &[]);
        mean(&measure(&spec, "insured").0)
    };
    let (both, alone) = (time(vec![thin, fast()]), time(vec![fast()]));
    println!("{both:.3} s with the thin path, {alone:.3} without");
    assert!(both < 1.02 * alone, "{both} s with the thin path, {alone} without");
}

/// Data that a full send buffer has held up leave in bursts no longer than a short queue holds.
#[test]
fn a_limit_of_bursts_spares_a_short_queue() {
    let mut narrow = path("narrow", 107, 6);
    narrow.down.queue = QueueLimit::Packets(25);
    let mut slow = path("slow", 5, 12);
    (slow.down.jitter, slow.down.queue) = (ms(4), QueueLimit::Packets(32));
    let measured = |limit| {
        let mut spec = spec(vec![narrow.clone(), slow.clone()], vec![download(20_000_000)]);
        spec.server.config.send_buffer = Bytes::new(605_184);
        spec.server.config.policies.scheduler = policy(SCHEDULERS, "anabranch", &[]);
        spec.server.config.profile.max_burst = limit;
        mean(&measure(&spec, "insured").0)
    };
    let (limited, unlimited) = (measured(Some(16)), measured(None));
    println!("{limited:.3} s with a limit of 16 segments, {unlimited:.3} without");
    assert!(limited < 0.98 * unlimited, "{limited} s with a limit of 16 segments, {unlimited} without");
}

/// A-XQUIC. The last segments of a file have nothing behind them that shows their loss.
#[test]
fn copies_of_the_tail_complete_small_files_earlier() {
    let (on_rto, few) = measure(&small_files(), "on-rto");
    let (tail, copies) = measure(&small_files(), "tail");
    let (slow, fast) = (percentile(&on_rto, 95), percentile(&tail, 95));
    assert!(fast < 0.75 * slow, "95th percentile {fast} s against {slow} s");
    assert!(mean(&tail) < 0.9 * mean(&on_rto) && copies > 100 * few, "{copies} and {few} bytes");
    // A long file has one tail, as a short one has: the price is in proportion to the files, not to the bytes.
    let long = spec(small_files().network.paths, vec![download(1_000_000)]);
    let copied = reinjected(&complete(&with(long, "tail", &[])));
    assert!(0 < copied && copied < 200_000, "{copied}");
}

/// A-XQUIC. Copies of what is late cut the latency of files that lose something, and cost less than copies of all.
#[test]
fn copies_of_what_is_late_cost_less_than_copies_of_everything() {
    let (on_rto, _) = measure(&small_files(), "on-rto");
    let (deadline, late) = measure(&small_files(), "deadline");
    let (_, everything) = measure(&small_files(), "redundant");
    let (slow, fast) = (percentile(&on_rto, 95), percentile(&deadline, 95));
    assert!(fast < 0.75 * slow, "95th percentile {fast} s against {slow} s");
    assert!(0 < late && late < everything / 2, "{late} and {everything} bytes");
}

/// A-STALE. A path swallows everything from 0.5 s to 4 s. Its data moves, and when it answers it is used again: its
/// retransmission timer, backed off, tries at about 7 s, and a second later what it lost is repaired. The other path
/// has carried 9 MB by then, with buffers of either size.
#[test]
fn a_stuck_path_goes_stale_and_comes_back() {
    for send_buffer in [4, 6] {
        let stuck = |end: bool, name, given: &[(&str, Value)]| {
            let mut spec = spec(vec![path("a", 10, 10), path("b", 10, 15)], vec![download(20_000_000)]);
            spec.network.changes = vec![change(500, "a", Change::Blackhole)];
            spec.server.config.send_buffer = Bytes::new(send_buffer << 20);
            if end {
                spec.network.changes.push(change(4000, "a", Change::Restore));
            }
            let outcome = complete(&with(spec, name, given));
            let a = outcome.connections[0].subflows.iter().filter(|subflow| subflow.path == 0);
            let on_a: u64 = a.map(|subflow| subflow.stats.bytes_first_sent).sum();
            (outcome.transfers[0].duration().unwrap().as_secs_f64(), on_a, reinjected(&outcome))
        };
        let (time, on_a, moved) = stuck(true, "upstream", &[]);
        let (alone, before, _) = stuck(false, "upstream", &[]);
        let (unhelped, ..) = stuck(true, "none", &[]);
        let (_, _, oldest) = stuck(true, "upstream", &[("stale-loss-cnt", Value::Number(0.0))]);
        assert!(time < unhelped - 0.5 && time < 0.8 * alone, "{time} s against {unhelped} s, and {alone} s");
        assert!(on_a > before + 3_000_000, "{on_a} bytes against {before} had it stayed dead");
        assert!(moved > 3 * oldest, "all of its data moves, {moved} bytes, not just the oldest, {oldest}");
    }
}

/// A-OPT. DAPS over two paths, one less than four times slower, behind a window of 64 KiB: what the slow one holds
/// keeps the fast one waiting. Its own rule repeats that on the fast one and fills the slow one with copies of what the
/// fast one carries: 1.77 s. The general rule hardly finds it worth it: 2.61 s. Behind a window of 8 MB neither repeats
/// anything.
#[test]
fn daps_repeats_whatever_waits_for_the_window() {
    let behind = |window, name, given: &[(&str, Value)]| {
        let mut spec = spec(vec![path("fast", 20, 10), path("slow", 4, 30)], vec![download(4_000_000)]);
        spec.client.config.receive_buffer = Bytes::new(window);
        spec.server.config.send_buffer = Bytes::new(8_000_000);
        spec.server.config.policies.scheduler = policy(SCHEDULERS, "daps", &[]);
        let outcome = complete(&with(spec, name, given));
        (outcome.transfers[0].duration().unwrap().as_secs_f64(), reinjected(&outcome))
    };
    let (held, few) = behind(65_536, "opportunistic", &[("penalise", Value::Flag(false))]);
    let (freed, many) = behind(65_536, "daps", &[]);
    assert!(freed < 0.8 * held, "{freed} s against {held} s");
    assert!(many > 500_000 && few < 100_000, "{many} and {few} bytes");
    assert_eq!(behind(8_000_000, "daps", &[]).1, 0);
}

/// A-REDUNDANT as reinjection. Three lossy paths and a few segments at a time: every segment on every path is the most
/// that copies can do, and all other policies send fewer.
#[test]
fn copies_of_everything_are_the_most_and_the_fastest_for_a_thin_stream() {
    let paths = vec![lossy_path("a", 20, 10, 0.1), lossy_path("b", 20, 12, 0.1), lossy_path("c", 20, 14, 0.1)];
    let thin = spec(paths, vec![warm(2_800, 60)]);
    let (times, most) = measure(&thin, "redundant");
    for entry in REINJECTIONS.iter().filter(|entry| entry.name != "redundant") {
        let (others, copies) = measure(&thin, &entry.name);
        assert!(copies < most, "{}: {copies} and {most} bytes", entry.name);
        assert!(mean(&times) <= mean(&others), "{}: {} s and {} s", entry.name, mean(&times), mean(&others));
        assert!(percentile(&times, 95) <= percentile(&others, 95), "{}", entry.name);
    }
}

/// A policy that asks for copies.
fn copying(policy: impl Reinjection + 'static) -> Built<dyn Reinjection> {
    Built { policy: Box::new(policy), capabilities: Capabilities { copies: true, opportunities: false } }
}

/// Asks for the same copy over and over.
struct Stubborn(Repeat);

impl Reinjection for Stubborn {
    fn next(&mut self, _now: Instant, _flight: &FlightView<'_>) -> Request {
        self.0.into()
    }

    fn wake(&mut self, now: Instant, _flight: &FlightView<'_>) -> Option<Instant> {
        Some(now + Duration::from_nanos(1))
    }

    fn on_wake(&mut self, _now: Instant, flight: &FlightView<'_>) -> SubflowSet {
        flight.states.iter().fold(SubflowSet::NONE, |all, state| all.with(state.mark))
    }
}

/// Promise: a plug-in cannot break the transport. Each impossible copy is counted, none is sent; who calls every
/// subflow stale is left with one; who wants to be woken at once is woken later.
#[test]
fn answers_that_cannot_be_change_nothing() {
    for (on, from) in [(0, 0), (1, u64::MAX), (9, 1)] {
        let mut spec = spec(vec![lossy_path("a", 10, 10, 0.01), path("b", 10, 15)], vec![download(500_000)]);
        let repeat = Repeat { on: SubflowId(on), from: Dsn::new(from), why: Why::Tail };
        let capabilities = Capabilities { copies: true, opportunities: true };
        spec.server.config.policies.reinjection = Arc::new(move || Built { capabilities, ..Stubborn(repeat).into() });
        let outcome = complete(&spec);
        let sender = outcome.connections[0].sender.as_ref().unwrap();
        assert!(sender.overruled.copies > 0 && sender.overruled.impossible == 0, "{:?}", sender.overruled);
        assert!(outcome.transfers[0].duration().unwrap() < Duration::from_secs(2));
    }
}

/// Writes down what it is shown of subflow 0.
struct Observer(Arc<Mutex<Vec<SubflowView>>>);

impl Reinjection for Observer {
    fn next(&mut self, _now: Instant, flight: &FlightView<'_>) -> Request {
        self.0.lock().unwrap().extend(flight.view.subflow(SubflowId(0)).copied());
        Request::default()
    }
}

/// A path of 1 Mbit/s and 10 ms looks fast by its RTT. Two segments fill it (1250 bytes), so ten queue up, and the rate
/// at which their ACKs come is nearly the path's although the sender has nothing more to send. On 1 Gbit/s no queue
/// stands, and nothing is known.
#[test]
fn a_slow_path_of_a_short_rtt_is_known_by_its_rate() {
    let seen = |mbit| {
        let views = Arc::new(Mutex::new(Vec::new()));
        let (observed, paths) = (Arc::clone(&views), vec![path("thin", mbit, 5), path("other", 20, 40)]);
        let mut spec = spec(paths, vec![warm(20_000, 10)]);
        spec.server.config.policies.reinjection = Arc::new(move || copying(Observer(Arc::clone(&observed))));
        complete(&spec);
        let views = views.lock().unwrap();
        assert!(views.iter().all(|view| view.oldest_sent.is_some() != view.in_flight.is_zero()));
        assert!(views.iter().any(|view| view.delivery.is_some_and(|delivery| delivery.app_limited)));
        *views.last().unwrap()
    };
    let thin = seen(1);
    let rate = thin.path_rate.unwrap().as_mbps();
    assert!((0.75..1.0).contains(&rate), "payload of 1 Mbit/s: {rate}");
    assert!(thin.one_way_delay() >= ms(5) && thin.one_way_delay() < thin.srtt);
    assert_eq!(seen(1000).path_rate, None);
}

/// Bursts of 15 segments every 200 ms over 50 Mbit/s and 10 ms, and 5 Mbit/s and 100 ms. min-RTT leaves the end of each
/// on the slow path. `opportunistic` does not help, the window is wide open; `insured` copies that end, within its
/// budget: two segments and a twentieth of all.
#[test]
fn insured_repeats_the_end_of_a_burst_within_its_budget() {
    let bursts = spec(vec![path("fast", 50, 5), path("slow", 5, 50)], vec![warm(21_000, 30)]);
    let budget: &[(&str, Value)] = &[("share", Value::Number(5.0)), ("allowance", Value::Number(2.0))];
    let run = |name, given: &[(&str, Value)]| {
        let outcome = complete(&with(bursts.clone(), name, given));
        let times: Vec<f64> =
            outcome.transfers.iter().map(|transfer| transfer.duration().unwrap().as_secs_f64()).collect();
        (mean(&times), reinjected(&outcome))
    };
    let (late, none) = run("opportunistic", &[]);
    let (soon, copies) = run("insured", &[("share", Value::Number(100.0))]);
    let (_, few) = run("insured", budget);
    assert!(soon < 0.7 * late && none == 0, "{soon} s against {late} s, {none} bytes");
    assert!(copies > 3 * few && few > 15_000 && few <= 31_500 + 2 * 1460, "{copies} and {few} bytes");
}

/// Asks for every piece on every subflow, as long as that can be.
struct Greedy;

impl Reinjection for Greedy {
    fn next(&mut self, _now: Instant, flight: &FlightView<'_>) -> Request {
        let mut room = flight.marked().filter(|(subflow, _)| subflow.has_room_to_repeat());
        let copy = room.find_map(|(subflow, state)| {
            let fresh = |piece: &Piece| piece.carriers != SubflowSet::NONE && !piece.carriers.meets(state.mark);
            let piece = flight.first_piece(flight.view.data_una, flight.view.unsent_from, fresh)?;
            Some(Repeat { on: subflow.id, from: piece.from, why: Why::Redundancy })
        });
        copy.into()
    }
}

/// The record of sent data is exact: segments of two sizes carry the same data, nothing is impossible, and each byte
/// goes at most once to each subflow at the data level.
#[test]
fn no_subflow_carries_anything_twice() {
    let mut spec = spec(vec![path("a", 10, 10), path("b", 10, 15)], vec![download(500_000)]);
    spec.server.config.policies.reinjection = Arc::new(|| copying(Greedy));
    let outcome = complete(&spec);
    let sender = outcome.connections[0].sender.as_ref().unwrap();
    assert_eq!(sender.overruled.copies, 0);
    assert!(200_000 < sender.reinjected && sender.reinjected <= 500_000, "{}", sender.reinjected);
}

/// A path that goes black holds the peer's window up until its timeout, or until its silence is noticed: half a second
/// later on this one. Buffer of two bandwidth-delay products of 40 Mbit/s and 50 ms.
#[test]
fn insured_opens_a_window_that_a_silent_path_holds_up() {
    let mut spec = spec(vec![path("stays", 40, 25), path("dies", 40, 25)], vec![download(8_000_000)]);
    spec.client.config.receive_buffer = Bytes::new(500_000);
    spec.network.changes = swallowed("dies", 700, 60_000);
    let time = |name| complete(&with(spec.clone(), name, &[])).transfers[0].duration().unwrap().as_secs_f64();
    let (opportunistic, insured) = (time("opportunistic"), time("insured"));
    println!("opportunistic {opportunistic:.3} s, insured {insured:.3} s");
    assert!(insured < opportunistic - 0.1, "{insured} {opportunistic}");
}

/// Two paths of these rates [Gbit/s] and round trips [us] that lose nothing: their queues hold all that windows admit.
fn lossless(gbps: u64, round_trips: [u64; 2]) -> Spec {
    let paths = ["a", "b"].into_iter().zip(round_trips).map(|(name, round_trip)| {
        let mut path = path(name, gbps * 1000, 0);
        for link in [&mut path.down, &mut path.up] {
            link.delay = Duration::from_micros(round_trip / 2);
            link.queue = QueueLimit::Bytes(Bytes::new(1 << 28));
        }
        path
    });
    let mut spec = spec(paths.collect(), vec![download(50_000_000)]);
    spec.audit = false;
    spec
}

/// The proxy's default repeats next to nothing where nothing is lost, and costs no time: `on-rto` repeats nothing.
#[test]
fn insured_repeats_next_to_nothing_on_fast_paths_without_loss() {
    let mut missed = Vec::new();
    for gbps in [2, 10] {
        for round_trips in [[50, 50], [5000, 5000], [20_000, 20_000], [50, 20_000]] {
            let run = |name| {
                let outcome = complete(&with(lossless(gbps, round_trips), name, &[]));
                (outcome.transfers[0].duration().unwrap().as_secs_f64(), reinjected(&outcome))
            };
            let ((insured, twice), (on_rto, _)) = (run("insured"), run("on-rto"));
            println!("{gbps} Gbit/s, {round_trips:?} us: {insured:.4} s, {twice} bytes twice; on-rto {on_rto:.4} s");
            if twice > 500_000 || insured > 1.05 * on_rto {
                missed.push((gbps, round_trips, insured / on_rto, twice));
            }
        }
    }
    assert!(missed.is_empty(), "rate, round trips, time against on-rto, bytes twice: {missed:?}");
}

/// Messages of 160 bytes each 20 ms, for twelve seconds, over two paths of which the first loses 2 %: with copies none
/// waits for a repair, which takes a tenth of a second and more.
#[test]
fn a_thin_stream_waits_for_no_repair() {
    let spec = |size: u64| {
        let messages = Workload::Bursts {
            direction: Direction::Down,
            size: Bytes::new(size),
            count: 600,
            interval: ms(20),
            start: Duration::ZERO,
            warm_up: Bytes::ZERO,
        };
        spec(vec![lossy_path("a", 20, 10, 0.02), path("b", 10, 25)], vec![messages])
    };
    let (plain, repaired) = measure(&spec(160), "opportunistic");
    let (thin, copied) = measure(&spec(160), "insured");
    let (p99, without) = (percentile(&thin, 99), percentile(&plain, 99));
    println!("99th percentile {p99:.3} s, {without:.3} without copies; {copied} and {repaired} bytes repeated");
    assert!(p99 < 0.6 * without, "{p99} {without}");
    // In eight runs all but the first second is copied. Messages of 600 bytes are 240 kbit/s, and have a budget.
    let (_, of_more) = measure(&spec(600), "insured");
    assert!(copied > 8 * 600 * 150 && of_more < 8 * 600 * 240, "{copied} {of_more}");
}
