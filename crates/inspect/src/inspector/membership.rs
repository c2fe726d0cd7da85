//! Assignment of flows to connections: by key, by token, by data sequence numbers.

use super::{Inspector, Packet};
use crate::connection::Connection;
use crate::flow::{By, Member};
use crate::offer::Offer;
use anabranch_units::Token;
use anabranch_wire::{Flags, MpCapable};

impl Inspector {
    /// MP_CAPABLE: keys, and with the first of them an answer a connection.
    pub(super) fn capable(&mut self, packet: &Packet<'_>, capable: &MpCapable) {
        let (flow, from) = (packet.flow, packet.from);
        let is_syn = packet.segment.flags.has(Flags::SYN);
        let is_offer = is_syn && !packet.segment.flags.has(Flags::ACK);
        let keys = [(from, capable.sender_key), (1 - from, capable.receiver_key)];
        for (side, key) in keys {
            let known = &mut self.flows[flow].keys[side];
            *known = known.or(key);
        }
        if is_offer {
            return;
        }
        if self.flows[flow].member.is_none() {
            // The SYN/ACK comes from the side that was opened, everything else with keys from the opener.
            let opener = if is_syn { 1 - from } else { from };
            let Some(connection) = self.new_connection() else { return };
            self.connections[connection].opener_known = true;
            self.connections[connection].version = Some(capable.version);
            self.enlist(flow, connection, opener == 1, By::Capable);
        }
        let Some(member) = self.flows[flow].member else { return };
        if member.by == By::Capable {
            let connection = &mut self.connections[member.connection];
            connection.checksums[member.side(from)].get_or_insert(capable.checksum_required);
            if let Offer::Capable(syn) = self.flows[flow].shake.syn {
                let opener = self.flows[flow].opener.unwrap_or(0);
                connection.checksums[member.side(opener)].get_or_insert(syn.checksum_required);
            }
        }
        self.learn_all(flow);
    }

    /// The connection of a flow learns the keys that the flow carried.
    fn learn_all(&mut self, flow: usize) {
        let Some(member) = self.flows[flow].member else { return };
        for (side, key) in self.flows[flow].keys.into_iter().enumerate() {
            let side = member.side(side);
            if let Some(token) = key.and_then(|key| self.connections[member.connection].set_key(side, key)) {
                self.by_token.insert(token, (member.connection, side));
            }
        }
    }

    /// The SYN of an MP_JOIN names the connection by the token of its receiver.
    pub(super) fn join(&mut self, packet: &Packet<'_>, token: Token) {
        if self.flows[packet.flow].member.is_some() {
            return;
        }
        let (connection, side) = match self.by_token.get(&token) {
            Some(&known) => known,
            None => {
                let Some(connection) = self.new_connection() else { return };
                self.connections[connection].tokens[1] = Some(token);
                self.by_token.insert(token, (connection, 1));
                (connection, 1)
            }
        };
        // The receiver is side 1 - from of the flow.
        let swapped = (1 - packet.from) ^ side == 1;
        self.enlist(packet.flow, connection, swapped, By::Token);
    }

    fn new_connection(&mut self) -> Option<usize> {
        if self.connections.len() >= self.limits.connections {
            self.totals.ignored_connections += 1;
            return None;
        }
        self.connections.push(Connection::new());
        Some(self.connections.len() - 1)
    }

    fn enlist(&mut self, flow: usize, connection: usize, swapped: bool, by: By) {
        let group = &mut self.connections[connection];
        let subflow = group.flows.len() as u32;
        group.flows.push(flow);
        self.flows[flow].member = Some(Member { connection, subflow, swapped, by });
    }

    /// Finds the connection of a flow that has said nothing but a DSS.
    pub(super) fn infer(&mut self, packet: &Packet<'_>) {
        let Some(dss) = &packet.segment.options.dss() else { return };
        let own = self.flows[packet.flow].member;
        self.flows[packet.flow].dss_tries += 1;
        let known = own.map(|own| self.connections[own.connection].tokens);
        let latest = self.connections.iter().enumerate().rev().take(MOST_COMPARED);
        let mut fitting = latest.filter(|(_, connection)| !connection.merged).filter_map(|(index, connection)| {
            let fits = |&side: &usize| {
                // A side has one token.
                let turned = own.is_some_and(|own| own.side(packet.from) != side);
                let tokens = known.unwrap_or_default();
                let agree = [0, 1].into_iter().all(|own| {
                    let theirs = connection.tokens[own ^ usize::from(turned)];
                    tokens[own].is_none() || theirs.is_none() || tokens[own] == theirs
                });
                agree && connection.is_kin(side, dss)
            };
            let other = own.is_none_or(|own| own.connection != index);
            let side = [0, 1].into_iter().find(fits).filter(|_| other)?;
            Some((index, side))
        });
        // An ambiguous match is no match.
        let kin = match (fitting.next(), fitting.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        };
        match (own, kin) {
            (None, Some((connection, side))) => {
                self.enlist(packet.flow, connection, packet.from ^ side == 1, By::Numbers);
            }
            (Some(own), Some((connection, side))) => {
                // The joins of this token are subflows of a connection that is known by its numbers.
                let turned = own.side(packet.from) != side;
                self.merge(own.connection, connection, turned);
            }
            (None, None) => {
                let flow = &mut self.flows[packet.flow];
                let has_data = dss.map.is_some_and(|map| map.length > 0);
                if has_data || flow.dss_tries >= MOST_TRIES {
                    let (opener, offered) = (flow.opener, flow.shake.syn);
                    let Some(connection) = self.new_connection() else { return };
                    self.connections[connection].opener_known = opener.is_some();
                    if let Offer::Capable(capable) = offered {
                        self.connections[connection].version = Some(capable.version);
                    }
                    self.enlist(packet.flow, connection, opener == Some(1), By::Alone);
                    self.learn_all(packet.flow);
                }
            }
            (Some(_), None) => {}
        }
    }

    /// All of `from` belongs to `to`; `turned` if the sides are the other way round.
    fn merge(&mut self, from: usize, to: usize, turned: bool) {
        let old = &mut self.connections[from];
        old.merged = true;
        let (flows, tokens) = (std::mem::take(&mut old.flows), old.tokens);
        for flow in flows {
            let swapped = self.flows[flow].member.is_some_and(|member| member.swapped);
            self.enlist(flow, to, swapped ^ turned, By::Numbers);
        }
        for (side, token) in tokens.into_iter().enumerate() {
            if let Some(token) = token {
                let side = side ^ usize::from(turned);
                self.connections[to].tokens[side].get_or_insert(token);
                self.by_token.insert(token, (to, side));
            }
        }
    }
}

/// Connections that an unknown flow is compared with, the latest first.
const MOST_COMPARED: usize = 4096;
/// DATA_ACKs after which a flow is a connection of its own.
const MOST_TRIES: u32 = 4;
