//! Opening of connections and subflows: MP_CAPABLE (RFC 8684 §3.1) and MP_JOIN (§3.2) on TCP's three-way handshake.

use super::detour::is_agreed;
use super::race::Opening;
use super::slots::Slot;
use super::timers::LONGEST_CONFIRMATION_TIMEOUT;
use super::{Connection, Life, Mode, Role, emit};
use crate::memory::Offer;
use crate::path_rate::PathRate;
use crate::rtt::RttEstimator;
use crate::sent_log::NO_MARK;
use crate::shared::{Route, Shared};
use crate::subflow::{HandshakeTimer, Origin, State, Subflow};
use crate::{ConnectionId, Event, FallbackReason, Purpose};
use anabranch_units::{AddressId, Bytes, Duration, Instant, Key, Nonce, join_hmac, same_mac};
use anabranch_wire::{Flags, FlowKey, JoinAck, JoinSyn, JoinSynAck, MpCapable, MpOption, ResetReason, Segment};
use std::net::SocketAddr;

/// Joins of one connection whose third ACK has not come and that have a subflow already. They are bounded apart from
/// others, so that a flood of them takes no subflow's place; further ones have to do without one ([`super::resume`]).
pub(super) const MAX_HALF_OPEN_JOINS: usize = 32;

/// Outcome of a join request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Accept {
    /// Answered, or will be by a subflow.
    Joined,
    /// Must be reset for this reason.
    Refused(ResetReason),
    /// Must be answered without MP_JOIN, and forgotten.
    Unjoined,
}

impl Connection {
    /// A connection that we open.
    pub(crate) fn open(
        now: Instant,
        id: ConnectionId,
        opening: Opening,
        remote: SocketAddr,
        shared: &mut Shared,
    ) -> Self {
        let mode = if shared.config.multipath { Mode::Negotiating } else { Mode::Plain };
        let key = shared.new_key();
        let mut connection = Connection::new(now, id, Role::Client, mode, key, shared);
        connection.paths.first_remote = Some(remote);
        if mode == Mode::Negotiating {
            // Other connections of this host must not draw the same key meanwhile (RFC 8684 §3.1).
            shared.routes.push(Route::AddToken(connection.keys.local.token(), id));
        }
        connection.start_race(now, opening, shared);
        connection
    }

    /// A connection that a peer opens with `syn`.
    pub(crate) fn accept(now: Instant, id: ConnectionId, syn: &Segment, shared: &mut Shared) -> Self {
        let key = shared.new_key();
        let (mut connection, slot) = Connection::take_offer(now, id, syn, key, shared);
        connection.start_handshake(now, slot, shared);
        connection
    }

    /// The same with its subflow, not answered yet.
    pub(super) fn take_offer(
        now: Instant,
        id: ConnectionId,
        syn: &Segment,
        key: Key,
        shared: &mut Shared,
    ) -> (Self, Slot) {
        let capable = find_capable(syn).filter(|capable| shared.config.multipath && acceptable_offer(capable));
        let mode = if capable.is_some() { Mode::Negotiating } else { Mode::Plain };
        let mut connection = Connection::new(now, id, Role::Server, mode, key, shared);
        let slot = connection.add_subflow(now, syn.flow.reversed(), Origin::Initial, State::SynReceived, shared);
        if mode == Mode::Plain && shared.config.multipath {
            connection.stats.fallback = Some(FallbackReason::Syn);
            shared.fell_back(FallbackReason::Syn);
        }
        connection.negotiated.checksum |= capable.is_some_and(|capable| capable.checksum_required);
        connection.negotiated.detours = mode == Mode::Negotiating && is_agreed(syn, shared);
        if mode == Mode::Negotiating {
            shared.routes.push(Route::AddToken(connection.keys.local.token(), id));
        }
        connection.take_syn(now, slot, syn, shared);
        (connection, slot)
    }

