//! Sweep file as written: its tables and keys.

use anabranch_scenario::file::At;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;

/// A sweep: conditions, the systems compared in each, and the columns of its results.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SweepFile {
    /// Purpose of the sweep, in one line.
    pub about: Option<String>,
    /// Scenario of all conditions: a shipped one or a drawn one by name, a file beside this one, or a whole scenario as
    /// the table `[scenario]`. Either this or `[drawn]`.
    pub scenario: Option<At<Base>>,
    /// Conditions drawn as by `anabranch rank`, in place of `scenario`.
    pub drawn: Option<At<DrawnTable>>,
    /// Overrides of every condition, each `KEY=VALUE` as `--set` takes it.
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
    /// Runs plain TCP on each path as well.
    #[serde(default)]
    pub baselines: bool,
    /// Metrics that become columns, named as in a study: `goodput`, `path-share:wlan`.
    #[serde(default)]
    pub metrics: Vec<At<String>>,
    /// Seeds in each condition.
    #[serde(default)]
    pub repeat: RepeatTable,
    /// Maximum number of simulator events of a run; a run with more is recorded as failed.
    #[serde(default = "most_events")]
    #[schemars(range(min = 1))]
    pub most_events: At<u64>,
}

/// Scenario below all conditions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Base {
    /// Name of a scenario, or of a file beside the sweep.
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
    /// Number of conditions, counted from 0.
    pub count: u64,
}

/// A setting that varies.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AxisTable {
    /// Key of the setting: dotted, as `--set` takes it (`path.lte.rate`).
    pub key: At<String>,
    /// Further settings that always have the same value.
    #[serde(default)]
    pub also: Vec<At<String>>,
    /// Name of its column; the key unless given.
    pub name: Option<At<String>>,
    /// Values, each crossed with those of all other axes.
    pub values: Option<Vec<At<Item>>>,
    /// Evenly spaced values, each crossed with those of all other axes.
    pub grid: Option<At<GridTable>>,
    /// Bounds of values drawn uniformly: whole numbers, packets and bytes stay whole.
    pub uniform: Option<At<[Item; 2]>>,
    /// Bounds above zero of values whose logarithms are drawn uniformly.
    pub loguniform: Option<At<[Item; 2]>>,
    /// Values of which one is drawn, each equally likely.
    pub choice: Option<Vec<At<Item>>>,
}

/// Evenly spaced values.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GridTable {
    /// First value.
    pub from: Item,
    /// Last value.
    pub to: Item,
    /// Number of values, both ends included.
    pub count: u32,
    /// Spaces the values evenly by logarithm.
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

/// Method of drawing points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Draws each coordinate independently.
    #[default]
    Random,
    /// Latin hypercube: each coordinate has exactly one point in each of `count` equal parts (McKay, Beckman and
    /// Conover, Technometrics 1979).
    LatinHypercube,
    /// Sobol's sequence, scrambled after Owen (Burley, Journal of Computer Graphics Techniques 2020).
    Sobol,
}

/// A system: a variant of the condition.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SystemTable {
    /// Name in the results.
    pub name: At<String>,
    /// Overrides of the condition, each `KEY=VALUE` as `--set` takes it.
    pub set: Vec<At<String>>,
}

/// Seeds of each condition.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RepeatTable {
    /// First seed; each further one is the next.
    pub seed: u64,
    /// Number of seeds in each condition that draws from them.
    pub count: u32,
    /// Precision, such as `"2%"`: adds seeds until the 95 % interval of each system's time, relative to the fastest
    /// seed by seed, is within this much to both sides.
    pub until: Option<At<String>>,
    /// Maximum number of seeds in a condition with `until`.
    pub most: u32,
}

impl Default for RepeatTable {
    fn default() -> Self {
        RepeatTable { seed: 1, count: 4, until: None, most: 64 }
    }
}

/// Default limit of events: about a minute of work.
fn most_events() -> At<u64> {
    At { span: 0..0, value: 100_000_000 }
}

fn one() -> u64 {
    1
}

/// Returns the JSON schema of sweep files, for editors.
pub fn schema() -> String {
    let schema = schemars::schema_for!(SweepFile).to_value();
    serde_json::to_string_pretty(&schema).expect("a schema is plain JSON")
}
