//! Figures made from results.

use super::claim::TheoryCurve;
use super::file::PlotTable;
use super::grid::{Point as Place, Table};
use super::load::{Axis as StudyAxis, Study};
use super::metric::Metric;
use super::scale::Unit;
use crate::figure::{Axis, Figure, Mark, Point, Scale, Series, SeriesOrigin};
use anabranch_lab::statistic::Censoring;
use anabranch_lab::stats::Estimate;
use anabranch_scenario::ScenarioError;
use anabranch_scenario::file::At;

/// Draws one diagram of the study.
pub(super) fn draw(study: &Study, table: &Table<'_>, plot: &PlotTable) -> Result<Figure, ScenarioError> {
    let refuse = |problem| study.refuse(problem);
    let over = plot.over.as_ref().map(|at| study.system(at)).transpose().map_err(refuse)?;
    let systems = systems(study, plot, over).map_err(refuse)?;
    if plot.over_time {
        return super::over_time::draw(study, table, plot, &systems);
    }
    let metric = match &plot.metric {
        Some(at) => Some(study.metric(at, table.grid)?),
        None => None,
    };
    let mut drawing = Drawing { study, table, metric, over, bars: plot.bars, series: Vec::new() };
    for &system in &systems {
        drawing.measure(system);
    }
    for theory in &plot.theory {
        let curve = TheoryCurve::of(&theory.value).map_err(refuse)?;
        drawing.theory(&theory.value.name, &curve, theory.value.panel);
    }
    let unit = drawing.rescale();
    let label = match (&drawing.metric, over) {
        (Some(metric), None) => metric.about(),
        (Some(metric), Some(base)) => {
            let base = study.systems().nth(base).map_or("", |system| system.name.as_str());
            format!("change against {base}: {}", metric.about())
        }
        (None, _) => plot.title.clone(),
    };
    let scale = if plot.log { Scale::Log } else { Scale::Linear };
    Ok(Figure {
        id: plot.id.clone(),
        title: plot.title.clone(),
        mark: if drawing.has_categories() { Mark::Bar } else { Mark::Line },
        x: drawing.x_axis(),
        y: Axis { label, unit: unit.name.to_owned(), scale },
        panels: drawing.panels(),
        // Points of the second axis follow each other: panels of a row differ in it alone.
        columns: (study.axes.len() > 2).then(|| study.axes[1].points.len()),
        first: Vec::new(),
        notes: drawing.notes(),
        series: drawing.series,
    })
}

/// Returns the systems of a plot: those it names, or else all but the one that the others are relative to.
fn systems(study: &Study, plot: &PlotTable, over: Option<usize>) -> Result<Vec<usize>, anabranch_scenario::Problem> {
    match &plot.systems {
        Some(at) => {
            let find = |name: &String| study.system(&At { span: at.span.clone(), value: name.clone() });
            at.value.iter().map(find).collect()
        }
        None => Ok((0..study.systems().count()).filter(|system| Some(*system) != over).collect()),
    }
}

struct Drawing<'a> {
    study: &'a Study,
    table: &'a Table<'a>,
    metric: Option<Metric>,
    over: Option<usize>,
    bars: bool,
    series: Vec<Series>,
}

