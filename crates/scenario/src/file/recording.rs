//! Recordings of rate, delay and loss.

use super::value::{Quantity, Unit, refused};
use anabranch_recording::{Column, Form, Gaps, Options, RateUnit, TimeUnit};
use anabranch_units::Duration;
use anabranch_units::quantity::Refusal;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A recording: its file, and what the file does not say of itself. `anabranch trace FILE` shows what it holds.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RecordingTable {
    /// Name of the file, relative to the scenario file.
    pub file: String,
    /// Form of the file; recognised unless given.
    pub form: Option<Unit<Form>>,
    /// Operator or path of a table that holds several: the name in its rows, or the beginning of the names of its
    /// columns.
    pub of: Option<String>,
    /// Column of the rate.
    pub rate: Option<ColumnName>,
    /// Column of the delay.
    pub delay: Option<ColumnName>,
    /// Column of the loss.
    pub loss: Option<ColumnName>,
    /// Column of the time.
    pub time: Option<ColumnName>,
    /// Unit of the rate; by the name of the column unless given.
    pub rate_unit: Option<Unit<RateUnit>>,
    /// Unit of the delay; by the name of the column unless given, else ms.
    pub delay_unit: Option<Unit<TimeUnit>>,
    /// Unit of the time; by the name of the column or the size of the numbers unless given, else s.
    pub time_unit: Option<Unit<TimeUnit>>,
    /// Time between the rows of a table without a time, or between the probes of ping.
    pub interval: Option<Unit<Duration>>,
    /// Treatment of times without rows: `hold` (the last value holds), `outage` (nothing passes), `close` (they are no
    /// part of the recording), or `short`: up to ten intervals or 5 s, whichever is longer, the last value holds, and a
    /// longer time is no part of it; short unless given.
    pub gaps: Option<Unit<Gaps>>,
    /// Place in the recording at which the run begins. Drawn from the seed unless given: anywhere in a stretch without
    /// a pause that holds the whole run, at the same moment in all recordings; or the beginning, if `run.spread` is
    /// given.
    pub offset: Option<Unit<Duration>>,
}

/// Name or number of a column, counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnName(pub Column);

/// A quantity, or a recording of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Recordable<T> {
    /// Constant quantity.
    Stated(T),
    /// Recording that the quantity follows.
    Recorded(Box<RecordingTable>),
}

/// Name of a file, relative to the scenario file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileName(pub String);

impl Quantity for FileName {
    const NAME: &'static str = "FileName";
    const ABOUT: &'static str = "The name of a file, relative to the scenario file.";
    const PATTERN: &'static str = "^.+$";
    fn parse(text: &str) -> Result<Self, Refusal> {
        Ok(FileName(text.to_owned()))
    }
}

impl Recordable<FileName> {
    /// Returns the recording.
    pub(crate) fn table(&self) -> Cow<'_, RecordingTable> {
        match self {
            Recordable::Stated(FileName(name)) => Cow::Owned(RecordingTable::of_file(name)),
            Recordable::Recorded(table) => Cow::Borrowed(table),
        }
    }
}

impl RecordingTable {
    /// A recording of which all is recognised.
    pub(crate) fn of_file(file: &str) -> Self {
        RecordingTable {
            file: file.to_owned(),
            form: None,
            of: None,
            rate: None,
            delay: None,
            loss: None,
            time: None,
            rate_unit: None,
            delay_unit: None,
            time_unit: None,
            interval: None,
            gaps: None,
            offset: None,
        }
    }

    /// Returns how to read the file.
    pub(crate) fn options(&self) -> Options {
        let column = |name: &Option<ColumnName>| name.as_ref().map(|ColumnName(column)| column.clone());
        Options {
            form: self.form.map(|form| form.0),
            of: self.of.clone(),
            rate: column(&self.rate),
            delay: column(&self.delay),
            loss: column(&self.loss),
            time: column(&self.time),
            rate_unit: self.rate_unit.map(|unit| unit.0),
            delay_unit: self.delay_unit.map(|unit| unit.0),
            time_unit: self.time_unit.map(|unit| unit.0),
            interval: self.interval.map(|interval| interval.0),
            gaps: self.gaps.map_or(Gaps::default(), |gaps| gaps.0),
        }
    }
}

/// A word of a list as a quantity.
macro_rules! word {
    ($type:ty, $name:literal, $pattern:literal, $about:literal) => {
        impl Quantity for $type {
            const NAME: &'static str = $name;
            const ABOUT: &'static str = $about;
            const PATTERN: &'static str = $pattern;
            fn parse(text: &str) -> Result<Self, Refusal> {
                text.parse().map_err(|accepted: String| Refusal {
                    problem: format!("`{text}` is no such word"),
                    accepted: accepted.trim_start_matches("accepted: ").to_owned(),
                })
            }
        }
    };
}

word!(
    Form,
    "RecordingForm",
    "^(mahimahi|table|iperf|iperf-json|ping|irtt)$",
    "A form: `mahimahi`, `table` (CSV and its kin), `iperf` and `iperf-json` (also of iperf3), `ping`, `irtt`."
);
word!(
    RateUnit,
    "RateUnit",
    "^(bit|kbit|mbit|gbit|B/s|kB/s|MB/s|B)$",
    "A unit of rates: `bit` to `gbit` and `B/s` to `MB/s` are per second, `B` is bytes until the next row."
);
word!(TimeUnit, "TimeUnit", "^(s|ms|us|ns)$", "A unit of times: `s`, `ms`, `us`, `ns`.");
word!(
    Gaps,
    "Gaps",
    "^(short|hold|outage|close)$",
    "A rule for times without rows: `short`, `hold`, `outage`, `close`."
);

impl<'de> Deserialize<'de> for ColumnName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ColumnVisitor;
        impl Visitor<'_> for ColumnVisitor {
            type Value = ColumnName;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a column, or its number from 1")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<ColumnName, E> {
                Ok(ColumnName(Column::Name(text.to_owned())))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<ColumnName, E> {
                let number = usize::try_from(number).ok().filter(|number| *number > 0);
                number.map(|number| ColumnName(Column::Number(number))).ok_or_else(|| {
                    E::custom("columns count from 1\naccepted: the name of a column, or its number from 1")
                })
            }
        }
        deserializer.deserialize_any(ColumnVisitor)
    }
}

impl JsonSchema for ColumnName {
    fn schema_name() -> Cow<'static, str> {
        "Column".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Name of a column, or its number from 1.",
            "anyOf": [{ "type": "string" }, { "type": "integer", "minimum": 1 }],
        })
    }
}

impl<'de, T: Quantity> Deserialize<'de> for Recordable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RecordableVisitor(PhantomData))
    }
}

impl<T: Quantity> JsonSchema for Recordable<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Recordable{}", T::NAME).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let stated = generator.subschema_for::<Unit<T>>();
        let recorded = generator.subschema_for::<RecordingTable>();
        json_schema!({ "anyOf": [stated, recorded] })
    }
}

struct RecordableVisitor<T>(PhantomData<T>);

impl<'de, T: Quantity> Visitor<'de> for RecordableVisitor<T> {
    type Value = Recordable<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Or a recording of it: {{ file = \"…\" }}", T::ABOUT)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Recordable<T>, E> {
        T::parse(text).map(Recordable::Stated).map_err(refused)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Recordable<T>, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Recordable<T>, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Recordable<T>, A::Error> {
        RecordingTable::deserialize(MapAccessDeserializer::new(map)).map(|table| Recordable::Recorded(Box::new(table)))
    }
}
