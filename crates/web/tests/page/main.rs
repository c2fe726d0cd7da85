//! The laboratory in a real browser: `web/build` builds the page, Chromium opens it from disk, and results are compared
//! with those of the native simulator. Lessons are held to what they say.
//!
//! Without Chromium, node or npm the test of the page says on standard error that it was skipped; with
//! `ANABRANCH_REQUIRE_BROWSER` set, as in CI, it fails.
#![allow(clippy::unwrap_used)]

// The report's own test uses all of it.
#[allow(dead_code)]
#[path = "../../../report/tests/html/browser.rs"]
mod browser;
mod lessons;

use anabranch_lab::{Journal, Keep};
use anabranch_policy::Catalogue;
use anabranch_scenario::{Scenario, shipped::SHIPPED};
use anabranch_study::rank::Condition;
use anabranch_study::study::{Prepared, Provenance, Study};
use anabranch_web::answer;
use anabranch_why::CaptureInquiry;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Scenarios whose digests are compared.
const SCENARIOS: usize = 50;

#[test]
fn the_page_works_in_a_browser_and_gives_the_results_of_the_command() {
    let Some(chromium) = browser::chromium() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("laboratory");
    fs::create_dir_all(&folder).unwrap();
    if let Err(problem) = parts(&root) {
        return browser::skip(&problem);
    }
    // Cargo tells a test where programs of this build are, which the build for another target must not hear of.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let mut build = Command::new(root.join("web/build"));
    build.arg("--out").arg(&folder).env("CARGO_TARGET_DIR", target);
    // The compiler of the page mostly works on one processor.
    let (built, expected) = std::thread::scope(|scope| {
        let built = scope.spawn(|| build.output().unwrap());
        let expected = expected(&folder);
        (built.join().unwrap(), expected)
    });
    if !built.status.success() {
        return browser::skip(&format!("web/build fails: {}", String::from_utf8_lossy(&built.stderr)));
    }
    fs::write(folder.join("expected.json"), expected.to_string()).unwrap();
    let mut check = Command::new("node");
    check.current_dir(&root).arg("web/tests/check.mjs").arg(chromium).arg(folder.join("index.html")).arg(&folder);
    let output = check.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.ends_with("all checks hold\n"), "{said}");
}

/// Compares the script and the styles that `anabranch lab` serves with those that `web/src` gives. The error says why
/// they could not be built.
fn parts(root: &Path) -> Result<(), String> {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parts");
    let output = Command::new(root.join("web/build")).arg("--parts").arg(&built).output().unwrap();
    if !output.status.success() {
        return Err(format!("web/build --parts fails: {}", String::from_utf8_lossy(&output.stderr)));
    }
    for name in ["main.js", "main.css"] {
        let (new, kept) = (fs::read(built.join(name)).unwrap(), root.join("crates/web/page").join(name));
        let is_same = fs::read(&kept).unwrap() == new;
        assert!(is_same, "crates/web/page/{name} is out of date: `web/build --parts crates/web/page` writes it anew");
    }
    Ok(())
}

/// Returns what the native simulator gives.
fn expected(folder: &Path) -> Value {
    let catalogue = Arc::new(Catalogue::default());
    let wlan = SHIPPED.iter().find(|it| it.name == "wlan-lte").unwrap().text;
    let ask = |request: Value| -> Value {
        serde_json::from_str(&answer(&catalogue, &request.to_string(), &[], &|_, _| ())).unwrap()
    };
    let source = json!({ "name": "wlan-lte", "text": wlan, "sets": [] });
    let why = ask(json!({ "do": "why", "source": source, "seed": 3, "repeat": 5 }));
    let run = anabranch_lab::run(&load(&catalogue, "wlan-lte", &[]), 3, &Keep::default()).unwrap();

    let keep = Keep { captures: Some(folder.to_owned()), ..Keep::default() };
    anabranch_lab::run(&load(&catalogue, "asymmetric-10-100", &["host.receive-buffer=64KiB"]), 1, &keep).unwrap();
    let captures = ["client.pcapng", "server.pcapng"];
    let paths: Vec<PathBuf> = captures.iter().map(|name| folder.join(name)).collect();
    json!({
        "wlan": wlan,
        "run": { "digest": run.measured.events_digest },
        "why": why["ok"]["answer"]["sentence"],
        "captures": captures,
        "capture": CaptureInquiry::read(&paths).answer(None).sentence,
        "digests": digests(&catalogue),
        "studies": STUDIES.map(|(name, sets)| study(&catalogue, name, sets)),
    })
}

/// Studies whose results are compared, with overrides: one with three axes, one over time, a table, and one overridden.
const STUDIES: [(&str, &[&str]); 5] = [
    ("lowlat/fig08", &[]),
    ("f2p/fig07", &[]),
    ("lowlat/table1", &[]),
    ("late/fig03", &[]),
    ("late/fig10", &["host.congestion=cubic", "run.stop=60s"]),
];

/// Returns the result of a study as the command has it, with `--quick --repeat 2`.
fn study(catalogue: &Arc<Catalogue>, name: &str, sets: &[&str]) -> Value {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let study = Study::load(name).unwrap().overridden(&sets).quick().repeated(2);
    let prepared = Prepared::new(study, catalogue).unwrap();
    let journal = Journal::in_memory();
    prepared.run(&journal, 0, &|| ()).unwrap();
    let more: String = sets.iter().map(|set| format!(" --set {set}")).collect();
    let command = format!("anabranch study {name} --quick --repeat 2{more}");
    let result = prepared.result(&journal, &Provenance { command, quick: true }).unwrap();
    let asked = json!({ "name": name, "quick": true, "repeat": 2, "sets": sets });
    json!({ "study": asked, "result": result })
}

/// Returns digests as the command has them: of the shipped scenarios and of drawn conditions, with schedulers in turn.
fn digests(catalogue: &Arc<Catalogue>) -> Vec<Value> {
    let shipped = SHIPPED.iter().map(|it| (it.name.to_owned(), it.text.to_owned()));
    let drawn = (1..).map(|number| Condition::drawn(1, number)).filter(|it| it.traces().is_empty());
    let drawn = drawn.map(|it| (it.name(), it.toml()));
    let schedulers: Vec<&str> = catalogue.schedulers.names().filter(|name| *name != "single").collect();
    let all = shipped.chain(drawn).take(SCENARIOS).enumerate();
    let one = |(n, (name, text)): (usize, (String, String))| {
        let set = format!("host.scheduler={}", schedulers[n % schedulers.len()]);
        let scenario = load(catalogue, &name, &[&set]);
        let seeds = if n < SHIPPED.len() { vec![1] } else { vec![1, 2] };
        let digest =
            |seed: &u64| anabranch_lab::run(&scenario, *seed, &Keep::default()).unwrap().measured.events_digest;
        let events: Vec<String> = seeds.iter().map(digest).collect();
        let source = json!({ "name": name, "text": text, "sets": [set] });
        json!({ "source": source, "seeds": seeds, "digest": scenario.digest, "events": events })
    };
    all.map(one).collect()
}

/// Loads a scenario as the command does.
fn load(catalogue: &Arc<Catalogue>, name: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    anabranch_study::load(catalogue, name, &sets).unwrap()
}
