#![doc = include_str!("../README.md")]
//!
//! ## Where to go on
//!
//! - [`Endpoint`]: what a driver owes it, and all that it can be asked to do.
//! - [`Config`], [`Profile`] and [`Policies`]: the settings, the rules of a TCP stack, and what can be swapped.
//! - [`Event`] and [`Read`]: what an application hears. [`Transmit`]: a segment to be sent, with its [`Purpose`].
//! - [`ConnectionStats`], [`SubflowStats`] and [`Counters`]: statistics; [`statistics`] describes each.
//! - [`PathMemory`]: what is known of paths from earlier connections.
//!
//! ## Inside
//!
//! An [`Endpoint`] owns connections and finds the one a segment belongs to; a connection owns the data level (send
//! buffer, mappings, reassembly, DATA_ACK, the shared window, reinjection, path manager); a subflow owns one TCP. All
//! positions are offsets that never wrap; the wire's sequence numbers are translated at the edge.
#![forbid(unsafe_code)]

mod ahead;
mod arrival_rate;
mod blocks;
mod buffer;
mod burst_limit;
mod chance;
mod chosen;
mod connection;
mod cookie;
mod deadline;
mod demux;
mod dss_form;
mod ecn;
mod endpoint;
mod error;
mod event;
mod fallback_reason;
mod idle;
mod info;
mod limits;
mod locals;
mod mapping;
mod memory;
mod originals;
mod pacer;
mod path_mtu;
mod path_rate;
pub mod path_use;
mod pieces;
mod purpose;
mod ranges;
mod reassembly;
mod recovery;
mod reinject;
mod ring;
mod rtt;
mod sent_log;
pub mod settings;
mod shared;
pub mod statistics;
mod subflow;
mod transmit;
mod unplaced;

pub use ecn::{EcnRule, Feedback};
pub use endpoint::{Endpoint, Read};
pub use error::{ConfigError, OpenError, ReadError, WriteError};
pub use event::{ConnectionId, Event};
pub use fallback_reason::FallbackReason;
pub use info::{ConnectionInfo, SubflowInfo, SubflowMetrics, Wait};
pub use memory::{MemoryError, PathMemory, PathRecord};
pub use purpose::{AckReason, Choice, Detector, Purpose, Reason};
pub use rtt::RtoRule;
pub use settings::{Config, Factory, FastClose, Keepalive, LocalAddress, Policies, Profile, ReceiveTuning, Switch};
pub use statistics::{
    Blocked, ConnectionStats, Counters, Ended, Load, Misconduct, Overruled, SubflowCounts, SubflowStats,
};
pub use transmit::Transmit;
