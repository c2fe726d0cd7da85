//! A directory of results that `anabranch sweep` or `rank` has made.

use crate::comparison::write;
use crate::error;
use crate::table::Table;
use anabranch_lab::sweep::{Manifest, Row, Store, StoreError, Summary};
use anabranch_report::Sheet;
use anabranch_report::html::{self, Page};
use miette::Diagnostic;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// A directory of results, read.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Sweep {
    manifest: Manifest,
    summary: Summary,
    rows: Sheet,
}

/// Reads a directory of results: its rows and their summary.
#[pyfunction]
pub fn load(py: Python<'_>, directory: PathBuf) -> PyResult<Sweep> {
    py.detach(|| read(&directory)).map_err(|refused| {
        let help = refused.help().map(|help| format!("; {help}")).unwrap_or_default();
        PyValueError::new_err(format!("{refused}{help}"))
    })
}

fn read(directory: &Path) -> Result<Sweep, StoreError> {
    let (store, manifest) = Store::existing(directory)?;
    let parts = store.parts(&manifest.digest)?;
    let layout = Store::layout(&manifest);
    let mut rows = Vec::new();
    let mut keep = |condition: &[Row]| rows.extend(condition.iter().map(|row| row.cells(&layout)));
    let summary = Summary::of_parts(&store, &manifest, &parts, &mut keep)?;
    Ok(Sweep { rows: Sheet::new(layout.columns(), rows), manifest, summary })
}

#[pymethods]
impl Sweep {
    /// The JSON of `anabranch sweep --summary --json`, without version and build of who reads it.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.summary).map_err(error::bug)
    }

    /// Description of the sweep, from `manifest.json`: version, build, command, axes, systems, and the sweep file.
    fn manifest(&self) -> PyResult<String> {
        serde_json::to_string(&self.manifest).map_err(error::bug)
    }

    /// Text that `anabranch sweep --summary` prints.
    fn text(&self) -> String {
        anabranch_report::sweep(&self.summary, 100)
    }

    /// One row per run: the columns of the parts.
    fn runs(&self) -> PyResult<Table> {
        Table::of(&self.rows)
    }

    /// Writes the page of `anabranch sweep --report` to this file.
    fn report(&self, file: PathBuf) -> PyResult<()> {
        let title = self.manifest.about.as_deref().unwrap_or("Sweep");
        write(&file, &html::page(&Page::of_sweep(&self.summary, title, &self.manifest.command)))
    }
}
