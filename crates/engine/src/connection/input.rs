//! A segment arrives on a subflow.

use super::signal::Placing;
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
        index: usize,
        segment: &mut Segment,
        shared: &mut Shared,
    ) -> bool {
        let has_data = !segment.payload.is_empty();
        if self.take_expected(now, index, segment, shared) {
            #[cfg(test)]
            (shared.short += 1);
            // A probe that was answered comes earlier than the next of a silent peer.
            return has_data && self.keepalive.idle.is_none();
        }
        self.handle_general(now, index, segment, shared);
        false
    }

    /// The same for any segment.
    fn handle_general(&mut self, now: Instant, mut index: usize, segment: &mut Segment, shared: &mut Shared) {
        match self.subflows[index].state {
            State::SynSent => return self.on_syn_sent(now, index, segment, shared),
            State::SynReceived => {
                let id = self.subflows[index].id;
                if !self.on_syn_received(now, index, segment, shared) {
                    return;
                }
                // Others may be gone that stood before it.
                let Some(now_at) = self.subflows.position(id) else { return };
                index = now_at;
            }
            State::Confirming | State::Established => {}
        }
        let Some(start) = self.check_acceptable(now, index, segment, shared) else { return };
        if segment.flags.has(Flags::RST) {
            return self.check_reset(now, index, start, segment, shared);
        }
        if segment.flags.has(Flags::SYN) || !segment.flags.has(Flags::ACK) {
            // RFC 5961 §4: no SYN resets a connection; our ACK tells an honest peer what we have.
            return self.answer_syn(now, index, segment, shared);
        }
        let Some(ack) = self.subflows[index].acceptable_ack(segment) else {
            shared.counters.unacceptable += 1;
            return self.challenge(now, index, shared);
        };
        if self.life.is_fast_closing() {
            return self.handle_options(now, index, segment, shared);
        }
        self.subflows[index].note_valid(now, start, segment, self.receiver.is_autotuned());
        self.handle_content(now, index, (start, ack), segment, shared);
    }

    /// Acts on what a valid segment says and carries: it begins at subflow offset `start` and acknowledges `ack`. Each
    /// step may be the end of the subflow.
    fn handle_content(
        &mut self,
        now: Instant,
        mut index: usize,
        (start, ack): (u64, u64),
        segment: &mut Segment,
        shared: &mut Shared,
    ) {
        let id = self.subflows[index].id;
        if std::mem::take(&mut self.subflows[index].liveness.stale) {
            self.sender.on_subflows_changed(now, &self.subflows);
        }
        if self.subflows[index].liveness.removal_probe.take().is_some() {
            // The path of a withdrawn address still works: the host that withdrew it must close it (RFC 8684 §3.4.2).
            self.subflows[index].liveness.potentially_failed = false;
            self.sender.on_subflows_changed(now, &self.subflows);
        }
        if segment.options.mptcp.is_some() {
            self.handle_options(now, index, segment, shared);
            if self.life.is_gone() || self.life.is_fast_closing() {
                return;
            }
            // REMOVE_ADDR may have ended joins that stood before it.
            let Some(now_at) = self.subflows.position(id) else { return };
            index = now_at;
        }
        if !self.check_negotiation(now, index, segment, ack, shared) {
            return;
        }
        self.handle_ack(now, index, start, segment, ack);
        let mut placing = Placing::ByTable;
        if self.life.mode() != Mode::Multipath {
            if !self.check_agreement(now, index, segment.options.dss.as_ref(), shared) {
                return;
            }
            self.handle_plain_ack(now, index, segment, ack, shared);
        } else if let Some(dss) = segment.options.dss {
            match self.handle_dss(now, index, start, segment, &dss, shared) {
                Some(told) => placing = told,
                None => return,
            }
        }
        if !segment.payload.is_empty() || segment.flags.has(Flags::FIN) {
            self.handle_payload(now, index, (start, segment), placing, shared);
        }
    }
}
