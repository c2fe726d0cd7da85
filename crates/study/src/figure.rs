//! Figures as data, independent of their drawing.
//!
//! Numbers are in the unit of their axis, ready to be shown. A point carries its 95 % interval if it has one.

use serde::{Deserialize, Serialize};

/// Diagram of one or more panels that share their axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Figure {
    /// Identifier, unique on its page: letters, digits and `-`.
    pub id: String,
    /// Title above the diagram.
    pub title: String,
    /// Mark that draws the points.
    pub mark: Mark,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Name of the property in which the panels differ, such as `RTT of path 2`; `None` for a single panel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panels: Option<String>,
    /// Number of panels in a row, where they differ in several properties: panels of a row differ in one of them and
    /// follow each other. `None` lets the drawing choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<usize>,
    /// Series, in the order of the legend.
    pub series: Vec<Series>,
    /// Names of the series that are drawn at first, where all of them would be too many; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<String>,
    /// Notes below the diagram.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Marks for points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Lines between points, with a band or whiskers for the interval.
    Line,
    /// Steps: a value holds until the next point.
    Step,
    /// A value with its interval for each category, which stand on the axis `x`. Drawn as dots with whiskers, one
    /// category below the other.
    Bar,
    /// Points alone.
    Point,
    /// Bars along the horizontal axis from `x` to `x_end`; the axis `y` has categories.
    Span,
}

/// Axis of a diagram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Axis {
    /// Name of the quantity on the axis.
    pub label: String,
    /// Unit, as in `ms`; empty for pure numbers.
    pub unit: String,
    /// Linear, logarithmic, or categories.
    pub scale: Scale,
}

/// Division of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic, by powers of ten.
    Log,
    /// Categories, in the order in which they first appear.
    Category,
}

/// Points under one name of the legend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Origin of the numbers.
    pub origin: SeriesOrigin,
    /// Points in the order in which they are joined.
    pub points: Vec<Point>,
}

/// Origin of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SeriesOrigin {
    /// Our runs.
    Measured,
    /// Equation.
    Theory,
    /// Numbers stated in the paper.
    Paper,
}

/// Point of a series.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Point {
    /// Panel of the point; `None` if there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<String>,
    /// Position on a horizontal axis with numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// End of the bar for [`Mark::Span`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_end: Option<f64>,
    /// Category: on the axis `x`, or for [`Mark::Span`] on `y`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Position on the vertical axis; `None` is a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<f64>,
    /// Lower end of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Number of repetitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<usize>,
    /// Value of each repetition, where `y` is their mean and the distribution is drawn beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
    /// Number of repetitions in which transfers did not complete.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unfinished: usize,
    /// True for a lower bound: a transfer was still running at the end of some repetition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Additional text that is shown at the point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Figure {
    /// Returns the empirical distribution functions of the repetitions that this figure shows the means of: a series
    /// for each category, `None` if there are none of at least two. `first` are those drawn at first.
    pub fn distribution(&self, first: &[&str]) -> Option<Figure> {
        // Its name is that of the category, where no other series has one of that name.
        let shared = |category: &Option<String>| {
            self.series.iter().filter(|series| series.points.iter().any(|it| it.category == *category)).count() > 1
        };
        let curve = |series: &Series, point: &Point| {
            let mut values: Vec<f64> = point.values.iter().copied().filter(|value| value.is_finite()).collect();
            values.sort_by(f64::total_cmp);
            let n = values.len();
            let share = |k: usize| 100.0 * k as f64 / n as f64;
            let step = |(k, x): (usize, f64)| Point { x: Some(x), y: Some(share(k + 1)), ..Point::default() };
            let foot = values.first().map(|x| Point { x: Some(*x), y: Some(0.0), ..Point::default() });
            let parts =
                [point.panel.as_deref(), shared(&point.category).then_some(&*series.name), point.category.as_deref()];
            let name = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
            let points = foot.into_iter().chain(values.iter().copied().enumerate().map(step)).collect();
            Series { name, origin: series.origin, points }
        };
        let all = self.series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)));
        let mut series: Vec<Series> =
            all.filter(|(_, point)| point.values.len() > 1).map(|(series, point)| curve(series, point)).collect();
        series.sort_by_key(|it| !first.contains(&it.name.as_str()));
        let first = series.iter().map(|it| it.name.clone()).filter(|name| first.contains(&name.as_str())).collect();
        (!series.is_empty()).then(|| Figure {
            id: format!("{}-distribution", self.id),
            title: format!("Distribution of the repetitions: {}", self.title),
            mark: Mark::Step,
            x: self.y.clone(),
            y: Axis { label: "repetitions at or below it".to_owned(), unit: "%".to_owned(), scale: Scale::Linear },
            panels: None,
            columns: None,
            series,
            first,
            notes: vec!["Empirical distribution functions.".to_owned()],
        })
    }
}

/// Returns true for counts that serde leaves out.
pub(crate) fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn means(names: [&str; 2]) -> Figure {
        let axis = |label: &str| Axis { label: label.to_owned(), unit: "s".to_owned(), scale: Scale::Linear };
        let point = |category: &str, values: &[f64]| Point {
            category: Some(category.to_owned()),
            values: values.to_vec(),
            ..Point::default()
        };
        let series = |name: &str, points| Series { name: name.to_owned(), origin: SeriesOrigin::Measured, points };
        let [first, second] = names;
        Figure {
            id: "ranking".to_owned(),
            title: "Ranking".to_owned(),
            mark: Mark::Bar,
            x: axis("scheduler"),
            y: axis("completion time"),
            panels: None,
            columns: None,
            series: vec![
                series("schedulers", vec![point(first, &[3.0, 1.0, f64::NAN, 2.0, 2.0])]),
                series("baselines", vec![point(second, &[5.0, 4.0]), point("alone", &[1.0])]),
            ],
            first: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_distribution_rises_by_a_share_at_each_repetition() {
        let figure = means(["late", "tcp"]).distribution(&["tcp", "alone"]).unwrap();
        let steps: Vec<_> = figure.series[1].points.iter().map(|it| (it.x.unwrap(), it.y.unwrap())).collect();
        assert_eq!(steps, [(1.0, 0.0), (1.0, 25.0), (2.0, 50.0), (2.0, 75.0), (3.0, 100.0)]);
        let names: Vec<_> = figure.series.iter().map(|it| it.name.as_str()).collect();
        assert_eq!((names, figure.first), (vec!["tcp", "late"], vec!["tcp".to_owned()]), "one repetition has none");
    }

    #[test]
    fn categories_of_several_series_are_told_apart() {
        let figure = means(["1 MB", "1 MB"]).distribution(&[]).unwrap();
        let names: Vec<_> = figure.series.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["schedulers, 1 MB", "baselines, 1 MB"]);
    }
}
