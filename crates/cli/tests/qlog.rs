//! `run --qlog`: the file is valid under the schema, has every event that a run with losses and failover has, the same
//! packets as `--events`, and the same bytes each time. Those of `serve` and `fetch` are in `schemas.rs`.
#![allow(clippy::unwrap_used)]

mod common;

use common::{directory, qlog, succeed};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Two paths that lose packets; the first one damages some, and goes down in the middle of the file.
const SCENARIO: &str = r#"
[path.a]
rate = "20mbit"
delay = "5ms"
loss = "1%"
corrupt = "1%"
[path.b]
rate = "10mbit"
delay = "15ms"
loss = "1%"
[host]
congestion = "bbr"
[[workload]]
kind = "files"
size = "1MB"
count = 2
[[change]]
at = "0.3s"
path = "a"
state = "down"
"#;

fn written(here: &Path, args: &[&str], file: &str) -> String {
    succeed(here, &[&["run", "lossy.toml", "--qlog", file], args].concat());
    fs::read_to_string(here.join(file)).unwrap()
}

fn place(test: &str) -> std::path::PathBuf {
    let here = directory(&format!("qlog-{test}"));
    fs::write(here.join("lossy.toml"), SCENARIO).unwrap();
    here
}

fn text<'a>(event: &'a Value, field: &str) -> &'a str {
    event[field].as_str().unwrap_or_default()
}

#[test]
fn a_run_with_losses_and_failover_has_every_event_of_one_and_is_valid() {
    let here = place("events");
    let events = qlog::check(&written(&here, &[], "out.sqlog"), "run --qlog");
    let names: BTreeSet<&str> = events.iter().map(|event| text(event, "name")).collect();
    let expected = [
        "anabranch:accepted",
        "anabranch:closed",
        "anabranch:congestion_state_updated",
        "anabranch:connected",
        "anabranch:packet_dropped",
        "anabranch:packet_lost",
        "anabranch:packet_received",
        "anabranch:packet_sent",
        "anabranch:packets_acked",
        "anabranch:peer_finished",
        "anabranch:recovery_metrics_updated",
        "anabranch:subflow_closed",
        "anabranch:subflow_established",
        "simulation:scenario",
    ];
    assert_eq!(names, expected.into_iter().collect());
    let mut last = 0.0;
    for event in &events {
        let time = event["time"].as_f64().unwrap();
        assert!(time >= last, "time goes on: {event}");
        last = time;
    }
}

/// Packets that a sender takes for lost or acknowledged were sent, with the number by which the other end knows them.
#[test]
fn numbers_join_what_is_sent_received_acknowledged_and_lost() {
    let here = place("numbers");
    let events = qlog::texts(&written(&here, &[], "out.sqlog"));
    let number = |event: &Value| event["data"]["header"]["packet_number"].as_u64();
    let mut sent = BTreeMap::new();
    let (mut received, mut lost, mut acked) = (0, 0, 0);
    for event in &events {
        match text(event, "name") {
            "anabranch:packet_sent" => _ = sent.insert(number(event).unwrap(), event),
            "anabranch:packet_received" => {
                let origin = sent[&number(event).unwrap()];
                assert_eq!(origin["data"]["header"], event["data"]["header"], "{event}");
                assert_ne!(origin["group_id"], event["group_id"], "{event}");
                received += 1;
            }
            "anabranch:packet_lost" => {
                let origin = sent[&number(event).unwrap()];
                assert_eq!(origin["tuple"], event["tuple"], "{event}");
                assert_eq!(origin["data"]["header"]["seq"], event["data"]["header"]["seq"], "{event}");
                lost += 1;
            }
            "anabranch:packets_acked" => {
                for number in event["data"]["packet_numbers"].as_array().unwrap() {
                    assert_eq!(sent[&number.as_u64().unwrap()]["tuple"], event["tuple"], "{event}");
                    acked += 1;
                }
            }
            _ => {}
        }
    }
    assert!(received > 500 && lost > 5 && acked > 500, "{received} {lost} {acked}");
}

#[test]
fn packets_are_those_of_the_events_file() {
    let here = place("same");
    let events = qlog::texts(&written(&here, &["--events", "events.jsonl"], "out.sqlog"));
    let lines = fs::read_to_string(here.join("events.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let packet = |event: &Value| {
        let kind = text(event, "name").strip_prefix("anabranch:packet_")?.to_owned();
        let (data, header) = (&event["data"], &event["data"]["header"]);
        let is_of_a_host = ["sent", "received", "dropped"].contains(&kind.as_str());
        let nanoseconds = (event["time"].as_f64().unwrap() * 1e6).round() as u64;
        let kind = if kind == "dropped" { "corrupted".to_owned() } else { kind };
        let numbers = ["seq", "ack", "window", "dsn", "data_ack"].map(|field| header[field].as_u64());
        let length = data["raw"]["payload_length"].as_u64();
        is_of_a_host.then(|| (nanoseconds, text(event, "group_id").to_owned(), kind, numbers, length))
    };
    let line = |line: &Value| {
        let numbers = ["seq", "ack", "window", "dsn", "data_ack"].map(|field| line[field].as_u64());
        let (host, kind) = (text(line, "host").to_owned(), text(line, "event").to_owned());
        (line["at_ns"].as_u64().unwrap(), host, kind, numbers, line["length"].as_u64())
    };
    assert!(lines.len() > 1000);
    assert_eq!(events.iter().filter_map(packet).collect::<Vec<_>>(), lines.iter().map(line).collect::<Vec<_>>());
}

#[test]
fn a_file_has_the_same_bytes_each_time_and_looking_changes_nothing() {
    let here = place("twice");
    let args = ["--seed", "3", "--repeat", "3", "--json"];
    let first = written(&here, &[&args[..], &["--jobs", "1"]].concat(), "first.sqlog");
    let second = written(&here, &[&args[..], &["--jobs", "3"]].concat(), "second.sqlog");
    assert!(first == second, "the files differ");
    let events = qlog::check(&first, "run --qlog --repeat");
    let groups: BTreeSet<&str> = events.iter().map(|event| text(event, "group_id")).collect();
    let seeds = ["seed-3", "seed-4", "seed-5"];
    let expected: BTreeSet<String> =
        seeds.iter().flat_map(|seed| ["client", "server"].map(|host| format!("{seed}/{host}"))).collect();
    assert_eq!(groups, expected.iter().map(String::as_str).collect());
    let digest = |more: &[&str]| {
        let json: Value =
            serde_json::from_str(&succeed(&here, &[&["run", "lossy.toml", "--json"], more].concat())).unwrap();
        json["runs"][0]["events_digest"].clone()
    };
    assert_eq!(digest(&["--qlog", "other.sqlog"]), digest(&[]));
}
