//! Statistics of a run, each described once: name, unit, meaning, and value.
//!
//! Statistics of the engine come from its own tables ([`anabranch_engine::statistics`]); those of a whole run are
//! described here. Columns of CSV and Parquet, the numbers that JSON adds to a [`Measured`], the metrics of studies and
//! the tables in `docs/results.md` and `docs/studies.md` are made from them. A test compares them with the fields of
//! [`Measured`].

use crate::counted::{Column, columns};
use crate::{LinkMeasured, Measured, MiddleboxCounts, PathSamples, Samples, WindowMeasured};
use anabranch_engine::statistics::Tables;
use anabranch_units::statistic::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

/// A statistic of a run.
#[derive(Clone, Debug)]
pub struct Statistic {
    /// Name of its column, with the unit at the end. `{}` stands for the path, window, middlebox or link.
    pub name: Cow<'static, str>,
    /// Name in study files, if it has one.
    pub metric: Option<&'static str>,
    /// Unit; empty for counts, shares and texts.
    pub unit: &'static str,
    /// Meaning, in a few words; the axis of a figure shows it.
    pub about: &'static str,
    /// Computed from fields of [`Measured`], not one of them.
    pub derived: bool,
    /// Consequence of transfers that did not complete.
    pub censoring: Censoring,
    of: Of,
}

/// Meaning of a statistic in a run in which transfers did not complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Censoring {
    /// The same as in any other run.
    None,
    /// A lower bound: a time that was still running when the run was stopped.
    LowerBound,
    /// The number of the part that was run.
    Partial,
}

/// Function for the value of a statistic.
#[derive(Clone, Copy, Debug)]
enum Of {
    Flag(fn(&Measured) -> bool),
    Count(fn(&Measured) -> u64),
    Number(fn(&Measured) -> Option<f64>),
    Text(fn(&Measured) -> Option<&str>),
    PathCount(fn(&Measured) -> &[u64]),
    PathNumber(fn(&Measured, usize) -> Option<f64>),
    Window(fn(&WindowMeasured) -> f64),
    WindowPath(fn(&WindowMeasured, usize) -> Option<f64>),
    Middlebox(fn(&MiddleboxCounts) -> u64),
    LinkCount(fn(&LinkMeasured) -> u64),
    LinkNumber(fn(&LinkMeasured) -> f64),
    Series(fn(&Samples) -> String),
    PathSeries(fn(&PathSamples) -> &[u64]),
    /// A statistic of the engine, in the column of its name.
    Engine(Kind),
}

/// Type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// True or false.
    Flag,
    /// Whole number from 0.
    Count,
    /// Number.
    Number,
    /// Text.
    Text,
}

/// Value in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Empty,
    /// True or false.
    Flag(bool),
    /// Whole number.
    Count(u64),
    /// Number.
    Number(f64),
    /// Text.
    Text(String),
}

/// Argument of a metric in study files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// No argument.
    None,
    /// Name of a path.
    Path,
    /// Number of a window of the run, from 0.
    Window,
    /// `WINDOW/PATH`.
    WindowPath,
}

macro_rules! statistic {
    ($name:literal, $metric:expr, $unit:literal, $about:literal, $of:expr) => {
        statistic!(false, Censoring::Partial, $name, $metric, $unit, $about, $of)
    };
    (derived $name:literal, $metric:expr, $unit:literal, $about:literal, $of:expr) => {
        statistic!(true, Censoring::Partial, $name, $metric, $unit, $about, $of)
    };
    (whole $name:literal, $metric:expr, $unit:literal, $about:literal, $of:expr) => {
        statistic!(false, Censoring::None, $name, $metric, $unit, $about, $of)
    };
    (bound $name:literal, $metric:expr, $unit:literal, $about:literal, $of:expr) => {
        statistic!(false, Censoring::LowerBound, $name, $metric, $unit, $about, $of)
    };
    ($derived:literal, $censoring:expr, $name:literal, $metric:expr, $unit:literal, $about:literal, $of:expr) => {
        Statistic {
            name: Cow::Borrowed($name),
            metric: $metric,
            unit: $unit,
            about: $about,
            derived: $derived,
            censoring: $censoring,
            of: $of,
        }
    };
}

use Of::*;

