//! Recorded links: opportunities to deliver, or rates over time.
//!
//! Opportunities are those of mahimahi (Netravali et al., *Mahimahi: Accurate Record-and-Replay for HTTP*, USENIX ATC
//! 2015): text, one whole number of milliseconds per line, never decreasing. Each line is an opportunity to deliver
//! 1500 bytes at that time; a number that stands n times offers n times as much. The trace repeats with its last number
//! as the period. A packet leaves when its last byte is served. What an opportunity has left over serves the next
//! packet if that is queued by then, and is lost otherwise; a packet offered at the very instant counts as queued.
//!
//! Rates over time are steps, each with a rate that holds until the next: the link serves bit by bit, as one of
//! constant rate does. A packet under way at a step goes on at the new rate. They repeat as well.

mod lte;
mod slots;
mod steps;

pub use lte::{LteParams, synthetic_lte};

use crate::queue::FULL_PACKET;
use crate::service::{WORK_PER_BYTE, Work};
use anabranch_units::{Bytes, Duration, Instant, Rate};
use std::fmt;
use std::sync::Arc;

/// A recorded link, ready to be served from. A copy shares the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    supply: Supply,
    /// Period after which it repeats: the time of the last slot or the end of the last step.
    period: Duration,
    /// Work offered in one period.
    total: Work,
    /// Place in the recording at the beginning of the run.
    offset: Duration,
}

#[derive(Clone, Debug, PartialEq)]
enum Supply {
    /// Opportunities of the same millisecond taken together, in order.
    Slots(Arc<[Slot]>),
    /// Rates, in order.
    Steps(Arc<[Step]>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot {
    /// Time from the beginning of the period.
    at: Duration,
    bytes: u64,
}

/// A rate that holds for a part of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Time from the beginning of the recording at which it ends.
    pub until: Duration,
    /// Rate from the end of the step before, or from the beginning; zero is an outage.
    pub rate: Rate,
}

/// Text or series that is no trace. Lines count from 1.
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
    /// A step that ends where it begins, or before; likewise an opportunity that is not later than the one before it.
    #[error("step {step} ends at {until}, and the one before it at {before}")]
    NoStep {
        /// Number of the step, counted from 1.
        step: usize,
        /// End of the step.
        until: Duration,
        /// End of the step before.
        before: Duration,
    },
    /// All rates are zero.
    #[error("the trace offers nothing: every rate is zero")]
    OffersNothing,
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
        let total = slots.iter().map(|slot| u128::from(slot.bytes) * WORK_PER_BYTE).sum();
        Ok(Trace { supply: Supply::Slots(slots.into()), period, total, offset: Duration::ZERO })
    }

    /// Makes a trace of opportunities, each with its time and the bytes that it can deliver. The last is the period.
    pub fn of_opportunities(opportunities: impl IntoIterator<Item = (Duration, Bytes)>) -> Result<Trace, TraceError> {
        let mut slots: Vec<Slot> = Vec::new();
        let mut total = 0;
        for (step, (at, bytes)) in (1..).zip(opportunities) {
            let before = slots.last().map_or(Duration::ZERO, |slot| slot.at);
            if at <= before {
                return Err(TraceError::NoStep { step, until: at, before });
            }
            total += u128::from(bytes.get()) * WORK_PER_BYTE;
            slots.push(Slot { at, bytes: bytes.get() });
        }
        match slots.last().map(|slot| slot.at).filter(|_| total > 0) {
            None => Err(TraceError::OffersNothing),
            Some(period) => Ok(Trace { supply: Supply::Slots(slots.into()), period, total, offset: Duration::ZERO }),
        }
    }

    /// Makes a trace of rates.
    pub fn of_rates(steps: Vec<Step>) -> Result<Trace, TraceError> {
        let (mut before, mut total) = (Duration::ZERO, 0);
        for (step, &Step { until, rate }) in (1..).zip(&steps) {
            if until <= before {
                return Err(TraceError::NoStep { step, until, before });
            }
            total += u128::from((until - before).as_nanos()) * u128::from(rate.as_bps());
            before = until;
        }
        match total {
            0 => Err(TraceError::OffersNothing),
            _ => Ok(Trace { supply: Supply::Steps(steps.into()), period: before, total, offset: Duration::ZERO }),
        }
    }

    /// Returns the same trace, which a run begins at this place of the recording.
    pub fn starting_at(&self, offset: Duration) -> Trace {
        let within = offset.as_nanos() % self.period.as_nanos();
        Trace { offset: Duration::from_nanos(within), ..self.clone() }
    }

    /// Returns the same trace, which is at the beginning of its run only now.
    pub fn begun_at(&self, now: Instant) -> Trace {
        let period = self.period.as_nanos();
        let ahead = now.as_nanos() % period;
        self.starting_at(Duration::from_nanos(self.offset.as_nanos() + period - ahead))
    }

    /// Returns the place in the recording at which a run begins.
    pub fn offset(&self) -> Duration {
        self.offset
    }

    /// Returns the rates over time: for opportunities, those of each `window`, of which the last may be shorter.
    pub fn rates(&self, window: Duration) -> Vec<Step> {
        let slots = match &self.supply {
            Supply::Steps(steps) => return steps.to_vec(),
            Supply::Slots(slots) => slots,
        };
        let (mut steps, mut from, mut slots) = (Vec::new(), Duration::ZERO, slots.iter().peekable());
        while from < self.period {
            let until = (from + window).min(self.period);
            let mut bytes = 0;
            while let Some(slot) = slots.next_if(|slot| slot.at <= until) {
                bytes += slot.bytes;
            }
            let rate = Rate::of(Bytes::new(bytes), until - from).expect("a window is no shorter than a nanosecond");
            steps.push(Step { until, rate });
            from = until;
        }
        steps
    }

    /// Returns the period after which it repeats.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Returns the average rate of the trace.
    pub fn mean_rate(&self) -> Rate {
        let bps = self.total / u128::from(self.period.as_nanos());
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
    }
}

