//! A run and its tables. Scenario and seed are the whole run, so what is asked for later is had by running it again.

use crate::call::{Shared, attended};
use crate::comparison::{Drawn, drawn, write};
use crate::error;
use crate::table::Table;
use anabranch_lab::Keep;
use anabranch_lab::statistic::{Cell, Kind};
use anabranch_lab::timeline::Copied;
use anabranch_policy::Decision;
use anabranch_report::html::{self, Page};
use anabranch_report::{Header, Sheet, run_rows};
use anabranch_scenario::Scenario;
use anabranch_sim::Host;
use pyo3::prelude::*;
use std::path::PathBuf;

/// A run of a scenario with one seed.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Run {
    scenario: Scenario,
    seed: u64,
    header: Header,
    run: anabranch_lab::Run,
}

/// Runs the scenario, as a call that signals can end.
pub fn play(py: Python<'_>, scenario: &Scenario, seed: u64, keep: &Keep) -> PyResult<anabranch_lab::Run> {
    let shared = Shared::default();
    let scenario = scenario.clone().stoppable(&shared.stop);
    let run = attended(py, &shared, 1, None, || anabranch_lab::run(&scenario, seed, keep))?;
    run.map_err(|broken| error::run(py, &broken))
}

impl Run {
    /// Runs it.
    pub fn new(py: Python<'_>, scenario: &Scenario, seed: u64) -> PyResult<Run> {
        let run = play(py, scenario, seed, &Keep::default())?;
        Ok(Run { scenario: scenario.clone(), seed, header: Header::new(scenario, seed, 1), run })
    }

    /// The same run with a record of how it went.
    fn in_detail(&self, py: Python<'_>) -> PyResult<anabranch_lab::Run> {
        play(py, &self.scenario, self.seed, &Keep { timeline: true, ..Keep::default() })
    }

    fn page(&self, py: Python<'_>) -> PyResult<Page> {
        let (run, all) = (self.in_detail(py)?, [self.run.measured.clone()]);
        Ok(Page::of_runs(&self.scenario, &self.header, &run, &all, &self.run.command))
    }

    fn path(&self, index: usize) -> Cell {
        self.header.paths.get(index).map_or(Cell::Empty, |name| Cell::Text(name.clone()))
    }
}

fn table<const N: usize>(columns: [(&str, Kind); N], rows: Vec<[Cell; N]>) -> PyResult<Table> {
    let columns = columns.map(|(name, kind)| (name.to_owned(), kind)).to_vec();
    Table::of(&Sheet::new(columns, rows.into_iter().map(Vec::from).collect()))
}

fn seconds(at: anabranch_units::Instant) -> Cell {
    Cell::Number(at.as_secs_f64())
}

#[pymethods]
impl Run {
    /// The JSON of `anabranch run --json`.
    fn json(&self) -> PyResult<String> {
        let runs = std::slice::from_ref(&self.run);
        anabranch_report::json(&self.header, None, &run_rows(&self.header, runs), None).map_err(error::bug)
    }

    /// Text that `anabranch run` prints.
    fn text(&self) -> String {
        anabranch_report::in_full(&self.header, &self.run)
    }

    /// The command that repeats it.
    #[getter]
    fn command(&self) -> &str {
        &self.run.command
    }

    /// Time at which the last transfer was through, or the run ended without \[s\].
    #[getter]
    fn end_s(&self) -> f64 {
        self.run.outcome.end.as_secs_f64()
    }

    /// Bytes of all transfers that have arrived.
    #[getter]
    fn arrived_bytes(&self) -> u64 {
        self.run.outcome.transfers.iter().map(|transfer| transfer.bytes).sum()
    }

    /// One row per transfer.
    fn transfers(&self) -> PyResult<Table> {
        let columns = [
            ("workload", Kind::Count),
            ("label", Kind::Text),
            ("connection", Kind::Count),
            ("started_s", Kind::Number),
            ("finished_s", Kind::Number),
            ("bytes", Kind::Count),
            ("asked_bytes", Kind::Count),
        ];
        let rows = self.run.outcome.transfers.iter().map(|it| {
            [
                Cell::Count(it.workload as u64),
                Cell::Text(it.label.clone()),
                Cell::Count(it.connection as u64),
                seconds(it.started),
                it.finished.map_or(Cell::Empty, seconds),
                Cell::Count(it.bytes),
                it.asked.map_or(Cell::Empty, Cell::Count),
            ]
        });
        table(columns, rows.collect())
    }

