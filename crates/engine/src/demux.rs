//! Maps a 4-tuple to its subflow.
//!
//! An ordered map is the truth; in front of it a direct-mapped cache answers nearly every segment with one comparison.
//! The cache is indexed by a plain mix of the ports: colliding ports cost the time of a map lookup.

use crate::ConnectionId;
use anabranch_units::SubflowId;
use anabranch_wire::FlowKey;
use std::collections::BTreeMap;

type Owner = (ConnectionId, SubflowId);
type ByPorts = BTreeMap<(u16, u16), Vec<(FlowKey, Owner)>>;

pub(crate) struct Demux {
    map: BTreeMap<FlowKey, Owner>,
    cache: Vec<Option<(FlowKey, Owner)>>,
    /// Flows by source and destination port; only where ACKs may come by way of other addresses.
    by_ports: Option<ByPorts>,
}

const SMALLEST_CACHE: usize = 16;

impl Demux {
    pub(crate) fn new(with_ports: bool) -> Self {
        let by_ports = with_ports.then(BTreeMap::new);
        Demux { map: BTreeMap::new(), cache: vec![None; SMALLEST_CACHE], by_ports }
    }

    /// Segments we send as `flow` belong to `owner`.
    pub(crate) fn add(&mut self, flow: FlowKey, owner: Owner) {
        self.map.insert(flow, owner);
        if let Some(by_ports) = &mut self.by_ports {
            let same = by_ports.entry((flow.src_port, flow.dst_port)).or_default();
            same.retain(|(known, _)| *known != flow);
            same.push((flow, owner));
        }
        if self.map.len() > self.cache.len() / 2 {
            self.cache = vec![None; self.cache.len() * 2];
        }
        let at = self.index(&flow);
        self.cache[at] = None;
    }

    pub(crate) fn remove(&mut self, flow: &FlowKey) {
        self.map.remove(flow);
        if let Some(by_ports) = &mut self.by_ports
            && let Some(same) = by_ports.get_mut(&(flow.src_port, flow.dst_port))
        {
            same.retain(|(known, _)| known != flow);
            if same.is_empty() {
                by_ports.remove(&(flow.src_port, flow.dst_port));
            }
        }
        let at = self.index(flow);
        self.cache[at] = None;
    }

    pub(crate) fn contains(&self, flow: &FlowKey) -> bool {
        self.map.contains_key(flow)
    }

    /// All flows with the ports of this one, if that is kept.
    pub(crate) fn with_ports(&self, flow: &FlowKey) -> &[(FlowKey, Owner)] {
        let same = self.by_ports.as_ref().and_then(|by_ports| by_ports.get(&(flow.src_port, flow.dst_port)));
        same.map_or(&[], Vec::as_slice)
    }

    /// Returns the owner of the flow that we send as `flow`.
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
