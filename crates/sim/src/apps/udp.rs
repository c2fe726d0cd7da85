//! UDP at a constant mean rate that is on and off in turn.

use super::App;
use crate::stage::Stage;
use crate::{Direction, Spacing, UdpOutcome};
use anabranch_units::{Bytes, Duration, Instant, Stream};

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

/// The times from one packet to the next.
pub(super) struct Gaps {
    mean: Duration,
    spacing: Spacing,
    stream: Stream,
}

impl Gaps {
    pub(super) fn new(mean: Duration, spacing: Spacing, stream: Stream) -> Self {
        Gaps { mean, spacing, stream }
    }

    fn next(&mut self) -> Duration {
        match self.spacing {
            Spacing::Even => self.mean,
            Spacing::Uniform => {
                Duration::from_nanos(self.stream.between(0, self.mean.as_nanos().saturating_mul(2)).max(1))
            }
        }
    }
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
