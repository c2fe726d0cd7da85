//! `anabranch list`: what a scenario can name, from the one registry.

use crate::args::{ListArgs, What};
use crate::failure::Failure;
use crate::output;
use anabranch_engine::Profile;
use anabranch_lab::Scenario;
use anabranch_lab::shipped::SHIPPED;
use anabranch_policy::registry::{
    ACK_PATHS, CONGESTION, Domain, Entry, Parameter, REINJECTIONS, SCHEDULERS, Value, WINDOWS,
};
use anabranch_report::{Align, Table};
use anabranch_sim::{MIDDLEBOXES, MiddleboxInfo};
use serde::Serialize;

/// One line of a list.
#[derive(Serialize)]
struct Item {
    name: String,
    about: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    paper: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<ParameterItem>,
}

/// One parameter of a policy.
#[derive(Serialize)]
struct ParameterItem {
    name: &'static str,
    about: &'static str,
    unit: &'static str,
    default: serde_json::Value,
    accepted: String,
}

/// Prints a list.
pub fn list(args: &ListArgs) -> Result<(), Failure> {
    let items = match args.what {
        What::Schedulers => entries(SCHEDULERS),
        What::Congestion => entries(CONGESTION),
        What::Windows => entries(WINDOWS),
        What::AckPaths => entries(ACK_PATHS),
        What::Reinjection => entries(REINJECTIONS),
        What::Middleboxes => middleboxes(),
        What::Profiles => Profile::NAMES.iter().map(|name| plain(name, profile_about(name))).collect(),
        What::Scenarios => scenarios()?,
    };
    if args.json {
        let json = serde_json::to_string_pretty(&items).map_err(|error| Failure::writing("JSON", error))?;
        return output::print(&format!("{json}\n"));
    }
    output::print(&text(&items))
}

fn text(items: &[Item]) -> String {
    let mut table = Table::new([("name", Align::Left), ("what it does", Align::Left), ("from", Align::Left)]);
    for item in items {
        table.row([item.name.clone(), item.about.clone(), item.paper.clone().unwrap_or_default()]);
    }
    let mut text = table.to_string();
    if items.iter().any(|item| !item.parameters.is_empty()) {
        let columns = ["policy", "parameter", "default", "unit", "accepted", "what it does"];
        let mut table = Table::new(columns.map(|name| (name, Align::Left)));
        for item in items {
            for p in &item.parameters {
                let (default, unit) = (shown(&p.default), p.unit.to_owned());
                let name = p.name.to_owned();
                table.row([item.name.clone(), name, default, unit, p.accepted.clone(), p.about.to_owned()]);
            }
        }
        text += &format!("\n{table}");
    }
    text
}

/// Whole numbers without a decimal point.
fn shown(default: &serde_json::Value) -> String {
    default.as_f64().map_or_else(|| default.to_string(), |number| number.to_string())
}

fn entries<T: ?Sized>(table: &[Entry<T>]) -> Vec<Item> {
    let item = |entry: &Entry<T>| Item {
        name: entry.name.to_owned(),
        about: entry.about.to_owned(),
        paper: entry.paper.map(str::to_owned),
        parameters: entry.parameters.iter().map(parameter).collect(),
    };
    table.iter().map(item).collect()
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
    Item { name: name.to_owned(), about: about.to_owned(), paper: None, parameters: Vec::new() }
}

fn middleboxes() -> Vec<Item> {
    let item = |info: &MiddleboxInfo| {
        let keys = if info.keys.is_empty() { String::new() } else { format!(": {}", info.keys) };
        let paper = Some(info.source.to_owned());
        Item { paper, ..plain(info.name, &format!("{}{keys}", info.about)) }
    };
    MIDDLEBOXES.iter().map(item).collect()
}

fn profile_about(name: &str) -> &'static str {
    match name {
        "linux" => "Linux 6.x: IW 10, SACK, RACK and TLP, delayed ACKs, RTO at least SRTT + 200 ms, TSQ",
        "linux-3.14" => "Linux 3.14 with MPTCP 0.89: as linux, with early retransmit and without RACK",
        "ns3" => "the MPTCP models of ns-3: NewReno without SACK, no delayed ACKs",
        "rfc" => "plain RFC values: RTO at least 1 s, IW 3, Nagle",
        _ => "",
    }
}

fn scenarios() -> Result<Vec<Item>, Failure> {
    let item = |name: &str| Ok(plain(name, Scenario::load(name, &[])?.about.as_deref().unwrap_or_default()));
    SHIPPED.iter().map(|shipped| item(shipped.name)).collect()
}
