//! F2P-DPS, fine-grained forward prediction: FPS with every loss that may happen meanwhile; the paper's idea, its
//! equations repaired.
//!
//! D. Ni, K. Xue, P. Hong, S. Shen. *Fine-grained Forward Prediction based Dynamic Packet Scheduling Mechanism for
//! Multipath TCP in Lossy Networks.* IEEE ICCCN 2014.
//!
//! The free part of the slow subflow's window arrives after the expected time `T` of [`forecast::delivery_time`] (Eqs.
//! 1, 2), its own losses included. The slow subflow starts behind the data that the faster ones are expected to deliver
//! within `T`, over all losses and repairs ([`forecast::F2p`], Eqs. 3 to 22), rounded to whole segments.
//!
//! Where we differ: see [`forecast::F2p`] for the equations that had to be repaired; `f2p-dps-printed` evaluates them
//! as they stand. `T` follows the free window from segment to segment. A timeout takes the present RTO without backoff.
//! The sum over more than one faster subflow is ours; the paper has two. Forecasts begin with a fresh full window at
//! the decision (`phase_aware`: in the round under way; A-PHASE).

use super::Entry;
use super::prospects::Prospects;
use super::skip::{Reserve, SkipAhead, whole_segments};
use crate::forecast::{Conditions, F2p, F2pSwitches, Forecast, Forecaster, delivery_time};
use crate::registry::{Flag, Params, flag};
use crate::{SubflowView, View};
use anabranch_units::{Bytes, Duration, Instant};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "f2p-dps",
    "FPS with the losses that are to be expected on either subflow; the equations repaired",
    include_str!("f2p_dps.rs"),
    |p| Box::new(scheduler(p)),
)
.paper("Ni et al. 2014")
.parameters(&[MULTI.parameter(), PHASE_AWARE.parameter(), OVERSHOOT.parameter()]);

/// Forward prediction with losses on either subflow.
pub(super) struct F2pDps<F> {
    prospects: Prospects<F>,
    /// Time until the free part of the slow subflow's window is delivered.
    horizon: fn(&Conditions) -> Duration,
}

impl<F: Forecast> F2pDps<F> {
    /// Creates it with this forecast and this horizon.
    pub(super) fn new(forecast: F, phase_aware: bool, horizon: fn(&Conditions) -> Duration) -> Self {
        F2pDps { prospects: Prospects::new(forecast, phase_aware, |fast, _| Conditions::of(fast)), horizon }
    }
}

/// F2P-DPS with the switches from `parameters`.
pub(super) fn scheduler(parameters: &Params) -> SkipAhead<F2pDps<Forecaster<F2p>>> {
    let switches = F2pSwitches { multi: MULTI.of(parameters), overshoot: OVERSHOOT.of(parameters) };
    let forecaster = Forecaster::new(F2p::new(switches));
    SkipAhead(F2pDps::new(forecaster, PHASE_AWARE.of(parameters), delivery_time))
}

impl<F: Forecast + Send> Reserve for F2pDps<F> {
    fn reserve(&mut self, now: Instant, slow: &SubflowView, view: &View<'_>) -> Bytes {
        let horizon = (self.horizon)(&free_window(slow));
        whole_segments(self.prospects.delivered(now, slow, view, horizon), slow.mss)
    }

    fn look(&mut self, now: Instant, view: &View<'_>) {
        self.prospects.look(now, view);
    }
}

/// The subflow under scheduling, with what is free of its window for its window.
fn free_window(slow: &SubflowView) -> Conditions {
    Conditions { cwnd: slow.room_segments(), ..Conditions::of(slow) }
}

const MULTI: Flag = flag(
    "multi",
    "the forecast halves a window once per lost segment, as printed, not once per recovery (A-F2P-HALF)",
    false,
);
const PHASE_AWARE: Flag =
    flag("phase_aware", "forecasts begin in the round under way instead of with a fresh window (A-PHASE)", false);
