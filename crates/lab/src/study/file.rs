//! A study file as it is written: its tables and keys. The file's `[scenario]` is a whole scenario; see [`crate::file`].

use super::result::Assumption;
use crate::file::At;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// A study: one figure or table of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StudyFile {
    /// In one line.
    pub title: At<String>,
    /// The paper's short name.
    pub paper: At<String>,
    /// What it is called there: `Fig. 10`.
    pub figure: String,
    /// What is measured, in a few sentences.
    pub about: String,
    /// Another file in the same directory, such as `common.toml`, whose `[scenario]` and assumptions lie below these.
    pub base: Option<At<String>>,
    /// What all runs share: a scenario.
    #[serde(default)]
    pub scenario: Option<IgnoredAny>,
    /// What varies. The first is the horizontal axis, further ones make panels.
    #[serde(default)]
    pub axis: Vec<At<AxisTable>>,
    /// What is compared.
    #[serde(default)]
    pub system: Vec<At<SystemTable>>,
    /// How often.
    #[serde(default)]
    pub repeat: RepeatTable,
    /// What is drawn.
    #[serde(default)]
    pub plot: Vec<At<PlotTable>>,
    /// What the paper states.
    #[serde(default)]
    pub statement: Vec<At<StatementTable>>,
    /// What else to try where a statement fails.
    #[serde(default)]
    pub sensitivity: Vec<At<SensitivityTable>>,
    /// What the paper leaves open.
    #[serde(default)]
    pub assumption: Vec<Assumption>,
}

/// A base: what several studies share.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BaseFile {
    /// What all runs share: a scenario, or parts of one.
    #[serde(default)]
    pub scenario: Option<IgnoredAny>,
    /// What the paper leaves open.
    #[serde(default)]
    pub assumption: Vec<Assumption>,
    /// What else to try where a statement fails.
    #[serde(default)]
    pub sensitivity: Vec<At<SensitivityTable>>,
}

/// What varies.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AxisTable {
    /// Its name in statements.
    pub name: String,
    /// What stands beside it.
    pub label: String,
    /// Of the values.
    #[serde(default)]
    pub unit: String,
    /// Logarithmic.
    #[serde(default)]
    pub log: bool,
    /// What a value lays over the scenario, each as `--set` takes it, with `{}` in place of the value and `{*2.5}` in place of
    /// 2.5 times the value.
    #[serde(default)]
    pub set: Vec<At<String>>,
    /// The values; or else `points`.
    #[serde(default)]
    pub values: Vec<f64>,
    /// Those of `--quick`; all unless given.
    pub quick: Option<At<Vec<f64>>>,
    /// Points that set different things, in place of `values` and `set`.
    #[serde(default)]
    pub points: Vec<At<PointTable>>,
}

/// A point of an axis that sets things of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PointTable {
    /// Its value: statements name it by this.
    pub x: f64,
    /// Its name on the axis, which then has categories.
    pub label: Option<String>,
    /// What it lays over the scenario.
    pub set: Vec<At<String>>,
}

/// A system.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SystemTable {
    /// In the legend, and in statements.
    pub name: String,
    /// Settings that it lays over the scenario, each as `--set` takes it.
    pub set: Vec<At<String>>,
    /// Reason why this is not the paper's system but a reconstruction: statements about it are not judged.
    pub unavailable: Option<String>,
}

/// Something else that could be assumed.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SensitivityTable {
    /// In words.
    pub name: String,
    /// Settings that it lays over the scenario, each as `--set` takes it.
    pub set: Vec<At<String>>,
}

/// How often each point is run.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RepeatTable {
    /// Repetitions, with the seeds 1, 2, 3 and so on.
    pub full: usize,
    /// Those of `--quick`.
    pub quick: usize,
    /// Those of each set of sensitivities; 0 for none where runs are long.
    pub tries: usize,
    /// Most sets of sensitivities that are tried, with `--quick` half as many. Each alone is tried in any case.
    pub combinations: usize,
    /// Why, if there are fewer than 30.
    pub why: Option<String>,
}

impl Default for RepeatTable {
    fn default() -> Self {
        RepeatTable { full: 30, quick: 5, tries: 5, combinations: 40, why: None }
    }
}

