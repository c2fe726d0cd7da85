//! The JSON schema of scenario files, for editors.

use crate::file::{File, OrOff, Unit};
use anabranch_engine::settings::{Domain, SETTINGS, Setting, Word};
use anabranch_policy::registry::{self, Entry, Kind};
use anabranch_policy::{Catalogue, Table};
use anabranch_units::{Bytes, Duration};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

/// Identifier of the schema of this version (JSON Schema Core §8.2.1).
const ID: &str = concat!(env!("CARGO_PKG_HOMEPAGE"), "/schema/scenario/", env!("CARGO_PKG_VERSION"), ".json");

/// Returns the schema as JSON text. Each policy key accepts the policies of the catalogue with their parameters.
pub fn schema(catalogue: &Catalogue) -> String {
    with_settings(catalogue, SETTINGS)
}

fn with_settings(catalogue: &Catalogue, settings: &[Setting]) -> String {
    let mut generator = SchemaGenerator::default();
    let settings: Vec<(&str, Value)> = (settings.iter())
        .filter(|setting| !setting.not_in_scenarios)
        .map(|setting| (setting.name, property(setting, &mut generator)))
        .collect();
    let mut schema = generator.into_root_schema_for::<File>().to_value();
    for (name, property) in settings {
        schema["$defs"]["HostTable"]["properties"][name] = property;
    }
    for (key, policies) in [
        ("scheduler", any_of(&catalogue.schedulers)),
        ("congestion", any_of(&catalogue.congestion)),
        ("window", any_of(&catalogue.windows)),
        ("ack-path", any_of(&catalogue.ack_paths)),
        ("reinjection", any_of(&catalogue.reinjections)),
        ("first-path", any_of(&catalogue.first_paths)),
        ("discipline", any_of(&catalogue.queues)),
        ("discipline-up", any_of(&catalogue.queues)),
    ] {
        schema["$defs"][key] = policies;
        point(&mut schema, key, None);
    }
    if let Some(definitions) = schema["$defs"].as_object_mut() {
        definitions.remove("Policy");
    }
    schema["$id"] = ID.into();
    serde_json::to_string_pretty(&schema).expect("a schema is plain JSON")
}

/// Returns the schema of a setting; null stands for one that is not given.
fn property(setting: &Setting, generator: &mut SchemaGenerator) -> Value {
    let mut property = match setting.domain {
        Domain::Flag(_) => generator.subschema_for::<Option<bool>>().to_value(),
        Domain::Number(_, min, max) => json!({ "type": ["integer", "null"], "minimum": min, "maximum": max }),
        Domain::NumberOrOff(_, min, max) => json!({ "anyOf": [
            { "type": ["integer", "null"], "minimum": min, "maximum": max },
            { "type": "boolean", "const": false },
        ] }),
        Domain::SizeOrOff(_) => {
            let size = generator.subschema_for::<Option<Unit<Bytes>>>().to_value();
            json!({ "anyOf": [size, { "type": "boolean", "const": false }] })
        }
        Domain::Ports(_) => json!({ "anyOf": [
            { "type": ["string", "null"], "pattern": r"^[0-9]+-[0-9]+$" },
            { "type": "boolean", "const": false },
        ] }),
        Domain::Size(_) => generator.subschema_for::<Option<Unit<Bytes>>>().to_value(),
        Domain::Time(_) => generator.subschema_for::<Option<Unit<Duration>>>().to_value(),
        Domain::TimeOrOff(_) => generator.subschema_for::<Option<OrOff>>().to_value(),
        Domain::Choice(words) => {
            let word = |word: &Word| json!({ "type": "string", "const": word.name, "description": word.about });
            let words: Vec<Value> = words.iter().map(word).chain([json!({ "type": "null" })]).collect();
            json!({ "oneOf": words })
        }
    };
    property["description"] = setting.about.into();
    property
}

