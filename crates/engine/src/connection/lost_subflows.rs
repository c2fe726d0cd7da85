//! Subflows lost without progress: to middleboxes that spoil data, or that let a handshake through and nothing more.
//!
//! A client joins again where a subflow was lost, and peers join for as long as they are let. Where no path lets data
//! move that would go on without end, so losses are counted, by pair of addresses, since data last moved either way.
//! A connection is given up after several, unless a subflow is left that may yet do better.

use super::slots::Slot;
use super::{Connection, Life, Mode};
use crate::Ended;
use crate::shared::Shared;
use crate::subflow::Subflow;
use anabranch_units::Instant;
use anabranch_wire::{FlowKey, MpOption, ResetReason, Segment};
use std::net::IpAddr;

/// Losses since data last moved.
#[derive(Default)]
#[cfg_attr(test, derive(Debug))]
pub(super) struct LostSubflows {
    /// Each with its weight.
    count: u32,
    /// Between which addresses, each pair once.
    paths: Vec<(IpAddr, IpAddr)>,
}

/// Losses after which a connection without hope is given up.
const MAX_VAIN: u32 = 8;
/// Weight of a subflow among these losses that timed out without an acknowledgment, after a quarter of an hour.
const BARREN: u32 = MAX_VAIN / 2;
/// Pairs of addresses remembered. A peer that announces ever new addresses costs no more than this.
const MAX_PATHS: usize = 64;

impl LostSubflows {
    /// Data has moved.
    pub(super) fn clear(&mut self) {
        *self = LostSubflows::default();
    }

    fn note(&mut self, flow: &FlowKey, weight: u32) {
        self.count = self.count.saturating_add(weight);
        if !self.has(flow) && self.paths.len() < MAX_PATHS {
            self.paths.push((flow.src, flow.dst));
        }
    }

    fn has(&self, flow: &FlowKey) -> bool {
        self.paths.contains(&(flow.src, flow.dst))
    }

    /// True of a subflow of which no better is to be expected than of those that were lost.
    fn is_hopeless(&self, subflow: &Subflow) -> bool {
        let times_out = subflow.tx.recovery.consecutive_rtos() > 0;
        let timed_out = is_barren(subflow) && times_out;
        let unanswered = subflow.handshake.is_some_and(|timer| timer.retries > 0);
        // Where others were lost, one that has been of use and is not in trouble is not.
        let among_lost = self.has(&subflow.flow) && (!subflow.useful || times_out);
        timed_out || unanswered || among_lost
    }
}

impl Connection {
    /// Resets the subflow in `slot` and tells the peer why.
    pub(super) fn kill(&mut self, now: Instant, slot: Slot, reason: ResetReason, shared: &mut Shared) {
        let (fault, weight) = match reason {
            ResetReason::Middlebox => (Ended::Middlebox, 1),
            ResetReason::UnacceptablePerformance if is_barren(&self.subflows[slot]) => (Ended::TimedOut, BARREN),
            _ => (Ended::Middlebox, 0),
        };
        let explain = self.life.mode() == Mode::Multipath;
        let option = shared.reset_option(reason);
        self.send_reset(now, slot, if explain { vec![option] } else { Vec::new() }, shared);
        self.lose(now, slot, (fault, weight), shared);
    }

    /// Removes the subflow in `slot`, on which the peer has sent this RST.
    pub(super) fn lose_to_reset(&mut self, now: Instant, slot: Slot, segment: &Segment, shared: &mut Shared) {
        let in_vain = segment.options.mptcp().iter().any(|option| match option {
            MpOption::Fail { .. } => true,
            MpOption::TcpReset { reason, .. } => {
                matches!(reason, ResetReason::Middlebox | ResetReason::UnacceptablePerformance)
            }
            _ => false,
        });
        let weight = u32::from(in_vain || is_barren(&self.subflows[slot]));
        self.lose(now, slot, (Ended::Middlebox, weight), shared);
    }

    /// Removes the subflow in `slot`. The connection ends with `fault` if that was one too many and no hope is left.
    pub(super) fn lose(&mut self, now: Instant, slot: Slot, (fault, weight): (Ended, u32), shared: &mut Shared) {
        let subflow = &mut self.subflows[slot];
        subflow.in_vain = weight > 0 && !subflow.useful;
        if weight > 0 {
            self.paths.lost_subflows.note(&subflow.flow, weight);
        }
        self.bury(now, slot, shared);
        let over = !matches!(self.life, Life::Unconfirmed(_) | Life::Multipath);
        let spent = !over && weight > 0 && self.paths.lost_subflows.count >= MAX_VAIN;
        if spent && self.subflows.iter().all(|subflow| self.paths.lost_subflows.is_hopeless(subflow)) {
            self.stats.ended = Some(fault);
            self.abort(now, shared);
        }
    }
}

/// A join whose handshake came through and nothing that followed, as on a path that swallows large packets.
fn is_barren(subflow: &Subflow) -> bool {
    subflow.is_join() && subflow.tx.recovery.snd_nxt() > 1 && subflow.tx.recovery.snd_una() <= 1
}
