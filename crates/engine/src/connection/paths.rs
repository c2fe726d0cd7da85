//! The path manager: which subflows there should be, between the addresses that both ends know of (`addresses`).

use super::addresses::Announcement;
use super::history::History;
use super::lost_subflows::LostSubflows;
use super::race::Race;
use super::reopening::Reopening;
use super::slots::Slot;
use super::{Connection, Mode, Role};
use crate::deadline::earliest;
use crate::locals::Locals;
use crate::shared::Shared;
use anabranch_units::{AddressId, Duration, Instant};
use anabranch_wire::{FlowKey, MpOption, RemoveAddr};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// Paths on which subflows begin, should be, and were.
#[derive(Default)]
pub(super) struct Paths {
    pub(super) manager: PathManager,
    /// Measurements of paths whose subflows are gone.
    pub(super) history: History,
    /// Attempts at the first subflow.
    pub(super) race: Race,
    pub(super) reopening: Reopening,
    pub(super) lost_subflows: LostSubflows,
    /// Destination of the client's first SYN.
    pub(super) first_remote: Option<SocketAddr>,
    /// Our address of the initial subflow, which has identifier 0 for as long as the connection lives (RFC 8684
    /// §3.4.1).
    pub(super) initial_address: Option<IpAddr>,
}

/// Addresses that the peer has told and that it was told.
#[derive(Default)]
pub(super) struct PathManager {
    /// Announced by the peer.
    pub(super) remote: Vec<(AddressId, SocketAddr)>,
    /// Ours to be announced, in turn: the first waits for its echo.
    pub(super) announcements: VecDeque<Announcement>,
    /// PathTruth to the peer and not withdrawn.
    pub(super) announced: Vec<AddressId>,
    /// No subflow may be opened to the destination of the first SYN: flag C, or the address was withdrawn.
    initial_denied: bool,
    /// Addresses between which a subflow was lost, and the times of the next attempts.
    retries: Vec<Retry>,
}

/// A pair of addresses between which a subflow was lost.
#[derive(Clone, Copy)]
struct Retry {
    local: IpAddr,
    remote: IpAddr,
    /// Joins in a row that carried nothing.
    failures: u32,
    /// Earliest time of the attempt; `None` once it has come.
    at: Option<Instant>,
    /// The peer called the failure permanent (RFC 8684 §3.6).
    barred: bool,
}

/// The pause before a join doubles with each in a row that fails, this often at most: from a second to about a minute.
const MAX_RETRY_DOUBLINGS: u32 = 6;
/// Pairs of addresses remembered because joining them failed.
const MAX_RETRIES: usize = 64;

impl Paths {
    /// Time at which an announcement, an attempt at a subflow or a new beginning is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        earliest([self.manager.deadline(), self.race.deadline(), self.reopening.deadline()])
    }

    /// Returns our identifier of a subflow's address: 0 for the address of the initial subflow (RFC 8684 §3.2), its own
    /// for all others.
    pub(super) fn address_id(&self, flow: &FlowKey, locals: &Locals) -> AddressId {
        if self.initial_address.is_none_or(|initial| initial == flow.src) {
            return AddressId(0);
        }
        locals.id_of(flow.src).unwrap_or(AddressId(0))
    }
}

impl PathManager {
    /// The peer accepts no further subflows where the first SYN went (RFC 8684 §3.1, flag C).
    pub(super) fn deny_initial(&mut self, denied: bool) {
        self.initial_denied = denied;
    }

    /// A subflow of `flow` was lost: another attempt is due after `pause`, and later with each in a row that has not
    /// `worked`.
    fn on_lost(&mut self, now: Instant, flow: &FlowKey, worked: bool, pause: Duration) {
        let index = self.retry_index(flow);
        let retry = &mut self.retries[index];
        retry.failures = if worked { 0 } else { retry.failures + 1 };
        let doublings = retry.failures.saturating_sub(1).min(MAX_RETRY_DOUBLINGS);
        retry.at = Some(now + pause * (1 << doublings));
    }

