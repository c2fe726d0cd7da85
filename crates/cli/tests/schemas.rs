//! JSON that commands write has its format, and is valid under the schema that `anabranch schema FORMAT` prints; a
//! document with a further field, without a field or with another type is not. The same holds for each line of events.
//! The log of the proxy is in `proxy.rs`.
//!
//! Testbeds need namespaces and TUN devices: if there are none these tests say on standard error that they were
//! skipped; with `ANABRANCH_REQUIRE_NETNS` set, as in CI, they fail.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_lab::RunHead;
use anabranch_lab::format::{FORMATS, Format, PACKET_EVENTS};
use common::schema::Schema;
use common::{FIELD, STUDY, SWEEP, WORK, anabranch, directory, qlog, succeed};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Commands that print a document, with its format.
const PRINTED: [(&str, &[&str]); 32] = [
    ("runs", &["run", "small.toml", "--repeat", "2", "--json"]),
    ("runs", &["run", "page.toml", "--json"]),
    ("runs", &["run", "small.toml", "--set", "path.b.middlebox=[{kind=\"strip\"}]", "--json"]),
    ("comparison", &["compare", "small.toml", "--repeat", "2", "--schedulers", "min-rtt,ecf:beta=0.5", "--json"]),
    ("comparison", &["compare", "page.toml", "--repeat", "1", "--schedulers", "min-rtt", "--out", "kept", "--json"]),
    ("pairwise", &["compare", "--all", "--schedulers", "single,min-rtt", "--repeat", "1", "--json"]),
    (
        "leaderboard",
        &["rank", "--count", "2", "--repeat", "1", "--schedulers", "min-rtt,late", "--set", WORK, "--json"],
    ),
    (
        "adversary",
        &[
            "rank",
            "--against",
            "round-robin",
            "--schedulers",
            "min-rtt",
            "--tries",
            "4",
            "--find",
            "1",
            "--set",
            WORK,
            "--json",
        ],
    ),
    ("sweep", &["sweep", "sweep.toml", "--out", "parts", "--json"]),
    ("studies", &["study", "study.toml", "--quick", "--out", "studies", "--sensitivity", "--json"]),
    ("study-list", &["study", "--list", "--json"]),
    ("field-studies", &["study", "field.toml", "--repeat", "2", "--out", "fields", "--json"]),
    ("evaluation", &["evaluate", "rfc9743", "--case", "black-hole,high-loss", "--quick", "--out", "flows", "--json"]),
    ("why-capture", &["why", "captures/client.pcapng", "captures/server.pcapng", "--json"]),
    ("why-capture", &["why", "plain/client.pcapng", "--json"]),
    ("twin", &["twin", "captures/client.pcapng", "captures/server.pcapng", "--json"]),
    ("twin", &["twin", "plain/server.pcapng", "--json"]),
    ("why", &["why", "small.toml", "--repeat", "2", "--schedulers", "ecf", "--congestions", "cubic", "--json"]),
    ("kernel-features", &["kernel", "list", "--json"]),
    ("kernel-status", &["kernel", "status", "--json"]),
    ("list", &["list", "schedulers", "--json"]),
    ("list", &["list", "schedulers", "ecf", "--json"]),
    ("list", &["list", "congestion", "--json"]),
    ("list", &["list", "windows", "--json"]),
    ("list", &["list", "ack-paths", "--json"]),
    ("list", &["list", "middleboxes", "--json"]),
    ("list", &["list", "profiles", "--json"]),
    ("list", &["list", "scenarios", "--json"]),
    ("list", &["list", "studies", "--json"]),
    ("inspection", &["inspect", "captures/client.pcapng", "captures/server.pcapng", "--json"]),
    ("recordings", &["trace", "drive.csv", "--windows", "2", "--length", "1s", "--json"]),
    ("inspection", &["inspect", "plain/client.pcapng", "--json"]),
];

