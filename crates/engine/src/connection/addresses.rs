//! Announcements of addresses between the two ends: ADD_ADDR and REMOVE_ADDR (RFC 8684 §3.4).

use super::paths::PathManager;
use super::slots::Slot;
use super::{Connection, Mode, Role};
use crate::shared::Shared;
use crate::subflow::{RemovalProbe, State};
use anabranch_units::{AddressId, Duration, Instant, add_addr_hmac, same_mac};
use anabranch_wire::{AddAddr, MpOption, RemoveAddr, ResetReason};
use std::net::{IpAddr, SocketAddr};

/// An address of ours that the peer should know.
#[derive(Clone, Copy)]
pub(super) struct Announcement {
    pub(super) id: AddressId,
    pub(super) address: IpAddr,
    pub(super) sent: u32,
    pub(super) next: Instant,
}

/// ADD_ADDRs of one address without an echo, the first included (as Linux does); then the next address has its turn.
const MAX_ANNOUNCEMENTS: u32 = 3;
/// Addresses remembered of a peer.
const MAX_REMOTE: usize = 8;
/// Keepalives to a subflow whose address was withdrawn, an RTO apart.
const REMOVAL_PROBES: u32 = 2;

impl PathManager {
    /// The address to be announced now, and again after an `rto` and longer pauses, unless it is echoed.
    fn take_announcement(&mut self, now: Instant, rto: Duration) -> Option<(AddressId, IpAddr)> {
        let given_up = |first: &Announcement| first.sent >= MAX_ANNOUNCEMENTS && first.next <= now;
        while self.announcements.front().is_some_and(given_up) {
            self.announcements.pop_front();
        }
        let first = self.announcements.front_mut().filter(|first| first.next <= now)?;
        first.next = now + rto * (1 << first.sent);
        first.sent += 1;
        let (id, address) = (first.id, first.address);
        if !self.announced.contains(&id) {
            self.announced.push(id);
        }
        Some((id, address))
    }
}

impl Connection {
    /// A subflow was established: announce our further addresses once.
    pub(super) fn on_established_paths(&mut self, now: Instant, shared: &mut Shared) {
        if self.life.mode() != Mode::Multipath
            || !shared.config.announce
            || self.role == Role::Client
            || self.subflows.joined > 0
        {
            return;
        }
        let Some(initial) = self.paths.initial_address else { return };
        for (id, address) in shared.locals.iter() {
            if address.ip != initial && !shared.down.contains(&address.ip) {
                self.paths.manager.enqueue(now, id, address.ip);
            }
        }
        self.announce(now, shared);
    }

    /// An interface of ours came up again, or is new.
    pub(super) fn announce_again(&mut self, now: Instant, id: Option<AddressId>, address: IpAddr, shared: &mut Shared) {
        let initial = self.paths.initial_address == Some(address);
        let Some(id) = id.filter(|_| shared.config.announce && self.role == Role::Server && !initial) else { return };
        if self.paths.manager.announcements.iter().all(|announcement| announcement.id != id) {
            self.paths.manager.enqueue(now, id, address);
        }
        self.announce(now, shared);
    }

    /// Sends the announcement that is due. One waits for its echo at a time, and the next follows the echo: Linux drops
    /// an ADD_ADDR that comes while it still handles another.
    pub(super) fn announce(&mut self, now: Instant, shared: &mut Shared) {
        self.paths.manager.await_announcement(now);
        let Some((slot, key)) = self.subflows.control().zip(self.keys.remote) else { return };
        let rto = self.subflows[slot].tx.rtt.rto();
        let Some((id, address)) = self.paths.manager.take_announcement(now, rto) else { return };
        let port = shared.config.announced_port;
        let hmac = add_addr_hmac(self.keys.local, key, id, address, port);
        let add = AddAddr { id, address, port, hmac: Some(hmac.last_8()) };
        self.send_ack(now, slot, vec![MpOption::AddAddr(add)], shared);
    }

