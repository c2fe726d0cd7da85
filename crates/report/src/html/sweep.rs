//! A sweep as a page.

use super::run::{axis, figure, names, series};
use super::{Grid, Page, Section};
use crate::leaderboard::ratio;
use crate::sweep::{best, failures, in_full, place, size, sweep_notes, sweep_ranking};
use crate::table::{Align, Table};
use anabranch_study::figure::{Axis, Figure, Mark, Point, Scale};
use anabranch_study::sweep::{HeatMap, Standing, Summary};

impl Page {
    /// A page about a sweep, made by `command`.
    pub fn of_sweep(summary: &Summary, title: &str, command: &str) -> Page {
        let mut ranks = Grid::of(sweep_ranking(summary), "Ranking".to_owned());
        ranks.notes = sweep_notes(summary);
        let mut tables = vec![ranks];
        if let Some(heat) = &summary.heat {
            let systems = summary.standings.iter().zip(&heat.cells);
            tables.extend(systems.filter(|(_, cells)| !cells.is_empty()).map(|(it, cells)| map(it, heat, cells)));
        }
        tables.extend(summary.standings.iter().filter(|it| !it.worst.is_empty()).map(worst));
        if !summary.failed.is_empty() {
            tables.push(broken(summary));
        }
        let mut facts = vec![
            ("conditions".to_owned(), size(summary)),
            ("digest of the rows (SHA-256)".to_owned(), summary.rows_digest.clone()),
            ("Anabranch".to_owned(), summary.made_by.clone()),
            ("made by".to_owned(), summary.command.clone()),
        ];
        facts.extend(summary.axes.iter().map(|axis| (axis.name.clone(), axis.values.clone())));
        facts.extend(summary.standings.iter().map(|it| (format!("system {}", it.rank), in_full(it))));
        let warnings = (summary.done < summary.conditions)
            .then(|| format!("{} of {} conditions have been run.", summary.done, summary.conditions));
        let section = Section {
            name: "sweep".to_owned(),
            title: title.to_owned(),
            warnings: warnings.into_iter().collect(),
            figures: figures(summary),
            tables,
            facts,
            command: command.to_owned(),
            ..Section::default()
        };
        Page {
            title: format!("{} systems over {} conditions", summary.standings.len(), summary.done),
            lead: String::new(),
            version: summary.made_by.clone(),
            command: command.to_owned(),
            sections: vec![section],
        }
    }
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let ranked = || summary.standings.iter().filter(|it| !it.regret.is_empty());
    let bar = |it: &Standing| {
        let mean = it.to_best.or(it.to_single);
        Point {
            category: Some(it.system.name.clone()),
            y: mean.map(|it| it.mean),
            low: mean.and_then(|it| it.low),
            high: mean.and_then(|it| it.high),
            n: Some(it.conditions),
            ..Point::default()
        }
    };
    let (title, label) = match ranked().any(|it| it.to_best.is_some()) {
        true => ("Time over that of the best of all others", "time over that of the best of all others"),
        false => ("Time over that of plain TCP on the best path", "time over that of plain TCP on the best path"),
    };
    let means = figure(
        "to-best",
        title,
        Mark::Bar,
        names("system"),
        axis("geometric mean over conditions", ""),
        vec![series("systems", ranked().map(bar).collect())],
    );
    let curve = |it: &Standing| {
        let point =
            |(percent, ratio): (usize, &f64)| Point { x: Some(*ratio), y: Some(percent as f64), ..Point::default() };
        series(it.system.name.clone(), it.regret.iter().enumerate().map(point).collect())
    };
    let x = Axis { scale: Scale::Log, ..axis(label, "") };
    let y = axis("conditions at or below it", "%");
    let mut regret = figure("regret", "Regret", Mark::Step, x, y, ranked().map(curve).collect());
    regret
        .notes
        .push("An empirical distribution function; below 1 a system is faster than the best of all others.".to_owned());
    vec![means, regret]
}

/// Cells over two axes, each shaded by its ratio.
fn map(it: &Standing, heat: &HeatMap, cells: &[anabranch_study::sweep::HeatCell]) -> Grid {
    let [columns, rows] = &heat.bins;
    let heads = columns.iter().map(|name| (name.as_str(), Align::Right));
    let corner = format!("{} \\ {}", heat.axes[1], heat.axes[0]);
    let mut table = Table::new([(corner.as_str(), Align::Left)].into_iter().chain(heads));
    let mut shades = Vec::new();
    for (y, name) in rows.iter().enumerate() {
        let found = |x: usize| cells.iter().find(|cell| cell.at == [x, y]);
        let row = (0..columns.len()).map(|x| found(x).map(|cell| ratio(cell.ratio)).unwrap_or_default());
        table.row([name.clone()].into_iter().chain(row.collect::<Vec<_>>()));
        let shade = |x: usize| found(x).map_or(0, |cell| shade(cell.ratio));
        shades.push([0].into_iter().chain((0..columns.len()).map(shade)).collect());
    }
    let other = if it.to_best.is_some() { "the best of all others" } else { "plain TCP on the best path" };
    let caption = format!("{}: time over that of {other}", it.system.name);
    let mut grid = Grid { shades, ..Grid::of(table, caption) };
    grid.notes.push("Geometric means; the darker, the more is lost. Green: faster by 2 % or more.".to_owned());
    grid
}

/// Shade of a cell: 1 to 7 by loss of performance, 8 where it is faster than all others by 2 % or more.
fn shade(ratio: f64) -> u8 {
    const LIMITS: [f64; 6] = [1.02, 1.05, 1.1, 1.2, 1.5, 2.0];
    match ratio {
        x if x <= 0.98 => 8,
        x => 1 + LIMITS.iter().filter(|limit| x > **limit).count() as u8,
    }
}

fn worst(standing: &Standing) -> Grid {
    let columns = ["times the best", "the best", "condition", "command", "command of the best"];
    let align = |n: usize| if n == 0 { Align::Right } else { Align::Left };
    let mut table = Table::new(columns.into_iter().enumerate().map(|(n, name)| (name, align(n))));
    for it in &standing.worst {
        let other = it.best_command.clone().unwrap_or_default();
        table.row([ratio(it.ratio), best(it), place(it), it.command.clone(), other]);
    }
    Grid::of(table, format!("The worst conditions of {}", standing.system.name))
}

fn broken(summary: &Summary) -> Grid {
    let columns = ["system", "seed", "problem", "command"].map(|name| (name, Align::Left));
    let mut table = Table::new(columns);
    for it in &summary.failed {
        table.row([it.name.clone(), it.seed.to_string(), it.problem.clone(), it.command.clone()]);
    }
    Grid::of(table, failures(summary).trim_end_matches(':').to_owned())
}
