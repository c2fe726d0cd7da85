//! Many runs of `anabranch run`: what is written batch by batch is what one run after the other gives, and what the
//! text leaves open is open in JSON.
#![allow(clippy::unwrap_used)]

mod common;

use common::{directory, succeed};
use serde_json::{Value, json};
use std::fs;

const SCENARIO: &str = "[path.a]\nrate = \"20mbit\"\ndelay = \"5ms\"\nloss = \"2%\"\n\
                        [[workload]]\nkind = \"files\"\nsize = \"5kB\"\n";

#[test]
fn runs_are_written_in_batches_as_if_at_once() {
    let here = directory("runs_are_written_in_batches_as_if_at_once");
    fs::write(here.join("ok.toml"), SCENARIO).unwrap();
    // More than a batch, which has 256.
    let many = ["run", "ok.toml", "--repeat", "300", "--csv", "all.csv", "--events", "all.jsonl"];
    let json: Value = serde_json::from_str(&succeed(&here, &[&many[..], &["--json"]].concat())).unwrap();
    let runs = json["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &json["repeat"], &json["format"]), (300, &json!(300), &json!("runs")));
    let seeds: Vec<u64> = runs.iter().map(|run| run["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, (1..=300).collect::<Vec<u64>>());
    let csv = fs::read_to_string(here.join("all.csv")).unwrap();
    assert_eq!((csv.lines().count(), csv.matches("seed").count()), (301, 1));
    let events = fs::read_to_string(here.join("all.jsonl")).unwrap();
    assert_eq!(events.lines().filter(|line| line.contains("\"seed\":")).count(), 300);
    for seed in [1u64, 256, 257, 300] {
        let alone = ["run", "ok.toml", "--seed", &seed.to_string(), "--csv", "one.csv", "--json"];
        let alone: Value = serde_json::from_str(&succeed(&here, &alone)).unwrap();
        assert_eq!(runs[seed as usize - 1], alone["runs"][0], "seed {seed}");
        let one = fs::read_to_string(here.join("one.csv")).unwrap();
        let lines = [&csv, &one].map(|csv| csv.lines().next().unwrap().to_owned());
        assert_eq!(lines[0], lines[1]);
        assert_eq!(csv.lines().nth(seed as usize), one.lines().nth(1), "seed {seed}");
    }
    let table = succeed(&here, &["run", "ok.toml", "--repeat", "300"]);
    let rows = table.lines().filter(|line| line.split_whitespace().next().is_some_and(|it| it.parse::<u64>().is_ok()));
    assert_eq!(rows.count(), 300, "{table}");
    assert!(table.contains("mean completion time [s] "), "{table}");
}

#[test]
fn an_unfinished_transfer_has_no_goodput() {
    let here = directory("an_unfinished_transfer_has_no_goodput");
    let slow = SCENARIO.replace("20mbit", "100kbit").replace("5kB", "1MB") + "[run]\nstop = \"2s\"\n";
    fs::write(here.join("slow.toml"), slow).unwrap();
    fs::write(here.join("ok.toml"), SCENARIO).unwrap();
    let run = |file: &str| -> Value {
        let json: Value = serde_json::from_str(&succeed(&here, &["run", file, "--json"])).unwrap();
        json["runs"][0].clone()
    };
    let (slow, whole) = (run("slow.toml"), run("ok.toml"));
    assert_eq!((&slow["unfinished"], &whole["unfinished"]), (&json!(1), &json!(0)));
    for name in ["goodput_bps", "mean_goodput_bps"] {
        assert!(slow[name].is_null() && whole[name].is_number(), "{name}: {} and {}", slow[name], whole[name]);
    }
    assert!(slow["path_goodput_bps"][0].is_null() && whole["path_goodput_bps"][0].is_number());
    let text = succeed(&here, &["run", "slow.toml"]);
    assert!(text.lines().any(|line| line.contains("unfinished") && line.split_whitespace().count() == 6), "{text}");
}
