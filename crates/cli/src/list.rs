//! `anabranch list`: what a scenario can name, from the catalogue; and what one policy is, from its source.

use crate::args::What;
use crate::completion::Names;
use crate::failure::Failure;
use crate::{documentation, output};
use anabranch_engine::Profile;
use anabranch_lab::format::LIST;
use anabranch_paths::{MIDDLEBOXES, MiddleboxInfo};
use anabranch_policy::registry::{Domain, Entry, Kind, Parameter, Value};
use anabranch_policy::{Catalogue, Table};
use anabranch_report::hang;
use anabranch_scenario::Scenario;
use anabranch_scenario::shipped::SHIPPED;
use anabranch_study::field::Field;
use anabranch_study::study::Study;
use anabranch_units::nearest;
use clap::{Args as ClapArgs, ValueEnum};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::sync::Arc;

/// Arguments of `list`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch list
  anabranch list schedulers
  anabranch list schedulers late
  anabranch list congestion --json")]
pub struct ListArgs {
    /// Kind of entry to list; the kinds themselves unless given.
    pub what: Option<What>,
    /// Show only the entry of this name, with its documentation.
    #[arg(add = Names::of_list())]
    pub name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// One entry of a list.
#[derive(Serialize, JsonSchema)]
struct Item {
    name: String,
    about: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    paper: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<ParameterItem>,
    /// Markdown; only where one entry is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    documentation: Option<String>,
}

/// One parameter of a policy.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Parameter")]
struct ParameterItem {
    name: &'static str,
    about: &'static str,
    unit: &'static str,
    #[schemars(schema_with = "scalar")]
    default: serde_json::Value,
    accepted: String,
}

/// Returns the schema of a default: parameters are numbers, flags or names.
fn scalar(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["number", "boolean", "string"] })
}

/// Contents of the JSON of a list.
#[derive(Serialize, JsonSchema)]
pub struct List<'a> {
    entries: &'a [Item],
}

/// Prints a list, or one entry of it with its documentation.
pub fn list(catalogue: &Arc<Catalogue>, args: &ListArgs) -> Result<(), Failure> {
    let items = args.what.map_or_else(|| Ok(kinds()), |what| items(catalogue, what))?;
    let text = match &args.name {
        None if args.json => output::json(&LIST, &List { entries: &without_documentation(items) })?,
        None if args.what.is_none() => {
            text(&items, output::width())
                + "\nThe entries of one: its name behind this command, as in `anabranch list schedulers`.\n"
        }
        None => text(&items, output::width()),
        Some(name) => {
            let item = items.iter().find(|item| item.name == *name).ok_or_else(|| unknown(name, &items))?;
            match args.json {
                true => output::json(&LIST, &List { entries: std::slice::from_ref(item) })?,
                false => in_full(item, output::width()),
            }
        }
    };
    output::print(&text)
}

/// Returns name and description of each entry of a list.
pub fn names(catalogue: &Arc<Catalogue>, list: What) -> Result<Vec<(String, String)>, Failure> {
    Ok(items(catalogue, list)?.into_iter().map(|item| (item.name, item.about)).collect())
}

fn items(catalogue: &Arc<Catalogue>, list: What) -> Result<Vec<Item>, Failure> {
    Ok(match list {
        What::Schedulers => entries(&catalogue.schedulers),
        What::Congestion => entries(&catalogue.congestion),
        What::Windows => entries(&catalogue.windows),
        What::AckPaths => entries(&catalogue.ack_paths),
        What::Reinjection => entries(&catalogue.reinjections),
        What::FirstPaths => entries(&catalogue.first_paths),
        What::Queues => entries(&catalogue.queues),
        What::Middleboxes => middleboxes(),
        What::Profiles => Profile::NAMES.iter().map(|name| plain(name, profile_about(name))).collect(),
        What::Scenarios => scenarios(catalogue)?,
        What::Studies => studies()?,
    })
}

fn without_documentation(items: Vec<Item>) -> Vec<Item> {
    items.into_iter().map(|item| Item { documentation: None, ..item }).collect()
}

fn unknown(name: &str, items: &[Item]) -> Failure {
    let names: Vec<&str> = items.iter().map(|item| item.name.as_str()).collect();
    let near = nearest(name, names.iter().copied()).map_or(String::new(), |near| format!("did you mean `{near}`? "));
    let help = format!("{near}accepted: {}", names.join(", "));
    Failure::Refused(miette::miette!(help = help, "this list has no entry `{name}`"))
}

/// Each entry by name, with its line, its paper and its parameters beside and below.
fn text(items: &[Item], width: usize) -> String {
    let column = items.iter().map(|item| item.name.chars().count()).max().unwrap_or(0);
    let entry = |item: &Item| {
        let paper = item.paper.as_ref().map_or(String::new(), |paper| format!(" [{paper}]"));
        let mut text = hang(&format!("{:<column$}  ", item.name), &format!("{}{paper}", item.about), width);
        for parameter in &item.parameters {
            text += &hang(&format!("{}  ", " ".repeat(column)), &brief(parameter), width);
        }
        text
    };
    // Entries with parameters stand apart, so that one can see where the next begins.
    let between = if items.iter().any(|item| !item.parameters.is_empty()) { "\n" } else { "" };
    let all: Vec<String> = items.iter().map(entry).collect();
    let hint = match items.iter().any(|item| item.documentation.is_some()) {
        true => "\nMore on one of them: its name behind this command.\n",
        false => "",
    };
    all.join(between) + hint
}

