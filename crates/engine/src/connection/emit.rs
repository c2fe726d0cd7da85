//! Segments put together: every header field and option of what we send.

use super::slots::Slot;
use super::{Connection, Mode};
use crate::Purpose;
use crate::originals::Declared;
use crate::recovery::{FIN, Sent};
use crate::shared::Shared;
use crate::subflow::State;
use anabranch_units::{Bytes, Instant};
use anabranch_wire::{
    DataSeq, Dss, Flags, FlowKey, MpCapable, MpOption, Options, Payload, Segment, Timestamps, dss_checksum, plan,
    sack_room,
};

/// A sent segment ends with the DATA_FIN. The other bits of `Sent::flags` are recovery's.
pub(super) const DATA_FIN: u8 = 2;

/// Identifies a subflow to the driver, which gives it back when the first hop has sent the packet.
pub(crate) fn tag(connection: crate::ConnectionId, subflow: anabranch_units::SubflowId) -> u64 {
    u64::from(connection.index) << 32 | u64::from(connection.generation as u16) << 16 | u64::from(subflow.0)
}

/// Timeouts after which the client's first data leaves without the keys: twice the keys were lost with it, and the
/// third ACK before. Arbitrary: fewer give MPTCP up for a burst of losses, more keep a connection behind such a box
/// waiting.
const KEYS_IN_VAIN: u32 = 2;

impl Connection {
    /// A segment on a subflow with acknowledgment, window and timestamps filled in, the delayed ACK settled.
    fn base(&mut self, now: Instant, slot: Slot, flags: Flags, offset: u64, shared: &mut Shared) -> Box<Segment> {
        let window = self.receiver.window();
        let subflow = &mut self.subflows[slot];
        let acked = subflow.rx.ahead.first().unwrap_or(subflow.rx.rcv_nxt);
        let (seq, ack) = (subflow.tx.seq(offset), subflow.rx.irs + acked);
        let mut segment = shared.segment(subflow.flow, flags.with(Flags::ACK), seq, ack);
        let field = (window >> subflow.rx.rcv_scale).min(u64::from(u16::MAX));
        segment.window = field as u16;
        self.receiver.on_told(field << subflow.rx.rcv_scale);
        if subflow.timestamps {
            segment
                .options
                .set_timestamps(Some(Timestamps { value: subflow.tx.timestamp(now), echo: subflow.rx.ts_recent }));
        }
        subflow.marks.say(false, &mut segment);
        segment.ip.ecn = subflow.marks.field(false, self.sender.congestion.capabilities().ect());
        subflow.rx.ack.segments = 0;
        subflow.rx.ack.deadline = None;
        subflow.rx.ack.now = false;
        segment
    }

    fn data_ack(&self, cramped: bool) -> DataSeq {
        self.negotiated.dss.ack(self.keys.remote_dsn(self.receiver.next()), cramped)
    }

    /// A pure ACK, with SACK blocks and DATA_ACK as they apply; `options` beside them.
    pub(super) fn send_ack(&mut self, now: Instant, slot: Slot, options: Vec<MpOption>, shared: &mut Shared) {
        let reason = self.subflows[slot].rx.ack_reason(now);
        let purpose = if options.is_empty() { Purpose::Ack(reason) } else { Purpose::Signal };
        self.send_ack_for(now, slot, options, purpose, shared);
    }

    /// The same, for another purpose than to acknowledge.
    pub(super) fn send_ack_for(
        &mut self,
        now: Instant,
        slot: Slot,
        options: Vec<MpOption>,
        purpose: Purpose,
        shared: &mut Shared,
    ) {
        let offset = self.subflows[slot].tx.recovery.snd_nxt();
        let mut segment = self.pure_ack(now, slot, offset, options, shared);
        let mut purpose = purpose;
        if matches!(purpose, Purpose::Handshake { .. }) {
            self.subflows[slot].marks.say(true, &mut segment);
            self.subflows[slot].marks.tell_bytes(true, u64::MAX, &mut segment);
        }
        if let Purpose::Ack(reason) = purpose
            && let Some(flow) = self.detour(now, slot, shared)
        {
            segment.flow = flow;
            purpose = Purpose::DetouredAck(reason);
        }
        self.transmit_segment(slot, segment, purpose, shared);
    }

