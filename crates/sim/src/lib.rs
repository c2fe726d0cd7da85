//! Virtual time: endpoints, links and applications in one deterministic world.
//!
//! A [`Spec`] says what there is: paths, two hosts, workloads, what changes when. [`run`] plays it and answers an
//! [`Outcome`]. The seed and the specification are the whole run: the same two give the same [`Outcome::digest`].
#![forbid(unsafe_code)]

mod address;
mod apps;
mod baseline;
mod carrier;
mod check;
mod codec;
mod decisions;
mod describe;
mod digest;
mod direction;
mod error;
mod host;
mod middlebox;
mod network;
mod observe;
mod outcome;
mod packet;
pub mod page;
pub mod pattern;
mod sample;
mod session;
mod spec;
mod stage;
mod topology;
mod world;

pub use address::client_address;
pub use carrier::Carriers;
pub use decisions::Decided;
pub use direction::{Affected, Direction, PerDirection};
pub use error::NetworkError;
pub use middlebox::{
    Chain, End, Fault, MIDDLEBOXES, Middlebox, MiddleboxInfo, MiddleboxOutcome, MiddleboxSpec, Moving, SplitOptions,
    Stripped, StrippedOptions, SynOption, Unmapped,
};
pub use network::{NetworkSpec, PathSpec, SharedLink, TimedChange};
pub use observe::{Condition, Content, Loss, Observer, PacketId, Sight};
pub use outcome::{
    ConnectionOutcome, EventKind, EventRecord, Host, Outcome, PageOutcome, SubflowOutcome, Transfer, UdpOutcome,
};
pub use sample::{PathSample, Sample};
pub use spec::{Arrivals, Extent, FileOrder, HostSpec, Spacing, Spec, SpecError, TimedRestart, TimedSwitch, Workload};
pub use topology::{LinkOutcome, PathState, Topology};
pub use world::{run, run_observed};
