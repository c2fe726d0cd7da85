//! `anabranch study` as someone at a terminal has it: files of results, going on after a kill, errors, and the quick
//! run of all studies, whose verdicts are a snapshot.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_study::study::Study;
use common::{FIELD, STUDY, anabranch, directory, refused, succeed};
use std::fs;
use std::path::Path;

fn with_study(name: &str) -> std::path::PathBuf {
    let directory = directory(name);
    fs::write(directory.join("mine.toml"), STUDY).unwrap();
    directory
}

#[test]
fn a_study_writes_figures_verdicts_and_a_row_per_run() {
    let directory = with_study("study-files");
    let text = succeed(&directory, &["study", "mine.toml", "--report", "page.html"]);
    assert!(text.contains("1 statements: ") && text.contains("completion time [ms]"), "{text}");
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(directory.join("anabranch-studies/mine.json")).unwrap()).unwrap();
    assert_eq!((json["runs"].as_u64(), json["seeds"].as_array().map(Vec::len)), (Some(24), Some(4)));
    let points = json["figures"][0]["series"][0]["points"].as_array().unwrap();
    assert!(points.len() == 3 && points.iter().all(|point| point["low"].as_f64() <= point["high"].as_f64()));
    let rows = fs::read_to_string(directory.join("anabranch-studies/mine.csv")).unwrap();
    assert_eq!(rows.lines().count(), 1 + 24);
    assert!(
        rows.starts_with("version,build,study,system,loss,digest,seed,finished,unfinished,censored,completion_s,"),
        "{rows}"
    );
    // A row names the command that repeats it, and the run is the same.
    let row = rows.lines().nth(5).unwrap();
    let command = row.rsplit(',').next().unwrap().to_owned();
    assert!(command.starts_with("anabranch run mine.toml --seed 1 --set path.a.loss=1%"), "{command}");
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--json"]).collect();
    let again: serde_json::Value = serde_json::from_str(&succeed(&directory, &words)).unwrap();
    let digest = again["runs"][0]["events_digest"].as_str().unwrap();
    assert!(row.contains(digest), "{digest} is not in {row}");
    assert!(fs::read_to_string(directory.join("page.html")).unwrap().contains("loss slows TCP down"));
}

#[test]
fn a_killed_study_goes_on_where_it_was_and_comes_to_the_same() {
    let directory = with_study("study-resume");
    let whole = succeed(&directory, &["study", "mine.toml", "--json", "--jobs", "1"]);
    let journal = directory.join("anabranch-studies/runs.jsonl");
    let lines = fs::read(&journal).unwrap();
    let of_line: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(of_line.len(), 24);
    // Killed in the middle of the tenth line.
    let mut cut = of_line[..9].concat();
    cut.extend(&of_line[9][..20]);
    fs::write(&journal, cut).unwrap();
    assert_eq!(succeed(&directory, &["study", "mine.toml", "--json", "--jobs", "1"]), whole);
    assert_eq!(fs::read(&journal).unwrap(), lines, "what was there stayed, and the rest came in the same order");
    // The study is complete: a second call runs nothing and appends nothing.
    assert_eq!(succeed(&directory, &["study", "mine.toml", "--json", "--jobs", "2"]), whole);
    assert_eq!(fs::read(&journal).unwrap(), lines);
}

/// One of the two statements cannot hold, and the search for other assumptions has three sets to try.
#[test]
fn a_killed_search_goes_on_where_it_was() {
    const MORE: &str = r#"
[[statement]]
text = "nobody takes a minute"
source = "here"
metric = "completion-time"
system = "minRTT"
at-least = 60
[[sensitivity]]
name = "Reno"
set = ["host.congestion=reno"]
[[sensitivity]]
name = "first on the slow path"
set = ["run.primary=b"]
"#;
    let directory = directory("study-search");
    fs::write(directory.join("mine.toml"), format!("{STUDY}{MORE}")).unwrap();
    let arguments = ["study", "mine.toml", "--sensitivity", "--jobs", "1", "--json"];
    let whole = succeed(&directory, &arguments);
    let json: serde_json::Value = serde_json::from_str(&whole).unwrap();
    let statement =
        json["studies"][0]["statements"].as_array().unwrap().iter().find(|it| it["text"] == "nobody takes a minute");
    let search = &statement.unwrap()["search"];
    assert_eq!((search["possible"].as_u64(), search["tried"].as_array().map(Vec::len)), (Some(3), Some(3)));
    assert_eq!(search["tried"][2]["names"].as_array().map(Vec::len), Some(2));
    // 24 runs of the study, and as many for each set: its other statement holds, or shares them.
    let journal = directory.join("anabranch-studies/runs.jsonl");
    let lines = fs::read(&journal).unwrap();
    let of_line: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(of_line.len(), 24 * (1 + 3));
    fs::write(&journal, of_line[..60].concat()).unwrap();
    assert_eq!(succeed(&directory, &arguments), whole);
    assert_eq!(fs::read(&journal).unwrap(), lines);
    let text = succeed(&directory, &["study", "mine.toml", "--sensitivity"]);
    assert!(text.contains("not reproduced by any of 3 combinations"), "{text}");
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let of_jobs = |jobs: &str| {
        let directory = with_study(&format!("study-jobs-{jobs}"));
        let text = succeed(&directory, &["study", "mine.toml", "--json", "--jobs", jobs]);
        (text, fs::read(directory.join("anabranch-studies/mine.csv")).unwrap())
    };
    assert_eq!(of_jobs("1"), of_jobs("3"));
}

