//! Figures as pictures: title, legend, and for each panel a frame with its axes and the marks of the points.

use super::frame::Span;
use super::picture::{Anchor, BLACK, GREY, Pen, Picture, SMALL, Text, WIDTH, pen, width};
use anabranch_study::figure::{Axis, Figure, Mark, Point, Scale, Series};

/// Height of a frame with numbers upwards, and of one category \[pt\].
const HEIGHT: f64 = 180.0;
const ROW: f64 = 15.0;
/// Room beside frames, and between texts \[pt\].
const MARGIN: f64 = 10.0;
const LINE: f64 = 12.0;

/// Draws a figure below what the picture has.
pub(super) fn draw(picture: &mut Picture, figure: &Figure) {
    let drawing = Drawing::of(figure);
    let y = picture.height + MARGIN + LINE;
    let title = Text { at: [MARGIN, y], anchor: Anchor::Start, up: false, size: 10.0, words: figure.title.clone() };
    picture.push_text(title);
    picture.height = y + MARGIN;
    drawing.legend(picture);
    for panel in &drawing.panels {
        drawing.panel(picture, panel.as_deref());
    }
}

/// A figure with what its panels share.
struct Drawing<'a> {
    figure: &'a Figure,
    /// Series that are drawn, each with its pen.
    series: Vec<(&'a Series, Pen)>,
    panels: Vec<Option<String>>,
    categories: Vec<&'a str>,
    /// Horizontal and vertical.
    spans: [Span; 2],
    left: f64,
}

/// Place of a panel \[pt\].
struct Frame<'a> {
    spans: &'a [Span; 2],
    left: f64,
    top: f64,
    height: f64,
}

impl Frame<'_> {
    fn x(&self, x: f64) -> Option<f64> {
        Some(self.left + self.spans[0].share(x)? * (WIDTH - MARGIN - self.left))
    }

    fn y(&self, y: f64) -> Option<f64> {
        Some(self.top + (1.0 - self.spans[1].share(y)?) * self.height)
    }

    fn at(&self, x: f64, y: f64) -> Option<[f64; 2]> {
        Some([self.x(x)?, self.y(y)?])
    }
}

/// Adds what a list does not have yet, in the order of its first appearance.
fn add<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

