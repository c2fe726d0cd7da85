//! PIE, "proportional integral controller enhanced" (RFC 8033): drops what comes with a probability that follows the
//! delay of the queue and its change.
//!
//! The delay is known by the time stamp of the packet that left last, one of the ways of §4.3. Early drops are spread
//! evenly (§5.4).

use super::codel::millis;
use super::fifo::Fifo;
use super::updates::Updates;
use super::{Cause, Entry, Next, Port, QueueDiscipline, Waiting};
use crate::registry::{Flag, Number, Params, flag, number};
use anabranch_units::{Duration, Instant};

const TARGET: Number =
    number("target", "delay that is aimed at, QDELAY_REF (§4.2)", 15.0, 0.1..=10_000.0).in_unit("ms");
const UPDATE: Number =
    number("update", "time between updates of the probability, T_UPDATE (§4.2)", 15.0, 1.0..=10_000.0).in_unit("ms");
const BURST: Number =
    number("burst", "time for which a burst passes, MAX_BURST (§4.4)", 150.0, 0.0..=100_000.0).in_unit("ms");
const ALPHA: Number =
    number("alpha", "weight of the delay's distance from its target (§4.2)", 0.125, 0.0..=100.0).in_unit("Hz");
const BETA: Number = number("beta", "weight of the delay's change (§4.2)", 1.25, 0.0..=100.0).in_unit("Hz");
const ECN: Flag = flag("ecn", "mark packets in place of dropping them where ECN allows", true);
const MARKED: Number =
    number("mark-below", "probability below which packets are marked in place of dropped (§5.1)", 0.1, 0.0..=1.0);

/// Two packets of the mean size that RFC 8033 assumes (§4.1): as little is never dropped from.
const FEW_BYTES: u64 = 2 * 1500;
/// Sums of probabilities at which an arrival may be, and must be, dropped (§5.4).
const SPREAD: (f64, f64) = (0.85, 8.5);
/// Factors by which an update is smaller while the probability is below a bound (§4.2).
const SCALES: [(f64, f64); 6] = [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "pie",
    "drops with a probability that follows the queue's delay and its change",
    include_str!("pie.rs"),
    |params| Box::new(Pie::new(params)),
)
.paper("RFC 8033")
.parameters(&[
    TARGET.parameter(),
    UPDATE.parameter(),
    BURST.parameter(),
    ALPHA.parameter(),
    BETA.parameter(),
    ECN.parameter(),
    MARKED.parameter(),
]);

/// A line that drops at its end, early.
#[derive(Debug)]
pub struct Pie {
    target: Duration,
    every: Duration,
    burst: Duration,
    gains: (f64, f64),
    marks_below: Option<f64>,
    queue: Fifo,
    updates: Updates,
    /// Delay of the packet that left last, and what it was at the last update.
    delay: Duration,
    before: Duration,
    probability: f64,
    /// Probabilities since the last early drop.
    sum: f64,
    burst_left: Duration,
}

impl Pie {
    fn new(params: &Params) -> Self {
        let every = millis(UPDATE, params);
        let burst = millis(BURST, params);
        Pie {
            target: millis(TARGET, params),
            every,
            burst,
            gains: (ALPHA.of(params), BETA.of(params)),
            marks_below: ECN.of(params).then(|| MARKED.of(params)),
            queue: Fifo::default(),
            updates: Updates::new(every),
            delay: Duration::ZERO,
            before: Duration::ZERO,
            probability: 0.0,
            sum: 0.0,
            burst_left: burst,
        }
    }

    /// Does the updates that were due by now.
    fn catch_up(&mut self, now: Instant) {
        while self.updates.due(now).is_some() {
            self.adjust();
            if self.probability == 0.0 && self.delay.is_zero() {
                self.updates.skip(now);
            }
        }
    }

