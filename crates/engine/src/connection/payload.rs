//! The bytes of a segment: through subflow order and their mapping to the data level.

use super::{Connection, Mode};
use crate::shared::Shared;
use crate::{Event, FallbackReason};
use anabranch_units::Instant;
use anabranch_wire::{Flags, ResetReason, Segment};
use bytes::Bytes as Payload;

impl Connection {
    pub(super) fn handle_payload(
        &mut self,
        now: Instant,
        index: usize,
        start: u64,
        segment: &mut Segment,
        shared: &mut Shared,
    ) {
        let fin = segment.flags.has(Flags::FIN);
        let end = start + segment.payload.len() as u64;
        let own_map = self.waiting.own_map.take();
        if !segment.payload.is_empty() {
            self.receiver.on_segment();
        }
        let subflow = &mut self.subflows[index];
        if fin {
            match subflow.peer_fin {
                Some(known) if known != end => {
                    shared.counters.unacceptable += 1;
                    return;
                }
                _ => subflow.peer_fin = Some(end),
            }
            subflow.ack.now = true;
        }
        if subflow.peer_fin.is_some_and(|known| end > known) {
            shared.counters.unacceptable += 1;
            return;
        }
        if self.mode == Mode::Plain && !segment.payload.is_empty() && end - 1 > self.receiver.edge() {
            // Plain TCP has no second level to repeat what the window does not admit (a window probe, for example): it must
            // not be acknowledged here either.
            shared.counters.unacceptable += 1;
            self.subflows[index].ack.now = true;
            return;
        }
        self.note_arrival(now, index, start, end, shared);
        let subflow = &mut self.subflows[index];
        if start > subflow.rcv_nxt {
            let length = segment.payload.len() as u64;
            let stored = subflow.ofo.insert(start, std::mem::take(&mut segment.payload));
            if stored < length && stored > 0 || (stored == 0 && subflow.ofo.runs().any(|(a, b)| a <= start && end <= b))
            {
                subflow.ack.duplicate = Some((start, end));
            }
            return;
        }
        let mut payload = std::mem::take(&mut segment.payload);
        if start < subflow.rcv_nxt {
            let behind = ((subflow.rcv_nxt - start) as usize).min(payload.len());
            payload = payload.slice(behind..);
        }
        let had_holes = !subflow.ofo.is_empty();
        let id = subflow.id;
        if !payload.is_empty() && !self.consume(now, index, payload, own_map, shared) {
            return;
        }
        while had_holes && self.position(id) == Some(index) {
            let subflow = &mut self.subflows[index];
            let Some((_, chunk)) = subflow.ofo.pop(subflow.rcv_nxt) else { break };
            if !self.consume(now, index, chunk, None, shared) {
                return;
            }
        }
        self.take_subflow_fin(now, index, shared);
    }

    /// When the ACK for this arrival is due (RFC 5681 §4.2).
    fn note_arrival(&mut self, now: Instant, index: usize, start: u64, end: u64, shared: &Shared) {
        let profile = &shared.config.profile;
        let subflow = &mut self.subflows[index];
        let ack = &mut subflow.ack;
        // After idling for a timeout the sender begins with a small window again, as at the start.
        let idle = ack.last_data.is_some_and(|last| now.since(last) > subflow.rtt.rto());
        if idle {
            ack.quick = profile.quick_acks;
        }
        ack.last_data = Some(now);
        ack.segments += 1;
        let in_order = start <= subflow.rcv_nxt && end > subflow.rcv_nxt && subflow.ofo.is_empty();
        // Two full segments; ours are full as the peer's, whose options are alike.
        match profile.delayed_ack {
            Some(delay) if in_order && ack.quick == 0 && ack.segments < 2 => {
                ack.deadline.get_or_insert(now + delay);
            }
            _ => ack.now = true,
        }
        ack.quick = ack.quick.saturating_sub(1);
    }

    /// Subflow bytes in order: to the data level, where their mapping says. False if the subflow is gone.
    fn consume(
        &mut self,
        now: Instant,
        index: usize,
        payload: Payload,
        own_map: Option<u64>,
        shared: &mut Shared,
    ) -> bool {
        let length = payload.len() as u64;
        let at = self.subflows[index].rcv_nxt;
        let before = self.receiver.next();
        if let Some(data) = own_map {
            self.receiver.receive(now, data, payload);
        } else if self.mode == Mode::Plain {
            self.receiver.receive(now, at - 1, payload);
        } else if !self.consume_mapped(now, index, at, payload, shared) {
            return false;
        }
        let subflow = &mut self.subflows[index];
        subflow.rcv_nxt = at + length;
        subflow.counts.bytes_received += length;
        if own_map.is_none() {
            subflow.maps.release(subflow.rcv_nxt);
        }
        if self.receiver.next() > before {
            shared.event(self.id, Event::Readable);
            self.route_data_ack(now, index);
        }
        true
    }

    fn consume_mapped(&mut self, now: Instant, index: usize, at: u64, payload: Payload, shared: &mut Shared) -> bool {
        let mut done = 0;
        while done < payload.len() {
            let Some((data, left)) = self.subflows[index].maps.lookup(at + done as u64) else {
                if self.can_fall_back_at(at + done as u64) {
                    self.fall_back(FallbackReason::OptionsLost, shared);
                    self.receiver.receive(now, at - 1 + done as u64, payload.slice(done..));
                    return true;
                }
                self.bad_mapping(now, index, ResetReason::Middlebox, shared);
                return false;
            };
            let take = (left as usize).min(payload.len() - done);
            self.receiver.receive(now, data, payload.slice(done..done + take));
            done += take;
        }
        true
    }

    /// The ACK path policy may want the DATA_ACK on another subflow as well.
    fn route_data_ack(&mut self, now: Instant, index: usize) {
        if self.subflows.len() < 2 || self.mode != Mode::Multipath {
            return;
        }
        let arrived = self.subflows[index].id;
        let mut routes =
            [anabranch_policy::ack_path::AckRoute { id: arrived, srtt: None }; crate::config::MAX_SUBFLOWS];
        let mut count = 0;
        for subflow in self.subflows.iter().filter(|subflow| subflow.is_open()) {
            routes[count] = anabranch_policy::ack_path::AckRoute { id: subflow.id, srtt: subflow.rtt.srtt() };
            count += 1;
        }
        let chosen = self.ack_path.choose(now, arrived, &routes[..count]);
        if chosen != arrived
            && let Some(index) = self.position(chosen)
        {
            self.subflows[index].ack.now = true;
        }
    }

    fn take_subflow_fin(&mut self, now: Instant, index: usize, shared: &mut Shared) {
        let subflow = &mut self.subflows[index];
        if subflow.peer_fin != Some(subflow.rcv_nxt) {
            return;
        }
        subflow.rcv_nxt += 1;
        subflow.ack.now = true;
        if self.mode == Mode::Plain {
            let end = subflow.rcv_nxt - 2;
            if self.receiver.receive_fin(end) {
                self.after_read(shared);
            }
            return;
        }
        // A subflow's FIN without DATA_FIN ends that subflow only (RFC 8684 §3.3.3): answer in kind.
        if !self.receiver.finished() || !self.outgoing.fin_acked {
            self.leave_subflow(now, index, shared);
        }
    }
}
