//! Classes of Python as policies: entries of a catalogue that make an object for each connection.

use crate::scheduler::PyScheduler;
use anabranch_policy::registry::{Build, Entry};
use anabranch_policy::scheduler::Scheduler;
use anabranch_policy::{Catalogue, Failure};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyTracebackMethods, PyType};
use std::sync::Arc;

/// The classes that a scenario names, each once.
#[derive(Default)]
pub struct Classes(Vec<Arc<Py<PyType>>>);

impl Classes {
    /// Adds a class, if it is not here, and says by which name a scenario knows it.
    pub fn add(&mut self, class: &Bound<'_, PyType>) -> PyResult<String> {
        let name = class.name()?.to_string();
        let py = class.py();
        let base = py.import("anabranch._policies")?.getattr("Scheduler")?;
        if !class.is_subclass(&base)? {
            return Err(PyTypeError::new_err(format!(
                "`{name}` is no policy; accepted: a subclass of anabranch.Scheduler"
            )));
        }
        if class.getattr("decide")?.is(&base.getattr("decide")?) {
            return Err(PyTypeError::new_err(format!("`{name}` has no method decide(self, now, view)")));
        }
        for known in &self.0 {
            if known.bind(py).is(class) {
                return Ok(name);
            }
            if known.bind(py).name()?.to_string() == name {
                return Err(PyValueError::new_err(format!("two classes are called `{name}`; results name each once")));
            }
        }
        if Catalogue::default().schedulers.find(&name).is_ok() {
            return Err(PyValueError::new_err(format!("there is a scheduler called `{name}` already")));
        }
        self.0.push(Arc::new(class.clone().unbind()));
        Ok(name)
    }

    /// The same classes, to be added to.
    pub fn again(&self) -> Classes {
        Classes(self.0.clone())
    }

    /// Each class, in the order in which they came.
    pub fn all<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyType>> {
        self.0.iter().map(|class| class.bind(py).clone()).collect()
    }

    /// All policies of the command, and these.
    pub fn catalogue(&self, py: Python<'_>) -> PyResult<Arc<Catalogue>> {
        let mut catalogue = Catalogue::default();
        for class in &self.0 {
            let bound = class.bind(py);
            let name = bound.name()?.to_string();
            let about = bound.getattr("__doc__")?.extract::<Option<String>>()?.unwrap_or_default();
            let about = about.trim().lines().next().unwrap_or_default().to_owned();
            let build = {
                let (class, name) = (Arc::clone(class), name.clone());
                Build::Owned(Arc::new(move |_| -> Box<dyn Scheduler> { Box::new(made(&class, &name)) }))
            };
            let entry = Entry {
                name: name.into(),
                about: about.into(),
                paper: None,
                parameters: &[],
                source: "".into(),
                build,
            };
            catalogue.schedulers.add(entry).map_err(|taken| PyValueError::new_err(taken.to_string()))?;
        }
        Ok(Arc::new(catalogue))
    }
}

fn made(class: &Py<PyType>, name: &str) -> PyScheduler {
    Python::attach(|py| match PyScheduler::new(class.bind(py), name) {
        Ok(scheduler) => scheduler,
        Err(error) => Failure { policy: name.to_owned(), at: None, why: traceback(py, &error) }.raise(),
    })
}

/// An exception as Python prints it.
pub fn traceback(py: Python<'_>, error: &PyErr) -> String {
    let lines = error.traceback(py).and_then(|traceback| traceback.format().ok());
    format!("{}{error}", lines.map_or(String::new(), |lines| format!("\n{lines}")))
}
