//! Endpoints that a process changes for a while, and puts back however it ends.
//!
//! Before each change the endpoint as it was is noted in `/run/anabranch`, so that the next process puts it back after
//! one that was killed, as does [`clean_up`](crate::addresses::clean_up). [`keep`] lets another process do it at once.

use crate::Caught;
use crate::addresses::undo::{Step, Undo};
use crate::path_manager::{Endpoint, PathManager};
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};

/// The right to change endpoints of the network namespace; they are put back when it is dropped.
#[derive(Debug)]
pub struct Steered {
    manager: PathManager,
    undo: Undo,
    /// Endpoints that were changed, as they were.
    originals: Vec<Endpoint>,
}

/// Treatment of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Treatment {
    /// As it was.
    AsItWas,
    /// There, as a backup.
    Backup,
    /// Not there: its subflows are closed.
    Closed,
}

/// Name of the notes.
const NOTES: &str = "steer";

impl Steered {
    /// Takes the right, and puts back what a process left that was killed.
    ///
    /// # Errors
    /// `WouldBlock` while another process has it, `PermissionDenied` for an ordinary user, `NotFound` if the kernel has
    /// no MPTCP.
    pub fn take() -> io::Result<Self> {
        let manager = PathManager::open()?;
        let mut undo = Undo::open(NOTES)?;
        undo.run();
        Ok(Steered { manager, undo, originals: Vec::new() })
    }

    /// Endpoints as they are now.
    ///
    /// # Errors
    /// As the kernel sees it.
    pub fn endpoints(&self) -> io::Result<Vec<Endpoint>> {
        self.manager.endpoints()
    }

    /// Endpoints that were changed, as they were.
    pub fn originals(&self) -> &[Endpoint] {
        &self.originals
    }

    /// Treats an endpoint, which is given as it was, in this way.
    ///
    /// # Errors
    /// If the notes cannot be written, or as the kernel sees it.
    pub fn treat(&mut self, original: &Endpoint, treatment: Treatment) -> io::Result<()> {
        if !self.originals.contains(original) {
            self.undo.later(Step::Endpoint(*original)).map_err(io::Error::other)?;
            self.originals.push(*original);
        }
        match treatment {
            Treatment::AsItWas => self.manager.make(original),
            Treatment::Backup => self.manager.make(&original.with_backup(true)),
            Treatment::Closed => match self.manager.endpoints()?.iter().find(|it| it.address == original.address) {
                Some(there) => self.manager.remove(there),
                None => Ok(()),
            },
        }
    }

    /// Puts all endpoints back. Returns the number of those that are there again, and for each other one the reason.
    pub fn put_back(&mut self) -> (usize, Vec<String>) {
        let failed = self.undo.run();
        let all = std::mem::take(&mut self.originals).len();
        (all.saturating_sub(failed.len()), failed.iter().map(ToString::to_string).collect())
    }
}

impl Drop for Steered {
    fn drop(&mut self) {
        self.put_back();
    }
}

/// Starts this program again, with these arguments, to call [`keep`]: it notices the end of this process by its
/// standard input.
///
/// # Errors
/// As the operating system sees it.
pub fn start_keeper(arguments: &[&str]) -> io::Result<Child> {
    use std::os::unix::process::CommandExt;
    // Of a group of its own: what ends the group of this process does not end it.
    let mut command = Command::new("/proc/self/exe");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.spawn()
}

/// Waits until the process that started this one has ended, then puts back what it left.
///
/// # Errors
/// As for [`Steered::take`].
pub fn keep() -> io::Result<()> {
    // No signal but SIGKILL ends it: it ends with the other.
    let _caught = Caught::new()?;
    let mut byte = [0];
    loop {
        match io::stdin().read(&mut byte) {
            Ok(0) => break,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
            _ => {}
        }
    }
    Steered::take().map(drop)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Namespace;

    /// Skips, visibly, where no namespace can be made or the kernel has no MPTCP.
    #[test]
    fn endpoints_are_put_back_also_those_of_a_process_that_was_killed() {
        let Ok(namespace) = Namespace::new("steered") else {
            return eprintln!("SKIPPED: no network namespace can be made here");
        };
        let Ok(manager) = namespace.run(PathManager::open) else {
            return eprintln!("SKIPPED: this kernel has no MPTCP");
        };
        namespace.command("ip", &["address", "add", "10.99.0.1/32", "dev", "lo"]).unwrap();
        let own = Endpoint { address: [10, 99, 0, 1].into(), id: 3, port: 0, device: 1, flags: Endpoint::SUBFLOW };
        manager.add(&own).unwrap();
        namespace.run(move || {
            let mut steered = Steered::take().unwrap();
            assert_eq!(Steered::take().unwrap_err().kind(), io::ErrorKind::WouldBlock);
            steered.treat(&own, Treatment::Backup).unwrap();
            assert_eq!(steered.endpoints().unwrap(), [own.with_backup(true)]);
            steered.treat(&own, Treatment::Closed).unwrap();
            steered.treat(&own, Treatment::Closed).unwrap();
            assert_eq!(steered.endpoints().unwrap(), []);
            steered.treat(&own, Treatment::AsItWas).unwrap();
            assert_eq!(steered.endpoints().unwrap(), [own]);
            steered.treat(&own, Treatment::Closed).unwrap();
            drop(steered);
            // As a process that was killed: nothing is dropped in order, but the lock goes with its files.
            let mut steered = Steered::take().unwrap();
            assert_eq!(steered.endpoints().unwrap(), [own]);
            steered.treat(&own, Treatment::Closed).unwrap();
            steered.undo.forget();
            std::mem::forget(steered);
            assert_eq!(Steered::take().unwrap().endpoints().unwrap(), [own]);
        });
    }
}
