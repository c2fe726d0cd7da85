//! Curves of equations, by name, to be drawn beside measurements.
//!
//! A curve has the unit of the metric that it is drawn beside: seconds, bits per second, or percent where a plot is
//! relative to a system. Loss rates are fractions, delays are one-way in milliseconds.
//!
//! The equations are those of J. Cheng, J. Hwang, A. Tang, *Acceleration of Multipath TCP by Letting ACKs Take the
//! Shortest Path*, IEEE Sarnoff Symposium 2019, section III, whose closed forms are in
//! [`anabranch_policy::ack_path::theory`]; and the arithmetic of P. Hurtig et al., *Low-Latency Scheduling in MPTCP*,
//! IEEE/ACM Transactions on Networking 2019, section II-C, which ignores serialisation.

use anabranch_policy::ack_path::theory::{Path, alpha, best, best_ratio, lia, reno, reno_alike};
use std::collections::BTreeMap;

/// Parameter with its default.
pub type Parameter = (&'static str, f64);

/// Curve that can be drawn.
pub struct Curve {
    /// Name in study files.
    pub name: &'static str,
    /// Meaning of both axes, unit, and equation.
    pub about: &'static str,
    /// Parameters besides `x`.
    pub parameters: &'static [Parameter],
    /// Function for the height at `x`; `None` where it is not defined. Parameters that are not given have their
    /// default.
    pub value: fn(x: f64, given: &BTreeMap<String, f64>) -> Option<f64>,
}

/// Returns the curve of this name.
pub fn curve(name: &str) -> Option<&'static Curve> {
    CURVES.iter().find(|curve| curve.name == name)
}

/// Returns a given parameter that the curve does not have, if any.
pub fn unknown_parameter<'a>(curve: &Curve, given: &'a BTreeMap<String, f64>) -> Option<&'a str> {
    given.keys().map(String::as_str).find(|name| curve.parameters.iter().all(|(known, _)| known != name))
}

