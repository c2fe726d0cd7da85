//! Supervised processes that leave nothing behind if one of them is killed.
//!
//! ```text
//! the caller          stays where it was, forwards signals, passes the exit code on
//!   └─ init           number 1 of a PID namespace: reaps orphans; when it ends the kernel kills all below
//!        └─ worker    does the work, with threads and children of its own
//! ```
//!
//! The caller's death kills init (`PR_SET_PDEATHSIG`), init's death kills everything in its namespace, and the worker's
//! death ends init. Network namespaces and devices have no name and go with the last process that holds them; mounts
//! are private. Without CAP_SYS_ADMIN, the process first enters a user namespace that maps the caller's uid.

use crate::sys::process::{self, Forked};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, waitpid};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, configure_capability_in_ambient_set};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

mod privilege;

pub use privilege::IsolationError;

/// End of the supervised work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Exit code of the worker.
    Exited(u8),
    /// The process that did it was killed by this signal.
    Killed(i32),
    /// Init was killed.
    Lost,
}

/// The worker's connection to the outside.
#[derive(Debug)]
pub struct Inside {
    signals: UnixStream,
    /// True in a user namespace of its own.
    pub in_user_namespace: bool,
    /// Non-essential settings that failed, as sentences.
    pub shortcomings: Vec<String>,
}

/// A signal sent to the process that called [`supervise`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Its number.
    pub signal: i32,
    /// True if it came from the terminal, which sent it to the children in the foreground as well.
    pub from_terminal: bool,
}

/// Signals that are forwarded, and blocked in the worker.
pub(crate) const FORWARDED: [i32; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// Bit in the byte of a signal that came from the terminal.
const FROM_TERMINAL: u8 = 0x80;

/// The worker's end as two bytes: which kind, and code or signal.
const EXITED: u8 = 0;
const KILLED: u8 = 1;

/// Exit code of the worker if `work` panics.
const PANICKED: u8 = 125;

/// Capabilities over one's own network that programs started by the worker inherit, also for an ordinary user.
const NETWORK_ADMINISTRATION: [CapabilitySet; 4] =
    [CapabilitySet::NET_ADMIN, CapabilitySet::NET_RAW, CapabilitySet::NET_BIND_SERVICE, CapabilitySet::SYS_ADMIN];

/// Runs `work` in a new process, in new PID, mount and, for ordinary users, user namespaces, and waits for its end.
/// Then kills the processes that it started and that still run.
///
/// The caller must have one thread only, and cannot start another afterwards.
pub fn supervise(work: impl FnOnce(Inside) -> u8) -> Result<Outcome, IsolationError> {
    // Buffered output would be written by each process.
    io::stdout().flush().map_err(IsolationError::system("flushing standard output"))?;
    let in_user_namespace = privilege::isolate(UnshareFlags::NEWNS | UnshareFlags::NEWPID)?;
    let (ours, theirs) = UnixStream::pair().map_err(IsolationError::system("making a socket pair"))?;
    match process::fork().map_err(IsolationError::system("starting a process"))? {
        Forked::Parent(init) => {
            drop(theirs);
            watch(init, ours).map_err(IsolationError::system("waiting for the worker"))
        }
        Forked::Child => {
            drop(ours);
            be_init(theirs, in_user_namespace, work)
        }
    }
}

/// The caller: passes signals on until init ends.
fn watch(init: Pid, mut channel: UnixStream) -> io::Result<Outcome> {
    let watched = FORWARDED.iter().chain(&[libc::SIGCHLD]);
    let mut signals = SignalsInfo::<WithRawSiginfo>::new(watched)?;
    // Init may have ended before this loop waits for its signal.
    let mut ended = has_ended(init)?;
    while !ended {
        for info in signals.wait() {
            if info.si_signo != libc::SIGCHLD {
                let from_terminal = if info.si_code > 0 { FROM_TERMINAL } else { 0 };
                // Signals have numbers below 65. Writing fails only if the worker is about to end.
                let _ = channel.write_all(&[info.si_signo as u8 | from_terminal]);
            }
        }
        ended = has_ended(init)?;
    }
    if io::stdin().is_terminal() {
        process::block_signals(&[libc::SIGTTOU])?;
        // Without a controlling terminal there is nothing to take back.
        let _ = process::take_terminal(io::stdin().as_fd());
    }
    let mut verdict = [0; 2];
    channel.set_nonblocking(true)?;
    Ok(match channel.read_exact(&mut verdict) {
        Ok(()) if verdict[0] == EXITED => Outcome::Exited(verdict[1]),
        Ok(()) => Outcome::Killed(i32::from(verdict[1])),
        Err(_) => Outcome::Lost,
    })
}

fn has_ended(pid: Pid) -> io::Result<bool> {
    match waitpid(Some(pid), WaitOptions::NOHANG) {
        Ok(None) => Ok(false),
        Ok(Some(_)) | Err(Errno::CHILD) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Number 1: starts the worker, reaps whatever ends, and goes when the worker has gone.
fn be_init(mut channel: UnixStream, in_user_namespace: bool, work: impl FnOnce(Inside) -> u8) -> ! {
    let verdict = init(&channel, in_user_namespace, work);
    let _ = channel.write_all(&verdict);
    process::exit_now(0)
}

fn init(channel: &UnixStream, in_user_namespace: bool, work: impl FnOnce(Inside) -> u8) -> [u8; 2] {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        let _ = writeln!(io::stderr(), "anabranch: {what}: {error}");
        [EXITED, PANICKED]
    };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return failed("tying a process to its parent", &error);
    }
    if is_orphan(channel) {
        process::exit_now(PANICKED);
    }
    let mut shortcomings = Vec::new();
    if let Err(error) = mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC) {
        return failed("making mounts private", &error);
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    if let Err(error) = mount("proc", "/proc", "proc", flags, None) {
        shortcomings.push(format!("/proc shows the processes outside: mounting one's own: {error}"));
    }
    let signals = match channel.try_clone() {
        Ok(signals) => signals,
        Err(error) => return failed("copying a socket", &error),
    };
    match process::fork() {
        Ok(Forked::Parent(worker)) => reap(worker),
        Ok(Forked::Child) => be_worker(Inside { signals, in_user_namespace, shortcomings }, work),
        Err(error) => failed("starting a process", &error),
    }
}

/// Returns true if the caller died before its death could be noticed.
fn is_orphan(channel: &UnixStream) -> bool {
    let mut fds = [PollFd::new(channel, PollFlags::IN)];
    let no_time = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&no_time)).is_ok() && fds[0].revents().contains(PollFlags::HUP)
}

