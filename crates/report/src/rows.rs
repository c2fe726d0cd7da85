//! One row per run. Each carries version, build, scenario digest and seed, so that it can be repeated when it has been
//! cut off from everything else.

use anabranch_lab::compare::{Comparison, Group, Summary};
use anabranch_lab::format::{COMPARISON, RUNS};
use anabranch_lab::statistic::{Cell, Kind, STATISTICS, Statistic};
use anabranch_lab::{Measured, Run, VERSION, build};
use anabranch_scenario::{Chosen, Scenario, Switched, Variant};
use anabranch_units::in_one_line;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Facts that all rows share.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Header {
    /// Version of Anabranch.
    pub version: &'static str,
    /// Digest of the program that makes the runs. Build, scenario and seed identify a run.
    pub build: &'static str,
    /// The scenario's name.
    pub scenario: String,
    /// Purpose of the scenario.
    pub about: Option<String>,
    /// SHA-256 of its content.
    pub digest: String,
    /// Each `--set` that was laid over it.
    pub sets: Vec<String>,
    /// The seed of the first repetition.
    pub seed: u64,
    /// Number of repetitions, each with the next seed.
    pub repeat: usize,
    /// The paths' names, in order.
    pub paths: Vec<String>,
    /// The policies of the host that sends.
    pub policies: Chosen,
    /// Those of the host that receives, where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_policies: Option<Chosen>,
    /// Schedulers compared, in place of the scenario's own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schedulers: Vec<Variant>,
    /// Policies that took the place of others in the course of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub switched: Vec<Switched>,
    /// Notes on what is allowed and worth knowing, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One run among the results.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// `scheduler`, or `single-path` for a baseline.
    pub kind: &'static str,
    /// The scheduler, or the path.
    pub name: &'a str,
    /// Policies of the sender.
    pub policies: &'a Chosen,
    /// Its numbers.
    pub measured: &'a Measured,
}

impl Header {
    /// For this many repetitions from this seed on.
    pub fn new(scenario: &Scenario, seed: u64, repeat: usize) -> Self {
        Header {
            version: VERSION,
            build: build(),
            scenario: scenario.name.clone(),
            about: scenario.about.clone(),
            digest: scenario.digest.clone(),
            sets: scenario.origin.sets.clone(),
            seed,
            repeat,
            paths: scenario.paths(),
            policies: scenario.policies().clone(),
            receiver_policies: Some(scenario.receiver()).filter(|it| *it != scenario.policies()).cloned(),
            schedulers: Vec::new(),
            switched: scenario.switched.clone(),
            notes: scenario.notes(),
        }
    }

    /// `0.1.0 (build 9ee84d7f362d2eca)`
    pub(crate) fn version_with_build(&self) -> String {
        format!("{} (build {})", self.version, self.build)
    }

    /// The same for a comparison of these schedulers.
    pub fn comparing(self, schedulers: Vec<Variant>) -> Self {
        Header { schedulers, ..self }
    }

    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        use anabranch_policy::registry::Value;
        use anabranch_scenario::Settings;
        let plain = |name: &str| Variant { name: name.to_owned(), parameters: Settings::default() };
        Header {
            version: "0.0.0",
            build: "0123456789abcdef",
            scenario: "wlan-lte".to_owned(),
            about: Some("a test".to_owned()),
            digest: "0123456789abcdef".repeat(4),
            sets: vec![],
            seed: 1,
            repeat: 20,
            paths: vec!["wlan".to_owned(), "lte".to_owned()],
            policies: Chosen {
                profile: "linux".to_owned(),
                scheduler: plain("min-rtt"),
                congestion: Variant {
                    name: "cubic".to_owned(),
                    parameters: Settings(vec![("beta".to_owned(), Value::Number(0.7))]),
                },
                window: plain("shared"),
                ack_path: plain("own"),
                first_path: plain("as-listed"),
                reinjection: plain("opportunistic"),
            },
            receiver_policies: None,
            schedulers: Vec::new(),
            switched: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = self.about.as_deref().unwrap_or("no description");
        writeln!(f, "{}: {}", in_one_line(&self.scenario), in_one_line(about))?;
        write!(f, "anabranch {}, scenario {}, ", self.version_with_build(), &self.digest[..12.min(self.digest.len())])?;
        match self.repeat {
            1 => write!(f, "seed {}", self.seed)?,
            n => write!(f, "seeds {} to {}", self.seed, self.seed.wrapping_add(n as u64 - 1))?,
        }
        write!(f, ", profile {}", self.policies.profile)?;
        if self.schedulers.is_empty() {
            write!(f, ", scheduler {}", self.policies.scheduler.name)?;
        }
        self.sets.iter().try_for_each(|set| write!(f, "\nset {set}"))?;
        self.notes.iter().try_for_each(|note| write!(f, "\nnote: {note}"))
    }
}

