//! Events and counters of an endpoint, for its application and its operator.

use crate::{FallbackReason, Misconduct};
use anabranch_units::SubflowId;
use anabranch_wire::ResetReason;
use std::fmt;

/// Names a connection of one endpoint; never used again after the connection is gone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl ConnectionId {
    /// Returns the connection's index in the endpoint, for arrays beside it. The index is small, and used again after
    /// the connection is gone.
    pub const fn index(self) -> usize {
        self.index as usize
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection {}.{}", self.index, self.generation)
    }
}

/// Something the application may want to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The connection we opened is established.
    Connected {
        /// True with MPTCP; otherwise it fell back to TCP.
        multipath: bool,
    },
    /// Established anew on another path, with all that was written: the first path died before the peer had heard of
    /// the connection that we opened.
    Reopened {
        /// True with MPTCP.
        multipath: bool,
    },
    /// A peer connected to a listening port.
    Accepted {
        /// True with MPTCP.
        multipath: bool,
    },
    /// Data can be read.
    Readable,
    /// The send buffer has space again.
    Writable,
    /// The peer has closed its direction and everything it sent was read.
    PeerFinished,
    /// Both directions are closed in order; the connection is gone.
    Closed,
    /// The connection was aborted, by the peer or because nothing got through any more; it is gone. What it had
    /// received in order can still be read.
    Reset,
    /// MPTCP was given up for plain TCP.
    Fallback(FallbackReason),
    /// A subflow may carry data.
    SubflowEstablished(SubflowId),
    /// A subflow is gone.
    SubflowClosed(SubflowId),
    /// The peer reset a subflow and said why (MP_TCPRST, RFC 8684 §3.6); `SubflowClosed` follows.
    SubflowReset {
        /// Identifier of the subflow.
        subflow: SubflowId,
        /// Reason of the reset.
        reason: ResetReason,
        /// Trying again later may work.
        transient: bool,
    },
    /// The scheduler does what the engine does not let it do, for the first time of this kind.
    SchedulerOverruled(Misconduct),
    /// A congestion control that models the path goes from one phase of its state machine to another; at most once per
    /// acknowledgment, with the phase it is in then.
    CongestionPhase {
        /// Identifier of the subflow.
        subflow: SubflowId,
        /// Name of the new phase
        /// ([`ModelBased::phase`](anabranch_policy::congestion::ModelBased::phase)).
        phase: &'static str,
    },
}

impl Event {
    /// All names, in the order of the variants.
    pub const NAMES: &[&str] = &[
        "connected",
        "reopened",
        "accepted",
        "readable",
        "writable",
        "peer-finished",
        "closed",
        "reset",
        "fallback",
        "subflow-established",
        "subflow-closed",
        "subflow-reset",
        "scheduler-overruled",
        "congestion-phase",
    ];

    /// Name in machine-readable output, in kebab-case.
    pub const fn name(&self) -> &'static str {
        Self::NAMES[match self {
            Event::Connected { .. } => 0,
            Event::Reopened { .. } => 1,
            Event::Accepted { .. } => 2,
            Event::Readable => 3,
            Event::Writable => 4,
            Event::PeerFinished => 5,
            Event::Closed => 6,
            Event::Reset => 7,
            Event::Fallback(_) => 8,
            Event::SubflowEstablished(_) => 9,
            Event::SubflowClosed(_) => 10,
            Event::SubflowReset { .. } => 11,
            Event::SchedulerOverruled(_) => 12,
            Event::CongestionPhase { .. } => 13,
        }]
    }
}
