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
    let help = match error {
        ParamError::UnknownPolicy { name, .. } => match nearest(name, names) {
            Some(near) => format!("did you mean `{near}`? {help}"),
            None => help.to_owned(),
        },
        ParamError::UnknownParameter { name, known, .. } => match nearest(name, known.split(", ")) {
            Some(near) => format!("did you mean `{near}`? {help}"),
            None => help.to_owned(),
        },
        ParamError::BadValue { .. } => help.to_owned(),
    };
    Problem::at(at, problem, help)
}
