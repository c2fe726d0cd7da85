//! OCPS-r, offset compensation: FPS, and an offset learnt from whether the last round still arrived out of order;
//! reconstructed.
//!
//! D. Ni, K. Xue, P. Hong, H. Zhang, H. Lu. *OCPS: Offset Compensation based Packet Scheduling Mechanism for Multipath
//! TCP.* IEEE ICC 2015. Known to us from its abstract.
//!
//! A slow subflow `s` starts `max(0, N + d_s)` segments into the unsent data, where `N` is what FPS expects the faster
//! ones to deliver meanwhile (see `fps`), and `d_s` follows from what the receiver had when its data arrived: half of
//! what was missing before them is taken off, half of what had overtaken them is added.
//!
//! Reconstructed (A-FEEDBACK): all but the idea, that an offset to the forecast of the next round is learnt from SACK.
//! MPTCP has no SACK at the data level; what stands in its place is in the module `feedback`. The model is FPS with its
//! switches (A-HORIZON `rtt`, A-PHASE `phase_aware`).

use super::Entry;
use super::feedback::Feedback;
use super::prospects::Prospects;
use super::skip::{Reserve, SkipAhead, whole_segments};
use crate::forecast::{Conditions, Forecast, Forecaster, Fps};
use crate::registry::{Flag, Params, flag};
use crate::{Event, SubflowView, View};
use anabranch_units::{Bytes, Instant};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "ocps-r",
    "FPS, corrected by whether the last round arrived early or late; reconstructed",
    include_str!("ocps.rs"),
    |p| Box::new(scheduler(p)),
)
.paper("Ni et al. 2015 (abstract only)")
.parameters(&[RTT.parameter(), PHASE_AWARE.parameter()]);

/// A forecast over half the slow subflow's RTT, or all of it, and what has been learnt of its error.
pub(super) struct Compensated<F> {
    prospects: Prospects<F>,
    feedback: Feedback,
    /// The horizon is the whole RTT.
    rtt: bool,
}

impl<F: Forecast> Compensated<F> {
    /// Creates it with this forecast. `rtt`: the horizon is the slow subflow's whole SRTT.
    pub(super) fn new(forecast: F, rtt: bool, phase_aware: bool) -> Self {
        let prospects = Prospects::new(forecast, phase_aware, |fast, _| Conditions::of(fast));
        Compensated { prospects, feedback: Feedback::default(), rtt }
    }
}

/// OCPS with the switches from `parameters`.
pub(super) fn scheduler(parameters: &Params) -> SkipAhead<Compensated<Forecaster<Fps>>> {
    let forecaster = Forecaster::new(Fps::default());
    SkipAhead(Compensated::new(forecaster, RTT.of(parameters), PHASE_AWARE.of(parameters)))
}

impl<F: Forecast + Send> Reserve for Compensated<F> {
    fn reserve(&mut self, now: Instant, slow: &SubflowView, view: &View<'_>) -> Bytes {
        let horizon = if self.rtt { slow.srtt } else { slow.srtt / 2 };
        let expected = self.prospects.delivered(now, slow, view, horizon);
        whole_segments(expected + self.feedback.correction(slow), slow.mss)
    }

    fn look(&mut self, now: Instant, view: &View<'_>) {
        self.prospects.look(now, view);
        self.feedback.look(view);
    }

    fn observe(&mut self, now: Instant, event: &Event) {
        self.feedback.observe(now, event);
    }
}

pub(super) const RTT: Flag =
    flag("rtt", "the horizon is the slow subflow's whole SRTT instead of half of it (A-HORIZON)", false);
const PHASE_AWARE: Flag =
    flag("phase_aware", "forecasts begin in the round under way instead of with a fresh window (A-PHASE)", false);

#[cfg(test)]
mod tests {
    use crate::registry::find;
    use crate::scheduler::testing::*;
    use crate::scheduler::{SCHEDULERS, Scheduler};
    use crate::{Decision, Event, SubflowView, View};
    use anabranch_units::{Bytes, Dsn};

    fn dsn(segments: u64) -> Dsn {
        Dsn::new(1 + 1000 * segments)
    }

    /// Number of segments that the slow subflow skips; then it sends segment `sends`.
    fn skip(scheduler: &mut dyn Scheduler, ms: u64, subflows: &mut [SubflowView; 2], data_una: u64, sends: u64) -> u64 {
        let decision = scheduler.decide(at(ms), &View { data_una: dsn(data_una), ..view(&subflows[..], 500) });
        let Decision::Send { on: SLOW, skip } = decision else { panic!("{decision:?}") };
        scheduler.observe(at(ms), &Event::Sent { on: SLOW, dsn: dsn(sends), skip, length: segments(1) });
        subflows[1].sent += 1000;
        skip.get() / 1000
    }

    /// F2P-DPS's paths without loss: N = 10 + 16 + 17 = 43. By hand: the first segment ahead, number 43, comes when 33
    /// are there: ten too early, d = -5. The next, 100, is there in time, and `overtaken` by four: d = -5 + 2 = -3.
    #[test]
    fn a_decision_trace() {
        for name in ["ocps-r", "dpsaf-r"] {
            let mut scheduler = find(SCHEDULERS, "scheduler", name).expect("it is in the table").build_default().policy;
            let fast =
                SubflowView { ssthresh: Some(segments(16)), in_flight: Bytes::ZERO, ..subflow(FAST, 100, 10, 0) };
            let mut pair = [SubflowView { throttled: true, ..fast }, subflow(SLOW, 500, 10, 0)];
            assert_eq!(skip(&mut *scheduler, 0, &mut pair, 0, 43), 43, "{name}");
            (pair[1].acked, pair[1].data_acked) = (1000, Some(dsn(33)));
            assert_eq!(skip(&mut *scheduler, 500, &mut pair, 40, 100), 38, "{name}");
            for segment in 101..105 {
                let sent = Event::Sent { on: FAST, dsn: dsn(segment), skip: Bytes::ZERO, length: segments(1) };
                scheduler.observe(at(501), &sent);
                pair[0].sent += 1000;
            }
            // They are acknowledged while 100 is missing.
            pair[0].acked = 4000;
            assert_eq!(skip(&mut *scheduler, 900, &mut pair, 100, 200), 38, "{name}");
            (pair[1].acked, pair[1].data_acked) = (2000, Some(dsn(105)));
            assert_eq!(skip(&mut *scheduler, 1000, &mut pair, 105, 300), 40, "{name}");
            // A timeout forgets it.
            scheduler.observe(at(1001), &Event::Rto { on: SLOW });
            assert_eq!(skip(&mut *scheduler, 1002, &mut pair, 105, 400), 43, "{name}");
        }
    }
}
