//! DAPS, delay-aware packet scheduling: a plan of turns, so that data sent in the order of the plan arrives in order.
//!
//! N. Kuhn, E. Lochin, A. Mifdaoui, G. Sarwar, O. Mehani, R. Boreli. *DAPS: Intelligent Delay-Aware Packet Scheduling
//! for Multipath Transport.* IEEE ICC 2014. Constants and switches from the kernel of Karlstad University (LOWLAT).
//!
//! With forward delays `d_i = srtt_i / 2`, subflow `i` has a turn at each multiple of `d_i`, of equals the shorter
//! delay first, until all coincide. A turn is one window of the stream: on two paths with `d_s = η d_f` the fast one
//! has `η` turns before the slow one's, which so begins with segment `η · cwnd_f + 1`. Then a new plan is made.
//!
//! We lay out turns only until a subflow with room has one, or all sendable data is dealt out. A turn is a number of
//! bytes; it begins where the turns before it end, and shrinks as its bytes leave, on any subflow ([`Tags`]).
//!
//! - `round_delay`: delays are rounded to multiples, or two of 37 and 38 ms would coincide after 1.4 s. 0: whole
//!   milliseconds, as the paper has it.
//! - `use_planned_cwnd`: windows as they are when the plan begins, not when a turn does.
//! - `smooth_cwnd`: windows averaged with gain 1/8, one sample per window; as in the kernel, one per decision while all
//!   sent data is acknowledged.
//!
//! Where we differ: turns come from a merge of the multiples, not from a loop over all milliseconds up to their least
//! common multiple; a plan of 1,000 turns ends although they do not coincide, if each subflow had one. Nothing is moved
//! into a subflow before it can leave (the kernel queues whole turns; the outcome is the same). A plan is dropped when
//! the subflows change. Turns of a subflow that may not send (RTO recovery) are dropped, and it has none until it may;
//! it does not make up for them. When the subflow that holds the first unsent byte has nothing in flight, the fastest
//! with room sends that byte. The kernel's repetition of data when the peer's window is full is a policy of its own
//! here: `reinjection`. The kernel takes microseconds for milliseconds; we do not.

use super::per_subflow::PerSubflow;
use super::tags::{Tags, places};
use super::{Entry, Scheduler};
use crate::registry::{Flag, Number, Params, flag, number};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::Instant;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "daps",
    "turns at multiples of the delays, so that data sent in the order of turns arrives in order",
    include_str!("daps.rs"),
    |p| Box::new(Daps::new(p)),
)
.paper("Kuhn et al. 2014")
.parameters(&[ROUND_DELAY.parameter(), USE_PLANNED_CWND.parameter(), SMOOTH_CWND.parameter()]);

/// Delay-aware packet scheduling.
pub struct Daps {
    /// Delays are multiples of this [ms].
    round_delay: u64,
    use_planned_cwnd: bool,
    smooth_cwnd: bool,
    flows: PerSubflow<Flow>,
    /// Number of turns of the plan laid out; `None` if there is no plan.
    laid_out: Option<u32>,
    /// The turns that are laid out.
    turns: Tags,
}

/// State of one subflow.
struct Flow {
    /// Average window, in eighths of a segment; 0 before the first sample.
    smoothed: u64,
    /// Subflow offset to be acknowledged before the next sample.
    sample_at: u64,
    /// Forward delay in this plan [ms].
    delay: u64,
    /// Its next multiple: when it has a turn.
    next: u64,
    /// Window when the plan began, in segments.
    planned: u64,
}