impl Drawing<'_> {
    fn has_categories(&self) -> bool {
        self.bars || self.study.axes.first().is_none_or(|axis| axis.is_category)
    }

    fn measure(&mut self, system: usize) {
        let Some(metric) = &self.metric else { return };
        let name = self.study.systems().nth(system).map_or("", |system| system.name.as_str());
        let point = |place: &Place| {
            let values = match self.over {
                None => self.table.values(system, place, metric),
                Some(base) => self.table.change(system, base, place, metric),
            };
            let estimate = values.as_deref().and_then(Estimate::of);
            let compared = std::iter::once(system).chain(self.over);
            let unfinished = compared.map(|it| self.table.unfinished(it, place, metric)).sum::<usize>();
            let at_least = unfinished > 0 && self.over.is_none() && metric.censoring() == Censoring::LowerBound;
            // A lower bound has no interval.
            let half = estimate.and_then(|it| it.half).filter(|_| !at_least);
            let runs = self.table.runs(system, place).len() * (1 + usize::from(self.over.is_some()));
            Point {
                y: estimate.map(|it| it.mean),
                low: estimate.zip(half).map(|(it, half)| it.mean - half),
                high: estimate.zip(half).map(|(it, half)| it.mean + half),
                n: estimate.map(|it| it.n),
                // Lines have too many points for it.
                values: values.filter(|_| self.has_categories()).unwrap_or_default(),
                note: (unfinished > 0).then(|| did_not_finish(unfinished, runs, at_least)),
                unfinished,
                at_least,
                ..self.place(place, name)
            }
        };
        let points = self.study.points(&Default::default()).iter().map(point).collect();
        self.series.push(Series { name: name.to_owned(), origin: SeriesOrigin::Measured, points });
    }

    /// Returns the position of a point, without a height yet.
    fn place(&self, place: &Place, system: &str) -> Point {
        let first = self.study.axes.first().zip(place.first());
        let category = match first {
            None => Some(system.to_owned()),
            Some((axis, n)) => self.has_categories().then(|| axis.shown(*n)),
        };
        let x = first.filter(|_| !self.has_categories()).map(|(axis, n)| axis.points[*n].x);
        Point { panel: panel(self.study, place), x, category, ..Point::default() }
    }

    fn theory(&mut self, name: &str, curve: &TheoryCurve, panel_value: Option<f64>) {
        let Some(axis) = self.study.axes.first() else { return };
        let mut points = Vec::new();
        for place in self.study.points(&Default::default()) {
            // One curve per panel, drawn with its first point.
            let is_first = place.first() == Some(&0);
            let second = self.study.axes.get(1).zip(place.get(1)).map(|(axis, n)| axis.points[*n].x);
            if !is_first || (panel_value.is_some() && second != panel_value) {
                continue;
            }
            let panel = panel(self.study, &place);
            points.extend(fine(axis).into_iter().map(|x| Point {
                panel: panel.clone(),
                x: Some(x),
                y: curve.at(x),
                ..Point::default()
            }));
        }
        self.series.push(Series { name: name.to_owned(), origin: SeriesOrigin::Theory, points });
    }

    /// Scales all heights to a suitable unit.
    fn rescale(&mut self) -> Unit {
        let heights = self.series.iter().flat_map(|series| &series.points).filter_map(|point| point.y);
        let largest = heights.fold(0.0, |largest: f64, y| largest.max(y.abs()));
        let unit = match (&self.metric, self.over) {
            (_, Some(_)) | (None, _) => Unit { name: "%", size: 1.0 },
            (Some(metric), None) => Unit::suited(metric.unit(), largest),
        };
        for point in self.series.iter_mut().flat_map(|series| &mut series.points) {
            for number in [&mut point.y, &mut point.low, &mut point.high].into_iter().flatten() {
                *number /= unit.size;
            }
            point.values.iter_mut().for_each(|value| *value /= unit.size);
        }
        unit
    }

    fn x_axis(&self) -> Axis {
        match self.study.axes.first() {
            None => Axis { label: String::new(), unit: String::new(), scale: Scale::Category },
            Some(axis) => Axis {
                label: axis.label.clone(),
                // With categories the unit is part of their names.
                unit: if self.has_categories() { String::new() } else { axis.unit.clone() },
                scale: match (self.has_categories(), axis.log) {
                    (true, _) => Scale::Category,
                    (_, true) => Scale::Log,
                    _ => Scale::Linear,
                },
            },
        }
    }

    /// Returns notes on points of runs that did not finish.
    fn notes(&self) -> Vec<String> {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let mut notes = Vec::new();
        if points().any(|point| point.at_least) {
            notes.push(
                "≥, △: at least this, for some runs did not finish and count until they were stopped.".to_owned(),
            );
        }
        if points().any(|point| point.unfinished > 0 && !point.at_least) {
            notes.push("†, △: some runs did not finish; the number is that of the part which was run.".to_owned());
        }
        notes
    }

    fn panels(&self) -> Option<String> {
        let labels: Vec<&str> = self.study.axes.iter().skip(1).map(|axis| axis.label.as_str()).collect();
        (!labels.is_empty()).then(|| labels.join(", "))
    }
}

/// Returns the panel of a point: the values of all axes but the first.
pub(super) fn panel(study: &Study, place: &Place) -> Option<String> {
    let name = |(axis, n): (&StudyAxis, &usize)| axis.shown(*n);
    let names: Vec<String> = study.axes.iter().zip(place).skip(1).map(name).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Formats a note: `3 of 30 runs did not finish: at least this`.
fn did_not_finish(unfinished: usize, runs: usize, at_least: bool) -> String {
    let bound = if at_least { ": at least this" } else { "" };
    format!("{unfinished} of {runs} runs did not finish{bound}")
}

/// Number of points that makes a curve look smooth.
const FINE: usize = 100;

/// Returns values from the first to the last point of the axis, evenly spaced on its scale.
fn fine(axis: &StudyAxis) -> Vec<f64> {
    let xs = axis.points.iter().map(|point| point.x);
    let (low, high) = xs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let step = |n: usize| n as f64 / (FINE - 1) as f64;
    match axis.log && low > 0.0 {
        true => (0..FINE).map(|n| low * libm::pow(high / low, step(n))).collect(),
        false => (0..FINE).map(|n| low + (high - low) * step(n)).collect(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::study::{Prepared, Study};
    use anabranch_lab::Journal;
    use anabranch_policy::Catalogue;
    use std::sync::Arc;

    /// RTTs of the second path stand beside each other, warm-ups below each other. Before the first run all places are
    /// gaps.
    #[test]
    fn panels_of_a_study_with_three_axes_stand_in_rows_that_differ_in_one() {
        let study = Study::load("lowlat/fig08").unwrap();
        let prepared = Prepared::new(study, &Arc::new(Catalogue::default())).unwrap();
        let figures = prepared.figures(&Journal::in_memory()).unwrap();
        let [figure] = figures.as_slice() else { panic!("{} figures", figures.len()) };
        let mut panels: Vec<&str> = Vec::new();
        for point in figure.series.iter().filter(|it| it.name == "LRF").flat_map(|it| &it.points) {
            assert_eq!((point.y, point.n), (None, None));
            panels.extend(point.panel.as_deref().filter(|panel| !panels.contains(panel)));
        }
        assert_eq!((panels.len(), figure.columns), (6, Some(3)));
        for (row, warm_up) in panels.chunks(3).zip(["100 kB", "10000 kB"]) {
            let expected = ["10 ms", "40 ms", "100 ms"].map(|rtt| format!("{rtt}, {warm_up}"));
            assert_eq!(row, expected);
        }
    }
}
