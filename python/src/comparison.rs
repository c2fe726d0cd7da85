//! A comparison: its ranking, its rows, its page.

use crate::error;
use crate::table::Table;
use anabranch_lab::compare::Summary;
use anabranch_lab::{Scenario, compare};
use anabranch_report::html::{self, Page};
use anabranch_report::{Header, Sheet, comparison_rows};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// All runs of a comparison, grouped, with their summary.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Comparison {
    scenario: Scenario,
    header: Header,
    comparison: compare::Comparison,
    summary: Option<Summary>,
}

impl Comparison {
    /// Sums it up.
    pub fn new(scenario: Scenario, header: Header, comparison: compare::Comparison) -> Self {
        let summary = comparison.summary();
        Comparison { scenario, header, comparison, summary }
    }
}

/// Writes a file as a whole or not at all: under another name first.
pub fn write(file: &Path, text: &str) -> PyResult<()> {
    let failed = |error: std::io::Error| PyOSError::new_err(format!("cannot write {}: {error}", file.display()));
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    let written = std::fs::write(&name, text).and_then(|()| std::fs::rename(&name, file));
    written.map_err(|error| {
        // What was begun is of no use to anyone; that it cannot be removed adds nothing to the error.
        let _ = std::fs::remove_file(&name);
        failed(error)
    })
}

#[pymethods]
impl Comparison {
    /// The JSON of `anabranch compare --json`.
    fn json(&self) -> PyResult<String> {
        anabranch_report::json(&self.header, self.summary.as_ref(), &comparison_rows(&self.comparison))
            .map_err(error::bug)
    }

    /// What `anabranch compare` prints.
    fn text(&self) -> String {
        self.summary.as_ref().map_or(String::new(), |summary| anabranch_report::comparison(&self.header, summary))
    }

    /// One row per run: the columns of `--csv`.
    fn runs(&self) -> PyResult<Table> {
        Table::of(&Sheet::of_runs(&self.header, &comparison_rows(&self.comparison)))
    }

    /// Writes the page of `anabranch compare --report` to this file; `command` stands in it as what made it.
    fn report(&self, file: PathBuf, command: &str) -> PyResult<()> {
        let Some(summary) = &self.summary else { return Ok(()) };
        let page = Page::of_comparison(&self.scenario, &self.header, &self.comparison, summary, command);
        write(&file, &html::page(&page))
    }
}
