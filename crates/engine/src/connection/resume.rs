//! Handshakes of which little or no state is kept until the third ACK: SYN cookies for connections (RFC 4987 §3.6),
//! deferred subflows for joins.
//!
//! Resumption: what the third ACK says is made into the SYN that it followed; from there on all goes as if that had
//! been kept. Only the RTT of the handshake is unknown without timestamps, and a SYN/ACK is not repeated: a client that
//! does not speak first and whose third ACK is lost waits without an answer, as with any SYN cookie.

use super::Connection;
use super::handshake::{acceptable_offer, find_capable, usable};
use super::receiver::Receiver;
use crate::cookie::{Cookie, PendingJoin, Terms};
use crate::path_mtu::default_mss;
use crate::shared::Shared;
use crate::subflow::{shift_for, timestamp_at};
use crate::{ConnectionId, Profile, Purpose};
use anabranch_units::{Duration, Instant, Nonce, SubflowSeq, join_hmac};
use anabranch_wire::{JoinSyn, JoinSynAck, MpCapable, MpOption, Segment};

/// Answers the SYN of a connection with a cookie.
pub(crate) fn answer_with_cookie(now: Instant, syn: &Segment, shared: &mut Shared) {
    let terms = offered(syn, &shared.config.profile);
    let Some(cookie) = shared.cookies.answer(now, &syn.flow, syn.seq, terms) else {
        shared.counters.half_open_dropped += 1;
        return;
    };
    let config = &shared.config;
    let window = Receiver::first_size(config.receive_buffer, config.initial_receive_buffer, config.profile.mss).get();
    let mut answer = syn_ack(now, syn, cookie.terms, cookie.iss, window, shared);
    let offer = find_capable(syn).filter(|capable| config.multipath && acceptable_offer(capable));
    // With all tokens taken it is plain TCP: two connections must not share a token (RFC 8684 §3.1).
    let key = cookie.keys.iter().copied().find(|key| offer.is_some() && !shared.tokens.contains_key(&key.token()));
    if let (Some(offer), Some(_)) = (offer, key) {
        answer.options.push_mptcp(MpOption::Capable(MpCapable {
            checksum_required: config.checksum || offer.checksum_required,
            no_join_to_source: config.deny_join_to_initial,
            sender_key: key,
            ..MpCapable::OFFER
        }));
    }
    shared.counters.cookies_sent += 1;
    send(answer, shared);
}

/// Answers a join of a connection that is plain TCP by now by a SYN/ACK without MP_JOIN, of which nothing is kept: the
/// peer ends the subflow (RFC 8684 §3.2). A RST would end a Linux client that has fallen back as well (A-LATE-JOIN).
pub(crate) fn answer_without_join(now: Instant, syn: &Segment, shared: &mut Shared) {
    let terms = offered(syn, &shared.config.profile);
    let iss = shared.chance.isn(now, &syn.flow.reversed());
    send(syn_ack(now, syn, terms, iss, shared.config.profile.mss.into(), shared), shared);
}

impl Connection {
    /// The connection whose SYN was answered with `cookie`, as if it waited for `ack`, which is to be handled next.
    pub(crate) fn resume(now: Instant, id: ConnectionId, cookie: &Cookie, ack: &Segment, shared: &mut Shared) -> Self {
        let mut syn = cookie.terms.syn(Some(shared.config.profile.ecn), ack);
        let keys = find_capable(ack).filter(|capable| usable(capable) && capable.sender_key.is_some());
        let ours = keys.and_then(|capable| capable.receiver_key);
        if let (Some(capable), Some(_)) = (keys, ours) {
            // The third ACK confirms whether checksums are in use (RFC 8684 §3.1, flag A).
            let checksum_required = capable.checksum_required;
            syn.options.push_mptcp(MpOption::Capable(MpCapable { checksum_required, ..MpCapable::OFFER }));
        }
        let is_free = |key: &_| ours == Some(*key) && !shared.tokens.contains_key(&key.token());
        // With any other key than that of the third ACK the connection falls back to TCP, as it must if another has
        // taken the token meanwhile.
        let key = cookie.keys.iter().copied().find(is_free).unwrap_or_else(|| shared.new_key());
        let (mut connection, slot) = Connection::take_offer(now, id, &syn, key, shared);
        connection.subflows[slot].adopt(now, cookie.iss, ack, unknown_rtt(&shared.config.profile));
        let told = connection.receiver.window().min(u64::from(u16::MAX));
        connection.receiver.on_told(told);
        shared.counters.cookies_received += 1;
        connection
    }

