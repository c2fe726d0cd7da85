//! A comparison of schedulers as a page.

use super::run::{axis, facts, figure, names, series, stack, waiting};
use super::{Grid, Page, Section};
use crate::comparison::{limits, one_sample, ranking, stars, unfinished, words};
use crate::rows::Header;
use anabranch_lab::compare::{Comparison, Group, Summary};
use anabranch_lab::stats::Estimate;
use anabranch_scenario::Scenario;
use anabranch_study::figure::{Figure, Mark, Point};
use anabranch_study::study::SystemInfo;

impl Page {
    /// A page about a comparison, made by `command`.
    pub fn of_comparison(
        scenario: &Scenario,
        header: &Header,
        comparison: &Comparison,
        summary: &Summary,
        command: &str,
    ) -> Page {
        let mut ranks = Grid::of(ranking(header, summary), "Ranking".to_owned());
        ranks.notes = vec![match summary.is_one_sample() {
            true => one_sample(summary),
            false => format!("±: 95 % intervals, differences taken seed by seed. {}", stars(summary)),
        }];
        // The browser breaks lines where it must.
        let words = words(summary).split_whitespace().collect::<Vec<_>>().join(" ");
        let section = Section {
            about: format!("{}\n{words}", header.about.as_deref().unwrap_or_default()).trim().to_owned(),
            warnings: unfinished(summary).into_iter().collect(),
            figures: figures(header, comparison, summary),
            tables: vec![ranks, Grid::of(limits(summary), "What held them back".to_owned())],
            facts: facts(header),
            systems: systems(header, comparison),
            command: command.to_owned(),
            ..Section::of_scenario(scenario, header)
        };
        Page {
            title: format!("{}: {} schedulers compared", header.scenario, summary.ranking.len()),
            lead: String::new(),
            version: header.version_with_build(),
            command: command.to_owned(),
            sections: vec![section],
        }
    }
}

fn systems(header: &Header, comparison: &Comparison) -> Vec<SystemInfo> {
    let system = |group: &Group| SystemInfo {
        name: group.name.clone(),
        set: header.sets.clone(),
        policies: group.policies.seams().iter().map(|(seam, it)| ((*seam).to_owned(), it.to_string())).collect(),
        unavailable: None,
    };
    comparison.candidates.iter().map(system).collect()
}

fn figures(header: &Header, comparison: &Comparison, summary: &Summary) -> Vec<Figure> {
    let bar = |name: &str, estimate: &Estimate| Point {
        category: Some(name.to_owned()),
        y: Some(estimate.mean),
        low: estimate.half.map(|half| estimate.mean - half),
        high: estimate.half.map(|half| estimate.mean + half),
        n: Some(estimate.n),
        ..Point::default()
    };
    let mut figures = Vec::new();

    // A lower bound has no interval, and a colour of its own. Its repetitions are bounds, too.
    let bound = |name: &str, estimate: &Estimate| Point { low: None, high: None, ..bar(name, estimate) };
    let whole = |name: &str, estimate: &Estimate, group: Option<&Group>| Point {
        values: group.map(|group| group.values(comparison.measure)).unwrap_or_default(),
        ..bar(name, estimate)
    };
    let by_name = |name: &str| comparison.candidates.iter().find(|group| group.name == name);
    let (mut ranked, mut baselines, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
    for it in &summary.ranking {
        match it.censored_runs {
            0 => ranked.push(whole(&it.scheduler, &it.value, by_name(&it.scheduler))),
            _ => bounds.push(bound(&it.scheduler, &it.value)),
        }
    }
    for it in &summary.singles {
        let name = format!("TCP on {}", it.path);
        match it.censored_runs {
            0 => baselines.push(whole(&name, &it.value, comparison.singles.iter().find(|group| group.name == it.path))),
            _ => bounds.push(bound(&name, &it.value)),
        }
    }
    baselines.extend(summary.sum_of_paths.as_ref().map(|sum| bar("sum of paths", &sum.value)));
    let all = [("schedulers", ranked), ("to hold against", baselines), ("did not finish: at least", bounds)];
    let all =
        all.into_iter().filter(|(_, points)| !points.is_empty()).map(|(name, points)| series(name, points)).collect();
    let (x, y) = (names("scheduler"), axis(summary.measure, summary.unit));
    let better = if summary.unit == "s" { "less is better" } else { "more is better" };
    let mut first = figure("ranking", "Ranking", Mark::Bar, x, y, all);
    first.notes.push(format!(
        "Dots are means over {} repetitions with 95 % intervals, strokes the repetitions; {better}.",
        summary.repeat
    ));
    if summary.sum_out_of_reach {
        first.notes.push("The sum of the paths counts a shared link more than once and is out of reach.".to_owned());
    }
    // All curves at once would be a tangle: those at the ends, the reference, and what they are held against.
    let ends = [summary.ranking.first(), summary.ranking.last()].into_iter().flatten().map(|it| it.scheduler.as_str());
    let singles: Vec<String> = summary.singles.iter().map(|it| format!("TCP on {}", it.path)).collect();
    let held = ends.chain([summary.reference.as_str()]).chain(singles.iter().map(String::as_str));
    let distribution = first.distribution(&held.collect::<Vec<_>>());
    figures.push(first);
    figures.extend(distribution.map(|it| Figure { title: "Distribution of the repetitions".to_owned(), ..it }));

    let differences: Vec<Point> = summary
        .ranking
        .iter()
        .filter_map(|ranked| Some(bar(&ranked.scheduler, &ranked.to_reference.as_ref()?.difference)))
        .collect();
    if !differences.is_empty() {
        let reference = &summary.reference;
        let (x, y) = (names("scheduler"), axis(&format!("{} less that of {reference}", summary.measure), summary.unit));
        let mut drawn = figure(
            "differences",
            &format!("Difference to {reference}"),
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

    let runs = summary.ranking.iter().filter_map(|ranked| {
        let group = by_name(&ranked.scheduler)?;
        Some((ranked.scheduler.clone(), group.runs.iter().collect()))
    });
    figures.push(waiting(runs, "scheduler"));
    figures
}
