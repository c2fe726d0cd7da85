//! The TCP of one subflow: round-trip times, loss recovery, reassembly.
#![forbid(unsafe_code)]

pub mod ranges;
pub mod reassembly;
pub mod recovery;
pub mod rtt;
