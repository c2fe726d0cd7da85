//! The native half of the Python package `anabranch`: scenarios, runs, comparisons, and policies written in Python.
//!
//! ```text
//! policies.rs   classes of Python as entries of a catalogue        method.rs      calls of their methods
//! scheduler.rs, congestion.rs, reinjection.rs, receive_window.rs, ack_path.rs   the kinds: what they see and answer
//! scenario.rs   a scenario, made anew for each change              value.rs       values of Python as TOML
//! run.rs, comparison.rs, study.rs, sweep.rs   results              table.rs       rows as an Arrow stream
//! campaign.rs   the conditions of a sweep, run anywhere
//! call.rs       long calls: the GIL released, signals seen         error.rs       exceptions with fields
//! ```
//!
//! `anabranch/*.py` is what people import; everything that it does not need stays here.
#![forbid(unsafe_code)]

mod ack_path;
mod call;
mod campaign;
mod comparison;
mod congestion;
mod error;
mod method;
mod policies;
mod receive_window;
mod reinjection;
mod run;
mod scenario;
mod scheduler;
mod study;
mod sweep;
mod table;
mod value;

use anabranch_lab::statistic::{Kind, STATISTICS};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Name, unit, kind and meaning of each statistic.
#[pyfunction]
fn statistics() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    let kind = |kind: Kind| match kind {
        Kind::Flag => "bool",
        Kind::Count => "int",
        Kind::Number => "float",
        Kind::Text => "str",
    };
    STATISTICS.iter().map(|it| (&*it.name, it.unit, kind(it.kind()), it.about)).collect()
}

/// Takes the digest of this file for the build that results carry: the program is Python's interpreter.
#[pyfunction]
fn built_from(file: PathBuf) {
    anabranch_lab::build_is_of(file);
}

/// The digest of the package's native code.
#[pyfunction]
fn build() -> &'static str {
    anabranch_lab::build()
}

/// Analysis of captures, as the JSON of `anabranch inspect`, and as its text.
#[pyfunction]
fn inspect(py: Python<'_>, files: Vec<PathBuf>) -> PyResult<(String, String)> {
    let report = py.detach(|| anabranch_inspect::inspect(&files, anabranch_inspect::Limits::default()));
    if let Some(refused) = report.files.iter().find(|file| !file.is_capture) {
        let why = refused.error.as_deref().unwrap_or("cannot be read");
        return Err(pyo3::exceptions::PyValueError::new_err(format!("{}: {why}", refused.name)));
    }
    let json = serde_json::to_string(&report).map_err(error::bug)?;
    Ok((json, anabranch_report::inspection(&report)))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", anabranch_lab::VERSION)?;
    module.add("CHART_SCRIPT", anabranch_report::html::CHART_SCRIPT)?;
    module.add_function(wrap_pyfunction!(statistics, module)?)?;
    module.add_function(wrap_pyfunction!(built_from, module)?)?;
    module.add_function(wrap_pyfunction!(build, module)?)?;
    module.add_function(wrap_pyfunction!(inspect, module)?)?;
    module.add_function(wrap_pyfunction!(study::study, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::load, module)?)?;
    module.add_function(wrap_pyfunction!(scheduler::send, module)?)?;
    module.add_function(wrap_pyfunction!(scheduler::repeat, module)?)?;
    module.add_function(wrap_pyfunction!(scheduler::wait, module)?)?;
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<run::Run>()?;
    module.add_class::<comparison::Comparison>()?;
    module.add_class::<study::PyStudy>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_class::<campaign::Campaign>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<scheduler::PyView>()?;
    module.add_class::<scheduler::PySubflow>()?;
    module.add_class::<scheduler::PyDecision>()?;
    module.add_class::<scheduler::PyEvent>()?;
    module.add_class::<congestion::PyFlow>()?;
    module.add_class::<congestion::PyAck>()?;
    module.add_class::<reinjection::PyOpportunity>()?;
    module.add_class::<reinjection::PyFlightView>()?;
    module.add_class::<reinjection::PyPiece>()?;
    module.add_class::<reinjection::PySubflowState>()?;
    module.add_class::<receive_window::PyBuffers>()?;
    module.add_class::<receive_window::PyUsage>()?;
    module.add_class::<ack_path::PyAckRoute>()?;
    module.add_class::<ack_path::PyProbe>()
}
