//! The path manager: which subflows there should be, and what the peer must know of our addresses (RFC 8684 §3.4).

use super::{Connection, Mode, Role};
use crate::deadline::earliest;
use crate::shared::Shared;
use anabranch_units::{AddressId, Duration, Instant, add_addr_hmac, same_mac};
use anabranch_wire::{AddAddr, FlowKey, MpOption, RemoveAddr, ResetReason};
use std::net::{IpAddr, SocketAddr};

/// What is known of the peer's addresses and told of ours.
#[derive(Default)]
pub(super) struct PathManager {
    /// Announced by the peer.
    remote: Vec<(AddressId, SocketAddr)>,
    announcements: Vec<Announcement>,
    /// Nothing may be opened to where the first SYN went: flag C, or the address was withdrawn.
    initial_denied: bool,
    /// Where a subflow was lost, and when it is tried again.
    retries: Vec<Retry>,
}

/// A pair of addresses between which a subflow was lost.
#[derive(Clone, Copy)]
struct Retry {
    local: IpAddr,
    remote: IpAddr,
    /// Joins in a row that carried nothing.
    failures: u32,
    /// Not before this; `None` once that time has come.
    at: Option<Instant>,
}

/// An address of ours that the peer should know.
#[derive(Clone, Copy)]
struct Announcement {
    id: AddressId,
    address: IpAddr,
    sent: u32,
    next: Instant,
}

/// ADD_ADDR is repeated this often without an echo (as Linux does).
const MAX_ANNOUNCEMENTS: u32 = 3;
/// The pause before a join doubles with each in a row that fails, this often at most: from a second to about a minute.
const MAX_RETRY_DOUBLINGS: u32 = 6;
/// Pairs of addresses remembered because joining them failed.
const MAX_RETRIES: usize = 64;
/// Addresses remembered of a peer.
const MAX_REMOTE: usize = 8;

impl PathManager {
    /// The peer accepts no further subflows where the first SYN went (RFC 8684 §3.1, flag C).
    pub(super) fn deny_initial(&mut self, denied: bool) {
        self.initial_denied = denied;
    }
}

impl Connection {
    /// A subflow was established: announce our further addresses once.
    pub(super) fn on_established_paths(&mut self, now: Instant, shared: &mut Shared) {
        if self.mode != Mode::Multipath || !shared.config.announce || self.role == Role::Client || self.ever_joined {
            return;
        }
        let Some(initial) = self.initial().map(|subflow| subflow.flow) else { return };
        for (position, address) in shared.config.addresses.iter().enumerate() {
            if address.ip != initial.src && !shared.down.contains(&address.ip) {
                let id = AddressId((position + 1) as u8);
                self.paths.announcements.push(Announcement { id, address: address.ip, sent: 0, next: now });
            }
        }
        self.announce(now, shared);
    }

    fn announce(&mut self, now: Instant, shared: &mut Shared) {
        let Some((index, key)) = self.control_subflow().zip(self.remote_key) else { return };
        let mut due = Vec::new();
        let timeout = self.subflows[index].rtt.rto();
        for announcement in &mut self.paths.announcements {
            if announcement.next <= now && announcement.sent < MAX_ANNOUNCEMENTS {
                announcement.next = now + timeout * (1 << announcement.sent);
                announcement.sent += 1;
                let hmac = add_addr_hmac(self.local_key, key, announcement.id, announcement.address, None);
                let (id, address) = (announcement.id, announcement.address);
                due.push(AddAddr { id, address, port: None, hmac: Some(hmac.last_8()) });
            }
        }
        self.paths
            .announcements
            .retain(|announcement| announcement.sent < MAX_ANNOUNCEMENTS || announcement.next > now);
        for add in due {
            self.send_ack(now, index, vec![MpOption::AddAddr(add)], shared);
        }
    }

