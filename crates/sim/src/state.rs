//! The state of a connection between two events, for observers that explain a run: both ends, their applications, and
//! the links between them.

use anabranch_engine::{ConnectionInfo, Wait};
use anabranch_paths::Direction;
use anabranch_units::{Instant, Rate};

/// One connection at a moment.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct SessionState {
    /// Index into [`Outcome::connections`](crate::Outcome::connections).
    pub connection: usize,
    /// Time of the report.
    pub at: Instant,
    /// Direction of the data.
    pub direction: Direction,
    /// Bytes that the sending application wants to have written up to now.
    pub wanted: u64,
    /// Bytes of these that the sender's endpoint took.
    pub written: u64,
    /// Bytes that the receiving application has read.
    pub read: u64,
    /// Bytes in the opposite direction, such as a request, that were written and not read.
    pub asked: u64,
    /// The end that sends the data; `None` if it does not know of the connection.
    pub sender: Option<ConnectionInfo>,
    /// The end that receives the data; `None` if it does not know of the connection.
    pub receiver: Option<ConnectionInfo>,
    /// Path on which the data that the receiver misses was sent first; `None` if it was not sent, or none is missing.
    pub missing_on: Option<usize>,
    /// Paths in the order of the specification.
    pub paths: Vec<PathInfo>,
}

/// One path at a moment, in the direction of the data.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct PathInfo {
    /// Rate of its slowest link; zero if one is down.
    pub rate: Rate,
    /// Time at which that link will have sent all it has queued, if nothing follows; `None` if it is idle.
    pub busy_until: Option<Instant>,
    /// Competing TCP has a transfer over that link: it is busy whatever this connection sends.
    pub contended: bool,
    /// Obstacle to the next segment of new data on its subflow; `None` if neither end has one there.
    pub wait: Option<Wait>,
    /// Payload of a full segment there.
    pub mss: u64,
    /// Retransmission timeouts of its subflows so far.
    pub timeouts: u64,
    /// Time at which the sender last heard of the receiver on it.
    pub heard: Instant,
}

impl SessionState {
    /// A state in which nothing has happened yet, for a connection over this many paths.
    pub fn new(connection: usize, direction: Direction, paths: usize) -> Self {
        SessionState {
            connection,
            at: Instant::ZERO,
            direction,
            wanted: 0,
            written: 0,
            read: 0,
            asked: 0,
            sender: None,
            receiver: None,
            missing_on: None,
            paths: vec![PathInfo::default(); paths],
        }
    }
}
