//! Decisions of the scheduler: the view it is given, its answer, and the check that the answer is possible.

use super::sender::{Outgoing, Sender};
use super::slots::Places;
use super::subflows::{Reader, Subflows};
use super::{Connection, Mode, send_space, watchdog};
use crate::deadline::earliest;
use crate::shared::Shared;
use crate::subflow::Subflow;
use crate::{Config, Misconduct};
use anabranch_policy::receive_window::Buffers;
use anabranch_policy::{Decision, Event as PolicyEvent, SubflowView, View};
use anabranch_units::{Bytes, Dsn, Instant, SubflowId};

/// A scheduler's decision, checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Unsent data, at this distance in bytes from the front.
    New(SubflowId, Bytes),
    /// A copy of the sent data at this offset.
    Copy(SubflowId, u64),
    Wait(Option<Instant>),
}

impl Outgoing {
    /// The next byte to be acknowledged is one that was never sent, perhaps because the scheduler has skipped it: what
    /// was sent behind it moves nothing.
    pub(super) fn needs_unsent(&self) -> bool {
        self.una == self.nxt || self.unsent.first().is_some_and(|(start, _)| start <= self.una)
    }

    /// Tells whether the peer's window admits a segment of `mss` that begins `skip` bytes into the unsent data. Only
    /// the first may be cut short: if that cannot leave, nothing can.
    fn admits(&self, skip: Bytes, mss: Bytes) -> bool {
        match self.unsent.nth(skip.get()) {
            Some((start, _)) if skip.is_zero() => start < self.edge,
            Some((start, end)) => end.min(start + mss.get()) <= self.edge,
            None => false,
        }
    }
}

/// Builds the view for policies, with `unsent` bytes of which the peer admits the first `sendable`.
pub(super) fn view<'a>(subflows: &'a [SubflowView], out: &Outgoing, idsn: Dsn, unsent: u64, sendable: u64) -> View<'a> {
    let dsn = |offset: u64| idsn + 1 + offset;
    View {
        subflows,
        unsent: Bytes::new(unsent),
        sendable: Bytes::new(sendable),
        window: Bytes::new(out.edge.saturating_sub(out.una)),
        buffer: Bytes::new(out.largest_window),
        data_una: dsn(out.una),
        unsent_from: dsn(out.unsent.first().map_or(out.buffer.end(), |(start, _)| start)),
    }
}

impl Sender {
    /// Brings up to date what policies may know of `subflows`. Tells whether the receive-window policy has left shares
    /// that can ever grow; otherwise all may use the whole window.
    fn survey(&mut self, now: Instant, subflows: &mut Subflows, config: &Config, may_repeat: bool) -> bool {
        let chosen = subflows.eligible();
        self.renew_views(now, subflows, chosen);
        let mut shared_well = true;
        if self.receive_window.capabilities.unlimited {
            self.views.iter_mut().for_each(|view| view.share = Bytes::MAX);
        } else if self.views.len() > 1 {
            shared_well = self.share_window(now, subflows, chosen, config);
        }
        self.take_states(subflows, may_repeat);
        shared_well
    }

    /// Brings the views of `chosen` subflows up to date; all of them if others were shown before.
    fn renew_views(&mut self, now: Instant, subflows: &mut Subflows, chosen: Places) {
        let changed = subflows.take_changed(Reader::Views);
        let Sender { views, shown, congestion, .. } = self;
        let set_changed = *shown != chosen || changed == Places::ALL;
        if set_changed {
            *shown = chosen;
            views.clear();
            // Exactly: most connections are idle most of the time, and keep these.
            views.reserve_exact(subflows.len());
            views.extend(subflows.of(chosen).filter_map(|subflow| subflow.view(congestion, Bytes::MAX)));
        } else {
            let mut left = changed.intersection(chosen);
            while let Some(place) = left.pop() {
                if let Some(view) = subflows.at(place).view(congestion, Bytes::MAX) {
                    views[subflows.rank(chosen, place)] = view;
                }
            }
        }
        for (subflow, view) in subflows.of(chosen).zip(views.iter_mut()).filter(|(_, view)| view.in_flight.is_zero()) {
            // What idling will have cost it by the time it sends.
            if let Some(idle) = subflow.tx.idle(now) {
                view.cwnd = congestion.cwnd_after_idle(view.id, idle, view.rto);
            }
        }
        debug_assert!(self.are_views_current(now, subflows), "a change has marked its subflow");
        if set_changed {
            self.tell_of_usable(now);
        }
    }