    pub(super) fn pure_ack(
        &mut self,
        now: Instant,
        slot: Slot,
        offset: u64,
        options: Vec<MpOption>,
        shared: &mut Shared,
    ) -> Box<Segment> {
        let multipath = self.life.mode() == Mode::Multipath;
        let mut segment = self.base(now, slot, Flags::ACK, offset, shared);
        for option in options {
            segment.options.push_mptcp(option);
        }
        self.add_fail(&mut segment);
        let in_doubt = self.is_in_doubt();
        let subflow = &mut self.subflows[slot];
        let sacking = subflow.has_to_sack();
        subflow.rx.ack.unreported = false;
        // A short DATA_ACK leaves room for one more SACK block, where it is allowed.
        if (multipath || in_doubt) && subflow.state != State::Confirming {
            let ack = Dss { data_ack: Some(self.data_ack(sacking)), ..Dss::default() };
            segment.options.set_dss(Some(ack));
        }
        if in_doubt {
            self.note_told(slot, &segment);
        }
        self.subflows[slot].tell_bytes(&mut segment);
        if sacking {
            let most = sack_room(&segment.options);
            segment.options.set_sack(self.subflows[slot].rx.sack_blocks(most));
        }
        segment
    }

    /// Probes a closed window, or keeps a path alive: an ACK just before the window, which the peer must answer
    /// (RFC 9293 §3.10.7.4; what Linux sends).
    pub(super) fn send_window_probe(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let offset = self.subflows[slot].tx.recovery.snd_una() - 1;
        let segment = self.pure_ack(now, slot, offset, Vec::new(), shared);
        self.transmit_segment(slot, segment, Purpose::WindowProbe, shared);
    }

    /// A DATA_FIN of its own: subflow sequence 0, length 1 (RFC 8684 §3.3.3).
    pub(super) fn send_data_fin(&mut self, now: Instant, slot: Slot, fin: u64, purpose: Purpose, shared: &mut Shared) {
        if !self.life.is_confirmed() && self.role == super::Role::Client && shared.config.repeat_keys {
            // Without data there is nothing that repeats the keys for it (RFC 8684 §3.1), nor room beside the DATA_FIN.
            // Should the third ACK be lost or late, Linux would take this for plain TCP.
            self.send_third_ack(now, slot, shared);
        }
        let offset = self.subflows[slot].tx.recovery.snd_nxt();
        let mut segment = self.base(now, slot, Flags::ACK, offset, shared);
        let map = Some(self.keys.data_fin_map(fin, &self.negotiated));
        segment.options.set_dss(Some(Dss { data_ack: Some(self.data_ack(false)), map, data_fin: true }));
        self.transmit_segment(slot, segment, purpose, shared);
    }

    /// The segment that carries `sent`, new or repeated.
    pub(super) fn send_data(&mut self, now: Instant, slot: Slot, sent: &Sent, purpose: Purpose, shared: &mut Shared) {
        self.before_segment(slot, sent, purpose, shared);
        let fin = sent.flags & FIN != 0;
        let last = sent.data + u64::from(sent.len) == self.sender.outgoing.buffer.end();
        let mut flags = if last && sent.len > 0 { Flags::PSH } else { Flags::default() };
        if fin {
            flags = flags.with(Flags::FIN);
        }
        let mut segment = self.base(now, slot, flags, sent.start, shared);
        let grows = self.may_grow(sent, purpose, shared);
        let map = if sent.len > 0 {
            let repeats = matches!(purpose, Purpose::Retransmission(_));
            let (payload, map) = if repeats { self.piece_again(slot, sent) } else { self.piece(slot, sent, grows) };
            segment.payload = payload;
            Some(map)
        } else {
            None
        };
        if self.life.mode() == Mode::Plain {
            segment.options.set_dss(self.infinite_mapping(sent));
            self.add_fail(&mut segment);
        } else {
            let ends = self.sender.outgoing.fin.is_some() && !shared.config.repeat_keys;
            self.add_mapping(slot, map.as_ref(), !ends, &mut segment);
        }
        self.subflows[slot].add_sack_beside_data(&mut segment);
        let subflow = &mut self.subflows[slot];
        if sent.len > 0 && !matches!(purpose, Purpose::Retransmission(_)) {
            subflow.tell_bytes_beside_data(sent, &mut segment);
        }
        // What is repeated is not ECN-capable under classic feedback, and says no CWR (RFC 3168 §6.1.5).
        if sent.len > 0 && !matches!(purpose, Purpose::Retransmission(_)) {
            segment.ip.ecn = subflow.marks.field(true, self.sender.congestion.capabilities().ect());
            if subflow.marks.take_slowed() {
                segment.flags = segment.flags.with(Flags::CWR);
            }
        }
        subflow.tx.last_sent = Some(now);
        if sent.len > 0 {
            subflow.counts.segments_sent += 1;
            subflow.counts.bytes_sent += u64::from(sent.len);
            subflow.tx.loss.on_sent(1);
            self.sender.congestion.on_sent(subflow.id, Bytes::new(u64::from(sent.len)));
        }
        self.transmit_segment(slot, segment, purpose, shared);
        if grows {
            let (id, last) = (self.subflows[slot].id, shared.out.len() - 1);
            self.sender.extend_burst(id, sent, sent.flags & DATA_FIN != 0, last);
        }
    }