/// All curves.
pub const CURVES: &[Curve] = &[
    Curve {
        name: "acksp-best",
        about: "ACKSP Fig. 2, below Eq. (11): the largest improvement under Reno [%] over alpha",
        parameters: &[],
        value: |alpha, _| positive(alpha).map(|alpha| percent(best(alpha))),
    },
    Curve {
        name: "acksp-best-ratio",
        about: "ACKSP below Eq. (11): the ratio of delays at which the improvement is largest, over alpha",
        parameters: &[],
        value: |alpha, _| positive(alpha).map(best_ratio),
    },
    Curve {
        name: "acksp-reno-alike",
        about: "ACKSP Eqs. (8) to (11): improvement under Reno [%] over the ratio of delays, all other paths alike",
        parameters: ALIKE,
        value: |ratio, given| {
            let alpha = positive(read(given, ALIKE, "alpha")?)?;
            Some(percent(reno_alike(alpha, positive(ratio)?)))
        },
    },
    Curve {
        name: "acksp-reno-standard",
        about: "ACKSP Eq. (4), summed: throughput of Reno [bit/s] over d1/d0, ACKs on their own paths",
        parameters: SIZED,
        value: |ratio, given| Some(sum(&rates(ratio, given, SIZED, false)?)),
    },
    Curve {
        name: "acksp-reno-short",
        about: "ACKSP Eq. (4), summed: throughput of Reno [bit/s] over d1/d0, all ACKs on path `via`",
        parameters: SIZED,
        value: |ratio, given| Some(sum(&rates(ratio, given, SIZED, true)?)),
    },
    Curve {
        name: "acksp-reno",
        about: "ACKSP Eq. (5): improvement under Reno [%] over d1/d0, all ACKs on path `via`",
        parameters: TWO,
        value: |ratio, given| {
            let (paths, via) = two_paths(ratio, given, TWO)?;
            Some(percent(reno(&paths, via)))
        },
    },
    Curve {
        name: "acksp-reno-slope",
        about: "ACKSP Eq. (6) with the factor that its second term lacks: change of the improvement under Reno \
                [% per ms of d1] over d1/d0",
        parameters: TWO,
        value: |ratio, given| {
            let ([zero, one], _) = two_paths(ratio, given, TWO)?;
            let weight = |path: Path| (1.0 / path.loss).sqrt();
            let standard = weight(zero) / (2.0 * zero.delay) + weight(one) / (2.0 * one.delay);
            let short = weight(zero) / (2.0 * zero.delay) + weight(one) / (zero.delay + one.delay);
            let round_trip = zero.delay + one.delay;
            let fewer = weight(one) / (round_trip * round_trip) * standard;
            let more = weight(one) / (2.0 * one.delay * one.delay) * short;
            Some(percent((more - fewer) / (standard * standard)))
        },
    },
    Curve {
        name: "acksp-lia-standard",
        about: "ACKSP Eq. (12): throughput of LIA or OLIA, taken as that of the best path [bit/s], over d1/d0, ACKs on \
                their own paths",
        parameters: SIZED,
        value: |ratio, given| Some(largest(&rates(ratio, given, SIZED, false)?)),
    },
    Curve {
        name: "acksp-lia-short",
        about: "ACKSP Eq. (13): the same with all ACKs on path `via`",
        parameters: SIZED,
        value: |ratio, given| Some(largest(&rates(ratio, given, SIZED, true)?)),
    },
    Curve {
        name: "acksp-lia",
        about: "ACKSP Eqs. (14), (15): improvement under LIA or OLIA, taken as the best path [%], over d1/d0, all ACKs \
                on path `via`",
        parameters: TWO,
        value: |ratio, given| {
            let (paths, via) = two_paths(ratio, given, TWO)?;
            Some(percent(lia(&paths, via)))
        },
    },
    Curve {
        name: "acksp-lia-bound",
        about: "ACKSP Eq. (16): what the improvement under LIA or OLIA cannot exceed [%], over d1/d0, ACKs on the \
                first path",
        parameters: &[],
        value: |ratio, _| {
            let ratio = positive(ratio)?;
            Some(percent((ratio - 1.0) / (ratio + 1.0)).max(0.0))
        },
    },
    Curve {
        name: "lowlat-burst-fast",
        about: "LOWLAT section II-C: time of a burst [s] over its segments, all on path 1, whose window doubles \
                each round trip",
        parameters: BURST,
        value: |segments, given| {
            let (window, rtt) = (positive(read(given, BURST, "window")?)?, positive(read(given, BURST, "rtt1")?)?);
            Some((round_trips(positive(segments)?, window) + 0.5) * rtt / 1000.0)
        },
    },
    Curve {
        name: "lowlat-burst-lowest-rtt",
        about: "LOWLAT section II-C: the same where what does not fit into the window of path 1 goes to path 2 at once",
        parameters: BURST,
        value: |segments, given| {
            let segments = positive(segments)?;
            let window = positive(read(given, BURST, "window")?)?;
            let (fast, slow) = (positive(read(given, BURST, "rtt1")?)?, positive(read(given, BURST, "rtt2")?)?);
            if segments <= window {
                return Some(fast / 2000.0);
            }
            // Both windows leave at once; the rest goes over the path with the earlier ACKs.
            let late = round_trips((segments - window).max(window), window);
            Some((slow / 2.0).max((late + 0.5) * fast) / 1000.0)
        },
    },
];

const ALIKE: &[Parameter] = &[("alpha", 0.1)];
/// Parameters of ACKSP section V-A.
const TWO: &[Parameter] = &[("d0", 10.0), ("p0", 0.01), ("p1", 0.0002), ("via", 0.0)];
/// Parameters of ACKSP section V-A, and bytes per segment.
const SIZED: &[Parameter] = &[("d0", 10.0), ("p0", 0.01), ("p1", 0.0002), ("via", 0.0), ("mss", 1428.0)];
/// Parameters of LOWLAT Fig. 8: round trips in milliseconds, and the window in segments.
const BURST: &[Parameter] = &[("rtt1", 10.0), ("rtt2", 100.0), ("window", 10.0)];

/// Returns a parameter as given, or else its default.
fn read(given: &BTreeMap<String, f64>, defaults: &[Parameter], name: &str) -> Option<f64> {
    let default = || defaults.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    given.get(name).copied().or_else(default).filter(|value| value.is_finite())
}

fn positive(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then_some(value)
}

fn percent(gain: f64) -> f64 {
    gain * 100.0
}

fn sum(rates: &[f64; 2]) -> f64 {
    rates[0] + rates[1]
}

fn largest(rates: &[f64; 2]) -> f64 {
    rates[0].max(rates[1])
}