/// Opportunities in mahimahi's format, from the beginning of the recording: as many whole packets of 1500 bytes until
/// each millisecond as were offered. Rates have no such text, and give an empty one.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Supply::Slots(slots) = &self.supply else { return Ok(()) };
        // Opportunities of that format lie at whole milliseconds and are whole packets, so nothing is left over of
        // them.
        let whole = |slot: &Slot| slot.at.as_nanos().div_ceil(1_000_000);
        let (mut left, mut last) = (0, None);
        for slot in slots.iter() {
            left += slot.bytes;
            while left >= FULL_PACKET {
                left -= FULL_PACKET;
                last = Some(whole(slot));
                writeln!(f, "{}", whole(slot))?;
            }
        }
        // The last line is the period.
        match slots.last().map(whole).filter(|period| last != Some(*period)) {
            Some(period) => writeln!(f, "{period}"),
            None => Ok(()),
        }
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
    place: Place,
}

/// Times in it count from the beginning of the recording.
#[derive(Clone, Debug)]
enum Place {
    Slots(slots::Place),
    Steps(steps::Place),
}

/// Departure of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Served {
    pub(crate) departs: Instant,
    /// Bytes of the packet served at that very instant; used by opportunities only.
    pub(crate) at_once: u32,
}

impl Cursor {
    /// Makes a cursor that serves nothing before `now`.
    pub(crate) fn new(trace: Arc<Trace>, now: Instant) -> Self {
        let now = now + trace.offset;
        let place = match &trace.supply {
            Supply::Slots(slots) => Place::Slots(slots::Place::new(Arc::clone(slots), trace.period, now)),
            Supply::Steps(steps) => Place::Steps(steps::Place::new(Arc::clone(steps), trace.period, trace.total, now)),
        };
        Cursor { trace, place }
    }

    pub(crate) fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// Serves `bytes` that were queued at `now`, behind all that was served before.
    pub(crate) fn serve(&mut self, now: Instant, bytes: u64) -> Served {
        let offset = self.trace.offset;
        match &mut self.place {
            Place::Slots(place) => {
                let served = place.serve(now + offset, bytes);
                Served { departs: served.departs - offset, ..served }
            }
            Place::Steps(place) => Served { departs: place.serve(now + offset, bytes) - offset, at_once: 0 },
        }
    }

