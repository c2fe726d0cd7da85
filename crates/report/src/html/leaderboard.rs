//! A leaderboard as a page.

use super::run::{axis, figure, names, series};
use super::{Grid, Page, Section};
use crate::leaderboard::{LISTED, leader, notes, parts, ranking, ratio, size, slower_title};
use crate::table::{Align, Table};
use anabranch_study::figure::{Axis, Figure, Mark, Point, Scale};
use anabranch_study::rank::{Leaderboard, Standing};

impl Page {
    /// A page about a leaderboard, made by `command`.
    pub fn of_leaderboard(board: &Leaderboard, title: &str, version: &str, command: &str) -> Page {
        let mut ranks = Grid::of(ranking(board), "Ranking".to_owned());
        ranks.notes = notes(board);
        let mut tables = vec![ranks];
        for split in &board.splits {
            tables.push(Grid::of(parts(board, split), format!("To the best of all others, by {}", split.by)));
        }
        tables.extend(board.standings.iter().map(worst));
        let losing = board.standings.iter().filter(|it| it.slower.iter().any(|one| one.cause.is_some()));
        tables.extend(losing.map(|it| slower(board, it)));
        let section = Section {
            name: "leaderboard".to_owned(),
            title: title.to_owned(),
            about: leader(board).unwrap_or_default(),
            figures: figures(board),
            tables,
            facts: vec![
                ("conditions".to_owned(), size(board)),
                ("digest (SHA-256)".to_owned(), board.digest.clone()),
                ("Anabranch".to_owned(), version.to_owned()),
            ],
            command: command.to_owned(),
            ..Section::default()
        };
        Page {
            title: format!("{} schedulers over {} conditions", board.standings.len(), board.conditions),
            lead: String::new(),
            version: version.to_owned(),
            command: command.to_owned(),
            sections: vec![section],
        }
    }
}

fn figures(board: &Leaderboard) -> Vec<Figure> {
    let bar = |it: &Standing| Point {
        category: Some(it.scheduler.name.clone()),
        y: Some(it.to_best.mean),
        low: it.to_best.low,
        high: it.to_best.high,
        n: Some(board.conditions),
        ..Point::default()
    };
    let bars = board.standings.iter().map(bar).collect();
    let means = figure(
        "to-best",
        "Time over that of the best of all others",
        Mark::Bar,
        names("scheduler"),
        axis("geometric mean over conditions", ""),
        vec![series("schedulers", bars)],
    );
    let curve = |it: &Standing| {
        let point =
            |(percent, ratio): (usize, &f64)| Point { x: Some(percent as f64), y: Some(*ratio), ..Point::default() };
        series(it.scheduler.name.clone(), it.regret.iter().enumerate().map(point).collect())
    };
    let y = Axis { scale: Scale::Log, ..axis("time over that of the best of all others", "") };
    let mut regret = figure(
        "regret",
        "Regret",
        Mark::Line,
        axis("share of conditions in which it is below", "%"),
        y,
        board.standings.iter().map(curve).collect(),
    );
    regret.notes.push("Below 1 it is faster than the best of all others.".to_owned());
    vec![means, regret]
}

fn worst(standing: &Standing) -> Grid {
    let columns = ["times the best", "the best", "condition", "it", "command"];
    let align = |n: usize| if n == 0 { Align::Right } else { Align::Left };
    let mut table = Table::new(columns.into_iter().enumerate().map(|(n, name)| (name, align(n))));
    for it in &standing.worst {
        let (condition, about) = (it.condition.clone(), it.about.clone());
        table.row([ratio(it.ratio), it.best.clone(), condition, about, it.command.clone()]);
    }
    Grid::of(table, format!("The worst conditions of {}", standing.scheduler.name))
}

fn slower(board: &Leaderboard, standing: &Standing) -> Grid {
    let columns = ["times TCP", "on", "condition", "it", "why", "command"];
    let align = |n: usize| if n == 0 { Align::Right } else { Align::Left };
    let mut table = Table::new(columns.into_iter().enumerate().map(|(n, name)| (name, align(n))));
    for it in standing.slower.iter().take(LISTED) {
        let cause = it.cause.clone().unwrap_or_default();
        table.row([
            ratio(it.ratio),
            it.path.clone(),
            it.condition.clone(),
            it.about.clone(),
            cause,
            it.command.clone(),
        ]);
    }
    Grid::of(table, slower_title(board, standing))
}
