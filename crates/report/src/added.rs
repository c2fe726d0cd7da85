//! A statistic that is added to the engine's tables is in every output of results.

use crate::rows::{Header, derived, json, run_rows};
use crate::runs::subflows_by;
use crate::sheet::Sheet;
use anabranch_engine::statistics::{CONNECTION, SUBFLOW, Tables};
use anabranch_engine::{ConnectionStats, SubflowStats};
use anabranch_lab::statistic::{STATISTICS, statistics};
use anabranch_lab::{Keep, Measured, Run};
use anabranch_policy::Catalogue;
use anabranch_scenario::{Origin, Scenario};
use anabranch_units::count;
use anabranch_units::statistic::{Access, Kind, Statistic, Unit};
use std::borrow::Cow;
use std::sync::Arc;

const TEXT: &str = "[path.wlan]\nrate = \"25mbit\"\nrtt = \"20ms\"\n[path.lte]\nrate = \"12mbit\"\nrtt = \"60ms\"\n\
                    [[workload]]\nkind = \"files\"\nsize = \"100kB\"\n";

fn played() -> (Header, Run) {
    let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
    let origin = Origin { scenario: "file.toml".to_owned(), sets: Vec::new() };
    let scenario = Scenario::read(&Arc::new(Catalogue::default()), "file", "file.toml", TEXT, origin, &none);
    let scenario = scenario.expect("it can be read");
    let run = anabranch_lab::run(&scenario, 1, &Keep::default()).expect("it goes to its end");
    (Header::new(&scenario, 1, 1), run)
}

/// The same run with a value more, which a table with a statistic more would have brought.
fn with_value(run: &Run) -> Measured {
    let mut document = serde_json::to_value(&run.measured).expect("it has a form");
    document["dummy_bytes"] = 5.into();
    serde_json::from_value(document).expect("a value more is no fault")
}

#[test]
fn rows_have_it_as_csv_parquet_and_json() {
    let dummy = Statistic::<ConnectionStats>::new("dummy", Kind::Counter, Unit::Bytes, "a dummy", count!(reinjected));
    let connection = [CONNECTION, &[dummy]].concat();
    let statistics = statistics(Tables { connection: &connection, ..Tables::ENGINE });
    let (header, mut run) = played();
    run.measured = with_value(&run);
    let runs = [run];
    let rows = run_rows(&header, &runs);

    let sheet = Sheet::with_statistics(&statistics, &header, &rows);
    let at = sheet.columns().iter().position(|(name, _)| name == "dummy_bytes").expect("it has a column");
    let csv = String::from_utf8(sheet.csv().expect("it is written")).expect("it is text");
    let cells: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((cells[0][at], cells[1][at]), ("dummy_bytes", "5"));
    let parquet = sheet.parquet().expect("it is written");
    assert!(parquet.windows(11).any(|bytes| bytes == b"dummy_bytes"));
    let document: serde_json::Value =
        serde_json::from_str(&json(&header, None, &rows, None).expect("it is written")).expect("it is JSON");
    assert_eq!(document["runs"][0]["dummy_bytes"], 5);
}

#[test]
fn json_has_every_statistic_that_has_one_column() {
    let (header, run) = played();
    let document = serde_json::to_value(&run.measured).expect("it has a form");
    let derived = derived(&STATISTICS, &run.measured, &header.paths);
    for statistic in STATISTICS.iter().filter(|it| it.is_single()) {
        let name: &Cow<'_, str> = &statistic.name;
        assert!(document.get(&**name).is_some() || derived.contains_key(&**name), "{name}");
    }
}

#[test]
fn tables_of_subflows_have_it_if_it_has_a_heading() {
    type Subflow = Statistic<SubflowStats>;
    let dummy =
        Subflow::new("dummy", Kind::Counter, Unit::None, "a dummy", count!(counts.segments_sent)).headed("dummies");
    let (header, run) = played();
    let connection = &run.outcome.connections[0];
    let table = subflows_by(&[SUBFLOW, &[dummy]].concat(), &header, connection).to_string();
    let sent = connection.subflows[0].stats.segments_sent.to_string();
    // The last column, which may stand below the others.
    let mut lines = table.lines().skip_while(|line| !line.trim_end().ends_with("dummies"));
    assert!(lines.next().is_some(), "{table}");
    assert!(lines.any(|line| line.contains("wlan") && line.trim_end().ends_with(&sent)), "{table}");
}

#[test]
fn statistics_of_receivers_are_those_of_the_receiving_end_of_a_subflow() {
    let arrived = Statistic::<SubflowStats>::new("arrived", Kind::Counter, Unit::None, "a dummy", BYTES_RECEIVED);
    let table = [arrived.of_receiver().headed("arrived")];
    let (header, run) = played();
    let connection = &run.outcome.connections[0];

    let received: Vec<u64> = connection.receiving_subflows.iter().map(|it| it.stats.bytes_received).collect();
    assert_eq!(received.iter().sum::<u64>(), run.measured.counted.count("bytes_received"));
    assert!(received.iter().sum::<u64>() >= 100_000, "{received:?}");
    let table = subflows_by(&table, &header, connection).to_string();
    for subflow in &connection.subflows {
        let other = connection.receiving_end(subflow).expect("both ends know of it");
        assert_eq!(other.path, subflow.path);
        let line = table.lines().find(|line| line.contains(&header.paths[subflow.path])).expect("it has a line");
        assert!(line.trim_end().ends_with(&format!(" {}", other.stats.bytes_received)), "{table}");
    }
}

const BYTES_RECEIVED: Access<SubflowStats> = count!(counts.bytes_received);
