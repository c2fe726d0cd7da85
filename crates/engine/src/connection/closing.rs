//! End of subflows and connections: FIN, DATA_FIN, resets, MP_FASTCLOSE (RFC 8684 §3.3.3, §3.5, §3.6).

use super::paths::PathManager;
use super::slots::Slot;
use super::timers::Timers;
use super::{Connection, Life, Mode, Role};
use crate::FastClose;
use crate::recovery::FIN;
use crate::shared::{Route, Shared};
use crate::subflow::{State, Subflow};
use crate::{Ended, Event, Purpose, Reason};
use anabranch_units::{Duration, Instant, Key, SubflowId};
use anabranch_wire::{MpOption, ResetReason, Segment};

/// The shortest time a closed plain TCP connection stays to acknowledge a repeated FIN. RFC 9293 says twice the maximum
/// segment lifetime, minutes; a simulated path has no segments that old.
const SHORTEST_TIME_WAIT: Duration = Duration::from_secs(1);

/// Repetitions of an unanswered MP_FASTCLOSE (RFC 8684 §3.5 recommends 3).
const MAX_FAST_CLOSES: u32 = 3;

/// FASTCLOSE_WAIT (RFC 8684 §3.5): only the peer's RST, or its own MP_FASTCLOSE, means anything now.
pub(super) struct FastClosing {
    pub(super) deadline: Instant,
    /// MP_FASTCLOSEs sent.
    tries: u32,
    /// The peer had shown before that MPTCP options get through.
    pub(super) was_confirmed: bool,
}

impl Connection {
    /// Removes the subflow in `slot`: what it carried is sent again elsewhere, its statistics stay.
    pub(super) fn bury(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let subflow = self.subflows.remove(slot);
        if self.role == Role::Client {
            subflow.remember_path(&mut shared.memory);
        }
        if shared.config.profile.temporal_sharing {
            self.paths.history.keep(&subflow);
        }
        if subflow.tx.recovery.iter().next().is_some() {
            self.negotiated.dss.note_strayed(now);
        }
        shared.routes.push(Route::Remove(subflow.flow));
        let stats = crate::SubflowStats { established: false, ..subflow.stats(&self.sender.congestion) };
        if subflow.tx.recovery.snd_nxt() > 1 || subflow.rx.bytes_received > 0 || !subflow.is_join() {
            self.subflows.bury(stats);
        }
        self.sender.congestion.remove(subflow.id);
        self.sender.outgoing.send_elsewhere(subflow.mark, Reason::Gone(subflow.id));
        self.sender.outgoing.log.forget(subflow.mark);
        if self.is_known() && !subflow.is_half_open_join() {
            shared.event(self.id, Event::SubflowClosed(subflow.id));
        }
        self.sender.on_subflows_changed(now, &self.subflows);
        // Joins under way may come to nothing, and others take their place.
        if self.subflows.iter().all(|other| other.is_join() && other.state != State::Established) {
            self.on_last_subflow_gone(now, shared);
        }
        if !self.life.is_gone() {
            let confirmed = subflow.confirmed && subflow.liveness.unconfirmed <= super::timers::MAX_UNCONFIRMED;
            let worked = confirmed && !subflow.in_vain;
            self.schedule_rejoin(now, &subflow.flow, worked, shared);
        }
    }

    fn on_last_subflow_gone(&mut self, now: Instant, shared: &mut Shared) {
        let complete = self.sender.outgoing.fin_acked && self.receiver.finished();
        if complete {
            // Joins that are left are reset first (`close_subflows`).
            if self.subflows.is_empty() {
                self.finish(Event::Closed, shared);
            }
        } else if self.life.mode() == Mode::Multipath {
            // RFC 8684 §3.6: the connection outlives its subflows for a while. Joins that come to nothing do not
            // prolong it.
            self.timers.abandoned.get_or_insert(now + shared.config.close_timeout);
        } else {
            self.finish(Event::Reset, shared);
        }
    }

    /// The connection is over; `how` is what the application hears.
    pub(super) fn finish(&mut self, how: Event, shared: &mut Shared) {
        if self.life.is_gone() {
            return;
        }
        while let Some(subflow) = self.subflows.pop() {
            if self.role == Role::Client {
                subflow.remember_path(&mut shared.memory);
            }
            shared.routes.push(Route::Remove(subflow.flow));
            self.subflows.bury(crate::SubflowStats { established: false, ..subflow.stats(&self.sender.congestion) });
        }
        shared.routes.push(Route::RemoveToken(self.keys.local.token(), self.id));
        if how == Event::Closed && self.receiver.unread() > 0 {
            // The application still has something to read; the last of it ends the connection.
            self.timers = Timers::default();
            self.paths.manager = PathManager::default();
            self.life = Life::Unread(self.life.mode());
            return;
        }
        self.life = Life::Gone(self.life.mode());
        let by_itself = if how == Event::Closed { Ended::InOrder } else { Ended::NoSubflow };
        self.stats.ended.get_or_insert(by_itself);
        // Of a handshake that never completed the application has not heard.
        if self.is_known() {
            shared.event(self.id, how);
        }
    }