    /// Answers a join of which no subflow is made before its third ACK.
    pub(super) fn defer_join(&mut self, now: Instant, syn: &Segment, join: &JoinSyn, shared: &mut Shared) {
        let Some(remote_key) = self.keys.remote else { return };
        let flow = syn.flow.reversed();
        let place = (&syn.flow, syn.seq);
        let pending = shared.pending_joins.repeated(now, place, join, &shared.cookies).unwrap_or_else(|| {
            let terms = offered(syn, &shared.config.profile);
            let (own, iss) = (Nonce(shared.chance.next_u32()), shared.chance.isn(now, &flow));
            let new = PendingJoin { flow: syn.flow, isn: syn.seq, join: *join, terms, own, iss, answered: now };
            shared.counters.half_open_joins_dropped += u64::from(shared.pending_joins.put(new, &shared.cookies));
            new
        });
        let mut answer = syn_ack(now, syn, pending.terms, pending.iss, self.receiver.window(), shared);
        let hmac = join_hmac(self.keys.local, remote_key, pending.own, join.nonce).first_8();
        let (backup, address) = (shared.locals.is_backup(flow.src), self.paths.address_id(&flow, &shared.locals));
        answer.options.push_mptcp(MpOption::JoinSynAck(JoinSynAck { backup, address, hmac, nonce: pending.own }));
        shared.counters.joins_deferred += 1;
        send(answer, shared);
    }

    /// The subflow of a join that was answered so, as if it waited for `ack`, which is to be handled next. False if it
    /// may not be any more.
    pub(crate) fn resume_join(
        &mut self,
        now: Instant,
        pending: &PendingJoin,
        ack: &Segment,
        shared: &mut Shared,
    ) -> bool {
        if self.forbids_join(&ack.flow, shared).is_some() {
            return false;
        }
        let slot = self.take_join(now, &pending.terms.syn(None, ack), &pending.join, pending.own, shared);
        self.subflows[slot].adopt(now, pending.iss, ack, unknown_rtt(&shared.config.profile));
        shared.counters.deferred_joins_received += 1;
        true
    }
}

/// The RTT of a handshake of which nothing says when its SYN/ACK left: the one from which the initial timeout would
/// follow (RFC 6298 §2.2, RTO = R + 4 · R/2).
fn unknown_rtt(profile: &Profile) -> Duration {
    profile.initial_rto / 3
}

/// Offer of a SYN, as far as our profile knows it.
fn offered(syn: &Segment, profile: &Profile) -> Terms {
    let options = syn.options.handshake();
    Terms {
        mss: options.mss.unwrap_or_else(|| default_mss(&syn.flow)),
        window_scale: options.window_scale.filter(|_| profile.window_scaling),
        sack: profile.sack && options.sack_permitted,
        timestamps: profile.timestamps && syn.options.timestamps().is_some(),
        ecn: profile.ecn.on_syn(syn),
        of_syn: syn.ip.ecn,
    }
}

/// Sends a SYN/ACK that is not repeated.
fn send(answer: Segment, shared: &mut Shared) {
    let size = answer.wire_length();
    shared.send(u64::MAX, Box::new(answer), size, Purpose::Handshake { retries: 0 });
}

/// A SYN/ACK without MPTCP options.
fn syn_ack(now: Instant, syn: &Segment, terms: Terms, iss: SubflowSeq, window: u64, shared: &Shared) -> Segment {
    let flow = syn.flow.reversed();
    let clock = timestamp_at(now, shared.chance.timestamp_offset(&flow));
    let mss = shared.mtus.mss(&flow, &shared.config.profile);
    let mut answer = terms.syn_ack(syn, iss, clock, shift_for(shared.config.receive_buffer), mss);
    // The window of a SYN is not scaled (RFC 7323 §2.2).
    answer.window = window.min(u64::from(u16::MAX)) as u16;
    answer
}
