//! Choice of the next segment: retransmissions, reinjections, new data as the scheduler decides, then ACKs still due.

use super::decision::{Verdict, view};
use super::sender::Outgoing;
use super::slots::Slot;
use super::subflows::Kind;
use super::{Connection, Mode, emit, watchdog};
use crate::Blocked;
use crate::recovery::Sent;
use crate::shared::Shared;
use crate::subflow::{Subflow, Tx};
use crate::{Detector, Purpose, Reason};
use anabranch_policy::reinjection::Cause;
use anabranch_policy::{Event as PolicyEvent, SubflowView};
use anabranch_units::{Bytes, Instant, SubflowId};

/// Reason for which the sender does not send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Obstacle {
    Cwnd,
    ReceiveWindow,
    Scheduler,
    Application,
}

/// Outcome of an attempt to send a segment of new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attempt {
    Sent,
    /// More will be written, and a full segment is better (Nagle, RFC 9293 §3.7.4).
    TooShort,
    /// The peer's window admits only a part of it (RFC 9293 §3.8.6.2.1).
    SillyWindow,
    /// The window of this subflow alone admits nothing worth sending.
    SubflowWindow,
    /// The subflow that was to carry a copy has carried everything.
    NothingToCopy,
}

/// State between decisions: the sender's obstacle, since when, and marks that live until a decision takes effect.
#[derive(Debug)]
pub(super) struct Waiting {
    obstacle: Obstacle,
    since: Instant,
    blocked: Blocked,
    /// The data-level timer wants the oldest data repeated although every subflow carried it.
    pub(super) repeat_anywhere: bool,
    /// The scheduler's latest answer was impossible.
    pub(super) overruled: bool,
}

/// A piece of the stream about to be sent.
struct Piece {
    start: u64,
    length: u64,
    /// Flags, as `Sent::flags`.
    flags: u8,
    purpose: Purpose,
}

impl Waiting {
    pub(super) fn new(now: Instant) -> Self {
        Waiting {
            obstacle: Obstacle::Application,
            since: now,
            blocked: Blocked::default(),
            repeat_anywhere: false,
            overruled: false,
        }
    }

    pub(super) fn since(&self) -> Instant {
        self.since
    }

    pub(super) fn fill(&self, blocked: &mut Blocked) {
        *blocked = self.blocked;
    }

    fn note(&mut self, now: Instant, obstacle: Obstacle) {
        let waited = now.since(self.since);
        let counter = match self.obstacle {
            Obstacle::Cwnd => &mut self.blocked.cwnd,
            Obstacle::ReceiveWindow => &mut self.blocked.receive_window,
            Obstacle::Scheduler => &mut self.blocked.scheduler,
            Obstacle::Application => &mut self.blocked.application,
        };
        *counter += waited;
        self.since = now;
        self.obstacle = obstacle;
    }
}

impl Outgoing {
    /// The next segment of new data for a subflow, `skip` bytes into the unsent: offset and length, unless it is better
    /// to wait. The first of the stream leaves room for `keys` bytes.
    fn next_segment(&self, skip: Bytes, tx: &Tx, keys: u32, nagle: bool) -> Result<(u64, u64), Attempt> {
        let (start, range_end) = self.unsent.nth(skip.get()).ok_or(Attempt::TooShort)?;
        let mss = u64::from(if start == 0 { tx.mss.saturating_sub(keys).max(1) } else { tx.mss });
        let subflow_room = tx.window_left();
        let whole = mss.min(range_end - start);
        let admitted = whole.min(self.edge.saturating_sub(start));
        let length = admitted.min(subflow_room);
        let idle = self.needs_unsent() && skip.is_zero();
        // What is under way will widen the window; where nothing is, a part of a segment has to do. The others may have
        // no share left, so that only this subflow can go on.
        let silly = (admitted < whole && !idle) || (length < admitted && !tx.recovery.is_empty());
        if length == 0 || silly {
            return Err(if subflow_room < admitted { Attempt::SubflowWindow } else { Attempt::SillyWindow });
        }
        // What was skipped may be all that the acknowledgment of the rest waits for.
        let may_grow = self.ends_at(start + length) && self.fin.is_none();
        if nagle && skip.is_zero() && length < mss && may_grow && !idle {
            return Err(Attempt::TooShort);
        }
        Ok((start, length))
    }
}

