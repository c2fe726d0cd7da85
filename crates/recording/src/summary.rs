//! Figures of a recording.

use crate::levels::{Level, Levels};
use anabranch_units::{Duration, Rate};

/// Spread of values over the time that they hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean over time.
    pub mean: f64,
    /// Smallest value.
    pub least: f64,
    /// Percentiles 5, 25, 50, 75 and 95 over time.
    pub percentiles: [f64; 5],
    /// Largest value.
    pub most: f64,
}

/// The percentiles of [`Spread`].
pub const PERCENTILES: [f64; 5] = [5.0, 25.0, 50.0, 75.0, 95.0];

/// A time in which hardly anything passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Time in the recording at which it begins.
    pub at: Duration,
    /// Length.
    pub length: Duration,
}

/// A value that changes more at one moment of a period than at others, as at the handovers of a satellite network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Periodic {
    /// Length of the period.
    pub period: Duration,
    /// Time from the beginning of the recording to the first such moment.
    pub phase: Duration,
    /// Mean change at that moment for each unit of the mean change at all others; `None` if the value changes at no
    /// other moment.
    pub ratio: Option<f64>,
}

/// Returns the spread of a value over time.
pub fn spread<T: Copy + PartialEq>(levels: &Levels<T>, number: impl Fn(T) -> f64) -> Spread {
    let mut from = Duration::ZERO;
    let mut held: Vec<(f64, f64)> = levels
        .iter()
        .map(|Level { until, value }| {
            let span = (until - from).as_secs_f64();
            from = until;
            (number(value), span)
        })
        .collect();
    held.sort_by(|a, b| a.0.total_cmp(&b.0));
    let whole: f64 = held.iter().map(|(_, span)| span).sum();
    let mean = held.iter().map(|(value, span)| value * span).sum::<f64>() / whole;
    let percentile = |percent: f64| {
        let mut left = whole * percent / 100.0;
        let found = held.iter().find(|(_, span)| {
            left -= span;
            left <= 0.0
        });
        found.map_or(f64::NAN, |(value, _)| *value)
    };
    Spread { mean, least: held[0].0, percentiles: PERCENTILES.map(percentile), most: held[held.len() - 1].0 }
}

/// Returns the times in which the rate is below a hundredth of its mean.
pub fn outages(rates: &Levels<Rate>) -> Vec<Outage> {
    let least = spread(rates, |rate| rate.as_bps() as f64).mean / 100.0;
    let (mut from, mut all) = (Duration::ZERO, Vec::<Outage>::new());
    for Level { until, value } in rates.iter() {
        if (value.as_bps() as f64) < least {
            match all.last_mut() {
                Some(last) if last.at + last.length == from => last.length = until - last.at,
                _ => all.push(Outage { at: from, length: until - from }),
            }
        }
        from = until;
    }
    all
}