/// The rows of a comparison: schedulers in the order asked for, then the baselines.
pub fn comparison_rows(comparison: &Comparison) -> Vec<Row<'_>> {
    fn rows<'a>(kind: &'static str, groups: &'a [Group]) -> impl Iterator<Item = Row<'a>> {
        groups.iter().flat_map(move |group| {
            group.runs.iter().map(move |measured| Row { kind, name: &group.name, policies: &group.policies, measured })
        })
    }
    rows("scheduler", &comparison.candidates).chain(rows("single-path", &comparison.singles)).collect()
}

/// The rows of runs of one scenario.
pub fn run_rows<'a>(header: &'a Header, runs: &'a [Run]) -> Vec<Row<'a>> {
    runs.iter().map(|run| Row::of(header, &run.measured)).collect()
}

/// Header, summary if there is one, rows, and why multipath does not pay, as JSON.
pub fn json(
    header: &Header,
    summary: Option<&Summary>,
    rows: &[Row<'_>],
    why: Option<&str>,
) -> Result<String, serde_json::Error> {
    let format = if summary.is_some() { &COMPARISON } else { &RUNS };
    // A ranking by goodput counts what was moved until the run stopped.
    let ranks_goodput = summary.is_some_and(|summary| summary.unit != "s");
    serde_json::to_string_pretty(&format.document(Results {
        header,
        summary,
        why: summary.is_some().then_some(why),
        runs: rows.iter().map(|row| Line::of(header, row, ranks_goodput)).collect(),
    }))
}

/// JSON of runs in parts, of which the rows need not be in memory together: [`json()`] returns the beginning, the rows
/// with [`Frame::BETWEEN`] between, and the end.
pub struct Frame {
    /// All before the first row.
    pub begin: String,
    /// All after the last row.
    pub end: &'static str,
}

impl Frame {
    /// Text between two rows.
    pub const BETWEEN: &'static str = ",\n";
    const EMPTY: &'static str = "[]\n}";

    /// Returns the frame of the rows of runs, of which there is at least one.
    pub fn of_runs(header: &Header) -> Result<Frame, serde_json::Error> {
        let none = json(header, None, &[], None)?;
        let begin = none.strip_suffix(Frame::EMPTY).expect("the rows are the last of the document").to_owned();
        Ok(Frame { begin: begin + "[\n", end: "\n  ]\n}" })
    }

    /// A row as it stands among the others.
    pub fn row(header: &Header, row: &Row<'_>) -> Result<String, serde_json::Error> {
        let text = serde_json::to_string_pretty(&Line::of(header, row, false))?;
        // A text within JSON has no line ends.
        Ok(format!("    {}", text.replace('\n', "\n    ")))
    }
}

/// Contents of the JSON of runs and comparisons.
#[derive(Serialize, JsonSchema)]
pub struct Results<'a> {
    #[serde(flatten)]
    header: &'a Header,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a Summary>,
    /// Reason for which the best scheduler is no better than one path or leaves a path unused; null if it does neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Option<&'a str>>,
    runs: Vec<Line<'a>>,
}

