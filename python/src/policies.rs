//! Classes of Python as policies: entries of a catalogue that make an object for each connection.

use crate::ack_path::PyAckPath;
use crate::congestion::PyCongestionControl;
use crate::method::{Object, fail};
use crate::receive_window::PyReceiveWindow;
use crate::reinjection::PyReinjection;
use crate::scheduler::PyScheduler;
use anabranch_policy::ack_path::AckPath;
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::receive_window::ReceiveWindow;
use anabranch_policy::registry::{self, Entry};
use anabranch_policy::reinjection::{self, Reinjection};
use anabranch_policy::scheduler::{self, Scheduler};
use anabranch_policy::{Catalogue, NameTaken};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::sync::Arc;

/// A kind of policy that can be written in Python.
struct Kind {
    /// The class that those of this kind are derived from.
    base: &'static str,
    /// Its methods that matter, as they are written.
    methods: &'static [&'static str],
    /// The number of these that a class must have: all, or one.
    needed: Needed,
    /// Reads from a class, beside its base, the abilities that the engine asks of this kind.
    abilities: fn(&Bound<'_, PyType>, &Bound<'_, PyAny>) -> PyResult<Abilities>,
    /// Adds a class to the catalogue.
    add: fn(&mut Catalogue, &Maker, String) -> Result<(), NameTaken>,
}

/// Abilities of a class; each kind has its own of these.
#[derive(Clone, Copy, Default)]
struct Abilities {
    /// It repeats data whenever data may leave.
    copies: bool,
    /// It wants to be asked when a subflow has room and nothing new can leave.
    opportunities: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Needed {
    All,
    One,
}

const KINDS: [Kind; 5] = [
    Kind {
        base: "Scheduler",
        methods: &["decide(self, now, view)"],
        needed: Needed::All,
        abilities: |class, _| Ok(Abilities { copies: flag(class, "repeats")?, opportunities: false }),
        add: |catalogue, maker, about| {
            let entry = maker.entry::<dyn Scheduler>(about, |it| Box::new(it.make(PyScheduler::new)));
            let repeats = entry.clone().capabilities(|_| scheduler::Capabilities { repeats: true });
            catalogue.schedulers.add(if maker.abilities.copies { repeats } else { entry })
        },
    },
    Kind {
        base: "CongestionControl",
        methods: &[
            "avoidance(self, now, flow, acked_bytes, flows)",
            "on_fast_retransmit(self, now, flow, in_flight_bytes, flows)",
        ],
        needed: Needed::All,
        abilities: |_, _| Ok(Abilities::default()),
        add: |catalogue, maker, about| {
            catalogue
                .congestion
                .add(maker.entry(about, |it| CongestionControl::window_based(it.make(PyCongestionControl::new))))
        },
    },
    Kind {
        base: "Reinjection",
        methods: &["on_rto(self, now, on)", "next(self, now, flight)"],
        needed: Needed::One,
        abilities: |class, base| {
            let mut own = ["on_sent", "next", "wake", "on_wake"].into_iter().map(|name| is_own(class, base, name));
            let any = own.try_fold(false, |any, own| PyResult::Ok(any | own?))?;
            let asked = is_own(class, base, "next")?;
            Ok(Abilities {
                copies: any && flag(class, "copies")?,
                opportunities: asked && flag(class, "opportunities")?,
            })
        },
        add: |catalogue, maker, about| {
            let entry = maker.entry::<dyn Reinjection>(about, |it| Box::new(it.make(PyReinjection::new)));
            type Able = reinjection::Capabilities;
            catalogue.reinjections.add(match (maker.abilities.copies, maker.abilities.opportunities) {
                (true, true) => entry.capabilities(|_| Able { copies: true, opportunities: true }),
                (true, false) => entry.capabilities(|_| Able { copies: true, opportunities: false }),
                (false, true) => entry.capabilities(|_| Able { copies: false, opportunities: true }),
                (false, false) => entry,
            })
        },
    },
    Kind {
        base: "ReceiveWindow",
        methods: &["share(self, now, buffers, usage)"],
        needed: Needed::All,
        abilities: |_, _| Ok(Abilities::default()),
        add: |catalogue, maker, about| {
            catalogue.windows.add(maker.entry::<dyn ReceiveWindow>(about, |it| Box::new(it.make(PyReceiveWindow::new))))
        },
    },
    Kind {
        base: "AckPath",
        methods: &["data_ack(self, now, arrived, routes)", "path(self, now, of, routes)"],
        needed: Needed::One,
        abilities: |_, _| Ok(Abilities::default()),
        add: |catalogue, maker, about| {
            catalogue.ack_paths.add(maker.entry::<dyn AckPath>(about, |it| Box::new(it.make(PyAckPath::new))))
        },
    },
];

/// Returns true if a class overrides a method of its base.
fn is_own(class: &Bound<'_, PyType>, base: &Bound<'_, PyAny>, method: &str) -> PyResult<bool> {
    Ok(!class.getattr(method)?.is(&base.getattr(method)?))
}

/// Returns the value of an attribute that is true or false.
fn flag(class: &Bound<'_, PyType>, name: &str) -> PyResult<bool> {
    class.getattr(name)?.extract()
}

/// A class, and how its objects are made.
#[derive(Clone)]
struct Maker {
    class: Arc<Py<PyType>>,
    base: &'static str,
    name: Arc<str>,
    abilities: Abilities,
}

impl Maker {
    /// An entry that calls `build` for each connection.
    fn entry<T: registry::Kind + ?Sized>(&self, about: String, build: fn(&Maker) -> T::Policy) -> Entry<T> {
        let maker = self.clone();
        Entry::found(self.name.to_string(), about, move |_| build(&maker))
    }

