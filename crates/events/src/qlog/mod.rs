//! Events as qlog (draft-ietf-quic-qlog-main-schema): a JSON text sequence (RFC 7464) that begins with a [`Head`] and
//! continues with a [`Record`] for each event.
//!
//! The events have a namespace of our own. An event that means what one of QUIC's means
//! (draft-ietf-quic-qlog-quic-events) has its name and the names of its fields, so that a viewer needs no more than
//! another namespace. Where we differ: a header is TCP's; `connection` and `subflow` say whose metrics these are.

mod cddl;
mod description;
#[cfg(test)]
mod documentation;
mod head;
mod metrics;
mod packet;
mod record;

pub use cddl::cddl;
pub use description::{Described, Field, events};
pub use head::{Head, VantagePoint};
pub use metrics::{Metrics, MetricsLog};
pub use packet::{Header, Numbered, Packet, PacketLost, PacketsAcked, Raw};
pub use record::{Happening, Record, tuple, write};

/// Namespace of our events.
pub const NAMESPACE: &str = "anabranch";

/// URI of the event schema: the namespace and the month of its definition below our domain. A schema that differs gets
/// another month.
pub const SCHEMA: &str = concat!(env!("CARGO_PKG_HOMEPAGE"), "/112026/anabranch");

/// URI of the event schema of the main document with scenarios of simulations.
pub const SIMULATION_SCHEMA: &str = "urn:ietf:params:qlog:events:simulation";
