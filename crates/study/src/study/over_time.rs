//! Figures over time: samples of the runs, or events of each segment.
//!
//! Each point is the mean over the repetitions that were still running at that time. There is no point for fewer than
//! half of them, since the last ones are not representative.

use super::file::PlotTable;
use super::grid::{Grid, Table};
use super::load::Study;
use super::plot::panel;
use super::scale::Unit;
use crate::figure::{Axis, Figure, Mark, Point, Scale, Series, SeriesOrigin};
use anabranch_lab::Samples;
use anabranch_lab::stats::Estimate;
use anabranch_scenario::Problem;
use anabranch_scenario::file::At;
use anabranch_scenario::{Scenario, ScenarioError};
use anabranch_units::suggest;

/// Series by name, with unit and meaning. A series of a path takes the name of the path after a colon.
pub const SERIES: [(&str, &str, &str); 6] = [
    ("data-acked", "B", "data acknowledged to the sender"),
    ("ofo", "segments", "segments held out of order"),
    ("buffer", "B", "occupied receive buffer"),
    ("path-goodput", "bit/s", "goodput of the path"),
    ("cwnd", "B", "congestion window"),
    ("queue", "packets", "packets in the queue of the path"),
];

/// Series over time, of one path or of none.
pub(super) struct Course {
    name: &'static str,
    unit: &'static str,
    about: String,
    path: Option<usize>,
}

impl Course {
    /// Parses the series that a study names.
    pub(super) fn parse(study: &Study, at: &At<String>, grid: &Grid) -> Result<Course, ScenarioError> {
        let (name, argument) = at.value.split_once(':').unwrap_or((&at.value, ""));
        let problem = |problem: String, help: String| study.refuse(Problem::at(&at.span, problem, help));
        let Some(&(name, unit, about)) = SERIES.iter().find(|(known, ..)| *known == name) else {
            let names: Vec<&str> = SERIES.iter().map(|(name, ..)| *name).collect();
            return Err(problem(format!("there is no series `{name}` over time"), suggest(name, names)));
        };
        let takes_path = matches!(name, "path-goodput" | "cwnd" | "queue");
        let paths = grid.scenario(0).map(Scenario::paths).unwrap_or_default();
        let known: Vec<&str> = paths.iter().map(String::as_str).collect();
        let path = known.iter().position(|path| *path == argument);
        match (takes_path, path, argument) {
            (true, None, _) => {
                Err(problem(format!("`{name}` takes a path, and this is `{argument}`"), suggest(argument, known)))
            }
            (false, _, argument) if !argument.is_empty() => {
                Err(problem(format!("`{name}` takes no argument"), format!("accepted: {name}")))
            }
            _ => {
                let about = if takes_path { format!("{about} ({argument})") } else { about.to_owned() };
                Ok(Course { name, unit, about, path })
            }
        }
    }

    /// Returns times \[s\] and heights in the basic unit.
    fn of(&self, samples: &Samples) -> Vec<(f64, f64)> {
        let path = self.path.and_then(|path| samples.paths.get(path));
        let plain = |numbers: &[u64]| samples.at_s.iter().copied().zip(numbers.iter().map(|n| *n as f64)).collect();
        match (self.name, path) {
            ("data-acked", _) => plain(&samples.data_acked),
            ("ofo", _) => plain(&samples.ofo_segments),
            ("buffer", _) => plain(&samples.buffer_bytes),
            ("cwnd", Some(path)) => plain(&path.cwnd),
            ("queue", Some(path)) => plain(&path.queue),
            ("path-goodput", Some(path)) => {
                let times = samples.at_s.windows(2);
                let rate = |(t, n): (&[f64], &[u64])| (t[1], 8.0 * n[1].saturating_sub(n[0]) as f64 / (t[1] - t[0]));
                times.zip(path.received.windows(2)).map(rate).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Draws one diagram.
pub(super) fn draw(
    study: &Study,
    table: &Table<'_>,
    plot: &PlotTable,
    systems: &[usize],
) -> Result<Figure, ScenarioError> {
    let Some(at) = &plot.metric else {
        let help = "accepted: metric = the name of a series";
        return Err(ScenarioError::plain(format!("plot `{}` over time shows nothing", plot.id), Some(help.to_owned())));
    };
    let course = Course::parse(study, at, table.grid)?;
    let mut series = Vec::new();
    for &system in systems {
        let name = study.systems().nth(system).map_or("", |system| system.name.as_str()).to_owned();
        let mut points = Vec::new();
        for place in study.points(&Default::default()) {
            let panel = (!study.axes.is_empty()).then(|| everything(study, &place)).or(panel(study, &place));
            points.extend(
                mean(table.runs(system, &place), &course)
                    .into_iter()
                    .map(|point| Point { panel: panel.clone(), ..point }),
            );
        }
        series.push(Series { name, origin: SeriesOrigin::Measured, points });
    }
    let heights = series.iter().flat_map(|series| &series.points).filter_map(|point| point.y);
    let unit = Unit::suited(course.unit, heights.fold(0.0, |largest: f64, y| largest.max(y.abs())));
    for point in series.iter_mut().flat_map(|series| &mut series.points) {
        for number in [&mut point.y, &mut point.low, &mut point.high].into_iter().flatten() {
            *number /= unit.size;
        }
    }
    let labels: Vec<&str> = study.axes.iter().map(|axis| axis.label.as_str()).collect();
    Ok(Figure {
        id: plot.id.clone(),
        title: plot.title.clone(),
        mark: Mark::Line,
        x: Axis { label: "time".to_owned(), unit: "s".to_owned(), scale: Scale::Linear },
        y: Axis {
            label: course.about,
            unit: unit.name.to_owned(),
            scale: if plot.log { Scale::Log } else { Scale::Linear },
        },
        panels: (!labels.is_empty()).then(|| labels.join(", ")),
        // Points of the first axis follow each other: panels of a row differ in it alone.
        columns: (study.axes.len() > 1).then(|| study.axes[0].points.len()),
        first: Vec::new(),
        series,
        notes: Vec::new(),
    })
}

/// Describes the point on all axes; time replaces the first axis of the diagram.
fn everything(study: &Study, place: &super::grid::Point) -> String {
    let names: Vec<String> = study.axes.iter().zip(place).map(|(axis, n)| axis.shown(*n)).collect();
    names.join(", ")
}

/// Returns the mean over repetitions, sample by sample.
fn mean(runs: &[anabranch_lab::Measured], course: &Course) -> Vec<Point> {
    let all: Vec<Vec<(f64, f64)>> =
        runs.iter().filter_map(|run| run.samples.as_ref()).map(|it| course.of(it)).collect();
    let longest = all.iter().map(Vec::len).max().unwrap_or(0);
    // More samples than a figure can show are thinned evenly.
    let step = longest.div_ceil(MOST_POINTS).max(1);
    let point = |n: usize| {
        let here: Vec<f64> = all.iter().filter_map(|run| run.get(n)).map(|(_, y)| *y).collect();
        let at = all.iter().find_map(|run| run.get(n)).map(|(t, _)| *t)?;
        let estimate = Estimate::of(&here).filter(|_| 2 * here.len() >= all.len())?;
        let [low, high] = [-1.0, 1.0].map(|sign| estimate.half.map(|half| estimate.mean + sign * half));
        Some(Point { x: Some(at), y: Some(estimate.mean), low, high, n: Some(estimate.n), ..Point::default() })
    };
    (0..longest).step_by(step).filter_map(point).collect()
}

/// Maximum number of points of one series.
const MOST_POINTS: usize = 600;