/// Files that some of these commands leave, with their format. Each line of the last is a document.
const LEFT: [(&str, &str); 5] = [
    ("study", "studies/study.json"),
    ("field-study", "fields/field.json"),
    ("campaign", "parts/manifest.json"),
    ("run-journal", "kept/runs.jsonl"),
    ("flow-journal", "flows/flows.jsonl"),
];

/// Formats of documents that need a testbed.
const ON_A_TESTBED: [&str; 4] = ["calibration", "testbed", "service", "transfer"];

const PATHS: &str = r#"
[path.a]
rate = "20mbit"
delay = "5ms"
[path.b]
rate = "10mbit"
delay = "15ms"
[host]
congestion = "reno"
"#;

const FILES: &str = "[[workload]]\nkind = \"files\"\nsize = \"100kB\"\n";
const PAGE: &str = "[[workload]]\nkind = \"web\"\npage = { objects = 5, total = \"20kB\" }\n";

/// A directory with the files that the commands read.
fn place(test: &str) -> PathBuf {
    let here = directory(&format!("schemas-{test}"));
    let files = [("small.toml", FILES), ("page.toml", PAGE)].map(|(name, work)| (name, format!("{PATHS}{work}")));
    let others = [("sweep.toml", SWEEP.to_owned()), ("study.toml", STUDY.to_owned()), ("field.toml", FIELD.to_owned())];
    for (name, text) in files.into_iter().chain(others) {
        fs::write(here.join(name), text).unwrap();
    }
    fs::write(here.join("drive.csv"), "time,mbps,rtt_ms\n1900000000,5,40\n1900000001,6,50\n1900000002,0,60\n").unwrap();
    here
}

#[test]
fn documents_of_simulations_and_lists_are_valid() {
    let here = place("simulated");
    succeed(&here, &["run", "small.toml", "--pcap", "captures"]);
    succeed(&here, &["run", "small.toml", "--set", "host.multipath=false", "--pcap", "plain"]);
    for (format, command) in PRINTED {
        Schema::of(format).check(&succeed(&here, command), &command.join(" "));
    }
    for (format, file) in LEFT {
        let text = fs::read_to_string(here.join(file)).unwrap();
        let schema = Schema::of(format);
        match file.ends_with(".jsonl") {
            true => text.lines().for_each(|line| schema.check(line, file)),
            false => schema.check(&text, file),
        }
    }
}

/// They have all kinds of workloads, changes and statistics.
#[test]
fn runs_of_shipped_scenarios_are_valid() {
    let here = place("shipped");
    let schema = Schema::of("runs");
    let list: Value = serde_json::from_str(&succeed(&here, &["list", "scenarios", "--json"])).unwrap();
    let names: Vec<&str> = list["entries"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.len() > 5, "{names:?}");
    for name in names {
        schema.valid(&succeed(&here, &["run", name, "--json"]), name);
    }
}

