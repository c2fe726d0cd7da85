//! The way from MPTCP to plain TCP (RFC 8684 §3.7): whether it is open, how it is taken, and how the peer hears of it.
//!
//! After a wrong checksum: with other subflows, or when the two levels are out of step, the subflow is reset with
//! MP_FAIL and its data comes again elsewhere. Alone and in order, MP_FAIL goes out on every segment until the peer
//! answers or has our infinite mapping, the bytes that arrived are handed to the application as a TCP would, and the
//! subflow is plain TCP from there on.

use super::doubt::Doubt;
use super::paths::PathManager;
use super::slots::Slot;
use super::{Connection, Life, Mode};
use crate::mapping::Mapping;
use crate::recovery::{FIN, Sent};
use crate::shared::{Route, Shared};
use crate::subflow::{State, Subflow};
use crate::{Ended, Event, FallbackReason};
use anabranch_units::{Dsn, Instant, SubflowSeq};
use anabranch_wire::{DataSeq, Dss, Map, MpOption, ResetReason, Segment};

/// Facts about a connection that speaks plain TCP, as far as the peer may not know yet that it does.
#[derive(Debug, Default)]
pub(super) struct Fallback {
    /// The peer had shown before that MPTCP options get through.
    pub(super) was_confirmed: bool,
    /// MP_FAIL for this, on every segment until the peer has answered.
    fail: Option<Dsn>,
    /// The peer may be with MPTCP still.
    pub(super) doubt: Option<Doubt>,
    infinite: Infinite,
}

/// Our infinite mapping.
#[derive(Debug, Default)]
enum Infinite {
    #[default]
    Never,
    /// Declared on the first new segment with data, or with the FIN.
    Due {
        /// The subflow offset where new data begins.
        after: u64,
        /// The first data offset that was not DATA_ACKed when MPTCP was given up.
        from: u64,
    },
    /// Declared on the segment at this subflow offset, and on its repetitions.
    On {
        /// Subflow offset at which the segment begins.
        start: u64,
        /// Data offset, as in `Due`.
        from: u64,
    },
}

impl Infinite {
    /// The data offset from which it maps, if it goes with `sent`.
    fn take_out(&mut self, sent: &Sent) -> Option<u64> {
        match *self {
            // A FIN takes a number of the subflow's, so a host without data to send can tell as well (A-INFINITE).
            Infinite::Due { after, from } if (sent.len > 0 || sent.flags & FIN != 0) && sent.start >= after => {
                *self = Infinite::On { start: sent.start, from };
                Some(from)
            }
            Infinite::On { start, from } if start == sent.start => Some(from),
            _ => None,
        }
    }
}

impl Life {
    /// The peer has answered our MP_FAIL, or shown that it has followed.
    fn forget_fail(&mut self) {
        if let Some(fallback) = self.fallback_mut() {
            fallback.fail = None;
        }
    }
}

/// Tells whether MPTCP was given up before the peer could know of it, if it was.
fn is_early(reason: Option<FallbackReason>) -> bool {
    matches!(
        reason,
        None | Some(
            FallbackReason::Syn
                | FallbackReason::SynAck
                | FallbackReason::SynLost
                | FallbackReason::Remembered
                | FallbackReason::ThirdAck
                | FallbackReason::SimultaneousOpen
        )
    )
}

impl Connection {
    /// Gives MPTCP up for plain TCP on the only subflow. A connection that is ending goes on ending.
    pub(super) fn fall_back(&mut self, now: Instant, reason: FallbackReason, shared: &mut Shared) {
        if !matches!(self.life, Life::Negotiating | Life::Unconfirmed(_) | Life::Multipath) {
            return;
        }
        let was_confirmed = self.life.is_confirmed();
        self.life = Life::Plain(Fallback { was_confirmed, ..Fallback::default() });
        self.stats.fallback = Some(reason);
        // Nothing of the data level is left to be said.
        self.timers.data = None;
        self.paths.manager = PathManager::default();
        // Without DSS a segment holds more; once data flows the size stays, since the window counts in it.
        for subflow in self.subflows.iter_mut().filter(|subflow| subflow.state != State::Established) {
            subflow.leave_room(0);
        }
        shared.fell_back(reason);
        if self.is_known() {
            shared.event(self.id, Event::Fallback(reason));
        }
        while let Some(slot) = self.subflows.find(Subflow::is_unfinished_join) {
            self.kill(now, slot, ResetReason::MptcpError, shared);
        }
        self.announce_infinite(reason);
        self.begin_doubt(reason);
        self.receiver.forget_fin();
        self.place_plainly(now, shared);
        // What the subflow has acknowledged is acknowledged; perhaps nothing more will come to say so.
        if let Some(subflow) = self.subflows.first() {
            let una = subflow.tx.recovery.snd_una();
            let window = subflow.tx.snd_edge.saturating_sub(una);
            let acked = una.saturating_sub(1).min(self.sender.outgoing.buffer.end());
            self.on_data_ack(now, acked, window, shared);
        }
        // A peer with both keys may have sent a join already.
        if self.keys.remote.is_none() {
            shared.routes.push(Route::RemoveToken(self.keys.local.token(), self.id));
        }
    }