    /// A peer asks to add a subflow (RFC 8684 §3.2).
    pub(crate) fn accept_join(&mut self, now: Instant, syn: &Segment, join: &JoinSyn, shared: &mut Shared) -> Accept {
        if matches!(self.life, Life::Plain(_)) {
            return Accept::Unjoined;
        }
        if let Some(reason) = self.forbids_join(&syn.flow, shared) {
            return Accept::Refused(reason);
        }
        if self.subflows.iter().filter(|subflow| subflow.is_half_open_join()).count() >= MAX_HALF_OPEN_JOINS {
            self.defer_join(now, syn, join, shared);
            return Accept::Joined;
        }
        let own = Nonce(shared.chance.next_u32());
        let slot = self.take_join(now, syn, join, own, shared);
        self.start_handshake(now, slot, shared);
        Accept::Joined
    }

    /// Returns the reason for which no subflow of this flow, as its peer sends, may be added.
    pub(super) fn forbids_join(&self, flow: &FlowKey, shared: &Shared) -> Option<ResetReason> {
        let closing = self.sender.outgoing.fin_acked && self.receiver.finished();
        if self.life.mode() != Mode::Multipath || closing || self.life.is_gone() {
            return Some(ResetReason::MptcpError);
        }
        let initial = self.subflows.initial().is_some_and(|subflow| subflow.flow.source() == flow.destination());
        let denied = self.negotiated.deny_join_to_initial && initial;
        (denied || !self.subflows.has_room(shared.config.max_subflows)).then_some(ResetReason::Prohibited)
    }

    /// The subflow of a join, not answered yet.
    pub(super) fn take_join(
        &mut self,
        now: Instant,
        syn: &Segment,
        join: &JoinSyn,
        own: Nonce,
        shared: &mut Shared,
    ) -> Slot {
        let origin = Origin::Join { own, peer: Some(join.nonce) };
        let slot = self.add_subflow(now, syn.flow.reversed(), origin, State::SynReceived, shared);
        let subflow = &mut self.subflows[slot];
        subflow.remote_address = join.address;
        subflow.backup_remote = join.backup;
        self.take_syn(now, slot, syn, shared);
        slot
    }

    /// Adds a subflow between these addresses.
    pub(super) fn join(&mut self, now: Instant, flow: FlowKey, remote: AddressId, shared: &mut Shared) {
        let own = Nonce(shared.chance.next_u32());
        let slot = self.add_subflow(now, flow, Origin::Join { own, peer: None }, State::SynSent, shared);
        self.subflows[slot].remote_address = remote;
        self.start_handshake(now, slot, shared);
    }

    pub(super) fn add_subflow(
        &mut self,
        now: Instant,
        flow: FlowKey,
        origin: Origin,
        state: State,
        shared: &mut Shared,
    ) -> Slot {
        let id = self.subflows.new_id();
        let half_open_join = state == State::SynReceived && origin != Origin::Initial;
        let mark = if half_open_join {
            NO_MARK
        } else {
            self.subflows.free_mark().expect("the number of subflows was checked against the marks")
        };
        let config = &shared.config;
        let mut subflow = Subflow::new(id, mark, flow, origin, state, &config.profile, config.receive_buffer);
        subflow.tx.iss = shared.chance.isn(now, &flow);
        subflow.tx.timestamp_offset = shared.chance.timestamp_offset(&flow);
        subflow.tx.loss = shared.loss_estimate(&flow);
        subflow.truth = shared.truth(&flow);
        self.paths.initial_address.get_or_insert(flow.src);
        subflow.local_address = self.paths.address_id(&flow, &shared.locals);
        subflow.backup_local = shared.locals.is_backup(flow.src);
        shared.routes.push(Route::Add(flow, self.id, id));
        self.subflows.push(subflow)
    }

    pub(super) fn start_handshake(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let timeout = shared.config.profile.initial_rto;
        self.subflows[slot].handshake = Some(HandshakeTimer::new(now, timeout));
        self.send_handshake(now, slot, shared);
    }