/// Returns the two paths of section V-A, the second `ratio` times as long, and the index of the path of the ACKs.
fn two_paths(ratio: f64, given: &BTreeMap<String, f64>, defaults: &[Parameter]) -> Option<([Path; 2], usize)> {
    let read = |name: &str| read(given, defaults, name);
    let loss = |name: &str| positive(read(name)?).filter(|loss| *loss <= 1.0);
    let d0 = positive(read("d0")?)?;
    let via = match read("via")? {
        0.0 => 0,
        1.0 => 1,
        _ => return None,
    };
    let paths = [Path { delay: d0, loss: loss("p0")? }, Path { delay: d0 * positive(ratio)?, loss: loss("p1")? }];
    Some((paths, via))
}

/// Returns Eq. (4) for each path, with the constant that Eq. (3) leads to: √(2/p) segments per round trip \[bit/s\].
fn rates(ratio: f64, given: &BTreeMap<String, f64>, defaults: &[Parameter], short: bool) -> Option<[f64; 2]> {
    let (paths, via) = two_paths(ratio, given, defaults)?;
    let bits = 8.0 * positive(read(given, defaults, "mss")?)?;
    Some(paths.map(|path| {
        let back = if short { paths[via].delay } else { path.delay };
        bits * (2.0 / path.loss).sqrt() / (path.delay + back) * 1000.0
    }))
}

/// Returns the number of round trips before the one in which the last of `segments` leaves.
fn round_trips(segments: f64, window: f64) -> f64 {
    let (mut left, mut window, mut rounds) = (segments, window, 0.0);
    while left > window {
        left -= window;
        window *= 2.0;
        rounds += 1.0;
    }
    rounds
}

