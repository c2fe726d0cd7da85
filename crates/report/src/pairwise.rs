//! Every scheduler against every other on the terminal: how fast each is in each scenario, and who beats whom.

use crate::policies::{candidates, of_scenarios};
use crate::table::{Align, Table};
use anabranch_lab::pairwise::{LEAST, Ratio, Standings};

/// The two tables and how to read them, in lines of at most `width` characters.
pub fn pairwise(standings: &Standings, width: usize) -> String {
    let Some(reference) = standings.reference() else { return String::new() };
    let count = standings.scenarios.len();
    let mut text = format!(
        "anabranch {} (build {}): every scheduler against every other over {count} scenarios\n\n",
        standings.version, standings.build
    );
    for (letter, bout) in letters().zip(&standings.scenarios) {
        let seeds = match bout.seeds.as_slice() {
            [] => "no runs".to_owned(),
            [one] => format!("seed {one}"),
            [first, .., last] => format!("seeds {first} to {last}"),
        };
        let digest = &bout.digest[..12.min(bout.digest.len())];
        text += &format!("  {letter}  {} ({digest}), {}, {seeds}", bout.scenario, bout.measure);
        text += &match bout.unfinished {
            0 => "\n".to_owned(),
            n => format!("; {n} runs did not finish\n"),
        };
    }
    text +=
        &format!("\nFaster than {reference} by so many percent; 95 % intervals\n\n{}", speeds(standings, reference));
    text += "\nIn how many scenarios the one at the left beats the one above, less those where it is beaten\n\n";
    text += &matrix(standings, width);
    text += &format!(
        "\nWon, lost: pairs over all scenarios. A win is certain (the interval leaves out 0) and at least {} %; of so many\n\
         pairs, one in twenty that are alike passes for certain. Geometric means of ratios taken seed by seed.\n\n\
         Policies, with all their parameters:\n",
        LEAST * 100.0
    );
    let schedulers: Vec<_> = standings.schedulers.iter().map(|standing| standing.scheduler.clone()).collect();
    let scenarios: Vec<_> = letters().zip(standings.scenarios.iter().map(|bout| &bout.policies)).collect();
    text + &candidates(&schedulers) + &of_scenarios(&scenarios)
}

fn letters() -> impl Iterator<Item = char> {
    ('A'..='Z').chain('a'..='z')
}

fn speeds(standings: &Standings, reference: &str) -> Table {
    let names: Vec<String> = letters().take(standings.scenarios.len()).map(String::from).collect();
    let mut columns = vec![("#", Align::Right), ("scheduler", Align::Left)];
    columns.extend(names.iter().map(|name| (name.as_str(), Align::Right)));
    columns.extend([("won", Align::Right), ("lost", Align::Right)]);
    let mut table = Table::new(columns);
    for (n, standing) in standings.schedulers.iter().enumerate() {
        let name = &standing.scheduler.name;
        let mut row = vec![(n + 1).to_string(), name.clone()];
        let speed = |bout: &anabranch_lab::pairwise::Bout| bout.speed(name, reference).map_or(String::new(), percent);
        row.extend(standings.scenarios.iter().map(speed));
        row.extend([standing.won.to_string(), standing.lost.to_string()]);
        table.row(row);
    }
    table
}

/// `+3.1 ±0.4`: the interval of a ratio is not quite even to both sides; the wider side is shown.
fn percent(ratio: Ratio) -> String {
    let mean = (ratio.mean - 1.0) * 100.0;
    // Zero has no sign: `-0.0` would look like slower.
    let mean = if mean.abs() < 0.05 { "0.0".to_owned() } else { format!("{mean:+.1}") };
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{mean} ±{:.1}", (ratio.mean - low).max(high - ratio.mean) * 100.0),
        _ => mean,
    }
}

/// Matrix of wins and losses, in several parts if it is wider than `width`.
fn matrix(standings: &Standings, width: usize) -> String {
    let names: Vec<&str> = standings.schedulers.iter().map(|standing| standing.scheduler.name.as_str()).collect();
    let label = names.iter().map(|name| name.chars().count()).max().unwrap_or(0) + 8;
    let cell = standings.scenarios.len().to_string().len().max(names.len().to_string().len()) + 3;
    let at_once = (width.saturating_sub(label) / cell).max(1);
    let parts = (0..names.len()).step_by(at_once).map(|first| {
        let columns: Vec<usize> = (first..names.len().min(first + at_once)).collect();
        let numbers: Vec<String> = columns.iter().map(|column| (column + 1).to_string()).collect();
        let mut header = vec![("#", Align::Right), ("scheduler", Align::Left)];
        header.extend(numbers.iter().map(|number| (number.as_str(), Align::Right)));
        let mut table = Table::new(header);
        for (n, name) in names.iter().enumerate() {
            let cells = columns.iter().map(|&column| match (n == column, standings.net(name, names[column])) {
                (true, _) => String::new(),
                (false, 0) => "·".to_owned(),
                (false, net) => format!("{net:+}"),
            });
            table.row([(n + 1).to_string(), (*name).to_owned()].into_iter().chain(cells));
        }
        table.to_string()
    });
    parts.collect::<Vec<_>>().join("\n")
}
