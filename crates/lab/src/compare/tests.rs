#![allow(clippy::unwrap_used)]
use super::*;
use crate::Counted;
use anabranch_engine::statistics::Tables;
use anabranch_policy::Catalogue;
use anabranch_scenario::{Origin, Settings, Variant};
use anabranch_units::statistic::Value;
use std::sync::Arc;

pub(crate) fn measured(seed: u64, completion_s: f64, goodput_bps: f64) -> Measured {
    Measured {
        seed,
        finished: true,
        unfinished: 0,
        completion_s: Some(completion_s),
        goodput_bps,
        mean_goodput_bps: goodput_bps,
        completion_sd_s: None,
        completion_p50_s: None,
        completion_p90_s: None,
        completion_p95_s: None,
        completion_p99_s: None,
        completion_p999_s: None,
        page_load_s: None,
        object_download_s: None,
        ofo_mean: 0.0,
        ofo_wait_s: 0.0,
        path_bytes: vec![1, 1],
        path_segments: vec![1, 1],
        windows: Vec::new(),
        buffer_mean_segments: None,
        buffer_sd_segments: None,
        suspension_s: None,
        decisions: None,
        samples: None,
        shares: vec![0.5, 0.5],
        counted: Counted::of(Tables::ENGINE, &[], &[]).with([
            ("ofo_count", Value::Count(2)),
            ("ofo_peak", Value::Count(1)),
            ("rtos", Value::Count(1)),
            ("segments_sent", Value::Count(100)),
        ]),
        fallbacks: 0,
        altered_bytes: 0,
        middleboxes: Vec::new(),
        links: Vec::new(),
        events_digest: String::new(),
    }
}

fn group(name: &str, values: &[f64]) -> Group {
    let runs = values.iter().enumerate().map(|(n, value)| measured(n as u64, *value, *value)).collect();
    let policy = |name: &str| Variant { name: name.to_owned(), parameters: Settings::default() };
    let policies = Chosen {
        profile: "linux".to_owned(),
        scheduler: policy(name),
        congestion: policy("lia"),
        window: policy("shared"),
        ack_path: policy("own"),
        first_path: policy("as-listed"),
        reinjection: policy("none"),
    };
    Group { name: name.to_owned(), policies, runs }
}

fn comparison(measure: MeasureName) -> Comparison {
    Comparison {
        reference: REFERENCE.to_owned(),
        measure,
        paths: vec!["a".into(), "b".into()],
        candidates: vec![group("min-rtt", &[2.0, 3.0]), group("ecf", &[1.5, 2.5]), group("late", &[1.5, 2.5])],
        singles: vec![group("a", &[3.0, 4.0]), group("b", &[6.0, 4.0])],
        seeds: vec![0, 1],
        shared_link: false,
    }
}

#[test]
fn less_time_and_more_goodput_win() {
    let names = |measure| -> Vec<String> {
        comparison(measure).summary().unwrap().ranking.into_iter().map(|ranked| ranked.scheduler).collect()
    };
    // Equal ones stay in the order in which they were asked for.
    assert_eq!(names(MeasureName::CompletionTime), ["ecf", "late", "min-rtt"]);
    assert_eq!(names(MeasureName::Goodput), ["min-rtt", "ecf", "late"]);
}

#[test]
fn baselines_by_hand() {
    let summary = comparison(MeasureName::CompletionTime).summary().unwrap();
    let best = summary.best_single_path.unwrap();
    assert_eq!((best.name.as_str(), best.value.mean, best.best_to_it.unwrap().mean), ("a", 3.5, -1.5));
    // Seed 0: 1 / (1/3 + 1/6) = 2; seed 1: 1 / (1/4 + 1/4) = 2.
    assert_eq!(summary.sum_of_paths.unwrap().value.mean, 2.0);
    let summary = comparison(MeasureName::Goodput).summary().unwrap();
    // Seed 0: 3 + 6; seed 1: 4 + 4.
    assert_eq!(summary.best_single_path.unwrap().name, "b");
    assert_eq!(summary.sum_of_paths.unwrap().value.mean, 8.5);
}

