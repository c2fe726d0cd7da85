//! Lessons: each runs, and its claims hold.

use anabranch_policy::Catalogue;
use anabranch_web::{Lesson, answer, lessons};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Figures of a lesson: for each, the mean of each series for each system.
type Numbers = Vec<Vec<BTreeMap<String, f64>>>;

fn play(name: &str, sets: &[String]) -> Numbers {
    let request = json!({ "do": "lesson", "name": name, "sets": sets }).to_string();
    let text = answer(&Arc::new(Catalogue::default()), &request, &[], &|_, _| ());
    let found: Value = serde_json::from_str(&text).unwrap();
    assert!(found["error"].is_null(), "{name} {sets:?}: {}", found["error"]);
    let figures = found["ok"]["charts"]["figures"].as_array().unwrap();
    let bars = figures.iter().filter(|it| it["mark"] == "bar");
    bars.map(|figure| figure["series"].as_array().unwrap().iter().map(|series| numbers(figure, series)).collect())
        .collect()
}

fn numbers(figure: &Value, series: &Value) -> BTreeMap<String, f64> {
    // A property that all points share stands once.
    let at = |property: &Value, n: usize| match property {
        Value::Array(all) => all[n].clone(),
        one => one.clone(),
    };
    let length = series["length"].as_u64().unwrap() as usize;
    let name = |n: usize| {
        let category = at(&series["c"], n).as_u64().unwrap() as usize;
        figure["categories"][category].as_str().unwrap().to_owned()
    };
    (0..length).filter_map(|n| Some((name(n), at(&series["y"], n).as_f64()?))).collect()
}

#[test]
fn lessons_say_what_happens() {
    let mut failures = Vec::new();
    for (name, lesson) in lessons().unwrap() {
        let mut known: BTreeMap<Vec<String>, Numbers> = BTreeMap::new();
        for claim in &lesson.claims {
            let numbers = known.entry(claim.sets.clone()).or_insert_with(|| play(name, &claim.sets));
            let series = &numbers[claim.figure][claim.series];
            let (less, more) = (series[&claim.less], series[&claim.more]);
            if less >= claim.factor * more {
                let said = format!("{} is below {} times {}", claim.less, claim.factor, claim.more);
                failures.push(format!("{name} {:?}: {said}: {less} and {more}; all: {numbers:?}", claim.sets));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Every value that the reader can choose runs, and every system has its numbers.
#[test]
fn every_change_runs() {
    for (name, lesson) in lessons().unwrap() {
        let values = |lesson: &Lesson| -> Vec<String> {
            let all = lesson.changes.iter();
            all.flat_map(|it| it.values.iter().skip(1).map(|value| format!("{}={value}", it.key))).collect()
        };
        assert!(lesson.changes.len() >= 2 && !lesson.claims.is_empty(), "{name} has nothing to change or to claim");
        for set in values(&lesson) {
            for series in play(name, std::slice::from_ref(&set)).iter().flatten() {
                assert_eq!(series.len(), lesson.systems.len(), "{name} {set}: {series:?}");
            }
        }
    }
}
