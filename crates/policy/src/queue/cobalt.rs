//! COBALT, "CoDel-BLUE alternate": CoDel for flows that answer to drops, BLUE for those that do not.
//!
//! T. Høiland-Jørgensen, D. Täht, J. Morton. *Piece of CAKE.* IEEE LANMAN 2018, §III.B; Linux, sch_cake.c.
//!
//! CoDel forgets its count as the delay falls; COBALT lowers it by one at a time, at the pace at which it would have
//! dropped. BLUE drops with a probability that grows by 1/256 while the queue overflows and falls by 1/4096 while it is
//! empty, a step per target at most.

use super::codel::{ECN, INTERVAL, TARGET, millis};
use super::fifo::Fifo;
use super::{Cause, Entry, Next, Port, QueueDiscipline, Waiting};
use crate::registry::{Flag, flag};
use anabranch_units::{Duration, Instant, Stream};

/// Steps of BLUE's probability up and down (Linux' `cake_set_rate`).
const STEPS: (f64, f64) = (1.0 / 256.0, 1.0 / 4096.0);

pub(super) const INTEGERS: Flag =
    flag("integers", "compute 1/√count as Linux does, by steps of Newton's method, too small by up to 1/1700", false);

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "cobalt",
    "CoDel that forgets slowly, and BLUE for flows that do not answer",
    include_str!("cobalt.rs"),
    |params| {
        let rule = Rule {
            target: millis(TARGET, params),
            interval: millis(INTERVAL, params),
            marks: ECN.of(params),
            least: Duration::ZERO,
            roots: INTEGERS.of(params).then(roots),
        };
        Box::new(Single { queue: Fifo::default(), rule, cobalt: Cobalt::default() })
    },
)
.paper("Høiland-Jørgensen, Täht and Morton 2018")
.parameters(&[TARGET.parameter(), INTERVAL.parameter(), ECN.parameter(), INTEGERS.parameter()]);

/// Parameters that all queues of a link have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) target: Duration,
    pub(super) interval: Duration,
    pub(super) marks: bool,
    /// Delay that is never too long, whatever the target.
    pub(super) least: Duration,
    /// 1/√count of small counts in parts of 2³², if computed as in Linux.
    pub(super) roots: Option<[u32; CACHED]>,
}

/// Counts whose roots Linux computes beforehand (`REC_INV_SQRT_CACHE`).
const CACHED: usize = 16;

/// Computes 1/√count of small counts as Linux does: each by four steps of Newton's method from the one before.
pub(super) fn roots() -> [u32; CACHED] {
    let mut roots = [u32::MAX; CACHED];
    for count in 1..CACHED {
        roots[count] = (0..4).fold(roots[count - 1], |root, _| step(root, count as u32));
    }
    roots
}

/// A step of Newton's method for 1/√count: x' = x (3 - count x²) / 2, in parts of 2³² (`cobalt_newton_step`).
fn step(root: u32, count: u32) -> u32 {
    let root = u64::from(root);
    let factor = (3_u64 << 32).wrapping_sub(u64::from(count).wrapping_mul((root * root) >> 32)) >> 2;
    (factor.wrapping_mul(root) >> 31) as u32
}

/// Controls the delay of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cobalt {
    count: u32,
    dropping: bool,
    /// Time of the next drop while dropping, and of the next step back otherwise.
    next: Instant,
    /// Probability of BLUE.
    probability: f64,
    /// Time of BLUE's last step.
    stepped: Instant,
    /// 1/√count less than one, in parts of 2³², if computed as in Linux: the complement, which is 0 at rest.
    below_one: u32,
}

/// Verdict on a packet that is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    Mark,
    Drop,
}

impl Cobalt {
    /// A packet was dropped because the link was full.
    pub(super) fn full(&mut self, rule: &Rule, now: Instant) {
        if now.since(self.stepped) > rule.target {
            self.probability = (self.probability + STEPS.0).min(1.0);
            self.stepped = now;
        }
        (self.dropping, self.next, self.count) = (true, now, self.count.max(1));
    }

