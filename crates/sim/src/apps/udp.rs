//! UDP at a constant mean rate that is on and off in turn.

use super::App;
use super::gaps::Gaps;
use crate::stage::Stage;
use crate::{Direction, UdpOutcome};
use anabranch_units::{Bytes, Duration, Instant};

pub(super) struct Udp {
    app: usize,
    /// Its number among the UDP workloads.
    number: usize,
    path: usize,
    direction: Direction,
    packet: Bytes,
    schedule: Schedule,
    /// When the present phase began.
    phase: Instant,
    done: bool,
}

pub(super) struct Schedule {
    pub(super) gaps: Gaps,
    /// Zero for always.
    pub(super) on: Duration,
    pub(super) off: Duration,
    pub(super) stop: Instant,
}

impl Udp {
    pub(super) fn new(
        app: usize,
        path: usize,
        direction: Direction,
        packet: Bytes,
        schedule: Schedule,
        start: Instant,
        stage: &mut Stage,
    ) -> Self {
        let number = stage.udp.len();
        stage.udp.push(UdpOutcome { workload: app, ..UdpOutcome::default() });
        Udp { app, number, path, direction, packet, schedule, phase: start, done: false }
    }
}

impl App for Udp {
    fn begin(&mut self, stage: &mut Stage) {
        stage.set_timer(self.app, self.phase, 0);
    }

    fn on_timer(&mut self, _token: u32, stage: &mut Stage) {
        let Schedule { on, off, stop, .. } = self.schedule;
        if stage.now >= stop {
            self.done = true;
            return;
        }
        stage.send_datagram(self.number, self.path, self.direction, self.packet);
        let mut next = stage.now + self.schedule.gaps.next();
        if !on.is_zero() && next >= self.phase + on {
            self.phase = (self.phase + on + off).max(next);
            next = self.phase;
        }
        stage.set_timer(self.app, next, 0);
    }

    fn is_done(&self) -> bool {
        self.done
    }
}
