//! DualPI2 (RFC 9332): one queue for transports whose marks are frequent (L4S) and one for others. A controller of the
//! greater of their delays marks both, the classic with the square of the probability, so that a flow of either gets
//! about the same rate.
//!
//! As of appendix A, at dequeue: the L queue marks by a ramp of its own delay as well. Between the queues a weighted
//! round robin decides, whose credit changes only while both have packets, as Linux' does.

use super::codel::millis;
use super::fifo::Fifo;
use super::updates::Updates;
use super::{Capabilities, Cause, Entry, Next, Port, QueueDiscipline, Waiting};
use crate::registry::{Number, Params, number};
use anabranch_units::{Duration, Ecn, Instant};

const TARGET: Number =
    number("target", "delay of the longer queue that is aimed at", 15.0, 0.1..=10_000.0).in_unit("ms");
const UPDATE: Number =
    number("update", "time between updates of the probability, Tupdate", 16.0, 1.0..=10_000.0).in_unit("ms");
const ALPHA: Number = number("alpha", "integral gain", 0.16, 0.0..=100.0).in_unit("Hz");
const BETA: Number = number("beta", "proportional gain", 3.2, 0.0..=100.0).in_unit("Hz");
const COUPLING: Number =
    number("coupling", "factor from the base probability to that of the L queue, k", 2.0, 0.0..=100.0);
const THRESHOLD: Number =
    number("threshold", "delay of the L queue from which on it marks, minTh", 0.8, 0.0..=1000.0).in_unit("ms");
const RANGE: Number =
    number("range", "delay beyond `threshold` within which the share of marks grows to one", 0.4, 0.0..=1000.0)
        .in_unit("ms");
const CLASSIC: Number =
    number("classic-share", "share of the link that is the classic queue's while both wait", 0.1, 0.0..=1.0);

/// Bytes held below which nothing is marked or dropped: two full packets (appendix A.1).
const FEW_BYTES: u64 = 2 * 1514;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "dualpi2",
    "two queues, for L4S and others, whose marks are coupled",
    include_str!("dualpi2.rs"),
    |params| Box::new(DualPi2::new(params)),
)
.paper("RFC 9332")
.parameters(&[
    TARGET.parameter(),
    UPDATE.parameter(),
    ALPHA.parameter(),
    BETA.parameter(),
    COUPLING.parameter(),
    THRESHOLD.parameter(),
    RANGE.parameter(),
    CLASSIC.parameter(),
])
.capabilities(|_| Capabilities { limit: 10000 });

/// Queue of one kind of transport.
#[derive(Debug, Default)]
struct Lane {
    queue: Fifo,
    /// Sum of probabilities that were not acted on yet.
    sum: f64,
}

/// Two queues with coupled marks.
#[derive(Debug)]
pub struct DualPi2 {
    target: Duration,
    gains: (f64, f64),
    coupling: f64,
    /// Threshold and width of the L queue's own marking.
    ramp: (Duration, Duration),
    classic_share: f64,
    low: Lane,
    classic: Lane,
    /// Credit of the classic queue in bytes: above 0 its packet is next.
    credit: f64,
    updates: Updates,
    before: Duration,
    /// Probability p' of the controller.
    base: f64,
}

impl Lane {
    /// True as often as `probability` says, at even distances (appendix A, `recur`).
    fn recurs(&mut self, probability: f64) -> bool {
        self.sum += probability;
        let recurs = self.sum > 1.0;
        if recurs {
            self.sum -= 1.0;
        }
        recurs
    }
}

impl DualPi2 {
    fn new(params: &Params) -> Self {
        DualPi2 {
            target: millis(TARGET, params),
            gains: (ALPHA.of(params), BETA.of(params)),
            coupling: COUPLING.of(params),
            ramp: (millis(THRESHOLD, params), millis(RANGE, params)),
            classic_share: CLASSIC.of(params),
            low: Lane::default(),
            classic: Lane::default(),
            credit: 0.0,
            updates: Updates::new(millis(UPDATE, params)),
            before: Duration::ZERO,
            base: 0.0,
        }
    }

