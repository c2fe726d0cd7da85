//! `--path-memory FILE`: the memory of paths, from one run to the next.
//!
//! A file with other content is refused and never replaced, since the name may be mistyped. A missing or empty file
//! counts as an empty memory. The facts age by the file's modification time.

use crate::failure::Failure;
use crate::output;
use anabranch_engine::PathMemory;
use anabranch_host::{Application, Driver, Reactor};
use anabranch_units::{Duration, input};
use clap::Args as ClapArgs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Memory of paths beyond one run.
#[derive(ClapArgs, Clone, Debug)]
#[command(next_help_heading = "Engine")]
pub struct MemoryOption {
    /// Begin with what FILE has of paths (round trip, rate, loss, where MPTCP is lost, where nothing answers), and keep
    /// there what is found. Each fact is forgotten after an hour.
    #[arg(long = "path-memory", value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// A file that can be read and written, and the memory that was in it.
pub struct KeptMemory {
    path: PathBuf,
    found: PathMemory,
}

/// Pause between two times of writing. What is lost with a program that is killed is no older.
const PAUSE: Duration = Duration::from_secs(60);
/// Size of the largest file that is read: the engine remembers 256 paths, with about 200 letters each.
const MAX_SIZE: u64 = 1 << 20;

impl MemoryOption {
    /// The memory as it is kept, if it is to be.
    pub fn read(&self) -> Result<Option<KeptMemory>, Failure> {
        let Some(path) = &self.file else { return Ok(None) };
        let found = read(path).map_err(|problem| {
            let shown = path.display();
            match problem {
                Problem::Io(error) => Failure::Refused(miette::miette!("cannot read --path-memory {shown}: {error}")),
                Problem::Text(what) => {
                    let help = "correct or delete the file, which is then made anew, or name another one";
                    Failure::Refused(miette::miette!(help = help, "--path-memory {shown}: {what}"))
                }
            }
        })?;
        Ok(Some(KeptMemory { path: path.clone(), found }))
    }
}

impl KeptMemory {
    /// Sees to it, before anything is run, that the file can be written.
    pub fn check(&self) -> Result<(), Failure> {
        output::check([("--path-memory", Some(&self.path))])
    }

    /// Tells the engine what was found.
    pub fn tell(&self, driver: &mut Driver) {
        let now = driver.now();
        driver.endpoint().set_path_memory(now, &self.found);
    }

    /// Makes the reactor write the file periodically.
    pub fn keep<A: Application>(&self, reactor: &mut Reactor<A>) {
        let path = self.path.clone();
        reactor.every(PAUSE, move |endpoint, now| save(&path, endpoint.path_memory(now)));
    }

    /// Writes what the engine knows.
    pub fn save(&self, driver: &mut Driver) {
        let now = driver.now();
        save(&self.path, driver.endpoint().path_memory(now));
    }
}

/// Obstacle to reading.
enum Problem {
    Io(io::Error),
    Text(String),
}

/// Aged by the time since it was written.
fn read(path: &Path) -> Result<PathMemory, Problem> {
    let mut file = match input::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(PathMemory::default()),
        opened => opened.map_err(Problem::Io)?,
    };
    let about = file.metadata().map_err(Problem::Io)?;
    let mut bytes = Vec::new();
    Read::by_ref(&mut file).take(MAX_SIZE + 1).read_to_end(&mut bytes).map_err(Problem::Io)?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(Problem::Text(format!("it is longer than {MAX_SIZE} bytes, the most that a memory of paths has")));
    }
    if bytes.is_empty() {
        // A new file, or one that a power failure has emptied.
        return Ok(PathMemory::default());
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        Problem::Text(format!("line {}: it is no text in UTF-8", line + 1))
    })?;
    let memory: PathMemory = text.parse().map_err(|error| Problem::Text(format!("{error}")))?;
    // A clock that was set back makes nothing younger.
    let age = about.modified().ok().and_then(|then| SystemTime::now().duration_since(then).ok()).unwrap_or_default();
    Ok(memory.aged(Duration::from_millis(u64::try_from(age.as_millis()).unwrap_or(u64::MAX / 1_000_000))))
}

