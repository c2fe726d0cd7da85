//! Policies by name, with their parameters, from the one registry.

use crate::error::{Problem, nearest};
use crate::file::{At, Policy};
use anabranch_engine::Factory;
use anabranch_policy::registry::{Entry, ParamError, find};
use std::ops::Range;
use std::sync::Arc;

/// A factory of what `policy` names in `table`; `at` is the place to blame.
pub(crate) fn build<T: ?Sized>(
    table: &'static [Entry<T>],
    kind: &'static str,
    policy: &Policy,
    at: &Range<usize>,
) -> Result<Factory<T>, Problem> {
    let refuse = |error: ParamError| refusal(&error, table.iter().map(|entry| entry.name), at);
    let entry = find(table, kind, &policy.name).map_err(refuse)?;
    let params = entry.params(&policy.parameters).map_err(refuse)?;
    Ok(Arc::new(move || (entry.build)(&params)))
}

/// The same for a policy that may not be given.
pub(super) fn given<T: ?Sized>(
    table: &'static [Entry<T>],
    kind: &'static str,
    policy: Option<&At<Policy>>,
) -> Result<Option<Factory<T>>, Problem> {
    policy.map(|at| build(table, kind, &at.value, &at.span)).transpose()
}

fn refusal<'a>(error: &ParamError, names: impl Iterator<Item = &'a str>, at: &Range<usize>) -> Problem {
    let text = error.to_string();
    // "there is no …; there are: …": the second half is what would be accepted.
    let (problem, help) = text.split_once("; ").unwrap_or((&text, "see `anabranch list`"));
    let near = match error {
        ParamError::UnknownPolicy { name, .. } => nearest(name, names),
        ParamError::UnknownParameter { name, known, .. } => nearest(name, known.split(", ")),
        ParamError::BadValue { policy, name, value, accepted } => {
            // Not cut in two: a text may hold anything.
            return Problem::at(at, format!("`{policy}.{name}` is {value}"), format!("it must be {accepted}"));
        }
    };
    let help = near.map_or_else(|| help.to_owned(), |near| format!("did you mean `{near}`? {help}"));
    Problem::at(at, problem, help)
}
