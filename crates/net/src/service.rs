//! Departure of packets: at a constant rate or by a trace.
//!
//! A link is first come, first served, so the departure of a packet is known when it is queued and nothing needs to
//! happen at the departures between. Only a change of service recomputes them.

use crate::Trace;
use crate::trace::{Cursor, Served};
use anabranch_units::{Duration, Instant, Rate};
use std::sync::Arc;

/// Rate at which a queue drains.
#[derive(Clone, Debug, PartialEq)]
pub enum Service {
    /// Constant rate; at rate zero no packet moves.
    Rate(Rate),
    /// Recorded rate. The run begins at the trace's own offset.
    Trace(Arc<Trace>),
}

/// A service at work.
#[derive(Debug)]
pub(crate) enum Server {
    Rate(Constant),
    Trace(Cursor),
}

/// Serves at a constant rate. Time is exact to a fraction of a nanosecond, so that rounding never adds up: a link
/// carries its rate in the long run, for packets of any size.
#[derive(Debug)]
pub(crate) struct Constant {
    rate: u64,
    /// Departure of the last packet: `free_at` and `fraction / rate` nanoseconds.
    free_at: Instant,
    fraction: u64,
    /// The size served last with its time in whole nanoseconds and the remainder: most packets are of one size, and a
    /// division costs more than all the rest.
    size: u32,
    nanos: u64,
    remainder: u64,
    /// Remaining work of the packet in service while the rate is zero.
    stalled: Option<Work>,
}

/// Service still to be done: bits times nanoseconds per second, which both kinds of server can count exactly.
pub(crate) type Work = u128;

impl Service {
    /// The rate in the long run.
    pub fn mean_rate(&self) -> Rate {
        match self {
            Service::Rate(rate) => *rate,
            Service::Trace(trace) => trace.mean_rate(),
        }
    }
}

impl From<Rate> for Service {
    fn from(rate: Rate) -> Self {
        Service::Rate(rate)
    }
}

impl From<Trace> for Service {
    fn from(trace: Trace) -> Self {
        Service::Trace(Arc::new(trace))
    }
}

impl From<Arc<Trace>> for Service {
    fn from(trace: Arc<Trace>) -> Self {
        Service::Trace(trace)
    }
}

impl Server {
    /// Idle at `now`.
    pub(crate) fn new(service: Service, now: Instant) -> Self {
        match service {
            Service::Rate(rate) => Server::Rate(Constant::new(rate)),
            Service::Trace(trace) => Server::Trace(Cursor::new(trace, now)),
        }
    }

    /// Forgets what it was to serve.
    pub(crate) fn reset(&mut self, now: Instant) {
        *self = match self {
            Server::Rate(constant) => Server::Rate(Constant::new(Rate::from_bps(constant.rate))),
            Server::Trace(cursor) => Server::Trace(Cursor::new(cursor.trace().clone(), now)),
        };
    }

    /// Serves a packet queued at `now` behind all that was served before.
    #[inline]
    pub(crate) fn serve(&mut self, now: Instant, size: u32) -> Served {
        match self {
            Server::Rate(constant) => Served { departs: constant.serve(now, size), at_once: 0 },
            Server::Trace(cursor) => cursor.serve(now, u64::from(size)),
        }
    }

    /// Returns the remaining work of the packet at the head of the queue, which was to leave as `served` says.
    pub(crate) fn unserved(&self, now: Instant, size: u32, served: Served) -> Work {
        let whole = u128::from(size) * WORK_PER_BYTE;
        let left = match self {
            Server::Rate(Constant { rate: 0, stalled, .. }) => stalled.unwrap_or(whole),
            Server::Rate(constant) => u128::from(served.departs.since(now).as_nanos()) * u128::from(constant.rate),
            // All that is offered until it leaves is for this packet: it is the first.
            Server::Trace(cursor) => cursor.offered_until(now, served),
        };
        left.min(whole)
    }

    /// Takes over a packet of which `left` is still to be served; the first task of a new server.
    pub(crate) fn resume(&mut self, now: Instant, left: Work) -> Served {
        match self {
            Server::Rate(constant) => Served { departs: constant.resume(now, left), at_once: 0 },
            Server::Trace(cursor) => cursor.resume(now, left),
        }
    }
}

impl Constant {
    fn new(rate: Rate) -> Self {
        Constant {
            rate: rate.as_bps(),
            free_at: Instant::ZERO,
            fraction: 0,
            size: 0,
            nanos: 0,
            remainder: 0,
            stalled: None,
        }
    }

    fn serve(&mut self, now: Instant, size: u32) -> Instant {
        if self.rate == 0 {
            return Instant::MAX;
        }
        if size != self.size {
            let work = u128::from(size) * WORK_PER_BYTE;
            (self.nanos, self.remainder) = divide(work, self.rate);
            self.size = size;
        }
        if now >= self.departs() {
            (self.free_at, self.fraction) = (now, 0);
        }
        self.free_at += Duration::from_nanos(self.nanos);
        // `fraction + remainder >= rate`, without overflow.
        if self.fraction >= self.rate - self.remainder {
            self.fraction -= self.rate - self.remainder;
            self.free_at += Duration::from_nanos(1);
        } else {
            self.fraction += self.remainder;
        }
        self.departs()
    }