    /// Does the updates that were due by now.
    fn catch_up(&mut self, now: Instant) {
        while let Some(at) = self.updates.due(now) {
            // The L queue counts as well: overloaded by flows that ignore marks, it must come to drops (appendix A.2).
            let firsts = [self.low.queue.front(), self.classic.queue.front()];
            let longest = firsts.into_iter().flatten().map(|first| at.since(first.since)).max();
            self.adjust(longest.unwrap_or(Duration::ZERO));
            if self.base == 0.0 && longest.is_none() {
                self.updates.skip(now);
            }
        }
    }

    fn adjust(&mut self, delay: Duration) {
        let (now, before, target) = (delay.as_secs_f64(), self.before.as_secs_f64(), self.target.as_secs_f64());
        let (alpha, beta) = self.gains;
        self.base = (self.base + alpha * (now - target) + beta * (now - before)).clamp(0.0, 1.0);
        self.before = delay;
    }

    /// Share of marks by the L queue's own delay.
    fn ramp(&self, delay: Duration) -> f64 {
        let (threshold, range) = self.ramp;
        if delay >= threshold + range {
            1.0
        } else if delay > threshold {
            (delay - threshold).as_secs_f64() / range.as_secs_f64()
        } else {
            0.0
        }
    }

    /// The next packet in turn, whether it is of the L queue, and what its departure adds to the credit.
    fn turn(&mut self) -> Option<(Waiting, bool, f64)> {
        let both = self.low.queue.len() > 0 && self.classic.queue.len() > 0;
        let low = self.classic.queue.len() == 0 || (both && self.credit <= 0.0);
        let packet = if low { self.low.queue.pop() } else { self.classic.queue.pop() };
        let Some(packet) = packet else {
            self.credit = 0.0;
            return None;
        };
        let share = if low { self.classic_share } else { self.classic_share - 1.0 };
        Some((packet, low, if both { share * f64::from(packet.size) } else { 0.0 }))
    }

    /// The packet whose turn it is, marked or not; `None` if it is dropped.
    fn treat(&mut self, mut packet: Waiting, low: bool, held: u64, now: Instant) -> Option<Waiting> {
        let (coupled, squared) = (self.coupling * self.base, self.base * self.base);
        let few = held < FEW_BYTES;
        if low {
            let own = if self.low.queue.len() > 0 { self.ramp(now.since(packet.since)) } else { 0.0 };
            let overload = coupled >= 1.0 && !few;
            if overload && self.low.recurs(squared) {
                return None; // Marks alone do not help any more (appendix A.2).
            }
            let marks = if few { own } else { own.max(coupled.min(1.0)) };
            if overload || self.low.recurs(marks) {
                packet.mark();
            }
        } else if !few && self.classic.recurs(squared) {
            // At the probability at which L marks all, ECN no longer protects the others (p_Cmax).
            let unresponsive = self.coupling > 0.0 && squared >= 1.0 / (self.coupling * self.coupling);
            if unresponsive || !packet.mark() {
                return None;
            }
        }
        Some(packet)
    }
}

impl QueueDiscipline for DualPi2 {
    fn enqueue(&mut self, packet: Waiting, port: &mut Port<'_>) {
        self.catch_up(port.now);
        if port.is_over() {
            return port.drop(packet, Cause::Full);
        }
        match packet.ecn {
            Ecn::Ect1 | Ecn::Ce => self.low.queue.push(packet),
            Ecn::NotEct | Ecn::Ect0 => self.classic.queue.push(packet),
        }
    }

    fn dequeue(&mut self, port: &mut Port<'_>) -> Next {
        self.catch_up(port.now);
        loop {
            let held = self.low.queue.bytes() + self.classic.queue.bytes();
            let Some((packet, low, credit)) = self.turn() else { return Next::Nothing };
            match self.treat(packet, low, held, port.now) {
                Some(packet) => {
                    // A packet that is dropped took nothing of the link, and so none of its queue's share.
                    self.credit += credit;
                    return Next::Packet(packet);
                }
                None => port.drop(packet, Cause::Early),
            }
        }
    }

