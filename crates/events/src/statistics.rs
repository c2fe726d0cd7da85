//! Statistics of a table as JSON, and their schema.

use anabranch_units::statistic::{Statistic, Value};
use schemars::{Schema, json_schema};
use serde_json::{Map, json};

/// Returns the schema of an object with exactly these properties.
pub fn object(properties: Map<String, serde_json::Value>) -> Schema {
    let required: Vec<String> = properties.keys().cloned().collect();
    json_schema!({ "type": "object", "properties": properties, "required": required })
}

/// Returns the schema of each statistic of a table, by its key in JSON.
pub fn properties<S>(table: &[Statistic<S>]) -> Map<String, serde_json::Value> {
    let property = |statistic: &Statistic<S>| {
        let mut property = match statistic.zero() {
            Value::Count(_) => json!({ "type": "integer", "minimum": 0 }),
            Value::Span(_) => json!({ "type": "number", "minimum": 0 }),
            Value::Counts(_) => {
                json!({ "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 } })
            }
            // A state is whatever its field is.
            _ => json!({ "type": ["null", "boolean", "number", "string"] }),
        };
        let unit = statistic.unit.symbol();
        let unit = if unit.is_empty() { String::new() } else { format!(" [{unit}]") };
        property["description"] = format!("{}{unit}", statistic.about).into();
        (statistic.key(), property)
    };
    table.iter().map(property).collect()
}

/// Returns every statistic of a table with its value in `owner`, by its key in JSON.
pub fn values<S>(table: &[Statistic<S>], owner: &S) -> impl Iterator<Item = (String, serde_json::Value)> {
    table.iter().map(move |statistic| (statistic.key(), json!(statistic.value(owner))))
}
