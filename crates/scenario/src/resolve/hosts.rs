//! Hosts: a profile, the settings changed in it, and the policies.

use super::policies::{self, Found, build, given};
use super::settings::{Given, HostSettings};
use crate::error::Problem;
use crate::file::{At, HostTable, Policy, ReceiveBuffer};
use crate::variant::Chosen;
use anabranch_engine::{Policies, Profile};
use anabranch_policy::registry::Kind;
use anabranch_policy::{Catalogue, Table};
use anabranch_sim::HostSpec;
use anabranch_units::Bytes;
use anabranch_units::suggest;

/// Maximum number of addresses of a host: MPTCP has identifiers for 255 (RFC 8684 §3.4.1).
const MAX_ADDRESSES: usize = 255;

/// Resolves a host from several tables, of which the later ones override the earlier ones.
pub(super) fn host(
    catalogue: &Catalogue,
    layers: &[&HostSettings],
    paths: &[String],
) -> Result<(HostSpec, Chosen), Problem> {
    let tables: Vec<&HostTable> = layers.iter().map(|layer| &layer.table).collect();
    let tables = tables.as_slice();
    let profile = match last(tables, |table| table.profile.as_ref()) {
        None => Profile::anabranch(),
        Some(at) => Profile::named(&at.value).ok_or_else(|| no_profile(at))?,
    };
    let c = catalogue;
    let (scheduler, scheduler_chosen) = policy(&c.schedulers, profile.scheduler, tables, |t| t.scheduler.as_ref())?;
    let (congestion, congestion_chosen) = policy(&c.congestion, profile.congestion, tables, |t| t.congestion.as_ref())?;
    let (receive_window, window_chosen) = policy(&c.windows, Policies::RECEIVE_WINDOW, tables, |t| t.window.as_ref())?;
    let (mut ack_path, mut ack_path_chosen) = build(&c.ack_paths, &Policy::named(Policies::ACK_PATH), &(0..0))?;
    for at in tables.iter().filter_map(|table| table.ack_path.as_ref()) {
        (ack_path, ack_path_chosen) = policies::ack_path(&c.ack_paths, at, paths)?;
    }
    let (reinjection, reinjection_chosen) =
        policy(&c.reinjections, profile.reinjection, tables, |t| t.reinjection.as_ref())?;
    let (first_path, first_path_chosen) =
        policy(&c.first_paths, profile.first_path, tables, |t| t.first_path.as_ref())?;
    let chosen = Chosen {
        profile: profile.name.to_owned(),
        scheduler: scheduler_chosen,
        congestion: congestion_chosen,
        window: window_chosen,
        ack_path: ack_path_chosen,
        reinjection: reinjection_chosen,
        first_path: first_path_chosen,
    };
    let policies = Policies { scheduler, congestion, receive_window, ack_path, reinjection, first_path };
    let mut host = HostSpec::new(profile, policies);
    for layer in layers {
        own_keys(&layer.table, &mut host)?;
        for Given { setting, value } in &layer.given {
            setting.put(&mut host.config, *value).expect("the values of settings were checked when they were read");
        }
    }
    Ok((host, chosen))
}

/// Makes the error for an unknown profile, or for one that was renamed.
fn no_profile(at: &At<String>) -> Problem {
    let problem = format!("there is no profile `{}`", at.value);
    let hint = Profile::renamed(&at.value)
        .map_or_else(|| suggest(&at.value, Profile::NAMES.iter().copied()), |new| format!("it was renamed to `{new}`"));
    Problem::at(&at.span, problem, hint)
}

/// Makes a send buffer that no table gives large enough for the receive buffer of the other host (RFC 8684 §3.3.5); a
/// buffer that is given is of fixed size.
pub(super) fn fit_send_buffer(host: &mut HostSpec, layers: &[&HostSettings], receive_buffer: Bytes) {
    let gives = |name| layers.iter().any(|layer| layer.gives(name));
    if !gives("send-buffer") {
        host.config.send_buffer = host.config.send_buffer.max(receive_buffer);
    } else if !gives("subflow-send-buffer") {
        host.config.profile.subflow_send_buffer = None;
    }
}

/// Builds the policy that the last table names, or else the default. Overridden names are checked too.
fn policy<'a, T: Kind + ?Sized>(
    table: &Table<T>,
    default: &str,
    tables: &[&'a HostTable],
    key: impl Fn(&'a HostTable) -> Option<&'a At<Policy>>,
) -> Result<Found<T>, Problem> {
    let mut found = None;
    for host in tables {
        found = given(table, key(host))?.or(found);
    }
    found.map_or_else(|| build(table, &Policy::named(default), &(0..0)), Ok)
}

fn last<'a, T>(tables: &[&'a HostTable], key: impl Fn(&'a HostTable) -> Option<&'a T>) -> Option<&'a T> {
    tables.iter().rev().find_map(|table| key(table))
}

fn own_keys(table: &HostTable, host: &mut HostSpec) -> Result<(), Problem> {
    if let Some(at) = &table.receive_buffer {
        let (initial, size) = match at.value {
            ReceiveBuffer::Fixed(size) => (None, size),
            ReceiveBuffer::Tuned { initial, max } if initial > max => {
                let problem = format!("`receive-buffer` begins with {initial} and ends with {max}");
                return Err(Problem::at(&at.span, problem, "accepted: `initial` up to `max`"));
            }
            ReceiveBuffer::Tuned { initial, max } => (Some(initial), max),
        };
        if initial.unwrap_or(size).is_zero() {
            return Err(Problem::at(&at.span, "`receive-buffer` is empty", "accepted: any size from 1B"));
        }
        (host.config.initial_receive_buffer, host.config.receive_buffer) = (initial, size);
    }
    if let Some(at) = &table.addresses {
        if !(1..=MAX_ADDRESSES).contains(&at.value) {
            let problem = format!("`addresses` is {}", at.value);
            return Err(Problem::at(&at.span, problem, format!("accepted: 1 to {MAX_ADDRESSES}")));
        }
        host.addresses = at.value;
    }
    Ok(())
}
