//! Evaluation case as written: what a document asks, conditions, and criteria.

use anabranch_scenario::file::At;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// Strength of a requirement, in the words of the document.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// MUST or REQUIRED (RFC 2119).
    Must,
    /// SHOULD (RFC 2119).
    Should,
    /// "should" or "ought to" in lower case.
    Advice,
    /// A case of a list of test cases, without such a word.
    Case,
}

/// A case: one requirement with the runs that measure it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseFile {
    /// Section of the document.
    pub section: String,
    /// Strength of the requirement.
    pub level: Level,
    /// Title, in one line.
    pub title: At<String>,
    /// The requirement in our words.
    pub asks: String,
    /// The measurement, in a few words.
    pub test: String,
    /// Beginning and end of the span in which flows are measured.
    pub span: [At<String>; 2],
    /// Time of the event of which `backoff`, `transmissions` and `regain` count.
    pub after: Option<At<String>>,
    /// Step of series.
    pub bin: Option<At<String>>,
    /// Numbers of seeds.
    pub seeds: Seeds,
    /// Rate of the bottleneck; axes may override it.
    pub capacity: At<String>,
    /// Round-trip time without queues; axes may override it.
    pub rtt: At<String>,
    /// Competitors, each in turn.
    pub rivals: Option<RivalsTable>,
    /// Settings of runs with a standard control in place of the candidate.
    #[serde(default)]
    pub standard: Vec<At<String>>,
    /// Names of the standard controls, in place of Reno and CUBIC.
    pub standards: Option<Vec<String>>,
    /// Conditions: every value of each axis with every value of the others.
    #[serde(default)]
    pub axis: Vec<AxisTable>,
    /// Conditions for a pass; all must hold.
    pub criterion: Vec<At<CriterionTable>>,
    /// Scenario that all runs share.
    #[serde(default)]
    pub scenario: Option<IgnoredAny>,
}

/// Numbers of seeds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Seeds {
    /// Number of seeds.
    pub full: usize,
    /// Number of seeds with `--quick`.
    pub quick: usize,
}

/// Competitors of the candidate.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RivalsTable {
    /// Names of the congestion controls.
    pub names: Vec<String>,
    /// Names of the congestion controls with `--quick`.
    pub quick: Vec<String>,
    /// Settings that put one in, with `{}` in place of its name.
    pub set: Vec<At<String>>,
    /// Settings of the run in which one is alone, with `{}` in place of its name.
    #[serde(default)]
    pub solo: Vec<At<String>>,
    /// Party of that run that stands for it.
    #[serde(default)]
    pub solo_of: Of,
}

/// Conditions that differ in one respect.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AxisTable {
    /// Name of the respect.
    pub name: String,
    /// Values of the respect.
    pub value: Vec<ValueTable>,
}

/// A value of an axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ValueTable {
    /// Name, as tables show it.
    pub name: String,
    /// Settings, each as `--set` takes it.
    #[serde(default)]
    pub set: Vec<At<String>>,
    /// Part of `--quick`.
    #[serde(default)]
    pub quick: bool,
    /// Rate of the bottleneck with this value.
    pub capacity: Option<At<String>>,
    /// Round-trip time with this value.
    pub rtt: Option<At<String>>,
    /// Reason why this condition is not run.
    pub not_run: Option<String>,
}

/// Workloads that a number is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    /// Workloads of the hosts under test: the candidate's.
    #[default]
    Own,
    /// Workloads of competing hosts.
    Rival,
    /// All workloads.
    All,
    /// Workloads of the first of the hosts under test.
    First,
    /// Workloads of the last of the hosts under test.
    Last,
}

/// Condition for a pass: a number with its bound.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CriterionTable {
    /// Name of a metric.
    pub metric: At<String>,
    /// Workloads that it is about.
    #[serde(default)]
    pub of: Of,
    /// Bound from above.
    pub at_most: Option<f64>,
    /// Bound from below.
    pub at_least: Option<f64>,
    /// Bound from what standard controls reach in the same condition: for harm, how much more is accepted; for other
    /// metrics, the factor between worse and as good. With another bound, meeting one of the two is enough.
    pub standard: Option<f64>,
    /// Judge the harm in this metric (Ware 2019): the part that a rival loses of what it has alone.
    #[serde(default)]
    pub harm: bool,
    /// Share of the capacity, or number of seconds, that the metric takes.
    pub argument: Option<f64>,
    /// Phase that a change leaves, or that a stay is in; any unless given.
    pub from: Option<String>,
    /// Phase that a change enters; any unless given.
    pub to: Option<String>,
    /// Variable of the model.
    pub variable: Option<String>,
    /// Only for controls whose model has this variable.
    pub if_variable: Option<String>,
    /// Reason for the bound.
    pub reason: String,
}

/// Suite of cases: a document, its obligations that are matters of text, and what is not run.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SuiteFile {
    /// Title, in one line.
    pub title: String,
    /// The document.
    pub source: String,
    /// Meaning of the verdicts, in a few sentences.
    pub about: String,
    /// Congestion control that is evaluated unless another is named; that of hosts unless given.
    pub control: Option<String>,
    /// Obligations without a measurement.
    #[serde(default)]
    pub text: Vec<TextTable>,
}

/// Obligation without a measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TextTable {
    /// Section of the document.
    pub section: String,
    /// Strength of the requirement.
    pub level: Level,
    /// Title, in one line.
    pub title: String,
    /// The requirement in our words.
    pub asks: String,
    /// Kind of obligation.
    pub is: TextKind,
    /// Advice on what to write, or the reason why it is not run or does not apply.
    pub note: String,
}

/// Kind of an obligation without a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextKind {
    /// The authors or the community argue it in words.
    Argue,
    /// The obligation could be measured, and is not yet.
    NotRun,
    /// The obligation does not apply to anything that this program runs.
    NotApplicable,
}
