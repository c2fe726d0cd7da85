//! `anabranch calibrate`.

use crate::args::{What, span};
use crate::completion::Names;
use crate::failure::Failure;
use crate::output;
use crate::result_file::ResultFile;
use anabranch_calibrate::{CalibrateError, Case, Draw, Settings, calibrate, controlled, drives, suite, witnesses};
use anabranch_host::{Inside, IsolationError, Outcome, supervise};
use anabranch_kernel::{ALGORITHMS, LoadError, Loaded, load};
use anabranch_lab::format::CALIBRATION;
use anabranch_policy::Catalogue;
use anabranch_units::Duration;
use clap::Args;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

/// Arguments of `calibrate`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  anabranch calibrate --quick               five networks, one file each, three runs: a minute or two
  anabranch calibrate                       the whole suite: files, bursts and pages
  anabranch calibrate --only 'lossy 5MB'    one of its cases
  anabranch calibrate --witnesses           claims of the papers that the kernel can witness
  anabranch calibrate --drives recordings --windows 20 --seed 7
                                            windows of recorded drives, half an hour
  sudo anabranch calibrate --controllers    congestion controls of ours that the kernel has loaded
  anabranch calibrate wlan-lte --set 'workload=[{kind=\"files\",size=\"2MB\"}]'
                                            a scenario of your own

Each transfer is made in the simulator, by our engine on the testbed, and by the kernel's own TCP and MPTCP on the \
testbed. It needs what `anabranch testbed` needs. docs/fidelity.md says what we found.")]
pub struct CalibrateArgs {
    /// Scenario files or names, each with one file, bursts, a page, or bulk as its workload, beside bulk also competing
    /// TCP; without any, the suite.
    #[arg(add = Names::or_file(What::Scenarios))]
    pub scenarios: Vec<String>,
    /// Override a value of the scenarios, as in `run`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Run the suite with one size per network, and three runs unless --repeat says otherwise.
    #[arg(long)]
    pub quick: bool,
    /// Run networks of the papers instead of the suite, each with the claim that the kernel can witness there.
    #[arg(long, conflicts_with_all = ["quick", "scenarios", "sets"])]
    pub witnesses: bool,
    /// Run each congestion control that `anabranch kernel load` has instead of the suite: transfers, share beside one
    /// TCP connection, and settling times. A case whose control this kernel cannot load is skipped, and said.
    #[arg(long, conflicts_with_all = ["quick", "scenarios", "sets", "witnesses"])]
    pub controllers: bool,
    /// Run windows drawn from the recordings in this folder instead of the suite: 20 s of bulk over two of them at one
    /// moment, with Linux 6.18's buffers. Paths without a recorded delay have 25 ms, and queues hold 500 packets.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["quick", "scenarios", "sets", "witnesses", "controllers"])]
    pub drives: Option<PathBuf>,
    /// Number of windows.
    #[arg(long, value_name = "N", default_value_t = 20, requires = "drives")]
    pub windows: usize,
    /// Length of each window.
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "20s", requires = "drives")]
    pub length: Duration,
    /// Run only cases whose name contains this, such as `asymmetric bursts`.
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Runs of each transfer in each world [default: 10, or one of each window of drives].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// The first seed; windows of drives are drawn from it.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Threads for the simulator; 0 for one per processor.
    #[arg(long, default_value_t = 0)]
    pub jobs: usize,
    /// Print JSON, with the value of every single run.
    #[arg(long)]
    pub json: bool,
    /// Write the JSON to a file as well.
    #[arg(long, value_name = "FILE")]
    pub output: Option<ResultFile>,
}

/// Reads the scenarios, then calibrates in a process of its own, so that nothing stays behind.
pub fn run(catalogue: &Arc<Catalogue>, args: &CalibrateArgs) -> Result<(), Failure> {
    let cases = match args.scenarios.as_slice() {
        [] if args.witnesses => witnesses(catalogue)?,
        [] if args.drives.is_some() => {
            let draw = Draw { windows: args.windows, length: args.length, seed: args.seed };
            drives(catalogue, args.drives.as_deref().unwrap_or(Path::new(".")), &draw)?
        }
        [] if args.controllers => controlled(catalogue, &names_to_load())?,
        [] if args.sets.is_empty() => suite(catalogue, args.quick)?,
        [] => {
            let help = "accepted: --set together with a scenario; the suite cannot be changed";
            return Err(Failure::Refused(miette::miette!(help = help, "--set needs a scenario")));
        }
        names => names.iter().map(|name| case(catalogue, name, &args.sets)).collect::<Result<_, _>>()?,
    };
    let cases = only(cases, args.only.as_deref())?;
    // Before the runs rather than after them.
    let outcome = supervise(|inside| match end_on_signals(&inside) {
        Ok(()) => exit_code(catch_unwind(AssertUnwindSafe(|| calibrate_all(cases, args)))),
        Err(error) => exit_code(Ok(Err(Failure::Failed(miette::miette!("cannot listen for signals: {error}"))))),
    });
    match outcome.map_err(isolating)? {
        Outcome::Exited(0) => Ok(()),
        Outcome::Exited(code) => Err(Failure::Command(code)),
        Outcome::Killed(signal) => Err(Failure::Command(128u8.saturating_add(signal as u8))),
        Outcome::Lost => Err(Failure::Failed(miette::miette!("the calibration was killed"))),
    }
}

/// A signal ends the worker, and with it everything that it has made.
fn end_on_signals(inside: &Inside) -> io::Result<()> {
    let signals = inside.signals()?;
    thread::spawn(move || {
        if let Some(received) = signals.into_iter().next() {
            std::process::exit(128 + received.signal);
        }
    });
    Ok(())
}

