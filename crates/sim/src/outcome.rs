//! Outcome of a run.

use crate::{Content, Decided, Sample, Sight};
use anabranch_engine::{ConnectionStats, Counters, SubflowStats};
use anabranch_paths::{LinkOutcome, MiddleboxOutcome};
use anabranch_units::{Bytes, Duration, Instant, SubflowId};
use anabranch_wire::DataSeq;
use std::fmt;

/// Everything that a run has measured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// All transfers are through. False if the run was stopped or a connection failed.
    pub finished: bool,
    /// The end of the last transfer, or of the run if it did not finish.
    pub end: Instant,
    /// True if after [`Spec::linger`](crate::Spec::linger) no timer, packet or open connection was left. False also if
    /// there was no time to see.
    pub quiet: bool,
    /// Transfers in the order of workloads, and of their files, bursts or repetitions.
    pub transfers: Vec<Transfer>,
    /// Connections in the order in which they were opened.
    pub connections: Vec<ConnectionOutcome>,
    /// Links in the order of paths, then of shared links; `down` before `up`; client by client.
    pub links: Vec<LinkOutcome>,
    /// UDP workloads, in order; client by client.
    pub udp: Vec<UdpOutcome>,
    /// Web pages that were asked for, in the order of time.
    pub pages: Vec<PageOutcome>,
    /// Digest of every delivered packet and every event, in order: equal digests, equal runs.
    pub digest: u64,
    /// TCP segments with payload that reached a host undamaged.
    pub packets: u64,
    /// Packets that a host discarded because its checksum failed.
    pub corrupted: u64,
    /// Middleboxes in the order of paths, each path's in the order from the client to the server; copies of all clients
    /// together.
    pub middleboxes: Vec<MiddleboxOutcome>,
    /// Bytes that an application read otherwise than they were written. Only a middlebox that alters payload can cause
    /// that, and only where no DSS checksum was negotiated: without one the change goes unseen (RFC 8684 §3.3).
    pub altered_bytes: u64,
    /// The state at the times of [`Spec::samples`](crate::Spec::samples) that the run reached, and at its end.
    pub samples: Vec<Sample>,
    /// Paths that the data of each connection took when it was first sent, in order; up to 10000 entries each. Only if
    /// [`Spec::decisions`](crate::Spec::decisions) asked for it.
    /// [`Spec::decisions`](crate::Spec::decisions) asked for it.
    pub decisions: Option<Vec<Vec<Decided>>>,
    /// Events, if [`Spec::record_events`](crate::Spec::record_events) asked for them.
    pub events: Option<Vec<EventRecord>>,
    /// Changes of phase of congestion controls that model the path, in the order of time.
    pub phases: Vec<PhaseRecord>,
    /// Counters of the clients and of the servers under test, added up.
    pub counters: [Counters; 2],
}

/// A congestion control that models the path went to another phase.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PhaseRecord {
    /// Time of the acknowledgment that brought it about.
    pub at: Instant,
    /// The client whose connection this is.
    pub client: usize,
    /// Host that sends.
    pub host: Host,
    /// Number of the connection ([`Outcome::connections`]).
    pub connection: usize,
    /// Subflow of the connection.
    pub subflow: SubflowId,
    /// Name of the new phase.
    pub phase: &'static str,
    /// Variables of the model behind that acknowledgment
    /// ([`congestion_variables`](anabranch_engine::Endpoint::congestion_variables)).
    pub variables: Vec<(&'static str, f64)>,
}

/// One bulk, file or burst.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// Index into [`Spec::workloads`](crate::Spec::workloads).
    pub workload: usize,
    /// `bulk`, `file 3`, `burst 2`, `object 4` (by its activity), `tcp 1`.
    pub label: String,
    /// Index into [`Outcome::connections`].
    pub connection: usize,
    /// The first SYN, or on a warm connection the writing of the request (files) or of the burst.
    pub started: Instant,
    /// Time at which the receiving application had read the last byte in order; for bulk, the end of its duration.
    /// `None` if the transfer did not finish.
    pub finished: Option<Instant>,
    /// Payload bytes of this transfer that the receiving application read, up to `finished`.
    pub bytes: u64,
    /// Bytes requested; `None` for bulk.
    pub asked: Option<u64>,
}

/// One connection. Its counts exclude data sent to warm it up before files; positions in the stream and peaks of held
/// data include it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionOutcome {
    /// The client on whose paths it is.
    pub client: usize,
    /// Index into [`Spec::workloads`](crate::Spec::workloads).
    pub workload: usize,
    /// Label of its first transfer.
    pub label: String,
    /// MPTCP was agreed on, and neither host fell back to plain TCP, be it after the last transfer.
    pub multipath: bool,
    /// Statistics of the host that sends the data; `None` if it never learned of the connection.
    pub sender: Option<ConnectionStats>,
    /// Statistics of the host that receives the data; `None` if it never learned of the connection.
    pub receiver: Option<ConnectionStats>,
    /// Subflows of the host that sends the data, in the order of their ids.
    pub subflows: Vec<SubflowOutcome>,
    /// Subflows of the host that receives the data, in the order of their ids.
    pub receiving_subflows: Vec<SubflowOutcome>,
}

