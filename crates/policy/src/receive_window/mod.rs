//! Receive-window policies: how the one window that the peer advertises is shared out among subflows.

mod shared;

pub use shared::Shared;

use crate::registry::Entry;
use anabranch_units::{Bytes, Duration, Instant, SubflowId};

/// One subflow's use of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Which subflow.
    pub id: SubflowId,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Bytes first sent here and not acknowledged at the data level, in flight or waiting out of order at the peer.
    pub unacked: Bytes,
}

/// Shares the peer's window out among the usable subflows.
pub trait ReceiveWindow: Send {
    /// Sets `limits[i]` to what subflow `i` may have unacknowledged at the data level. `window` is what the peer admits
    /// now, from the first unacknowledged byte on; `buffer` the largest window it ever advertised. The engine enforces
    /// the shared window itself; a limit only narrows it.
    fn share(&mut self, now: Instant, window: Bytes, buffer: Bytes, usage: &[Usage], limits: &mut [Bytes]);
}

/// Every policy of this kind.
pub const WINDOWS: &[Entry<dyn ReceiveWindow>] = &[Entry {
    name: "shared",
    about: "whichever subflow sends first uses it",
    paper: Some("RFC 8684 §3.3.4"),
    parameters: &[],
    source: include_str!("shared.rs"),
    build: |_| Box::new(Shared),
}];
