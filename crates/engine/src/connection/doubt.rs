//! Doubt about a peer whose options no longer get through, so that it may be with MPTCP still (A-LOST-OPTIONS).
//!
//! A host that gave MPTCP up alone tells its peer by an infinite mapping with its next data (RFC 8684 §3.7). If it has
//! none to send, it goes on to say DATA_ACKs: a peer that reads them neither waits nor repeats anything.
//!
//! One that does not read them, since options are lost both ways, repeats at the data level what it sent before. Linux
//! does that on the same subflow as soon as all that it sent there is acknowledged, and no option tells its bytes from
//! new ones. It shows that it reads DATA_ACKs, or is plain TCP, by sending more than the window from before admits,
//! without a pause. One that pauses before may be repeating, and is reset.

use super::fallback::Fallback;
use super::slots::Slot;
use super::{Connection, Life};
use crate::FallbackReason;
use crate::shared::Shared;
use anabranch_units::{Duration, Instant};
use anabranch_wire::Segment;

/// Doubt about a peer that may be with MPTCP still.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    /// The window's edge when MPTCP was given up, until the stream has come beyond it. `None` as well for a peer that
    /// has read our options, or will hear of the fallback by data that is under way.
    edge: Option<u64>,
    /// Acknowledgment number of the latest ACK, and its timestamp.
    told: Option<(u64, u32)>,
}

/// A pause of the peer's after which its data may be a repetition, if timestamps prove that it had been told of all
/// before; longer than a busy host takes to go on.
const PAUSE: Duration = Duration::from_millis(20);

/// A pause after which data without timestamps may be a repetition: half the shortest timeout of Linux, which repeats
/// after one.
const PAUSE_WITHOUT_PROOF: Duration = Duration::from_millis(100);

impl Connection {
    /// MPTCP has just been given up: notes whether the peer may not know.
    pub(super) fn begin_doubt(&mut self, reason: FallbackReason) {
        if !reason.is_one_sided() || self.keys.remote.is_none() {
            return;
        }
        let out = &self.sender.outgoing;
        // Data under way tells the peer: without its mapping that MPTCP is over, and with it our options get through,
        // so that DATA_ACKs do. A peer whose first data is bare, and that reads nothing of ours, never had the keys.
        let untold = reason == FallbackReason::OptionsLost && out.una == out.nxt && !out.fin_sent;
        let edge = untold.then(|| self.receiver.edge());
        if let Some(fallback) = self.life.fallback_mut() {
            fallback.doubt = Some(Doubt { edge, told: None });
        }
    }

    /// Tells whether the peer, which may be with MPTCP still, is to get DATA_ACKs.
    pub(super) fn is_in_doubt(&self) -> bool {
        matches!(self.life, Life::Plain(Fallback { doubt: Some(_), .. })) && !self.has_infinite()
    }

    /// Notes what an ACK tells a peer in doubt.
    pub(super) fn note_told(&mut self, slot: Slot, segment: &Segment) {
        let acked = self.subflows[slot].rx.rcv_nxt;
        let Some(doubt) = self.life.fallback_mut().and_then(|fallback| fallback.doubt.as_mut()) else { return };
        doubt.told = segment.options.timestamps().map(|timestamps| (acked, timestamps.value));
    }

    /// Data arrives, perhaps from a peer in doubt. False if it may be a repetition: the connection is gone then.
    pub(super) fn is_beyond_doubt(&mut self, now: Instant, slot: Slot, segment: &Segment, shared: &mut Shared) -> bool {
        let Life::Plain(Fallback { doubt: Some(Doubt { edge: Some(edge), told }), .. }) = self.life else {
            return true;
        };
        if segment.payload.is_empty() {
            return true;
        }
        if self.has_told_with_data() || self.receiver.next() > edge {
            if let Some(fallback) = self.life.fallback_mut() {
                fallback.doubt = Some(Doubt { edge: None, told });
            }
            return true;
        }
        let subflow = &self.subflows[slot];
        let rx = &subflow.rx;
        let pause = rx.ack.last_data.map_or(Duration::ZERO, |last| now.since(last));
        let new = rx.offset(segment) == Some(rx.rcv_nxt) && rx.ofo.is_empty();
        let may_be_repeated = match (segment.options.timestamps(), told) {
            // It was sent after the ACK of all before it had arrived.
            (Some(timestamps), Some((acked, value))) => {
                let round_trip = subflow.tx.rtt.srtt().unwrap_or_default();
                acked == rx.rcv_nxt && timestamps.echo.wrapping_sub(value) as i32 >= 0 && pause >= round_trip.max(PAUSE)
            }
            _ => pause >= PAUSE_WITHOUT_PROOF,
        };
        if !(new && may_be_repeated) {
            return true;
        }
        self.reset_disagreeing(now, slot, shared);
        false
    }
}
