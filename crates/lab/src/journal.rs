//! Journal of all runs, so that each is made only once.
//!
//! A file has one line of JSON for each run, written when the run ends. An interrupted write loses only its own line.
//! The digest of the scenario, the seed and the build identify a run: results of another build are ignored.

use crate::format::{Format, RUN_JOURNAL};
use crate::run::{Keep, run};
use crate::{Measured, RunError};
use anabranch_scenario::Scenario;
use anabranch_units::input;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of the longest line that is read.
const LONGEST_LINE: u64 = 64 << 20;

/// Result of a run that a journal keeps.
pub trait Kept: Clone + Serialize + DeserializeOwned {
    /// Format of a line.
    const FORMAT: &'static Format;
    /// Returns the seed of the run.
    fn seed(&self) -> u64;
}

impl Kept for Measured {
    const FORMAT: &'static Format = &RUN_JOURNAL;

    fn seed(&self) -> u64 {
        self.seed
    }
}

/// Runs by digest and seed, in a file or only in memory.
pub struct Journal<M = Measured> {
    build: String,
    inner: Mutex<Inner<M>>,
}

struct Inner<M> {
    file: Option<(PathBuf, File)>,
    /// The map is never iterated over, so its order cannot show.
    runs: HashMap<(String, u64), M>,
}

/// A line of the file.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct JournalLine<M> {
    /// Name of the format; empty in lines from before formats had names.
    #[serde(default)]
    format: String,
    /// Version of the format.
    #[serde(default)]
    format_version: u64,
    /// Version and build of the program that made the run.
    build: String,
    /// Digest of the scenario.
    digest: String,
    /// The run.
    measured: M,
}

/// Errors of a journal.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("cannot use {}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// Another process uses the journal.
    #[error("another process is writing {}", path.display())]
    #[diagnostic(help("wait until it is through, or name another directory with --out"))]
    Busy {
        /// Path of the file.
        path: PathBuf,
    },
    /// A line has a format that this program does not read.
    #[error("{} line {line} cannot be read: {problem}", path.display())]
    #[diagnostic(help("use the program that wrote it, or name another directory with --out"))]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Format of the line, and the one that is known.
        problem: String,
    },
    /// A line is not a record of a run.
    #[error("{} line {line} is no record of a run: {error}", path.display())]
    #[diagnostic(help("remove that line, or name another directory with --out"))]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Cause.
        error: serde_json::Error,
    },
}

/// Errors of a run that is to be kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The run broke.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The journal cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Journal {
    /// Returns the run of `scenario` with this seed that was kept under `digest`; otherwise makes it and keeps it.
    ///
    /// # Errors
    ///
    /// If the run breaks or cannot be kept.
    pub fn run(&self, digest: &str, scenario: &Scenario, seed: u64) -> Result<Measured, KeepError> {
        self.made(digest, seed, || Ok(run(scenario, seed, &Keep::default())?.measured))
    }
}

impl<M: Kept> Journal<M> {
    /// Returns the run with this seed that was kept under `digest`; otherwise makes it by `make` and keeps it.
    ///
    /// # Errors
    ///
    /// If the run breaks or cannot be kept.
    pub fn made(&self, digest: &str, seed: u64, make: impl FnOnce() -> Result<M, RunError>) -> Result<M, KeepError> {
        if let Some(measured) = self.get(digest, seed) {
            return Ok(measured);
        }
        let measured = make()?;
        self.put(digest, measured.clone())?;
        Ok(measured)
    }

    /// Makes a journal that keeps runs only in this process.
    pub fn in_memory() -> Journal<M> {
        Journal { build: String::new(), inner: Mutex::new(Inner { file: None, runs: HashMap::new() }) }
    }