    /// The payload and mapping of data that leaves as `sent` for the first time. The checksum of a mapping that `grows`
    /// is still to come.
    fn piece(&mut self, slot: Slot, sent: &Sent, grows: bool) -> (Payload, Declared) {
        let payload = self.sender.outgoing.buffer.slice(sent.data, sent.len as usize);
        let mut map = declared(sent);
        if self.negotiated.checksum && self.life.mode() != Mode::Plain && grows {
            map.checksum = Some(0);
        } else if self.negotiated.checksum && self.life.mode() != Mode::Plain {
            let wire = self.keys.map(&map, self.negotiated.dss);
            let sum = dss_checksum(self.keys.dsn(sent.data), wire.subflow_seq, wire.length, [payload.as_ref()]);
            map.checksum = Some(sum);
            self.subflows[slot].tx.originals.declare(map);
        }
        (payload, map)
    }

    /// The payload and mapping of data that is repeated: as they were the first time, of a part as of the whole, for a
    /// checksum covers all of a mapping, and Linux takes another only when it is done with the one it has.
    fn piece_again(&mut self, slot: Slot, sent: &Sent) -> (Payload, Declared) {
        let Self { sender, subflows, .. } = self;
        let tx = &subflows[slot].tx;
        let payload = tx.originals.payload(sent.data, sent.len as usize, &mut sender.outgoing.buffer);
        let of_segment = || tx.recovery.whole(sent.start).map(|whole| declared(&whole));
        let map = tx.originals.map(sent.start).or_else(of_segment);
        (payload, map.expect("what is repeated is under way"))
    }

    /// Adds the DSS of a segment; with its first data a client sends the keys instead, if they may go there.
    fn add_mapping(&mut self, slot: Slot, declared: Option<&Declared>, may_have_keys: bool, segment: &mut Segment) {
        let Some(declared) = declared else {
            if self.life.mode() == Mode::Multipath {
                let data_ack = Some(self.data_ack(false));
                // A FIN may close the stream as well if nothing else is outstanding (RFC 8684 §3.3.3).
                let out = &self.sender.outgoing;
                let last = out.fin.filter(|fin| out.fin_sent && !out.fin_acked && out.una == *fin);
                let map = last.map(|fin| self.keys.data_fin_map(fin, &self.negotiated));
                segment.options.set_dss(Some(Dss { data_ack, data_fin: map.is_some(), map }));
            }
            return;
        };
        let map = self.keys.map(declared, self.negotiated.dss);
        let joined = self.subflows[slot].is_join();
        let first_data = declared.data == 0 && !joined && self.may_repeat_keys();
        let subflow = &self.subflows[slot];
        let alive = subflow.liveness.repeated_syn || subflow.opened_at.is_some_and(|at| subflow.liveness.heard > at);
        let in_vain = alive && subflow.tx.recovery.consecutive_rtos() >= KEYS_IN_VAIN;
        if first_data && !declared.data_fin && !in_vain && may_have_keys && self.keys.remote.is_some() {
            // The client's first data repeats the keys until the peer has shown that it has them (RFC 8684 §3.1). If
            // they never get through where other segments do, a box drops what carries them: with a DSS in their place
            // the peer falls back.
            let capable = self.capable(true, Some((map.length, map.checksum)));
            segment.options.push_mptcp(MpOption::Capable(capable));
            return;
        }
        let data_fin = declared.data_fin;
        segment.options.set_dss(Some(Dss { data_ack: Some(self.data_ack(false)), map: Some(map), data_fin }));
    }

    /// Bytes of options beside the first data beyond those beside other data.
    pub(super) fn room_for_keys(&self) -> u32 {
        if self.may_repeat_keys() { self.negotiated.dss.keys_beyond() } else { 0 }
    }

    /// True if the first data repeats the keys, unless they get through in vain.
    pub(super) fn may_repeat_keys(&self) -> bool {
        self.role == super::Role::Client && self.life.mode() != Mode::Plain && !self.life.is_confirmed()
    }

    /// Returns our MP_CAPABLE; with both keys if `keys`, otherwise with the key that a SYN/ACK carries.
    pub(super) fn capable(&self, keys: bool, data: Option<(u16, Option<u16>)>) -> MpCapable {
        let has_own = keys || self.role == super::Role::Server;
        MpCapable {
            checksum_required: self.negotiated.checksum,
            no_join_to_source: self.negotiated.deny_join_to_initial,
            sender_key: has_own.then_some(self.keys.local),
            receiver_key: self.keys.remote.filter(|_| keys),
            data,
            ..MpCapable::OFFER
        }
    }

