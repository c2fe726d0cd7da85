//! The subflows of a connection, in the order of their identifiers.
//!
//! Every segment asks about all of them: who may send, who has to repeat, whose timer is first. The answers are kept
//! beside the subflows, in one bit or word for each, and worked out again only for those that may have changed: each
//! mutable access notes its subflow.
//!
//! A [`Slot`] stands for one subflow until the event that is handled ends, also across steps that end subflows: one
//! that has gone leaves its place empty until then ([`Subflows::settle`]). All else names a subflow by its identifier
//! (events, views, policies, probes) or by its mark (the log of sent data).

use super::slots::{Places, Slot};
use crate::SubflowStats;
use crate::deadline::Earliest;
use crate::demux::Demux;
use crate::sent_log::{SentLog, bit};
use crate::subflow::Subflow;
use crate::{Keepalive, limits::MAX_SUBFLOWS};
use anabranch_units::{Duration, Instant, SubflowId};
use anabranch_wire::FlowKey;
use std::net::IpAddr;
use std::ops::{Index, IndexMut};

/// Subflows that are there, and what is kept of those that are gone.
#[derive(Default)]
pub(crate) struct Subflows {
    /// By place. One that has gone while this event is handled has left a void.
    list: Vec<Subflow>,
    /// Frequently used facts of each of `list`, in the same order.
    briefs: Vec<Brief>,
    /// The places that are taken.
    there: Places,
    /// Number of those that are not.
    voids: usize,
    /// Members of each kind, as at the latest look.
    sets: [Places; KINDS],
    changes: Changes,
    /// Statistics of subflows that are gone, the latest last.
    pub(super) buried: Vec<SubflowStats>,
    next_id: u16,
    /// Number of joins that the peer may have counted on, all there ever were: with any, plain TCP is no way out.
    pub(super) joined: u32,
    /// A further subflow was open for data, so the peer knows as well that plain TCP is no way out.
    pub(super) peer_knows_of_join: bool,
}

/// Facts of a subflow that a connection asks for at each segment.
#[derive(Clone, Copy)]
struct Brief {
    id: SubflowId,
    /// A bit for each kind that it is of.
    kinds: u16,
    /// Its earliest timer.
    due: Option<Instant>,
}

/// Kinds of subflows that a connection asks for at each segment. One may be of several.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// May carry new data, and is no backup.
    Regular,
    /// May carry new data, as a backup.
    Backup,
    /// Is open and has an RTT.
    Measured,
    /// Has lost data to repeat, or has just done that.
    Repairing,
    /// Owes a tail loss probe.
    Probing,
    /// Owes an ACK.
    Acknowledging,
    /// Has nothing under way and a closed window.
    Shut,
    /// Has something to send or under way, if only in the first hop.
    Busy,
    /// Carries no new data until older data is acknowledged.
    Suspected,
    /// Has carried nothing that was next at the data level.
    Unproven,
    /// Holds data out of order.
    Holding,
    /// Sends smaller segments than both ends would take.
    Narrowed,
}

/// Kinds that policies are shown: those of the first that there are any of.
const SHOWN: [Kind; 3] = [Kind::Regular, Kind::Backup, Kind::Measured];

const KINDS: usize = Kind::Narrowed as usize + 1;

/// Users of derived values, each of which recomputes its own at its own time.
#[derive(Clone, Copy)]
pub(super) enum Reader {
    Kinds,
    Timers,
    Views,
    Throttle,
    Pacing,
}

const READERS: usize = Reader::Pacing as usize + 1;

/// Subflows that may have changed.
#[derive(Default)]
struct Changes {
    /// Subflows that may have changed since the last look at this.
    fresh: Places,
    /// Subflows that may have changed since each reader has looked.
    unread: [Places; READERS],
}

/// Statistics kept of subflows that are gone.
const MAX_BURIED: usize = 256;

/// Subflows in the order in which they were added.
#[derive(Clone)]
pub(crate) struct Iter<'a> {
    subflows: &'a Subflows,
    left: Places,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Subflow;

    #[inline]
    fn next(&mut self) -> Option<&'a Subflow> {
        self.left.pop().map(|place| &self.subflows.list[place])
    }
}

