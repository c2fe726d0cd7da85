//! Files of qlog, and what their schema accepts and refuses. It is made of the description of the events that
//! docs/qlog.cddl is made of, and of the main document's types in our own words. `interop/qlog` checks files against
//! the CDDL of both documents.

use anabranch_events::qlog::{Field, NAMESPACE, SCHEMA, events};
use jsonschema::Validator;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Splits a file into its texts. Panics unless each begins with a separator and ends with a line.
pub fn texts(file: &str) -> Vec<Value> {
    let mut pieces = file.split('\u{1e}');
    assert_eq!(pieces.next(), Some(""), "a text begins with a separator");
    let text = |piece: &str| {
        assert!(piece.ends_with("}\n"), "a text ends with a line: {piece}");
        serde_json::from_str(piece).unwrap_or_else(|error| panic!("{error}: {piece}"))
    };
    pieces.map(text).collect()
}

/// Checks a file against the schema. Returns the events.
pub fn check(file: &str, about: &str) -> Vec<Value> {
    let mut all = texts(file);
    let head = all.remove(0);
    // The fields that identify a file are to be among its first 256 bytes.
    assert!(file[..256].contains("serialization_format"), "{about}");
    let is_head = jsonschema::validator_for(&head_schema()).unwrap();
    is_head.validate(&head).unwrap_or_else(|error| panic!("{about}: {error}: {head}"));
    let schemas: BTreeMap<String, Validator> = event_schemas();
    let is_event = |event: &Value| match schemas.get(event["name"].as_str().unwrap_or_default()) {
        Some(schema) => schema.validate(event).map_err(|error| error.to_string()),
        None => Err("no event has this name".to_owned()),
    };
    for event in &all {
        is_event(event).unwrap_or_else(|error| panic!("{about}: {error}: {event}"));
    }

    // The check can fail: a head with one more field, and of each event one without a field, with another type, and
    // with one more.
    let mut wrong = head.clone();
    wrong["qlog_version"] = json!("0.3");
    assert!(!is_head.is_valid(&wrong), "a field that the main document has not");
    let mut seen = BTreeSet::new();
    for event in &all {
        if !seen.insert(event["name"].to_string()) {
            continue;
        }
        let first = event["data"].as_object().and_then(|data| data.keys().next()).unwrap().clone();
        let change = |change: &dyn Fn(&mut Value)| {
            let mut wrong = event.clone();
            change(&mut wrong);
            assert!(is_event(&wrong).is_err(), "{wrong}");
        };
        change(&|wrong| drop(wrong["data"].as_object_mut().unwrap().remove(&first)));
        change(&|wrong| wrong["data"][&first] = json!(null));
        change(&|wrong| wrong["data"]["further"] = json!(1));
        change(&|wrong| wrong["time"] = json!("text"));
        change(&|wrong| wrong["tuple"] = json!(1));
    }
    all
}

/// `QlogFileSeq` of the main document, with the values that are ours.
fn head_schema() -> Value {
    let reference_time = object(&[
        ("clock_type", json!({ "const": "monotonic" }), true),
        // A clock of this type has no date.
        ("epoch", json!({ "const": "unknown" }), true),
    ]);
    let common_fields = object(&[
        ("time_format", json!({ "enum": ["relative_to_epoch", "relative_to_previous_event"] }), true),
        ("reference_time", reference_time, true),
    ]);
    let vantage_point = object(&[
        ("name", json!({ "type": "string" }), false),
        ("type", json!({ "enum": ["client", "server", "network", "unknown"] }), true),
        ("flow", json!({ "enum": ["client", "server", "unknown"] }), false),
    ]);
    let schemas =
        json!({ "type": "array", "minItems": 1, "items": { "type": "string" }, "prefixItems": [{ "const": SCHEMA }] });
    let trace = object(&[
        ("title", json!({ "type": "string" }), false),
        ("description", json!({ "type": "string" }), false),
        ("common_fields", common_fields, false),
        ("vantage_point", vantage_point, false),
        ("event_schemas", schemas, true),
    ]);
    object(&[
        ("file_schema", json!({ "const": "urn:ietf:params:qlog:file:sequential" }), true),
        ("serialization_format", json!({ "const": "application/qlog+json-seq" }), true),
        ("title", json!({ "type": "string" }), false),
        ("description", json!({ "type": "string" }), false),
        ("trace", trace, true),
    ])
}

/// `Event` of the main document, for each event with the type of its data.
fn event_schemas() -> BTreeMap<String, Validator> {
    let scenario =
        object(&[("name", json!({ "type": "string" }), true), ("details", json!({ "type": "object" }), true)]);
    let own = events().into_iter().map(|event| {
        assert!(event.name.starts_with(&format!("{NAMESPACE}:")), "{}", event.name);
        (event.name, data(&event.fields))
    });
    let all = own.chain([("simulation:scenario".to_owned(), scenario)]);
    let event = |(name, data): (String, Value)| {
        let schema = object(&[
            ("time", json!({ "type": "number", "minimum": 0 }), true),
            ("name", json!({ "const": name }), true),
            ("data", data, true),
            ("tuple", json!({ "type": "string" }), false),
            ("group_id", json!({ "type": "string" }), false),
        ]);
        (name, jsonschema::validator_for(&schema).unwrap())
    };
    all.map(event).collect()
}

fn data(fields: &[Field]) -> Value {
    let property = |field: &Field| {
        let value = if field.fields.is_empty() { kind(&field.kind) } else { data(&field.fields) };
        (field.name.clone(), value, !field.optional)
    };
    let all: Vec<(String, Value, bool)> = fields.iter().map(property).collect();
    object(&all.iter().map(|(name, value, required)| (name.as_str(), value.clone(), *required)).collect::<Vec<_>>())
}

/// A type of CDDL.
fn kind(cddl: &str) -> Value {
    if let Some(items) = cddl.strip_prefix("[* ") {
        return json!({ "type": "array", "items": kind(items.trim_end_matches(']')) });
    }
    match cddl {
        "text" => json!({ "type": "string" }),
        "bool" => json!({ "type": "boolean" }),
        "float64" => json!({ "type": "number" }),
        "{* text => any}" => json!({ "type": "object" }),
        unsigned => {
            let bits: u32 = unsigned.strip_prefix("uint").unwrap().parse().unwrap();
            json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX >> (64 - bits) })
        }
    }
}

/// An object with these properties, each with whether it is always there, and no others.
fn object(properties: &[(&str, Value, bool)]) -> Value {
    let required: Vec<&str> = properties.iter().filter(|(.., always)| *always).map(|(name, ..)| *name).collect();
    let all: Map<String, Value> =
        properties.iter().map(|(name, value, _)| ((*name).to_owned(), value.clone())).collect();
    json!({ "type": "object", "properties": all, "required": required, "additionalProperties": false })
}
