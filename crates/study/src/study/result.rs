//! Result of a study: figures, and a verdict for each statement of the paper. Reports show it, and `--json` prints it.

use crate::figure::Figure;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Result of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StudyResult {
    /// Version of Anabranch.
    pub version: String,
    /// Digest of the program that made the runs.
    pub build: String,
    /// Name of the study: `late/fig10`.
    pub name: String,
    /// Title, in one line.
    pub title: String,
    /// Short name of the paper, such as `LATE`.
    pub paper: String,
    /// Full citation of the paper.
    pub citation: String,
    /// Name of the figure in the paper: `Fig. 10`.
    pub figure: String,
    /// Description of the measurement, in a few sentences.
    pub about: String,
    /// SHA-256 of the study's content, its base included.
    pub digest: String,
    /// Command that repeats the study.
    pub command: String,
    /// True if only the points and repetitions of `--quick` were run.
    pub quick: bool,
    /// Overrides that lie over all systems and points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
    /// Seeds of the repetitions, the same for every system and point.
    pub seeds: Vec<u64>,
    /// Number of runs.
    pub runs: usize,
    /// Number of runs in which transfers did not complete.
    pub unfinished_runs: usize,
    /// Diagrams.
    pub figures: Vec<Figure>,
    /// Statements of the paper with their verdicts.
    pub statements: Vec<Judged>,
    /// Assumptions where the paper leaves something open.
    pub assumptions: Vec<Assumption>,
    /// Systems with their settings.
    pub systems: Vec<SystemInfo>,
    /// Scenario that the systems vary, as TOML.
    pub scenario: String,
}

/// System of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SystemInfo {
    /// Name in the legend.
    pub name: String,
    /// Settings of the system.
    pub set: Vec<String>,
    /// Scheduler, congestion control and other policies with all parameters, as the sender has them.
    pub policies: Vec<(String, String)>,
    /// Reason why it is not the paper's system but a reconstruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// Assumption where the paper leaves something open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Assumption {
    /// Open question.
    pub about: String,
    /// Assumption made.
    pub value: String,
    /// Reason.
    pub reason: String,
}

/// Statement with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judged {
    /// Statement of the paper, in our words.
    pub text: String,
    /// Place in the paper: `LATE §V-B, Fig. 10a`.
    pub source: String,
    /// Sentence of the paper, if several statements judge it: they count once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    /// Claim as the study file has it: `LATE < DPSAF < minRTT`, `-37.36 %`.
    pub claim: String,
    /// Our measurement: `-21.4 ± 3.0 %`.
    pub ours: String,
    /// Verdict.
    pub verdict: Verdict,
    /// Number of runs behind it in which transfers did not complete. Their times are lower bounds, and their other
    /// numbers cover only the part that was run: a text with the verdict should mention them.
    #[serde(default, skip_serializing_if = "crate::figure::is_zero")]
    pub unfinished_runs: usize,
    /// Grounds of the verdict: each comparison with its interval.
    pub details: Vec<String>,
    /// True for a sentence of ours, which does not count among the paper's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// True for one of the main results of the paper.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub headline: bool,
    /// Our explanation, if it is not reproduced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Search for other assumptions, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
}

impl Judged {
    /// Returns the verdict in words, with a note on unfinished runs.
    pub fn outcome(&self) -> String {
        self.verdict.beside(self.unfinished_runs)
    }
}

/// Search for other assumptions under which a statement is reproduced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Search {
    /// Number of sets of up to three of the study's alternatives that do not exclude each other.
    pub possible: usize,
    /// Sets that were tried, the smaller ones first.
    pub tried: Vec<Tried>,
}

impl Search {
    /// Returns the sets that reproduce it. All have the smallest size for which there is one.
    pub fn reproduced(&self) -> impl Iterator<Item = &Tried> {
        self.tried.iter().filter(|tried| tried.verdict == Verdict::Reproduced)
    }

    /// Returns each alternative on its own.
    pub fn alone(&self) -> impl Iterator<Item = &Tried> {
        self.tried.iter().filter(|tried| tried.names.len() == 1)
    }
}

