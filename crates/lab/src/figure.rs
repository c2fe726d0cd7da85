//! Figures as data: what a report draws. Nothing here knows how it is drawn.
//!
//! Numbers are in the unit that the axis names, ready to be shown. A point carries its 95 % interval where it has one.

use serde::{Deserialize, Serialize};

/// One diagram, of one or more panels that share their axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Unique on its page, made of letters, digits and `-`.
    pub id: String,
    /// What stands above it.
    pub title: String,
    /// How its points are drawn.
    pub mark: Mark,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What the panels differ in, for instance `RTT of path 2`; `None` for a single panel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panels: Option<String>,
    /// What is drawn, in the order of the legend.
    pub series: Vec<Series>,
    /// Words below it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Joined by lines, with a band or whiskers for the interval.
    Line,
    /// Joined by steps: a value holds until the next point.
    Step,
    /// Bars side by side, with whiskers; the axis `x` has categories.
    Bar,
    /// Points alone.
    Point,
    /// Bars along the horizontal axis from `x` to `x_end`; the axis `y` has categories.
    Span,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// What it shows.
    pub label: String,
    /// The unit, as in `ms`; empty for pure numbers.
    pub unit: String,
    /// Linear, logarithmic, or categories.
    pub scale: Scale,
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By powers of ten.
    Log,
    /// By names, in the order in which they first appear.
    Category,
}

/// What belongs together under one name of the legend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// Where it comes from.
    pub origin: SeriesOrigin,
    /// In the order in which they are joined.
    pub points: Vec<Point>,
}

/// Where a series comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeriesOrigin {
    /// Runs of ours.
    Measured,
    /// An equation.
    Theory,
    /// What the paper states in numbers.
    Paper,
}

/// One point.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Point {
    /// The panel it stands in; `None` if there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<String>,
    /// Where on a horizontal axis with numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// For [`Mark::Span`]: where the bar ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_end: Option<f64>,
    /// The category on an axis of names: of `x`, or for [`Mark::Span`] of `y`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Where on the vertical axis; `None` is a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<f64>,
    /// The lower end of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Repetitions behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<usize>,
    /// Repetitions behind it in which transfers did not complete.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unfinished: usize,
    /// A lower bound: a time that was still running in some repetition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Anything more to say when it is pointed at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Tells serde which counts to leave out.
pub(crate) fn is_zero(count: &usize) -> bool {
    *count == 0
}
