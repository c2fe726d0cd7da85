//! LATE, nested: every subflow is the master of all faster ones, and skips the data that they are expected to deliver.
//!
//! After W. Yang, P. Dong, L. Cai, W. Tang. *Loss-Aware Throughput Estimation Scheduler for Multi-Path TCP in
//! Heterogeneous Wireless Networks.* A variant of ours (A-LATE-14).
//!
//! The paper has one master, the slowest subflow, and deals all others their blocks side by side: with three subflows
//! the middle one's data wait for a block that the fastest needs until half the *master's* RTT to send. Here each
//! subflow skips, at each decision, the data that the faster ones are expected to deliver within half of *its own*
//! SRTT, by LATE's model of a round ([`forecast::Late`], with the largest window W of A-LATE-7). With two subflows this
//! differs from `late` only in that the data is not dealt out for a round: the skip is computed anew whenever one of
//! its inputs has changed.

use super::Entry;
use super::late::{OVERSHOOT, RTO_ROUND_END, TLP};
use super::prospects::Prospects;
use super::skip::{Reserve, SkipAhead, whole_segments};
use crate::forecast::{self, Conditions, Forecaster, Switches};
use crate::registry::{Flag, Params, flag};
use crate::{SubflowView, View};
use anabranch_units::{Bytes, Instant};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "late-nested",
    "LATE with each subflow as the master of all faster ones",
    include_str!("late_nested.rs"),
    |p| Box::new(LateNested::scheduler(p)),
)
.paper("after Yang et al., LATE")
.parameters(&[OVERSHOOT.parameter(), RTO_ROUND_END.parameter(), TLP.parameter(), PHASE_AWARE.parameter()]);

/// LATE for each subflow by itself.
pub(super) struct LateNested {
    prospects: Prospects<Forecaster<forecast::Late>>,
}

impl LateNested {
    /// Reads the switches from `parameters`.
    pub(super) fn scheduler(parameters: &Params) -> SkipAhead<Self> {
        let switches = Switches {
            overshoot: OVERSHOOT.of(parameters),
            rto_round_end: RTO_ROUND_END.of(parameters),
            tlp: TLP.of(parameters),
            ..Switches::default()
        };
        let forecaster = Forecaster::new(forecast::Late::new(switches));
        let conditions = |fast: &SubflowView, view: &View<'_>| Conditions::of(fast).bounded(fast, view.window, true);
        SkipAhead(LateNested { prospects: Prospects::new(forecaster, PHASE_AWARE.of(parameters), conditions) })
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

const PHASE_AWARE: Flag =
    flag("phase_aware", "forecasts begin in the round under way instead of with a fresh window (A-PHASE)", false);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decision;
    use crate::registry::find;
    use crate::scheduler::testing::*;
    use crate::scheduler::{SCHEDULERS, Scheduler};
    use anabranch_units::{Duration, SubflowId};

    fn build(name: &str) -> Box<dyn Scheduler> {
        find(SCHEDULERS, "scheduler", name).expect("it is in the table").build_default().policy
    }

    fn send(on: SubflowId, skip: u64) -> Decision {
        Decision::Send { on, skip: segments(skip) }
    }

    /// The vectors of `late`: RTT, RTO of the fast and RTT of the slow subflow in ms, loss, ssthresh.
    #[test]
    fn with_two_subflows_it_skips_what_late_skips() {
        for ([rtt, rto, slow], loss, ssthresh, skip) in [
            ([10, 210, 100], 0.01, 10, 51),    //  50.9054
            ([10, 210, 100], 0.05, 10, 33),    //  33.1996
            ([10, 210, 100], 0.01, 1000, 142), // 142.0839
            ([50, 250, 250], 0.01, 20, 44),    //  43.9393
        ] {
            let fast = SubflowView {
                loss,
                ssthresh: Some(segments(ssthresh)),
                rto: Duration::from_millis(rto),
                ..subflow(FAST, rtt, 10, 10)
            };
            let subflows = [fast, subflow(SLOW, slow, 10, 0)];
            for name in ["late", "late-nested"] {
                assert_eq!(build(name).decide(at(0), &view(&subflows, 5000)), send(SLOW, skip), "{name} {rtt} {loss}");
            }
        }
    }

    /// 10, 40 and 100 ms, windows of ten in congestion avoidance, the fastest full. The middle one's data take 20 ms,
    /// for two rounds of the fastest (5 and 15 ms): 21 segments. `late` gives it a block behind the 60 that the fastest
    /// will deliver in the master's 50 ms.
    #[test]
    fn with_three_the_middle_one_skips_less_than_in_late() {
        let [fast, middle, slow] =
            [(FAST, 10, 10), (SLOW, 40, 0), (SubflowId(2), 100, 10)].map(|(id, srtt, in_flight)| SubflowView {
                ssthresh: Some(segments(10)),
                ..subflow(id, srtt, 10, in_flight)
            });
        assert_eq!(build("late-nested").decide(at(0), &view(&[fast, middle, slow], 500)), send(SLOW, 21));
        assert_eq!(build("late").decide(at(0), &view(&[fast, middle, slow], 500)), send(SLOW, 60));
        // The slowest skips alike in both: 60 of the fastest and 10 of the middle one (20 ms; 60 ms is too late).
        let middle = SubflowView { in_flight: middle.cwnd, ..middle };
        let slow = SubflowView { in_flight: segments(0), ..slow };
        for name in ["late", "late-nested"] {
            assert_eq!(build(name).decide(at(0), &view(&[fast, middle, slow], 500)), send(SubflowId(2), 70), "{name}");
        }
    }

    #[test]
    fn growth_ends_at_the_window_of_the_latest_loss() {
        let full = SubflowView { ssthresh: Some(segments(10)), ..subflow(FAST, 10, 10, 10) };
        for (cwnd_at_loss, skip) in [(None, 60), (Some(10), 50), (Some(12), 57)] {
            let fast = SubflowView { cwnd_at_loss: cwnd_at_loss.map(segments), ..full };
            let subflows = [fast, subflow(SLOW, 100, 10, 0)];
            assert_eq!(build("late-nested").decide(at(0), &view(&subflows, 500)), send(SLOW, skip));
        }
    }
}