/// Puts the memory in the place of the file, with what other programs have put there about other paths. A failure ends
/// nothing: the memory saves round trips, and everything works without it.
fn save(path: &Path, memory: PathMemory) {
    let saved = match read(path) {
        Ok(there) => output::write_private(path, memory.over(&there).to_string().as_bytes())
            .map_err(|error| format!("cannot write it: {error}")),
        Err(Problem::Io(error)) => Err(format!("cannot read it: {error}")),
        Err(Problem::Text(what)) => Err(format!("another program has changed it, so it is left as it is: {what}")),
    };
    if let Err(what) = saved {
        output::remark(&format!("--path-memory {}: {what}", path.display()));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::PermissionsExt;

    const TEXT: &str = "\
anabranch paths 1
192.0.2.7 203.0.113.1 rtt_us=41250 rtt_age_ms=5000 rate_bps=8000000
192.0.2.8 203.0.113.1 silent_ms=30000
";

    fn refused(bytes: &[u8]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("paths");
        std::fs::write(&path, bytes).unwrap();
        let Err(Failure::Refused(report)) = (MemoryOption { file: Some(path.clone()) }).read() else {
            panic!("it is read")
        };
        // Neither does writing over it later harm it.
        save(&path, TEXT.parse().unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        let help = report.help().unwrap().to_string();
        assert!(help.contains("delete the file"), "{help}");
        report.to_string().replace(&path.display().to_string(), "FILE")
    }

    #[test]
    fn a_file_that_is_no_memory_is_refused_and_kept() {
        assert_eq!(refused(b"# Notes\n"), "--path-memory FILE: the first line must be `anabranch paths 1`");
        let line = b"anabranch paths 1\n\n192.0.2.7 203.0.113.1 rtt=5\n";
        assert!(refused(line).starts_with("--path-memory FILE: line 3: `rtt=5` is no fact; accepted: rtt_us=N, "));
        assert_eq!(refused(b"anabranch paths 1\n\xff"), "--path-memory FILE: line 2: it is no text in UTF-8");
        let long = refused(&vec![b'\n'; MAX_SIZE as usize + 1]);
        assert_eq!(long, "--path-memory FILE: it is longer than 1048576 bytes, the most that a memory of paths has");
    }

    #[test]
    fn a_missing_or_empty_file_is_nothing_known() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("paths");
        let option = MemoryOption { file: Some(path.clone()) };
        assert_eq!(option.read().unwrap().unwrap().found, PathMemory::default());
        std::fs::write(&path, b"").unwrap();
        assert_eq!(option.read().unwrap().unwrap().found, PathMemory::default());
        assert!(MemoryOption { file: None }.read().unwrap().is_none());
    }

    /// Kept for its owner alone: it tells whom one has talked to.
    #[test]
    fn it_ages_with_the_file_and_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("paths");
        save(&path, TEXT.parse().unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let written = SystemTime::now() - std::time::Duration::from_secs(60);
        File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
        let found = MemoryOption { file: Some(path) }.read().unwrap().unwrap().found;
        let first = &found.paths[0];
        assert_eq!(first.rate, Some(anabranch_units::Rate::from_mbps(8)));
        assert!((65..125).contains(&(first.rtt_age.as_millis() / 1000)), "{:?}", first.rtt_age);
        assert_eq!(found.paths[1].silent, Some(Duration::ZERO));
    }

    /// Two programs with one file: each adds what it knows, and the later one has the last word of a path.
    #[test]
    fn what_others_have_written_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("paths");
        save(&path, TEXT.parse().unwrap());
        let other = "anabranch paths 1\n\
            192.0.2.7 203.0.113.1 rtt_us=39000 rtt_age_ms=10\n192.0.2.7 203.0.113.9 rtt_us=70000 rtt_age_ms=20\n";
        save(&path, other.parse().unwrap());
        let paths = read(&path).ok().unwrap().paths;
        let rtts: Vec<_> = paths.iter().map(|path| path.rtt.map(|rtt| rtt.as_micros())).collect();
        assert_eq!(rtts, [Some(39_000), Some(70_000), None]);
    }
}
