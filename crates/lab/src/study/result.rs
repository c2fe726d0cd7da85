//! What a study comes to: figures, and what became of each statement of the paper. This is what a report shows and what
//! `--json` prints.

use crate::figure::Figure;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A study that was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyResult {
    /// Of Anabranch.
    pub version: String,
    /// Digest of the program that made the runs.
    pub build: String,
    /// `late/fig10`.
    pub name: String,
    /// In one line.
    pub title: String,
    /// The short name of the paper, for instance `LATE`.
    pub paper: String,
    /// The full citation.
    pub citation: String,
    /// `Fig. 10`.
    pub figure: String,
    /// What is measured, in a few sentences.
    pub about: String,
    /// SHA-256 of the study's content, its base included.
    pub digest: String,
    /// The command that repeats it.
    pub command: String,
    /// Only the few points and repetitions of `--quick`.
    pub quick: bool,
    /// The seeds of the repetitions, the same for every system and point.
    pub seeds: Vec<u64>,
    /// How many runs it took.
    pub runs: usize,
    /// Runs in which transfers did not complete.
    pub unfinished_runs: usize,
    /// The diagrams.
    pub figures: Vec<Figure>,
    /// What the paper states, and how it fared.
    pub statements: Vec<Judged>,
    /// What the paper does not say, and what was assumed.
    pub assumptions: Vec<Assumption>,
    /// Each system with what it sets.
    pub systems: Vec<SystemInfo>,
    /// The scenario below all of them, as TOML.
    pub scenario: String,
}

/// A system that took part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SystemInfo {
    /// In the legend.
    pub name: String,
    /// What it lays over the scenario.
    pub set: Vec<String>,
    /// Scheduler, congestion control and so on with all parameters, as the sender has them.
    pub policies: Vec<(String, String)>,
    /// Reason why it is not the paper's system but a reconstruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// Something that the paper leaves open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Assumption {
    /// What is left open.
    pub about: String,
    /// What was assumed.
    pub value: String,
    /// Why.
    pub reason: String,
}

/// A statement and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// What the paper states, in our words.
    pub text: String,
    /// Where: `LATE §V-B, Fig. 10a`.
    pub source: String,
    /// The paper's sentence, where several statements judge it: they count once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    /// What is compared, as the study file has it: `LATE < DPSAF < minRTT`, `-37.36 %`.
    pub claim: String,
    /// What we measured: `-21.4 ± 3.0 %`.
    pub ours: String,
    /// The outcome.
    pub verdict: Verdict,
    /// Runs behind it in which transfers did not complete. Their times are lower bounds, their other numbers those of
    /// the part that was run: whoever repeats the verdict should say so.
    #[serde(default, skip_serializing_if = "crate::figure::is_zero")]
    pub unfinished_runs: usize,
    /// How it was decided: each comparison with its interval.
    pub details: Vec<String>,
    /// Not a sentence of the paper, but one of ours: it does not count among the paper's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// One of the few by which the paper is known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub headline: bool,
    /// What we believe is the cause, where it is not reproduced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Search for other assumptions, where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
}

impl Judged {
    /// The verdict in words, with what is to be said beside it.
    pub fn outcome(&self) -> String {
        self.verdict.beside(self.unfinished_runs)
    }
}

/// Search for other assumptions under which a statement is reproduced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// Sets of up to three of the study's alternatives that do not exclude each other.
    pub possible: usize,
    /// Those that were tried, the smaller ones first.
    pub tried: Vec<Tried>,
}

impl Search {
    /// The sets that reproduce it. All are of the smallest size at which there is one.
    pub fn reproduced(&self) -> impl Iterator<Item = &Tried> {
        self.tried.iter().filter(|tried| tried.verdict == Verdict::Reproduced)
    }

    /// Each alternative on its own.
    pub fn alone(&self) -> impl Iterator<Item = &Tried> {
        self.tried.iter().filter(|tried| tried.names.len() == 1)
    }
}

impl fmt::Display for Search {
    /// `reproduced if “A” and “B” (23 combinations tried)`, `not reproduced by any of 40 combinations (of 287)`.
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

/// A statement under other assumptions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// The alternatives that were laid over the scenario together.
    pub names: Vec<String>,
    /// What we measured.
    pub ours: String,
    /// The outcome.
    pub verdict: Verdict,
    /// As in [`Judged`].
    #[serde(default, skip_serializing_if = "crate::figure::is_zero")]
    pub unfinished_runs: usize,
}

impl Tried {
    /// The alternatives in words: `“CUBIC on each subflow” and “queues of 1000 packets”`.
    pub fn name(&self) -> String {
        let quoted: Vec<String> = self.names.iter().map(|name| format!("“{name}”")).collect();
        quoted.join(" and ")
    }

    /// The verdict in words, with what is to be said beside it.
    pub fn outcome(&self) -> String {
        self.verdict.beside(self.unfinished_runs)
    }
}

/// Outcome of a statement: a grade by the size of the effect, in the order from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As stated, within the tolerance that the study names or our interval.
    Reproduced,
    /// The number is larger than stated, by at most a factor of two.
    Stronger,
    /// The number is smaller than stated, by at most a factor of two.
    Weaker,
    /// The difference has the stated sign so that it counts, and is of another size, or not so everywhere.
    SignOnly,
    /// No difference that counts.
    NotSignificant,
    /// The contrary so that it counts, or a number that is off by more than a factor of two.
    Opposite,
    /// It is about a system whose definition is not public: what was measured is our reconstruction.
    ComparatorUnavailable,
    /// No run can show it, or `--quick` left out the points that would.
    NotTested,
}

impl Verdict {
    /// All of them, from the best to the worst.
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

    /// In words, with the number of unfinished runs behind it: `reproduced (3 runs unfinished)`.
    fn beside(self, unfinished_runs: usize) -> String {
        match unfinished_runs {
            0 => self.name().to_owned(),
            1 => format!("{} (1 run unfinished)", self.name()),
            count => format!("{} ({count} runs unfinished)", self.name()),
        }
    }

    /// In words.
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

    /// Meaning for the statement.
    pub const fn standing(self) -> Standing {
        match self {
            Verdict::Reproduced => Standing::Holds,
            Verdict::Stronger | Verdict::Weaker | Verdict::SignOnly => Standing::InPart,
            Verdict::NotSignificant | Verdict::Opposite => Standing::Fails,
            Verdict::ComparatorUnavailable | Verdict::NotTested => Standing::Open,
        }
    }
}

/// Verdicts in four classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// As stated.
    Holds,
    /// The sign is the stated one.
    InPart,
    /// Not so here.
    Fails,
    /// Not to be decided.
    Open,
}
