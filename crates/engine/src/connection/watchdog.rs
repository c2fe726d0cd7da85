//! Guards the connection against schedulers that starve it or busy-loop.
//!
//! An impossible answer is found where it is given. What only time shows is found here: the first unsent byte could
//! have left, and the scheduler has left it for longer than any subflow would take to notice a loss (what tail loss
//! probes take meanwhile does not count); or the scheduler has itself woken again and again to do nothing. What cannot
//! be helped is a scheduler that never returns.

use super::{Connection, Mode};
use crate::shared::Shared;
use crate::{Event, Misconduct};
use anabranch_policy::SubflowView;
use anabranch_units::{Duration, Instant};

/// State kept between two decisions.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    /// Time since which the scheduler could have sent the first unsent byte and has not.
    since: Option<Instant>,
    /// Number of consecutive wake-ups by the scheduler without a segment.
    futile: u32,
    /// The scheduler's own timer brought it here.
    woken: bool,
}

/// Limit on consecutive immediate wake-ups for nothing. Beyond it, only events wake the scheduler.
const MAX_FUTILE: u32 = 64;
/// Wait that counts as too short, for paths of any speed.
const SHORT: Duration = Duration::from_micros(10);

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

    /// Returns the time since which the scheduler could have sent the first unsent byte.
    pub(super) fn waiting_since(&mut self, now: Instant) -> Instant {
        *self.since.get_or_insert(now)
    }

    /// The scheduler waits and wants to be woken at `until`. What it gets, and whether it has just lost its timer.
    /// Rounds of the fastest subflow are no spinning, however many of them the slowest takes.
    pub(super) fn timer(
        &mut self,
        now: Instant,
        until: Option<Instant>,
        views: &[SubflowView],
    ) -> (Option<Instant>, bool) {
        let woken = std::mem::take(&mut self.woken);
        let fastest = views.iter().map(|view| view.srtt).min().unwrap_or(Duration::ZERO);
        let soon = until.is_some_and(|at| at < now + (fastest / 2).max(SHORT));
        if woken && soon && self.futile < MAX_FUTILE {
            self.futile += 1;
            if self.futile == MAX_FUTILE {
                return (None, true);
            }
        }
        (until.filter(|_| self.futile < MAX_FUTILE), false)
    }
}

/// Longest time for which the scheduler may hold back a first unsent byte that could leave: the largest RTO of all
/// subflows.
pub(super) fn patience(views: &[SubflowView]) -> Duration {
    views.iter().map(|view| view.rto).max().unwrap_or(Duration::ZERO)
}

impl Connection {
    /// Counts it, and tells the application of the first of its kind.
    pub(super) fn overrule(&mut self, why: Misconduct, shared: &mut Shared) {
        let count = self.stats.overruled.count_mut(why);
        *count += 1;
        if *count == 1 && self.life.mode() == Mode::Multipath {
            shared.event(self.id, Event::SchedulerOverruled(why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::{Bytes, SubflowId};

    /// Number of times in a row that a scheduler gets its timer that always asks for it `wait` later, beside paths of 1
    /// and 400 ms.
    fn granted(wait: Duration) -> usize {
        let (ms, mss) = (Duration::from_millis, Bytes::new(1460));
        let views = [ms(1), ms(400)].map(|srtt| SubflowView::steady(SubflowId(0), mss, srtt, mss));
        let (mut watchdog, mut now) = (Watchdog::default(), Instant::ZERO);
        let mut ask = || {
            let (timer, _) = watchdog.timer(now, Some(now + wait), &views);
            now += wait;
            watchdog.wake();
            timer.is_some()
        };
        (0..1000).take_while(|_| ask()).count()
    }

    #[test]
    fn rounds_of_the_fastest_path_are_no_spinning() {
        assert_eq!(granted(Duration::from_millis(1)), 1000);
        assert_eq!(granted(Duration::from_micros(100)), 64);
        assert_eq!(granted(Duration::from_nanos(1)), 64);
    }
}
