//! A directory of results that `anabranch sweep` or `rank`, or `anabranch.sweep` in Python, has made.

use crate::comparison::{Drawn, drawn, write};
use crate::error;
use crate::table::Table;
use anabranch_report::Sheet;
use anabranch_report::html::{self, Page};
use anabranch_study::sweep::{Manifest, Row, Store, StoreError, Summary};
use miette::Diagnostic;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A directory of results. Rows are read when they are asked for, and summed up condition by condition.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Sweep {
    store: Store,
    manifest: Manifest,
    summary: OnceLock<Summary>,
}

/// A directory of results; its rows are not read yet.
#[pyfunction]
pub fn load(directory: PathBuf) -> PyResult<Sweep> {
    let (store, manifest) = Store::existing(&directory).map_err(|error| refused(&error))?;
    Ok(Sweep { store, manifest, summary: OnceLock::new() })
}

/// A directory that cannot be used, as an exception.
pub fn refused(error: &StoreError) -> PyErr {
    let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
    let text = format!("{error}{help}");
    match error {
        StoreError::File { .. } => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

impl Sweep {
    /// Reads all rows, condition by condition.
    fn read(&self, each: &mut dyn FnMut(&[Row])) -> Result<Summary, StoreError> {
        let parts = self.store.parts(&self.manifest.digest)?;
        Summary::of_parts(&self.store, &self.manifest, &parts, each)
    }

    fn summary(&self, py: Python<'_>) -> PyResult<&Summary> {
        if let Some(summary) = self.summary.get() {
            return Ok(summary);
        }
        let made = py.detach(|| self.read(&mut |_| {})).map_err(|error| refused(&error))?;
        Ok(self.summary.get_or_init(|| made))
    }
}

#[pymethods]
impl Sweep {
    /// Contents of the JSON of `anabranch sweep --summary --json`: without format, version and build.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        serde_json::to_string(self.summary(py)?).map_err(error::bug)
    }

    /// Description of the sweep, from `manifest.json`: version, build, command, axes, systems, and the sweep file.
    fn manifest(&self) -> PyResult<String> {
        serde_json::to_string(&self.manifest).map_err(error::bug)
    }

    /// Text that `anabranch sweep --summary` prints.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        Ok(anabranch_report::sweep(self.summary(py)?, 100))
    }

    /// One row per run: the columns of the parts.
    fn runs(&self, py: Python<'_>) -> PyResult<Table> {
        let layout = Store::layout(&self.manifest);
        let mut rows = Vec::new();
        let mut keep = |condition: &[Row]| rows.extend(condition.iter().map(|row| row.cells(&layout)));
        py.detach(|| self.read(&mut keep)).map_err(|error| refused(&error))?;
        Table::of(&Sheet::new(layout.columns(), rows))
    }

    /// Writes the page of `anabranch sweep --report` to this file.
    fn report(&self, py: Python<'_>, file: PathBuf) -> PyResult<()> {
        write(&file, &html::page(&self.page(py)?))
    }

    /// Figures of that page.
    fn charts(&self, py: Python<'_>) -> PyResult<Drawn> {
        Ok(drawn(&self.page(py)?))
    }
}

impl Sweep {
    fn page(&self, py: Python<'_>) -> PyResult<Page> {
        let title = self.manifest.about.as_deref().unwrap_or("Sweep");
        Ok(Page::of_sweep(self.summary(py)?, title, &self.manifest.command))
    }
}
