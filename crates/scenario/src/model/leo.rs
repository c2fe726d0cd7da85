//! Satellites in low orbit, after what was measured of Starlink.
//!
//! - Every 15 s, at the same moments everywhere, a terminal gets another satellite, and its delay and rate step
//!   (Tanveer and others, *Making Sense of Constellations*, CoNEXT Companion 2023; Mohan and others, *A Multifaceted
//!   Look at Starlink Performance*, WWW 2024).
//! - Within the 15 s, successive round trips differ by 6.7 ms on average, those around a handover are 30 to 50 ms
//!   longer, and 1 to 2 % of packets are lost without congestion (Huston, *A Transport Protocol's View of Starlink*,
//!   APNIC 2024). Here the scatter of a round trip is even over 20 ms, of which the mean difference is a third.
//! - The rate's spread and memory, and the cost of a handover, are those of the drive `mob` of CoNEXT'23 (Hu and
//!   others, *LEO Satellite vs. Cellular Networks*), UDP over 8.2 h in a car, of which we took the figures. Over
//!   seconds in which anything passes: the means of the 15 s differ by 43 % of the whole mean and correlate by 0.51
//!   from one to the next; within them seconds differ by 31 %. The two seconds of a handover carry 0.2 s less than
//!   others. Obstructions, of which a car has 16 % of the time, are one second long in 42 % of 235 cases, two in 14 %,
//!   three in 8 %, and the longest last minutes: the whole seconds of 1/u for an even u give 50, 17 and 8 %.
//!
//! Arbitrary: the range of the delay of satellites, and that a handover loses four of five packets for up to half a
//! second, which makes those 0.2 s, or 1.3 % of all packets. What an obstruction holds up waits in the queue. Both
//! directions are alike.

use super::wander::Wander;
use super::{Source, check_common, check_share, recording, up_to, within};
use crate::file::{Share, Unit};
use anabranch_recording::{Level, Levels, Recording, Supply};
use anabranch_units::quantity::Refusal;
use anabranch_units::{Duration, Rate, Stream};
use schemars::JsonSchema;

/// Satellites in low orbit.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Leo {
    /// Mean rate of both directions with a clear view, from 1mbit to 10gbit; 150mbit unless given.
    pub rate: Unit<Rate>,
    /// Shortest one-way delay, up to 1s; 15ms unless given.
    pub delay: Unit<Duration>,
    /// Time between handovers, from 1s to 10min, at the same moments on all paths of the model; 15s unless given.
    pub interval: Unit<Duration>,
    /// Range of the delay that satellites add, up to 1s; 10ms unless given.
    pub steps: Unit<Duration>,
    /// Loss between handovers, up to 50%; 0% unless given.
    pub loss: Unit<Share>,
    /// Share of the time in which the view is obstructed and nothing passes, up to 90%; 0% unless given. A car in the
    /// CoNEXT'23 drive had 16%.
    pub obstructed: Unit<Share>,
}

impl Default for Leo {
    fn default() -> Self {
        Leo {
            rate: Unit(Rate::from_mbps(150)),
            delay: Unit(Duration::from_millis(15)),
            interval: Unit(Duration::from_secs(15)),
            steps: Unit(Duration::from_millis(10)),
            loss: Unit(Share(0.0)),
            obstructed: Unit(Share(0.0)),
        }
    }
}

