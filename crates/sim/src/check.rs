//! Refuses runs that cannot be, before they start.

use crate::page::Protocol;
use crate::{Extent, Host, Spec, SpecError, Workload};
use anabranch_paths::{NetworkError, Topology};

/// Checks what the network does not: hosts and workloads.
pub(crate) fn check<P: Clone>(spec: &Spec, topology: &Topology<P>) -> Result<(), SpecError> {
    if !(1..=ADDRESSES).contains(&spec.server.addresses) {
        return Err(SpecError::ServerAddresses(spec.server.addresses));
    }
    let competing = spec.workloads.iter().filter(|workload| matches!(workload, Workload::Tcp { .. })).count();
    if competing > PAIRS {
        return Err(SpecError::CompetingTcp(competing));
    }
    if let Some(timed) = spec.restarts.iter().find(|timed| !matches!(timed.host, Host::Client | Host::Server)) {
        return Err(SpecError::Restart(timed.host));
    }
    for (number, it) in (1..).zip(&spec.workloads) {
        workload(number, it)?;
        if let Workload::Udp { path, .. } | Workload::Tcp { path, .. } = it
            && topology.path_named(path).is_none()
        {
            let known = topology.path_names().collect();
            return Err(NetworkError::unknown(format!("workload {number}"), path, known).into());
        }
    }
    Ok(())
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

/// What one octet of an address can tell apart, 255 left out.
const ADDRESSES: usize = 255;
/// Pairs of hosts besides the main one.
const PAIRS: usize = 126;
