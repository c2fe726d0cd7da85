//! A study of a paper: its runs, its figures, its verdicts.

use crate::call::{Shared, attended};
use crate::comparison::{Drawn, drawn, write};
use crate::error;
use crate::table::Table;
use anabranch_lab::Journal;
use anabranch_policy::Catalogue;
use anabranch_report::Sheet;
use anabranch_report::html::{self, Page};
use anabranch_scenario::in_shell;
use anabranch_study::study::{Prepared, Provenance, Study, StudyError, StudyResult, StudyRow};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Results of a study.
#[pyclass(frozen, name = "Study", module = "anabranch._native")]
pub struct PyStudy {
    result: StudyResult,
    rows: Vec<StudyRow>,
}

/// Makes all runs of a study, draws and judges. Runs are kept in memory alone.
#[pyfunction]
#[pyo3(signature = (name, quick, repeat, jobs, progress))]
pub fn study(
    py: Python<'_>,
    name: &str,
    quick: bool,
    repeat: Option<usize>,
    jobs: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyStudy> {
    if let Some(repeat) = repeat.filter(|repeat| !(1..=100_000).contains(repeat)) {
        return Err(PyValueError::new_err(format!("repeat is {repeat}; accepted: 1 to 100000")));
    }
    let shared = Shared::default();
    let prepare = || {
        let study = Study::load(name)?;
        let study = if quick { study.quick() } else { study };
        let study = repeat.into_iter().fold(study, Study::repeated);
        Prepared::new(study, &Arc::new(Catalogue::default()))
    };
    let prepared = py.detach(prepare).map_err(|refused| error::scenario(py, &refused))?.stoppable(&shared.stop);
    let journal = Journal::in_memory();
    let done = || {
        shared.done.fetch_add(1, Ordering::Relaxed);
    };
    let made = attended(py, &shared, prepared.missing(&journal), progress, || prepared.run(&journal, jobs, &done))?;
    made.map_err(|failed| match failed {
        StudyError::Refused(refused) => error::scenario(py, &refused),
        StudyError::Keep(broken) => error::keep(py, &broken),
    })?;
    let mut command = format!("anabranch study {}", in_shell(name));
    if quick {
        command += " --quick";
    }
    if let Some(repeat) = repeat {
        command += &format!(" --repeat {repeat}");
    }
    let result = py.detach(|| prepared.result(&journal, &Provenance { command, quick }));
    let result = result.map_err(|refused| error::scenario(py, &refused))?;
    Ok(PyStudy { result, rows: prepared.rows(&journal) })
}

#[pymethods]
impl PyStudy {
    /// The study in the JSON of `anabranch study --json`.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.result).map_err(error::bug)
    }

    /// Its figures and verdicts as `anabranch study` prints them.
    fn text(&self) -> String {
        anabranch_report::study(&self.result, 100)
    }

    /// One row per run: the columns of the study's CSV.
    fn runs(&self) -> PyResult<Table> {
        Table::of(&Sheet::of_study(&self.result, &self.rows))
    }

    /// Writes the page of `anabranch study --report` to this file.
    fn report(&self, file: PathBuf) -> PyResult<()> {
        write(&file, &html::page(&self.page()))
    }

    /// Figures of that page.
    fn charts(&self) -> Drawn {
        drawn(&self.page())
    }
}

impl PyStudy {
    fn page(&self) -> Page {
        Page::of_studies(std::slice::from_ref(&self.result), &self.result.command)
    }
}
