//! Errors of recordings.

use std::fmt;

/// A text that is no recording, or not the one that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingError {
    /// Line, counted from 1.
    pub line: Option<usize>,
    /// Name or number of the column.
    pub column: Option<String>,
    /// The problem.
    pub problem: String,
    /// Remedy.
    pub help: Option<String>,
}

impl RecordingError {
    /// Makes an error without a place.
    pub(crate) fn plain(problem: impl Into<String>) -> Self {
        RecordingError { line: None, column: None, problem: problem.into(), help: None }
    }

    pub(crate) fn at(line: usize, problem: impl Into<String>) -> Self {
        RecordingError { line: Some(line), ..RecordingError::plain(problem) }
    }

    pub(crate) fn within(self, column: &str) -> Self {
        RecordingError { column: Some(column.to_owned()), ..self }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        RecordingError { help: Some(help.into()), ..self }
    }
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, &self.column) {
            (Some(line), Some(column)) => write!(f, "line {line}, column `{column}`: ")?,
            (Some(line), None) => write!(f, "line {line}: ")?,
            (None, Some(column)) => write!(f, "column `{column}`: ")?,
            (None, None) => {}
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for RecordingError {}

/// The error for a text of no known form.
pub(crate) fn unknown(text: &str) -> RecordingError {
    let first = text.lines().find(|line| !line.trim().is_empty());
    match first {
        None => RecordingError::plain("the recording is empty"),
        Some(line) => {
            let shown: String = line.chars().take(60).collect();
            RecordingError::plain(format!("the form is not known: the first line is {shown:?}"))
        }
    }
    .help(
        "accepted: mahimahi's milliseconds, one per line; a table with a time in each row; the output of iperf, \
         iperf3, ping or irtt",
    )
}