/// One entry with its documentation and its parameters.
fn in_full(item: &Item, width: usize) -> String {
    let paper = item.paper.as_ref().map_or(String::new(), |paper| format!(" [{paper}]"));
    let mut text = hang(&format!("{}  ", item.name), &format!("{}{paper}", item.about), width);
    if let Some(markdown) = item.documentation.as_ref().filter(|text| !text.is_empty()) {
        text += &format!("\n{}", documentation::laid_out(markdown, width));
    }
    if !item.parameters.is_empty() {
        text += "\nParameters:\n";
    }
    for parameter in &item.parameters {
        text += &format!("  {}\n", value(parameter));
        text += &hang("      ", parameter.about, width);
        text += &hang("      ", &format!("accepted: {}", parameter.accepted), width);
    }
    text
}

/// `beta = 0.25 (0 to 10): hysteresis β`
fn brief(parameter: &ParameterItem) -> String {
    match parameter.default {
        // The values of a flag need no explanation.
        serde_json::Value::Bool(_) => format!("{}: {}", value(parameter), parameter.about),
        _ => format!("{} ({}): {}", value(parameter), parameter.accepted, parameter.about),
    }
}

/// `interval = 10 ms`
fn value(parameter: &ParameterItem) -> String {
    let ParameterItem { name, unit, default, .. } = parameter;
    // Whole numbers without a decimal point.
    let default = default.as_f64().map_or_else(|| default.to_string(), |number| number.to_string());
    match unit.is_empty() {
        true => format!("{name} = {default}"),
        false => format!("{name} = {default} {unit}"),
    }
}

fn entries<T: Kind + ?Sized>(table: &Table<T>) -> Vec<Item> {
    let item = |entry: &Entry<T>| Item {
        name: entry.name.to_string(),
        about: entry.about.to_string(),
        paper: entry.paper.map(str::to_owned),
        parameters: entry.parameters.iter().map(parameter).collect(),
        documentation: Some(documentation::of(&entry.source)),
    };
    table.entries().iter().map(item).collect()
}

fn parameter(p: &Parameter) -> ParameterItem {
    let default = match p.domain.default_value() {
        Value::Number(number) => number.into(),
        Value::Flag(flag) => flag.into(),
        Value::Text(text) => text.into(),
    };
    let accepted = match p.domain {
        Domain::Number { min, max, .. } => format!("{min} to {max}"),
        other => other.to_string(),
    };
    ParameterItem { name: p.name, about: p.about, unit: p.unit, default, accepted }
}

fn plain(name: &str, about: &str) -> Item {
    let (name, about) = (name.to_owned(), about.to_owned());
    Item { name, about, paper: None, parameters: Vec::new(), documentation: None }
}

/// The lists that there are.
fn kinds() -> Vec<Item> {
    let kind = |what: &What| {
        let value = what.to_possible_value()?;
        Some(plain(value.get_name(), &value.get_help().map(ToString::to_string).unwrap_or_default()))
    };
    What::value_variants().iter().filter_map(kind).collect()
}

fn middleboxes() -> Vec<Item> {
    let item = |info: &MiddleboxInfo| {
        let keys: Vec<String> = info.keys.iter().map(ToString::to_string).collect();
        let keys = if keys.is_empty() { String::new() } else { format!(": {}", keys.join(", ")) };
        let paper = Some(info.source.to_owned());
        Item { paper, ..plain(info.name, &format!("{}{keys}", info.about)) }
    };
    MIDDLEBOXES.iter().map(item).collect()
}

fn profile_about(name: &str) -> &'static str {
    match name {
        "anabranch" => {
            "our own: the TCP of linux, our scheduler, connections begun where they are answered first, insured data"
        }
        "linux" => {
            "Linux 6.18 (30 November 2025) as it comes: linux-burst, cubic-kernel, upstream, receive buffers that tune \
             themselves to 32 MiB, send buffers to 4 MiB for each subflow"
        }
        "linux-4.1" => {
            "Linux 4.1 with MPTCP 0.91: early retransmit, no RACK, older receive tuning, half of the buffer is window"
        }
        "linux-3.14" => "Linux 3.14 with MPTCP 0.89: as linux-4.1, with more in the first hop's queue",
        "newreno" => "NewReno without SACK and delayed ACKs, as a TCP of ns-3 has it",
        "mptcp-ns3" => {
            "the MPTCP of ns-3.6 that LATE and RBP cite: data ahead of the stream unacknowledged, halving on loss"
        }
        "rfc" => "plain RFC values: RTO at least 1 s, IW 3, Nagle",
        _ => "",
    }
}

fn scenarios(catalogue: &Arc<Catalogue>) -> Result<Vec<Item>, Failure> {
    let item = |name: &str| {
        let about = Scenario::load(catalogue, name, &[])?.about;
        Ok(plain(name, about.as_deref().unwrap_or_default()))
    };
    SHIPPED.iter().map(|shipped| item(shipped.name)).collect()
}

fn studies() -> Result<Vec<Item>, Failure> {
    let item = |name: &str| {
        let study = Study::load(name)?;
        let paper = Some(format!("{}, {}", study.paper(), study.figure()));
        Ok(Item { paper, ..plain(name, study.title()) })
    };
    let field = |name: &str| {
        let field = Field::load(name)?;
        Ok(Item { paper: Some("field study".to_owned()), ..plain(name, field.title()) })
    };
    Study::names().map(item).chain(Field::names().map(field)).collect()
}
