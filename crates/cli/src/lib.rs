//! The `anabranch` command: runs scenarios and compares schedulers.
//!
//! A program with policies of its own is this command with a longer [`Catalogue`]:
//!
//! ```no_run
//! use anabranch_policy::Catalogue;
//!
//! fn main() -> std::process::ExitCode {
//!     let mut catalogue = Catalogue::default();
//!     // catalogue.schedulers.add(Entry { name: "mine", … })
//!     anabranch_cli::main_with(catalogue)
//! }
//! ```
//!
//! Exit status 0: done. 1: a run failed, or a file could not be written. 2: the command line or the scenario is
//! refused. `testbed` passes on that of its command.
#![forbid(unsafe_code)]
// What only commands of Linux use lies idle elsewhere.
#![cfg_attr(not(target_os = "linux"), expect(dead_code))]

mod args;
mod captures;
mod command_line;
mod compare;
mod completion;
mod documentation;
#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(target_os = "linux", expect(dead_code, reason = "here there are only its tests"))]
mod elsewhere;
mod evaluate;
mod failure;
mod field;
#[cfg(target_os = "linux")]
mod host;
mod inspect;
mod lab;
mod list;
mod man;
mod output;
mod rank;
mod result_file;
mod run;
mod schema;
mod script;
mod stop;
mod study;
mod sweep;
mod trace;
mod twin;
mod why;

use anabranch_policy::Catalogue;
use args::{Args, Command};
use clap::{ArgMatches, CommandFactory, FromArgMatches};
#[cfg(not(target_os = "linux"))]
use elsewhere as host;
use failure::Failure;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;

/// The whole command, with the arguments of the process and these policies.
pub fn main_with(catalogue: Catalogue) -> ExitCode {
    let catalogue = Arc::new(catalogue);
    completion::complete_if_asked(&catalogue);
    // Before the arguments are described, which takes longer than the answer.
    if std::env::args_os().nth(1).is_some_and(|first| first == "--version" || first == "-V") {
        return said(output::print(&format!("anabranch {}\n", anabranch_lab::version_with_build())));
    }
    let (args, matches) = arguments(&catalogue);
    // A broken promise of the simulator is reported as a failed run, with the command that repeats it, and anything
    // else below; neither needs a trace of ours on top.
    std::panic::set_hook(Box::new(|_| {}));
    let work = || {
        host::begin();
        result_file::check(&matches)?;
        dispatch(args.command, &catalogue)
    };
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => said(result),
        Err(panic) => {
            let _ = writeln!(std::io::stderr(), "anabranch has a bug: {}", anabranch_lab::panic_text(&*panic));
            ExitCode::from(1)
        }
    }
}

/// Says why the command failed, if it did.
fn said(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.code())
        }
    }
}

/// The arguments of the process, also as they were matched. What does not parse ends the program here, as does
/// `--help`.
fn arguments(catalogue: &Catalogue) -> (Args, ArgMatches) {
    let matches = command_line::matches(Args::command(), catalogue).unwrap_or_else(|error| command_line::end(&error));
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| command_line::end(&error));
    (args, matches)
}

fn dispatch(command: Command, catalogue: &Arc<Catalogue>) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(catalogue, &args),
        Command::Compare(args) if args.all => compare::pairwise(catalogue, &args),
        Command::Compare(args) => compare::compare(catalogue, &args),
        Command::Why(args) => why::why(catalogue, &args),
        Command::Twin(args) => twin::twin(catalogue, &args),
        Command::Rank(args) => rank::rank(catalogue, &args),
        Command::Sweep(args) => sweep::sweep(catalogue, &args),
        Command::Study(args) => study::study(catalogue, &args),
        Command::Evaluate(args) => evaluate::evaluate(catalogue, &args),
        Command::Inspect(args) => inspect::inspect(&args),
        Command::Trace(args) => trace::trace(&args),
        Command::List(args) => list::list(catalogue, &args),
        Command::Script(args) => script::script(&args),
        Command::Host(command) => host::run(catalogue, &command),
        Command::Lab(args) => lab::lab(catalogue, &args),
        Command::Schema(args) => schema::schema(catalogue, &args),
        Command::Completions(args) => completion::completions(&args),
        Command::Man(args) => man::man(&args),
    }
}
