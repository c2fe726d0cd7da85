//! Terms that the handshake of a connection settles.

use crate::Config;
use crate::dss_form::{DssForm, suits_short};
use anabranch_units::Dsn;

/// Terms of a connection.
#[derive(Debug)]
pub(super) struct Negotiated {
    /// DSS checksums are in use: one side requires them (RFC 8684 §3.1).
    pub(super) checksum: bool,
    /// Denies joins to the address and port of the initial subflow.
    pub(super) deny_join_to_initial: bool,
    /// Allows detours: both ends can restore the addresses of an ACK that took another subflow's path.
    pub(super) detours: bool,
    /// Lengths of data sequence numbers.
    pub(super) dss: DssForm,
}

impl Negotiated {
    /// Our offer for a stream that begins after `idsn`.
    pub(super) fn new(config: &Config, idsn: Dsn) -> Self {
        Negotiated {
            checksum: config.checksum,
            deny_join_to_initial: config.deny_join_to_initial,
            detours: false,
            dss: DssForm::new(config.profile.short_dss && suits_short(idsn)),
        }
    }
}
