//! DPSAF-r, forward prediction by the most likely case, adjusted with feedback; reconstructed.
//!
//! K. Xue, J. Han, D. Ni, W. Wei, Y. Cai, Q. Xu, P. Hong. *DPSAF: Forward Prediction Based Dynamic Packet Scheduling
//! and Adjusting With Feedback for Multipath TCP in Lossy Heterogeneous Networks.* IEEE Transactions on Vehicular
//! Technology 67(2), 2018. Known to us from its abstract and from LATE's account of it.
//!
//! A slow subflow `s` starts `max(0, N + d_s)` segments into the unsent data. `N` is what the faster ones deliver in
//! `SRTT_s / 2` if each round turns out as is most likely, without a loss or with a fast retransmit
//! ([`forecast::Dpsaf`](crate::forecast::Dpsaf)); `d_s` is learnt as in `ocps-r`.
//!
//! Reconstructed (A-DPSAF): known are the two cases per round, that the likelier one is taken in place of a mean, that
//! loss rate and a time offset enter, and that feedback corrects the result. Ours are the recursion, the feedback
//! (module `feedback`) and the time offset: forecasts begin in the round under way, with what is free of the window now
//! and the next whole window when the oldest segment in flight is due (`phase_aware = false`: with a full window now).

use super::Entry;
use super::ocps::{Compensated, RTT};
use super::skip::SkipAhead;
use crate::forecast::{Dpsaf, Forecaster};
use crate::registry::{Flag, Params, flag};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "dpsaf-r",
    "forward prediction by the most likely case of each round, corrected by feedback; reconstructed",
    include_str!("dpsaf.rs"),
    |p| Box::new(scheduler(p)),
)
.paper("Xue et al. 2018 (abstract only)")
.parameters(&[RTT.parameter(), PHASE_AWARE.parameter()]);

/// DPSAF with the switches from `parameters`.
pub(super) fn scheduler(parameters: &Params) -> SkipAhead<Compensated<Forecaster<Dpsaf>>> {
    let forecaster = Forecaster::new(Dpsaf::default());
    SkipAhead(Compensated::new(forecaster, RTT.of(parameters), PHASE_AWARE.of(parameters)))
}

const PHASE_AWARE: Flag =
    flag("phase_aware", "forecasts begin in the round under way instead of with a fresh window (A-PHASE)", true);
