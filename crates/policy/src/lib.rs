#![doc = include_str!("../README.md")]
//!
//! ## Where to go on
//!
//! A policy gets a read-only view and returns a decision; it cannot name the engine, so it cannot reach into a
//! connection.
//!
//! - [`scheduler`]: a [`View`] in, a [`Decision`] out.
//! - [`congestion`]: windows, loss responses and models of the path.
//! - [`receive_window`], [`ack_path`], [`reinjection`] and [`first_path`]: the other kinds.
//! - [`queue`]: the disciplines of the queues of links.
//! - [`registry`]: names, typed parameters and constructors; a [`Catalogue`] holds our policies and those of a program.
//! - [`forecast`]: predictions of what a subflow delivers, for schedulers that plan ahead.
#![forbid(unsafe_code)]

pub mod ack_path;
mod catalogue;
pub mod congestion;
mod failure;
pub mod first_path;
pub mod forecast;
mod parameter;
pub mod queue;
pub mod receive_window;
pub mod registry;
pub mod reinjection;
pub mod scheduler;
pub mod send_buffer;
mod view;

pub use catalogue::{Catalogue, NameTaken, Table};
pub use failure::Failure;
pub use view::{Decision, Delivery, Event, SubflowView, Truth, View};
