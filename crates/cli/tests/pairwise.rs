//! Every scheduler against every other, as far as docs/pairwise.txt remembers: whatever changes a decision changes a
//! figure there. `BLESS=1 cargo test -p anabranch-cli --test pairwise` accepts what came out; CONTRIBUTING.md says
//! when.
#![allow(clippy::unwrap_used)]

mod common;

use common::{directory, succeed, without_build};
use std::fs;
use std::path::Path;

#[test]
fn the_figures_are_those_of_the_last_time() {
    let found = without_build(&succeed(&directory("pairwise"), &["compare", "--all", "--repeat", REPEAT]));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pairwise.txt");
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, found).unwrap();
        return;
    }
    let held = fs::read_to_string(path).unwrap_or_default();
    let mut changed: Vec<String> = Vec::new();
    for line in held.lines().filter(|line| !found.lines().any(|other| other == *line)) {
        changed.push(format!("- {line}"));
    }
    for line in found.lines().filter(|line| !held.lines().any(|other| other == *line)) {
        changed.push(format!("+ {line}"));
    }
    assert!(
        held == found,
        "figures changed; if that is meant: BLESS=1 cargo test -p anabranch-cli --test pairwise\n{}",
        changed.join("\n")
    );
}

/// Enough to see a change, and few enough for every test run.
const REPEAT: &str = "3";

#[test]
fn the_json_says_who_beat_whom() {
    let args = ["compare", "--all", "--schedulers", "single,min-rtt,late", "--repeat", "4", "--json"];
    let text = succeed(&directory("pairwise-json"), &args);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let scenarios = json["scenarios"].as_array().unwrap();
    assert_eq!((scenarios.len(), json["schedulers"].as_array().unwrap().len()), (9, 3));
    let symmetric = scenarios.iter().find(|bout| bout["scenario"] == "symmetric").unwrap();
    let pairs = symmetric["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 3);
    let of = |name: &'static str| move |pair: &&serde_json::Value| pair["a"] == name || pair["b"] == name;
    let two = pairs.iter().filter(of("min-rtt")).find(of("single")).unwrap();
    // Two like paths are nearly twice one; who has more to its credit over all scenarios stands first.
    let mean = two["speed"]["mean"].as_f64().unwrap();
    let ratio = if two["a"] == "min-rtt" { mean } else { 1.0 / mean };
    assert!((1.5..2.1).contains(&ratio) && two["winner"] == "min-rtt", "{two}");
    assert!(two["speed"]["low"].as_f64().unwrap() < mean && mean < two["speed"]["high"].as_f64().unwrap());
    let standings = json["schedulers"].as_array().unwrap();
    let credit = |it: &serde_json::Value| it["won"].as_i64().unwrap() - it["lost"].as_i64().unwrap();
    assert!(standings.is_sorted_by(|a, b| credit(a) >= credit(b)), "{standings:?}");
    let last = standings.last().unwrap();
    assert!(last["parameters"].is_object());
}
