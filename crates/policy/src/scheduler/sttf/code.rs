//! STTF as its authors' Linux module has it: the last raw RTT sample, and an assignment that is kept while it is nearly
//! right.
//!
//! The Karlstad kernel of *Low-Latency Scheduling in MPTCP* (see `sttf` for the paper and the formulas).
//!
//! Before each output run the segments are counted that a new assignment would give each subflow. If that differs by
//! more than one from its queue, on any subflow, all unsent segments are assigned anew; if not, they stay in their
//! queues, and new ones join behind them. In between the queues are fixed: as in `otias` each subflow sends its own.
//!
//! - The RTT is the last raw sample (the paper says SRTT: A-STTF-RTT), or the first one ever while the subflow's others
//!   are stale.
//! - Slow start overshoots: windows up to ssthresh double, and congestion avoidance begins at ssthresh + 1 (A-STTF).
//!   The later version of the code, whose numbers are those of `sttf`, is `overshoot = false`.
//! - Plain min-RTT where first RTTs are alike (`alpha`).
//!
//! Where we differ: an output run is the data sent at one instant. The count is a test of closed form: a new assignment
//! gives no subflow two more than it has if the earliest of the segments that would be one too many does not belong to
//! it, and takes two from none if the latest of those that would be one too few does. The code considers all unsent
//! data, we the data within the peer's window. The module's own queues are tags here, so data for a subflow that is
//! gone is assigned anew at once. When nothing is in flight on the subflow that holds the first unsent byte, the
//! fastest subflow with room sends that byte.

use super::{ALPHA, Arrivals, Clock, Growth, OVERSHOOT_ABOUT, Rank};
use super::{growth, is_symmetric};
use crate::registry::{Flag, Params, flag};
use crate::scheduler::tags::Tags;
use crate::scheduler::{Entry, MinRtt, Scheduler, quotient};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::{Bytes, Duration, Instant};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "sttf-code",
    "STTF as its authors' kernel has it: last RTT sample, overshoot, assigned anew when shares change",
    include_str!("code.rs"),
    |p| Box::new(SttfCode::new(p)),
)
.paper("Karlstad MPTCP kernel, after Hurtig et al. 2019")
.parameters(&[ALPHA.parameter(), OVERSHOOT.parameter()]);

/// Shortest transmission time first, as the authors' code has it.
pub struct SttfCode {
    clock: Clock,
    growth: Growth,
    alpha: f64,
    tags: Tags,
    /// Predictions for the subflows of the view, in its order.
    outlooks: Vec<Outlook>,
    /// Time at which the latest output run began; `None` before the first.
    run: Option<Instant>,
}

/// Prediction for one subflow.
struct Outlook {
    rank: Rank,
    /// `None` while nothing may be assigned to it.
    arrivals: Option<Arrivals>,
    /// Segments that wait for it.
    queued: u64,
    /// Arrival time of the next one, and the last that arrives with it.
    next: (Duration, u64),
}