    /// Tells whether a join between these addresses has to wait, or was called hopeless where that matters (`choosy`).
    fn is_too_early(&self, now: Instant, local: IpAddr, remote: IpAddr, choosy: bool) -> bool {
        let here = |retry: &&Retry| (retry.local, retry.remote) == (local, remote);
        let waits = |retry: &Retry| (retry.barred && choosy) || retry.at.is_some_and(|at| at > now);
        self.retries.iter().filter(here).any(waits)
    }

    /// Tells whether the time of further attempts has come, which then count as made.
    fn take_due_retries(&mut self, now: Instant) -> bool {
        let due = |retry: &&mut Retry| retry.at.is_some_and(|at| at <= now);
        self.retries.iter_mut().filter(due).map(|retry| retry.at = None).count() > 0
    }

    /// Has an address of ours announced, in its turn.
    pub(super) fn enqueue(&mut self, now: Instant, id: AddressId, address: IpAddr) {
        self.announcements.push_back(Announcement { id, address, sent: 0, next: now });
    }

    /// Bars subflows between these addresses from now on.
    pub(super) fn bar(&mut self, flow: &FlowKey) {
        let index = self.retry_index(flow);
        self.retries[index].barred = true;
    }

    /// Forgets failures on the way to this address of the peer.
    pub(super) fn forgive(&mut self, remote: IpAddr) {
        self.retries.retain(|retry| retry.remote != remote);
    }

    /// The same of all addresses.
    pub(super) fn forgive_all(&mut self) {
        self.retries.clear();
    }

    /// Stops announcing this address of ours, which is withdrawn.
    fn stop_announcing(&mut self, now: Instant, id: AddressId) {
        self.announcements.retain(|announcement| announcement.id != id);
        self.await_announcement(now);
        self.announced.retain(|announced| *announced != id);
    }

    /// The announcement that is first now may have waited for another, and cannot have been due before.
    pub(super) fn await_announcement(&mut self, now: Instant) {
        if let Some(first) = self.announcements.front_mut() {
            first.next = first.next.max(now);
        }
    }

    /// Time at which an announcement or another attempt at a subflow is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let announcement = self.announcements.front().map(|announcement| announcement.next);
        earliest([announcement, self.retries.iter().filter_map(|retry| retry.at).min()])
    }

    fn retry_index(&mut self, flow: &FlowKey) -> usize {
        let known = self.retries.iter().position(|retry| (retry.local, retry.remote) == (flow.src, flow.dst));
        known.unwrap_or_else(|| {
            // A peer that announces ever new addresses costs no more than this; the oldest failure is forgotten.
            if self.retries.len() == MAX_RETRIES {
                self.retries.remove(0);
            }
            self.retries.push(Retry { local: flow.src, remote: flow.dst, failures: 0, at: None, barred: false });
            self.retries.len() - 1
        })
    }
}

