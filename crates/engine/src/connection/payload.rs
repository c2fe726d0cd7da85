//! The bytes of a segment: through subflow order and their mapping to the data level.

use super::signal::Placing;
use super::slots::Slot;
use super::{Connection, Mode, Role};
use crate::mapping::Mapping;
use crate::shared::Shared;
use crate::subflow::Subflow;
use crate::{Event, FallbackReason};
use anabranch_units::Instant;
use anabranch_wire::{Flags, Payload, ResetReason, Segment};

impl Connection {
    /// Takes in the payload and FIN of a segment that begins at subflow offset `start`.
    pub(super) fn handle_payload(
        &mut self,
        now: Instant,
        slot: Slot,
        (start, segment): (u64, &mut Segment),
        placing: Placing,
        shared: &mut Shared,
    ) {
        let (fin, end) = (segment.flags.has(Flags::FIN), start + segment.payload.len() as u64);
        if !segment.payload.is_empty() {
            self.receiver.on_segment();
        }
        if !self.admits(slot, end, fin, segment.payload.is_empty()) {
            shared.counters.unacceptable += 1;
            return;
        }
        self.subflows[slot].note_arrival(now, start, end, &shared.config.profile);
        self.wake_prober(now);
        let own_map = if let Placing::At(data) = placing { Some(data) } else { None };
        let plain = self.life.mode() == Mode::Plain;
        let rx = &self.subflows[slot].rx;
        let (rcv_nxt, had_holes) = (rx.rcv_nxt, !rx.ofo.is_empty());
        let data = rx.data_offset(start, own_map, plain);
        let early = data.is_some_and(|data| data > self.receiver.next());
        let mut payload = std::mem::take(&mut segment.payload);
        if start > rcv_nxt {
            return self.hold_payload(now, slot, (start, payload), early, placing, shared);
        }
        let behind = ((rcv_nxt - start) as usize).min(payload.len());
        payload.advance(behind);
        if early && !payload.is_empty() {
            self.receiver.on_early();
        }
        if !payload.is_empty() && !self.consume(now, slot, payload, own_map, shared) {
            return;
        }
        if had_holes && !self.consume_held(now, slot, shared) {
            return;
        }
        if self.subflows.has(slot) {
            // The first segment that waits for the stream is not answered; those behind it repeat the ACK before it.
            let subflow = &mut self.subflows[slot];
            if subflow.rx.ahead.first().is_some_and(|first| first == start) && !fin {
                subflow.rx.ack.now = false;
            }
            self.note_push(slot, segment.flags);
            self.take_subflow_fin(now, slot, shared);
        }
    }

    /// Tells whether bytes up to subflow offset `end` may be taken in, with a `fin` or without: not if they contradict
    /// a FIN, or the window of plain TCP, may not.
    fn admits(&mut self, slot: Slot, end: u64, fin: bool, is_empty: bool) -> bool {
        let rx = &mut self.subflows[slot].rx;
        if !rx.agrees_on_end(end, fin) {
            return false;
        }
        if self.life.mode() == Mode::Plain && !is_empty && end - 1 > self.receiver.edge() {
            // Plain TCP has no second level to repeat what the window does not admit (a window probe, for example): it
            // must not be acknowledged here either.
            rx.ack.now = true;
            return false;
        }
        true
    }

    /// Keeps a payload that begins behind a hole of its subflow, unless there was no room for its mapping.
    fn hold_payload(
        &mut self,
        now: Instant,
        slot: Slot,
        (start, payload): (u64, Payload),
        early: bool,
        placing: Placing,
        shared: &mut Shared,
    ) {
        let (length, refused) = (payload.len() as u64, placing == Placing::Refused);
        shared.counters.refused_data += if refused { length } else { 0 };
        let payload = (!refused).then_some(payload);
        let stored = self.subflows[slot].rx.hold(start, length, payload, shared.config.profile.coupled_acks);
        if early && stored.is_some_and(|stored| stored > 0) {
            self.receiver.on_early();
        }
        self.note_held(now);
    }

