//! The data sequence signal: DATA_ACK, mapping, DATA_FIN (RFC 8684 §3.3).

use super::Connection;
use crate::FallbackReason;
use crate::mapping::Mapping;
use crate::shared::Shared;
use anabranch_units::{Instant, SubflowSeq};
use anabranch_wire::{Dss, Map, ResetReason, Segment};

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
        if let Some(ack) = dss.data_ack {
            let window = u64::from(segment.window) << self.subflows[index].snd_scale;
            if let Some(offset) = self.data_ack_offset(ack) {
                self.on_data_ack(now, offset, window, shared);
            }
        }
        let Some(map) = dss.map else { return true };
        if map.length == 0 {
            if self.can_fall_back() {
                self.fall_back(now, FallbackReason::InfiniteMapping, shared);
                return true;
            }
            self.bad_mapping(now, index, ResetReason::MptcpError, shared);
            return false;
        }
        let Some(data) = self.data_offset(map.dsn) else {
            // Before the start of the stream: nothing of ours. An old duplicate cannot be, since there is no earlier stream.
            self.bad_mapping(now, index, ResetReason::MptcpError, shared);
            return false;
        };
        self.take_map(now, index, start, segment, &map, data, dss.data_fin, shared)
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
        if data_fin && !self.receiver.receive_fin(data + length) {
            self.bad_mapping(now, index, ResetReason::MptcpError, shared);
            return false;
        }
        if data_fin {
            self.subflows[index].ack.now = true;
            self.after_read(shared);
        }
        if length == 0 {
            return true;
        }
        let subflow = &mut self.subflows[index];
        let Some(first) = SubflowSeq::new(map.subflow_seq).offset_near(SubflowSeq::new(0), subflow.rcv_nxt) else {
            return true;
        };
        // The common case needs no table: the map is the segment's own, and the segment is next.
        let own = first == start && length == segment.payload.len() as u64;
        if own
            && start == subflow.rcv_nxt
            && subflow.maps.is_empty()
            && subflow.ofo.is_empty()
            && subflow.unplaced.is_empty()
        {
            self.waiting.own_map = Some(data);
            return true;
        }
        if first + length <= subflow.placed() {
            return true;
        }
        if subflow.maps.insert(Mapping { subflow: first, data, length, proof: None }).is_err() {
            self.bad_mapping(now, index, ResetReason::MptcpError, shared);
            return false;
        }
        // It may be what earlier bytes wait for.
        self.subflows[index].unplaced.is_empty() || self.place(now, index, shared)
    }

    /// The mapping cannot be: the peer or a middlebox is broken, and the subflow is useless.
    pub(super) fn bad_mapping(&mut self, now: Instant, index: usize, reason: ResetReason, shared: &mut Shared) {
        self.waiting.own_map = None;
        self.kill(now, index, reason, shared);
    }
}
