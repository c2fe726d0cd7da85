//! `anabranch evaluate` as someone at a terminal has it: verdicts, commands that repeat them, files, errors.
#![allow(clippy::unwrap_used)]

mod common;

use common::{directory, refused, succeed};
use serde_json::Value;
use std::fs;

const QUICK: [&str; 7] = ["evaluate", "rfc9743", "--case", "black-hole,shallow-buffers", "--quick", "--out", "kept"];

#[test]
fn verdicts_name_the_command_that_repeats_the_worst_run() {
    let here = directory("evaluate-verdicts");
    let text = succeed(&here, &[&QUICK[..], &["--control", "bbr", "--report", "page.html"]].concat());
    assert!(text.contains("1 cases pass, 1 fail"), "{text}");
    let lines = fs::read_to_string(here.join("kept/flows.jsonl")).unwrap().lines().count();
    let json = succeed(&here, &[&QUICK[..], &["--control", "bbr", "--json"]].concat());
    let again = fs::read_to_string(here.join("kept/flows.jsonl")).unwrap().lines().count();
    assert_eq!(lines, again, "runs that are kept are not made again");
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json["evaluations"][0]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["verdict"] == "fail").unwrap();
    let command = row["criteria"][0]["worst"]["command"].as_str().unwrap();
    assert!(command.starts_with("anabranch run rfc9743/shallow-buffers --seed 1 --set "), "{command}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let run = succeed(&here, &words);
    assert!(run.contains("congestion   bbr"), "{run}");
    let page = fs::read_to_string(here.join("page.html")).unwrap();
    assert!(page.contains("High packet loss") && page.contains("shallow-buffers --seed 1"));
}

#[test]
fn a_suite_of_ones_own_is_a_file_with_a_folder_of_cases() {
    let here = directory("evaluate-own");
    fs::create_dir(here.join("mine")).unwrap();
    fs::write(here.join("mine.toml"), "title = \"Mine\"\nsource = \"Nobody\"\nabout = \"One case.\"\n").unwrap();
    let case = r#"
        section = "1"
        level = "must"
        title = "Fills a link"
        asks = "Fill the link."
        test = "One transfer."
        span = ["1s", "3s"]
        seeds = { full = 1, quick = 1 }
        capacity = "5mbit"
        rtt = "20ms"
        [[criterion]]
        metric = "utilisation"
        at-least = 80
        reason = "It is a small link."
        [scenario.path.a]
        rate = "5mbit"
        rtt = "20ms"
        [[scenario.workload]]
        kind = "bulk"
        duration = "3s"
    "#;
    fs::write(here.join("mine/full.toml"), case).unwrap();
    let text = succeed(&here, &["evaluate", "mine.toml", "--control", "reno", "--document", "table.md"]);
    assert!(text.contains("1 cases pass, 0 fail"), "{text}");
    assert!(fs::read_to_string(here.join("table.md")).unwrap().contains("| 1 | Fills a link | pass |"));
    fs::write(here.join("mine/full.toml"), case.replace("utilisation", "utilization")).unwrap();
    let error = refused(&here, &["evaluate", "mine.toml"]);
    assert!(error.contains("did you mean `utilisation`?"), "{error}");
}

#[test]
fn unknown_names_get_the_names_that_there_are() {
    let here = directory("evaluate-names");
    for (arguments, said) in [
        (&["evaluate", "rfc9743", "--control", "renu"][..], "did you mean `reno`?"),
        (&["evaluate", "rfc9743", "--scheduler", "min"][..], "there is no scheduler `min`"),
        (&["evaluate", "rfc9743", "--case", "black-hol"][..], "did you mean `black-hole`?"),
        (&["evaluate", "rfc974"][..], "did you mean `rfc9743`?"),
        (&["evaluate", "rfc9743", "--set", "path.a.rate=1mbit"][..], "is no setting of a host"),
        (&["evaluate", "rfc9743", "--control", "cubic:beta=2"][..], "0.95"),
        (&["evaluate", "rfc9743", "--testbed", "--case", "black-hol"][..], "did you mean `black-hole`?"),
        (&["evaluate", "rfc9743", "--case", "outage", "--condition", "7 s"][..], "accepted: 2 s; 5 s"),
        (&["evaluate", "rfc9743", "--testbed", "--all"][..], "cannot be used with"),
        (&["evaluate", "rfc9743", "--server", "x", "--", "y"][..], "--testbed"),
    ] {
        let error = refused(&here, arguments);
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
    assert!(succeed(&here, &["evaluate", "bbr", "--list"]).lines().count() >= 22);
}

/// A program needs both its ends, and has a control of its own.
#[cfg(target_os = "linux")]
#[test]
fn half_a_program_is_refused() {
    let here = directory("evaluate-half");
    for (arguments, said) in [
        (&["--server", "x"][..], "the program has no client"),
        (&["--", "x"][..], "the program has no server"),
        (&["--control", "reno", "--server", "x", "--", "y"][..], "`--control` does not change"),
    ] {
        let error = refused(&here, &[&["evaluate", "rfc9743", "--testbed"], arguments].concat());
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
}
