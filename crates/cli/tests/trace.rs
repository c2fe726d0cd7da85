//! `anabranch trace`: what recordings hold, and what is made of them.
#![allow(clippy::unwrap_used)]

mod common;

use common::{anabranch, directory, succeed};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

/// Two drives at one time, of ten minutes and of eight that begin a minute later.
fn drives(name: &str) -> PathBuf {
    let here = directory(name);
    for (file, from, seconds, mbps) in [("sky.csv", 0, 600, 100), ("cell.csv", 60, 480, 20)] {
        let mut text = String::from("time,throughput,speed\n");
        for second in from..from + seconds {
            let rate = mbps + (second * 37) % 50;
            writeln!(text, "{},{rate},61.5", 1_900_000_000 + second).unwrap();
        }
        fs::write(here.join(file), text).unwrap();
    }
    here
}

#[test]
fn recordings_are_summed_up_as_text_json_and_page() {
    let here = drives("trace-summary");
    let text = succeed(&here, &["trace", "sky.csv", "cell.csv", "--report", "page.html"]);
    for part in [
        "sky.csv: 10.0 min, a table with a row each 1.00 s",
        "rate [Mbit/s]",
        "is taken as Mbit/s",
        "All cover 8.0 min",
        "█",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = fs::read_to_string(here.join("page.html")).unwrap();
    assert!(page.contains("Recordings: sky.csv, cell.csv"));
    let json: serde_json::Value =
        serde_json::from_str(&succeed(&here, &["trace", "sky.csv", "cell.csv", "--json"])).unwrap();
    assert_eq!((&json["format"], json["common_s"].as_f64()), (&"recordings".into(), Some(480.0)));
    let rate = &json["recordings"][1]["rate_bps"];
    assert!((20e6..=70e6).contains(&rate["p50"].as_f64().unwrap()), "{rate}");
}

#[test]
fn windows_are_drawn_by_seed_at_one_moment_in_all() {
    let here = drives("trace-windows");
    let windows = |seed: &str| {
        let words = ["trace", "sky.csv", "cell.csv", "--windows", "3", "--length", "20s", "--seed", seed];
        let json = succeed(&here, &[&words[..], &["--json", "--out", &format!("out{seed}")]].concat());
        serde_json::from_str::<serde_json::Value>(&json).unwrap()["windows"].clone()
    };
    let (one, two) = (windows("1"), windows("2"));
    assert!(one != two && windows("1") == one && one.as_array().unwrap().len() == 3);
    for n in 0..3 {
        let read = |name: &str| fs::read_to_string(here.join("out1").join(format!("{name}-{}.csv", n + 1))).unwrap();
        let (sky, cell) = (read("sky"), read("cell"));
        let clock = one[n]["clock"].as_str().unwrap();
        assert!(sky.lines().nth(1).unwrap().starts_with(clock) && cell.lines().nth(1).unwrap().starts_with(clock));
    }
    // A window is a recording like any other: a scenario follows it.
    let scenario = "[path.sky]\ntrace = \"out1/sky-1.csv\"\ndelay = \"20ms\"\n\
        [path.cell]\ntrace = \"out1/cell-1.csv\"\ndelay = \"30ms\"\n\
        [[workload]]\nkind = \"bulk\"\nduration = \"2s\"\n[run]\nstop = \"2s\"\n";
    fs::write(here.join("window.toml"), scenario).unwrap();
    let said = succeed(&here, &["run", "window.toml"]);
    assert!(said.contains("goodput"), "{said}");
}

#[test]
fn parts_are_cut_aligned_and_converted() {
    let here = drives("trace-parts");
    succeed(&here, &["trace", "sky.csv", "--from", "90s", "--length", "2s", "--out", "cut"]);
    let cut = fs::read_to_string(here.join("cut/sky.csv")).unwrap();
    assert_eq!(cut, "time,rate_bit\n2030-03-17T17:48:10Z,130000000\n2030-03-17T17:48:11Z,117000000\n");
    succeed(&here, &["trace", "sky.csv", "cell.csv", "--align", "--out", "aligned"]);
    let lines = |name: &str| fs::read_to_string(here.join("aligned").join(name)).unwrap().lines().count();
    assert_eq!((lines("sky.csv"), lines("cell.csv")), (481, 481));
    succeed(&here, &["trace", "cut/sky.csv", "--to", "mahimahi", "--out", "mahimahi"]);
    let text = fs::read_to_string(here.join("mahimahi/sky.trace")).unwrap();
    // 130 and 117 Mbit in packets of 12,000 bits.
    assert_eq!(text.lines().filter(|line| line.parse::<u32>().unwrap() <= 2000).count(), 20_583);
    let again = succeed(&here, &["trace", "mahimahi/sky.trace"]);
    assert!(again.contains("2.00 s, opportunities") && again.contains("123"), "{again}");
}

#[test]
fn models_are_drawn_shown_and_written() {
    let here = directory("trace-models");
    let text = succeed(&here, &["trace", "--model", "leo", "--seed", "3", "--length", "10min"]);
    for part in ["leo: 10.0 min, drawn by a model", "Every 15.0 s the delay changes", "loss, one way [%]", "█"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("Every 5"), "the pace of draws is no period: {text}");
    assert_ne!(text, succeed(&here, &["trace", "--model", "leo", "--seed", "4", "--length", "10min"]));
    let table = "{ name = \"wifi\", stations = 3 }";
    let words = ["trace", "--model", "lte", "--model", table, "--model", "lte", "--length", "5s"];
    succeed(&here, &[&words[..], &["--out", "drawn", "--report", "page.html"]].concat());
    let json: serde_json::Value = serde_json::from_str(&succeed(&here, &[&words[..], &["--json"]].concat())).unwrap();
    let names: Vec<_> = json["recordings"].as_array().unwrap().iter().map(|it| it["file"].as_str().unwrap()).collect();
    assert_eq!((names, &json["recordings"][0]["form"]), (vec!["lte", "wifi", "lte-2"], &"model".into()));
    assert!(json["recordings"][0]["rate_bps"]["mean"] != json["recordings"][2]["rate_bps"]["mean"]);
    // A drawn table is a recording like any other, with the same figures.
    let mean = |json: &serde_json::Value, of: &str| json["recordings"][0][of]["mean"].as_f64().unwrap();
    let again: serde_json::Value =
        serde_json::from_str(&succeed(&here, &["trace", "drawn/lte.csv", "--json"])).unwrap();
    for of in ["rate_bps", "delay_s"] {
        let (drawn, read) = (mean(&json, of), mean(&again, of));
        assert!((drawn / read - 1.0).abs() < 0.01, "{of}: {drawn} {read}");
    }
    succeed(&here, &[&words[..3], &["--length", "5s", "--out", "drawn", "--to", "mahimahi"]].concat());
    let text = fs::read_to_string(here.join("drawn/lte.trace")).unwrap();
    let mbps = text.lines().count() as f64 * 1500.0 * 8.0 / 5e6;
    assert!((mbps * 1e6 / mean(&json, "rate_bps") - 1.0).abs() < 0.01, "{mbps}");
    for (words, problem) in [
        (vec!["--model", "geo"], "there is no model `geo`"),
        (vec!["--model", "{ name = \"lte\", errors = \"90%\" }"], "`errors` is 90 %"),
        (vec!["--model", "{ name = \"lte\", "], "--model"),
        (vec!["--model", "leo", "--length", "11min"], "`--length` is 660s"),
        (vec!["--model", "leo", "drawn/lte.csv"], "--model"),
        (vec!["drawn/lte.csv", "--seed", "3"], "`--seed` draws nothing"),
    ] {
        let output = anabranch(&here, &[&["trace"], &words[..]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(problem), "{words:?}: {said}");
    }
}

#[test]
fn what_is_wrong_is_refused_and_nothing_is_written() {
    let here = drives("trace-wrong");
    fs::write(here.join("bad.csv"), "t,mbps\n0,1\n1,x\n").unwrap();
    fs::write(here.join("plain.csv"), "t,mbps\n0,1\n1,2\n").unwrap();
    for (words, problem) in [
        (vec!["none.csv"], "cannot read none.csv"),
        (vec!["bad.csv"], "bad.csv: line 3, column `mbps`: `x` is no number"),
        (vec!["sky.csv", "plain.csv", "--align"], "the recordings have no time in common by their clocks"),
        (vec!["sky.csv", "--from", "595s", "--length", "10s"], "sky.csv has no part from 595s to 605s"),
        (vec!["sky.csv", "--windows", "2", "--length", "700s"], "no stretch without a pause holds a window of 700s"),
        (vec!["sky.csv", "--out", "."], "sky.csv is read, or written twice"),
        (vec!["sky.csv", "--rate", "9"], "sky.csv: `rate`: there is no column `9`"),
        (vec!["sky.csv", "--to", "mahimahi"], "--out"),
        (vec!["sky.csv", "--rate-unit", "mbps"], "mbps"),
    ] {
        let output = anabranch(&here, &[&["trace"], &words[..]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(problem), "{words:?}: {said}");
    }
    assert_eq!(fs::read_dir(&here).unwrap().count(), 4);
    let output = anabranch(&here, &["trace", "plain.csv", "--report", "plain.csv"]);
    assert!(!output.status.success() && fs::read_to_string(here.join("plain.csv")).unwrap().starts_with("t,mbps"));
}
