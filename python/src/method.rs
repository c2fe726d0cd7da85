//! Methods of a policy in Python: how they are called, and what becomes of an exception or of nonsense.

use anabranch_policy::Failure;
use anabranch_units::{Duration, Instant};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyTracebackMethods, PyType};
use std::sync::Arc;

/// An object of a class that somebody wrote, made for one connection.
pub struct Object<'py> {
    object: Bound<'py, PyAny>,
    class: Bound<'py, PyType>,
    base: Bound<'py, PyAny>,
    policy: Arc<str>,
}

impl<'py> Object<'py> {
    /// An object of `class`, which is called `policy` in results and is derived from `base`.
    pub fn new(class: &Bound<'py, PyType>, base: &str, policy: &Arc<str>) -> PyResult<Self> {
        let base = class.py().import("anabranch._policies")?.getattr(base)?;
        Ok(Object { object: class.call0()?, class: class.clone(), base, policy: Arc::clone(policy) })
    }

    /// The method of that name.
    pub fn method(&self, name: &'static str) -> PyResult<Method> {
        let method = self.object.getattr(name)?.unbind();
        Ok(Method { policy: Arc::clone(&self.policy), name, method })
    }

    /// The method of that name, if the class has one of its own.
    pub fn own_method(&self, name: &'static str) -> PyResult<Option<Method>> {
        let is_own = !self.class.getattr(name)?.is(&self.base.getattr(name)?);
        is_own.then(|| self.method(name)).transpose()
    }
}

/// A method, bound to its object.
pub struct Method {
    policy: Arc<str>,
    name: &'static str,
    method: Py<PyAny>,
}

impl Method {
    /// Calls it at this time of the run, if there is one, and reads the answer. An exception, of the call or of `read`,
    /// ends the run.
    pub fn ask<T>(
        &self,
        now: Option<Instant>,
        arguments: impl for<'py> PyCallArgs<'py>,
        read: impl FnOnce(&Method, &Bound<'_, PyAny>) -> PyResult<T>,
    ) -> T {
        Python::attach(|py| {
            let answer = self.method.bind(py).call1(arguments);
            answer.and_then(|answer| read(self, &answer)).unwrap_or_else(|error| fail(py, &self.policy, now, &error))
        })
    }

    /// Calls it where no answer is wanted.
    pub fn tell(&self, now: Instant, arguments: impl for<'py> PyCallArgs<'py>) {
        self.ask(Some(now), arguments, |_, _| Ok(()));
    }

    /// The exception for an answer of the wrong type.
    pub fn refuse(&self, answer: &Bound<'_, PyAny>, accepted: &str) -> PyErr {
        PyTypeError::new_err(self.complaint(answer, accepted))
    }

    /// The exception for an answer of the right type and a value that cannot be.
    pub fn refuse_value(&self, answer: &Bound<'_, PyAny>, accepted: &str) -> PyErr {
        PyValueError::new_err(self.complaint(answer, accepted))
    }

    fn complaint(&self, answer: &Bound<'_, PyAny>, accepted: &str) -> String {
        let shown = answer.repr().map_or_else(|_| "?".to_owned(), |shown| shown.to_string());
        format!("`{}.{}` returned {shown}; accepted: {accepted}", self.policy, self.name)
    }
}

/// Ends the run with the traceback of `error`.
pub fn fail(py: Python<'_>, policy: &str, now: Option<Instant>, error: &PyErr) -> ! {
    let lines = error.traceback(py).and_then(|traceback| traceback.format().ok());
    let why = format!("{}{error}", lines.map_or(String::new(), |lines| format!("\n{lines}")));
    Failure { policy: policy.to_owned(), at: now, why }.raise()
}

/// Seconds of the run as an instant; `None` for what no run reaches.
pub fn instant(seconds: f64) -> Option<Instant> {
    span(seconds).map(|span| Instant::ZERO + span)
}

/// Seconds as a duration; `None` for what no run lasts.
pub fn span(seconds: f64) -> Option<Duration> {
    let sane = seconds.is_finite() && (0.0..1e9).contains(&seconds);
    sane.then(|| Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// The getters of a class that wraps one value of ours, and its `repr`.
macro_rules! fields {
    (
        $class:ident, |$r:ident| $repr:expr;
        $($(#[doc = $doc:literal])+ $name:ident: $type:ty = |$s:ident| $value:expr;)+
    ) => {
        #[pymethods]
        impl $class {
            $($(#[doc = $doc])+
            #[getter]
            fn $name(&self) -> $type {
                let $s = &self.0;
                $value
            })+

            fn __repr__(&self) -> String {
                let $r = &self.0;
                $repr
            }
        }
    };
}
pub(crate) use fields;
