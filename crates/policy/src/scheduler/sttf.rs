//! STTF, shortest transmission time first: each unsent segment belongs to the subflow where it is predicted to arrive
//! first.
//!
//! P. Hurtig, K.-J. Grinnemo, A. Brunstrom, S. Ferlin, Ö. Alay, N. Kuhn. *Low-Latency Scheduling in MPTCP.* IEEE/ACM
//! Transactions on Networking 27(1), 2019.
//!
//! The `n`th segment in the queue of a subflow arrives after
//! ```text
//! n ≤ free:   RTT/2                                                  free = cwnd - in flight
//! otherwise:  r·RTT + RTT/2, in the first round r whose windows, grow(cwnd) + grow(grow(cwnd)) + …, carry n - free
//! grow(w) = min(2w, ssthresh) below ssthresh, w + 1 from there on
//! ```
//! In the order of the data each segment goes where that is least, the lower RTT on a tie, and joins the queue there. A
//! full window or TCP Small Queues keep no subflow out: its data waits for it. The unsent segments are assigned anew
//! whenever anything changes, so nothing is bound to a subflow before it leaves.
//!
//! This needs no walk over segments. Predictions of one subflow never decrease with `n`, so the pass is a merge of
//! sorted sequences: the first segment of a subflow with room stands behind as many others as are predicted to arrive
//! earlier elsewhere, and that is a count of closed form. The decision is the one of the whole pass; a test compares
//! them.
//!
//! - *RTT reset* (the authors' code): a subflow that was silent for longer than its timeout has its first RTT until
//!   there is a new sample.
//! - *Symmetry* (the authors' code): if all first RTTs lie within a millisecond or within 1/`alpha` of the largest, it
//!   is min-RTT. `alpha` = 0 turns that off.
//!
//! Where we differ: Algorithms 2 and 3 are corrected (A-STTF): the minimum begins anew for each segment, `n = free`
//! fits, the free window is subtracted, RTT/2 is never forgotten, congestion avoidance begins at ssthresh. `overshoot`
//! is the older growth: a window up to ssthresh doubles, and ssthresh + 1 follows. The RTT is the paper's SRTT;
//! `last_sample` is the code's. `sttf-code` keeps its assignment as the code does. Subflows in RTO recovery get
//! nothing. When nothing is in flight on the subflow that holds the first unsent byte, nothing would end the wait, so
//! the fastest subflow with room sends that byte. As in the paper, serialisation and the peer's window are not
//! foreseen.

mod arrivals;
mod clock;
pub(super) mod code;

use super::{Entry, MinRtt, Scheduler, wait_for};
use crate::registry::{Flag, Number, Params, flag, number};
use crate::{Decision, SubflowView, View};
use anabranch_units::{Bytes, Duration, Instant, SubflowId};
use arrivals::{Arrivals, Growth};
use clock::Clock;

pub use code::SttfCode;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "sttf",
    "each segment where it is predicted to arrive first, with slow-start growth; assigned anew all the time",
    include_str!("sttf.rs"),
    |p| Box::new(Sttf::new(p)),
)
.paper("Hurtig et al. 2019")
.parameters(&[ALPHA.parameter(), LAST_SAMPLE.parameter(), OVERSHOOT.parameter()]);

/// Shortest transmission time first.
pub struct Sttf {
    clock: Clock,
    growth: Growth,
    /// First RTTs that differ by less than 1/alpha of the largest are alike.
    alpha: f64,
    /// RTTs of the subflows of the view.
    rtts: Vec<Duration>,
}

impl Sttf {
    /// Reads the switches from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        Sttf {
            clock: Clock::new(LAST_SAMPLE.of(parameters)),
            growth: growth(OVERSHOOT.of(parameters)),
            alpha: ALPHA.of(parameters),
            rtts: Vec::new(),
        }
    }
}

impl Scheduler for Sttf {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        self.rtts.clear();
        self.rtts.extend(self.clock.rtts(now, view.subflows));
        if is_symmetric(view.subflows, self.alpha) {
            return MinRtt.decide(now, view);
        }

        let by_rank = |subflow: &SubflowView, rtt: Duration| Rank { rtt, id: subflow.id };
        let ranked = || view.subflows.iter().zip(&self.rtts).map(|(subflow, &rtt)| (by_rank(subflow, rtt), subflow));
        // Of those with room the first has the first segment, and if there is none for it there is none for the others.
        let Some((rank, first)) = ranked().filter(|(_, subflow)| subflow.has_room()).min_by_key(|(rank, _)| *rank)
        else {
            return Decision::WAIT;
        };
        let time = rank.rtt / 2;
        let mut skip = Bytes::ZERO;
        for (other, subflow) in ranked().filter(|(other, subflow)| *other != rank && subflow.open) {
            let arrivals = Arrivals::of(subflow, other.rtt, self.growth);
            skip += subflow.mss.times(arrivals.before(time, other < rank));
        }
        if view.admits(skip, first.mss) {
            return Decision::Send { on: first.id, skip };
        }
        // The first byte is the fastest's of all that are open, with room or without.
        let times = ranked().filter(|(_, subflow)| subflow.open);
        let holder = times.min_by_key(|(rank, subflow)| (Arrivals::of(subflow, rank.rtt, self.growth).nth(1).0, *rank));
        wait_for(holder.map(|(_, subflow)| subflow), view)
    }
}

/// Breaks ties of predicted arrivals: the lower RTT, then the lower id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    rtt: Duration,
    id: SubflowId,
}

/// Returns true if all first RTTs are so close that there is nothing to gain.
fn is_symmetric(subflows: &[SubflowView], alpha: f64) -> bool {
    let firsts = || subflows.iter().map(|subflow| subflow.rtt_first);
    let (Some(low), Some(high)) = (firsts().min(), firsts().max()) else { return true };
    let apart = high - low;
    alpha > 0.0 && (apart <= TICK || apart.mul_f64(alpha) < high)
}

fn growth(overshoot: bool) -> Growth {
    if overshoot { Growth::Overshoot } else { Growth::Capped }
}

/// One timer tick of a kernel with HZ = 1000.
const TICK: Duration = Duration::from_millis(1);

const ALPHA: Number =
    number("alpha", "min-RTT if first RTTs differ by less than 1/alpha of the largest; 0: never", 10.0, 0.0..=1000.0);
const OVERSHOOT_ABOUT: &str = "slow start doubles windows up to ssthresh, then comes ssthresh + 1 (A-STTF)";
const LAST_SAMPLE: Flag =
    flag("last_sample", "the last RTT sample in place of SRTT, as the authors' code has it (A-STTF-RTT)", false);
const OVERSHOOT: Flag = flag("overshoot", OVERSHOOT_ABOUT, false);

#[cfg(test)]
mod tests;
