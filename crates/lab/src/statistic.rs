//! Statistics of a run, each described once: name, unit, a few words, and its value.
//!
//! Columns of CSV and Parquet, the numbers that JSON adds to a [`Measured`], the metrics of studies and the table in
//! `docs/results.md` are made from this list. A test holds it against the fields of [`Measured`].

use crate::{Measured, MiddleboxCounts, PathSamples, Samples, WindowMeasured};
use std::collections::BTreeMap;
use std::fmt;

/// A statistic of a run.
#[derive(Debug)]
pub struct Statistic {
    /// Name of its column, with the unit at the end. `{}` stands for the path, window or middlebox that a column is
    /// about.
    pub name: &'static str,
    /// Name in study files, where it has one.
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

/// The value of a statistic.
#[derive(Debug)]
enum Of {
    Flag(fn(&Measured) -> bool),
    Count(fn(&Measured) -> u64),
    Number(fn(&Measured) -> Option<f64>),
    Text(fn(&Measured) -> Option<&str>),
    Reasons(fn(&Measured) -> &BTreeMap<String, u64>),
    PathCount(fn(&Measured) -> &[u64]),
    PathNumber(fn(&Measured, usize) -> Option<f64>),
    Window(fn(&WindowMeasured) -> f64),
    WindowPath(fn(&WindowMeasured, usize) -> Option<f64>),
    Middlebox(fn(&MiddleboxCounts) -> u64),
    Series(fn(&Samples) -> String),
    PathSeries(fn(&PathSamples) -> &[u64]),
}

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// True or false.
    Flag,
    /// Whole numbers from 0.
    Count,
    /// Numbers.
    Number,
    /// Texts.
    Text,
}

/// A value in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Empty,
    /// True or false.
    Flag(bool),
    /// A whole number.
    Count(u64),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