    /// The SYN or SYN/ACK that the subflow in `slot` is waiting to have answered.
    pub(super) fn send_handshake(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let subflow = &self.subflows[slot];
        let option = match (subflow.origin, subflow.state) {
            (Origin::Initial, _) => match self.life.mode() {
                Mode::Negotiating if !subflow.gave_up_mptcp => Some(MpOption::Capable(self.capable(false, None))),
                _ => None,
            },
            (Origin::Join { own, .. }, State::SynSent) => self.keys.remote.map(|key| {
                let (backup, address) = (subflow.backup_local, subflow.local_address);
                MpOption::JoinSyn(JoinSyn { backup, address, token: key.token(), nonce: own })
            }),
            (Origin::Join { own, peer }, _) => self.keys.remote.zip(peer).map(|(key, peer)| {
                let hmac = join_hmac(self.keys.local, key, own, peer).first_8();
                let (backup, address) = (subflow.backup_local, subflow.local_address);
                MpOption::JoinSynAck(JoinSynAck { backup, address, hmac, nonce: own })
            }),
        };
        self.send_syn(now, slot, option, shared);
    }

    /// Takes over what the peer's SYN or SYN/ACK says about TCP.
    fn take_syn(&mut self, now: Instant, slot: Slot, syn: &Segment, shared: &mut Shared) {
        let dss = self.dss_room();
        let precise = self.sender.congestion.capabilities().precise_marks;
        let (subflow, profile) = (&mut self.subflows[slot], &shared.config.profile);
        let mss = shared.mtus.mss(&subflow.flow, profile);
        subflow.take_syn(now, syn, mss, profile, dss);
        let crossed = subflow.state == State::SynSent && !syn.flags.has(Flags::ACK);
        subflow.marks.take_syn(profile.ecn, precise, crossed, syn);
    }

    /// The answer to our SYN.
    pub(super) fn on_syn_sent(&mut self, now: Instant, slot: Slot, segment: &Segment, shared: &mut Shared) {
        let subflow = &self.subflows[slot];
        let acks_syn = segment.flags.has(Flags::ACK) && segment.ack == subflow.tx.seq(1);
        if segment.flags.has(Flags::ACK) && !acks_syn {
            shared.counters.unacceptable += 1;
            if let Some(reset) = emit::reset_for(segment, Vec::new()) {
                self.transmit_segment(slot, Box::new(reset), Purpose::Reset, shared);
            }
            return;
        }
        if segment.flags.has(Flags::RST) {
            if acks_syn {
                shared.counters.resets_received += 1;
                if self.subflows[slot].origin == Origin::Initial && self.lose_attempt(now, slot, shared) {
                    return;
                }
                self.note_reset_reason(slot, segment, shared);
                self.end_of_last(slot, crate::Ended::Reset);
                self.bury(now, slot, shared);
                self.on_join_refused(now, shared);
            }
            return;
        }
        if segment.flags.has(Flags::SYN) && !acks_syn && self.subflows[slot].origin == Origin::Initial {
            let slot = self.win_race(slot, shared);
            return self.cross_syn(now, slot, segment, shared);
        }
        if !segment.flags.has(Flags::SYN) || !acks_syn {
            return;
        }
        match self.subflows[slot].origin {
            Origin::Initial => {
                let slot = self.win_race(slot, shared);
                self.finish_initial(now, slot, segment, shared);
            }
            Origin::Join { own, .. } => self.finish_join(now, slot, own, segment, shared),
        }
    }

    /// Handles a simultaneous open (RFC 9293 §3.5). MP_CAPABLE stays unanswered then, so the connection is plain TCP.
    fn cross_syn(&mut self, now: Instant, slot: Slot, segment: &Segment, shared: &mut Shared) {
        if self.life.mode() == Mode::Negotiating {
            self.fall_back(now, FallbackReason::SimultaneousOpen, shared);
        }
        self.take_syn(now, slot, segment, shared);
        self.subflows[slot].state = State::SynReceived;
        self.start_handshake(now, slot, shared);
    }

