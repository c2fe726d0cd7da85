//! What is to be undone, in memory and in a file for the case that nobody is left to do it.

use super::find::{AddressError, run};
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

/// Where the notes are. Only root, or whom root gives it to, may write there, for what they say is done.
pub(super) const DIRECTORY: &str = "/run/anabranch";

/// One change to the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// `ip` or `nft` with words that hold no space.
    Command(Vec<String>),
    /// A kernel parameter below `/proc/sys`.
    Sysctl { key: String, value: String },
}

impl Step {
    pub(super) fn run(&self) -> Result<(), AddressError> {
        match self {
            Step::Command(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                run(words[0], &words[1..]).map(drop)
            }
            Step::Sysctl { key, value } => std::fs::write(format!("/proc/sys/{key}"), format!("{value}\n"))
                .map_err(|error| AddressError::Sysctl { key: key.clone(), error }),
        }
    }

    fn line(&self) -> String {
        match self {
            Step::Command(words) => words.join(" "),
            Step::Sysctl { key, value } => format!("sysctl {key} {value}"),
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
            _ => None,
        }
    }
}

/// The notes of one device in one network namespace. The file is locked while somebody borrows.
#[derive(Debug)]
pub(super) struct Undo {
    file: File,
    steps: Vec<Step>,
}

impl Undo {
    /// What is noted down for `device`; `WouldBlock` while another process borrows for it.
    pub(super) fn open(device: &str) -> io::Result<Self> {
        let made = DirBuilder::new().mode(0o700).create(DIRECTORY);
        made.or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })?;
        let namespace = std::fs::read_link("/proc/thread-self/ns/net")?;
        let number: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
        let path = format!("{DIRECTORY}/{device}-{number}.undo");
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let steps = text.lines().filter_map(Step::parse).collect();
        Ok(Undo { file, steps })
    }

    /// Does `step`, having noted down what undoes it.
    pub(super) fn does(&mut self, step: Step, reverse: Option<Step>) -> Result<(), AddressError> {
        if let Some(reverse) = reverse {
            self.later(reverse)?;
        }
        step.run()
    }

    /// Notes down what is to be done at the end.
    pub(super) fn later(&mut self, step: Step) -> Result<(), AddressError> {
        writeln!(self.file, "{}", step.line()).map_err(|error| AddressError::State { error })?;
        self.steps.push(step);
        Ok(())
    }

    /// Undoes everything, the last first. What cannot be undone has gone already, with the device for instance.
    pub(super) fn run(&mut self) {
        for step in self.steps.drain(..).rev() {
            if let Err(error) = step.run() {
                tracing::debug!(target: "anabranch::addresses", %error, "nothing to undo");
            }
        }
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        if let Err(error) = emptied {
            tracing::warn!(target: "anabranch::addresses", %error, "notes are left in {DIRECTORY}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
