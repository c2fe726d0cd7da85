//! A campaign: the conditions of a sweep, any range of which runs anywhere.

use crate::call::{Shared, attended};
use crate::policies::Classes;
use crate::{error, sweep, value};
use anabranch_scenario::ScenarioError;
use anabranch_study::sweep as lab;
use anabranch_study::sweep::{Store, Work};
use anabranch_units::input;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The conditions of a sweep and the systems that meet in them. It can be made again elsewhere from its `recipe`.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Campaign {
    lab: lab::Campaign,
    recipe: Recipe,
    classes: Classes,
}

/// All that a campaign comes of, policies in Python apart.
struct Recipe {
    /// The path of the sweep file.
    name: String,
    text: String,
    until: Option<String>,
    mark: String,
}

/// Names a sweep that was a table of Python.
const TABLE: &str = "sweep.toml";

impl Campaign {
    fn make(py: Python<'_>, recipe: Recipe, classes: Classes) -> PyResult<Campaign> {
        let catalogue = classes.catalogue(py)?;
        let read = || -> Result<lab::Campaign, ScenarioError> {
            let read = lab::Campaign::read(&catalogue, &recipe.name, &recipe.text, recipe.until.as_deref())?;
            Ok(read.marked(&recipe.mark))
        };
        let lab = py.detach(read).map_err(|refused| error::scenario(py, &refused))?;
        Ok(Campaign { lab, recipe, classes })
    }

    /// A range of its conditions.
    fn range(&self, first: u64, end: u64) -> PyResult<Range<u64>> {
        let all = self.lab.conditions();
        match first <= end && end <= all {
            true => Ok(first..end),
            false => Err(PyValueError::new_err(format!("conditions {first} to {end} are not within 0 to {all}"))),
        }
    }
}

#[pymethods]
impl Campaign {
    /// From the path of a sweep file, or a table with the words of one. `until` takes the place of the file's own.
    /// `mark` answers, of the classes in a tuple, the text that tells the campaign from those of other classes.
    #[new]
    fn new(source: &Bound<'_, PyAny>, until: Option<String>, mark: &Bound<'_, PyAny>) -> PyResult<Campaign> {
        let py = source.py();
        let mut classes = Classes::default();
        let (name, text) = if source.is_instance_of::<PyDict>() {
            let table = value::toml(source, "", &mut |class: &Bound<'_, PyType>| classes.add(class))?;
            (TABLE.to_owned(), toml::to_string(&table).map_err(error::bug)?)
        } else {
            let name = source.extract::<String>().map_err(|_| {
                PyTypeError::new_err("a sweep is the path of a file or a dict, such as sweep(\"sweeps/lte-rate.toml\")")
            })?;
            let text = input::text(Path::new(&name), input::WRITTEN).map_err(|problem| {
                let help = "accepted: a sweep file, as docs/sweeps.md describes it";
                PyValueError::new_err(format!("cannot read `{name}`: {problem}; {help}"))
            })?;
            (name, text)
        };
        let mark = mark.call1((PyTuple::new(py, classes.all(py))?,))?.extract()?;
        Campaign::make(py, Recipe { name, text, until, mark }, classes)
    }

    /// From the recipe of another.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        name: String,
        text: String,
        until: Option<String>,
        classes: Vec<Bound<'_, PyType>>,
        mark: String,
    ) -> PyResult<Campaign> {
        let mut known = Classes::default();
        for class in &classes {
            known.add(class)?;
        }
        Campaign::make(py, Recipe { name, text, until, mark }, known)
    }

    /// Arguments of `of` that make it again.
    #[getter]
    fn recipe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Recipe { name, text, until, mark } = &self.recipe;
        (name, text, until, PyTuple::new(py, self.classes.all(py))?, mark).into_pyobject(py)
    }

    /// SHA-256 of all that makes a difference to its rows.
    #[getter]
    fn digest(&self) -> &str {
        self.lab.digest()
    }

    /// Number of conditions.
    #[getter]
    fn conditions(&self) -> u64 {
        self.lab.conditions()
    }

    /// The first condition of share `number` of `of`, counted from 1, and the one behind its last.
    fn share(&self, number: u64, of: u64) -> (u64, u64) {
        let Range { start, end } = self.lab.share(number, of);
        (start, end)
    }

    /// Number of conditions in a chunk, of which one takes `pace` seconds.
    fn chunk(&self, pace: Option<f64>, jobs: usize) -> u64 {
        self.lab.chunk(pace.map(|pace| Duration::try_from_secs_f64(pace).unwrap_or_default()), jobs)
    }

    /// Makes the directory for its results, or checks that the one that is there is for them.
    fn open(&self, directory: PathBuf, command: &str) -> PyResult<()> {
        let manifest = self.lab.manifest("sweep", command, &self.recipe.text);
        Store::open(&directory, &manifest).map(drop).map_err(|refused| sweep::refused(&refused))
    }

    /// The stretches of these conditions that the directory does not have.
    fn missing(&self, directory: PathBuf, first: u64, end: u64) -> PyResult<Vec<(u64, u64)>> {
        let range = self.range(first, end)?;
        let found = Store::existing(&directory).and_then(|(store, _)| store.parts(self.lab.digest()));
        let missing = found.map_err(|refused| sweep::refused(&refused))?.missing(&range);
        Ok(missing.into_iter().map(|Range { start, end }| (start, end)).collect())
    }

    /// Runs these conditions: the bytes of their part.
    fn run<'py>(&self, py: Python<'py>, first: u64, end: u64, jobs: usize) -> PyResult<Bound<'py, PyBytes>> {
        let range = self.range(first, end)?;
        let shared = Shared::default();
        let work = || {
            let rows = self.lab.run(range.clone(), &Work { jobs, done: &|| {}, stop: Some(&shared.stop) });
            rows.map(|rows| self.lab.part(&range, &rows))
        };
        match attended(py, &shared, 0, None, work)? {
            Some(part) => Ok(PyBytes::new(py, &part.map_err(error::bug)?)),
            None => Err(error::bug("the work was stopped, and nobody asked for it")),
        }
    }

    /// Keeps the bytes of a part, which must be what `run` answers for these conditions.
    fn keep(&self, py: Python<'_>, directory: PathBuf, first: u64, end: u64, part: &[u8]) -> PyResult<()> {
        let range = self.range(first, end)?;
        let keep = || {
            let (store, _) = Store::existing(&directory)?;
            store.receive(self.lab.digest(), &range, part)
        };
        py.detach(keep).map_err(|refused| sweep::refused(&refused))
    }

    /// Runs those of these conditions that the directory does not have, on `jobs` threads, and keeps them.
    fn work(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        first: u64,
        end: u64,
        jobs: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let missing: Vec<Range<u64>> =
            self.missing(directory.clone(), first, end)?.into_iter().map(|(start, end)| start..end).collect();
        let total = missing.iter().map(|it| it.end - it.start).sum::<u64>();
        let shared = Shared::default();
        let done = || {
            shared.done.fetch_add(1, Ordering::Relaxed);
        };
        let work = || {
            let (store, _) = Store::existing(&directory)?;
            self.lab.work(&store, &missing, &Work { jobs, done: &done, stop: Some(&shared.stop) })
        };
        let worked = attended(py, &shared, usize::try_from(total).unwrap_or(usize::MAX), progress, work)?;
        worked.map_err(|refused| sweep::refused(&refused))
    }
}