const OVERSHOOT: Flag =
    flag("overshoot", "the last doubling of slow start may exceed ssthresh (Eqs. 7, 8 nearly as printed)", false);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decision;
    use crate::registry::{Value, find};
    use crate::scheduler::testing::*;
    use crate::scheduler::{SCHEDULERS, Scheduler};
    use anabranch_units::SubflowId;
    use std::collections::BTreeMap;

    fn f2p(switches: &[&str]) -> Box<dyn Scheduler> {
        let entry = find(SCHEDULERS, "scheduler", "f2p-dps").expect("it is in the table");
        let given: BTreeMap<_, _> = switches.iter().map(|name| ((*name).to_owned(), Value::Flag(true))).collect();
        entry.build(&entry.params(&given).expect("these are flags")).policy
    }

    /// The paper's paths: 100 ms with this loss, and full, before 500 ms with 0.1 %; windows of ten, threshold 16.
    fn pair(loss: f64) -> [SubflowView; 2] {
        let ssthresh = Some(segments(16));
        let fast = SubflowView { ssthresh, loss, ..subflow(FAST, 100, 10, 10) };
        [fast, SubflowView { ssthresh, loss: 0.001, ..subflow(SLOW, 500, 10, 0) }]
    }

    fn send(on: SubflowId, skip: u64) -> Decision {
        Decision::Send { on, skip: segments(skip) }
    }

    /// Expectations from a script apart from this code: 43 without loss; 42.5997, 39.3045, 33.6074 and 29.5311
    /// (`multi`: 29.2856) of 43.
    #[test]
    fn the_slow_subflow_skips_less_the_more_is_lost_before_it() {
        for (loss, switches, skip) in [
            (0.0, &[][..], 43),
            (0.001, &[], 43),
            (0.01, &[], 39),
            (0.03, &[], 34),
            (0.05, &[], 30),
            (0.05, &["multi"], 29),
        ] {
            assert_eq!(f2p(switches).decide(at(0), &view(&pair(loss), 500)), send(SLOW, skip), "{loss} {switches:?}");
        }
    }

    /// Losses of its own delay the slow subflow, so that the fast one delivers more meanwhile. With 20 % and ten free a
    /// fast retransmit (750 ms) is likely, T = 696 ms.
    #[test]
    fn the_slow_subflow_skips_more_the_more_it_loses_itself() {
        let [fast, slow] = pair(0.0);
        let lossy = SubflowView { loss: 0.2, ..slow };
        assert_eq!(f2p(&[]).decide(at(0), &view(&[fast, lossy], 900)), send(SLOW, 10 + 16 + 17 + 18 + 19 + 20 + 21));
        let one_free = SubflowView { in_flight: segments(9), ..lossy };
        // T = 0.8 · 250 + 0.2 · (1165 + 250) = 483 ms.
        assert_eq!(f2p(&[]).decide(at(0), &view(&[fast, one_free], 900)), send(SLOW, 10 + 16 + 17 + 18 + 19));
    }

    #[test]
    fn the_slow_subflow_is_silent_at_the_end_of_the_data() {
        assert_eq!(f2p(&[]).decide(at(0), &view(&pair(0.03), 35)), send(SLOW, 34));
        assert_eq!(f2p(&[]).decide(at(0), &view(&pair(0.03), 34)), Decision::WAIT);
    }

    #[test]
    fn all_faster_subflows_count_until_they_fail() {
        let [fast, slow] = pair(0.03);
        let twin = SubflowView { id: SubflowId(2), ..fast };
        let mut f2p = f2p(&[]);
        assert_eq!(f2p.decide(at(0), &view(&[fast, slow, twin], 500)), send(SLOW, 67)); // 2 · 33.6074
        assert_eq!(f2p.decide(at(0), &view(&[fast, slow], 500)), send(SLOW, 34));
        let quicker = SubflowView { srtt: Duration::from_millis(20), ..slow };
        assert_eq!(f2p.decide(at(0), &view(&[fast, quicker], 500)), send(SLOW, 0));
    }
}
