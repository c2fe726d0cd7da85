//! Recorded links: opportunities to deliver, in the format of mahimahi (Netravali et al., *Mahimahi: Accurate
//! Record-and-Replay for HTTP*, USENIX ATC 2015).
//!
//! A trace is text, one whole number of milliseconds per line, never decreasing. Each line is an opportunity to deliver
//! 1500 bytes at that time; a number that stands n times offers n times as much. The trace repeats with its last number
//! as the period. A packet leaves when its last byte is served. What an opportunity has left over serves the next
//! packet if that is queued by then, and is lost otherwise; a packet offered at the very instant counts as queued.

mod lte;

pub use lte::{LteParams, synthetic_lte};

use crate::queue::FULL_PACKET;
use anabranch_units::{Bytes, Duration, Instant, Rate};
use std::sync::Arc;

/// A recorded link, ready to be served from.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Opportunities of the same millisecond taken together, in order.
    slots: Vec<Slot>,
    /// Period after which it repeats: the time of the last slot.
    period: Duration,
    /// Bytes offered in one period.
    total: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot {
    /// Time from the beginning of the period.
    at: Duration,
    bytes: u64,
}

/// Text that is no trace. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The trace has no line.
    #[error("the trace is empty; it needs one number of milliseconds per line")]
    Empty,
    /// Something else than a number.
    #[error("line {line} holds {held:?}; accepted is a whole number of milliseconds below 2^32")]
    NotANumber {
        /// Line number.
        line: usize,
        /// Content of the line, shortened.
        held: String,
    },
    /// A step back in time.
    #[error("line {line} holds {held} ms, which is before the {previous} ms of the line above it")]
    NotMonotonic {
        /// Line number.
        line: usize,
        /// Value of the line.
        held: u32,
        /// Value of the line above.
        previous: u32,
    },
    /// All lines are 0.
    #[error("line {line}, the last, holds 0 ms; it is the period and must be positive")]
    NoPeriod {
        /// Line number.
        line: usize,
    },
}

impl Trace {
    /// Reads mahimahi's text format. Spaces around a number and Windows line ends are accepted.
    pub fn parse(text: &str) -> Result<Trace, TraceError> {
        let mut slots: Vec<Slot> = Vec::new();
        let (mut previous, mut lines) = (0, 0);
        for (line, held) in (1..).zip(text.lines()) {
            let ms = number(held).ok_or_else(|| TraceError::NotANumber { line, held: shortened(held) })?;
            if ms < previous {
                return Err(TraceError::NotMonotonic { line, held: ms, previous });
            }
            let at = Duration::from_millis(u64::from(ms));
            match slots.last_mut() {
                Some(slot) if slot.at == at => slot.bytes += FULL_PACKET,
                _ => slots.push(Slot { at, bytes: FULL_PACKET }),
            }
            (previous, lines) = (ms, line);
        }
        let period = slots.last().ok_or(TraceError::Empty)?.at;
        if period.is_zero() {
            return Err(TraceError::NoPeriod { line: lines });
        }
        let total = slots.iter().map(|slot| Bytes::new(slot.bytes)).sum();
        Ok(Trace { slots, period, total })
    }

    /// Returns the period after which it repeats.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Returns the average rate of the trace.
    pub fn mean_rate(&self) -> Rate {
        Rate::of(self.total, self.period).expect("a period of zero is refused by parse")
    }
}

/// Digits only: a sign or an exponent is not a timestamp.
fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn shortened(text: &str) -> String {
    text.chars().take(32).collect()
}

/// A place in the endless repetition of a trace; only moves forward.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    trace: Arc<Trace>,
    /// The beginning of the current repetition.
    base: Instant,
    index: usize,
    /// Bytes left in the current slot.
    left: u64,
}

/// Departure of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Served {
    pub(crate) departs: Instant,
    /// Bytes of the packet served at that very instant; used by traces only.
    pub(crate) at_once: u32,
}

