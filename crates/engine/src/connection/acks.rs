//! Paths that the ACKs take: the policy, its view, and the probes that inform it.

use super::probing::Prober;
use super::subflows::Subflows;
use anabranch_policy::ack_path::{AckPath, AckRoute};
use anabranch_policy::registry::Built;

/// Routing of ACKs among subflows.
pub(super) struct AckRouting {
    pub(super) policy: Built<dyn AckPath>,
    /// Scratch: the open subflows, for the policy.
    pub(super) routes: Vec<AckRoute>,
    pub(super) prober: Prober,
}

impl AckRouting {
    pub(super) fn new(policy: Built<dyn AckPath>) -> Self {
        AckRouting { policy, routes: Vec::new(), prober: Prober::default() }
    }

    /// Brings `routes` up to date: what the policy may choose among.
    pub(super) fn survey(&mut self, subflows: &Subflows) {
        self.routes.clear();
        let open = subflows.iter().filter(|subflow| subflow.is_open());
        self.routes.extend(open.map(|subflow| AckRoute {
            id: subflow.id,
            srtt: subflow.tx.rtt.srtt(),
            local: subflow.flow.src,
            remote: subflow.flow.dst,
        }));
    }
}
