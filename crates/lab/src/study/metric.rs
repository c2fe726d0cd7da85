//! Metrics: numbers of a run by name, as studies ask for them.

use crate::Measured;
use crate::error::{Problem, suggest};
use crate::file::At;

/// A number of a run, or a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Metric {
    kind: &'static Kind,
    /// Index of the path.
    path: usize,
    /// Which of the run's windows.
    window: usize,
    /// The argument as it is written.
    argument: String,
}

/// A metric before it has its argument.
#[derive(Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// What stands behind the colon.
    pub argument: Argument,
    /// Its unit; empty for pure numbers.
    pub unit: &'static str,
    /// What it is, as the axis of a figure says it.
    pub about: &'static str,
    value: fn(&Measured, &Metric) -> Option<f64>,
}

/// What a metric takes behind its colon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// Nothing.
    None,
    /// The name of a path.
    Path,
    /// The number of a window of the run, from 0.
    Window,
    /// `WINDOW/PATH`.
    WindowPath,
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

macro_rules! metric {
    ($name:literal, $argument:ident, $unit:literal, $about:literal, $value:expr) => {
        Kind { name: $name, argument: Argument::$argument, unit: $unit, about: $about, value: $value }
    };
}

/// All metrics.
pub const METRICS: &[Kind] = &[
    metric!("completion-time", None, "s", "completion time", |m, _| m.completion_s),
    metric!("completion-time-sd", None, "s", "standard deviation of completion times", |m, _| m.completion_sd_s),
    metric!("goodput", None, "bit/s", "goodput of all transfers together", |m, _| Some(m.goodput_bps)),
    metric!("mean-goodput", None, "bit/s", "mean goodput of the transfers", |m, _| Some(m.mean_goodput_bps)),
    metric!("page-load-time", None, "s", "page load time", |m, _| m.page_load_s),
    metric!("object-download-time", None, "s", "mean object download time", |m, _| m.object_download_s),
    metric!("rto-rate", None, "%", "timeouts per data segment sent", |m, _| Some(100.0 * m.rto_rate())),
    metric!("ofo-count", None, "segments", "segments that arrived out of order", |m, _| Some(m.ofo_count as f64)),
    metric!("ofo-peak", None, "segments", "most segments out of order at once", |m, _| Some(m.ofo_peak as f64)),
    metric!("ofo-mean", None, "segments", "segments out of order, time average", |m, _| Some(m.ofo_mean)),
    metric!("ofo-wait", None, "s", "mean wait of an out-of-order segment", |m, _| Some(m.ofo_wait_s)),
    metric!("buffer-mean", None, "segments", "occupied receive buffer, mean", |m, _| m.buffer_mean_segments),
    metric!("buffer-sd", None, "segments", "occupied receive buffer, standard deviation", |m, _| m.buffer_sd_segments),
    metric!("path-share", Path, "%", "share of the bytes first sent on the path", |m, it| {
        m.shares.get(it.path).map(|share| 100.0 * share)
    }),
    metric!("path-bytes", Path, "B", "bytes first sent on the path", |m, it| m
        .path_bytes
        .get(it.path)
        .map(|n| *n as f64)),
    metric!("path-segments", Path, "segments", "data segments sent on the path", |m, it| {
        m.path_segments.get(it.path).map(|n| *n as f64)
    }),
    metric!("path-goodput", Path, "bit/s", "goodput by the bytes first sent on the path", |m, it| {
        m.shares.get(it.path).map(|share| share * m.goodput_bps)
    }),
    metric!("window-goodput", Window, "bit/s", "goodput within the window", |m, it| {
        m.windows.get(it.window).map(|window| window.goodput_bps)
    }),
    metric!("window-path-goodput", WindowPath, "bit/s", "goodput of the path within the window", |m, it| {
        m.windows.get(it.window)?.path_bps.get(it.path).copied()
    }),
    metric!("suspension", None, "s", "longest silence of the surviving subflows", |m, _| m.suspension_s),
    metric!("reinjected", None, "B", "bytes sent again on another subflow", |m, _| Some(m.reinjected_bytes as f64)),
    metric!("unfinished", None, "", "transfers that did not complete", |m, _| Some(m.unfinished as f64)),
    metric!("decisions", None, "", "order of first transmissions", |_, _| Option::None),
];

