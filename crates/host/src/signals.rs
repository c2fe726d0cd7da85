//! The signals that would end a process, as something to be read: so that whatever it has changed is put back first.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::low_level::pipe;
use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Signals of this process that are caught, from when this is made until the process ends.
#[derive(Debug)]
pub struct Caught {
    /// A byte for each signal.
    rings: UnixStream,
    raised: Vec<(i32, Arc<AtomicBool>)>,
}

/// All that end a process unless they are caught, but those that say that the process itself has failed. SIGPIPE is
/// ignored by every Rust program.
const ENDING: [i32; 13] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGIO,
    libc::SIGPWR,
];

impl Caught {
    /// Catches them from now on. The best time is before anything is done that has to be undone.
    pub fn new() -> io::Result<Self> {
        let (rings, bell) = UnixStream::pair()?;
        rings.set_nonblocking(true)?;
        let mut raised = Vec::new();
        for signal in ENDING {
            let flag = Arc::new(AtomicBool::new(false));
            // Handlers run in the order of registration: the flag is set before the bell rings.
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            pipe::register(signal, bell.try_clone()?)?;
            raised.push((signal, flag));
        }
        Ok(Caught { rings, raised })
    }

    /// The same signals for another reader; each is read by one of them.
    pub(crate) fn share(&self) -> io::Result<Self> {
        Ok(Caught { rings: self.rings.try_clone()?, raised: self.raised.clone() })
    }

    /// Waits for one of them, for at most so long. Returns true if one came.
    pub fn wait(&mut self, most: Duration) -> io::Result<bool> {
        let most = Timespec::try_from(most).ok();
        match poll(&mut [PollFd::new(&self.rings, PollFlags::IN)], most.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(!self.take().is_empty()),
            Err(error) => Err(error.into()),
        }
    }

    /// Readable when there is something to take.
    pub(crate) fn readiness(&self) -> &UnixStream {
        &self.rings
    }

    /// Signals since this was asked last. One that came several times is there as often, if it came alone.
    pub(crate) fn take(&mut self) -> Vec<i32> {
        let mut rings = 0;
        let mut bytes = [0; 64];
        loop {
            match self.rings.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => rings += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let raised = self.raised.iter().filter(|(_, flag)| flag.swap(false, Ordering::SeqCst));
        let mut signals: Vec<i32> = raised.map(|(signal, _)| *signal).collect();
        if let &[only] = signals.as_slice() {
            signals.resize(rings.clamp(1, MOST_TAKEN), only);
        }
        signals
    }
}

/// More of one at a time say nothing new.
const MOST_TAKEN: usize = 16;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn signals_are_read_and_the_process_goes_on() {
        let mut caught = Caught::new().unwrap();
        assert!(caught.take().is_empty());
        for signal in ENDING {
            signal_hook::low_level::raise(signal).unwrap();
            assert_eq!(caught.share().unwrap().take(), [signal]);
        }
        for _ in 0..2 {
            signal_hook::low_level::raise(libc::SIGTERM).unwrap();
        }
        assert_eq!(caught.take(), [libc::SIGTERM; 2]);
    }
}
