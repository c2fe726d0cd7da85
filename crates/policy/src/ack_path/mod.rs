//! ACK-path policies: on which path an acknowledgment travels.
//!
//! RFC 8684 binds sequence and acknowledgment numbers of a subflow to its 4-tuple, so with an unknown peer only the
//! DATA_ACK may travel elsewhere ([`AckPath::data_ack`]). Two hosts that have agreed to it can do more: a pure ACK
//! leaves with the addresses of another subflow and the ports of its own, and the sender of the data puts the addresses
//! back ([`AckPath::path`]; the engine's `connection/detour.rs`). What that is worth is in [`theory`].

pub mod theory;

#[cfg(test)]
mod conformance;

pub use data_ack_fast::DataAckFast;
pub use fixed::Fixed;
pub use own::Own;
pub use probed::Probed;

use crate::registry::{self, Built, Kind, policies};
use anabranch_units::{Duration, Instant, SubflowId};
use std::net::IpAddr;

/// One open subflow as the receiver of data sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckRoute {
    /// Id of the subflow.
    pub id: SubflowId,
    /// Smoothed round-trip time, if there is a sample. A host that only receives has one from the handshake, and no
    /// more.
    pub srtt: Option<Duration>,
    /// Our address.
    pub local: IpAddr,
    /// The peer's.
    pub remote: IpAddr,
}

/// Schedule of the probes on the paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probing {
    /// Time from one round to the next (τ).
    pub interval: Duration,
    /// Probes on each path in a round.
    pub probes: u32,
    /// A round is judged as the next one is sent, rather than as soon as its replies must be there.
    pub judged_late: bool,
}

/// Result of the probes on one path since the last round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// The subflow whose path it is.
    pub id: SubflowId,
    /// The shortest round trip of the replies that have come; `None` if none has.
    pub best: Option<Duration>,
    /// True if there were probes with enough time for a reply, and none was answered.
    pub down: bool,
}

/// Chooses where acknowledgments travel. Subflows come and go between any two calls; `routes` are the open ones,
/// ordered by id.
pub trait AckPath: Send {
    /// The subflow that carries the DATA_ACK, at once, because data that arrived on `arrived` is next in the stream;
    /// the TCP ACK follows there. Legal with any peer (RFC 8684 §3.3.2).
    fn data_ack(&mut self, _now: Instant, arrived: SubflowId, _routes: &[AckRoute]) -> SubflowId {
        arrived
    }

    /// The subflow whose path a pure ACK of `of` takes. Another than `of` only comes about if both hosts can rewrite
    /// addresses.
    fn path(&mut self, _now: Instant, of: SubflowId, _routes: &[AckRoute]) -> SubflowId {
        of
    }

    /// Returns the schedule of probes while data arrives; `None` for no probes.
    fn probing(&self) -> Option<Probing> {
        None
    }

    /// A round of probes has ended: one entry for each open subflow, ordered by id.
    fn observe(&mut self, _now: Instant, _round: &[Probe]) {}
}

/// Abilities of an ACK-path policy.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// An ACK may travel on another path than its data; without it neither [`AckPath::data_ack`] nor [`AckPath::path`]
    /// is asked.
    pub moves: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Capabilities { moves: true }
    }
}

impl Kind for dyn AckPath {
    type Policy = Box<Self>;
    type Capabilities = Capabilities;
}

impl<P: AckPath + 'static> From<P> for Built<dyn AckPath> {
    /// Wraps a policy with default capabilities.
    fn from(policy: P) -> Self {
        Built { policy: Box::new(policy), capabilities: Capabilities::default() }
    }
}

/// An ACK-path policy that can be named.
pub type Entry = registry::Entry<dyn AckPath>;

policies! {
    ACK_PATHS:
    own,
    data_ack_fast,
    fixed,
    probed,
}

#[cfg(test)]
mod testing {
    use super::*;

    pub(super) const FIRST: SubflowId = SubflowId(0);
    pub(super) const SECOND: SubflowId = SubflowId(1);
    pub(super) const THIRD: SubflowId = SubflowId(2);

    pub(super) fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    pub(super) fn route(id: SubflowId, srtt_ms: Option<u64>) -> AckRoute {
        let path = id.0 as u8;
        AckRoute { id, srtt: srtt_ms.map(ms), local: [10, 0, path, 1].into(), remote: [10, 1, 0, 1].into() }
    }
}