/// All statistics, in the order of columns.
pub static STATISTICS: LazyLock<Vec<Statistic>> = LazyLock::new(|| statistics(Tables::ENGINE));

/// Place in the order of columns.
enum Place {
    /// Statistic of a whole run.
    Own(Statistic),
    /// Column of a statistic of the engine. Statistics of the engine without a place come last, in the engine's order.
    Engine(&'static str),
}

/// Order of columns.
#[rustfmt::skip] // A table.
const PLACES: &[Place] = &[
    Place::Own(statistic!(whole "seed", None, "", "seed of the run", Count(|m| m.seed))),
    Place::Own(statistic!(whole "finished", None, "", "all transfers completed", Flag(|m| m.finished))),
    Place::Own(statistic!(whole "unfinished", Some("unfinished"), "", "transfers that did not complete",
        Count(|m| m.unfinished as u64))),
    Place::Own(statistic!(derived "censored", None, "", "times are lower bounds: something did not complete",
        Flag(|m| m.has_bounds()))),
    Place::Own(statistic!(bound "completion_s", Some("completion-time"), "s", "completion time",
        Number(|m| m.completion_s))),
    Place::Own(statistic!("completion_sd_s", Some("completion-time-sd"), "s", "standard deviation of completion times",
        Number(|m| m.completion_sd_s))),
    Place::Own(statistic!(bound "completion_p50_s", Some("completion-time-p50"), "s",
        "median of completion times; percentiles are the times that so many transfers do not exceed",
        Number(|m| m.completion_p50_s))),
    Place::Own(statistic!(bound "completion_p90_s", Some("completion-time-p90"), "s",
        "percentile 90 of completion times",
        Number(|m| m.completion_p90_s))),
    Place::Own(statistic!(bound "completion_p95_s", Some("completion-time-p95"), "s",
        "percentile 95 of completion times",
        Number(|m| m.completion_p95_s))),
    Place::Own(statistic!(bound "completion_p99_s", Some("completion-time-p99"), "s",
        "percentile 99 of completion times",
        Number(|m| m.completion_p99_s))),
    Place::Own(statistic!(bound "completion_p999_s", Some("completion-time-p99.9"), "s",
        "percentile 99.9 of completion times",
        Number(|m| m.completion_p999_s))),
    Place::Own(statistic!(bound "page_load_s", Some("page-load-time"), "s", "page load time",
        Number(|m| m.page_load_s))),
    Place::Own(statistic!(bound "object_download_s", Some("object-download-time"), "s", "mean object download time",
        Number(|m| m.object_download_s))),
    Place::Own(statistic!("goodput_bps", Some("goodput"), "bit/s", "goodput of all transfers together",
        Number(|m| Some(m.goodput_bps)))),
    Place::Own(statistic!("mean_goodput_bps", Some("mean-goodput"), "bit/s", "mean goodput of the transfers",
        Number(|m| Some(m.mean_goodput_bps)))),
    Place::Own(statistic!("share_{}", Some("path-share"), "", "share of the bytes first sent on the path",
        PathNumber(|m, path| m.shares.get(path).copied()))),
    Place::Own(statistic!("path_bytes_{}", Some("path-bytes"), "B", "bytes first sent on the path",
        PathCount(|m| &m.path_bytes))),
    Place::Own(statistic!("path_segments_{}", Some("path-segments"), "segments", "data segments sent on the path",
        PathCount(|m| &m.path_segments))),
    Place::Own(statistic!(derived "path_goodput_bps_{}", Some("path-goodput"), "bit/s",
        "goodput by the bytes first sent on the path",
        PathNumber(|m, path| m.shares.get(path).map(|share| share * m.goodput_bps)))),
    Place::Engine("ofo_count"),
    Place::Engine("ofo_peak"),
    Place::Own(statistic!("ofo_mean", Some("ofo-mean"), "segments", "segments out of order, time average",
        Number(|m| Some(m.ofo_mean)))),
    Place::Own(statistic!("ofo_wait_s", Some("ofo-wait"), "s", "mean wait of an out-of-order segment",
        Number(|m| Some(m.ofo_wait_s)))),
    Place::Engine("hol_blocked_s"),
    Place::Engine("rtos"),
    Place::Engine("segments_sent"),
    Place::Own(statistic!(derived "rto_rate", Some("rto-rate"), "", "timeouts per data segment sent",
        Number(|m| Some(m.rto_rate())))),
    Place::Engine("retransmitted"),
    Place::Engine("reinjected_bytes"),
    Place::Engine("duplicate_bytes"),
    Place::Engine("blocked_cwnd_s"),
    Place::Engine("blocked_window_s"),
    Place::Engine("blocked_scheduler_s"),
    Place::Engine("blocked_application_s"),
    Place::Own(statistic!(derived "overruled", None, "", "decisions of policies that were not followed",
        Count(|m| m.counted.count("overruled_kinds")))),
    Place::Engine("acks_detoured"),
    Place::Engine("acks_kept"),
    Place::Engine("ack_fallbacks"),
    Place::Engine("probes_sent"),
    Place::Own(statistic!("fallbacks", None, "", "connections that fell back to plain TCP", Count(|m| m.fallbacks))),
    Place::Engine("fallback_reasons"),
    Place::Engine("reset_reasons"),
    Place::Engine("checksum_failures"),
    Place::Own(statistic!("altered_bytes", None, "B", "bytes read otherwise than written", Count(|m| m.altered_bytes))),
    Place::Own(statistic!("middlebox_{}_altered", None, "segments", "segments that the middlebox forwarded altered",
        Middlebox(|m| m.altered))),
    Place::Own(statistic!("middlebox_{}_dropped", None, "segments", "segments that the middlebox dropped",
        Middlebox(|m| m.dropped))),
    Place::Own(statistic!("middlebox_{}_made", None, "segments", "segments that the middlebox made itself",
        Middlebox(|m| m.made))),
    Place::Own(statistic!("link_{}_left", None, "packets", "packets that left the queue of the link",
        LinkCount(|l| l.all.left))),
    Place::Own(statistic!("link_{}_dropped_full", None, "packets", "packets that the full queue of the link dropped",
        LinkCount(|l| l.all.dropped_full))),
    Place::Own(statistic!("link_{}_dropped_early", None, "packets", "packets that the discipline of the link dropped",
        LinkCount(|l| l.all.dropped_early))),
    Place::Own(statistic!("link_{}_marked", None, "packets", "packets that the discipline of the link marked",
        LinkCount(|l| l.all.marked))),
    Place::Own(statistic!("link_{}_sojourn_p50_s", None, "s", "time in the queue of the link, median",
        LinkNumber(|l| l.all.sojourn_p50_s))),
    Place::Own(statistic!("link_{}_sojourn_p95_s", None, "s", "time in the queue of the link, percentile 95",
        LinkNumber(|l| l.all.sojourn_p95_s))),
    Place::Own(statistic!("link_{}_sojourn_p99_s", None, "s", "time in the queue of the link, percentile 99",
        LinkNumber(|l| l.all.sojourn_p99_s))),
    Place::Own(statistic!("link_{}_sojourn_max_s", None, "s", "time in the queue of the link, longest",
        LinkNumber(|l| l.all.sojourn_max_s))),
    Place::Own(statistic!("buffer_mean_segments", Some("buffer-mean"), "segments", "occupied receive buffer, mean",
        Number(|m| m.buffer_mean_segments))),
    Place::Own(statistic!("buffer_sd_segments", Some("buffer-sd"), "segments",
        "occupied receive buffer, standard deviation", Number(|m| m.buffer_sd_segments))),
    Place::Own(statistic!("suspension_s", Some("suspension"), "s",
        "longest silence of the surviving subflows, lone segments apart", Number(|m| m.suspension_s))),
    Place::Own(statistic!(whole "window_{}_from_s", None, "s", "beginning of the window", Window(|w| w.from_s))),
    Place::Own(statistic!(whole "window_{}_to_s", None, "s", "end of the window", Window(|w| w.to_s))),
    Place::Own(statistic!(whole "window_{}_goodput_bps", Some("window-goodput"), "bit/s", "goodput within the window",
        Window(|w| w.goodput_bps))),
    Place::Own(statistic!(whole "window_{}_path_bps", Some("window-path-goodput"), "bit/s",
        "goodput of the path within the window", WindowPath(|w, path| w.path_bps.get(path).copied()))),
    Place::Own(statistic!("decisions", Some("decisions"), "", "order of first transmissions",
        Text(|m| m.decisions.as_deref()))),
    Place::Own(statistic!(whole "samples_at_s", None, "s", "times of the samples", Series(|s| listed(&s.at_s)))),
    Place::Own(statistic!(whole "samples_data_acked", None, "B", "data acknowledged by then, at each sample",
        Series(|s| listed(&s.data_acked)))),
    Place::Own(statistic!(whole "samples_ofo_segments", None, "segments", "segments out of order, at each sample",
        Series(|s| listed(&s.ofo_segments)))),
    Place::Own(statistic!(whole "samples_buffer_bytes", None, "B", "occupied receive buffers, at each sample",
        Series(|s| listed(&s.buffer_bytes)))),
    Place::Own(statistic!(whole "samples_received_{}", None, "B",
        "received in order on the path by then, at each sample", PathSeries(|p| &p.received))),
    Place::Own(statistic!(whole "samples_cwnd_{}", None, "B", "congestion windows on the path, at each sample",
        PathSeries(|p| &p.cwnd))),
    Place::Own(statistic!(whole "samples_queue_{}", None, "packets", "queue in front of the path, at each sample",
        PathSeries(|p| &p.queue))),
    Place::Own(statistic!(whole "events_digest", None, "", "digest of everything that happened",
        Text(|m| Some(&m.events_digest)))),
];

/// Returns all statistics in the order of columns, with the engine's from these tables.
///
/// # Panics
///
/// If the tables lack a statistic that has a place in the order.
pub fn statistics(tables: Tables<'_>) -> Vec<Statistic> {
    let mut engine: Vec<Statistic> = columns(tables).into_iter().map(Statistic::of_engine).collect();
    let mut all: Vec<Statistic> = Vec::new();
    for place in PLACES {
        match place {
            Place::Own(statistic) => all.push(statistic.clone()),
            Place::Engine(column) => {
                let at = engine.iter().position(|it| it.name == *column);
                all.push(engine.remove(at.unwrap_or_else(|| panic!("the engine has no column `{column}`"))));
            }
        }
    }
    all.extend(engine);
    all
}

impl Statistic {
    fn of_engine(column: Column) -> Statistic {
        let Column { name, metric, unit, about, kind } = column;
        let (name, of) = (Cow::Owned(name), Engine(kind));
        Statistic { name, metric, unit, about, derived: false, censoring: Censoring::Partial, of }
    }

