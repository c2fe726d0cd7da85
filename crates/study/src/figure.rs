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
    /// Series, in the order of the legend.
    pub series: Vec<Series>,
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
    /// Bars side by side, with whiskers; the axis `x` has categories.
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

/// Returns true for counts that serde leaves out.
pub(crate) fn is_zero(count: &usize) -> bool {
    *count == 0
}
