//! A comparison of schedulers as a page.

use super::run::{axis, facts, figure, names, series, stack, waiting};
use super::{Grid, Page, Section};
use crate::comparison::{limits, ranking, words};
use crate::rows::Header;
use anabranch_lab::Scenario;
use anabranch_lab::compare::{Comparison, REFERENCE, Summary};
use anabranch_lab::figure::{Figure, Mark, Point};
use anabranch_lab::stats::Estimate;
use anabranch_lab::study::SystemInfo;

impl Page {
    /// A page about a comparison, made by `command`. `singles`: plain TCP on each path.
    pub fn of_comparison(
        scenario: &Scenario,
        header: &Header,
        comparison: &Comparison,
        summary: &Summary,
        singles: &[(String, Estimate)],
        command: &str,
    ) -> Page {
        let unfinished: usize = summary.ranking.iter().map(|ranked| ranked.unfinished_runs).sum();
        let all = summary.repeat * summary.ranking.len();
        let warning = format!(
            "{unfinished} of {all} runs did not finish; what they left undone counts until the run was stopped."
        );
        let mut ranks = Grid::of(ranking(header, summary, singles), "Ranking".to_owned());
        ranks.notes = vec![
            "± and *: 95 % intervals; differences taken seed by seed, * where the interval leaves out zero.".to_owned(),
        ];
        // The browser breaks lines where it must.
        let words = words(summary).split_whitespace().collect::<Vec<_>>().join(" ");
        let section = Section {
            about: format!("{}\n{words}", header.about.as_deref().unwrap_or_default()).trim().to_owned(),
            warnings: if unfinished > 0 { vec![warning] } else { Vec::new() },
            figures: figures(header, comparison, summary, singles),
            tables: vec![ranks, Grid::of(limits(summary), "What held them back".to_owned())],
            facts: facts(header),
            systems: systems(header, comparison),
            command: command.to_owned(),
            ..Section::of_scenario(scenario, header)
        };
        Page {
            title: format!("{}: {} schedulers compared", header.scenario, summary.ranking.len()),
            lead: String::new(),
            version: header.version.to_owned(),
            command: command.to_owned(),
            sections: vec![section],
        }
    }
}

fn systems(header: &Header, comparison: &Comparison) -> Vec<SystemInfo> {
    let system = |group: &anabranch_lab::compare::Group| SystemInfo {
        name: group.name.clone(),
        set: header.sets.clone(),
        policies: group.policies.seams().iter().map(|(seam, it)| ((*seam).to_owned(), it.to_string())).collect(),
    };
    comparison.candidates.iter().map(system).collect()
}

fn figures(header: &Header, comparison: &Comparison, summary: &Summary, singles: &[(String, Estimate)]) -> Vec<Figure> {
    let bar = |name: &str, estimate: &Estimate| Point {
        category: Some(name.to_owned()),
        y: Some(estimate.mean),
        low: estimate.half.map(|half| estimate.mean - half),
        high: estimate.half.map(|half| estimate.mean + half),
        n: Some(estimate.n),
        ..Point::default()
    };
    let mut figures = Vec::new();

    let ranked = summary.ranking.iter().map(|ranked| bar(&ranked.scheduler, &ranked.value)).collect();
    let mut baselines: Vec<Point> =
        singles.iter().map(|(path, estimate)| bar(&format!("TCP on {path}"), estimate)).collect();
    baselines.push(bar("sum of paths", &summary.sum_of_paths.value));
    let all = vec![series("schedulers", ranked), series("to hold against", baselines)];
    let (x, y) = (names("scheduler"), axis(summary.measure, summary.unit));
    let better = if summary.unit == "s" { "less is better" } else { "more is better" };
    let mut first = figure("ranking", "Ranking", Mark::Bar, x, y, all);
    first.notes.push(format!("Means over {} repetitions with 95 % intervals; {better}.", summary.repeat));
    if summary.sum_out_of_reach {
        first.notes.push("The sum of the paths counts a shared link more than once and is out of reach.".to_owned());
    }
    figures.push(first);

    let differences: Vec<Point> = summary
        .ranking
        .iter()
        .filter_map(|ranked| Some(bar(&ranked.scheduler, ranked.to_reference.as_ref()?)))
        .collect();
    if !differences.is_empty() {
        let (x, y) = (names("scheduler"), axis(&format!("{} less that of {REFERENCE}", summary.measure), summary.unit));
        let mut drawn = figure(
            "differences",
            &format!("Difference to {REFERENCE}"),
            Mark::Bar,
            x,
            y,
            vec![series("difference", differences)],
        );
        drawn
            .notes
            .push("Taken seed by seed; a whisker that crosses zero is no difference that could be told.".to_owned());
        figures.push(drawn);
    }

    let mut shares: Vec<_> = header.paths.iter().map(|path| series(path.clone(), Vec::new())).collect();
    for ranked in &summary.ranking {
        let parts: Vec<f64> = ranked.shares.iter().map(|share| share * 100.0).collect();
        stack(&mut shares, &ranked.scheduler, &parts, summary.repeat);
    }
    let (x, y) = (axis("share of bytes", "%"), names("scheduler"));
    figures.push(figure("shares", "Where the data went first", Mark::Span, x, y, shares));

    let by_name = |name: &str| comparison.candidates.iter().find(|group| group.name == name);
    let runs = summary.ranking.iter().filter_map(|ranked| {
        let group = by_name(&ranked.scheduler)?;
        Some((ranked.scheduler.clone(), group.runs.iter().collect()))
    });
    figures.push(waiting(runs, "scheduler"));
    figures
}