impl fmt::Display for Search {
    /// Formats the outcome: `reproduced if “A” and “B” (23 combinations tried)`, `not reproduced by any of 40
    /// combinations (of 287)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sets: Vec<String> = self.reproduced().map(Tried::name).collect();
        let count = self.tried.len();
        let plural = if count == 1 { "" } else { "s" };
        match (sets.is_empty(), count < self.possible) {
            (false, _) => write!(f, "reproduced if {} ({count} combination{plural} tried)", sets.join("; or if ")),
            (true, false) => write!(f, "not reproduced by any of {count} combination{plural}"),
            (true, true) => write!(f, "not reproduced by any of {count} combination{plural} (of {})", self.possible),
        }
    }
}

/// Statement under other assumptions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tried {
    /// Alternatives that were applied together.
    pub names: Vec<String>,
    /// Our measurement.
    pub ours: String,
    /// Verdict.
    pub verdict: Verdict,
    /// Number of runs in which transfers did not complete, as in [`Judged`].
    #[serde(default, skip_serializing_if = "crate::figure::is_zero")]
    pub unfinished_runs: usize,
}

impl Tried {
    /// Returns the alternatives in words: `“CUBIC on each subflow” and “queues of 1000 packets”`.
    pub fn name(&self) -> String {
        let quoted: Vec<String> = self.names.iter().map(|name| format!("“{name}”")).collect();
        quoted.join(" and ")
    }

    /// Returns the verdict in words, with a note on unfinished runs.
    pub fn outcome(&self) -> String {
        self.verdict.beside(self.unfinished_runs)
    }
}

/// Verdict on a statement: a grade by the size of the effect, in the order from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As stated, within the tolerance that the study names or our interval.
    Reproduced,
    /// The number is larger than stated, by at most a factor of two.
    Stronger,
    /// The number is smaller than stated, by at most a factor of two.
    Weaker,
    /// The difference is significant and has the stated sign, but another size, or not at every point.
    SignOnly,
    /// No significant difference.
    NotSignificant,
    /// The opposite is significant, or a number is off by more than a factor of two.
    Opposite,
    /// It is about a system whose definition is not public: we measured a reconstruction.
    ComparatorUnavailable,
    /// No run can show it, or `--quick` left out the points that would.
    NotTested,
}

impl Verdict {
    /// All verdicts, from the best to the worst.
    pub const ALL: [Verdict; 8] = [
        Verdict::Reproduced,
        Verdict::Stronger,
        Verdict::Weaker,
        Verdict::SignOnly,
        Verdict::NotSignificant,
        Verdict::Opposite,
        Verdict::ComparatorUnavailable,
        Verdict::NotTested,
    ];

    /// Returns the verdict in words, with the number of unfinished runs: `reproduced (3 runs unfinished)`.
    fn beside(self, unfinished_runs: usize) -> String {
        match unfinished_runs {
            0 => self.name().to_owned(),
            1 => format!("{} (1 run unfinished)", self.name()),
            count => format!("{} ({count} runs unfinished)", self.name()),
        }
    }

    /// Returns the verdict in words.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Stronger => "stronger",
            Verdict::Weaker => "weaker",
            Verdict::SignOnly => "sign only",
            Verdict::NotSignificant => "not significant",
            Verdict::Opposite => "opposite",
            Verdict::ComparatorUnavailable => "comparator unavailable",
            Verdict::NotTested => "not tested",
        }
    }

    /// Returns the class of the verdict.
    pub const fn standing(self) -> Standing {
        match self {
            Verdict::Reproduced => Standing::Holds,
            Verdict::Stronger | Verdict::Weaker | Verdict::SignOnly => Standing::InPart,
            Verdict::NotSignificant | Verdict::Opposite => Standing::Fails,
            Verdict::ComparatorUnavailable | Verdict::NotTested => Standing::Open,
        }
    }
}

/// Classes of verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// Holds as stated.
    Holds,
    /// Only the sign is as stated.
    InPart,
    /// Does not hold here.
    Fails,
    /// Undecided.
    Open,
}