impl Leo {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        check_common(self.rate, self.delay)?;
        within("interval", self.interval.0, Duration::from_secs(1), super::LONGEST)?;
        within("steps", self.steps.0, Duration::ZERO, Duration::from_secs(1))?;
        check_share("loss", self.loss, 0.5)?;
        check_share("obstructed", self.obstructed, 0.9)
    }

    pub(super) fn draw(&self, source: &Source<'_>, length: Duration) -> Recording {
        let interval = self.interval.0;
        let first = up_to(&mut source.common("leo/phase"), interval);
        let mut satellites = source.stream("satellites");
        let (mut slots, mut until) = (Vec::new(), first);
        let mut level = Wander::new(1.0, LEVEL, interval, LEVEL_MEMORY, source.stream("level"));
        while slots.last().is_none_or(|slot: &Slot| slot.until < length) {
            slots.push(Slot {
                until,
                delay: up_to(&mut satellites, self.steps.0),
                lossy: up_to(&mut satellites, LONGEST_BURST.min(interval / 2)),
                spike: SPIKE[0] + up_to(&mut satellites, SPIKE[1] - SPIKE[0]),
                level: level.value().max(LEAST_LEVEL),
            });
            level.step();
            until += interval;
        }
        // No handover at the beginning of the run.
        slots[0].lossy = Duration::ZERO;
        let rates = self.rates(source, &slots, length);
        recording(
            length,
            TICK,
            Supply::Rates(rates),
            self.delays(source, &slots, length),
            Some(self.losses(&slots, length)),
        )
    }

    /// Rate, second by second.
    fn rates(&self, source: &Source<'_>, slots: &[Slot], length: Duration) -> Levels<Rate> {
        let mut scatter = Wander::new(1.0, SCATTER, SECOND, SCATTER_MEMORY, source.stream("scatter"));
        let mut view = View::new(self.obstructed.0.0, source.stream("view"));
        let (mut levels, mut at, mut slot) = (Vec::new(), Duration::ZERO, 0);
        // Seconds begin where the first handover does, so that a step of the rate is one of the satellite.
        let mut second = Duration::from_nanos(slots[0].until.as_nanos() % SECOND.as_nanos());
        let (mut scattered, mut is_clear, mut is_new) = (0.0, true, true);
        while at < length {
            let end = second.min(slots[slot].until);
            if at < end {
                if is_new {
                    (scattered, is_clear) = (scatter.value().max(LEAST_SCATTER), view.is_clear(at));
                    scatter.step();
                }
                let bps = (self.rate.0.as_bps() as f64 * (slots[slot].level * scattered)) as u64;
                levels.push(Level { until: end.min(length), value: Rate::from_bps(if is_clear { bps } else { 0 }) });
            }
            (at, is_new) = (end, end == second);
            if is_new {
                second += SECOND;
            }
            if at >= slots[slot].until && slot + 1 < slots.len() {
                slot += 1;
            }
        }
        Levels::new(levels)
    }

    /// Delay: that of the satellite, a scatter, and a spike at the handover.
    fn delays(&self, source: &Source<'_>, slots: &[Slot], length: Duration) -> Levels<Duration> {
        let mut scatter = source.stream("delay");
        let (mut levels, mut at) = (Vec::new(), Duration::ZERO);
        for slot in slots {
            let spike_until = at + slot.lossy;
            while at < slot.until.min(length) {
                let end = (at + TICK).min(slot.until).min(length);
                let spike = if at < spike_until { slot.spike } else { Duration::ZERO };
                let value = self.delay.0 + slot.delay + up_to(&mut scatter, DELAY_SCATTER) + spike;
                levels.push(Level { until: end, value });
                at = end;
            }
        }
        Levels::new(levels)
    }

    /// Loss: a burst at each handover.
    fn losses(&self, slots: &[Slot], length: Duration) -> Levels<f64> {
        let mut from = Duration::ZERO;
        let mut levels = Vec::new();
        for slot in slots {
            if !slot.lossy.is_zero() {
                levels.push(Level { until: from + slot.lossy, value: BURST_LOSS });
            }
            levels.push(Level { until: slot.until, value: self.loss.0.0 });
            from = slot.until;
        }
        let within = levels.into_iter().filter(|level| !level.until.is_zero());
        Levels::new(within.map(|level| Level { until: level.until.min(length), ..level }))
    }
}

/// Time with one satellite.
struct Slot {
    until: Duration,
    /// Delay that the satellite adds.
    delay: Duration,
    /// Length of the burst of loss at its beginning, and the delay added meanwhile.
    lossy: Duration,
    spike: Duration,
    /// Mean rate for each unit of that of all.
    level: f64,
}

/// View of the sky.
struct View {
    /// Chance that an obstruction begins in a clear second.
    begins: f64,
    clear_from: Duration,
    stream: Stream,
}

impl View {
    /// Begins at any moment, so in the midst of a long obstruction rather than of a short one.
    fn new(obstructed: f64, mut stream: Stream) -> Self {
        // Of each obstruction and the clear seconds before it: the second in which it begins is one of its own.
        let begins = obstructed / (obstructed + (1.0 - obstructed) * MEAN_OBSTRUCTION);
        let mut clear_from = Duration::ZERO;
        if stream.chance(obstructed) {
            // One of n seconds has a chance of 1 / n (n + 1), and n times as many moments lie in it as in one of a
            // second.
            let mut left = stream.unit() * MEAN_OBSTRUCTION;
            let length = (1..LONGEST_OBSTRUCTION).find(|n| {
                left -= 1.0 / (n + 1) as f64;
                left < 0.0
            });
            clear_from = SECOND * stream.between(1, length.unwrap_or(LONGEST_OBSTRUCTION));
        }
        View { begins, clear_from, stream }
    }

    /// Returns true if nothing is in the way in the second from `at` on.
    fn is_clear(&mut self, at: Duration) -> bool {
        let (begins, length) = (self.stream.chance(self.begins), self.stream.unit());
        if at < self.clear_from {
            return false;
        }
        if begins {
            let seconds = (1.0 / length.max(1.0 / LONGEST_OBSTRUCTION as f64)) as u64;
            self.clear_from = at + SECOND * seconds.min(LONGEST_OBSTRUCTION);
        }
        !begins
    }
}

const SECOND: Duration = Duration::from_secs(1);
/// Time between draws of the delay; arbitrary.
const TICK: Duration = Duration::from_millis(100);
/// Range of the delay within a slot, one way.
const DELAY_SCATTER: Duration = Duration::from_millis(10);
/// Delay added at a handover, one way.
const SPIKE: [Duration; 2] = [Duration::from_millis(15), Duration::from_millis(25)];
/// Loss during a handover, and its greatest length.
const BURST_LOSS: f64 = 0.8;
const LONGEST_BURST: Duration = Duration::from_millis(500);
/// Deviation of the mean rates of slots, and the time in which a correlation of 1/e is left: 0.51 after 15 s.
const LEVEL: f64 = 0.43;
const LEVEL_MEMORY: Duration = Duration::from_millis(22_300);
const LEAST_LEVEL: f64 = 0.1;
/// Deviation of seconds within a slot; 0.3 of the correlation is left after a second.
const SCATTER: f64 = 0.31;
const SCATTER_MEMORY: Duration = Duration::from_millis(830);
const LEAST_SCATTER: f64 = 0.05;
/// Longest obstruction in seconds, and their mean: the sum of 1/n until then.
const LONGEST_OBSTRUCTION: u64 = 600;
const MEAN_OBSTRUCTION: f64 = 6.974;
