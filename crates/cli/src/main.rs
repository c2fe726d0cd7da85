//! The `anabranch` command: runs scenarios and compares schedulers.
//!
//! Exit status 0: done. 1: a run failed, or a file could not be written. 2: the command line or the scenario is refused.
#![forbid(unsafe_code)]

mod args;
mod compare;
mod failure;
mod inspect;
mod list;
mod output;
mod run;
mod script;

use args::{Args, Command};
use clap::{CommandFactory, Parser};
use failure::Failure;
use std::io::Write;
use std::panic::catch_unwind;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    // A broken promise of the simulator is reported as a failed run, with the command that repeats it, and anything else
    // below; neither needs a trace of ours on top.
    std::panic::set_hook(Box::new(|_| {}));
    match catch_unwind(|| dispatch(args.command)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            failure.print();
            failure.exit_code()
        }
        Err(panic) => {
            let _ = writeln!(std::io::stderr(), "anabranch has a bug: {}", anabranch_lab::panic_text(&*panic));
            ExitCode::from(1)
        }
    }
}

fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Inspect(args) => inspect::inspect(&args),
        Command::List(args) => list::list(&args),
        Command::Script(args) => script::script(&args),
        Command::Schema => output::print(&format!("{}\n", anabranch_lab::schema())),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "anabranch", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
    }
}
