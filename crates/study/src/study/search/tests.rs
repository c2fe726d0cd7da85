//! Searches over results from a formula, and over real runs.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::study::{Provenance, Study};
use crate::testing::measured;
use anabranch_lab::Measured;
use anabranch_policy::Catalogue;
use anabranch_scenario::Scenario;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const STUDY: &str = r#"
title = "a search"
paper = "TEST"
figure = "Fig. 0"
about = "nothing"
repeat = { full = 12, quick = 2, tries = 4 }
[scenario.path.a]
rate = "10mbit"
[[scenario.workload]]
kind = "files"
size = "20kB"
[[axis]]
name = "delay"
label = "delay"
set = ["path.a.delay={}ms"]
values = [1, 2]
[[system]]
name = "one"
set = ["host.scheduler=min-rtt"]
[[system]]
name = "two"
set = ["host.scheduler=ecf"]
[[statement]]
text = "two is faster"
source = "s"
metric = "completion-time"
order = "two < one"
[[sensitivity]]
name = "Reno"
set = ["host.congestion=reno"]
[[sensitivity]]
name = "CUBIC"
set = ["host.congestion=cubic"]
[[sensitivity]]
name = "short queue"
set = ["path.a.queue=10p"]
[[sensitivity]]
name = "small buffer"
set = ["host.receive-buffer=32KiB"]
"#;

fn prepared(text: &str) -> Prepared {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("study.toml");
    std::fs::write(&path, text).unwrap();
    Prepared::new(Study::load(path.to_str().unwrap()).unwrap(), &Arc::new(Catalogue::default())).unwrap()
}

/// Function that returns true if the second system is faster under these alternatives, at this seed.
type Holds = fn(&[&str], u64) -> bool;

/// Returns all results that a search can ask for: the second system is faster by a tenth if `holds` returns true, and
/// else slower.
fn made_up(prepared: &Prepared, holds: Holds) -> Journal {
    let (journal, all) = (Journal::in_memory(), &prepared.study.sensitivities);
    for set in (0..=LARGEST).flat_map(|size| compatible(all, size)) {
        let extra: Vec<At<String>> = set.iter().flat_map(|n| all[*n].set.iter().cloned()).collect();
        let names: Vec<&str> = set.iter().map(|n| all[*n].name.as_str()).collect();
        let grid = Grid::new(&prepared.study, prepared.catalogue(), &extra).unwrap();
        let put = |(system, scenario): (usize, &Scenario), seed: u64| {
            let noise = 0.001 * (seed % 3) as f64;
            let time = match (system, holds(&names, seed)) {
                (0, _) => 1.0,
                (_, true) => 0.9 + noise,
                (_, false) => 1.1 + noise,
            };
            let run = Measured { completion_s: Some(time), ..measured(seed, 1.0, 1.0) };
            journal.put(&scenario.digest, run).unwrap();
        };
        for ((system, _), scenario) in grid.cells() {
            (1..=12).for_each(|seed| put((*system, scenario), seed));
        }
    }
    journal
}

/// Returns the whole study, and the number of new runs that the search made.
fn searched(prepared: &Prepared, journal: &Journal) -> (StudyResult, usize) {
    let made = AtomicUsize::new(0);
    prepared.run(journal, 1, &|| ()).unwrap();
    let provenance = Provenance { command: String::new(), quick: false };
    let mut result = prepared.result(journal, &provenance).unwrap();
    let done = || {
        made.fetch_add(1, Ordering::Relaxed);
    };
    prepared.search(&mut result, journal, 1, &|_, _| (), &done).unwrap();
    (result, made.into_inner())
}

fn search_of(text: &str, holds: Holds) -> Search {
    let prepared = prepared(text);
    let journal = made_up(&prepared, holds);
    let (result, made) = searched(&prepared, &journal);
    assert_eq!(made, 0, "all results were there");
    result.statements[0].search.clone().unwrap()
}

#[test]
fn the_smallest_set_is_found_and_the_number_of_tries_said() {
    // Two alternatives each reproduce it: both are named, and no pair is tried.
    let search = search_of(STUDY, |set, _| set.contains(&"Reno") || set.contains(&"small buffer"));
    assert_eq!(search.to_string(), "reproduced if “Reno”; or if “small buffer” (4 combinations tried)");
    // A pair reproduces it, where neither does alone. Sets of three that contain the pair are not tried.
    let search = search_of(STUDY, |set, _| set.contains(&"CUBIC") && set.contains(&"small buffer"));
    assert_eq!(search.reproduced().map(Tried::name).collect::<Vec<_>>(), ["“CUBIC” and “small buffer”"]);
    assert!(search.tried.iter().all(|tried| tried.names.len() <= 2) && search.alone().count() == 4);
    // Three alternatives reproduce it, and no fewer.
    let search = search_of(STUDY, |set, _| set.contains(&"CUBIC") && set.len() == 3);
    let names = search.reproduced().next().unwrap().names.join(", ");
    assert_eq!(names, "CUBIC, short queue, small buffer");
    assert!(search.to_string().ends_with("(11 combinations tried)"), "{search}");
}

