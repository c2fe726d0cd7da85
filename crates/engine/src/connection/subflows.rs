//! The subflows of a connection, in the order of their identifiers.

use crate::SubflowStats;
use crate::subflow::Subflow;
use anabranch_units::SubflowId;
use std::ops::{Deref, DerefMut};

/// Subflows that are there, and what is kept of those that are gone.
#[derive(Default)]
pub(crate) struct Subflows {
    list: Vec<Subflow>,
    /// Statistics of subflows that are gone, the latest last.
    pub(super) buried: Vec<SubflowStats>,
    pub(super) next_id: u16,
    /// More than the initial subflow was ever there, as far as the peer can know, so plain TCP is no way out.
    pub(super) ever_joined: bool,
    /// A further subflow was open for data, so the peer knows as well that plain TCP is no way out.
    pub(super) peer_knows_of_join: bool,
}

/// Statistics kept of subflows that are gone.
const MAX_BURIED: usize = 256;

impl Subflows {
    pub(super) fn push(&mut self, subflow: Subflow) {
        self.list.push(subflow);
    }

    pub(super) fn remove(&mut self, index: usize) -> Subflow {
        self.list.remove(index)
    }

    /// Keeps subflow `index` alone; the others, in no order.
    pub(super) fn keep_only(&mut self, index: usize) -> Vec<Subflow> {
        let kept = self.list.swap_remove(index);
        std::mem::replace(&mut self.list, vec![kept])
    }

    pub(super) fn pop(&mut self) -> Option<Subflow> {
        self.list.pop()
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
        self.list.iter().position(|subflow| subflow.id == id)
    }

    /// The bit of a subflow in the log of sent data.
    pub(super) fn slot_of(&self, id: SubflowId) -> Option<u8> {
        self.list.iter().find(|subflow| subflow.id == id).map(|subflow| subflow.slot)
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
        (0..crate::config::MAX_SUBFLOWS as u8).find(|slot| self.list.iter().all(|subflow| subflow.slot != *slot))
    }
}

impl Deref for Subflows {
    type Target = [Subflow];

    fn deref(&self) -> &[Subflow] {
        &self.list
    }
}

impl DerefMut for Subflows {
    fn deref_mut(&mut self) -> &mut [Subflow] {
        &mut self.list
    }
}