impl ConnectionOutcome {
    /// Returns the receiving end of a sender's subflow: the one between the same addresses, or, where a middlebox
    /// changes these, the only one of its path. `None` if the receiver never learned of it.
    pub fn receiving_end(&self, sending: &SubflowOutcome) -> Option<&SubflowOutcome> {
        let is_same =
            |it: &&SubflowOutcome| (it.stats.local, it.stats.remote) == (sending.stats.remote, sending.stats.local);
        let mut on_path = self.receiving_subflows.iter().filter(|it| it.path == sending.path);
        let only = || on_path.next().filter(|_| on_path.next().is_none());
        self.receiving_subflows.iter().find(is_same).or_else(only)
    }
}

/// One end of a subflow.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubflowOutcome {
    /// Index into the paths of the specification.
    pub path: usize,
    /// Statistics from the engine.
    pub stats: SubflowStats,
}

/// One web page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageOutcome {
    /// The client that loads it.
    pub client: usize,
    /// Index into [`Spec::workloads`](crate::Spec::workloads).
    pub workload: usize,
    /// Time at which it was asked for: the first SYN.
    pub started: Instant,
    /// Time at which its last activity ended, computations included. `None` if it did not finish.
    pub finished: Option<Instant>,
}

/// One UDP workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct UdpOutcome {
    /// The client on whose path it is.
    pub client: usize,
    /// Index into [`Spec::workloads`](crate::Spec::workloads).
    pub workload: usize,
    /// Packets sent.
    pub sent: u64,
    /// Packets received undamaged.
    pub received: u64,
    /// Bytes received undamaged, headers included.
    pub bytes: Bytes,
}

/// A host of the run, among those on the paths of one client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Host {
    /// Opens connections.
    Client,
    /// Accepts them.
    Server,
    /// The n-th pair of competing TCP hosts, its client.
    CompetingClient(u8),
    /// The n-th pair of competing TCP hosts, its server.
    CompetingServer(u8),
}

/// Event of a segment or of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A host sent the segment.
    Sent,
    /// A host received it.
    Received,
    /// A host received and discarded it: the checksum failed.
    Corrupted,
}

/// One segment at one host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct EventRecord {
    /// Time of the event.
    pub at: Instant,
    /// The client whose paths these are.
    pub client: usize,
    /// Host at which it happened.
    pub host: Host,
    /// Kind of the event.
    pub kind: EventKind,
    /// Index of the path.
    pub path: usize,
    /// Port of the client.
    pub port: u16,
    /// Control bits as [`anabranch_wire::Flags`] holds them.
    pub flags: u8,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Low 32 bits of the data sequence number of the mapping it carries.
    pub dsn: Option<u32>,
    /// Low 32 bits of the DATA_ACK it carries.
    pub data_ack: Option<u32>,
    /// Window field, not scaled.
    pub window: u16,
    /// Payload bytes.
    pub length: u32,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [EventKind; 3] = [EventKind::Sent, EventKind::Received, EventKind::Corrupted];
}

impl Transfer {
    /// Returns the time from start to finish.
    pub fn duration(&self) -> Option<Duration> {
        self.finished.map(|finished| finished.since(self.started))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Client => f.write_str("client"),
            Host::Server => f.write_str("server"),
            Host::CompetingClient(n) => write!(f, "tcp{n}-client"),
            Host::CompetingServer(n) => write!(f, "tcp{n}-server"),
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EventKind::Sent => "sent",
            EventKind::Received => "received",
            EventKind::Corrupted => "corrupted",
        })
    }
}

impl EventRecord {
    /// Returns the record of a packet that an observer saw; `None` if it is no segment.
    pub fn of(sight: &Sight<'_>, kind: EventKind) -> Option<Self> {
        let Content::Segment(segment) = sight.content else { return None };
        let low = |number: DataSeq| match number {
            DataSeq::Short(low) => low,
            DataSeq::Long(dsn) => dsn.low(),
        };
        let (flow, dss) = (segment.flow, segment.options.dss());
        let is_client = matches!(sight.host, Host::Client | Host::CompetingClient(_));
        Some(EventRecord {
            at: sight.at,
            client: sight.client,
            host: sight.host,
            kind,
            path: sight.path,
            port: if is_client == (kind == EventKind::Sent) { flow.src_port } else { flow.dst_port },
            flags: segment.flags.0,
            seq: segment.seq.get(),
            ack: segment.ack.get(),
            dsn: dss.and_then(|dss| dss.map).map(|map| low(map.dsn)),
            data_ack: dss.and_then(|dss| dss.data_ack).map(low),
            window: segment.window,
            length: segment.payload.len() as u32,
        })
    }
}
