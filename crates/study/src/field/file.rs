//! Field study as written: measured results of others, their inputs, and what nobody recorded.

use anabranch_scenario::file::At;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Field study: measured results beside predictions.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FieldFile {
    /// Title, in one line.
    pub title: At<String>,
    /// Publication of the measurements.
    pub source: String,
    /// Description of the measurements, in a few sentences.
    pub about: String,
    /// Kernel, scheduler, congestion control and buffers, as far as they are known.
    pub stack: String,
    /// Number of draws of what was not recorded.
    pub draws: DrawsTable,
    /// Recordings that the user fetches.
    pub data: Option<DataTable>,
    /// Scenario that all rows share.
    #[serde(default)]
    pub scenario: Option<IgnoredAny>,
    /// Quantities that were not recorded.
    #[serde(default)]
    pub unrecorded: Vec<At<UnrecordedTable>>,
    /// Measured results.
    pub row: Vec<At<RowTable>>,
    /// Measurements of the same source that are no rows.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
}

/// Numbers of draws.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DrawsTable {
    /// Number of draws.
    pub full: usize,
    /// Number of draws with `--quick`.
    pub quick: usize,
}

/// Recordings that are not part of the program.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DataTable {
    /// Command that fetches them into `directory`.
    pub fetch: String,
    /// Directory in which they are sought unless `--data` names another.
    pub directory: String,
    /// Licence, or that there is none.
    pub licence: String,
    /// Excerpts by name. A trace of the scenario with that name follows the excerpt.
    pub excerpt: BTreeMap<String, At<ExcerptTable>>,
}

/// Part of a file of the data.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ExcerptTable {
    /// File, below the directory.
    pub file: String,
    /// Text with which the first row begins; the whole file unless given. The first line of the file, its header,
    /// stays.
    pub from: Option<String>,
    /// Number of rows.
    pub rows: Option<usize>,
}

/// Quantity that was not recorded.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UnrecordedTable {
    /// Name, which also names its random stream.
    pub name: String,
    /// Unit of the range.
    #[serde(default)]
    pub unit: String,
    /// Settings, each as `--set` takes it, with `{}` in place of the drawn value. Settings of a path that a row does
    /// not have are left out.
    pub set: Vec<At<String>>,
    /// Range of the values, drawn evenly; or else `choices`.
    pub range: Option<[f64; 2]>,
    /// Step to whose multiples drawn values are rounded.
    pub step: Option<f64>,
    /// Values to choose from, each as often.
    pub choices: Option<Vec<String>>,
    /// Reason for the range.
    pub reason: String,
}

/// Measured result.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RowTable {
    /// Name of the row.
    pub name: String,
    /// Measured number, in the unit of the metric; in percent with `over`.
    pub measured: f64,
    /// Name of a metric of studies, with its argument after a colon.
    pub metric: At<String>,
    /// Place where the number stands.
    pub source: String,
    /// Settings of the row, each as `--set` takes it.
    #[serde(default)]
    pub set: Vec<At<String>>,
    /// Settings of the run that the number is relative to, in place of `set`.
    pub over: Option<Vec<At<String>>>,
    /// Time that the measurement counts before the transfer begins \[s\]; it is added to the prediction.
    #[serde(default)]
    pub before: f64,
    /// Number of draws, if it differs from the others.
    pub draws: Option<usize>,
    /// Remark: conditions of this row, or what we believe if the prediction is wrong.
    pub note: Option<String>,
}

/// Measurement that is no row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LeftOut {
    /// The measurement.
    pub what: String,
    /// Reason why it is no row.
    pub why: String,
}