impl Connection {
    /// Puts everything that may leave now into the endpoint's queue. Returns true if our direction is at rest.
    pub(crate) fn transmit(&mut self, now: Instant, shared: &mut Shared) -> bool {
        if self.life.is_gone() || self.life.is_fast_closing() {
            return false;
        }
        let at_rest = !shared.takes_long_way() && self.has_nothing_to_send();
        if at_rest {
            self.only_acknowledge(now, shared);
        } else {
            self.transmit_all(now, shared);
        }
        self.subflows.settle();
        at_rest
    }

    /// The general way of [`Self::transmit`].
    fn transmit_all(&mut self, now: Instant, shared: &mut Shared) {
        if self.life.mode() != Mode::Negotiating || self.role == super::Role::Client {
            self.sender.throttle(now, &mut self.subflows, &shared.config.profile);
            self.retransmit(now, shared);
            if self.life.mode() != Mode::Negotiating {
                let obstacle = self.send_stream(now, shared);
                self.close_burst(shared);
                if obstacle != Obstacle::Scheduler {
                    self.sender.watchdog.acquit();
                }
                self.sender.waiting.note(now, obstacle);
                self.arm_reinjection(now);
                self.send_tail_probes(now, shared);
                self.finish_stream(now, shared);
                self.advance_closing(now, shared);
            }
        }
        if self.life.is_gone() {
            return;
        }
        self.send_due_acks(now, shared);
        self.sender.settle_pacing(now, &mut self.subflows, &shared.config.profile);
        self.arm_persist_timer(now, shared);
    }

    #[inline]
    fn send_due_acks(&mut self, now: Instant, shared: &mut Shared) {
        let mut left = self.subflows.those(Kind::Acknowledging, |it| it.rx.ack.now || it.rx.ack.unreported);
        while let Some(slot) = self.subflows.take_first(&mut left) {
            self.send_ack(now, slot, Vec::new(), shared);
        }
    }

    /// True if our direction has no data unsent, under way or to be repeated, and is not being closed.
    fn has_nothing_to_send(&mut self) -> bool {
        // Pacing keeps alarms, so that it takes the long way.
        self.sender.outgoing.is_at_rest()
            && self.life.mode() != Mode::Negotiating
            && !self.sender.congestion.is_model_based()
            && self.subflows.are_at_rest()
    }

    /// The short way of [`Self::transmit`] where there is nothing to send: leaves everything as the long way would.
    fn only_acknowledge(&mut self, now: Instant, shared: &mut Shared) {
        self.timers.ask_again = None;
        self.timers.reinjection = None;
        self.timers.stop_persist();
        self.sender.watchdog.acquit();
        self.sender.waiting.note(now, Obstacle::Application);
        self.send_due_acks(now, shared);
        self.sender.settle_idle(&mut self.subflows);
        self.sender.forget_views();
    }

    /// Repeats what was lost, as far as each congestion window admits; the first repetition of a recovery at once.
    fn retransmit(&mut self, now: Instant, shared: &mut Shared) {
        let has_to = |it: &Subflow| it.tx.retransmit_now || it.tx.recovery.has_retransmission();
        let mut left = self.subflows.those(Kind::Repairing, has_to);
        while let Some(slot) = self.subflows.take_first(&mut left) {
            let id = self.subflows[slot].id;
            while let Some((sent, detector)) = self.sender.next_repair(now, &mut self.subflows[slot].tx, id) {
                self.repeat(now, slot, &sent, detector, shared);
            }
        }
    }