fn exit_code(result: thread::Result<Result<(), Failure>>) -> u8 {
    match result {
        Ok(Ok(())) | Ok(Err(Failure::ReaderGone)) => 0,
        Ok(Err(failure)) => {
            failure.print();
            match failure {
                Failure::Refused(_) => 2,
                _ => 1,
            }
        }
        Err(panic) => {
            // Fails if standard error is closed; the exit status reports the bug all the same.
            let _ = writeln!(io::stderr(), "anabranch has a bug: {}", anabranch_lab::panic_text(&*panic));
            1
        }
    }
}

fn calibrate_all(cases: Vec<Case>, args: &CalibrateArgs) -> Result<(), Failure> {
    let usual = match (args.quick, &args.drives) {
        (true, _) => 3,
        // A window is one sample, and the others are other windows.
        (_, Some(_)) => 1,
        _ => 10,
    };
    let repeat = args.repeat.map_or(usual, |repeat| repeat as usize);
    let (cases, held) = loaded(cases)?;
    let names = held.iter().map(|(policy, kernel, _)| ((*policy).to_owned(), (*kernel).to_owned()));
    let settings = Settings { seed: args.seed, repeat, jobs: args.jobs, loaded: names.collect() };
    let bar = output::progress(anabranch_calibrate::runs(&cases, &settings));
    let result = calibrate(&cases, &settings, &|about| {
        bar.set_message(format!(" ({about})"));
        bar.inc(1);
    });
    bar.finish_and_clear();
    let result = result.map_err(broken)?;
    let json = output::document(&CALIBRATION, &result)?;
    if let Some(path) = &args.output {
        output::write(path, json.as_bytes())?;
    }
    match args.json {
        true => output::print(&json),
        false => output::print(&anabranch_report::calibration(&result)),
    }
}

fn names_to_load() -> Vec<&'static str> {
    ALGORITHMS.iter().map(|algorithm| algorithm.name).collect()
}

/// A congestion control: its name as a policy, that in the kernel, and its registration unless another holds it.
type Held = (&'static str, &'static str, Option<Loaded>);

/// Loads the congestion controls of the cases that are ours into the kernel, for as long as they are held. Cases whose
/// control cannot be loaded are left out, and said.
fn loaded(cases: Vec<Case>) -> Result<(Vec<Case>, Vec<Held>), Failure> {
    let (mut held, mut refused): (Vec<Held>, Option<LoadError>) = (Vec::new(), None);
    let mut kept = Vec::new();
    for case in cases {
        let name = case.scenario.policies().congestion.name.clone();
        let Some(algorithm) = ALGORITHMS.iter().find(|algorithm| algorithm.name == name) else {
            kept.push(case);
            continue;
        };
        if held.iter().all(|(policy, _, _)| *policy != name) {
            match load(algorithm) {
                Ok(loaded) => held.push((algorithm.name, algorithm.kernel_name, Some(loaded))),
                Err(LoadError::Taken(_)) => held.push((algorithm.name, algorithm.kernel_name, None)),
                Err(error) => {
                    output::remark(&format!("SKIPPED: {}: {error}", case.name));
                    refused = Some(error);
                    continue;
                }
            }
        }
        kept.push(case);
    }
    match refused {
        Some(error) if kept.is_empty() => {
            let help = error.remedy().unwrap_or("`anabranch kernel list` says what this kernel can do");
            Err(Failure::Failed(miette::miette!(help = help, "no case is left: {error}")))
        }
        _ => Ok((kept, held)),
    }
}

/// The cases whose name contains `text`.
fn only(cases: Vec<Case>, text: Option<&str>) -> Result<Vec<Case>, Failure> {
    let Some(text) = text else { return Ok(cases) };
    let (kept, others): (Vec<_>, Vec<_>) = cases.into_iter().partition(|case| case.name.contains(text));
    if kept.is_empty() {
        let names: Vec<_> = others.iter().map(|case| format!("`{}`", case.name)).collect();
        let help = format!("accepted: part of one of {}", names.join(", "));
        return Err(Failure::Refused(miette::miette!(help = help, "--only `{text}` matches no case")));
    }
    Ok(kept)
}

fn case(catalogue: &Arc<Catalogue>, name: &str, sets: &[String]) -> Result<Case, Failure> {
    // A testbed has no time before its beginning, so that all runs begin there.
    let sets = [sets, &["run.spread=\"0s\"".to_owned()]].concat();
    let scenario = anabranch_study::load(catalogue, name, &sets)?;
    Ok(Case { name: scenario.name.clone(), scenario, claim: None })
}

/// A calibration that could not be made.
fn broken(error: CalibrateError) -> Failure {
    match error {
        CalibrateError::Run(error) => error.into(),
        CalibrateError::Workload(_) | CalibrateError::Clients { .. } | CalibrateError::Page { .. } => {
            Failure::Refused(miette::miette!("{error}"))
        }
        CalibrateError::Testbed(error) => match error.remedy() {
            Some(remedy) => Failure::Failed(miette::miette!(help = remedy, "{error}")),
            None => Failure::Failed(miette::miette!("{error}")),
        },
        CalibrateError::Emulator(error) => Failure::Failed(miette::miette!("{error}")),
    }
}

/// No process of our own could be made for the work, or it could not be heard.
fn isolating(error: IsolationError) -> Failure {
    match error.remedy() {
        Some(remedy) => Failure::Failed(miette::miette!(help = remedy, "{error}")),
        None => Failure::Failed(miette::miette!("{error}")),
    }
}
