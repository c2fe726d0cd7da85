//! Study file as written: its tables and keys. The file's `[scenario]` is a whole scenario; see
//! [`anabranch_scenario::file`].

use super::result::Assumption;
use anabranch_scenario::file::At;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// A study: one figure or table of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StudyFile {
    /// Title, in one line.
    pub title: At<String>,
    /// Short name of the paper.
    pub paper: At<String>,
    /// Name of the figure in the paper: `Fig. 10`.
    pub figure: String,
    /// Description of the measurement, in a few sentences.
    pub about: String,
    /// Another file in the same directory, such as `common.toml`, whose `[scenario]` and assumptions are the base of
    /// these.
    pub base: Option<At<String>>,
    /// Scenario that all runs share.
    #[serde(default)]
    pub scenario: Option<IgnoredAny>,
    /// Axes. The first is the horizontal axis, further ones make panels.
    #[serde(default)]
    pub axis: Vec<At<AxisTable>>,
    /// Systems that are compared.
    #[serde(default)]
    pub system: Vec<At<SystemTable>>,
    /// Number of repetitions.
    #[serde(default)]
    pub repeat: RepeatTable,
    /// Diagrams.
    #[serde(default)]
    pub plot: Vec<At<PlotTable>>,
    /// Statements of the paper.
    #[serde(default)]
    pub statement: Vec<At<StatementTable>>,
    /// Alternative assumptions to try if a statement fails.
    #[serde(default)]
    pub sensitivity: Vec<At<SensitivityTable>>,
    /// Assumptions where the paper leaves something open.
    #[serde(default)]
    pub assumption: Vec<Assumption>,
}

/// Base: the common part of several studies.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BaseFile {
    /// Scenario, or parts of one, that all runs share.
    #[serde(default)]
    pub scenario: Option<IgnoredAny>,
    /// Assumptions where the paper leaves something open.
    #[serde(default)]
    pub assumption: Vec<Assumption>,
    /// Alternative assumptions to try if a statement fails.
    #[serde(default)]
    pub sensitivity: Vec<At<SensitivityTable>>,
}

/// Axis: a property that varies.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AxisTable {
    /// Name in statements.
    pub name: String,
    /// Label beside the axis.
    pub label: String,
    /// Unit of the values.
    #[serde(default)]
    pub unit: String,
    /// Logarithmic axis.
    #[serde(default)]
    pub log: bool,
    /// Settings for a value, each as `--set` takes it, with `{}` in place of the value and `{*2.5}` in place of 2.5
    /// times the value.
    #[serde(default)]
    pub set: Vec<At<String>>,
    /// The values; or else `points`.
    #[serde(default)]
    pub values: Vec<f64>,
    /// Values of `--quick`; all unless given.
    pub quick: Option<At<Vec<f64>>>,
    /// Points with settings of their own, in place of `values` and `set`.
    #[serde(default)]
    pub points: Vec<At<PointTable>>,
}

/// Point of an axis with settings of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PointTable {
    /// Value, by which statements name the point.
    pub x: f64,
    /// Name on the axis, which then has categories.
    pub label: Option<String>,
    /// Settings of the point, each as `--set` takes it.
    pub set: Vec<At<String>>,
}

/// System: a variant of the scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SystemTable {
    /// Name in the legend and in statements.
    pub name: String,
    /// Settings of the system, each as `--set` takes it.
    pub set: Vec<At<String>>,
    /// Reason why this is not the paper's system but a reconstruction: statements about it are not judged.
    pub unavailable: Option<String>,
}

/// Alternative assumption.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SensitivityTable {
    /// Description in words.
    pub name: String,
    /// Settings of the alternative, each as `--set` takes it.
    pub set: Vec<At<String>>,
}

/// Numbers of repetitions.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RepeatTable {
    /// Number of repetitions, with the seeds 1, 2, 3 and so on.
    pub full: usize,
    /// Number of repetitions with `--quick`.
    pub quick: usize,
    /// Number of repetitions for each set of sensitivities; 0 to try none where runs are long.
    pub tries: usize,
    /// Maximum number of sets of sensitivities that are tried, with `--quick` half as many. Each alone is tried in any
    /// case.
    pub combinations: usize,
    /// Reason, if there are fewer than 30 repetitions.
    pub why: Option<String>,
}

impl Default for RepeatTable {
    fn default() -> Self {
        RepeatTable { full: 30, quick: 5, tries: 5, combinations: 40, why: None }
    }
}