/// Makes the run of that number end before its transfer does.
fn cut(group: &mut Group, run: usize) {
    (group.runs[run].finished, group.runs[run].unfinished) = (false, 1);
}

#[test]
fn nothing_is_derived_from_a_lower_bound() {
    let mut comparison = comparison(MeasureName::CompletionTime);
    cut(&mut comparison.singles[0], 1);
    let summary = comparison.summary().unwrap();
    assert_eq!((summary.singles[0].censored_runs, summary.singles[1].censored_runs), (1, 0));
    assert_eq!(summary.best_single_path.unwrap().name, "b", "the mean of `a` is smaller, and is no mean");
    assert!(summary.sum_of_paths.is_none());

    // `ecf` would be first: it comes behind those that completed, and no difference to it is computed.
    cut(&mut comparison.candidates[1], 0);
    let summary = comparison.summary().unwrap();
    let names: Vec<&str> = summary.ranking.iter().map(|ranked| ranked.scheduler.as_str()).collect();
    assert_eq!(names, ["late", "min-rtt", "ecf"]);
    assert!(summary.ranking[2].to_reference.is_none() && summary.ranking[2].to_best.is_none());
    assert!(summary.ranking[0].to_reference.is_some());

    comparison.measure = MeasureName::Goodput;
    let summary = comparison.summary().unwrap();
    assert!(summary.sum_of_paths.is_some(), "the goodput of a run that was stopped is one");
}

#[test]
fn differences_are_taken_seed_by_seed() {
    let summary = comparison(MeasureName::CompletionTime).summary().unwrap();
    let tested = summary.ranking[0].to_reference.unwrap();
    // The difference is -0.5 on either seed, though the seeds themselves are 1 apart.
    assert_eq!((tested.difference.mean, tested.difference.half), (-0.5, Some(0.0)));
    assert!(tested.is_significant());
    assert!(summary.ranking[2].to_reference.is_none(), "the reference is not compared with itself");
    assert_eq!(summary.ranking[1].rto_rate, 0.01);
}

/// Small scenario in which every random element draws.
const SCENARIO: &str = r#"
    [path.a]
    rate = "5mbit"
    delay = "10ms"
    jitter = "3ms"
    loss = "2%"
    [path.b]
    rate = "2mbit"
    delay = "40ms"
    loss = { model = "gilbert-elliott", p-good-bad = "1%", p-bad-good = "30%" }
    [[workload]]
    kind = "files"
    sizes = ["100kB", "50kB"]
    [run]
    spread = "1s"
"#;

fn plan(repeat: usize) -> Plan {
    let origin = Origin { scenario: "test.toml".into(), sets: vec![] };
    let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
    let scenario =
        Scenario::read(&Arc::new(Catalogue::default()), "test", "test.toml", SCENARIO, origin, &none).unwrap();
    let schedulers = scenario.default_schedulers();
    Plan::new(scenario, &schedulers, 7, repeat).unwrap()
}

#[test]
fn the_number_of_threads_does_not_show() {
    let results = |jobs| {
        let comparison = plan(3).run(None, jobs, &|| {}).unwrap();
        serde_json::to_string(&comparison.summary().unwrap()).unwrap()
            + &format!("{:?}{:?}", comparison.candidates, comparison.singles)
    };
    let one = results(1);
    assert_eq!(one, results(2));
    assert_eq!(one, results(5));
}

