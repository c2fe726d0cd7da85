//! Wi-Fi: a rate that follows the signal, and frames that are sent in bursts.
//!
//! All after IEEE 802.11-2020, for a channel of 80 MHz:
//!
//! - The modulation (VHT-MCS 0 to 9) has the share of the best rate of Table 21-61, and is received with one frame in
//!   ten in error at the minimum sensitivity of Table 21-25. The sender looks at the signal every 100 ms, as Minstrel
//!   does, and uses the best modulation that it carries then. Up to 1 dB above its sensitivity a tenth of the frames is
//!   lost and repeated, higher up none. Below it all are, until the next look.
//! - A turn begins after AIFS of 0.043 ms and a drawn backoff of 0 to 15 slots of 0.009 ms, with a preamble of 0.04 ms.
//!   A turn has up to 64 frames, as many as a block acknowledgment names, in at most 5.484 ms (aPPDUMaxTime), and the
//!   acknowledgment with its gap takes 0.048 ms. A frame of 1500 bytes takes 1560 with its headers. At the end of the
//!   turn all frames arrive that no missing one holds up.
//! - Stations have equal chances at each turn, and those of others last 0.3 ms to 5.484 ms.
//!
//! Arbitrary: the signal's deviation and memory, and the turns of others. Left out: collisions, and that a turn is
//! shorter if less than 64 frames are there. Both directions are alike.

use super::wander::Wander;
use super::{Source, check_common, constant, recording, within};
use crate::file::Unit;
use anabranch_net::Trace;
use anabranch_recording::{Recording, Supply};
use anabranch_units::quantity::Refusal;
use anabranch_units::{Bytes, Duration, Rate, Stream};
use schemars::JsonSchema;
use std::collections::VecDeque;

/// Wi-Fi with bursts of frames.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Wifi {
    /// Rate on the air of the best modulation, in both directions, from 1mbit to 10gbit; 390mbit, which is one stream
    /// over 80 MHz, unless given.
    pub rate: Unit<Rate>,
    /// One-way delay beside the time on the air, up to 1s; 2ms unless given.
    pub delay: Unit<Duration>,
    /// Mean strength of the signal in dBm, from -90 to -30; -62 unless given.
    pub signal_dbm: f64,
    /// Other stations that always have something to send, up to 50; 1 unless given.
    pub stations: u32,
}

impl Default for Wifi {
    fn default() -> Self {
        Wifi { rate: Unit(Rate::from_mbps(390)), delay: Unit(Duration::from_millis(2)), signal_dbm: -62.0, stations: 1 }
    }
}

impl Wifi {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        check_common(self.rate, self.delay)?;
        within("signal-dbm", self.signal_dbm, -90.0, -30.0)?;
        within("stations", self.stations, 0, 50)
    }

    pub(super) fn draw(&self, source: &Source<'_>, length: Duration) -> Recording {
        let mut signal = Wander::new(self.signal_dbm, DEVIATION, TICK, MEMORY, source.stream("signal"));
        let (mut access, mut errors) = (source.stream("access"), source.stream("errors"));
        let (mut at, mut ticked, mut looked) = (Duration::ZERO, Duration::ZERO, None);
        let mut modulation = None;
        let mut window = Window::default();
        let mut slots = Vec::new();
        while at < length {
            while ticked + TICK <= at {
                ticked += TICK;
                signal.step();
            }
            // A signal that falls between two looks costs whole turns: that is the price of adapting late.
            let look = at.as_nanos() / LOOK.as_nanos();
            if looked != Some(look) {
                looked = Some(look);
                modulation = SENSITIVITY.partition_point(|least| *least <= signal.value()).checked_sub(1);
            }
            let Some(used) = modulation else {
                at = LOOK * (look + 1);
                continue;
            };
            at += wait(&mut access);
            // Another station won the turn, and the wait begins anew.
            if access.below(u64::from(self.stations) + 1) > 0 {
                at += LEAST_TURN + super::up_to(&mut access, LONGEST_TURN - LEAST_TURN) + ACKNOWLEDGMENT;
                continue;
            }
            let rate = super::part(self.rate.0, SHARES[used], SHARES[9]);
            let room = rate.bytes_in(LONGEST_TURN - PREAMBLE).get() / FRAME;
            let margin = signal.value() - SENSITIVITY[used];
            let lost = match margin {
                margin if margin < 0.0 => 1.0,
                margin if margin < 1.0 => 0.1,
                _ => 0.0,
            };
            let (sent, arrived) = window.turn(room.clamp(1, FRAMES), lost, &mut errors);
            at += PREAMBLE + rate.time_for(Bytes::new(sent * FRAME));
            if arrived > 0 && at <= length {
                slots.push((at, Bytes::new(arrived * PACKET)));
            }
            at += ACKNOWLEDGMENT;
        }
        if slots.last().is_none_or(|(end, _)| *end < length) {
            slots.push((length, Bytes::ZERO));
        }
        let rate = match Trace::of_opportunities(slots) {
            Ok(trace) => Supply::Opportunities(trace),
            Err(_) => Supply::Rates(constant(length, Rate::from_bps(0))),
        };
        recording(length, TICK, rate, constant(length, self.delay.0), None)
    }
}