    /// The queue had its turn and was empty.
    pub(super) fn empty(&mut self, rule: &Rule, now: Instant) {
        if self.probability > 0.0 && now.since(self.stepped) > rule.target {
            self.probability = (self.probability - STEPS.1).max(0.0);
            self.stepped = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.next {
            self.recount(rule, self.count - 1);
            self.next = self.after(rule, self.next);
        }
    }

    /// Returns true if nothing is left to forget.
    pub(super) fn rests(&self, now: Instant) -> bool {
        self.probability == 0.0 && self.count == 0 && now >= self.next
    }

    /// Judges a packet that is to leave after this time in the queue, as `cobalt_should_drop` does.
    pub(super) fn judge(&mut self, rule: &Rule, packet: &Waiting, now: Instant, stream: &mut Stream) -> Verdict {
        let sojourn = now.since(packet.since);
        let due = self.count > 0 && now >= self.next;
        let mut late = now > self.next;
        self.is_late(rule, sojourn, now);
        let mut verdict = Verdict::Pass;
        if due && self.dropping {
            let marks = rule.marks && packet.ecn.is_capable();
            verdict = if marks { Verdict::Mark } else { Verdict::Drop };
            self.recount(rule, self.count.saturating_add(1));
            self.next = self.after(rule, self.next);
            late = now > self.next;
        } else if due {
            while self.count > 0 && now >= self.next {
                self.recount(rule, self.count - 1);
                self.next = self.after(rule, self.next);
            }
            late = now > self.next;
        }
        // Marks do not help against flows that do not answer.
        if self.probability > 0.0 && stream.chance(self.probability) {
            verdict = Verdict::Drop;
        }
        if self.count == 0 {
            self.next = now + rule.interval;
        } else if late && verdict != Verdict::Drop {
            self.next = now;
        }
        verdict
    }

    /// Begins or ends to drop as the delay is too long or not.
    fn is_late(&mut self, rule: &Rule, sojourn: Duration, now: Instant) {
        let late = sojourn > rule.target && sojourn > rule.least;
        if late {
            if !self.dropping {
                self.next = self.after(rule, now);
            }
            self.count = self.count.max(1);
        }
        self.dropping = late;
    }

    fn recount(&mut self, rule: &Rule, count: u32) {
        self.count = count;
        if let Some(roots) = &rule.roots {
            let cached = roots.get(count as usize).copied();
            self.below_one = u32::MAX - cached.unwrap_or_else(|| step(u32::MAX - self.below_one, count));
        }
    }

    fn after(&self, rule: &Rule, at: Instant) -> Instant {
        if rule.roots.is_some() {
            let nanos = u128::from(rule.interval.as_nanos()) * u128::from(u32::MAX - self.below_one);
            return at + Duration::from_nanos((nanos >> 32) as u64);
        }
        at + Duration::from_secs_f64(rule.interval.as_secs_f64() / libm::sqrt(f64::from(self.count.max(1))))
    }
}

/// A line whose delay is controlled.
#[derive(Debug)]
pub struct Single {
    queue: Fifo,
    rule: Rule,
    cobalt: Cobalt,
}

impl QueueDiscipline for Single {
    fn enqueue(&mut self, packet: Waiting, port: &mut Port<'_>) {
        if port.is_over() {
            self.cobalt.full(&self.rule, port.now);
        }
        self.queue.admit(packet, port);
    }

    fn dequeue(&mut self, port: &mut Port<'_>) -> Next {
        while let Some(mut packet) = self.queue.pop() {
            match self.cobalt.judge(&self.rule, &packet, port.now, port.stream) {
                Verdict::Drop => {
                    port.drop(packet, Cause::Early);
                    continue;
                }
                Verdict::Mark => _ = packet.mark(),
                Verdict::Pass => {}
            }
            return Next::Packet(packet);
        }
        self.cobalt.empty(&self.rule, port.now);
        Next::Nothing
    }

    fn clear(&mut self) {
        self.queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::registry::Params;

    /// Each packet waits 7 ms, or 6 after a drop, from the seventh millisecond on: the first drop is due an interval
    /// later. The count is 1 since then, and 2, 3, 4 at the drops: 100/√2, 100/√3, 100/√4 ms lie between them.
    #[test]
    fn drops_come_ever_faster() {
        let mut bench = Bench::new(ENTRY.build(&Params::default()).policy, 1000);
        bench.come(0, 9_999, 0);
        bench.leave(0);
        assert_eq!(bench.times_of_drops(7, 400), [107, 178, 236, 286, 331, 371]);
    }

    /// Four steps from the root before: that of 2 is 0.70671 in place of 0.70711.
    #[test]
    fn roots_are_as_rough_as_those_of_linux() {
        let roots = roots().map(|root| f64::from(root) / 2.0_f64.powi(32));
        assert!((roots[2] - 0.70671).abs() < 1e-5, "{}", roots[2]);
        for (count, root) in roots.iter().enumerate().skip(1) {
            assert!((root * libm::sqrt(count as f64) - 1.0).abs() < 1.0 / 1650.0, "{count}: {root}");
        }
    }

    /// BLUE's probability: a step of 1/256 for each 5 ms in which the queue overflows, of 1/4096 for those in which it
    /// is empty.
    #[test]
    fn blue_answers_to_overflow_and_to_rest() {
        let rule = Rule {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            marks: false,
            least: Duration::ZERO,
            roots: None,
        };
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut cobalt = Cobalt::default();
        (10..22).for_each(|ms| cobalt.full(&rule, at(ms)));
        assert_eq!(cobalt.probability, 2.0 / 256.0, "at 10 and 16 ms");
        (30..43).for_each(|ms| cobalt.empty(&rule, at(ms)));
        assert_eq!(cobalt.probability, 2.0 / 256.0 - 3.0 / 4096.0, "at 30, 36 and 42 ms");
    }
}
