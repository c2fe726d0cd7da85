//! From a 4-tuple to the subflow it belongs to.
//!
//! An ordered map is the truth; in front of it a direct-mapped cache answers nearly every segment with one comparison.
//! The cache is indexed by a plain mix of the ports: whoever chooses colliding ports gets the map's speed, not a crash.

use crate::ConnectionId;
use anabranch_units::SubflowId;
use anabranch_wire::FlowKey;
use std::collections::BTreeMap;

type Owner = (ConnectionId, SubflowId);

pub(crate) struct Demux {
    map: BTreeMap<FlowKey, Owner>,
    cache: Vec<Option<(FlowKey, Owner)>>,
}

const SMALLEST_CACHE: usize = 16;

impl Demux {
    pub(crate) fn new() -> Self {
        Demux { map: BTreeMap::new(), cache: vec![None; SMALLEST_CACHE] }
    }

    /// Segments we send as `flow` belong to `owner`.
    pub(crate) fn add(&mut self, flow: FlowKey, owner: Owner) {
        self.map.insert(flow, owner);
        if self.map.len() > self.cache.len() / 2 {
            self.cache = vec![None; self.cache.len() * 2];
        }
        let at = self.index(&flow);
        self.cache[at] = None;
    }

    pub(crate) fn remove(&mut self, flow: &FlowKey) {
        self.map.remove(flow);
        let at = self.index(flow);
        self.cache[at] = None;
    }

    pub(crate) fn contains(&self, flow: &FlowKey) -> bool {
        self.map.contains_key(flow)
    }

    /// Who owns the flow that we send as `flow`.
    pub(crate) fn find(&mut self, flow: &FlowKey) -> Option<Owner> {
        let at = self.index(flow);
        if let Some((known, owner)) = &self.cache[at]
            && known == flow
        {
            return Some(*owner);
        }
        let owner = *self.map.get(flow)?;
        self.cache[at] = Some((*flow, owner));
        Some(owner)
    }

    fn index(&self, flow: &FlowKey) -> usize {
        // Fibonacci hashing of the two ports: one multiplication.
        let ports = u64::from(flow.src_port) << 16 | u64::from(flow.dst_port);
        (ports.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & (self.cache.len() - 1)
    }
}
