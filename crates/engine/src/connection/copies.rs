//! Copies of sent data on other subflows, as the reinjection policy asks for them.
//!
//! Every answer is checked: an impossible one ends the round and is counted. A policy is asked only at the moments that
//! its capabilities name: for copies, for opportunities, and at a retransmission timeout.

use super::Connection;
use super::sender::{Outgoing, Sender};
use super::slots::Slot;
use super::subflows::Subflows;
use crate::Reason;
use crate::limits::MAX_SUBFLOWS;
use crate::recovery::{Phase, Sent};
use crate::sent_log::{Carried, bit};
use crate::shared::Shared;
use crate::subflow::Subflow;
use anabranch_policy::congestion::Controller;
use anabranch_policy::reinjection::{
    Carrier, Cause, FlightView, Opportunity, Order, Outstanding, Piece, Repeat, SubflowSet, SubflowState, Transmission,
};
use anabranch_policy::{Event as PolicyEvent, View};
use anabranch_units::{Bytes, Dsn, Duration, Instant, SubflowId};

/// Shortest pause between two calls of the policy: third-party code must not busy-loop.
const SHORTEST_SLEEP: Duration = Duration::from_micros(100);

/// The record of sent data as policies see it.
struct Record<'a> {
    out: &'a Outgoing,
    idsn: Dsn,
    subflows: &'a Subflows,
}

impl Outstanding for Record<'_> {
    fn piece(&self, dsn: Dsn) -> Option<Piece> {
        let offset = offset_of(dsn, self.out, self.idsn)?;
        let Carried { start, end, sent, carriers } = self.out.log.at_or_after(offset)?;
        let length = Bytes::new(end - start);
        Some(Piece { from: self.idsn + 1 + start, length, sent, carriers: SubflowSet::from_bits(carriers) })
    }

    fn transmissions(&self, on: SubflowId, order: Order, visit: &mut dyn FnMut(Transmission) -> bool) {
        let Some(subflow) = self.subflows.iter().find(|subflow| subflow.id == on) else { return };
        let mut show = |sent: &Sent, lost: bool| {
            // Other subflows may have repeated a part of it, and brought that.
            let (mut at, end) = (sent.data, sent.data + u64::from(sent.len));
            while at < end {
                let Some(part) = self.out.log.at_or_after(at).filter(|part| part.start < end) else { break };
                let (from, until) = (part.start.max(at), part.end.min(end));
                let carriers = SubflowSet::from_bits(part.carriers);
                let length = Bytes::new(until - from);
                let piece = Piece { from: self.idsn + 1 + from, length, sent: sent.sent_at(), carriers };
                if !visit(Transmission { piece, lost }) {
                    return false;
                }
                at = until;
            }
            true
        };
        let recovery = &subflow.tx.recovery;
        let _ = match order {
            Order::OldestFirst => {
                recovery.lost().all(|sent| show(&sent, true)) && recovery.oldest_first().all(|sent| show(&sent, false))
            }
            Order::NewestFirst => recovery.newest_first().all(|sent| show(&sent, false)),
        };
    }
}

/// Returns the offset of `dsn` in the stream; `None` before the first unacknowledged byte.
fn offset_of(dsn: Dsn, out: &Outgoing, idsn: Dsn) -> Option<u64> {
    let ahead = dsn.distance(idsn + 1 + out.una);
    out.una.checked_add(u64::try_from(ahead.max(0)).ok()?)
}

fn state_of(subflow: &Subflow, congestion: &Controller) -> SubflowState {
    let mss = Bytes::new(u64::from(subflow.tx.mss));
    let recovery = &subflow.tx.recovery;
    let fits = subflow.tx.in_flight() + mss <= congestion.cwnd(subflow.id);
    let admitted = subflow.tx.snd_edge > recovery.snd_nxt() && recovery.phase() != Phase::Loss;
    SubflowState {
        id: subflow.id,
        mark: SubflowSet::from_bits(bit(subflow.mark)),
        backup: subflow.backup(),
        usable: subflow.is_usable(),
        has_room: fits && admitted && !subflow.tx.throttled,
        idle: recovery.is_empty(),
        timeout: recovery.timeout(),
        timeouts: recovery.consecutive_rtos(),
        heard: subflow.liveness.heard,
    }
}

impl Sender {
    /// Copies out what the reinjection policy may know beside the usable subflows, if it asks for copies and data may
    /// leave once more.
    pub(super) fn take_states(&mut self, subflows: &Subflows, may_repeat: bool) {
        self.copies = self.reinjection.capabilities.copies && may_repeat;
        if self.copies {
            self.fill_states(subflows);
        } else {
            self.states.clear();
        }
    }

