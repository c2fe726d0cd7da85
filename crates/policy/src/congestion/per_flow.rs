//! State of an algorithm for each flow of a connection.

use super::Flow;

/// Identity of a flow: a place of its own, and how many flows had begun before. An id may be given again, a key may
/// not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowKey {
    slot: u16,
    serial: u64,
}

impl FlowKey {
    /// The `n`-th flow of a connection that no flow has left.
    pub fn nth(n: u16) -> Self {
        FlowKey { slot: n, serial: n.into() }
    }

    /// Number of flows that had begun before it.
    pub(super) fn serial(self) -> u64 {
        self.serial
    }

    /// A flow that begins beside `flows`, after `serial` others.
    pub(super) fn beside(flows: &[Flow], serial: u64) -> Self {
        let taken = |slot: u16| flows.iter().any(|flow| flow.key.slot == slot);
        // Among one more than there are flows, one slot is free.
        let slot = (0..=u16::MAX).find(|&slot| !taken(slot)).unwrap_or(u16::MAX);
        FlowKey { slot, serial }
    }
}

/// State for each flow. A new flow begins with the default, and what a flow leaves behind goes when another takes its
/// slot.
#[derive(Clone, Debug)]
pub struct PerFlow<S>(Vec<Option<(FlowKey, S)>>);

impl<S: Default> PerFlow<S> {
    /// The state of `flow`.
    pub fn of(&mut self, flow: &Flow) -> &mut S {
        let slot = usize::from(flow.key.slot);
        if self.0.len() <= slot {
            self.0.reserve_exact(slot + 1 - self.0.len());
            self.0.resize_with(slot + 1, || None);
        }
        let entry = &mut self.0[slot];
        if entry.as_ref().is_some_and(|(key, _)| *key != flow.key) {
            *entry = None;
        }
        &mut entry.get_or_insert_with(|| (flow.key, S::default())).1
    }

    /// The state of `flow`, if it has any yet.
    pub fn get(&self, flow: &Flow) -> Option<&S> {
        let (key, state) = self.0.get(usize::from(flow.key.slot))?.as_ref()?;
        (*key == flow.key).then_some(state)
    }
}

impl<S> Default for PerFlow<S> {
    fn default() -> Self {
        PerFlow(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::{Bytes, SubflowId, Window};

    fn flow(id: u16, key: FlowKey) -> Flow {
        let (id, srtt) = (SubflowId(id), None);
        Flow {
            id,
            key,
            mss: Bytes::new(1),
            cwnd: Window::new(1.0),
            ssthresh: Window::new(1.0),
            srtt,
            recovering: false,
            counted: true,
        }
    }

    /// The middle one of three leaves; another takes its slot, even its id, and nothing of its state.
    #[test]
    fn state_stays_with_its_flow_and_goes_with_it() {
        let mut state = PerFlow::<u32>::default();
        let mut flows: Vec<Flow> = (0..3).map(|n| flow(n, FlowKey::nth(n))).collect();
        assert_eq!(state.get(&flows[1]), None);
        flows.iter().for_each(|flow| *state.of(flow) = 5 + u32::from(flow.id.0));
        flows.remove(1);
        assert_eq!((state.get(&flows[0]), state.get(&flows[1])), (Some(&5), Some(&7)));
        let key = FlowKey::beside(&flows, 3);
        assert_eq!(key.slot, 1);
        let new = flow(1, key);
        assert_eq!(state.get(&new), None);
        assert_eq!(*state.of(&new), 0);
        assert_eq!((*state.of(&flows[0]), *state.of(&flows[1])), (5, 7));
    }
}
