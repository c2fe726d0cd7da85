//! Errors of commands: their messages and exit statuses.

use anabranch_lab::{JournalError, KeepError, RunError};
use anabranch_scenario::{ScenarioError, Shown, in_shell};
use anabranch_study::study::StudyError;
use miette::Report;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Reason for which a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// The scenario or the command line is refused.
    Refused(Report),
    /// A run broke, or results could not be written.
    Failed(Report),
    /// Scripts do not hold; the report is out already.
    ScriptsFailed,
    /// Scripts are not well written; the report is out already.
    ScriptsRefused,
    /// A testbed could not be made, or broke.
    Testbed(Report),
    /// The command in a testbed ended with this, which is not 0; it has said why itself.
    Command(u8),
    /// The body was not fetched; with the exit status for the reason.
    NotFetched(u8, Report),
    /// The reader of our output has gone, for instance `head`.
    ReaderGone,
}

/// Exit status of a testbed that failed, distinct from those of the command that it runs, as with `env` and `timeout`.
pub const TESTBED_FAILED: u8 = 125;

impl Failure {
    /// A form or a stream that could not be written.
    pub fn writing(what: &str, error: impl std::fmt::Display) -> Self {
        Failure::Failed(miette::miette!("cannot write {what}: {error}"))
    }

    /// A file or folder of results that could not be written, with a remedy.
    pub fn writing_to(path: &Path, error: &io::Error) -> Self {
        let shown = path.display();
        match remedy(path, error) {
            Some(remedy) => Failure::Failed(miette::miette!(help = remedy, "cannot write {shown}: {error}")),
            None => Failure::Failed(miette::miette!("cannot write {shown}: {error}")),
        }
    }

    /// A study that could not be run to its end.
    pub fn study(error: StudyError) -> Self {
        match error {
            StudyError::Refused(error) => error.into(),
            StudyError::Keep(error) => error.into(),
        }
    }

    /// A journal of runs that cannot be used.
    pub fn journal(error: JournalError) -> Self {
        Failure::Failed(Report::new(error))
    }

    /// Shows it on standard error.
    pub fn print(&self) {
        match self {
            // Fails if standard error is closed; the exit status reports the error all the same.
            Failure::Refused(report)
            | Failure::Failed(report)
            | Failure::Testbed(report)
            | Failure::NotFetched(_, report) => {
                let _ = writeln!(std::io::stderr(), "{:?}", Shown::report(report));
            }
            Failure::ScriptsFailed | Failure::ScriptsRefused | Failure::Command(_) | Failure::ReaderGone => {}
        }
    }

    /// 2 for what is refused, 1 for what failed, 125 for a testbed that failed, so that it is not mistaken for its
    /// command.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Refused(_) | Failure::ScriptsRefused => 2,
            Failure::Failed(_) | Failure::ScriptsFailed => 1,
            Failure::Testbed(_) => TESTBED_FAILED,
            Failure::Command(code) | Failure::NotFetched(code, _) => *code,
            Failure::ReaderGone => 0,
        }
    }
}

/// Advice on making it possible to write to this path.
fn remedy(path: &Path, error: &io::Error) -> Option<String> {
    let parent = || path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let remedy = match error.kind() {
        ErrorKind::NotFound => match closed(path) {
            Some(folder) => format!("nothing new can be in {}: name another place", folder.display()),
            None => format!("make its folder first: mkdir -p {}", in_shell(&parent().to_string_lossy())),
        },
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            let file = path.ancestors().find(|part| part.is_file())?;
            format!("`{}` is a file, no folder: name another place", file.display())
        }
        ErrorKind::IsADirectory => "this is a folder: add the name of a file in it".to_owned(),
        ErrorKind::PermissionDenied => "name a place that you may write to".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "name a place on a file system that can be written to".to_owned(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "there is no room left: make some, or name another place".to_owned()
        }
        _ => return None,
    };
    Some(remedy)
}

/// The nearest folder above a path, if it can have no new entries, as those of `/proc`.
fn closed(path: &Path) -> Option<&Path> {
    let mut folders = path.ancestors().skip(1).map(|it| if it.as_os_str().is_empty() { Path::new(".") } else { it });
    folders.find(|it| it.is_dir()).filter(|it| tempfile::tempfile_in(it).is_err())
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Failure::Refused(Report::new(error))
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Failure::Failed(Report::new(error))
    }
}

impl From<KeepError> for Failure {
    fn from(error: KeepError) -> Self {
        match error {
            KeepError::Run(error) => error.into(),
            KeepError::Journal(error) => Failure::journal(error),
        }
    }
}