#[test]
fn every_run_is_counted_finishes_and_can_be_repeated_alone() {
    let plan = plan(2);
    let done = std::sync::atomic::AtomicUsize::new(0);
    let count = || {
        done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let comparison = plan.run(None, 2, &count).unwrap();
    assert_eq!(done.into_inner(), plan.len());
    for (group, entrant) in comparison.candidates.iter().chain(&comparison.singles).zip(plan.entrants()) {
        for run in &group.runs {
            assert!(run.finished && run.completion_s.unwrap() > 0.0, "{}: {run:?}", group.name);
            let again = crate::run(&entrant.scenario, run.seed, &crate::Keep::default()).unwrap();
            assert_eq!(again.measured, *run, "{}", group.name);
        }
    }
}

#[test]
fn a_comparison_goes_on_where_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.jsonl");
    let open = || Journal::open(&path, "build").unwrap();
    let told = |journal: &Journal, plan: &Plan| {
        let made = std::sync::atomic::AtomicUsize::new(0);
        let count = || {
            made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        };
        let comparison = plan.run(Some(journal), 1, &count).unwrap();
        (format!("{:?}{:?}", comparison.candidates, comparison.singles), made.into_inner())
    };
    let plan = between(&["ecf", "ecf:beta=0.5", "min-rtt"]);
    let (whole, made) = told(&open(), &plan);
    assert_eq!(made, plan.len());
    // The file as after a kill within the fourth line.
    let lines = std::fs::read(&path).unwrap();
    let kept: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
    std::fs::write(&path, [kept[..3].concat(), kept[3][..9].to_vec()].concat()).unwrap();
    assert_eq!(plan.missing(&open()), plan.len() - 3);
    assert_eq!(told(&open(), &plan), (whole.clone(), plan.len() - 3));
    assert_eq!(told(&open(), &plan), (whole, 0));
}

/// Returns a plan of two repetitions.
fn between(schedulers: &[&str]) -> Plan {
    refused_or(schedulers).unwrap()
}

fn refused_or(schedulers: &[&str]) -> Result<Plan, ScenarioError> {
    let scenario = plan(1).scenario;
    Plan::new(scenario, &schedulers.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), 7, 2)
}

#[test]
fn two_settings_of_one_scheduler_are_ranked() {
    let comparison = between(&["ecf:beta=0.5", "ecf", "min-rtt"]).run(None, 1, &|| {}).unwrap();
    let said: Vec<String> =
        comparison.candidates.iter().map(|group| format!("{} is {}", group.name, group.policies.scheduler)).collect();
    assert_eq!(said, ["ecf:beta=0.5 is ecf (beta=0.5)", "ecf is ecf (beta=0.25)", "min-rtt is min-rtt"]);
}

#[test]
fn a_scheduler_is_compared_once() {
    let refused = |schedulers: &[&str]| refused_or(schedulers).err().unwrap().to_string();
    assert_eq!(refused(&["ecf", "min-rtt", "ecf"]), "`ecf` is named twice");
    assert_eq!(refused(&["ecf", "ecf:beta=0.25"]), "`ecf` and `ecf:beta=0.25` are the same scheduler: ecf (beta=0.25)");
}

#[test]
fn baselines_stay_on_their_path() {
    let comparison = plan(1).run(None, 1, &|| {}).unwrap();
    assert_eq!(comparison.singles[0].runs[0].shares, [1.0, 0.0]);
    assert_eq!(comparison.singles[1].runs[0].shares, [0.0, 1.0]);
}

#[test]
fn systems_are_described_by_their_settings_and_measured_by_the_first() {
    let catalogue = std::sync::Arc::new(anabranch_policy::Catalogue::default());
    let load = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Scenario::load(&catalogue, "lossy", &sets).unwrap()
    };
    let base = ["host.profile=linux"];
    let system = |name: &str, set: &str| (name.to_owned(), load(&[base[0], set]));
    let (olia, small) = (system("olia", "host.congestion=olia"), system("small", "host.receive-buffer=\"96KiB\""));
    let plan = Plan::of_systems(load(&base), vec![small.clone(), olia.clone()], 7, 2).unwrap();
    let described: Vec<String> = plan.described().iter().map(ToString::to_string).collect();
    assert_eq!(described, ["small (host.receive-buffer=\"96KiB\")", "olia (host.congestion=\"olia\")"]);
    let summary = plan.run(None, 1, &|| ()).unwrap().summary().unwrap();
    assert_eq!(summary.reference, "small");
    for ranked in &summary.ranking {
        assert_eq!(ranked.to_reference.is_none(), ranked.scheduler == "small", "{}", ranked.scheduler);
    }
    let twice = Plan::of_systems(load(&base), vec![olia.clone(), ("again".to_owned(), olia.1)], 7, 2).map(drop);
    assert!(twice.unwrap_err().to_string().contains("`olia` and `again` are the same system"));
}
