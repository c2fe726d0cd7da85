//! FPS, forward prediction scheduling: a slow subflow starts behind the data that the faster ones deliver meanwhile
//! without losses.
//!
//! F. H. Mirani, N. Boukhatem, M. A. Tran. *A Data-Scheduling Mechanism for Multi-Homed Mobile Terminals with Disparate
//! Link Latencies.* IEEE VTC Fall 2010.
//!
//! A segment of the slow subflow `s` needs `T = SRTT_s / 2` to arrive. By then a faster subflow with window `w` and
//! slow-start threshold `ssth` has delivered one window after the other, and `s` starts behind those of all faster
//! subflows:
//! ```text
//! N = Σ_f Σ_k w_k    while k·SRTT_f + SRTT_f/2 ≤ T,    w_0 = w,  w_k+1 = min(2·w_k, ssth) below ssth, else w_k + 1
//! ```
//!
//! Where we differ: the paper is about SCTP and not available to us; the rounds are F2P-DPS's account of it, and the
//! horizon is what both call the delivery time of the new data (`rtt` doubles it; A-HORIZON). The sum over more than
//! one faster subflow is ours. Every round begins with a fresh full window at the decision (`phase_aware` begins with
//! its free part, and continues when the oldest segment in flight is due; A-PHASE).

use super::Entry;
use super::prospects::Prospects;
use super::skip::{Reserve, SkipAhead, whole_segments};
use crate::forecast::{self, Conditions, Forecaster};
use crate::registry::{Flag, Params, flag};
use crate::{SubflowView, View};
use anabranch_units::{Bytes, Instant};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "fps",
    "a slow subflow starts behind the data that the faster ones deliver meanwhile without losses",
    include_str!("fps.rs"),
    |p| Box::new(Fps::scheduler(p)),
)
.paper("Mirani et al. 2010, after Ni et al. 2014")
.parameters(&[RTT.parameter(), PHASE_AWARE.parameter(), OVERSHOOT.parameter()]);

/// Forward prediction without loss.
pub(super) struct Fps {
    prospects: Prospects<Forecaster<forecast::Fps>>,
    /// The horizon is the whole RTT.
    rtt: bool,
}

impl Fps {
    /// Reads the switches from `parameters`.
    pub(super) fn scheduler(parameters: &Params) -> SkipAhead<Self> {
        let model = forecast::Fps { overshoot: OVERSHOOT.of(parameters) };
        let prospects =
            Prospects::new(Forecaster::new(model), PHASE_AWARE.of(parameters), |fast, _| Conditions::of(fast));
        SkipAhead(Fps { prospects, rtt: RTT.of(parameters) })
    }
}

impl Reserve for Fps {
    fn reserve(&mut self, now: Instant, slow: &SubflowView, view: &View<'_>) -> Bytes {
        let horizon = if self.rtt { slow.srtt } else { slow.srtt / 2 };
        whole_segments(self.prospects.delivered(now, slow, view, horizon), slow.mss)
    }

    fn look(&mut self, now: Instant, view: &View<'_>) {
        self.prospects.look(now, view);
    }
}

const RTT: Flag = flag("rtt", "the horizon is the slow subflow's whole SRTT instead of half of it (A-HORIZON)", false);
const PHASE_AWARE: Flag =
    flag("phase_aware", "forecasts begin in the round under way instead of with a fresh window (A-PHASE)", false);