    fn repeat(&mut self, now: Instant, slot: Slot, sent: &Sent, detector: Detector, shared: &mut Shared) {
        let keys = if sent.data == 0 { self.room_for_keys() } else { 0 };
        let subflow = &mut self.subflows[slot];
        subflow.tx.recovery.on_retransmit(now, sent.start, &subflow.tx.rtt);
        subflow.tx.recovery.rearm(now, &subflow.tx.rtt);
        self.sender.pace(now, subflow, sent.len, shared.config.burst);
        for part in subflow.tx.parts(sent, keys) {
            self.send_data(now, slot, &part, Purpose::Retransmission(detector), shared);
        }
    }

    /// A tail loss probe for which there was no new data repeats the last segment (RFC 8985 §7.3).
    fn send_tail_probes(&mut self, now: Instant, shared: &mut Shared) {
        let mut left = self.subflows.those(Kind::Probing, |it| it.tx.probe_now);
        while let Some(slot) = self.subflows.take_first(&mut left) {
            if std::mem::take(&mut self.subflows[slot].tx.probe_now)
                && let Some(sent) = self.subflows[slot].tx.recovery.probe_candidate()
            {
                self.repeat(now, slot, &sent, Detector::TailLossProbe, shared);
            }
        }
    }

    /// Sends unsent data and reinjections; what keeps it from sending more.
    fn send_stream(&mut self, now: Instant, shared: &mut Shared) -> Obstacle {
        self.timers.ask_again = None;
        let nothing_new = self.sender.outgoing.unsent.is_empty();
        if nothing_new && self.sender.outgoing.una == self.sender.outgoing.nxt {
            return Obstacle::Application;
        }
        // Before policies ask for the room, which is counted in full segments.
        self.widen_when_old(now);
        self.survey(now, shared);
        if self.sender.views.is_empty() {
            return if nothing_new { Obstacle::Application } else { Obstacle::Cwnd };
        }
        self.reinject(now, shared);
        self.send_as_decided(now, shared)
    }

    /// Sends new data and copies, segment by segment as the scheduler says, until something is in the way.
    fn send_as_decided(&mut self, now: Instant, shared: &mut Shared) -> Obstacle {
        let mut window_shut = false;
        let mut vain = 0;
        // Timers ask for probes, so that none is asked for in between.
        let probing = self.subflows.any(Kind::Probing, |subflow| subflow.tx.probe_now);
        let may_copy = self.sender.views.len() > 1 && self.sender.scheduler.capabilities.repeats && self.may_reinject();
        loop {
            self.copy(now, shared);
            let unsent = self.sender.outgoing.unsent.total();
            let any_room = self.sender.views.iter().any(SubflowView::has_room);
            let room_to_repeat = any_room || self.sender.views.iter().any(SubflowView::has_room_to_repeat);
            let copies = room_to_repeat && may_copy;
            if unsent == 0 && !copies {
                return self.drained(now, shared);
            }
            let sendable = self.sender.outgoing.unsent.below(self.sender.outgoing.edge);
            if probing && sendable > 0 && self.probe_with_new_data(now, sendable, shared) {
                continue;
            }
            if !room_to_repeat && !window_shut {
                return if self.sender.is_shut_out(&self.subflows) { Obstacle::ReceiveWindow } else { Obstacle::Cwnd };
            }
            if (!any_room || sendable == 0) && !copies {
                return self.window_blocked(now, unsent, sendable, shared);
            }
            let (on, attempt) = match self.decide(now, unsent, sendable, shared) {
                Verdict::New(on, skip) => {
                    let Some(slot) = self.subflows.slot(on) else { return Obstacle::Scheduler };
                    (on, self.send_new(now, slot, skip, sendable, shared.config.profile.nagle, shared))
                }
                Verdict::Copy(on, offset) => (on, self.send_copy(now, on, offset, shared)),
                Verdict::Wait(until) => {
                    self.timers.ask_again = until;
                    return match unsent {
                        0 => self.drained(now, shared),
                        _ if !any_room || sendable == 0 => self.window_blocked(now, unsent, sendable, shared),
                        _ => Obstacle::Scheduler,
                    };
                }
            };
            match attempt {
                Attempt::Sent => {}
                Attempt::TooShort => return Obstacle::Application,
                Attempt::SillyWindow => return self.window_blocked(now, unsent, sendable, shared),
                // Once per subflow a scheduler may not know; then it does not listen.
                Attempt::NothingToCopy if vain < self.sender.views.len() => vain += 1,
                Attempt::NothingToCopy => {
                    self.timers.ask_again = Some(now + watchdog::patience(&self.sender.views));
                    return if unsent == 0 { self.drained(now, shared) } else { Obstacle::Scheduler };
                }
                Attempt::SubflowWindow => {
                    // What the peer admits on one subflow says nothing of the others.
                    self.sender.views.iter_mut().filter(|view| view.id == on).for_each(|view| view.open = false);
                    self.subflows.touch_id(on);
                    window_shut = true;
                }
            }
        }
    }