    fn finish_initial(&mut self, now: Instant, slot: Slot, segment: &Segment, shared: &mut Shared) {
        if self.life.mode() == Mode::Negotiating {
            let answer = find_capable(segment).filter(usable);
            let key = answer.and_then(|capable| capable.sender_key);
            let (flow, gave_up) = (self.subflows[slot].flow, self.subflows[slot].gave_up_mptcp);
            match answer.zip(key) {
                // A key reflected to its owner proves nothing, and would let HMACs be reflected as well.
                Some((answer, key)) if !gave_up && key != self.keys.local => {
                    self.life = Life::new(Mode::Multipath);
                    self.keys.learn(key, shared.chosen.idsn(key));
                    self.negotiated.checksum |= answer.checksum_required;
                    self.negotiated.detours = is_agreed(segment, shared);
                    self.paths.manager.deny_initial(answer.no_join_to_source);
                    shared.memory.on_offer_taken(now, &flow);
                }
                _ => {
                    let reason = match (gave_up, self.subflows[slot].offer) {
                        (false, _) => FallbackReason::SynAck,
                        (true, Offer::Never) => FallbackReason::Remembered,
                        (true, _) => FallbackReason::SynLost,
                    };
                    // An MP_CAPABLE now answers one of the first SYNs, which was slow and not lost.
                    if let (FallbackReason::SynLost, None, Some(longest)) =
                        (reason, answer, shared.config.mptcp_blackhole)
                    {
                        shared.memory.on_offer_lost(now, &flow, longest);
                    }
                    if reason == FallbackReason::SynAck && find_capable(segment).is_none() {
                        shared.memory.on_offer_stripped(now, &flow);
                    }
                    self.fall_back(now, reason, shared);
                }
            }
        }
        self.take_syn(now, slot, segment, shared);
        self.sender.outgoing.set_window(u64::from(segment.window));
        self.establish(now, slot, segment, shared);
        self.subflows[slot].remember_answer(now, &mut shared.memory);
        self.send_third_ack(now, slot, shared);
        if self.life.mode() == Mode::Multipath {
            self.await_confirmation(now);
        }
    }

    fn finish_join(&mut self, now: Instant, slot: Slot, own: Nonce, segment: &Segment, shared: &mut Shared) {
        let answer = segment.options.mptcp().iter().find_map(|option| match option {
            MpOption::JoinSynAck(answer) => Some(*answer),
            _ => None,
        });
        let expected =
            self.keys.remote.zip(answer).map(|(key, answer)| join_hmac(key, self.keys.local, answer.nonce, own));
        let (Some(answer), Some(expected)) = (answer, expected) else {
            return self.refuse_join(now, slot, shared);
        };
        if !same_mac(&answer.hmac, &expected.first_8()) {
            return self.refuse_join(now, slot, shared);
        }
        self.subflows.joined += 1;
        self.take_syn(now, slot, segment, shared);
        let subflow = &mut self.subflows[slot];
        let rtt = subflow.handshake_rtt(now, segment);
        subflow.origin = Origin::Join { own, peer: Some(answer.nonce) };
        subflow.remote_address = answer.address;
        subflow.backup_remote = answer.backup;
        subflow.state = State::Confirming;
        subflow.tx.rtt.sample(now, rtt);
        // Repeated until the fourth ACK confirms that it arrived (RFC 8684 §3.2).
        let timeout = (rtt * 2 + Duration::from_millis(1)).min(LONGEST_CONFIRMATION_TIMEOUT);
        subflow.handshake = Some(HandshakeTimer::new(now, timeout));
        self.subflows[slot].remember_answer(now, &mut shared.memory);
        self.send_third_ack(now, slot, shared);
    }

    fn refuse_join(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        shared.counters.joins_refused += 1;
        self.kill(now, slot, ResetReason::MptcpError, shared);
    }

    /// The ACK that ends our side of the handshake: with both keys, or with the HMAC.
    pub(super) fn send_third_ack(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let option = match self.subflows[slot].origin {
            Origin::Initial => {
                (self.life.mode() == Mode::Multipath).then(|| MpOption::Capable(self.capable(true, None)))
            }
            Origin::Join { own, peer } => self.keys.remote.zip(peer).map(|(key, peer)| {
                MpOption::JoinAck(JoinAck { hmac: join_hmac(self.keys.local, key, own, peer).first_20() })
            }),
        };
        let retries = self.subflows[slot].handshake.map_or(0, |timer| timer.retries);
        self.send_ack_for(now, slot, option.into_iter().collect(), Purpose::Handshake { retries }, shared);
    }

