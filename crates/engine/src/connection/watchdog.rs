//! Watches the scheduler, which may be anybody's code: it shall not starve the connection, and not spin.
//!
//! An impossible answer is found where it is given. What only time shows is found here: the first unsent byte could have
//! left, and the scheduler has left it for longer than any subflow would take to notice a loss (what tail loss probes take
//! meanwhile does not count); or the scheduler has itself woken again and again to do nothing.
//! What cannot be helped is a scheduler that never returns.

use super::{Connection, Mode};
use crate::shared::Shared;
use crate::{Event, Misconduct};
use anabranch_policy::SubflowView;
use anabranch_units::{Duration, Instant};

/// What is remembered between two decisions.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    /// Since when the scheduler could have sent the first unsent byte and has not.
    since: Option<Instant>,
    /// It had itself woken this often in a row, and nothing left.
    futile: u32,
    /// The scheduler's own timer brought it here.
    woken: bool,
}

/// So often in a row may a scheduler have itself woken for nothing. Then only what happens wakes it.
const MAX_FUTILE: u32 = 64;

impl Watchdog {
    /// The scheduler's timer has run out.
    pub(super) fn wake(&mut self) {
        self.woken = true;
    }

    /// Data left.
    pub(super) fn on_sent(&mut self) {
        self.futile = 0;
        self.woken = false;
    }

    /// The scheduler sends the first unsent byte, or it is not its doing that nothing leaves.
    pub(super) fn acquit(&mut self) {
        self.since = None;
        self.woken = false;
    }

    /// Since when the scheduler could have sent the first unsent byte.
    pub(super) fn waiting_since(&mut self, now: Instant) -> Instant {
        *self.since.get_or_insert(now)
    }

    /// The scheduler waits and wants to be woken at `until`. What it gets, and whether it has just lost its timer.
    pub(super) fn timer(&mut self, until: Option<Instant>) -> (Option<Instant>, bool) {
        let woken = std::mem::take(&mut self.woken);
        if woken && self.futile < MAX_FUTILE {
            self.futile += 1;
            if self.futile == MAX_FUTILE {
                return (None, true);
            }
        }
        (until.filter(|_| self.futile < MAX_FUTILE), false)
    }
}

/// How long the scheduler may leave the first unsent byte although it could leave: as long as the most patient subflow
/// takes to notice a loss.
pub(super) fn patience(views: &[SubflowView]) -> Duration {
    views.iter().map(|view| view.rto).max().unwrap_or(Duration::ZERO)
}

impl Connection {
    /// Counts it, and tells the application of the first of its kind.
    pub(super) fn overrule(&mut self, why: Misconduct, shared: &mut Shared) {
        let count = self.stats.overruled.count_mut(why);
        *count += 1;
        if *count == 1 && self.mode == Mode::Multipath {
            shared.event(self.id, Event::SchedulerOverruled(why));
        }
    }
}
