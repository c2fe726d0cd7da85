//! Serialisable report of a connection (`--json`, events).

use anabranch_engine::path_use::PathUse;
use anabranch_engine::{ConnectionId, Counters, Endpoint};
use anabranch_units::Duration;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// One end of a connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectionReport {
    /// Bytes that the peer has acknowledged at the data level.
    pub bytes_sent: u64,
    /// Bytes read.
    pub bytes_received: u64,
    /// Why MPTCP was given up, if it was.
    pub fallback: Option<String>,
    /// Bytes sent again on another subflow.
    pub reinjected: u64,
    /// Bytes received more than once at the data level.
    pub duplicates: u64,
    /// Receiver: how long arrived bytes waited behind missing ones \[s\].
    pub hol_blocked_s: f64,
    /// Its subflows, those that are gone included.
    pub subflows: Vec<SubflowReport>,
    /// The same for sentences.
    #[serde(skip)]
    pub path_use: PathUse,
}

/// One end of a subflow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubflowReport {
    /// Its number.
    pub id: u16,
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// Used only when no other works.
    pub backup: bool,
    /// Payload bytes sent, repeated ones included.
    pub bytes_sent: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// Segments sent again here.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub rtos: u64,
    /// Bytes carried here that had left on another subflow before.
    pub reinjected: u64,
    /// Smoothed RTT \[s\], once measured.
    pub srtt_s: Option<f64>,
    /// Congestion window \[B\].
    pub cwnd: u64,
}

/// Counters of the endpoint that indicate trouble, without those that are zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CounterReport(pub BTreeMap<String, u64>);

impl ConnectionReport {
    /// The connection as it is now, or as it was when it ended.
    pub fn of(endpoint: &Endpoint, id: ConnectionId) -> Option<Self> {
        let stats = endpoint.connection(id)?;
        let subflows = endpoint.subflows(id);
        let path_use = PathUse::of(&stats, &subflows);
        let subflows = subflows.into_iter().map(|subflow| SubflowReport {
            id: subflow.id.0,
            local: subflow.local,
            remote: subflow.remote,
            backup: subflow.backup,
            bytes_sent: subflow.bytes_sent,
            bytes_received: subflow.bytes_received,
            retransmitted: subflow.retransmitted,
            rtos: subflow.rtos,
            reinjected: subflow.reinjected,
            srtt_s: subflow.srtt.map(Duration::as_secs_f64),
            cwnd: subflow.cwnd.get(),
        });
        Some(ConnectionReport {
            bytes_sent: stats.data_acked,
            bytes_received: stats.delivered,
            fallback: stats.fallback.map(|reason| reason.name().to_owned()),
            reinjected: stats.reinjected,
            duplicates: stats.duplicates,
            hol_blocked_s: stats.hol_blocked.as_secs_f64(),
            subflows: subflows.collect(),
            path_use,
        })
    }
}

impl CounterReport {
    /// Collects all of `counters`.
    pub fn of(counters: &Counters) -> Self {
        let mut all = BTreeMap::new();
        let Counters {
            fallbacks,
            resets_sent,
            resets_received,
            reset_reasons_received,
            conflicting_add_addr,
            reopened,
            joins_refused,
            cookies_sent,
            cookies_received,
            cookies_invalid,
            half_open_dropped,
            joins_deferred,
            deferred_joins_received,
            half_open_joins_dropped,
            unknown_flow,
            unacceptable,
            refused_data,
            checksum_failures,
            fails_received,
            bad_add_addr,
            too_big,
            too_big_ignored,
            black_holes,
        } = counters;
        for (name, count) in [
            ("resets-received", resets_received),
            ("too-big", too_big),
            ("too-big-ignored", too_big_ignored),
            ("black-holes", black_holes),
            ("conflicting-add-addr", conflicting_add_addr),
            ("reopened", reopened),
            ("joins-refused", joins_refused),
            ("cookies-sent", cookies_sent),
            ("cookies-received", cookies_received),
            ("cookies-invalid", cookies_invalid),
            ("half-open-dropped", half_open_dropped),
            ("joins-deferred", joins_deferred),
            ("deferred-joins-received", deferred_joins_received),
            ("half-open-joins-dropped", half_open_joins_dropped),
            ("unknown-flow", unknown_flow),
            ("unacceptable", unacceptable),
            ("refused-data", refused_data),
            ("checksum-failures", checksum_failures),
            ("fails-received", fails_received),
            ("bad-add-addr", bad_add_addr),
        ] {
            all.insert(name.to_owned(), *count);
        }
        all.extend(fallbacks.iter().map(|(reason, count)| (format!("fallback-{}", reason.name()), *count)));
        all.extend(resets_sent.iter().map(|(reason, count)| (format!("reset-sent-{}", reason.name()), *count)));
        let received = reset_reasons_received.iter();
        all.extend(received.map(|(reason, count)| (format!("reset-received-{}", reason.name()), *count)));
        all.retain(|_, count| *count > 0);
        CounterReport(all)
    }
}
