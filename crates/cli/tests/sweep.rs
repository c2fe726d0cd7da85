//! `anabranch sweep`: the same rows on any number of threads, in shares and after a kill; files that it writes, input
//! that it refuses.
#![allow(clippy::unwrap_used)]

mod common;

use common::{SWEEP, anabranch, directory, names, refused, succeed};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn summary(here: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&succeed(here, &[&["sweep"], args, &["--json"]].concat())).unwrap()
}

fn parts(directory: &Path) -> Vec<String> {
    if !directory.exists() {
        return Vec::new();
    }
    names(directory).into_iter().filter(|name| name.ends_with(".parquet")).collect()
}

#[test]
fn threads_shares_and_kills_make_no_difference() {
    let here = directory("sweep-same");
    fs::write(here.join("small.toml"), SWEEP).unwrap();
    let one = summary(&here, &["small.toml", "--jobs", "1"]);
    let digest = &one["rows_digest"];
    assert_eq!(
        (one["conditions"].as_u64(), one["done"].as_u64(), one["rows"].as_u64()),
        (Some(20), Some(20), Some(200))
    );
    assert_eq!(&summary(&here, &["small.toml", "--jobs", "3"])["rows_digest"], digest);

    // Three shares beside each other, in processes of their own.
    let shares = ["1/3", "2/3", "3/3"].map(|share| {
        let args = ["sweep", "small.toml", "--out", "shares", "--jobs", "1", "--shard", share];
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.current_dir(&here).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    });
    shares.into_iter().for_each(|mut share| assert!(share.wait().unwrap().success()));
    assert_eq!(&summary(&here, &["--summary", "shares"])["rows_digest"], digest);

    // A share alone, then all of it killed in the middle, then the rest.
    let mut killed = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .current_dir(&here)
        .args(["sweep", "small.toml", "--out", "killed", "--jobs", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while parts(&here.join("killed")).is_empty() && begun.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(2));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let kept = parts(&here.join("killed"));
    let done = summary(&here, &["--summary", "killed"])["done"].as_u64().unwrap();
    assert!((1..20).contains(&done), "{done} conditions were through when it was killed");
    let resumed = summary(&here, &["small.toml", "--out", "killed", "--jobs", "2"]);
    assert_eq!(&resumed["rows_digest"], digest);
    assert!(kept.iter().all(|name| parts(&here.join("killed")).contains(name)), "what was finished stays");
}

#[test]
fn a_cut_part_is_named_and_run_again() {
    let here = directory("sweep-cut");
    fs::write(here.join("small.toml"), SWEEP).unwrap();
    let whole = summary(&here, &["small.toml", "--out", "kept"]);
    let part = here.join("kept").join(&parts(&here.join("kept"))[0]);
    let bytes = fs::read(&part).unwrap();
    fs::write(&part, &bytes[..bytes.len() - 100]).unwrap();
    let text = succeed(&here, &["sweep", "--summary", "kept"]);
    assert!(text.contains("Set aside: kept/") && text.contains("of 20 conditions"), "{text}");
    assert_eq!(summary(&here, &["small.toml", "--out", "kept"])["rows_digest"], whole["rows_digest"]);
}

#[test]
fn a_sweep_has_its_numbers_a_row_per_run_and_a_page() {
    let here = directory("sweep-files");
    fs::write(here.join("small.toml"), SWEEP).unwrap();
    let files = ["small.toml", "--csv", "runs.csv", "--parquet", "runs.parquet", "--report", "sweep.html"];
    let summary = summary(&here, &files);
    let standings = summary["standings"].as_array().unwrap();
    assert_eq!(standings.len(), 3);
    for it in standings {
        assert!(it["to_best"]["mean"].as_f64().unwrap() > 0.5 && it["conditions"] == 20, "{it}");
        assert_eq!((it["worst"].as_array().unwrap().len(), it["regret"].as_array().unwrap().len()), (10, 101));
    }
    // The command of the worst condition repeats its runs.
    let worst = &standings.last().unwrap()["worst"][0];
    let script = worst["command"].as_str().unwrap().replacen("anabranch", env!("CARGO_BIN_EXE_anabranch"), 1);
    let output = Command::new("sh").current_dir(&here).args(["-c", &format!("{script} --json")]).output().unwrap();
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    let goodput = run["runs"][0]["goodput_bps"].as_f64().unwrap();
    let csv = fs::read_to_string(here.join("runs.csv")).unwrap();
    let of_run = |line: &&str| {
        line.contains(&format!(",{},symmetric,", worst["condition"]))
            && line.contains(&format!(",system,{},1,", standings.last().unwrap()["name"].as_str().unwrap()))
    };
    let row = csv.lines().find(of_run).unwrap();
    assert!(row.contains(&format!(",{goodput},")), "{row} lacks {goodput}");
    assert_eq!(csv.lines().count(), 201);
    assert!(csv.starts_with("version,build,condition,scenario,digest,delay_s,loss,kind,name,seed,problem,time_s,"));
    assert!(fs::read(here.join("runs.parquet")).unwrap().starts_with(b"PAR1"));
    let page = fs::read_to_string(here.join("sweep.html")).unwrap();
    assert!(page.contains("The worst conditions of redundant") && page.contains("class=\"heat-"));
}

#[test]
fn runs_that_break_are_told_at_the_end() {
    let here = directory("sweep-broken");
    fs::write(here.join("small.toml"), format!("most-events = 500\n{SWEEP}")).unwrap();
    let output = anabranch(&here, &["sweep", "small.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("of 200 runs broke, of which the first 10 are:")
            && text.contains("the run took more than 500 events"),
        "{text}"
    );
}

#[test]
fn errors_say_what_would_be_right() {
    let here = directory("sweep-errors");
    fs::write(here.join("small.toml"), SWEEP).unwrap();
    fs::write(here.join("other.toml"), SWEEP.replace("\"40ms\"", "\"60ms\"")).unwrap();
    fs::create_dir(here.join("empty")).unwrap();
    succeed(&here, &["sweep", "small.toml", "--out", "kept", "--shard", "1/10"]);
    for (args, said) in [
        (&["sweep", "smal.toml"][..], "did you mean `small.toml`?"),
        (&["sweep", "small.toml", "--out", "x", "--shard", "4/3"], "accepted: K/N with K from 1 to N"),
        (&["sweep", "small.toml", "--shard", "1/3"], "--out"),
        (&["sweep", "small.toml", "--until", "2"], "accepted: a percentage"),
        (&["sweep", "other.toml", "--out", "kept"], "its axes are delay_s 5ms, 40ms"),
        (&["sweep", "--summary", "empty"], "there is no manifest.json"),
        (&["sweep", "--summary", "kep"], "did you mean `kept`?"),
        (&["sweep"], "<FILE>"),
    ] {
        let text = refused(&here, args);
        assert!(text.contains(said) && !text.contains("accepted: accepted"), "{args:?}: {text}");
    }
    let schema: Value = serde_json::from_str(&succeed(&here, &["sweep", "--schema"])).unwrap();
    assert_eq!(schema["additionalProperties"], false);
}

/// Listed values over paths that draw nothing: means without an interval, and a sentence that says so.
#[test]
fn fixed_conditions_are_one_sample_each() {
    let here = directory("sweep-fixed");
    let text = "schedulers = [\"min-rtt\", \"redundant\"]\nbaselines = true\n[repeat]\ncount = 3\n\
                [[axis]]\nkey = \"path.b.delay\"\nvalues = [\"5ms\", \"50ms\", \"90ms\"]\n\
                [scenario.path.a]\nrate = \"8mbit\"\ndelay = \"10ms\"\n\
                [scenario.path.b]\nrate = \"4mbit\"\ndelay = \"20ms\"\n\
                [[scenario.workload]]\nkind = \"files\"\nsize = \"40kB\"\n";
    let sentence = "Each condition is one sample: one seed, or seeds that all give the same.";
    let in_one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let ask = |text: &str| {
        fs::write(here.join("fixed.toml"), text).unwrap();
        let shown = in_one_line(succeed(&here, &["sweep", "fixed.toml", "--report", "fixed.html"]));
        let page = in_one_line(fs::read_to_string(here.join("fixed.html")).unwrap());
        (shown, page, summary(&here, &["fixed.toml"]))
    };
    let (shown, page, json) = ask(text);
    assert!(shown.contains(sentence) && page.contains(sentence), "{shown}");
    assert!(!shown.contains('±') && !page.contains("geometric mean over conditions ±"), "{shown}");
    assert_eq!((json["one_sample"].as_u64(), json["done"].as_u64()), (Some(3), Some(3)));
    assert_eq!(json["fixed"], true);
    for standing in json["standings"].as_array().unwrap() {
        for of in ["to_best", "to_single", "within_2", "slower_than_single"] {
            assert!(standing[of]["low"].is_null() && standing[of]["high"].is_null(), "{of}: {}", standing[of]);
        }
    }
    let (shown, page, json) = ask(&text.replace("[scenario.path.a]\n", "[scenario.path.a]\nloss = \"20%\"\n"));
    assert!(shown.contains('±') && !shown.contains(sentence) && !page.contains(sentence), "{shown}");
    assert_eq!((json["one_sample"].as_u64(), &json["fixed"]), (Some(0), &Value::Bool(false)));
}
