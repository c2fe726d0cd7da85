//! ACK-path policies: on which path an acknowledgment travels.

mod own;

pub use own::Own;

use crate::registry::Entry;
use anabranch_units::{Duration, Instant, SubflowId};

/// One subflow as the receiver of data sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckRoute {
    /// Which subflow.
    pub id: SubflowId,
    /// Smoothed round-trip time, if there is a sample.
    pub srtt: Option<Duration>,
}

/// Chooses the subflow whose path a pure ACK takes. A TCP ACK is bound to its own subflow (RFC 8684 §3.3.2); what may
/// travel elsewhere with any peer is the DATA_ACK.
pub trait AckPath: Send {
    /// The subflow that carries the DATA_ACK owed because data arrived on `arrived`, beside the TCP ACK there.
    fn choose(&mut self, now: Instant, arrived: SubflowId, routes: &[AckRoute]) -> SubflowId;
}

/// Every policy of this kind.
pub const ACK_PATHS: &[Entry<dyn AckPath>] = &[Entry {
    name: "own",
    about: "the path on which the data came",
    paper: Some("RFC 8684 §3.3.2"),
    parameters: &[],
    source: include_str!("own.rs"),
    build: |_| Box::new(Own),
}];
