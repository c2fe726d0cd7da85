//! Receive-window policies: how the one window that the peer advertises is shared out among subflows.

pub use even::Even;
pub use rbp::Rbp;
pub use shared::Shared;

use crate::registry::{self, Built, Kind, policies};
use anabranch_units::{Bytes, Duration, Instant, SubflowId};

/// The buffers at both ends of the connection, as the sender knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Bytes that the peer admits now, from the first byte without a DATA_ACK.
    pub window: Bytes,
    /// The largest window it ever advertised: its receive buffer (A-RBP-1).
    pub receive: Bytes,
    /// The sender's own buffer for what is not acknowledged at the data level.
    pub send: Bytes,
}

/// One subflow's use of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Id of the subflow.
    pub id: SubflowId,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Bytes sent here and not cumulatively acknowledged by the subflow (FlightSize, RFC 5681 §2), copies included.
    pub outstanding: Bytes,
    /// Bytes first sent here and not acknowledged at the data level, in flight or waiting out of order at the peer
    /// (A-RBP-5).
    pub unacked: Bytes,
    /// Bytes cumulatively acknowledged by the subflow since it began.
    pub acked: u64,
}

/// Shares the peer's window out among the usable subflows.
pub trait ReceiveWindow: Send {
    /// Sets `shares[i]` to the amount of new data that subflow `i` may send; a segment may leave while its subflow's
    /// share is not zero. Called after every event that may permit sending, while several subflows are usable
    /// (A-RBP-3): failed ones and idle backups are not shown, so they get nothing (A-RBP-6).
    ///
    /// The engine enforces the shared window and the congestion windows itself: a share only narrows them.
    /// Retransmissions and reinjections need no share (A-RBP-4). While no data is unacknowledged some share must not be
    /// zero, or the connection would stall.
    fn share(&mut self, now: Instant, buffers: &Buffers, usage: &[Usage], shares: &mut [Bytes]);
}

/// Properties of a receive-window policy that change the engine's part of the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Narrows nothing: the engine does not ask, and no share binds.
    pub unlimited: bool,
}

impl Kind for dyn ReceiveWindow {
    type Policy = Box<Self>;
    type Capabilities = Capabilities;
}

impl<P: ReceiveWindow + 'static> From<P> for Built<dyn ReceiveWindow> {
    /// Wraps a policy with default capabilities.
    fn from(policy: P) -> Self {
        Built { policy: Box::new(policy), capabilities: Capabilities::default() }
    }
}

/// A receive-window policy that can be named.
pub type Entry = registry::Entry<dyn ReceiveWindow>;

policies! {
    WINDOWS:
    shared,
    even,
    rbp,
}

#[cfg(test)]
mod testing;
