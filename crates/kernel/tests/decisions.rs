//! The arithmetic of the schedulers for the kernel, compiled for the host, decides as the policies of the simulator do.
//!
//! 3,000 drawn connections of one to four subflows for each, with up to 40 decisions one after the other. Needs a C
//! compiler; is skipped where there is none, unless `ANABRANCH_REQUIRE_CC=1`.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/compiled.rs"]
mod compiled;

use anabranch_kernel::{SCHEDULERS, rehearse};
use anabranch_policy::scheduler::Scheduler;
use anabranch_policy::{Catalogue, Decision, Event, SubflowView, View};
use anabranch_units::{Bytes, Dsn, Duration, Instant, SubflowId};
use compiled::{Chance, compiled, has_compiler, run};
use std::fmt::Write as _;

const CONNECTIONS: u64 = 3_000;

#[test]
fn the_schedulers_for_the_kernel_decide_as_those_of_the_simulator() {
    if !has_compiler() {
        return;
    }
    for scheduler in SCHEDULERS {
        let mut chance = Chance(11);
        let (mut input, mut expected) = (String::new(), Vec::new());
        (0..CONNECTIONS).for_each(|_| connection(scheduler.name, &mut chance, &mut input, &mut expected));
        let decisions = run(&compiled("decide", scheduler.name), input);
        assert_eq!(decisions.len(), expected.len());
        let waits = expected.iter().filter(|set| **set == 0).count();
        println!("{}: {} decisions, {waits} waits", scheduler.name, expected.len());
        let differ = decisions.iter().zip(&expected).filter(|(decision, expected)| decision != expected).count();
        assert_eq!(differ, 0, "{}: of {} decisions", scheduler.name, expected.len());
        // Both answers were asked for.
        assert!(waits > 500 && expected.len() - waits > 500, "{}: {waits} waits", scheduler.name);
    }
}

/// The verifier of a kernel that registers none judges them all the same. Needs root.
#[test]
fn every_scheduler_passes_the_verifier_of_this_kernel() {
    if !common::has(&["btf", "struct-ops", "kernel-functions", "capabilities"]) {
        return;
    }
    for scheduler in SCHEDULERS {
        if let Err(error) = rehearse(scheduler) {
            panic!("{}: {error}", scheduler.name);
        }
    }
}

/// Draws a connection and some decisions of it, for the C program and for the policy.
fn connection(name: &str, chance: &mut Chance, input: &mut String, expected: &mut Vec<u64>) {
    let mut policy = Catalogue::default().schedulers.find(name).unwrap().build_default().policy;
    let mut subflows: Vec<SubflowView> = (0..1 + chance.below(4)).map(|id| drawn(id, chance)).collect();
    let backup = chance.below(8) == 0;
    subflows.iter_mut().for_each(|subflow| subflow.backup = backup);
    let mut now = Instant::ZERO + Duration::from_nanos(1);
    // The policy of copies keeps its place in the stream from one decision to the next.
    let decisions = if name == "redundant" { 1 } else { 1 + chance.below(40) };
    writeln!(input, "n 0").unwrap();
    for step in 0..decisions {
        now += Duration::from_micros(chance.below(500_000));
        if chance.below(4) == 0 {
            let on = subflows[chance.below(subflows.len() as u64) as usize].id;
            // A policy hears of a subflow by its event, the program by its number.
            policy.observe(now, &Event::WindowBlocked { on });
            writeln!(input, "b {}", on.0).unwrap();
        }
        let unsent = Bytes::new(1 + chance.up_to(1 << 22));
        let view = View {
            subflows: &subflows,
            unsent,
            sendable: unsent,
            window: Bytes::new(chance.up_to(1 << 23)),
            buffer: Bytes::new(1 << 23),
            data_una: Dsn::new(1),
            unsent_from: Dsn::new(1 + step),
        };
        write_view(input, now, &view);
        expected.push(if name == "redundant" { copies(&mut *policy, view) } else { set(&mut *policy, now, &view) });
        for subflow in &mut subflows {
            redraw(subflow, chance);
        }
    }
}

/// The set of the subflow that a policy chooses.
fn set(policy: &mut dyn Scheduler, now: Instant, view: &View<'_>) -> u64 {
    match policy.decide(now, view) {
        Decision::Send { on, .. } => place(view, on),
        _ => 0,
    }
}

/// The set of the subflows that a policy of copies sends one new segment on.
fn copies(policy: &mut dyn Scheduler, mut view: View<'_>) -> u64 {
    let (mut set, length, dsn) = (0, Bytes::new(1000), view.unsent_from);
    loop {
        match policy.decide(Instant::ZERO, &view) {
            Decision::Send { on, skip } => {
                set |= place(&view, on);
                policy.observe(Instant::ZERO, &Event::Sent { on, dsn, skip, length });
                (view.unsent, view.sendable, view.unsent_from) = (Bytes::ZERO, Bytes::ZERO, dsn + 1000);
            }
            Decision::Repeat { on, from } => {
                set |= place(&view, on);
                policy.observe(Instant::ZERO, &Event::Repeated { on, dsn: from, length });
            }
            Decision::Wait { .. } => return set,
        }
    }
}

fn place(view: &View<'_>, on: SubflowId) -> u64 {
    1 << view.subflows.iter().position(|subflow| subflow.id == on).unwrap()
}

/// Times are whole eighths of a microsecond, as Linux has them.
fn drawn(id: u64, chance: &mut Chance) -> SubflowView {
    let mss = Bytes::new(500 + chance.below(1000));
    let mut subflow = SubflowView::steady(SubflowId(3 * id as u16), mss, eighths(1 + chance.up_to(1 << 22)), mss);
    redraw(&mut subflow, chance);
    subflow
}

fn redraw(subflow: &mut SubflowView, chance: &mut Chance) {
    let srtt = subflow.srtt.as_nanos() / 125;
    subflow.srtt = eighths(srtt - srtt / 16 + chance.below(1 + srtt / 8));
    subflow.rttvar = eighths(chance.below(1 + srtt / 4));
    subflow.cwnd = Bytes::new(subflow.mss.get() + chance.up_to(1 << 19));
    subflow.open = chance.below(8) != 0;
    subflow.in_flight = match chance.below(3) {
        0 => Bytes::ZERO,
        1 => Bytes::new(chance.below(subflow.cwnd.get())),
        _ => subflow.cwnd,
    };
}

fn eighths(number: u64) -> Duration {
    Duration::from_nanos(125 * number)
}

fn write_view(input: &mut String, now: Instant, view: &View<'_>) {
    let now = now.since(Instant::ZERO).as_nanos();
    let View { subflows, unsent, window, .. } = view;
    writeln!(input, "d {} {now} {} {}", subflows.len(), unsent.get(), window.get()).unwrap();
    for subflow in *subflows {
        let times = [subflow.srtt, subflow.rttvar].map(|time| time.as_nanos() / 125);
        let sizes = [subflow.cwnd, subflow.in_flight, subflow.mss].map(Bytes::get);
        let flags = [subflow.has_room(), subflow.backup].map(u8::from);
        let [srtt, deviation] = times;
        let [window, flight, mss] = sizes;
        let [room, backup] = flags;
        writeln!(input, "{} {srtt} {deviation} {window} {flight} {mss} {room} {backup}", subflow.id.0).unwrap();
    }
}
