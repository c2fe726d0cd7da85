use super::*;
use crate::Counted;
use crate::compare::tests::measured;
use anabranch_engine::ConnectionStats;
use anabranch_engine::statistics::CONNECTION;
use anabranch_units::count;
use anabranch_units::statistic as described;
use serde_json::Value;

/// Collects every number and text in `value`, with its path.
fn leaves(value: &Value, at: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(n, it)| leaves(it, &format!("{at}.{n}"), found)),
        Value::Object(map) => map.iter().for_each(|(key, it)| leaves(it, &format!("{at}.{key}"), found)),
        Value::String(text) => found.push((at.to_owned(), text.clone())),
        other => found.push((at.to_owned(), other.to_string())),
    }
}

/// Returns a measurement whose values all differ.
fn all_different() -> Measured {
    let mut value = serde_json::to_value(measured(0, 1.0, 1.0)).expect("it has a form");
    let filled = serde_json::json!({
        "shares": [0.0, 0.0], "path_bytes": [0, 0], "path_segments": [0, 0],
        "fallback_reasons": { "why": 0 }, "reset_reasons": { "whence": 0 }, "reset_reasons_received": { "whither": 0 },
        "overruled_kinds": { "how": 0 }, "autotuned_buffer_bytes": 0,
        "middleboxes": [{ "name": "a/nat", "altered": 0, "dropped": 0, "made": 0 }],
        "links": [{
            "name": "a/down", "left": 0, "dropped_full": 0, "dropped_early": 0, "marked": 0,
            "sojourn_p50_s": 0.0, "sojourn_p95_s": 0.0, "sojourn_p99_s": 0.0, "sojourn_max_s": 0.0,
            "flows": [],
        }],
        "windows": [{ "from_s": 0.0, "to_s": 0.0, "goodput_bps": 0.0, "path_bps": [0.0, 0.0] }],
        "samples": {
            "at_s": [0.0], "data_acked": [0], "ofo_segments": [0], "buffer_bytes": [0],
            "paths": [{ "received": [0], "cwnd": [0], "queue": [0] }, { "received": [0], "cwnd": [0], "queue": [0] }],
        },
    });
    let optional = [
        "completion_s",
        "completion_sd_s",
        "completion_p50_s",
        "completion_p90_s",
        "completion_p95_s",
        "completion_p99_s",
        "completion_p999_s",
        "page_load_s",
        "object_download_s",
        "suspension_s",
    ];
    let buffers = ["buffer_mean_segments", "buffer_sd_segments"];
    for key in optional.iter().chain(&buffers) {
        value[key] = serde_json::json!(0.5);
    }
    for (key, held) in filled.as_object().expect("it is one") {
        value[key] = held.clone();
    }
    for key in ["decisions", "events_digest"] {
        value[key] = serde_json::json!(format!("the {key}"));
    }
    number(&mut value, &mut 1000);
    serde_json::from_value(value).expect("types stayed as they were")
}

/// Gives each number a value of its own.
fn number(value: &mut Value, next: &mut u64) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|it| number(it, next)),
        Value::Object(map) => map.values_mut().for_each(|it| number(it, next)),
        Value::Number(held) => {
            *next += 1;
            *value = if held.is_f64() { serde_json::json!(*next as f64 + 0.5) } else { serde_json::json!(*next) };
        }
        Value::Null => panic!("a value that the test does not fill"),
        _ => {}
    }
}

#[test]
fn every_field_of_a_measurement_has_a_column() {
    let measured = all_different();
    let paths = ["wlan".to_owned(), "lte".to_owned()];
    let cells: Vec<(String, Cell)> =
        STATISTICS.iter().flat_map(|statistic| statistic.columns(&measured, &paths)).collect();
    let words: Vec<String> = cells
        .iter()
        .flat_map(|(_, cell)| cell.to_string().split([' ', ',']).map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let mut found = Vec::new();
    leaves(&serde_json::to_value(&measured).expect("it has a form"), "", &mut found);
    for (place, value) in found {
        let named = place.ends_with(".name") && cells.iter().any(|(name, _)| name.contains(&value));
        let texts = cells.iter().any(|(_, cell)| cell.to_string() == value);
        assert!(named || texts || words.contains(&value), "no column has `{place}`, which is {value}");
    }
}

#[test]
fn columns_have_names_of_their_own_and_the_kind_that_is_said() {
    let measured = all_different();
    let mut names = std::collections::BTreeSet::new();
    for statistic in STATISTICS.iter() {
        for (name, cell) in statistic.columns(&measured, &["wlan".to_owned(), "lte".to_owned()]) {
            let kind = match cell {
                Cell::Empty => continue,
                Cell::Flag(_) => Kind::Flag,
                Cell::Count(_) => Kind::Count,
                Cell::Number(_) => Kind::Number,
                Cell::Text(_) => Kind::Text,
            };
            assert_eq!(kind, statistic.kind(), "{name}");
            assert!(names.insert(name.clone()), "two columns are called {name}");
        }
    }
    for name in ["page_load_s", "share_lte", "window_0_path_bps_wlan", "middlebox_a/nat_altered", "samples_cwnd_lte"] {
        assert!(names.contains(name), "{name} is not among {names:?}");
    }
}

#[test]
fn a_statistic_that_is_added_to_a_table_of_the_engine_is_a_statistic_of_runs() {
    type Connection = described::Statistic<ConnectionStats>;
    const KIND: described::Kind = described::Kind::Counter;
    let dummy = Connection::new("dummy", KIND, described::Unit::Bytes, "a dummy", count!(reinjected));
    let connection = [CONNECTION, &[dummy]].concat();
    let tables = Tables { connection: &connection, ..Tables::ENGINE };
    let all = statistics(tables);
    let added = all.iter().find(|it| it.name == "dummy_bytes").expect("it has a column");
    assert_eq!((all.len(), added.metric, added.unit), (STATISTICS.len() + 1, Some("dummy"), "B"));

    let run = Measured { counted: Counted::of(tables, &[], &[]), ..measured(0, 1.0, 1.0) };
    assert_eq!(added.columns(&run, &[]), [("dummy_bytes".to_owned(), Cell::Count(0))]);
    assert_eq!(added.number(&run, 0, 0), Some(0.0));
    assert_eq!(serde_json::to_value(&run).expect("it has a form")["dummy_bytes"], 0);
    assert_eq!(all.last().map(|it| &*it.name), Some("bad_add_addr"));
}

#[test]
fn a_run_is_read_back_as_it_was_written() {
    let run = all_different();
    let text = serde_json::to_string(&run).expect("it has a form");
    assert_eq!(serde_json::from_str::<Measured>(&text).expect("it is one"), run);
    let error =
        serde_json::from_str::<Measured>(&text.replace("\"rtos\"", "\"rto\"")).expect_err("it lacks a statistic");
    assert!(error.to_string().contains("`rtos` is missing"), "{error}");
}

#[test]
fn metrics_of_studies_have_names_of_their_own() {
    let names: Vec<&str> = STATISTICS.iter().filter_map(|statistic| statistic.metric).collect();
    assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), names.len(), "{names:?}");
}