/// Draws the time before a turn.
fn wait(access: &mut Stream) -> Duration {
    AIFS + SLOT * access.below(CONTENTION)
}

/// Frames that were sent, from the first that is missing on: true for those that arrived.
#[derive(Default)]
struct Window(VecDeque<bool>);

impl Window {
    /// Sends missing frames and then new ones, up to `room`. Returns how many were sent, and how many were passed on.
    fn turn(&mut self, room: u64, lost: f64, errors: &mut Stream) -> (u64, u64) {
        let mut sent = 0;
        for frame in self.0.iter_mut().filter(|frame| !**frame).take(room as usize) {
            *frame = !errors.chance(lost);
            sent += 1;
        }
        while sent < room && (self.0.len() as u64) < FRAMES {
            self.0.push_back(!errors.chance(lost));
            sent += 1;
        }
        let arrived = self.0.iter().take_while(|frame| **frame).count();
        self.0.drain(..arrived);
        (sent, arrived as u64)
    }
}

/// Minimum sensitivity of the modulations at 80 MHz \[dBm\] (Table 21-25).
const SENSITIVITY: [f64; 10] = [-76.0, -73.0, -71.0, -68.0, -64.0, -60.0, -59.0, -58.0, -53.0, -51.0];
/// Rates of the modulations (Table 21-61).
const SHARES: [u64; 10] = [3, 6, 9, 12, 18, 24, 27, 30, 36, 40];
/// Frames that a block acknowledgment names.
const FRAMES: u64 = 64;
/// Bytes of a packet, and of the frame around it: header 26, LLC 8, CCMP 16, FCS 4, delimiter 4, padding 2.
const PACKET: u64 = 1500;
const FRAME: u64 = 1560;
/// SIFS of 16 µs and three slots (best effort).
const AIFS: Duration = Duration::from_micros(43);
const SLOT: Duration = Duration::from_micros(9);
/// Smallest contention window and one (best effort).
const CONTENTION: u64 = 16;
const PREAMBLE: Duration = Duration::from_micros(40);
/// SIFS, and 32 bytes at 24 Mbit/s.
const ACKNOWLEDGMENT: Duration = Duration::from_micros(48);
/// aPPDUMaxTime; and the shortest turn of others.
const LONGEST_TURN: Duration = Duration::from_micros(5484);
const LEAST_TURN: Duration = Duration::from_micros(300);
/// Time between looks at the signal.
const LOOK: Duration = Duration::from_millis(100);
/// Time between moves of the signal, its deviation \[dB\] and memory.
const TICK: Duration = Duration::from_millis(10);
const DEVIATION: f64 = 4.0;
const MEMORY: Duration = Duration::from_secs(1);
