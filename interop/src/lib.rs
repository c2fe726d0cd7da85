//! Parts common to the tests against stock Linux: kernel peers, their counters, the engine as their peer, and set-ups
//! for both.
//!
//! Both sides follow a [`Plan`] and return a [`Transfer`]; their data is cut from one pattern ([`Role`]), so that every
//! byte can be checked where it arrives. [`Direct`] puts a kernel and an engine face to face; a [`Meeting`] is one
//! connection between any two over emulated paths.
#![forbid(unsafe_code)]

mod direct;
mod engine;
mod gated;
mod hosted;
mod incident;
mod kernel;
pub mod links;
pub mod machine;
mod meeting;
mod pattern;
mod plan;
mod proxy;
mod recording;
mod runner;
mod scripted;
mod seed;
pub mod tshark;

pub use anabranch_host::testbed::KernelCounters;
pub use direct::{Addresses, Direct, Family};
pub use engine::{Connection, Engine, config, wait};
pub use gated::read_once;
pub use incident::{Incident, What, When};
pub use kernel::{Conversation, Kernel, Listener, Stream};
pub use meeting::{Adjust, End, Meeting, Outcome, Party, Stack, describe};
pub use pattern::Role;
pub use plan::{Close, Plan, Transfer};
pub use proxy::ProxyEngine;
pub use runner::{Case, missing, run};
pub use scripted::Scripted;
pub use seed::seed;
