//! OTIAS, out-of-order transmission for in-order arrival: each segment joins the queue in which it is expected to
//! arrive first.
//!
//! F. Yang, Q. Wang, P. D. Amer. *Out-of-Order Transmission for In-Order Arrival Scheduling for Multipath TCP.* IEEE
//! WAINA Workshops 2014; and its implementation in the Karlstad kernel.
//!
//! With `q` segments waiting for a subflow and `free = cwnd - in flight`, the next one would arrive there after
//! ```text
//! (wait + 1/2) · SRTT,    wait = 0                                 if q < free
//!                         wait = ceil((q - free + 1) / cwnd)       otherwise
//! ```
//! It joins the queue where that is least (the lower id on a tie), even behind a full window, and stays there. The
//! window is taken to be constant and the delays to be symmetric.
//!
//! A queue is a tag on unsent bytes: no segment moves before it is sent. Data for a subflow that is no longer usable
//! loses its tag and joins the queue where it now arrives first; it keeps its place in the order of the data.
//!
//! Where we differ: the original has `floor((q - free) / cwnd)`, by which the first segment that does not fit still
//! arrives after SRTT/2; `floor` brings that back (A-OTIAS). The code leaves out subflows that TCP Small Queues hold
//! back; `throttled` does so as well. Only data within the peer's window is assigned. Subflows in RTO recovery get
//! nothing new. Under a model-based congestion control a window is the bandwidth-delay product. When nothing is in
//! flight on the subflow that holds the first unsent byte, nothing would end the wait, so the fastest subflow with room
//! sends that byte.

use super::tags::Tags;
use super::{Entry, Scheduler, quotient};
use crate::registry::{Flag, Params, flag};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::{Bytes, Duration, Instant};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "otias",
    "each segment joins the queue in which it is expected to arrive first, even behind a full window",
    include_str!("otias.rs"),
    |p| Box::new(Otias::new(p)),
)
.paper("Yang et al. 2014")
.parameters(&[FLOOR.parameter(), THROTTLED.parameter()]);

/// Out-of-order transmission for in-order arrival.
pub struct Otias {
    floor: bool,
    leave_out_throttled: bool,
    tags: Tags,
}

impl Otias {
    /// Reads the switches from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        Otias { floor: FLOOR.of(parameters), leave_out_throttled: THROTTLED.of(parameters), tags: Tags::default() }
    }

    /// Puts the unsent bytes that the peer's window admits into queues, as far as they are in none.
    fn assign(&mut self, view: &View<'_>) {
        while self.tags.total() < view.sendable {
            let Some((place, segments)) = best(view, &self.tags, self.floor, self.leave_out_throttled) else { return };
            let mss = view.subflows[place].mss.max(Bytes::new(1));
            self.tags.push(place, mss.times(segments).min(view.sendable - self.tags.total()));
        }
    }
}

impl Scheduler for Otias {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        if !self.tags.is_of(view) {
            let (floor, leave_out) = (self.floor, self.leave_out_throttled);
            self.tags.adopt(view, |tags| best(view, tags, floor, leave_out).map(|(place, _)| place));
        }
        self.tags.truncate(view.unsent);
        self.assign(view);
        self.tags.next(view)
    }

    fn observe(&mut self, _now: Instant, event: &Event) {
        if let Event::Sent { skip, length, .. } = *event {
            self.tags.remove(skip, length);
        }
    }
}

/// Returns the subflow where the next segment is expected to arrive first, and the number of segments for which that
/// holds.
fn best(view: &View<'_>, tags: &Tags, floor: bool, leave_out_throttled: bool) -> Option<(usize, u64)> {
    let mut best: Option<(Duration, usize, Bytes)> = None;
    for (place, subflow) in view.subflows.iter().enumerate() {
        if !subflow.open || leave_out_throttled && subflow.throttled {
            continue;
        }
        let (arrival, alike) = expected(subflow, tags.queued(place), floor);
        if best.is_none_or(|(earliest, ..)| arrival < earliest) {
            best = Some((arrival, place, alike));
        }
    }
    best.map(|(_, place, alike)| (place, quotient(alike.get(), view.subflows[place].mss.get().max(1)).max(1)))
}

/// Returns the time until a segment behind `queued` is expected to arrive, and the bytes that join the queue there
/// until that changes.
///
/// Computes in bytes, because whole segments would take more divisions, which dominate the cost: rounded up the queue
/// is as many whole segments as it holds begun ones, and ⌊⌊x / mss⌋ / n⌋ is ⌊x / (n · mss)⌋.
fn expected(subflow: &SubflowView, queued: Bytes, floor: bool) -> (Duration, Bytes) {
    let mss = subflow.mss.get().max(1);
    let whole = |amount: u64| if amount < mss { 0 } else { quotient(amount, mss) * mss };
    let (free, rounded_up) = (whole(subflow.room().get()), queued.get() + mss - 1);
    let half = subflow.srtt / 2;
    if rounded_up < free {
        return (half, Bytes::new(free - queued.get()));
    }
    let cwnd = whole(subflow.bdp.unwrap_or(subflow.cwnd).get()).max(mss);
    let behind = rounded_up - free;
    let full_windows = quotient(behind, cwnd);
    // ceil((n + 1) / cwnd) is floor(n / cwnd) + 1.
    let wait = if floor { full_windows } else { full_windows + 1 };
    let until = free + (full_windows + 1) * cwnd;
    (half + subflow.srtt * wait, Bytes::new(until.saturating_sub(queued.get())))
}

const FLOOR: Flag = flag(
    "floor",
    "round full windows down, as first published: the first segment that does not fit has no wait",
    false,
);
const THROTTLED: Flag =
    flag("throttled", "leave out subflows that TCP Small Queues hold back, as in the authors' code", false);

#[cfg(test)]
mod tests;
