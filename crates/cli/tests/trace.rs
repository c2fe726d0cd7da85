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
