//! Virtual time: endpoints, links and applications in one deterministic world.
//!
//! A [`Spec`] says what there is: paths, two hosts, workloads, what changes when. [`run`] plays it and answers an
//! [`Outcome`]. The seed and the specification are the whole run: the same two give the same [`Outcome::digest`].
#![forbid(unsafe_code)]

mod apps;
mod baseline;
mod carrier;
mod check;
mod codec;
mod decisions;
mod describe;
mod digest;
mod host;
mod middlebox;
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

pub use carrier::Carriers;
pub use decisions::Decided;
pub use middlebox::{
    Chain, End, Fault, MIDDLEBOXES, Middlebox, MiddleboxInfo, MiddleboxOutcome, MiddleboxSpec, Moving, SplitOptions,
    Stripped, StrippedOptions, SynOption, Unmapped,
};
pub use observe::{Condition, Content, Loss, Observer, PacketId, Sight};
pub use outcome::{
    ConnectionOutcome, EventKind, EventRecord, Host, LinkOutcome, Outcome, PageOutcome, SubflowOutcome, Transfer,
    UdpOutcome,
};
pub use sample::{PathSample, Sample};
pub use spec::{
    Affected, Arrivals, Direction, Extent, FileOrder, HostSpec, PathSpec, SharedLink, Spacing, Spec, SpecError,
    TimedChange, TimedRestart, TimedSwitch, Workload,
};
pub use topology::{PerDirection, Topology, client_address};
pub use world::{run, run_observed};
