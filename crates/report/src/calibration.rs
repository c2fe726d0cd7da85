//! A calibration on the terminal: the same transfers in three worlds.

use crate::number::{percent, with_interval};
use crate::table::{Align, Table};
use crate::wrap::hang;
use anabranch_lab::calibration::{Calibration, Measure, Protocol, Row, Samples};
use anabranch_lab::stats::Estimate;
use std::fmt::Write;

/// The table, what failed, and what the gap comes to.
pub fn calibration(calibration: &Calibration) -> String {
    let Calibration { version, build, kernel, seed, repeat, rows } = calibration;
    let last = seed + (*repeat as u64).saturating_sub(1);
    let mut text = format!("anabranch {version} (build {build}) and Linux {kernel}, seeds {seed} to {last}\n\n");
    for measure in Measure::ALL {
        text += &table(*measure, rows);
    }
    text += &hang(
        "",
        "Means with 95 % intervals. gap: our engine on the testbed to itself in the simulator; to testbed: the kernel \
         to our engine, both on the testbed; differences taken seed by seed. shares: of what the links delivered, by \
         path.",
        80,
    );
    // Each change has both a new level and a settling time, whose definition follows that of the level.
    let others = Measure::ALL.iter().filter(|it| **it != Measure::CompletionTime);
    for measure in others.filter(|it| rows.iter().any(|row| row.measure == **it)) {
        text += &hang(&format!("{}: ", measure.name()), measure.meaning(), 80);
    }
    text += &objects(rows);
    text += &claims(rows);
    let remarks: String = rows.iter().map(remarks).collect();
    if !remarks.is_empty() {
        text += &format!("\n{remarks}");
    }
    for (protocol, within) in [(Protocol::Tcp, 0.05), (Protocol::Mptcp, 0.1)] {
        let Some(it) = calibration.agreement(protocol, within) else { continue };
        let said = format!(
            "The kernel's {} is within {} of the simulator's in {} of {} rows, at most {} times it ({}).",
            protocol.name(),
            percent(within),
            it.close,
            it.rows,
            crate::number::short(it.widest),
            it.case
        );
        text += &hang("", &said, 80);
    }
    if let (Some(median), Some((widest, by))) = (calibration.median_gap(), calibration.widest()) {
        let (case, protocol) = (&widest.case, widest.protocol.name());
        let by = with_interval(&by, 0.01, true);
        writeln!(
            text,
            "\nThe engine's gap is {} at the median of {} rows, at most {by} % ({case}, {protocol}).",
            percent(median),
            calibration.judged().count()
        )
        .expect("writing to a String cannot fail");
    }
    text
}

/// The rows of a measure, if there are any.
fn table(measure: Measure, rows: &[Row]) -> String {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.measure == measure).collect();
    let unit = if measure.unit().is_empty() { String::new() } else { format!(" [{}]", measure.unit()) };
    let [simulator, testbed, kernel] = ["simulator", "testbed", "kernel"].map(|world| format!("{world}{unit}"));
    let columns = [
        (measure.name(), Align::Left),
        ("", Align::Left),
        (&*simulator, Align::Right),
        (&*testbed, Align::Right),
        ("gap [%]", Align::Right),
        (&*kernel, Align::Right),
        ("to testbed [%]", Align::Right),
        ("shares: sim", Align::Right),
        ("testbed", Align::Right),
        ("kernel", Align::Right),
    ];
    // Without the columns of shares where no row has any.
    let worlds = |row: &Row| [shares(&row.simulator), shares(&row.testbed), shares(&row.kernel)];
    let has_shares = rows.iter().any(|row| worlds(row).iter().any(|shares| !shares.is_empty()));
    let mut table = Table::new(columns.into_iter().take(if has_shares { columns.len() } else { columns.len() - 3 }));
    for row in &rows {
        let change = row.change_s.map_or_else(String::new, |change| format!(", from {change} s on"));
        let values = [
            format!("{}{change}", row.case),
            row.protocol.name().to_owned(),
            mean(&row.simulator),
            mean(&row.testbed),
            gap(row.engine_gap()),
            mean(&row.kernel),
            gap(row.kernel_gap()),
        ];
        table.row(values.into_iter().chain(worlds(row)));
    }
    if rows.is_empty() { String::new() } else { format!("{table}\n") }
}