    /// Opens the file, or creates it. `build` identifies the program that makes the runs.
    ///
    /// # Errors
    ///
    /// If it cannot be read and written, or has a line that is not a record of a run.
    pub fn open(path: &Path, build: &str) -> Result<Journal<M>, JournalError> {
        let broken = |error| JournalError::File { path: path.to_owned(), error };
        input::check_if_there(path).map_err(broken)?;
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(broken)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Busy { path: path.to_owned() }),
            // Some file systems have no locks.
            Err(TryLockError::Error(_)) => {}
        }
        let (mut runs, mut whole, mut line, mut number) = (HashMap::new(), 0u64, Vec::new(), 0);
        let mut reader = BufReader::new(&mut file);
        let torn = loop {
            line.clear();
            let read = reader.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut line).map_err(broken)?;
            if read as u64 > LONGEST_LINE {
                let problem = format!("line {} is longer than {} MiB", number + 1, LONGEST_LINE >> 20);
                return Err(broken(std::io::Error::other(problem)));
            }
            if read == 0 || line.last() != Some(&b'\n') {
                break read > 0; // The end, or a line that was not written to its end.
            }
            whole += read as u64;
            number += 1;
            let refuse = |error| JournalError::Line { path: path.to_owned(), line: number, error };
            let record: JournalLine<&serde_json::value::RawValue> =
                match serde_json::from_slice::<JournalLine<_>>(&line) {
                    Ok(record) => record,
                    Err(error) => return Err(refuse(error)),
                };
            // A program from before formats had names has another build.
            if record.format.is_empty() {
                continue;
            }
            if let Some(problem) = M::FORMAT.problem(&record.format, record.format_version) {
                return Err(JournalError::Format { path: path.to_owned(), line: number, problem });
            }
            if record.build == build {
                let measured: M = serde_json::from_str(record.measured.get()).map_err(refuse)?;
                runs.insert((record.digest, measured.seed()), measured);
            }
        };
        // Only a torn last line is cut off: another process may be writing to the same file.
        if torn {
            file.set_len(whole).map_err(broken)?;
        }
        file.seek(SeekFrom::End(0)).map_err(broken)?;
        let inner = Inner { file: Some((path.to_owned(), file)), runs };
        Ok(Journal { build: build.to_owned(), inner: Mutex::new(inner) })
    }

    /// Returns the run of this scenario with this seed, if it was made.
    pub fn get(&self, digest: &str, seed: u64) -> Option<M> {
        self.inner().runs.get(&(digest.to_owned(), seed)).cloned()
    }

    /// Returns true if the journal has this run.
    pub fn has(&self, digest: &str, seed: u64) -> bool {
        self.inner().runs.contains_key(&(digest.to_owned(), seed))
    }

    /// Keeps a run.
    ///
    /// # Errors
    ///
    /// If it cannot be written. It is then not kept in memory either.
    pub fn put(&self, digest: &str, measured: M) -> Result<(), JournalError> {
        let mut inner = self.inner();
        if let Some((path, file)) = &mut inner.file {
            let record = JournalLine {
                format: M::FORMAT.name.to_owned(),
                format_version: M::FORMAT.version.into(),
                build: self.build.clone(),
                digest: digest.to_owned(),
                measured: &measured,
            };
            let mut line = serde_json::to_vec(&record).expect("numbers and texts have a form in JSON");
            line.push(b'\n');
            // One write: a line is whole or, at the end of the file, cut short.
            let before = file.metadata().map(|it| it.len());
            if let Err(error) = file.write_all(&line) {
                // A partial line must not stay: the next one would join it. If it cannot be cut off, the next start
                // finds it torn.
                let _ = before.and_then(|length| file.set_len(length));
                return Err(JournalError::File { path: path.clone(), error });
            }
        }
        inner.runs.insert((digest.to_owned(), measured.seed()), measured);
        Ok(())
    }

    fn inner(&self) -> MutexGuard<'_, Inner<M>> {
        // A panic elsewhere leaves the map intact: each change is one insertion.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn run(seed: u64) -> Measured {
        Measured {
            completion_s: Some(0.1 + 0.2),
            goodput_bps: 1.0 / 3.0,
            ..crate::compare::tests::measured(seed, 1.0, 2.0)
        }
    }

    #[test]
    fn a_killed_run_goes_on_where_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        let journal = Journal::<Measured>::open(&path, "build").unwrap();
        journal.put("a", run(1)).unwrap();
        journal.put("a", run(2)).unwrap();
        drop(journal);
        // The second line loses its end, as if the process had been killed.
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 5]).unwrap();

        let journal = Journal::<Measured>::open(&path, "build").unwrap();
        assert_eq!(journal.get("a", 1), Some(run(1)), "to the last bit");
        assert!(!journal.has("a", 2) && !journal.has("b", 1));
        journal.put("a", run(2)).unwrap();
        drop(journal);
        assert_eq!(std::fs::read(&path).unwrap(), text);
        assert!(!Journal::<Measured>::open(&path, "another build").unwrap().has("a", 1));
    }

    #[test]
    fn a_line_that_is_no_record_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        Journal::<Measured>::open(&path, "build").unwrap().put("a", run(1)).unwrap();
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{}\n");
        std::fs::write(&path, text).unwrap();
        let error = Journal::<Measured>::open(&path, "build").err().unwrap().to_string();
        assert!(error.contains("line 2 is no record of a run"), "{error}");
    }

    #[test]
    fn a_line_of_an_unknown_version_is_refused_and_one_without_a_format_is_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        Journal::<Measured>::open(&path, "build").unwrap().put("a", run(1)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"format_version\":1", "\"format_version\":7")).unwrap();
        let error = Journal::<Measured>::open(&path, "build").err().unwrap().to_string();
        let said = "line 1 cannot be read: its format is run-journal 7, and this program reads run-journal 1";
        assert!(error.ends_with(said), "{error}");
        std::fs::write(&path, text.replace("\"format\":\"run-journal\",\"format_version\":1,", "")).unwrap();
        assert!(!Journal::<Measured>::open(&path, "build").unwrap().has("a", 1));
    }
}