/// A diagram.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PlotTable {
    /// `a`, `b`, … as in the paper.
    pub id: String,
    /// What stands above it.
    pub title: String,
    /// What is shown: the name of a metric, with its argument after a colon (`path-share:wlan`); of a series if `over-time`.
    pub metric: Option<At<String>>,
    /// Relative to this system, seed by seed \[%\].
    pub over: Option<At<String>>,
    /// Only these systems; all unless given.
    pub systems: Option<At<Vec<String>>>,
    /// The vertical axis is logarithmic.
    #[serde(default)]
    pub log: bool,
    /// Bars in place of lines.
    #[serde(default)]
    pub bars: bool,
    /// The horizontal axis is time, and `metric` names a series.
    #[serde(default)]
    pub over_time: bool,
    /// Curves of theory to draw as well.
    #[serde(default)]
    pub theory: Vec<At<TheoryTable>>,
}

/// A curve after an equation.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TheoryTable {
    /// In the legend.
    pub name: String,
    /// Which equation: the name of a curve.
    pub curve: At<String>,
    /// The panel it belongs to, by the value of the second axis; all unless given.
    pub panel: Option<f64>,
    /// What the curve takes besides `x`.
    #[serde(default)]
    pub parameters: BTreeMap<String, f64>,
}

/// What the paper states: words, a place, and one claim that can be tested.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StatementTable {
    /// In our words.
    pub text: String,
    /// Section and figure.
    pub source: String,
    /// The paper's sentence, where several statements judge it in parts or again, here or in another study of the
    /// paper. All that have the same one count once.
    pub sentence: Option<String>,
    /// What is compared: the name of a metric, with its argument after a colon.
    pub metric: At<String>,
    /// Only at these values of the axes; at all of them unless given. Several values are averaged.
    #[serde(default)]
    pub at: BTreeMap<String, At<Vec<f64>>>,
    /// Claim: the systems by rising metric, joined by `<` (less), `<=` (not more) or `~` (alike, within `margin`).
    pub order: Option<At<String>>,
    /// `order` must hold at each point by itself, and not only on average.
    #[serde(default)]
    pub each: bool,
    /// By how much `~` may differ, and a flat trend change: 5 unless given; from which difference on `<`, `<=` and a
    /// trend count: 1 unless given \[%, with `over` percentage points\].
    pub margin: Option<f64>,
    /// For a `trend` with `over`: on which side of `over` the system is in the paper. A gap that shrinks or grows on
    /// the other side is another.
    pub lead: Option<Lead>,
    /// The system that `value`, `range`, `trend` and `peak` are about.
    pub system: Option<At<String>>,
    /// Relative to this system, seed by seed \[%\]: what `value` and the others then are about.
    pub over: Option<At<String>>,
    /// Claim: this number, in the metric's unit.
    pub value: Option<f64>,
    /// How far from `value` or outside of `range` still counts as reproduced, in the same unit; a tenth of the number unless
    /// given.
    pub within: Option<f64>,
    /// Claim: between these two.
    pub range: Option<[f64; 2]>,
    /// Claim: not less.
    pub at_least: Option<f64>,
    /// Claim: not more.
    pub at_most: Option<f64>,
    /// Which of the points counts for `value`, `range`, `at-least` and `at-most`: their mean unless given.
    #[serde(default)]
    pub statistic: Statistic,
    /// Claim: how the metric changes along the first axis.
    pub trend: Option<Trend>,
    /// Claim: the metric is largest at this value of the first axis (one of these, if several).
    pub peak: Option<Vec<f64>>,
    /// Claim: the metric follows this curve, within `within` at each point.
    pub theory: Option<TheoryTable>,
    /// No claim: why no run can show what the paper states.
    pub untestable: Option<String>,
    /// Claim: a metric of text is exactly this in each run.
    pub equals: Option<String>,
    /// What we believe is the cause if it is not reproduced.
    pub cause: Option<String>,
    /// Not a sentence of the paper, but one of ours.
    #[serde(default)]
    pub own: bool,
    /// One of the few by which the paper is known: it stands at the head of what a report says of the paper.
    #[serde(default)]
    pub headline: bool,
}

/// On which side of another system one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lead {
    /// Its metric is larger.
    Above,
    /// Its metric is smaller.
    Below,
}

/// Which of several points counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Their mean.
    #[default]
    Mean,
    /// The one with the largest mean.
    Max,
    /// The one with the smallest mean.
    Min,
}

/// How a metric changes along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trend {
    /// More and more.
    Rises,
    /// Less and less.
    Falls,
    /// Hardly, within `margin`.
    Flat,
}
