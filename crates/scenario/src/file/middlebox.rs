//! Middleboxes as a scenario writes them: `{ kind = "split", size = "536B" }`.
//!
//! The kinds and their keys are those that `anabranch_paths::MIDDLEBOXES` declares. Keys are kept as they are written,
//! and checked against the declaration when the file is resolved.

use super::{Assignment, At, Unit};
use anabranch_paths::declaration::{Domain, Key};
use anabranch_paths::{MIDDLEBOXES, MiddleboxInfo};
use anabranch_units::{Bytes, Duration, suggest};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt;

/// A middlebox.
#[derive(Clone, Debug)]
pub struct MiddleboxTable {
    /// Its kind.
    pub kind: &'static MiddleboxInfo,
    /// Position on the path.
    pub end: EndName,
    /// The other keys, in the order of the file.
    pub keys: Vec<Assignment>,
}

/// Position of a middlebox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndName {
    /// Between the client and the path's first link.
    #[default]
    Client,
    /// Between the path's last link and the server.
    Server,
}

impl<'de> Deserialize<'de> for MiddleboxTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MiddleboxVisitor)
    }
}

struct MiddleboxVisitor;

impl<'de> Visitor<'de> for MiddleboxVisitor {
    type Value = MiddleboxTable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table such as { kind = \"nat\" }; see `anabranch list middleboxes`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MiddleboxTable, A::Error> {
        let (mut kind, mut end, mut keys) = (None, EndName::default(), Vec::new());
        while let Some(key) = map.next_key::<At<String>>()? {
            match key.value.as_str() {
                "kind" => kind = Some(map.next_value::<Kind>()?.0),
                "end" => end = map.next_value()?,
                _ => keys.push(Assignment { key, value: map.next_value()? }),
            }
        }
        let kind = kind.ok_or_else(|| A::Error::missing_field("kind"))?;
        Ok(MiddleboxTable { kind, end, keys })
    }
}

/// A kind by its name.
struct Kind(&'static MiddleboxInfo);

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        MIDDLEBOXES.iter().find(|info| info.name == name).map(Kind).ok_or_else(|| {
            let accepted = suggest(&name, MIDDLEBOXES.iter().map(|info| info.name));
            D::Error::custom(format!("unknown value `{name}`\n{accepted}"))
        })
    }
}

/// Description of the table in the schema.
const ABOUT: &str = "A middlebox. Its keys depend on `kind`. Each kind has `end` (client unless given), and some have \
                     `direction` (both unless given).";

impl JsonSchema for MiddleboxTable {
    fn schema_name() -> Cow<'static, str> {
        "MiddleboxTable".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds: Vec<Value> = MIDDLEBOXES.iter().map(|info| table(info, generator)).collect();
        json_schema!({
            "description": ABOUT,
            "oneOf": kinds,
        })
    }
}

/// Returns the schema of a kind's table.
fn table(info: &MiddleboxInfo, generator: &mut SchemaGenerator) -> Value {
    let mut properties = Map::new();
    properties.insert("kind".to_owned(), json!({ "type": "string", "const": info.name }));
    for key in info.keys {
        properties.insert(key.name.to_owned(), property(key, generator));
    }
    let mut end = generator.subschema_for::<EndName>().to_value();
    end["description"] = "Position on the path.".into();
    properties.insert("end".to_owned(), end);
    json!({
        "type": "object",
        "description": info.meaning,
        "properties": properties,
        "required": ["kind"],
        "additionalProperties": false,
    })
}

/// Returns the schema of a key; null stands for one that is not given.
fn property(key: &Key, generator: &mut SchemaGenerator) -> Value {
    let mut property = match key.domain {
        Domain::Whole { max, .. } => json!({ "type": ["integer", "null"], "minimum": 0, "maximum": max }),
        Domain::Size { .. } => generator.subschema_for::<Option<Unit<Bytes>>>().to_value(),
        Domain::Time { .. } => generator.subschema_for::<Option<Unit<Duration>>>().to_value(),
        Domain::Segments => generator.subschema_for::<Vec<u64>>().to_value(),
        Domain::Choice { words, .. } => {
            let word = |(name, about): &(&str, &str)| json!({ "type": "string", "const": name, "description": about });
            let words: Vec<Value> = words.iter().map(word).chain([json!({ "type": "null" })]).collect();
            json!({ "oneOf": words })
        }
    };
    property["description"] = key.about.into();
    property
}
