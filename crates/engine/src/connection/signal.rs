//! The data sequence signal: DATA_ACK, mapping, DATA_FIN (RFC 8684 §3.3).

use super::Connection;
use crate::FallbackReason;
use crate::mapping::{Contradiction, Held, Mapping, Proof};
use crate::shared::Shared;
use anabranch_units::{Instant, SubflowSeq};
use anabranch_wire::{DataSeq, Dss, Map, ResetReason, Segment};
use bytes::Bytes as Payload;

impl Connection {
    /// True if the subflow is still there.
    pub(super) fn handle_dss(
        &mut self,
        now: Instant,
        index: usize,
        start: u64,
        segment: &Segment,
        dss: &Dss,
        shared: &mut Shared,
    ) -> bool {
        self.take_data_ack(now, index, segment, dss, shared);
        let Some(map) = dss.map else { return true };
        if map.length == 0 {
            if self.can_follow() {
                self.fall_back(now, FallbackReason::InfiniteMapping, shared);
                return true;
            }
            self.bad_mapping(now, index, ResetReason::MptcpError, shared);
            return false;
        }
        self.negotiated.long_dsn |= matches!(map.dsn, DataSeq::Long(_));
        let Some(data) = self.data_offset(map.dsn) else {
            // Before the start of the stream: nothing of ours. An old duplicate cannot be, since there is no earlier stream.
            self.bad_mapping(now, index, ResetReason::MptcpError, shared);
            return false;
        };
        self.take_map(now, index, start, segment, &map, data, dss.data_fin, shared)
    }

    /// Takes in the DATA_ACK of a DSS, if it has one.
    pub(super) fn take_data_ack(
        &mut self,
        now: Instant,
        index: usize,
        segment: &Segment,
        dss: &Dss,
        shared: &mut Shared,
    ) {
        let Some(ack) = dss.data_ack else { return };
        let window = u64::from(segment.window) << self.subflows[index].tx.snd_scale;
        if let Some(offset) = self.data_ack_offset(ack)
            && self.on_data_ack(now, offset, window, shared)
        {
            let acked = self.dsn(offset);
            let highest = &mut self.subflows[index].tx.data_acked;
            *highest = highest.filter(|highest| highest.after(acked)).or(Some(acked));
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn take_map(
        &mut self,
        now: Instant,
        index: usize,
        start: u64,
        segment: &Segment,
        map: &Map,
        data: u64,
        data_fin: bool,
        shared: &mut Shared,
    ) -> bool {
        let length = u64::from(map.length) - u64::from(data_fin);
        let proof = match (self.negotiated.checksum, map.checksum) {
            (true, Some(checksum)) => Some(Proof { checksum, data_fin }),
            (false, None) => None,
            // §3.3.1: one that was agreed on and is not there, or the other way round, means a broken subflow.
            (true, None) | (false, Some(_)) => {
                self.bad_mapping(now, index, ResetReason::MptcpError, shared);
                return false;
            }
        };
        if length == 0 {
            // A DATA_FIN of its own, whose checksum covers just the pseudo-header.
            let lone = Mapping { subflow: u64::from(map.subflow_seq), data, length, proof };
            if proof.is_some_and(|proof| !self.verify(index, &lone, proof, Some(&Payload::new()))) {
                return self.on_checksum_failure(now, index, &lone, shared);
            }
            return self.take_data_fin(now, index, data, shared);
        }
        if data_fin && proof.is_none() && !self.take_data_fin(now, index, data + length, shared) {
            return false;
        }
        let subflow = &mut self.subflows[index];
        let Some(first) = SubflowSeq::new(map.subflow_seq).offset_near(SubflowSeq::new(0), subflow.rx.rcv_nxt) else {
            return true;
        };
        let mapping = Mapping { subflow: first, data, length, proof };
        // The common cases wait for nothing: the segment is next, and lies in the mapping that it carries.
        let end = start + segment.payload.len() as u64;
        let next = start == subflow.rx.rcv_nxt && subflow.rx.ofo.is_empty() && subflow.rx.unplaced.is_empty();
        let inside = next && first <= start && start < end && end <= first + length;
        let whole = inside && first == start && end == first + length && subflow.rx.maps.is_empty();
        match proof {
            None if whole => {
                self.sender.waiting.own_map = Some(data);
                return true;
            }
            // The table holds it for the segments to come, which may not repeat it.
            None if inside && self.hold_map(index, mapping).is_ok() => {
                self.sender.waiting.own_map = Some(data + (start - first));
                return true;
            }
            Some(proof) if whole && !proof.data_fin && self.verify(index, &mapping, proof, Some(&segment.payload)) => {
                self.sender.waiting.own_map = Some(data);
                return true;
            }
            _ => {}
        }
        let subflow = &mut self.subflows[index];
        if first + length <= subflow.rx.placed() {
            return true;
        }
        // What is proven as a whole cannot begin where something else has ended already.
        let cut = proof.is_some() && first < subflow.rx.placed();
        let Some(held) = self.hold_map(index, mapping).ok().filter(|_| !cut) else {
            self.bad_mapping(now, index, ResetReason::MptcpError, shared);
            return false;
        };
        // It may be what earlier bytes wait for.
        if !self.subflows[index].rx.unplaced.is_empty() {
            self.subflows[index].rx.ack.now = true;
            if !self.place(now, index, shared) {
                return false;
            }
        }
        self.sender.waiting.map_refused = !held && start < end;
        true
    }

    /// Puts a mapping into the table of subflow `index`; true if it is held now. What a full table forgets comes again
    /// together with its bytes, which are therefore not kept either: bytes in order without a mapping are a sign that
    /// options are lost.
    pub(super) fn hold_map(&mut self, index: usize, mapping: Mapping) -> Result<bool, Contradiction> {
        let subflow = &mut self.subflows[index];
        let held = subflow.rx.maps.insert(mapping)?;
        if let Held::InsteadOf(edge) = held {
            subflow.rx.ofo.drop_beyond(edge);
        }
        Ok(held != Held::No)
    }

    /// The peer's stream ends at data offset `at` (§3.3.3). False if the subflow is gone.
    pub(super) fn take_data_fin(&mut self, now: Instant, index: usize, at: u64, shared: &mut Shared) -> bool {
        if !self.receiver.receive_fin(at) {
            self.bad_mapping(now, index, ResetReason::MptcpError, shared);
            return false;
        }
        self.subflows[index].rx.ack.now = true;
        self.after_read(shared);
        true
    }

    /// The mapping cannot be: the peer or a middlebox is broken, and the subflow is useless.
    pub(super) fn bad_mapping(&mut self, now: Instant, index: usize, reason: ResetReason, shared: &mut Shared) {
        self.sender.waiting.own_map = None;
        self.kill(now, index, reason, shared);
    }
}
