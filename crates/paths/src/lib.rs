#![doc = include_str!("../README.md")]
//!
//! ## Where to go on
//!
//! - A [`NetworkSpec`] describes paths, the links that they share and what happens to them.
//! - [`Topology`] joins the links of `anabranch-net` into routes and applies changes.
//! - A [`Chain`] holds the middleboxes at one end of a path.
//!
//! The simulator uses them in virtual time and the emulator in real time: the crate knows no host, no address and no
//! clock.
#![forbid(unsafe_code)]

mod carrier;
mod describe;
mod direction;
mod error;
mod middlebox;
mod network;
mod packet;
mod topology;

pub use carrier::Carriers;
pub use direction::{Affected, Direction, PerDirection};
pub use error::NetworkError;
pub use middlebox::*;
pub use network::{NetworkSpec, PathSpec, SharedLink, TimedChange, copy_name};
pub use packet::PacketId;
pub use topology::{LinkOutcome, PathState, Topology};