impl<'a> Drawing<'a> {
    fn of(figure: &'a Figure) -> Drawing<'a> {
        let shown = |it: &&Series| figure.first.is_empty() || figure.first.contains(&it.name);
        let series = figure.series.iter().filter(shown).enumerate().map(|(n, it)| (it, pen(n))).collect::<Vec<_>>();
        let points = || series.iter().flat_map(|(it, _)| &it.points);
        let (mut panels, mut categories) = (Vec::new(), Vec::new());
        for point in points() {
            add(&mut panels, point.panel.clone());
            point.category.as_deref().into_iter().for_each(|category| add(&mut categories, category));
        }
        let values =
            || points().flat_map(|it| [it.y, it.low, it.high].into_iter().flatten().chain(it.values.iter().copied()));
        let along = || points().flat_map(|it| [it.x, it.x_end].into_iter().flatten());
        let listed = || Span::of_categories(categories.len());
        let spans = match figure.mark {
            Mark::Bar => [Span::of(values(), figure.y.scale), listed()],
            Mark::Span => [Span::of(along(), figure.x.scale), listed()],
            _ if figure.x.scale == Scale::Category => [listed(), Span::of(values(), figure.y.scale)],
            _ => [Span::of(along(), figure.x.scale), Span::of(values(), figure.y.scale)],
        };
        let labels: Vec<String> = match figure.mark {
            Mark::Bar | Mark::Span => categories.iter().map(|it| (*it).to_owned()).collect(),
            _ => spans[1].ticks().into_iter().map(|(_, label)| label).collect(),
        };
        let widest = labels.iter().map(|label| width(label, SMALL)).fold(0.0, f64::max);
        let left = (MARGIN + 2.0 * LINE + widest).min(WIDTH / 2.0);
        Drawing { figure, series, panels, categories, spans, left }
    }

    fn has_rows(&self) -> bool {
        matches!(self.figure.mark, Mark::Bar | Mark::Span)
    }

    /// Draws the names of the series, as many in a line as there is room for, and what hollow points are.
    fn legend(&self, picture: &mut Picture) {
        let mut names: Vec<(&str, Option<Pen>)> = Vec::new();
        if self.series.len() > 1 {
            names.extend(self.series.iter().map(|(series, pen)| (series.name.as_str(), Some(*pen))));
        }
        if self.series.iter().any(|(series, _)| series.points.iter().any(|point| point.at_least)) {
            names.push(("hollow: at least", None));
        }
        let mut x = MARGIN;
        for (n, (name, pen)) in names.iter().enumerate() {
            let long = 18.0 + width(name, SMALL) + MARGIN;
            if n == 0 || x + long > WIDTH {
                picture.height += LINE;
                x = MARGIN;
            }
            let y = picture.height;
            if let Some(pen) = pen {
                picture.line(vec![[x, y - 3.0], [x + 14.0, y - 3.0]], Pen { width: 2.0, ..*pen });
            }
            picture.text([x + 18.0, y], Anchor::Start, name);
            x += long;
        }
        picture.height += MARGIN;
    }

    fn panel(&self, picture: &mut Picture, panel: Option<&str>) {
        if let (Some(what), Some(panel)) = (&self.figure.panels, panel) {
            picture.height += LINE;
            picture.text([self.left, picture.height - 3.0], Anchor::Start, &format!("{what}: {panel}"));
        }
        let height = if self.has_rows() { ROW * self.categories.len().max(1) as f64 } else { HEIGHT };
        let frame = Frame { spans: &self.spans, left: self.left, top: picture.height, height };
        self.axes(picture, &frame);
        let last = (self.series.len().max(2) - 1) as f64;
        for (n, (series, pen)) in self.series.iter().enumerate() {
            let points: Vec<&Point> = series.points.iter().filter(|it| it.panel.as_deref() == panel).collect();
            // Points of several series in one row stand beside each other, where series share categories.
            let beside = if self.shares_rows() { 0.5 * (n as f64 / last - 0.5) } else { 0.0 };
            match self.figure.mark {
                Mark::Bar => points.iter().for_each(|it| self.bar(picture, &frame, it, *pen, beside)),
                Mark::Span => points.iter().for_each(|it| self.stretch(picture, &frame, it, *pen)),
                Mark::Point => points.iter().for_each(|it| self.whiskers(picture, &frame, it, *pen)),
                Mark::Line | Mark::Step => self.curve(picture, &frame, &points, *pen),
            }
        }
        picture.height = frame.top + height + 2.0 * LINE + MARGIN + 4.0;
    }

    /// Returns true if a category has points of several series.
    fn shares_rows(&self) -> bool {
        let in_series =
            |series: &Series, category: &str| series.points.iter().any(|it| it.category.as_deref() == Some(category));
        let several = |category: &&str| self.series.iter().filter(|(it, _)| in_series(it, category)).count() > 1;
        self.categories.iter().any(several)
    }

    /// Returns the places of numbers and their labels, or those of categories.
    fn ticks(&self, axis: usize) -> Vec<(f64, String)> {
        let listed = if self.has_rows() { axis == 1 } else { axis == 0 && self.figure.x.scale == Scale::Category };
        match listed {
            true => self.categories.iter().enumerate().map(|(n, name)| (self.row(n), (*name).to_owned())).collect(),
            false => self.spans[axis].ticks(),
        }
    }

    /// Returns the number at which a category stands: rows are read downwards.
    fn row(&self, n: usize) -> f64 {
        if self.has_rows() { (self.categories.len() - 1 - n) as f64 } else { n as f64 }
    }

    fn axes(&self, picture: &mut Picture, frame: &Frame<'_>) {
        let thin = Pen { colour: GREY, width: 0.5, dash: 0.0 };
        let (right, bottom) = (WIDTH - MARGIN, frame.top + frame.height);
        for (x, label) in self.ticks(0) {
            let Some(x) = frame.x(x) else { continue };
            picture.line(vec![[x, frame.top], [x, bottom]], thin);
            picture.text([x, bottom + LINE - 2.0], Anchor::Middle, &label);
        }
        for (y, label) in self.ticks(1) {
            let Some(y) = frame.y(y) else { continue };
            picture.line(vec![[frame.left, y], [right, y]], thin);
            picture.text([frame.left - 4.0, y + 3.0], Anchor::End, &label);
        }
        let corners = [[frame.left, frame.top], [frame.left, bottom], [right, bottom], [right, frame.top]];
        let around = corners.into_iter().chain([corners[0]]).collect();
        picture.line(around, Pen { colour: BLACK, ..thin });
        // Of bars the numbers are horizontal, whatever the axis is called.
        let (across, up) = match self.figure.mark {
            Mark::Bar => (&self.figure.y, &self.figure.x),
            _ => (&self.figure.x, &self.figure.y),
        };
        picture.text([(frame.left + right) / 2.0, bottom + 2.0 * LINE], Anchor::Middle, &with_unit(across));
        if !self.has_rows() {
            let at = [MARGIN + SMALL / 2.0, frame.top + frame.height / 2.0];
            picture.push_text(Text { at, anchor: Anchor::Middle, up: true, size: SMALL, words: with_unit(up) });
        }
    }

    /// A value with its interval in the row of its category, and a stroke for each repetition.
    fn bar(&self, picture: &mut Picture, frame: &Frame<'_>, point: &Point, pen: Pen, beside: f64) {
        let Some(row) = self.row_of(point).map(|row| row - beside) else { return };
        let solid = Pen { dash: 0.0, ..pen };
        for value in &point.values {
            if let (Some(low), Some(high)) = (frame.at(*value, row - 0.3), frame.at(*value, row + 0.3)) {
                picture.line(vec![low, high], Pen { width: 0.3, ..solid });
            }
        }
        if let (Some(low), Some(high)) = (point.low, point.high) {
            let ends = [low, high].map(|x| frame.at(x, row)).into_iter().flatten().collect();
            picture.line(ends, solid);
        }
        if let Some(at) = point.y.and_then(|x| frame.at(x, row)) {
            picture.dot(at, pen, point.at_least);
        }
    }

    fn row_of(&self, point: &Point) -> Option<f64> {
        let category = point.category.as_deref()?;
        self.categories.iter().position(|it| *it == category).map(|n| self.row(n))
    }

    fn stretch(&self, picture: &mut Picture, frame: &Frame<'_>, point: &Point, pen: Pen) {
        let (Some(row), Some(from), Some(to)) = (self.row_of(point), point.x, point.x_end) else { return };
        let corners = [(from, row - 0.35), (to, row - 0.35), (to, row + 0.35), (from, row + 0.35)];
        let corners: Vec<_> = corners.into_iter().filter_map(|(x, y)| frame.at(x, y)).collect();
        if corners.len() == 4 {
            picture.area(corners, pen.colour, 1.0);
        }
    }

    /// Returns the place of a point along the horizontal axis.
    fn along(&self, point: &Point) -> Option<f64> {
        match self.figure.x.scale {
            Scale::Category => self.row_of(point),
            _ => point.x,
        }
    }

    fn whiskers(&self, picture: &mut Picture, frame: &Frame<'_>, point: &Point, pen: Pen) {
        let Some(x) = self.along(point) else { return };
        let ends: Vec<_> = [point.low, point.high].into_iter().flatten().filter_map(|y| frame.at(x, y)).collect();
        picture.line(ends, Pen { width: 0.8, dash: 0.0, ..pen });
        if let Some(at) = point.y.and_then(|y| frame.at(x, y)) {
            picture.dot(at, pen, point.at_least);
        }
    }

    /// Lines between points, broken where there is no value, with a band for the interval.
    fn curve(&self, picture: &mut Picture, frame: &Frame<'_>, points: &[&Point], pen: Pen) {
        let place = |it: &Point| frame.at(self.along(it)?, it.y?);
        for part in points.split(|it| place(it).is_none()) {
            let placed: Vec<([f64; 2], &Point)> = part.iter().filter_map(|it| Some((place(it)?, *it))).collect();
            let edge = |of: fn(&Point) -> Option<f64>| -> Vec<[f64; 2]> {
                placed.iter().filter_map(|(_, it)| frame.at(self.along(it)?, of(it)?)).collect()
            };
            let (low, high) = (edge(|it| it.low), edge(|it| it.high));
            if low.len() > 1 && low.len() == high.len() {
                picture.area(low.into_iter().chain(high.into_iter().rev()).collect(), pen.colour, 0.2);
            }
            let mut line: Vec<[f64; 2]> = Vec::new();
            for (at, _) in &placed {
                if let (Mark::Step, Some(last)) = (self.figure.mark, line.last().copied()) {
                    line.push([at[0], last[1]]);
                }
                line.push(*at);
            }
            picture.line(line, pen);
            if self.figure.mark == Mark::Line {
                placed.iter().for_each(|(at, it)| picture.dot(*at, pen, it.at_least));
            }
        }
    }
}

fn with_unit(axis: &Axis) -> String {
    if axis.unit.is_empty() { axis.label.clone() } else { format!("{} [{}]", axis.label, axis.unit) }
}
