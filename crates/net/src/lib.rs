#![doc = include_str!("../README.md")]
//!
//! ## Where to go on
//!
//! - A [`Network`] is a set of one-way links and of routes over them.
//! - [`LinkConfig`] says what a link is: its [`Service`] (a rate or a [`Trace`]), delay, [`QueueLimit`], [`LossModel`]
//!   and [`Reordering`]. A [`Change`] alters it while packets are under way.
//! - A [`Discipline`] orders, marks and drops what waits at a link; it sees packets as [`Carried`].
//! - [`LinkStats`], [`QueueOutcome`] and [`DropCause`] tell what became of packets.
#![forbid(unsafe_code)]

mod change;
mod config;
mod deadlines;
mod discipline;
mod flows;
mod impairment;
mod link;
mod loss;
mod network;
mod parcel;
mod queue;
mod service;
mod stats;
pub mod trace;
mod waits;

pub use change::Change;
pub use config::{ConfigError, LinkConfig, Reordering};
pub use deadlines::Deadlines;
pub use discipline::Discipline;
pub use flows::{FlowOutcome, QueueOutcome};
pub use loss::LossModel;
pub use network::{Delivery, Departure, DropNotice, LinkId, Network, Output, RouteId};
pub use parcel::{Carried, DropCause};
pub use queue::QueueLimit;
pub use service::Service;
pub use stats::{Dropped, Imbalance, LINK, LinkStats};
pub use trace::{Step, Trace, TraceError};
pub use waits::Waits;
