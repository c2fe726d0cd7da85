//! Policy as written in a scenario: `"ecf"`, `"ecf:beta=0.25"`, or `{ name = "ecf", beta = 0.25 }`.

use super::value::At;
use crate::error::Problem;
use anabranch_policy::registry::Value;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// A policy by name, with the parameters that differ from its defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Name in the registry.
    pub name: String,
    /// Parameters that are set.
    pub parameters: BTreeMap<String, Value>,
}

impl Policy {
    /// Returns a policy with all parameters at their defaults.
    pub fn named(name: &str) -> Self {
        Policy { name: name.to_owned(), parameters: BTreeMap::new() }
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PolicyVisitor)
    }
}

impl JsonSchema for Policy {
    fn schema_name() -> Cow<'static, str> {
        "Policy".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A policy by name, with parameters behind a colon (ecf:beta=0.25) or in a table with its \
                            name; see `anabranch list`.",
            "anyOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": { "name": { "type": "string" } },
                    "required": ["name"],
                    "additionalProperties": { "type": ["number", "boolean", "string"] },
                },
            ],
        })
    }
}

struct PolicyVisitor;

impl<'de> Visitor<'de> for PolicyVisitor {
    type Value = Policy;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a policy such as \"min-rtt\" or \"ecf:beta=0.25\", or a table { name = \"ecf\", beta = 0.25 }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Policy, E> {
        let refused =
            |problem: Problem| E::custom(format!("{}\n{}", problem.problem, problem.help.unwrap_or_default()));
        crate::named::read(text).map_err(refused)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Policy, A::Error> {
        let (mut name, mut parameters) = (None, BTreeMap::new());
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value::<At<Parameter>>()?.value.0;
            match (key.as_str(), value) {
                ("name", Value::Text(text)) => name = Some(text),
                ("name", _) => {
                    return Err(A::Error::custom("`name` of a policy is a text\naccepted: `anabranch list`"));
                }
                (_, value) => {
                    parameters.insert(key, value);
                }
            }
        }
        let name = name.ok_or_else(|| A::Error::missing_field("name"))?;
        Ok(Policy { name, parameters })
    }
}

struct Parameter(Value);

impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParameterVisitor).map(Parameter)
    }
}

struct ParameterVisitor;

impl Visitor<'_> for ParameterVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, true, false or a text")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }
}
