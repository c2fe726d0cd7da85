//! The data sequence signal: DATA_ACK, mapping, DATA_FIN (RFC 8684 §3.3).

use super::Connection;
use super::slots::Slot;
use crate::FallbackReason;
use crate::mapping::{Mapping, Proof};
use crate::shared::Shared;
use anabranch_units::{Instant, SubflowSeq};
use anabranch_wire::{Dss, Map, ResetReason, Segment};

/// Place of a segment's bytes at the data level, as far as its own DSS tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Placing {
    /// Found in the table of mappings; in plain TCP, by the subflow's order.
    ByTable,
    /// Found at this data offset: the segment is next and carries its mapping.
    At(u64),
    /// Nowhere: there was no room for the mapping that it carries, so the bytes are not kept either.
    Refused,
}

impl Connection {
    /// Takes a DSS in. Where the segment's bytes belong; `None` if the subflow is gone.
    pub(super) fn handle_dss(
        &mut self,
        now: Instant,
        slot: Slot,
        start: u64,
        segment: &Segment,
        dss: &Dss,
        shared: &mut Shared,
    ) -> Option<Placing> {
        self.take_data_ack(now, slot, segment, dss, shared);
        let Some(map) = dss.map else { return Some(Placing::ByTable) };
        if map.length == 0 {
            // An infinite mapping holds from the first byte that comes with it; without a byte, or a FIN in its place,
            // it maps nothing (A-INFINITE).
            if segment.sequence_length() == 0 {
                return Some(Placing::ByTable);
            }
            if self.can_follow() {
                self.fall_back(now, FallbackReason::InfiniteMapping, shared);
                return Some(Placing::ByTable);
            }
            self.bad_mapping(now, slot, ResetReason::MptcpError, shared);
            return None;
        }
        if self.negotiated.dss.note_peer(map.dsn, self.receiver.next()) {
            self.on_longer_dss();
        }
        let Some(data) = self.keys.data_offset(map.dsn, self.receiver.next()) else {
            // Before the start of the stream: nothing of ours. An old duplicate cannot be, since there is no earlier
            // stream.
            self.bad_mapping(now, slot, ResetReason::MptcpError, shared);
            return None;
        };
        self.take_map(now, slot, (start, segment), &map, (data, dss.data_fin), shared)
    }

    /// Takes in the DATA_ACK of a DSS, if it has one.
    #[inline]
    pub(super) fn take_data_ack(
        &mut self,
        now: Instant,
        slot: Slot,
        segment: &Segment,
        dss: &Dss,
        shared: &mut Shared,
    ) {
        let Some(ack) = dss.data_ack else { return };
        let window = u64::from(segment.window) << self.subflows[slot].tx.snd_scale;
        if let Some(offset) = self.keys.data_ack_offset(ack, self.sender.outgoing.una)
            && self.on_data_ack(now, offset, window, shared)
        {
            let acked = self.keys.dsn(offset);
            let highest = &mut self.subflows[slot].tx.data_acked;
            *highest = highest.filter(|highest| highest.after(acked)).or(Some(acked));
        }
    }

