//! What policies are shown, what the scheduler says to it, and whether that may be done.

use super::indices::Indices;
use super::sender::{Outgoing, Sender};
use super::subflows::{Kind, Reader};
use super::{Connection, Mode, watchdog};
use crate::Misconduct;
use crate::deadline::earliest;
use crate::shared::Shared;
use anabranch_policy::receive_window::Buffers;
use anabranch_policy::{Decision, Event as PolicyEvent, SubflowView, View};
use anabranch_units::{Bytes, Dsn, Instant, SubflowId};

/// A scheduler's decision, checked.
pub(super) enum Verdict {
    /// The unsent data so many bytes from the front.
    New(SubflowId, Bytes),
    /// A copy of the sent data at this offset.
    Copy(SubflowId, u64),
    Wait(Option<Instant>),
}

impl Outgoing {
    /// The next byte to be acknowledged is one that was never sent, perhaps because the scheduler has skipped it: what was sent
    /// behind it moves nothing.
    pub(super) fn needs_unsent(&self) -> bool {
        self.una == self.nxt || self.unsent.first().is_some_and(|(start, _)| start <= self.una)
    }

    /// Whether the peer's window admits a segment of `mss` that begins `skip` bytes into the unsent data. Only the first
    /// may be cut short: if that cannot leave, nothing can.
    fn admits(&self, skip: Bytes, mss: Bytes) -> bool {
        match self.unsent.nth(skip.get()) {
            Some((start, _)) if skip.is_zero() => start < self.edge,
            Some((start, end)) => end.min(start + mss.get()) <= self.edge,
            None => false,
        }
    }
}

/// What policies may know, with `unsent` bytes of which the peer admits the first `sendable`.
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

impl Connection {
    /// Brings up to date what policies may know: the usable subflows, or the backups if there is no other.
    pub(super) fn survey(&mut self, now: Instant, shared: &Shared) {
        let chosen = self.eligible();
        self.renew_views(now, chosen);
        if self.sender.receive_window.capabilities.unlimited {
            self.sender.views.iter_mut().for_each(|view| view.share = Bytes::MAX);
        } else if self.sender.views.len() > 1 {
            self.share_window(now, chosen, shared);
        }
        self.take_states();
    }

    /// The subflows that policies are shown. A connection whose only subflows have failed goes on using them: there is
    /// nothing better.
    fn eligible(&mut self) -> Indices {
        let preferred = [Kind::Regular, Kind::Backup, Kind::Measured].into_iter();
        preferred.map(|kind| self.subflows.all(kind)).find(|set| !set.is_empty()).unwrap_or(Indices::NONE)
    }

    /// Brings the views of `chosen` subflows up to date; all of them if others were shown before.
    fn renew_views(&mut self, now: Instant, chosen: Indices) {
        let changed = self.subflows.take_changed(Reader::Views);
        let Sender { views, shown, congestion, .. } = &mut self.sender;
        let set_changed = *shown != chosen || changed == Indices::ALL;
        if set_changed {
            *shown = chosen;
            views.clear();
            // Exactly: most connections are idle most of the time, and keep these.
            views.reserve_exact(self.subflows.len());
            views.extend(chosen.filter_map(|index| self.subflows[index].view(congestion, Bytes::MAX)));
        } else {
            for index in changed.intersection(chosen) {
                if let Some(view) = self.subflows[index].view(congestion, Bytes::MAX) {
                    views[chosen.rank(index)] = view;
                }
            }
        }
        for (index, view) in chosen.zip(views.iter_mut()).filter(|(_, view)| view.in_flight.is_zero()) {
            // What idling will have cost it by the time it sends.
            if let Some(idle) = self.subflows[index].tx.idle(now) {
                view.cwnd = congestion.cwnd_after_idle(view.id, idle, view.rto);
            }
        }
        debug_assert!(self.are_views_current(now), "a change has marked its subflow");
        if set_changed {
            self.tell_of_usable(now);
        }
    }

    /// Tells the scheduler if the usable subflows are others than it knows of.
    fn tell_of_usable(&mut self, now: Instant) {
        let usable = self.sender.views.iter().fold(0, |bits, view| bits | 1u32 << (view.id.0 % 32));
        if usable != self.sender.usable {
            self.sender.usable = usable;
            self.sender.scheduler.observe(now, &PolicyEvent::SubflowsChanged);
        }
    }

    /// Tells whether the views are what they would be if all were worked out anew.
    fn are_views_current(&self, now: Instant) -> bool {
        let Sender { views, shown, congestion, .. } = &self.sender;
        let current = |index: usize, view: &SubflowView| {
            let subflow = &self.subflows[index];
            let mut fresh = subflow.view(congestion, view.share)?;
            if let Some(idle) = subflow.tx.idle(now) {
                fresh.cwnd = congestion.cwnd_after_idle(subflow.id, idle, subflow.tx.rtt.rto());
            }
            Some(fresh == *view)
        };
        shown.len() == views.len() && shown.zip(views).all(|(index, view)| current(index, view) == Some(true))
    }