    /// Sends new data as a tail loss probe where one is due, beyond the congestion window (RFC 8985 §7.3).
    fn probe_with_new_data(&mut self, now: Instant, sendable: u64, shared: &mut Shared) -> bool {
        let probing = self.subflows.possible(Kind::Probing);
        let due = self.subflows.in_order(probing).find(|slot| {
            let subflow = &self.subflows[*slot];
            let used_up = || self.sender.views.iter().any(|view| view.id == subflow.id && view.share.is_zero());
            subflow.tx.probe_now && subflow.is_usable() && !used_up()
        });
        let Some(slot) = due else { return false };
        let sent = self.send_new(now, slot, Bytes::ZERO, sendable, false, shared) == Attempt::Sent;
        self.subflows[slot].tx.probe_now &= !sent;
        sent
    }

    /// Handles the lack of new data to send.
    fn drained(&mut self, now: Instant, shared: &mut Shared) -> Obstacle {
        self.offer(now, Cause::Drained, shared);
        Obstacle::Application
    }

    /// The scheduler's copy of the first sent data from `offset` on that subflow `on` has not carried.
    fn send_copy(&mut self, now: Instant, on: SubflowId, offset: u64, shared: &mut Shared) -> Attempt {
        let Some(mark) = self.subflows.mark_of(on) else { return Attempt::SubflowWindow };
        let out = &self.sender.outgoing;
        let unsent_from = out.unsent.first().map_or(out.buffer.end(), |(start, _)| start);
        let fresh = out.log.first_not_carried(mark, offset).filter(|(start, _)| *start < unsent_from);
        let (start, length) = match fresh {
            Some((start, end)) => match self.repeat_on(now, on, (start, end), Reason::Scheduler, shared) {
                Some(length) => (start, length),
                None => return Attempt::SubflowWindow,
            },
            None => (unsent_from, 0),
        };
        let event = PolicyEvent::Repeated { on, dsn: self.keys.dsn(start), length: Bytes::new(length) };
        self.sender.scheduler.observe(now, &event);
        if length == 0 { Attempt::NothingToCopy } else { Attempt::Sent }
    }

    /// The peer's window keeps unsent data from a subflow with room.
    fn window_blocked(&mut self, now: Instant, unsent: u64, sendable: u64, shared: &mut Shared) -> Obstacle {
        let view = view(&self.sender.views, &self.sender.outgoing, self.keys.local_idsn, unsent, sendable);
        if let Some(on) = view.fastest_with_room().map(|subflow| subflow.id) {
            self.sender.scheduler.observe(now, &PolicyEvent::WindowBlocked { on });
        }
        self.offer(now, Cause::Window, shared);
        Obstacle::ReceiveWindow
    }

