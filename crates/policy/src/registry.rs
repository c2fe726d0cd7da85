//! The one registry of policies: names, parameters, defaults, citations and constructors.
//!
//! `anabranch list`, the scenario keys, the docs and the conformance suite all read it. Each policy declares its
//! `ENTRY` in its own file, and the list of its folder names the file. No other list of names exists.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

pub use crate::ack_path::ACK_PATHS;
pub use crate::congestion::CONGESTION;
pub use crate::first_path::FIRST_PATHS;
pub use crate::parameter::{Domain, Flag, Number, Parameter, Params, Text, Value, flag, number, text};
pub use crate::queue::QUEUES;
pub use crate::receive_window::WINDOWS;
pub use crate::reinjection::REINJECTIONS;
pub use crate::scheduler::SCHEDULERS;

/// Declares the modules of the policies of one kind, and a table of their entries in this order. A module may have a
/// second policy in a module inside it: `sttf with code`.
macro_rules! policies {
    ($table:ident: $($module:ident $(with $inner:ident)?,)*) => {
        $(mod $module;)*

        /// Every policy of this kind.
        pub const $table: &[Entry] = &[$($module::ENTRY, $($module::$inner::ENTRY,)?)*];
    };
}
pub(crate) use policies;

/// A kind of policy.
pub trait Kind: 'static {
    /// One policy of this kind, made for a connection.
    type Policy;
    /// Abilities that the engine must know of before it asks a policy of this kind anything.
    type Capabilities: Copy + Default + Send + Sync;
}

/// One policy that can be named.
pub struct Entry<T: Kind + ?Sized> {
    /// The name in scenarios and on the command line.
    pub name: Cow<'static, str>,
    /// One line for `anabranch list`.
    pub about: Cow<'static, str>,
    /// Author and year of the paper, or the document that defines it.
    pub paper: Option<&'static str>,
    /// Parameters that a scenario can set.
    pub parameters: &'static [Parameter],
    /// Source of its module, whose first lines are its documentation (`include_str!`).
    pub source: Cow<'static, str>,
    capabilities: fn(&Params) -> T::Capabilities,
    build: Build<T>,
}

/// A policy made for one connection, with its capabilities. Goes to the engine, and is used like the policy.
pub struct Built<T: Kind + ?Sized> {
    /// The policy.
    pub policy: T::Policy,
    /// Its capabilities.
    pub capabilities: T::Capabilities,
}

/// The constructor of a policy.
enum Build<T: Kind + ?Sized> {
    /// A function: an entry that a program declares.
    Fixed(fn(&Params) -> T::Policy),
    /// A closure that may own something, such as a class that was found at run time.
    Owned(Arc<Closure<T>>),
}

type Closure<T> = dyn Fn(&Params) -> <T as Kind>::Policy + Send + Sync;

/// Why a policy cannot be built as asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// No policy has that name.
    #[error("there is no {kind} called `{name}`; there are: {known}")]
    UnknownPolicy {
        /// Kind of the entry: scheduler, congestion control, ….
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The policy has no such parameter.
    #[error("`{policy}` has no parameter `{name}`; it takes: {known}")]
    UnknownParameter {
        /// The policy.
        policy: String,
        /// The parameter asked for.
        name: String,
        /// The parameters it has.
        known: String,
    },
    /// The value is of the wrong kind or out of range.
    #[error("`{policy}.{name}` is {value}; it must be {accepted}")]
    BadValue {
        /// The policy.
        policy: String,
        /// The parameter.
        name: &'static str,
        /// The value given.
        value: Value,
        /// Accepted values.
        accepted: String,
    },
}

/// The entry called `name` in `table`; `kind` names the table in the error.
pub fn find<'a, T: Kind + ?Sized>(
    table: &'a [Entry<T>],
    kind: &'static str,
    name: &str,
) -> Result<&'a Entry<T>, ParamError> {
    table.iter().find(|entry| entry.name == name).ok_or_else(|| ParamError::UnknownPolicy {
        kind,
        name: name.to_owned(),
        known: join(table.iter().map(|entry| &*entry.name)),
    })
}

