//! The answer, as JSON has it.

use crate::{Band, Judged, Kind, LeftOut, Limit};
use anabranch_lab::stats::Estimate;
use anabranch_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why the transfers of a scenario took as long as they did.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The scenario's name.
    pub scenario: String,
    /// SHA-256 of its content.
    pub digest: String,
    /// Each `--set` that was laid over it.
    pub sets: Vec<String>,
    /// Seed of the first repetition.
    pub seed: u64,
    /// Number of repetitions.
    pub repeat: usize,
    /// Number of runs that were made for this answer.
    #[serde(default)]
    pub runs: usize,
    /// Number of simulator events in these runs: the work that the answer took, the same on every machine.
    #[serde(default)]
    pub events: u64,
    /// Number of events that it was to take at most; absent where the number of repetitions was given.
    #[serde(default)]
    pub budget: Option<u64>,
    /// True if it was stopped before all of its runs were made.
    #[serde(default)]
    pub stopped: bool,
    /// The paths' names, in order.
    pub paths: Vec<String>,
    /// The answer in plain words.
    pub sentence: String,
    /// Measure of the scenario: `completion-time`, `page-load-time` or `goodput`.
    pub measure: String,
    /// Unit of the measure: `s` or `bit/s`.
    pub unit: String,
    /// The measure as it is, over the repetitions.
    pub value: Measure,
    /// Number of repetitions in which transfers did not finish: `value` is then a lower bound.
    pub unfinished_runs: usize,
    /// The time of all transfers of all repetitions by limit, the longest first.
    pub shares: Vec<Share>,
    /// The fault of the scenario that cost most: an index into `counterfactuals`; absent if none cost much, or another
    /// policy or size would give more.
    pub fault: Option<usize>,
    /// The counterfactual that the sentence recommends: an index into `counterfactuals`; absent if none helped.
    #[serde(default)]
    pub remedy: Option<usize>,
    /// Time between the transfers, in which the application had nothing to send; absent if there is none.
    pub pauses: Option<Pauses>,
    /// Paths that carried nothing in any repetition.
    pub idle_paths: Vec<IdlePath>,
    /// Transfers of the first repetition.
    pub transfers: Vec<Transfer>,
    /// Counterfactuals, in the order in which they were run.
    pub counterfactuals: Vec<Tried>,
    /// Counterfactuals that were not run.
    pub left_out: Vec<LeftOut>,
}

impl Answer {
    /// Returns the longest transfer of the first repetition: of several it tells most.
    pub fn longest(&self) -> Option<&Transfer> {
        self.transfers.iter().max_by_key(|transfer| transfer.time_ns)
    }
}

/// Mean over the repetitions, with the half of its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Measure {
    /// Mean.
    pub mean: f64,
    /// Half of the 95 % interval (Student); absent for one repetition.
    pub half: Option<f64>,
    /// Number of repetitions.
    pub n: usize,
}

/// Time that a limit took.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// The limit.
    pub limit: Limit,
    /// Name of the path, where one is meant.
    pub path: Option<String>,
    /// Time \[ns\].
    pub time_ns: u64,
    /// Share of the whole time.
    pub share: f64,
}

/// Time in which the application had nothing to send.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Pauses {
    /// Share of the time from the beginning of the first transfer to the end of the last.
    pub share: f64,
    /// The application's rhythm, in plain words.
    pub because: String,
}

/// A path that carried nothing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct IdlePath {
    /// Name of the path.
    pub path: String,
    /// Reason.
    pub reason: Reason,
    /// The reason in plain words.
    pub because: String,
}

/// Reason for which a path carried nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// The connection is plain TCP.
    PlainTcp,
    /// The path is a backup.
    Backup,
    /// No subflow was ever begun there.
    NoSubflow,
    /// No subflow was begun there: the connections had as many as the hosts admit.
    SubflowLimit,
    /// A subflow was begun there, and its handshake was never completed.
    JoinFailed,
    /// A subflow was begun there, and the transfers ended before its handshake was complete.
    JoinUnfinished,
    /// Data on other paths used up the receiver's window, most of the time.
    WindowUsedUp,
    /// Data on other paths filled the send buffer, most of the time.
    SendBufferFull,
    /// The receiver waited for data on other paths, most of the time.
    OthersAwaited,
    /// No data was left to send, most of the time.
    NothingLeft,
    /// It could have carried data, and the scheduler gave it none.
    NotChosen,
}

