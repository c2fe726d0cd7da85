//! Processes and signals.

use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Side of a fork.
pub(crate) enum Forked {
    /// The process that forked, with the number of the new one.
    Parent(rustix::process::Pid),
    /// The new one.
    Child,
}

/// Forks. Refuses while there are other threads, whose locks the child would inherit in whatever state they are.
pub(crate) fn fork() -> io::Result<Forked> {
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        return Err(io::Error::other(format!("there are {threads} threads; a process forks only while it has one")));
    }
    // SAFETY: this is the only thread, so that the child finds no lock taken and no data half changed.
    let pid = unsafe { libc::fork() };
    check(pid)?;
    Ok(rustix::process::Pid::from_raw(pid).map_or(Forked::Child, Forked::Parent))
}

/// Ends the process at once: nothing is flushed, nothing registered for the end is run.
pub(crate) fn exit_now(code: u8) -> ! {
    // SAFETY: `_exit` takes any number and does not return.
    unsafe { libc::_exit(i32::from(code)) }
}

/// Blocks these signals in this thread, in those it will start and, unless [`unblock_signals_of`] prevents it, in
/// programs.
pub(crate) fn block_signals(signals: &[i32]) -> io::Result<()> {
    change_mask(libc::SIG_BLOCK, signals)
}

/// Starts the program with these signals unblocked, whatever the starting thread has blocked.
pub(crate) fn unblock_signals_of(command: &mut Command, signals: &'static [i32]) {
    // SAFETY: between fork and exec only functions that are safe there may be called; those of `change_mask` are
    // (signal-safety(7)), and it allocates nothing.
    unsafe { command.pre_exec(|| change_mask(libc::SIG_UNBLOCK, signals)) };
}

fn change_mask(how: i32, signals: &[i32]) -> io::Result<()> {
    // SAFETY: the set is plain data, made valid by `sigemptyset`, and outlives the calls; numbers that are no signals
    // are refused by `sigaddset`. `pthread_sigmask` may do without the old mask.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        check(libc::sigemptyset(&raw mut set))?;
        for &signal in signals {
            check(libc::sigaddset(&raw mut set, signal))?;
        }
        match libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Makes the process group of the caller the foreground one of its terminal again, after a shell that was in the
/// foreground has gone. The caller has blocked SIGTTOU.
pub(crate) fn take_terminal(terminal: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both calls take and give plain numbers.
    check(unsafe { libc::tcsetpgrp(terminal.as_raw_fd(), libc::getpgrp()) })
}

/// Returns free memory of the allocator to the system. Only the GNU C library needs such a call; others return it by
/// themselves.
pub(crate) fn trim_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes and gives plain numbers, and touches only memory that is not in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Sends a signal to all processes of the caller's PID namespace but its init and the caller; whether there are any.
/// Signal 0 only asks.
pub(crate) fn signal_all(signal: i32) -> bool {
    // SAFETY: takes and gives plain numbers.
    unsafe { libc::kill(-1, signal) == 0 }
}
