//! Terms that the handshake of a connection settles.

use crate::Config;

/// Terms of a connection.
#[derive(Debug)]
pub(super) struct Negotiated {
    /// DSS checksums are in use: one side requires them (RFC 8684 §3.1).
    pub(super) checksum: bool,
    /// Denies joins to the address and port of the initial subflow.
    pub(super) deny_join_to_initial: bool,
    /// Allows detours: both ends can restore the addresses of an ACK that took another subflow's path.
    pub(super) detours: bool,
    /// The peer has sent a 64-bit DSN, so DATA_ACKs have 64 bits as well (RFC 8684 §3.3.2).
    pub(super) long_dsn: bool,
}

impl Negotiated {
    /// Our offer.
    pub(super) fn new(config: &Config) -> Self {
        Negotiated {
            checksum: config.checksum,
            deny_join_to_initial: config.deny_join_to_initial,
            detours: false,
            long_dsn: false,
        }
    }
}
