//! Undo log, also kept on disk so that a later run can clean up after a crash.

use super::Ports;
use super::find::{AddressError, run};
use crate::path_manager::{Endpoint, PathManager};
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Directory of the logs. Only root (or a user whom root permits) may write there, since the steps in them are
/// executed.
pub(crate) const DIRECTORY: &str = "/run/anabranch";

/// Time between two attempts to lock notes that another process holds.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(10);

/// One change to the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// `ip` or `nft` with words that hold no space.
    Command(Vec<String>),
    /// A kernel parameter below `/proc/sys`.
    Sysctl { key: String, value: String },
    /// An endpoint of MPTCP that is to be there, with these flags.
    Endpoint(Endpoint),
}

impl Step {
    pub(crate) fn run(&self) -> Result<(), AddressError> {
        match self {
            Step::Command(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                run(words[0], &words[1..]).map(drop)
            }
            Step::Sysctl { key, value } => std::fs::write(format!("/proc/sys/{key}"), format!("{value}\n"))
                .map_err(|error| AddressError::Sysctl { key: key.clone(), error }),
            Step::Endpoint(endpoint) => PathManager::open()
                .and_then(|manager| manager.make(endpoint))
                .map_err(|error| AddressError::Endpoint { address: endpoint.address, error }),
        }
    }

    fn line(&self) -> String {
        match self {
            Step::Command(words) => words.join(" "),
            Step::Sysctl { key, value } => format!("sysctl {key} {value}"),
            Step::Endpoint(endpoint) => endpoint.line(),
        }
    }

    /// `None` for a line that we have not written: it is not done.
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["ip", ..] | ["nft", "delete", ..] => Some(Step::Command(words.into_iter().map(str::to_owned).collect())),
            ["sysctl", key, ..] if key.starts_with("net/") && !key.contains("..") => {
                Some(Step::Sysctl { key: key.to_owned(), value: words[2..].join(" ") })
            }
            ["endpoint", ..] => Endpoint::parse(&words).map(Step::Endpoint),
            _ => None,
        }
    }
}

/// An address and the ports of it that a process borrows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    pub(crate) address: IpAddr,
    pub(crate) ports: Ports,
}

impl Claim {
    fn line(&self) -> String {
        format!("claim {} {}-{}", self.address, self.ports.start(), self.ports.end())
    }

    fn parse(line: &str) -> Option<Self> {
        let ["claim", address, ports] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        let (first, last) = ports.split_once('-')?;
        Some(Claim { address: address.parse().ok()?, ports: first.parse().ok()?..=last.parse().ok()? })
    }

    pub(crate) fn overlaps(&self, other: &Claim) -> bool {
        let apart = self.ports.end() < other.ports.start() || other.ports.end() < self.ports.start();
        self.address == other.address && !apart
    }
}

/// The log of one device in one network namespace. The file is locked while a process borrows, and removed when no step
/// is left to undo.
#[derive(Debug)]
pub(crate) struct Undo {
    file: File,
    path: PathBuf,
    steps: Vec<Step>,
}

impl Undo {
    /// Opens the log for `device`; `WouldBlock` while another process borrows for it.
    pub(crate) fn open(device: &str) -> io::Result<Self> {
        let made = DirBuilder::new().mode(0o700).create(DIRECTORY);
        made.or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })?;
        let path = Path::new(DIRECTORY).join(format!("{device}{}", ending()?));
        // Another command may hold it for a moment, to see whether it is abandoned.
        for _ in 0..20 {
            match Undo::take(path.clone(), true) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(PATIENCE),
                taken => return taken,
            }
        }
        Undo::take(path, true)
    }

    /// Returns the logs in this namespace whose processes have ended. Removes files that are unlocked and empty,
    /// whatever their namespace.
    pub(crate) fn abandoned() -> io::Result<Vec<Self>> {
        sweep(Path::new(DIRECTORY))?;
        Ok(notes()?.into_iter().filter_map(|path| Undo::take(path, false).ok()).collect())
    }

    fn take(path: PathBuf, create: bool) -> io::Result<Self> {
        loop {
            let mut options = OpenOptions::new();
            let mut file = options.read(true).write(true).create(create).truncate(false).mode(0o600).open(&path)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            // Its previous owner may have removed it between the two calls.
            let same =
                std::fs::metadata(&path).is_ok_and(|there| file.metadata().is_ok_and(|ours| ours.ino() == there.ino()));
            if !same {
                continue;
            }
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            let steps = text.lines().filter_map(Step::parse).collect();
            return Ok(Undo { file, path, steps });
        }
    }

    /// Claims addresses. If another process holds an overlapping claim, returns that with the name of its device.
    pub(crate) fn claim(&mut self, claims: &[Claim]) -> io::Result<Option<(Claim, String)>> {
        for claim in claims {
            writeln!(self.file, "{}", claim.line())?;
        }
        let ending = ending()?;
        for path in notes()?.into_iter().filter(|path| *path != self.path) {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let taken =
                text.lines().filter_map(Claim::parse).find(|theirs| claims.iter().any(|ours| ours.overlaps(theirs)));
            // A claim without a lock on its file is void.
            let alive =
                || matches!(Undo::take(path.clone(), false), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
            if let Some(claim) = taken.filter(|_| alive()) {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                return Ok(Some((claim, name.trim_end_matches(ending.as_str()).to_owned())));
            }
        }
        Ok(None)
    }

    /// Runs `step`, after logging the step that undoes it.
    pub(crate) fn does(&mut self, step: Step, reverse: Option<Step>) -> Result<(), AddressError> {
        if let Some(reverse) = reverse {
            self.later(reverse)?;
        }
        step.run()
    }

    /// Notes down what is to be done at the end.
    pub(crate) fn later(&mut self, step: Step) -> Result<(), AddressError> {
        writeln!(self.file, "{}", step.line()).map_err(|error| AddressError::State { error })?;
        self.steps.push(step);
        Ok(())
    }

    /// Unlocks the notes and leaves them, as the end of the process does.
    #[cfg(test)]
    pub(crate) fn forget(&self) {
        flock(&self.file, FlockOperation::Unlock).expect("it is locked");
    }

    /// Undoes everything, the last first, and returns the errors of what could not be undone: mostly it has gone
    /// already, with its device for instance.
    pub(crate) fn run(&mut self) -> Vec<AddressError> {
        let mut failed = Vec::new();
        for step in self.steps.drain(..).rev() {
            if let Err(error) = step.run() {
                tracing::debug!(target: "anabranch::addresses", %error, "nothing to undo");
                failed.push(error);
            }
        }
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        if let Err(error) = emptied {
            tracing::warn!(target: "anabranch::addresses", %error, "notes are left in {DIRECTORY}");
        }
        failed
    }
}

