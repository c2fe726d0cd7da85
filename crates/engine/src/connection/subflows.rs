//! The subflows of a connection, in the order of their identifiers.
//!
//! Every segment asks about all of them: who may send, who has to repeat, whose timer is first. The answers are kept
//! beside the subflows, in one bit or word for each, and worked out again only for those that may have changed: each
//! mutable access marks its subflow.
//!
//! An index holds until a subflow goes: after a step that may end one it is looked up again, and what is kept by index
//! is worked out anew. All else names a subflow by its identifier (events, views, policies, probes) or by its slot (the
//! log of sent data), which is its own for as long as it is there.

use super::indices::Indices;
use crate::SubflowStats;
use crate::deadline::Earliest;
use crate::demux::Demux;
use crate::sent_log::{SentLog, bit};
use crate::subflow::Subflow;
use crate::{Keepalive, limits::MAX_SUBFLOWS};
use anabranch_units::{Duration, Instant, SubflowId};
use anabranch_wire::FlowKey;
use std::net::IpAddr;
use std::ops::{Deref, Index, IndexMut};

/// Subflows that are there, and what is kept of those that are gone.
#[derive(Default)]
pub(crate) struct Subflows {
    list: Vec<Subflow>,
    /// Frequently used facts of each of `list`, in the same order.
    briefs: Vec<Brief>,
    /// The indices that there are.
    there: Indices,
    /// Members of each kind, as at the latest look.
    sets: [Indices; KINDS],
    marks: Marks,
    /// Statistics of subflows that are gone, the latest last.
    pub(super) buried: Vec<SubflowStats>,
    next_id: u16,
    /// More than the initial subflow was ever there, as far as the peer can know, so plain TCP is no way out.
    pub(super) ever_joined: bool,
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
struct Marks {
    /// Subflows that may have changed since the last look at this.
    fresh: Indices,
    /// Subflows that may have changed since each reader has looked.
    unread: [Indices; READERS],
}

/// Statistics kept of subflows that are gone.
const MAX_BURIED: usize = 256;

impl Subflows {
    pub(super) fn push(&mut self, subflow: Subflow) {
        // Exactly: most connections have few subflows, and keep them.
        self.briefs.reserve_exact(1);
        self.list.reserve_exact(1);
        self.briefs.push(Brief::new(subflow.id));
        self.list.push(subflow);
        self.renumber();
    }

    pub(super) fn remove(&mut self, index: usize) -> Subflow {
        self.briefs.remove(index);
        let removed = self.list.remove(index);
        self.renumber();
        removed
    }

    /// Keeps subflow `index` alone, and calls it `id`; returns the others, in no order.
    pub(super) fn keep_only(&mut self, index: usize, id: SubflowId) -> Vec<Subflow> {
        let mut kept = self.list.swap_remove(index);
        kept.id = id;
        self.briefs = vec![Brief::new(kept.id)];
        self.next_id = id.0 + 1;
        let others = std::mem::replace(&mut self.list, vec![kept]);
        self.renumber();
        others
    }

    pub(super) fn pop(&mut self) -> Option<Subflow> {
        self.briefs.pop();
        let popped = self.list.pop();
        self.renumber();
        popped
    }

    /// Keeps the statistics of a subflow that is gone. A peer that keeps joining and resetting costs no more than
    /// `MAX_BURIED` of them.
    pub(super) fn bury(&mut self, stats: SubflowStats) {
        self.buried.push(stats);
        if self.buried.len() > MAX_BURIED {
            self.buried.remove(0);
        }
    }

    /// The index of a subflow that is there.
    pub(crate) fn position(&self, id: SubflowId) -> Option<usize> {
        // As long as no subflow has gone, the index is the number.
        let index = usize::from(id.0);
        if self.briefs.get(index).is_some_and(|brief| brief.id == id) {
            return Some(index);
        }
        self.briefs.iter().position(|brief| brief.id == id)
    }

    /// The bit of a subflow in the log of sent data.
    pub(super) fn slot_of(&self, id: SubflowId) -> Option<u8> {
        self.position(id).map(|index| self.list[index].slot)
    }

    /// The initial subflow, while it is there.
    pub(super) fn initial(&self) -> Option<&Subflow> {
        self.list.iter().find(|subflow| !subflow.is_join())
    }

