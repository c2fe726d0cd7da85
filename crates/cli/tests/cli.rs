//! The program as its users meet it: what it prints, what it writes, how it ends.
#![allow(clippy::unwrap_used)]

mod common;

use common::POLICY_LISTS;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Small, with something of everything that draws.
const SCENARIO: &str = r#"
about = "two short files"
[path.wlan]
rate = "5mbit"
delay = "10ms"
jitter = "3ms"
loss = "2%"
[path.lte]
down = "tiny.down"
up = "1mbit"
delay = "30ms"
[[workload]]
kind = "files"
sizes = ["100kB", "50kB"]
[run]
repeat = 3
spread = "1s"
"#;

#[test]
fn a_run_says_why_a_path_carried_nothing_and_a_connection_is_plain_tcp() {
    let here = directory("remarks");
    let text = succeed(&here, &["run", "small.toml", "--set", "path.lte.backup=true"]);
    assert!(text.contains("note: path lte carried no data: it is a backup, and another path worked\n"), "{text}");
    let strip = ["run", "small.toml", "--set", "path.wlan.middlebox=[{kind=\"strip\"}]"];
    let text = succeed(&here, &strip);
    assert!(text.contains("file 1 (plain TCP)") && text.contains("file 2 (MPTCP)"), "it learns: {text}");
    let text = succeed(&here, &[&strip[..], &["--set", "client.first-path=as-listed"]].concat());
    assert!(
        text.contains("plain TCP: the SYN had no MP_CAPABLE") || text.contains("plain TCP: the SYN/ACK had"),
        "{text}"
    );
    assert!(text.contains("note: path lte carried no data: plain TCP uses one path\n"), "{text}");
    let text = succeed(&here, &["run", "small.toml", "--set", "workload=[{kind=\"files\",size=\"1MB\"}]"]);
    assert!(!text.contains("note:"), "both paths are used: {text}");
}

/// A directory of one test, with the scenario in it.
fn directory(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("small.toml"), SCENARIO).unwrap();
    std::fs::write(directory.join("tiny.down"), "1\n3\n6\n8\n").unwrap();
    directory
}

fn anabranch(directory: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anabranch")).current_dir(directory).args(args).output().unwrap()
}

fn succeed(directory: &Path, args: &[&str]) -> String {
    let output = anabranch(directory, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "nothing is said on standard error without a terminal");
    String::from_utf8(output.stdout).unwrap()
}

