#![doc = include_str!("../README.md")]
//!
//! ## Where to go on
//!
//! - A [`Spec`] describes the paths, two hosts ([`HostSpec`]), workloads ([`Workload`]), and changes with their times.
//! - [`run`] plays it and returns an [`Outcome`]; [`run_observed`] shows each packet to an [`Observer`].
//! - [`page`] describes web pages as graphs of downloads and computations.
//!
//! The seed and the specification are the whole run: the same two give the same [`Outcome::digest`].
#![forbid(unsafe_code)]

mod address;
mod apps;
mod baseline;
mod check;
mod codec;
mod decisions;
mod digest;
mod host;
mod observe;
mod outcome;
mod packet;
pub mod page;
mod sample;
mod session;
mod spec;
mod stage;
mod state;
mod world;

pub use address::client_address;
pub use decisions::Decided;
pub use observe::{Condition, Content, Loss, Observer, Onlook, Sight};
pub use outcome::{
    ConnectionOutcome, EventKind, EventRecord, Host, Outcome, PageOutcome, PhaseRecord, SubflowOutcome, Transfer,
    UdpOutcome,
};
pub use sample::{PathSample, Sample};
pub use spec::{Arrivals, Extent, FileOrder, HostSpec, Spacing, Spec, SpecError, TimedRestart, TimedSwitch, Workload};
pub use state::{PathInfo, SessionState};
pub use world::{run, run_observed};