    /// A policy over one object of the class.
    fn make<P>(&self, policy: impl FnOnce(&Object<'_>) -> PyResult<P>) -> P {
        Python::attach(|py| {
            let made = Object::new(self.class.bind(py), self.base, &self.name);
            made.and_then(|object| policy(&object)).unwrap_or_else(|error| fail(py, &self.name, None, &error))
        })
    }
}

/// The classes that a scenario names, each once.
#[derive(Default)]
pub struct Classes(Vec<(&'static Kind, Maker)>);

impl Classes {
    /// Adds a class, if it is not here, and says by which name a scenario knows it.
    pub fn add(&mut self, class: &Bound<'_, PyType>) -> PyResult<String> {
        let name = class.name()?.to_string();
        let py = class.py();
        let bases = py.import("anabranch._policies")?;
        let mut found = None;
        for kind in &KINDS {
            let base = bases.getattr(kind.base)?;
            if class.is_subclass(&base)? {
                found = Some((kind, base));
            }
        }
        let Some((kind, base)) = found else {
            let known = KINDS.map(|kind| format!("anabranch.{}", kind.base)).join(", ");
            return Err(PyTypeError::new_err(format!("`{name}` is no policy; accepted: a subclass of one of {known}")));
        };
        let mut missing = Vec::new();
        for method in kind.methods {
            let called = method.split('(').next().unwrap_or(method);
            if !is_own(class, &base, called)? {
                missing.push(*method);
            }
        }
        if missing.len() >= if kind.needed == Needed::All { 1 } else { kind.methods.len() } {
            return Err(PyTypeError::new_err(format!("`{name}` has no method {}", missing.join(" or "))));
        }
        for (_, known) in &self.0 {
            if known.class.bind(py).is(class) {
                return Ok(name);
            }
            if *known.name == name {
                return Err(PyValueError::new_err(format!("two classes are called `{name}`; results name each once")));
            }
        }
        let abilities = (kind.abilities)(class, &base)?;
        let class = Arc::new(class.clone().unbind());
        self.0.push((kind, Maker { class, base: kind.base, name: name.as_str().into(), abilities }));
        Ok(name)
    }

    /// The same classes, to be added to.
    pub fn again(&self) -> Classes {
        Classes(self.0.clone())
    }

    /// Each class, in the order in which they came.
    pub fn all<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyType>> {
        self.0.iter().map(|(_, maker)| maker.class.bind(py).clone()).collect()
    }

    /// All policies of the command, and these.
    pub fn catalogue(&self, py: Python<'_>) -> PyResult<Arc<Catalogue>> {
        let mut catalogue = Catalogue::default();
        for (kind, maker) in &self.0 {
            let about = maker.class.bind(py).getattr("__doc__")?.extract::<Option<String>>()?.unwrap_or_default();
            let about = about.trim().lines().next().unwrap_or_default().to_owned();
            let added = (kind.add)(&mut catalogue, maker, about);
            added.map_err(|taken| PyValueError::new_err(taken.to_string()))?;
        }
        Ok(Arc::new(catalogue))
    }
}
