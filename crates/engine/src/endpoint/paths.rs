//! Addresses of an endpoint, and the state of interfaces and paths.

use super::Endpoint;
use crate::shared::PathTruth;
use crate::{LocalAddress, PathMemory};
use anabranch_policy::Truth;
use anabranch_units::{Instant, SubflowSeq};
use anabranch_wire::FlowKey;
use std::net::IpAddr;

impl Endpoint {
    /// Reports that the interface of an address went down or came up. Its subflows fail at once, or are opened again.
    pub fn set_carrier(&mut self, now: Instant, local: IpAddr, up: bool) {
        self.shared.down.retain(|address| *address != local);
        if !up {
            self.shared.down.push(local);
        }
        for index in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[index].connection {
                connection.on_carrier(now, local, up, &mut self.shared);
                self.touch(index as u32);
            }
        }
        self.apply_routes();
    }

    /// Adds an address of ours. Connections that we opened join from it; peers of the others are told of it (ADD_ADDR,
    /// RFC 8684 §3.4.1). Returns false if we have it already, or 255 others.
    pub fn add_address(&mut self, now: Instant, address: LocalAddress) -> bool {
        if self.shared.locals.add(address).is_none() {
            return false;
        }
        for index in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[index].connection {
                connection.on_address_added(now, address.ip, &mut self.shared);
                self.touch(index as u32);
            }
        }
        self.apply_routes();
        true
    }

    /// Gives up one of our addresses. The endpoint accepts and opens no more subflows there, tells peers (REMOVE_ADDR,
    /// RFC 8684 §3.4.2), and closes its subflows with a FIN while their data moves to others. A connection keeps its
    /// only subflow. Returns false if the address is not ours.
    ///
    /// The address must go on working until those FINs are acknowledged. For an address that has failed use
    /// [`Endpoint::set_carrier`].
    pub fn remove_address(&mut self, now: Instant, ip: IpAddr) -> bool {
        let Some(id) = self.shared.locals.remove(ip) else { return false };
        self.shared.down.retain(|address| *address != ip);
        for index in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[index].connection {
                connection.on_address_removed(now, ip, id, &mut self.shared);
                self.touch(index as u32);
            }
        }
        self.apply_routes();
        true
    }

    /// Returns our addresses, in the order in which they came.
    pub fn addresses(&self) -> impl Iterator<Item = LocalAddress> {
        self.shared.locals.iter().map(|(_, address)| address)
    }

    /// Sets the MTU of the interface that holds `local`. New subflows advertise the matching MSS; existing ones shrink
    /// their segments if needed. `None` restores the profile's MSS.
    pub fn set_mtu(&mut self, now: Instant, local: IpAddr, mtu: Option<u16>) {
        self.shared.mtus.set(local, mtu);
        for index in 0..self.connections.len() {
            if let (Some(connection), Some(mtu)) = (&mut self.connections[index].connection, mtu) {
                connection.on_device_mtu(now, local, mtu);
                self.touch(index as u32);
            }
        }
    }

    /// Handles a router's report that a packet was too big for the next link (ICMP "fragmentation needed", ICMPv6
    /// "packet too big"). `flow` (as we send it) and `seq` are those of the quoted packet; `mtu` would fit.
    ///
    /// Returns true if the report is believed: the quoted packet can be under way (RFC 5927 §7.2). For ten minutes the
    /// subflow then sends no larger segments, and larger ones in flight are sent again.
    pub fn handle_too_big(&mut self, now: Instant, flow: FlowKey, seq: SubflowSeq, mtu: u32) -> bool {
        let owner = self.shared.demux.find(&flow);
        let mut believed = false;
        if let Some((id, subflow)) = owner {
            self.with(now, id, |connection, _| {
                if let Some(slot) = connection.subflows.slot(subflow) {
                    believed = connection.on_too_big(now, slot, seq, mtu);
                }
            });
        }
        let counters = &mut self.shared.counters;
        *(if believed { &mut counters.too_big } else { &mut counters.too_big_ignored }) += 1;
        believed
    }

    /// Sets a simulator's knowledge of the path from one of our addresses to a peer's, or to any. Policies find it in
    /// `SubflowView::truth`; with [`Config::loss_oracle`](crate::Config::loss_oracle) its loss rate replaces the
    /// estimate. `None` removes it.
    pub fn set_truth(&mut self, local: IpAddr, remote: Option<IpAddr>, truth: Option<Truth>) {
        let known = |told: &&PathTruth| (told.local, told.remote) == (local, remote);
        if self.shared.truths.iter().find(known).map(|told| told.truth) == truth {
            return;
        }
        self.shared.truths.retain(|told| (told.local, told.remote) != (local, remote));
        if let Some(truth) = truth {
            self.shared.truths.push(PathTruth { local, remote, truth });
        }
        for connection in self.connections.iter_mut().filter_map(|slot| slot.connection.as_mut()) {
            for subflow in connection.subflows.iter_mut() {
                subflow.truth = self.shared.truth(&subflow.flow);
                subflow.tx.loss.set_oracle(self.shared.loss_oracle(&subflow.flow));
            }
        }
    }

    /// Returns the memory of paths from connections that we opened, for the driver to store.
    pub fn path_memory(&self, now: Instant) -> PathMemory {
        self.shared.memory.write(now)
    }

    /// Restores a stored memory, which replaces entries of the same paths. The driver adds its age beforehand
    /// ([`PathMemory::aged`]).
    pub fn set_path_memory(&mut self, now: Instant, memory: &PathMemory) {
        self.shared.memory.read(now, memory);
    }
}