const OVERSHOOT: Flag = flag("overshoot", "the last doubling of slow start may exceed ssthresh", false);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decision;
    use crate::registry::{Value, find};
    use crate::scheduler::testing::*;
    use crate::scheduler::{SCHEDULERS, Scheduler};
    use anabranch_units::{Duration, SubflowId};
    use std::collections::BTreeMap;

    fn fps(switches: &[&str]) -> Box<dyn Scheduler> {
        let entry = find(SCHEDULERS, "scheduler", "fps").expect("it is in the table");
        let given: BTreeMap<_, _> = switches.iter().map(|name| ((*name).to_owned(), Value::Flag(true))).collect();
        entry.build(&entry.params(&given).expect("these are flags")).policy
    }

    /// F2P-DPS's paths: 100 ms before 500 ms, windows of ten, threshold 16, the fast one full.
    fn pair() -> [SubflowView; 2] {
        let fast = SubflowView { ssthresh: Some(segments(16)), loss: 0.05, ..subflow(FAST, 100, 10, 10) };
        [fast, subflow(SLOW, 500, 10, 0)]
    }

    fn send(on: SubflowId, skip: u64) -> Decision {
        Decision::Send { on, skip: segments(skip) }
    }

    /// Arrivals in 250 ms: 10, 16 and 17, regardless of losses; in 500 ms 18 and 19 more; doubling past 16 gives 10, 20
    /// and 21.
    #[test]
    fn the_slow_subflow_skips_the_rounds_that_arrive_first() {
        for (switches, skip) in [(&[][..], 43), (&["rtt"], 80), (&["overshoot"], 51), (&["rtt", "overshoot"], 96)] {
            assert_eq!(fps(switches).decide(at(0), &view(&pair(), 500)), send(SLOW, skip), "{switches:?}");
        }
    }

    #[test]
    fn the_slow_subflow_is_silent_at_the_end_of_the_data() {
        assert_eq!(fps(&[]).decide(at(0), &view(&pair(), 44)), send(SLOW, 43));
        assert_eq!(fps(&[]).decide(at(0), &view(&pair(), 43)), Decision::WAIT);
    }

    /// 100 ms: 10 + 16 + 17 in 250 ms. 200 ms, window 20 in congestion avoidance: 20 (100 ms). Its own horizon is 100
    /// ms.
    #[test]
    fn all_faster_subflows_count() {
        let [fast, slow] = pair();
        let middle = SubflowView { ssthresh: Some(segments(5)), ..subflow(SubflowId(2), 200, 20, 20) };
        let mut fps = fps(&[]);
        assert_eq!(fps.decide(at(0), &view(&[fast, slow, middle], 500)), send(SLOW, 43 + 20));
        let with_room = SubflowView { in_flight: segments(5), ..middle };
        assert_eq!(fps.decide(at(0), &view(&[fast, slow, with_room], 500)), send(SubflowId(2), 10));
        // The fast one fails: its term is gone at the next decision.
        assert_eq!(fps.decide(at(0), &view(&[slow, middle], 500)), send(SLOW, 20));
        assert_eq!(fps.decide(at(0), &view(&[slow], 500)), send(SLOW, 0));
    }

    /// A subflow whose segments are half as large leaves half as many bytes.
    #[test]
    fn what_is_skipped_is_bytes_in_whole_segments_of_the_slow_subflow() {
        let [fast, slow] = pair();
        let small =
            SubflowView { mss: Bytes::new(500), cwnd: Bytes::new(5000), ssthresh: Some(Bytes::new(8000)), ..fast };
        let subflows = [SubflowView { in_flight: small.cwnd, ..small }, slow];
        assert_eq!(fps(&[]).decide(at(0), &view(&subflows, 500)), send(SLOW, 22)); // 43 / 2, rounded up
    }

    #[test]
    fn a_model_of_the_path_stands_for_a_window_that_does_not_grow() {
        let [fast, slow] = pair();
        let modelled = SubflowView { bdp: Some(segments(7)), ..fast };
        assert_eq!(fps(&[]).decide(at(0), &view(&[modelled, slow], 500)), send(SLOW, 21)); // three rounds of seven
        // In the round under way: nothing is free, and two rounds of seven leave at 100 and 200 ms.
        let sent = SubflowView { sent: 10_000, last_sent: Some(at(0)), ..modelled };
        assert_eq!(fps(&["phase_aware"]).decide(at(0), &view(&[sent, slow], 500)), send(SLOW, 14));
    }

    /// Six of ten left at 0 ms: four leave now; at 100 ms the next window of 16 (at 150 ms), at 200 ms 17 (at 250 ms).
    #[test]
    fn the_round_under_way_counts_with_what_is_free_of_it() {
        let [mut fast, slow] = pair();
        let mut fps = fps(&["phase_aware"]);
        (fast.in_flight, fast.sent, fast.last_sent) = (Bytes::ZERO, 0, Some(at(0)));
        // No data in flight: as without the switch.
        fast.throttled = true;
        assert_eq!(fps.decide(at(0), &view(&[fast, slow], 500)), send(SLOW, 43));
        (fast.in_flight, fast.sent) = (segments(6), 6000);
        assert_eq!(fps.decide(at(0), &view(&[fast, slow], 500)), send(SLOW, 4 + 16 + 17));
        // At 60 ms the round ends in 40 ms: 16 at 90 ms, 17 at 190 ms; and 18 would arrive at 290 ms.
        assert_eq!(fps.decide(at(60), &view(&[fast, slow], 500)), send(SLOW, 4 + 16 + 17));
        // The oldest is acknowledged, those sent at 60 ms are due at 160 ms: from 100 ms on that is in 60 ms.
        (fast.sent, fast.last_sent) = (10_000, Some(at(60)));
        fps.decide(at(60), &view(&[fast, slow], 500));
        (fast.acked, fast.in_flight) = (6000, segments(4));
        assert_eq!(fps.decide(at(100), &view(&[fast, slow], 500)), send(SLOW, 6 + 16 + 17));
        let slower = SubflowView { srtt: Duration::from_millis(200), ..slow };
        assert_eq!(fps.decide(at(100), &view(&[fast, slower], 500)), send(SLOW, 6)); // 110 ms is too late for 100
    }
}
