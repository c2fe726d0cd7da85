//! Exchangeable policies of a Multipath TCP endpoint: one trait and one folder each, one file per algorithm.
//!
//! A policy gets a read-only view and returns a decision; it cannot name the engine, so it cannot reach into a
//! connection. All names, parameters, defaults and citations stand in one [`registry`].
#![forbid(unsafe_code)]

pub mod ack_path;
mod catalogue;
pub mod congestion;
mod failure;
pub mod first_path;
pub mod forecast;
mod parameter;
pub mod receive_window;
pub mod registry;
pub mod reinjection;
pub mod scheduler;
mod view;

pub use catalogue::{Catalogue, NameTaken, Table};
pub use failure::Failure;
pub use view::{Decision, Delivery, Event, SubflowView, Truth, View};

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