fn fail(directory: &Path, args: &[&str]) -> (i32, String) {
    let output = anabranch(directory, args);
    assert!(output.stdout.is_empty(), "results and errors do not mix");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn threads_change_no_byte() {
    let here = directory("threads");
    let all = |jobs: &str| {
        let table = succeed(&here, &["compare", "small.toml", "--jobs", jobs, "--csv", "out.csv"]);
        let json = succeed(&here, &["compare", "small.toml", "--jobs", jobs, "--json"]);
        let run = succeed(&here, &["run", "small.toml", "--repeat", "4", "--jobs", jobs, "--events", "out.jsonl"]);
        let files = ["out.csv", "out.jsonl"].map(|name| std::fs::read_to_string(here.join(name)).unwrap());
        (table, json, run, files)
    };
    assert_eq!(all("1"), all("2"));
}

#[test]
fn every_row_says_what_it_takes_to_repeat_it() {
    let here = directory("rows");
    succeed(&here, &["compare", "small.toml", "--schedulers", "ecf,min-rtt", "--seed", "40", "--csv", "out.csv"]);
    let csv = std::fs::read_to_string(here.join("out.csv")).unwrap();
    let mut lines = csv.lines();
    assert!(lines.next().unwrap().starts_with("version,build,scenario,digest,kind,name,seed,finished,"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), (2 + 2) * 3, "two schedulers and two single paths, three times each");
    assert!(rows.iter().all(|row| row[0] == env!("CARGO_PKG_VERSION") && row[2] == "small" && row[3] == rows[0][3]));
    let seeds: Vec<&str> = rows.iter().map(|row| row[6]).take(4).collect();
    assert_eq!(seeds, ["40", "41", "42", "40"]);

    // The second row again, by itself.
    let json = succeed(&here, &["run", "small.toml", "--seed", "41", "--set", "host.scheduler=ecf", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let run = &json["runs"][0];
    assert_eq!((run["seed"].as_u64(), run["version"].as_str()), (Some(41), Some(env!("CARGO_PKG_VERSION"))));
    assert!(rows[1].contains(&run["events_digest"].as_str().unwrap()), "{run}");
}

/// Pages are ranked by their load time, so a row has it; what else a row must have, the list of statistics is tested
/// for.
#[test]
fn rows_of_a_page_have_its_load_time() {
    let here = directory("page-rows");
    let page = "[[workload]]\nkind = \"web\"\npage = { objects = 5, total = \"20kB\" }\n";
    let (before, after) = (SCENARIO.find("[[workload]]").unwrap(), SCENARIO.find("[run]").unwrap());
    std::fs::write(here.join("page.toml"), format!("{}{page}{}", &SCENARIO[..before], &SCENARIO[after..])).unwrap();
    let json = succeed(&here, &["run", "page.toml", "--csv", "out.csv", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let csv = std::fs::read_to_string(here.join("out.csv")).unwrap();
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column = lines[0].iter().position(|name| *name == "page_load_s").expect("a column has the load time");
    assert_eq!(lines[1][column].parse().ok(), json["runs"][0]["page_load_s"].as_f64());
}

#[test]
fn a_comparison_says_who_won_and_against_what() {
    let here = directory("words");
    let text = succeed(&here, &["compare", "small.toml", "--repeat", "5"]);
    for said in ["is first with", "plain TCP on wlan", "plain TCP on lte", "best single path", "sum of paths", "--csv"]
    {
        assert!(text.contains(said), "{said} is missing in:\n{text}");
    }
    for scheduler in ["round-robin", "min-rtt", "ecf", "blest", "blest-kernel", "late"] {
        // In a row of its own, or in the line of those that share one.
        let mut words = text.split_whitespace().map(|word| word.trim_end_matches([',', '.', ':']));
        assert!(words.any(|word| word == scheduler), "{scheduler} is missing in:\n{text}");
    }
}

#[test]
fn events_are_one_json_object_per_line() {
    let here = directory("events");
    succeed(&here, &["run", "small.toml", "--events", "out.jsonl"]);
    let text = std::fs::read_to_string(here.join("out.jsonl")).unwrap();
    assert!(text.lines().count() > 200, "150 kB take more than a hundred segments, each sent and received");
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn a_report_is_a_page_of_its_own() {
    let here = directory("report");
    succeed(&here, &["run", "small.toml", "--report", "run.html"]);
    succeed(&here, &["compare", "small.toml", "--schedulers", "ecf,min-rtt", "--report", "comparison.html"]);
    for (name, said, command) in [
        ("run.html", "Time and sequence of the data", "anabranch run small.toml --report run.html"),
        ("comparison.html", "Difference to min-rtt", "anabranch compare small.toml --schedulers"),
    ] {
        let page = std::fs::read_to_string(here.join(name)).unwrap();
        assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"), "{name} is whole");
        assert!(page.contains(said) && page.contains(command), "{name}");
    }
    // With a report and without one, a run is the same.
    let json = |report: &[&str]| succeed(&here, &[&["run", "small.toml", "--json"], report].concat());
    assert_eq!(json(&[]), json(&["--report", "again.html"]));
}

/// A comparison draws its ranking; the words of each file are those of the table.
#[test]
fn a_figure_is_a_file_for_a_paper() {
    let here = directory("figure");
    for ending in ["svg", "pdf", "pgf"] {
        let name = format!("ranking.{ending}");
        succeed(&here, &["compare", "small.toml", "--schedulers", "ecf,min-rtt", "--repeat", "2", "--figure", &name]);
        let file = std::fs::read(here.join(name)).unwrap();
        let text = String::from_utf8_lossy(&file);
        for word in ["Ranking", "ecf", "min-rtt", "completion time [s]"] {
            assert!(text.contains(word), "{ending}: {word} is missing: {text}");
        }
    }
    for (command, file) in [("compare", "small.toml"), ("study", "late/fig10"), ("sweep", "sweep.toml")] {
        let (code, text) = fail(&here, &[command, file, "--figure", "ranking.png"]);
        assert!(code == 2 && text.contains("accepted: a file that ends in .svg, .pdf or .pgf"), "{text}");
    }
}

#[test]
fn a_report_that_cannot_be_written_leaves_nothing_behind() {
    let here = directory("report-fails");
    let names = || {
        std::fs::read_dir(&here).unwrap().map(|it| it.unwrap().file_name()).collect::<std::collections::BTreeSet<_>>()
    };
    let before = names();
    let (code, text) = fail(&here, &["run", "small.toml", "--report", "nowhere/run.html"]);
    assert!(code == 1 && text.contains("nowhere/run.html"), "{text}");
    assert_eq!(names(), before);
}

#[test]
fn a_refused_scenario_is_pointed_at_and_ends_with_2() {
    let here = directory("refused");
    std::fs::write(here.join("wrong.toml"), SCENARIO.replace("jitter", "jiter")).unwrap();
    let (code, text) = fail(&here, &["run", "wrong.toml"]);
    assert_eq!(code, 2);
    for said in ["unknown key `jiter`", "did you mean `jitter`?", "wrong.toml:6:1", "jiter = \"3ms\""] {
        assert!(text.contains(said), "{said} is missing in:\n{text}");
    }
    for (args, said) in [
        (vec!["run", "wlan-ltee"], "did you mean `wlan-lte`"),
        (vec!["run", "small.toml", "--set", "path.wlan.delay=10"], "`10` has no unit"),
        (vec!["run", "small.toml", "--set", "path.wlan.down=nowhere.down"], "current directory"),
        (vec!["compare", "small.toml", "--schedulers", "min-rt"], "did you mean `min-rtt`"),
        (vec!["run", "small.toml", "--repeat", "0"], "--repeat"),
    ] {
        let (code, text) = fail(&here, &args);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "");
        assert!(code == 2 && text.contains(said), "{said} is missing in {code}:\n{text}");
    }
}

/// A path that cannot be written ends the command before its first run, which here would exceed the patience of a test.
#[test]
fn files_are_checked_before_the_first_run() {
    let here = directory("checked");
    std::fs::create_dir_all(here.join("folder")).unwrap();
    let names = || {
        std::fs::read_dir(&here).unwrap().map(|it| it.unwrap().file_name()).collect::<std::collections::BTreeSet<_>>()
    };
    let before = names();
    let long = ["--repeat", "100000"];
    for (command, option) in
        [("run", "--csv"), ("run", "--report"), ("run", "--events"), ("compare", "--csv"), ("compare", "--report")]
    {
        for (path, why) in
            [("no/such/file", "No such file"), ("folder", "is a directory"), ("small.toml/x", "Not a directory")]
        {
            let (code, text) = fail(&here, &[&[command, "small.toml", option, path], &long[..]].concat());
            assert!(
                code == 1 && text.contains("cannot write") && text.contains(why),
                "{command} {option} {path}: {text}"
            );
        }
    }
    let (code, text) = fail(&here, &[&["run", "small.toml", "--csv", "x", "--report", "./x"], &long[..]].concat());
    assert!(code == 2 && text.contains("--csv and --report both name ./x"), "{text}");
    assert_eq!(names(), before, "nothing half-written stays");
    // An existing file stays until its replacement is complete.
    std::fs::write(here.join("kept.csv"), "kept").unwrap();
    fail(&here, &["run", "small.toml", "--csv", "kept.csv", "--report", "no/such/file"]);
    assert_eq!(std::fs::read_to_string(here.join("kept.csv")).unwrap(), "kept");
    std::fs::remove_file(here.join("kept.csv")).unwrap();
}

#[test]
fn a_comparison_takes_up_what_it_has() {
    let here = directory("taken-up");
    // Runs that another build of the command left here would be kept beside those of this one.
    let _ = std::fs::remove_dir_all(here.join("kept"));
    let args = ["compare", "small.toml", "--schedulers", "ecf:beta=0.5,ecf,min-rtt", "--out", "kept", "--json"];
    let whole = succeed(&here, &args);
    let journal = here.join("kept/runs.jsonl");
    let lines = std::fs::read(&journal).unwrap();
    let half: usize = lines.split_inclusive(|byte| *byte == b'\n').take(5).map(<[u8]>::len).sum();
    std::fs::write(&journal, &lines[..half + 7]).unwrap();
    assert_eq!(succeed(&here, &args), whole);
    assert_eq!(std::fs::read(&journal).unwrap().len(), lines.len());
    let json: serde_json::Value = serde_json::from_str(&whole).unwrap();
    let names: std::collections::BTreeSet<&str> =
        json["summary"]["ranking"].as_array().unwrap().iter().map(|it| it["scheduler"].as_str().unwrap()).collect();
    assert_eq!(names, ["ecf", "ecf:beta=0.5", "min-rtt"].into());
    // As a value of a scenario as well.
    let text = succeed(&here, &["run", "small.toml", "--set", "host.scheduler=ecf:beta=0.5"]);
    assert!(text.contains("  scheduler    ecf (beta=0.5)\n"), "{text}");
    let (code, text) = fail(&here, &["compare", "small.toml", "--schedulers", "ecf,late,ecf"]);
    assert!(code == 2 && text.contains("`ecf` is named twice"), "{text}");
}

#[test]
fn what_is_mistaken_for_something_else_is_named() {
    let here = directory("mistaken");
    for name in ["wlan-lte", "small.toml"] {
        let (code, text) = fail(&here, &["study", name]);
        assert!(code == 2 && text.contains(&format!("`{name}` is a scenario, not a study")), "{text}");
        assert!(text.contains(&format!("anabranch run {name}")), "{text}");
    }
    let said = |args: &[&str]| {
        let output = anabranch(&here, args);
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&["run", "rbp/fig04"]).contains("rbp/fig04 is a study; this is its scenario without"));
    assert_eq!(said(&["run", "rbp/fig04", "--set", "run.stop=61s"]), "", "a row of the study is meant");
}

#[test]
fn threads_beyond_reason_are_not_started() {
    let here = directory("jobs");
    let output = anabranch(&here, &["run", "small.toml", "--repeat", "3", "--jobs", "20000"]);
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("--jobs 20000: ") && said.contains(" for 3 runs"), "{said}");
    let plain = succeed(&here, &["run", "small.toml", "--repeat", "3"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), plain);
}

#[test]
fn a_thousand_connections_are_told_in_a_few_lines() {
    let here = directory("crowd");
    let text = SCENARIO.replace("sizes = [\"100kB\", \"50kB\"]", "size = \"2kB\"\ncount = 60\nconcurrent = true");
    std::fs::write(here.join("crowd.toml"), text).unwrap();
    let text = succeed(&here, &["run", "crowd.toml"]);
    assert!(text.contains("and 50 more connections, of which 50 speak MPTCP and 0 fell back:"), "{text}");
    // Ten are told one by one, each in a table of two parts.
    assert!(text.lines().count() < 190, "{} lines", text.lines().count());
}

#[test]
fn what_fails_ends_with_1() {
    let here = directory("failed");
    let (code, text) = fail(&here, &["run", "small.toml", "--csv", "no/such/directory.csv"]);
    assert!(code == 1 && text.contains("cannot write"), "{text}");
    // More competitors than there may be: found when the run begins.
    let competitor = "[[workload]]\nkind = \"tcp\"\npath = \"wlan\"\nsize = \"1kB\"\n";
    let text = SCENARIO.replace("[run]", &format!("{}[run]", competitor.repeat(256)));
    std::fs::write(here.join("crowd.toml"), text).unwrap();
    let (code, text) = fail(&here, &["run", "crowd.toml", "--seed", "5"]);
    assert!(code == 1 && text.contains("anabranch run crowd.toml --seed 5"), "{text}");
}

#[test]
fn lists_and_schema() {
    let here = directory("lists");
    for what in POLICY_LISTS.into_iter().chain(["middleboxes", "profiles", "scenarios"]) {
        let items: serde_json::Value = serde_json::from_str(&succeed(&here, &["list", what, "--json"])).unwrap();
        let items = items["entries"].as_array().unwrap();
        let text = succeed(&here, &["list", what]);
        assert!(!items.is_empty(), "{what}");
        for item in items {
            let (name, about) = (item["name"].as_str().unwrap(), item["about"].as_str().unwrap());
            assert!(text.contains(name) && !about.is_empty(), "{what}: {name}");
        }
    }
    // The width into a pipe does not depend on the terminal.
    let schedulers = succeed(&here, &["list", "schedulers"]);
    assert!(schedulers.lines().all(|line| line.chars().count() <= 110), "{schedulers}");
    assert!(schedulers.contains("  beta = 0.25 (0 to 10): hysteresis β"), "{schedulers}");
    let schema: serde_json::Value = serde_json::from_str(&succeed(&here, &["schema"])).unwrap();
    assert_eq!(schema["title"], "Scenario");
}

/// Each policy of each list by itself: its name, the head of its module, its parameters.
#[test]
fn every_policy_is_explained() {
    let here = directory("explained");
    for what in POLICY_LISTS {
        let items: serde_json::Value = serde_json::from_str(&succeed(&here, &["list", what, "--json"])).unwrap();
        for item in items["entries"].as_array().unwrap() {
            let name = item["name"].as_str().unwrap();
            assert!(item.get("documentation").is_none(), "a list is short");
            let text = succeed(&here, &["list", what, name]);
            let json = succeed(&here, &["list", what, name, "--json"]);
            let json: serde_json::Value = serde_json::from_str(&json).unwrap();
            let first = json["entries"][0]["documentation"].as_str().unwrap().split_whitespace().next().unwrap();
            assert!(text.starts_with(name) && text.contains(first), "{text}");
            for parameter in item["parameters"].as_array().into_iter().flatten() {
                assert!(text.contains(&format!("\n  {} = ", parameter["name"].as_str().unwrap())), "{text}");
            }
        }
    }
    let text = succeed(&here, &["list", "schedulers", "ecf"]);
    for said in ["beta = 0.25", "accepted: 0 to 10", "Lim"] {
        assert!(text.contains(said), "{said} is missing in:\n{text}");
    }
    let (code, text) = fail(&here, &["list", "schedulers", "efc"]);
    assert!(code == 2 && text.contains("did you mean `ecf`?"), "{text}");
}

/// Results name the policies that ran with all parameters, also defaults, in words, in JSON and in CSV.
#[test]
fn a_result_says_which_variant_ran() {
    let here = directory("variants");
    let set = "host.scheduler={name=\"ecf\",beta=0.5}";
    let text = succeed(&here, &["run", "small.toml", "--set", set, "--set", "client.ack-path=own"]);
    assert!(text.contains("  scheduler    ecf (beta=0.5)\n  congestion   cubic-sbd"), "{text}");
    assert!(text.contains("  reinjection  insured (penalise=true"), "{text}");
    assert!(!text.contains("at the receiver"), "{text}");
    let args = ["run", "small.toml", "--set", set, "--set", "client.congestion=cubic", "--csv", "out.csv", "--json"];
    let json: serde_json::Value = serde_json::from_str(&succeed(&here, &args)).unwrap();
    assert_eq!(json["policies"]["scheduler"]["parameters"]["beta"], 0.5);
    assert_eq!(json["policies"]["reinjection"]["parameters"]["penalise"], true);
    assert_eq!(json["receiver_policies"]["congestion"]["parameters"]["fast_convergence"], true);
    let csv = std::fs::read_to_string(here.join("out.csv")).unwrap();
    assert!(csv.contains("scheduler ecf (beta=0.5); congestion cubic-sbd"), "{csv}");
    let text = succeed(&here, &["compare", "small.toml", "--schedulers", "late,min-rtt", "--repeat", "1"]);
    assert!(text.contains("  schedulers   late (overshoot=false, rto_round_end=false, "), "{text}");
    assert!(text.contains("without parameters: min-rtt\n"), "{text}");

    let change = "[[change]]\nat = \"100ms\"\nscheduler = { name = \"ecf\", beta = 1 }\nreinjection = \"none\"\n";
    std::fs::write(here.join("switched.toml"), SCENARIO.replace("[run]", &format!("{change}[run]"))).unwrap();
    let text = succeed(&here, &["run", "switched.toml"]);
    assert!(text.contains("  switched to  scheduler ecf (beta=1) from 0.1 s on, both hosts\n"), "{text}");
    assert!(text.contains("               reinjection none from 0.1 s on, both hosts\n"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&succeed(&here, &["run", "switched.toml", "--json"])).unwrap();
    assert_eq!(json["switched"][0]["policy"]["parameters"]["beta"], 1.0);
}

/// A capture with the unanswered SYN of an MPTCP connection: raw IPv4 in pcap.
fn tiny_capture() -> Vec<u8> {
    let mut syn = vec![0x45, 0, 0, 44, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    syn.extend([0x9c, 0x40, 0x01, 0xbb, 0, 0, 0, 9, 0, 0, 0, 0, 0x60, 2, 1, 0, 0, 0, 0, 0, 30, 4, 1, 1]);
    let mut file: Vec<u8> =
        [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101, 1, 0, 44, 44].map(u32::to_le_bytes).concat();
    file.extend(syn);
    file
}

#[test]
fn inspect_reads_what_it_can_and_refuses_what_is_no_capture() {
    let here = directory("inspect");
    std::fs::write(here.join("tiny.pcap"), tiny_capture()).unwrap();
    std::fs::write(here.join("cut.pcap"), &tiny_capture()[..60]).unwrap();
    std::fs::write(here.join("empty.pcap"), "").unwrap();
    let text = succeed(&here, &["inspect", "tiny.pcap"]);
    assert!(text.starts_with("tiny.pcap: 1 packet, 1 of them TCP\n"), "{text}");
    assert!(text.contains("MP_CAPABLE offered, unknown: no answer was captured"), "{text}");
    let text = succeed(&here, &["inspect", "cut.pcap"]);
    assert!(text.contains("stopped reading: the file ends within a packet"), "{text}");
    let json = succeed(&here, &["inspect", "tiny.pcap", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["plain_tcp"][0]["endpoints"][0], "10.0.0.1:40000");
    assert_eq!(json["plain_tcp"][0]["fallback"]["step"], "SYN/ACK");
    for (file, why) in [
        ("empty.pcap", "the file is empty"),
        ("small.toml", "neither pcap nor pcapng"),
        ("missing.pcap", "No such file"),
    ] {
        let (status, error) = fail(&here, &["inspect", file]);
        assert_eq!(status, 2);
        assert!(error.contains(file) && error.contains(why), "{error}");
    }
    let (status, error) = fail(&here, &["inspect", "tiny.pcap", "--connection", "1"]);
    assert!(status == 2 && error.contains("there are none"), "{error}");
    // One of two can be read: it is, and the other is named.
    let both = anabranch(&here, &["inspect", "tiny.pcap", "empty.pcap"]);
    assert_eq!(both.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&both.stdout).contains("tiny.pcap: 1 packet"));
    assert!(String::from_utf8_lossy(&both.stderr).contains("empty.pcap"));
}

/// The analysis of a run's capture agrees with the simulator's counts: retransmissions, reinjections, shares, bytes.
#[test]
fn inspect_finds_what_the_simulator_knows() {
    let here = directory("inspect-run");
    for scenario in ["lossy", "path-failure"] {
        let run = succeed(&here, &["run", scenario, "--seed", "1", "--pcap", "captures", "--json"]);
        let found = succeed(&here, &["inspect", "captures/server.pcapng", "--json"]);
        let [run, found] = [run, found].map(|json| serde_json::from_str::<serde_json::Value>(&json).unwrap());
        // A SYN that lost the race is answered, and its answer reset: no data.
        let connections = found["connections"].as_array().unwrap();
        let moved = |it: &&serde_json::Value| it["directions"].as_array().unwrap().iter().any(|way| way["bytes"] != 0);
        let mut moved = connections.iter().filter(moved);
        let (run, connection) = (&run["runs"][0], moved.next().unwrap());
        assert!(moved.next().is_none(), "{scenario}");
        let subflows = connection["subflows"].as_array().unwrap();
        let sum = |field: &str| subflows.iter().map(|s| s["sent"][1][field].as_u64().unwrap()).sum::<u64>();
        assert_eq!(sum("retransmitted_segments"), run["retransmitted"].as_u64().unwrap(), "{scenario}");
        assert_eq!(sum("repeated_data_bytes"), run["reinjected_bytes"].as_u64().unwrap(), "{scenario}");
        for (subflow, share) in subflows.iter().zip(run["shares"].as_array().unwrap()) {
            // The simulator counts by who delivered first, the capture by who sent first.
            let difference = subflow["sent"][1]["share"].as_f64().unwrap() - share.as_f64().unwrap();
            assert!(difference.abs() < 0.02, "{scenario}: {difference}");
        }
        assert_eq!(connection["unknown"].as_array().unwrap().len(), 0, "{scenario}: {}", connection["unknown"]);
        assert_eq!(connection["captured"], "near the server");
    }
}

/// The results show alterations by a middlebox, noticed or not.
#[test]
fn what_middleboxes_did_is_shown() {
    let here = directory("middleboxes");
    let set = r#"path.wlan.middlebox=[{kind="alter-payload",offset=1000}]"#;
    let unseen = ["run", "small.toml", "--set", set];
    let text = succeed(&here, &[&unseen[..], &["--seed", "1"]].concat());
    assert!(text.contains("wlan/alter-payload"), "{text}");
    assert!(text.contains("bytes were altered on the way and read without an error"), "{text}");
    let json = succeed(&here, &[&unseen[..], &["--seed", "1", "--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let run = &json["runs"][0];
    assert!(run["altered_bytes"].as_u64() > Some(0) && run["checksum_failures"] == 0, "{run}");
    assert_eq!(
        (&run["middleboxes"][0]["name"], &run["middleboxes"][0]["dropped"]),
        (&"wlan/alter-payload".into(), &0.into())
    );

    let seen = succeed(&here, &[&unseen[..], &["--seed", "1", "--set", "host.dss-checksum=true"]].concat());
    assert!(seen.contains("DSS checksums that failed: 2") && seen.contains("checksum-failed"), "{seen}");
    assert!(seen.contains("after the fallback to plain TCP nothing protects them"), "{seen}");
}

/// The README's `cargo run` names no binary, and the workspace has more than one: Cargo takes the only default there
/// is.
#[test]
fn cargo_run_means_this_command() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path", manifest];
    let output = std::process::Command::new(env!("CARGO")).args(arguments).output().unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let defaults: Vec<_> = packages.iter().filter_map(|package| package["default_run"].as_str()).collect();
    assert_eq!(defaults, ["anabranch"]);
}

/// Titles, legends and commands to copy are not meant.
#[test]
fn tables_fit_lines_of_eighty_characters() {
    let here = directory("cli-eighty");
    let commands: [&[&str]; 5] = [
        &["compare", "wlan-lte", "--repeat", "2"],
        &["compare", "map-session", "--schedulers", "min-rtt,late", "--repeat", "2"],
        &["run", "path-failure"],
        &["run", "wlan-lte", "--repeat", "3"],
        &["study", "late/fig02", "--quick", "--repeat", "2"],
    ];
    for command in commands {
        let text = succeed(&here, command);
        let tables: Vec<&str> = text.split("\n\n").filter(|part| part.contains("──")).collect();
        assert!(!tables.is_empty(), "{command:?} prints a table: {text}");
        for table in tables {
            let wide = table.lines().find(|line| line.chars().count() > 80 && line.starts_with("  "));
            assert_eq!(wide, None, "{command:?}:\n{table}");
        }
    }
}
