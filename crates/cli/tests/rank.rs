//! `anabranch rank`: the same on any number of threads and after an interruption, and what it writes.
#![allow(clippy::unwrap_used)]

mod common;

use common::{WORK, directory, names, refused, succeed};
use serde_json::Value;
use std::fs;

/// Small runs of everything.
const SMALL: [&str; 10] =
    ["rank", "--count", "4", "--repeat", "2", "--schedulers", "min-rtt,round-robin,redundant", "--set", WORK, "--json"];

#[test]
fn threads_and_interruptions_make_no_difference() {
    let here = directory("rank-same");
    let one = succeed(&here, &[&SMALL[..], &["--jobs", "1"]].concat());
    assert_eq!(succeed(&here, &[&SMALL[..], &["--jobs", "3", "--out", "kept"]].concat()), one);

    // One part gone, as if the process had been killed before it was whole.
    let kept = || names(&here.join("kept")).into_iter().filter(|name| name.ends_with(".parquet")).collect::<Vec<_>>();
    let all = kept();
    fs::remove_file(here.join("kept").join(&all[0])).unwrap();
    assert_eq!(succeed(&here, &[&SMALL[..], &["--jobs", "2", "--out", "kept"]].concat()), one);
    assert_eq!(
        succeed(&here, &["sweep", "--summary", "kept", "--json"]).matches("\"done\": 5").count(),
        1,
        "a drive is with them"
    );
    let other = refused(&here, &["rank", "--count", "5", "--schedulers", "min-rtt,late", "--out", "kept"]);
    assert!(other.contains("its conditions are 5, not 6"), "{other}");
}

