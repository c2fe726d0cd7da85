//! Timeouts of subflows and of the connection.

use super::slots::Slot;
use super::subflows::Kind;
use super::{Connection, Life, Mode, Role};
use crate::Profile;
use crate::deadline::Earliest;
use crate::memory::Offer;
use crate::sent_log::bit;
use crate::shared::Shared;
use crate::subflow::{State, Subflow};
use crate::{Ended, Event, Purpose, Reason, subflow::Origin};
use anabranch_policy::Event as PolicyEvent;
use anabranch_units::{Bytes, Duration, Instant};
use anabranch_wire::ResetReason;

/// The connection-level timers.
#[derive(Default)]
#[cfg_attr(test, derive(Debug))]
pub(super) struct Timers {
    /// Data (or a DATA_FIN) waits for its DATA_ACK (A-DATA-TIMER).
    pub(super) data: Option<Instant>,
    /// Doublings of it.
    pub(super) data_backoff: u32,
    /// The peer's window is closed and nothing is under way that could open it (RFC 9293 §3.8.6.1).
    pub(super) persist: Option<Instant>,
    pub(super) persist_backoff: u32,
    /// The scheduler wants to be asked again.
    pub(super) ask_again: Option<Instant>,
    /// The reinjection policy wants to be woken.
    pub(super) reinjection: Option<Instant>,
    /// Deadline of a connection without subflows for a new one, or of one with all data delivered for the last FINs.
    pub(super) abandoned: Option<Instant>,
    /// Plain TCP: everything is closed, and a repeated FIN may still arrive.
    pub(super) time_wait: Option<Instant>,
    /// The peer must have acknowledged more data by then (`Config::user_timeout`).
    pub(super) user: Option<Instant>,
}

impl Timers {
    #[inline(always)]
    fn add_to(&self, first: Earliest) -> Earliest {
        let first = first.and(self.data).and(self.persist).and(self.ask_again).and(self.reinjection);
        first.and(self.abandoned).and(self.time_wait).and(self.user)
    }

    /// Data is under way: the peer must acknowledge some of it in this time, if there is a limit.
    pub(super) fn expect_progress(&mut self, now: Instant, limit: Option<Duration>) {
        if self.user.is_none() {
            self.user = limit.map(|limit| now + limit);
        }
    }

    /// The peer has acknowledged something new: what is left, if anything `waits`, has its time from now on.
    pub(super) fn on_progress(&mut self, now: Instant, waits: bool, limit: Option<Duration>) {
        self.user = None;
        if waits {
            self.expect_progress(now, limit);
        }
    }

    /// (Re)starts the data-level timer; `rto` is the longest of a subflow if anything waits for a DATA_ACK.
    pub(super) fn arm_data(&mut self, now: Instant, rto: Option<Duration>, most: Duration) {
        self.data = rto.map(|rto| now + (rto * 2 * (1 << self.data_backoff.min(MAX_BACKOFF))).min(most));
    }

    /// Starts the timer of window probes, unless it runs; `rto` is the longest of a subflow.
    pub(super) fn arm_persist(&mut self, now: Instant, rto: impl FnOnce() -> Duration, most: Duration) {
        if self.persist.is_none() {
            let timeout = rto() * (1 << self.persist_backoff.min(MAX_BACKOFF));
            self.persist = Some(now + timeout.max(SHORTEST_PERSIST).min(most));
        }
    }

    /// Something other than a window update can let data leave.
    pub(super) fn stop_persist(&mut self) {
        self.persist = None;
        self.persist_backoff = 0;
    }
}

fn due(timer: &mut Option<Instant>, now: Instant) -> bool {
    let due = timer.is_some_and(|at| at <= now);
    if due {
        *timer = None;
    }
    due
}

/// Time from the first SYN or SYN/ACK until so many repetitions have gone unanswered (RFC 6298 §5.5). More than a
/// hundred, which take hours, count as a hundred.
fn repetitions_take(profile: &Profile, retries: u32) -> Duration {
    let next = |timeout: &Duration| Some((*timeout * 2).min(profile.max_rto));
    let pauses = std::iter::successors(Some(profile.initial_rto), next).take(retries.min(100) as usize + 1);
    pauses.fold(Duration::ZERO, |total, pause| total + pause)
}

