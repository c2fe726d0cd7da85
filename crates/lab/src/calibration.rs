//! Calibration: the same transfers in the simulator, on the testbed and in the kernel.

use crate::stats::Estimate;
use serde::Serialize;

/// Results of all runs of a calibration.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Calibration {
    /// Version of this program.
    pub version: &'static str,
    /// Digest of this program.
    pub build: &'static str,
    /// Version of the kernel in the comparison.
    pub kernel: String,
    /// Seed of the first repetition.
    pub seed: u64,
    /// Number of runs in each world and row.
    pub repeat: usize,
    /// Rows in the order in which they were run.
    pub rows: Vec<Row>,
}

macro_rules! measures {
    ($($(#[doc = $meaning:literal])+ $variant:ident($name:literal, $unit:literal),)*) => {
        /// Value that a row compares.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Measure {
            $($(#[doc = $meaning])+ $variant,)*
        }

        impl Measure {
            /// All measures, in the order of tables.
            pub const ALL: &[Measure] = &[$(Measure::$variant,)*];

            /// Returns the name used in tables.
            pub fn name(self) -> &'static str {
                match self {
                    $(Measure::$variant => $name,)*
                }
            }

            /// Returns the unit; empty for a number without one.
            pub fn unit(self) -> &'static str {
                match self {
                    $(Measure::$variant => $unit,)*
                }
            }

            /// Returns the definition, in sentences.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Measure::$variant => concat!($($meaning),+).trim_ascii(),)*
                }
            }
        }
    };
}

measures! {
    /// Time from the beginning of the transfer to its last byte; of bursts the mean, of a page its load time.
    CompletionTime("transfer", "s"),
    /// Bytes that the receiver of a bulk transfer read in its time.
    Goodput("goodput", "Mbit/s"),
    /// Goodput of a bulk transfer over that of a competing TCP connection, while both run; the mean over those there
    /// are.
    Share("share", ""),
    /// Goodput of a bulk transfer after a change of a path, or the beginning or end of a competing connection: the mean
    /// over the second half of the time to the next change.
    NewLevel("new level", "Mbit/s"),
    /// Time from such a change to the beginning of the first second, in steps of 0.1 s, whose mean goodput is within
    /// 10 % of the new level.
    SettlingTime("settling", "s"),
}

/// Results for one network, one transfer, one protocol and one measure.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Row {
    /// Network and transfer.
    pub case: String,
    /// Protocol under test.
    pub protocol: Protocol,
    /// Value that is compared.
    pub measure: Measure,
    /// Time of the change that a new level or settling time is of, in seconds since the beginning of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_s: Option<f64>,
    /// Claim of a paper that the kernel can confirm here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<&'static str>,
    /// Digest of the scenario.
    pub digest: String,
    /// Our engine in the simulator.
    pub simulator: Samples,
    /// Our engine on the testbed.
    pub testbed: Samples,
    /// The kernel on the testbed.
    pub kernel: Samples,
}

/// Agreement of the kernel with the simulator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement<'a> {
    /// Number of rows.
    pub rows: usize,
    /// Number of those in which both agree.
    pub close: usize,
    /// Value of the kernel over that of the simulator where they are furthest apart.
    pub widest: f64,
    /// Name of that case.
    pub case: &'a str,
}

/// Protocol that carries the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Plain TCP over the first path.
    Tcp,
    /// MPTCP over all paths.
    Mptcp,
}

/// The runs of one world.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Samples {
    /// Value of each seed, in the unit of the measure; `None` where a run failed or never settled.
    pub values: Vec<Option<f64>>,
    /// Mean time in seconds from the request of an object to its last byte, for each run of a page that ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub object_s: Vec<f64>,
    /// Share of the bytes that each path's links delivered in the direction of the data, averaged over the runs; only
    /// in the first row of a transfer, and not where competing connections use the links too.
    pub shares: Vec<f64>,
    /// Errors of failed runs, each with its seed.
    pub failures: Vec<String>,
    /// Notes on runs whose emulation was late. Their values are used all the same.
    pub doubtful: Vec<String>,
}

impl Protocol {
    /// Returns the name used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Mptcp => "mptcp",
        }
    }
}

impl Samples {
    /// Returns the mean over the runs of the mean time of the objects; `None` except for pages.
    pub fn objects(&self) -> Option<Estimate> {
        Estimate::of(&self.object_s)
    }

    /// Returns the mean over the runs that have a value; `None` without any.
    pub fn mean(&self) -> Option<Estimate> {
        Estimate::of(&self.values.iter().flatten().copied().collect::<Vec<_>>())
    }

    /// Returns the mean difference to `other`, paired by seed, as a share of the mean of `other`; `None` if that is 0.
    pub fn gap(&self, other: &Samples) -> Option<Estimate> {
        let pairs = self.values.iter().zip(&other.values).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
        let (ours, theirs): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let base = Some(Estimate::of(&theirs)?.mean).filter(|base| *base != 0.0)?;
        let difference = Estimate::of_difference(&ours, &theirs)?;
        let half = difference.half.map(|half| half / base);
        Some(Estimate { mean: difference.mean / base, half, ..difference })
    }
}

