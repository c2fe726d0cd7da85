//! A program that runs in a namespace of a testbed.

use super::Readiness;
use crate::supervisor::FORWARDED;
use crate::{Namespace, sys};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// A running program.
#[derive(Debug)]
pub struct Program {
    child: Child,
    is_group: bool,
}

/// Why a program does not run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It could not be started.
    #[error("cannot run `{program}`: {error}")]
    Start {
        /// Name of the program.
        program: String,
        /// Error of the operating system.
        error: io::Error,
    },
    /// It ended too early.
    #[error("the server command ended with {0} before it listened on any socket")]
    Ended(ExitStatus),
}

impl ProgramError {
    /// Returns a shell's exit code: 127 if the program is missing, 126 if it cannot be run.
    pub fn exit_code(&self) -> Option<u8> {
        match self {
            ProgramError::Start { error, .. } if error.kind() == io::ErrorKind::NotFound => Some(127),
            ProgramError::Start { .. } => Some(126),
            ProgramError::Ended(_) => None,
        }
    }
}

/// Outcome of waiting for a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Readied {
    /// It accepts connections.
    Ready,
    /// Its time was up.
    TooLate,
    /// The caller did not want to wait any longer.
    GivenUp,
}

/// Longest time that a server may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(2);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

impl Program {
    /// Starts it in `namespace`, in the foreground of the terminal if we are.
    pub fn start(namespace: &Namespace, command: Command) -> Result<Self, ProgramError> {
        Program::spawn(namespace, command, false)
    }

    /// Starts it in `namespace` in a process group of its own: in the background, where a Ctrl-C for others does not
    /// end it.
    pub fn start_apart(namespace: &Namespace, mut command: Command) -> Result<Self, ProgramError> {
        command.process_group(0);
        Program::spawn(namespace, command, true)
    }

    fn spawn(namespace: &Namespace, mut command: Command, is_group: bool) -> Result<Self, ProgramError> {
        // Blocked in the worker, which stays when the terminal interrupts the program.
        sys::process::unblock_signals_of(&mut command, &FORWARDED);
        let program = command.get_program().to_string_lossy().into_owned();
        let child = namespace.run(move || command.spawn()).map_err(|error| ProgramError::Start { program, error })?;
        Ok(Program { child, is_group })
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Its number, for [`signal`].
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Returns its exit status if it has ended.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits until it is ready, at most `limit`: a server may show it in no way. In between asks `goes_on`, which it
    /// tells how long it has waited, whether to wait on.
    ///
    /// # Errors
    /// If the program ends before it is ready.
    pub fn wait_until_ready(
        &mut self,
        readiness: &mut Readiness,
        limit: Duration,
        mut goes_on: impl FnMut(Duration) -> bool,
    ) -> Result<Readied, ProgramError> {
        let begin = Instant::now();
        loop {
            let waited = begin.elapsed();
            // In this order: what has ended may have left a server behind.
            let ended = self.ended();
            if readiness.is_ready() {
                return Ok(Readied::Ready);
            }
            if let Ok(Some(status)) = ended {
                return Err(ProgramError::Ended(status));
            }
            if waited >= limit {
                return Ok(Readied::TooLate);
            }
            if !goes_on(waited) {
                return Ok(Readied::GivenUp);
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Asks it to end, and kills it if it has not after a while; with its process group if it has one of its own.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        self.send(Signal::TERM);
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        self.send(Signal::KILL);
        self.wait()
    }

    fn send(&self, signal: Signal) {
        // Fails if the process has ended.
        let _ = match self.is_group {
            true => kill_process_group(self.pid(), signal),
            false => kill_process(self.pid(), signal),
        };
    }
}

/// Sends a signal to a child by its number, as [`Program::id`] tells it.
pub fn signal(id: u32, signal: i32) {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
        // Fails if the process has ended.
        let _ = kill_process(pid, signal);
    }
}

/// Returns the exit code as a shell does: the code itself, or 128 plus the signal.
pub fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, signal) => 128 + signal.unwrap_or(0) as u8,
    }
}