/// One script that holds, one that does not, and one that is none.
#[test]
fn results_of_scripts_are_valid() {
    let here = place("scripts");
    let good = "listen 80\nsubflow a host 10.1.0.1:80 peer 10.0.0.1:4000\na < S mp_capable\na > S. mp_capable\n";
    let files = [("good", good), ("bad", &format!("{good}a > .\n")), ("none", "lissten 80\n")];
    for (name, text) in files {
        fs::write(here.join(format!("{name}.script")), text).unwrap();
    }
    let output = anabranch(&here, &["script", "--json", "good.script", "bad.script", "none.script"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for result in ["ok", "failed", "refused"] {
        assert!(text.contains(&format!("\"result\": \"{result}\"")), "{text}");
    }
    Schema::of("scripts").check(&text, "script");
}

#[test]
fn documents_of_testbeds_are_valid() {
    let here = place("testbed");
    let program = env!("CARGO_BIN_EXE_anabranch");
    let server = format!("{program} serve --events served.jsonl --qlog served.sqlog --json > served.json");
    let url = "http://$ANABRANCH_ENGINE_SERVER/bytes/100kB";
    let client = format!("{program} fetch {url} --events fetched.jsonl --qlog fetched.sqlog -o /dev/null --json");
    let args = ["testbed", "small.toml", "--pcap", "captures", "--json", "testbed.json", "--server", &server, "--"];
    let output = anabranch(&here, &[&args[..], &["sh", "-c", &client]].concat());
    if !here.join("testbed.json").exists() {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(std::env::var_os("ANABRANCH_REQUIRE_NETNS").is_none(), "no testbed can be made: {said}");
        let _ = writeln!(std::io::stderr(), "SKIPPED: no testbed can be made here: {said}");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    Schema::of("transfer").check(&String::from_utf8(output.stdout).unwrap(), "fetch");
    for (format, file) in [("testbed", "testbed.json"), ("service", "served.json")] {
        Schema::of(format).check(&fs::read_to_string(here.join(file)).unwrap(), file);
    }
    for file in ["served.jsonl", "fetched.jsonl"] {
        let text = fs::read_to_string(here.join(file)).unwrap();
        assert!(text.starts_with("{\"format\":\"connection-events\",\"format_version\":1}\n{\"time_s\":"), "{text}");
        Schema::of("connection-events").check_lines(&text, file);
        the_qlog_has_these_events(&text, &fs::read_to_string(here.join(file.replace("jsonl", "sqlog"))).unwrap(), file);
    }
    let calibration = succeed(&here, &["calibrate", "small.toml", "--repeat", "1", "--output", "file.json", "--json"]);
    assert_eq!(fs::read_to_string(here.join("file.json")).unwrap(), calibration);
    Schema::of("calibration").check(&calibration, "calibrate");
}

/// The file of qlog is valid, and has each event of the lines, and metrics beside them.
fn the_qlog_has_these_events(lines: &str, file: &str, about: &str) {
    let events = qlog::check(file, about);
    let (metrics, others): (Vec<_>, Vec<_>) =
        events.iter().partition(|event| event["name"] == "anabranch:recovery_metrics_updated");
    assert!(!metrics.is_empty(), "{about}: {others:?}");
    let lines = lines.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines = lines.map(|line| (line["event"].as_str().unwrap().replace('-', "_"), line["connection"].to_string()));
    let others = others.into_iter().map(|event| {
        let name = event["name"].as_str().unwrap().trim_start_matches("anabranch:").to_owned();
        (name, event["group_id"].as_str().unwrap().to_owned())
    });
    assert_eq!(others.collect::<Vec<_>>(), lines.collect::<Vec<_>>(), "{about}");
}

#[test]
fn the_events_of_each_run_begin_with_their_format_and_are_valid() {
    let here = place("events");
    succeed(&here, &["run", "small.toml", "--seed", "4", "--repeat", "2", "--events", "events.jsonl"]);
    let text = fs::read_to_string(here.join("events.jsonl")).unwrap();
    let head = |seed| json!(PACKET_EVENTS.document(RunHead { seed })).to_string();
    let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("{\"format\":")).collect();
    assert_eq!(heads, [head(4), head(5)]);
    assert!(text.starts_with(heads[0]), "{heads:?}");
    Schema::of("packet-events").check_lines(&text, "run --events");
}

#[test]
fn every_format_of_documents_is_among_these() {
    let printed = PRINTED.iter().map(|(format, _)| *format);
    let left = LEFT.iter().map(|(format, _)| *format);
    let mut tested: BTreeSet<&str> = printed.chain(left).chain(ON_A_TESTBED).collect();
    tested.insert("scripts");
    assert_eq!(tested, FORMATS.iter().map(|format| format.name).collect());
}

#[test]
fn schemas_are_listed_and_an_unknown_format_is_refused() {
    let here = Path::new(".");
    let listed = succeed(here, &["schema", "--list"]);
    let names: Vec<&str> = listed.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert!(Format::all().map(|format| format.name).eq(names));
    for (name, said) in [("leaderbord", "did you mean `leaderboard`?"), ("nothing", "accepted: runs, ")] {
        let output = anabranch(here, &["schema", name]);
        let error = String::from_utf8(output.stderr).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(output.stdout.is_empty() && error.contains(said), "{error}");
    }
}