#[test]
fn overrides_lie_over_axes_and_systems_and_results_say_so() {
    let directory = with_study("study-set");
    let sets = ["--set", "path.a.loss=1%", "--set", "host.scheduler=ecf"];
    let arguments = [&["study", "mine.toml", "--json", "--report", "page.html"], &sets[..]].concat();
    let json: serde_json::Value = serde_json::from_str(&succeed(&directory, &arguments)).unwrap();
    let study = &json["studies"][0];
    assert_eq!(study["sets"], serde_json::json!(["path.a.loss=1%", "host.scheduler=ecf"]));
    let all = "--set path.a.loss=1% --set host.scheduler=ecf";
    assert_eq!(study["command"], format!("anabranch study mine.toml {all}"));
    // The axis sets what is overridden: its points are one.
    let points = study["figures"][0]["series"][0]["points"].as_array().unwrap();
    assert!(points.len() == 3 && points.iter().all(|point| point["y"] == points[0]["y"]), "{points:?}");
    assert!(study["systems"][0]["policies"].to_string().contains("ecf"), "{}", study["systems"]);
    let rows = fs::read_to_string(directory.join("anabranch-studies/mine.csv")).unwrap();
    assert!(rows.lines().skip(1).all(|row| row.ends_with(all)), "{rows}");
    let page = fs::read_to_string(directory.join("page.html")).unwrap();
    assert!(page.contains("Overridden: path.a.loss=1%, host.scheduler=ecf."), "the page does not say it");

    let error = refused(&directory, &["study", "mine.toml", "--set", "host.schedular=ecf"]);
    assert!(error.contains("scheduler"), "{error}");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let directory = with_study("study-errors");
    for (from, to, said) in [
        (
            "metric = \"completion-time\"\nsystem",
            "metric = \"completion-tim\"\nsystem",
            "there is no metric `completion-tim`",
        ),
        ("system = \"TCP\"\ntrend", "system = \"TPC\"\ntrend", "did you mean `TCP`?"),
        ("trend = \"rises\"", "trend = \"rises\"\nvalue = 3", "this statement makes 2 claims"),
        ("quick = [1]", "quick = [3]", "3 is not a value of this axis"),
        ("rate = \"20mbit\"", "rate = \"20\"", "20mbit"),
        ("path.a.loss={}%", "path.c.loss={}%", "path.c"),
        ("paper = \"TEST\"", "paper = \"TEST\"\nbase = \"other.toml\"", "there is no base `other.toml`"),
    ] {
        assert!(STUDY.contains(from), "{from}");
        fs::write(directory.join("wrong.toml"), STUDY.replace(from, to)).unwrap();
        let error = refused(&directory, &["study", "wrong.toml"]);
        assert!(error.contains(said) || error.contains("wrong.toml"), "{to}: {error}");
    }
    let error = refused(&directory, &["study", "late/fig1"]);
    assert!(error.contains("did you mean"), "{error}");
    fs::create_dir_all(directory.join("anabranch-studies")).unwrap();
    fs::write(directory.join("anabranch-studies/runs.jsonl"), "nonsense\n").unwrap();
    let output = anabranch(&directory, &["study", "mine.toml"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && error.contains("line 1 is no record of a run"), "{error}");
}

#[test]
fn a_scenario_of_a_study_runs_alone() {
    let directory = directory("study-run");
    let text = succeed(&directory, &["run", "late/fig10", "--set", "workload.0.count=1", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["scenario"], "late/fig10");
}

/// Checks the document, which is made by hand from full runs (CONTRIBUTING.md).
#[test]
fn the_reproduction_document_has_every_statement() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduction.md");
    let document = fs::read_to_string(path).unwrap();
    for name in Study::names() {
        let study = Study::load(name).unwrap();
        let rows = document.lines().filter(|line| line.starts_with(&format!("| {name} | ")));
        let held: Vec<&str> = rows.filter_map(|row| row.split(" | ").nth(1)).collect();
        let stated: Vec<String> = study.statements().map(|text| text.replace('<', "&lt;")).collect();
        assert_eq!(held, stated, "docs/reproduction.md is older than {name}");
    }
}

/// `BLESS=1 cargo test -p anabranch-cli --test study` accepts what came out.
#[test]
fn the_quick_verdicts_are_those_of_the_last_time() {
    let directory = directory("study-quick");
    succeed(&directory, &["study", "--all", "--quick", "--json", "--reproduction", "quick.md"]);
    let found = fs::read_to_string(directory.join("quick.md")).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/study-quick.md");
    if std::env::var_os("BLESS").is_some() {
        return fs::write(path, found).unwrap();
    }
    let held = fs::read_to_string(path).unwrap_or_default();
    let lacks = |text: &str, line: &&str| !text.lines().any(|other| other == *line);
    let gone = held.lines().filter(|line| lacks(&found, line)).map(|line| format!("- {line}"));
    let come = found.lines().filter(|line| lacks(&held, line)).map(|line| format!("+ {line}"));
    let changed: Vec<String> = gone.chain(come).collect();
    assert!(
        held == found,
        "verdicts changed; if that is meant: BLESS=1 cargo test -p anabranch-cli --test study\n{}",
        changed.join("\n")
    );
}

#[test]
fn a_field_study_says_which_measured_numbers_are_inside() {
    let here = directory("field-study");
    fs::write(here.join("mine.toml"), FIELD).unwrap();
    let text = succeed(&here, &["study", "mine.toml", "--report", "page.html", "--reproduction", "field.md"]);
    let verdict = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("{name}: {text}")).split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!((verdict("right"), verdict("wrong")), ("inside".to_owned(), "above".to_owned()), "{text}");
    assert!(text.contains("Measured inside the predicted range in 1 of 2 rows"), "{text}");
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(here.join("anabranch-studies/mine.json")).unwrap()).unwrap();
    assert_eq!((json["inside"].as_u64(), json["runs"].as_u64()), (Some(1), Some(5)));
    let (page, document) = ["page.html", "field.md"].map(|it| fs::read_to_string(here.join(it)).unwrap()).into();
    assert!(page.contains("More than the link carries.") && page.contains("5 to 50 ms"), "the page says less");
    assert!(document.contains("| **above** | there |") && document.contains("| inside | here |"), "{document}");

    // A prediction names the command that repeats it.
    let command = json["rows"][0]["predictions"][2]["command"].as_str().unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--json"]).collect();
    let again: serde_json::Value = serde_json::from_str(&succeed(&here, &words)).unwrap();
    assert_eq!(again["runs"][0]["goodput_bps"], json["rows"][0]["predictions"][2]["value"], "{command}");
}

#[test]
fn what_a_field_study_lacks_is_named_with_the_remedy() {
    let here = directory("field-study-errors");
    fs::write(here.join("mine.toml"), FIELD).unwrap();
    fs::write(here.join("paper.toml"), STUDY).unwrap();
    let said = |words: &[&str]| refused(&here, &[&["study"], words].concat());
    let missing = said(&["field/conext23"]);
    assert!(missing.contains("git clone https://github.com/Starlink-Project/Satellite-vs-Cellular"), "{missing}");
    assert!(missing.contains("--data Satellite-vs-Cellular") && missing.contains("_all.csv"), "{missing}");
    assert!(said(&["field/conext"]).contains("did you mean `field/conext23`?"));
    assert!(said(&["mine.toml", "paper.toml"]).contains("`paper.toml` is no field study"));
    assert!(said(&["mine.toml", "--sensitivity"]).contains("no sensitivities"));
    assert!(said(&["paper.toml", "--data", "."]).contains("--data is for field studies"));
    let list = succeed(&here, &["study", "--list"]);
    assert!(list.contains("field/conext23") && list.contains("field/simult-flows"), "{list}");
}