/// Diagram.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PlotTable {
    /// Identifier: `a`, `b`, … as in the paper.
    pub id: String,
    /// Title above the diagram.
    pub title: String,
    /// Name of a metric, with its argument after a colon (`path-share:wlan`); with `over-time`, name of a series.
    pub metric: Option<At<String>>,
    /// System that the others are shown relative to, seed by seed \[%\].
    pub over: Option<At<String>>,
    /// Systems shown; all unless given.
    pub systems: Option<At<Vec<String>>>,
    /// Logarithmic vertical axis.
    #[serde(default)]
    pub log: bool,
    /// Bars in place of lines.
    #[serde(default)]
    pub bars: bool,
    /// Time as the horizontal axis; `metric` then names a series.
    #[serde(default)]
    pub over_time: bool,
    /// Curves of theory to draw as well.
    #[serde(default)]
    pub theory: Vec<At<TheoryTable>>,
}

/// Curve of an equation.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TheoryTable {
    /// Name in the legend.
    pub name: String,
    /// Name of the curve, which stands for an equation.
    pub curve: At<String>,
    /// Panel of the curve, by the value of the second axis; all unless given.
    pub panel: Option<f64>,
    /// Parameters of the curve besides `x`.
    #[serde(default)]
    pub parameters: BTreeMap<String, f64>,
}

/// Statement of the paper: words, a place, and one claim that can be tested.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StatementTable {
    /// Statement in our words.
    pub text: String,
    /// Section and figure.
    pub source: String,
    /// Sentence of the paper, if several statements judge it in parts or again, in this or another study of the paper.
    /// All statements with the same sentence count once.
    pub sentence: Option<String>,
    /// Name of a metric, with its argument after a colon.
    pub metric: At<String>,
    /// Values of the axes at which the claim is made; all unless given. Several values are averaged.
    #[serde(default)]
    pub at: BTreeMap<String, At<Vec<f64>>>,
    /// Claim: the systems by rising metric, joined by `<` (less), `<=` (not more) or `~` (alike, within `margin`).
    pub order: Option<At<String>>,
    /// Requires `order` at each point by itself, and not only on average.
    #[serde(default)]
    pub each: bool,
    /// Margin of the claim \[%, with `over` percentage points\]. Maximum difference for `~` and for a flat trend: 5
    /// unless given. Minimum difference for `<`, `<=` and a trend: 1 unless given.
    pub margin: Option<f64>,
    /// Side of `over` on which the system is in the paper, for a `trend` with `over`. A gap that shrinks or grows on
    /// the other side is the opposite.
    pub lead: Option<Lead>,
    /// System that `value`, `range`, `trend` and `peak` are about.
    pub system: Option<At<String>>,
    /// System that `value` and the other claims are relative to, seed by seed \[%\].
    pub over: Option<At<String>>,
    /// Claim: this number, in the metric's unit.
    pub value: Option<f64>,
    /// Tolerance around `value` or `range` within which a number still counts as reproduced, in the same unit; a tenth
    /// of the number unless given.
    pub within: Option<f64>,
    /// Claim: a number between these two.
    pub range: Option<[f64; 2]>,
    /// Claim: a number not below this one.
    pub at_least: Option<f64>,
    /// Claim: a number not above this one.
    pub at_most: Option<f64>,
    /// Point that counts for `value`, `range`, `at-least` and `at-most`; the mean of all points unless given.
    #[serde(default)]
    pub statistic: Statistic,
    /// Claim: the change of the metric along the first axis.
    pub trend: Option<Trend>,
    /// Claim: the metric is largest at this value of the first axis (one of these, if several).
    pub peak: Option<Vec<f64>>,
    /// Claim: the metric follows this curve, within `within` at each point.
    pub theory: Option<TheoryTable>,
    /// Reason why no run can show the statement; there is then no claim.
    pub untestable: Option<String>,
    /// Claim: a metric of text is exactly this in each run.
    pub equals: Option<String>,
    /// Our explanation if it is not reproduced.
    pub cause: Option<String>,
    /// True for a sentence of ours, which is not in the paper.
    #[serde(default)]
    pub own: bool,
    /// True for one of the main results of the paper, which a report shows first.
    #[serde(default)]
    pub headline: bool,
}

/// Side of another system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lead {
    /// Its metric is larger.
    Above,
    /// Its metric is smaller.
    Below,
}

/// Choice among several points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Mean of all points.
    #[default]
    Mean,
    /// Point with the largest mean.
    Max,
    /// Point with the smallest mean.
    Min,
}

/// Change of a metric along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trend {
    /// Rises.
    Rises,
    /// Falls.
    Falls,
    /// Changes by less than `margin`.
    Flat,
}