/// Looks for a period of whole seconds, from 5 s to 60 s, at one moment of which the value changes more than at all
/// others. `step` is the time between two values. Returns the shortest period that stands out as much as any.
///
/// A moment stands out if the mean change there exceeds that at the others by six standard errors: of about 1,600
/// moments tried, chance would let one pass in less than a thousandth of recordings with changes that are independent.
pub fn periodic<T: Copy + PartialEq>(
    levels: &Levels<T>,
    step: Duration,
    number: impl Fn(T) -> f64,
) -> Option<Periodic> {
    // Finer than a quarter of a second tells no more of whole seconds.
    let step = step.max(Duration::from_millis(250));
    let second = Duration::from_secs(1);
    let per_second = usize::try_from(second.as_nanos() / step.as_nanos()).ok().filter(|per| *per > 0)?;
    let step = Duration::from_nanos(second.as_nanos() / u64::try_from(per_second).ok()?);
    let count =
        usize::try_from(levels.length().as_nanos() / step.as_nanos()).ok().filter(|count| *count <= MOST_VALUES)?;
    let values: Vec<f64> = (0..count).map(|n| number(levels.at(step * u64::try_from(n).unwrap_or(u64::MAX)))).collect();
    // Relative changes, cut off so that a single jump does not decide.
    let changes: Vec<f64> = values
        .windows(2)
        .map(|two| ((two[1] - two[0]).abs() / two[0].abs().max(two[1].abs()).max(f64::MIN_POSITIVE)).min(1.0))
        .collect();
    let n = changes.len() as f64;
    let sum: f64 = changes.iter().sum();
    let variance = changes.iter().map(|change| (change - sum / n).powi(2)).sum::<f64>() / n;
    if variance == 0.0 {
        return None;
    }
    let mut best: Option<(f64, Periodic)> = None;
    for seconds in 5..=60usize {
        let period = seconds * per_second;
        if changes.len() < period * LEAST_PERIODS {
            break;
        }
        for phase in 0..period {
            let there: Vec<f64> = changes.iter().skip(phase).step_by(period).copied().collect();
            let (k, own) = (there.len() as f64, there.iter().sum::<f64>());
            let (mean, others) = (own / k, (sum - own) / (n - k));
            let stands_out = (mean - others) / (variance * (1.0 / k + 1.0 / (n - k))).sqrt();
            // A longer period has to stand out clearly more: its multiples are seen as well.
            if stands_out > best.map_or(LEAST_ERRORS, |(most, _)| most * 1.2) {
                let ratio = (others > 0.0).then_some(mean / others);
                let at = |n: usize| step * u64::try_from(n).unwrap_or(u64::MAX);
                best = Some((stands_out, Periodic { period: at(period), phase: at(phase + 1), ratio }));
            }
        }
    }
    best.map(|(_, periodic)| periodic)
}

/// A period must pass this many times.
const LEAST_PERIODS: usize = 6;
/// Standard errors by which a moment stands out.
const LEAST_ERRORS: f64 = 6.0;
/// More values than this, eleven days at four a second, are not looked at.
const MOST_VALUES: usize = 4_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Seed;

    fn levels(values: impl IntoIterator<Item = f64>) -> Levels<f64> {
        let until = |n: u64| Duration::from_millis(500) * n;
        Levels::new((1..).zip(values).map(|(n, value)| Level { until: until(n), value }))
    }

    #[test]
    fn percentiles_are_over_time() {
        let of = spread(&levels([1.0, 1.0, 1.0, 9.0]), |value| value);
        assert_eq!((of.mean, of.least, of.most), (3.0, 1.0, 9.0));
        assert_eq!(of.percentiles, [1.0, 1.0, 1.0, 1.0, 9.0]);
    }

    #[test]
    fn outages_are_joined_times_of_hardly_any_rate() {
        let rate = |(until, mbps): (u64, f64)| Level {
            until: Duration::from_secs(until),
            value: Rate::from_bps((mbps * 1e6) as u64),
        };
        let rates = Levels::new([(5, 50.0), (6, 0.1), (7, 0.0), (20, 60.0), (21, 1.0)].map(rate));
        let outage = Outage { at: Duration::from_secs(5), length: Duration::from_secs(2) };
        assert_eq!(outages(&rates), [outage]);
    }

    /// Values that change a little all the time, and in 200 of 200 seeds nothing is found; with a jump every 15 s, that
    /// is found in all, and neither 30 s nor 45 s.
    #[test]
    fn a_period_is_found_if_there_is_one_and_only_then() {
        for seed in 0..200 {
            let mut draw = Seed(seed).stream("test");
            let noise: Vec<f64> = (0..1200).map(|_| 100.0 + 20.0 * draw.unit()).collect();
            let step = Duration::from_millis(500);
            assert_eq!(periodic(&levels(noise.iter().copied()), step, |value| value), None, "{seed}");
            let mut base = 0.0;
            let jumps = (0..).zip(&noise).map(|(n, value)| {
                if n % 30 == 8 {
                    base = 60.0 * draw.unit();
                }
                value + base
            });
            let found = periodic(&levels(jumps), step, |value| value).map(|found| (found.period, found.phase));
            assert_eq!(found, Some((Duration::from_secs(15), Duration::from_secs(4))), "{seed}");
        }
    }
}
