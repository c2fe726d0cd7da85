//! A calibration on the terminal: the same transfers in three worlds.

use crate::number::{percent, with_interval};
use crate::table::{Align, Table};
use anabranch_lab::calibration::{Calibration, Row, Samples};
use anabranch_lab::stats::Estimate;
use std::fmt::Write;

/// The table, what failed, and what the gap comes to.
pub fn calibration(calibration: &Calibration) -> String {
    let Calibration { version, build, kernel, seed, repeat, rows } = calibration;
    let last = seed + (*repeat as u64).saturating_sub(1);
    let mut text = format!("anabranch {version} (build {build}) and Linux {kernel}, seeds {seed} to {last}\n\n");
    let mut table = Table::new([
        ("transfer", Align::Left),
        ("", Align::Left),
        ("simulator [s]", Align::Right),
        ("testbed [s]", Align::Right),
        ("gap [%]", Align::Right),
        ("kernel [s]", Align::Right),
        ("to testbed [%]", Align::Right),
        ("shares: sim", Align::Right),
        ("testbed", Align::Right),
        ("kernel", Align::Right),
    ]);
    for row in rows {
        table.row([
            row.case.clone(),
            row.protocol.name().to_owned(),
            mean(&row.simulator),
            mean(&row.testbed),
            gap(row.engine_gap()),
            mean(&row.kernel),
            gap(row.kernel_gap()),
            shares(&row.simulator),
            shares(&row.testbed),
            shares(&row.kernel),
        ]);
    }
    text += &table.to_string();
    text += "\nMeans with 95 % intervals. gap: our engine on the testbed to itself in the simulator; to testbed: the kernel to our\n\
             engine, both on the testbed; differences taken seed by seed. shares: of what the links delivered, by path.\n";
    text += &objects(rows);
    text += &claims(rows);
    let remarks: String = rows.iter().map(remarks).collect();
    if !remarks.is_empty() {
        text += &format!("\n{remarks}");
    }
    if let (Some(median), Some((widest, by))) = (calibration.median_gap(), calibration.widest()) {
        let (case, protocol) = (&widest.case, widest.protocol.name());
        let by = with_interval(&by, 0.01, true);
        writeln!(
            text,
            "\nThe engine's gap is {} at the median of {} rows, at most {by} % ({case}, {protocol}).",
            percent(median),
            rows.len()
        )
        .expect("writing to a String cannot fail");
    }
    text
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

    #[test]
    fn a_claim_stands_once_behind_its_cases() {
        let row = |case: &str, protocol, claim| {
            let (simulator, testbed, kernel) = (Samples::default(), Samples::default(), Samples::default());
            Row { case: case.to_owned(), protocol, claim, digest: String::new(), simulator, testbed, kernel }
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
}