impl SttfCode {
    /// Reads the switches from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        SttfCode {
            clock: Clock::new(true),
            growth: growth(OVERSHOOT.of(parameters)),
            alpha: ALPHA.of(parameters),
            tags: Tags::default(),
            outlooks: Vec::new(),
            run: None,
        }
    }

    fn look_ahead(&mut self, now: Instant, view: &View<'_>) {
        self.outlooks.clear();
        let rtts = self.clock.rtts(now, view.subflows);
        for (place, (subflow, rtt)) in view.subflows.iter().zip(rtts).enumerate() {
            let arrivals = subflow.open.then(|| Arrivals::of(subflow, rtt, self.growth));
            let queued = segments(self.tags.queued(place), subflow);
            let mut outlook =
                Outlook { rank: Rank { rtt, id: subflow.id }, arrivals, queued, next: Default::default() };
            outlook.queue_to(queued);
            self.outlooks.push(outlook);
        }
    }

    /// Returns true if a new assignment would change a subflow's share by more than one segment.
    fn is_outdated(&self, view: &View<'_>) -> bool {
        let mss = view.subflows.iter().map(|subflow| subflow.mss).max().unwrap_or_default();
        let all = view.sendable.get().div_ceil(mss.get().max(1));
        if self.outlooks.iter().any(|outlook| outlook.arrivals.is_none() && outlook.queued > 0) {
            return true;
        }
        let key = |outlook: &Outlook, n| outlook.arrivals.map(|arrivals| (arrivals.nth(n).0, outlook.rank, n));
        let second_next = |outlook: &Outlook| match outlook.next {
            (time, last) if outlook.queued + 2 <= last => {
                outlook.arrivals.map(|_| (time, outlook.rank, outlook.queued + 2))
            }
            _ => key(outlook, outlook.queued + 2),
        };
        let too_many = self.outlooks.iter().filter_map(second_next).min();
        let with_some = self.outlooks.iter().filter(|outlook| outlook.queued >= 2);
        let too_few = with_some.filter_map(|outlook| key(outlook, outlook.queued - 1)).max();
        too_many.is_some_and(|key| self.ahead_of(key) < all) || too_few.is_some_and(|key| self.ahead_of(key) >= all)
    }

    /// Number of segments that a new assignment puts before the `n`th of a subflow, which has this arrival and rank.
    fn ahead_of(&self, (time, rank, n): (Duration, Rank, u64)) -> u64 {
        let others = self.outlooks.iter().filter(|outlook| outlook.rank != rank);
        let known = others.filter_map(|other| Some(other.arrivals?.before(time, other.rank < rank)));
        known.fold(n - 1, u64::saturating_add)
    }

    /// Tags what the peer's window admits and has no tag yet, each segment where it arrives first.
    fn assign(&mut self, view: &View<'_>) {
        while self.tags.total() < view.sendable {
            let open = self.outlooks.iter().enumerate().filter(|(_, outlook)| outlook.arrivals.is_some());
            let Some((place, best)) = open.min_by_key(|(_, outlook)| (outlook.next.0, outlook.rank)) else { return };
            let last = best.next.1;
            // The others' predictions stay as they are, so this one is best to the end of its round.
            let round = last - self.outlooks[place].queued;
            let mss = view.subflows[place].mss.max(Bytes::new(1));
            self.tags.push(place, mss.times(round).min(view.sendable - self.tags.total()));
            self.outlooks[place].queue_to(last);
        }
    }
}

impl Outlook {
    fn queue_to(&mut self, queued: u64) {
        self.queued = queued;
        self.next = self.arrivals.map(|arrivals| arrivals.nth(queued + 1)).unwrap_or_default();
    }
}

impl Scheduler for SttfCode {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        if is_symmetric(view.subflows, self.alpha) {
            self.tags.clear();
            return MinRtt.decide(now, view);
        }
        if !self.tags.is_of(view) {
            self.tags.clear();
            self.tags.adopt(view, |_| None);
        }
        self.tags.truncate(view.unsent);
        let new_run = self.run != Some(now);
        self.run = Some(now);
        if new_run || self.tags.total() < view.sendable {
            self.look_ahead(now, view);
            if new_run && self.is_outdated(view) {
                self.tags.clear();
                self.outlooks.iter_mut().for_each(|outlook| outlook.queue_to(0));
            }
            self.assign(view);
        }
        self.tags.next(view)
    }

    fn observe(&mut self, _now: Instant, event: &Event) {
        if let Event::Sent { skip, length, .. } = *event {
            self.tags.remove(skip, length);
        }
    }
}

fn segments(amount: Bytes, subflow: &SubflowView) -> u64 {
    let mss = subflow.mss.get().max(1);
    quotient(amount.get() + mss - 1, mss)
}

const OVERSHOOT: Flag = flag("overshoot", OVERSHOOT_ABOUT, true);