    fn clear(&mut self) {
        self.low.queue.clear();
        self.classic.queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    /// Probability p' after a classic delay of 25 ms and then 20 ms, by hand; marks come with k·p', drops with p'².
    #[test]
    fn marks_are_coupled_by_the_square() {
        let mut it = DualPi2::new(&Params::default());
        it.adjust(Duration::from_millis(25));
        let first = 0.16 * 0.010 + 3.2 * 0.025;
        assert!((it.base - first).abs() < 1e-15);
        it.adjust(Duration::from_millis(20));
        let second = first + 0.16 * 0.005 - 3.2 * 0.005;
        assert!((it.base - second).abs() < 1e-15);
        let count = |lane: &mut Lane, p: f64| (0..10_000).filter(|_| lane.recurs(p)).count();
        let (marks, drops) = (count(&mut Lane::default(), 2.0 * second), count(&mut Lane::default(), second * second));
        assert_eq!((marks, drops), ((20_000.0 * second) as usize, (10_000.0 * second * second) as usize));
    }

    /// An L queue alone, to which twice as much comes as leaves, whatever its marks: the controller follows its delay,
    /// and drops what is too much (appendix A.2, figure 8, line 2a), so that it does not grow for ever.
    #[test]
    fn an_l_queue_that_ignores_marks_comes_to_drops() {
        let mut bench = Bench::new(DualPi2::new(&Params::default()), 10_000);
        let mut dropped = Vec::new();
        for ms in 0..8000u32 {
            (0..2).for_each(|one| bench.come_with(u64::from(ms), 2 * ms + one, 0, Ecn::Ect1));
            bench.leave(u64::from(ms));
            dropped.push(bench.gone().len());
        }
        let late: usize = dropped[4000..].iter().sum();
        assert!((3800..=4200).contains(&late), "{late} of 8000 that came in the last 4 s");
    }

    #[test]
    fn the_l_queue_goes_first_and_the_classic_one_keeps_its_share() {
        let mut bench = Bench::new(DualPi2::new(&Params::default()), 1000);
        (0..100).for_each(|id| bench.come(0, id, 0));
        (100..200).for_each(|id| bench.come_with(0, id, 0, Ecn::Ect1));
        let left: Vec<u32> = (0..100).filter_map(|_| bench.leave(0)).collect();
        let classic = left.iter().filter(|id| **id < 100).count();
        assert_eq!((left[0], classic), (100, 10));
    }

    /// Marks are those of the L queue's own delay while less than two full packets are held, whatever the probability.
    #[test]
    fn a_short_queue_is_left_alone() {
        for (second, marked) in [(1513, false), (1514, true)] {
            let mut bench = Bench::new(DualPi2 { base: 0.6, ..DualPi2::new(&Params::default()) }, 1000);
            for (id, size, ecn) in [(0, 1514, Ecn::Ect1), (1, second, Ecn::NotEct)] {
                bench.take(Waiting { id, size, flow: 0, hosts: [0, 0], ecn, since: Instant::ZERO });
            }
            assert_eq!(bench.leave_marked(0), Some((0, marked)), "{second}");
        }
    }

    /// The classic queue's share is of packets that leave, however many of it are dropped.
    #[test]
    fn drops_take_nothing_of_a_share() {
        let mut bench = Bench::new(DualPi2 { base: 0.49, ..DualPi2::new(&Params::default()) }, 1000);
        (0..300).for_each(|id| bench.come(0, id, 0));
        (300..600).for_each(|id| bench.come_with(0, id, 0, Ecn::Ect1));
        let left: Vec<u32> = (0..100).filter_map(|_| bench.leave(0)).collect();
        let classic = left.iter().filter(|id| **id < 300).count();
        assert!(!bench.gone().is_empty());
        assert_eq!((left.len(), classic), (100, 10));
    }
}
