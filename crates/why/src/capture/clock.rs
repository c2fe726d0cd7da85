//! The clock of a sender's timestamps (RFC 7323), as its packets let it be seen.

use super::log::{Entry, STAMP};

/// The clock of timestamps: nanoseconds for each tick, so that no packet arrived before it left.
pub(crate) struct Clock {
    tick: f64,
    first: u32,
    offset: f64,
}

/// Ticks below which a pause tells no rate.
const FEW: i32 = 10;

/// Ticks of the clocks that there are \[ns\]: a millisecond, of Linux, and what older kernels and other systems have.
const KNOWN: [f64; 4] = [1e6, 4e6, 1e7, 1e3];

impl Clock {
    /// The clock of the sender of all of `entries`.
    pub(crate) fn of<'a>(entries: impl Iterator<Item = &'a Entry> + Clone) -> Option<Self> {
        let stamped = || entries.clone().filter(|entry| entry.has(STAMP));
        let begin = stamped().next()?;
        let ticks = |entry: &Entry| entry.stamp.wrapping_sub(begin.stamp).cast_signed();
        // A stamp may be old, by seconds where a subflow rests: kernels repeat that of a packet before. It makes ticks
        // look longer, so the shortest counts, of those over a long time: a queue before the capture changes them
        // little.
        let most = stamped().map(ticks).max().filter(|most| *most >= FEW)?;
        let long = stamped().filter(|entry| ticks(entry) >= FEW.max(most / 2));
        let rough = long.map(|entry| entry.at.saturating_sub(begin.at) as f64 / f64::from(ticks(entry)));
        let rough = rough.fold(f64::INFINITY, f64::min);
        let tick = KNOWN.into_iter().min_by(|a, b| ratio(*a, rough).total_cmp(&ratio(*b, rough)))?;
        let raw = |entry: &Entry| entry.at as f64 - tick * f64::from(ticks(entry));
        let offset = stamped().map(raw).fold(f64::INFINITY, f64::min);
        Some(Clock { tick, first: begin.stamp, offset })
    }

    /// Time at which a packet with this stamp could have arrived at best.
    pub(crate) fn at(&self, stamp: u32) -> u64 {
        (self.offset + self.tick * f64::from(stamp.wrapping_sub(self.first).cast_signed())).max(0.0) as u64
    }
}

/// Distance of two positive numbers, as a ratio above 1.
fn ratio(a: f64, b: f64) -> f64 {
    (a / b).max(b / a)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets at these times \[µs\] with these stamps.
    fn entries(packets: &[(u64, u32)]) -> Vec<Entry> {
        let entry = |(at, stamp): &(u64, u32)| Entry { at: at * 1_000, stamp: *stamp, bits: STAMP, ..Entry::default() };
        packets.iter().map(entry).collect()
    }

    /// As recorded of Linux 6.18: a subflow that rests for eight seconds repeats an old stamp when it wakes.
    #[test]
    fn stamps_of_a_subflow_that_rested_do_not_slow_the_clock() {
        let first = 3_402_812_845;
        let woken = [(0, first), (40_381, first + 41), (7_982_325, first + 81), (7_983_255, first + 81)];
        let closed = [&woken[..], &[(8_023_148, first + 8_024)]].concat();
        for packets in [&woken[..], &closed] {
            let clock = Clock::of(entries(packets).iter()).expect("it ticked");
            assert!(clock.at(first + 1_000).abs_diff(1_000_000_000) < 2_000_000, "{}", clock.at(first + 1_000));
        }
    }

    #[test]
    fn each_clock_is_known_behind_a_queue() {
        for tick in KNOWN {
            // The queue grows to 80 ms and is empty at the end.
            let packet = |n: u64| {
                let (left, queue) = (n * 20_000, if n < 49 { n * 80_000 / 49 } else { 0 });
                (left + queue, 1_000 + (left as f64 * 1e3 / tick) as u32)
            };
            let clock = Clock::of(entries(&(0..50).map(packet).collect::<Vec<_>>()).iter()).expect("it ticked");
            assert_eq!(clock.tick, tick);
        }
    }

    #[test]
    fn a_clock_that_hardly_ticked_is_unknown() {
        assert!(Clock::of(entries(&[(0, 5), (9_000, 14)]).iter()).is_none());
    }
}
