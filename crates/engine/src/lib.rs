//! The Multipath TCP endpoint as a pure state machine: events in, segments and a deadline out.
//!
//! An [`Endpoint`] owns connections and finds the one a segment belongs to; a connection owns the data level (send
//! buffer, mappings, reassembly, DATA_ACK, the shared window, reinjection, path manager); a subflow owns one TCP. No
//! clock is read, no socket opened, no randomness drawn except from what the driver gave: a seed, or on a real network
//! entropy. All positions inside are offsets that never wrap; the wire's sequence numbers are translated at the edge.
#![forbid(unsafe_code)]

mod ahead;
mod blocks;
mod buffer;
mod chance;
mod chosen;
mod config;
mod connection;
mod cookie;
mod deadline;
mod demux;
mod endpoint;
mod error;
mod event;
mod idle;
mod locals;
mod mapping;
mod memory;
mod originals;
mod pacer;
mod path_mtu;
mod path_rate;
pub mod path_use;
mod pieces;
mod profile;
mod purpose;
mod ranges;
mod reassembly;
mod recovery;
mod reinject;
mod ring;
mod rtt;
mod sent_log;
mod shared;
pub mod statistics;
mod stats;
mod subflow;
mod unplaced;

pub use config::{Config, Factory, FastClose, Keepalive, LocalAddress, Policies, Switch};
pub use endpoint::{Endpoint, Read, Transmit};
pub use error::{ConfigError, OpenError, ReadError, WriteError};
pub use event::{ConnectionId, Counters, Event, FallbackReason};
pub use memory::{MemoryError, PathMemory, PathRecord};
pub use profile::{Profile, ReceiveTuning};
pub use purpose::{AckReason, Choice, Detector, Purpose, Reason};
pub use rtt::RtoRule;
pub use stats::{Blocked, ConnectionStats, Ended, Load, Misconduct, Overruled, SubflowCounts, SubflowStats};

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