    /// Does the rest of a packet's work; the first task of a cursor.
    pub(crate) fn resume(&mut self, now: Instant, left: Work) -> Served {
        let offset = self.trace.offset;
        match &mut self.place {
            Place::Slots(_) => {
                let bytes = left.div_ceil(WORK_PER_BYTE);
                self.serve(now, u64::try_from(bytes).unwrap_or(u64::MAX))
            }
            Place::Steps(place) => Served { departs: place.work(now + offset, left) - offset, at_once: 0 },
        }
    }

    /// Returns the work that the trace offers after `from` and until a packet has left.
    pub(crate) fn offered_until(&self, from: Instant, served: Served) -> Work {
        let (from, to) = (from + self.trace.offset, served.departs + self.trace.offset);
        match &self.place {
            Place::Slots(place) => {
                u128::from(place.offered_between(from, to) + u64::from(served.at_once)) * WORK_PER_BYTE
            }
            Place::Steps(place) => place.offered_between(from, to),
        }
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

    #[test]
    fn a_run_may_begin_anywhere_in_a_recording() {
        let trace = Trace::parse("1\n1\n4\n10\n").unwrap();
        for (offset, leaves) in [(0, 1000), (1, 0), (2, 2000), (9, 1000), (10, 1000), (11, 0), (14, 0), (15, 5000)] {
            let begun = Arc::new(trace.starting_at(Duration::from_millis(offset)));
            let mut cursor = Cursor::new(begun, Instant::ZERO);
            assert_eq!(cursor.serve(us(0), 1000).departs, us(leaves), "{offset} ms");
        }
    }

    fn steps(steps: &[(u64, u64)]) -> Trace {
        let step = |&(ms, bps)| Step { until: Duration::from_millis(ms), rate: Rate::from_bps(bps) };
        Trace::of_rates(steps.iter().map(step).collect()).unwrap()
    }

    #[test]
    fn a_run_may_begin_later_than_its_clock() {
        let trace = Trace::parse("1\n1\n4\n10\n").unwrap().starting_at(Duration::from_millis(2));
        for now in [0, 7, 10, 23_000] {
            let mut cursor = Cursor::new(Arc::new(trace.begun_at(us(now * 1000))), us(now * 1000));
            assert_eq!(cursor.serve(us(now * 1000), 1000).departs, us(now * 1000 + 2000), "{now} ms");
        }
    }

    #[test]
    fn rates_serve_bit_by_bit_across_their_steps() {
        // 8 Mbit/s for 10 ms, an outage of 10 ms, 4 Mbit/s for 20 ms: a byte takes 1 us, then 2 us.
        let trace = steps(&[(10, 8_000_000), (20, 0), (40, 4_000_000)]);
        assert_eq!(trace.mean_rate(), Rate::from_bps(4_000_000));
        let mut cursor = Cursor::new(Arc::new(trace.clone()), Instant::ZERO);
        for (queued, bytes, leaves) in [
            (0, 1500, 1500),
            (0, 1500, 3000),
            (9000, 1000, 10_000), // The last byte leaves as the outage begins.
            (9000, 1, 20_002),    // Nothing moves for 10 ms.
            (21_000, 1500, 24_000),
            (39_000, 1500, 41_000), // 500 bytes until the end of the period, 1000 in the next.
        ] {
            assert_eq!(cursor.serve(us(queued), bytes).departs, us(leaves), "{queued} {bytes}");
        }
        let mut cursor = Cursor::new(Arc::new(trace.starting_at(Duration::from_millis(15))), Instant::ZERO);
        assert_eq!(cursor.serve(us(0), 1).departs, us(5002), "in the middle of the outage");
    }

    #[test]
    fn work_of_many_periods_takes_no_longer_to_find() {
        // 20,000 bytes in each 40 ms: a million periods, and half of the first step of the next.
        let trace = Arc::new(steps(&[(10, 8_000_000), (20, 0), (40, 4_000_000)]));
        let mut cursor = Cursor::new(trace, Instant::ZERO);
        let departs = cursor.serve(us(0), 20_000 * 1_000_000 + 5000).departs;
        assert_eq!(departs, us(40_000 * 1_000_000 + 5000));
    }

    #[test]
    fn what_is_no_series_of_rates_is_refused() {
        let step = |ms, mbps| Step { until: Duration::from_millis(ms), rate: Rate::from_mbps(mbps) };
        for (steps, message) in [
            (vec![], "the trace offers nothing: every rate is zero"),
            (vec![step(1, 0)], "the trace offers nothing: every rate is zero"),
            (vec![step(0, 1)], "step 1 ends at 0s, and the one before it at 0s"),
            (vec![step(2, 1), step(1, 1)], "step 2 ends at 1ms, and the one before it at 2ms"),
        ] {
            assert_eq!(Trace::of_rates(steps).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn opportunities_may_be_of_any_size_and_at_any_time() {
        let us_bytes = |&(at, bytes): &(u64, u64)| (Duration::from_micros(at), Bytes::new(bytes));
        let slots = |all: &[(u64, u64)]| Trace::of_opportunities(all.iter().map(us_bytes));
        let trace = slots(&[(500, 2000), (1700, 800), (2300, 3000), (4000, 0)]).unwrap();
        assert_eq!((trace.period(), trace.mean_rate()), (Duration::from_millis(4), Rate::from_bps(11_600_000)));
        let mut cursor = Cursor::new(Arc::new(trace.clone()), Instant::ZERO);
        let departures: Vec<Instant> = (0..5).map(|_| cursor.serve(us(0), 1500).departs).collect();
        // 500 bytes left at 0.5 ms and 800 at 1.7 ms are not enough; the last waits for the next period.
        assert_eq!(departures, [us(500), us(2300), us(2300), us(4500), us(4500)]);
        // 2000, 2800 and 5800 bytes until 1, 2 and 3 ms are 1, 1 and 3 packets; the last line is the period.
        assert_eq!(trace.to_string(), "1\n3\n3\n4\n");
        let text = "0\n1\n1\n4\n";
        assert_eq!(Trace::parse(text).unwrap().to_string(), text);
        let refused = |all: &[(u64, u64)]| slots(all).unwrap_err().to_string();
        assert_eq!(refused(&[(5, 0)]), "the trace offers nothing: every rate is zero");
        assert_eq!(refused(&[(5, 1), (5, 1)]), "step 2 ends at 5us, and the one before it at 5us");
    }

    #[test]
    fn opportunities_have_a_rate_in_each_window() {
        let trace = Trace::parse("1\n1\n4\n10\n").unwrap();
        let rates: Vec<_> = trace.rates(Duration::from_millis(4)).iter().map(|step| step.rate.as_bps()).collect();
        assert_eq!(rates, [9_000_000, 0, 6_000_000]); // 4500 B in 4 ms, none, 1500 B in 2 ms.
    }

    proptest! {
        /// A trace of rates serves as a plain reading of it does, which goes through it one nanosecond at a time.
        #[test]
        fn rates_serve_as_the_plain_reading_does(
            rates in prop::collection::vec((1u64..50, 0u64..4), 1..6),
            gaps in prop::collection::vec((0u64..300, 1u64..20), 1..20),
        ) {
            prop_assume!(rates.iter().any(|(_, rate)| *rate > 0));
            // Steps of nanoseconds at whole bytes per nanosecond.
            let mut until = 0;
            let of_time: Vec<u64> = rates.iter().flat_map(|&(ns, rate)| vec![rate; ns as usize]).collect();
            let steps = rates.iter().map(|&(ns, rate)| {
                until += ns;
                Step { until: Duration::from_nanos(until), rate: Rate::from_bps(rate * 8_000_000_000) }
            });
            let mut cursor = Cursor::new(Arc::new(Trace::of_rates(steps.collect()).unwrap()), Instant::ZERO);
            // The link is free at `free` nanoseconds, with `used` bytes of the nanosecond after that used.
            let (mut now, mut free, mut used) = (0, 0, 0);
            for (gap, bytes) in gaps {
                now += gap;
                if now > free || (now == free && used == 0) {
                    (free, used) = (now, 0);
                }
                let mut need = bytes;
                loop {
                    let room = of_time[free as usize % of_time.len()] - used;
                    if need <= room && room > 0 {
                        used += need;
                        if used == of_time[free as usize % of_time.len()] {
                            (free, used) = (free + 1, 0);
                        }
                        break;
                    }
                    need -= room;
                    (free, used) = (free + 1, 0);
                }
                let departs = Instant::from_nanos(free + u64::from(used > 0));
                prop_assert_eq!(cursor.serve(Instant::from_nanos(now), bytes).departs, departs);
            }
        }

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