impl Cursor {
    /// Makes a cursor at the first opportunity not before `now`.
    pub(crate) fn new(trace: Arc<Trace>, now: Instant) -> Self {
        let left = trace.slots[0].bytes;
        let mut cursor = Cursor { trace, base: Instant::ZERO, index: 0, left };
        if cursor.at() < now {
            cursor.seek(now);
        }
        cursor
    }

    pub(crate) fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// Serves `bytes` that were queued at `now`, behind all that was served before.
    pub(crate) fn serve(&mut self, now: Instant, bytes: u64) -> Served {
        let mut at = self.at();
        if at < now {
            self.seek(now);
            at = self.at();
        }
        let (mut need, mut at_once) = (bytes, 0);
        loop {
            let taken = need.min(self.left);
            self.left -= taken;
            need -= taken;
            at_once += taken;
            if need == 0 {
                // More than 4 GiB at one instant cannot be told from 4 GiB, and no packet is that large.
                return Served { departs: at, at_once: u32::try_from(at_once).unwrap_or(u32::MAX) };
            }
            self.advance();
            // A slot of 0 ms coincides with the last one of the repetition before.
            if self.at() != at {
                (at, at_once) = (self.at(), 0);
            }
        }
    }

    /// Returns the bytes that the trace offers after `from` and before `to`.
    pub(crate) fn offered_between(&self, from: Instant, to: Instant) -> u64 {
        let mut cursor = Cursor::new(self.trace.clone(), from + Duration::from_nanos(1));
        let mut sum = 0;
        while cursor.at() < to {
            sum += cursor.left;
            cursor.advance();
        }
        sum
    }

    fn at(&self) -> Instant {
        self.base + self.trace.slots[self.index].at
    }

    fn advance(&mut self) {
        self.index += 1;
        if self.index == self.trace.slots.len() {
            self.index = 0;
            self.base += self.trace.period;
        }
        self.left = self.trace.slots[self.index].bytes;
    }

