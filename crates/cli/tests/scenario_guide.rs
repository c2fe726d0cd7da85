//! The guide to scenario files (docs/scenarios.md) and their reference (docs/scenario-reference.md).
//!
//! The reference is made from what `anabranch schema` prints; `BLESS=1 cargo test -p anabranch-cli --test
//! scenario_guide` writes it anew. Every example of the guide is run.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_engine::settings::SETTINGS;
use common::markdown::{Document, root};
use common::{anabranch, directory, succeed};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

const REFERENCE: &str = "docs/scenario-reference.md";

/// Policy keys; their names and parameters are in docs/policies.md.
const POLICIES: [&str; 8] =
    ["scheduler", "congestion", "window", "ack-path", "reinjection", "first-path", "discipline", "discipline-up"];

/// Tables in the order of the reference: definition of the schema, and heading.
const TABLES: [(&str, &str); 15] = [
    ("", "The file"),
    ("PathTable", "`[path.NAME]`"),
    ("RecordingTable", "`trace = { … }`"),
    ("ModelTable", "`model = { name = … }`"),
    ("VaryTable", "`vary`"),
    ("LossTable", "`loss = { model = … }`"),
    ("ReorderTable", "`reorder`"),
    ("MiddleboxTable", "`middlebox`"),
    ("LinkTable", "`[link.NAME]`"),
    ("HostTable", "`[host]`, `[client]`, `[server]`"),
    ("TunedBuffer", "`receive-buffer = { … }`"),
    ("WorkloadTable", "`[[workload]]`"),
    ("PageTable", "`page = { … }`"),
    ("ChangeTable", "`[[change]]`"),
    ("RunTable", "`[run]`"),
];

fn schema() -> Value {
    serde_json::from_str(&succeed(Path::new("."), &["schema"])).unwrap()
}

fn table<'a>(schema: &'a Value, name: &str) -> &'a Value {
    if name.is_empty() { schema } else { &schema["$defs"][name] }
}

/// Returns the definition that a property refers to, through an `anyOf` with null or not.
fn reference(property: &Value) -> Option<&str> {
    let own = property.get("$ref");
    let among = || property["anyOf"].as_array()?.iter().find_map(|one| one.get("$ref"));
    own.or_else(among)?.as_str()?.strip_prefix("#/$defs/")
}

/// Describes the values that a property accepts.
fn accepted(schema: &Value, property: &Value) -> String {
    if let Some(name) = reference(property) {
        return named(schema, name);
    }
    if let Some(only) = property["const"].as_str() {
        return format!("`\"{only}\"`");
    }
    let choices = choices(schema, property);
    if !choices.is_empty() {
        return choices.join("; ");
    }
    let kind = match &property["type"] {
        Value::Array(kinds) => kinds[0].as_str().unwrap_or_default(),
        kind => kind.as_str().unwrap_or_default(),
    };
    match kind {
        "array" => format!("list of: {}", accepted(schema, &property["items"])),
        "object" => accepted(schema, &property["additionalProperties"]),
        "integer" => "whole number".to_owned(),
        "number" => "number".to_owned(),
        "boolean" => "`true`, `false`".to_owned(),
        "string" => "text".to_owned(),
        other => panic!("a property of a kind that the reference cannot describe: {other} in {property}"),
    }
}

/// Describes the values of a definition: a link, a list of names, or a unit.
fn named(schema: &Value, name: &str) -> String {
    if POLICIES.contains(&name) {
        return format!("policy: [{name}](policies.md)");
    }
    if let Some((_, heading)) = TABLES.iter().find(|(table, _)| *table == name) {
        return format!("[{heading}](#{})", slug(heading));
    }
    let choices = choices(schema, &schema["$defs"][name]);
    if choices.is_empty() { format!("[{name}](#units)").to_lowercase() } else { choices.join(", ") }
}

/// Describes each alternative of a definition; empty if it has none.
fn choices(schema: &Value, definition: &Value) -> Vec<String> {
    let alternatives = ["oneOf", "anyOf"].iter().filter_map(|of| definition[of].as_array()).flatten();
    let described = alternatives.filter(|one| one["type"] != "null").map(|one| match one["const"].as_str() {
        Some(text) => match one["description"].as_str() {
            Some(about) => format!("`\"{text}\"` ({})", one_line(about).trim_end_matches('.')),
            None => format!("`\"{text}\"`"),
        },
        None if one["const"] == Value::Bool(false) => "`false`".to_owned(),
        None => accepted(schema, one),
    });
    described.collect()
}

