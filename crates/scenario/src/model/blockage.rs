//! 5G in millimetre waves among people.
//!
//! - Each blocker leads the signal through four states, *clear*, *decay*, *shadowed* and *rise*, with exponential times
//!   at the rates 0.21, 7.88, 7.70 and 7.67 per second; the signal falls and rises evenly in decibels, and is 15.8 dB
//!   down while it is shadowed (MacCartney, Rappaport, Rangan, *Rapid Fading Due to Human Blockage in Pedestrian Crowds
//!   at 5G Millimeter-Wave Frequencies*, GLOBECOM 2017, at 73.5 GHz with antennas of 7°; the rates as the channel
//!   simulator NYUSIM has them). Several blockers are independent, and their decibels add, as in NYUSIM.
//! - Without blockers the signal wanders by a deviation of 4 dB and forgets within 10 m (TR 38.901 Tables 7.4.1-1 and
//!   7.5-6, street canyon with line of sight), at 1.4 m/s within 7.1 s.
//! - The rate is that of the signal's channel quality indicator.
//!
//! Left out: repetitions of blocks, other beams and cells, and other users. The default rate is what TS 38.306 §4.1.2
//! gives for 100 MHz at 120 kHz with two layers, 808 Mbit/s, rounded. Both directions are alike.

use super::wander::Wander;
use super::{Source, check_common, constant, exponential, recording, signal, within};
use crate::file::Unit;
use anabranch_recording::{Level, Levels, Recording, Supply};
use anabranch_units::quantity::Refusal;
use anabranch_units::{Duration, Rate, Stream};
use schemars::JsonSchema;

/// 5G in millimetre waves among people.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Blockage {
    /// Rate of both directions at the best signal, from 1mbit to 10gbit; 800mbit unless given.
    pub rate: Unit<Rate>,
    /// One-way delay, up to 1s; 8ms unless given.
    pub delay: Unit<Duration>,
    /// People who block the signal from time to time, up to 20; 1 unless given.
    pub blockers: u32,
    /// Mean ratio of signal to noise without blockers in dB, from 0 to 40; 20 unless given.
    pub signal_db: f64,
}

impl Default for Blockage {
    fn default() -> Self {
        Blockage {
            rate: Unit(Rate::from_mbps(800)),
            delay: Unit(Duration::from_millis(8)),
            blockers: 1,
            signal_db: 20.0,
        }
    }
}

impl Blockage {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        check_common(self.rate, self.delay)?;
        within("blockers", self.blockers, 0, 20)?;
        within("signal-db", self.signal_db, 0.0, 40.0)
    }

    pub(super) fn draw(&self, source: &Source<'_>, length: Duration) -> Recording {
        let mut blockers: Vec<Blocker> =
            (0..self.blockers).map(|n| Blocker::new(source.stream(&format!("blocker/{n}")))).collect();
        let mut clear = Wander::new(self.signal_db, DEVIATION, TICK, MEMORY, source.stream("signal"));
        let (mut levels, mut at) = (Vec::new(), Duration::ZERO);
        while at < length {
            let attenuation: f64 = blockers.iter_mut().map(|blocker| blocker.attenuation(at)).sum();
            let until = (at + TICK).min(length);
            levels.push(Level { until, value: signal::rate(self.rate.0, clear.value() - attenuation) });
            clear.step();
            at = until;
        }
        let rates = Supply::Rates(Levels::new(levels));
        recording(length, TICK, rates, constant(length, self.delay.0), None)
    }
}

/// A person who passes from time to time.
pub(super) struct Blocker {
    stage: Stage,
    from: Duration,
    until: Duration,
    stream: Stream,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Clear,
    Decay,
    Shadowed,
    Rise,
}

impl Blocker {
    pub(super) fn new(mut stream: Stream) -> Self {
        let until = exponential(&mut stream, Stage::Clear.mean());
        Blocker { stage: Stage::Clear, from: Duration::ZERO, until, stream }
    }

    /// Returns the attenuation in decibels at a time, which never decreases from call to call.
    pub(super) fn attenuation(&mut self, at: Duration) -> f64 {
        while self.until <= at {
            self.stage = self.stage.next();
            self.from = self.until;
            self.until += exponential(&mut self.stream, self.stage.mean());
        }
        let gone = (at - self.from).as_secs_f64() / (self.until - self.from).as_secs_f64();
        match self.stage {
            Stage::Clear => 0.0,
            Stage::Decay => SHADOW * gone,
            Stage::Shadowed => SHADOW,
            Stage::Rise => SHADOW * (1.0 - gone),
        }
    }
}

impl Stage {
    fn next(self) -> Stage {
        match self {
            Stage::Clear => Stage::Decay,
            Stage::Decay => Stage::Shadowed,
            Stage::Shadowed => Stage::Rise,
            Stage::Rise => Stage::Clear,
        }
    }

    /// Mean time in it: one over the rate at which it is left.
    fn mean(self) -> Duration {
        let per_second = match self {
            Stage::Clear => 0.21,
            Stage::Decay => 7.88,
            Stage::Shadowed => 7.70,
            Stage::Rise => 7.67,
        };
        Duration::from_secs_f64(1.0 / per_second)
    }
}

/// Attenuation of a blocker \[dB\].
pub(super) const SHADOW: f64 = 15.8;
/// Time between values; decay and rise last 130 ms on average.
const TICK: Duration = Duration::from_millis(10);
/// Deviation of the signal \[dB\], and its memory: 10 m at 1.4 m/s.
const DEVIATION: f64 = 4.0;
const MEMORY: Duration = Duration::from_millis(7100);
