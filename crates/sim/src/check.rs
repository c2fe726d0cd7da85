//! Refuses runs that cannot be, before they start.

use crate::page::Protocol;
use crate::topology::Topology;
use crate::{Extent, Host, Spec, SpecError, Workload};
use anabranch_net::Change;
use std::collections::BTreeSet;

/// What can be seen without building anything.
pub(crate) fn check(spec: &Spec) -> Result<(), SpecError> {
    if !(1..=ADDRESSES).contains(&spec.paths.len()) {
        return Err(SpecError::Paths(spec.paths.len()));
    }
    if spec.primary >= spec.paths.len() {
        return Err(SpecError::Primary(spec.primary, spec.paths.len()));
    }
    if !(1..=ADDRESSES).contains(&spec.server.addresses) {
        return Err(SpecError::ServerAddresses(spec.server.addresses));
    }
    let competing = spec.workloads.iter().filter(|workload| matches!(workload, Workload::Tcp { .. })).count();
    if competing > PAIRS {
        return Err(SpecError::CompetingTcp(competing));
    }
    let mut names = BTreeSet::new();
    for name in spec.paths.iter().map(|path| &path.name).chain(spec.shared.iter().map(|link| &link.name)) {
        if !names.insert(name) {
            return Err(SpecError::DuplicateName(name.clone()));
        }
    }
    for path in &spec.paths {
        for middlebox in &path.middleboxes {
            let place = || format!("{}/{}", path.name, middlebox.kind.name());
            middlebox.kind.check().map_err(|what| SpecError::Middlebox { place: place(), what })?;
        }
    }
    if let Some(timed) = spec.restarts.iter().find(|timed| !matches!(timed.host, Host::Client | Host::Server)) {
        return Err(SpecError::Restart(timed.host));
    }
    for timed in &spec.changes {
        if let Change::Loss(model) = &timed.change {
            let place = format!("change of {} at {}", timed.path, timed.at);
            model.check().map_err(|error| SpecError::Link { place, error })?;
        }
    }
    spec.workloads.iter().enumerate().try_for_each(|(number, it)| workload(number + 1, it))
}

fn workload(number: usize, workload: &Workload) -> Result<(), SpecError> {
    let empty = match workload {
        Workload::Bulk { .. } => None,
        Workload::Files { sizes, .. } => sizes.iter().any(|size| size.is_zero()).then_some("a file"),
        Workload::Exchange { down, up, .. } => (down.is_zero() || up.is_zero()).then_some("one way of an exchange"),
        Workload::Bursts { size, .. } => size.is_zero().then_some("a burst"),
        Workload::Tcp { extent: Extent::File(size) | Extent::Repeat(size), .. } => {
            size.is_zero().then_some("a competing TCP file")
        }
        Workload::Tcp { .. } => None,
        Workload::Web { protocol: Protocol::Http1 { connections: 0 }, .. } => Some("the set of connections of a page"),
        Workload::Web { page, .. } | Workload::Interactive { page, .. } => {
            return page.check().map_err(|what| SpecError::Page { workload: number, what });
        }
        Workload::Udp { rate, packet, .. } => {
            (rate.is_zero() || packet.is_zero()).then_some("a UDP packet or its rate")
        }
    };
    empty.map_or(Ok(()), |what| Err(SpecError::Empty(what)))
}

/// That every path that is named exists.
pub(crate) fn names<P: Clone>(spec: &Spec, topology: &Topology<P>) -> Result<(), SpecError> {
    let paths = || spec.paths.iter().map(|path| path.name.as_str());
    let unknown = |what: String, name: &str, known: Vec<&str>| {
        Err(SpecError::UnknownPath { what, name: name.to_owned(), known: known.join(", ") })
    };
    for (number, workload) in spec.workloads.iter().enumerate() {
        if let Workload::Udp { path, .. } | Workload::Tcp { path, .. } = workload
            && topology.path_named(path).is_none()
        {
            return unknown(format!("workload {}", number + 1), path, paths().collect());
        }
    }
    for timed in &spec.changes {
        if topology.affected(&timed.path, timed.affected).is_none() {
            let known = paths().chain(spec.shared.iter().map(|link| link.name.as_str())).collect();
            return unknown(format!("a change at {}", timed.at), &timed.path, known);
        }
    }
    Ok(())
}

/// What one octet of an address can tell apart, 255 left out.
const ADDRESSES: usize = 255;
/// Pairs of hosts besides the main one.
const PAIRS: usize = 126;