    /// Returns the type of its columns.
    pub fn kind(&self) -> Kind {
        match self.of {
            Flag(_) => Kind::Flag,
            Count(_) | PathCount(_) | Middlebox(_) | LinkCount(_) => Kind::Count,
            Number(_) | PathNumber(_) | Window(_) | WindowPath(_) | LinkNumber(_) => Kind::Number,
            Text(_) | Series(_) | PathSeries(_) => Kind::Text,
            Engine(kind) => kind,
        }
    }

    /// Returns true if it has the same single column in every run.
    pub fn is_single(&self) -> bool {
        matches!(self.of, Flag(_) | Count(_) | Number(_) | Text(_) | Engine(_))
    }

    /// Returns its columns in a run over these paths, with their values.
    pub fn columns(&self, measured: &Measured, paths: &[String]) -> Vec<(String, Cell)> {
        let named = |about: &dyn fmt::Display| match self.name.contains("{}") {
            true => self.name.replace("{}", &about.to_string()),
            false => format!("{}_{about}", self.name),
        };
        let one = |cell: Cell| vec![(self.name.to_string(), cell)];
        let by_path = |cell: &dyn Fn(usize) -> Cell| -> Vec<(String, Cell)> {
            paths.iter().enumerate().map(|(n, path)| (named(path), cell(n))).collect()
        };
        let windows = || measured.windows.iter().enumerate();
        let samples = measured.samples.as_ref();
        match self.of {
            Flag(of) => one(Cell::Flag(of(measured))),
            Count(of) => one(Cell::Count(of(measured))),
            Number(of) => one(Cell::number(of(measured))),
            Text(of) => one(of(measured).map_or(Cell::Empty, |text| Cell::Text(text.to_owned()))),
            Engine(_) => one(Cell::of(measured.counted.value(&self.name))),
            PathCount(of) => by_path(&|path| of(measured).get(path).map_or(Cell::Empty, |n| Cell::Count(*n))),
            PathNumber(of) => by_path(&|path| Cell::number(of(measured, path))),
            Window(of) => windows().map(|(n, window)| (named(&n), Cell::number(Some(of(window))))).collect(),
            WindowPath(of) => {
                let one = |(n, window)| {
                    let path = move |(at, path)| (format!("{}_{path}", named(&n)), Cell::number(of(window, at)));
                    paths.iter().enumerate().map(path).collect::<Vec<_>>()
                };
                windows().flat_map(one).collect()
            }
            Middlebox(of) => measured.middleboxes.iter().map(|it| (named(&it.name), Cell::Count(of(it)))).collect(),
            LinkCount(of) => measured.links.iter().map(|it| (named(&it.name), Cell::Count(of(it)))).collect(),
            LinkNumber(of) => measured.links.iter().map(|it| (named(&it.name), Cell::number(Some(of(it))))).collect(),
            Series(of) => samples.map_or(Vec::new(), |samples| one(Cell::Text(of(samples)))),
            PathSeries(of) => samples.map_or(Vec::new(), |samples| {
                by_path(&|path| samples.paths.get(path).map_or(Cell::Empty, |path| Cell::Text(listed(of(path)))))
            }),
        }
    }