    /// Gives back the memory of what policies are shown: nothing is to be sent, so that none is asked.
    #[inline]
    pub(super) fn forget_views(&mut self) {
        if self.views.capacity() > 0 {
            self.views = Vec::new();
            self.usage = Vec::new();
            self.shares = Vec::new();
            self.states = Vec::new();
            self.shown = Places::NONE;
        }
    }

    /// Tells the scheduler if the usable subflows are others than it knows of.
    fn tell_of_usable(&mut self, now: Instant) {
        let usable = self.views.iter().fold(0, |bits, view| bits | 1u32 << (view.id.0 % 32));
        if usable != self.usable {
            self.usable = usable;
            self.scheduler.observe(now, &PolicyEvent::SubflowsChanged);
        }
    }

    /// Tells whether the views are what they would be if all were worked out anew.
    fn are_views_current(&self, now: Instant, subflows: &Subflows) -> bool {
        let Sender { views, shown, congestion, .. } = self;
        let current = |subflow: &Subflow, view: &SubflowView| {
            let mut fresh = subflow.view(congestion, view.share)?;
            if let Some(idle) = subflow.tx.idle(now) {
                fresh.cwnd = congestion.cwnd_after_idle(subflow.id, idle, subflow.tx.rtt.rto());
            }
            Some(fresh == *view)
        };
        shown.len() == views.len()
            && subflows.of(*shown).zip(views).all(|(subflow, view)| current(subflow, view) == Some(true))
    }

    /// Brings the view of a subflow up to date that has just sent, `fresh` bytes of that for the first time.
    pub(super) fn renew_view(&mut self, now: Instant, subflow: &Subflow, fresh: u64) {
        // Idling may have cost it some.
        let cwnd = self.congestion.cwnd(subflow.id);
        if let Some(view) = self.views.iter_mut().find(|view| view.id == subflow.id) {
            view.in_flight = subflow.tx.in_flight();
            view.cwnd = cwnd;
            view.sent = subflow.tx.recovery.snd_nxt() - 1;
            view.last_sent = Some(now);
            view.oldest_sent.get_or_insert(now);
            view.throttled = subflow.tx.throttled;
            view.share = view.share.saturating_sub(Bytes::new(fresh));
        }
        self.renew_state(subflow);
    }

    /// Shares the peer's window out among the `shown` subflows, as the receive-window policy says. False if nothing
    /// could leave then, or ever would: each gets all of it in that case.
    fn share_window(&mut self, now: Instant, subflows: &Subflows, shown: Places, config: &Config) -> bool {
        let Sender { views, usage, shares, outgoing: out, congestion, receive_window, .. } = self;
        usage.clear();
        usage.reserve_exact(views.len());
        usage.extend(subflows.of(shown).map(|subflow| subflow.usage(congestion, out.log.unacked(subflow.mark))));
        shares.clear();
        shares.resize(usage.len(), Bytes::MAX);
        let buffers = Buffers {
            window: Bytes::new(out.edge.saturating_sub(out.una)),
            receive: Bytes::new(out.largest_window),
            send: send_space::size(subflows, config),
        };
        receive_window.share(now, &buffers, usage, shares);
        let idle = || usage.iter().all(|one| one.outstanding.is_zero());
        // Nothing is under way that could open a share.
        let stuck = shares.iter().all(|share| share.is_zero()) && out.needs_unsent() && idle();
        if stuck {
            shares.fill(Bytes::MAX);
        }
        // Both stand in the order of the subflows.
        views.iter_mut().zip(shares.iter()).for_each(|(view, share)| view.share = *share);
        !stuck
    }

