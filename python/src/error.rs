//! Exceptions: those of `anabranch/_errors.py`, with their fields.

use anabranch_lab::{KeepError, RunError};
use anabranch_scenario::{ScenarioError, Shown};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A `ScenarioError` with the text that the command line shows.
pub fn scenario(py: Python<'_>, error: &ScenarioError) -> PyErr {
    let mut text = String::new();
    let theme = miette::GraphicalTheme::unicode_nocolor();
    let handler = miette::GraphicalReportHandler::new_themed(theme).with_width(100);
    let rendered = handler.render_report(&mut text, &Shown::of(error));
    let text = if rendered.is_ok() { text.trim().to_owned() } else { error.to_string() };
    exception(py, "ScenarioError", (text, Shown::of(error).to_string(), error.quoted(), error.help()))
}

/// A `RunError`: what went wrong, and the command that repeats it.
pub fn run(py: Python<'_>, error: &RunError) -> PyErr {
    exception(py, "RunError", (format!("a run failed: {}", error.problem), &error.problem, &error.command))
}

/// The same of a run in a comparison.
pub fn keep(py: Python<'_>, error: &KeepError) -> PyErr {
    match error {
        KeepError::Run(error) => run(py, error),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}

/// A fault of ours, such as results that cannot be written as JSON.
pub fn bug(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(format!("anabranch has a bug: {error}"))
}

fn exception<'py>(py: Python<'py>, class: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    let made = py.import("anabranch._errors").and_then(|module| module.getattr(class)?.call1(arguments));
    made.map_or_else(|error| error, PyErr::from_value)
}
