//! MPTCP options other than DSS, and what their absence means (RFC 8684 §3.7).

use super::slots::Slot;
use super::{Connection, Mode, Role};
use crate::FallbackReason;
use crate::mapping::{Mapping, Proof};
use crate::shared::Shared;
use crate::subflow::State;
use anabranch_units::Instant;
use anabranch_wire::{Flags, MpOption, ResetReason, Segment};

impl Connection {
    pub(super) fn handle_options(&mut self, now: Instant, slot: Slot, segment: &Segment, shared: &mut Shared) {
        if self.life.mode() != Mode::Multipath {
            // After a fallback nothing but MP_FAIL means anything.
            if self.stats.fallback.is_some() && segment.options.mptcp().iter().any(is_fail) {
                self.on_fail(now, slot, shared);
            }
            return;
        }
        for option in segment.options.mptcp() {
            if !self.subflows.has(slot) || self.life.is_gone() {
                return;
            }
            match option {
                MpOption::FastClose { receiver_key } => {
                    self.on_fast_close(now, *receiver_key, None, shared);
                }
                MpOption::Prio { backup } => {
                    self.subflows[slot].backup_remote = *backup;
                    self.sender.on_subflows_changed(now, &self.subflows);
                }
                MpOption::AddAddr(add) => self.on_add_addr(now, slot, add, shared),
                MpOption::RemoveAddr(remove) => self.on_remove_addr(now, remove, shared),
                MpOption::Capable(capable) => {
                    if let Some(data) = capable.data.filter(|_| self.role == Role::Server) {
                        self.confirm(now, slot, shared);
                        self.take_first_data(now, slot, data, shared);
                    }
                }
                MpOption::JoinAck(_) => {
                    // The fourth ACK, or once more since it was lost. By itself even if data follows at once: until
                    // something in order has come Linux resets a subflow on data out of order. With both, one of them
                    // may be lost or late.
                    self.send_ack(now, slot, Vec::new(), shared);
                }
                MpOption::Fail { .. } => self.on_fail(now, slot, shared),
                MpOption::JoinSyn(_) | MpOption::JoinSynAck(_) | MpOption::TcpReset { .. } => {}
            }
        }
    }

    /// The mapping that MP_CAPABLE carries with the first data (RFC 8684 §3.1): length and checksum.
    fn take_first_data(
        &mut self,
        now: Instant,
        slot: Slot,
        (length, checksum): (u16, Option<u16>),
        shared: &mut Shared,
    ) {
        let proof = checksum.filter(|_| self.negotiated.checksum).map(|checksum| Proof { checksum, data_fin: false });
        let map = Mapping { subflow: 1, data: 0, length: u64::from(length), proof };
        if self.subflows[slot].rx.placed() >= map.end() {
            return;
        }
        let unexpected = self.negotiated.checksum != checksum.is_some();
        if unexpected || self.subflows[slot].rx.hold_map(map).is_err() {
            self.bad_mapping(now, slot, ResetReason::MptcpError, shared);
        }
    }

    /// Checks that MPTCP options still get through; otherwise falls back or resets (RFC 8684 §3.7). Returns false if
    /// the segment has lost its meaning.
    pub(super) fn check_negotiation(
        &mut self,
        now: Instant,
        slot: Slot,
        segment: &Segment,
        ack: u64,
        shared: &mut Shared,
    ) -> bool {
        if self.life.mode() != Mode::Multipath {
            return true;
        }
        if segment.options.has_dss() {
            self.subflows[slot].note_dss(now, ack);
            self.confirm(now, slot, shared);
            return true;
        }
        if segment.options.has_mptcp() {
            return true;
        }
        let subflow = &self.subflows[slot];
        if subflow.state == State::Confirming {
            // Not the fourth ACK. Data without its mapping will never make sense, so the peer had better know at once
            // (RFC 8684 §3.7) and send it elsewhere.
            if !segment.payload.is_empty() {
                self.kill(now, slot, ResetReason::Middlebox, shared);
                return false;
            }
            return true;
        }
        let out = &self.sender.outgoing;
        // A DATA_FIN without data takes no number of the subflow's that could be acknowledged. It is repeated with a
        // question, and an answer without DSS from a peer that never sent one comes from plain TCP.
        let fin_alone = self.role == Role::Client && !self.life.is_confirmed() && out.nxt == 0 && out.fin_sent;
        let answers_fin = fin_alone && !subflow.is_join() && self.timers.data_backoff > 0;
        let acks_data = answers_fin || ack > subflow.tx.recovery.snd_una() && ack > 1 && out.nxt > 0;
        // MPTCP peers put a DSS on their FINs too; a bare one closes a stream of plain TCP. Data may lie under a
        // mapping that came or comes apart from it: whether it does is found out when it is next in order.
        let bare_fin = segment.payload.is_empty() && segment.flags.has(Flags::FIN);
        if !acks_data && !bare_fin {
            return true;
        }
        let (proven, first) = (subflow.confirmed, !self.life.is_confirmed());
        let subflow = &mut self.subflows[slot];
        let lasting = subflow.note_bare_ack(now, acks_data);
        // A stock kernel sends an ACK without DSS now and then, so a confirmed subflow must show a few in a row.
        let enough = first || bare_fin || lasting;
        if enough && self.can_fall_back() {
            self.fall_back(now, if first { FallbackReason::FirstData } else { FallbackReason::OptionsLost }, shared);
            return true;
        }
        if !proven && acks_data && segment.payload.is_empty() {
            // RFC 8684 §3.7: on an additional subflow the first acknowledgment without a DATA_ACK is the end of it.
            self.kill(now, slot, ResetReason::Middlebox, shared);
            return false;
        }
        true
    }

    /// An MPTCP option other than the handshake's arrived: they get through.
    pub(super) fn confirm(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let subflow = &mut self.subflows[slot];
        subflow.confirmed = true;
        if subflow.state == State::Confirming {
            // The fourth ACK: data may flow on a subflow we joined.
            self.open_for_data(now, slot, shared);
        }
        if !self.life.is_confirmed() {
            self.on_confirmed(now, shared);
        }
    }
}

fn is_fail(option: &MpOption) -> bool {
    matches!(option, MpOption::Fail { .. })
}
