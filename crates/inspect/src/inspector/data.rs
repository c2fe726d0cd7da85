//! Acknowledgments, payload and mappings, at both levels.

use super::{Inspector, Packet};
use crate::coverage::length;
use crate::flow::Pending;
use crate::mapping::Mapping;
use crate::sequence::{Data, Sent};
use crate::signal::{Signal, What};
use crate::version::Version;
use anabranch_units::Instant;
use anabranch_wire::{Checksum, DataSeq, Flags, Map, MpCapable, MpOption, Payload, Segment};
use std::ops::Range;

impl Inspector {
    /// ACK, DATA_ACK and window.
    pub(super) fn acknowledgment(&mut self, packet: &Packet<'_>, print: u64) {
        let Packet { at, segment, flow, from, .. } = *packet;
        if segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::RST) {
            let with_sack = segment.options.has_sack();
            let peer = &mut self.flows[flow].sides[1 - from].sequence;
            if let Some(sent) = peer.acknowledge(segment.ack, with_sack, at) {
                self.copies.acknowledges(print, sent);
            }
            if !segment.flags.has(Flags::SYN) {
                self.flows[flow].sides[from].zero_window.advertise(segment.window, at);
            }
        }
        let Some(dss) = &segment.options.dss() else { return };
        let needs_kin = match self.flows[flow].member {
            None => true,
            Some(member) => self.connections[member.connection].is_unsettled(),
        };
        if needs_kin && self.flows[flow].dss_tries < MOST_COMPARISONS {
            self.infer(packet);
        }
        if let (Some(ack), Some(member)) = (dss.data_ack, self.flows[flow].member) {
            self.connections[member.connection].streams[1 - member.side(from)].data_ack(ack, at);
        }
    }

    /// Payload and mapping.
    pub(super) fn data(&mut self, packet: &Packet<'_>) {
        let Packet { at, segment, length: bytes, flow, from } = *packet;
        if segment.flags.has(Flags::RST) {
            return;
        }
        let map = mapping_of(segment);
        let reordering = self.flows[flow].reordering();
        let side = &mut self.flows[flow].sides[from];
        let Some(position) = side.sequence.position(segment.seq) else { return };
        // The SYN takes the first sequence number (RFC 9293 §3.4), the payload those behind it.
        let start = position + i64::from(segment.flags.has(Flags::SYN));
        if segment.flags.has(Flags::FIN) {
            side.sequence.fin.get_or_insert(start.saturating_add_unsigned(bytes));
        }
        let range = start..start.saturating_add_unsigned(bytes);
        if let Some((map, true)) = map
            && bytes == 0
        {
            self.lone_fin(packet, map);
        }
        if bytes == 0 {
            return;
        }
        let timestamp = segment.options.timestamps().map(|timestamps| timestamps.value);
        match self.flows[flow].sides[from].sequence.send(Data { start, length: bytes, timestamp }, at, reordering) {
            Sent::Copy => {
                self.totals.copies += 1;
                self.flows[flow].copies += 1;
            }
            Sent::Again => {}
            Sent::Data(inserted) => {
                let side = &mut self.flows[flow].sides[from];
                // Mappings count from the initial sequence number (RFC 8684 §3.3.1): data waits until it is known, and
                // so does all that comes while some waits, so that nothing overtakes.
                if side.sequence.isn.is_none() || side.has_pending() {
                    side.wait(range, map, at);
                    self.replay(flow, from, false);
                    return;
                }
                if let Some((map, fin)) = map {
                    self.map(flow, from, map, fin, &range, at);
                }
                for fresh in inserted.fresh {
                    let skip = length(&(range.start..fresh.start)).min(segment.payload.len() as u64) as usize;
                    let end = length(&(range.start..fresh.end)).min(segment.payload.len() as u64) as usize;
                    self.place(flow, from, fresh, &segment.payload.slice(skip..end), at);
                }
            }
        }
    }

    fn lone_fin(&mut self, packet: &Packet<'_>, map: Map) {
        let flow = &mut self.flows[packet.flow];
        let Some(member) = flow.member else { return };
        let stream = &mut self.connections[member.connection].streams[member.side(packet.from)];
        let Some(position) = stream.position(map.dsn) else { return };
        let fin = position + i64::from(map.length) - 1;
        stream.data_fin(fin, packet.at);
        if map.length == 1 {
            let dsn = stream.dsn(position).filter(|(_, upper)| *upper).map(|(dsn, _)| dsn);
            let mapping = Mapping {
                start: 0,
                data: position..position,
                dsn,
                subflow_seq: map.subflow_seq,
                wire_length: map.length,
                checksum: map.checksum,
                sum: Checksum::new(),
                summed: 0,
                cut: false,
            };
            flow.sides[packet.from].mappings.add(mapping);
        }
    }

    /// Takes in a mapping that came with a segment at `range` of the subflow.
    fn map(&mut self, flow: usize, from: usize, map: Map, fin: bool, range: &Range<i64>, at: Instant) {
        let Some(member) = self.flows[flow].member else { return };
        let history = self.limits.history(self.connections.len());
        let side = &mut self.flows[flow].sides[from];
        let Some(here) = side.sequence.relative(range) else { return };
        let stream = &mut self.connections[member.connection].streams[member.side(from)];
        let Some(position) = stream.position(map.dsn) else { return };
        let start = here.start + i64::from(map.subflow_seq.wrapping_sub(here.start as u32).cast_signed());
        if map.length == 0 {
            if side.mappings.infinite.is_none() {
                side.mappings.infinite = Some((start, position));
                let signal = Signal { at, from, what: What::InfiniteMapping, count: 1 };
                self.flows[flow].signals.push(signal);
            }
            return;
        }
        let bytes = i64::from(map.length) - i64::from(fin);
        if fin {
            stream.data_fin(position + bytes, at);
        }
        let mapping = Mapping {
            start,
            data: position..position + bytes,
            dsn: stream.dsn(position).filter(|(_, upper)| *upper).map(|(dsn, _)| dsn),
            subflow_seq: map.subflow_seq,
            wire_length: map.length,
            checksum: map.checksum,
            sum: Checksum::new(),
            summed: 0,
            cut: false,
        };
        for placed in side.mappings.add(mapping) {
            stream.carry(placed, member.subflow, at, history);
        }
    }

    /// Bytes at `range` of the subflow pass for the first time.
    fn place(&mut self, flow: usize, from: usize, range: Range<i64>, payload: &Payload, at: Instant) {
        let Some(member) = self.flows[flow].member else { return };
        let history = self.limits.history(self.connections.len());
        let side = &mut self.flows[flow].sides[from];
        let Some(relative) = side.sequence.relative(&range) else { return };
        let stream = &mut self.connections[member.connection].streams[member.side(from)];
        for placed in side.mappings.place(relative, payload) {
            stream.carry(placed, member.subflow, at, history);
        }
    }

    /// Goes through data that waited for the initial sequence number.
    pub(super) fn replay(&mut self, flow: usize, from: usize, at_end: bool) {
        for Pending { range, map, at } in self.flows[flow].sides[from].pending(at_end) {
            if let Some((map, fin)) = map {
                self.map(flow, from, map, fin, &range, at);
            }
            self.place(flow, from, range, &Payload::new(), at);
        }
    }
}

/// The mapping that a segment carries, and whether its last number is the DATA_FIN. MP_CAPABLE with data maps from the
/// first byte on (RFC 8684 §3.1).
pub(super) fn mapping_of(segment: &Segment) -> Option<(Map, bool)> {
    if let Some(dss) = &segment.options.dss() {
        return dss.map.map(|map| (map, dss.data_fin));
    }
    segment.options.mptcp().iter().find_map(|option| match option {
        MpOption::Capable(MpCapable { data: Some((length, checksum)), sender_key: Some(key), version, .. }) => {
            let dsn = DataSeq::Long(Version::of(*version).idsn(*key) + 1);
            Some((Map { dsn, subflow_seq: 1, length: *length, checksum: *checksum }, false))
        }
        _ => None,
    })
}

/// A flow is compared with all connections so often, which bounds what a flood of flows costs.
const MOST_COMPARISONS: u32 = 64;
