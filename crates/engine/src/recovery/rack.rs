//! RACK's memory and its reordering window (RFC 8985 §6.2).
//!
//! Where we differ: RACK.rtt changes only together with RACK.segment, the latest sent segment that arrived (the RFC's
//! pseudocode also takes it from older ones that come late); and segments sent at one instant are ordered by their
//! transmission, where the RFC must make do with their sequence numbers.

use anabranch_units::Duration;

use super::ack_effects::{AckEffects, Arrival};

#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// RACK.xmit_ts, RACK.rtt: the latest sent transmission that is known to have arrived.
    pub(super) newest: Option<Arrival>,
    /// Highest offset delivered.
    pub(super) fack: u64,
    reordering_seen: bool,
    multiplier: u64,
    persist: u32,
    /// Bound that `snd_una` must reach before a second growth.
    dsack_round: Option<u64>,
}

impl Rack {
    pub(super) fn new(first: u64) -> Self {
        Rack { newest: None, fack: first, reordering_seen: false, multiplier: 1, persist: 0, dsack_round: None }
    }

    /// Steps 2 and 3.
    pub(super) fn learn(&mut self, effects: &AckEffects) {
        self.fack = effects.fack;
        self.reordering_seen |= effects.reordering;
        if let Some(arrival) = effects.newest
            && self.newest.is_none_or(|newest| arrival.order > newest.order)
        {
            self.newest = Some(arrival);
        }
    }

    /// Step 4, first half: the window grows by a quarter of the smallest RTT in each round with a DSACK and shrinks
    /// back after 16 recoveries without one.
    pub(super) fn adapt(&mut self, snd_una: u64, snd_nxt: u64, dsack: bool, left_recovery: bool) {
        if self.dsack_round.is_some_and(|round| snd_una >= round) {
            self.dsack_round = None;
        }
        if dsack && self.dsack_round.is_none() {
            self.dsack_round = Some(snd_nxt);
            self.multiplier = (self.multiplier + 1).min(MAX_MULTIPLIER);
            self.persist = DSACK_FREE_RECOVERIES;
        } else if left_recovery {
            self.persist = self.persist.saturating_sub(1);
            if self.persist == 0 {
                self.multiplier = 1;
            }
        }
    }

    /// Step 4, second half: how much later than its successors a segment may arrive. `impatient`: in recovery, or as
    /// many segments SACKed as would have started one.
    pub(super) fn window(&self, min_rtt: Duration, srtt: Duration, impatient: bool) -> Duration {
        if !self.reordering_seen && impatient {
            return Duration::ZERO;
        }
        (min_rtt * self.multiplier / 4).min(srtt)
    }
}

/// RFC 8985 §6.2 step 4.
const DSACK_FREE_RECOVERIES: u32 = 16;
/// Linux keeps it in eight bits; SRTT bounds the window anyway.
const MAX_MULTIPLIER: u64 = 255;