impl Row {
    /// Returns the gap of the engine: testbed over simulator, minus 1.
    pub fn engine_gap(&self) -> Option<Estimate> {
        self.testbed.gap(&self.simulator)
    }

    /// Returns the gap of the kernel: kernel over our engine on the same testbed, minus 1.
    pub fn kernel_gap(&self) -> Option<Estimate> {
        self.kernel.gap(&self.testbed)
    }
}

impl Calibration {
    /// Returns the rows whose gaps count: all but settling times, which come in steps of 0.1 s and may be 0.
    pub fn judged(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.measure != Measure::SettlingTime)
    }

    /// Returns the median over the judged rows of the absolute gap of the engine; `None` without any.
    pub fn median_gap(&self) -> Option<f64> {
        let mut gaps: Vec<f64> = self.judged().filter_map(|row| Some(row.engine_gap()?.mean.abs())).collect();
        gaps.sort_by(f64::total_cmp);
        let middle = gaps.len() / 2;
        match gaps.len() {
            0 => None,
            n if n % 2 == 1 => Some(gaps[middle]),
            _ => Some((gaps[middle - 1] + gaps[middle]) / 2.0),
        }
    }

    /// Returns how well the kernel's transfers by this protocol agree with the simulator: the number of rows, of those
    /// that are `within` this share of each other, and the row that is furthest apart, with the factor. `None` without
    /// a row.
    pub fn agreement(&self, protocol: Protocol, within: f64) -> Option<Agreement<'_>> {
        let is_level = |row: &&Row| matches!(row.measure, Measure::CompletionTime | Measure::Goodput);
        let factors = self.judged().filter(|row| row.protocol == protocol).filter(is_level).filter_map(|row| {
            let [simulator, kernel] = [&row.simulator, &row.kernel].map(|samples| samples.mean().map(|it| it.mean));
            let ratio = kernel? / simulator?;
            (ratio.is_finite() && ratio > 0.0).then_some((ratio, &*row.case))
        });
        let factors: Vec<(f64, &str)> = factors.collect();
        let close = factors.iter().filter(|(ratio, _)| (ratio - 1.0).abs() <= within).count();
        let apart = |ratio: f64| ratio.max(1.0 / ratio);
        let (widest, case) = factors.iter().copied().max_by(|(a, _), (b, _)| apart(*a).total_cmp(&apart(*b)))?;
        Some(Agreement { rows: factors.len(), close, widest, case })
    }

    /// Returns the judged row with the largest absolute gap of the engine.
    pub fn widest(&self) -> Option<(&Row, Estimate)> {
        let gaps = self.judged().filter_map(|row| Some((row, row.engine_gap()?)));
        gaps.max_by(|(_, a), (_, b)| a.mean.abs().total_cmp(&b.mean.abs()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        Samples { values: values.iter().map(|&s| (s > 0.0).then_some(s)).collect(), ..Samples::default() }
    }

    fn row(simulator: &[f64], testbed: &[f64]) -> Row {
        Row {
            case: "x".to_owned(),
            protocol: Protocol::Tcp,
            measure: Measure::CompletionTime,
            change_s: None,
            claim: None,
            digest: String::new(),
            simulator: samples(simulator),
            testbed: samples(testbed),
            kernel: Samples::default(),
        }
    }

    #[test]
    fn a_gap_is_taken_seed_by_seed_and_leaves_failures_out() {
        // Pairs (1.0, 1.1) and (3.0, 3.1): mean difference 0.1 over a mean of 2.0; the pair with a failure (0) does not
        // count.
        let gap = row(&[1.0, 2.0, 3.0], &[1.1, 0.0, 3.1]).engine_gap().unwrap();
        assert!((gap.mean - 0.05).abs() < 1e-12 && gap.n == 2, "{gap:?}");
        assert!(gap.half.unwrap() < 1e-9);
        assert_eq!(row(&[1.0], &[0.0]).engine_gap(), None);
        let (at_once, later) = (Samples { values: vec![Some(0.0)], ..Samples::default() }, samples(&[0.3]));
        assert_eq!((later.gap(&at_once), at_once.gap(&later).unwrap().mean), (None, -1.0), "no share of nothing");
    }

    #[test]
    fn the_median_forgets_signs() {
        let rows = vec![row(&[1.0], &[0.9]), row(&[1.0], &[1.02]), row(&[1.0], &[1.04]), row(&[1.0], &[0.0])];
        let calibration = Calibration { version: "", build: "", kernel: String::new(), seed: 1, repeat: 1, rows };
        assert!((calibration.median_gap().unwrap() - 0.04).abs() < 1e-12);
        assert!((calibration.widest().unwrap().1.mean + 0.1).abs() < 1e-12);
    }
}
