//! Token bucket: packets leave at a rate, of which a burst may be saved up.
//!
//! A packet that finds no tokens waits, as in a shaper (Linux' `tbf`), or is dropped, as by a policer.

use super::fifo::Fifo;
use super::{Cause, Entry, Next, Port, QueueDiscipline, Waiting};
use crate::registry::{Flag, Number, flag, number};
use anabranch_units::{Duration, Instant};

const RATE: Number = number("rate", "rate at which tokens come", 10.0, 0.001..=1_000_000.0).in_unit("Mbit/s");
const BURST: Number = number("burst", "tokens that are saved up at most", 15_140.0, 1514.0..=1e9).in_unit("bytes");
const POLICE: Flag = flag("police", "drop what finds no tokens in place of letting it wait", false);

/// Parts of a token: a byte at 1 bit/s for a nanosecond.
const PARTS: u128 = 8_000_000_000;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "token-bucket",
    "a rate with bursts: what has no tokens waits, or is dropped (police)",
    include_str!("token_bucket.rs"),
    |params| {
        let burst = u128::from(BURST.of(params) as u64) * PARTS;
        Box::new(TokenBucket {
            rate: u128::from((RATE.of(params) * 1e6) as u64),
            burst,
            polices: POLICE.of(params),
            queue: Fifo::default(),
            tokens: burst,
            filled: Instant::ZERO,
        })
    },
)
.paper("Linux, net/sched/sch_tbf.c")
.parameters(&[RATE.parameter(), BURST.parameter(), POLICE.parameter()]);

/// A line behind a bucket of tokens.
#[derive(Debug)]
pub struct TokenBucket {
    /// Tokens for each nanosecond, in parts: the rate in bit/s.
    rate: u128,
    burst: u128,
    polices: bool,
    queue: Fifo,
    /// Tokens in parts.
    tokens: u128,
    filled: Instant,
}

impl TokenBucket {
    fn fill(&mut self, now: Instant) {
        let elapsed = u128::from(now.since(self.filled).as_nanos());
        self.tokens = (self.tokens + self.rate * elapsed).min(self.burst);
        self.filled = now;
    }
}

fn price(packet: &Waiting) -> u128 {
    u128::from(packet.size) * PARTS
}

impl QueueDiscipline for TokenBucket {
    fn enqueue(&mut self, packet: Waiting, port: &mut Port<'_>) {
        self.fill(port.now);
        if price(&packet) > self.burst {
            return port.drop(packet, Cause::Early); // It would wait for ever.
        }
        if port.is_over() {
            return port.drop(packet, Cause::Full);
        }
        if self.polices {
            let Some(left) = self.tokens.checked_sub(price(&packet)) else {
                return port.drop(packet, Cause::Early);
            };
            self.tokens = left;
        }
        self.queue.push(packet);
    }

    fn dequeue(&mut self, port: &mut Port<'_>) -> Next {
        self.fill(port.now);
        let Some(price) = self.queue.front().map(price) else { return Next::Nothing };
        if !self.polices {
            let Some(left) = self.tokens.checked_sub(price) else {
                let missing = (price - self.tokens).div_ceil(self.rate.max(1));
                return Next::At(port.now + Duration::from_nanos(u64::try_from(missing).unwrap_or(u64::MAX)));
            };
            self.tokens = left;
        }
        self.queue.pop().map_or(Next::Nothing, Next::Packet)
    }

    fn clear(&mut self) {
        self.queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, SIZE};
    use super::*;
    use crate::registry::Value;

    fn bucket(police: bool) -> Bench {
        // A packet per millisecond, and two saved up.
        let rate = f64::from(SIZE) * 8.0 / 1e3;
        let sets = [
            ("rate", Value::Number(rate)),
            ("burst", Value::Number(2.0 * f64::from(SIZE))),
            ("police", Value::Flag(police)),
        ];
        let sets = sets.map(|(name, value)| (name.to_owned(), value)).into();
        Bench::new(ENTRY.build(&ENTRY.params(&sets).expect("within range")).policy, 100)
    }

    #[test]
    fn a_shaper_lets_a_burst_pass_and_then_its_rate() {
        let mut bench = bucket(false);
        (0..4).for_each(|id| bench.come(0, id, 0));
        assert_eq!([bench.leave(0), bench.leave(0), bench.leave(0)], [Some(0), Some(1), None]);
        assert_eq!(bench.next(0), Next::At(Instant::from_nanos(1_000_000)));
        assert_eq!([bench.leave(1), bench.leave(1), bench.leave(2)], [Some(2), None, Some(3)]);
    }

    #[test]
    fn a_policer_drops_what_a_shaper_delays() {
        let mut bench = bucket(true);
        (0..4).for_each(|id| bench.come(0, id, 0));
        bench.come(1, 4, 0);
        assert_eq!(bench.gone(), [(2, Cause::Early), (3, Cause::Early)]);
        assert_eq!([bench.leave(1), bench.leave(1), bench.leave(1)], [Some(0), Some(1), Some(4)]);
    }
}
