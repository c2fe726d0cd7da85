//! The work of a run, in events of the simulator: the same on every machine, unlike time.

use anabranch_engine::Purpose;
use anabranch_paths::{End, PacketId};
use anabranch_sim::{Condition, Loss, Observer, Sight};
use std::sync::atomic::{AtomicBool, Ordering};

/// Counts the events of a run, and ends it after so many, or once a flag is set.
pub(crate) struct Meter<'a> {
    pub(crate) events: u64,
    most: u64,
    stop: Option<&'a AtomicBool>,
    /// True if it has ended the run.
    pub(crate) ended: bool,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(most: u64, stop: Option<&'a AtomicBool>) -> Self {
        Meter { events: 0, most, stop, ended: false }
    }
}

impl Observer for Meter<'_> {
    fn on_sent(&mut self, _sight: Sight<'_>, _purpose: Option<Purpose>) {}

    fn on_received(&mut self, _sight: Sight<'_>, _condition: Condition) {}

    fn on_lost(&mut self, _id: PacketId, _loss: Loss<'_>) {}

    fn on_kept(&mut self, _id: PacketId, _path: usize, _end: End) {}

    fn is_enough(&mut self) -> bool {
        self.events += 1;
        self.ended |= self.events >= self.most || self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        self.ended
    }
}
