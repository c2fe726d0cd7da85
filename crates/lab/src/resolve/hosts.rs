//! Hosts: a profile, the settings changed in it, and the policies.

use super::policies::{self, Found, build, given};
use crate::error::Problem;
use crate::file::{At, HostTable, HyStartName, LossResponseName, Policy, ReceiveBuffer, ReceiveTuningName, RtoName};
use crate::variant::Chosen;
use anabranch_engine::{Policies, Profile, ReceiveTuning, RtoRule};
use anabranch_policy::congestion::{HyStart, LossResponse};
use anabranch_policy::registry::Kind;
use anabranch_policy::{Catalogue, Table};
use anabranch_sim::HostSpec;
use anabranch_units::suggest;
use anabranch_units::{Bytes, Duration};

/// Maximum number of subflows of a connection.
const MAX_SUBFLOWS: usize = 16;

/// Resolves a host from several tables, of which the later ones override the earlier ones.
pub(super) fn host(
    catalogue: &Catalogue,
    tables: &[&HostTable],
    paths: &[String],
) -> Result<(HostSpec, Chosen), Problem> {
    let profile = match last(tables, |table| table.profile.as_ref()) {
        None => Profile::anabranch(),
        Some(at) => Profile::named(&at.value).ok_or_else(|| no_profile(at))?,
    };
    let c = catalogue;
    let (scheduler, scheduler_chosen) = policy(&c.schedulers, profile.scheduler, tables, |t| t.scheduler.as_ref())?;
    let (congestion, congestion_chosen) =
        policy(&c.congestion, Policies::CONGESTION, tables, |t| t.congestion.as_ref())?;
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
    for table in tables {
        settings(table, &mut host)?;
        knobs(table, &mut host.config.profile)?;
    }
    Ok((host, chosen))
}

/// Makes the error for an unknown profile, or for one that was renamed.
fn no_profile(at: &At<String>) -> Problem {
    let problem = format!("there is no profile `{}`", at.value);
    let hint = Profile::renamed(&at.value)
        .map_or_else(|| suggest(&at.value, Profile::NAMES.iter().copied()), |new| format!("it is called `{new}` now"));
    Problem::at(&at.span, problem, hint)
}

/// Makes a send buffer that no table gives large enough for the receive buffer of the other host (RFC 8684 §3.3.5).
pub(super) fn fit_send_buffer(host: &mut HostSpec, tables: &[&HostTable], receive_buffer: Bytes) {
    if tables.iter().all(|table| table.send_buffer.is_none()) {
        host.config.send_buffer = host.config.send_buffer.max(receive_buffer);
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

fn settings(table: &HostTable, host: &mut HostSpec) -> Result<(), Problem> {
    let empty = |key: &str, span| Problem::at(span, format!("`{key}` is empty"), "accepted: any size from 1B");
    if let Some(at) = &table.send_buffer {
        host.config.send_buffer = at.value.0;
        if host.config.send_buffer.is_zero() {
            return Err(empty("send-buffer", &at.span));
        }
    }
    if let Some(at) = &table.receive_buffer {
        (host.config.initial_receive_buffer, host.config.receive_buffer) = match at.value {
            ReceiveBuffer::Fixed(size) => (None, size),
            ReceiveBuffer::Tuned { initial, max } if initial > max => {
                let problem = format!("`receive-buffer` begins with {initial} and ends with {max}");
                return Err(Problem::at(&at.span, problem, "accepted: `initial` up to `max`"));
            }
            ReceiveBuffer::Tuned { initial, max } => (Some(initial), max),
        };
        if host.config.initial_receive_buffer.unwrap_or(host.config.receive_buffer).is_zero() {
            return Err(empty("receive-buffer", &at.span));
        }
    }
    put(&mut host.config.multipath, table.multipath);
    put(&mut host.config.max_subflows, within("max-subflows", table.max_subflows.as_ref(), MAX_SUBFLOWS)?);
    put(&mut host.config.full_mesh, table.full_mesh);
    put(&mut host.config.announce, table.announce);
    put(&mut host.config.checksum, table.dss_checksum);
    put(&mut host.config.ack_rewrite, table.ack_rewrite);
    put(&mut host.config.ack_caution, table.ack_caution);
    put(&mut host.config.rejoin, table.rejoin.map(|span| span.0));
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
            RtoRule::Rfc6298 { min, .. } | RtoRule::MptcpNs3 { min } => *min = floor,
        }
    }
    put(&mut profile.initial_rto, span(&table.initial_rto));
    put(&mut profile.max_rto, span(&table.max_rto));
    put(&mut profile.idle_restart, table.idle_restart);
    put(&mut profile.cwnd_limited_check, table.cwnd_limited_check);
    put(&mut profile.tsq, table.tsq.map(|span| span.0));
    put(&mut profile.tsq_segments, at_least(1, "tsq-segments", table.tsq_segments.as_ref())?);
    let tuning = |name| match name {
        ReceiveTuningName::Proportional => ReceiveTuning::Proportional,
        ReceiveTuningName::Stepwise => ReceiveTuning::Stepwise,
    };
    put(&mut profile.receive_tuning, table.receive_tuning.map(tuning));
    if let Some(at) = table.adv_win_scale.as_ref().filter(|at| !(-31..=31).contains(&at.value)) {
        return Err(Problem::at(&at.span, format!("`adv-win-scale` is {}", at.value), "accepted: -31 to 31"));
    }
    put(&mut profile.adv_win_scale, table.adv_win_scale.as_ref().map(|at| Some(at.value)));
    put(&mut profile.initial_ssthresh, at_least(2, "initial-ssthresh", table.initial_ssthresh.as_ref())?.map(Some));
    put(&mut profile.temporal_sharing, table.temporal_sharing);
    let hystart = |name| match name {
        HyStartName::Off => None,
        HyStartName::Sixteenth => Some(HyStart::Sixteenth),
        HyStartName::Eighth => Some(HyStart::Eighth),
        HyStartName::PlusPlus => Some(HyStart::PlusPlus),
    };
    put(&mut profile.hystart, table.hystart.map(hystart));
    put(&mut profile.prr, table.prr);
    let response = |name| match name {
        LossResponseName::Standard => LossResponse::Standard,
        LossResponseName::Linux => LossResponse::Linux,
        LossResponseName::Halve => LossResponse::Halve,
    };
    put(&mut profile.loss_response, table.loss_response.map(response));
    put(&mut profile.single_repair, table.single_repair);
    put(&mut profile.coupled_acks, table.coupled_acks);
    put(&mut profile.syn_retries, table.syn_retries);
    put(&mut profile.max_consecutive_rtos, table.max_consecutive_rtos);
    Ok(())
}

/// Returns the rule with the minimum of Linux and mptcp-ns3 (200 ms) or of RFC 6298 §2.4 (1 s).
fn default_rule(name: RtoName) -> RtoRule {
    match name {
        RtoName::Linux => RtoRule::Linux { min_var: Duration::from_millis(200) },
        RtoName::MptcpNs3 => RtoRule::MptcpNs3 { min: Duration::from_millis(200) },
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

fn at_least(least: u32, key: &str, given: Option<&At<u32>>) -> Result<Option<u32>, Problem> {
    match given {
        Some(at) if at.value < least => {
            let accepted = format!("accepted: {least} segments or more");
            Err(Problem::at(&at.span, format!("`{key}` is {}", at.value), accepted))
        }
        given => Ok(given.map(|at| at.value)),
    }
}

fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
