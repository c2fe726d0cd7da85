//! Program under evaluation: servers and clients in a testbed, with what they wrote.

use crate::failure::Failure;
use crate::output;
use anabranch_host::testbed::{NOTIFY_SOCKET, Program as Process, Readied, Readiness, Testbed, exit_code};
use anabranch_study::evaluate::Program;
use anabranch_units::Duration;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::process::{Command, Stdio};
use std::thread;

/// Task of one flow of the program.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Index of the workload.
    pub party: usize,
    /// Port that the server is to listen on.
    pub port: u16,
    /// Bytes of a file; as many as there are in `duration` if `None`.
    pub bytes: Option<u64>,
    /// Time that the flow may take.
    pub duration: Duration,
}

/// Server of a workload.
pub struct Server {
    process: Process,
    log: File,
}

/// Client of one flow.
pub struct Client {
    /// Task of the flow.
    pub task: Task,
    /// Time of the scenario at which the client was started.
    pub started: Duration,
    process: Option<Process>,
    log: File,
    /// True once the client has ended with success.
    succeeded: bool,
}

/// A bulk transfer that ends so long before its time has ended too early: programs round seconds.
const EARLY: Duration = Duration::from_secs(2);
/// Characters of a program's last words that are shown.
const LAST_WORDS: usize = 600;

impl Server {
    /// Starts the server of a workload and waits until it listens, at most `wait`.
    pub fn start(
        testbed: &Testbed,
        program: &Program,
        task: &Task,
        wait: std::time::Duration,
        goes_on: impl Fn() -> bool,
    ) -> Result<Server, Failure> {
        let mut command = Command::new("sh");
        command.args(["-c", &program.server]);
        let log = prepare(&mut command, testbed, "server", task)?;
        let mut readiness = Readiness::watch(&testbed.server).map_err(broken)?;
        command.env(NOTIFY_SOCKET, readiness.address());
        let process = Process::start_apart(&testbed.server, command).map_err(broken)?;
        let mut server = Server { process, log };
        match server.process.wait_until_ready(&mut readiness, wait, |_| goes_on()) {
            Ok(Readied::Ready | Readied::GivenUp) => Ok(server),
            Ok(Readied::TooLate) => {
                let what = format!("the server listens on no socket after {} s", wait.as_secs_f64());
                let help = "its port is ANABRANCH_PORT, its address ANABRANCH_SERVER; --wait TIME waits longer";
                Err(failed(what, help, &server.words()))
            }
            Err(error) => Err(failed(error.to_string(), "try the commands with `anabranch testbed`", &server.words())),
        }
    }

    /// Returns the last words of the server.
    pub fn words(&mut self) -> String {
        last_words(&mut self.log)
    }

    /// Ends the server.
    pub fn end(mut self) {
        // The process has ended, or is killed with the testbed.
        let _ = self.process.end();
    }
}

impl Client {
    /// Starts the client of a flow.
    pub fn start(testbed: &Testbed, program: &Program, task: Task, started: Duration) -> Result<Client, Failure> {
        let [name, arguments @ ..] = program.client.as_slice() else {
            return Err(broken("the client has no command"));
        };
        let mut command = Command::new(name);
        command.args(arguments);
        let log = prepare(&mut command, testbed, "client", &task)?;
        let process = Process::start_apart(&testbed.client, command).map_err(broken)?;
        Ok(Client { task, started, process: Some(process), log, succeeded: false })
    }

    /// Returns true while the client runs; ends it when its time is up.
    ///
    /// # Errors
    /// If the client has ended long before its time without what it was to do.
    pub fn attend(&mut self, now: Duration) -> Result<bool, Failure> {
        let Some(process) = &mut self.process else { return Ok(false) };
        let end = self.started + self.task.duration;
        let Some(status) = process.ended().map_err(broken)? else {
            if now < end {
                return Ok(true);
            }
            self.end();
            return Ok(false);
        };
        self.process = None;
        self.succeeded = status.success();
        let ran = now.saturating_sub(self.started);
        let early = self.task.bytes.is_none() && now + EARLY < end;
        if early || matches!(exit_code(status), 126 | 127) {
            let (ran, wanted) = (ran.as_secs_f64(), self.task.duration.as_secs_f64());
            let what = match self.task.bytes {
                None => format!("the client ended with {status} after {ran:.1} s, and was to receive for {wanted} s"),
                Some(bytes) => {
                    format!("the client ended with {status} after {ran:.1} s, and was to fetch {bytes} bytes")
                }
            };
            let help = "a client receives until ANABRANCH_SECONDS have passed, or ANABRANCH_BYTES if that is set";
            return Err(failed(what, help, &self.words()));
        }
        Ok(false)
    }

    /// Returns true if the client was to fetch a file and did not.
    pub fn is_unfinished(&self) -> bool {
        self.task.bytes.is_some() && !self.succeeded
    }

    /// Returns the last words of the client.
    pub fn words(&mut self) -> String {
        last_words(&mut self.log)
    }

    /// Ends the client without waiting for its end.
    pub fn end(&mut self) {
        if let Some(mut process) = self.process.take() {
            thread::spawn(move || process.end());
        }
    }
}

/// Gives a command its environment, and a file for what it writes.
fn prepare(command: &mut Command, testbed: &Testbed, host: &str, task: &Task) -> Result<File, Failure> {
    let log = output::scratch()?;
    let copy = || log.try_clone().map_err(broken);
    command.stdin(Stdio::null()).stdout(copy()?).stderr(copy()?);
    command.envs(testbed.environment()).env("ANABRANCH_HOST", host).env("ANABRANCH_PORT", task.port.to_string());
    match task.bytes {
        Some(bytes) => command.env("ANABRANCH_BYTES", bytes.to_string()).env_remove("ANABRANCH_SECONDS"),
        None => {
            let seconds = task.duration.as_secs_f64().to_string();
            command.env("ANABRANCH_SECONDS", seconds).env_remove("ANABRANCH_BYTES")
        }
    };
    Ok(log)
}

fn last_words(log: &mut File) -> String {
    let mut bytes = Vec::new();
    let end = log.seek(SeekFrom::End(0)).unwrap_or(0);
    let read =
        log.seek(SeekFrom::Start(end.saturating_sub(LAST_WORDS as u64))).and_then(|_| log.read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).trim().to_owned(),
        Err(error) => error.to_string(),
    }
}

/// A program that does not do what it is for, with its last words.
pub fn failed(what: String, help: &str, words: &str) -> Failure {
    let said = if words.is_empty() { "it wrote nothing".to_owned() } else { format!("its last words: {words}") };
    Failure::Failed(miette::miette!(help = format!("{help}; {said}"), "{what}"))
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::Testbed(miette::miette!("{error}"))
}