impl Connection {
    /// Opens the subflows that should be there and are not: the full mesh of addresses, from the connecting side.
    pub(super) fn join_missing(&mut self, now: Instant, shared: &mut Shared) {
        // One direction may be done and the other still want more paths.
        let closing = self.sender.outgoing.fin_acked && self.receiver.finished();
        if self.role == Role::Server
            || self.life.mode() != Mode::Multipath
            || !self.life.admits_joins()
            || closing
            || !shared.config.full_mesh
        {
            return;
        }
        let Some(first) = self.paths.first_remote else { return };
        let mut remotes = vec![(AddressId(0), first)];
        if self.paths.manager.initial_denied {
            remotes.clear();
        }
        remotes.extend(self.paths.manager.remote.iter().filter(|(_, address)| *address != first));
        // A path that the peer called hopeless is not tried while there is a better one (RFC 8684 §3.6 SHOULD NOT).
        let choosy = !self.subflows.iter().all(|subflow| subflow.tx.repeats_in_vain());
        let locals = shared.locals.iter().map(|(_, address)| address.ip);
        for local in locals.filter(|local| !shared.down.contains(local)).collect::<Vec<_>>() {
            for (id, remote) in &remotes {
                let there = |flow: &FlowKey| flow.src == local && flow.dst == remote.ip();
                let same_family = local.is_ipv4() == remote.is_ipv4();
                if self.paths.manager.is_too_early(now, local, remote.ip(), choosy) {
                    continue;
                }
                let is_missing = same_family && !self.subflows.iter().any(|s| there(&s.flow));
                if !self.subflows.has_room_for_own(shared.config.max_subflows) || !is_missing {
                    continue;
                }
                match shared.free_flow(local, *remote) {
                    Some(flow) => self.join(now, flow, *id, shared),
                    // Perhaps there is a port after the usual pause.
                    None => self.schedule_rejoin(now, &FlowKey::new((local, 0).into(), *remote), true, shared),
                }
            }
        }
    }

    /// The subflow of `flow` is gone; another attempt is due in a while. `worked` says whether it ever carried
    /// anything: a path that lets no subflow work (a middlebox, a peer that refuses) is tried less and less often.
    pub(super) fn schedule_rejoin(&mut self, now: Instant, flow: &FlowKey, worked: bool, shared: &Shared) {
        let joins = self.role == Role::Client && self.life.mode() == Mode::Multipath;
        if let Some(pause) = shared.config.rejoin.filter(|_| joins) {
            self.paths.manager.on_lost(now, flow, worked, pause);
        }
    }

    pub(super) fn on_paths_deadline(&mut self, now: Instant, shared: &mut Shared) {
        if self.paths.manager.take_due_retries(now) {
            self.join_missing(now, shared);
        }
        if self.paths.manager.announcements.front().is_some_and(|first| first.next <= now) {
            self.announce(now, shared);
            // Without an open subflow nothing could be said; ask again rather than spin.
            if let Some(first) = self.paths.manager.announcements.front_mut().filter(|first| first.next <= now) {
                first.next = now + Duration::from_secs(1);
            }
        }
    }

    /// An interface of ours went down or came up.
    pub(crate) fn on_carrier(&mut self, now: Instant, local: IpAddr, up: bool, shared: &mut Shared) {
        if self.life.mode() != Mode::Multipath {
            return;
        }
        let announced = shared.locals.id_of(local);
        if up {
            return self.on_address_added(now, local, shared);
        }
        let mut withdrawn = announced.filter(|id| self.paths.manager.announced.contains(id));
        // The last subflow stays: its timer will find out whether the path returns.
        while let Some(slot) = self.subflows.find(|subflow| subflow.flow.src == local) {
            let others = self.subflows.open().any(|subflow| subflow.flow.src != local);
            if !others {
                break;
            }
            withdrawn = Some(self.subflows[slot].local_address);
            self.bury(now, slot, shared);
        }
        if self.subflows.iter().any(|subflow| subflow.flow.src == local) {
            self.on_first_path_dead(now, shared);
        }
        if let Some(id) = announced {
            self.paths.manager.stop_announcing(now, id);
        }
        if let Some((id, slot)) = withdrawn.zip(self.subflows.control()) {
            self.send_ack(now, slot, vec![MpOption::RemoveAddr(RemoveAddr { ids: vec![id] })], shared);
        }
    }

    /// Takes in a new address of ours, or one whose interface works again.
    pub(crate) fn on_address_added(&mut self, now: Instant, local: IpAddr, shared: &mut Shared) {
        if self.life.mode() != Mode::Multipath {
            return;
        }
        self.paths.manager.retries.retain(|retry| retry.local != local);
        self.join_missing(now, shared);
        let id = shared.locals.id_of(local).filter(|_| !shared.down.contains(&local));
        self.announce_again(now, id, local, shared);
    }