/// Returns the anchor of a heading.
fn slug(heading: &str) -> String {
    let document = Document { name: String::new(), text: format!("## {heading}\n") };
    document.anchors().remove(0)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn rows(schema: &Value, properties: &Map<String, Value>, text: &mut String) {
    text.push_str("| key | value | what it is |\n|---|---|---|\n");
    for (key, property) in properties {
        let about = one_line(property["description"].as_str().unwrap_or_default());
        writeln!(text, "| `{key}` | {} | {about} |", accepted(schema, property)).unwrap();
    }
    text.push('\n');
}

/// Writes the reference.
fn written(schema: &Value) -> String {
    let mut text = "# Reference of the scenario file\n\n\
        Look up any key of a scenario file here: what it accepts and means. The [guide](scenarios.md) explains them with\n\
        examples. This page is made from `anabranch schema` (`BLESS=1 cargo test -p anabranch-cli --test\n\
        scenario_guide`); do not edit it.\n\n"
        .to_owned();
    for (name, heading) in TABLES {
        let table = table(schema, name);
        let about = one_line(table["description"].as_str().unwrap_or_default());
        writeln!(text, "## {heading}\n\n{about}\n").unwrap();
        if let Some(properties) = table["properties"].as_object() {
            rows(schema, properties, &mut text);
        }
        for alternative in table["oneOf"].as_array().into_iter().flatten() {
            let properties = alternative["properties"].as_object().unwrap();
            let (key, constant) = properties.iter().find(|(_, value)| value.get("const").is_some()).unwrap();
            let about = one_line(alternative["description"].as_str().unwrap_or_default());
            writeln!(text, "### `{key} = {}`\n\n{about}\n", constant["const"]).unwrap();
            let rest = properties.iter().filter(|(other, _)| *other != key);
            rows(schema, &rest.map(|(key, value)| (key.clone(), value.clone())).collect(), &mut text);
        }
    }
    text.push_str("## Names\n\nValues that stand for a rule or a kind.\n\n| name | of | what it is |\n|---|---|---|\n");
    let definitions = schema["$defs"].as_object().unwrap();
    for definition in definitions.values() {
        let of = one_line(definition["description"].as_str().unwrap_or_default());
        for one in definition["oneOf"].as_array().into_iter().flatten() {
            if let (Some(name), Some(about)) = (one["const"].as_str(), one["description"].as_str()) {
                writeln!(text, "| `\"{name}\"` | {} | {} |", of.trim_end_matches('.'), one_line(about)).unwrap();
            }
        }
    }
    text.push_str("\n## Units\n\nA quantity is a text with its unit.\n\n| value | what it is |\n|---|---|\n");
    for (name, definition) in definitions {
        if definition.get("pattern").is_some() {
            let about = one_line(definition["description"].as_str().unwrap_or_default());
            writeln!(text, "| {} | {about} |", name.to_lowercase()).unwrap();
        }
    }
    text
}

#[test]
fn the_reference_is_that_of_today() {
    let today = written(&schema());
    if std::env::var_os("BLESS").is_some() {
        return std::fs::write(root().join(REFERENCE), today).unwrap();
    }
    assert!(
        Document::open(REFERENCE).text == today,
        "{REFERENCE} is out of date: BLESS=1 cargo test -p anabranch-cli --test scenario_guide"
    );
}

#[test]
fn the_reference_has_every_table_of_the_schema() {
    let schema = schema();
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        let has_keys = definition.get("properties").is_some()
            || definition["oneOf"].as_array().is_some_and(|all| all.iter().any(|one| one.get("properties").is_some()));
        let known = TABLES.iter().any(|(table, _)| table == name);
        assert!(!has_keys || known, "the table {name} has no place in the reference: add it to TABLES");
    }
}

/// Returns the keys of every table.
fn keys(schema: &Value) -> BTreeSet<(String, String)> {
    let mut keys = BTreeSet::new();
    for (name, heading) in TABLES {
        let table = table(schema, name);
        let alternatives = table["oneOf"].as_array().into_iter().flatten();
        for one in alternatives.chain([table]) {
            let names = one["properties"].as_object().into_iter().flatten().map(|(key, _)| key.clone());
            keys.extend(names.map(|key| (heading.to_owned(), key)));
        }
    }
    keys
}

/// Keys that the guide need not name, because another page lists them: settings of hosts docs/settings.md, keys of
/// middleboxes their reference.
fn is_listed_elsewhere(table: &str, key: &str) -> bool {
    table == "`middlebox`" || SETTINGS.iter().any(|setting| setting.name == key)
}

#[test]
fn the_guide_names_every_key() {
    let guide = Document::open("docs/scenarios.md").text;
    let words: BTreeSet<&str> =
        guide.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(|word| !word.is_empty()).collect();
    let missing: Vec<String> = keys(&schema())
        .into_iter()
        .filter(|(table, key)| !words.contains(key.as_str()) && !is_listed_elsewhere(table, key))
        .map(|(table, key)| format!("{table}: {key}"))
        .collect();
    assert!(missing.is_empty(), "docs/scenarios.md does not name these keys:\n{}", missing.join("\n"));
}

/// Every `toml` block of the guide is a scenario, or tables that make one with the paths and the workload below.
#[test]
fn the_examples_of_the_guide_run() {
    const PATHS: &str =
        "[path.wlan]\nrate = \"30mbit\"\ndelay = \"10ms\"\n[path.lte]\nrate = \"10mbit\"\ndelay = \"30ms\"\n";
    const WORKLOAD: &str = "[[workload]]\nkind = \"files\"\nsize = \"200kB\"\n";
    let here = directory("scenario-guide");
    let guide = Document::open("docs/scenarios.md");
    let mut count = 0;
    for block in guide.blocks() {
        let text = block.body.join("\n") + "\n";
        let file = block.notes.iter().find_map(|note| note.strip_prefix("file: "));
        if let Some(file) = file {
            std::fs::write(here.join(file), &text).unwrap();
        }
        if block.language != "toml" {
            continue;
        }
        let mut scenario = text.clone();
        if !text.contains("[path.") {
            scenario += PATHS;
        } else if !text.contains("[path.lte]") && text.contains("\"lte\"") {
            scenario += PATHS.split_at(PATHS.find("[path.lte]").unwrap()).1;
        }
        if !text.contains("[[workload]]") {
            scenario += WORKLOAD;
        }
        std::fs::write(here.join("example.toml"), &scenario).unwrap();
        let output = anabranch(&here, &["run", "example.toml", "--repeat", "1", "--set", "run.stop=20s"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "docs/scenarios.md:{}: {said}\n{scenario}", block.line);
        count += 1;
    }
    assert!(count >= 15, "{count} examples");
}