impl Subflows {
    pub(super) fn push(&mut self, subflow: Subflow) -> Slot {
        let slot = Slot::new(self.list.len(), subflow.id);
        // Exactly: most connections have few, and keep them.
        self.briefs.reserve_exact(1);
        self.list.reserve_exact(1);
        self.briefs.push(Brief::new(subflow.id));
        self.list.push(subflow);
        self.there.insert(slot.place());
        self.touch_all();
        slot
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Subflow {
        assert!(self.has(slot), "a subflow is removed once");
        let place = slot.place();
        self.there.put(place, false);
        self.sets.iter_mut().for_each(|set| set.put(place, false));
        self.briefs[place] = Brief::new(self.briefs[place].id);
        self.voids += 1;
        self.touch_all();
        let void = Subflow::void(&self.list[place]);
        std::mem::replace(&mut self.list[place], void)
    }

    /// Ends an event: the places of subflows that have gone are closed up. Slots from before do not hold any more.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if self.voids > 0 {
            self.close_up();
        }
    }

    #[cold]
    fn close_up(&mut self) {
        let there = self.there;
        let mut places = 0..;
        self.list.retain(|_| places.next().is_some_and(|place| there.contains(place)));
        let mut places = 0..;
        self.briefs.retain(|_| places.next().is_some_and(|place| there.contains(place)));
        self.there = Places::ALL.below(self.list.len());
        self.voids = 0;
        self.sets = Default::default();
        self.briefs.iter_mut().for_each(|brief| brief.kinds = 0);
        self.touch_all();
    }

    /// Keeps one subflow alone, and calls it `id`; returns its slot from now on and the others, in no order.
    pub(super) fn keep_only(&mut self, slot: Slot, id: SubflowId) -> (Slot, Vec<Subflow>) {
        let at = self.rank(self.there, slot.place());
        let mut others = Vec::with_capacity(self.len());
        while let Some(first) = self.first_slot() {
            others.push(self.remove(first));
        }
        let mut kept = others.swap_remove(at);
        kept.id = id;
        self.next_id = id.0 + 1;
        (self.push(kept), others)
    }

    /// Takes the last of them out.
    pub(super) fn pop(&mut self) -> Option<Subflow> {
        let last = self.slots().last()?;
        Some(self.remove(last))
    }

    /// Keeps the statistics of a subflow that is gone. A peer that keeps joining and resetting costs no more than
    /// `MAX_BURIED` of them.
    pub(super) fn bury(&mut self, stats: SubflowStats) {
        self.buried.push(stats);
        if self.buried.len() > MAX_BURIED {
            self.buried.remove(0);
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.list.len() - self.voids
    }

    pub(super) fn is_empty(&self) -> bool {
        self.there.is_empty()
    }

    /// All of them, in the order in which they were added.
    pub(crate) fn iter(&self) -> Iter<'_> {
        Iter { subflows: self, left: self.there }
    }

    /// Their slots, in the same order.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.in_order(self.there)
    }

    /// Those of `set`, which are all there, in the same order.
    #[inline]
    pub(super) fn of(&self, set: Places) -> Iter<'_> {
        Iter { subflows: self, left: set }
    }

    /// Slots of those of `set` that are there.
    pub(super) fn in_order(&self, mut set: Places) -> impl Iterator<Item = Slot> + '_ {
        std::iter::from_fn(move || self.take_first(&mut set))
    }

    /// The same, one by one, for a walk in which subflows change or go.
    #[inline]
    pub(super) fn take_first(&self, set: &mut Places) -> Option<Slot> {
        *set = set.intersection(self.there);
        set.pop().map(|place| Slot::new(place, self.list[place].id))
    }

    /// The subflow at a place.
    #[inline(always)]
    pub(super) fn at(&self, place: usize) -> &Subflow {
        &self.list[place]
    }

    /// The places that are taken, for a walk by [`Self::take_first`].
    pub(super) fn there(&self) -> Places {
        self.there
    }

    /// The one that was added first.
    pub(super) fn first(&self) -> Option<&Subflow> {
        self.iter().next()
    }

    pub(super) fn first_slot(&self) -> Option<Slot> {
        self.slots().next()
    }

    /// The slot of the first of which this holds.
    pub(super) fn find(&self, holds: impl Fn(&Subflow) -> bool) -> Option<Slot> {
        self.slots().find(|slot| holds(&self[*slot]))
    }

    /// Tells whether the subflow of this slot is still there.
    pub(super) fn has(&self, slot: Slot) -> bool {
        self.there.contains(slot.place())
    }

    /// The slot of the subflow with this identifier, if it is there.
    #[inline]
    pub(crate) fn slot(&self, id: SubflowId) -> Option<Slot> {
        let is = |place: &usize| self.there.contains(*place) && self.briefs[*place].id == id;
        // As long as no subflow has gone, the place is the number.
        let place = usize::from(id.0);
        let is_usual = place < self.briefs.len() && is(&place);
        let place = if is_usual { place } else { (0..self.briefs.len()).find(is)? };
        Some(Slot::new(place, id))
    }

    /// Number of members of `set` that were added before the one at `place`.
    pub(super) fn rank(&self, set: Places, place: usize) -> usize {
        set.below(place).len()
    }

    /// The bit of a subflow in the log of sent data.
    pub(super) fn mark_of(&self, id: SubflowId) -> Option<u8> {
        self.slot(id).map(|slot| self[slot].mark)
    }

    /// The initial subflow, while it is there.
    pub(super) fn initial(&self) -> Option<&Subflow> {
        self.iter().find(|subflow| !subflow.is_join())
    }

    /// Subflows that may carry data.
    pub(super) fn open(&self) -> impl Iterator<Item = &Subflow> {
        self.iter().filter(|subflow| subflow.is_open())
    }

    /// A bit that no subflow has.
    pub(super) fn free_mark(&self) -> Option<u8> {
        (0..MAX_SUBFLOWS as u8).find(|mark| self.iter().all(|subflow| subflow.mark != *mark))
    }

    /// All of them, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Subflow> {
        self.touch_all();
        self.iter_unnoticed()
    }

    /// The same for a change that no set, timer or view shows.
    pub(super) fn iter_unnoticed(&mut self) -> impl Iterator<Item = &mut Subflow> {
        let there = self.there;
        self.list.iter_mut().enumerate().filter(move |(place, _)| there.contains(*place)).map(|(_, subflow)| subflow)
    }

    /// Those of `set` that are there, for such a change.
    #[inline]
    pub(super) fn each_unnoticed(&mut self, set: Places, mut change: impl FnMut(&mut Subflow)) {
        let mut left = set.intersection(self.there);
        while let Some(place) = left.pop() {
            change(&mut self.list[place]);
        }
    }

    /// Something outside of a subflow has changed that its view shows.
    #[inline(always)]
    pub(super) fn touch(&mut self, slot: Slot) {
        self.changes.fresh.insert(slot.place());
    }

    /// The same for the subflow with this identifier, if it is there.
    pub(super) fn touch_id(&mut self, id: SubflowId) {
        if let Some(slot) = self.slot(id) {
            self.touch(slot);
        }
    }

    /// The same for a set of them.
    pub(super) fn touch_each(&mut self, set: Places) {
        self.changes.fresh = self.changes.fresh.union(set.intersection(self.there));
    }

    /// The same for all.
    pub(super) fn touch_all(&mut self) {
        self.changes.fresh = Places::ALL;
    }

    /// The subflows of a kind.
    pub(super) fn all(&mut self, kind: Kind) -> Places {
        self.look();
        self.sets[kind as usize]
    }

    /// Subflows that may be of a kind: those that were at the latest look, and those that may have changed since.
    #[inline]
    pub(super) fn possible(&self, kind: Kind) -> Places {
        let unread = self.changes.fresh.union(self.changes.unread[Reader::Kinds as usize]);
        self.sets[kind as usize].union(unread).intersection(self.there)
    }

    /// Those of them of which this holds.
    #[inline]
    pub(super) fn those(&self, kind: Kind, holds: impl Fn(&Subflow) -> bool) -> Places {
        self.filter(self.possible(kind), holds)
    }

    /// Those of `set` that are there and of which this holds.
    #[inline]
    pub(super) fn filter(&self, set: Places, holds: impl Fn(&Subflow) -> bool) -> Places {
        let (mut left, mut found) = (set.intersection(self.there), Places::NONE);
        while let Some(place) = left.pop() {
            found.put(place, holds(&self.list[place]));
        }
        found
    }

    /// Tells whether this holds of any of them.
    #[inline]
    pub(super) fn any(&self, kind: Kind, holds: impl Fn(&Subflow) -> bool) -> bool {
        let mut left = self.possible(kind);
        std::iter::from_fn(|| left.pop()).any(|place| holds(&self.list[place]))
    }

    /// Tells whether none has anything to send or under way.
    pub(super) fn are_at_rest(&mut self) -> bool {
        // A look costs more than a question to one or two, and less than one to all.
        if self.len() > 2 {
            self.look();
        }
        !self.any(Kind::Busy, |subflow| !subflow.tx.is_at_rest())
    }

    /// Returns the subflows that policies are shown: the usable ones, or the backups if no regular one is usable. If
    /// all subflows have failed, the connection goes on using them.
    pub(super) fn eligible(&mut self) -> Places {
        SHOWN.into_iter().map(|kind| self.all(kind)).find(|set| !set.is_empty()).unwrap_or(Places::NONE)
    }

    /// The same, worked out anew from each subflow: for those who only look.
    pub(super) fn eligible_now(&self) -> Places {
        let of = |kind: Kind| {
            let mut set = Places::NONE;
            self.slots().for_each(|slot| set.put(slot.place(), kinds(&self[slot]) >> kind as u16 & 1 != 0));
            set
        };
        SHOWN.into_iter().map(of).find(|set| !set.is_empty()).unwrap_or(Places::NONE)
    }

    /// The open subflow that carries what belongs to the connection: the fastest.
    pub(super) fn control(&self) -> Option<Slot> {
        self.fastest_open(|_| true)
    }

    /// The same among those that do not begin at `local`.
    pub(super) fn control_beside(&self, local: IpAddr) -> Option<Slot> {
        self.fastest_open(|subflow| subflow.flow.src != local)
    }

    fn fastest_open(&self, counts: impl Fn(&Subflow) -> bool) -> Option<Slot> {
        let open = self.slots().filter(|slot| self[*slot].is_open() && counts(&self[*slot]));
        open.min_by_key(|slot| (self[*slot].liveness.potentially_failed, self[*slot].tx.rtt.srtt()))
    }

    /// Tells whether one more subflow may be established where at most `limit` may be.
    pub(super) fn has_room(&self, limit: usize) -> bool {
        let there = |it: &&Subflow| !it.is_half_open_join();
        self.staying().filter(there).count() < limit && self.iter().filter(there).count() < MAX_SUBFLOWS
    }

    /// Tells whether we may ask for one more subflow where at most `limit` may be.
    pub(super) fn has_room_for_own(&self, limit: usize) -> bool {
        self.staying().count() < limit && self.len() < MAX_SUBFLOWS
    }

    /// Subflows without those that are about to go: with a withdrawn address, or closed alone. They leave their places
    /// to others. A peer that withdraws all its addresses at once and joins from a new one would be refused otherwise,
    /// and Linux does not ask again; one whose path is dead, and with it the other FIN, would wait for a minute.
    fn staying(&self) -> impl Iterator<Item = &Subflow> {
        let leaves = |it: &Subflow| it.liveness.removal_probe.is_some() || it.liveness.linger_until.is_some();
        self.iter().filter(move |subflow| !leaves(subflow))
    }

    /// Returns true if the ports of `flow` are used by a single subflow to this peer, over all connections.
    pub(super) fn owns_ports(&self, flow: &FlowKey, demux: &Demux) -> bool {
        let of_peer = |flow: &FlowKey| self.iter().any(|subflow| subflow.flow.dst == flow.dst);
        demux.with_ports(flow).iter().all(|(other, _)| other == flow || !of_peer(other))
    }

    /// An identifier that no subflow has.
    pub(super) fn new_id(&mut self) -> SubflowId {
        // After 65536 joins the numbers begin again; one still in use is passed over.
        while self.slot(SubflowId(self.next_id)).is_some() {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = SubflowId(self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        id
    }

    /// A packet of a subflow has left the first hop.
    pub(super) fn on_departed(&mut self, id: SubflowId, size: u64) {
        if let Some(slot) = self.slot(id) {
            let tx = &mut self[slot].tx;
            tx.first_hop = tx.first_hop.saturating_sub(size);
        }
    }

    /// The peer has the data at offset `una`, and perhaps more: what carried it is of use.
    pub(super) fn credit_carriers(&mut self, log: &SentLog, una: u64) {
        let mut left = self.those(Kind::Unproven, |subflow| !subflow.useful);
        while let Some(slot) = self.take_first(&mut left) {
            if log.carriers(una) & bit(self[slot].mark) != 0 {
                self[slot].useful = true;
            }
        }
    }

    /// All before `una` has arrived: subflows suspected over older data get another chance. Tells whether there were
    /// any.
    pub(super) fn clear_suspects(&mut self, una: u64) -> bool {
        let is_settled = |subflow: &Subflow| subflow.liveness.suspect_until.is_some_and(|until| until <= una);
        let mut settled = self.those(Kind::Suspected, is_settled);
        let any = !settled.is_empty();
        while let Some(slot) = self.take_first(&mut settled) {
            self[slot].liveness.suspect_until = None;
        }
        any
    }

    /// Fragments that subflows hold out of order.
    pub(super) fn held_fragments(&self) -> u64 {
        let (mut left, mut held) = (self.possible(Kind::Holding), 0);
        while let Some(place) = left.pop() {
            held += self.list[place].rx.ofo.fragments() as u64;
        }
        held
    }

    /// Brings the kinds up to date.
    #[inline]
    fn look(&mut self) {
        let mut left = self.take_changed(Reader::Kinds).intersection(self.there);
        while let Some(place) = left.pop() {
            let kinds = kinds(&self.list[place]);
            let known = std::mem::replace(&mut self.briefs[place].kinds, kinds);
            let mut changed = kinds ^ known;
            while changed != 0 {
                let kind = changed.trailing_zeros() as usize;
                self.sets[kind].put(place, kinds >> kind & 1 != 0);
                changed &= changed - 1;
            }
        }
        let current = |slot: Slot| {
            let (subflow, brief) = (&self.list[slot.place()], &self.briefs[slot.place()]);
            (kinds(subflow), subflow.id) == (brief.kinds, brief.id)
        };
        debug_assert!(self.slots().all(current), "a change has been noticed");
    }

    /// Adds their timers.
    #[inline]
    pub(super) fn add_timers(&mut self, first: Earliest, keepalive: &Keepalive) -> Earliest {
        self.look_at_timers(keepalive);
        self.briefs.iter().fold(first, |first, brief| first.and(brief.due))
    }

    /// Brings the timers up to date.
    #[inline]
    fn look_at_timers(&mut self, keepalive: &Keepalive) {
        let mut left = self.take_changed(Reader::Timers).intersection(self.there);
        while let Some(place) = left.pop() {
            self.briefs[place].due = self.list[place].add_timers(Earliest::NONE, keepalive).get();
        }
    }

    /// Tells whether a timer of a subflow has run out.
    pub(super) fn is_due(&mut self, now: Instant, slot: Slot, keepalive: &Keepalive) -> bool {
        self.look_at_timers(keepalive);
        self.briefs[slot.place()].due.is_some_and(|due| due <= now)
    }

    /// Subflows that may have changed since `reader` has looked, which is now. [`Places::ALL`] after some have come or
    /// gone.
    #[inline]
    pub(super) fn take_changed(&mut self, reader: Reader) -> Places {
        let Changes { fresh, unread } = &mut self.changes;
        if !fresh.is_empty() {
            unread.iter_mut().for_each(|one| *one = one.union(*fresh));
            *fresh = Places::NONE;
        }
        std::mem::take(&mut unread[reader as usize])
    }

    /// The longest retransmission timeout.
    pub(super) fn longest_rto(&self) -> Duration {
        self.iter().map(|subflow| subflow.tx.rtt.rto()).max().unwrap_or(Duration::from_secs(1))
    }
}

impl Brief {
    fn new(id: SubflowId) -> Self {
        Brief { id, kinds: 0, due: None }
    }
}

/// The kinds that a subflow is of, a bit for each.
#[inline]
fn kinds(subflow: &Subflow) -> u16 {
    let is = |kind: Kind, holds: bool| u16::from(holds) << kind as u16;
    let Subflow { tx, rx, liveness, .. } = subflow;
    let (usable, backup, open) = (subflow.is_usable(), subflow.backup(), subflow.is_open());
    is(Kind::Regular, usable && !backup)
        | is(Kind::Backup, usable && backup)
        | is(Kind::Measured, open && tx.rtt.srtt().is_some())
        | is(Kind::Repairing, tx.retransmit_now | tx.recovery.has_retransmission())
        | is(Kind::Probing, tx.probe_now)
        | is(Kind::Acknowledging, rx.ack.now | rx.ack.unreported)
        | is(Kind::Shut, open && tx.recovery.is_empty() && tx.window_left() == 0)
        | is(Kind::Busy, !tx.is_at_rest())
        | is(Kind::Suspected, liveness.suspect_until.is_some())
        | is(Kind::Unproven, !subflow.useful)
        | is(Kind::Holding, !rx.ofo.is_empty())
        | is(Kind::Narrowed, tx.path_mtu.is_some())
}

impl Index<Slot> for Subflows {
    type Output = Subflow;

    #[inline(always)]
    fn index(&self, slot: Slot) -> &Subflow {
        debug_assert!(self.has(slot) && slot.is_of(self.list[slot.place()].id), "a slot is used in its event");
        &self.list[slot.place()]
    }
}

impl IndexMut<Slot> for Subflows {
    #[inline(always)]
    fn index_mut(&mut self, slot: Slot) -> &mut Subflow {
        debug_assert!(self.has(slot) && slot.is_of(self.list[slot.place()].id), "a slot is used in its event");
        self.touch(slot);
        &mut self.list[slot.place()]
    }
}

#[cfg(test)]
mod tests;