    /// True while plain TCP can still take over: one subflow ever, everything in order on it, and not yet at the end.
    pub(super) fn can_fall_back(&self) -> bool {
        self.subflows.joined == 0 && self.can_follow()
    }

    /// True while we can go to plain TCP with a peer that has: it did not count on a join whose fourth ACK has not
    /// come.
    pub(super) fn can_follow(&self) -> bool {
        self.subflows.first().is_some_and(|subflow| self.is_plain_at(subflow.rx.placed()))
    }

    /// A RST arrives on the subflow in `slot`. A peer that has fallen back refuses a join at its third ACK, with
    /// MP_TCPRST and before it has sent anything there: it does not count on the subflow, and plain TCP stays a way
    /// out. Linux falls back in silence where a box merges segments, and refuses joins from there on.
    pub(super) fn note_refused_join(&mut self, slot: Slot, segment: &Segment) {
        let subflow = &self.subflows[slot];
        let unused = subflow.state == State::Confirming && segment.seq == subflow.rx.irs + 1;
        let refuses = |option: &MpOption| matches!(option, MpOption::TcpReset { .. });
        if unused && segment.options.mptcp().iter().any(refuses) {
            self.subflows.joined -= 1;
        }
    }

    /// The same as [`Self::can_fall_back`] when subflow offset `at` is the next to be taken.
    pub(super) fn can_fall_back_at(&self, at: u64) -> bool {
        self.subflows.joined == 0 && self.is_plain_at(at)
    }

    /// Returns true if the connection can be plain TCP from subflow offset `at` on: its only subflow and the stream
    /// have come equally far. They have not if the peer repeated data on the same subflow, or sent some that was
    /// refused.
    fn is_plain_at(&self, at: u64) -> bool {
        let in_order =
            self.sender.outgoing.in_order && self.receiver.in_order() && self.receiver.stream_next() + 1 == at;
        let complete = self.sender.outgoing.fin_acked && self.receiver.finished();
        let alone = self.subflows.iter().filter(|subflow| !subflow.is_unfinished_join()).count() == 1;
        !self.subflows.peer_knows_of_join && alone && in_order && !complete
    }

    /// A checksum was wrong (§3.7). False if the subflow is gone.
    pub(super) fn on_checksum_failure(&mut self, now: Instant, slot: Slot, map: &Mapping, shared: &mut Shared) -> bool {
        shared.counters.checksum_failures += 1;
        let dsn = self.keys.remote_dsn(map.data);
        if self.can_fall_back() {
            self.fall_back(now, FallbackReason::ChecksumFailed, shared);
            if let Some(fallback) = self.life.fallback_mut() {
                fallback.fail = Some(dsn);
            }
            self.subflows[slot].rx.ack.now = true;
            return true;
        }
        self.reset_with_fail(now, slot, dsn, shared);
        false
    }

    fn reset_with_fail(&mut self, now: Instant, slot: Slot, dsn: Dsn, shared: &mut Shared) {
        let reason = shared.reset_option(ResetReason::Middlebox);
        self.send_reset(now, slot, vec![MpOption::Fail { dsn }, reason], shared);
        self.lose(now, slot, (Ended::Middlebox, 1), shared);
    }

    /// MP_FAIL on something other than a RST: data of ours arrived changed (§3.7).
    pub(super) fn on_fail(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        shared.counters.fails_received += 1;
        if self.life.is_fast_closing() {
            return;
        }
        match self.life.mode() {
            // Our answer was lost.
            Mode::Plain if self.stats.fallback == Some(FallbackReason::PeerFailed) => {
                let next = self.keys.remote_dsn(self.receiver.next());
                self.send_ack(now, slot, vec![MpOption::Fail { dsn: next }], shared);
            }
            // The answer to ours.
            Mode::Plain => self.life.forget_fail(),
            Mode::Multipath if self.can_fall_back() => {
                // Both directions turn to plain TCP, and the peer is told in kind.
                let next = self.keys.remote_dsn(self.receiver.next());
                self.fall_back(now, FallbackReason::PeerFailed, shared);
                self.send_ack(now, slot, vec![MpOption::Fail { dsn: next }], shared);
            }
            // It comes on a RST when there is a way round; on this subflow there is none, so that is what is left.
            Mode::Multipath if self.subflows[slot].is_open() => {
                let next = self.keys.remote_dsn(self.receiver.next());
                self.reset_with_fail(now, slot, next, shared);
            }
            _ => {}
        }
    }