/// Time for which the fourth ACK of a join is awaited on a subflow whose timeout is `rto`. None counts as shorter than
/// that of a SYN, after which the peer, if it has not got the third ACK, repeats its SYN/ACK.
fn confirmation_takes(profile: &Profile, rto: Duration) -> Duration {
    rto.max(profile.initial_rto).min(LONGEST_CONFIRMATION_TIMEOUT) * CONFIRMATION_TIMEOUTS
}

/// Data timeouts after which a subflow that acknowledges what never arrives is closed: the first may be a lost
/// DATA_ACK, the others each follow a probe that was answered or lost.
pub(super) const MAX_UNCONFIRMED: u32 = 3;
/// Doublings of the wait between repetitions at the data level, which is never longer than a subflow's.
const MAX_BACKOFF: u32 = 6;
/// The shortest wait before a window probe.
const SHORTEST_PERSIST: Duration = Duration::from_millis(200);

/// Connections whose TIME-WAIT ends within this end together.
const TIME_WAIT_GRAIN: Duration = Duration::from_millis(10);

/// SYN/ACKs repeated to a join: fewer than for a connection, since the peer can simply ask again.
const JOIN_RETRIES: u32 = 3;

/// SYNs repeated without an answer, after which connections had better begin elsewhere: with the timeouts of RFC 6298
/// three seconds.
const SILENT_SYNS: u32 = 2;

/// Timeouts for which the fourth ACK of a join is awaited.
const CONFIRMATION_TIMEOUTS: u64 = 3;
/// Longest timeout that counts for it, since without timestamps a repeated SYN makes the RTT look too long.
pub(super) const LONGEST_CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(10);

