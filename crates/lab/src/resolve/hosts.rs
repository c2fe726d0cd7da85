//! Hosts: a profile, what is changed in it, and the policies.

use super::policies::given;
use crate::error::{Problem, suggest};
use crate::file::{At, HostTable, Policy, RtoName};
use anabranch_engine::{Policies, Profile, RtoRule};
use anabranch_policy::registry::{ACK_PATHS, CONGESTION, REINJECTIONS, SCHEDULERS, WINDOWS};
use anabranch_sim::HostSpec;
use anabranch_units::Duration;

/// The policies of a host by name, for reports.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Chosen {
    /// The profile it starts from.
    pub profile: String,
    /// Which bytes leave on which subflow.
    pub scheduler: String,
    /// How much may be in flight.
    pub congestion: String,
    /// How the peer's window is shared out.
    pub window: String,
    /// Which path an ACK takes.
    pub ack_path: String,
    /// When bytes in flight are repeated elsewhere.
    pub reinjection: String,
}

/// Most subflows a connection can have.
const MAX_SUBFLOWS: usize = 16;

/// A host after several tables, of which the later ones override.
pub(super) fn host(tables: &[&HostTable]) -> Result<(HostSpec, Chosen), Problem> {
    let profile = match last(tables, |table| table.profile.as_ref()) {
        None => Profile::linux(),
        Some(at) => Profile::named(&at.value).ok_or_else(|| {
            Problem::at(&at.span, format!("there is no profile `{}`", at.value), suggest(&at.value, Profile::NAMES))
        })?,
    };
    let policies = Policies::default();
    let mut chosen = Chosen {
        profile: profile.name.to_owned(),
        scheduler: "min-rtt".to_owned(),
        congestion: "lia".to_owned(),
        window: "shared".to_owned(),
        ack_path: "own".to_owned(),
        reinjection: "opportunistic".to_owned(),
    };
    let mut host = HostSpec::new(profile, policies);
    for table in tables {
        policies_of(table, &mut host.policies, &mut chosen)?;
        settings(table, &mut host)?;
        knobs(table, &mut host.profile)?;
    }
    Ok((host, chosen))
}

fn last<'a, T>(tables: &[&'a HostTable], key: impl Fn(&'a HostTable) -> Option<&'a T>) -> Option<&'a T> {
    tables.iter().rev().find_map(|table| key(table))
}

fn policies_of(table: &HostTable, policies: &mut Policies, chosen: &mut Chosen) -> Result<(), Problem> {
    let note = |name: &mut String, given: &Option<At<Policy>>| {
        if let Some(at) = given {
            *name = at.value.to_string();
        }
    };
    put(&mut policies.scheduler, given(SCHEDULERS, "scheduler", table.scheduler.as_ref())?);
    put(&mut policies.congestion, given(CONGESTION, "congestion control", table.congestion.as_ref())?);
    put(&mut policies.receive_window, given(WINDOWS, "receive window", table.window.as_ref())?);
    put(&mut policies.ack_path, given(ACK_PATHS, "ACK path", table.ack_path.as_ref())?);
    put(&mut policies.reinjection, given(REINJECTIONS, "reinjection", table.reinjection.as_ref())?);
    note(&mut chosen.scheduler, &table.scheduler);
    note(&mut chosen.congestion, &table.congestion);
    note(&mut chosen.window, &table.window);
    note(&mut chosen.ack_path, &table.ack_path);
    note(&mut chosen.reinjection, &table.reinjection);
    Ok(())
}

fn settings(table: &HostTable, host: &mut HostSpec) -> Result<(), Problem> {
    for (key, at) in [("send-buffer", &table.send_buffer), ("receive-buffer", &table.receive_buffer)] {
        if let Some(at) = at.as_ref().filter(|at| at.value.0.is_zero()) {
            return Err(Problem::at(&at.span, format!("`{key}` is empty"), "accepted: any size from 1B"));
        }
    }
    put(&mut host.send_buffer, table.send_buffer.as_ref().map(|at| at.value.0));
    put(&mut host.receive_buffer, table.receive_buffer.as_ref().map(|at| at.value.0));
    put(&mut host.multipath, table.multipath);
    put(&mut host.max_subflows, within("max-subflows", table.max_subflows.as_ref(), MAX_SUBFLOWS)?);
    put(&mut host.full_mesh, table.full_mesh);
    put(&mut host.announce, table.announce);
    put(&mut host.dss_checksum, table.dss_checksum);
    put(&mut host.rejoin, table.rejoin.map(|span| span.0));
    put(&mut host.addresses, within("addresses", table.addresses.as_ref(), 255)?);
    Ok(())
}

fn knobs(table: &HostTable, profile: &mut Profile) -> Result<(), Problem> {
    let span = |at: &Option<crate::file::Of<Duration>>| at.as_ref().map(|at| at.value.0);
    put(&mut profile.mss, table.mss.as_ref().map(|at| at.value));
    if let Some(at) = table.mss.as_ref().filter(|at| !(64..=9216).contains(&at.value)) {
        return Err(Problem::at(&at.span, format!("`mss` is {}", at.value), "accepted: 64 to 9216 bytes"));
    }
    put(&mut profile.initial_window, table.initial_window);
    put(&mut profile.sack, table.sack);
    put(&mut profile.timestamps, table.timestamps);
    put(&mut profile.window_scaling, table.window_scaling);
    put(&mut profile.rack, table.rack);
    put(&mut profile.tlp, table.tlp);
    put(&mut profile.early_retransmit, table.early_retransmit);
    put(&mut profile.delayed_ack, table.delayed_ack.map(|span| span.0));
    put(&mut profile.quick_acks, table.quick_acks);
    put(&mut profile.nagle, table.nagle);
    put(&mut profile.rto, table.rto.map(default_rule));
    if let Some(floor) = span(&table.min_rto) {
        match &mut profile.rto {
            RtoRule::Linux { min_var } => *min_var = floor,
            RtoRule::Rfc6298 { min, .. } => *min = floor,
        }
    }
    put(&mut profile.initial_rto, span(&table.initial_rto));
    put(&mut profile.max_rto, span(&table.max_rto));
    put(&mut profile.idle_restart, table.idle_restart);
    put(&mut profile.cwnd_limited_check, table.cwnd_limited_check);
    put(&mut profile.tsq, table.tsq.map(|span| span.0));
    put(&mut profile.syn_retries, table.syn_retries);
    put(&mut profile.max_consecutive_rtos, table.max_consecutive_rtos);
    Ok(())
}

/// With the floors that Linux (200 ms) and RFC 6298 §2.4 (1 s) have.
fn default_rule(name: RtoName) -> RtoRule {
    match name {
        RtoName::Linux => RtoRule::Linux { min_var: Duration::from_millis(200) },
        RtoName::Rfc6298 => RtoRule::Rfc6298 { min: Duration::from_secs(1), granularity: Duration::from_millis(1) },
    }
}

fn within(key: &str, given: Option<&At<usize>>, most: usize) -> Result<Option<usize>, Problem> {
    match given {
        Some(at) if !(1..=most).contains(&at.value) => {
            Err(Problem::at(&at.span, format!("`{key}` is {}", at.value), format!("accepted: 1 to {most}")))
        }
        given => Ok(given.map(|at| at.value)),
    }
}

fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
