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
    arithmetic: Arithmetic,
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

/// Computation of times and roots.
#[derive(Clone, Copy, Debug)]
enum Arithmetic {
    /// Times are in nanoseconds, with the root itself (RFC 8289 §5.6).
    Exact,
    /// Times are in units of 1024 ns, with a 16-bit 1/√count that one step of Newton's method brings nearer whenever
    /// the count changes (Linux, include/net/codel.h and codel_impl.h): the second drop comes 1/2 of an interval after
    /// the first, and not 1/√2.
    Newton { root: u16 },
}

impl Arithmetic {
    /// The time as this arithmetic knows it.
    fn round(self, time: Duration) -> Duration {
        match self {
            Arithmetic::Exact => time,
            Arithmetic::Newton { .. } => Duration::from_nanos(time.as_nanos() >> UNIT << UNIT),
        }
    }

    /// Returns true if a queue that may be bad from `from` on is.
    fn is_over(self, now: Instant, from: Instant) -> bool {
        match self {
            Arithmetic::Exact => now >= from,
            Arithmetic::Newton { .. } => now > from,
        }
    }

    /// The count has changed.
    fn count(&mut self, count: u32) {
        let Arithmetic::Newton { root } = self else { return };
        let old = u64::from(*root) << 16;
        // x' = x · (3 - count · x²) / 2, in parts of 2³².
        let factor = (3_u64 << 32).wrapping_sub(u64::from(count).wrapping_mul((old * old) >> 32)) >> 2;
        *root = (factor.wrapping_mul(old) >> 31 >> 16) as u16;
    }

    /// The count begins anew.
    fn restart(&mut self) {
        if let Arithmetic::Newton { root } = self {
            *root = u16::MAX;
        }
    }

    /// The interval divided by the root of the count.
    fn distance(self, interval: Duration, count: u32) -> Duration {
        match self {
            Arithmetic::Exact => Duration::from_secs_f64(interval.as_secs_f64() / libm::sqrt(f64::from(count.max(1)))),
            Arithmetic::Newton { root } => {
                Duration::from_nanos((interval.as_nanos() >> UNIT).wrapping_mul(u64::from(root)) >> 16 << UNIT)
            }
        }
    }
}

/// Bits by which Linux' CoDel shortens nanoseconds.
const UNIT: u32 = 10;

impl Control {
    /// Makes the control of an empty queue; it marks packets in place of dropping them where it may, if `marks`.
    pub fn new(target: Duration, interval: Duration, marks: bool) -> Self {
        let (bad_from, dropping, next_drop, count, began_at) = (None, false, Instant::ZERO, 0, 0);
        let arithmetic = Arithmetic::Exact;
        Control { target, interval, marks, arithmetic, bad_from, dropping, next_drop, count, began_at }
    }

    /// Computes as Linux does, to the bit.
    #[must_use]
    pub fn in_integers(mut self) -> Self {
        self.arithmetic = Arithmetic::Newton { root: 0 };
        (self.target, self.interval) = (self.arithmetic.round(self.target), self.arithmetic.round(self.interval));
        self
    }

    /// Takes the next packet out of `queue` (RFC 8289 §5.5, with marks as in Linux' `codel_dequeue`).
    pub(super) fn next(&mut self, queue: &mut Fifo, port: &mut Port<'_>) -> Option<Waiting> {
        let now = Instant::ZERO + self.arithmetic.round(port.now.since(Instant::ZERO));
        let (mut packet, mut bad) = self.take(queue, now);
        if self.dropping {
            self.dropping = bad;
            while self.dropping && now >= self.next_drop {
                let due = packet?;
                self.count += 1;
                self.arithmetic.count(self.count);
                match self.marked(due) {
                    Some(marked) => {
                        self.next_drop = self.after(self.next_drop);
                        return Some(marked);
                    }
                    None => port.drop(due, Cause::Early),
                }
                (packet, bad) = self.take(queue, now);
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
                    self.take(queue, now).0
                }
            };
            self.begin(now);
        }
        packet
    }

    /// Begins to drop, near the rate at which dropping ended if that was not long ago.
    fn begin(&mut self, now: Instant) {
        self.dropping = true;
        let last = self.count.saturating_sub(self.began_at);
        let recent = now.since(self.next_drop) < self.interval * 16;
        if last > 1 && recent {
            self.count = last;
            self.arithmetic.count(last);
        } else {
            self.count = 1;
            self.arithmetic.restart();
        }
        self.began_at = self.count;
        self.next_drop = self.after(now);
    }

    /// The packet with a mark, if it can have one.
    fn marked(&self, mut packet: Waiting) -> Option<Waiting> {
        (self.marks && packet.mark()).then_some(packet)
    }

    /// Time of the drop that follows one at `at`.
    fn after(&self, at: Instant) -> Instant {
        at + self.arithmetic.distance(self.interval, self.count)
    }

    /// The first packet, and whether the queue has been bad for an interval.
    fn take(&mut self, queue: &mut Fifo, now: Instant) -> (Option<Waiting>, bool) {
        let Some(packet) = queue.pop() else {
            self.bad_from = None;
            return (None, false);
        };
        let sojourn = self.arithmetic.round(now.since(packet.since));
        if sojourn < self.target || queue.bytes() <= FULL_PACKET {
            self.bad_from = None;
            return (Some(packet), false);
        }
        let first = self.bad_from.is_none();
        let from = *self.bad_from.get_or_insert(now + self.interval);
        (Some(packet), !first && self.arithmetic.is_over(now, from))
    }
}