impl Connection {
    /// Returns the time at which to call `on_deadline`, computed from all timers without a cache.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let subflows = |first| self.subflows.iter().fold(first, |first, it| it.add_timers(first, &self.keepalive));
        self.own_deadline().map_or_else(|only| only, |first| subflows(first).get())
    }

    /// The same, which looks only at subflows that may have changed.
    pub(crate) fn next_deadline(&mut self) -> Option<Instant> {
        let first = match self.own_deadline() {
            Ok(first) => self.subflows.add_timers(first, &self.keepalive).get(),
            Err(only) => only,
        };
        debug_assert_eq!(first, self.deadline());
        first
    }

    /// Returns the earliest of the timers that arriving data can start where our direction is at rest: of delayed ACKs,
    /// and of probes for the path of ACKs.
    #[inline]
    pub(crate) fn receiving_deadline(&self) -> Option<Instant> {
        let first = self.subflows.iter().fold(Earliest::NONE, |first, subflow| first.and(subflow.rx.ack.deadline));
        first.and(self.acks.prober.deadline()).get()
    }

    /// Returns the earliest timer of the connection itself, or as `Err` the only timer that counts, once the connection
    /// is gone or fast-closing.
    fn own_deadline(&self) -> Result<Earliest, Option<Instant>> {
        match &self.life {
            Life::Gone(_) => return Err(None),
            Life::FastClosing(closing) => return Err(Some(closing.deadline)),
            _ => {}
        }
        let first = self.timers.add_to(Earliest::NONE).and(self.paths.deadline());
        Ok(first.and(self.acks.prober.deadline()).and(self.life.confirmation_deadline()))
    }

    /// Returns the time until which what is due at `at` may be put off: the end of TIME-WAIT may be, to a moment that
    /// it shares with others.
    pub(crate) fn latest(&self, at: Instant) -> Instant {
        let shared = |at: Instant| Instant::from_nanos(at.as_nanos().next_multiple_of(TIME_WAIT_GRAIN.as_nanos()));
        if self.timers.time_wait == Some(at) { shared(at) } else { at }
    }

    pub(crate) fn on_deadline(&mut self, now: Instant, shared: &mut Shared) {
        if self.life.is_fast_closing() {
            return self.on_fast_close_timeout(now, shared);
        }
        let mut left = self.subflows.there();
        while let Some(slot) = self.subflows.take_first(&mut left) {
            if self.subflows.is_due(now, slot, &self.keepalive) {
                self.on_subflow_deadline(now, slot, shared);
            }
            if self.life.is_gone() {
                return;
            }
        }
        // Timers that end the connection come before those that send: one that is gone sends nothing.
        if due(&mut self.timers.abandoned, now) {
            let complete = self.sender.outgoing.fin_acked && self.receiver.finished();
            self.stats.ended = self.stats.ended.or((!complete).then_some(Ended::NoSubflow));
            return self.finish(if complete { Event::Closed } else { Event::Reset }, shared);
        }
        if due(&mut self.timers.user, now) {
            self.stats.ended.get_or_insert(Ended::TimedOut);
            return self.abort(now, shared);
        }
        if due(&mut self.timers.time_wait, now) {
            return self.finish(Event::Closed, shared);
        }
        if due(&mut self.timers.data, now) {
            self.on_data_timeout(now, shared);
        }
        if due(&mut self.timers.persist, now) {
            self.timers.persist_backoff += 1;
            self.probe_windows(now, shared);
        }
        if due(&mut self.timers.ask_again, now) {
            self.sender.watchdog.wake();
        }
        if due(&mut self.timers.reinjection, now) {
            self.wake_reinjection(now, shared);
        }
        if self.paths.manager.deadline().is_some_and(|at| at <= now) {
            self.on_paths_deadline(now, shared);
        }
        self.on_probing_deadline(now, shared);
        if self.paths.race.deadline().is_some_and(|at| at <= now) {
            self.on_race_deadline(now, shared);
        }
        if self.life.confirmation_deadline().is_some_and(|at| at <= now) {
            self.on_confirmation_deadline(now, shared);
        }
        self.on_reopening_deadline(now, shared);
    }

    fn on_subflow_deadline(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let subflow = &mut self.subflows[slot];
        // What waited for it leaves as soon as all timers are through.
        due(&mut subflow.tx.pacer.wake, now);
        if subflow.rx.ack.deadline.is_some_and(|at| at <= now) {
            subflow.rx.ack.deadline = None;
            subflow.rx.ack.now = true;
        }
        if subflow.handshake.is_some_and(|timer| timer.deadline <= now) {
            return self.on_handshake_timeout(now, slot, shared);
        }
        if due(&mut subflow.liveness.linger_until, now) && self.life.mode() == Mode::Multipath {
            return self.kill(now, slot, ResetReason::Unspecified, shared);
        }
        let subflow = &mut self.subflows[slot];
        if subflow.liveness.removal_probe.is_some_and(|probe| probe.deadline <= now) {
            return self.on_removal_probe(now, slot, shared);
        }
        if subflow.keepalive_due(&self.keepalive).is_some_and(|at| at <= now) {
            return self.keep_alive(now, slot, shared);
        }
        if due(&mut subflow.rx.unmapped_until, now) {
            // RFC 8684 §3.7: data without a mapping cannot be delivered, and the subflow is broken.
            return self.kill(now, slot, ResetReason::Middlebox, shared);
        }
        if let Some((in_flight, first)) = self.sender.on_recovery_deadline(now, subflow) {
            self.on_rto(now, slot, in_flight, first, shared);
        }
    }

    /// Probes a peer that has been silent on the subflow in `slot`, or gives the subflow up after too many probes.
    fn keep_alive(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let subflow = &mut self.subflows[slot];
        if subflow.liveness.keepalives >= self.keepalive.probes {
            self.end_of_last(slot, Ended::Vanished);
            return self.kill(now, slot, ResetReason::UnacceptablePerformance, shared);
        }
        subflow.liveness.keepalives += 1;
        self.send_window_probe(now, slot, shared);
    }

    /// Records `why` as the reason the connection ended, if the subflow in `slot` is the last. An earlier reason stays;
    /// a new subflow clears it.
    pub(super) fn end_of_last(&mut self, slot: Slot, why: Ended) {
        if self.subflows.len() == 1 && self.subflows.has(slot) {
            self.stats.ended.get_or_insert(why);
        }
    }

    /// Probes the peer's window on each subflow: the path of the fastest may be the one that has died. A peer may keep
    /// its window closed as long as it answers (RFC 9293 §3.8.6.1); a silent one is gone. If it answers on other
    /// subflows, the probe or its answer was lost here: until a segment arrives, this subflow counts as potentially
    /// failed and a backup may be used.
    fn probe_windows(&mut self, now: Instant, shared: &mut Shared) {
        let most = shared.config.profile.max_consecutive_rtos;
        let answers = |subflow: &Subflow| subflow.is_open() && subflow.liveness.unanswered_probes == 0;
        let answered = self.life.mode() == Mode::Multipath && self.subflows.iter().any(answers);
        let mut failed = false;
        let mut left = self.subflows.there();
        while let Some(slot) = self.subflows.take_first(&mut left) {
            let subflow = &mut self.subflows[slot];
            if !subflow.is_open() || !subflow.tx.recovery.is_empty() {
                continue;
            }
            if subflow.liveness.unanswered_probes >= most {
                self.end_of_last(slot, Ended::TimedOut);
                self.kill(now, slot, ResetReason::UnacceptablePerformance, shared);
            } else {
                if answered
                    && subflow.liveness.unanswered_probes > 0
                    && !std::mem::replace(&mut subflow.liveness.stale, true)
                {
                    failed = true;
                }
                subflow.liveness.unanswered_probes += 1;
                self.send_window_probe(now, slot, shared);
            }
        }
        if failed {
            self.sender.on_subflows_changed(now, &self.subflows);
        }
    }

    fn on_rto(&mut self, now: Instant, slot: Slot, in_flight: Bytes, first: bool, shared: &mut Shared) {
        let subflow = &mut self.subflows[slot];
        let id = subflow.id;
        subflow.tx.loss.on_lost(1);
        subflow.tx.retransmit_now = true;
        subflow.marks.on_timeout(subflow.tx.recovery.snd_una());
        if subflow.tx.recovery.consecutive_rtos() > shared.config.profile.max_consecutive_rtos {
            self.end_of_last(slot, Ended::TimedOut);
            return self.kill(now, slot, ResetReason::UnacceptablePerformance, shared);
        }
        self.sender.congestion.on_rto(now, id, in_flight, first);
        self.sender.tell_losses(now, &mut self.subflows[slot]);
        self.sender.scheduler.observe(now, &PolicyEvent::Rto { on: id });
        self.suspect_black_hole(now, slot, shared);
        if self.role == Role::Client && self.life.confirmation().is_some() {
            // An answer to this shows that it is the keys that do not get through, or nothing would (A-LOST-KEYS).
            self.send_window_probe(now, slot, shared);
        }
        // With nothing else to carry the data, there is nothing to gain from declaring the subflow failed.
        if self.life.mode() == Mode::Multipath && self.sender.reinjection.on_rto(now, id) {
            self.subflows[slot].liveness.potentially_failed = true;
            match self.sender.outgoing.acknowledged_in_vain(&self.subflows[slot]) {
                // After the copies the data-level timer would find nothing to hold against this subflow.
                Some((una, end)) => self.on_unconfirmed_data(now, una, end, shared),
                None => {
                    self.sender.outgoing.send_elsewhere(self.subflows[slot].mark, Reason::Rto(id));
                    self.sender.on_subflows_changed(now, &self.subflows);
                }
            }
        } else if self.subflows[slot].tx.repeats_in_vain() {
            self.pass_over(now, slot);
        }
        if self.subflows.has(slot) && self.subflows[slot].tx.repeats_in_vain() {
            if self.role == Role::Client {
                shared.memory.on_silence(now, &self.subflows[slot].flow);
            }
            self.join_missing(now, shared);
        }
        self.on_unanswered(now, shared);
    }

    /// Marks a subflow, whose repetitions stay unacknowledged, as potentially failed while another subflow works.
    /// A backup may then be used (RFC 8684 §3.3.8), and its part of the window goes to the others. RFC 9293 §3.8.3
    /// demands another route after R1 repetitions.
    fn pass_over(&mut self, now: Instant, slot: Slot) {
        let id = self.subflows[slot].id;
        let others = self.subflows.iter().any(|subflow| subflow.id != id && subflow.is_usable());
        if self.life.mode() == Mode::Multipath && others && self.subflows[slot].is_usable() {
            self.subflows[slot].liveness.potentially_failed = true;
            self.sender.on_subflows_changed(now, &self.subflows);
        }
    }

    fn on_handshake_timeout(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let profile = &shared.config.profile;
        let (retries, with_mptcp, max_rto) = (profile.syn_retries, profile.syn_retries_with_mptcp, profile.max_rto);
        let subflow = &mut self.subflows[slot];
        let rto = subflow.tx.rtt.rto();
        let with_mptcp = if subflow.offer == Offer::Once { 0 } else { with_mptcp };
        let retries = if subflow.is_half_open_join() { retries.min(JOIN_RETRIES) } else { retries };
        let Some(timer) = &mut subflow.handshake else { return };
        let given_up = match subflow.state {
            // Its pauses follow the RTT, so on a fast path the count is reached in no time.
            State::Confirming => now.since(timer.first_sent) >= confirmation_takes(profile, rto),
            // A client that sent DSS without its keys is there: an outage since then ends it no sooner than it would
            // have, although the pauses began anew from a short timeout (A-LOST-KEYS).
            State::SynReceived if timer.keys_until.is_some() => {
                now.since(timer.first_sent) >= repetitions_take(profile, retries)
            }
            _ => timer.retries >= retries,
        };
        if given_up {
            let sent = timer.first_sent;
            if self.life.mode() == Mode::Multipath && subflow.is_join() {
                if subflow.state != State::Confirming {
                    return self.bury(now, slot, shared);
                }
                // The peer may hold the subflow for open, and would refuse another in its place.
                let reason = if subflow.liveness.heard > sent {
                    ResetReason::Middlebox
                } else {
                    ResetReason::UnacceptablePerformance
                };
                return self.kill(now, slot, reason, shared);
            }
            if subflow.state == State::SynSent && self.lose_attempt(now, slot, shared) {
                return;
            }
            self.stats.ended.get_or_insert(Ended::Unanswered);
            return self.finish(Event::Reset, shared);
        }
        timer.retries += 1;
        timer.timeout = (timer.timeout * 2).min(max_rto);
        timer.deadline = now + timer.timeout;
        if subflow.state == State::Confirming {
            // A repetition costs no more than an ACK, and a lossy path needs several within the limit.
            timer.timeout = timer.timeout.min(rto).min(LONGEST_CONFIRMATION_TIMEOUT);
            timer.deadline = (now + timer.timeout).min(timer.first_sent + confirmation_takes(profile, rto));
        }
        let tried = timer.retries;
        match subflow.state {
            State::Confirming => self.send_third_ack(now, slot, shared),
            State::SynSent | State::SynReceived => {
                let client = subflow.state == State::SynSent && subflow.origin == Origin::Initial;
                // A middlebox may drop SYNs with unknown options (RFC 8684 §3.1).
                subflow.gave_up_mptcp |= client && tried > with_mptcp;
                if subflow.state == State::SynSent && tried >= SILENT_SYNS {
                    shared.memory.on_silence(now, &subflow.flow);
                }
                self.send_handshake(now, slot, shared);
            }
            State::Established => subflow.handshake = None,
        }
    }

    /// Repeats the oldest data without a DATA_ACK after a data-level timeout, on any subflow.
    fn on_data_timeout(&mut self, now: Instant, shared: &mut Shared) {
        let bare = |subflow: &Subflow| subflow.liveness.bare_acks > 0 && !subflow.is_acknowledged_by_proxy(now);
        if self.subflows.first().is_some_and(bare) && self.can_fall_back() {
            // The subflow acknowledges and the data level does not: the peer is plain TCP by now, and would take what
            // is repeated for new data.
            return self.fall_back(now, crate::FallbackReason::OptionsLost, shared);
        }
        self.timers.data_backoff += 1;
        let una = self.sender.outgoing.una;
        if let Some((_, end)) = self.sender.outgoing.log.range_at(una) {
            let usable = self.subflows.iter().filter(|subflow| subflow.is_usable()).count();
            if usable == 0 {
                // A suspect is better than none.
                if self.subflows.clear_suspects(u64::MAX) {
                    self.sender.on_subflows_changed(now, &self.subflows);
                }
            }
            if !self.subflows.iter().any(|subflow| subflow.is_repairing(una)) {
                return self.on_unconfirmed_data(now, una, end, shared);
            }
            // Alone, and still repairing it: its own retransmission is what will help.
            let another = |subflow: &Subflow| subflow.is_usable() && !subflow.is_repairing(una);
            if usable > 1 || self.subflows.iter().any(another) {
                self.sender.outgoing.reinject.insert(una, end, Reason::DataTimeout);
                if self.life.mode() == Mode::Multipath {
                    let open = self.subflows.iter().filter(|subflow| subflow.is_open());
                    let marks: Vec<_> = open.map(|subflow| subflow.mark).collect();
                    if marks.iter().all(|mark| self.sender.outgoing.log.carriers(una) & bit(*mark) != 0) {
                        self.sender.waiting.repeat_anywhere = true;
                    }
                }
            }
        } else if let Some(fin) =
            self.sender.outgoing.fin.filter(|_| self.sender.outgoing.fin_sent && !self.sender.outgoing.fin_acked)
        {
            // A DATA_FIN alone takes no subflow sequence number, so no subflow's timer notices that the peer is gone.
            if self.timers.data_backoff > shared.config.profile.max_consecutive_rtos {
                self.stats.ended.get_or_insert(Ended::TimedOut);
                return self.abort(now, shared);
            }
            self.on_unanswered(now, shared);
            let mut left = self.subflows.there();
            while let Some(slot) = self.subflows.take_first(&mut left) {
                if self.subflows[slot].is_open() {
                    self.repeat_data_fin(now, slot, fin, shared);
                }
            }
            if self.timers.data_backoff == 1 {
                // The answer to the first question takes a round trip.
                self.timers.data = Some(now + self.subflows.longest_rto());
                return;
            }
        }
        self.arm_data_timer(now, shared);
    }

    /// Repeats the DATA_FIN on a subflow, and asks the peer whether it is there, since an ACK whose options are lost on
    /// the way needs no answer. If the peer answers but the DATA_FIN has no effect, it goes on the subflow's FIN, which
    /// is repeated until it arrives; with all data DATA_ACKed the two may be combined (RFC 8684 §3.3.3). Without its
    /// options it ends a stream of plain TCP, to which the peer falls back (§3.7).
    fn repeat_data_fin(&mut self, now: Instant, slot: Slot, fin: u64, shared: &mut Shared) {
        let answered = self.timers.data_backoff > 1 && self.subflows[slot].liveness.unanswered_probes == 0;
        if answered {
            return self.send_fin(now, slot, shared);
        }
        self.send_data_fin(now, slot, fin, Purpose::DataFin { retries: self.timers.data_backoff }, shared);
        self.subflows[slot].liveness.unanswered_probes += 1;
        self.send_window_probe(now, slot, shared);
    }

    /// Subflows have acknowledged the oldest data, but no DATA_ACK has come: a middlebox acknowledged what it then
    /// lost, or the DATA_ACK is lost. The peer is asked; what those subflows carried goes elsewhere, and for as long as
    /// it is under way nothing new goes to them. If that happens again and again, they do more harm than good (RFC 8684
    /// §3.3.2, §3.7).
    fn on_unconfirmed_data(&mut self, now: Instant, una: u64, end: u64, shared: &mut Shared) {
        self.sender.outgoing.reinject.insert(una, end, Reason::DataTimeout);
        let carriers = self.sender.outgoing.log.carriers(una);
        let suspect = |subflow: &Subflow| subflow.is_open() && carriers & bit(subflow.mark) != 0;
        let others = self.subflows.iter().any(|subflow| subflow.is_usable() && !suspect(subflow));
        let mut left = self.subflows.there();
        while let Some(slot) = self.subflows.take_first(&mut left) {
            if self.life.is_fast_closing() {
                break;
            }
            let subflow = &mut self.subflows[slot];
            if !suspect(subflow) {
                continue;
            }
            subflow.liveness.unconfirmed += 1;
            subflow.liveness.suspect_until = others.then_some(self.sender.outgoing.nxt);
            if subflow.liveness.unconfirmed > MAX_UNCONFIRMED {
                // What it alone has carried is sent again elsewhere.
                self.kill(now, slot, ResetReason::Middlebox, shared);
                continue;
            }
            let mark = subflow.mark;
            self.sender.outgoing.send_elsewhere(mark, Reason::DataTimeout);
            self.send_window_probe(now, slot, shared);
        }
        self.sender.on_subflows_changed(now, &self.subflows);
        self.arm_data_timer(now, shared);
    }

    /// (Re)starts the data-level timer if anything waits for a DATA_ACK.
    pub(super) fn arm_data_timer(&mut self, now: Instant, shared: &Shared) {
        let waits = self.life.mode() == Mode::Multipath && self.sender.outgoing.awaits_data_ack();
        let rto = waits.then(|| self.subflows.longest_rto());
        self.timers.arm_data(now, rto, shared.config.profile.max_rto);
    }

    /// Keeps the window probe timer: running while only a window update could let data leave, on the connection's level
    /// or on that of a subflow, whose window stays as the last segment on it told.
    pub(super) fn arm_persist_timer(&mut self, now: Instant, shared: &Shared) {
        let out = &self.sender.outgoing;
        let silent = || out.una == out.nxt && self.subflows.iter().all(|subflow| subflow.tx.recovery.is_empty());
        let waits = !out.unsent.is_empty() || out.una < out.nxt;
        let shut =
            |subflow: &Subflow| subflow.is_open() && subflow.tx.recovery.is_empty() && subflow.tx.window_left() == 0;
        if !(out.is_blocked() && silent() || waits && self.subflows.any(Kind::Shut, shut)) {
            self.timers.stop_persist();
        } else {
            self.timers.arm_persist(now, || self.subflows.longest_rto(), shared.config.profile.max_rto);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(after: u64) -> Instant {
        Instant::ZERO + ms(after)
    }

    /// Twice an RTO of 100 ms; 2^3 and, at most, 2^6 times as long after timeouts, and never longer than the limit.
    #[test]
    fn the_data_timer_backs_off_up_to_a_limit() {
        let mut timers = Timers::default();
        let rows = [(0, 60_000, 200), (3, 60_000, 1600), (6, 60_000, 12_800), (9, 60_000, 12_800), (6, 5000, 5000)];
        for (backoff, most, expected) in rows {
            timers.data_backoff = backoff;
            timers.arm_data(at(0), Some(ms(100)), ms(most));
            assert_eq!(timers.data, Some(at(expected)), "after {backoff} timeouts");
        }
        timers.arm_data(at(0), None, ms(60_000));
        assert_eq!(timers.data, None, "nothing waits");
    }

    #[test]
    fn window_probes_keep_their_time_until_data_can_leave() {
        let mut timers = Timers { persist_backoff: 2, ..Timers::default() };
        timers.arm_persist(at(0), || ms(100), ms(60_000));
        timers.arm_persist(at(300), || ms(100), ms(60_000));
        assert_eq!(timers.persist, Some(at(400)));
        timers.stop_persist();
        assert_eq!(timers.persist, None);
        timers.arm_persist(at(300), || ms(1), ms(60_000));
        assert_eq!(timers.persist, Some(at(500)), "not sooner than after 200 ms");
    }

    #[test]
    fn the_peer_has_its_time_anew_with_each_acknowledgment() {
        let (mut timers, limit) = (Timers::default(), Some(ms(1000)));
        timers.expect_progress(at(0), limit);
        timers.expect_progress(at(400), limit);
        assert_eq!(timers.user, Some(at(1000)), "more data does not put it off");
        timers.on_progress(at(700), true, limit);
        assert_eq!(timers.add_to(Earliest::NONE).get(), Some(at(1700)));
        timers.on_progress(at(900), false, limit);
        assert_eq!(timers.add_to(Earliest::NONE).get(), None, "all is acknowledged");
    }
}