    fn adjust(&mut self) {
        let (delay, before) = (self.delay.as_secs_f64(), self.before.as_secs_f64());
        let (alpha, beta) = self.gains;
        let step = alpha * (delay - self.target.as_secs_f64()) + beta * (delay - before);
        let scale = SCALES.iter().find(|(below, _)| self.probability < *below).map_or(1.0, |(_, scale)| *scale);
        let mut step = step / scale;
        if self.probability >= 0.1 && step > 0.02 {
            step = 0.02; // §5.5: no step up is larger.
        }
        self.probability += step;
        if self.delay.is_zero() && self.before.is_zero() {
            self.probability *= 0.98; // Congestion is over.
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.before = self.delay;
        self.burst_left = self.burst_left.saturating_sub(self.every);
    }

    /// Decides about an arrival before it is in the queue.
    fn refuses(&mut self, port: &mut Port<'_>) -> bool {
        let half = self.target / 2;
        let calm = self.before < half;
        if self.probability == 0.0 && self.delay < half && calm {
            self.burst_left = self.burst;
        }
        if !self.burst_left.is_zero() || (calm && self.probability < 0.2) || self.queue.bytes() <= FEW_BYTES {
            return false;
        }
        self.sum = if self.probability == 0.0 { 0.0 } else { self.sum + self.probability };
        let refuses = match self.sum {
            sum if sum < SPREAD.0 => false,
            sum if sum >= SPREAD.1 => true,
            _ => port.stream.chance(self.probability),
        };
        if refuses {
            self.sum = 0.0;
        }
        refuses
    }
}

impl QueueDiscipline for Pie {
    fn enqueue(&mut self, mut packet: Waiting, port: &mut Port<'_>) {
        self.catch_up(port.now);
        if port.is_over() {
            self.sum = 0.0;
            return port.drop(packet, Cause::Full);
        }
        if self.refuses(port) {
            let marks = self.marks_below.is_some_and(|below| self.probability < below);
            if !(marks && packet.mark()) {
                return port.drop(packet, Cause::Early);
            }
        }
        self.queue.push(packet);
    }

    fn dequeue(&mut self, port: &mut Port<'_>) -> Next {
        self.catch_up(port.now);
        let Some(packet) = self.queue.pop() else { return Next::Nothing };
        // An empty queue delays nothing (Linux' pie_process_dequeue): the next packet does not wait as this one did.
        self.delay = if self.queue.len() == 0 { Duration::ZERO } else { port.now.since(packet.since) };
        Next::Packet(packet)
    }

    fn clear(&mut self) {
        self.queue.clear();
        self.delay = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    /// Steps of the probability for delays of 30 ms, then of 20, by §4.2.
    #[test]
    fn the_probability_follows_delay_and_change() {
        let mut pie = Pie { delay: Duration::from_millis(30), ..Pie::new(&Params::default()) };
        pie.adjust();
        let first = (0.125 * 0.015 + 1.25 * 0.03) / 2048.0;
        assert!((pie.probability - first).abs() < 1e-15);
        pie.adjust();
        let second = first + 0.125 * 0.015 / 128.0;
        assert!((pie.probability - second).abs() < 1e-15, "{}", pie.probability);
        pie.probability = 0.5;
        pie.delay = Duration::from_millis(20);
        pie.adjust();
        assert!((pie.probability - (0.5 + 0.125 * 0.005 - 1.25 * 0.01)).abs() < 1e-15);
    }

    /// Above a probability of 0.1 no step up is larger than 0.02 (§5.5).
    #[test]
    fn a_step_up_is_bounded() {
        let mut pie = Pie { probability: 0.5, delay: Duration::from_secs(1), ..Pie::new(&Params::default()) };
        pie.adjust();
        assert_eq!(pie.probability, 0.52);
    }

    /// Some of 400 packets at once are refused: marked below a probability of 0.1 where they can be, dropped otherwise
    /// (§5.1). A burst passes (§4.4).
    #[test]
    fn a_refused_packet_is_marked_while_refusals_are_rare() {
        let refused = |probability, capable, burst_ms| {
            let params = Params::default();
            let before = millis(TARGET, &params);
            let burst_left = Duration::from_millis(burst_ms);
            let mut bench = Bench::new(Pie { probability, before, burst_left, ..Pie::new(&params) }, 1000);
            for id in 0..400 {
                if capable { bench.come_capable(0, id, 0) } else { bench.come(0, id, 0) }
            }
            let dropped = bench.gone().len();
            let marked = std::iter::from_fn(|| bench.leave_marked(0)).filter(|(_, marked)| *marked).count();
            (marked, dropped)
        };
        assert_eq!(refused(0.05, true, 150), (0, 0));
        let (marked, dropped) = refused(0.05, true, 0);
        // 17 arrivals until one may be refused, and 20 on average until it is.
        assert!((6..=16).contains(&marked) && dropped == 0, "{marked} {dropped}");
        assert_eq!(refused(0.05, false, 0), (0, marked));
        let (marked, dropped) = refused(0.2, true, 0);
        assert!(marked == 0 && dropped > 25, "{marked} {dropped}");
    }
}