    /// The answer to our SYN/ACK. True if the subflow is established and the segment may be processed further.
    pub(super) fn on_syn_received(&mut self, now: Instant, slot: Slot, segment: &Segment, shared: &mut Shared) -> bool {
        if segment.flags.has(Flags::SYN) {
            let subflow = &self.subflows[slot];
            let answers = segment.flags.has(Flags::ACK) && segment.ack == subflow.tx.seq(1);
            if segment.seq == subflow.rx.irs && answers && self.role == Role::Client {
                // After a simultaneous open each end gets a SYN/ACK for its SYN (RFC 9293 §3.5).
                self.establish(now, slot, segment, shared);
                self.subflows[slot].rx.ack.now = true;
            } else if segment.seq == subflow.rx.irs {
                // Our SYN/ACK was lost.
                self.subflows[slot].marks.take_syn_again(segment);
                self.send_handshake(now, slot, shared);
            }
            return false;
        }
        let subflow = &self.subflows[slot];
        if segment.flags.has(Flags::RST) {
            if segment.seq == subflow.rx.irs + 1 {
                shared.counters.resets_received += 1;
                self.end_of_last(slot, crate::Ended::Reset);
                self.bury(now, slot, shared);
            }
            return false;
        }
        let acks_syn = segment.flags.has(Flags::ACK) && segment.ack == subflow.tx.seq(1);
        if !acks_syn {
            shared.counters.unacceptable += 1;
            // RFC 9293 §3.10.7.4: an ACK of something else comes from another connection.
            if let Some(reset) = emit::reset_for(segment, Vec::new()).filter(|_| segment.flags.has(Flags::ACK)) {
                self.transmit_segment(slot, Box::new(reset), Purpose::Reset, shared);
            }
            return false;
        }
        match subflow.origin {
            Origin::Initial => self.accept_initial(now, slot, segment, shared),
            Origin::Join { own, peer } => self.accept_third_ack(now, slot, own, peer, segment, shared),
        }
    }

    fn accept_initial(&mut self, now: Instant, slot: Slot, segment: &Segment, shared: &mut Shared) -> bool {
        if self.life.mode() == Mode::Negotiating {
            let keys = find_capable(segment).filter(usable);
            match keys.and_then(|capable| capable.sender_key.zip(capable.receiver_key)) {
                Some((theirs, ours)) if ours == self.keys.local && theirs != self.keys.local => {
                    self.life = Life::new(Mode::Multipath);
                    self.keys.learn(theirs, shared.chosen.idsn(theirs));
                }
                None if self.keys_may_come(now, slot, segment, shared) => return false,
                _ => {
                    // A client that goes on to repeat its keys, which a box drops, learns from a bare ACK that nobody
                    // waits for them any more.
                    let subflow = &mut self.subflows[slot];
                    subflow.rx.ack.now |= subflow.handshake.is_some_and(|timer| timer.keys_until.is_some());
                    self.fall_back(now, FallbackReason::ThirdAck, shared);
                }
            }
        }
        self.establish(now, slot, segment, shared);
        true
    }

    /// Tells whether the client's keys may still come after `segment`, which has a DSS in their place: it has overtaken
    /// them. The beginning of the stream repeats the keys for as long as the client counts on MPTCP (RFC 8684 §3.1);
    /// without them it never will again: Linux leaves them out once the DATA_FIN is known. Segments behind the
    /// beginning are no proof, but the wait for it is bounded: the client repeats it within a timeout, and the SYN/ACK,
    /// repeated too, makes a client answer whose beginning never gets through (A-LOST-KEYS).
    fn keys_may_come(&mut self, now: Instant, slot: Slot, segment: &Segment, shared: &Shared) -> bool {
        let Some(dss) = segment.options.dss() else { return false };
        let subflow = &mut self.subflows[slot];
        let at_beginning = segment.seq == subflow.rx.irs + 1 && (!segment.payload.is_empty() || dss.data_fin);
        let rtt = subflow.handshake_rtt(now, segment);
        let Some(timer) = subflow.handshake.as_mut().filter(|_| !at_beginning) else { return false };
        if let Some(until) = timer.keys_until {
            return now < until;
        }
        let mut estimator = RttEstimator::new(shared.config.profile.rto);
        estimator.sample(now, rtt);
        let timeout = estimator.rto().min(timer.timeout);
        timer.keys_until = Some(now + timeout * KEY_TIMEOUTS);
        timer.timeout = timeout;
        timer.deadline = timer.deadline.min(now + timeout);
        true
    }

