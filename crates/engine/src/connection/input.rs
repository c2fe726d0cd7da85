//! A segment arrives on a subflow.

use super::{Connection, Mode, Role};
use crate::mapping::Mapping;
use crate::recovery::{AckIn, Phase};
use crate::shared::Shared;
use crate::subflow::{State, Subflow};
use crate::{Event, FallbackReason, Purpose};
use anabranch_units::{Bytes, Duration, Instant, SubflowSeq};
use anabranch_wire::{Dss, Flags, Map, MpOption, ResetReason, Segment};
use bytes::Bytes as Payload;

/// Between two challenge ACKs on one subflow (Linux `tcp_invalid_ratelimit`: 500 ms).
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(500);

impl Connection {
    /// A segment of this subflow. Its payload is taken out.
    pub(crate) fn handle_segment(&mut self, now: Instant, index: usize, segment: &mut Segment, shared: &mut Shared) {
        match self.subflows[index].state {
            State::SynSent => return self.on_syn_sent(now, index, segment, shared),
            State::SynReceived => {
                let id = self.subflows[index].id;
                if !self.on_syn_received(now, index, segment, shared) || self.position(id) != Some(index) {
                    return;
                }
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
        let subflow = &self.subflows[index];
        let Some(ack) = acceptable_ack(subflow, segment) else {
            shared.counters.unacceptable += 1;
            return self.challenge(now, index, shared);
        };
        let id = subflow.id;
        if let Some(timestamps) = segment.options.timestamps.filter(|_| start <= subflow.rcv_nxt) {
            self.subflows[index].ts_recent = timestamps.value;
        }
        if segment.options.mptcp.is_some() {
            self.handle_options(now, index, segment, shared);
            if self.gone || self.position(id) != Some(index) {
                return;
            }
        }
        if !self.check_negotiation(now, index, segment, ack, shared) {
            return;
        }
        self.handle_ack(now, index, segment, ack);
        if self.mode == Mode::Multipath {
            if let Some(dss) = segment.options.dss
                && !self.handle_dss(now, index, start, segment, &dss, shared)
            {
                return;
            }
        } else {
            self.handle_plain_ack(now, index, segment, ack, shared);
        }
        if !segment.payload.is_empty() || segment.flags.has(Flags::FIN) {
            self.handle_payload(now, index, start, segment, shared);
        }
    }

    /// The subflow offset of an acceptable segment (RFC 9293 §3.10.7.4, RFC 7323 §5.3); others are answered and dropped.
    fn check_acceptable(&mut self, now: Instant, index: usize, segment: &Segment, shared: &mut Shared) -> Option<u64> {
        let window = self.receiver.window().max(1) + u64::from(u16::MAX);
        let subflow = &mut self.subflows[index];
        let rst = segment.flags.has(Flags::RST);
        if subflow.timestamps && !rst {
            match segment.options.timestamps {
                Some(timestamps) if (timestamps.value.wrapping_sub(subflow.ts_recent) as i32) < 0 => {
                    shared.counters.unacceptable += 1;
                    subflow.ack.now = true;
                    return None;
                }
                // RFC 7323 §3.2: once negotiated, every segment carries it.
                None => {
                    shared.counters.unacceptable += 1;
                    return None;
                }
                Some(_) => {}
            }
        }
        let start = segment.seq.offset_near(subflow.irs, subflow.rcv_nxt);
        let length = segment.sequence_length();
        let acceptable = start.filter(|start| {
            let end = start + length;
            *start <= subflow.rcv_nxt + window
                && (end > subflow.rcv_nxt || (end == subflow.rcv_nxt && (length == 0 || rst)))
        });
        let Some(start) = acceptable else {
            if segment.flags.has(Flags::SYN) && !rst {
                self.answer_syn(now, index, segment, shared);
                return None;
            }
            if !rst {
                let repeated = start.filter(|start| length > 0 && start + length <= subflow.rcv_nxt);
                if let Some(start) = repeated {
                    subflow.ack.duplicate = Some((start, start + length));
                    // The peer may have repeated it because its own view is stale: take what it acknowledges. What lies
                    // further back than a window is nobody's repetition.
                    if subflow.rcv_nxt - start <= window && acceptable_ack(subflow, segment).is_some() {
                        self.take_late_data_ack(now, segment, index, shared);
                    }
                }
                self.subflows[index].ack.now = true;
            }
            return None;
        };
        Some(start)
    }

    /// The DATA_ACK of a segment whose subflow-level bytes were received before.
    fn take_late_data_ack(&mut self, now: Instant, segment: &Segment, index: usize, shared: &mut Shared) {
        let Some(ack) = segment.options.dss.and_then(|dss| dss.data_ack).filter(|_| self.mode == Mode::Multipath)
        else {
            return;
        };
        let window = u64::from(segment.window) << self.subflows[index].snd_scale;
        if let Some(offset) = self.data_ack_offset(ack) {
            self.on_data_ack(now, offset, window, shared);
        }
    }

    /// RFC 5961 §3: a RST counts only if it is exactly in sequence; otherwise the peer is asked.
    fn check_reset(&mut self, now: Instant, index: usize, start: u64, segment: &Segment, shared: &mut Shared) {
        if start != self.subflows[index].rcv_nxt {
            return self.challenge(now, index, shared);
        }
        for option in segment.options.mptcp() {
            if let MpOption::FastClose { receiver_key } = option
                && self.on_fast_close(now, *receiver_key, true, shared)
            {
                return;
            }
        }
        self.on_reset(now, index, shared);
    }

    /// A SYN on a synchronised subflow: the peer has not seen our third ACK, or somebody guesses.
    fn answer_syn(&mut self, now: Instant, index: usize, segment: &Segment, shared: &mut Shared) {
        shared.counters.unacceptable += 1;
        let subflow = &self.subflows[index];
        let repeated = segment.flags.has(Flags::SYN) && segment.flags.has(Flags::ACK) && segment.seq == subflow.irs;
        let unconfirmed = subflow.state == State::Confirming || (!subflow.is_join() && !self.confirmed);
        if repeated && unconfirmed {
            self.send_third_ack(now, index, shared);
        } else {
            self.challenge(now, index, shared);
        }
    }

    /// A challenge ACK (RFC 5961 §3.2), not too often (§7): two ends that disagree would answer each other for ever.
    fn challenge(&mut self, now: Instant, index: usize, shared: &mut Shared) {
        let subflow = &mut self.subflows[index];
        if subflow.challenged.is_none_or(|last| now.since(last) >= CHALLENGE_INTERVAL) {
            subflow.challenged = Some(now);
            self.send_ack_for(now, index, Vec::new(), Purpose::Challenge, shared);
        }
    }

    fn handle_options(&mut self, now: Instant, index: usize, segment: &Segment, shared: &mut Shared) {
        if self.mode != Mode::Multipath {
            return;
        }
        let id = self.subflows[index].id;
        for option in segment.options.mptcp() {
            let Some(index) = self.position(id).filter(|_| !self.gone) else { return };
            match option {
                MpOption::FastClose { receiver_key } => {
                    self.on_fast_close(now, *receiver_key, false, shared);
                }
                MpOption::Prio { backup } => {
                    self.subflows[index].backup_remote = *backup;
                    self.subflows_changed(now);
                }
                MpOption::AddAddr(add) => {
                    self.confirm(now, index, shared);
                    self.on_add_addr(now, index, add, shared);
                }
                MpOption::RemoveAddr(remove) => self.on_remove_addr(now, remove, shared),
                MpOption::Capable(capable) => {
                    if let Some((length, _)) = capable.data.filter(|_| self.role == Role::Server) {
                        self.confirm(now, index, shared);
                        let map = Mapping { subflow: 1, data: 0, length: u64::from(length) };
                        if self.subflows[index].rcv_nxt < 1 + map.length
                            && self.subflows[index].maps.insert(map).is_err()
                        {
                            self.bad_mapping(now, index, ResetReason::MptcpError, shared);
                        }
                    }
                }
                MpOption::JoinAck(_) => {
                    // Our fourth ACK was lost.
                    self.subflows[index].ack.now = true;
                }
                MpOption::JoinSyn(_) | MpOption::JoinSynAck(_) | MpOption::Fail { .. } | MpOption::TcpReset { .. } => {}
            }
        }
    }

    /// Whether MPTCP options still get through; falls back or resets where not (RFC 8684 §3.7). False if the segment has no
    /// meaning any more.
    fn check_negotiation(
        &mut self,
        now: Instant,
        index: usize,
        segment: &Segment,
        ack: u64,
        shared: &mut Shared,
    ) -> bool {
        if self.mode != Mode::Multipath {
            return true;
        }
        if segment.options.dss.is_some() {
            self.confirm(now, index, shared);
            return true;
        }
        if segment.options.has_mptcp() {
            return true;
        }
        let subflow = &self.subflows[index];
        if subflow.state == State::Confirming {
            // Not the fourth ACK. Data without its mapping will never make sense, so the peer had better know at once
            // (RFC 8684 §3.7) and send it elsewhere.
            if !segment.payload.is_empty() {
                self.kill(now, index, ResetReason::Middlebox, shared);
                return false;
            }
            return true;
        }
        let acks_data = ack > subflow.recovery.snd_una() && ack > 1 && self.outgoing.nxt > 0;
        // MPTCP peers put a DSS on their FINs too; a bare one closes a stream of plain TCP.
        let bare = segment.payload.is_empty() && !segment.flags.has(Flags::FIN);
        if bare && !acks_data {
            return true;
        }
        let first = !self.confirmed;
        if self.can_fall_back() {
            self.fall_back(if first { FallbackReason::FirstData } else { FallbackReason::OptionsLost }, shared);
            return true;
        }
        if bare {
            // An ACK without DSS among others with it (a stock kernel sends some) says nothing bad by itself; one on a
            // subflow that never showed an option does.
            if subflow.confirmed {
                return true;
            }
            self.kill(now, index, ResetReason::Middlebox, shared);
            return false;
        }
        // Data may lie under a mapping that came earlier; without one `handle_payload` will find out.
        true
    }

    /// An MPTCP option other than the handshake's arrived: they get through.
    fn confirm(&mut self, now: Instant, index: usize, shared: &mut Shared) {
        let subflow = &mut self.subflows[index];
        subflow.confirmed = true;
        if subflow.state == State::Confirming {
            // The fourth ACK: data may flow on a subflow we joined.
            self.open_for_data(now, index, shared);
        }
        if !self.confirmed {
            self.confirmed = true;
            self.on_confirmed(now, shared);
        }
    }

    fn handle_ack(&mut self, now: Instant, index: usize, segment: &Segment, ack: u64) {
        let subflow = &mut self.subflows[index];
        let scaled = u64::from(segment.window) << subflow.snd_scale;
        let same_window = segment.window == subflow.snd_wnd;
        let una = subflow.recovery.snd_una();
        if ack >= una {
            subflow.snd_wnd = segment.window;
            subflow.snd_edge = subflow.snd_edge.max(ack + scaled);
        }
        let sacks = segment.options.sack.as_slice();
        let pure = segment.payload.is_empty() && !segment.flags.has(Flags::FIN);
        // RFC 8684 §3.4: an ACK that carries a control option is no sign of loss.
        let control = segment.options.mptcp.is_some();
        let is_duplicate = ack == una && pure && same_window && !control && !subflow.recovery.is_empty();
        if ack <= una && sacks.is_empty() && !is_duplicate {
            return;
        }
        let (sack, count, dsack) = sack_offsets(segment, ack, subflow.iss, subflow.recovery.snd_nxt());
        let (in_flight, flight_size) = (subflow.in_flight(), subflow.flight_size());
        let cwnd = self.congestion.cwnd(subflow.id);
        let input = AckIn { ack, sack: &sack[..count], dsack, is_duplicate, rtt_from_timestamp: None };
        let out = subflow.recovery.on_ack(now, &input, &subflow.rtt);
        if let Some(rtt) = out.rtt {
            subflow.rtt.sample(now, rtt);
        }
        subflow.recovery.rearm(now, &subflow.rtt);
        if out.newly_lost > 0 {
            subflow.loss.on_lost(out.newly_lost);
        }
        if out.spurious {
            subflow.loss.on_spurious(1);
        }
        let (id, srtt, mss) = (subflow.id, subflow.rtt.srtt(), u64::from(subflow.mss));
        let revived = out.acked > 0 && std::mem::take(&mut subflow.potentially_failed);
        let slow_start = self.congestion.ssthresh(id).is_none_or(|ssthresh| cwnd < ssthresh);
        // The window was the limit if it was full before this ACK; in slow start, where it doubles in a round trip, if half
        // of it was used (Linux `tcp_is_cwnd_limited`).
        let used = in_flight.get() + mss;
        let limited = used > cwnd.get() || (slow_start && 2 * in_flight.get() >= cwnd.get());
        if out.left_recovery {
            self.congestion.on_recovered(now, id);
        }
        if out.spurious {
            self.congestion.on_spurious(now, id);
        }
        if out.tail_loss_repaired {
            self.congestion.on_fast_retransmit(now, id, flight_size);
            self.congestion.on_recovered(now, id);
        }
        if out.entered_recovery {
            self.enter_recovery(now, index, flight_size);
        } else if out.delivered > 0 && self.subflows[index].recovery.phase() != Phase::Recovery {
            self.congestion.on_ack(now, id, Bytes::new(out.delivered), srtt, limited);
        }
        if revived {
            self.subflows_changed(now);
        }
    }

    /// True if the subflow is still there.
    fn handle_dss(
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
                self.fall_back(FallbackReason::InfiniteMapping, shared);
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
        if own && start == subflow.rcv_nxt && subflow.maps.is_empty() && subflow.ofo.is_empty() {
            self.waiting.own_map = Some(data);
            return true;
        }
        if first + length <= subflow.rcv_nxt {
            return true;
        }
        if subflow.maps.insert(Mapping { subflow: first, data, length }).is_err() {
            self.bad_mapping(now, index, ResetReason::MptcpError, shared);
            return false;
        }
        true
    }

    /// Plain TCP: the subflow's acknowledgment is the stream's.
    fn handle_plain_ack(&mut self, now: Instant, index: usize, segment: &Segment, ack: u64, shared: &mut Shared) {
        let window = u64::from(segment.window) << self.subflows[index].snd_scale;
        let acked = ack.saturating_sub(1).min(self.outgoing.buffer.end());
        self.on_data_ack(now, acked, window, shared);
    }

    /// The peer has everything before `offset`, and admits `window` bytes from there on.
    fn on_data_ack(&mut self, now: Instant, offset: u64, window: u64, shared: &mut Shared) {
        let out = &mut self.outgoing;
        let fin_acked = out.fin.is_some_and(|fin| out.fin_sent && offset == fin + 1);
        let data = offset - u64::from(fin_acked);
        // An acknowledgment of what was never sent is a lie (optimistic ACK); ignore it.
        if data > out.nxt || out.unsent.first().is_some_and(|(start, _)| data > start) {
            shared.counters.unacceptable += 1;
            return;
        }
        if data > out.una {
            out.una = data;
            out.buffer.release(data);
            out.log.release(data);
            out.reinject.remove_below(data);
            self.timers.data_backoff = 0;
            self.arm_data_timer(now);
            let out = &mut self.outgoing;
            if out.writer_waits {
                out.writer_waits = false;
                shared.event(self.id, Event::Writable);
            }
        }
        let out = &mut self.outgoing;
        if fin_acked && !out.fin_acked {
            out.fin_acked = true;
            self.timers.data_backoff = 0;
            self.arm_data_timer(now);
        }
        let out = &mut self.outgoing;
        if offset >= out.una {
            out.edge = out.edge.max(offset + window);
            out.largest_window = out.largest_window.max(window);
        }
    }

    fn handle_payload(&mut self, now: Instant, index: usize, start: u64, segment: &mut Segment, shared: &mut Shared) {
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

    /// The mapping cannot be: the peer or a middlebox is broken, and the subflow is useless.
    fn bad_mapping(&mut self, now: Instant, index: usize, reason: ResetReason, shared: &mut Shared) {
        self.waiting.own_map = None;
        self.kill(now, index, reason, shared);
    }
}

/// What a segment acknowledges, if a peer may say that: nothing unsent, and nothing older than the largest window, which
/// leaves a blind guess little to hit (RFC 5961 §5.2).
fn acceptable_ack(subflow: &Subflow, segment: &Segment) -> Option<u64> {
    let una = subflow.recovery.snd_una();
    let oldest = una.saturating_sub(u64::from(u16::MAX) << subflow.snd_scale);
    let ack = segment.ack.offset_near(subflow.iss, una)?;
    (oldest..=subflow.recovery.snd_nxt()).contains(&ack).then_some(ack)
}

/// Ranges of subflow offsets; how many count is said beside them.
type SackOffsets = [(u64, u64); 4];

/// SACK blocks as offsets, with a D-SACK taken out (RFC 2883 §4: at or below the acknowledgment, or inside the second).
fn sack_offsets(
    segment: &Segment,
    ack: u64,
    iss: SubflowSeq,
    snd_nxt: u64,
) -> (SackOffsets, usize, Option<(u64, u64)>) {
    let mut offsets = [(0, 0); 4];
    let mut count = 0;
    let mut dsack = None;
    let blocks = segment.options.sack.as_slice();
    let offset = |seq: SubflowSeq| seq.offset_near(iss, ack);
    for (position, block) in blocks.iter().enumerate() {
        let (Some(start), Some(end)) = (offset(block.start), offset(block.end)) else { continue };
        if start >= end || end > snd_nxt {
            continue;
        }
        let inside_second = blocks.get(1).is_some_and(|second| {
            let (a, b) = (offset(second.start), offset(second.end));
            a.is_some_and(|a| a <= start) && b.is_some_and(|b| end <= b)
        });
        if position == 0 && (end <= ack || inside_second) {
            dsack = Some((start, end));
        } else if end > ack {
            offsets[count] = (start, end);
            count += 1;
        }
    }
    (offsets, count, dsack)
}
