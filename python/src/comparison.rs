//! A comparison: its ranking, its rows, its page.

use crate::error;
use crate::table::Table;
use anabranch_lab::compare;
use anabranch_lab::compare::Summary;
use anabranch_report::file::put;
use anabranch_report::html::{self, Charts, Page};
use anabranch_report::{Header, Sheet, comparison_rows};
use anabranch_scenario::Scenario;
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

/// Writes a file as a whole or not at all.
pub fn write(file: &Path, text: &str) -> PyResult<()> {
    let failed = |error: std::io::Error| PyOSError::new_err(format!("cannot write {}: {error}", file.display()));
    put(file, &mut text.as_bytes(), 0o666).map_err(failed)
}

#[pymethods]
impl Comparison {
    /// The JSON of `anabranch compare --json`.
    fn json(&self) -> PyResult<String> {
        anabranch_report::json(&self.header, self.summary.as_ref(), &comparison_rows(&self.comparison), None)
            .map_err(error::bug)
    }

    /// Text that `anabranch compare` prints.
    fn text(&self) -> String {
        self.summary.as_ref().map_or(String::new(), |summary| anabranch_report::comparison(&self.header, summary))
    }

    /// One row per run: the columns of `--csv`.
    fn runs(&self) -> PyResult<Table> {
        Table::of(&Sheet::of_runs(&self.header, &comparison_rows(&self.comparison)))
    }

    /// Writes the page of `anabranch compare --report` to this file.
    fn report(&self, file: PathBuf) -> PyResult<()> {
        self.page().map_or(Ok(()), |page| write(&file, &html::page(&page)))
    }

    /// Figures of that page.
    fn charts(&self) -> Drawn {
        drawn(&self.page().unwrap_or_default())
    }
}

impl Comparison {
    fn page(&self) -> Option<Page> {
        let made_by = "anabranch.compare in Python";
        let summary = self.summary.as_ref()?;
        Some(Page::of_comparison(&self.scenario, &self.header, &self.comparison, summary, made_by))
    }
}

/// Id and title of each figure, and all of them as data.
pub type Drawn = (Vec<(String, String)>, String);

/// The figures of a page.
pub fn drawn(page: &Page) -> Drawn {
    let Charts { names, data } = Charts::of(page);
    (names, data)
}