impl Metric {
    /// The metric that a study names, in a scenario with these paths.
    pub(super) fn parse(at: &At<String>, paths: &[String]) -> Result<Metric, Problem> {
        let (name, argument) = at.value.split_once(':').unwrap_or((&at.value, ""));
        let kind = METRICS.iter().find(|kind| kind.name == name).ok_or_else(|| {
            let names: Vec<&str> = METRICS.iter().map(|kind| kind.name).collect();
            Problem::at(&at.span, format!("there is no metric `{name}`"), suggest(name, &names))
        })?;
        let mut metric = Metric { kind, path: 0, window: 0, argument: argument.to_owned() };
        let wrong = |accepted: &str| {
            let problem = format!("`{name}` takes {accepted}, and this is `{}`", at.value);
            Problem::at(&at.span, problem, format!("accepted: {}", kind.example()))
        };
        let path = |name: &str| {
            let known: Vec<&str> = paths.iter().map(String::as_str).collect();
            let place = known.iter().position(|path| *path == name);
            place.ok_or_else(|| Problem::at(&at.span, format!("there is no path `{name}`"), suggest(name, &known)))
        };
        let window = |text: &str| text.parse().map_err(|_| wrong("the number of a window"));
        match kind.argument {
            Argument::None if argument.is_empty() => {}
            Argument::None => return Err(wrong("no argument")),
            Argument::Path => metric.path = path(argument)?,
            Argument::Window => metric.window = window(argument)?,
            Argument::WindowPath => {
                let (number, name) = argument.split_once('/').ok_or_else(|| wrong("a window and a path"))?;
                (metric.window, metric.path) = (window(number)?, path(name)?);
            }
        }
        Ok(metric)
    }

    /// Its number in this run; `None` if the run has none.
    pub(super) fn of(&self, measured: &Measured) -> Option<f64> {
        (self.kind.value)(measured, self).filter(|value| value.is_finite())
    }

    /// Its text in this run, for the metrics that are texts.
    pub(super) fn text(&self, measured: &Measured) -> Option<String> {
        measured.decisions.clone().filter(|_| self.kind.name == "decisions")
    }

    pub(super) fn unit(&self) -> &'static str {
        self.kind.unit
    }

    /// In words, with its argument.
    pub(super) fn about(&self) -> String {
        match self.kind.argument {
            Argument::None => self.kind.about.to_owned(),
            _ => format!("{} ({})", self.kind.about, self.argument),
        }
    }
}

impl Kind {
    /// How it is written.
    pub fn example(&self) -> String {
        let argument = match self.argument {
            Argument::None => return self.name.to_owned(),
            Argument::Path => "PATH",
            Argument::Window => "N",
            Argument::WindowPath => "N/PATH",
        };
        format!("{}:{argument}", self.name)
    }
}

/// The unit of the metric of that name, with or without an argument.
pub(super) fn unit_of(text: &str) -> &'static str {
    let name = text.split(':').next().unwrap_or(text);
    METRICS.iter().find(|kind| kind.name == name).map_or("", |kind| kind.unit)
}

/// All numbers of a run by the names that studies have for them, in one order.
pub(super) fn numbers(measured: &Measured, paths: &[String]) -> Vec<(String, Option<f64>)> {
    let mut all = Vec::new();
    for kind in METRICS.iter().filter(|kind| kind.name != "decisions") {
        let windows = 0..measured.windows.len();
        let arguments: Vec<(usize, usize, String)> = match kind.argument {
            Argument::None => vec![(0, 0, String::new())],
            Argument::Path => paths.iter().enumerate().map(|(n, path)| (0, n, path.clone())).collect(),
            Argument::Window => windows.map(|window| (window, 0, window.to_string())).collect(),
            Argument::WindowPath => windows
                .flat_map(|window| (0..paths.len()).map(move |path| (window, path)))
                .map(|(window, path)| (window, path, format!("{window}/{}", paths[path])))
                .collect(),
        };
        for (window, path, argument) in arguments {
            let name = if argument.is_empty() { kind.name.to_owned() } else { format!("{}:{argument}", kind.name) };
            let metric = Metric { kind, path, window, argument };
            all.push((name, metric.of(measured)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, String> {
        let paths = ["wlan".to_owned(), "lte".to_owned()];
        let at = At { span: 0..text.len(), value: text.to_owned() };
        Metric::parse(&at, &paths).map(|metric| metric.about()).map_err(|problem| problem.problem)
    }

    #[test]
    fn every_metric_is_in_the_documentation() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/studies.md"));
        let text = text.expect("docs/studies.md is in the repository");
        for kind in METRICS {
            let unit = if kind.unit.is_empty() { "–" } else { kind.unit };
            let row = format!("| `{}` | {unit} | {} |", kind.example(), kind.about);
            assert!(text.contains(&row), "docs/studies.md lacks: {row}");
        }
    }

    #[test]
    fn a_metric_takes_the_argument_that_it_has() {
        assert_eq!(parse("completion-time").as_deref(), Ok("completion time"));
        assert_eq!(parse("path-share:lte").as_deref(), Ok("share of the bytes first sent on the path (lte)"));
        assert_eq!(parse("path-share:lta"), Err("there is no path `lta`".to_owned()));
        assert_eq!(parse("goodput:lte"), Err("`goodput` takes no argument, and this is `goodput:lte`".to_owned()));
        assert_eq!(parse("goodness"), Err("there is no metric `goodness`".to_owned()));
    }
}