/// The argument of a metric in study files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// No argument.
    None,
    /// The name of a path.
    Path,
    /// The number of a window of the run, from 0.
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
            name: $name,
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
#[rustfmt::skip] // One line each: a table.
pub const STATISTICS: &[Statistic] = &[
    statistic!(whole "seed", None, "", "seed of the run", Count(|m| m.seed)),
    statistic!(whole "finished", None, "", "all transfers completed", Flag(|m| m.finished)),
    statistic!(whole "unfinished", Some("unfinished"), "", "transfers that did not complete", Count(|m| m.unfinished as u64)),
    statistic!(derived "censored", None, "", "times are lower bounds: something did not complete", Flag(|m| m.has_bounds())),
    statistic!(bound "completion_s", Some("completion-time"), "s", "completion time", Number(|m| m.completion_s)),
    statistic!("completion_sd_s", Some("completion-time-sd"), "s", "standard deviation of completion times", Number(|m| m.completion_sd_s)),
    statistic!(bound "page_load_s", Some("page-load-time"), "s", "page load time", Number(|m| m.page_load_s)),
    statistic!(bound "object_download_s", Some("object-download-time"), "s", "mean object download time", Number(|m| m.object_download_s)),
    statistic!("goodput_bps", Some("goodput"), "bit/s", "goodput of all transfers together", Number(|m| Some(m.goodput_bps))),
    statistic!("mean_goodput_bps", Some("mean-goodput"), "bit/s", "mean goodput of the transfers", Number(|m| Some(m.mean_goodput_bps))),
    statistic!("share_{}", Some("path-share"), "", "share of the bytes first sent on the path", PathNumber(|m, path| m.shares.get(path).copied())),
    statistic!("path_bytes_{}", Some("path-bytes"), "B", "bytes first sent on the path", PathCount(|m| &m.path_bytes)),
    statistic!("path_segments_{}", Some("path-segments"), "segments", "data segments sent on the path", PathCount(|m| &m.path_segments)),
    statistic!(derived "path_goodput_bps_{}", Some("path-goodput"), "bit/s", "goodput by the bytes first sent on the path", PathNumber(|m, path| m.shares.get(path).map(|share| share * m.goodput_bps))),
    statistic!("ofo_count", Some("ofo-count"), "segments", "segments that arrived out of order", Count(|m| m.ofo_count)),
    statistic!("ofo_peak", Some("ofo-peak"), "segments", "most segments out of order at once", Count(|m| m.ofo_peak)),
    statistic!("ofo_mean", Some("ofo-mean"), "segments", "segments out of order, time average", Number(|m| Some(m.ofo_mean))),
    statistic!("ofo_wait_s", Some("ofo-wait"), "s", "mean wait of an out-of-order segment", Number(|m| Some(m.ofo_wait_s))),
    statistic!("hol_blocked_s", None, "s", "time that arrived data waited behind missing data", Number(|m| Some(m.hol_blocked_s))),
    statistic!("rtos", None, "", "retransmission timeouts", Count(|m| m.rtos)),
    statistic!("segments_sent", None, "segments", "data segments sent, repeated ones included", Count(|m| m.segments_sent)),
    statistic!(derived "rto_rate", Some("rto-rate"), "", "timeouts per data segment sent", Number(|m| Some(m.rto_rate()))),
    statistic!("retransmitted", None, "segments", "segments retransmitted on their own subflow", Count(|m| m.retransmitted)),
    statistic!("reinjected_bytes", Some("reinjected"), "B", "bytes sent again on another subflow", Count(|m| m.reinjected_bytes)),
    statistic!("duplicate_bytes", None, "B", "bytes that arrived more than once", Count(|m| m.duplicate_bytes)),
    statistic!("blocked_cwnd_s", None, "s", "time the sender waited for congestion windows", Number(|m| Some(m.blocked_cwnd_s))),
    statistic!("blocked_window_s", None, "s", "time the sender waited for the receive window", Number(|m| Some(m.blocked_window_s))),
    statistic!("blocked_scheduler_s", None, "s", "time the sender waited for its scheduler", Number(|m| Some(m.blocked_scheduler_s))),
    statistic!("blocked_application_s", None, "s", "time the sender waited for its application", Number(|m| Some(m.blocked_application_s))),
    statistic!("overruled", None, "", "scheduler decisions that the engine overruled", Count(|m| m.overruled)),
    statistic!("acks_detoured", None, "", "pure ACKs that took the path of another subflow", Count(|m| m.acks_detoured)),
    statistic!("acks_kept", None, "", "pure ACKs that kept their own path instead", Count(|m| m.acks_kept)),
    statistic!("ack_fallbacks", None, "", "subflows whose ACKs fell back to their own path", Count(|m| m.ack_fallbacks)),
    statistic!("probes_sent", None, "", "probes of the receiver for the path of its ACKs", Count(|m| m.probes_sent)),
    statistic!("fallbacks", None, "", "connections that fell back to plain TCP", Count(|m| m.fallbacks)),
    statistic!("fallback_reasons", None, "", "fallbacks of both hosts by reason", Reasons(|m| &m.fallback_reasons)),
    statistic!("reset_reasons", None, "", "resets of both hosts by reason (MP_TCPRST)", Reasons(|m| &m.reset_reasons)),
    statistic!("checksum_failures", None, "", "DSS checksums that failed", Count(|m| m.checksum_failures)),
    statistic!("altered_bytes", None, "B", "bytes read otherwise than written", Count(|m| m.altered_bytes)),
    statistic!("middlebox_{}_altered", None, "segments", "segments that the middlebox forwarded altered", Middlebox(|m| m.altered)),
    statistic!("middlebox_{}_dropped", None, "segments", "segments that the middlebox dropped", Middlebox(|m| m.dropped)),
    statistic!("middlebox_{}_made", None, "segments", "segments that the middlebox made itself", Middlebox(|m| m.made)),
    statistic!("buffer_mean_segments", Some("buffer-mean"), "segments", "occupied receive buffer, mean", Number(|m| m.buffer_mean_segments)),
    statistic!("buffer_sd_segments", Some("buffer-sd"), "segments", "occupied receive buffer, standard deviation", Number(|m| m.buffer_sd_segments)),
    statistic!("suspension_s", Some("suspension"), "s", "longest silence of the surviving subflows, lone segments apart", Number(|m| m.suspension_s)),
    statistic!(whole "window_{}_from_s", None, "s", "beginning of the window", Window(|w| w.from_s)),
    statistic!(whole "window_{}_to_s", None, "s", "end of the window", Window(|w| w.to_s)),
    statistic!(whole "window_{}_goodput_bps", Some("window-goodput"), "bit/s", "goodput within the window", Window(|w| w.goodput_bps)),
    statistic!(whole "window_{}_path_bps", Some("window-path-goodput"), "bit/s", "goodput of the path within the window", WindowPath(|w, path| w.path_bps.get(path).copied())),
    statistic!("decisions", Some("decisions"), "", "order of first transmissions", Text(|m| m.decisions.as_deref())),
    statistic!(whole "samples_at_s", None, "s", "times of the samples", Series(|s| listed(&s.at_s))),
    statistic!(whole "samples_data_acked", None, "B", "data acknowledged by then, at each sample", Series(|s| listed(&s.data_acked))),
    statistic!(whole "samples_ofo_segments", None, "segments", "segments out of order, at each sample", Series(|s| listed(&s.ofo_segments))),
    statistic!(whole "samples_buffer_bytes", None, "B", "occupied receive buffers, at each sample", Series(|s| listed(&s.buffer_bytes))),
    statistic!(whole "samples_received_{}", None, "B", "received in order on the path by then, at each sample", PathSeries(|p| &p.received)),
    statistic!(whole "samples_cwnd_{}", None, "B", "congestion windows on the path, at each sample", PathSeries(|p| &p.cwnd)),
    statistic!(whole "samples_queue_{}", None, "packets", "queue in front of the path, at each sample", PathSeries(|p| &p.queue)),
    statistic!(whole "events_digest", None, "", "digest of everything that happened", Text(|m| Some(&m.events_digest))),
];