    /// Subflows that may carry data.
    pub(super) fn open(&self) -> impl Iterator<Item = &Subflow> {
        self.list.iter().filter(|subflow| subflow.is_open())
    }

    /// A bit that no subflow has.
    pub(super) fn free_slot(&self) -> Option<u8> {
        (0..MAX_SUBFLOWS as u8).find(|slot| self.list.iter().all(|subflow| subflow.slot != *slot))
    }

    /// All of them, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Subflow> {
        self.touch_all();
        self.list.iter_mut()
    }

    pub(super) fn first_mut(&mut self) -> Option<&mut Subflow> {
        self.touch(0);
        self.list.first_mut()
    }

    /// Subflow `index`, for a change that no set, timer or view shows.
    pub(super) fn unmarked(&mut self, index: usize) -> &mut Subflow {
        &mut self.list[index]
    }

    /// Something outside of subflow `index` has changed that its view shows.
    #[inline(always)]
    pub(super) fn touch(&mut self, index: usize) {
        self.marks.fresh.insert(index);
    }

    /// The same for the subflow with this identifier, if it is there.
    pub(super) fn touch_id(&mut self, id: SubflowId) {
        if let Some(index) = self.position(id) {
            self.touch(index);
        }
    }

    /// The same for all.
    pub(super) fn touch_all(&mut self) {
        self.marks.fresh = Indices::ALL;
    }

    /// Indices stand for other subflows than before: nothing that is kept by index holds.
    fn renumber(&mut self) {
        self.there = Indices::ALL.below(self.list.len());
        self.sets = Default::default();
        self.briefs.iter_mut().for_each(|brief| brief.kinds = 0);
        self.touch_all();
    }

    /// The subflows of a kind.
    pub(super) fn all(&mut self, kind: Kind) -> Indices {
        self.look();
        self.sets[kind as usize]
    }

    /// Subflows that may be of a kind: those that were at the latest look, and those that may have changed since.
    #[inline]
    pub(super) fn possible(&self, kind: Kind) -> Indices {
        let unread = self.marks.fresh.union(self.marks.unread[Reader::Kinds as usize]);
        self.sets[kind as usize].union(unread).intersection(self.there)
    }

    /// Tells whether none has anything to send or under way.
    pub(super) fn are_at_rest(&mut self) -> bool {
        // A look costs more than a question to one or two, and less than one to all.
        if self.list.len() > 2 {
            self.look();
        }
        !self.possible(Kind::Busy).any(|index| !self.list[index].tx.is_at_rest())
    }

    /// Returns the subflows that policies are shown: the usable ones, or the backups if no regular one is usable. If
    /// all subflows have failed, the connection goes on using them.
    pub(super) fn eligible(&mut self) -> Indices {
        SHOWN.into_iter().map(|kind| self.all(kind)).find(|set| !set.is_empty()).unwrap_or(Indices::NONE)
    }

    /// The same, worked out anew from each subflow: for those who only look.
    pub(super) fn eligible_now(&self) -> Indices {
        let of = |kind: Kind| {
            let mut set = Indices::NONE;
            let all = self.list.iter().enumerate();
            all.for_each(|(index, subflow)| set.put(index, kinds(subflow) >> kind as u16 & 1 != 0));
            set
        };
        SHOWN.into_iter().map(of).find(|set| !set.is_empty()).unwrap_or(Indices::NONE)
    }

    /// The open subflow that carries what belongs to the connection: the fastest.
    pub(super) fn control(&self) -> Option<usize> {
        self.fastest_open(|_| true)
    }

    /// The same among those that do not begin at `local`.
    pub(super) fn control_beside(&self, local: IpAddr) -> Option<usize> {
        self.fastest_open(|subflow| subflow.flow.src != local)
    }

    fn fastest_open(&self, counts: impl Fn(&Subflow) -> bool) -> Option<usize> {
        let open = self.list.iter().enumerate().filter(|(_, subflow)| subflow.is_open() && counts(subflow));
        open.min_by_key(|(_, subflow)| (subflow.liveness.potentially_failed, subflow.tx.rtt.srtt()))
            .map(|(index, _)| index)
    }

    /// Tells whether one more subflow may be established where at most `limit` may be.
    pub(super) fn has_room(&self, limit: usize) -> bool {
        let there = self.list.iter().filter(|subflow| !subflow.is_half_open_join()).count();
        there < limit.min(MAX_SUBFLOWS)
    }