    fn fill_states(&mut self, subflows: &Subflows) {
        self.states.clear();
        self.states.reserve_exact(subflows.len());
        let open = subflows.iter().filter(|subflow| subflow.is_open());
        self.states.extend(open.map(|subflow| state_of(subflow, &self.congestion)));
    }

    /// A subflow has sent.
    pub(super) fn renew_state(&mut self, subflow: &Subflow) {
        if let Some(known) = self.states.iter_mut().find(|state| state.id == subflow.id) {
            *known = state_of(subflow, &self.congestion);
        }
    }

    /// Tells the reinjection policy that `length` bytes from offset `start` left for the first time, on subflow
    /// `slot`.
    pub(super) fn tell_of_sending(
        &mut self,
        now: Instant,
        subflows: &Subflows,
        slot: Slot,
        idsn: Dsn,
        (start, length): (u64, u64),
    ) {
        if !self.copies {
            return;
        }
        let subflow = &subflows[slot];
        let carriers = SubflowSet::from_bits(bit(subflow.mark));
        let sent = Piece { from: idsn + 1 + start, length: Bytes::new(length), sent: now, carriers };
        let (view, record) = parts_of_view(&self.views, subflows, &self.outgoing, idsn);
        let flight = FlightView { view: &view, states: &self.states, outstanding: &record, opportunity: None };
        self.reinjection.on_sent(now, &sent, subflow.id, &flight);
    }

    /// The next copy that the reinjection policy asks for.
    fn next_copy(&mut self, now: Instant, subflows: &Subflows, idsn: Dsn) -> Option<Repeat> {
        let (view, record) = parts_of_view(&self.views, subflows, &self.outgoing, idsn);
        let flight = FlightView { view: &view, states: &self.states, outstanding: &record, opportunity: None };
        self.reinjection.next(now, &flight).repeat
    }

    /// The copy that the reinjection policy asks for when no new data can leave although a subflow has room. Carriers
    /// of the oldest data are penalised as it says.
    fn copy_at_opportunity(
        &mut self,
        now: Instant,
        cause: Cause,
        subflows: &mut Subflows,
        idsn: Dsn,
    ) -> Option<Repeat> {
        let una = self.outgoing.una;
        if self.views.len() < 2 || una == self.outgoing.nxt {
            return None;
        }
        if !self.copies {
            self.fill_states(subflows);
        }
        let carriers = self.outgoing.log.carriers(una);
        let nobody = Carrier { id: SubflowId(0), mark: SubflowSet::NONE, open: false };
        let (mut oldest, mut count) = ([nobody; MAX_SUBFLOWS], 0);
        for subflow in subflows.iter().filter(|subflow| carriers & bit(subflow.mark) != 0) {
            let (mark, open) = (SubflowSet::from_bits(bit(subflow.mark)), subflow.tx.recovery.phase() == Phase::Open);
            oldest[count] = Carrier { id: subflow.id, mark, open };
            count += 1;
        }
        let carriers = &oldest[..count];
        let (view, record) = parts_of_view(&self.views, subflows, &self.outgoing, idsn);
        let on = view.fastest_with_room_to_repeat()?.id;
        let opportunity = Some(Opportunity { cause, send_buffer_full: self.outgoing.writer_waits, on, carriers });
        let flight = FlightView { view: &view, states: &self.states, outstanding: &record, opportunity };
        let request = self.reinjection.next(now, &flight);
        for carrier in carriers.iter().filter(|carrier| request.penalise.meets(carrier.mark)) {
            self.congestion.penalise(now, carrier.id);
            subflows.touch_id(carrier.id);
        }
        if self.copies && request.penalise != SubflowSet::NONE {
            self.fill_states(subflows);
        }
        request.repeat
    }

    /// Range to repeat, if the answer is possible: sent, not acknowledged at the data level, and for a usable subflow
    /// with room that has not carried it.
    fn checked(&self, repeat: &Repeat, subflows: &Subflows, idsn: Dsn) -> Option<(u64, u64)> {
        let out = &self.outgoing;
        let offset = offset_of(repeat.from, out, idsn).filter(|_| !repeat.from.before(idsn + 1 + out.una))?;
        let (_, end) = out.log.range_at(offset)?;
        let carriers = out.log.carriers(offset);
        let fresh = carriers != 0 && carriers & bit(subflows.mark_of(repeat.on)?) == 0;
        let shown = self.views.iter().find(|view| view.id == repeat.on);
        let state = || self.states.iter().find(|state| state.id == repeat.on);
        let able = match shown {
            Some(view) => view.has_room_to_repeat(),
            None => state().is_some_and(|state| state.usable && state.has_room),
        };
        (fresh && able).then_some((offset, end))
    }