/// A run with the facts that identify it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Run")]
struct Line<'a> {
    version: &'a str,
    build: &'a str,
    scenario: &'a str,
    digest: &'a str,
    kind: &'a str,
    name: &'a str,
    #[serde(flatten)]
    measured: Cow<'a, Measured>,
    #[serde(flatten)]
    #[schemars(with = "Derived")]
    derived: BTreeMap<String, Value>,
}

impl<'a> Line<'a> {
    fn of(header: &'a Header, row: &Row<'a>, ranks_goodput: bool) -> Line<'a> {
        let measured = match ranks_goodput || row.measured.unfinished == 0 {
            true => Cow::Borrowed(row.measured),
            false => Cow::Owned(row.measured.without_bounds()),
        };
        Line {
            version: header.version,
            build: header.build,
            scenario: &header.scenario,
            digest: &header.digest,
            kind: row.kind,
            name: row.name,
            derived: derived(&STATISTICS, &measured, &header.paths),
            measured,
        }
    }
}

/// Schema of what [`derived`] returns for the statistics of a run.
struct Derived;

impl JsonSchema for Derived {
    fn schema_name() -> Cow<'static, str> {
        "Derived".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let of_kind = |kind: Kind| match kind {
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Count => json!({ "type": "integer", "minimum": 0 }),
            Kind::Number => json!({ "type": ["number", "null"] }),
            Kind::Text => json!({ "type": ["string", "null"] }),
        };
        let property = |statistic: &Statistic| {
            let one = of_kind(statistic.kind());
            let mut property = if statistic.is_single() { one } else { json!({ "type": "array", "items": one }) };
            let unit = if statistic.unit.is_empty() { String::new() } else { format!(" [{}]", statistic.unit) };
            property["description"] = format!("{}{unit}", statistic.about).into();
            (derived_key(statistic), property)
        };
        let properties: Map<_, _> = STATISTICS.iter().filter(|statistic| statistic.derived).map(property).collect();
        let required: Vec<String> = properties.keys().cloned().collect();
        json_schema!({ "type": "object", "properties": properties, "required": required })
    }
}

/// Name of a derived statistic in JSON, where the values of all paths stand in one array.
fn derived_key(statistic: &Statistic) -> String {
    statistic.name.trim_end_matches("_{}").to_owned()
}

impl<'a> Row<'a> {
    /// The row of a run of one scenario.
    fn of(header: &'a Header, measured: &'a Measured) -> Row<'a> {
        let (policies, name) = (&header.policies, &header.policies.scheduler.name);
        Row { kind: "scheduler", name, policies, measured }
    }

    /// The policies of the sender with all parameters; of a single path, plain TCP, those that count there.
    pub(crate) fn policies_in_words(&self) -> String {
        let counts = |seam: &str| self.kind == "scheduler" || seam == "congestion";
        let each: Vec<String> = (self.policies.seams().iter().filter(|(seam, _)| counts(seam)))
            .map(|(seam, policy)| format!("{seam} {policy}"))
            .collect();
        each.join("; ")
    }
}

/// The value of a statistic that is no field of [`Measured`]: a value, or one for each path.
pub(crate) fn derived(statistics: &[Statistic], measured: &Measured, paths: &[String]) -> BTreeMap<String, Value> {
    let value = |statistic: &Statistic| {
        let cells = statistic.columns(measured, paths);
        let mut numbers: Vec<Value> = cells.into_iter().map(|(_, cell)| number(cell)).collect();
        let value = if statistic.is_single() { numbers.swap_remove(0) } else { Value::Array(numbers) };
        (derived_key(statistic), value)
    };
    statistics.iter().filter(|statistic| statistic.derived).map(value).collect()
}

fn number(cell: Cell) -> Value {
    match cell {
        Cell::Number(number) => number.into(),
        Cell::Count(count) => count.into(),
        Cell::Flag(flag) => flag.into(),
        Cell::Text(text) => text.into(),
        Cell::Empty => Value::Null,
    }
}