    /// Sends the next segment of new data, `skip` bytes into the unsent, on a subflow, unless it is better to wait.
    fn send_new(
        &mut self,
        now: Instant,
        slot: Slot,
        skip: Bytes,
        sendable: u64,
        nagle: bool,
        shared: &mut Shared,
    ) -> Attempt {
        let keys = self.room_for_keys();
        let subflow = &mut self.subflows[slot];
        let (start, length) = match self.sender.outgoing.next_segment(skip, &subflow.tx, keys, nagle) {
            Ok(segment) => segment,
            Err(obstacle) => return obstacle,
        };
        subflow.counts.bytes_first_sent += length;
        self.sender.restart_after_idle(now, subflow);
        assert!(skip.get() + length <= sendable, "new data stays inside the peer's window");
        let after = subflow.tx.in_flight() + Bytes::new(length);
        let fits = after <= self.sender.congestion.cwnd(subflow.id) || subflow.tx.probe_now;
        assert!(fits, "new data stays inside the congestion window, a tail loss probe apart");
        // The end of a closed stream takes the DATA_FIN along once the peer has confirmed MPTCP.
        let may_close = self.life.mode() == Mode::Multipath && self.life.is_confirmed();
        let fin = self.sender.outgoing.record(now, (start, length), subflow, may_close);
        self.stats.sent += length;
        let purpose = Purpose::NewData(self.sender.choice(&subflow.tx));
        let piece = Piece { start, length, flags: if fin { emit::DATA_FIN } else { 0 }, purpose };
        self.push_data(now, slot, piece, shared);
        if self.timers.data.is_none() {
            self.arm_data_timer(now, shared);
        }
        self.timers.expect_progress(now, shared.config.user_timeout);
        let (on, dsn) = (self.subflows[slot].id, self.keys.dsn(start));
        let event = PolicyEvent::Sent { on, dsn, skip, length: Bytes::new(length) };
        self.sender.scheduler.observe(now, &event);
        self.sender.tell_of_sending(now, &self.subflows, slot, self.keys.local_idsn, (start, length));
        Attempt::Sent
    }

    /// Records and sends a piece of the stream on a subflow, and refreshes its view.
    fn push_data(&mut self, now: Instant, slot: Slot, piece: Piece, shared: &mut Shared) {
        self.sender.watchdog.on_sent();
        let Piece { start, length, flags, purpose } = piece;
        let fresh = matches!(purpose, Purpose::NewData(_));
        let subflow = &mut self.subflows[slot];
        subflow.tx.recovery.set_has_unsent(!self.sender.outgoing.unsent.is_empty());
        subflow.tx.recovery.note_flights(self.sender.congestion.is_model_based());
        let sent = subflow.tx.recovery.on_sent(now, length as u32, start, flags).expect("a piece has bytes");
        self.sender.pace(now, subflow, sent.len, shared.config.burst);
        self.sender.limit_burst(now, subflow, sent.len, &shared.config.profile);
        self.send_data(now, slot, &sent, purpose, shared);
        self.sender.throttle_one(now, &mut self.subflows, slot, &shared.config.profile);
        self.sender.renew_view(now, &self.subflows[slot], if fresh { length } else { 0 });
    }

    /// Sends what waits to be repeated on another subflow, lowest SRTT first (A-COPIES).
    fn reinject(&mut self, now: Instant, shared: &mut Shared) {
        if self.sender.outgoing.reinject.is_empty() {
            return;
        }
        if self.life.mode() == Mode::Plain {
            self.sender.outgoing.reinject.clear();
            return;
        }
        if !self.may_reinject() {
            return;
        }
        while let Some((on, range, reason)) = self.sender.next_reinjection(&self.subflows) {
            if self.repeat_on(now, on, range, reason, shared).is_none() {
                return;
            }
            self.sender.waiting.repeat_anywhere = false;
        }
    }

    /// Repeats up to a segment of `start..end` on subflow `on`; how many bytes. `None` if it cannot.
    pub(super) fn repeat_on(
        &mut self,
        now: Instant,
        on: SubflowId,
        (start, end): (u64, u64),
        reason: Reason,
        shared: &mut Shared,
    ) -> Option<u64> {
        let slot = self.subflows.slot(on)?;
        let subflow = &mut self.subflows[slot];
        let room = subflow.tx.window_left();
        let length = (end - start).min(u64::from(subflow.tx.mss)).min(room);
        if length == 0 {
            return None;
        }
        let ends_stream = self.sender.outgoing.fin_sent && self.sender.outgoing.fin == Some(start + length);
        let flags = if ends_stream { emit::DATA_FIN } else { 0 };
        subflow.counts.reinjected += length;
        self.stats.reinjected += length;
        self.sender.restart_after_idle(now, subflow);
        let out = &mut self.sender.outgoing;
        out.in_order = false;
        out.reinject.remove(start, start + length);
        out.log.note_copy(start, start + length, subflow.mark);
        let piece = Piece { start, length, flags, purpose: Purpose::Reinjection(reason) };
        self.push_data(now, slot, piece, shared);
        Some(length)
    }

