//! `anabranch evaluate --testbed`: programs in real time behind the links of a document's cases.

mod program;
mod run;
mod watch;

use super::testbed::{isolated, settings};
use crate::evaluate::{EvaluateArgs, command, journal, show};
use crate::failure::Failure;
use crate::output;
use anabranch_host::Inside;
use anabranch_lab::{Flows, Journal};
use anabranch_policy::Catalogue;
use anabranch_scenario::ScenarioError;
use anabranch_study::evaluate::{Candidate, Kernel, LiveRun, Peer, Plan, Program, Suite};
use anabranch_units::Duration;
use run::Runner;
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

/// Time that a run takes beside that of its flows: to make the testbed, and to end it.
const SETUP: Duration = Duration::from_secs(2);

/// Evaluates a program, or the kernel's TCP, in real time.
pub fn evaluate(catalogue: &Arc<Catalogue>, args: &EvaluateArgs, suite: Suite) -> Result<(), Failure> {
    let program = program(args)?;
    isolated(|inside| {
        let done = work(catalogue, args, suite, program, &inside);
        inside.end_all();
        done.map(|()| 0).map_err(|failure| {
            let code = failure.code();
            (failure, code)
        })
    })
}

/// Returns the program of the command line; `None` for the kernel's TCP.
fn program(args: &EvaluateArgs) -> Result<Option<Program>, ScenarioError> {
    let refuse = |problem: &str, help: &str| Err(ScenarioError::plain(problem.to_owned(), Some(help.to_owned())));
    match (&args.server, args.command.is_empty()) {
        (None, true) => Ok(None),
        (Some(_), true) => {
            refuse("the program has no client", "name its command behind `--`, as for `anabranch testbed`")
        }
        (None, false) => {
            refuse("the program has no server", "name its command with `--server CMD`, as for `anabranch testbed`")
        }
        (Some(_), false) if args.control.is_some() => refuse(
            "a program has a congestion control of its own, which `--control` does not change",
            "leave `--control` out; `--set host.congestion=NAME` sets that of sockets of its kernel which choose none",
        ),
        (Some(server), false) => Ok(Some(Program { server: server.clone(), client: args.command.clone() })),
    }
}

/// Runs in the worker, from the plan to the tables.
fn work(
    catalogue: &Arc<Catalogue>,
    args: &EvaluateArgs,
    suite: Suite,
    program: Option<Program>,
    inside: &Inside,
) -> Result<(), Failure> {
    let kernel = kernel(inside.in_user_namespace);
    let control = args.control.clone().unwrap_or_else(|| kernel.default_control.clone());
    let peer = Peer { program: program.clone(), multipath: args.multipath, kernel };
    let candidate = Candidate { control: control.clone(), scheduler: None, sets: args.sets.clone(), peer: Some(peer) };
    let plan = Plan::new(suite, candidate, args.quick, catalogue)?;
    let journal = journal(args)?;
    let halted = Arc::new(AtomicI32::new(0));
    let signals = inside.signals().map_err(|error| Failure::writing("signals", error))?;
    let heard = Arc::clone(&halted);
    thread::spawn(move || signals.for_each(|received| heard.store(received.signal, Ordering::Relaxed)));
    let runner = Runner { program: program.as_ref(), wait: args.wait, halted: &halted };
    make(&plan, &journal, &runner)?;
    let named = program.is_none().then_some(control.as_str());
    let command = |place: Option<(&str, &str)>| command(args, named, place);
    show(args, &[plan.result(&journal, &command)], &command(None))
}

/// Makes the runs that the journal lacks, one after the other, and says how far it is.
fn make(plan: &Plan, journal: &Journal<Flows>, runner: &Runner<'_>) -> Result<(), Failure> {
    for (case, reason) in plan.left_out() {
        say(&format!("{case} is left out: {reason}"));
    }
    let runs = plan.live_runs(journal);
    let mut left: Duration = runs.iter().map(time).fold(Duration::ZERO, |sum, time| sum + time);
    let not_applied: BTreeSet<String> = runs.iter().flat_map(|run| settings(run.scenario).not_applied).collect();
    let not_applied: Vec<String> = not_applied.into_iter().filter(|it| !it.starts_with("congestion = ")).collect();
    if !not_applied.is_empty() {
        say(&format!("not applied to the kernels: {}", not_applied.join(", ")));
    }
    say(&format!("{} runs in real time, about {}", runs.len(), clock(left)));
    for (place, run) in runs.iter().enumerate() {
        let about = if run.about.is_empty() { String::new() } else { format!(": {}", run.about) };
        say(&format!("run {} of {}, {} left: {}{about}", place + 1, runs.len(), clock(left), run.case));
        let flows = runner.run(run)?;
        if !flows.faults.is_empty() {
            say(&format!("the links were late, twice: {}", flows.faults.join("; ")));
        }
        journal.put(&run.key, flows).map_err(Failure::journal)?;
        left = left.saturating_sub(time(run));
    }
    Ok(())
}

fn time(run: &LiveRun<'_>) -> Duration {
    run.length()[0] + SETUP
}

/// Returns minutes and seconds, or hours and minutes.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    match seconds {
        ..3600 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        _ => format!("{}:{:02} h", seconds / 3600, seconds / 60 % 60),
    }
}

/// The kernel of this machine, as far as hosts in a testbed may use it.
fn kernel(in_user_namespace: bool) -> Kernel {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/{name}")).unwrap_or_default().trim().to_owned();
    let controls = if in_user_namespace { "allowed" } else { "available" };
    let controls = read(&format!("net/ipv4/tcp_{controls}_congestion_control"));
    Kernel {
        release: format!("{} {}", read("kernel/ostype"), read("kernel/osrelease")),
        controls: controls.split_whitespace().map(str::to_owned).collect(),
        default_control: read("net/ipv4/tcp_congestion_control"),
        multipath: !read("net/mptcp/enabled").is_empty(),
    }
}

/// Prints a message to standard error, if it is open.
fn say(what: &str) {
    output::remark(&format!("anabranch evaluate: {what}"));
}
