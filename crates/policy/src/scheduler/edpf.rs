//! EDPF, earliest delivery path first: the only one that counts serialisation, and an oracle: it needs the simulator's
//! truth.
//!
//! K. Chebrolu, B. Raman, R. R. Rao. *A Network Layer Approach to Enable TCP over Multiple Interfaces.* Wireless
//! Networks 11(5), 2005.
//!
//! A packet of `L` bytes that is ready at time `a` would be delivered over path `i`, of fixed delay `D_i` and rate
//! `B_i`, at
//! ```text
//! delivery_i = max(a + D_i, A_i) + L / B_i           A_i: when path i becomes free; then A_i = delivery_i
//! ```
//! and takes the path where that is earliest (the lower id on a tie). Rates and delays are those of
//! `SubflowView::truth`, which only a simulator can tell; `L` counts 80 bytes of headers. Without it, `D` is SRTT/2,
//! `B` is cwnd/SRTT, and this is a forecast like others.
//!
//! The paper's is a network layer, where each packet leaves at once. Here a path may have no room in its window. A
//! segment that belongs to such a path waits for it, and the other paths take theirs from behind it (`conserving`: a
//! path with room never idles, the earliest of them sends the first unsent segment). As in `sttf` there is no walk over
//! segments: the deliveries of one path are `A_i + k·L/B_i`, and how many of another path's come before a time is a
//! division.
//!
//! Where we differ: `A_i` is never later than if all in flight were still before the link, since packets that were
//! dropped, or queued at an earlier rate, delay no others; that is also `A_i` of a path seen for the first time.
//! Retransmissions and the ACKs of the other direction are not counted. When nothing is in flight on the subflow that
//! holds the first unsent byte, nothing would end the wait, so the fastest subflow with room sends that byte.

use super::{Entry, Scheduler, quotient, wait_for};
use crate::registry::{Flag, Params, flag};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::{Bytes, Duration, Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "edpf",
    "earliest delivery path first: an oracle that needs the simulator's rates and delays",
    include_str!("edpf.rs"),
    |p| Box::new(Edpf::new(p)),
)
.paper("Chebrolu et al. 2005")
.parameters(&[CONSERVING.parameter()]);

/// Earliest delivery path first.
pub struct Edpf {
    conserving: bool,
    /// State of the subflows of the latest view, in its order.
    paths: Vec<Path>,
}

/// One path as it was at the latest decision.
struct Path {
    id: SubflowId,
    /// A_i; the end of time if nothing is known.
    free: Instant,
    /// D_i.
    delay: Duration,
    /// L/B_i of a full segment.
    serialisation: Duration,
    mss: Bytes,
}

impl Edpf {
    /// Reads the switches from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        Edpf { conserving: CONSERVING.of(parameters), paths: Vec::new() }
    }

    /// Takes delays and rates from the view.
    fn look(&mut self, now: Instant, view: &View<'_>) {
        let ids = view.subflows.iter().map(|subflow| subflow.id);
        if !self.paths.iter().map(|path| path.id).eq(ids) {
            let before = std::mem::take(&mut self.paths);
            let free = |id| before.iter().find(|path| path.id == id).map_or(Instant::MAX, |path| path.free);
            self.paths.extend(view.subflows.iter().map(|subflow| Path::new(subflow.id, free(subflow.id))));
        }
        for (path, subflow) in self.paths.iter_mut().zip(view.subflows) {
            path.look(now, subflow);
        }
    }
}

impl Path {
    fn new(id: SubflowId, free: Instant) -> Self {
        Path { id, free, delay: Duration::ZERO, serialisation: Duration::ZERO, mss: Bytes::ZERO }
    }

    fn look(&mut self, now: Instant, subflow: &SubflowView) {
        self.mss = subflow.mss.max(Bytes::new(1));
        (self.delay, self.serialisation) = match subflow.truth {
            Some(truth) => (truth.delay, truth.rate.time_for(self.mss + HEADERS)),
            None => {
                let window = subflow.bdp.unwrap_or(subflow.cwnd).max(self.mss);
                (subflow.srtt / 2, subflow.srtt.mul_f64(self.mss.per(window)))
            }
        };
        let backlog = self.serialisation.mul_f64(subflow.in_flight.per(self.mss));
        self.free = self.free.min(now + self.delay + backlog);
    }

    /// Returns the time at which the first bit of a packet sent now would come out.
    fn start(&self, now: Instant) -> Instant {
        self.free.max(now + self.delay)
    }

    /// Returns the time at which the next full segment would be delivered.
    fn delivery(&self, now: Instant) -> Instant {
        self.start(now) + self.serialisation
    }

    /// Number of its next segments that would be delivered before `time`, or by then if `ties` are won.
    fn before(&self, now: Instant, time: Instant, ties: bool) -> u64 {
        let span = time.since(self.start(now)).as_nanos();
        let span = if ties { span } else { span.saturating_sub(1) };
        quotient(span, self.serialisation.as_nanos().max(1))
    }
}

impl Scheduler for Edpf {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        self.look(now, view);
        let paths = || self.paths.iter().zip(view.subflows);
        let key = |path: &Path| (path.delivery(now), path.id);
        let with_room = paths().filter(|(_, subflow)| subflow.has_room());
        let Some((best, subflow)) = with_room.min_by_key(|(path, _)| key(path)) else {
            return Decision::WAIT;
        };
        let (time, id) = key(best);
        let mut skip = Bytes::ZERO;
        if !self.conserving {
            for (other, _) in paths().filter(|(path, subflow)| path.id != id && subflow.open) {
                skip += other.mss.times(other.before(now, time, other.id < id));
            }
        }
        if view.admits(skip, subflow.mss) {
            return Decision::Send { on: id, skip };
        }
        let holder = paths().filter(|(_, subflow)| subflow.open).min_by_key(|(path, _)| key(path));
        wait_for(holder.map(|(_, subflow)| subflow), view)
    }

    fn observe(&mut self, now: Instant, event: &Event) {
        if let Event::Sent { on, length, .. } = *event
            && let Some(path) = self.paths.iter_mut().find(|path| path.id == on && !path.mss.is_zero())
        {
            let share = if length == path.mss { 1.0 } else { length.per(path.mss) };
            path.free = path.start(now) + path.serialisation.mul_f64(share);
        }
    }
}

/// IPv4, TCP with timestamps, DSS with 64-bit numbers.
const HEADERS: Bytes = Bytes::new(20 + 32 + 28);

const CONSERVING: Flag = flag(
    "conserving",
    "a path with room never idles: the earliest of those with room sends the first unsent segment",
    false,
);

#[cfg(test)]
mod tests;