    /// One row per segment with data, in the order in which each connection sent them.
    fn segments(&self, py: Python<'_>) -> PyResult<Table> {
        let columns = [
            ("connection", Kind::Count),
            ("at_s", Kind::Number),
            ("path", Kind::Text),
            ("first_byte", Kind::Count),
            ("length_bytes", Kind::Count),
            ("copy", Kind::Text),
            ("lost", Kind::Flag),
        ];
        let run = self.in_detail(py)?;
        let mut rows = Vec::new();
        for (number, connection) in run.timeline.iter().flat_map(|it| &it.connections).enumerate() {
            rows.extend(connection.sent.iter().map(|it| {
                let copy = match it.copy {
                    Copied::New => "new",
                    Copied::Retransmitted => "retransmitted",
                    Copied::Reinjected => "reinjected",
                };
                [
                    Cell::Count(number as u64),
                    seconds(it.at),
                    self.path(it.path),
                    Cell::Count(it.from),
                    Cell::Count(it.length),
                    Cell::Text(copy.to_owned()),
                    Cell::Flag(it.lost),
                ]
            }));
        }
        table(columns, rows)
    }

    /// One row per answer of a scheduler.
    fn decisions(&self, py: Python<'_>) -> PyResult<Table> {
        let columns = [
            ("host", Kind::Text),
            ("connection", Kind::Count),
            ("at_s", Kind::Number),
            ("answer", Kind::Text),
            ("subflow", Kind::Count),
            ("skip_bytes", Kind::Count),
            ("copy_from_bytes", Kind::Count),
            ("until_s", Kind::Number),
            ("unsent_bytes", Kind::Count),
            ("sendable_bytes", Kind::Count),
        ];
        let run = play(py, &self.scenario, self.seed, &Keep { answers: true, ..Keep::default() })?;
        let rows = run.answers.iter().flatten().map(|it| {
            let (answer, subflow, skip, until) = match it.decision {
                Decision::Send { on, skip } => ("send", Some(on), Some(skip), None),
                Decision::Repeat { on, .. } => ("repeat", Some(on), None, None),
                Decision::Wait { until } => ("wait", None, None, until),
            };
            let host = if it.host == Host::Client { "client" } else { "server" };
            [
                Cell::Text(host.to_owned()),
                Cell::Count(it.connection as u64),
                seconds(it.at),
                Cell::Text(answer.to_owned()),
                subflow.map_or(Cell::Empty, |id| Cell::Count(u64::from(id.0))),
                skip.map_or(Cell::Empty, |skip| Cell::Count(skip.get())),
                it.copy_from.map_or(Cell::Empty, Cell::Count),
                until.map_or(Cell::Empty, seconds),
                Cell::Count(it.unsent.get()),
                Cell::Count(it.sendable.get()),
            ]
        });
        table(columns, rows.collect())
    }

    /// One row per sample and path.
    fn samples(&self, py: Python<'_>) -> PyResult<Table> {
        let columns = [
            ("at_s", Kind::Number),
            ("path", Kind::Text),
            ("received_bytes", Kind::Count),
            ("cwnd_bytes", Kind::Count),
            ("queued_packets", Kind::Count),
            ("data_acked_bytes", Kind::Count),
            ("read_bytes", Kind::Count),
            ("ofo_segments", Kind::Count),
            ("buffered_bytes", Kind::Count),
        ];
        let run = self.in_detail(py)?;
        let mut rows = Vec::new();
        for sample in &run.outcome.samples {
            rows.extend(sample.paths.iter().enumerate().map(|(path, it)| {
                [
                    seconds(sample.at),
                    self.path(path),
                    Cell::Count(it.received),
                    Cell::Count(it.cwnd),
                    Cell::Count(it.queued),
                    Cell::Count(sample.data_acked),
                    Cell::Count(sample.read),
                    Cell::Count(sample.ofo_segments),
                    Cell::Count(sample.buffered),
                ]
            }));
        }
        table(columns, rows)
    }

    /// Writes the captures of `anabranch run --pcap` to this directory.
    fn captures(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        play(py, &self.scenario, self.seed, &Keep { captures: Some(directory), ..Keep::default() }).map(drop)
    }

    /// Writes the page of `anabranch run --report` to this file.
    fn report(&self, py: Python<'_>, file: PathBuf) -> PyResult<()> {
        write(&file, &html::page(&self.page(py)?))
    }

    /// Figures of that page.
    fn charts(&self, py: Python<'_>) -> PyResult<Drawn> {
        Ok(drawn(&self.page(py)?))
    }

    fn __repr__(&self) -> String {
        let measured = &self.run.measured;
        let end = if measured.finished { "finished" } else { "not finished" };
        let time = measured.completion_s.map_or(String::new(), |time| format!(" in {time:.3} s"));
        format!("<anabranch.Run {}, seed {}: {end}{time}>", self.scenario.name, self.seed)
    }
}
