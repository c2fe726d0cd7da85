//! Packet schedulers: which unsent bytes leave on which subflow, now or later.

mod blest;
mod blest_kernel;
mod ecf;
mod late;
mod min_rtt;
mod round_robin;
mod single;
#[cfg(test)]
mod testing;

use crate::registry::{Domain, Entry, Parameter};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::{Instant, Seed};

pub use blest::Blest;
pub use blest_kernel::BlestKernel;
pub use ecf::Ecf;
pub use late::Late;
pub use min_rtt::MinRtt;
pub use round_robin::RoundRobin;
pub use single::Single;

/// Decides which subflow carries which bytes next. Sees the view, touches nothing else.
///
/// The engine asks only when it matters: at least two subflows are usable, one of them has room, and the window admits
/// unsent data. It checks every answer; an impossible one, or a wait while nothing is in flight, is overruled and counted.
pub trait Scheduler: Send {
    /// Called again and again until it answers `Wait` or nothing can be sent.
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision;
    /// Called for each event in the order it happened. Most schedulers have no use for it.
    fn observe(&mut self, _now: Instant, _event: &Event) {}
    /// Whether it sends copies ([`Decision::Repeat`]): it is asked then also while nothing is unsent and something is
    /// not acknowledged.
    fn repeats(&self) -> bool {
        false
    }
    /// Called once before all else: the only chance there is. Draw from `seed.stream("name of the scheduler")`.
    fn seed(&mut self, _seed: Seed) {}
}

/// Every policy of this kind.
pub const SCHEDULERS: &[Entry<dyn Scheduler>] = &[
    Entry {
        name: "single",
        about: "everything on one subflow; the baseline",
        paper: None,
        parameters: single::PARAMETERS,
        source: include_str!("single.rs"),
        build: |p| Box::new(Single::new(p)),
    },
    Entry {
        name: "round-robin",
        about: "the subflows take turns",
        paper: None,
        parameters: round_robin::PARAMETERS,
        source: include_str!("round_robin.rs"),
        build: |p| Box::new(RoundRobin::new(p)),
    },
    Entry {
        name: "min-rtt",
        about: "the lowest SRTT with room",
        paper: Some("Linux MPTCP v0.95, default"),
        parameters: &[],
        source: include_str!("min_rtt.rs"),
        build: |_| Box::new(MinRtt),
    },
    Entry {
        name: "ecf",
        about: "waits for the fastest subflow while that completes the data earlier",
        paper: Some("Lim et al. 2017"),
        parameters: ecf::PARAMETERS,
        source: include_str!("ecf.rs"),
        build: |p| Box::new(Ecf::new(p)),
    },
    Entry {
        name: "blest",
        about: "skips a slow subflow that would let the send window block the fast one; as printed",
        paper: Some("Ferlin et al. 2016"),
        parameters: blest::PARAMETERS,
        source: include_str!("blest.rs"),
        build: |p| Box::new(Blest::new(p)),
    },
    Entry {
        name: "blest-kernel",
        about: "BLEST as Linux MPTCP has it: other constants, whole rounds, slow start",
        paper: Some("Linux MPTCP v0.95, after Ferlin et al. 2016"),
        parameters: blest_kernel::PARAMETERS,
        source: include_str!("blest_kernel.rs"),
        build: |p| Box::new(BlestKernel::new(p)),
    },
    Entry {
        name: "late",
        about: "the slowest subflow starts behind what the others are expected to deliver by then, losses included",
        paper: Some("Yang et al., LATE"),
        parameters: late::PARAMETERS,
        source: include_str!("late.rs"),
        build: |p| Box::new(Late::new(p)),
    },
];

/// Whether waiting for `subflow` can end: an acknowledgment of it is due. Who waits for anything else waits for nothing.
fn ack_due(subflow: &SubflowView) -> bool {
    !subflow.in_flight.is_zero()
}

/// A pure number in `min..=max`.
const fn number(name: &'static str, about: &'static str, default: f64, min: f64, max: f64) -> Parameter {
    Parameter { name, about, unit: "", domain: Domain::Number { default, min, max } }
}

/// True or false.
const fn flag(name: &'static str, about: &'static str, default: bool) -> Parameter {
    Parameter { name, about, unit: "", domain: Domain::Flag { default } }
}
