//! Errors of a network specification.

use anabranch_net::ConfigError;

/// Error in a network specification.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// No paths, or more than there are addresses for.
    #[error("there are {0} paths; accepted are 1 to 255")]
    Paths(usize),
    /// The index of the primary path.
    #[error("primary is path {0}, but there are only {1}, counted from 0")]
    Primary(usize, usize),
    /// Two links of one name would share their random draws.
    #[error("`{0}` names two paths or shared links; accepted: a name of its own for each")]
    DuplicateName(String),
    /// A path name that does not exist.
    #[error("{what} names the path `{name}`; there are: {known}")]
    UnknownPath {
        /// Element that names it.
        what: String,
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A middlebox out of range.
    #[error("{place}: {what}")]
    Middlebox {
        /// Path and kind.
        place: String,
        /// Accepted values, and the reason.
        what: &'static str,
    },
    /// A link out of range.
    #[error("{place}: {error}")]
    Link {
        /// Name of the link.
        place: String,
        /// Fault of its configuration.
        error: ConfigError,
    },
}

impl NetworkError {
    /// `what` names the path `name`, which is none of `known`.
    pub fn unknown(what: String, name: &str, known: Vec<&str>) -> Self {
        NetworkError::UnknownPath { what, name: name.to_owned(), known: known.join(", ") }
    }
}
