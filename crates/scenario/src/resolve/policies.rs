//! Policies by name, with their parameters, from the catalogue.

use crate::error::Problem;
use crate::file::{At, Policy};
use crate::variant::Variant;
use anabranch_engine::Factory;
use anabranch_policy::Table;
use anabranch_policy::ack_path::AckPath;
use anabranch_policy::registry::{Kind, ParamError, Value};
use anabranch_units::{nearest, suggest};
use std::ops::Range;
use std::sync::Arc;

/// Factory of a policy, and its description with parameters.
pub(crate) type Found<T> = (Factory<T>, Variant);

/// Builds the policy that `policy` names in `table`; errors point at `at`.
pub(crate) fn build<T: Kind + ?Sized>(
    table: &Table<T>,
    policy: &Policy,
    at: &Range<usize>,
) -> Result<Found<T>, Problem> {
    let refuse = |error: ParamError| refusal(&error, table.names(), at);
    let entry = table.find(&policy.name).map_err(refuse)?.clone();
    let params = entry.params(&policy.parameters).map_err(refuse)?;
    let variant = Variant::new(&entry, &params);
    Ok((Arc::new(move || entry.build(&params)), variant))
}

/// Builds a policy that may be absent.
pub(super) fn given<T: Kind + ?Sized>(
    table: &Table<T>,
    policy: Option<&At<Policy>>,
) -> Result<Option<Found<T>>, Problem> {
    policy.map(|at| build(table, &at.value, &at.span)).transpose()
}

/// Builds an ACK path policy. It may name a path: the engine knows it by the client's address there.
pub(super) fn ack_path(
    table: &Table<dyn AckPath>,
    policy: &At<Policy>,
    paths: &[String],
) -> Result<Found<dyn AckPath>, Problem> {
    let mut addressed = policy.value.clone();
    if let Some(Value::Text(path)) = addressed.parameters.get_mut("path") {
        if let Some(index) = paths.iter().position(|name| name == path) {
            *path = anabranch_sim::client_address(index).to_string();
        } else if !path.is_empty() && path.parse::<std::net::IpAddr>().is_err() {
            let known: Vec<&str> = paths.iter().map(String::as_str).collect();
            let problem = format!("`ack-path` names `{path}`, which is neither a path nor an address");
            return Err(Problem::at(&policy.span, problem, suggest(path, known)));
        }
    }
    let (factory, _) = build(table, &addressed, &policy.span)?;
    let (_, as_named) = build(table, &policy.value, &policy.span)?;
    Ok((factory, as_named))
}

fn refusal<'a>(error: &ParamError, names: impl Iterator<Item = &'a str>, at: &Range<usize>) -> Problem {
    let text = error.to_string();
    // "there is no …; there are: …": the second half lists the accepted names.
    let (problem, help) = text.split_once("; ").unwrap_or((&text, "see `anabranch list`"));
    let near = match error {
        ParamError::UnknownPolicy { name, .. } => nearest(name, names),
        ParamError::UnknownParameter { name, known, .. } => nearest(name, known.split(", ")),
        ParamError::BadValue { policy, name, value, accepted } => {
            // This text is not split, since a value may contain anything.
            return Problem::at(at, format!("`{policy}.{name}` is {value}"), format!("it must be {accepted}"));
        }
        _ => None,
    };
    let help = near.map_or_else(|| help.to_owned(), |near| format!("did you mean `{near}`? {help}"));
    Problem::at(at, problem, help)
}
