//! The end of a run whose policy cannot go on: one found at run time may fail where ours cannot.

use anabranch_units::Instant;
use std::fmt;

/// Reason of a policy that cannot continue. The code that drives the run catches it at the run's boundary; other runs
/// go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The policy's name.
    pub policy: String,
    /// The time of the run; `None` where the policy was asked without one.
    pub at: Option<Instant>,
    /// The reason, for instance the traceback of an exception.
    pub why: String,
}

impl Failure {
    /// Leaves the run: unwinds with `self`, and without what a panic prints.
    pub fn raise(self) -> ! {
        std::panic::resume_unwind(Box::new(self))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { policy, at, why } = self;
        match at {
            Some(at) => write!(f, "policy `{policy}` failed {:.9} s into the run: {why}", at.as_secs_f64()),
            None => write!(f, "policy `{policy}` failed: {why}"),
        }
    }
}
