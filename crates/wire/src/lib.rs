//! What MPTCP peers exchange: IP and TCP header fields and the RFC 8684 options, as values.
//!
//! A [`Segment`] holds every field and option that the wire has, so that turning it into bytes and back is a pure
//! translation. The engine never sees bytes; the simulator exchanges these values directly.
#![forbid(unsafe_code)]

mod flow;
mod mptcp;
mod options;
mod segment;

pub use flow::FlowKey;
pub use mptcp::{
    AddAddr, DataSeq, Dss, JoinAck, JoinSyn, JoinSynAck, Map, MpCapable, MpOption, RemoveAddr, ResetReason,
};
pub use options::{Handshake, Options, SackBlock, SackBlocks, Timestamps};
pub use segment::{Ecn, Flags, IpHeader, Segment};