    /// The address `local`, known to peers as `id`, is ours no longer (RFC 8684 §3.4.2).
    pub(crate) fn on_address_removed(&mut self, now: Instant, local: IpAddr, id: AddressId, shared: &mut Shared) {
        if self.life.mode() != Mode::Multipath {
            return;
        }
        let id = if self.paths.initial_address == Some(local) { AddressId(0) } else { id };
        let used = self.subflows.iter().any(|subflow| subflow.local_address == id && subflow.flow.src == local);
        let known = used || id == AddressId(0) || self.paths.manager.announced.contains(&id);
        self.paths.manager.stop_announcing(now, id);
        self.paths.manager.retries.retain(|retry| retry.local != local);
        while let Some(slot) = self.subflows.find(|subflow| subflow.flow.src == local && subflow.is_unfinished_join()) {
            // The peer does not use the subflow before it is open.
            self.send_reset(now, slot, Vec::new(), shared);
            self.bury(now, slot, shared);
        }
        let Some(other) = self.subflows.control_beside(local) else { return };
        if known {
            self.send_ack(now, other, vec![MpOption::RemoveAddr(RemoveAddr { ids: vec![id] })], shared);
        }
        let mut left = self.subflows.there();
        while let Some(slot) = self.subflows.take_first(&mut left) {
            if self.subflows[slot].flow.src == local {
                self.leave_subflow(now, slot, shared);
            }
        }
    }

    /// The application changes a subflow's priority (RFC 8684 §3.3.8).
    pub(crate) fn set_backup(&mut self, now: Instant, slot: Slot, backup: bool, shared: &mut Shared) {
        if self.life.mode() == Mode::Multipath && self.subflows[slot].backup_local != backup {
            self.subflows[slot].backup_local = backup;
            self.send_ack(now, slot, vec![MpOption::Prio { backup }], shared);
            self.sender.on_subflows_changed(now, &self.subflows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn flow(number: u8) -> FlowKey {
        FlowKey::new(([10, 0, number, 1], 4000).into(), ([10, 1, 0, 1], 80).into())
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_first_of_announcements_and_retries_is_the_deadline() {
        let mut paths = Paths::default();
        assert_eq!(paths.deadline(), None);
        paths.manager.enqueue(at(9), AddressId(2), [10, 0, 2, 1].into());
        paths.manager.on_lost(at(4), &flow(1), true, SECOND);
        assert_eq!(paths.deadline(), Some(at(5)));
        assert!(!paths.manager.take_due_retries(at(4)) && paths.manager.take_due_retries(at(5)));
        assert_eq!(paths.deadline(), Some(at(9)), "an attempt that has begun is not waited for");
    }

    #[test]
    fn pauses_double_with_each_join_that_carried_nothing() {
        let mut manager = PathManager::default();
        let mut lose = |worked| {
            manager.on_lost(at(0), &flow(1), worked, SECOND);
            manager.deadline()
        };
        let failed = [(); 9].map(|()| lose(false));
        assert_eq!(failed, [1, 2, 4, 8, 16, 32, 64, 64, 64].map(|pause| Some(at(pause))));
        assert_eq!([lose(true), lose(false)], [1, 1].map(|pause| Some(at(pause))));
    }

    #[test]
    fn a_barred_path_is_tried_only_without_a_better_one() {
        let mut manager = PathManager::default();
        let FlowKey { src, dst, .. } = flow(1);
        manager.bar(&flow(1));
        assert_eq!([true, false].map(|choosy| manager.is_too_early(at(0), src, dst, choosy)), [true, false]);
        manager.on_lost(at(0), &flow(1), true, SECOND);
        assert_eq!([0, 1].map(|now| manager.is_too_early(at(now), src, dst, false)), [true, false]);
        assert!(!manager.is_too_early(at(0), flow(2).src, dst, true), "another path");
    }
}