    /// Returns true if the ports of `flow` are used by a single subflow to this peer, over all connections.
    pub(super) fn owns_ports(&self, flow: &FlowKey, demux: &Demux) -> bool {
        let of_peer = |flow: &FlowKey| self.list.iter().any(|subflow| subflow.flow.dst == flow.dst);
        demux.with_ports(flow).iter().all(|(other, _)| other == flow || !of_peer(other))
    }

    /// An identifier that no subflow has.
    pub(super) fn new_id(&mut self) -> SubflowId {
        // After 65536 joins the numbers begin again; one still in use is passed over.
        while self.position(SubflowId(self.next_id)).is_some() {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = SubflowId(self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        id
    }

    /// A packet of a subflow has left the first hop.
    pub(super) fn on_departed(&mut self, id: SubflowId, size: u64) {
        if let Some(index) = self.position(id) {
            let tx = &mut self[index].tx;
            tx.first_hop = tx.first_hop.saturating_sub(size);
        }
    }

    /// The peer has the data at offset `una`, and perhaps more: what carried it is of use.
    pub(super) fn credit_carriers(&mut self, log: &SentLog, una: u64) {
        for index in self.possible(Kind::Unproven) {
            let subflow = &self.list[index];
            if !subflow.useful && log.carriers(una) & bit(subflow.slot) != 0 {
                self[index].useful = true;
            }
        }
    }

    /// All before `una` has arrived: subflows suspected over older data get another chance. Tells whether there were
    /// any.
    pub(super) fn clear_suspects(&mut self, una: u64) -> bool {
        let mut settled = false;
        for index in self.possible(Kind::Suspected) {
            if self.list[index].liveness.suspect_until.is_some_and(|until| until <= una) {
                self[index].liveness.suspect_until = None;
                settled = true;
            }
        }
        settled
    }

    /// Fragments that subflows hold out of order.
    pub(super) fn held_fragments(&self) -> u64 {
        self.possible(Kind::Holding).map(|index| self.list[index].rx.ofo.fragments() as u64).sum()
    }

    /// Brings the kinds up to date.
    #[inline]
    fn look(&mut self) {
        for index in self.take_changed(Reader::Kinds).intersection(self.there) {
            let kinds = kinds(&self.list[index]);
            let known = std::mem::replace(&mut self.briefs[index].kinds, kinds);
            let mut changed = kinds ^ known;
            while changed != 0 {
                let kind = changed.trailing_zeros() as usize;
                self.sets[kind].put(index, kinds >> kind & 1 != 0);
                changed &= changed - 1;
            }
        }
        let current = |(subflow, brief): (&Subflow, &Brief)| (kinds(subflow), subflow.id) == (brief.kinds, brief.id);
        debug_assert!(self.list.iter().zip(&self.briefs).all(current), "a change has marked its subflow");
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
        for index in self.take_changed(Reader::Timers).intersection(self.there) {
            self.briefs[index].due = self.list[index].add_timers(Earliest::NONE, keepalive).get();
        }
    }

    /// Tells whether a timer of subflow `index` has run out.
    pub(super) fn is_due(&mut self, now: Instant, index: usize, keepalive: &Keepalive) -> bool {
        self.look_at_timers(keepalive);
        self.briefs[index].due.is_some_and(|due| due <= now)
    }

    /// Subflows that may have changed since `reader` has looked, which is now. [`Indices::ALL`] after indices have
    /// moved.
    #[inline]
    pub(super) fn take_changed(&mut self, reader: Reader) -> Indices {
        let Marks { fresh, unread } = &mut self.marks;
        if !fresh.is_empty() {
            unread.iter_mut().for_each(|one| *one = one.union(*fresh));
            *fresh = Indices::NONE;
        }
        std::mem::take(&mut unread[reader as usize])
    }

    /// The longest retransmission timeout.
    pub(super) fn longest_rto(&self) -> Duration {
        self.list.iter().map(|subflow| subflow.tx.rtt.rto()).max().unwrap_or(Duration::from_secs(1))
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

impl Deref for Subflows {
    type Target = [Subflow];

    fn deref(&self) -> &[Subflow] {
        &self.list
    }
}

impl Index<usize> for Subflows {
    type Output = Subflow;

    #[inline(always)]
    fn index(&self, index: usize) -> &Subflow {
        &self.list[index]
    }
}

impl IndexMut<usize> for Subflows {
    #[inline(always)]
    fn index_mut(&mut self, index: usize) -> &mut Subflow {
        self.touch(index);
        &mut self.list[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Subflow 0 with an RTT of 40 ms and subflow 1 with one of 10 ms.
    fn two() -> Subflows {
        let mut subflows = Subflows::default();
        [40, 10].into_iter().zip(0..).for_each(|(ms, number)| {
            subflows.push(Subflow::sample(number, Duration::from_millis(ms)));
        });
        subflows
    }

    #[test]
    fn kinds_follow_each_change() {
        let mut subflows = two();
        assert!(subflows.all(Kind::Acknowledging).is_empty());
        subflows[1].rx.ack.now = true;
        assert_eq!(subflows.possible(Kind::Acknowledging).collect::<Vec<_>>(), [1]);
        assert_eq!(subflows.all(Kind::Acknowledging).collect::<Vec<_>>(), [1]);
        subflows[1].rx.ack.now = false;
        assert!(subflows.all(Kind::Acknowledging).is_empty());
    }

    /// Usable ones first, then backups, then all open ones.
    #[test]
    fn failed_subflows_are_shown_where_there_is_nothing_better() {
        let mut subflows = two();
        let mut shown = vec![subflows.eligible().collect::<Vec<_>>()];
        subflows[1].backup_remote = true;
        shown.push(subflows.eligible().collect());
        subflows[0].liveness.potentially_failed = true;
        shown.push(subflows.eligible().collect());
        subflows[1].liveness.stale = true;
        shown.push(subflows.eligible().collect());
        assert_eq!(shown, [vec![0, 1], vec![0], vec![1], vec![0, 1]]);
        assert_eq!(subflows.eligible_now().collect::<Vec<_>>(), [0, 1]);
        subflows[1].liveness.stale = false;
        assert_eq!(subflows.eligible_now().collect::<Vec<_>>(), [1]);
        subflows[1].liveness.stale = true;
        assert_eq!(subflows.control(), Some(1), "the fastest that has not failed carries control options");
        assert_eq!(subflows.control_beside(subflows[1].flow.src), Some(0));
    }

    /// A change past the marks would leave a kind behind that does not hold.
    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "a change has marked its subflow")]
    fn a_change_without_a_mark_is_found() {
        let mut subflows = two();
        assert_eq!(subflows.all(Kind::Regular).len(), 2);
        subflows.unmarked(0).liveness.stale = true;
        subflows.all(Kind::Regular);
    }

    #[test]
    fn timers_are_seen_again_after_a_change_and_a_removal() {
        let (mut subflows, off) = (two(), Keepalive::default());
        assert_eq!(subflows.add_timers(Earliest::NONE, &off).get(), None);
        subflows[1].rx.ack.deadline = Some(at(5));
        assert_eq!(subflows.add_timers(Earliest::NONE, &off).get(), Some(at(5)));
        assert!(!subflows.is_due(at(9), 0, &off));
        subflows.remove(0);
        assert!(subflows.is_due(at(5), 0, &off) && !subflows.is_due(at(4), 0, &off));
    }

    #[test]
    fn a_subflow_is_found_after_another_has_gone() {
        let mut subflows = two();
        subflows.push(Subflow::sample(2, Duration::from_millis(5)));
        subflows.remove(0);
        assert_eq!([0, 1, 2].map(|id| subflows.position(SubflowId(id))), [None, Some(0), Some(1)]);
    }

    #[test]
    fn suspects_are_cleared_once_older_data_has_arrived() {
        let mut subflows = two();
        subflows[0].liveness.suspect_until = Some(1000);
        assert_eq!(subflows.eligible().collect::<Vec<_>>(), [1]);
        assert_eq!([999, 1000, 1000].map(|una| subflows.clear_suspects(una)), [false, true, false]);
        assert_eq!(subflows.eligible().collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn identifiers_begin_again_and_pass_over_those_in_use() {
        let mut subflows = two();
        subflows.next_id = u16::MAX;
        assert_eq!([(); 2].map(|()| subflows.new_id()), [SubflowId(u16::MAX), SubflowId(2)]);
    }
}
