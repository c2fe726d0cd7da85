//! Control law of CoDel (RFC 8289): a queue is bad if none of its packets waited less than a target for an interval.

use super::fifo::Fifo;
use super::{Cause, Port, Waiting};
use anabranch_units::{Duration, Instant};

/// Bytes of which a queue consists at least while it is bad: one full packet (RFC 8289 §5.6).
const FULL_PACKET: u64 = 1514;

/// Controls the delay of one queue.
#[derive(Clone, Debug)]
pub struct Control {
    target: Duration,
    interval: Duration,
    marks: bool,
    /// Time from which on the queue is bad: an interval after the first packet that waited too long. `None` if the last
    /// one did not.
    bad_from: Option<Instant>,
    dropping: bool,
    next_drop: Instant,
    /// Packets dropped since dropping began, or continued from the time before.
    count: u32,
    /// `count` as dropping began.
    began_at: u32,
}

impl Control {
    /// Makes the control of an empty queue; it marks packets in place of dropping them where it may, if `marks`.
    pub fn new(target: Duration, interval: Duration, marks: bool) -> Self {
        let (bad_from, dropping, next_drop, count, began_at) = (None, false, Instant::ZERO, 0, 0);
        Control { target, interval, marks, bad_from, dropping, next_drop, count, began_at }
    }

    /// Takes the next packet out of `queue` (RFC 8289 §5.5, with marks as in Linux' `codel_dequeue`).
    pub(super) fn next(&mut self, queue: &mut Fifo, port: &mut Port<'_>) -> Option<Waiting> {
        let (mut packet, mut bad) = self.take(queue, port.now);
        if self.dropping {
            self.dropping = bad;
            while self.dropping && port.now >= self.next_drop {
                let due = packet?;
                self.count += 1;
                match self.marked(due) {
                    Some(marked) => {
                        self.next_drop = self.after(self.next_drop);
                        return Some(marked);
                    }
                    None => port.drop(due, Cause::Early),
                }
                (packet, bad) = self.take(queue, port.now);
                self.dropping = bad;
                if bad {
                    self.next_drop = self.after(self.next_drop);
                }
            }
        } else if bad {
            let due = packet?;
            packet = match self.marked(due) {
                Some(marked) => Some(marked),
                None => {
                    port.drop(due, Cause::Early);
                    self.take(queue, port.now).0
                }
            };
            self.begin(port.now);
        }
        packet
    }

    /// Begins to drop, near the rate at which dropping ended if that was not long ago.
    fn begin(&mut self, now: Instant) {
        self.dropping = true;
        let last = self.count.saturating_sub(self.began_at);
        let recent = now.since(self.next_drop) < self.interval * 16;
        self.count = if last > 1 && recent { last } else { 1 };
        self.began_at = self.count;
        self.next_drop = self.after(now);
    }

    /// The packet with a mark, if it can have one.
    fn marked(&self, mut packet: Waiting) -> Option<Waiting> {
        (self.marks && packet.mark()).then_some(packet)
    }

    /// Time of the drop that follows one at `at`.
    fn after(&self, at: Instant) -> Instant {
        at + Duration::from_secs_f64(self.interval.as_secs_f64() / libm::sqrt(f64::from(self.count.max(1))))
    }

    /// The first packet, and whether the queue has been bad for an interval.
    fn take(&mut self, queue: &mut Fifo, now: Instant) -> (Option<Waiting>, bool) {
        let Some(packet) = queue.pop() else {
            self.bad_from = None;
            return (None, false);
        };
        if now.since(packet.since) < self.target || queue.bytes() <= FULL_PACKET {
            self.bad_from = None;
            return (Some(packet), false);
        }
        let from = *self.bad_from.get_or_insert(now + self.interval);
        (Some(packet), now >= from)
    }
}
