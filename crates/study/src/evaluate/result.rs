//! Results of an evaluation.

use super::file::{Level, Of};
use super::live::Peer;
use schemars::JsonSchema;
use serde::Serialize;

/// Verdicts on one congestion control by the cases of a document.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Evaluation {
    /// Name of the suite.
    pub suite: String,
    /// Title of the suite, in one line.
    pub title: String,
    /// The document.
    pub source: String,
    /// Meaning of the verdicts, in a few sentences.
    pub about: String,
    /// Congestion control under evaluation, or command of a program.
    pub control: String,
    /// Scheduler under evaluation, if one was chosen.
    pub scheduler: Option<String>,
    /// Further settings of its hosts.
    pub sets: Vec<String>,
    /// System of an evaluation in real time; null for one by simulation.
    pub testbed: Option<OnTestbed>,
    /// True with the conditions of `--quick`.
    pub quick: bool,
    /// Command that repeats the evaluation.
    pub command: String,
    /// Number of runs that the verdicts rest on, those of standard controls included.
    pub runs: usize,
    /// Numbers of verdicts.
    pub counts: Counts,
    /// Cases in the order of the document.
    pub rows: Vec<Row>,
}

/// System of an evaluation in real time, and its runs that are in doubt.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OnTestbed {
    /// The system.
    #[serde(flatten)]
    pub peer: Peer,
    /// Reasons to doubt a run, one entry for each run whose links did not do what the scenario says.
    pub late: Vec<String>,
}

/// Numbers of verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// Cases that pass.
    pub passed: usize,
    /// Cases that fail.
    pub failed: usize,
    /// Cases that do not apply.
    pub not_applicable: usize,
    /// Cases that could be measured, and are not yet.
    pub not_run: usize,
    /// Obligations that authors or the community argue in words.
    pub to_be_argued: usize,
}

/// Verdict on a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RowVerdict {
    /// All criteria hold in all conditions.
    Pass,
    /// A criterion does not hold in a condition.
    Fail,
    /// The case does not apply.
    NotApplicable,
    /// The case could be measured, and is not yet.
    NotRun,
    /// The case is a matter of words.
    ToBeArgued,
}

/// One case.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Row {
    /// Name of the case, which is that of its scenario; null for a matter of words.
    pub case: Option<String>,
    /// Section of the document.
    pub section: String,
    /// Strength of the requirement.
    pub level: Level,
    /// Title, in one line.
    pub title: String,
    /// The requirement in our words.
    pub asks: String,
    /// The measurement, in a few words; empty for a matter of words.
    pub test: String,
    /// Range of conditions: the values of each axis.
    pub range: Vec<String>,
    /// Conditions that are not run, with the reason.
    pub not_run: Vec<String>,
    /// The verdict.
    pub verdict: RowVerdict,
    /// Criteria with their verdicts.
    pub criteria: Vec<Judged>,
    /// Advice on what to write, or the reason why there is no verdict.
    pub note: Option<String>,
}

/// Criterion with its verdict.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Judged {
    /// Name of the metric.
    pub metric: String,
    /// Meaning of the metric, in a few words.
    pub about: String,
    /// Unit of its number; empty for one without.
    pub unit: String,
    /// Workloads that it is about.
    pub of: Of,
    /// True if the number is the harm in this metric, in percent of what a rival has alone.
    pub harm: bool,
    /// The bound in words.
    pub bound: String,
    /// Reason for the bound.
    pub reason: String,
    /// The verdict.
    pub verdict: RowVerdict,
    /// Number of conditions in which it was judged.
    pub checked: usize,
    /// Number of those in which it does not hold.
    pub failed: usize,
    /// The condition in which it is worst, relative to the bound.
    pub worst: Option<Worst>,
}

/// Condition in which a criterion is worst.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Worst {
    /// The condition.
    pub condition: String,
    /// Congestion control of the competitor.
    pub rival: Option<String>,
    /// The number, the mean over the seeds.
    pub value: f64,
    /// Bound of the number in that condition.
    pub limit: f64,
    /// Standard control that sets the bound, with its number.
    pub standard: Option<(String, f64)>,
    /// Command that repeats the worst of its runs.
    pub command: String,
}

impl RowVerdict {
    /// Returns the verdict as tables show it.
    pub fn name(self) -> &'static str {
        match self {
            RowVerdict::Pass => "pass",
            RowVerdict::Fail => "FAIL",
            RowVerdict::NotApplicable => "n/a",
            RowVerdict::NotRun => "not run",
            RowVerdict::ToBeArgued => "argue",
        }
    }
}

impl Counts {
    /// Counts the verdicts of these rows.
    pub fn of(rows: &[Row]) -> Counts {
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        Counts {
            passed: count(RowVerdict::Pass),
            failed: count(RowVerdict::Fail),
            not_applicable: count(RowVerdict::NotApplicable),
            not_run: count(RowVerdict::NotRun),
            to_be_argued: count(RowVerdict::ToBeArgued),
        }
    }
}

impl Row {
    /// Returns the criterion that decides: the worst of those that fail, or else of all.
    pub fn deciding(&self) -> Option<&Judged> {
        let failed = self.criteria.iter().find(|it| it.verdict == RowVerdict::Fail);
        failed.or_else(|| self.criteria.iter().find(|it| it.worst.is_some()))
    }
}
