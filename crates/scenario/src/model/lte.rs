//! LTE with its hybrid repetitions (HARQ).
//!
//! - A block of data goes out each millisecond. Its size follows the channel quality indicator, which is chosen so that
//!   one block in ten is in error (TS 36.213 §7.2.3).
//! - Eight processes take turns, so a block in error goes out again 8 ms later, in place of new data, up to three times
//!   (TS 36.321 §5.3.2; Xie, Yi, Jamieson, *PBE-CC*, SIGCOMM 2020, for what this does to delays). Packets arrive in
//!   order: those after it wait (TS 36.322 §5.1.3.2), which the link does, as it keeps order.
//! - If the third repetition fails as well, one block in ten thousand, the layer above finds the gap with the next
//!   block and asks for it after 35 ms (t-Reordering, TS 36.331 §9.2.1.1): it is 44 ms late.
//! - The signal wanders by 6 dB and forgets within 50 m (TR 38.901 Table 7.5-6, macro cells without line of sight), at
//!   50 km/h within 3.6 s.
//!
//! Simpler than the world: errors are independent, as though repetitions were not combined with what came before; a
//! packet counts with the block that holds its last byte; there is no fast fading, no handover and no other user. The
//! default rate is that of 10 MHz with two layers. Both directions are alike.

use super::wander::Wander;
use super::{Source, check_common, check_share, recording, signal, within};
use crate::file::{Share, Unit};
use anabranch_net::Trace;
use anabranch_recording::{Level, Levels, Recording, Supply};
use anabranch_units::quantity::Refusal;
use anabranch_units::{Bytes, Duration, Rate};
use schemars::JsonSchema;

/// LTE with repetitions of blocks.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Lte {
    /// Rate of both directions at the best signal and without errors, from 1mbit to 10gbit; 75mbit unless given.
    pub rate: Unit<Rate>,
    /// One-way delay of a block that arrives at once, up to 1s; 20ms unless given.
    pub delay: Unit<Duration>,
    /// Mean ratio of signal to noise and interference in dB, from 0 to 40; 14 unless given.
    pub signal_db: f64,
    /// Share of blocks in error, up to 50%; 10% unless given.
    pub errors: Unit<Share>,
}

impl Default for Lte {
    fn default() -> Self {
        Lte {
            rate: Unit(Rate::from_mbps(75)),
            delay: Unit(Duration::from_millis(20)),
            signal_db: 14.0,
            errors: Unit(Share(0.1)),
        }
    }
}

impl Lte {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        check_common(self.rate, self.delay)?;
        within("signal-db", self.signal_db, 0.0, 40.0)?;
        check_share("errors", self.errors, 0.5)
    }

    pub(super) fn draw(&self, source: &Source<'_>, length: Duration) -> Recording {
        let mut errors = source.stream("errors");
        let mut signal = Wander::new(self.signal_db, DEVIATION, REPORT, MEMORY, source.stream("signal"));
        let blocks = length.as_nanos().div_ceil(BLOCK.as_nanos());
        // Bits times blocks a second, so that no fraction of a byte is lost.
        let mut credit = 0;
        let mut busy_until = [0; PROCESSES as usize];
        let (mut slots, mut delays) = (Vec::new(), Vec::new());
        let mut rate = signal::rate(self.rate.0, signal.value()).as_bps();
        for block in 0..blocks {
            if block > 0 && block.is_multiple_of(BLOCKS_PER_REPORT) {
                signal.step();
                rate = signal::rate(self.rate.0, signal.value()).as_bps();
            }
            let process = &mut busy_until[(block % PROCESSES) as usize];
            let end = (BLOCK * (block + 1)).min(length);
            if *process > block {
                continue;
            }
            credit += rate;
            let bytes = credit / BITS;
            credit %= BITS;
            let failures = (0..=REPETITIONS).take_while(|_| errors.chance(self.errors.0.0)).count() as u64;
            *process = block + PROCESSES * (failures.min(REPETITIONS) + 1);
            let late = if failures > REPETITIONS { RECOVERY } else { BLOCK * (PROCESSES * failures) };
            slots.push((end, Bytes::new(bytes)));
            // In force from the middle of a block, so that what leaves at its end has its delay.
            delays.push(Level { until: (end + BLOCK / 2).min(length), value: self.delay.0 + late });
        }
        if slots.last().is_none_or(|(end, _)| *end < length) {
            slots.push((length, Bytes::ZERO));
        }
        delays.push(Level { until: length, value: self.delay.0 });
        let rate = match Trace::of_opportunities(slots) {
            Ok(trace) => Supply::Opportunities(trace),
            Err(_) => Supply::Rates(super::constant(length, Rate::from_bps(0))),
        };
        recording(length, BLOCK, rate, Levels::new(delays), None)
    }
}

/// Time of a block.
const BLOCK: Duration = Duration::from_millis(1);
/// Bits per second that make a byte in each block.
const BITS: u64 = 8000;
/// Processes that take turns.
const PROCESSES: u64 = 8;
/// Repetitions of a block at most.
const REPETITIONS: u64 = 3;
/// Delay of a block of which all repetitions failed: the next block, 35 ms, and one more turn.
const RECOVERY: Duration = Duration::from_millis(44);
/// Time between reports of the signal, one of those of TS 36.213 Table 7.2.2-1A.
const REPORT: Duration = Duration::from_millis(20);
const BLOCKS_PER_REPORT: u64 = 20;
/// Deviation of the signal \[dB\], and its memory: 50 m at 50 km/h.
const DEVIATION: f64 = 6.0;
const MEMORY: Duration = Duration::from_millis(3600);