    /// Hands on what waited behind a hole that is filled now. False if the subflow is gone.
    fn consume_held(&mut self, now: Instant, slot: Slot, shared: &mut Shared) -> bool {
        while self.subflows.has(slot) {
            let rx = &mut self.subflows[slot].rx;
            let Some((_, chunk)) = rx.ofo.pop(rx.rcv_nxt) else { break };
            if self.life.mode() == Mode::Plain {
                // It may have been taken under the window of MPTCP, which a fallback since has not moved.
                self.receiver.admit_acknowledged(rx.rcv_nxt - 1 + chunk.len() as u64);
            }
            if !self.consume(now, slot, chunk, None, shared) {
                return false;
            }
        }
        true
    }

    /// The sender has nothing more for now if it says so: memory for what is out of order is given back where none is.
    pub(super) fn note_push(&mut self, slot: Slot, flags: Flags) {
        if flags.has(Flags::PSH) {
            self.subflows[slot].rx.ofo.release();
            self.receiver.on_push();
        }
    }

    /// Fragments may have come to be held out of order, or ceased to be.
    fn note_held(&mut self, now: Instant) {
        self.receiver.note_held(now, self.subflows.held_fragments());
    }

    /// Subflow bytes in order: to the data level, where their mapping says. False if the subflow is gone.
    pub(super) fn consume(
        &mut self,
        now: Instant,
        slot: Slot,
        payload: Payload,
        own_map: Option<u64>,
        shared: &mut Shared,
    ) -> bool {
        let subflow = &mut self.subflows[slot];
        let (at, length) = (subflow.rx.rcv_nxt, payload.len() as u64);
        subflow.rx.rcv_nxt += length;
        subflow.rx.bytes_received += length;
        let before = self.receiver.next();
        if let Some(data) = own_map {
            if shared.config.profile.coupled_acks {
                subflow.rx.ahead.hold(at, data + length);
            }
            self.receiver.receive(now, data, payload);
        } else if self.life.mode() == Mode::Plain {
            self.receiver.receive(now, at - 1, payload);
        } else {
            subflow.rx.unplaced.push(at, payload);
            return self.place(now, slot, shared);
        }
        self.on_placed(now, slot, before, shared);
        true
    }

    /// Hands the data level what has a mapping. False if the subflow is gone.
    pub(super) fn place(&mut self, now: Instant, slot: Slot, shared: &mut Shared) -> bool {
        let before = self.receiver.next();
        let alive = loop {
            let subflow = &mut self.subflows[slot];
            if subflow.rx.unplaced.is_empty() {
                subflow.rx.unmapped_until = None;
                break true;
            }
            let at = subflow.rx.unplaced.start();
            let Some(map) = subflow.rx.maps.covering(at) else { break self.await_mapping(now, slot, at, shared) };
            subflow.rx.unmapped_until = None;
            if let Some(proof) = map.proof {
                // A checksum covers its whole mapping (RFC 8684 §3.3.1): nothing of it may reach the data level before
                // it is proven.
                if subflow.rx.unplaced.len() < map.length {
                    self.await_rest(slot, &map);
                    break true;
                }
                if !self.keys.is_intact(&map, proof, subflow.rx.unplaced.first(map.length)) {
                    break self.on_checksum_failure(now, slot, &map, shared);
                }
            }
            while let Some(chunk) = subflow.rx.unplaced.pop(map.end().saturating_sub(subflow.rx.unplaced.start())) {
                let start = subflow.rx.unplaced.start() - chunk.len() as u64;
                let data = map.data + (start - map.subflow);
                if shared.config.profile.coupled_acks {
                    subflow.rx.ahead.hold(start, data + chunk.len() as u64);
                }
                self.receiver.receive(now, data, chunk);
                if subflow.rx.unplaced.start() == map.end() {
                    break;
                }
            }
            // With checksums a DATA_FIN is as unproven as its mapping, and so waits for the last byte.
            if map.proof.is_some_and(|proof| proof.data_fin)
                && !self.take_data_fin(now, slot, map.data + map.length, shared)
            {
                break false;
            }
        };
        if alive {
            self.on_placed(now, slot, before, shared);
        }
        alive
    }