impl Daps {
    /// Reads the rounding and the switches from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        Daps {
            round_delay: ROUND_DELAY.of(parameters) as u64,
            use_planned_cwnd: USE_PLANNED_CWND.of(parameters),
            smooth_cwnd: SMOOTH_CWND.of(parameters),
            flows: PerSubflow::default(),
            laid_out: None,
            turns: Tags::default(),
        }
    }

    /// Keeps what is known of the subflows, and the turns, in step with the view.
    fn follow(&mut self, view: &View<'_>) {
        let first = |_: &SubflowView| Flow { smoothed: 0, sample_at: 0, delay: 1, next: 1, planned: 1 };
        if self.flows.follow(view.subflows, first) {
            self.turns.clear();
            self.turns.adopt(view, |_| None);
            self.laid_out = None;
        }
        for (flow, subflow) in self.flows.iter_mut().zip(view.subflows) {
            flow.sample(subflow);
        }
        for (place, _) in view.subflows.iter().enumerate().filter(|(_, subflow)| !subflow.open) {
            self.turns.withdraw(place);
        }
    }

    fn begin_plan(&mut self, view: &View<'_>) {
        for (flow, subflow) in self.flows.iter_mut().zip(view.subflows) {
            flow.delay = rounded(subflow.srtt.as_millis() / 2, self.round_delay);
            flow.next = flow.delay;
            flow.planned = flow.window(subflow, self.smooth_cwnd);
        }
    }

    /// Lays out the next turn of the plan; whose it is. `None` if no subflow may have one.
    fn lay_out(&mut self, view: &View<'_>) -> Option<usize> {
        let laid_out = self.laid_out.unwrap_or_else(|| {
            self.begin_plan(view);
            0
        });
        let open = |(at, _): &(usize, &Flow)| view.subflows[*at].open;
        let next = self.flows.iter().enumerate().filter(open).min_by_key(|(_, flow)| (flow.next, flow.delay));
        let (at, due) = next.map(|(at, flow)| (at, flow.next))?;
        let subflow = &view.subflows[at];
        let flow = &mut self.flows[at];
        flow.next += flow.delay;
        let window = if self.use_planned_cwnd { flow.planned } else { flow.window(subflow, self.smooth_cwnd) };
        self.turns.push(at, subflow.mss.times(window));
        for (flow, _) in self.flows.iter_mut().zip(view.subflows).filter(|(_, subflow)| !subflow.open) {
            flow.next = flow.next.max((due / flow.delay + 1) * flow.delay);
        }
        let mut flows = self.flows.iter().enumerate().filter(open).map(|(_, flow)| flow);
        let is_over = match laid_out + 1 < LONGEST_PLAN {
            true => flows.all(|flow| flow.next == due + flow.delay),
            false => flows.all(|flow| flow.next > flow.delay),
        };
        self.laid_out = if is_over { None } else { Some(laid_out + 1) };
        Some(at)
    }
}

impl Scheduler for Daps {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        self.follow(view);
        let with_room = places(view, SubflowView::has_room);
        let mut laid_out = self.turns.first_of(with_room).is_some();
        while !laid_out && self.turns.total() < view.sendable && self.turns.runs() < MOST_RUNS {
            match self.lay_out(view) {
                Some(place) => laid_out = with_room >> place & 1 != 0,
                None => break,
            }
        }
        self.turns.next(view)
    }

    fn observe(&mut self, _now: Instant, event: &Event) {
        if let Event::Sent { skip, length, .. } = *event {
            self.turns.remove(skip, length);
        }
    }
}

impl Flow {
    /// Takes a sample of the window, once per window or, while it is idle, each time.
    fn sample(&mut self, subflow: &SubflowView) {
        let cwnd = u64::from(subflow.cwnd_segments());
        if self.smoothed == 0 {
            self.smoothed = 8 * cwnd;
        } else if subflow.acked >= self.sample_at {
            self.smoothed = (self.smoothed - self.smoothed / 8 + cwnd).max(1);
        } else {
            return;
        }
        self.sample_at = subflow.sent;
    }

    /// Number of segments of a turn.
    fn window(&self, subflow: &SubflowView, smooth: bool) -> u64 {
        if smooth { (self.smoothed / 8).max(1) } else { u64::from(subflow.cwnd_segments()) }
    }
}

/// Rounds to the nearest multiple of `base`, at least 1; half of it, in whole milliseconds, rounds up.
fn rounded(delay: u64, base: u64) -> u64 {
    let rest = delay.checked_rem(base).unwrap_or(0);
    let multiple = if rest < base / 2 { delay - rest } else { delay + (base - rest) };
    if base < 2 { delay.max(1) } else { multiple.max(1) }
}

/// A plan whose turns do not coincide by then ends as soon as each subflow had one.
const LONGEST_PLAN: u32 = 1_000;
/// More runs of turns than that are never laid out at a time.
const MOST_RUNS: usize = 256;
const ROUND_DELAY: Number =
    number("round_delay", "delays are rounded to multiples of this", 4.0, 0.0..=255.0).in_unit("ms");
const USE_PLANNED_CWND: Flag =
    flag("use_planned_cwnd", "windows as they are when the plan begins, not when a turn does", true);
const SMOOTH_CWND: Flag = flag("smooth_cwnd", "windows averaged with gain 1/8, one sample per window", true);

#[cfg(test)]
mod tests;