impl Drop for Undo {
    /// Removes the file, which is locked still, if nothing is left to be undone.
    fn drop(&mut self) {
        if self.steps.is_empty() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The ending of the names of this network namespace's notes. Its inode's number can be another's later; the kernel's
/// own number of it, which it has since Linux 5.14, cannot.
fn ending() -> io::Result<String> {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    if let Ok(number) = crate::sys::network_namespace(socket.as_fd()) {
        return Ok(format!("-n{number}.undo"));
    }
    let namespace = std::fs::read_link("/proc/thread-self/ns/net")?;
    let number: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    Ok(format!("-{number}.undo"))
}

/// All notes of this network namespace.
fn notes() -> io::Result<Vec<PathBuf>> {
    let paths = std::fs::read_dir(DIRECTORY)?.filter_map(|entry| Some(entry.ok()?.path()));
    let ending = ending()?;
    Ok(paths.filter(|path| path.to_string_lossy().ends_with(&ending)).collect())
}

/// Removes the empty, unlocked logs of all namespaces: of namespaces that are gone, and of versions that left them or
/// named them differently.
fn sweep(directory: &Path) -> io::Result<()> {
    let paths = std::fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.path()));
    for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "undo")) {
        if std::fs::symlink_metadata(&path).is_ok_and(|there| there.is_file() && there.len() == 0) {
            // Its drop removes the file, unless a step has been written down meanwhile.
            drop(Undo::take(path, false));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_notes_that_nobody_holds_are_removed_whatever_their_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let names = ["tun0-n1.undo", "tun0-4026531840.undo", "tun0.undo", "held-n1.undo", "kept-n1.undo", "other"];
        names.iter().for_each(|name| std::fs::write(path(name), "").expect("a file"));
        std::fs::write(path("kept-n1.undo"), "nft delete table inet x\n").expect("a file");
        let held = Undo::take(path("held-n1.undo"), false).expect("nobody else holds it");
        sweep(folder.path()).expect("the folder is there");
        let left: Vec<_> = names.into_iter().filter(|name| path(name).exists()).collect();
        assert_eq!(left, ["held-n1.undo", "kept-n1.undo", "other"]);
        drop(held);
        assert!(!path("held-n1.undo").exists());
        assert_eq!(std::fs::read_to_string(path("kept-n1.undo")).ok().as_deref(), Some("nft delete table inet x\n"));
    }

    #[test]
    fn notes_are_read_as_they_were_written() {
        let command = |text: &str| Step::Command(text.split(' ').map(str::to_owned).collect());
        let sysctl = |value: &str| Step::Sysctl { key: "net/ipv4/x".into(), value: value.into() };
        for step in
            [command("ip -4 rule del from 1.2.3.4"), command("nft delete table inet x"), sysctl("0"), sysctl("")]
        {
            assert_eq!(Step::parse(&step.line()), Some(step));
        }
        for line in ["rm -rf /", "sysctl kernel/x 1", "sysctl net/../kernel/x 1", "nft flush ruleset", ""] {
            assert_eq!(Step::parse(line), None, "{line}");
        }
    }

    #[test]
    fn claims_of_the_same_ports_overlap() {
        let claim = |text: &str| Claim::parse(text).unwrap_or_else(|| panic!("{text}"));
        let ours = claim("claim 192.0.2.1 80-80");
        assert_eq!(Claim::parse(&ours.line()), Some(ours.clone()));
        assert!(ours.overlaps(&claim("claim 192.0.2.1 1-80")) && ours.overlaps(&ours));
        assert!(!ours.overlaps(&claim("claim 192.0.2.1 81-90")) && !ours.overlaps(&claim("claim 192.0.2.2 80-80")));
        assert_eq!(Claim::parse("ip route flush"), None);
    }
}