/// Points every policy property called `key` at the definition of that name.
fn point(schema: &mut Value, key: &str, property: Option<&str>) {
    match schema {
        Value::Object(keywords) => {
            for (name, value) in keywords.iter_mut() {
                if name == "$ref" && value == "#/$defs/Policy" && property == Some(key) {
                    *value = format!("#/$defs/{key}").into();
                } else if name == "properties" {
                    let properties = value.as_object_mut().into_iter().flatten();
                    properties.for_each(|(name, value)| point(value, key, Some(name)));
                } else {
                    point(value, key, property);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| point(item, key, property)),
        _ => {}
    }
}

/// Returns the schema of a policy: its name, or a table with its name and parameters.
fn any_of<T: Kind + ?Sized>(table: &Table<T>) -> Value {
    let one = |entry: &Entry<T>| {
        let mut properties = Map::new();
        properties.insert("name".to_owned(), json!({ "description": entry.about, "const": entry.name }));
        for p in entry.parameters {
            let mut property = match p.domain {
                registry::Domain::Number { default, min, max } => {
                    json!({ "type": "number", "default": default, "minimum": min, "maximum": max })
                }
                registry::Domain::Flag { default } => json!({ "type": "boolean", "default": default }),
                registry::Domain::Text { default, .. } => json!({ "type": "string", "default": default }),
            };
            let unit = if p.unit.is_empty() { String::new() } else { format!(" [{}]", p.unit) };
            property["description"] = format!("{}{unit}", p.about).into();
            properties.insert(p.name.to_owned(), property);
        }
        json!({ "type": "object", "properties": properties, "required": ["name"], "additionalProperties": false })
    };
    let names: Vec<&str> = table.names().collect();
    let choices = [json!({ "enum": names })].into_iter().chain(table.entries().iter().map(one));
    json!({
        "description": format!(
            "A {} by name, or a table with its name and parameters; see `anabranch list`.",
            table.kind(),
        ),
        "anyOf": choices.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::file::HostTable;
    use crate::shipped::SHIPPED;

    /// Returns true if `value` satisfies `schema`, for the keywords that our schemas use.
    fn accepts(root: &Value, schema: &Value, value: &Value) -> bool {
        let Some(keywords) = schema.as_object() else { return schema == &Value::Bool(true) };
        keywords.iter().all(|(keyword, says)| match keyword.as_str() {
            "$ref" => {
                let pointer = says.as_str().unwrap().trim_start_matches('#');
                accepts(root, root.pointer(pointer).unwrap(), value)
            }
            "type" => match says {
                Value::Array(types) => types.iter().any(|name| is_a(value, name.as_str().unwrap())),
                name => is_a(value, name.as_str().unwrap()),
            },
            "anyOf" | "oneOf" => says.as_array().unwrap().iter().any(|one| accepts(root, one, value)),
            "enum" => says.as_array().unwrap().contains(value),
            "const" => says == value,
            "required" => says.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some()),
            "items" => value.as_array().is_none_or(|items| items.iter().all(|item| accepts(root, says, item))),
            "properties" => says
                .as_object()
                .unwrap()
                .iter()
                .all(|(key, schema)| value.get(key).is_none_or(|value| accepts(root, schema, value))),
            "additionalProperties" => {
                let known = |key: &String| keywords.get("properties").and_then(|known| known.get(key)).is_some();
                let others = value.as_object().into_iter().flatten().filter(|(key, _)| !known(key));
                others.into_iter().all(|(_, value)| accepts(root, says, value))
            }
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= says.as_u64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= says.as_u64().unwrap()),
            "minimum" => value.as_f64().is_none_or(|n| n >= says.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|n| n <= says.as_f64().unwrap()),
            // Patterns are for editors; here the parser of the file checks texts instead.
            "pattern" | "description" | "title" | "format" | "default" | "$schema" | "$id" | "$defs" => true,
            other => panic!("a keyword that this test does not know: {other}"),
        })
    }

    fn is_a(value: &Value, name: &str) -> bool {
        match name {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            "null" => value.is_null(),
            other => panic!("no JSON type: {other}"),
        }
    }

    fn judge(text: &str) -> bool {
        let schema: Value = serde_json::from_str(&schema(&Catalogue::default())).unwrap();
        let value: Value = toml::from_str(text).unwrap();
        accepts(&schema, &schema, &value)
    }

    #[test]
    fn the_schema_accepts_the_shipped_scenarios_and_refuses_strange_keys() {
        for shipped in SHIPPED {
            assert!(judge(shipped.text), "{}", shipped.name);
        }
        let base = "[path.a]\nrate = \"1mbit\"\n[[workload]]\nkind = \"bulk\"\n";
        assert!(judge(base));
        assert!(judge(&format!("{base}[host]\nreceive-buffer = {{ initial = \"64KiB\", max = \"4MiB\" }}\n")));
        assert!(judge(&format!(
            "{base}[host]\nscheduler = \"ecf\"\ncongestion = {{ name = \"cubic\", beta = 0.5 }}\n"
        )));
        for wrong in [
            "[host]\nscheduler = \"cubic\"\n",
            "[host]\ncongestion = { name = \"cubic\", beta = 50 }\n",
            "[[change]]\nat = \"1s\"\nwindow = { name = \"shared\", x = 1 }\n",
            "[rum]\n",
            "[run]\nsed = 3\n",
            "[run]\nseed = \"3\"\n",
            "[path.b]\nrate = 5\n",
            "[path.b]\nloss = {}\n",
        ] {
            assert!(!judge(&format!("{base}{wrong}")), "{wrong}");
        }
        assert!(!judge("[path.a]\nrate = \"1mbit\"\n"), "a scenario without workload");
    }

    #[test]
    fn every_table_refuses_unknown_keys_and_every_key_is_explained() {
        let schema: Value = serde_json::from_str(&schema(&Catalogue::default())).unwrap();
        let tables = schema["$defs"].as_object().unwrap().values().chain([&schema]);
        for table in tables.filter(|table| table.get("properties").is_some()) {
            assert_eq!(table["additionalProperties"], Value::Bool(false), "{table}");
            for (key, property) in table["properties"].as_object().unwrap() {
                assert!(property.get("description").is_some(), "{key} is not explained");
            }
        }
    }

    #[test]
    fn a_new_setting_is_found() {
        let new = |not_in_scenarios| {
            let setting = Setting::new("dummy", "Does nothing.", Domain::Number(|c| &mut c.max_subflows, 3, 5));
            if not_in_scenarios { setting.not_in_scenarios() } else { setting }
        };
        let property = |setting| {
            let text = with_settings(&Catalogue::default(), &[setting]);
            let mut schema: Value = serde_json::from_str(&text).unwrap();
            schema["$defs"]["HostTable"]["properties"]["dummy"].take()
        };
        let wanted = json!({
            "type": ["integer", "null"], "minimum": 3, "maximum": 5, "description": "Does nothing.",
        });
        assert_eq!(property(new(false)), wanted);
        assert_eq!(property(new(true)), Value::Null);
    }

    #[test]
    fn keys_of_hosts_are_either_fields_or_settings() {
        let schema: Value = serde_json::from_str(&with_settings(&Catalogue::default(), &[])).unwrap();
        let fields: Vec<&String> = schema["$defs"]["HostTable"]["properties"].as_object().unwrap().keys().collect();
        assert_eq!(fields, HostTable::KEYS);
        assert!(SETTINGS.iter().all(|it| it.not_in_scenarios || !HostTable::KEYS.contains(&it.name)));
    }
}