    /// Asks the scheduler, and checks the answer; `data` is how much is unsent and how much of it the peer admits. It
    /// is overruled by min-RTT if it asks for what cannot be done, waits while nothing is in flight that could end it,
    /// or leaves the first unsent byte for too long. With the verdict comes what it did wrong.
    fn decide(&mut self, now: Instant, data: (u64, u64), idsn: Dsn, may_repeat: bool) -> (Verdict, Option<Misconduct>) {
        if let [only] = self.views.as_slice() {
            return (Verdict::New(only.id, Bytes::ZERO), None);
        }
        let (unsent, sendable) = data;
        let view = view(&self.views, &self.outgoing, idsn, unsent, sendable);
        self.waiting.overruled = false;
        let decision = self.scheduler.decide(now, &view);
        if let Decision::Send { on, skip: Bytes::ZERO } = decision {
            self.watchdog.acquit();
            let subflow = view.subflow(on).filter(|subflow| subflow.has_room());
            if subflow.is_some_and(|subflow| self.outgoing.admits(Bytes::ZERO, subflow.mss)) {
                self.watchdog.waiting_since(now);
                return (Verdict::New(on, Bytes::ZERO), None);
            }
        }
        let could_send = sendable > 0 && view.subflows.iter().any(SubflowView::has_room);
        let patience = could_send.then(|| self.watchdog.waiting_since(now) + watchdog::patience(&self.views));
        let starving = patience.is_some_and(|end| end <= now);
        let (possible, verdict) = match decision {
            Decision::Send { on, skip } => {
                let subflow = view.subflow(on).filter(|subflow| subflow.has_room());
                let admitted = subflow.is_some_and(|subflow| self.outgoing.admits(skip, subflow.mss));
                (admitted, Verdict::New(on, skip))
            }
            Decision::Repeat { on, from } => {
                let offset = from.get().wrapping_sub(view.data_una.get()).saturating_add(self.outgoing.una);
                // The subflow that carried it may be gone.
                let sent = from.before(view.unsent_from) && self.outgoing.log.range_at(offset).is_some();
                let able = view.subflow(on).is_some_and(SubflowView::has_room_to_repeat);
                (sent && able && may_repeat, Verdict::Copy(on, offset))
            }
            Decision::Wait { until } => {
                let until = until.filter(|at| *at > now);
                let hopeful = view.subflows.iter().any(|subflow| !subflow.in_flight.is_zero() || subflow.throttled);
                if !starving && (hopeful || until.is_some() || !could_send) {
                    let (own, spins) = self.watchdog.timer(now, until, &self.views);
                    return (Verdict::Wait(earliest([own, patience])), spins.then_some(Misconduct::Looping));
                }
                (starving, Verdict::Wait(until))
            }
        };
        if possible && !starving {
            return (verdict, None);
        }
        let best = view.fastest_with_room().filter(|_| could_send).map(|best| best.id);
        self.waiting.overruled = true;
        let instead = best.map_or(Verdict::Wait(None), |on| Verdict::New(on, Bytes::ZERO));
        (instead, Some(if possible { Misconduct::Starving } else { Misconduct::Impossible }))
    }
}

impl Connection {
    /// Updates the view for policies: the usable subflows, or the backups if no regular one is usable.
    pub(super) fn survey(&mut self, now: Instant, shared: &Shared) {
        let may_repeat = self.may_reinject();
        if !self.sender.survey(now, &mut self.subflows, &shared.config, may_repeat) {
            self.stats.overruled.shares += 1;
        }
    }

    /// Asks the scheduler, and counts what it did wrong.
    pub(super) fn decide(&mut self, now: Instant, unsent: u64, sendable: u64, shared: &mut Shared) -> Verdict {
        let may_repeat = self.may_reinject();
        let (verdict, wrong) = self.sender.decide(now, (unsent, sendable), self.keys.local_idsn, may_repeat);
        if let Some(why) = wrong {
            self.overrule(why, shared);
        }
        verdict
    }