/// Mean times of the objects of pages, if there are pages.
fn objects(rows: &[Row]) -> String {
    let mut table = Table::new([
        ("objects of", Align::Left),
        ("", Align::Left),
        ("simulator [s]", Align::Right),
        ("testbed [s]", Align::Right),
        ("kernel [s]", Align::Right),
    ]);
    let pages: Vec<&Row> = rows.iter().filter(|row| row.simulator.objects().is_some()).collect();
    for row in &pages {
        let [simulator, testbed, kernel] = [&row.simulator, &row.testbed, &row.kernel].map(|it| time(it.objects()));
        table.row([row.case.clone(), row.protocol.name().to_owned(), simulator, testbed, kernel]);
    }
    if pages.is_empty() { String::new() } else { format!("\n{table}") }
}

/// Claims of papers, each behind the cases that it is about.
fn claims(rows: &[Row]) -> String {
    let mut claims: Vec<(&str, Vec<&str>)> = Vec::new();
    for (row, claim) in rows.iter().filter_map(|row| Some((row, row.claim?))) {
        match claims.iter_mut().find(|(other, _)| *other == claim) {
            Some((_, cases)) if cases.contains(&row.case.as_str()) => {}
            Some((_, cases)) => cases.push(&row.case),
            None => claims.push((claim, vec![&row.case])),
        }
    }
    claims.iter().map(|(claim, cases)| format!("\n{}\n  {claim}\n", cases.join("; "))).collect()
}

fn time(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(|| "-".to_owned(), |estimate| with_interval(&estimate, 1.0, false))
}

fn mean(samples: &Samples) -> String {
    time(samples.mean())
}

fn gap(gap: Option<Estimate>) -> String {
    gap.map_or_else(|| "-".to_owned(), |estimate| with_interval(&estimate, 0.01, true))
}

fn shares(samples: &Samples) -> String {
    if samples.shares.len() < 2 {
        return String::new();
    }
    let shares: Vec<String> = samples.shares.iter().map(|share| format!("{:.0}", share * 100.0)).collect();
    shares.join("/")
}

/// Lists failed and doubtful runs, one per line.
fn remarks(row: &Row) -> String {
    let worlds = [("simulator", &row.simulator), ("testbed", &row.testbed), ("kernel", &row.kernel)];
    let mut text = String::new();
    for (world, samples) in worlds {
        for (kind, remarks) in [("FAILED", &samples.failures), ("doubtful", &samples.doubtful)] {
            for remark in remarks {
                writeln!(text, "{kind}: {}, {}, {world}: {remark}", row.case, row.protocol.name())
                    .expect("writing to a String cannot fail");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_lab::calibration::Protocol;

    fn row(case: &str, protocol: Protocol, measure: Measure, values: [f64; 3]) -> Row {
        let [simulator, testbed, kernel] =
            values.map(|value| Samples { values: vec![Some(value)], ..Samples::default() });
        let (case, digest) = (case.to_owned(), String::new());
        Row { case, protocol, measure, change_s: None, claim: None, digest, simulator, testbed, kernel }
    }

    #[test]
    fn a_claim_stands_once_behind_its_cases() {
        let row = |case: &str, protocol, claim| Row {
            claim,
            ..row(case, protocol, Measure::CompletionTime, [1.0, 1.0, 1.0])
        };
        let rows = [
            row("a", Protocol::Tcp, Some("It falls.")),
            row("a", Protocol::Mptcp, Some("It falls.")),
            row("b", Protocol::Tcp, Some("It falls.")),
            row("c", Protocol::Tcp, None),
        ];
        assert_eq!(claims(&rows), "\na; b\n  It falls.\n");
        assert_eq!(claims(&rows[3..]), "");
    }

    #[test]
    fn each_measure_has_a_table_and_its_definition() {
        let settling = row("shared", Protocol::Mptcp, Measure::SettlingTime, [0.2, 0.9, 0.3]);
        let rows = vec![
            row("shared", Protocol::Mptcp, Measure::Share, [0.8, 0.88, 0.8]),
            Row { change_s: Some(16.0), ..settling },
            row("file", Protocol::Tcp, Measure::CompletionTime, [2.0, 2.1, 2.1]),
        ];
        let (kernel, repeat) = ("6.18".to_owned(), 1);
        let text = calibration(&Calibration { version: "0", build: "b", kernel, seed: 1, repeat, rows });
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part:?} in\n{text}"));
        assert!(at("transfer ") < at("share ") && at("share ") < at("settling "), "{text}");
        assert!(at("shared, from 16 s on  mptcp") < at("Means with"), "{text}");
        assert!(at("Means with") < at("\nshare: Goodput of a bulk") && at("settling: Time from such") > 0, "{text}");
        // The settling times are 350 % apart, in steps of 0.1 s: they do not count.
        assert!(text.contains("7.5 % at the median of 2 rows"), "{text}");
        assert!(!text.contains("transfer: ") && !text.contains("goodput: "), "{text}");
    }
}