    /// The byte at subflow offset `at` is next and no mapping covers it. RFC 8684 §3.7: options no longer get through,
    /// so plain TCP takes over if it can; otherwise the mapping may still come, but not for ever, nor behind more than
    /// a window of data (§3.3.1). False if the subflow is gone.
    fn await_mapping(&mut self, now: Instant, slot: Slot, at: u64, shared: &mut Shared) -> bool {
        if self.can_fall_back_at(at) {
            let reason = if self.life.is_confirmed() { FallbackReason::OptionsLost } else { FallbackReason::FirstData };
            self.fall_back(now, reason, shared);
            return true;
        }
        let subflow = &mut self.subflows[slot];
        let window = shared.config.receive_buffer.get();
        // A mapping that must come whole may be larger than the window.
        let bound = if self.negotiated.checksum { window.max(u64::from(u16::MAX)) } else { window };
        if subflow.rx.unplaced.len() > bound {
            self.bad_mapping(now, slot, ResetReason::Middlebox, shared);
            return false;
        }
        let wait = subflow.tx.rtt.rto();
        subflow.rx.unmapped_until.get_or_insert(now + wait);
        true
    }

    /// The application has read everything: a mapping that is still arriving may go on.
    pub(super) fn admit_rest(&mut self, slot: Slot) {
        if let Some(map) = self.subflows[slot].rx.waiting_map() {
            self.await_rest(slot, &map);
        }
    }

    /// A mapping with a checksum is handed on as a whole, so the window must admit the whole of it, however small the
    /// buffer.
    fn await_rest(&mut self, slot: Slot, map: &Mapping) {
        if self.receiver.admit(map.data, map.data + map.length) {
            self.subflows[slot].rx.ack.now = true;
        }
    }

    /// The data level has had bytes of the subflow in `slot`; it stood at `before`.
    pub(super) fn on_placed(&mut self, now: Instant, slot: Slot, before: u64, shared: &mut Shared) {
        self.note_held(now);
        let next = self.receiver.next();
        if shared.config.profile.coupled_acks {
            for subflow in self.subflows.iter_mut() {
                subflow.rx.ack.now |= subflow.rx.ahead.release(next);
            }
        }
        let subflow = &mut self.subflows[slot];
        if !subflow.rx.maps.is_empty() {
            subflow.rx.maps.release(subflow.rx.placed());
        }
        if self.receiver.next() > before {
            self.paths.lost_subflows.clear();
            self.subflows[slot].useful = true;
            self.receiver.autotune(now, || self.subflows.iter().filter_map(Subflow::receiver_rtt).max());
            shared.event(self.id, Event::Readable);
            self.route_data_ack(now, slot);
        }
    }

    /// The ACK path policy may want the DATA_ACK on another subflow at once. Not on one without SACK, whose sender
    /// would take it for a duplicate ACK.
    fn route_data_ack(&mut self, now: Instant, slot: Slot) {
        if self.subflows.len() < 2 || self.life.mode() != Mode::Multipath || !self.acks.policy.capabilities.moves {
            return;
        }
        let arrived = self.subflows[slot].id;
        self.acks.survey(&self.subflows);
        let chosen = self.acks.policy.data_ack(now, arrived, &self.acks.routes);
        if chosen != arrived
            && let Some(slot) = self.subflows.slot(chosen)
        {
            self.subflows[slot].rx.ack.now |= self.subflows[slot].sack;
        }
    }

    fn take_subflow_fin(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let rx = &mut self.subflows[slot].rx;
        if !rx.take_fin() {
            return;
        }
        if self.role == Role::Client {
            // The next connection may begin before this one is forgotten.
            self.subflows[slot].remember_path(&mut shared.memory);
        }
        let rx = &self.subflows[slot].rx;
        if self.life.mode() == Mode::Plain {
            let end = rx.rcv_nxt - 2;
            if self.receiver.receive_fin(end) {
                self.after_read(shared);
            }
            return;
        }
        // A subflow's FIN without DATA_FIN ends that subflow only, not the stream (RFC 8684 §3.3.3): answer in kind.
        // After the peer's DATA_FIN it only says once more that nothing comes from there; ours may still flow the other
        // way.
        if !self.receiver.finished() {
            self.leave_subflow(now, slot, shared);
        }
    }
}