    /// The open subflow that carries what belongs to the connection: the fastest.
    pub(super) fn control_subflow(&self) -> Option<usize> {
        let open = self.subflows.iter().enumerate().filter(|(_, subflow)| subflow.is_open());
        open.min_by_key(|(_, subflow)| (subflow.potentially_failed, subflow.rtt.srtt())).map(|(index, _)| index)
    }

    /// The peer has shown that it is an MPTCP peer: joins may begin.
    pub(super) fn on_confirmed(&mut self, now: Instant, shared: &mut Shared) {
        self.join_missing(now, shared);
    }

    /// Opens the subflows that should be there and are not: the full mesh of addresses, from the connecting side.
    fn join_missing(&mut self, now: Instant, shared: &mut Shared) {
        let closing = self.outgoing.fin_acked || self.receiver.finished();
        if self.role == Role::Server
            || self.mode != Mode::Multipath
            || !self.confirmed
            || closing
            || !shared.config.full_mesh
        {
            return;
        }
        let Some(first) = self.first_remote else { return };
        let mut remotes = vec![(AddressId(0), first)];
        if self.paths.initial_denied {
            remotes.clear();
        }
        remotes.extend(self.paths.remote.iter().filter(|(_, address)| *address != first));
        let limit = shared.config.max_subflows.min(crate::config::MAX_SUBFLOWS);
        let locals: Vec<IpAddr> = shared.config.addresses.iter().map(|address| address.ip).collect();
        for local in locals.into_iter().filter(|local| !shared.down.contains(local)).collect::<Vec<_>>() {
            for (id, remote) in &remotes {
                let there = |flow: &FlowKey| flow.src == local && flow.dst == remote.ip();
                let same_family = local.is_ipv4() == remote.is_ipv4();
                let too_early = |retry: &Retry| {
                    (retry.local, retry.remote) == (local, remote.ip()) && retry.at.is_some_and(|at| at > now)
                };
                if self.paths.retries.iter().any(too_early) {
                    continue;
                }
                if self.subflows.len() < limit && same_family && !self.subflows.iter().any(|s| there(&s.flow)) {
                    let flow = shared.free_flow(local, *remote);
                    self.join(now, flow, *id, shared);
                }
            }
        }
    }

    /// The subflow of `flow` is gone; another attempt is due in a while. `worked` says whether it ever carried anything: a
    /// path that lets no subflow work (a middlebox, a peer that refuses) is tried less and less often.
    pub(super) fn schedule_rejoin(&mut self, now: Instant, flow: &FlowKey, worked: bool, shared: &Shared) {
        let Some(pause) = shared.config.rejoin.filter(|_| self.role == Role::Client && self.mode == Mode::Multipath)
        else {
            return;
        };
        let retries = &mut self.paths.retries;
        let known = retries.iter().position(|retry| (retry.local, retry.remote) == (flow.src, flow.dst));
        let index = known.unwrap_or_else(|| {
            // A peer that announces ever new addresses costs no more than this; the oldest failure is forgotten.
            if retries.len() == MAX_RETRIES {
                retries.remove(0);
            }
            retries.push(Retry { local: flow.src, remote: flow.dst, failures: 0, at: None });
            retries.len() - 1
        });
        let retry = &mut retries[index];
        retry.failures = if worked { 0 } else { retry.failures + 1 };
        let doublings = retry.failures.saturating_sub(1).min(MAX_RETRY_DOUBLINGS);
        retry.at = Some(now + pause * (1 << doublings));
    }

    pub(super) fn paths_deadline(&self) -> Option<Instant> {
        let announcements = self.paths.announcements.iter().map(|announcement| announcement.next);
        earliest([announcements.min(), self.paths.retries.iter().filter_map(|retry| retry.at).min()])
    }

