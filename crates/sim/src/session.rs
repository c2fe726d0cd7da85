//! One connection with the data that its two applications have written and read.

use crate::ConnectionOutcome;
use anabranch_engine::ConnectionId;
use anabranch_paths::{Direction, PerDirection};
use anabranch_units::Instant;

/// A connection between the hosts of one pair.
pub(crate) struct Session {
    /// The application that opened it, and hears of it.
    pub(crate) app: usize,
    /// Workload of that application.
    pub(crate) workload: usize,
    /// Label of the first transfer.
    pub(crate) label: String,
    /// Time of the first SYN.
    pub(crate) opened: Instant,
    /// The hosts: the client and the server.
    pub(crate) ends: [usize; 2],
    /// Direction of the data; requests go the other way.
    pub(crate) direction: Direction,
    /// The connection as the client and the server call it.
    pub(crate) ids: [Option<ConnectionId>; 2],
    /// True for each host that sees MPTCP.
    pub(crate) multipath: [bool; 2],
    /// A host went on as plain TCP, perhaps after the session was concluded.
    pub(crate) fell_back: bool,
    pub(crate) streams: PerDirection<ByteStream>,
    /// A host has no more use for it: closed, reset or aborted.
    pub(crate) over: [bool; 2],
    /// Its application has nothing more to hear.
    pub(crate) concluded: bool,
    /// The statistics as they were before its first transfer, if something was sent before.
    pub(crate) baseline: Option<Box<ConnectionOutcome>>,
    /// The statistics as they were when its transfers were through.
    pub(crate) outcome: Option<ConnectionOutcome>,
}

/// One direction of a session.
#[derive(Clone, Copy, Default)]
pub(crate) struct ByteStream {
    /// Bytes that the sending application wants to have written.
    pub(crate) target: u64,
    /// Bytes of these that the endpoint took.
    pub(crate) written: u64,
    /// Close this direction once `target` is written.
    pub(crate) finish: bool,
    /// True if it is closed.
    pub(crate) shut: bool,
    /// Bytes that the receiving application has read.
    pub(crate) read: u64,
    /// Tell the application when so much is read.
    pub(crate) milestone: Option<u64>,
    /// Tell the application once the endpoint has taken all.
    pub(crate) drains: bool,
}

/// News of a session for its application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// The receiving application has read up to the milestone of this direction, or further.
    Reached(Direction),
    /// The endpoint has taken all that was to be written in this direction.
    Drained(Direction),
    /// The connection was reset, or given up.
    Failed,
}