    fn accept_third_ack(
        &mut self,
        now: Instant,
        slot: Slot,
        own: Nonce,
        peer: Option<Nonce>,
        segment: &Segment,
        shared: &mut Shared,
    ) -> bool {
        let hmac = segment.options.mptcp().iter().find_map(|option| match option {
            MpOption::JoinAck(ack) => Some(ack.hmac),
            _ => None,
        });
        let expected = self.keys.remote.zip(peer).map(|(key, peer)| join_hmac(key, self.keys.local, peer, own));
        match (hmac, expected) {
            (Some(hmac), Some(expected)) if same_mac(&hmac, &expected.first_20()) => {
                let Some(mark) =
                    self.subflows.free_mark().filter(|_| self.subflows.has_room(shared.config.max_subflows))
                else {
                    shared.counters.joins_refused += 1;
                    self.kill(now, slot, ResetReason::Prohibited, shared);
                    return false;
                };
                self.subflows[slot].mark = mark;
                self.subflows.joined += 1;
                self.establish(now, slot, segment, shared);
                true
            }
            // Overtaken by data: the third ACK will be repeated.
            (None, _) if segment.options.has_dss() => false,
            _ => {
                self.refuse_join(now, slot, shared);
                false
            }
        }
    }

    /// The handshake of the subflow in `slot` is complete.
    pub(super) fn establish(&mut self, now: Instant, slot: Slot, segment: &Segment, shared: &mut Shared) {
        let subflow = &mut self.subflows[slot];
        let rtt = subflow.handshake_rtt(now, segment);
        if subflow.tx.rtt.srtt().is_none() {
            subflow.tx.rtt.sample(now, rtt);
        }
        if subflow.state == State::SynReceived {
            let window = subflow.take_last_ack(now, segment);
            if !subflow.is_join() {
                self.sender.outgoing.set_window(window);
            }
        }
        self.open_for_data(now, slot, shared);
        self.report_open(shared);
        self.on_established_paths(now, shared);
    }

    /// The subflow in `slot` may carry data from now on.
    pub(super) fn open_for_data(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let subflow = &mut self.subflows[slot];
        subflow.state = State::Established;
        subflow.opened_at = Some(now);
        subflow.handshake = None;
        subflow.tx.recovery.consult(&subflow.tx.rtt);
        let (id, flow, mss) = (subflow.id, subflow.flow, Bytes::new(u64::from(subflow.tx.mss)));
        self.subflows.peer_knows_of_join |= subflow.is_join();
        self.timers.abandoned = None;
        // What the last subflow ended of was not the end.
        self.stats.ended = None;
        self.sender.congestion.add(id, mss);
        // Linked slow start takes from the windows of others.
        self.subflows.touch_all();
        if let Some(known) = self.paths.history.of(now, &flow) {
            self.sender.congestion.set_threshold(id, known.threshold());
            self.subflows[slot].tx.path_rate = PathRate::known(known.rate);
        }
        shared.event(self.id, Event::SubflowEstablished(id));
        self.sender.on_subflows_changed(now, &self.subflows);
    }
}

/// The MP_CAPABLE of a segment.
pub(crate) fn find_capable(segment: &Segment) -> Option<MpCapable> {
    segment.options.mptcp().iter().find_map(|option| match option {
        MpOption::Capable(capable) => Some(*capable),
        _ => None,
    })
}

/// An MP_CAPABLE in a SYN that we can answer. A host that knows later versions as well puts the highest of them there,
/// and ours in the answer says what to use; version 0 is another protocol (RFC 8684 §3.1).
pub(super) fn acceptable_offer(capable: &MpCapable) -> bool {
    capable.sender_key.is_none() && usable(&MpCapable { version: capable.version.min(VERSION), ..*capable })
}

/// An MP_CAPABLE we can serve: our version with HMAC-SHA256 and without extensions (RFC 8684 §3.1).
pub(super) fn usable(capable: &MpCapable) -> bool {
    capable.version == VERSION && capable.hmac_sha256 && !capable.extensibility
}

/// Timeouts after which a client that sends DSS without its keys is taken for one that will not repeat them.
const KEY_TIMEOUTS: u64 = 3;

/// The version of RFC 8684.
const VERSION: u8 = 1;
