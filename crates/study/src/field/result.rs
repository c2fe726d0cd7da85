//! Result of a field study: each measured number beside the predicted range.

use super::file::LeftOut;
use serde::{Deserialize, Serialize};

/// Result of a field study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FieldResult {
    /// Version of Anabranch.
    pub version: String,
    /// Digest of the program that made the runs.
    pub build: String,
    /// Name of the study: `field/simult-flows`.
    pub name: String,
    /// Title, in one line.
    pub title: String,
    /// Publication of the measurements.
    pub source: String,
    /// Description of the measurements, in a few sentences.
    pub about: String,
    /// Kernel, scheduler, congestion control and buffers of the measurements, as far as they are known.
    pub stack: String,
    /// SHA-256 of the study's text.
    pub digest: String,
    /// Command that repeats the study.
    pub command: String,
    /// True if only the draws of `--quick` were run.
    pub quick: bool,
    /// Overrides that lie over all rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
    /// Number of runs.
    pub runs: usize,
    /// Measured numbers beside predictions.
    pub rows: Vec<FieldRow>,
    /// Number of rows whose measured number is inside the predicted range.
    pub inside: usize,
    /// Half of the widest predicted range \[% of its median\].
    pub widest_percent: Option<f64>,
    /// Quantities that were not recorded, and the ranges they were drawn from.
    pub unrecorded: Vec<Unrecorded>,
    /// Measurements of the same source that are no rows.
    pub left_out: Vec<LeftOut>,
    /// Origin of the recordings, if they are not part of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    /// Scenario that the rows vary, as TOML.
    pub scenario: String,
}

/// Origin of recordings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Data {
    /// Command that fetches them.
    pub fetch: String,
    /// Licence, or that there is none.
    pub licence: String,
}

/// Quantity that was not recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Unrecorded {
    /// Name.
    pub name: String,
    /// Range or choices, in words: `20 to 50 ms`.
    pub range: String,
    /// Reason for the range.
    pub reason: String,
}

/// Measured number beside the predicted range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FieldRow {
    /// Name.
    pub name: String,
    /// Place where the measured number stands.
    pub source: String,
    /// Description of the metric in words.
    pub metric: String,
    /// Unit of the numbers.
    pub unit: String,
    /// Measured number.
    pub measured: f64,
    /// Predicted range: 5th percentile, median and 95th percentile of the draws. `None` if a run did not come to its
    /// end, or has no such number.
    pub predicted: Option<Range>,
    /// Verdict.
    pub verdict: FieldVerdict,
    /// Number of draws.
    pub draws: usize,
    /// Predictions one by one.
    pub predictions: Vec<Prediction>,
    /// Remark: conditions of this row, or what we believe if the prediction is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Range of predictions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Range {
    /// 5th percentile of the draws.
    pub low: f64,
    /// Median of the draws.
    pub median: f64,
    /// 95th percentile of the draws.
    pub high: f64,
}

/// Prediction from one draw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Prediction {
    /// Seed of the run.
    pub seed: u64,
    /// Drawn settings.
    pub drawn: Vec<String>,
    /// Predicted number; `None` if the run did not come to its end.
    pub value: Option<f64>,
    /// Command that repeats the run.
    pub command: String,
}

impl Range {
    /// Returns the range of the middle 90 % of these numbers, of which there is at least one. Between two draws it
    /// interpolates linearly.
    pub(super) fn of(values: &[f64]) -> Range {
        let mut in_order = values.to_vec();
        in_order.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * (in_order.len() - 1) as f64;
            let below = place.floor() as usize;
            let above = (below + 1).min(in_order.len() - 1);
            in_order[below] + (in_order[above] - in_order[below]) * (place - below as f64)
        };
        Range { low: at(0.05), median: at(0.5), high: at(0.95) }
    }

    /// Returns half of its width \[% of the median\].
    pub fn half_percent(&self) -> f64 {
        50.0 * (self.high - self.low) / self.median
    }
}

/// Verdict on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FieldVerdict {
    /// The measured number is inside the predicted range.
    Inside,
    /// The measured number is above the predicted range.
    Above,
    /// The measured number is below the predicted range.
    Below,
    /// A run did not come to its end: there is no range.
    NoPrediction,
}

impl FieldVerdict {
    /// Judges a measured number.
    pub(super) fn of(measured: f64, predicted: Option<Range>) -> FieldVerdict {
        match predicted {
            None => FieldVerdict::NoPrediction,
            Some(range) if measured > range.high => FieldVerdict::Above,
            Some(range) if measured < range.low => FieldVerdict::Below,
            Some(_) => FieldVerdict::Inside,
        }
    }

    /// Returns the verdict in words.
    pub const fn name(self) -> &'static str {
        match self {
            FieldVerdict::Inside => "inside",
            FieldVerdict::Above => "above",
            FieldVerdict::Below => "below",
            FieldVerdict::NoPrediction => "no prediction",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 5th percentile of the numbers 0 to 20 is the second of them, 1, and the 95th is 19.
    #[test]
    fn the_range_is_the_middle_of_the_draws() {
        let values: Vec<f64> = (0..=20).rev().map(f64::from).collect();
        let range = Range::of(&values);
        assert_eq!(range, Range { low: 1.0, median: 10.0, high: 19.0 });
        assert!((range.half_percent() - 90.0).abs() < 1e-9);
        assert_eq!(Range::of(&[3.0]), Range { low: 3.0, median: 3.0, high: 3.0 });
        assert_eq!(Range::of(&[1.0, 2.0]), Range { low: 1.05, median: 1.5, high: 1.95 });
        for (measured, expected) in
            [(0.9, FieldVerdict::Below), (1.0, FieldVerdict::Inside), (19.1, FieldVerdict::Above)]
        {
            assert_eq!(FieldVerdict::of(measured, Some(range)), expected);
        }
        assert_eq!(FieldVerdict::of(1.0, None), FieldVerdict::NoPrediction);
    }
}
