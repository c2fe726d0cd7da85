//! Version, scenario and seed do not tell two builds apart: every result names the build that made it.
#![allow(clippy::unwrap_used)]

mod common;

use common::{build, directory, succeed};
use std::fs;

const STUDY: &str = r#"
title = "One run"
paper = "TEST"
figure = "Fig. 1"
about = "Nothing much."
[scenario.path.a]
rate = "20mbit"
delay = "5ms"
[[scenario.workload]]
kind = "files"
size = "10kB"
[[system]]
name = "TCP"
set = ["host.multipath=false"]
[repeat]
full = 1
[[plot]]
id = "a"
title = "Completion"
metric = "completion-time"
"#;

#[test]
fn every_result_names_its_build() {
    let here = directory("build-id");
    let build = build();
    assert!(build.len() == 16 && build.bytes().all(|byte| byte.is_ascii_hexdigit()), "{build}");
    let args = ["symmetric", "--set", "workload.0.duration=100ms", "--csv", "rows.csv", "--report", "page.html"];
    let pcap = ["--pcap", "captures"];
    let json = succeed(&here, &[&["run"], &args[..], &pcap, &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["build"].as_str(), json["runs"][0]["build"].as_str()), (Some(&*build), Some(&*build)));
    let holds = |file: &str| {
        let bytes = fs::read(here.join(file)).unwrap();
        assert!(bytes.windows(build.len()).any(|part| part == build.as_bytes()), "{file} does not name the build");
    };
    ["rows.csv", "page.html", "captures/client.pcapng", "captures/server.pcapng"].into_iter().for_each(holds);

    let few = ["--schedulers", "min-rtt", "--repeat", "2"];
    let text = succeed(&here, &[&["compare"], &args[..], &few].concat());
    assert!(text.contains(&format!("(build {build})")), "{text}");
    ["rows.csv", "page.html"].into_iter().for_each(holds);

    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/close/abort.script");
    for args in [&["inspect", "captures/client.pcapng", "--json"][..], &["script", script, "--json"]] {
        let json: serde_json::Value = serde_json::from_str(&succeed(&here, args)).unwrap();
        assert_eq!(json["build"].as_str(), Some(&*build), "{args:?}");
        assert!(json["version"].is_string(), "{args:?}");
    }

    fs::write(here.join("mine.toml"), STUDY).unwrap();
    let text = succeed(&here, &["study", "mine.toml", "--report", "page.html"]);
    assert!(text.contains(&format!("(build {build})")), "{text}");
    let files = ["mine.json", "mine.csv", "mine.parquet", "runs.jsonl"].map(|it| format!("anabranch-studies/{it}"));
    files.iter().map(String::as_str).chain(["page.html"]).for_each(holds);
}