    fn resume(&mut self, now: Instant, left: Work) -> Instant {
        if self.rate == 0 {
            self.stalled = Some(left);
            return Instant::MAX;
        }
        let (nanos, fraction) = divide(left, self.rate);
        (self.free_at, self.fraction) = (now + Duration::from_nanos(nanos), fraction);
        self.departs()
    }

    /// The last departure, rounded up: the packet has then left entirely.
    fn departs(&self) -> Instant {
        self.free_at + Duration::from_nanos(u64::from(self.fraction > 0))
    }
}

/// Nanoseconds and the remainder; saturates, for that much work never ends.
fn divide(work: Work, rate: u64) -> (u64, u64) {
    match u64::try_from(work) {
        Ok(work) => (work / rate, work % rate),
        Err(_) => {
            let rate = u128::from(rate);
            let remainder = u64::try_from(work % rate).expect("a remainder is smaller than the 64-bit divisor");
            (u64::try_from(work / rate).unwrap_or(u64::MAX), remainder)
        }
    }
}

pub(crate) const WORK_PER_BYTE: Work = 8 * 1_000_000_000;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ns(n: u64) -> Instant {
        Instant::from_nanos(n)
    }

    #[test]
    fn rounding_never_adds_up() {
        // 1448 bytes at 10 Gbit/s are 1158.4 ns, 64 bytes at 7 Gbit/s 73.14 ns.
        for (rate, size, packets, until) in
            [(10_000, 1448, 5, 5792), (7_000, 64, 7_000, 512_000), (10, 1500, 9, 10_800_000)]
        {
            let mut server = Server::new(Rate::from_mbps(rate).into(), Instant::ZERO);
            let last = (0..packets).map(|_| server.serve(Instant::ZERO, size).departs).last();
            assert_eq!(last, Some(ns(until)), "{rate} Mbit/s");
        }
    }

    #[test]
    fn an_idle_server_starts_at_once() {
        let mut server = Server::new(Rate::from_bps(3_000_000_000).into(), Instant::ZERO);
        assert_eq!(server.serve(ns(0), 1).departs, ns(3)); // 2.67 ns
        assert_eq!(server.serve(ns(2), 1).departs, ns(6)); // 5.33 ns
        assert_eq!(server.serve(ns(6), 1).departs, ns(9)); // Idle since 5.33: 8.67 ns
    }

    #[test]
    fn extremes_neither_overflow_nor_divide_by_zero() {
        let serve = |bps, size| Server::new(Rate::from_bps(bps).into(), ns(0)).serve(ns(1), size).departs;
        assert_eq!(serve(0, 1), Instant::MAX);
        assert_eq!(serve(1, u32::MAX), Instant::MAX);
        assert_eq!(serve(u64::MAX, u32::MAX), ns(3)); // 1.86 ns
        let mut fast = Server::new(Rate::from_bps(u64::MAX).into(), ns(0));
        let last = (0..10).map(|_| fast.serve(ns(0), u32::MAX).departs).last();
        assert_eq!(last, Some(ns(19)));
    }

    #[test]
    fn work_passes_exactly_from_one_service_to_the_next() {
        let trace = Arc::new(Trace::parse("1\n2\n3\n4\n5\n").unwrap());
        // 4000 bytes by trace: 1500 at 1 ms, 1500 at 2 ms, 1000 at 3 ms. At 1.5 ms, 2500 are left: 2 ms at 10 Mbit/s.
        let mut server = Server::new(trace.clone().into(), ns(0));
        let served = server.serve(ns(0), 4000);
        let left = server.unserved(ns(1_500_000), 4000, served);
        assert_eq!(left, 2500 * WORK_PER_BYTE);
        let mut server = Server::new(Rate::from_mbps(10).into(), ns(1_500_000));
        let served = server.resume(ns(1_500_000), left);
        assert_eq!(served.departs, ns(3_500_000));
        // Half a millisecond later, 1875 are left; rate zero holds them, and the trace finishes them at 6 ms.
        let left = server.unserved(ns(2_000_000), 4000, served);
        let mut server = Server::new(Rate::from_bps(0).into(), ns(2_000_000));
        let served = server.resume(ns(2_000_000), left);
        assert_eq!(served.departs, Instant::MAX);
        let left = server.unserved(ns(4_200_000), 4000, served);
        assert_eq!(left, 1875 * WORK_PER_BYTE);
        let served = Server::new(trace.into(), ns(4_200_000)).resume(ns(4_200_000), left);
        assert_eq!(served, Served { departs: ns(6_000_000), at_once: 375 });
    }
}
