//! LATE, nested: every subflow is the master of all faster ones, and skips what they are expected to deliver.
//!
//! After W. Yang, P. Dong, L. Cai, W. Tang. *Loss-Aware Throughput Estimation Scheduler for Multi-Path TCP in Heterogeneous
//! Wireless Networks.* A variant of ours (reference A-LATE-14).
//!
//! The paper has one master, the slowest subflow, and deals all others their blocks side by side: with three subflows the
//! middle one's data wait for a block that the fastest needs until half the *master's* RTT to send. Here each subflow skips,
//! at each decision, what the faster ones are expected to deliver within half of *its own* SRTT, by LATE's model of a round
//! ([`forecast::Late`], with the largest window W of A-LATE-7). With two subflows this differs from `late` only in that
//! nothing is dealt out for a round: it is worked out anew whenever something it depends on has changed.

use super::flag;
use super::late::{OVERSHOOT, RTO_ROUND_END, TLP};
use super::prospects::Prospects;
use super::skip::{Reserve, SkipAhead, whole_segments};
use crate::forecast::{self, Conditions, Forecaster, Switches};
use crate::registry::{Parameter, Params};
use crate::{SubflowView, View};
use anabranch_units::{Bytes, Instant};

/// LATE for each subflow by itself.
pub(super) struct LateNested {
    prospects: Prospects<Forecaster<forecast::Late>>,
}

impl LateNested {
    /// With the switches from `parameters`.
    pub(super) fn scheduler(parameters: &Params) -> SkipAhead<Self> {
        let switches = Switches {
            overshoot: parameters.flag(OVERSHOOT),
            rto_round_end: parameters.flag(RTO_ROUND_END),
            tlp: parameters.flag(TLP),
            ..Switches::default()
        };
        let forecaster = Forecaster::new(forecast::Late::new(switches));
        let conditions = |fast: &SubflowView, view: &View<'_>| Conditions::of(fast).bounded(fast, view.window, true);
        SkipAhead(LateNested { prospects: Prospects::new(forecaster, parameters.flag(PHASE_AWARE), conditions) })
    }
}

impl Reserve for LateNested {
    fn reserve(&mut self, now: Instant, slow: &SubflowView, view: &View<'_>) -> Bytes {
        whole_segments(self.prospects.delivered(now, slow, view, slow.srtt / 2), slow.mss)
    }

    fn look(&mut self, now: Instant, view: &View<'_>) {
        self.prospects.look(now, view);
    }
}

const PHASE_AWARE: &str = "phase_aware";
/// What can be set.
pub(super) const PARAMETERS: &[Parameter] = &[
    flag(OVERSHOOT, "the last doubling of slow start may exceed ssthresh (Eq. 7 as printed)", false),
    flag(RTO_ROUND_END, "the round after a timeout begins after RTO + RTT instead of RTO + RTT/2 (Eq. 19)", false),
    flag(TLP, "tail-loss probes: only the loss of a whole window needs a timeout", false),
    flag(PHASE_AWARE, "forecasts begin in the round under way instead of with a fresh window (A-PHASE)", false),
];
