//! Evidence of whether a subflow still works.

use anabranch_units::Instant;

/// Evidence of whether a subflow still works.
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Liveness {
    /// Time at which the latest acceptable segment arrived.
    pub(crate) heard: Instant,
    /// The peer has repeated its SYN/ACK since the handshake: segments of ours do not reach it, or not all.
    pub(crate) repeated_syn: bool,
    /// Keepalives in a row that nothing answered.
    pub(crate) keepalives: u32,
    /// Window probes in a row that nothing answered.
    pub(crate) unanswered_probes: u32,
    /// Potentially failed: after a timeout its data was reinjected, or it has timed out several times, and no data has
    /// been acknowledged since (A-USABLE).
    pub(crate) potentially_failed: bool,
    /// The reinjection policy has seen it stuck too often, and nothing has arrived since (A-STALE).
    pub(crate) stale: bool,
    /// The peer withdrew its address: it is reset then unless something arrives (RFC 8684 §3.4.2).
    pub(crate) removal_probe: Option<RemovalProbe>,
    /// Data timeouts that found the oldest data acknowledged here and not at the data level.
    pub(crate) unconfirmed: u32,
    /// Carries no new data until all before this offset is acknowledged at the data level; set by the last of them.
    pub(crate) suspect_until: Option<u64>,
    /// ACKs of data in a row that had no DSS, and when the first of them came.
    pub(crate) bare_acks: u32,
    pub(crate) bare_since: Instant,
    /// Time since which every segment with a DSS acknowledges less than segments without one have.
    pub(crate) behind_since: Option<Instant>,
    /// Time of the latest answer to an unacceptable segment.
    pub(crate) challenged: Option<Instant>,
    /// Time at which a subflow that we closed alone is reset, unless the peer closes it as well.
    pub(crate) linger_until: Option<Instant>,
}

/// Keepalives on a subflow whose remote address the peer has withdrawn (RFC 8684 §3.4.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemovalProbe {
    pub(crate) deadline: Instant,
    pub(crate) probes: u32,
}

impl Liveness {
    pub(super) fn new() -> Self {
        Liveness {
            heard: Instant::ZERO,
            repeated_syn: false,
            keepalives: 0,
            unanswered_probes: 0,
            potentially_failed: false,
            stale: false,
            removal_probe: None,
            unconfirmed: 0,
            suspect_until: None,
            bare_acks: 0,
            bare_since: Instant::ZERO,
            behind_since: None,
            challenged: None,
            linger_until: None,
        }
    }
}
