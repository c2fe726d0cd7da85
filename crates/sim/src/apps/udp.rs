//! UDP at a constant mean rate that is on and off in turn.
//!
//! The gaps between packets count the time that it is on: a gap that an off period interrupts goes on after it. So the
//! mean rate is the share of time that it is on of the rate, however short the periods are.

use super::App;
use super::gaps::Gaps;
use crate::UdpOutcome;
use crate::stage::Stage;
use anabranch_paths::Direction;
use anabranch_units::{Bytes, Instant};

pub(super) struct Udp {
    flow: Flow,
    /// Its number among the UDP workloads of all clients.
    number: usize,
    schedule: Schedule,
    /// Beginning of the first time on.
    start: Instant,
    /// End of the present time on.
    on_until: Instant,
    done: bool,
}

/// Packets that are alike.
pub(super) struct Flow {
    /// The number of the application.
    pub(super) app: usize,
    pub(super) client: usize,
    /// Its workload, by index.
    pub(super) workload: usize,
    /// Number of the path in the topology.
    pub(super) path: usize,
    pub(super) direction: Direction,
    /// Size of the IP packet.
    pub(super) packet: Bytes,
}

pub(super) struct Schedule {
    pub(super) gaps: Gaps,
    /// On and off phases; always on if `None`.
    pub(super) phases: Option<Phases>,
    pub(super) stop: Instant,
}

/// Times on and off, in turn.
pub(super) struct Phases {
    pub(super) on: Gaps,
    pub(super) off: Gaps,
}

impl Udp {
    pub(super) fn new(flow: Flow, schedule: Schedule, start: Instant, stage: &mut Stage) -> Self {
        let number = stage.udp.len();
        let Flow { client, workload, .. } = flow;
        stage.udp.push(UdpOutcome { client, workload, ..UdpOutcome::default() });
        Udp { flow, number, schedule, start, on_until: start, done: false }
    }
}

impl App for Udp {
    fn begin(&mut self, stage: &mut Stage) {
        if let Some(phases) = &mut self.schedule.phases {
            self.on_until = self.start + phases.on.next();
        }
        stage.set_timer(self.flow.app, self.start, 0);
    }

    fn on_timer(&mut self, _token: u32, stage: &mut Stage) {
        if stage.now >= self.schedule.stop {
            self.done = true;
            return;
        }
        stage.send_datagram(self.number, self.flow.path, self.flow.direction, self.flow.packet);
        let mut next = stage.now + self.schedule.gaps.next();
        if let Some(phases) = &mut self.schedule.phases {
            // Neither the end of the run nor that of the workload need be waited for.
            while next >= self.on_until && next < self.schedule.stop {
                let off = phases.off.next();
                next += off;
                self.on_until += off + phases.on.next();
            }
        }
        stage.set_timer(self.flow.app, next, 0);
    }

    fn is_done(&self) -> bool {
        self.done
    }
}
