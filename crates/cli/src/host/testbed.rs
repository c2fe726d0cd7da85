//! `anabranch testbed`: an unmodified program behind a scenario's paths, in real time.

mod json;
mod kernel;
mod report;

pub use json::TestbedRun;
pub use kernel::settings;

use crate::args::{Overrides, What, time};
use crate::completion::Names;
use crate::failure::{Failure, TESTBED_FAILED};
use crate::output;
use crate::result_file::ResultFile;
use anabranch_host::emulator::{CaptureOptions, CaptureReport, Options as EmulatorOptions};
use anabranch_host::testbed::{
    Backend, KernelCounters, NOTIFY_SOCKET, Program, ProgramError, Readied, Readiness, Testbed, TestbedError,
    TestbedOptions, exit_code, show_hosts, signal,
};
use anabranch_host::{Inside, IsolationError, Outcome, Received, supervise};
use anabranch_lab::format::TESTBED;
use anabranch_policy::Catalogue;
use anabranch_scenario::Scenario;
use anabranch_why::CaptureInquiry;
use clap::{Args as ClapArgs, ValueEnum};
use report::{About, Ending};
use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Arguments of `testbed`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch testbed wlan-lte --server 'mptcpize run iperf3 -s' -- mptcpize run iperf3 -c server -t 5
  anabranch testbed my.toml --server 'python3 -m http.server 80' -- curl -o /dev/null http://server/big
  anabranch testbed path-failure --pcap captures --json result.json -- ./my-client
  anabranch testbed lossy --shell

The command finds two network interfaces for two paths, the server as `server` (IPv4) and `server6`, and all addresses \
in ANABRANCH_* variables; see docs/testbed.md. The scenario's workloads are ignored: the commands decide what is \
sent. Its paths, links, changes and middleboxes are emulated. Settings of its hosts apply where a kernel has them.

Works as root, and as an ordinary user where user namespaces are allowed. When the command has ended, a table on \
standard error says what each link did; standard output belongs to the command.

Exit status: that of the command; 128 and the signal's number if a signal ended it; 124 if --duration did; 125 if the \
testbed failed; 126 or 127 if the command could not be started; 2 if the scenario is refused.")]
pub struct TestbedArgs {
    /// A scenario file, the name of a shipped scenario (`anabranch list scenarios`), or of a drawn one,
    /// drawn/SEED/NUMBER (`anabranch rank`).
    #[arg(add = Names::or_file(What::Scenarios))]
    pub scenario: String,
    /// A command for `sh`, started in the server. The command in the client starts when the server listens on a socket
    /// or has said that it is ready, as engines do. It is ended, with all it started, when the command has ended.
    #[arg(long, value_name = "CMD")]
    pub server: Option<String>,
    /// Wait for the server at most this long; then the command starts all the same.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30s", requires = "server")]
    pub wait: Duration,
    /// Open a shell in the client ($SHELL).
    #[arg(long, conflicts_with = "command")]
    pub shell: bool,
    /// Kind of interface at the ends of the paths.
    #[arg(long, value_enum, default_value_t = BackendName::Auto)]
    pub backend: BackendName,
    /// End the command after this long, such as 30s.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Values that lie over those of the scenario.
    #[command(flatten)]
    pub overrides: Overrides,
    /// Seed of the links' draws: losses, jitter, reordering.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Also write the results to this file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<ResultFile>,
    /// Capture both ends of every path in DIR/client.pcapng and DIR/server.pcapng.
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// The command to run in the client, with its arguments.
    #[arg(last = true, value_name = "CMD", required_unless_present = "shell")]
    pub command: Vec<OsString>,
}

/// Kinds of interface at the ends of the paths.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackendName {
    /// TUN where /dev/net/tun can be opened, otherwise veth.
    Auto,
    /// TUN devices.
    Tun,
    /// Pairs of virtual Ethernet interfaces and packet sockets.
    Veth,
}

/// The exit status if the command was ended because its time was up, as with `timeout`.
const TIME_IS_UP: u8 = 124;

/// Longest wait for the server without a message.
const WORTH_SAYING: Duration = Duration::from_secs(1);

/// Time that the command is given to end after --duration.
const PATIENCE: Duration = Duration::from_secs(2);

/// Makes the testbed, runs the commands in it, and says what the links did.
pub fn testbed(catalogue: &Arc<Catalogue>, args: &TestbedArgs) -> Result<(), Failure> {
    let scenario = anabranch_study::load(catalogue, &args.scenario, &args.overrides.sets())?;
    // Before the run rather than after it.
    args.pcap.as_deref().map_or(Ok(()), output::check_directory)?;
    isolated(|inside| run(&scenario, args, inside))
}

