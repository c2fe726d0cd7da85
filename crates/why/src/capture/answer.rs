//! The answer about a capture, as JSON has it.

use crate::{Interval, PathTime, Share};
use anabranch_inspect::FileReport;
use schemars::JsonSchema;
use serde::Serialize;

/// Why the transfers of a capture took as long as they did.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct CaptureAnswer {
    /// The answer in plain words.
    pub sentence: String,
    /// The connection that is judged; absent if the capture has none.
    pub connection: Option<JudgedConnection>,
    /// Number of the TCP connections that are not judged.
    pub other_connections: usize,
    /// Largest of them, in the order of their numbers.
    pub others: Vec<OtherConnection>,
    /// Files, in the order in which they were named.
    pub files: Vec<FileReport>,
}

/// Share of the best path's rate below which a transfer falls short of it: headers take the rest.
const SHORT: f64 = 0.9;

impl CaptureAnswer {
    /// Returns true if its transfer brought less than the best of its paths alone could carry, or has a fault.
    pub fn falls_short(&self) -> bool {
        let Some(connection) = &self.connection else { return false };
        let Some(direction) = connection.directions.first() else { return false };
        let goodput = direction.bytes as f64 * 8e9 / direction.time_ns.max(1) as f64;
        let best = direction.measured.iter().filter_map(|it| it.rate_bps).fold(0.0, f64::max);
        connection.faults.iter().any(|it| it.kind != FaultKind::JoinLate) || goodput < SHORT * best
    }
}

/// The connection that is judged.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct JudgedConnection {
    /// Number, from 1: MPTCP connections as `inspect` numbers them, then plain TCP.
    pub number: usize,
    /// True if it is MPTCP.
    pub multipath: bool,
    /// Protocol version of MPTCP; absent for plain TCP, and where the capture misses the handshake.
    pub version: Option<u8>,
    /// Options of MPTCP in words, where the handshake of their connection is not in the capture.
    pub orphan_options: Vec<String>,
    /// Names of the two sides: `client` and `server`, or `A` and `B`.
    pub sides: [String; 2],
    /// Address and port of the two sides on the first subflow.
    pub endpoints: [String; 2],
    /// Place of the capture, in words.
    pub captured: String,
    /// Time from which instants are counted, in nanoseconds since 1970: that at which the first packet left.
    pub begin_unix_ns: u64,
    /// True if packets of one side only were captured: then no direction is judged.
    pub one_sided: bool,
    /// Paths, in the order in which their subflows were first seen.
    pub paths: Vec<PathAbout>,
    /// Faults of the set-up.
    pub faults: Vec<Fault>,
    /// Directions that carry data, the one with most data first.
    pub directions: Vec<JudgedDirection>,
    /// Facts that this capture does not show.
    pub unknown: Vec<String>,
}

/// A path of a connection.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct PathAbout {
    /// Name: of the interface where each path has its own, or else an address.
    pub name: String,
    /// Addresses of the two sides.
    pub addresses: [String; 2],
    /// Payload bytes that each side sent on it, repeats included.
    pub bytes: [u64; 2],
    /// Shortest round-trip time; absent if none was seen \[ms\].
    pub rtt_ms: Option<f64>,
}

/// Kind of a fault of the set-up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FaultKind {
    /// The client asked for plain TCP.
    PlainClient,
    /// The server answered without MP_CAPABLE.
    PlainServer,
    /// A box on the way removed MP_CAPABLE.
    OptionRemoved,
    /// SYNs with MP_CAPABLE had no answer, and one without had.
    CapableUnanswered,
    /// MPTCP was given up after the handshake.
    FellBack,
    /// No further subflow was ever begun.
    NoJoin,
    /// An announced address was never used.
    AddressUnused,
    /// The SYN of a join had no answer.
    JoinUnanswered,
    /// A join was refused with RST.
    JoinRefused,
    /// A join was answered without MP_JOIN.
    JoinRemoved,
    /// The handshake of a join was not completed.
    JoinIncomplete,
    /// All data had been sent before a join could be complete.
    JoinLate,
    /// A path is marked as a backup, and carried nothing.
    Backup,
    /// A subflow was established, and carried nothing.
    Unused,
    /// Large segments never arrived, and small ones did.
    MtuBlackHole,
    /// Packets of a subflow leave by the interface of another path.
    WrongRoute,
    /// The sender holds small segments back until all before them is acknowledged.
    Nagle,
    /// The sender waits for acknowledgments that the receiver delays.
    DelayedAck,
    /// Packets overtake each other on their way.
    Reordering,
    /// The connection began on a path that is much slower to answer than another.
    SlowFirstPath,
}

/// A fault of the set-up.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Fault {
    /// Kind.
    pub kind: FaultKind,
    /// Name of the path, where one is meant.
    pub path: Option<String>,
    /// The fault in plain words.
    pub text: String,
    /// Remedy, where there is one.
    pub remedy: Option<String>,
}

/// One direction of a connection.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct JudgedDirection {
    /// Index of the side that sends.
    pub from: usize,
    /// Bytes, each once.
    pub bytes: u64,
    /// True if the last of them arrived within the capture.
    pub finished: bool,
    /// Confidence in its attribution.
    pub confidence: Confidence,
    /// First instant, in nanoseconds since the first packet of the capture left.
    pub from_ns: u64,
    /// Time that it took \[ns\]. The intervals add up to it.
    pub time_ns: u64,
    /// Its time by limit, the longest first.
    pub shares: Vec<Share>,
    /// Largest window that the receiver advertised \[B\]; absent if it is not known.
    pub widest_window: Option<u64>,
    /// Its time, cut into intervals without a gap.
    pub intervals: Vec<Interval>,
    /// The same for each path.
    pub paths: Vec<PathTime>,
    /// Measurements of each path.
    pub measured: Vec<PathMeasured>,
}

/// Measurements of a path in one direction.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct PathMeasured {
    /// Name of the path.
    pub path: String,
    /// Data packets sent.
    pub packets: u64,
    /// Packets of these that did not arrive, or were sent again.
    pub lost: u64,
    /// Packets of these that were lost while the queue was far from full: not for want of room.
    pub lost_by_chance: u64,
    /// Estimate of the rate of its slowest link; absent if nothing tells \[bit/s\].
    pub rate_bps: Option<f64>,
    /// Rate at which packets pass its slowest link right behind each other; absent if nothing tells \[bit/s\].
    pub line_bps: Option<f64>,
    /// Rate of its packets while that link was busy; absent if nothing tells \[bit/s\].
    pub carried_bps: Option<f64>,
    /// Congestion window at which slow start ended though nothing had been lost; absent if it did not end so \[B\].
    pub settled_window: Option<u64>,
    /// Median time that packets waited in queues beyond the shortest delay; absent if nothing tells \[ms\].
    pub queue_ms: Option<f64>,
}

/// Confidence in an attribution.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Something essential is missing: the handshake, packets, or what they hold.
    Low,
    /// One end was captured, and what happens at the other is estimated.
    Medium,
    /// Both ends were captured.
    High,
}

impl Confidence {
    /// Returns its name in machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }
}

/// A connection that is not judged.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct OtherConnection {
    /// Number, from 1.
    pub number: usize,
    /// True if it is MPTCP.
    pub multipath: bool,
    /// Address and port of the two sides.
    pub endpoints: [String; 2],
    /// Payload bytes that each side sent, repeats included.
    pub bytes: [u64; 2],
}