impl<T: Kind + ?Sized> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Entry {
            name: self.name.clone(),
            about: self.about.clone(),
            paper: self.paper,
            parameters: self.parameters,
            source: self.source.clone(),
            capabilities: self.capabilities,
            build: self.build.clone(),
        }
    }
}

impl<T: Kind + ?Sized> Clone for Build<T> {
    fn clone(&self) -> Self {
        match self {
            Build::Fixed(function) => Build::Fixed(*function),
            Build::Owned(closure) => Build::Owned(Arc::clone(closure)),
        }
    }
}

impl<T: Kind + ?Sized> Entry<T> {
    /// Declares a policy without a paper and without parameters. `build` makes one for a connection.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        source: &'static str,
        build: fn(&Params) -> T::Policy,
    ) -> Self {
        Entry {
            name: Cow::Borrowed(name),
            about: Cow::Borrowed(about),
            paper: None,
            parameters: &[],
            source: Cow::Borrowed(source),
            capabilities: usual::<T>,
            build: Build::Fixed(build),
        }
    }

    /// Declares a policy that was found at run time and has no source of ours, such as a class of Python.
    pub fn found(name: String, about: String, build: impl Fn(&Params) -> T::Policy + Send + Sync + 'static) -> Self {
        Entry {
            name: name.into(),
            about: about.into(),
            paper: None,
            parameters: &[],
            source: "".into(),
            capabilities: usual::<T>,
            build: Build::Owned(Arc::new(build)),
        }
    }

    /// Cites the paper or the document that defines it.
    #[must_use]
    pub const fn paper(mut self, paper: &'static str) -> Self {
        self.paper = Some(paper);
        self
    }

    /// Lists the parameters that a scenario can set.
    #[must_use]
    pub const fn parameters(mut self, parameters: &'static [Parameter]) -> Self {
        self.parameters = parameters;
        self
    }

    /// Declares capabilities other than the usual ones; they may depend on parameters.
    #[must_use]
    pub const fn capabilities(mut self, capabilities: fn(&Params) -> T::Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// The parameters with `given` in place of the defaults.
    pub fn params(&self, given: &BTreeMap<String, Value>) -> Result<Params, ParamError> {
        let mut all: BTreeMap<_, _> = self.parameters.iter().map(|p| (p.name, p.domain.default_value())).collect();
        for (name, value) in given {
            let Some(parameter) = self.parameters.iter().find(|p| p.name == name) else {
                return Err(ParamError::UnknownParameter {
                    policy: self.name.to_string(),
                    name: name.clone(),
                    known: join(self.parameters.iter().map(|p| p.name)),
                });
            };
            parameter.domain.check(value).map_err(|accepted| ParamError::BadValue {
                policy: self.name.to_string(),
                name: parameter.name,
                value: value.clone(),
                accepted,
            })?;
            all.insert(parameter.name, value.clone());
        }
        Ok(Params(all))
    }

    /// One policy for a connection, with parameters that [`Entry::params`] has checked.
    pub fn build(&self, params: &Params) -> Built<T> {
        let policy = match &self.build {
            Build::Fixed(function) => function(params),
            Build::Owned(closure) => closure(params),
        };
        Built { policy, capabilities: (self.capabilities)(params) }
    }

    /// One policy with all defaults.
    pub fn build_default(&self) -> Built<T> {
        self.build(&Params::default())
    }
}

impl<T: Kind + ?Sized> Deref for Built<T> {
    type Target = T::Policy;

    fn deref(&self) -> &T::Policy {
        &self.policy
    }
}

impl<T: Kind + ?Sized> DerefMut for Built<T> {
    fn deref_mut(&mut self) -> &mut T::Policy {
        &mut self.policy
    }
}

fn usual<T: Kind + ?Sized>(_: &Params) -> T::Capabilities {
    T::Capabilities::default()
}

fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