/// Runs `work` in a process of its own, with namespaces that end with it. `work` answers the exit code.
pub fn isolated(work: impl FnOnce(Inside) -> Result<u8, (Failure, u8)>) -> Result<(), Failure> {
    let outcome = supervise(|inside| {
        let result = catch_unwind(AssertUnwindSafe(|| work(inside)));
        match result {
            Ok(Ok(code)) => code,
            Ok(Err((failure, code))) => {
                failure.print();
                code
            }
            Err(panic) => {
                let _ = writeln!(io::stderr(), "anabranch has a bug: {}", anabranch_lab::panic_text(&*panic));
                TESTBED_FAILED
            }
        }
    });
    match outcome.map_err(not_isolated)? {
        Outcome::Exited(0) => Ok(()),
        Outcome::Exited(code) => Err(Failure::Command(code)),
        Outcome::Killed(signal) => Err(broken(format!("the testbed was killed by signal {signal}"), None)),
        Outcome::Lost => Err(broken("the testbed was killed".to_owned(), None)),
    }
}

fn broken(what: String, remedy: Option<String>) -> Failure {
    Failure::Testbed(match remedy {
        Some(remedy) => miette::miette!(help = remedy, "{what}"),
        None => miette::miette!("{what}"),
    })
}

fn not_isolated(error: IsolationError) -> Failure {
    broken(error.to_string(), error.remedy().map(str::to_owned))
}

/// Failure of a testbed that could not be made, with its exit code.
pub fn not_built(error: TestbedError) -> (Failure, u8) {
    (broken(error.to_string(), error.remedy()), TESTBED_FAILED)
}

fn not_started(error: ProgramError) -> (Failure, u8) {
    let code = error.exit_code().unwrap_or(TESTBED_FAILED);
    (broken(error.to_string(), None), code)
}

fn failed(error: impl std::fmt::Display) -> (Failure, u8) {
    (broken(error.to_string(), None), TESTBED_FAILED)
}

/// Events that the run waits for.
enum Happening {
    /// A signal was sent to us.
    Signal(Received),
    /// The command has ended.
    Ended(io::Result<std::process::ExitStatus>),
}

/// Runs in the worker, from the namespaces to the table. Returns the exit code.
fn run(scenario: &Scenario, args: &TestbedArgs, inside: Inside) -> Result<u8, (Failure, u8)> {
    let seed = args.seed.unwrap_or(scenario.seed);
    let spec = scenario.spec(seed);
    if spec.clients != 1 {
        let help = "set `clients = 1`, or run it in the simulator: `anabranch run`".to_owned();
        return Err((
            broken(format!("a testbed has one client, and the scenario has {}", spec.clients), Some(help)),
            TESTBED_FAILED,
        ));
    }
    let (sender, happenings) = channel();
    listen(&inside, sender.clone()).map_err(failed)?;

    let kernel::Settings { client, server, not_applied } = settings(scenario);
    let capture = args.pcap.as_ref().map(|directory| CaptureOptions {
        directory: directory.clone(),
        application: format!("anabranch {}", anabranch_lab::version_with_build()),
        comment: format!("anabranch testbed {} --seed {seed}", scenario.origin.scenario),
    });
    let backend = match args.backend {
        BackendName::Auto => Backend::Auto,
        BackendName::Tun => Backend::Tun,
        BackendName::Veth => Backend::Veth,
    };
    let emulator = EmulatorOptions { capture, ..EmulatorOptions::default() };
    let options = TestbedOptions { backend, client, server, emulator };
    let testbed = Testbed::build(&spec.network, spec.seed, spec.server.addresses, options).map_err(not_built)?;
    let mut shortcomings = inside.shortcomings.clone();
    shortcomings.extend(testbed.shortcomings.iter().cloned());
    if let Err(error) = show_hosts(&testbed.layout) {
        shortcomings.push(format!("the names `server` and `client` are not known: {error}"));
    }

    let mut server = match &args.server {
        None => None,
        Some(command) => {
            let mut readiness = Readiness::watch(&testbed.server).map_err(failed)?;
            let mut process = server_command(&testbed, command);
            process.env(NOTIFY_SOCKET, readiness.address());
            let mut server = Program::start_apart(&testbed.server, process).map_err(not_started)?;
            let mut interruption = None;
            let mut said = false;
            let readied = server.wait_until_ready(&mut readiness, args.wait, |waited| {
                if !said && waited >= WORTH_SAYING {
                    said = true;
                    say(&format!("waiting for the server to listen, for at most {} s", args.wait.as_secs_f64()));
                }
                interruption = happenings.try_recv().ok();
                interruption.is_none()
            });
            if readied.map_err(not_started)? == Readied::TooLate {
                let text = format!("after {} s the server listened on no socket", args.wait.as_secs_f64());
                say(&format!("{text}; the command starts all the same"));
                shortcomings.push(format!("{text} when the command was started"));
            }
            if let Some(Happening::Signal(received)) = interruption {
                return Ok(128 + received.signal as u8);
            }
            Some(server)
        }
    };
    if let Ok(Happening::Signal(received)) = happenings.try_recv() {
        return Ok(128 + received.signal as u8);
    }
    if args.shell {
        greet(scenario, &testbed, &shortcomings);
    }
    testbed.begin().map_err(failed)?;
    let start = Instant::now();
    let mut program = Program::start(&testbed.client, client_command(&testbed, args)).map_err(not_started)?;
    let id = program.id();
    thread::spawn(move || sender.send(Happening::Ended(program.wait())));
    let (status, timed_out) = attend(&happenings, id, args.duration.map(|span| start + span)).map_err(failed)?;
    let elapsed = start.elapsed();
    if let Some(server) = &mut server {
        server.end().map_err(failed)?;
    }

    let code = if timed_out { TIME_IS_UP } else { exit_code(status) };
    let ending = Ending { code, timed_out, elapsed };
    let backend = testbed.backend;
    let layout = testbed.layout.clone();
    // A kernel without these tables has no MPTCP either.
    let kernels = [&testbed.client, &testbed.server].map(|host| KernelCounters::read(host).unwrap_or_default());
    let result = testbed.stop().map_err(failed)?;
    let about = About {
        scenario,
        seed,
        backend,
        layout: &layout,
        shortcomings: &shortcomings,
        not_applied: &not_applied,
        kernels,
        why: result.capture.as_ref().and_then(why),
    };
    output::remark(report::text(&about, &ending, &result).trim_end_matches('\n'));
    if let Some(path) = &args.json {
        let json = output::json(&TESTBED, &TestbedRun::of(&about, &ending, &result));
        json.and_then(|json| output::write(path, json.as_bytes())).map_err(|failure| (failure, TESTBED_FAILED))?;
    }
    inside.end_all();
    Ok(code)
}

