//! The JSON schema of scenario files, for editors.

use crate::file::File;

/// The schema as JSON text.
pub fn schema() -> String {
    let schema = schemars::schema_for!(File);
    serde_json::to_string_pretty(&schema).expect("a schema is plain JSON")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::shipped::SHIPPED;
    use serde_json::Value;

    /// Whether `value` is what `schema` says, for the keywords that our schemas use.
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
            "minimum" => value.as_f64().is_none_or(|n| n >= says.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|n| n <= says.as_f64().unwrap()),
            // The patterns are read by people's editors; here the reader of the file stands in for them.
            "pattern" | "description" | "title" | "format" | "default" | "$schema" | "$defs" => true,
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
        let schema: Value = serde_json::from_str(&schema()).unwrap();
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
        for wrong in
            ["[rum]\n", "[run]\nsed = 3\n", "[run]\nseed = \"3\"\n", "[path.b]\nrate = 5\n", "[path.b]\nloss = {}\n"]
        {
            assert!(!judge(&format!("{base}{wrong}")), "{wrong}");
        }
        assert!(!judge("[path.a]\nrate = \"1mbit\"\n"), "a scenario without workload");
    }

    #[test]
    fn every_table_refuses_unknown_keys_and_every_key_is_explained() {
        let schema: Value = serde_json::from_str(&schema()).unwrap();
        let tables = schema["$defs"].as_object().unwrap().values().chain([&schema]);
        for table in tables.filter(|table| table.get("properties").is_some()) {
            assert_eq!(table["additionalProperties"], Value::Bool(false), "{table}");
            for (key, property) in table["properties"].as_object().unwrap() {
                assert!(property.get("description").is_some(), "{key} is not explained");
            }
        }
    }
}
