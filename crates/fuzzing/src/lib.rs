//! Bodies of the fuzz targets: one function for each target, which panics if a check fails.
//!
//! The targets themselves, for `cargo fuzz`, are in `fuzz/`, outside the workspace; here their bodies can be tested
//! with everything else. Bytes are read as a script: what to send, what to change, how long to wait. A script that ends
//! early is a valid one, so that every input means something.
#![forbid(unsafe_code)]

mod codec;
mod connection;
mod host;
mod listener;
mod mutate;
mod script;
mod seeds;
mod segments;

pub use codec::codec;
pub use connection::connection;
pub use listener::listener;
pub use seeds::{Target, seeds};