    /// The application gives up: end everything, and say so (RFC 8684 §3.5).
    pub(crate) fn abort(&mut self, now: Instant, shared: &mut Shared) {
        self.stats.ended.get_or_insert(Ended::Aborted);
        let key = self.keys.remote.filter(|_| self.life.mode() == Mode::Multipath);
        if let (FastClose::Ack, Some(_), Some(slot)) = (shared.config.fast_close, key, self.subflows.control()) {
            return self.start_fast_close(now, slot, shared);
        }
        let mut left = self.subflows.there();
        while let Some(slot) = self.subflows.take_first(&mut left) {
            let mut options = Vec::new();
            if let Some(receiver_key) = key {
                options.push(MpOption::FastClose { receiver_key });
                options.push(shared.reset_option(ResetReason::Unspecified));
            }
            self.send_reset(now, slot, options, shared);
        }
        self.finish(Event::Reset, shared);
    }

    /// Option A of RFC 8684 §3.5: MP_FASTCLOSE on an ACK of one subflow, RSTs on all others, and a wait for the peer's
    /// RST.
    fn start_fast_close(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        if self.life.is_fast_closing() {
            return;
        }
        let was_confirmed = self.life.is_confirmed();
        self.life = Life::FastClosing(FastClosing { deadline: now, tries: 0, was_confirmed });
        let id = self.subflows[slot].id;
        while let Some(other) = self.subflows.find(|subflow| subflow.id != id) {
            self.kill(now, other, ResetReason::Unspecified, shared);
        }
        self.timers = Timers::default();
        self.paths.manager = PathManager::default();
        self.on_fast_close_timeout(now, shared);
    }

    /// MP_FASTCLOSE has not been answered (or not been sent yet).
    pub(super) fn on_fast_close_timeout(&mut self, now: Instant, shared: &mut Shared) {
        let Life::FastClosing(closing) = &mut self.life else { return };
        let Some((slot, receiver_key)) = self.subflows.first_slot().zip(self.keys.remote) else {
            // The last subflow is gone, and no answer can arrive.
            return self.finish(Event::Reset, shared);
        };
        let option = MpOption::FastClose { receiver_key };
        if closing.tries > MAX_FAST_CLOSES {
            let reason = shared.reset_option(ResetReason::Unspecified);
            self.send_reset(now, slot, vec![option, reason], shared);
            return self.finish(Event::Reset, shared);
        }
        closing.tries += 1;
        closing.deadline = now + self.subflows[slot].tx.rtt.rto();
        self.send_ack(now, slot, vec![option], shared);
    }

    /// MP_FASTCLOSE: honoured with the right key, ignored otherwise. True if the connection is gone.
    ///
    /// `reset` is the subflow on whose RST it came, if it was no ACK.
    pub(super) fn on_fast_close(
        &mut self,
        now: Instant,
        key: Key,
        reset: Option<SubflowId>,
        shared: &mut Shared,
    ) -> bool {
        if key != self.keys.local || self.life.mode() != Mode::Multipath {
            return false;
        }
        shared.counters.resets_received += 1;
        let mut left = self.subflows.there();
        while let Some(slot) = self.subflows.take_first(&mut left) {
            // On an ACK it wants an answer (§3.5); on a RST that subflow is gone already, the others are told.
            if reset != Some(self.subflows[slot].id) {
                self.send_reset(now, slot, Vec::new(), shared);
            }
        }
        self.stats.ended = Some(Ended::Reset);
        self.finish(Event::Reset, shared);
        true
    }

    /// A valid RST on the subflow in `slot`.
    pub(super) fn on_reset(&mut self, now: Instant, slot: Slot, segment: &Segment, shared: &mut Shared) {
        shared.counters.resets_received += 1;
        if self.life.is_fast_closing() {
            return self.finish(Event::Reset, shared);
        }
        if self.life.mode() == Mode::Multipath {
            self.note_reset_reason(slot, segment, shared);
            self.note_refused_join(slot, segment);
            self.end_of_last(slot, Ended::Reset);
            return self.lose_to_reset(now, slot, segment, shared);
        }
        let subflow = &self.subflows[slot];
        let all_sent = subflow.tx.fin_sent && self.sender.outgoing.una >= self.sender.outgoing.buffer.end();
        let complete = all_sent && subflow.rx.has_ended();
        self.stats.ended = Some(if complete { Ended::InOrder } else { Ended::Reset });
        self.finish(if complete { Event::Closed } else { Event::Reset }, shared);
    }