    /// Forward to the first slot not before `now`, which lies after the current one. Steps double until they pass it,
    /// so the cost grows with the logarithm of the slots passed over.
    fn seek(&mut self, now: Instant) {
        let period = self.trace.period.as_nanos();
        // The last slot of a repetition stands at its end, so a repetition covers (base, base + period].
        let repetitions = (now.since(self.base).as_nanos() - 1) / period;
        if repetitions > 0 {
            self.base += self.trace.period * repetitions;
            self.index = 0;
        }
        let (slots, wanted) = (&self.trace.slots, now.since(self.base));
        let (mut low, mut step) = (self.index, 1);
        while low + step < slots.len() && slots[low + step].at < wanted {
            low += step;
            step *= 2;
        }
        let high = (low + step + 1).min(slots.len());
        self.index = low + slots[low..high].partition_point(|slot| slot.at < wanted);
        self.left = slots[self.index].bytes;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn cursor(text: &str) -> Cursor {
        Cursor::new(Arc::new(Trace::parse(text).unwrap()), Instant::ZERO)
    }

    fn us(n: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(n)
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        for (text, message) in [
            ("", "the trace is empty; it needs one number of milliseconds per line"),
            ("1\nx\n", "line 2 holds \"x\"; accepted is a whole number of milliseconds below 2^32"),
            ("1\n\n2\n", "line 2 holds \"\"; accepted is a whole number of milliseconds below 2^32"),
            ("-1\n", "line 1 holds \"-1\"; accepted is a whole number of milliseconds below 2^32"),
            ("+1\n", "line 1 holds \"+1\"; accepted is a whole number of milliseconds below 2^32"),
            ("1.5\n", "line 1 holds \"1.5\"; accepted is a whole number of milliseconds below 2^32"),
            ("4294967296", "line 1 holds \"4294967296\"; accepted is a whole number of milliseconds below 2^32"),
            ("1\n5\n4\n", "line 3 holds 4 ms, which is before the 5 ms of the line above it"),
            ("0\n0\n", "line 2, the last, holds 0 ms; it is the period and must be positive"),
        ] {
            assert_eq!(Trace::parse(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn the_mean_rate_is_what_a_period_offers() {
        let trace = Trace::parse("0\r\n1\r\n 1 \n4").unwrap();
        assert_eq!(trace.period(), Duration::from_millis(4));
        assert_eq!(trace.mean_rate(), Rate::from_mbps(12)); // 4 · 1500 B in 4 ms.
    }

    #[test]
    fn a_packet_leaves_with_its_last_byte() {
        let mut cursor = cursor("1\n1\n4\n10\n");
        for (queued, bytes, leaves, at_once) in [
            (0, 1000, 1000, 1000),     // The first 1000 of 3000 bytes at 1 ms,
            (0, 1000, 1000, 1000),     // the next 1000,
            (500, 1500, 4000, 500),    // and its last third waits for 4 ms.
            (4000, 1000, 4000, 1000),  // Queued at the very instant: takes what is left of 4 ms.
            (4001, 100, 10_000, 100),  // Too late for it.
            (5000, 1500, 11_000, 100), // 1400 at 10 ms, the rest at 1 ms of the next round.
            (20_001, 1, 21_000, 1),    // What nobody used is lost: 3000 bytes at 21 ms.
            (21_000, 2999, 21_000, 2999),
            (21_000, 1, 24_000, 1),
            (1_000_000_000, 40, 1_000_000_000, 40), // The last slot of a round, met exactly.
        ] {
            assert_eq!(cursor.serve(us(queued), bytes), Served { departs: us(leaves), at_once }, "{queued} {bytes}");
        }
    }

    #[test]
    fn the_seam_of_two_rounds_is_one_instant() {
        let mut cursor = cursor("0\n10\n");
        assert_eq!(cursor.serve(us(10_000), 2000), Served { departs: us(10_000), at_once: 2000 });
        assert_eq!(cursor.serve(us(10_000), 1001), Served { departs: us(20_000), at_once: 1 });
    }

    /// The same service, one opportunity and one millisecond at a time.
    fn plainly(stamps: &[u32], packets: &[(u64, u64)]) -> Vec<Instant> {
        let period = u64::from(*stamps.last().unwrap());
        let mut opportunities =
            (0..).flat_map(|round| stamps.iter().map(move |&ms| (round * period + u64::from(ms)) * 1000));
        let (mut at, mut left) = (opportunities.next().unwrap(), FULL_PACKET);
        let mut departures = Vec::new();
        for &(queued, bytes) in packets {
            let mut need = bytes;
            while at < queued || need > left {
                need -= if at < queued { 0 } else { left };
                (at, left) = (opportunities.next().unwrap(), FULL_PACKET);
            }
            left -= need;
            departures.push(us(at));
        }
        departures
    }

    proptest! {
        #[test]
        fn serves_as_the_plain_reading_does(
            mut stamps in prop::collection::vec(0u32..40, 1..40),
            gaps in prop::collection::vec((0u64..200_000, 1u64..4000), 1..60),
        ) {
            stamps.sort_unstable();
            prop_assume!(stamps.last() != Some(&0));
            let text: String = stamps.iter().map(|ms| format!("{ms}\n")).collect();
            let mut now = 0;
            // Cubed, gaps are mostly short and at times many periods long.
            let packets: Vec<(u64, u64)> = gaps
                .iter()
                .map(|&(gap, bytes)| {
                    now += gap * gap / 200_000 * gap / 200_000;
                    (now, bytes)
                })
                .collect();
            let mut cursor = cursor(&text);
            let mut serve = |now, bytes| cursor.serve(us(now), bytes).departs;
            let served: Vec<Instant> = packets.iter().map(|&(now, bytes)| serve(now, bytes)).collect();
            prop_assert_eq!(served, plainly(&stamps, &packets));
        }
    }
}
