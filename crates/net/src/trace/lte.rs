//! A made-up LTE downlink, for those who have no recording.
//!
//! The plainest form of the traces of driving and walking phones (Winstein et al., *Stochastic Forecasts Achieve High
//! Throughput and Low Delay over Cellular Networks*, NSDI 2013): a rate that wanders over a factor of ten within
//! seconds, fast fading on top, and now and then a handover during which nothing moves and after which all is
//! different.
//!
//! The rate is a square-root diffusion (Feller 1951; Cox, Ingersoll, Ross 1985), which reverts to its mean and cannot
//! turn negative:
//! ```text
//! r += κ (μ - r) Δt + s √(r Δt) g,    s² = 2 κ σ² / μ
//! ```
//! with `g` of mean 0 and variance 1, where σ is the standard deviation of `r` in the long run; `r` is then kept
//! between a floor and a ceiling. Only `+ - * /` and `sqrt` are used, so a seed gives the same text on every platform.

use crate::queue::FULL_PACKET;
use anabranch_units::{Duration, Rate, Seed, Stream};
use std::fmt::Write;

/// Parameters of an LTE link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LteParams {
    /// Time until it repeats; at least a millisecond.
    pub period: Duration,
    /// The rate that it returns to, μ.
    pub mean: Rate,
    /// Spread of the rate around its mean, σ.
    pub spread: Rate,
    /// The lowest rate outside handovers and fades.
    pub floor: Rate,
    /// The highest rate outside fades.
    pub ceiling: Rate,
    /// Time to return to the mean, 1/κ.
    pub memory: Duration,
    /// The mean time between handovers; zero for none.
    pub handover_every: Duration,
    /// The shortest and the longest silence of a handover.
    pub handover: (Duration, Duration),
}

impl Default for LteParams {
    /// A phone in a car: 60 s between 2 and 30 Mbit/s around 14, a handover of up to 0.3 s every 12 s.
    fn default() -> Self {
        LteParams {
            period: Duration::from_secs(60),
            mean: Rate::from_mbps(14),
            spread: Rate::from_mbps(7),
            floor: Rate::from_mbps(2),
            ceiling: Rate::from_mbps(30),
            memory: Duration::from_secs(3),
            handover_every: Duration::from_secs(12),
            handover: (Duration::from_millis(40), Duration::from_millis(300)),
        }
    }
}

/// A trace in mahimahi's text format; the same for the same seed and parameters, everywhere and always.
pub fn synthetic_lte(seed: u64, params: &LteParams) -> String {
    let mut walk = Walk::new(seed, params);
    let last = params.period.as_millis().clamp(1, u64::from(u32::MAX));
    let mut text = String::new();
    let mut credit = 0.0;
    let mut written = 0;
    for ms in 1..=last {
        credit += walk.bytes_in_next_ms();
        while credit >= FULL_PACKET as f64 {
            credit -= FULL_PACKET as f64;
            written = ms;
            writeln!(text, "{ms}").expect("writing to a string succeeds");
        }
    }
    if written < last {
        // The last line is the period, so it must be there even if the link is silent.
        writeln!(text, "{last}").expect("writing to a string succeeds");
    }
    text
}

struct Walk<'a> {
    params: &'a LteParams,
    rate: Stream,
    fade: Stream,
    handover: Stream,
    /// Milliseconds gone.
    ms: u64,
    /// The slow rate in Mbit/s, and the factor of fast fading.
    mbps: f64,
    faded: f64,
    /// Silent until then, in ms.
    silent_until: u64,
}

impl<'a> Walk<'a> {
    fn new(seed: u64, params: &'a LteParams) -> Self {
        let seed = Seed(seed);
        Walk {
            params,
            rate: seed.stream("trace/lte/rate"),
            fade: seed.stream("trace/lte/fade"),
            handover: seed.stream("trace/lte/handover"),
            ms: 0,
            mbps: params.mean.as_mbps(),
            faded: 1.0,
            silent_until: 0,
        }
    }

