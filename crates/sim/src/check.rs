//! Refuses runs that cannot be, before they start.

use crate::page::Protocol;
use crate::{Extent, Host, Spec, SpecError, Workload};
use anabranch_paths::NetworkError;

/// Checks what the network does not: hosts and workloads.
pub(crate) fn check(spec: &Spec) -> Result<(), SpecError> {
    if !(1..=ADDRESSES).contains(&spec.server.addresses) {
        return Err(SpecError::ServerAddresses(spec.server.addresses));
    }
    for (host, settings) in [("client", &spec.client), ("server", &spec.server)] {
        settings.config.check().map_err(|error| SpecError::Host { host, error })?;
    }
    let hosts = spec.hosts_per_client();
    let competing = hosts / 2 - 1;
    if competing > COMPETING {
        return Err(SpecError::CompetingTcp(competing));
    }
    let most = spec.most_clients();
    if !(1..=most).contains(&spec.clients) {
        return Err(SpecError::Clients { clients: spec.clients, hosts, most });
    }
    if let Some(timed) = spec.restarts.iter().find(|timed| !matches!(timed.host, Host::Client | Host::Server)) {
        return Err(SpecError::Restart(timed.host));
    }
    for (number, it) in (1..).zip(&spec.workloads) {
        workload(number, it)?;
        if let Workload::Udp { path, .. } | Workload::Tcp { path, .. } = it
            && !spec.network.paths.iter().any(|known| known.name == *path)
        {
            let known = spec.network.paths.iter().map(|path| path.name.as_str()).collect();
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

/// Values that one octet of an address can have, 255 left out.
const ADDRESSES: usize = 255;
/// Competing TCP workloads: their pairs of hosts are numbered in one octet.
const COMPETING: usize = 255;
