//! `anabranch why` of a scenario: what it tries unless it is told how much, and the answer that is left when it is
//! stopped.
#![allow(clippy::unwrap_used)]

mod common;

use common::schema::Schema;
use common::{directory, succeed};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn what_is_not_tried_is_listed_in_text_page_and_json() {
    let here = directory("why-brief");
    let words = ["why", "symmetric", "--report", "why.html"];
    let text = succeed(&here, &words);
    let (listed, beyond) = (text.split("Not tried:").nth(1).unwrap(), "--repeat N tries all");
    let listed = listed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(listed.contains(beyond) && listed.contains("plain TCP on "), "{text}");
    let page = std::fs::read_to_string(here.join("why.html")).unwrap();
    assert!(page.contains("Not tried: ") && page.contains(beyond));
    let text = succeed(&here, &["why", "symmetric", "--json"]);
    Schema::of("why").check(&text, "why symmetric --json");
    let json: Value = serde_json::from_str(&text).unwrap();
    let number = |key: &str| json[key].as_u64().unwrap();
    assert!(number("events") <= number("budget") && number("repeat") == 1 && json["stopped"] == false, "{json:#}");
    // What somebody asks for is tried, whatever it takes.
    let asked = succeed(&here, &["why", "symmetric", "--schedulers", "redundant,round-robin,late,ecf", "--json"]);
    let json: Value = serde_json::from_str(&asked).unwrap();
    let tried: Vec<&str> =
        json["counterfactuals"].as_array().unwrap().iter().map(|it| it["what"].as_str().unwrap()).collect();
    for name in ["redundant", "round-robin", "late", "ecf"] {
        assert!(tried.contains(&format!("scheduler {name}").as_str()), "{name}: {tried:?}");
    }
    // With a number of repetitions all are.
    let all = succeed(&here, &["why", "symmetric", "--repeat", "1", "--json"]);
    assert!(!all.contains(beyond) && !all.contains("much more work"));
    assert!(serde_json::from_str::<Value>(&all).unwrap()["budget"].is_null());
}

/// More runs than anybody waits for, and a signal after two seconds; on a machine on which the process is not yet there
/// to take it, later.
#[cfg(unix)]
#[test]
fn a_signal_ends_the_work_and_leaves_an_answer() {
    let here = directory("why-stopped");
    for signal in ["INT", "TERM"] {
        let stopped_after = |seconds: u64| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
            command.current_dir(&here).args(["why", "wlan-lte", "--repeat", "100000", "--json"]);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            std::thread::sleep(Duration::from_secs(seconds));
            let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
            assert!(sent.success());
            child.wait_with_output().unwrap()
        };
        let outputs = [2, 8, 30].map(|seconds| move || stopped_after(seconds));
        let output = outputs.into_iter().map(|make| make()).find(|it| it.status.code().is_some()).unwrap();
        assert!(output.status.success(), "{signal}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        Schema::of("why").check(&text, signal);
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["stopped"], true);
        assert!((1..100_000).contains(&json["repeat"].as_u64().unwrap()), "{}", json["repeat"]);
        assert!(json["sentence"].as_str().unwrap().contains("It was stopped"), "{}", json["sentence"]);
    }
}
