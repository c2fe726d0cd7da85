//! Reinjection after a timeout: the subflow counts as failed until it proves otherwise.
//!
//! Linux MPTCP from v0.8x on (`mptcp_reinject_data` in `net/mptcp/mptcp_output.c`). A fast retransmit repeats nothing
//! elsewhere.

use super::{Entry, Reinjection};
use anabranch_units::{Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry =
    Entry::new("on-rto", "a timeout repeats all data of the subflow on the others", include_str!("on_rto.rs"), |_| {
        Box::new(OnRto)
    })
    .paper("Linux MPTCP v0.8x");

/// Repeats all a subflow carries when its retransmission timer expires.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnRto;

impl Reinjection for OnRto {
    fn on_rto(&mut self, _now: Instant, _on: SubflowId) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_repeats_all() {
        assert!(OnRto.on_rto(Instant::ZERO, SubflowId(0)));
    }
}
