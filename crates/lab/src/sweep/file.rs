//! A sweep file as it is written: its tables and keys.

use crate::file::At;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;

/// A sweep: conditions, systems that meet in each, and what is written down of their runs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SweepFile {
    /// One line on what it is for.
    pub about: Option<String>,
    /// Scenario of all conditions: a shipped one or a drawn one by name, a file beside this one, or a whole scenario as
    /// the table `[scenario]`. Either this or `[drawn]`.
    pub scenario: Option<At<Base>>,
    /// Conditions that are drawn as `anabranch rank` draws them, in place of `scenario`.
    pub drawn: Option<At<DrawnTable>>,
    /// Settings that lie over every condition, each `KEY=VALUE` as `--set` takes it.
    #[serde(default)]
    pub set: Vec<At<String>>,
    /// Settings that vary. Axes with `values` or `grid` are crossed with each other and with the draws of all others.
    #[serde(default)]
    pub axis: Vec<At<AxisTable>>,
    /// Draws of the axes with `uniform`, `loguniform` or `choice`.
    pub draw: Option<At<DrawTable>>,
    /// Schedulers that are compared: `late`, `ecf:beta=0.5`.
    #[serde(default)]
    pub schedulers: Vec<At<String>>,
    /// Systems that differ in more than their scheduler.
    #[serde(default)]
    pub system: Vec<At<SystemTable>>,
    /// Also plain TCP on each path.
    #[serde(default)]
    pub baselines: bool,
    /// Metrics that become columns, named as in a study: `goodput`, `path-share:wlan`.
    #[serde(default)]
    pub metrics: Vec<At<String>>,
    /// Seeds in each condition.
    #[serde(default)]
    pub repeat: RepeatTable,
    /// Most events of the simulator that a run may take; one that takes more is written down as failed.
    #[serde(default = "most_events")]
    #[schemars(range(min = 1))]
    pub most_events: At<u64>,
}

/// The scenario below all conditions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Base {
    /// The name of a scenario, or of a file beside the sweep.
    Name(String),
    /// A whole scenario; see `anabranch schema`.
    Table(serde_json::Map<String, Json>),
}

/// Conditions of `anabranch rank`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DrawnTable {
    /// Seed of the conditions.
    pub seed: u64,
    /// Number of conditions, from 0 on.
    pub count: u64,
}

/// A setting that varies.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AxisTable {
    /// The setting: a dotted key as `--set` takes it (`path.lte.rate`).
    pub key: At<String>,
    /// More settings that always have the same value.
    #[serde(default)]
    pub also: Vec<At<String>>,
    /// Name of its column; the key unless given.
    pub name: Option<At<String>>,
    /// These values, each crossed with those of all other axes.
    pub values: Option<Vec<At<Item>>>,
    /// Evenly spaced values, crossed likewise.
    pub grid: Option<At<GridTable>>,
    /// Drawn evenly between two values: whole numbers, packets and bytes stay whole.
    pub uniform: Option<At<[Item; 2]>>,
    /// Drawn between two values above zero so that their logarithms are even.
    pub loguniform: Option<At<[Item; 2]>>,
    /// Drawn from these values, each as likely.
    pub choice: Option<Vec<At<Item>>>,
}

/// Evenly spaced values.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GridTable {
    /// The first.
    pub from: Item,
    /// The last.
    pub to: Item,
    /// Number of values, both ends included.
    pub count: u32,
    /// Their logarithms are even.
    #[serde(default)]
    pub log: bool,
}

/// A value of an axis.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Item {
    /// True or false.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// A text: a quantity with its unit (`"20mbit"`), or a name.
    Text(String),
}

/// Draws of points.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DrawTable {
    /// `random`, `latin-hypercube` or `sobol`.
    #[serde(default)]
    pub method: Method,
    /// Seed of the draws.
    #[serde(default = "one")]
    pub seed: u64,
    /// Number of points.
    pub count: u64,
}

/// A way of drawing points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Each coordinate by itself.
    #[default]
    Random,
    /// Each coordinate has exactly one point in each of `count` equal parts (McKay, Beckman and Conover, Technometrics
    /// 1979).
    LatinHypercube,
    /// Sobol's sequence, scrambled after Owen (Burley, Journal of Computer Graphics Techniques 2020).
    Sobol,
}

/// A system.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SystemTable {
    /// Name in the results.
    pub name: At<String>,
    /// Settings that lie over the condition, each `KEY=VALUE` as `--set` takes it.
    pub set: Vec<At<String>>,
}

/// Seeds of each condition.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RepeatTable {
    /// The first seed; each further one is the next.
    pub seed: u64,
    /// Seeds in each condition in which they make a difference.
    pub count: u32,
    /// Go on with further seeds until the 95 % interval of each system's time, relative to the fastest seed by seed, is
    /// within this much to both sides: `"2%"`.
    pub until: Option<At<String>>,
    /// Most seeds in a condition with `until`.
    pub most: u32,
}

impl Default for RepeatTable {
    fn default() -> Self {
        RepeatTable { seed: 1, count: 4, until: None, most: 64 }
    }
}

/// Most events unless a file says otherwise: about a minute of work.
fn most_events() -> At<u64> {
    At { span: 0..0, value: 100_000_000 }
}

fn one() -> u64 {
    1
}

/// The JSON schema of sweep files, for editors.
pub fn schema() -> String {
    let schema = schemars::schema_for!(SweepFile).to_value();
    serde_json::to_string_pretty(&schema).expect("a schema is plain JSON")
}
