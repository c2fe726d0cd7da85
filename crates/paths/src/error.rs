//! Networks that cannot be.

use anabranch_net::ConfigError;

/// A network that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NetworkError {
    /// No paths, or more than there are addresses for.
    #[error("there are {0} paths; accepted are 1 to 255")]
    Paths(usize),
    /// The index of the primary path.
    #[error("primary is path {0}, but there are only {1}, counted from 0")]
    Primary(usize, usize),
    /// Two links of one name would share their random draws.
    #[error("`{0}` names two paths or shared links")]
    DuplicateName(String),
    /// A name that nothing has.
    #[error("{what} names the path `{name}`; there are: {known}")]
    UnknownPath {
        /// Who names it.
        what: String,
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A middlebox that cannot be.
    #[error("{place}: {what}")]
    Middlebox {
        /// Path and kind.
        place: String,
        /// What would be accepted, and why.
        what: &'static str,
    },
    /// A link that cannot be.
    #[error("{place}: {error}")]
    Link {
        /// Which link.
        place: String,
        /// What is wrong with it.
        error: ConfigError,
    },
}

impl NetworkError {
    /// `what` names the path `name`, which is none of `known`.
    pub fn unknown(what: String, name: &str, known: Vec<&str>) -> Self {
        NetworkError::UnknownPath { what, name: name.to_owned(), known: known.join(", ") }
    }
}
