//! Events of connections and packets, each described once: as lines of JSON, and as qlog.
#![forbid(unsafe_code)]

mod connection_event;
pub mod qlog;
mod report;
pub mod statistics;

pub use connection_event::{ConnectionEvent, Ended, Happened, Opened, SubflowPlace};
pub use report::{ConnectionReport, CounterReport};