/// A transfer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Transfer {
    /// Its label.
    pub label: String,
    /// Index of its connection in the run.
    pub connection: usize,
    /// True if its last byte was read.
    pub finished: bool,
    /// Bytes read.
    pub bytes: u64,
    /// First instant, counted from the beginning of the run \[ns\].
    pub from_ns: u64,
    /// Time that it took \[ns\]. The intervals add up to it.
    pub time_ns: u64,
    /// Its time, cut into intervals without a gap.
    pub intervals: Vec<Interval>,
    /// The same for each path.
    pub paths: Vec<PathTime>,
}

/// The time of a path.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PathTime {
    /// Name of the path.
    pub path: String,
    /// Time of the transfer, cut into intervals without a gap.
    pub intervals: Vec<Interval>,
}

/// An interval: from `from_ns` on, before `to_ns`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// First instant, counted from the beginning of the run \[ns\].
    pub from_ns: u64,
    /// First instant after it \[ns\].
    pub to_ns: u64,
    /// Limit.
    pub limit: Limit,
    /// Index of the path that is meant, if one is.
    pub path: Option<usize>,
}

/// A counterfactual and what it gave.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tried {
    /// The thing it changes.
    pub kind: Kind,
    /// Description, in a few words.
    pub what: String,
    /// The fault of the scenario that it takes away, as a sentence without its full stop; absent for another policy or
    /// size.
    pub cause: Option<String>,
    /// The policy, or the first path, that it replaces, as a sentence without its full stop.
    #[serde(default)]
    pub instead: Option<String>,
    /// True for the policy that the hosts' profile has.
    #[serde(default)]
    pub usual: bool,
    /// Overrides that make it.
    pub sets: Vec<String>,
    /// The measure with it.
    pub value: Measure,
    /// Difference to the run as it is, paired by seed; absent if transfers did not finish in either. What the sentence
    /// promises is run with further seeds where the interval is wide: `n` tells of how many pairs it is.
    pub difference: Option<Measure>,
    /// Number of these pairs in which the measure is larger with it.
    #[serde(default)]
    pub larger: usize,
    /// Number of these pairs in which it is smaller.
    #[serde(default)]
    pub smaller: usize,
    /// Number of repetitions in which transfers did not finish.
    pub unfinished_runs: usize,
    /// True if the run was ended early because of the work it takes, when it had already carried more than the run as
    /// it is: value and difference are then lower bounds.
    #[serde(default)]
    pub at_least: bool,
}

impl From<Estimate> for Measure {
    fn from(Estimate { n, mean, half }: Estimate) -> Self {
        Measure { mean, half, n }
    }
}

impl From<Measure> for Estimate {
    fn from(Measure { n, mean, half }: Measure) -> Self {
        Estimate { n, mean, half }
    }
}

impl Measure {
    /// Returns true if it is above zero beyond its interval; of one repetition, which is exact, if it is above zero.
    pub fn is_above_zero(&self) -> bool {
        self.mean > self.half.unwrap_or(0.0)
    }
}

impl From<&Band> for Interval {
    fn from(band: &Band) -> Self {
        Interval {
            from_ns: band.from.as_nanos(),
            to_ns: band.to.as_nanos(),
            limit: band.cause.limit,
            path: band.cause.path,
        }
    }
}

impl Interval {
    /// Returns its length.
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.to_ns - self.from_ns)
    }
}

impl Transfer {
    /// Puts a judged transfer into its form, with the names of the paths.
    pub fn of(judged: &Judged, names: &[String]) -> Self {
        let path = |(name, bands): (&String, &crate::Bands)| PathTime {
            path: name.clone(),
            intervals: bands.iter().map(Interval::from).collect(),
        };
        Transfer {
            label: judged.label.clone(),
            connection: judged.connection,
            finished: judged.finished,
            bytes: judged.bytes.get(),
            from_ns: judged.bands.start().as_nanos(),
            time_ns: judged.duration().as_nanos(),
            intervals: judged.bands.iter().map(Interval::from).collect(),
            paths: names.iter().zip(&judged.paths).map(path).collect(),
        }
    }
}
