//! The answer about live connections, as each line of JSON has it.

use crate::Limit;
use schemars::JsonSchema;
use serde::Serialize;
use std::net::SocketAddr;

/// One interval of the connections that are followed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct LiveAnswer {
    /// End of the interval, since following began \[s\].
    pub time_s: f64,
    /// Length of the interval \[s\].
    pub interval_s: f64,
    /// True if it is about the whole time that was followed.
    pub whole: bool,
    /// Connections, the one that moved most data first.
    pub connections: Vec<LiveConnection>,
}

/// One connection in an interval.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct LiveConnection {
    /// The answer in plain words.
    pub sentence: String,
    /// Address and port of this host, of the first subflow.
    pub local: SocketAddr,
    /// Address and port of the other.
    pub remote: SocketAddr,
    /// True if it is MPTCP and carried by it.
    pub multipath: bool,
    /// True if this host sends most of its data.
    pub sends: bool,
    /// True if it ended in the interval.
    pub ended: bool,
    /// Bytes sent, each once.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Time by limit, the longest first.
    pub shares: Vec<LiveShare>,
    /// Subflows.
    pub subflows: Vec<LiveSubflow>,
}

/// Time that a limit took.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct LiveShare {
    /// The limit; absent where the other host decides, and nothing here tells.
    pub limit: Option<Limit>,
    /// Name of the subflow that is meant, as it stands with that.
    pub path: Option<String>,
    /// Share of the interval.
    pub share: f64,
}

/// One subflow in an interval.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct LiveSubflow {
    /// Name: its address on this host, or that on the other where this host has one address only.
    pub path: String,
    /// Address and port of this host.
    pub local: SocketAddr,
    /// Address and port of the other.
    pub remote: SocketAddr,
    /// True if a side marked it as a backup.
    pub backup: bool,
    /// Bytes sent, each once.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Segments sent again.
    pub retransmitted: u32,
    /// Segments with data sent.
    pub segments: u32,
    /// Smoothed round-trip time at the end \[ms\].
    pub rtt_ms: f64,
    /// Shortest round-trip time \[ms\].
    pub min_rtt_ms: f64,
    /// Congestion window at the end \[B\].
    pub cwnd: u64,
    /// Bytes in flight at the end.
    pub in_flight: u64,
    /// The receiver's window at the end \[B\].
    pub window: u64,
    /// Time with data to send or on its way, as a share of the interval.
    pub busy: f64,
    /// Time in which the receiver's window was full, as a share of the interval.
    pub rwnd_limited: f64,
    /// Time in which the send buffer was full, as a share of the interval.
    pub sndbuf_limited: f64,
    /// The limit that took most of its time.
    pub limit: Option<Limit>,
}
