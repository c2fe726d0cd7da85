//! A link without time of its own, for tests of disciplines.

use super::{Cause, Limit, Next, Port, QueueDiscipline, Waiting};
use anabranch_units::{Duration, Ecn, Instant, Rate, Seed, Stream};
use std::collections::VecDeque;

/// Bytes of a packet.
pub(crate) const SIZE: u32 = 1500;

/// A discipline with what its link holds.
pub(crate) struct Bench {
    discipline: Box<dyn QueueDiscipline>,
    limit: Limit,
    held: (u32, u64),
    stream: Stream,
    dropped: VecDeque<(Waiting, Cause)>,
}

impl QueueDiscipline for Box<dyn QueueDiscipline> {
    fn enqueue(&mut self, packet: Waiting, port: &mut Port<'_>) {
        (**self).enqueue(packet, port);
    }

    fn dequeue(&mut self, port: &mut Port<'_>) -> Next {
        (**self).dequeue(port)
    }

    fn clear(&mut self) {
        (**self).clear();
    }
}

impl Bench {
    pub(crate) fn new(discipline: impl QueueDiscipline + 'static, packets: u32) -> Bench {
        let limit = Limit { packets, bytes: u64::MAX };
        let (held, stream, dropped) = ((0, 0), Seed(1).stream("queue"), VecDeque::new());
        Bench { discipline: Box::new(discipline), limit, held, stream, dropped }
    }

    fn with<T>(&mut self, now: Instant, act: impl FnOnce(&mut dyn QueueDiscipline, &mut Port<'_>) -> T) -> T {
        let mut port = Port {
            now,
            rate: Rate::from_mbps(12),
            limit: self.limit,
            packets: self.held.0,
            bytes: self.held.1,
            stream: &mut self.stream,
            dropped: &mut self.dropped,
        };
        let done = act(&mut *self.discipline, &mut port);
        self.held = (port.packets, port.bytes);
        done
    }

    /// A packet comes.
    pub(crate) fn take(&mut self, packet: Waiting) {
        self.held = (self.held.0 + 1, self.held.1 + u64::from(packet.size));
        self.with(packet.since, |discipline, port| discipline.enqueue(packet, port));
    }

    /// A packet of this flow comes at `ms`.
    pub(crate) fn come(&mut self, ms: u64, id: u32, flow: u64) {
        self.come_with(ms, id, flow, Ecn::NotEct);
    }

    /// A packet of a transport that knows marks comes at `ms`.
    pub(crate) fn come_capable(&mut self, ms: u64, id: u32, flow: u64) {
        self.come_with(ms, id, flow, Ecn::Ect0);
    }

    pub(crate) fn come_with(&mut self, ms: u64, id: u32, flow: u64, ecn: Ecn) {
        self.take(Waiting { id, size: SIZE, flow, hosts: [flow, flow], ecn, since: at(ms) });
    }

    /// The answer to a link that can send at `now`.
    pub(crate) fn ask(&mut self, now: Instant) -> Next {
        let next = self.with(now, |discipline, port| discipline.dequeue(port));
        if let Next::Packet(packet) = next {
            self.held = (self.held.0 - 1, self.held.1 - u64::from(packet.size));
        }
        next
    }

    pub(crate) fn next(&mut self, ms: u64) -> Next {
        self.ask(at(ms))
    }

    /// The packet that leaves at `ms`.
    pub(crate) fn leave(&mut self, ms: u64) -> Option<u32> {
        self.leave_marked(ms).map(|(id, _)| id)
    }

    /// The packet that leaves at `ms`, and whether it has a mark.
    pub(crate) fn leave_marked(&mut self, ms: u64) -> Option<(u32, bool)> {
        let Next::Packet(packet) = self.next(ms) else { return None };
        Some((packet.id, packet.ecn == Ecn::Ce))
    }

    /// Packets dropped since the last call.
    pub(crate) fn gone(&mut self) -> Vec<(u32, Cause)> {
        self.dropped.drain(..).map(|(packet, cause)| (packet.id, cause)).collect()
    }

    /// Times in ms of the drops of a queue in which each packet waits `wait` ms: one comes in each until `end`, and one
    /// more for each that was dropped, so that the delay stays.
    pub(crate) fn times_of_drops(&mut self, wait: u32, end: u32) -> Vec<u32> {
        let mut drops = Vec::new();
        for ms in 0..end {
            self.come(u64::from(ms), ms, 0);
            if ms >= wait {
                self.leave(u64::from(ms));
                for _ in self.gone() {
                    drops.push(ms);
                    self.come(u64::from(ms), 10_000 + ms, 0);
                }
            }
        }
        drops
    }

    pub(crate) fn held(&self) -> (u32, u64) {
        self.held
    }

    pub(crate) fn clear(&mut self) {
        self.discipline.clear();
        self.held = (0, 0);
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}
