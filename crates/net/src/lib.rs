//! Links, queues, loss and traces: packets with times in, packets and a next time out.
//!
//! A [`Network`] is a set of one-way links and of routes over them. It reads no clock and moves anything that has a
//! length, so the simulator (virtual time) and the emulator (real time) share one link model. Drive it like this:
//!
//! ```
//! use anabranch_net::{LinkConfig, Network, Output};
//! use anabranch_units::{Bytes, Duration, Instant, Rate, Seed};
//!
//! let mut network = Network::new();
//! let link = LinkConfig::new(Rate::from_mbps(10), Duration::from_millis(5));
//! let wifi = network.add_link(link, "wifi", Seed(1))?;
//! let route = network.add_route(&[wifi])?;
//!
//! network.send(Instant::ZERO, route, "hello", Bytes::new(1500), 0);
//! let then = network.next_time().unwrap(); // 1.2 ms on the wire and 5 ms through the air.
//! assert_eq!(then, Instant::ZERO + Duration::from_micros(6200));
//! let Some(Output::Delivery(delivery)) = network.poll(then) else { panic!() };
//! assert_eq!(delivery.packet, "hello");
//! # Ok::<(), anabranch_net::ConfigError>(())
//! ```
#![forbid(unsafe_code)]

mod change;
mod config;
mod deadlines;
mod impairment;
mod link;
mod loss;
mod network;
mod parcel;
mod queue;
mod service;
mod stats;
pub mod trace;

pub use change::Change;
pub use config::{ConfigError, LinkConfig, Reordering};
pub use deadlines::Deadlines;
pub use loss::LossModel;
pub use network::{Delivery, Departure, DropNotice, LinkId, Network, Output, RouteId};
pub use parcel::DropCause;
pub use queue::QueueLimit;
pub use service::Service;
pub use stats::{Dropped, Imbalance, LINK, LinkStats};
pub use trace::{Trace, TraceError};

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
