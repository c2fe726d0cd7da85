//! A scenario. It never changes: each change makes another.

use crate::call::{Shared, attended};
use crate::comparison::Comparison;
use crate::policies::Classes;
use crate::run::Run;
use crate::{error, value};
use anabranch_lab::compare::Plan;
use anabranch_report::Header;
use anabranch_scenario::{Origin, ScenarioError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A scenario that was read and checked: paths, hosts, policies and work. Immutable; equal to another of the same
/// digest.
#[pyclass(frozen, eq, hash, module = "anabranch")]
pub struct Scenario {
    /// Ready to run.
    pub lab: anabranch_scenario::Scenario,
    base: Base,
    classes: Classes,
}

/// Source of a scenario, before what is set over it.
#[derive(Clone)]
enum Base {
    /// A shipped scenario, a drawn condition, a study or a file.
    Named(String),
    /// A table of Python as TOML.
    Text(String),
}

/// Names a scenario that was a table of Python.
const TABLE: &str = "scenario";

impl PartialEq for Scenario {
    fn eq(&self, other: &Self) -> bool {
        self.lab.digest == other.lab.digest
    }
}

impl std::hash::Hash for Scenario {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.lab.digest.hash(state);
    }
}

impl Scenario {
    fn load(py: Python<'_>, base: Base, sets: &[String], classes: Classes) -> PyResult<Scenario> {
        let catalogue = classes.catalogue(py)?;
        let read = || -> Result<anabranch_scenario::Scenario, ScenarioError> {
            match &base {
                Base::Named(name) => anabranch_study::load(&catalogue, name, sets),
                Base::Text(text) => {
                    let origin = Origin { scenario: format!("{TABLE}.toml"), sets: sets.to_vec() };
                    let trace = anabranch_scenario::beside(Path::new(""));
                    anabranch_scenario::Scenario::read(&catalogue, TABLE, "scenario", text, origin, &trace)
                }
            }
        };
        let lab = py.detach(read).map_err(|refused| error::scenario(py, &refused))?;
        Ok(Scenario { lab, base, classes })
    }
}

