//! Policies by name, with their parameters, from the catalogue.

use crate::error::{Problem, nearest};
use crate::file::{At, Policy};
use crate::variant::Variant;
use anabranch_engine::Factory;
use anabranch_policy::Table;
use anabranch_policy::registry::ParamError;
use std::ops::Range;
use std::sync::Arc;

/// How to make a policy, and what it is.
pub(crate) type Found<T> = (Factory<T>, Variant);

/// What `policy` names in `table`; `at` is the place to blame.
pub(crate) fn build<T: ?Sized>(table: &Table<T>, policy: &Policy, at: &Range<usize>) -> Result<Found<T>, Problem> {
    let refuse = |error: ParamError| refusal(&error, table.names(), at);
    let entry = *table.find(&policy.name).map_err(refuse)?;
    let params = entry.params(&policy.parameters).map_err(refuse)?;
    let variant = Variant::new(&entry, &params);
    Ok((Arc::new(move || (entry.build)(&params)), variant))
}

/// The same for a policy that may not be given.
pub(super) fn given<T: ?Sized>(table: &Table<T>, policy: Option<&At<Policy>>) -> Result<Option<Found<T>>, Problem> {
    policy.map(|at| build(table, &at.value, &at.span)).transpose()
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