    /// MPTCP has just been given up in mid-connection: the peer hears of it with the next data.
    pub(super) fn announce_infinite(&mut self, reason: FallbackReason) {
        let told = matches!(
            reason,
            FallbackReason::FirstData
                | FallbackReason::OptionsLost
                | FallbackReason::ChecksumFailed
                | FallbackReason::PeerFailed
        );
        if let (true, Some(_), Some(subflow)) = (told, self.keys.remote, self.subflows.first()) {
            let due = Infinite::Due { after: subflow.tx.recovery.snd_nxt(), from: self.sender.outgoing.una };
            if let Some(fallback) = self.life.fallback_mut() {
                fallback.infinite = due;
            }
        }
    }

    /// The infinite mapping that goes with `sent`, if it is the segment for it: from the first byte that was not
    /// DATA_ACKed on, the subflow's order is the stream's. The checksum is zero (§3.3.1).
    pub(super) fn infinite_mapping(&mut self, sent: &Sent) -> Option<Dss> {
        let from = self.life.fallback_mut()?.infinite.take_out(sent)?;
        let map = Map {
            dsn: DataSeq::Long(self.keys.dsn(from)),
            subflow_seq: (from + 1) as u32,
            length: 0,
            checksum: self.negotiated.checksum.then_some(0),
        };
        Some(Dss { data_ack: None, map: Some(map), data_fin: false })
    }

    /// A segment arrives after the fallback. One that maps its bytes elsewhere than plain TCP would put them comes from
    /// a peer that has not followed and repeats data: taking it would corrupt the stream. False if the connection is
    /// gone.
    pub(super) fn check_agreement(&mut self, now: Instant, slot: Slot, dss: Option<&Dss>, shared: &mut Shared) -> bool {
        if self.keys.remote.is_none() || is_early(self.stats.fallback) {
            return true;
        }
        let Some(map) = dss.and_then(|dss| dss.map) else { return true };
        if map.length == 0 {
            self.life.forget_fail();
            return true;
        }
        let near = self.subflows[slot].rx.rcv_nxt;
        let first = SubflowSeq::new(map.subflow_seq).offset_near(SubflowSeq::new(0), near);
        let lone_fin = dss.is_some_and(|dss| dss.data_fin) && map.length == 1;
        let agrees = first
            .zip(self.keys.data_offset(map.dsn, self.receiver.next()))
            .is_some_and(|(first, data)| data + 1 == first);
        if agrees || lone_fin {
            return true;
        }
        self.reset_disagreeing(now, slot, shared);
        false
    }

    /// Resets a peer with which we do not agree about what the bytes of the subflow are.
    pub(super) fn reset_disagreeing(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let reason = shared.reset_option(ResetReason::Middlebox);
        self.send_reset(now, slot, vec![reason], shared);
        self.stats.ended.get_or_insert(Ended::Middlebox);
        self.finish(Event::Reset, shared);
    }

    /// Reports whether data of ours has gone out with the infinite mapping, or after it: without its options, too, it
    /// means the end of MPTCP.
    pub(super) fn has_told_with_data(&self) -> bool {
        let Life::Plain(fallback) = &self.life else { return false };
        matches!(fallback.infinite, Infinite::On { from, .. } if from < self.sender.outgoing.nxt)
    }

    /// Reports whether the peer has acknowledged the segment with our infinite mapping. It speaks plain TCP since, and
    /// Linux, for one, reads no MP_FAIL any more.
    pub(super) fn has_infinite(&self) -> bool {
        let acknowledged = self.subflows.first().map_or(0, |subflow| subflow.tx.recovery.snd_una());
        let Life::Plain(fallback) = &self.life else { return false };
        matches!(fallback.infinite, Infinite::On { start, .. } if start < acknowledged)
    }

    /// Hands the bytes that waited for a mapping to the stream: the order of the subflow is the stream's now.
    pub(super) fn place_plainly(&mut self, now: Instant, shared: &mut Shared) {
        let before = self.receiver.next();
        let Some(first) = self.subflows.first_slot() else { return };
        let subflow = &mut self.subflows[first];
        subflow.rx.unmapped_until = None;
        let mut at = subflow.rx.placed();
        while let Some(chunk) = subflow.rx.unplaced.pop(u64::MAX) {
            let length = chunk.len() as u64;
            // At most a window of it waited for mappings (`await_mapping`).
            self.receiver.admit_acknowledged(at - 1 + length);
            self.receiver.receive(now, at - 1, chunk);
            at += length;
        }
        self.on_placed(now, first, before, shared);
    }

    /// Adds the MP_FAIL that the peer has not answered (RFC 8684 §3.7). Data carries it too: in a busy direction data
    /// takes the place of every ACK.
    pub(super) fn add_fail(&self, segment: &mut Segment) {
        if let Life::Plain(Fallback { fail: Some(dsn), .. }) = self.life
            && !self.has_infinite()
        {
            segment.options.push_mptcp(MpOption::Fail { dsn });
        }
    }
}