    /// Everything is sent: the DATA_FIN follows if the last segment did not carry it.
    fn finish_stream(&mut self, now: Instant, shared: &mut Shared) {
        let out = &self.sender.outgoing;
        let Some(fin) = out.fin.filter(|_| out.unsent.is_empty() && !out.fin_sent) else { return };
        if self.life.mode() != Mode::Multipath || self.subflows.open().next().is_none() {
            return;
        }
        // Until the peer has confirmed MPTCP the connection may still turn out to be plain TCP.
        if !self.life.is_confirmed() && fin > 0 {
            return;
        }
        self.sender.outgoing.fin_sent = true;
        let mut left = self.subflows.there();
        while let Some(slot) = self.subflows.take_first(&mut left) {
            if self.subflows[slot].is_open() {
                self.send_data_fin(now, slot, fin, Purpose::DataFin { retries: 0 }, shared);
            }
        }
        self.arm_data_timer(now, shared);
        self.timers.expect_progress(now, shared.config.user_timeout);
    }
}

#[cfg(test)]
mod tests {
    use super::super::subflows::Subflows;
    use super::*;
    use anabranch_units::Duration;
    use bytes::Bytes as Payload;

    /// Returns a stream of `length` bytes, of which the peer admits those before `edge`, and a subflow for segments of
    /// 1000.
    fn stream(length: usize, edge: u64) -> (Outgoing, Subflow) {
        let mut out = Outgoing::default();
        out.append(&Payload::from(vec![7; length]), length);
        out.open_window(0, edge);
        let mut subflow = Subflow::sample(0, Duration::from_millis(20));
        subflow.tx.mss = 1000;
        (out, subflow)
    }

    fn next(out: &Outgoing, subflow: &Subflow, skip: u64) -> Result<(u64, u64), Attempt> {
        out.next_segment(Bytes::new(skip), &subflow.tx, 0, true)
    }

    /// RFC 9293 §3.7.4: a part of a segment waits while something is under way, unless it is the end.
    #[test]
    fn a_part_of_a_segment_waits_for_more() {
        let (mut out, subflow) = stream(1500, 9000);
        assert_eq!(next(&out, &subflow, 0), Ok((0, 1000)));
        out.record(Instant::ZERO, (0, 1000), &subflow, false);
        assert_eq!(next(&out, &subflow, 0), Err(Attempt::TooShort));
        assert_eq!(out.next_segment(Bytes::ZERO, &subflow.tx, 0, false), Ok((1000, 500)));
        out.close();
        assert_eq!(next(&out, &subflow, 0), Ok((1000, 500)));
        assert_eq!(next(&out, &subflow, 500), Err(Attempt::TooShort), "nothing is there");
    }

    /// RFC 9293 §3.8.6.2.1: the window's last bytes are left while something is under way that will widen it.
    #[test]
    fn a_part_of_a_window_is_taken_only_where_nothing_is_under_way() {
        let (mut out, mut subflow) = stream(9000, 1700);
        assert_eq!(next(&out, &subflow, 0), Ok((0, 1000)));
        out.record(Instant::ZERO, (0, 1000), &subflow, false);
        assert_eq!(next(&out, &subflow, 0), Err(Attempt::SillyWindow));
        out.release(1000, &mut Subflows::default());
        assert_eq!(next(&out, &subflow, 0), Ok((1000, 700)));
        subflow.tx.snd_edge = 1;
        assert_eq!(next(&out, &subflow, 0), Err(Attempt::SubflowWindow));
    }
}
