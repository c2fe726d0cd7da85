//! The state of one end of a connection at a moment: what it waits for. For those who explain a run.

use anabranch_units::{Bytes, Duration, Instant, Rate, SubflowId};
use anabranch_wire::FlowKey;
use std::net::IpAddr;

/// One end of a connection, as its driver finds it when nothing more can be sent now.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// A subflow is established, and it is known whether the connection is MPTCP.
    pub open: bool,
    /// Bytes written and never sent.
    pub unsent: u64,
    /// Bytes of these that the peer's window admits.
    pub sendable: u64,
    /// Bytes sent and not acknowledged at the data level.
    pub outstanding: u64,
    /// First byte of the peer's stream that has not arrived.
    pub expected: u64,
    /// Bytes in order that the application has not read.
    pub unread: u64,
    /// Bytes held behind a hole, at the data level or on their subflow.
    pub held: u64,
    /// Subflows in the order of their identifiers.
    pub subflows: Vec<SubflowInfo>,
}

/// One end of a subflow at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SubflowInfo {
    /// Identifier of the subflow.
    pub id: SubflowId,
    /// Our address.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// Obstacle to the next segment of new data.
    pub wait: Wait,
    /// Payload of a full segment.
    pub mss: u32,
    /// Retransmission timeouts so far.
    pub timeouts: u64,
    /// Bytes that the peer has acknowledged, cumulatively or selectively.
    pub delivered: u64,
    /// Rate of the path towards the peer; `None` while no queue was seen there.
    pub path_rate: Option<Rate>,
    /// Phase of a congestion control that models the path; `None` for others.
    pub phase: Option<&'static str>,
    /// Time at which the peer last sent something on it.
    pub heard: Instant,
}

/// Loss recovery and congestion control of one subflow at a moment, as a sender knows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SubflowMetrics {
    /// Identifier of the subflow.
    pub id: SubflowId,
    /// Addresses and ports as this end sees them.
    pub flow: FlowKey,
    /// Smallest sample of the round-trip time; `None` before the first, as in the three fields below.
    pub min_rtt: Option<Duration>,
    /// Smoothed round-trip time (RFC 6298).
    pub srtt: Option<Duration>,
    /// Latest sample of the round-trip time.
    pub latest_rtt: Option<Duration>,
    /// Variation of the round-trip time (RFC 6298), without floor.
    pub rttvar: Option<Duration>,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow-start threshold; `None` before the first loss.
    pub ssthresh: Option<Bytes>,
    /// Bytes sent and neither acknowledged nor believed lost, plus retransmissions under way.
    pub in_flight: Bytes,
    /// Pacing rate set by congestion control; `None` if it does not pace.
    pub pacing: Option<Rate>,
}

/// Obstacle to the next segment of new data on a subflow. Of several the first in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Wait {
    /// The handshake is not complete, or nothing was measured on the subflow yet.
    Handshake,
    /// A timeout has fired, and what was under way then is not repaired.
    Timeout,
    /// Policies are not shown the subflow: it is a backup beside regular ones, has failed, or is being closed.
    SetAside,
    /// The congestion window is full, and grows as in slow start.
    SlowStart,
    /// The congestion window is full.
    CongestionWindow,
    /// Pacing or TCP Small Queues hold the next segment back.
    Pacing,
    /// The peer's window for this subflow alone, or its share of the peer's window, is used up.
    PeerWindow,
    /// None: it has room.
    Room,
}
