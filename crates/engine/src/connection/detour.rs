//! Pure ACKs of one subflow on the path of another (A-ACK-MOVE): they leave with that path's addresses and their own
//! ports, and the receiver finds the subflow by the ports and restores the addresses before TCP sees them.
//!
//! Not part of RFC 8684, so never against unknown peers: a host that is told to (`Config::ack_rewrite`) offers it on
//! the SYN of a connection and agrees on the SYN/ACK, by a TCP experiment (RFC 6994). Without both, ACKs keep their
//! path and `ConnectionStats::acks_kept` counts them.
//!
//! Only an ACK whose purpose is to acknowledge moves: no data, SYN, FIN or RST, no window probe, no challenge, and no
//! ACK that carries a message, which would be lost without a word where middleboxes drop what they have seen no SYN of.
//! For those middleboxes also: every sixteenth ACK keeps its path, as do the first after a round trip of silence and
//! each that reports repeated data. If data is repeated after such a silence, our ACKs do not arrive, and the detour is
//! barred, for a second at first and each time twice as long. A RST that comes back from there bars it as well
//! (A-ACK-CAUTION).
//!
//! `Config::ack_caution` switches all of this off, for those who want the bare scheme of the paper: an ACK path that
//! dies then silences the other subflows until the policy leaves it (ACKSP §IV-B: within 3τ; never if it is fixed).
//!
//! The sender's RTT of a subflow is then the way of the data plus that of the other path's ACKs. Schedulers that take
//! half of it for the way of the data are told nothing else; the order of the paths is the same, their distance half as
//! large.

use super::slots::Slot;
use super::{Connection, Mode};
use crate::shared::Shared;
use crate::subflow::{State, Subflow};
use anabranch_units::{Instant, SubflowId};
use anabranch_wire::{Flags, FlowKey, Segment};

/// The experiment by which hosts agree (RFC 6994: 32 bits, not registered).
pub(super) const EXPERIMENT: u32 = 0x616e_4152;

/// Tells whether, after this SYN or SYN/ACK of the peer, both ends can put addresses back.
pub(super) fn is_agreed(segment: &Segment, shared: &Shared) -> bool {
    shared.config.ack_rewrite && segment.options.has_experiment(EXPERIMENT)
}

impl Connection {
    /// Returns the flow in which the next pure ACK of the subflow in `slot` leaves, if it takes another path.
    pub(super) fn detour(&mut self, now: Instant, slot: Slot, shared: &Shared) -> Option<FlowKey> {
        if self.subflows.len() < 2 || self.life.mode() != Mode::Multipath {
            return None;
        }
        if !self.acks.policy.capabilities.moves {
            if self.subflows[slot].rx.detour.away != 0 {
                self.subflows[slot].rx.detour.away = 0;
            }
            return None;
        }
        self.acks.survey(&self.subflows);
        let subflow = &self.subflows[slot];
        let via = self.acks.policy.path(now, subflow.id, &self.acks.routes);
        let route = self.acks.routes.iter().find(|route| route.id == via)?;
        let flow = FlowKey { src: route.local, dst: route.remote, ..subflow.flow };
        if flow == subflow.flow {
            self.subflows[slot].rx.detour.away = 0;
            return None;
        }
        let can = self.negotiated.detours
            && self.life.is_confirmed()
            && subflow.is_open()
            && subflow.rx.peer_fin.is_none()
            && !subflow.rx.detour.is_barred(now, via)
            && self.subflows.owns_ports(&subflow.flow, &shared.demux);
        if !can {
            self.subflows[slot].rx.detour.away = 0;
            self.stats.acks_kept += 1;
            return None;
        }
        // What never keeps its path is never found to be lost elsewhere: without caution there is no bar either.
        let goes = !shared.config.ack_caution || self.subflows[slot].rx.detour.take(via);
        self.stats.acks_detoured += u64::from(goes);
        goes.then_some(flow)
    }

    /// True if a pure ACK of subflow `id` may have come as `flow` (as we would send it): between the addresses of
    /// another subflow of this connection.
    pub(crate) fn takes_detour(&self, id: SubflowId, flow: &FlowKey) -> bool {
        let there = |subflow: &Subflow| subflow.state == State::Established;
        let between = |subflow: &Subflow| (subflow.flow.src, subflow.flow.dst) == (flow.src, flow.dst);
        self.negotiated.detours
            && self.life.mode() == Mode::Multipath
            && self.subflows.iter().any(|subflow| subflow.id == id && there(subflow))
            && self.subflows.iter().any(|subflow| there(subflow) && between(subflow))
    }
}

impl Connection {
    /// Bars the detour of subflow `id`: a RST for its ports came back as `flow` (as we would send it), between the
    /// addresses of another subflow. The receiver there, for instance behind a NAT, does not know our ACKs. A forged
    /// RST spoils the detour only.
    pub(crate) fn on_detour_refused(&mut self, now: Instant, id: SubflowId, flow: &FlowKey) {
        let between = |subflow: &&Subflow| (subflow.flow.src, subflow.flow.dst) == (flow.src, flow.dst);
        let via = self.subflows.iter().find(between).map(|subflow| subflow.id);
        let slot = self.subflows.slot(id);
        if let (Some(via), Some(subflow)) = (via, slot.map(|slot| &mut self.subflows[slot]))
            && subflow.rx.detour.via == Some(via)
            && !subflow.rx.detour.is_barred(now, via)
        {
            subflow.rx.detour.bar(now, via);
            self.stats.ack_fallbacks += 1;
        }
    }
}

/// An ACK that a detour may have brought.
pub(crate) fn is_pure_ack(segment: &Segment) -> bool {
    let others = [Flags::SYN, Flags::FIN, Flags::RST];
    segment.flags.has(Flags::ACK) && !others.iter().any(|flag| segment.flags.has(*flag)) && segment.payload.is_empty()
}
