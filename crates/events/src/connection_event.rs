//! Events of connections and subflows, as an endpoint tells its application of them. Data that moves is not among them.

use crate::ConnectionReport;
use anabranch_engine::{ConnectionId, Endpoint, Event, SubflowStats};
use anabranch_units::{Instant, SubflowId};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::net::SocketAddr;

/// Line of a journal: an event of a connection.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ConnectionEvent {
    /// Time since the start, in seconds.
    pub time_s: f64,
    /// Number of the connection in the file, from 1.
    pub connection: u64,
    /// Event with its fields.
    #[serde(flatten)]
    pub happened: Happened,
}

/// Event of a connection. Its name in JSON is that of the engine's event.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Happened {
    /// A connection that this end opened is established.
    Connected(Opened),
    /// A connection is established anew on another path: the first path died before the peer had heard of it.
    Reopened(Opened),
    /// A peer connected to a listening port.
    Accepted(Opened),
    /// The peer closed its direction, and everything it sent was read.
    PeerFinished,
    /// Both directions are closed in order; the connection is gone.
    Closed(Ended),
    /// The connection was aborted, by the peer or because nothing got through any more; it is gone.
    Reset(Ended),
    /// MPTCP was given up for plain TCP.
    Fallback {
        /// Reason of the fallback.
        reason: &'static str,
    },
    /// A subflow may carry data.
    SubflowEstablished(SubflowPlace),
    /// A subflow is gone.
    SubflowClosed(SubflowPlace),
    /// The peer reset a subflow and said why (MP_TCPRST, RFC 8684 §3.6).
    SubflowReset {
        /// Number of the subflow in its connection.
        subflow: u16,
        /// Reason that the peer gave.
        reason: Cow<'static, str>,
        /// The peer says that trying again later may work.
        transient: bool,
    },
    /// The scheduler asked for something that the engine does not carry out, for the first time of this kind.
    SchedulerOverruled {
        /// Decision of the scheduler.
        why: &'static str,
    },
    /// A congestion control that models the path goes to another phase of its state machine.
    CongestionPhase {
        /// Number of the subflow in its connection.
        subflow: u16,
        /// Name of the new phase.
        phase: &'static str,
    },
}

// The schema of an alternative has all its fields: a definition by reference would be closed without those around it.

/// Beginning of a connection.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Opened {
    /// MPTCP was negotiated.
    pub multipath: bool,
    /// Address and port of this end of the first subflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<SocketAddr>,
    /// Address and port of the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<SocketAddr>,
}

/// End of a connection.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Ended {
    /// Sentence about a connection that was slower than its best path alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow: Option<String>,
    /// Statistics of the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_stats: Option<ConnectionReport>,
}

/// A subflow and its addresses.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct SubflowPlace {
    /// Number of the subflow in its connection.
    pub subflow: u16,
    /// Address and port of this end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<SocketAddr>,
    /// Address and port of the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<SocketAddr>,
    /// The subflow is a backup (RFC 8684 §3.3.8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<bool>,
}

impl ConnectionEvent {
    /// Returns the line about an event of the connection with this number, or `None` for one of data that moves. `slow`
    /// is the sentence about a slow connection at its end.
    pub fn of(
        now: Instant,
        connection: u64,
        endpoint: &Endpoint,
        id: ConnectionId,
        event: Event,
        slow: Option<String>,
    ) -> Option<Self> {
        let happened = Happened::of(endpoint, id, event, slow)?;
        Some(ConnectionEvent { time_s: now.as_secs_f64(), connection, happened })
    }
}

impl Happened {
    fn of(endpoint: &Endpoint, id: ConnectionId, event: Event, slow: Option<String>) -> Option<Self> {
        let ended = |slow| Ended { slow, connection_stats: ConnectionReport::of(endpoint, id) };
        Some(match event {
            Event::Connected { multipath } => Happened::Connected(Opened::of(endpoint, id, multipath)),
            Event::Reopened { multipath } => Happened::Reopened(Opened::of(endpoint, id, multipath)),
            Event::Accepted { multipath } => Happened::Accepted(Opened::of(endpoint, id, multipath)),
            Event::PeerFinished => Happened::PeerFinished,
            Event::Closed => Happened::Closed(ended(slow)),
            Event::Reset => Happened::Reset(ended(slow)),
            Event::Fallback(reason) => Happened::Fallback { reason: reason.name() },
            Event::SubflowEstablished(id_of) => Happened::SubflowEstablished(SubflowPlace::of(endpoint, id, id_of)),
            Event::SubflowClosed(id_of) => Happened::SubflowClosed(SubflowPlace::of(endpoint, id, id_of)),
            Event::SubflowReset { subflow, reason, transient } => {
                Happened::SubflowReset { subflow: subflow.0, reason: reason.name(), transient }
            }
            Event::SchedulerOverruled(why) => Happened::SchedulerOverruled { why: why.name() },
            Event::CongestionPhase { subflow, phase } => Happened::CongestionPhase { subflow: subflow.0, phase },
            _ => return None,
        })
    }

    /// Returns the subflow that the event is about, if it is about one.
    pub fn subflow(&self) -> Option<SubflowId> {
        match self {
            Happened::SubflowEstablished(place) | Happened::SubflowClosed(place) => Some(SubflowId(place.subflow)),
            Happened::SubflowReset { subflow, .. } | Happened::CongestionPhase { subflow, .. } => {
                Some(SubflowId(*subflow))
            }
            _ => None,
        }
    }
}

impl Opened {
    fn of(endpoint: &Endpoint, id: ConnectionId, multipath: bool) -> Self {
        let all = endpoint.subflow_stats(id);
        let (local, remote) = addresses(all.first());
        Opened { multipath, local, remote }
    }
}

impl SubflowPlace {
    fn of(endpoint: &Endpoint, id: ConnectionId, subflow: SubflowId) -> Self {
        let all = endpoint.subflow_stats(id);
        let stats = all.iter().find(|stats| stats.id == subflow);
        let (local, remote) = addresses(stats);
        SubflowPlace { subflow: subflow.0, local, remote, backup: stats.map(|stats| stats.backup) }
    }
}

fn addresses(subflow: Option<&SubflowStats>) -> (Option<SocketAddr>, Option<SocketAddr>) {
    (subflow.map(|stats| stats.local), subflow.map(|stats| stats.remote))
}
