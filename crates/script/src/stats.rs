//! Statistics available to `check`.

use crate::peer::World;
use crate::statement::Compare;
use crate::value;
use anabranch_engine::{ConnectionId, Endpoint, SubflowStats};

/// Names without a dot.
pub(crate) const NAMES: &[&str] = &[
    "fallback",
    "subflows",
    "connections",
    "written",
    "sent",
    "data_acked",
    "received",
    "delivered",
    "duplicates",
    "reinjected",
    "ofo_now",
    "ofo_bytes",
    "write_space",
    "drained",
];

/// Names after a subflow and a dot.
const OF_SUBFLOW: &[&str] =
    &["established", "backup", "cwnd", "retransmitted", "rtos", "bytes_sent", "bytes_received", "segments_sent"];

/// The counters of the endpoint.
pub(crate) const COUNTERS: &[&str] = &[
    "resets_received",
    "joins_refused",
    "cookies_sent",
    "cookies_received",
    "cookies_invalid",
    "half_open_dropped",
    "joins_deferred",
    "deferred_joins_received",
    "half_open_joins_dropped",
    "unknown_flow",
    "unacceptable",
    "refused_data",
    "bad_add_addr",
];

/// The value called `name`; `Err` says what would be accepted.
pub(crate) fn value(host: &Endpoint, id: Option<ConnectionId>, world: &World, name: &str) -> Result<String, String> {
    if name == "connections" {
        return Ok(host.connections().to_string());
    }
    if let Some((owner, field)) = name.split_once('.') {
        return of_owner(host, id, world, owner, field);
    }
    if !NAMES.contains(&name) {
        return Err(crate::names::suggest(name, NAMES.iter().copied().chain(["counter.…", "SUBFLOW.…"])));
    }
    let stats = id.and_then(|id| host.connection(id)).unwrap_or_default();
    let subflows = id.map(|id| host.subflows(id)).unwrap_or_default();
    Ok(match name {
        "fallback" => stats.fallback.map_or("none".to_owned(), |reason| reason.name().to_owned()),
        "subflows" => subflows.iter().filter(|subflow| subflow.established).count().to_string(),
        "written" => stats.written.to_string(),
        "sent" => stats.sent.to_string(),
        "data_acked" => stats.data_acked.to_string(),
        "received" => stats.received.to_string(),
        "delivered" => stats.delivered.to_string(),
        "duplicates" => stats.duplicates.to_string(),
        "reinjected" => stats.reinjected.to_string(),
        "ofo_now" => stats.ofo_now.to_string(),
        "ofo_bytes" => stats.ofo_bytes.to_string(),
        _ => id.map_or(0, |id| host.write_space(id)).to_string(),
    })
}

fn of_owner(
    host: &Endpoint,
    id: Option<ConnectionId>,
    world: &World,
    owner: &str,
    field: &str,
) -> Result<String, String> {
    let counters = host.counters();
    match owner {
        "counter" => {
            return Ok(match field {
                "resets_received" => counters.resets_received,
                "joins_refused" => counters.joins_refused,
                "cookies_sent" => counters.cookies_sent,
                "cookies_received" => counters.cookies_received,
                "cookies_invalid" => counters.cookies_invalid,
                "half_open_dropped" => counters.half_open_dropped,
                "joins_deferred" => counters.joins_deferred,
                "deferred_joins_received" => counters.deferred_joins_received,
                "half_open_joins_dropped" => counters.half_open_joins_dropped,
                "unknown_flow" => counters.unknown_flow,
                "unacceptable" => counters.unacceptable,
                "refused_data" => counters.refused_data,
                "bad_add_addr" => counters.bad_add_addr,
                _ => return Err(crate::names::suggest(field, COUNTERS.iter().copied())),
            }
            .to_string());
        }
        "fallbacks" => {
            let count = counters.fallbacks.iter().find(|(reason, _)| reason.name() == field).map_or(0, |(_, n)| *n);
            return Ok(count.to_string());
        }
        "resets_sent" => {
            let count = counters.resets_sent.iter().find(|(reason, _)| reason.name() == field).map_or(0, |(_, n)| *n);
            return Ok(count.to_string());
        }
        _ => {}
    }
    let subflows = id.map(|id| host.subflows(id)).unwrap_or_default();
    let wanted = world.line(owner);
    let found =
        subflows.iter().rev().find(|subflow| wanted.is_some() && world.named(subflow.local, subflow.remote) == wanted);
    let Some(subflow) = found else {
        return if wanted.is_some() && field == "established" {
            Ok("no".to_owned())
        } else {
            Err(format!("`{owner}` is no subflow of this connection; counter, fallbacks and resets_sent go as well"))
        };
    };
    of_subflow(subflow, field).ok_or_else(|| crate::names::suggest(field, OF_SUBFLOW.iter().copied()))
}

fn of_subflow(subflow: &SubflowStats, field: &str) -> Option<String> {
    let yes = |on: bool| if on { "yes" } else { "no" }.to_owned();
    Some(match field {
        "established" => yes(subflow.established),
        "backup" => yes(subflow.backup),
        "cwnd" => subflow.cwnd.get().to_string(),
        "retransmitted" => subflow.retransmitted.to_string(),
        "rtos" => subflow.rtos.to_string(),
        "bytes_sent" => subflow.bytes_sent.to_string(),
        "bytes_received" => subflow.bytes_received.to_string(),
        "segments_sent" => subflow.segments_sent.to_string(),
        _ => return None,
    })
}

/// Evaluates the comparison; `None` if the two values cannot be compared so.
pub(crate) fn holds(got: &str, compare: Compare, wanted: &str) -> Option<bool> {
    match (value::number(got), value::number(wanted)) {
        (Some(got), Some(wanted)) => Some(match compare {
            Compare::Equal => got == wanted,
            Compare::Unequal => got != wanted,
            Compare::Less => got < wanted,
            Compare::AtMost => got <= wanted,
            Compare::More => got > wanted,
            Compare::AtLeast => got >= wanted,
        }),
        _ => match compare {
            Compare::Equal => Some(got == wanted),
            Compare::Unequal => Some(got != wanted),
            _ => None,
        },
    }
}
