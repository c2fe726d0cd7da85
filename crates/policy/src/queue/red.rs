//! RED, "random early detection" (Floyd and Jacobson 1993): drops what comes with a probability that grows with the
//! smoothed length of the queue.
//!
//! `gentle` (Floyd 2000): between the upper threshold and twice of it the probability grows on to one, where the paper
//! has a step.

use super::fifo::Fifo;
use super::{Cause, Entry, Next, Port, QueueDiscipline, Waiting};
use crate::registry::{Flag, Number, flag, number};
use anabranch_units::{Bytes, Instant};

const MIN: Number =
    number("min", "smoothed length below which nothing is dropped, min_th", 5.0, 0.0..=1e6).in_unit("packets");
const MAX: Number =
    number("max", "smoothed length from which on all is dropped, or twice as often, max_th", 15.0, 0.0..=1e6)
        .in_unit("packets");
const MAX_P: Number = number("max-p", "probability at `max`, max_p", 0.02, 0.0..=1.0);
const WEIGHT: Number = number("weight", "weight of a new length in the smoothed one, w_q", 0.002, 0.0..=1.0);
const MEAN: Number =
    number("mean-packet", "packets that an idle link would have sent have this size", 1000.0, 1.0..=65535.0)
        .in_unit("bytes");
const GENTLE: Flag = flag("gentle", "above `max` the probability grows on to one at twice of it", true);
const ECN: Flag = flag("ecn", "mark packets in place of dropping them where ECN allows, below `max`", true);

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "red",
    "drops with a probability that grows with the smoothed length of the queue",
    include_str!("red.rs"),
    |params| {
        Box::new(Red {
            min: MIN.of(params),
            max: MAX.of(params).max(MIN.of(params)),
            max_p: MAX_P.of(params),
            weight: WEIGHT.of(params),
            mean: MEAN.of(params) as u64,
            gentle: GENTLE.of(params),
            ecn: ECN.of(params),
            queue: Fifo::default(),
            average: 0.0,
            since_last: None,
            idle_since: Some(Instant::ZERO),
        })
    },
)
.paper("Floyd and Jacobson 1993")
.parameters(&[
    MIN.parameter(),
    MAX.parameter(),
    MAX_P.parameter(),
    WEIGHT.parameter(),
    MEAN.parameter(),
    GENTLE.parameter(),
    ECN.parameter(),
]);

/// A line that drops at its end, at random.
#[derive(Debug)]
pub struct Red {
    min: f64,
    max: f64,
    max_p: f64,
    weight: f64,
    mean: u64,
    gentle: bool,
    ecn: bool,
    queue: Fifo,
    average: f64,
    /// Packets since the last drop; `None` while the average is below `min`.
    since_last: Option<u32>,
    idle_since: Option<Instant>,
}

impl Red {
    /// Smooths the length that a packet finds.
    fn smooth(&mut self, port: &Port<'_>) {
        if let Some(since) = self.idle_since.take() {
            let one = port.rate.time_for(Bytes::new(self.mean)).as_nanos().max(1);
            let missed = port.now.since(since).as_nanos() / one;
            self.average *= libm::pow(1.0 - self.weight, missed as f64);
        }
        self.average += self.weight * (self.queue.len() as f64 - self.average);
    }

    /// Probability of a drop before it is spread evenly; `None` if nothing is dropped, 1 or more if all is.
    fn probability(&self) -> Option<f64> {
        let above = |from: f64, width: f64| if width > 0.0 { (self.average - from) / width } else { 1.0 };
        if self.average < self.min {
            None
        } else if self.average < self.max {
            Some(self.max_p * above(self.min, self.max - self.min))
        } else if self.gentle && self.average < 2.0 * self.max {
            Some(self.max_p + (1.0 - self.max_p) * above(self.max, self.max))
        } else {
            Some(f64::INFINITY)
        }
    }
}

impl QueueDiscipline for Red {
    fn enqueue(&mut self, mut packet: Waiting, port: &mut Port<'_>) {
        self.smooth(port);
        let Some(base) = self.probability() else {
            self.since_last = None;
            return self.queue.admit(packet, port);
        };
        let count = self.since_last.map_or(0, |count| count + 1);
        self.since_last = Some(count);
        let left = 1.0 - f64::from(count) * base;
        let certain = base >= 1.0 || left <= 0.0;
        // Drawn where the outcome is open, and nowhere else.
        if certain || port.stream.chance(base / left) {
            self.since_last = Some(0);
            if !(self.ecn && base.is_finite() && packet.mark()) {
                return port.drop(packet, Cause::Early);
            }
        }
        self.queue.admit(packet, port);
    }

    fn dequeue(&mut self, port: &mut Port<'_>) -> Next {
        match self.queue.pop() {
            Some(packet) => Next::Packet(packet),
            None => {
                self.idle_since.get_or_insert(port.now);
                Next::Nothing
            }
        }
    }

    fn clear(&mut self) {
        self.queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::registry::Value;

    fn red(sets: &[(&str, Value)]) -> Bench {
        let sets = sets.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Bench::new(ENTRY.build(&ENTRY.params(&sets).expect("within range")).policy, 1000)
    }

    /// With a weight of 1 the average is the length. Above `max` the probability grows on; from a half of it on each
    /// drop makes the next one certain (the paper's p_a).
    #[test]
    fn drops_become_certain_above_max() {
        let sets = [("weight", 1.0), ("min", 10.0), ("max", 20.0), ("max-p", 0.1)];
        let mut bench = red(&sets.map(|(name, value)| (name, Value::Number(value))));
        (0..200).for_each(|id| bench.come(0, id, 0));
        let gone = bench.gone();
        assert!(gone.iter().all(|(id, cause)| *id >= 10 && *cause == Cause::Early), "{gone:?}");
        let kept = 200 - gone.len();
        assert!((21..=29).contains(&kept), "{kept}: a half is reached at 20 · (1 + 0.4 / 0.9)");
    }

    #[test]
    fn marks_take_the_place_of_drops_below_max() {
        let mut bench = red(&[
            ("weight", Value::Number(1.0)),
            ("min", Value::Number(1.0)),
            ("max", Value::Number(30.0)),
            ("max-p", Value::Number(1.0)),
            ("gentle", Value::Flag(false)),
        ]);
        (0..30).for_each(|id| bench.come_capable(0, id, 0));
        assert_eq!(bench.gone(), []);
        let marked = (0..30).filter(|_| bench.leave_marked(1).is_some_and(|(_, marked)| marked)).count();
        assert!((10..29).contains(&marked), "{marked}");
        (30..80).for_each(|id| bench.come_capable(2, id, 0));
        assert!(bench.gone().iter().all(|(_, cause)| *cause == Cause::Early));
    }
}