#[test]
fn a_leaderboard_has_its_numbers_and_a_row_per_run() {
    let here = directory("rank-files");
    let files = ["--csv", "runs.csv", "--parquet", "runs.parquet", "--report", "rank.html"];
    let board: Value = serde_json::from_str(&succeed(&here, &[&SMALL[..], &files].concat())).unwrap();
    let standings = board["standings"].as_array().unwrap();
    let numbers = ["conditions", "drives"].map(|name| board[name].as_u64());
    assert_eq!((numbers, standings.len()), ([Some(4), Some(1)], 3));
    let mut last = 0.0;
    for it in standings {
        let mean = it["to_best"]["mean"].as_f64().unwrap();
        assert!(mean >= last && it["most"].as_f64().unwrap() >= mean, "{it}");
        last = mean;
        assert!(it["drives"]["mean"].as_f64().unwrap() > 0.5, "{it}");
        let regret: Vec<f64> = it["regret"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        assert!(regret.len() == 101 && regret.is_sorted());
        let worst = it["worst"].as_array().unwrap();
        assert_eq!(worst[0]["ratio"], it["most"]);
        assert!(worst[0]["command"].as_str().unwrap().starts_with("anabranch compare drawn/1/"));
    }
    // Copies are sent by whom they are said to be sent.
    let repeated = |name: &str| standings.iter().find(|it| it["name"] == name).unwrap()["repeated"].as_f64().unwrap();
    assert!(repeated("redundant") > repeated("min-rtt") + 0.1);

    let csv = fs::read_to_string(here.join("runs.csv")).unwrap();
    let rows: Vec<&str> = csv.lines().skip(1).collect();
    let deterministic = board["deterministic"].as_u64().unwrap() as usize;
    let schedulers = rows.iter().filter(|row| row.contains(",scheduler,")).count();
    assert_eq!(schedulers, 3 * (2 * (4 - deterministic) + deterministic) + 3 * 2, "with those of the drive");
    assert!(rows.iter().any(|row| row.contains(",single-path,")));
    assert!(fs::read(here.join("runs.parquet")).unwrap().starts_with(b"PAR1"));
    assert!(fs::read_to_string(here.join("rank.html")).unwrap().contains("The worst conditions of redundant"));
}

#[test]
fn a_drawn_condition_is_a_scenario_by_name_and_as_a_file() {
    let here = directory("rank-drawn");
    let shown = succeed(&here, &["rank", "--show", "3"]);
    assert_eq!(succeed(&here, &["rank", "--count", "30", "--write", "conditions"]), "");
    assert_eq!(fs::read_to_string(here.join("conditions/drawn-1-3.toml")).unwrap(), shown);
    let files = names(&here.join("conditions"));
    let traced = files.iter().find_map(|name| name.strip_suffix(".down")).expect("one in eight has a trace");
    let digest = |scenario: &str| {
        let args = ["run", scenario, "--json", "--set", "workload=[{kind=\"files\",size=\"20kB\"}]"];
        let run: Value = serde_json::from_str(&succeed(&here, &args)).unwrap();
        (run["digest"].clone(), run["runs"][0]["events_digest"].clone())
    };
    let number = traced.strip_prefix("drawn-1-").unwrap();
    assert_eq!(digest(&format!("drawn/1/{number}")), digest(&format!("conditions/{traced}.toml")));
}

#[test]
fn the_adversary_prints_and_writes_scenarios() {
    let here = directory("rank-against");
    let args =
        ["rank", "--against", "round-robin", "--schedulers", "min-rtt", "--tries", "8", "--find", "2", "--set", WORK];
    let text = succeed(&here, &args);
    assert!(text.contains("[path.a]") && text.contains("# against-round-robin-1.toml"), "{text}");
    let text = succeed(&here, &[&args[..], &["--write", "found"]].concat());
    let command = text.lines().find(|line| line.starts_with("anabranch compare found/against-round-robin-1.toml"));
    assert!(command.is_some_and(|line| line.contains("--schedulers 'round-robin,min-rtt' --seed 5")), "{text}");
    succeed(&here, &["compare", "found/against-round-robin-1.toml", "--repeat", "1", "--schedulers", "min-rtt"]);
    let json = succeed(&here, &[&args[..], &["--json"]].concat());
    assert_eq!(json, succeed(&here, &[&args[..], &["--json", "--jobs", "3"]].concat()));
}

/// Against plain TCP the ratio is that of a leaderboard, and the command compares with TCP on every path.
#[test]
fn the_adversary_searches_against_plain_tcp() {
    let here = directory("rank-against-tcp");
    let args = ["rank", "--against", "redundant", "--schedulers", "tcp", "--tries", "8", "--find", "1", "--set", WORK];
    let text = succeed(&here, &[&args[..], &["--write", "found"]].concat());
    assert!(text.contains("plain TCP, path by path"), "{text}");
    let command = "anabranch compare found/against-redundant-1.toml --schedulers redundant --seed 5 --repeat";
    assert!(text.lines().any(|line| line.starts_with(command)), "{text}");
    let found: Value = serde_json::from_str(&succeed(&here, &[&args[..], &["--json"]].concat())).unwrap();
    let found = &found["found"][0];
    assert_eq!((&found["best"], found["ratio"].as_f64().map(|ratio| ratio > 0.1)), (&"tcp".into(), Some(true)));
}

#[test]
fn errors_say_what_would_be_right() {
    let here = directory("rank-errors");
    for (args, said) in [
        (&["rank", "--schedulers", "min-rtt"][..], "accepted: two schedulers or more"),
        (&["rank", "--schedulers", "min-rtt,lat"], "did you mean `late`?"),
        (&["rank", "--count", "2", "--schedulers", "min-rtt,late", "--worst", "fps"], "accepted: min-rtt, late"),
        (&["rank", "--frozen", "2025"], "[possible values: 2026]"),
        (&["rank", "--frozen", "2026", "--seed", "3"], "cannot be used with"),
        (&["rank", "--set", "host.congestion=\"cubik\""], "did you mean `cubic`?"),
        (&["rank", "--against", "late", "--schedulers", "late,min-rtt"], "without late"),
        (&["rank", "--against", "late", "--schedulers", "tcp,min-rtt"], "accepted: --schedulers tcp alone"),
        (&["rank", "--write", "there", "--csv", "runs.csv"], "--csv needs runs"),
        (&["rank", "--show", "3", "--json"], "cannot be used with"),
        (&["run", "drawn/1"], "accepted: drawn/SEED/NUMBER"),
    ] {
        let text = refused(&here, args);
        assert!(text.contains(said), "{args:?}: {text}");
    }
}

/// Conditions whose seeds give the same are counted; of a single condition nothing has an interval or a star.
#[test]
fn what_is_one_sample_is_said() {
    let here = directory("rank-sample");
    let in_one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let ask = |count: &str| {
        let words = ["rank", "--count", count, "--repeat", "2", "--schedulers", "min-rtt,redundant", "--set", WORK];
        let shown = in_one_line(succeed(&here, &[&words[..], &["--report", "rank.html"]].concat()));
        let page = in_one_line(fs::read_to_string(here.join("rank.html")).unwrap());
        let json: Value = serde_json::from_str(&succeed(&here, &[&words[..], &["--json"]].concat())).unwrap();
        (shown, page, json)
    };
    let (shown, page, json) = ask("1");
    let sentence = "One condition is one sample: it has no interval, and no difference has a star.";
    assert!(shown.contains(sentence) && page.contains(sentence), "{shown}");
    assert!(!shown.contains('±') && !shown.contains("*:"), "{shown}");
    assert!(json["standings"][0]["to_best"]["low"].is_null() && json["standings"][1]["to_first"]["half"].is_null());
    let (shown, page, json) = ask("12");
    let (all, some) = (json["conditions"].as_u64().unwrap(), json["one_sample"].as_u64().unwrap());
    assert!(some >= json["deterministic"].as_u64().unwrap() && some > 0 && all == 12, "{some} of {all}");
    let sentence = format!("{some} of {all} conditions are one sample each");
    assert!(shown.contains(&sentence) && page.contains(&sentence) && shown.contains('±'), "{shown}");
}
