//! F2P-DPS with its equations as printed, as far as they can be evaluated.
//!
//! D. Ni, K. Xue, P. Hong, S. Shen. *Fine-grained Forward Prediction based Dynamic Packet Scheduling Mechanism for
//! Multipath TCP in Lossy Networks.* IEEE ICCCN 2014.
//!
//! As [`f2p-dps`](super::f2p_dps), with Eqs. 1, 2 and 11 to 22 as they stand in the paper ([`forecast::F2pPrinted`] has
//! them, and says which cannot be evaluated). For the paper's paths (100 ms with losses before 500 ms, windows of ten)
//! they make the slow subflow skip 1, 13, 33 and 45 segments at 0.1, 1, 3 and 5 % loss, where 43 can be sent without
//! any and 43, 39, 34 and 30 are to be expected. So this entry is for comparison; its numbers say nothing about the
//! idea.
//!
//! Where we differ: an expected delivery before the present moment (Eq. 2 with two or three segments free) is taken for
//! the present; Eqs. 5 and 8 have their root over all of it; the sum over more than one faster subflow is ours.

use super::Entry;
use super::f2p_dps::F2pDps;
use super::skip::SkipAhead;
use crate::forecast::{self, F2pPrinted};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "f2p-dps-printed",
    "F2P-DPS with the paper's equations as printed, as far as they can be evaluated",
    include_str!("f2p_dps_printed.rs"),
    |_| Box::new(scheduler()),
)
.paper("Ni et al. 2014");

/// F2P-DPS as printed.
pub(super) fn scheduler() -> SkipAhead<F2pDps<F2pPrinted>> {
    SkipAhead(F2pDps::new(F2pPrinted::default(), false, forecast::printed_delivery_time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::Scheduler;
    use crate::scheduler::testing::*;
    use crate::{Decision, SubflowView};

    /// The paper's paths: 100 ms with this loss, and full, before 500 ms with 0.1 %; windows of ten, threshold 16.
    fn pair(loss: f64) -> [SubflowView; 2] {
        let ssthresh = Some(segments(16));
        let fast = SubflowView { ssthresh, loss, ..subflow(FAST, 100, 10, 10) };
        [fast, SubflowView { ssthresh, loss: 0.001, ..subflow(SLOW, 500, 10, 0) }]
    }

    /// 1.44, 13.18, 32.75 and 45.34 by enumeration in Python, apart from this code.
    #[test]
    fn the_slow_subflow_skips_more_the_more_is_lost_before_it() {
        for (loss, skip) in [(0.0, 0), (0.001, 1), (0.01, 13), (0.03, 33), (0.05, 45)] {
            let decision = scheduler().decide(at(0), &view(&pair(loss), 500));
            assert_eq!(decision, Decision::Send { on: SLOW, skip: segments(skip) }, "{loss}");
        }
    }
}