    /// Returns the argument of its metric in study files.
    pub fn argument(&self) -> Argument {
        match self.of {
            PathCount(_) | PathNumber(_) => Argument::Path,
            Window(_) => Argument::Window,
            WindowPath(_) => Argument::WindowPath,
            _ => Argument::None,
        }
    }

    /// Returns the unit of its metric in study files: `%` for shares and rates of events.
    pub fn metric_unit(&self) -> &'static str {
        match self.of {
            Number(_) | PathNumber(_) if self.unit.is_empty() => "%",
            _ => self.unit,
        }
    }

    /// Returns its number in a run, in [`Statistic::metric_unit`]; `None` if the run has none.
    pub fn number(&self, measured: &Measured, window: usize, path: usize) -> Option<f64> {
        let scale = if self.metric_unit() == self.unit { 1.0 } else { 100.0 };
        let number = match self.of {
            Flag(_) | Text(_) | Middlebox(_) | LinkCount(_) | LinkNumber(_) | Series(_) | PathSeries(_) => None,
            Engine(_) => match measured.counted.value(&self.name) {
                Value::Count(count) => Some(*count as f64),
                Value::Span(span) => Some(span.as_secs_f64()),
                _ => None,
            },
            Count(of) => Some(of(measured) as f64),
            Number(of) => of(measured),
            PathCount(of) => of(measured).get(path).map(|n| *n as f64),
            PathNumber(of) => of(measured, path),
            Window(of) => measured.windows.get(window).map(of),
            WindowPath(of) => measured.windows.get(window).and_then(|it| of(it, path)),
        };
        number.map(|number| scale * number).filter(|number| number.is_finite())
    }

