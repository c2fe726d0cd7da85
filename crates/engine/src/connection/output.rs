//! What leaves next: retransmissions, reinjections, new data as the scheduler says, then the ACKs that nothing carried.

use super::decision::{Verdict, view};
use super::indices::Indices;
use super::subflows::{Kind, Reader};
use super::{Connection, Mode, emit, watchdog};
use crate::recovery::{Phase, Sent};
use crate::sent_log::bit;
use crate::shared::Shared;
use crate::stats::Blocked;
use crate::subflow::Subflow;
use crate::{Choice, Detector, Purpose, Reason};
use anabranch_policy::reinjection::{Carrier, Cause, Opportunity, SubflowSet};
use anabranch_policy::{Event as PolicyEvent, SubflowView};
use anabranch_units::{Bytes, Instant, SubflowId};

/// What keeps the sender from sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Obstacle {
    Cwnd,
    ReceiveWindow,
    Scheduler,
    Application,
}

/// What became of a segment of new data.
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

/// What the sender waits for, and since when; and marks that live between a decision and its consequence.
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
    /// As `Sent::flags`.
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

impl Connection {
    /// Puts everything that may leave now into the endpoint's queue.
    pub(crate) fn transmit(&mut self, now: Instant, shared: &mut Shared) {
        if self.life.is_gone() || self.life.is_fast_closing() {
            return;
        }
        if self.has_nothing_to_send() {
            return self.only_acknowledge(now, shared);
        }
        if self.life.mode() != Mode::Negotiating || self.role == super::Role::Client {
            self.throttle(now, shared);
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
        self.settle_pacing(now);
        self.arm_persist_timer(now, shared);
    }

    fn send_due_acks(&mut self, now: Instant, shared: &mut Shared) {
        for index in self.subflows.possible(Kind::Acknowledging) {
            let ack = &self.subflows[index].rx.ack;
            if ack.now || ack.unreported {
                self.send_ack(now, index, Vec::new(), shared);
            }
        }
    }

    /// True if our direction has no data unsent, under way or to be repeated, and is not being closed.
    fn has_nothing_to_send(&mut self) -> bool {
        let out = &self.sender.outgoing;
        // Pacing keeps alarms, so that it takes the long way.
        out.una == out.nxt
            && out.fin.is_none()
            && out.unsent.is_empty()
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
        for index in self.subflows.take_changed(Reader::Pacing).below(self.subflows.len()) {
            let subflow = self.subflows.unmarked(index);
            if Bytes::new(u64::from(subflow.tx.mss)) <= self.sender.congestion.cwnd(subflow.id) {
                subflow.tx.recovery.mark_app_limited();
            }
        }
    }

    /// Holds back the subflows whose next segment has to wait.
    fn throttle(&mut self, now: Instant, shared: &Shared) {
        let changed = self.subflows.take_changed(Reader::Throttle);
        // Pacing lets go with time.
        let paced = self.sender.congestion.is_model_based();
        let due = if paced { Indices::ALL } else { changed };
        due.below(self.subflows.len()).for_each(|index| self.throttle_one(now, index, shared));
    }

    /// Holds back subflow `index` if its next segment is not due yet by its pacing, or if its first hop holds enough
    /// (TCP Small Queues, A-TSQ: the larger of some segments and what the pacing rate sends in a millisecond). A full
    /// segment with its headers is larger than its payload, so that this many of them are enough.
    fn throttle_one(&mut self, now: Instant, index: usize, shared: &Shared) {
        let throttled = self.is_held_back(now, &self.subflows[index], shared);
        if throttled != self.subflows[index].tx.throttled {
            self.subflows[index].tx.throttled = throttled;
        }
    }

    fn is_held_back(&self, now: Instant, subflow: &Subflow, shared: &Shared) -> bool {
        let profile = &shared.config.profile;
        if profile.tsq.is_none() && !self.sender.congestion.is_model_based() {
            return false;
        }
        let congestion = &self.sender.congestion;
        let model = congestion.model(subflow.id, subflow.tx.rtt.srtt());
        let early = model.is_some() && !subflow.tx.pacer.is_open(now);
        let least = u64::from(profile.tsq_segments) * u64::from(profile.mss).max(u64::from(subflow.tx.mss));
        let tsq = profile.tsq.zip(subflow.tx.rtt.srtt()).filter(|_| subflow.tx.first_hop > least);
        let crowded = tsq.is_some_and(|(span, srtt)| {
            let cwnd = congestion.cwnd(subflow.id);
            // What does not pace is taken to.
            let unpaced = || SubflowView::linux_pace(cwnd, congestion.ssthresh(subflow.id), srtt);
            let pace = model.map_or_else(unpaced, |model| model.pacing);
            subflow.tx.first_hop > pace.bytes_in(span).get()
        });
        early || crowded
    }

    /// A segment of subflow `index` leaves: the next one is put off if its congestion control paces.
    fn pace(&mut self, now: Instant, index: usize, payload: u32, shared: &Shared) {
        let subflow = &mut self.subflows[index];
        if let Some(model) = self.sender.congestion.model(subflow.id, subflow.tx.rtt.srtt()) {
            subflow.tx.pacer.on_sent(now, Bytes::new(u64::from(payload)), model.pacing, shared.config.burst);
        }
    }

    /// Nothing more leaves now. Sets the alarm of those that pacing holds back; tells those with room that they have
    /// too little to send, so that what they deliver is not taken for what the path can.
    fn settle_pacing(&mut self, now: Instant) {
        let paced = self.sender.congestion.is_model_based();
        let changed = self.subflows.take_changed(Reader::Pacing);
        let due = if paced { Indices::ALL } else { changed };
        for index in due.below(self.subflows.len()) {
            if paced {
                self.subflows.touch(index);
            }
            let subflow = self.subflows.unmarked(index);
            let room = subflow.tx.in_flight() + Bytes::new(u64::from(subflow.tx.mss))
                <= self.sender.congestion.cwnd(subflow.id);
            let repairs = subflow.tx.recovery.next_retransmission().is_some();
            if paced {
                subflow.tx.pacer.arm(now, room || repairs);
            }
            if room && !repairs && !subflow.tx.throttled {
                subflow.tx.recovery.mark_app_limited();
            }
        }
    }

    /// Repeats what was lost, as far as each congestion window admits; the first repetition of a recovery at once.
    fn retransmit(&mut self, now: Instant, shared: &mut Shared) {
        for index in self.subflows.possible(Kind::Repairing) {
            let tx = &self.subflows[index].tx;
            if !tx.retransmit_now && !tx.recovery.has_retransmission() {
                continue;
            }
            loop {
                let subflow = &mut self.subflows[index];
                let Some(sent) = subflow.tx.recovery.next_retransmission() else {
                    subflow.tx.retransmit_now = false;
                    break;
                };
                let cwnd = self.sender.congestion.cwnd(subflow.id);
                let fits = subflow.tx.in_flight() + Bytes::new(u64::from(sent.len)) <= cwnd;
                if self.sender.congestion.is_model_based() && !subflow.tx.pacer.is_open(now) {
                    break;
                }
                if !fits && !subflow.tx.retransmit_now && subflow.tx.recovery.in_flight() > 0 {
                    break;
                }
                subflow.tx.retransmit_now = false;
                let detector = subflow.tx.recovery.detector();
                self.repeat(now, index, &sent, detector, shared);
            }
        }
    }

    fn repeat(&mut self, now: Instant, index: usize, sent: &Sent, detector: Detector, shared: &mut Shared) {
        let subflow = &mut self.subflows[index];
        subflow.tx.recovery.on_retransmit(now, sent.start, &subflow.tx.rtt);
        subflow.tx.recovery.rearm(now, &subflow.tx.rtt);
        self.pace(now, index, sent.len, shared);
        for part in self.subflows[index].tx.parts(sent) {
            self.send_data(now, index, &part, Purpose::Retransmission(detector), shared);
        }
    }

    /// A tail loss probe for which there was no new data repeats the last segment (RFC 8985 §7.3).
    fn send_tail_probes(&mut self, now: Instant, shared: &mut Shared) {
        for index in self.subflows.possible(Kind::Probing) {
            if self.subflows[index].tx.probe_now
                && std::mem::take(&mut self.subflows[index].tx.probe_now)
                && let Some(sent) = self.subflows[index].tx.recovery.probe_candidate()
            {
                self.repeat(now, index, &sent, Detector::TailLossProbe, shared);
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
        // Before anybody asks how much room there is: that is counted in full segments.
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
        loop {
            self.copy(now, shared);
            let unsent = self.sender.outgoing.unsent.total();
            let any_room = self.sender.views.iter().any(SubflowView::has_room);
            let room_to_repeat = any_room || self.sender.views.iter().any(SubflowView::has_room_to_repeat);
            let copies = room_to_repeat
                && self.sender.views.len() > 1
                && self.sender.scheduler.capabilities.repeats
                && self.may_reinject();
            if unsent == 0 && !copies {
                return self.drained(now, shared);
            }
            let sendable = self.sender.outgoing.unsent.below(self.sender.outgoing.edge);
            if sendable > 0 && self.probe_with_new_data(now, sendable, shared) {
                continue;
            }
            if !room_to_repeat && !window_shut {
                return if self.is_shut_out() { Obstacle::ReceiveWindow } else { Obstacle::Cwnd };
            }
            if (!any_room || sendable == 0) && !copies {
                return self.window_blocked(now, unsent, sendable, shared);
            }
            let (on, attempt) = match self.decide(now, unsent, sendable, shared) {
                Verdict::New(on, skip) => {
                    let Some(index) = self.subflows.position(on) else { return Obstacle::Scheduler };
                    (on, self.send_new(now, index, skip, sendable, shared.config.profile.nagle, shared))
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
                    self.touch(on);
                    window_shut = true;
                }
            }
        }
    }

    /// Sends new data as a tail loss probe where one is due, whatever the window of congestion control says (RFC 8985
    /// §7.3).
    fn probe_with_new_data(&mut self, now: Instant, sendable: u64, shared: &mut Shared) -> bool {
        let due = self.subflows.possible(Kind::Probing).find(|index| {
            let subflow = &self.subflows[*index];
            let used_up = || self.sender.views.iter().any(|view| view.id == subflow.id && view.share.is_zero());
            subflow.tx.probe_now && subflow.is_usable() && !used_up()
        });
        let Some(index) = due else { return false };
        let sent = self.send_new(now, index, Bytes::ZERO, sendable, false, shared) == Attempt::Sent;
        self.subflows[index].tx.probe_now &= !sent;
        sent
    }

    /// The view of subflow `id` has to be worked out again.
    fn touch(&mut self, id: SubflowId) {
        if let Some(index) = self.subflows.position(id) {
            self.subflows.touch(index);
        }
    }

    /// A subflow would send if only the peer's window admitted it: a closed one leaves room on none, and yet no
    /// congestion window is to blame.
    fn is_shut_out(&self) -> bool {
        let shut = |view: &&SubflowView| {
            self.subflows.position(view.id).is_some_and(|index| self.subflows[index].tx.is_window_shut())
        };
        self.sender.views.iter().filter(shut).any(SubflowView::has_room_in_cwnd)
    }

    /// There is nothing new to send.
    fn drained(&mut self, now: Instant, shared: &mut Shared) -> Obstacle {
        self.rescue(now, Cause::Drained, shared);
        Obstacle::Application
    }

    /// The scheduler's copy of the first sent data from `offset` on that subflow `on` has not carried.
    fn send_copy(&mut self, now: Instant, on: SubflowId, offset: u64, shared: &mut Shared) -> Attempt {
        let Some(slot) = self.subflows.slot_of(on) else { return Attempt::SubflowWindow };
        let out = &self.sender.outgoing;
        let unsent_from = out.unsent.first().map_or(out.buffer.end(), |(start, _)| start);
        let fresh = out.log.first_not_carried(slot, offset).filter(|(start, _)| *start < unsent_from);
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
        self.rescue(now, Cause::Window, shared);
        Obstacle::ReceiveWindow
    }

    /// Sends the next segment of new data, `skip` bytes into the unsent, on subflow `index`, unless it is better to
    /// wait.
    fn send_new(
        &mut self,
        now: Instant,
        index: usize,
        skip: Bytes,
        sendable: u64,
        nagle: bool,
        shared: &mut Shared,
    ) -> Attempt {
        let out = &mut self.sender.outgoing;
        let Some((start, range_end)) = out.unsent.nth(skip.get()) else { return Attempt::TooShort };
        let subflow = &mut self.subflows[index];
        let mss = u64::from(subflow.tx.mss);
        let subflow_room = subflow.tx.window_left();
        let whole = mss.min(range_end - start);
        let admitted = whole.min(out.edge.saturating_sub(start));
        let length = admitted.min(subflow_room);
        let idle = out.needs_unsent() && skip.is_zero();
        // What is under way will widen the window; where nothing is, a part of a segment has to do. The others may have
        // no share left, so that only this subflow can go on.
        let silly = (admitted < whole && !idle) || (length < admitted && !subflow.tx.recovery.is_empty());
        if length == 0 || silly {
            return if subflow_room < admitted { Attempt::SubflowWindow } else { Attempt::SillyWindow };
        }
        let ends_stream = start + length == out.buffer.end();
        // What was skipped may be all that the acknowledgment of the rest waits for.
        if nagle && skip.is_zero() && length < mss && ends_stream && !idle && out.fin.is_none() {
            return Attempt::TooShort;
        }
        self.restart_after_idle(now, index);
        assert!(skip.get() + length <= sendable, "new data stays inside the peer's window");
        let subflow = &self.subflows[index];
        let after = subflow.tx.in_flight() + Bytes::new(length);
        let fits = after <= self.sender.congestion.cwnd(subflow.id) || subflow.tx.probe_now;
        assert!(fits, "new data stays inside the congestion window, a tail loss probe apart");
        let flags = self.record_new(now, index, (start, length), ends_stream);
        let choice = self.choice_of(index);
        let piece = Piece { start, length, flags, purpose: Purpose::NewData(choice) };
        self.push_data(now, index, piece, shared);
        if self.timers.data.is_none() {
            self.arm_data_timer(now, shared);
        }
        self.timers.expect_progress(now, shared.config.user_timeout);
        let (on, dsn) = (self.subflows[index].id, self.keys.dsn(start));
        let event = PolicyEvent::Sent { on, dsn, skip, length: Bytes::new(length) };
        self.sender.scheduler.observe(now, &event);
        self.tell_of_sending(now, index, start, length);
        Attempt::Sent
    }

    /// Enters new data that leaves on subflow `index` in the books of the stream: `length` bytes from offset `start`
    /// on. Returns the flags of its segment: the end of a closed stream takes the DATA_FIN along once the peer has
    /// confirmed MPTCP.
    fn record_new(&mut self, now: Instant, index: usize, (start, length): (u64, u64), ends_stream: bool) -> u8 {
        let (out, subflow) = (&mut self.sender.outgoing, &mut self.subflows[index]);
        out.unsent.remove(start, start + length);
        out.log.push(now, start, length as u32, subflow.slot);
        out.in_order &= start == out.nxt && !subflow.is_join();
        out.nxt = out.nxt.max(start + length);
        self.stats.sent += length;
        subflow.tx.counts.bytes_first_sent += length;
        let closes = ends_stream && out.fin.is_some() && out.unsent.is_empty();
        let fin = closes && self.life.mode() == Mode::Multipath && self.life.is_confirmed();
        out.fin_sent |= fin;
        if fin { emit::DATA_FIN } else { 0 }
    }

    /// Tells why new data leaves on subflow `index`.
    fn choice_of(&self, index: usize) -> Choice {
        match (self.subflows[index].tx.probe_now, self.sender.views.len(), self.sender.waiting.overruled) {
            (true, ..) => Choice::TailLossProbe,
            (_, 1, _) => Choice::OnlySubflow,
            (_, _, true) => Choice::Overruled,
            _ => Choice::Scheduler,
        }
    }

    /// RFC 2861: a window not used for longer than a timeout says nothing about the path any more. Congestion control
    /// is told of shorter pauses too.
    fn restart_after_idle(&mut self, now: Instant, index: usize) {
        let subflow = &self.subflows[index];
        if let Some(idle) = subflow.tx.idle(now) {
            self.sender.congestion.on_idle(now, subflow.id, idle, subflow.tx.rtt.rto());
        }
    }

    /// Records and sends a piece of the stream on subflow `index`, and refreshes its view.
    fn push_data(&mut self, now: Instant, index: usize, piece: Piece, shared: &mut Shared) {
        self.sender.watchdog.on_sent();
        let Piece { start, length, flags, purpose } = piece;
        let fresh = matches!(purpose, Purpose::NewData(_));
        let subflow = &mut self.subflows[index];
        subflow.tx.recovery.set_has_unsent(!self.sender.outgoing.unsent.is_empty());
        subflow.tx.recovery.on_sent(now, length as u32, start, flags);
        let sent = subflow.tx.recovery.iter().next_back().expect("the segment was just recorded");
        subflow.tx.recovery.rearm(now, &subflow.tx.rtt);
        let (id, in_flight, sent_total) = (subflow.id, subflow.tx.in_flight(), subflow.tx.recovery.snd_nxt() - 1);
        self.pace(now, index, sent.len, shared);
        self.send_data(now, index, &sent, purpose, shared);
        self.throttle_one(now, index, shared);
        let throttled = self.subflows[index].tx.throttled;
        // Idling may have cost it some.
        let cwnd = self.sender.congestion.cwnd(id);
        if let Some(view) = self.sender.views.iter_mut().find(|view| view.id == id) {
            view.in_flight = in_flight;
            view.cwnd = cwnd;
            view.sent = sent_total;
            view.last_sent = Some(now);
            view.oldest_sent.get_or_insert(now);
            view.throttled = throttled;
            if fresh {
                view.share = view.share.saturating_sub(Bytes::new(length));
            }
        }
        self.renew_state(index);
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
        while let Some((start, range_end)) = self.sender.outgoing.reinject.first() {
            let (start, carried_until) = match self.sender.outgoing.log.range_at(start) {
                Some((_, end)) => (start, end),
                None => {
                    // Acknowledged meanwhile.
                    self.sender.outgoing.reinject.remove(start, range_end.min(start + 1));
                    continue;
                }
            };
            let mut carriers = self.sender.outgoing.log.carriers(start);
            let all = self
                .sender
                .views
                .iter()
                .all(|view| self.subflows.slot_of(view.id).is_some_and(|slot| carriers & bit(slot) != 0));
            if all || self.sender.waiting.repeat_anywhere {
                carriers = 0;
            }
            let fresh =
                |view: &&SubflowView| self.subflows.slot_of(view.id).is_some_and(|slot| carriers & bit(slot) == 0);
            let candidates = self.sender.views.iter().filter(|view| view.has_room_to_repeat()).filter(fresh);
            let Some(on) = candidates.min_by_key(|view| (view.srtt, view.id)).map(|view| view.id) else { return };
            let end = range_end.min(carried_until);
            let reason = self.sender.outgoing.reinject.reason(start).unwrap_or(Reason::DataTimeout);
            if self.repeat_on(now, on, (start, end), reason, shared).is_none() {
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
        let index = self.subflows.position(on)?;
        let subflow = &mut self.subflows[index];
        let room = subflow.tx.window_left();
        let length = (end - start).min(u64::from(subflow.tx.mss)).min(room);
        if length == 0 {
            return None;
        }
        let slot = subflow.slot;
        let ends_stream = self.sender.outgoing.fin_sent && self.sender.outgoing.fin == Some(start + length);
        let flags = if ends_stream { emit::DATA_FIN } else { 0 };
        subflow.tx.counts.reinjected += length;
        self.restart_after_idle(now, index);
        self.sender.outgoing.in_order = false;
        self.sender.outgoing.reinject.remove(start, start + length);
        self.sender.outgoing.log.mark(start, start + length, slot);
        self.stats.reinjected += length;
        let piece = Piece { start, length, flags, purpose: Purpose::Reinjection(reason) };
        self.push_data(now, index, piece, shared);
        Some(length)
    }

    /// Nothing new can leave although a subflow has room: the reinjection policy may repeat the oldest data there.
    fn rescue(&mut self, now: Instant, cause: Cause, shared: &mut Shared) {
        let una = self.sender.outgoing.una;
        if self.sender.views.len() < 2 || una == self.sender.outgoing.nxt || self.life.mode() != Mode::Multipath {
            return;
        }
        let carriers = self.sender.outgoing.log.carriers(una);
        let nobody = Carrier { id: SubflowId(0), mark: SubflowSet::NONE, open: false };
        let (mut oldest, mut count) = ([nobody; crate::config::MAX_SUBFLOWS], 0);
        for subflow in self.subflows.iter().filter(|subflow| carriers & bit(subflow.slot) != 0) {
            let (mark, open) = (SubflowSet::from_bits(bit(subflow.slot)), subflow.tx.recovery.phase() == Phase::Open);
            oldest[count] = Carrier { id: subflow.id, mark, open };
            count += 1;
        }
        let (unsent, sendable) =
            (self.sender.outgoing.unsent.total(), self.sender.outgoing.unsent.below(self.sender.outgoing.edge));
        let view = view(&self.sender.views, &self.sender.outgoing, self.keys.local_idsn, unsent, sendable);
        let Some(on) = view.fastest_with_room_to_repeat().map(|subflow| subflow.id) else { return };
        let opportunity = Opportunity {
            cause,
            send_buffer_full: self.sender.outgoing.writer_waits,
            on,
            carriers: &oldest[..count],
            view: &view,
        };
        let response = self.sender.reinjection.on_opportunity(now, &opportunity);
        for carrier in oldest[..count].iter().filter(|carrier| response.penalise.meets(carrier.mark)) {
            self.sender.congestion.penalise(now, carrier.id);
            self.touch(carrier.id);
        }
        let legal = self.subflows.slot_of(on).is_some_and(|slot| carriers & bit(slot) == 0);
        let reason = if cause == Cause::Window { Reason::Window } else { Reason::Drained };
        if response.reinject
            && legal
            && let Some((_, end)) = self.sender.outgoing.log.range_at(una)
            && self.repeat_on(now, on, (una, end), reason, shared).is_some()
        {
            self.sender.scheduler.observe(now, &PolicyEvent::Reinjected { on });
        }
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
        for index in 0..self.subflows.len() {
            if self.subflows[index].is_open() {
                self.send_data_fin(now, index, fin, Purpose::DataFin { retries: 0 }, shared);
            }
        }
        self.arm_data_timer(now, shared);
        self.timers.expect_progress(now, shared.config.user_timeout);
    }
}