    /// Time at which the reinjection policy wants to be woken, now that all that could leave has left; until then it is
    /// `set`. The states are those of the survey before, renewed where something was sent.
    pub(super) fn next_wake(
        &mut self,
        now: Instant,
        set: Option<Instant>,
        subflows: &Subflows,
        idsn: Dsn,
    ) -> Option<Instant> {
        if !self.copies || self.outgoing.una == self.outgoing.nxt {
            return None;
        }
        if set.is_some_and(|at| at <= now) {
            // Due, and about to be told.
            return set;
        }
        let (view, record) = parts_of_view(&self.views, subflows, &self.outgoing, idsn);
        let flight = FlightView { view: &view, states: &self.states, outstanding: &record, opportunity: None };
        let wanted = self.reinjection.wake(now, &flight).filter(|at| *at > now);
        wanted.map(|at| at.max(now + SHORTEST_SLEEP))
    }

    /// The timer of the reinjection policy has run out. Returns the subflows that it takes for stuck.
    fn wake(&mut self, now: Instant, subflows: &Subflows, idsn: Dsn) -> SubflowSet {
        let (view, record) = parts_of_view(&self.views, subflows, &self.outgoing, idsn);
        let flight = FlightView { view: &view, states: &self.states, outstanding: &record, opportunity: None };
        self.reinjection.on_wake(now, &flight)
    }
}

impl Connection {
    /// Sends the copies that the reinjection policy asks for.
    pub(super) fn copy(&mut self, now: Instant, shared: &mut Shared) {
        if !self.sender.copies {
            return;
        }
        let idsn = self.keys.local_idsn;
        while let Some(repeat) = self.sender.next_copy(now, &self.subflows, idsn) {
            if !self.send_wanted(now, &repeat, shared) {
                return;
            }
        }
    }

    /// Lets the reinjection policy repeat data on a subflow with room while no new data can leave.
    pub(super) fn offer(&mut self, now: Instant, cause: Cause, shared: &mut Shared) {
        if !self.sender.reinjection.capabilities.opportunities || !self.may_reinject() {
            return;
        }
        let wanted = self.sender.copy_at_opportunity(now, cause, &mut self.subflows, self.keys.local_idsn);
        if let Some(repeat) = wanted
            && self.send_wanted(now, &repeat, shared)
        {
            self.sender.scheduler.observe(now, &PolicyEvent::Reinjected { on: repeat.on });
        }
    }

    /// Sends a copy that the reinjection policy asks for, if that can be; true if it has left.
    fn send_wanted(&mut self, now: Instant, repeat: &Repeat, shared: &mut Shared) -> bool {
        let Some(range) = self.sender.checked(repeat, &self.subflows, self.keys.local_idsn) else {
            self.stats.overruled.copies += 1;
            return false;
        };
        self.repeat_on(now, repeat.on, range, Reason::Policy(repeat.why), shared).is_some()
    }

    /// Keeps the timer of the reinjection policy.
    pub(super) fn arm_reinjection(&mut self, now: Instant) {
        let (set, idsn) = (self.timers.reinjection, self.keys.local_idsn);
        self.timers.reinjection = self.sender.next_wake(now, set, &self.subflows, idsn);
    }

    /// The timer of the reinjection policy has run out. What it wants copied is asked for when the connection sends
    /// next, which is at once.
    pub(super) fn wake_reinjection(&mut self, now: Instant, shared: &Shared) {
        self.survey(now, shared);
        if !self.sender.copies {
            return;
        }
        let stale = self.sender.wake(now, &self.subflows, self.keys.local_idsn);
        let mut left = self.subflows.there();
        while let Some(slot) = self.subflows.take_first(&mut left) {
            let Subflow { id, mark, .. } = self.subflows[slot];
            let others = self.subflows.iter().any(|subflow| subflow.id != id && subflow.is_usable());
            if others && self.subflows[slot].is_usable() && stale.meets(SubflowSet::from_bits(bit(mark))) {
                self.subflows[slot].liveness.stale = true;
                self.sender.outgoing.send_elsewhere(mark, Reason::Stale(id));
                self.sender.on_subflows_changed(now, &self.subflows);
            }
        }
    }
}

/// Gathers the parts of a [`FlightView`] that own nothing.
fn parts_of_view<'a>(
    views: &'a [anabranch_policy::SubflowView],
    subflows: &'a Subflows,
    out: &'a Outgoing,
    idsn: Dsn,
) -> (View<'a>, Record<'a>) {
    let (unsent, sendable) = (out.unsent.total(), out.unsent.below(out.edge));
    (super::decision::view(views, out, idsn, unsent, sendable), Record { out, idsn, subflows })
}