/// Waits for the worker, and meanwhile for every process whose parent has gone.
fn reap(worker: Pid) -> [u8; 2] {
    loop {
        match waitpid(None, WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == worker => {
                if let Some(code) = status.exit_status() {
                    return [EXITED, code as u8];
                }
                if let Some(signal) = status.terminating_signal() {
                    return [KILLED, signal as u8];
                }
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return [EXITED, PANICKED],
        }
    }
}

fn be_worker(inside: Inside, work: impl FnOnce(Inside) -> u8) -> ! {
    let ready = process::block_signals(&FORWARDED).and_then(|()| match inside.in_user_namespace {
        true => keep_capabilities(),
        false => Ok(()),
    });
    let code = match ready {
        Ok(()) => catch_unwind(AssertUnwindSafe(|| work(inside))).unwrap_or(PANICKED),
        Err(error) => {
            let _ = writeln!(io::stderr(), "anabranch: preparing a process: {error}");
            PANICKED
        }
    };
    let _ = io::stdout().flush();
    process::exit_now(code)
}

/// Keeps only these capabilities in the worker, and has the programs that it starts inherit them. With more, the
/// worker's `/proc` entries would be closed to `ip`, which must see our namespaces.
fn keep_capabilities() -> io::Result<()> {
    let all = NETWORK_ADMINISTRATION.into_iter().fold(CapabilitySet::empty(), CapabilitySet::union);
    rustix::thread::set_capabilities(None, CapabilitySets { effective: all, permitted: all, inheritable: all })?;
    for capability in NETWORK_ADMINISTRATION {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

impl Inside {
    /// The signals that the caller of [`supervise`] is sent, for a thread that waits for them.
    pub fn signals(&self) -> io::Result<Signals> {
        Ok(Signals(self.signals.try_clone()?))
    }

    /// Asks all processes that the work has started to end, with their children and whatever these left behind, and
    /// waits for that a little. The end of the worker kills those that remain.
    pub fn end_all(&self) {
        // The signal goes to every process in this PID namespace but init and the caller; outside it would hit foreign
        // processes.
        assert_eq!(
            rustix::process::getpid().as_raw_nonzero().get(),
            WORKER,
            "only the worker is in a namespace of its own"
        );
        let begin = Instant::now();
        let mut signal = process::signal_all(libc::SIGTERM);
        while signal && begin.elapsed() < PATIENCE {
            thread::sleep(BETWEEN_LOOKS);
            signal = process::signal_all(0);
        }
    }
}

/// Waits for signals.
#[derive(Debug)]
pub struct Signals(UnixStream);

impl Iterator for Signals {
    type Item = Received;

    /// `None` once the caller of [`supervise`] has gone.
    fn next(&mut self) -> Option<Received> {
        let mut byte = [0];
        self.0.read_exact(&mut byte).ok()?;
        Some(Received { signal: i32::from(byte[0] & !FROM_TERMINAL), from_terminal: byte[0] & FROM_TERMINAL != 0 })
    }
}

/// The worker is the second process of its namespace.
const WORKER: i32 = 2;
/// Time that processes are given to end.
const PATIENCE: Duration = Duration::from_secs(1);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