    fn bytes_in_next_ms(&mut self) -> f64 {
        if self.ms.is_multiple_of(STEP_MS) {
            self.step();
        }
        if self.ms.is_multiple_of(FADE_MS) {
            self.faded = 0.5 + self.fade.unit();
        }
        self.ms += 1;
        if self.ms <= self.silent_until { 0.0 } else { self.mbps * self.faded * BYTES_PER_MS_PER_MBPS }
    }

    fn step(&mut self) {
        let params = self.params;
        let dt = STEP_MS as f64 / 1000.0;
        let (mean, spread) = (params.mean.as_mbps(), params.spread.as_mbps());
        // A memory shorter than a step is no memory: the whole way back in one step.
        let back = (dt / params.memory.as_secs_f64()).min(1.0);
        let scale = if mean > 0.0 { (2.0 * back * spread * spread / mean).sqrt() } else { 0.0 };
        let kick = scale * self.mbps.sqrt() * about_normal(&mut self.rate);
        self.set(self.mbps + back * (mean - self.mbps) + kick);

        let every = params.handover_every.as_secs_f64();
        if every > 0.0 && self.handover.chance(dt / every) {
            let (short, long) = (params.handover.0.as_millis(), params.handover.1.as_millis());
            self.silent_until = self.ms + self.handover.between(short, long.max(short));
            // Another cell: half way to anywhere in the range.
            let (floor, ceiling) = (params.floor.as_mbps(), params.ceiling.as_mbps());
            let anywhere = floor + self.handover.unit() * (ceiling - floor);
            self.set(0.5 * (self.mbps + anywhere));
        }
    }

    fn set(&mut self, mbps: f64) {
        self.mbps = mbps.min(self.params.ceiling.as_mbps()).max(self.params.floor.as_mbps());
    }
}

/// Mean 0, variance 1, within ±6: the sum of twelve uniform draws, which needs no logarithm.
fn about_normal(stream: &mut Stream) -> f64 {
    (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0
}

/// Interval between moves of the slow rate.
const STEP_MS: u64 = 20;
/// Duration of a fade: about the coherence time of a slow car at 2 GHz.
const FADE_MS: u64 = 5;
const BYTES_PER_MS_PER_MBPS: f64 = 125.0;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Trace;

    fn stamps(text: &str) -> Vec<u64> {
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    #[test]
    fn looks_like_lte_for_every_seed() {
        for seed in 0..10 {
            let text = synthetic_lte(seed, &LteParams::default());
            let trace = Trace::parse(&text).unwrap();
            assert_eq!(trace.period(), Duration::from_secs(60));
            let mean = trace.mean_rate().as_mbps();
            assert!((8.0..20.0).contains(&mean), "{seed}: {mean}");

            let stamps = stamps(&text);
            let longest_silence = stamps.windows(2).map(|w| w[1] - w[0]).max().unwrap();
            assert!((40..=620).contains(&longest_silence), "{seed}: {longest_silence}");
            let mut per_second = [0u64; 60];
            for ms in &stamps {
                per_second[(ms - 1) as usize / 1000] += 12; // kbit
            }
            let (low, high) = (per_second.iter().min().unwrap(), per_second.iter().max().unwrap());
            assert!(*high > 3 * low && *high < 33_000, "{seed}: {low} to {high} kbit/s");
        }
    }

    #[test]
    fn a_seed_fixes_the_text() {
        let params = LteParams::default();
        let text = synthetic_lte(1, &params);
        assert_eq!(text, synthetic_lte(1, &params));
        assert_ne!(text, synthetic_lte(2, &params));
    }

    #[test]
    fn odd_parameters_still_give_a_trace() {
        let odd = LteParams {
            period: Duration::ZERO,
            mean: Rate::from_bps(0),
            floor: Rate::from_mbps(9),
            ceiling: Rate::from_mbps(1),
            memory: Duration::ZERO,
            handover_every: Duration::from_nanos(1),
            handover: (Duration::from_secs(2), Duration::from_secs(1)),
            ..LteParams::default()
        };
        for params in [odd, LteParams { period: Duration::from_secs(5), ..odd }] {
            let trace = Trace::parse(&synthetic_lte(1, &params)).unwrap();
            assert_eq!(trace.period(), params.period.max(Duration::from_millis(1)));
        }
    }
}