    /// Shares the peer's window out among the `shown` subflows, as the receive-window policy says.
    fn share_window(&mut self, now: Instant, shown: Indices, shared: &Shared) {
        let Sender { views, usage, shares, outgoing: out, congestion, receive_window, .. } = &mut self.sender;
        usage.clear();
        usage.reserve_exact(views.len());
        usage.extend(shown.map(|index| {
            let subflow = &self.subflows[index];
            subflow.usage(congestion, out.log.unacked(subflow.slot))
        }));
        shares.clear();
        shares.resize(usage.len(), Bytes::MAX);
        let buffers = Buffers {
            window: Bytes::new(out.edge.saturating_sub(out.una)),
            receive: Bytes::new(out.largest_window),
            send: shared.config.send_buffer,
        };
        receive_window.share(now, &buffers, usage, shares);
        let idle = || usage.iter().all(|one| one.outstanding.is_zero());
        if shares.iter().all(|share| share.is_zero()) && out.needs_unsent() && idle() {
            // Nothing is under way that could open a share.
            self.stats.overruled.shares += 1;
            shares.fill(Bytes::MAX);
        }
        // Both stand in the order of the subflows.
        views.iter_mut().zip(shares.iter()).for_each(|(view, share)| view.share = *share);
    }

    /// Asks the scheduler, and checks the answer. It is overruled by min-RTT if it asks for what cannot be done, waits
    /// while nothing is in flight that could end it, or leaves the first unsent byte for too long.
    pub(super) fn decide(&mut self, now: Instant, unsent: u64, sendable: u64, shared: &mut Shared) -> Verdict {
        if let [only] = self.sender.views.as_slice() {
            return Verdict::New(only.id, Bytes::ZERO);
        }
        let view = view(&self.sender.views, &self.sender.outgoing, self.keys.local_idsn, unsent, sendable);
        self.sender.waiting.overruled = false;
        let decision = self.sender.scheduler.decide(now, &view);
        if let Decision::Send { on, skip: Bytes::ZERO } = decision {
            self.sender.watchdog.acquit();
            let subflow = view.subflow(on).filter(|subflow| subflow.has_room());
            if subflow.is_some_and(|subflow| self.sender.outgoing.admits(Bytes::ZERO, subflow.mss)) {
                self.sender.watchdog.waiting_since(now);
                return Verdict::New(on, Bytes::ZERO);
            }
        }
        let could_send = sendable > 0 && view.subflows.iter().any(SubflowView::has_room);
        let patience =
            could_send.then(|| self.sender.watchdog.waiting_since(now) + watchdog::patience(&self.sender.views));
        let starving = patience.is_some_and(|end| end <= now);
        let why = match decision {
            Decision::Send { on, skip } => {
                let subflow = view.subflow(on).filter(|subflow| subflow.has_room());
                match subflow.is_some_and(|subflow| self.sender.outgoing.admits(skip, subflow.mss)) {
                    true if !starving => return Verdict::New(on, skip),
                    true => Misconduct::Starving,
                    false => Misconduct::Impossible,
                }
            }
            Decision::Repeat { on, from } => {
                let offset = from.get().wrapping_sub(view.data_una.get()).saturating_add(self.sender.outgoing.una);
                // The subflow that carried it may be gone.
                let sent = from.before(view.unsent_from) && self.sender.outgoing.log.range_at(offset).is_some();
                let legal =
                    sent && view.subflow(on).is_some_and(SubflowView::has_room_to_repeat) && self.may_reinject();
                if legal && !starving {
                    return Verdict::Copy(on, offset);
                }
                if legal { Misconduct::Starving } else { Misconduct::Impossible }
            }
            Decision::Wait { until } => {
                let until = until.filter(|at| *at > now);
                let hopeful = view.subflows.iter().any(|subflow| !subflow.in_flight.is_zero() || subflow.throttled);
                if !starving && (hopeful || until.is_some() || !could_send) {
                    let (own, spins) = self.sender.watchdog.timer(now, until, &self.sender.views);
                    if spins {
                        self.overrule(Misconduct::Looping, shared);
                    }
                    return Verdict::Wait(earliest([own, patience]));
                }
                if starving { Misconduct::Starving } else { Misconduct::Impossible }
            }
        };
        let best = view.fastest_with_room().filter(|_| could_send).map(|best| best.id);
        self.overrule(why, shared);
        self.sender.waiting.overruled = true;
        best.map_or(Verdict::Wait(None), |on| Verdict::New(on, Bytes::ZERO))
    }

    /// Whether data may leave once more under other sequence numbers. While there is no other subflow, the peer may have
    /// become plain TCP: it takes whatever comes for what is next (RFC 8684 §3.7).
    pub(super) fn may_reinject(&self) -> bool {
        self.life.mode() == Mode::Multipath && self.subflows.peer_knows_of_join
    }
}