impl Statistic {
    /// The type of its columns.
    pub fn kind(&self) -> Kind {
        match self.of {
            Flag(_) => Kind::Flag,
            Count(_) | PathCount(_) | Middlebox(_) => Kind::Count,
            Number(_) | PathNumber(_) | Window(_) | WindowPath(_) => Kind::Number,
            Text(_) | Reasons(_) | Series(_) | PathSeries(_) => Kind::Text,
        }
    }

    /// Whether it has the same one column in every run.
    pub fn is_single(&self) -> bool {
        matches!(self.of, Flag(_) | Count(_) | Number(_) | Text(_) | Reasons(_))
    }

    /// Its columns in a run over these paths, with their values.
    pub fn columns(&self, measured: &Measured, paths: &[String]) -> Vec<(String, Cell)> {
        let named = |about: &dyn fmt::Display| match self.name.contains("{}") {
            true => self.name.replace("{}", &about.to_string()),
            false => format!("{}_{about}", self.name),
        };
        let one = |cell: Cell| vec![(self.name.to_owned(), cell)];
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
            Reasons(of) => one(Cell::Text(reasons(of(measured)))),
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
            Series(of) => samples.map_or(Vec::new(), |samples| one(Cell::Text(of(samples)))),
            PathSeries(of) => samples.map_or(Vec::new(), |samples| {
                by_path(&|path| samples.paths.get(path).map_or(Cell::Empty, |path| Cell::Text(listed(of(path)))))
            }),
        }
    }

    /// The arguments of the metric that it is in study files.
    pub fn argument(&self) -> Argument {
        match self.of {
            PathCount(_) | PathNumber(_) => Argument::Path,
            Window(_) => Argument::Window,
            WindowPath(_) => Argument::WindowPath,
            _ => Argument::None,
        }
    }

    /// The unit of the metric that it is: shares and rates of events are percentages there.
    pub fn metric_unit(&self) -> &'static str {
        match self.of {
            Number(_) | PathNumber(_) if self.unit.is_empty() => "%",
            _ => self.unit,
        }
    }

    /// Its number in a run, in [`Statistic::metric_unit`]; `None` where the run has none.
    pub(crate) fn number(&self, measured: &Measured, window: usize, path: usize) -> Option<f64> {
        let scale = if self.metric_unit() == self.unit { 1.0 } else { 100.0 };
        let number = match self.of {
            Flag(_) | Text(_) | Reasons(_) | Middlebox(_) | Series(_) | PathSeries(_) => None,
            Count(of) => Some(of(measured) as f64),
            Number(of) => of(measured),
            PathCount(of) => of(measured).get(path).map(|n| *n as f64),
            PathNumber(of) => of(measured, path),
            Window(of) => measured.windows.get(window).map(of),
            WindowPath(of) => measured.windows.get(window).and_then(|it| of(it, path)),
        };
        number.map(|number| scale * number).filter(|number| number.is_finite())
    }

    /// Its text in a run, if it is one.
    pub(crate) fn text(&self, measured: &Measured) -> Option<String> {
        match self.of {
            Text(of) => of(measured).map(str::to_owned),
            _ => None,
        }
    }
}