    /// Returns its text in a run; `None` for other kinds.
    pub fn text(&self, measured: &Measured) -> Option<String> {
        match self.of {
            Text(of) => of(measured).map(str::to_owned),
            _ => None,
        }
    }
}

impl Cell {
    /// Converts the value of a statistic of the engine.
    fn of(value: &Value) -> Cell {
        match value {
            Value::Absent => Cell::Empty,
            Value::Flag(flag) => Cell::Flag(*flag),
            Value::Count(count) => Cell::Count(*count),
            Value::Span(span) => Cell::Number(span.as_secs_f64()),
            Value::Word(word) => Cell::Text(word.to_string()),
            Value::Counts(counts) => Cell::Text(reasons(counts)),
        }
    }

    /// Makes the cell of a number; empty if it is absent or not finite.
    pub fn number(number: Option<f64>) -> Cell {
        number.filter(|number| number.is_finite()).map_or(Cell::Empty, Cell::Number)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Empty => Ok(()),
            Cell::Flag(flag) => write!(f, "{flag}"),
            Cell::Count(count) => write!(f, "{count}"),
            Cell::Number(number) => write!(f, "{number}"),
            Cell::Text(text) => f.write_str(text),
        }
    }
}

/// Joins values with spaces.
fn listed<T: fmt::Display>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

/// Formats counts by name: `middlebox 1, prohibited 2`.
fn reasons(counts: &BTreeMap<Cow<'_, str>, u64>) -> String {
    counts.iter().map(|(reason, count)| format!("{reason} {count}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
