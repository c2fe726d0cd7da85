//! Packet schedulers: which unsent bytes leave on which subflow, now or later.

use crate::registry::Entry;
use crate::{Decision, Event, View};
use anabranch_units::Instant;

/// Decides which subflow carries which bytes next. Sees the view, touches nothing else.
///
/// The engine asks only when it matters: at least two subflows are usable, one of them has room, and the window admits
/// unsent data. It checks every answer; an impossible one, or a wait while nothing is in flight, is overruled and counted.
pub trait Scheduler: Send {
    /// Called again and again until it answers `Wait` or nothing can be sent.
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision;
    /// Called for each event in the order it happened. Most schedulers have no use for it.
    fn observe(&mut self, _now: Instant, _event: &Event) {}
}

/// Every policy of this kind.
pub const SCHEDULERS: &[Entry<dyn Scheduler>] = &[];