/// Returns the loss-rate weight α of two paths, as on the axis of Fig. 2.
pub fn alpha_of(p0: f64, p1: f64) -> f64 {
    alpha(&[Path { delay: 1.0, loss: p0 }, Path { delay: 1.0, loss: p1 }])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str, x: f64, given: &[(&str, f64)]) -> f64 {
        let given = given.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        (curve(name).expect("a curve of ours").value)(x, &given).expect("defined there")
    }

    fn close(ours: f64, theirs: f64, tolerance: f64) {
        assert!((ours - theirs).abs() <= tolerance, "{ours} against {theirs}");
    }

    /// Values from an independent script: p_0 = 1 %, p_1 = 0.02 %, which are the defaults.
    #[test]
    fn vectors_of_a_script() {
        let alpha = alpha_of(0.01, 0.0002);
        close(alpha, 0.1414, 5e-5);
        close(at("acksp-best-ratio", alpha, &[]), 5.0177, 5e-5);
        close(at("acksp-best", alpha, &[]), 39.05, 5e-3);
        for (ratio, expected) in [(2.0, 25.98), (3.0, 35.11), (5.0, 39.05), (10.0, 33.89), (20.0, 23.63)] {
            close(at("acksp-reno", ratio, &[]), expected, 5e-3);
            close(at("acksp-reno-alike", ratio, &[("alpha", alpha)]), expected, 5e-3);
        }
        for (ratio, expected) in [(2.0, 33.33), (3.0, 50.0), (5.0, 66.67), (7.07, 75.22), (10.0, 28.56), (14.0, 0.0)] {
            close(at("acksp-lia", ratio, &[]), expected, 5e-3);
        }
    }

    /// Values from the same script, for ACKSP Fig. 5: equal loss, 10 and 20 ms, then 30 and 20 ms.
    #[test]
    fn the_dynamic_network() {
        let equal = |d0: f64, via: f64| [("d0", d0), ("p0", 0.001), ("p1", 0.001), ("via", via)];
        close(at("acksp-reno", 2.0, &equal(10.0, 0.0)), 11.1, 0.05);
        close(at("acksp-reno", 2.0 / 3.0, &equal(30.0, 1.0)), 8.0, 0.05);
        close(at("acksp-reno", 2.0 / 3.0, &equal(30.0, 0.0)), -12.0, 0.05);
    }

    /// Improvements follow from the throughputs, as Eq. (2) says; Eq. (9) and (10) written out are Eq. (11).
    #[test]
    fn the_equations_agree_with_each_other() {
        for ratio in [1.0, 1.5, 4.0, 7.07, 20.0] {
            for (kind, gain) in [("reno", "acksp-reno"), ("lia", "acksp-lia")] {
                let standard = at(&format!("acksp-{kind}-standard"), ratio, &[]);
                let short = at(&format!("acksp-{kind}-short"), ratio, &[]);
                close(percent(short / standard - 1.0), at(gain, ratio, &[]), 1e-9);
            }
            assert!(at("acksp-lia", ratio, &[]) <= at("acksp-lia-bound", ratio, &[]) + 1e-9, "(16)");
            let (g0, g1) = (10.0, 5000_f64.sqrt());
            let nine = (g0 + 2.0 / (1.0 + ratio) * g1) / (g0 + g1 / ratio) - 1.0;
            let ten = (g0 / g1 + 2.0 / (1.0 + ratio)) / (g0 / g1 + 1.0 / ratio) - 1.0;
            close(percent(nine), at("acksp-reno", ratio, &[]), 1e-9);
            close(percent(ten), at("acksp-reno-alike", ratio, &[("alpha", g0 / g1)]), 1e-9);
        }
        // √(2/0.0002) = 100 segments of 1428 B in 20 ms, √(2/0.01) = 14.14 in 20 ms.
        close(at("acksp-reno-standard", 1.0, &[]), 114.142 * 1428.0 * 8.0 / 0.020, 1e4);
        close(at("acksp-lia-standard", 1.0, &[]), 100.0 * 1428.0 * 8.0 / 0.020, 1e-3);
    }

    /// Eq. (6), repaired, is the slope of Eq. (5), and is zero where (7) has the best ratio.
    #[test]
    fn the_slope_is_that_of_the_improvement() {
        for ratio in [1.5, 3.0, 8.0, 15.0] {
            let step = 1e-5;
            let rise = at("acksp-reno", ratio + step, &[]) - at("acksp-reno", ratio - step, &[]);
            close(at("acksp-reno-slope", ratio, &[]), rise / (2.0 * step * 10.0), 1e-6);
        }
        let best = at("acksp-best-ratio", alpha_of(0.01, 0.0002), &[]);
        close(at("acksp-reno-slope", best, &[]), 0.0, 1e-9);
    }

    #[test]
    fn fig_2_tends_to_everything_and_to_nothing() {
        assert!(at("acksp-best", 1e-6, &[]) > 99.0 && at("acksp-best", 1000.0, &[]) < 0.05);
        close(at("acksp-best", 1.0, &[]), 100.0 / (4.0 + 4.0), 1e-9);
    }

    /// LOWLAT Fig. 8 without serialisation, by hand, and the example of LOWLAT section II-C: 15 segments take 15 ms on
    /// the path of 10 ms, and 50 ms if five of them go to that of 100 ms.
    #[test]
    fn bursts_without_serialisation() {
        for (segments, ms) in
            [(1.0, 5.0), (10.0, 5.0), (11.0, 15.0), (15.0, 15.0), (30.0, 15.0), (31.0, 25.0), (70.0, 25.0)]
        {
            close(at("lowlat-burst-fast", segments, &[]), ms / 1000.0, 1e-12);
        }
        for (segments, rtt2, ms) in [
            (10.0, 100.0, 5.0),
            (15.0, 100.0, 50.0),
            (50.0, 100.0, 50.0),
            (15.0, 10.0, 5.0),
            (40.0, 10.0, 15.0),
            (30.0, 40.0, 20.0),
        ] {
            close(at("lowlat-burst-lowest-rtt", segments, &[("rtt2", rtt2)]), ms / 1000.0, 1e-12);
        }
    }

    #[test]
    fn what_makes_no_sense_has_no_value() {
        let none = BTreeMap::new();
        for curve in CURVES {
            for x in [0.0, -1.0, f64::NAN, f64::INFINITY] {
                assert_eq!((curve.value)(x, &none), None, "{} at {x}", curve.name);
            }
        }
        for (name, value) in [("p0", 0.0), ("p1", 1.5), ("d0", -1.0), ("via", 0.5), ("via", 2.0)] {
            let given = BTreeMap::from([(name.to_owned(), value)]);
            assert_eq!((curve("acksp-reno").expect("known").value)(2.0, &given), None, "{name} = {value}");
        }
        let known = curve("acksp-reno").expect("known");
        assert_eq!(unknown_parameter(known, &BTreeMap::from([("p2".to_owned(), 0.1)])), Some("p2"));
        assert!(curve("acksp").is_none());
        let mut names: Vec<&str> = CURVES.iter().map(|curve| curve.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CURVES.len());
    }
}