    /// An address of the peer, or the echo of one of ours (RFC 8684 §3.4.1).
    pub(super) fn on_add_addr(&mut self, now: Instant, slot: Slot, add: &AddAddr, shared: &mut Shared) {
        let Some(hmac) = add.hmac else {
            self.paths.manager.announcements.retain(|ours| (ours.id, ours.address) != (add.id, add.address));
            return self.announce(now, shared);
        };
        let Some(key) = self.keys.remote else { return };
        let expected = add_addr_hmac(key, self.keys.local, add.id, add.address, add.port);
        if !same_mac(&hmac, &expected.last_8()) {
            shared.counters.bad_add_addr += 1;
            return;
        }
        if self.contradicts(add) {
            shared.counters.conflicting_add_addr += 1;
            return;
        }
        self.send_ack(now, slot, vec![MpOption::AddAddr(AddAddr { hmac: None, ..*add })], shared);
        let Some(first) = self.paths.first_remote else { return };
        let port = add.port.unwrap_or(first.port());
        // Two ends on one host may well use its loopback addresses.
        let local = add.address.is_loopback() && !first.ip().is_loopback();
        if port == 0 || local || !is_unicast(add.address) {
            return;
        }
        let address = SocketAddr::new(add.address, port);
        if first == address {
            self.paths.manager.deny_initial(false);
        } else if self.paths.manager.remote.len() < MAX_REMOTE
            && !self.paths.manager.remote.contains(&(add.id, address))
        {
            self.paths.manager.remote.push((add.id, address));
            // What failed there before the address was withdrawn says nothing of it now.
            self.paths.manager.forgive(add.address);
        }
        self.join_missing(now, shared);
    }

    /// An identifier keeps its address until it is removed; only another port may be added to it (RFC 8684 §3.4.1).
    fn contradicts(&self, add: &AddAddr) -> bool {
        let known = self.paths.manager.remote.iter().any(|(id, address)| *id == add.id && address.ip() != add.address);
        let used = self.subflows.iter().any(|subflow| {
            // A NAT may have changed where a subflow seems to come from, but not where ours went.
            let chosen = self.role == Role::Client && subflow.state != State::SynSent;
            chosen && subflow.remote_address == add.id && subflow.flow.dst != add.address
        });
        known || used
    }

    /// The peer withdraws addresses (RFC 8684 §3.4.2): nothing is opened to them any more, and a subflow that uses one
    /// is reset unless it shows that it still works.
    pub(super) fn on_remove_addr(&mut self, now: Instant, remove: &RemoveAddr, shared: &mut Shared) {
        for id in &remove.ids {
            self.paths.manager.remote.retain(|(known, _)| known != id);
            if *id == AddressId(0) {
                self.paths.manager.deny_initial(true);
            }
            while let Some(slot) = self.subflows.find(|subflow| {
                subflow.remote_address == *id && matches!(subflow.state, State::SynSent) && subflow.is_join()
            }) {
                self.bury(now, slot, shared);
            }
            let mut left = self.subflows.there();
            while let Some(slot) = self.subflows.take_first(&mut left) {
                let subflow = &mut self.subflows[slot];
                if subflow.remote_address == *id
                    && subflow.state == State::Established
                    && subflow.liveness.removal_probe.is_none()
                {
                    subflow.liveness.removal_probe = Some(RemovalProbe { deadline: now, probes: 0 });
                    // New data goes elsewhere meanwhile.
                    subflow.liveness.potentially_failed = true;
                    self.on_removal_probe(now, slot, shared);
                }
            }
        }
        self.sender.on_subflows_changed(now, &self.subflows);
    }

    /// A subflow to a withdrawn address has not shown any life: ask again, and then reset it.
    pub(super) fn on_removal_probe(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let others = self.subflows.open().count() > 1;
        let subflow = &mut self.subflows[slot];
        let Some(probe) = &mut subflow.liveness.removal_probe else { return };
        if probe.probes < REMOVAL_PROBES {
            probe.probes += 1;
            probe.deadline = now + subflow.tx.rtt.rto();
            return self.send_window_probe(now, slot, shared);
        }
        subflow.liveness.removal_probe = None;
        // The last one stays: its timers will find out.
        if others || !subflow.is_open() {
            self.kill(now, slot, ResetReason::Unspecified, shared);
        }
    }
}

/// An address that a host can have; a peer must not make us knock at everybody's door.
fn is_unicast(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || broadcast)
}