    /// Returns true if data may leave once more under other sequence numbers. A peer with a single subflow may have
    /// become plain TCP, and then takes all bytes that come for the next ones (RFC 8684 §3.7).
    pub(super) fn may_reinject(&self) -> bool {
        self.life.mode() == Mode::Multipath && self.subflows.peer_knows_of_join
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use anabranch_policy::scheduler::Scheduler;
    use anabranch_units::{Duration, Key};
    use bytes::Bytes as Payload;

    const FAST: SubflowId = SubflowId(1);
    const SLOW: SubflowId = SubflowId(2);

    /// Answers the same for ever.
    struct Fixed(Decision);

    impl Scheduler for Fixed {
        fn decide(&mut self, _now: Instant, _view: &View<'_>) -> Decision {
            self.0
        }
    }

    /// A sender with 5000 bytes, of which the peer admits 1500, two subflows with room for 1000, and this scheduler.
    fn sender(decision: Decision) -> Sender {
        let mut sender = Sender::new(Instant::ZERO, Key::new(1), &Config::new(Profile::tcp(), Vec::new()));
        let ms = Duration::from_millis;
        let mss = Bytes::new(1000);
        sender.views = [(FAST, 10), (SLOW, 40)].map(|(id, srtt)| SubflowView::steady(id, mss, ms(srtt), mss)).into();
        sender.outgoing.append(&Payload::from(vec![7; 5000]), 5000);
        sender.outgoing.open_window(0, 1500);
        sender.scheduler = Fixed(decision).into();
        sender
    }

    fn ask(sender: &mut Sender, now: Instant, may_repeat: bool) -> (Verdict, Option<Misconduct>) {
        sender.decide(now, (5000, 1500), Dsn::new(0), may_repeat)
    }

    #[test]
    fn only_the_first_segment_is_cut_to_the_peers_window() {
        let mut out = sender(Decision::WAIT).outgoing;
        let admitted = |out: &Outgoing, skip| out.admits(Bytes::new(skip), Bytes::new(1000));
        assert_eq!([0, 500, 501, 5000].map(|skip| admitted(&out, skip)), [true, true, false, false]);
        out.unsent.remove(0, 1000);
        assert_eq!([0, 1].map(|skip| admitted(&out, skip)), [true, false], "500 bytes of the next segment");
        out.unsent.remove(1000, 1500);
        assert!(!admitted(&out, 0));
    }

    #[test]
    fn what_cannot_be_done_is_min_rtts_turn() {
        let to = |on, skip| Decision::Send { on, skip: Bytes::new(skip) };
        let new = |on, skip| Verdict::New(on, Bytes::new(skip));
        let copy = Decision::Repeat { on: SLOW, from: Dsn::new(1) };
        let impossible = (new(FAST, 0), Some(Misconduct::Impossible));
        for (decision, expected) in [
            (to(SLOW, 0), (new(SLOW, 0), None)),
            (to(SLOW, 500), (new(SLOW, 500), None)),
            (to(SLOW, 501), impossible),
            (to(SubflowId(9), 0), impossible),
            (copy, impossible),           // Nothing was sent.
            (Decision::WAIT, impossible), // Nothing is under way that could end it.
        ] {
            let mut sender = sender(decision);
            assert_eq!(ask(&mut sender, Instant::ZERO, true), expected, "{decision:?}");
            assert_eq!(sender.waiting.overruled, expected.1.is_some());
        }
    }

    #[test]
    fn copies_need_a_second_subflow_that_the_peer_knows_of() {
        let mut sender = sender(Decision::Repeat { on: SLOW, from: Dsn::new(1) });
        let carrier = Subflow::sample(1, Duration::from_millis(10));
        sender.outgoing.record(Instant::ZERO, (0, 1000), &carrier, true);
        assert_eq!(ask(&mut sender, Instant::ZERO, true), (Verdict::Copy(SLOW, 0), None));
        assert_eq!(ask(&mut sender, Instant::ZERO, false).1, Some(Misconduct::Impossible));
    }

    /// The most patient subflow has an RTO of 240 ms.
    #[test]
    fn a_scheduler_that_waits_for_longer_than_a_loss_takes_is_overruled() {
        let mut sender = sender(Decision::WAIT);
        sender.views[0].in_flight = Bytes::new(1);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert_eq!(ask(&mut sender, at(0), true), (Verdict::Wait(Some(at(240))), None));
        assert_eq!(ask(&mut sender, at(239), true), (Verdict::Wait(Some(at(240))), None));
        let min_rtt = Verdict::New(SLOW, Bytes::ZERO);
        assert_eq!(ask(&mut sender, at(240), true), (min_rtt, Some(Misconduct::Starving)));
    }
}
