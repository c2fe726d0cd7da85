//! A segment arrives on a subflow.

use super::signal::Placing;
use super::slots::Slot;
use super::{Connection, Mode};
use crate::shared::Shared;
use crate::subflow::State;
use anabranch_units::Instant;
use anabranch_wire::{Flags, Segment};

impl Connection {
    /// A segment of this subflow. Its payload is taken out. Returns true if it was data as expected: of the timers that
    /// our direction at rest leaves, only those of [`Connection::receiving_deadline`] can be earlier than before.
    #[inline]
    pub(crate) fn handle_segment(
        &mut self,
        now: Instant,
        slot: Slot,
        segment: &mut Segment,
        shared: &mut Shared,
    ) -> bool {
        let has_data = !segment.payload.is_empty();
        if self.take_expected(now, slot, segment, shared) {
            #[cfg(test)]
            (shared.short += 1);
            // A probe that was answered comes earlier than the next of a silent peer.
            return has_data && self.keepalive.idle.is_none();
        }
        self.handle_general(now, slot, segment, shared);
        false
    }

    /// The same for any segment.
    fn handle_general(&mut self, now: Instant, slot: Slot, segment: &mut Segment, shared: &mut Shared) {
        match self.subflows[slot].state {
            State::SynSent => return self.on_syn_sent(now, slot, segment, shared),
            State::SynReceived => {
                if !self.on_syn_received(now, slot, segment, shared) || !self.subflows.has(slot) {
                    return;
                }
            }
            State::Confirming | State::Established => {}
        }
        let Some(start) = self.check_acceptable(now, slot, segment, shared) else { return };
        if segment.flags.has(Flags::RST) {
            return self.check_reset(now, slot, start, segment, shared);
        }
        if segment.flags.has(Flags::SYN) || !segment.flags.has(Flags::ACK) {
            // RFC 5961 §4: no SYN resets a connection; our ACK tells an honest peer what we have.
            return self.answer_syn(now, slot, segment, shared);
        }
        let Some(ack) = self.subflows[slot].acceptable_ack(segment) else {
            shared.counters.unacceptable += 1;
            return self.challenge(now, slot, false, shared);
        };
        if self.life.is_fast_closing() {
            return self.handle_options(now, slot, segment, shared);
        }
        self.subflows[slot].note_valid(now, start, segment, self.receiver.is_autotuned());
        self.handle_content(now, slot, (start, ack), segment, shared);
    }

    /// Acts on what a valid segment says and carries: it begins at subflow offset `start` and acknowledges `ack`. Each
    /// step may be the end of the subflow.
    fn handle_content(
        &mut self,
        now: Instant,
        slot: Slot,
        (start, ack): (u64, u64),
        segment: &mut Segment,
        shared: &mut Shared,
    ) {
        if std::mem::take(&mut self.subflows[slot].liveness.stale) {
            self.sender.on_subflows_changed(now, &self.subflows);
        }
        if self.subflows[slot].liveness.removal_probe.take().is_some() {
            // The path of a withdrawn address still works: the host that withdrew it must close it (RFC 8684 §3.4.2).
            self.subflows[slot].liveness.potentially_failed = false;
            self.sender.on_subflows_changed(now, &self.subflows);
        }
        if !segment.options.mptcp().is_empty() {
            self.handle_options(now, slot, segment, shared);
            if self.life.is_gone() || self.life.is_fast_closing() || !self.subflows.has(slot) {
                return;
            }
        }
        if !self.check_negotiation(now, slot, segment, ack, shared) {
            return;
        }
        self.handle_ack(now, slot, start, segment, ack, shared);
        let mut placing = Placing::ByTable;
        if self.life.mode() != Mode::Multipath {
            let agrees = self.check_agreement(now, slot, segment.options.dss().as_ref(), shared);
            if !agrees || !self.is_beyond_doubt(now, slot, segment, shared) {
                return;
            }
            self.handle_plain_ack(now, slot, segment, ack, shared);
        } else if let Some(dss) = segment.options.dss() {
            match self.handle_dss(now, slot, start, segment, &dss, shared) {
                Some(told) => placing = told,
                None => return,
            }
        }
        if !segment.payload.is_empty() || segment.flags.has(Flags::FIN) {
            self.handle_payload(now, slot, (start, segment), placing, shared);
        }
    }
}