    pub(super) fn on_paths_deadline(&mut self, now: Instant, shared: &mut Shared) {
        let due = |retry: &&mut Retry| retry.at.is_some_and(|at| at <= now);
        if self.paths.retries.iter_mut().filter(due).map(|retry| retry.at = None).count() > 0 {
            self.join_missing(now, shared);
        }
        if self.paths.announcements.iter().any(|announcement| announcement.next <= now) {
            self.announce(now, shared);
            // Without an open subflow nothing could be said; ask again rather than spin.
            for announcement in &mut self.paths.announcements {
                if announcement.next <= now {
                    announcement.next = now + Duration::from_secs(1);
                }
            }
        }
    }

    /// An address of the peer, or the echo of one of ours (RFC 8684 §3.4.1).
    pub(super) fn on_add_addr(&mut self, now: Instant, index: usize, add: &AddAddr, shared: &mut Shared) {
        let Some(hmac) = add.hmac else {
            self.paths.announcements.retain(|announcement| announcement.id != add.id);
            return;
        };
        let Some(key) = self.remote_key else { return };
        let expected = add_addr_hmac(key, self.local_key, add.id, add.address, add.port);
        if !same_mac(&hmac, &expected.last_8()) {
            shared.counters.bad_add_addr += 1;
            return;
        }
        self.send_ack(now, index, vec![MpOption::AddAddr(AddAddr { hmac: None, ..*add })], shared);
        let port = add.port.or(self.first_remote.map(|address| address.port()));
        let Some(port) = port else { return };
        let address = SocketAddr::new(add.address, port);
        self.paths.remote.retain(|(id, _)| *id != add.id);
        if self.paths.remote.len() < MAX_REMOTE {
            self.paths.remote.push((add.id, address));
        }
        self.join_missing(now, shared);
    }

    /// The peer withdraws addresses (RFC 8684 §3.4.2): subflows to them are gone.
    pub(super) fn on_remove_addr(&mut self, now: Instant, remove: &RemoveAddr, shared: &mut Shared) {
        for id in &remove.ids {
            self.paths.remote.retain(|(known, _)| known != id);
            while let Some(index) = self.subflows.iter().position(|s| s.remote_address == *id && s.is_open()) {
                if self.open_subflows().count() < 2 {
                    break;
                }
                self.bury(now, index, shared);
            }
        }
    }

    /// An interface of ours went down or came up.
    pub(crate) fn on_carrier(&mut self, now: Instant, local: IpAddr, up: bool, shared: &mut Shared) {
        if self.mode != Mode::Multipath {
            return;
        }
        if up {
            self.paths.retries.retain(|retry| retry.local != local);
            self.join_missing(now, shared);
            return;
        }
        let mut withdrawn = None;
        // The last subflow stays: its timer will find out whether the path returns.
        while let Some(index) = self.subflows.iter().position(|subflow| subflow.flow.src == local) {
            let others = self.open_subflows().any(|subflow| subflow.flow.src != local);
            if !others {
                break;
            }
            withdrawn = Some(self.subflows[index].local_address);
            self.bury(now, index, shared);
        }
        if let Some((id, index)) = withdrawn.zip(self.control_subflow()) {
            self.send_ack(now, index, vec![MpOption::RemoveAddr(RemoveAddr { ids: vec![id] })], shared);
        }
    }

    /// The application changes a subflow's priority (RFC 8684 §3.3.8).
    pub(crate) fn set_backup(&mut self, now: Instant, index: usize, backup: bool, shared: &mut Shared) {
        if self.mode == Mode::Multipath && self.subflows[index].backup_local != backup {
            self.subflows[index].backup_local = backup;
            self.send_ack(now, index, vec![MpOption::Prio { backup }], shared);
            self.subflows_changed(now);
        }
    }

    /// Resets subflow `index` and tells the peer why.
    pub(super) fn kill(&mut self, now: Instant, index: usize, reason: ResetReason, shared: &mut Shared) {
        let explain = self.mode == Mode::Multipath;
        let option = shared.reset_option(reason);
        self.send_reset(now, index, if explain { vec![option] } else { Vec::new() }, shared);
        self.bury(now, index, shared);
    }
}
