//! Number of clients of a scenario.

use crate::error::Problem;
use crate::file::{At, File, Policy};
use anabranch_policy::registry::Value;
use anabranch_sim::Spec;

/// Returns the number of clients; 1 unless given.
pub(super) fn clients(file: &File, spec: &Spec) -> Result<usize, Problem> {
    let Some(at) = &file.clients else { return Ok(1) };
    let most = spec.most_clients();
    if !(1..=most).contains(&at.value) {
        let hosts = "each has two hosts, and two for each workload of kind \"tcp\"";
        return Err(Problem::at(
            &at.span,
            format!("`clients` is {}", at.value),
            format!("accepted: 1 to {most}; {hosts}"),
        ));
    }
    if at.value > 1
        && let Some(policy) = ack_paths(file).find(|policy| names_a_path(policy))
    {
        let problem = format!("`ack-path` names a path, but there are {} clients with paths of their own", at.value);
        return Err(Problem::at(&policy.span, problem, "accepted: a policy that names no path, or `clients = 1`"));
    }
    Ok(at.value)
}

/// Returns all ACK path policies that the file names.
fn ack_paths(file: &File) -> impl Iterator<Item = &At<Policy>> {
    let hosts = [&file.host, &file.client, &file.server].into_iter().filter_map(|host| host.ack_path.as_ref());
    hosts.chain(file.change.iter().filter_map(|change| change.value.ack_path.as_ref()))
}

/// Returns true if the policy names a path, which it knows by one client's address there.
fn names_a_path(policy: &At<Policy>) -> bool {
    matches!(policy.value.parameters.get("path"), Some(Value::Text(path)) if !path.is_empty())
}