    /// MP_TCPRST (RFC 8684 §3.6): told to the application, and after a permanent error the path is not tried again.
    pub(super) fn note_reset_reason(&mut self, slot: Slot, segment: &Segment, shared: &mut Shared) {
        let told = segment.options.mptcp().iter().find_map(|option| match option {
            MpOption::TcpReset { transient, reason } => Some((*transient, *reason)),
            _ => None,
        });
        if segment.options.mptcp().iter().any(|option| matches!(option, MpOption::Fail { .. })) {
            shared.counters.fails_received += 1;
        }
        let Some((transient, reason)) = told else { return };
        *shared.counters.reset_reasons_received.entry(reason).or_default() += 1;
        let subflow = &self.subflows[slot];
        if self.is_known() {
            shared.event(self.id, Event::SubflowReset { subflow: subflow.id, reason, transient });
        }
        // A peer without our key knows no connection to join yet.
        if !transient && self.life.is_confirmed() {
            self.paths.manager.bar(&subflow.flow);
        }
    }

    /// Sends the FINs that are due and ends what has ended.
    pub(super) fn advance_closing(&mut self, now: Instant, shared: &mut Shared) {
        match self.life.mode() {
            Mode::Multipath => {
                if self.sender.outgoing.fin_acked && self.receiver.finished() {
                    self.close_subflows(now, shared);
                } else {
                    self.release_left_subflows(now, shared);
                }
            }
            Mode::Plain => self.close_plain(now, shared),
            Mode::Negotiating => {}
        }
    }

    /// Closes the subflows after both DATA_FINs are done (RFC 8684 §3.3.3).
    fn close_subflows(&mut self, now: Instant, shared: &mut Shared) {
        let mut left = self.subflows.there();
        while let Some(slot) = self.subflows.take_first(&mut left) {
            let subflow = &self.subflows[slot];
            if subflow.state != State::Established {
                self.send_reset(now, slot, Vec::new(), shared);
                self.bury(now, slot, shared);
                continue;
            }
            if !subflow.tx.fin_sent {
                self.send_fin(now, slot, shared);
            }
            if self.subflows[slot].is_closed() {
                // All data is DATA_ACKed; a peer that repeats its FIN gets a RST, which loses nothing any more.
                if self.subflows[slot].rx.owes_ack() {
                    self.send_ack(now, slot, Vec::new(), shared);
                }
                self.bury(now, slot, shared);
            }
        }
        if self.subflows.is_empty() {
            self.finish(Event::Closed, shared);
        } else {
            // A peer that acknowledges our FIN and never sends its own would otherwise hold the connection for ever.
            self.timers.abandoned.get_or_insert(now + shared.config.close_timeout);
        }
    }

    fn close_plain(&mut self, now: Instant, shared: &mut Shared) {
        let Some(slot) = self.subflows.first_slot() else { return };
        let subflow = &self.subflows[slot];
        let drained = self.sender.outgoing.unsent.is_empty() && self.sender.outgoing.fin.is_some();
        if drained && !subflow.tx.fin_sent && subflow.state == State::Established {
            self.send_fin(now, slot, shared);
        }
        let subflow = &self.subflows[slot];
        if subflow.is_closed() && self.timers.time_wait.is_none() {
            let wait = (subflow.tx.rtt.rto() * 2).max(SHORTEST_TIME_WAIT);
            self.timers.time_wait = Some(now + wait);
        }
    }

    /// Closes a subflow alone (RFC 8684 §3.3.3): what it carried is sent elsewhere, and it stays until both FINs have
    /// come through, ours repeated like data.
    pub(super) fn leave_subflow(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let subflow = &mut self.subflows[slot];
        if subflow.tx.fin_sent || subflow.state != State::Established {
            return;
        }
        subflow.liveness.linger_until = Some(now + shared.config.close_timeout);
        let (id, mark) = (subflow.id, subflow.mark);
        self.sender.outgoing.send_elsewhere(mark, Reason::Gone(id));
        self.send_fin(now, slot, shared);
    }

    /// Subflows that are closed both ways while the connection goes on.
    fn release_left_subflows(&mut self, now: Instant, shared: &mut Shared) {
        while let Some(slot) = self.subflows.find(Subflow::is_closed) {
            if self.subflows[slot].rx.owes_ack() {
                self.send_ack(now, slot, Vec::new(), shared);
            }
            self.bury(now, slot, shared);
        }
    }

    /// Closes one subflow of several for the application. Returns false if there is no such subflow, or if it is the
    /// only one.
    pub(crate) fn close_subflow(&mut self, now: Instant, slot: Slot, shared: &mut Shared) -> bool {
        let possible =
            self.life.mode() == Mode::Multipath && self.subflows[slot].is_open() && self.subflows.open().count() > 1;
        if possible {
            self.leave_subflow(now, slot, shared);
        }
        possible
    }

    pub(super) fn send_fin(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let end = self.sender.outgoing.buffer.end();
        let subflow = &mut self.subflows[slot];
        subflow.tx.fin_sent = true;
        let sent = subflow.tx.recovery.on_sent(now, 0, end, FIN).expect("a FIN takes a sequence number");
        self.send_data(now, slot, &sent, Purpose::Fin, shared);
        let subflow = &mut self.subflows[slot];
        subflow.tx.recovery.rearm(now, &subflow.tx.rtt);
        self.sender.on_subflows_changed(now, &self.subflows);
    }
}