/// Judges the captures of a run, as long as they are not too long to be read by the way. Says nothing of a transfer
/// that was as fast as its best path alone.
fn why(capture: &CaptureReport) -> Option<String> {
    if capture.failure.is_some() || capture.packets > MOST_JUDGED {
        return None;
    }
    let answer = CaptureInquiry::read(&capture.files).answer(None);
    answer.falls_short().then_some(answer.sentence)
}

/// Packets that are read in a few seconds.
const MOST_JUDGED: u64 = 1 << 20;

/// Forwards signals until the receiver goes.
fn listen(inside: &Inside, happenings: Sender<Happening>) -> io::Result<()> {
    let signals = inside.signals()?;
    thread::spawn(move || {
        for received in signals {
            if happenings.send(Happening::Signal(received)).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Passes signals on until the command has ended; says how, and whether because its time was up.
fn attend(
    happenings: &Receiver<Happening>,
    id: u32,
    deadline: Option<Instant>,
) -> io::Result<(std::process::ExitStatus, bool)> {
    let mut deadline = deadline;
    let mut timed_out = false;
    loop {
        let happening = match deadline {
            None => happenings.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(deadline) => happenings.recv_timeout(deadline.saturating_duration_since(Instant::now())),
        };
        match happening {
            Ok(Happening::Ended(status)) => return Ok((status?, timed_out)),
            // The terminal has sent it to the command itself.
            Ok(Happening::Signal(received)) if received.from_terminal => {}
            Ok(Happening::Signal(received)) => signal(id, received.signal),
            Err(RecvTimeoutError::Timeout) => {
                signal(id, if timed_out { KILL } else { TERM });
                deadline = Some(Instant::now() + PATIENCE);
                timed_out = true;
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("the process that waited for the command has ended"));
            }
        }
    }
}

const TERM: i32 = 15;
const KILL: i32 = 9;

fn server_command(testbed: &Testbed, text: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", text]).stdin(Stdio::null()).envs(testbed.environment()).env("ANABRANCH_HOST", "server");
    // Standard output is the command's.
    command.stdout(io::stderr());
    command
}

fn client_command(testbed: &Testbed, args: &TestbedArgs) -> Command {
    let shell = || std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
    let mut command = match args.command.split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
        None => Command::new(shell()),
    };
    command.envs(testbed.environment()).env("ANABRANCH_HOST", "client");
    command
}

/// Prints a message to standard error, if it is open.
fn say(what: &str) {
    output::remark(&format!("anabranch testbed: {what}"));
}

fn greet(scenario: &Scenario, testbed: &Testbed, shortcomings: &[String]) {
    let text = report::greeting(scenario, &testbed.layout, testbed.backend, shortcomings);
    output::remark(text.trim_end_matches('\n'));
}
