//! Errors in a script, and failures of its checks.

use crate::text::Line;
use miette::{Diagnostic, NamedSource, SourceSpan};
use std::ops::Range;

/// Why a script did not pass.
#[derive(Clone, Debug, thiserror::Error, Diagnostic)]
pub enum ScriptError {
    /// The script itself is wrong: its diagnostic points at the place and says what would be right.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Refused(#[from] Box<Refused>),
    /// The endpoint did something else than the script states.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Failed(#[from] Box<Failed>),
}

/// A script that cannot be run.
#[derive(Clone, Debug, thiserror::Error, Diagnostic)]
#[error("{place}: {problem}")]
pub struct Refused {
    place: String,
    problem: String,
    #[help]
    help: Option<String>,
    #[source_code]
    source_code: Option<NamedSource<String>>,
    #[label("here")]
    at: Option<SourceSpan>,
}

/// A statement that does not hold. Segments are written as scripts write them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("{place}: {problem}{}", self.details())]
pub struct Failed {
    /// `file:line`.
    pub place: String,
    /// One sentence.
    pub problem: String,
    /// The script's expectation.
    pub expected: Option<String>,
    /// The actual value.
    pub got: Option<String>,
    /// Field by field: `ack: expected 2, got 1`.
    pub differences: Vec<String>,
    /// The last segments and calls before it, oldest first.
    pub around: Vec<String>,
}

impl ScriptError {
    pub(crate) fn refused(line: &Line, at: &Range<usize>, problem: impl Into<String>, help: impl Into<String>) -> Self {
        ScriptError::Refused(Box::new(Refused {
            place: line.place(),
            problem: problem.into(),
            help: Some(help.into()),
            source_code: Some(line.named_source()),
            at: Some(line.span(at)),
        }))
    }

    /// A file that cannot be read.
    pub(crate) fn unreadable(name: &str, problem: impl Into<String>) -> Self {
        ScriptError::Refused(Box::new(Refused {
            place: name.to_owned(),
            problem: problem.into(),
            help: None,
            source_code: None,
            at: None,
        }))
    }

    /// True if the script itself is wrong.
    pub fn is_refused(&self) -> bool {
        matches!(self, ScriptError::Refused(_))
    }

    /// Returns the failed check, unless the script itself is wrong.
    pub fn failed(&self) -> Option<&Failed> {
        match self {
            ScriptError::Failed(failed) => Some(failed),
            ScriptError::Refused(_) => None,
        }
    }
}

impl Refused {
    /// Returns advice, if there is any.
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl Failed {
    fn details(&self) -> String {
        let mut text = String::new();
        if let Some(expected) = &self.expected {
            text += &format!("\n  expected: {expected}");
        }
        if let Some(got) = &self.got {
            text += &format!("\n  got:      {got}");
        }
        for difference in &self.differences {
            text += &format!("\n    {difference}");
        }
        if !self.around.is_empty() {
            text += "\n  before it:";
            for line in &self.around {
                text += &format!("\n    {line}");
            }
        }
        text
    }
}