impl Cell {
    /// A number; empty without one or if it is none.
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

/// Values with spaces between.
fn listed<T: fmt::Display>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

/// `middlebox 1, prohibited 2`
fn reasons(counts: &BTreeMap<String, u64>) -> String {
    counts.iter().map(|(reason, count)| format!("{reason} {count}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Every number and text in `value`, with the way to it.
    fn leaves(value: &Value, at: &str, found: &mut Vec<(String, String)>) {
        match value {
            Value::Array(items) => items.iter().enumerate().for_each(|(n, it)| leaves(it, &format!("{at}.{n}"), found)),
            Value::Object(map) => map.iter().for_each(|(key, it)| leaves(it, &format!("{at}.{key}"), found)),
            Value::String(text) => found.push((at.to_owned(), text.clone())),
            other => found.push((at.to_owned(), other.to_string())),
        }
    }

    /// A measurement whose every value differs from all others.
    fn all_different() -> Measured {
        let mut value = serde_json::to_value(crate::compare::tests::measured(0, 1.0, 1.0)).expect("it has a form");
        let filled = serde_json::json!({
            "shares": [0.0, 0.0], "path_bytes": [0, 0], "path_segments": [0, 0],
            "fallback_reasons": { "why": 0 }, "reset_reasons": { "whence": 0 },
            "middleboxes": [{ "name": "a/nat", "altered": 0, "dropped": 0, "made": 0 }],
            "windows": [{ "from_s": 0.0, "to_s": 0.0, "goodput_bps": 0.0, "path_bps": [0.0, 0.0] }],
            "samples": {
                "at_s": [0.0], "data_acked": [0], "ofo_segments": [0], "buffer_bytes": [0],
                "paths": [{ "received": [0], "cwnd": [0], "queue": [0] }, { "received": [0], "cwnd": [0], "queue": [0] }],
            },
        });
        let optional = ["completion_s", "completion_sd_s", "page_load_s", "object_download_s", "suspension_s"];
        let buffers = ["buffer_mean_segments", "buffer_sd_segments"];
        for key in optional.iter().chain(&buffers) {
            value[key] = serde_json::json!(0.5);
        }
        for (key, held) in filled.as_object().expect("it is one") {
            value[key] = held.clone();
        }
        for key in ["decisions", "events_digest"] {
            value[key] = serde_json::json!(format!("the {key}"));
        }
        number(&mut value, &mut 1000);
        serde_json::from_value(value).expect("types stayed as they were")
    }

    /// Gives each number a value of its own.
    fn number(value: &mut Value, next: &mut u64) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|it| number(it, next)),
            Value::Object(map) => map.values_mut().for_each(|it| number(it, next)),
            Value::Number(held) => {
                *next += 1;
                *value = if held.is_f64() { serde_json::json!(*next as f64 + 0.5) } else { serde_json::json!(*next) };
            }
            Value::Null => panic!("a value that the test does not fill"),
            _ => {}
        }
    }

    #[test]
    fn every_field_of_a_measurement_has_a_column() {
        let measured = all_different();
        let paths = ["wlan".to_owned(), "lte".to_owned()];
        let cells: Vec<(String, Cell)> =
            STATISTICS.iter().flat_map(|statistic| statistic.columns(&measured, &paths)).collect();
        let words: Vec<String> = cells
            .iter()
            .flat_map(|(_, cell)| cell.to_string().split([' ', ',']).map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let mut found = Vec::new();
        leaves(&serde_json::to_value(&measured).expect("it has a form"), "", &mut found);
        for (place, value) in found {
            let named = place.ends_with(".name") && cells.iter().any(|(name, _)| name.contains(&value));
            let texts = cells.iter().any(|(_, cell)| cell.to_string() == value);
            assert!(named || texts || words.contains(&value), "no column has `{place}`, which is {value}");
        }
    }

    #[test]
    fn columns_have_names_of_their_own_and_the_kind_that_is_said() {
        let measured = all_different();
        let mut names = std::collections::BTreeSet::new();
        for statistic in STATISTICS {
            for (name, cell) in statistic.columns(&measured, &["wlan".to_owned(), "lte".to_owned()]) {
                let kind = match cell {
                    Cell::Empty => continue,
                    Cell::Flag(_) => Kind::Flag,
                    Cell::Count(_) => Kind::Count,
                    Cell::Number(_) => Kind::Number,
                    Cell::Text(_) => Kind::Text,
                };
                assert_eq!(kind, statistic.kind(), "{name}");
                assert!(names.insert(name.clone()), "two columns are called {name}");
            }
        }
        for name in
            ["page_load_s", "share_lte", "window_0_path_bps_wlan", "middlebox_a/nat_altered", "samples_cwnd_lte"]
        {
            assert!(names.contains(name), "{name} is not among {names:?}");
        }
    }

    #[test]
    fn every_statistic_is_in_the_documentation() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md"));
        let text = text.expect("docs/results.md is in the repository");
        let mut place = 0;
        for Statistic { name, unit, about, .. } in STATISTICS {
            let unit = if unit.is_empty() { "–" } else { unit };
            let row = format!("| `{}` | {unit} | {about} |\n", name.replace("{}", "NAME"));
            let found = text.find(&row);
            assert!(found >= Some(place), "docs/results.md lacks, or has in another order: {row}");
            place = found.unwrap_or(place);
        }
    }
}
