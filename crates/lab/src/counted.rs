//! Statistics of the engine in a run: its tables, merged over connections, subflows and hosts.
//!
//! Transfers of competing TCP do not count. For a connection and a subflow, the end named in the statistic's
//! description counts; the counters of endpoints are those of both hosts. States and momentary levels are not merged.

use crate::statistic::Kind;
use anabranch_engine::statistics::Tables;
use anabranch_engine::{ConnectionStats, Counters, SubflowStats};
use anabranch_sim::ConnectionOutcome;
use anabranch_units::statistic::{self, Statistic, Tally, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Statistics of the engine in a run, by column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, Value>")]
pub struct Counted(BTreeMap<String, Value>);

/// Column for a statistic of the engine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Name in study files; `None` for counts by name.
    pub(crate) metric: Option<&'static str>,
    pub(crate) unit: &'static str,
    pub(crate) about: &'static str,
    pub(crate) kind: Kind,
}

/// Statistics of the tables that can be merged over a run.
struct Merged {
    connection: Vec<Statistic<ConnectionStats>>,
    subflow: Vec<Statistic<SubflowStats>>,
    endpoint: Vec<Statistic<Counters>>,
}

impl Merged {
    fn of(tables: Tables<'_>) -> Merged {
        let connection = merging(tables.connection);
        // If both tables have a statistic, the connection's is the sum over its subflows.
        let has = |name| connection.iter().any(|it| it.name == name);
        let is_own = |it: &Statistic<SubflowStats>| !has(it.name);
        let subflow = merging(tables.subflow).into_iter().filter(is_own).collect();
        Merged { subflow, connection, endpoint: merging(tables.endpoint) }
    }
}

fn merging<S>(table: &[Statistic<S>]) -> Vec<Statistic<S>> {
    let is_merged = |kind| !matches!(kind, statistic::Kind::State | statistic::Kind::Gauge);
    table.iter().filter(|it| is_merged(it.kind)).copied().collect()
}

/// Returns the columns of these tables, in their order.
pub(crate) fn columns(tables: Tables<'_>) -> Vec<Column> {
    fn columns<S>(table: &[Statistic<S>]) -> impl Iterator<Item = Column> {
        table.iter().map(|it| {
            let kind = match it.zero() {
                Value::Span(_) => Kind::Number,
                Value::Counts(_) => Kind::Text,
                _ => Kind::Count,
            };
            let metric = Some(it.name).filter(|_| it.counts().is_none());
            Column { name: it.column(), metric, unit: it.unit.symbol(), about: it.about, kind }
        })
    }
    let Merged { connection, subflow, endpoint } = Merged::of(tables);
    columns(&connection).chain(columns(&subflow)).chain(columns(&endpoint)).collect()
}

/// Returns the columns and values of these statistics, each of the end that its description names.
fn ends<'a, S>(senders: &'a Tally<'_, S>, receivers: &'a Tally<'_, S>) -> impl Iterator<Item = (String, Value)> + 'a {
    let both = senders.iter().zip(receivers.iter());
    both.map(|((it, sender), (_, receiver))| (it.column(), it.end.of(sender, receiver).clone()))
}

impl Counted {
    /// Merges the statistics of these connections and the counters of the hosts.
    pub(crate) fn of(tables: Tables<'_>, connections: &[&ConnectionOutcome], hosts: &[Counters]) -> Counted {
        let Merged { connection, subflow, endpoint } = Merged::of(tables);
        let (mut senders, mut receivers) = (Tally::new(&connection), Tally::new(&connection));
        let (mut sending, mut receiving) = (Tally::new(&subflow), Tally::new(&subflow));
        let mut endpoints = Tally::new(&endpoint);
        for connection in connections {
            connection.sender.iter().for_each(|stats| senders.add(stats));
            connection.receiver.iter().for_each(|stats| receivers.add(stats));
            connection.subflows.iter().for_each(|it| sending.add(&it.stats));
            connection.receiving_subflows.iter().for_each(|it| receiving.add(&it.stats));
        }
        hosts.iter().for_each(|counters| endpoints.add(counters));

        let mut all: BTreeMap<String, Value> = ends(&senders, &receivers).chain(ends(&sending, &receiving)).collect();
        all.extend(endpoints.iter().map(|(it, value)| (it.column(), value.clone())));
        for value in all.values_mut() {
            if let Value::Counts(counts) = value {
                counts.retain(|_, count| *count > 0);
            }
        }
        Counted(all)
    }

    /// Returns the value in a column.
    ///
    /// # Panics
    ///
    /// If the tables of the engine have no such column.
    pub fn value(&self, column: &str) -> &Value {
        self.0.get(column).unwrap_or_else(|| panic!("no statistic of the engine is in a column `{column}`"))
    }

    /// Returns a whole number; for counts by name their sum.
    pub fn count(&self, column: &str) -> u64 {
        match self.value(column) {
            Value::Count(count) => *count,
            Value::Counts(counts) => counts.values().sum(),
            other => panic!("`{column}` is {other:?} and no count"),
        }
    }

    /// Returns a span of time in seconds.
    pub fn seconds(&self, column: &str) -> f64 {
        match self.value(column) {
            Value::Span(span) => span.as_secs_f64(),
            other => panic!("`{column}` is {other:?} and no span of time"),
        }
    }

    /// Replaces the values in these columns.
    #[cfg(test)]
    pub(crate) fn with<const N: usize>(mut self, values: [(&str, Value); N]) -> Counted {
        self.0.extend(values.map(|(column, value)| (column.to_owned(), value)));
        self
    }
}

impl JsonSchema for Counted {
    fn schema_name() -> Cow<'static, str> {
        "Counted".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let columns = columns(Tables::ENGINE);
        let property = |column: &Column| {
            let mut property = match column.kind {
                Kind::Flag => json!({ "type": "boolean" }),
                // Null for a peak that was never set.
                Kind::Count => json!({ "type": ["integer", "null"], "minimum": 0 }),
                Kind::Number => json!({ "type": "number" }),
                Kind::Text => json!({ "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 } }),
            };
            let unit = if column.unit.is_empty() { String::new() } else { format!(" [{}]", column.unit) };
            property["description"] = format!("{}{unit}", column.about).into();
            (column.name.clone(), property)
        };
        let properties: Map<_, _> = columns.iter().map(property).collect();
        let required: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        let mut schema = Schema::default();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties.into());
        schema.insert("required".to_owned(), json!(required));
        schema
    }
}

/// Error: a record of a run lacks this statistic.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is missing; another version of the program wrote this")]
pub struct Missing(String);

impl TryFrom<BTreeMap<String, Value>> for Counted {
    type Error = Missing;

    fn try_from(values: BTreeMap<String, Value>) -> Result<Self, Missing> {
        let missing = columns(Tables::ENGINE).into_iter().find(|column| !values.contains_key(&column.name));
        missing.map_or(Ok(Counted(values)), |column| Err(Missing(column.name)))
    }
}