    /// A SYN or SYN/ACK of the subflow in `slot`.
    pub(super) fn send_syn(&mut self, now: Instant, slot: Slot, option: Option<MpOption>, shared: &mut Shared) {
        let profile = &shared.config.profile;
        let window = self.receiver.window().min(u64::from(u16::MAX));
        let subflow = &self.subflows[slot];
        let mut segment = Box::new(subflow.syn(now, window as u16, shared.mtus.mss(&subflow.flow, profile), profile));
        let answer = segment.flags.has(Flags::ACK);
        let retries = subflow.handshake.map_or(0, |timer| timer.retries);
        let offers = !subflow.is_join() && option.is_some() && shared.config.ack_rewrite;
        if offers && (!answer || self.negotiated.detours) {
            segment.options.push_experiment(super::detour::EXPERIMENT);
        }
        if let Some(option) = option {
            segment.options.push_mptcp(option);
        }
        self.receiver.on_told(window);
        if answer {
            self.subflows[slot].marks.answer_bytes(retries, &mut segment);
        }
        self.transmit_segment(slot, segment, Purpose::Handshake { retries }, shared);
    }

    /// A reset of the subflow in `slot`, with what explains it.
    pub(super) fn send_reset(&mut self, now: Instant, slot: Slot, options: Vec<MpOption>, shared: &mut Shared) {
        let offset = self.subflows[slot].tx.recovery.snd_nxt();
        let mut segment = self.base(now, slot, Flags::RST, offset, shared);
        for option in options {
            segment.options.push_mptcp(option);
        }
        self.transmit_segment(slot, segment, Purpose::Reset, shared);
    }

    pub(super) fn transmit_segment(
        &mut self,
        slot: Slot,
        mut segment: Box<Segment>,
        purpose: Purpose,
        shared: &mut Shared,
    ) {
        let (options, left_out) = plan(&mut segment.options);
        let left_out = left_out.map(|left_out| (left_out, self.subflows[slot].ack_beside(&segment)));
        let size = segment.wire_length_with(options);
        let subflow = &mut self.subflows[slot];
        // An IPv6 flow label names the flow instead, and stays unset.
        if segment.flow.src.is_ipv4() {
            segment.ip.id = u32::from(subflow.tx.next_packet_id());
        }
        if shared.config.profile.tsq.is_some() {
            subflow.tx.first_hop += size.get();
        }
        shared.send(tag(self.id, subflow.id), segment, size, purpose);
        if let Some((left_out, beside)) = left_out {
            self.on_left_out(slot, *left_out, &beside, shared);
        }
    }

    /// Sends what found no room on a segment: each control option goes onto a segment of its own, a DATA_ACK onto the
    /// next ACK. SACK blocks wait for the next one as well, which says them again.
    fn on_left_out(&mut self, slot: Slot, left_out: Options, beside: &Segment, shared: &mut Shared) {
        assert!(left_out.dss().is_none_or(|dss| dss.map.is_none()), "data keeps its mapping");
        self.subflows[slot].rx.ack.now |= left_out.dss().is_some();
        for option in left_out.mptcp() {
            let mut alone = Box::new(beside.clone());
            alone.options.push_mptcp(option.clone());
            assert!(alone.options.wire_length() <= 40, "an option of ours fits a segment of its own");
            self.transmit_segment(slot, alone, Purpose::Signal, shared);
        }
    }
}

/// The mapping of a segment by itself, the checksum apart.
fn declared(sent: &Sent) -> Declared {
    let Sent { start, data, len, flags, .. } = *sent;
    Declared { start, data, length: len as u16, checksum: None, data_fin: flags & DATA_FIN != 0 }
}

/// The RST that answers a segment belonging to nothing (RFC 9293 §3.10.7.1).
pub(crate) fn reset_for(segment: &Segment, options: Vec<MpOption>) -> Option<Segment> {
    if segment.flags.has(Flags::RST) {
        return None;
    }
    let flow: FlowKey = segment.flow.reversed();
    let mut reset = if segment.flags.has(Flags::ACK) {
        Segment::new(flow, Flags::RST, segment.ack, anabranch_units::SubflowSeq::new(0))
    } else {
        let ack = segment.seq + segment.sequence_length();
        Segment::new(flow, Flags::RST.with(Flags::ACK), anabranch_units::SubflowSeq::new(0), ack)
    };
    for option in options {
        reset.options.push_mptcp(option);
    }
    Some(reset)
}