#[test]
fn alternatives_that_set_the_same_key_are_not_joined() {
    let search = search_of(STUDY, |_, _| false);
    // Four alone; of six pairs all but Reno with CUBIC; of four triples those without both.
    assert_eq!((search.possible, search.tried.len()), (4 + 5 + 2, 4 + 5 + 2));
    assert_eq!(search.to_string(), "not reproduced by any of 11 combinations");
    let both = |tried: &&Tried| tried.names.iter().any(|it| it == "Reno") && tried.names.iter().any(|it| it == "CUBIC");
    assert_eq!(search.tried.iter().find(both), None);
    let at = |set: &str| SensitivityTable { name: String::new(), set: vec![At { span: 0..0, value: set.to_owned() }] };
    assert!(exclude(&at("path.a={ rate = \"1mbit\" }"), &at("path.a.rate=2mbit")), "a table holds its keys");
    assert!(!exclude(&at("path.a.rate=1mbit"), &at("path.a.rate-up=2mbit")));
}

#[test]
fn sets_with_the_same_scenarios_are_tried_once() {
    let twice = format!("{STUDY}[[sensitivity]]\nname = \"Reno again\"\nset = [\"host.congestion=reno\"]\n");
    let twice = twice.replace(
        "name = \"small buffer\"\nset = [\"host.receive-buffer=32KiB\"]",
        "name = \"ten ms\"\nset = [\"path.a.jitter=0ms\"]",
    );
    let search = search_of(&twice, |_, _| false);
    let names: Vec<String> = search.tried.iter().map(Tried::name).collect();
    assert!(!names.iter().any(|name| name.contains("again")), "{names:?}");
    assert_eq!(search.possible, search.tried.len(), "{search}");
}

#[test]
fn a_search_is_bounded_and_begins_with_what_came_nearest() {
    let bounded = STUDY.replace("tries = 4", "tries = 4, combinations = 6");
    let search = search_of(&bounded, |_, _| false);
    assert_eq!(search.to_string(), "not reproduced by any of 6 combinations (of 11)");
    let none = search_of(&STUDY.replace("tries = 4", "tries = 4, combinations = 0"), |_, _| false);
    assert_eq!(none.tried.len(), 4, "each alone is tried in any case");
    // A short queue and a small buffer are undecided alone, where the others show the opposite: their pair comes first.
    let search = search_of(&bounded, |set, seed| match set {
        ["short queue"] | ["small buffer"] => seed % 2 == 0,
        ["short queue", "small buffer"] => true,
        _ => false,
    });
    assert_eq!(search.tried[4].name(), "“short queue” and “small buffer”");
    assert!(search.to_string().ends_with("(5 combinations tried)"), "{search}");
}

/// Four repetitions reproduce it, twelve do not.
#[test]
fn what_a_few_repetitions_reproduce_must_hold_with_all() {
    let search = search_of(STUDY, |set, seed| set == ["Reno"] && seed <= 4);
    assert_eq!(search.reproduced().count(), 0);
    assert_ne!(search.tried[0].verdict, Verdict::Reproduced);
}

#[test]
fn statements_share_the_runs_of_a_search() {
    let runs = |text: &str| {
        let prepared = prepared(text);
        let journal = Journal::in_memory();
        let (result, made) = searched(&prepared, &journal);
        let (again, more) = searched(&prepared, &journal);
        assert_eq!((again, more), (result.clone(), 0), "a search that is called again makes no run twice");
        (made, result)
    };
    let few = STUDY.replace("full = 12", "full = 2").replace("tries = 4", "tries = 2, combinations = 5");
    let never = few.replace("order = \"two < one\"", "system = \"two\"\nat-least = 1000");
    let second = "[[statement]]\ntext = \"never\"\nsource = \"s\"\nmetric = \"completion-time\"\n\
                  system = \"one\"\nat-least = 1000\n";
    let both = never.replace("[[sensitivity]]\nname = \"Reno\"", &format!("{second}[[sensitivity]]\nname = \"Reno\""));
    let (made, one) = runs(&never);
    let (made_for_two, two) = runs(&both);
    assert_eq!((made, made_for_two), (5 * 2 * 2 * 2, made), "sets, systems, points, repetitions");
    assert_eq!(one.statements[0].search, two.statements[0].search);
    assert_eq!(two.statements[1].search.as_ref().unwrap().tried.len(), 5);
}