#[pymethods]
impl Scenario {
    /// From a name, a path or a table with the words of a scenario file.
    #[new]
    fn new(source: &Bound<'_, PyAny>) -> PyResult<Scenario> {
        let py = source.py();
        let mut classes = Classes::default();
        if source.is_instance_of::<PyDict>() {
            let table = value::toml(source, "", &mut |class: &Bound<'_, PyType>| classes.add(class))?;
            return Scenario::load(py, Base::Text(toml::to_string(&table).map_err(error::bug)?), &[], classes);
        }
        let path = py.import("os")?.call_method1("fspath", (source,));
        let path = path.and_then(|path| path.extract::<String>()).map_err(|_| {
            PyTypeError::new_err("a scenario is a name, a path or a dict, such as scenario(\"wlan-lte\")")
        })?;
        Scenario::load(py, Base::Named(path), &[], classes)
    }

    /// The same with each `KEY: value` laid over it, as `--set` does.
    fn with_(&self, changes: &Bound<'_, PyDict>) -> PyResult<Scenario> {
        let mut classes = self.classes.again();
        let mut sets = self.lab.origin.sets.clone();
        for (key, changed) in changes {
            let key = key.extract::<String>().map_err(|_| PyTypeError::new_err(format!("the key {key} is no text")))?;
            let set = value::toml(&changed, &key, &mut |class: &Bound<'_, PyType>| classes.add(class))?;
            sets.push(format!("{key}={set}"));
        }
        Scenario::load(changes.py(), self.base.clone(), &sets, classes)
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.lab.name
    }

    /// One line on what it is for, or None.
    #[getter]
    fn about(&self) -> Option<&str> {
        self.lab.about.as_deref()
    }

    /// SHA-256 of its content, traces included, seed and repetitions apart: 64 hexadecimal digits.
    #[getter]
    fn digest(&self) -> &str {
        &self.lab.digest
    }

    /// The paths' names, in order.
    #[getter]
    fn paths(&self) -> Vec<String> {
        self.lab.paths()
    }

    /// The file as it is written, without what `with_` laid over it.
    #[getter]
    fn toml(&self) -> &str {
        &self.lab.text
    }

    /// Settings laid over it, as the command line writes them after `--set`.
    #[getter]
    fn sets(&self) -> Vec<String> {
        self.lab.origin.sets.clone()
    }

    fn __repr__(&self) -> String {
        let sets: String = self.lab.origin.sets.iter().map(|set| format!(", {set}")).collect();
        format!(
            "<anabranch.Scenario {} ({}){sets}; {}>",
            self.lab.name,
            self.lab.paths().join(", "),
            &self.lab.digest[..12]
        )
    }

    /// Runs it once with this seed; its own seed without one.
    #[pyo3(signature = (seed=None))]
    fn run(&self, py: Python<'_>, seed: Option<u64>) -> PyResult<Run> {
        Run::new(py, &self.lab, seed.unwrap_or(self.lab.seed))
    }

    /// Runs each scheduler with the same seeds, and plain TCP on each path.
    #[pyo3(signature = (schedulers=None, repeat=None, seed=None, jobs=0, progress=None))]
    fn compare(
        &self,
        py: Python<'_>,
        schedulers: Option<Vec<Bound<'_, PyAny>>>,
        repeat: Option<usize>,
        seed: Option<u64>,
        jobs: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Comparison> {
        let mut classes = self.classes.again();
        let named = |scheduler: &Bound<'_, PyAny>| match scheduler.cast::<PyType>() {
            Ok(class) => classes.add(class),
            Err(_) => scheduler.extract::<String>().map_err(|_| {
                let shown = scheduler.repr().map_or_else(|_| "?".to_owned(), |shown| shown.to_string());
                PyTypeError::new_err(format!("{shown} is no scheduler; accepted: a name or a class"))
            }),
        };
        let schedulers: Option<Vec<String>> = schedulers.map(|all| all.iter().map(named).collect()).transpose()?;
        let whole = Scenario::load(py, self.base.clone(), &self.lab.origin.sets, classes)?;
        whole.ranked(py, repeat, seed, jobs, progress, |scenario, seed, repeat, _| {
            let schedulers = schedulers.unwrap_or_else(|| scenario.default_schedulers());
            Plan::new(scenario, &schedulers, seed, repeat)
        })
    }

    /// The same of systems: this scenario with other settings.
    #[pyo3(signature = (systems, repeat=None, seed=None, jobs=0, progress=None))]
    fn compare_systems(
        &self,
        py: Python<'_>,
        systems: Vec<(String, Py<Scenario>)>,
        repeat: Option<usize>,
        seed: Option<u64>,
        jobs: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Comparison> {
        self.ranked(py, repeat, seed, jobs, progress, |scenario, seed, repeat, stop| {
            let stoppable = |system: &Py<Scenario>| system.get().lab.clone().stoppable(stop);
            let systems = systems.iter().map(|(name, system)| (name.clone(), stoppable(system))).collect();
            Plan::of_systems(scenario, systems, seed, repeat)
        })
    }
}

impl Scenario {
    /// Carries out what `plan` makes of this scenario, a seed, a number of repetitions and the flag that ends runs.
    fn ranked(
        &self,
        py: Python<'_>,
        repeat: Option<usize>,
        seed: Option<u64>,
        jobs: usize,
        progress: Option<&Bound<'_, PyAny>>,
        plan: impl FnOnce(anabranch_scenario::Scenario, u64, usize, &Arc<AtomicBool>) -> Result<Plan, ScenarioError>,
    ) -> PyResult<Comparison> {
        let (seed, repeat) = (seed.unwrap_or(self.lab.seed), repeat.unwrap_or(self.lab.repeat));
        if !(1..=100_000).contains(&repeat) {
            return Err(PyValueError::new_err(format!("repeat is {repeat}; accepted: 1 to 100000")));
        }
        let shared = Shared::default();
        let scenario = self.lab.clone().stoppable(&shared.stop);
        let header = Header::new(&scenario, seed, repeat);
        let plan = plan(scenario, seed, repeat, &shared.stop).map_err(|refused| error::scenario(py, &refused))?;
        let done = || {
            shared.done.fetch_add(1, Ordering::Relaxed);
        };
        let comparison = attended(py, &shared, plan.len(), progress, || plan.run(None, jobs, &done))?;
        let comparison = comparison.map_err(|broken| error::keep(py, &broken))?;
        Ok(Comparison::new(plan.scenario.clone(), header.comparing(plan.described()), comparison))
    }
}
