//! Policies of a run with all their parameters, as in every result.

use anabranch_policy::registry::{Entry, Kind, Params, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Policy with all its parameters, whether set or not.
#[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Variant {
    /// Name of the policy.
    pub name: String,
    /// Parameters in the order of its entry.
    pub parameters: Settings,
}

/// Parameters with their values, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(pub Vec<(String, Value)>);

/// Policies of a host.
#[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Chosen {
    /// Profile that the host starts from.
    pub profile: String,
    /// Scheduler.
    pub scheduler: Variant,
    /// Congestion control.
    pub congestion: Variant,
    /// Window policy.
    pub window: Variant,
    /// ACK path policy.
    pub ack_path: Variant,
    /// Reinjection policy.
    pub reinjection: Variant,
    /// First-path policy.
    pub first_path: Variant,
}

/// Policy that replaced another during the run.
#[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Switched {
    /// Time after the beginning of the run \[s\].
    pub at_s: f64,
    /// Name of the host: `client`, `server` or `both hosts`.
    pub host: &'static str,
    /// Key of the policy: scheduler, congestion, window, ack-path, reinjection or first-path.
    pub seam: &'static str,
    /// New policy.
    pub policy: Variant,
}

impl Variant {
    pub(crate) fn new<T: Kind + ?Sized>(entry: &Entry<T>, params: &Params) -> Self {
        let value = |name: &str| params.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone());
        let parameters = entry.parameters.iter().filter_map(|p| Some((p.name.to_owned(), value(p.name)?)));
        Variant { name: entry.name.to_string(), parameters: Settings(parameters.collect()) }
    }
}

impl Chosen {
    /// Returns each policy with the key that names it in a scenario.
    pub fn seams(&self) -> [(&'static str, &Variant); 6] {
        [
            ("scheduler", &self.scheduler),
            ("congestion", &self.congestion),
            ("window", &self.window),
            ("ack-path", &self.ack_path),
            ("reinjection", &self.reinjection),
            ("first-path", &self.first_path),
        ]
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (n, (name, value)) in self.parameters.0.iter().enumerate() {
            write!(f, "{}{name}={value}", if n == 0 { " (" } else { ", " })?;
        }
        if self.parameters.0.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            match value {
                Value::Number(number) => map.serialize_entry(name, number)?,
                Value::Flag(flag) => map.serialize_entry(name, flag)?,
                Value::Text(text) => map.serialize_entry(name, text)?,
            }
        }
        map.end()
    }
}

impl JsonSchema for Settings {
    fn schema_name() -> Cow<'static, str> {
        "Parameters".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": { "type": ["number", "boolean", "string"] } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_shows_all_its_parameters() {
        let parameters = vec![("quantum".to_owned(), Value::Number(2.0)), ("cwnd".to_owned(), Value::Flag(true))];
        let variant = Variant { name: "rr".to_owned(), parameters: Settings(parameters) };
        assert_eq!(variant.to_string(), "rr (quantum=2, cwnd=true)");
        let plain = Variant { name: "min-rtt".to_owned(), parameters: Settings::default() };
        assert_eq!(plain.to_string(), "min-rtt");
    }
}