    /// Takes in a mapping of a segment that begins at subflow offset `start`: data offset `data` on, with the DATA_FIN
    /// if `data_fin`.
    fn take_map(
        &mut self,
        now: Instant,
        slot: Slot,
        (start, segment): (u64, &Segment),
        map: &Map,
        (data, data_fin): (u64, bool),
        shared: &mut Shared,
    ) -> Option<Placing> {
        let length = u64::from(map.length) - u64::from(data_fin);
        let proof = match (self.negotiated.checksum, map.checksum) {
            (true, Some(checksum)) => Some(Proof { checksum, data_fin }),
            (false, None) => None,
            // §3.3.1: one that was agreed on and is not there, or the other way round, means a broken subflow.
            (true, None) | (false, Some(_)) => {
                self.bad_mapping(now, slot, ResetReason::MptcpError, shared);
                return None;
            }
        };
        if length == 0 {
            // A DATA_FIN of its own, whose checksum covers just the pseudo-header.
            let lone = Mapping { subflow: u64::from(map.subflow_seq), data, length, proof };
            let alive = match proof {
                Some(proof) if !self.keys.is_intact(&lone, proof, []) => {
                    self.on_checksum_failure(now, slot, &lone, shared)
                }
                _ => self.take_data_fin(now, slot, data, shared),
            };
            return alive.then_some(Placing::ByTable);
        }
        if data_fin && proof.is_none() && !self.take_data_fin(now, slot, data + length, shared) {
            return None;
        }
        let near = self.subflows[slot].rx.rcv_nxt;
        let Some(first) = SubflowSeq::new(map.subflow_seq).offset_near(SubflowSeq::new(0), near) else {
            return Some(Placing::ByTable);
        };
        let mapping = Mapping { subflow: first, data, length, proof };
        match self.place_at_once(slot, start, segment, mapping) {
            Some(at) => Some(Placing::At(at)),
            None => self.keep_map(now, slot, mapping, !segment.payload.is_empty(), shared),
        }
    }

    /// The data offset of a segment that waits for nothing: it is next on its subflow, and lies in the mapping that it
    /// carries. The common cases.
    fn place_at_once(&mut self, slot: Slot, start: u64, segment: &Segment, mapping: Mapping) -> Option<u64> {
        let rx = &self.subflows[slot].rx;
        let (first, end) = (mapping.subflow, start + segment.payload.len() as u64);
        let next = start == rx.rcv_nxt && rx.ofo.is_empty() && rx.unplaced.is_empty();
        let inside = next && first <= start && start < end && end <= mapping.end();
        let whole = inside && first == start && end == mapping.end() && rx.maps.is_empty();
        let taken = match mapping.proof {
            // The table holds one that reaches further for the segments to come, which may not repeat it.
            None => whole || inside && self.subflows[slot].rx.hold_map(mapping).is_ok(),
            Some(proof) => whole && !proof.data_fin && self.keys.is_intact(&mapping, proof, [segment.payload.as_ref()]),
        };
        taken.then(|| mapping.data + (start - first))
    }

    /// Keeps a mapping for bytes that are not there, or not next; `carries` bytes itself.
    fn keep_map(
        &mut self,
        now: Instant,
        slot: Slot,
        mapping: Mapping,
        carries: bool,
        shared: &mut Shared,
    ) -> Option<Placing> {
        let placed = self.subflows[slot].rx.placed();
        if mapping.end() <= placed {
            return Some(Placing::ByTable);
        }
        // What is proven as a whole cannot begin where something else has ended already.
        let cut = mapping.proof.is_some() && mapping.subflow < placed;
        let Some(held) = self.subflows[slot].rx.hold_map(mapping).ok().filter(|_| !cut) else {
            self.bad_mapping(now, slot, ResetReason::MptcpError, shared);
            return None;
        };
        // It may be what earlier bytes wait for.
        if !self.subflows[slot].rx.unplaced.is_empty() {
            self.subflows[slot].rx.ack.now = true;
            if !self.place(now, slot, shared) {
                return None;
            }
        }
        Some(if !held && carries { Placing::Refused } else { Placing::ByTable })
    }

    /// The peer's stream ends at data offset `at` (§3.3.3). False if the subflow is gone.
    pub(super) fn take_data_fin(&mut self, now: Instant, slot: Slot, at: u64, shared: &mut Shared) -> bool {
        if !self.receiver.receive_fin(at) {
            self.bad_mapping(now, slot, ResetReason::MptcpError, shared);
            return false;
        }
        self.subflows[slot].rx.ack.now = true;
        self.after_read(shared);
        true
    }

    /// The mapping cannot be: the peer or a middlebox is broken, and the subflow is useless.
    pub(super) fn bad_mapping(&mut self, now: Instant, slot: Slot, reason: ResetReason, shared: &mut Shared) {
        self.kill(now, slot, reason, shared);
    }
}
