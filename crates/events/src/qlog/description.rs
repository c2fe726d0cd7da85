//! Descriptions of events, from the types that are written.

use super::record::{Line, TAG, renamed};
use super::{Happening, NAMESPACE};
use schemars::{Schema, schema_for};
use serde_json::{Map, Value};

/// An event as documents and schemas describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Name, with its namespace if it is that of a record.
    pub name: String,
    /// Meaning.
    pub about: String,
    /// Fields of its data.
    pub fields: Vec<Field>,
}

/// A field of an event's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Meaning, with the unit in brackets.
    pub about: String,
    /// Type in CDDL (RFC 8610); empty if it has fields of its own.
    pub kind: String,
    /// True if it may be absent.
    pub optional: bool,
    /// Fields of its own.
    pub fields: Vec<Field>,
}

/// Returns all events of our namespace: those of packets, then those of connections.
pub fn events() -> Vec<Described> {
    let schema = schema_for!(Happening);
    let all = alternatives(&schema).map(|alternative| {
        let data = resolved(&alternative["properties"]["data"], &schema);
        let name = alternative["properties"]["name"]["const"].as_str().unwrap_or_default().to_owned();
        Described { name, about: about(&alternative), fields: fields(&data, &schema) }
    });
    let of_connections = described_lines(schema_for!(Line)).map(|mut line| {
        let (name, rename) = renamed(&line.name);
        line.name = format!("{NAMESPACE}:{name}");
        line.fields.iter_mut().for_each(|field| field.name = rename(std::mem::take(&mut field.name)));
        line.fields.insert(0, connection());
        line
    });
    all.chain(of_connections).collect()
}

/// Returns the events of a type that is tagged with [`TAG`].
fn described_lines(schema: Schema) -> impl Iterator<Item = Described> {
    let all: Vec<Value> = alternatives(&schema).collect();
    all.into_iter().map(move |alternative| {
        let line = resolved(&alternative, &schema);
        let name = line["properties"][TAG]["const"].as_str().unwrap_or_default().to_owned();
        let mut fields = fields(&line, &schema);
        fields.retain(|field| field.name != TAG);
        Described { name, about: about(&alternative), fields }
    })
}

/// Returns the field that each event of a connection has beside those of its line.
fn connection() -> Field {
    let about = "Number of the connection in the file, from 1.".to_owned();
    Field { name: "connection".to_owned(), about, kind: "uint64".to_owned(), optional: false, fields: Vec::new() }
}

fn alternatives(schema: &Schema) -> impl Iterator<Item = Value> {
    let all = schema.get("oneOf").or_else(|| schema.get("anyOf"));
    all.and_then(Value::as_array).into_iter().flatten().cloned()
}

/// Merges a definition that `value` refers to into it; what `value` says itself counts.
fn resolved(value: &Value, schema: &Schema) -> Value {
    let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    let Some(definition) = pointer.and_then(|pointer| schema.as_value().pointer(pointer)) else { return value.clone() };
    let mut merged = definition.clone();
    for (key, own) in value.as_object().into_iter().flatten().filter(|(key, _)| *key != "$ref") {
        match (&mut merged[key], own) {
            (Value::Object(there), Value::Object(more)) => there.extend(more.clone()),
            (Value::Array(there), Value::Array(more)) => there.extend(more.clone()),
            (place, own) => *place = own.clone(),
        }
    }
    merged
}

fn about(value: &Value) -> String {
    value["description"].as_str().unwrap_or_default().replace('\n', " ").replace("\\[", "[").replace("\\]", "]")
}

fn fields(object: &Value, schema: &Schema) -> Vec<Field> {
    let required = |name: &str| object["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name));
    let properties = object["properties"].as_object().into_iter().flatten();
    let field = |(name, property): (&String, &Value)| {
        let value = resolved(property, schema);
        let has_fields = value["required"].as_array().is_some_and(|names| names.len() < LARGEST);
        Field {
            name: name.clone(),
            about: about(&value),
            kind: if has_fields { String::new() } else { kind(&value) },
            optional: !required(name),
            fields: if has_fields { fields(&value, schema) } else { Vec::new() },
        }
    };
    properties.map(field).collect()
}

/// Returns the type in CDDL.
fn kind(value: &Value) -> String {
    let named =
        |name: &str| value["type"] == name || value["type"].as_array().is_some_and(|all| all.contains(&name.into()));
    match value["format"].as_str() {
        Some(format) if format.starts_with("uint") => format.to_owned(),
        _ if named("number") => "float64".to_owned(),
        _ if named("boolean") => "bool".to_owned(),
        _ if named("array") => format!("[* {}]", kind(&value["items"])),
        _ if named("string") => "text".to_owned(),
        _ if is_map(value) => "{* text => any}".to_owned(),
        _ => "text".to_owned(),
    }
}

/// Returns true for an object, be it one that may be absent.
fn is_map(value: &Value) -> bool {
    let alternatives = value["anyOf"].as_array().into_iter().flatten();
    let refers = |it: &Value| it["$ref"].is_string();
    value["properties"].as_object().is_some_and(|it: &Map<_, _>| !it.is_empty()) || alternatives.into_iter().any(refers)
}

/// Objects with as many fields are tables of statistics, which have descriptions of their own.
const LARGEST: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_engine::Event;
    use std::collections::BTreeSet;

    /// All names of the engine have a line, but those of data that moves.
    #[test]
    fn lines_have_the_names_of_the_engine() {
        let described: Vec<_> = described_lines(schema_for!(Line)).collect();
        let mut names: BTreeSet<&str> = described.iter().map(|it| it.name.as_str()).collect();
        assert!(names.insert("readable") && names.insert("writable"));
        assert_eq!(names, Event::NAMES.iter().copied().collect());
    }

    #[test]
    fn everything_has_a_meaning() {
        fn check(event: &str, fields: &[Field]) {
            for field in fields {
                assert!(!field.about.is_empty(), "{event}: {field:?}");
                assert!(field.kind.is_empty() != field.fields.is_empty(), "{event}: {field:?}");
                check(event, &field.fields);
            }
        }
        let all = events();
        for event in &all {
            assert!(!event.about.is_empty() && !event.fields.is_empty(), "{event:?}");
            check(&event.name, &event.fields);
        }
        let names: BTreeSet<&str> = all.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
    }
}
